//! Client frames of any size and content muxed into line frames, and demuxed again.
//!
//! One aggregated channel of 64 client ports over a line of any length. The choices give client frames,
//! let line frames leave, and lose or swap some on the way. What must hold:
//!
//! - on a line that loses and swaps nothing, what was taken comes out in order, all of it, unchanged;
//! - on any line what comes out was taken, whole, and comes out once;
//! - a frame is refused only for its length, and no frame that the line can carry is;
//! - both ends' counters say what happened.

use qloak_api::{Carriage, ClientPort};
use qloak_secy::{Muxed, Verdict, limits};

use crate::{
    choices::{Choices, client_frame},
    ends::{Ends, Wanted, client},
};

const STEPS_MAX: usize = 100;
/// With the first SA four, which is how many are accepted at once: what was sent before is still on its way.
const REKEYS_MAX: usize = 3;
/// Octets that a fragment's header and the line frame's own take from a line frame's room.
const OVERHEAD: usize = limits::HEADROOM + limits::TAILROOM + 14 + 8;

/// Takes any octets.
pub fn run(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    let wanted = Wanted {
        carriage: Carriage::Aggregated,
        clients: 1..=64,
        xpn: true,
        replay_window: 256,
        suite: "aes-128-gcm",
    };
    let line_octets = (256 + choices.number()).min(*limits::LINE_FRAME_OCTETS.end());
    let batch_frames = limits::LINE_BATCH_FRAMES_MIN + choices.below(33);
    let mut ends = Ends::new(&[wanted], line_octets, batch_frames, octets);

    let carried_max = (line_octets - OVERHEAD) * limits::FRAGMENTS_MAX;
    let mut taken: Vec<(ClientPort, Vec<u8>)> = Vec::new();
    let (mut too_long, mut rekeys, mut good_line) = (0, 0, true);
    for step in 0..STEPS_MAX {
        if choices.is_over() {
            break;
        }
        match choices.octet() {
            0..192 => {
                let client = client(choices.octet() % 64 + 1);
                let octets = choices.number() % (limits::CLIENT_FRAME_OCTETS_MAX + 100);
                let frame = client_frame(octets, step);
                match ends.mux(client, &frame) {
                    Some(Muxed::Taken) => taken.push((client, frame)),
                    Some(Muxed::Runt) => assert!(octets < limits::FRAME_OCTETS_MIN),
                    Some(Muxed::TooLong) => {
                        let most = carried_max.min(limits::CLIENT_FRAME_OCTETS_MAX);
                        assert!(octets > most, "{octets} octets could be carried");
                        too_long += 1;
                    }
                    other => panic!("{other:?} for a frame of {octets} octets"),
                }
            }
            192..224 => ends.flush(0),
            224..240 if rekeys < REKEYS_MAX => {
                ends.rekey(0);
                rekeys += 1;
            }
            224..240 => {}
            lost if lost & 1 == 0 => good_line &= ends.sent.pop().is_none(),
            _ => {
                if let [.., before, last] = &mut ends.sent[..] {
                    std::mem::swap(before, last);
                    good_line = false;
                }
            }
        }
    }
    ends.flush(0);

    let octets = |frames: &[(ClientPort, Vec<u8>)]| -> u64 {
        frames.iter().map(|(_, frame)| frame.len() as u64).sum()
    };
    let number = ends.channels[0].reference.number;
    let counters = ends.outbound.counters(number).expect("its counters");
    assert_eq!(counters.client_frames, taken.len() as u64);
    assert_eq!(counters.client_octets, octets(&taken));
    assert_eq!((counters.too_long, counters.no_sa), (too_long, 0));

    let delivered = receive(&mut ends);
    let counters = ends.inbound.counters(number).expect("its counters");
    assert_eq!(counters.client_frames, delivered.len() as u64);
    assert_eq!(counters.client_octets, octets(&delivered));
    assert_eq!(counters.mux_errors, 0, "an honest peer");
    if good_line {
        assert_eq!(counters.fragments_lost, 0);
        assert!(delivered == taken, "what went in comes out, in order");
    }
    for one in &delivered {
        let place = taken.iter().position(|taken| taken == one);
        taken.swap_remove(place.expect("was taken, and came out once"));
    }
}

/// What comes out at the far end.
fn receive(ends: &mut Ends) -> Vec<(ClientPort, Vec<u8>)> {
    let mut delivered = Vec::new();
    let line = std::mem::take(&mut ends.sent);
    for batch in line.chunks(limits::CHUNK_FRAMES + 5) {
        for (verdict, frame) in ends.validate(batch) {
            match verdict {
                Verdict::Valid(valid) => {
                    ends.inbound.demux(valid, &frame, |client, frame| {
                        delivered.push((client, frame.to_vec()));
                    });
                }
                other => panic!("{other:?} for a frame that was sent"),
            }
        }
    }
    delivered
}
