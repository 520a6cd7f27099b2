//! Key-agreement frames of any content: to the reader, and to two nodes at work.
//!
//! An even first octet gives the others to the reader; an odd one makes them the script of a run of
//! `qloak-sim`, in which somebody on the line records, changes, repeats, makes up and holds back frames,
//! nodes restart, and operators give orders. What must hold:
//!
//! - what reads as a message is written again octet for octet, padding apart, and no other MAC holds;
//! - a message that is cut anywhere, or has one bit changed, is none or is not authentic;
//! - at every moment what the simulator's book says: a key serves one SA or none, both ends make the
//!   same SA of it, nothing encodes before the far end accepts, no client frame comes out that was not sent;
//! - when the line is left alone, every channel is open again.

use qloak_keys::{
    Key,
    derive::{self, MAC_OCTETS, MacKey, Parties},
};
use qloak_node::key_handler::{Command, fuzzing};
use qloak_sim::{MS, Plan, Side, World};

use crate::choices::Choices;

const STEPS_MAX: usize = 60;
/// Offset of the length, after which come tag, counter, body and MAC.
const LENGTH_AT: usize = 16;
/// A node that restarts under a flood waits for a token of one second before each fetch, and a hello
/// that is not answered takes another key after two; the rest is retries.
const HEALED_MS: u64 = 20_000;

/// Takes any octets.
pub fn run(octets: &[u8]) {
    let mut choices = Choices::new(octets);
    if choices.octet() & 1 == 0 {
        read(&mut choices);
    } else {
        attack(&mut choices);
    }
}

fn read(choices: &mut Choices<'_>) {
    let (own, peer) = (Side::A.address(), Side::B.address());
    let (bit, cut) = (choices.number(), choices.number());
    let mut frame = [own.0, peer.0].concat();
    frame.extend_from_slice(choices.rest());
    let key = mac_key();
    let again = |frame: &[u8]| fuzzing::again(frame, own, peer, &key);
    let Some(written) = again(&frame) else {
        assert!(!fuzzing::authentic(&frame, own, peer, &key));
        return;
    };
    let end = end(&frame);
    assert!(frame[..end - MAC_OCTETS] == written[..end - MAC_OCTETS]);
    assert!(again(&written).is_some_and(|second| second == written));
    assert!(fuzzing::authentic(&written, own, peer, &key));
    let same = frame[..end] == written[..end];
    assert_eq!(fuzzing::authentic(&frame, own, peer, &key), same);

    assert!(again(&written[..cut % end]).is_none(), "cut, and it reads");
    let mut changed = written;
    changed[bit / 8 % end] ^= 1 << (bit % 8);
    assert!(!fuzzing::authentic(&changed, own, peer, &key));
    assert!(
        fuzzing::again(&frame, peer, own, &key).is_none(),
        "a stranger"
    );
}

/// Where the MAC of a frame that reads ends.
fn end(frame: &[u8]) -> usize {
    14 + usize::from(u16::from_be_bytes([frame[LENGTH_AT], frame[LENGTH_AT + 1]]))
}

fn mac_key() -> MacKey {
    let key = Key::from_slice(&[1; 32]).expect("a key's length");
    let (a, b) = (Side::A.sae(), Side::B.sae());
    let parties = Parties {
        initiator: &a,
        target: &b,
    };
    derive::hello(&key, parties)
}

fn attack(choices: &mut Choices<'_>) {
    let mut plan = Plan::new(choices.octet().into());
    plan.channels = 1 + choices.octet() as u16 % 2;
    plan.frames_per_ms = choices.octet() as u64 % 2;
    let mut world = World::new(plan.clone());
    for _ in 0..STEPS_MAX {
        if choices.is_over() {
            break;
        }
        step(&mut world, &plan, choices);
    }
    for side in Side::BOTH {
        world.wires[side.index()] = qloak_sim::Wire::default();
    }
    world.run_until(HEALED_MS, "every channel is open again", World::open);
}

fn step(world: &mut World, plan: &Plan, choices: &mut Choices<'_>) {
    let what = choices.octet();
    let side = Side::BOTH[usize::from(what >> 7)];
    match what % 12 {
        0..=3 => world.run_ms(1 + choices.octet() as u64 % 64),
        4..=8 => {
            let at = choices.below(world.recorded.len());
            let Some((from, mut frame)) = world.recorded.get(at).cloned() else {
                return world.run_ms(20);
            };
            if what % 12 > 4 {
                choices.change(&mut frame, 64);
            }
            world.inject(from.other(), frame);
        }
        9 => {
            let mut frame = [side.address().0, side.other().address().0].concat();
            frame.extend([0x88, 0xb5, 1]);
            let octets = choices.octet().into();
            frame.extend(choices.take(octets));
            world.inject(side, frame);
        }
        10 => order(world, plan, side, choices),
        _ => {
            let wire = &mut world.wires[side.index()];
            match choices.octet() {
                // A restart, seldom: it is dear.
                0..32 => {
                    world.stop(side);
                    world.start(side);
                }
                32..96 => wire.cut = !wire.cut,
                96..160 => wire.loss = 0.3 - wire.loss,
                160..208 => wire.duplication = 0.3 - wire.duplication,
                _ => wire.jitter_ns = 5 * MS - wire.jitter_ns,
            }
        }
    }
}

/// An operator's order; one that is refused changes nothing.
fn order(world: &mut World, plan: &Plan, side: Side, choices: &mut Choices<'_>) {
    let suites = &plan.offered[0];
    let channel = World::channel(1 + choices.octet() as u16 % plan.channels);
    let command = match choices.octet() % 8 {
        0..=3 => Command::Rekey { channel },
        4 | 5 => Command::SetSuite {
            channel,
            suite: suites[choices.below(suites.len())],
        },
        6 => Command::SoftReset,
        _ => Command::Resize {
            slots: choices.octet().into(),
        },
    };
    // Slots under eight are refused, which is an answer too.
    let _ = world.command(side, command);
}
