//! Waiting until a port has frames, and waking a thread that waits.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use crate::{PortError, limits, sys};

/// Waits until one of the descriptors is readable or the time is over. True when one is; a signal
/// counts as the end of the time.
///
/// # Errors
/// When there are more than [`limits::WAIT_DESCRIPTORS_MAX`] descriptors, or the kernel refuses.
pub fn wait(descriptors: &[BorrowedFd<'_>], timeout: Duration) -> Result<bool, PortError> {
    if descriptors.len() > limits::WAIT_DESCRIPTORS_MAX {
        return Err(PortError::Setting {
            setting: "the count of descriptors to wait for",
            given: descriptors.len().to_string(),
            allowed: format!("up to {}", limits::WAIT_DESCRIPTORS_MAX),
        });
    }
    sys::poll::readable(descriptors, timeout).map_err(|error| PortError::Kernel {
        interface: "ports".into(),
        what: "wait for frames",
        error,
    })
}

/// Makes a waiting thread go on: its descriptor is readable from `wake` until `clear`.
pub struct Waker {
    event: OwnedFd,
    /// The event may be readable. Set behind the event, so that a wake never stays readable unseen.
    woken: AtomicBool,
}

impl Waker {
    /// A waker that has not been woken.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> Result<Self, PortError> {
        Self::named("waker")
    }

    pub(crate) fn named(name: &str) -> Result<Self, PortError> {
        let event = sys::poll::event().map_err(|error| PortError::Kernel {
            interface: name.to_owned(),
            what: "make an event descriptor",
            error,
        })?;
        Ok(Self {
            event,
            woken: AtomicBool::new(false),
        })
    }

    /// Makes the descriptor readable. Never waits; waking twice is as good as once.
    pub fn wake(&self) {
        sys::poll::signal(&self.event);
        self.woken.store(true, Ordering::SeqCst);
    }

    /// Makes it unreadable again. What the waking thread did before it woke is seen after this, or the descriptor is
    /// readable still. No system call when nobody woke.
    pub fn clear(&self) {
        if self.woken.swap(false, Ordering::SeqCst) {
            sys::poll::reset(&self.event);
        }
    }

    /// To be waited for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_is_readable_from_wake_to_clear() {
        let waker = Waker::new().unwrap();
        let ready = || wait(&[waker.descriptor()], Duration::ZERO).unwrap();
        assert!(!ready());
        waker.wake();
        waker.wake();
        assert!(ready() && ready());
        waker.clear();
        assert!(!ready());
    }

    #[test]
    fn too_many_descriptors_are_refused() {
        let waker = Waker::new().unwrap();
        let error = wait(&vec![waker.descriptor(); 129], Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("129"), "{error}");
    }
}
