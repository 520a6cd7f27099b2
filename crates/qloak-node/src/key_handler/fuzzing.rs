//! A door for `qloak-fuzz` alone: the reader and the writer of agreement frames, without the key handler.
//!
//! A frame that reads but is not authentic leaves no trace but a counter, so from outside nobody could
//! tell whether it was read rightly. Nothing of the product calls this.

use qloak_api::MacAddress;
use qloak_keys::derive::MacKey;

use super::message::{self, Envelope, Received};

/// What a frame says, written again under another key of its MAC; `None` when it is no message that
/// came for `own` from `peer`.
pub fn again(frame: &[u8], own: MacAddress, peer: MacAddress, key: &MacKey) -> Option<Vec<u8>> {
    let received = Received::read(frame, own, peer).ok()?;
    let envelope = Envelope {
        to: own,
        from: peer,
        tag: received.tag,
        counter: received.counter,
    };
    Some(message::write(envelope, &received.body, key))
}

/// Whether a frame is a message and its MAC was made with this key.
pub fn authentic(frame: &[u8], own: MacAddress, peer: MacAddress, key: &MacKey) -> bool {
    Received::read(frame, own, peer).is_ok_and(|received| received.authentic(key))
}
