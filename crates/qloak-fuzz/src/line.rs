//! Line frames of any kind into validate and demux.
//!
//! Three channels (aggregated, transparent, transparent with 32-bit PNs in strict order) of one line. The
//! choices send client frames, present line frames as they were sent, again, changed, or made up, rekey,
//! and in half of the inputs let the peer lie: it protects records of any content. What must hold:
//!
//! - a frame is valid only if it was sent (a short one may have the line's padding behind it), and once;
//! - what is not valid has an empty range, and an agreement frame is left as it was;
//! - an honest peer's client frames come out as they went in, each at most once, and nothing else does;
//! - a lying peer's come out only on its channel's client ports and only in the lengths of frames;
//! - every frame stands in the one counter of its verdict, and every delivered frame in its channel's.

use qloak_api::{Carriage, ClientPort, manage::InboundCounters};
use qloak_secy::{Muxed, Valid, Verdict, limits};

use crate::{
    choices::{Choices, client_frame},
    ends::{Ends, RECEIVER, SENDER, Wanted, client},
};

/// Enough to fill a replay window and to reach every AN; little enough for many runs a second.
const STEPS_MAX: usize = 160;
/// Offset of SL, which says whether padding may follow the ICV.
const SHORT_LENGTH_AT: usize = 15;

/// Takes any octets.
pub fn run(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    let mut line = Line::new(&mut choices, octets);
    for _ in 0..STEPS_MAX {
        if choices.is_over() {
            break;
        }
        line.step(&mut choices);
    }
    line.validate();
    line.balance();
}

struct Line {
    ends: Ends,
    lying: bool,
    /// By place in `ends.sent`: whether it was valid already.
    accepted: Vec<bool>,
    /// Client frames that may still come out.
    owed: Vec<(ClientPort, Vec<u8>)>,
    muxed: usize,
    /// What arrives next.
    batch: Vec<Vec<u8>>,
    verdicts: Verdicts,
    delivered: [u64; 3],
}

#[derive(Default, PartialEq, Eq, Debug)]
struct Verdicts {
    valid: u64,
    no_tag: u64,
    bad_tag: u64,
    unknown_sci: u64,
    no_sa: u64,
    late: u64,
    replayed: u64,
    not_valid: u64,
}

impl Line {
    fn new(choices: &mut Choices<'_>, input: &[u8]) -> Self {
        let transparent = |number, xpn, replay_window, suite| Wanted {
            carriage: Carriage::Transparent,
            clients: number..=number,
            xpn,
            replay_window,
            suite,
        };
        let wanted = [
            Wanted {
                carriage: Carriage::Aggregated,
                clients: 1..=8,
                xpn: true,
                replay_window: 64,
                suite: "aes-128-gcm",
            },
            transparent(9, true, 8, "aes-256-ocb"),
            transparent(10, false, 0, "aes-256-gcm"),
        ];
        let lying = choices.octet() & 1 == 1;
        let line_octets = 256 + choices.octet() as usize * 5;
        Self {
            ends: Ends::new(&wanted, line_octets, limits::LINE_BATCH_FRAMES_MIN, input),
            lying,
            accepted: Vec::new(),
            owed: Vec::new(),
            muxed: 0,
            batch: Vec::new(),
            verdicts: Verdicts::default(),
            delivered: [0; 3],
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.octet() % 12 {
            0..=2 => self.send(choices),
            3 => self.present(choices, |_, _| {}),
            4..=6 => self.present(choices, |frame, choices| choices.change(frame, 28)),
            // The SecTAG of one frame on another.
            7 => {
                let other = self.sent(choices);
                self.present(choices, |frame, _| {
                    let head = frame.len().min(other.len()).min(28);
                    frame[..head].copy_from_slice(&other[..head]);
                });
            }
            8 => self.make_up(choices),
            9 if self.lying => {
                let mut frame = [&RECEIVER.0[..], &SENDER.0, &[0x88, 0xb6]].concat();
                let octets = choices.octet().into();
                frame.extend_from_slice(choices.take(octets));
                self.ends.protect(0, &frame);
            }
            9 | 10 => self.ends.rekey(choices.below(3)),
            _ => self.validate(),
        }
    }

    /// A client frame goes into its channel, and as often as not all that is begun goes out.
    fn send(&mut self, choices: &mut Choices<'_>) {
        let client = client(choices.below(11) as u8 + 1);
        let octets = choices.number() % 2048;
        let frame = client_frame(octets, self.muxed);
        self.muxed += 1;
        match self.ends.mux(client, &frame) {
            Some(Muxed::Taken) => self.owed.push((client, frame)),
            Some(Muxed::Runt) => assert!(octets < limits::FRAME_OCTETS_MIN),
            Some(Muxed::TooLong) => assert!(client.number() > 8, "pieces would have fitted"),
            None => assert!(client.number() > 10, "a channel carries it"),
            Some(other) => panic!("{other:?} for a frame of {octets} octets"),
        }
        if choices.octet() & 1 == 0 {
            (0..3).for_each(|channel| self.ends.flush(channel));
        }
    }

    fn sent(&self, choices: &mut Choices<'_>) -> Vec<u8> {
        let at = choices.below(self.ends.sent.len());
        self.ends.sent.get(at).cloned().unwrap_or_default()
    }

    fn present(
        &mut self,
        choices: &mut Choices<'_>,
        change: impl FnOnce(&mut Vec<u8>, &mut Choices<'_>),
    ) {
        let mut frame = self.sent(choices);
        change(&mut frame, choices);
        self.batch.push(frame);
    }

    /// Any octets, half of the time behind a SecTAG that leads to a channel.
    fn make_up(&mut self, choices: &mut Choices<'_>) {
        let kind = choices.octet();
        let mut frame = Vec::new();
        if kind & 1 == 1 {
            frame.extend([&RECEIVER.0[..], &SENDER.0, &[0x88, 0xe5]].concat());
            frame.extend([0x2c | kind >> 1 & 3, choices.octet() % 50]);
            frame.extend(choices.array::<4>());
            frame.extend(SENDER.0);
            frame.extend([0, kind >> 3 & 3]);
        }
        let octets = choices.octet().into();
        frame.extend(choices.take(octets));
        self.batch.push(frame);
    }

    /// Everything that has arrived is validated in one batch, and what is valid is demuxed.
    fn validate(&mut self) {
        let presented = std::mem::take(&mut self.batch);
        let left = self.ends.validate(&presented);
        for (presented, (verdict, left)) in presented.iter().zip(left) {
            let verdicts = &mut self.verdicts;
            let counter = match verdict {
                Verdict::Valid(valid) => {
                    verdicts.valid += 1;
                    self.accept(presented);
                    self.demux(valid, &left);
                    continue;
                }
                Verdict::Agreement => {
                    assert_eq!(presented.get(12..14), Some(&[0x88, 0xb5][..]));
                    assert!(left == *presented, "not ours to change");
                    continue;
                }
                Verdict::NoTag => &mut verdicts.no_tag,
                Verdict::BadTag => &mut verdicts.bad_tag,
                Verdict::UnknownSci => &mut verdicts.unknown_sci,
                Verdict::NoSa => &mut verdicts.no_sa,
                Verdict::Late => &mut verdicts.late,
                Verdict::Replayed => &mut verdicts.replayed,
                Verdict::NotValid => &mut verdicts.not_valid,
            };
            *counter += 1;
            assert!(left.is_empty(), "{verdict:?}, and octets are left");
        }
    }

    /// A valid frame is one of those that were sent, and was not valid before.
    fn accept(&mut self, presented: &[u8]) {
        self.accepted.resize(self.ends.sent.len(), false);
        let is = |sent: &[u8]| {
            sent == presented || sent[SHORT_LENGTH_AT] != 0 && presented.starts_with(sent)
        };
        let mut places = self.ends.sent.iter().zip(&mut self.accepted);
        let place = places.find(|(sent, accepted)| !**accepted && is(sent));
        *place
            .expect("valid, and was not sent or was valid before")
            .1 = true;
    }

    fn demux(&mut self, valid: Valid, frame: &[u8]) {
        let channel = usize::from(valid.channel.number.number()) - 1;
        let (owed, lying) = (&mut self.owed, self.lying);
        let delivered = &mut self.delivered[channel];
        self.ends.inbound.demux(valid, frame, |client, octets| {
            *delivered += 1;
            let ports = [1..=8, 9..=9, 10..=10][channel].clone();
            assert!(ports.contains(&client.number()), "another channel's client");
            let lengths = limits::FRAME_OCTETS_MIN..=limits::CLIENT_FRAME_OCTETS_MAX;
            assert!(lengths.contains(&octets.len()), "no frame");
            let one = |owed: &(ClientPort, Vec<u8>)| owed.0 == client && owed.1 == octets;
            match owed.iter().position(one) {
                Some(at) => drop(owed.swap_remove(at)),
                None => assert!(lying, "delivered, and was not given"),
            }
        });
    }

    /// Every frame is in one counter.
    fn balance(&self) {
        let mut all = InboundCounters::default();
        for (channel, delivered) in self.ends.channels.iter().zip(self.delivered) {
            let counters = self.ends.inbound.counters(channel.reference.number);
            let counters = counters.expect("its counters");
            assert_eq!(counters.client_frames, delivered, "{counters:?}");
            all.ok += counters.ok;
            all.no_sa += counters.no_sa;
            all.late += counters.late;
            all.replayed += counters.replayed;
            all.not_valid += counters.not_valid;
            all.mux_errors += counters.mux_errors;
        }
        assert!(self.lying || all.mux_errors == 0, "{all:?}");
        let strays = self.ends.inbound.strays();
        let counted = Verdicts {
            valid: all.ok,
            no_tag: strays.no_tag,
            bad_tag: strays.bad_tag,
            unknown_sci: strays.unknown_sci,
            no_sa: all.no_sa,
            late: all.late,
            replayed: all.replayed,
            not_valid: all.not_valid,
        };
        assert_eq!(counted, self.verdicts);
    }
}
