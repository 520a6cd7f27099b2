//! Camellia (RFC 3713) on a stripe of blocks turned on its side, one octet of each block a register.
//!
//! ```text
//!   slice -> start -> six rounds -> layer -> six rounds -> layer -> ... -> finish -> unslice
//! ```
//!
//! Registers hold octets in a basis and with an offset ([`octets`] says why). All of it is put into
//! the keys here, so that a round is S-boxes and exclusive ors and nothing else. Decryption is
//! encryption with the subkeys in reverse order. No secret is an address or decides a branch.

use zeroize::Zeroize;

use crate::lanes::{LaneCipher, STRIPE};

pub(crate) mod field;
pub(crate) mod octets;
mod schedule;
#[cfg(test)]
mod tests;

use octets::{Half, LEFT, Octets, RIGHT, Splats};
use schedule::Subkeys;

/// A key's schedule for registers `Y`, both ways.
pub(crate) struct Camellia<Y: Octets> {
    forward: Schedule<Y>,
    backward: Schedule<Y>,
}

impl<Y: Octets> Camellia<Y> {
    /// None when the key has not 16, 24 or 32 octets.
    pub(crate) fn new(key: &[u8]) -> Option<Self> {
        let subkeys = Subkeys::new(key)?;
        Some(Self {
            forward: Schedule::new(&subkeys),
            backward: Schedule::new(&subkeys.reversed()),
        })
    }
}

impl<Y: Octets> LaneCipher<Y::Memory> for Camellia<Y> {
    #[inline(always)]
    fn encrypt(&self, stripe: &mut [Y::Memory; STRIPE], _used: usize) {
        self.forward.run(stripe);
    }

    #[inline(always)]
    fn decrypt(&self, stripe: &mut [Y::Memory; STRIPE], _used: usize) {
        self.backward.run(stripe);
    }
}

/// Everything that is added or passed on the way of a stripe, in order.
struct Schedule<Y: Octets> {
    start: Splats,
    sixes: [Six<Y>; 4],
    used: usize,
    finish: Splats,
}

/// Six rounds, and the layers before them, which the first six have not.
struct Six<Y: Octets> {
    layers: Option<[Y::Layer; 2]>,
    rounds: [Splats; 6],
}

impl<Y: Octets> Schedule<Y> {
    fn new(subkeys: &Subkeys) -> Self {
        let differences = Differences::new(subkeys, Y::SINGULAR);
        Self {
            start: octets::splats(differences.start, Y::BASES[LEFT]),
            sixes: std::array::from_fn(|six| Six {
                layers: (0 < six && six < subkeys.sixes).then(|| {
                    [
                        Y::layer::<LEFT>(subkeys.layers[2 * six - 2]),
                        Y::layer::<RIGHT>(subkeys.layers[2 * six - 1]),
                    ]
                }),
                rounds: std::array::from_fn(|round| {
                    let difference = differences.rounds[6 * six + round];
                    if round % 2 == LEFT {
                        Y::round_key::<LEFT>(difference)
                    } else {
                        Y::round_key::<RIGHT>(difference)
                    }
                }),
            }),
            used: subkeys.sixes,
            finish: octets::splats(differences.finish, Y::BASES[RIGHT]),
        }
    }

    #[inline(always)]
    fn run(&self, stripe: &mut [Y::Memory; STRIPE]) {
        // The registers of AVX2 do not hold a whole stripe, and the compiler aligns the stack for those
        // that it puts there only if something else on it asks for that.
        std::hint::black_box(&Y::splat(0));

        let [mut left, mut right] = Y::slice(stripe);
        add(&mut left, &self.start);
        for six in &self.sixes[..self.used] {
            if let Some(layers) = &six.layers {
                Y::pass::<LEFT>(&mut left, &layers[LEFT]);
                Y::pass::<RIGHT>(&mut right, &layers[RIGHT]);
            }
            for [first, second] in six.rounds.as_chunks().0 {
                Y::round::<LEFT>(&left, &mut right, first);
                Y::round::<RIGHT>(&right, &mut left, second);
            }
        }
        add(&mut right, &self.finish);
        *stripe = Y::unslice([left, right]);
    }
}

impl<Y: Octets> Drop for Schedule<Y> {
    fn drop(&mut self) {
        self.start.zeroize();
        for six in &mut self.sixes {
            six.layers.zeroize();
            six.rounds.zeroize();
        }
        self.finish.zeroize();
    }
}

#[inline(always)]
fn add<Y: Octets>(half: &mut Half<Y>, octets: &Splats) {
    for at in 0..half.len() {
        half[at] = half[at].xor(Y::splat(octets[at]));
    }
}

/// What has to be added where, so that each round finds its key in the half that it reads.
struct Differences {
    start: u64,
    rounds: [u64; 24],
    finish: u64,
}

impl Differences {
    fn new(subkeys: &Subkeys, singular: [u8; 2]) -> Self {
        let last = 6 * subkeys.sixes - 1;
        let wanted = |round: usize| subkeys.rounds[round] ^ before_boxes(singular[round % 2]);
        let [left, right, finish_right, finish_left] = subkeys.whitening;

        let plus = schedule::spread(behind_boxes(field::PLUS));
        let mut held = [wanted(0), right];
        let mut rounds = [0; 24];
        for (round, difference) in rounds.iter_mut().enumerate().take(last + 1) {
            let (six, to) = (round / 6, 1 - round % 2);
            if round % 6 == 0 && six > 0 {
                held[LEFT] = schedule::layer(held[LEFT], subkeys.layers[2 * six - 2]);
                held[RIGHT] = schedule::layer_inverse(held[RIGHT], subkeys.layers[2 * six - 1]);
            }
            let offset = if round == last {
                finish_left
            } else if round % 6 == 5 {
                // What the next round wants, before the layer on the way to it.
                schedule::layer_inverse(wanted(round + 1), subkeys.layers[2 * six])
            } else {
                wanted(round + 1)
            };
            *difference = held[to] ^ offset ^ plus;
            held[to] = offset;
        }
        let differences = Self {
            start: left ^ wanted(0),
            rounds,
            finish: held[RIGHT] ^ finish_right,
        };
        held.zeroize();
        differences
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        self.start.zeroize();
        self.rounds.zeroize();
        self.finish.zeroize();
    }
}

/// An octet in front of each S-box of a half: the fourth box rotates what goes in.
fn before_boxes(octet: u8) -> u64 {
    u64::from_be_bytes(field::ORDER.map(|number| match number {
        4 => octet.rotate_right(1),
        _ => octet,
    }))
}

/// An octet behind each: the second and the third box rotate what comes out.
fn behind_boxes(octet: u8) -> u64 {
    u64::from_be_bytes(field::ORDER.map(|number| field::rotations(number).1.of(octet)))
}
