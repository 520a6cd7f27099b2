//! The threads that carry the frames: how many, on which cores, and what becomes of the node when one ends.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use crate::{
    Error,
    config::{Config, Pipeline},
    cores,
    pipeline::{inbound::InboundThread, outbound::OutboundThread},
};

/// Starts the threads that carry the frames: one each way or one for both, each on its core.
pub(super) fn start(
    config: &Config,
    stop: &Arc<AtomicBool>,
    mut outbound: OutboundThread,
    inbound: InboundThread,
) -> Result<Vec<JoinHandle<Result<(), Error>>>, Error> {
    let (name, pipeline) = (&config.name, &config.pipeline);
    for core in &pipeline.cores {
        let far = |line| cores::distance(Path::new("/"), line, *core);
        for words in config.line.lanes.iter().filter_map(far) {
            tracing::warn!("{words}");
        }
    }
    if *pipeline != Pipeline::default() {
        tracing::info!(threads = pipeline.threads, cores = ?pipeline.cores, busy_poll = pipeline.busy_poll, "pipeline");
    }
    let [first, second] = [pipeline.core(0), pipeline.core(1)];
    if pipeline.threads == 1 {
        outbound.beside = Some(Box::new(inbound));
        let both = spawn(&format!("{name}-both"), stop, move || {
            cores::stay_on(first)?;
            outbound.run().map_err(Error::from)
        })?;
        return Ok(vec![both]);
    }
    Ok(vec![
        spawn(&format!("{name}-out"), stop, move || {
            cores::stay_on(first)?;
            outbound.run().map_err(Error::from)
        })?,
        spawn(&format!("{name}-in"), stop, move || {
            cores::stay_on(second)?;
            inbound.run().map_err(Error::from)
        })?,
    ])
}

/// A thread that stops the whole node when it ends, by an error or a panic too: a node whose other
/// threads went on would look well and carry nothing.
pub(crate) fn spawn(
    name: &str,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> Result<(), Error> + Send + 'static,
) -> Result<JoinHandle<Result<(), Error>>, Error> {
    let stop = StopAtEnd(Arc::clone(stop));
    // The kernel keeps 15 octets of a thread's name.
    let named = std::thread::Builder::new().name(name.chars().take(15).collect());
    named
        .spawn(move || {
            let _stop = stop;
            work()
        })
        .map_err(Error::Thread)
}

/// Stops the node when it is dropped, which a panic does as well.
struct StopAtEnd(Arc<AtomicBool>);

impl Drop for StopAtEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_stops_the_node() {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = spawn("fault", &stop, || panic!("on purpose")).expect("a thread");
        assert!(thread.join().is_err());
        assert!(stop.load(Ordering::Relaxed));
    }
}
