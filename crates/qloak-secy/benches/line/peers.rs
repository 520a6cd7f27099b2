//! What our figures stand beside: a plain library that seals the same octets, one frame a call, without
//! SecTAG, PN, replay window or batch. AWS-LC where it has the suite, else RustCrypto.

use aes_gcm::{
    AesGcm, KeyInit,
    aead::{AeadInOut, consts::U12},
};
use aws_lc_rs::aead as aws;
use ocb3::Ocb3;
use qloak_cipher::{Mode, Suite};

/// Seals data in place under a nonce and with AAD; gives the tag.
pub(crate) type Seal = Box<dyn Fn([u8; 12], &[u8], &mut [u8]) -> [u8; 16]>;

const KEY: [u8; 32] = [0x51; 32];

/// Which library stands beside a suite.
pub(crate) fn name(suite: &Suite) -> Option<&'static str> {
    match suite.mode {
        Mode::Gcm if suite.cipher.starts_with("AES") => Some("AWS-LC"),
        Mode::Poly1305 => Some("AWS-LC"),
        Mode::Gcm | Mode::Ocb3 => Some("RustCrypto"),
        _ => None,
    }
}

/// The peer of a suite; the hazmat suites have none.
pub(crate) fn of(suite: &Suite) -> Option<Seal> {
    type Gcm<C> = AesGcm<C, U12>;
    let seal = match suite.name {
        "aes-128-gcm" => aws_lc(&aws::AES_128_GCM),
        "aes-192-gcm" => aws_lc(&aws::AES_192_GCM),
        "aes-256-gcm" => aws_lc(&aws::AES_256_GCM),
        "chacha20-poly1305" => aws_lc(&aws::CHACHA20_POLY1305),
        "camellia-128-gcm" => rust_crypto::<Gcm<camellia::Camellia128>>(),
        "camellia-192-gcm" => rust_crypto::<Gcm<camellia::Camellia192>>(),
        "camellia-256-gcm" => rust_crypto::<Gcm<camellia::Camellia256>>(),
        "serpent-128-gcm" | "serpent-192-gcm" | "serpent-256-gcm" => {
            rust_crypto::<Gcm<serpent::Serpent>>()
        }
        "aes-128-ocb" => rust_crypto::<Ocb3<aes::Aes128>>(),
        "aes-192-ocb" => rust_crypto::<Ocb3<aes::Aes192>>(),
        "aes-256-ocb" => rust_crypto::<Ocb3<aes::Aes256>>(),
        "camellia-128-ocb" => rust_crypto::<Ocb3<camellia::Camellia128>>(),
        "camellia-192-ocb" => rust_crypto::<Ocb3<camellia::Camellia192>>(),
        "camellia-256-ocb" => rust_crypto::<Ocb3<camellia::Camellia256>>(),
        "serpent-128-ocb" | "serpent-192-ocb" | "serpent-256-ocb" => {
            rust_crypto::<Ocb3<serpent::Serpent>>()
        }
        _ => return None,
    };
    Some(seal)
}

fn aws_lc(algorithm: &'static aws::Algorithm) -> Seal {
    let key = aws::UnboundKey::new(algorithm, &KEY[..algorithm.key_len()]).expect("a key");
    let key = aws::LessSafeKey::new(key);
    Box::new(move |nonce, aad, data| {
        let nonce = aws::Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, aws::Aad::from(aad), data);
        let mut octets = [0; 16];
        octets.copy_from_slice(tag.expect("a frame is not too long").as_ref());
        octets
    })
}

fn rust_crypto<A: AeadInOut + KeyInit + 'static>() -> Seal {
    let key = A::new_from_slice(&KEY[..A::key_size()]).expect("a key");
    Box::new(move |nonce, aad, data| {
        let nonce = nonce.as_slice().try_into().expect("a 96-bit nonce");
        let tag = key.encrypt_inout_detached(nonce, aad, data.into());
        let mut octets = [0; 16];
        octets.copy_from_slice(&tag.expect("a frame is not too long"));
        octets
    })
}
