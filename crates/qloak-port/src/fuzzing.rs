//! A door for `qloak-fuzz` alone: what a port does with a super-frame, without the port.
//!
//! Super-frames come from the kernel, so there is no other way to hand made-up ones to the code that
//! cuts them. Nothing of the product calls this.

use crate::{
    limits,
    offload::{Cut, Virtio},
};

/// The frames of a super-frame under its virtio header, in order, each `None` where it does not fit the
/// longest frame of a port or its headers contradict it; `None` when it is not what the header says.
pub fn cut(header: &[u8; 10], frame: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
    let cut = Cut::new(frame, Virtio::parse(header))?;
    let mut room = vec![0; limits::FRAME_OCTETS_MAX];
    let piece = |index| {
        let octets = cut.write(frame, index, &mut room)?;
        room.get(..octets).map(<[u8]>::to_vec)
    };
    Some((0..cut.count).map(piece).collect())
}

/// Completes the checksum of a frame into which `inserted` octets were put before the network header.
/// False when the header does not fit the frame.
pub fn complete(header: &[u8; 10], frame: &mut [u8], inserted: usize) -> bool {
    Virtio::parse(header).complete(frame, inserted)
}
