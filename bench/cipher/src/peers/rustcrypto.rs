//! RustCrypto: every suite of ours, in portable Rust but for AES. One frame a call.

use aes_gcm::{
    AesGcm, KeyInit,
    aead::{AeadInOut, consts::U12},
};
use chacha20poly1305::ChaCha20Poly1305;
use ctr::{
    Ctr32BE, CtrCore,
    cipher::{
        BlockCipherDecrypt, BlockCipherEncrypt, BlockSizeUser, InnerIvInit, StreamCipher,
        consts::U16,
    },
    flavors,
};
use ocb3::Ocb3;
use qloak_cipher::{Mode, Open, Seal, Suite};

use super::Peer;
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "RustCrypto";

pub(super) struct RustCrypto;

impl Peer for RustCrypto {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        let crates = ["aes", "aes-gcm", "ocb3", "ctr", "camellia", "serpent"];
        let versions = crates.map(|name| format!("{name} {}", super::locked_version(name)));
        versions.join(", ")
    }

    fn manner(&self) -> &'static str {
        "detached, in place"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        match suite.cipher {
            "AES-128" => of::<aes::Aes128>(suite.mode, key),
            "AES-192" => of::<aes::Aes192>(suite.mode, key),
            "AES-256" => of::<aes::Aes256>(suite.mode, key),
            "Camellia-128" => of::<camellia::Camellia128>(suite.mode, key),
            "Camellia-192" => of::<camellia::Camellia192>(suite.mode, key),
            "Camellia-256" => of::<camellia::Camellia256>(suite.mode, key),
            cipher if cipher.starts_with("Serpent") => of::<serpent::Serpent>(suite.mode, key),
            "ChaCha20" => Some(Box::new(Each(Aead(
                ChaCha20Poly1305::new_from_slice(key).ok()?,
            )))),
            _ => None,
        }
    }
}

fn of<C>(mode: Mode, key: &[u8]) -> Option<Box<dyn Party>>
where
    C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + 'static,
{
    let cipher = C::new_from_slice(key).ok()?;
    match mode {
        Mode::Gcm => Some(Box::new(Each(Aead(AesGcm::<C, U12>::from(cipher))))),
        Mode::Ocb3 => Some(Box::new(Each(Aead(Ocb3::<C>::from(cipher))))),
        Mode::Ctr => Some(Box::new(Each(Ctr(cipher)))),
        _ => None,
    }
}

struct Aead<A>(A);

impl<A: AeadInOut> OneByOne for Aead<A> {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let Ok(nonce) = one.nonce.as_slice().try_into() else {
            return;
        };
        let data = (&mut *one.data).into();
        if let Ok(tag) = self.0.encrypt_inout_detached(nonce, one.aad, data) {
            one.tag.copy_from_slice(&tag);
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let (Ok(nonce), Ok(tag)) = (one.nonce.as_slice().try_into(), one.tag.try_into()) else {
            return false;
        };
        let data = (&mut *one.data).into();
        let opened = self.0.decrypt_inout_detached(nonce, one.aad, data, tag);
        opened.is_ok()
    }
}

struct Ctr<C>(C);

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> Ctr<C> {
    fn apply(&self, nonce: [u8; 12], data: &mut [u8]) {
        let start = super::counter_block(nonce);
        let core = CtrCore::<&C, flavors::Ctr32BE>::inner_iv_init(&self.0, &start.into());
        Ctr32BE::from_core(core).apply_keystream(data);
    }
}

impl<C: BlockCipherEncrypt + BlockSizeUser<BlockSize = U16>> OneByOne for Ctr<C> {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        self.apply(one.nonce, one.data);
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        self.apply(one.nonce, one.data);
        true
    }
}
