//! RustCrypto's ciphers and modes over one frame.

use aes::cipher::{Array, InnerIvInit, KeyInit, StreamCipher, consts::U16};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{AeadInOut, consts::U12};
use camellia::{Camellia128, Camellia192, Camellia256};
use ctr::{Ctr32BE, CtrCore};
use ocb3::Ocb3;
use qloak_cipher::Mode;
use serpent::Serpent;

use crate::Sealed;
use crate::input::{Frame, Input};

/// Data and tag as RustCrypto has them. None for a suite that it has not, or that is RustCrypto's own
/// at the level `soft`.
pub fn seal(input: &Input, frame: &Frame) -> Option<Sealed> {
    let key = &input.keys[frame.key][..];
    macro_rules! with {
        ($cipher:ty) => {
            match input.suite.mode {
                Mode::Gcm => aead(
                    input,
                    frame,
                    AesGcm::<$cipher, U12>::from(cipher::<$cipher>(key)),
                ),
                Mode::Ocb3 => aead(
                    input,
                    frame,
                    Ocb3::<$cipher, U12, U16>::from(cipher::<$cipher>(key)),
                ),
                Mode::Ctr => {
                    let mut block = [0; 16];
                    block[..12].copy_from_slice(&frame.nonce);
                    block[15] = 1;
                    let mut data = frame.data.clone();
                    let core = CtrCore::inner_iv_init(cipher::<$cipher>(key), &Array(block));
                    Ctr32BE::<$cipher>::from_core(core).apply_keystream(&mut data);
                    (data, Vec::new())
                }
                _ => return None,
            }
        };
    }
    Some(match input.suite.cipher {
        "AES-128" => with!(Aes128),
        "AES-192" => with!(Aes192),
        "AES-256" => with!(Aes256),
        "Camellia-128" => with!(Camellia128),
        "Camellia-192" => with!(Camellia192),
        "Camellia-256" => with!(Camellia256),
        cipher if cipher.starts_with("Serpent") => with!(Serpent),
        _ => return None,
    })
}

fn cipher<C: KeyInit>(key: &[u8]) -> C {
    C::new_from_slice(key).expect("a key of this length")
}

fn aead(
    input: &Input,
    frame: &Frame,
    mode: impl AeadInOut<NonceSize = U12, TagSize = U16>,
) -> Sealed {
    let mut data = frame.data.clone();
    let tag = mode
        .encrypt_inout_detached(&Array(frame.nonce), &frame.aad, data.as_mut_slice().into())
        .expect("a length that it takes");
    let octets = if input.short_tags { 8 } else { 16 };
    (data, tag[..octets].to_vec())
}
