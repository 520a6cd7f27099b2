//! What an operator asks for when frames of a node shall be recorded, and what a capture says of itself.
//!
//! The answer is no document but a stream, pcapng, so it has no type here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ClientPort, limits};

/// Which side of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Client ports: frames in the clear.
    Client,
    /// The line port: frames as they are protected, and those of the key agreement.
    Line,
}

/// What a capture stream calls itself.
pub const CAPTURE_MEDIA_TYPE: &str = "application/x-pcapng";

/// `POST /v1/capture` of a node, `POST /v1/nodes/{name}/capture` of the controller. The capture ends with the first
/// bound that is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureOrder {
    /// Which side.
    pub side: Side,
    /// One client port alone; all of them without. Only for the client side.
    #[serde(default)]
    pub port: Option<ClientPort>,
    /// How long, 1 to 3600.
    pub seconds: u32,
    /// How many frames, 1 to 10,000,000.
    pub frames: u64,
    /// How many octets of each frame, from its first: 14 to 65535.
    pub snap_octets: u32,
}

impl CaptureOrder {
    /// Says what is wrong with the order, what is allowed and what to do.
    ///
    /// # Errors
    /// The sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.side == Side::Line && self.port.is_some() {
            return Err(
                "a line frame carries frames of several client ports and hides whose: name a client port with the client side only"
                    .to_owned(),
            );
        }
        let asked = [
            ("seconds", u64::from(self.seconds), limits::CAPTURE_SECONDS),
            ("frames", self.frames, limits::CAPTURE_FRAMES),
            (
                "snap_octets",
                u64::from(self.snap_octets),
                limits::CAPTURE_SNAP_OCTETS,
            ),
        ];
        for (what, given, allowed) in asked {
            if !allowed.contains(&given) {
                return Err(format!(
                    "{what} is {given}, {} to {} is allowed",
                    allowed.start(),
                    allowed.end()
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_captured_is_said() {
        let order = CaptureOrder {
            side: Side::Client,
            port: ClientPort::try_from(1).ok(),
            seconds: 10,
            frames: 1000,
            snap_octets: 128,
        };
        assert_eq!(order.check(), Ok(()));
        for (wrong, word) in [
            (
                CaptureOrder {
                    side: Side::Line,
                    ..order.clone()
                },
                "client side only",
            ),
            (
                CaptureOrder {
                    seconds: 0,
                    ..order.clone()
                },
                "seconds is 0",
            ),
            (
                CaptureOrder {
                    frames: u64::MAX,
                    ..order.clone()
                },
                "1 to 10000000",
            ),
            (
                CaptureOrder {
                    snap_octets: 13,
                    ..order.clone()
                },
                "14 to 65535",
            ),
        ] {
            let said = wrong.check().expect_err("not allowed");
            assert!(said.contains(word), "{said}");
        }
    }
}
