//! One counter for each verdict: where a discarded frame is found again.
//!
//! | verdict      | counter                    | IEEE 802.1AE-2018, 10.7.9 |
//! |--------------|----------------------------|---------------------------|
//! | `Valid`      | `InboundCounters::ok`      | InPktsOK                  |
//! | `NoTag`      | `StrayCounters::no_tag`    | InPktsNoTag               |
//! | `BadTag`     | `StrayCounters::bad_tag`   | InPktsBadTag              |
//! | `UnknownSci` | `StrayCounters::unknown_sci` | InPktsNoSCI             |
//! | `NoSa`       | `InboundCounters::no_sa`   | InPktsNotUsingSA          |
//! | `Late`       | `InboundCounters::late`    | InPktsLate                |
//! | `Replayed`   | `InboundCounters::replayed` | (ours: inside the window) |
//! | `NotValid`   | `InboundCounters::not_valid` | InPktsNotValid          |
//! | `Agreement`  | none: not a frame of the SecY, and not discarded | |
//!
//! Each half owns its counters and adds without a lock; a reader gets a copy between two batches.

use qloak_api::manage::{InboundCounters, StrayCounters};

use crate::Verdict;

/// Counts a verdict. `channel` is that of the frame, if it has one.
pub(crate) fn count(
    verdict: Verdict,
    strays: &mut StrayCounters,
    channel: Option<&mut InboundCounters>,
) {
    let mut none = InboundCounters::default();
    let channel = channel.unwrap_or(&mut none);
    let counter = match verdict {
        Verdict::Valid(_) => &mut channel.ok,
        Verdict::NoTag => &mut strays.no_tag,
        Verdict::BadTag => &mut strays.bad_tag,
        Verdict::UnknownSci => &mut strays.unknown_sci,
        Verdict::NoSa => &mut channel.no_sa,
        Verdict::Late => &mut channel.late,
        Verdict::Replayed => &mut channel.replayed,
        Verdict::NotValid => &mut channel.not_valid,
        Verdict::Agreement => return,
    };
    *counter += 1;
}
