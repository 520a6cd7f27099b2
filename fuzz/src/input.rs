//! What the fuzzer's octets mean: a suite, keys, the shape of a batch, and where a bit is changed.

use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use qloak_cipher::suite::SUITES;
use qloak_cipher::{Mode, Suite};

use crate::Sealed;

/// More than a kernel sees at once, so that batches are cut.
const FRAMES_MAX: usize = 80;
/// Octets of data of a whole batch: enough for every path of the kernels, little enough for many
/// batches a second.
const BATCH_OCTETS_MAX: usize = 20_000;
const AAD_OCTETS_MAX: usize = 300;

/// A batch to be.
#[derive(Debug)]
pub struct Input {
    /// Any of the table.
    pub suite: &'static Suite,
    /// Tags of 64 bits; only ever true in GCM.
    pub short_tags: bool,
    /// One to three, of the suite's length, all different.
    pub keys: Vec<Vec<u8>>,
    /// None to [`FRAMES_MAX`].
    pub frames: Vec<Frame>,
    /// Chooses the bit to change.
    forgery: u32,
}

/// One frame to be.
#[derive(Debug)]
pub struct Frame {
    /// Which key.
    pub key: usize,
    /// Often that of its neighbour plus one, seldom one that was there before.
    pub nonce: [u8; 12],
    /// What is authenticated.
    pub aad: Vec<u8>,
    /// Plaintext.
    pub data: Vec<u8>,
}

impl<'a> Arbitrary<'a> for Input {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let suite = &SUITES[u.choose_index(SUITES.len())?];
        let short_tags = suite.mode == Mode::Gcm && u.ratio(1, 4)?;
        let mut keys = Vec::new();
        for number in 0..u.int_in_range(1..=3)? {
            let mut key = octets(u, suite.key_octets)?;
            // Different even where the fuzzer's octets ran out.
            key[0] = key[0] & 0xfc | number;
            keys.push(key);
        }
        let (forgery, mut nonce) = (u.arbitrary()?, u.arbitrary::<u64>()?);
        let (mut frames, mut left) = (Vec::new(), BATCH_OCTETS_MAX);
        for _ in 0..u.int_in_range(0..=FRAMES_MAX)? {
            let key = u.choose_index(keys.len())?;
            nonce = match u.arbitrary::<u8>()? {
                0 => nonce,
                1..16 => u.arbitrary()?,
                step => nonce.wrapping_add(step.into()),
            };
            // Short frames oftener than long ones.
            let most = [64, 600, 2100, 9000][u.choose_index(4)?].min(left);
            let data = u.int_in_range(0..=most)?;
            let aad = u.int_in_range(0..=AAD_OCTETS_MAX)?;
            left -= data;
            let mut whole = [0x5a; 12];
            whole[4..].copy_from_slice(&nonce.to_be_bytes());
            frames.push(Frame {
                key,
                nonce: whole,
                aad: octets(u, aad)?,
                data: octets(u, data)?,
            });
        }
        Ok(Self {
            suite,
            short_tags,
            keys,
            frames,
            forgery,
        })
    }
}

impl Input {
    /// The first frame that has key and nonce of an earlier one, behind that one.
    pub fn nonce_twice(&self) -> Option<(usize, usize)> {
        self.frames.iter().enumerate().find_map(|(second, late)| {
            let before = &self.frames[..second];
            let same = |early: &Frame| (early.key, early.nonce) == (late.key, late.nonce);
            Some((before.iter().position(same)?, second))
        })
    }

    /// Changes one bit of one frame's ciphertext or tag. None where nothing is authenticated.
    pub fn forge(&self, sealed: &mut [Sealed]) -> Option<usize> {
        if !self.suite.authenticates() || sealed.is_empty() {
            return None;
        }
        let which = self.forgery as usize;
        let frame = which % sealed.len();
        let (data, tag) = &mut sealed[frame];
        let bit = (which >> 8) % (8 * (data.len() + tag.len()));
        let octet = data.iter_mut().chain(tag).nth(bit / 8)?;
        *octet ^= 1 << (bit % 8);
        Some(frame)
    }
}

/// So many octets: a few of the fuzzer's, each place different, since a kilobyte of its own for every
/// frame would leave it nothing to choose shapes with.
fn octets(u: &mut Unstructured<'_>, count: usize) -> Result<Vec<u8>> {
    let seed: u32 = u.arbitrary()?;
    let mut state = seed;
    let octet = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    Ok((0..count).map(octet).collect())
}
