//! nettle: AES, Camellia (128 and 256 bits) and Serpent in GCM and CTR, ChaCha20-Poly1305. One frame a
//! call, through its functions for any block cipher, which its own named suites use too.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};

use libloading::Library;
use qloak_cipher::{Mode, Open, Seal, Suite, limits::TAG_OCTETS};

use super::{
    Peer,
    load::{self, symbols},
};
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "nettle";

/// Room for any of its contexts; the largest, GCM's key, has 4 KiB.
#[repr(C, align(64))]
struct Room([u8; 8192]);

impl Room {
    fn new() -> Box<Self> {
        Box::new(Self([0; 8192]))
    }

    fn at(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }
}

type BlockFunction = unsafe extern "C" fn(*const c_void, usize, *mut u8, *const u8);
type SetKey = unsafe extern "C" fn(*mut c_void, *const u8);

symbols!(Functions {
    version_major = "nettle_version_major"() -> c_int;
    version_minor = "nettle_version_minor"() -> c_int;
    serpent_set_key = "nettle_serpent_set_key"(*mut c_void, usize, *const u8);
    ctr = "nettle_ctr_crypt"(*const c_void, BlockFunction, usize, *mut u8, usize, *mut u8, *const u8);
    gcm_set_key = "nettle_gcm_set_key"(*mut c_void, *const c_void, BlockFunction);
    gcm_set_iv = "nettle_gcm_set_iv"(*mut c_void, *const c_void, usize, *const u8);
    gcm_update = "nettle_gcm_update"(*mut c_void, *const c_void, usize, *const u8);
    gcm_encrypt = "nettle_gcm_encrypt"(*mut c_void, *const c_void, *const c_void, BlockFunction, usize, *mut u8, *const u8);
    gcm_decrypt = "nettle_gcm_decrypt"(*mut c_void, *const c_void, *const c_void, BlockFunction, usize, *mut u8, *const u8);
    gcm_digest = "nettle_gcm_digest"(*mut c_void, *const c_void, *const c_void, BlockFunction, usize, *mut u8);
    chacha_set_key = "nettle_chacha_poly1305_set_key"(*mut c_void, *const u8);
    chacha_set_nonce = "nettle_chacha_poly1305_set_nonce"(*mut c_void, *const u8);
    chacha_update = "nettle_chacha_poly1305_update"(*mut c_void, usize, *const u8);
    chacha_encrypt = "nettle_chacha_poly1305_encrypt"(*mut c_void, usize, *mut u8, *const u8);
    chacha_decrypt = "nettle_chacha_poly1305_decrypt"(*mut c_void, usize, *mut u8, *const u8);
    chacha_digest = "nettle_chacha_poly1305_digest"(*mut c_void, usize, *mut u8);
    equal = "nettle_memeql_sec"(*const c_void, *const c_void, usize) -> c_int;
});

pub(super) fn find() -> Result<Box<dyn Peer>, String> {
    let library = load::library(&["libnettle.so.8"])?;
    let functions = Functions::load(library)?;
    Ok(Box::new(Nettle { library, functions }))
}

struct Nettle {
    library: &'static Library,
    functions: Functions,
}

impl Peer for Nettle {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        // SAFETY: these need nothing and give a number.
        let (major, minor) = unsafe {
            (
                (self.functions.version_major)(),
                (self.functions.version_minor)(),
            )
        };
        format!("{major}.{minor}")
    }

    fn manner(&self) -> &'static str {
        "its functions for any block cipher"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let f = self.functions;
        if suite.mode == Mode::Poly1305 {
            let mut context = Room::new();
            // SAFETY: the room is larger than the context, and the key has the 32 octets it reads.
            unsafe { (f.chacha_set_key)(context.at(), key.as_ptr()) };
            return Some(Box::new(Each(Chacha { f, context })));
        }
        if !matches!(suite.mode, Mode::Gcm | Mode::Ctr) {
            return None;
        }
        let (encrypt, cipher) = self.cipher(suite, key)?;
        let mut block = Block {
            f,
            is_ctr: suite.mode == Mode::Ctr,
            encrypt,
            cipher,
            hash_key: Room::new(),
            context: Room::new(),
        };
        // SAFETY: the rooms are larger than the contexts, and the cipher's key is set.
        unsafe { (f.gcm_set_key)(block.hash_key.at(), block.cipher.at(), encrypt) };
        Some(Box::new(Each(block)))
    }
}

impl Nettle {
    fn cipher(&self, suite: &Suite, key: &[u8]) -> Option<(BlockFunction, Box<Room>)> {
        let mut room = Room::new();
        let name = suite.cipher.to_lowercase().replace('-', "");
        if name.starts_with("serpent") {
            // SAFETY: the room is larger than the context, and the key is as long as is said.
            unsafe { (self.functions.serpent_set_key)(room.at(), key.len(), key.as_ptr()) };
            return Some((self.symbol("nettle_serpent_encrypt")?, room));
        }
        // Its camellia192 is camellia256 but for the key's set-up.
        let crypt = match name.as_str() {
            "camellia128" => "nettle_camellia128_crypt".to_owned(),
            "camellia192" | "camellia256" => "nettle_camellia256_crypt".to_owned(),
            _ => format!("nettle_{name}_encrypt"),
        };
        let set_key = if name.starts_with("aes") || name.starts_with("camellia") {
            self.symbol::<SetKey>(&format!("nettle_{name}_set_encrypt_key"))?
        } else {
            return None;
        };
        // SAFETY: the room is larger than the context, and the key has the octets that the name says.
        unsafe { set_key(room.at(), key.as_ptr()) };
        Some((self.symbol(&crypt)?, room))
    }

    fn symbol<T: Copy>(&self, name: &str) -> Option<T> {
        // SAFETY: asked for with the two types above alone, which are those of nettle's headers for
        // every `_encrypt`, `_crypt` and `_set_encrypt_key`; the library stays loaded.
        unsafe { self.library.get::<T>(name.as_bytes()) }
            .ok()
            .map(|symbol| *symbol)
    }
}

/// A block cipher in GCM or CTR.
struct Block {
    f: Functions,
    is_ctr: bool,
    encrypt: BlockFunction,
    cipher: Box<Room>,
    hash_key: Box<Room>,
    context: Box<Room>,
}

impl Block {
    fn ctr(&mut self, nonce: [u8; 12], data: &mut [u8]) {
        let mut block = super::counter_block(nonce);
        let (at, octets) = (data.as_mut_ptr(), data.len());
        let cipher = self.cipher.at();
        // SAFETY: in place is allowed, the octets are as many as is said, and the block has 16.
        unsafe { (self.f.ctr)(cipher, self.encrypt, 16, block.as_mut_ptr(), octets, at, at) };
    }

    fn gcm(&mut self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8], seal: bool) -> [u8; 16] {
        let mut tag = [0; TAG_OCTETS];
        let (context, key) = (self.context.at(), self.hash_key.at());
        let (cipher, encrypt) = (self.cipher.at(), self.encrypt);
        let (at, octets) = (data.as_mut_ptr(), data.len());
        // SAFETY: all contexts are live and set up; all octets are as many as is said; in place is
        // allowed.
        unsafe {
            (self.f.gcm_set_iv)(context, key, nonce.len(), nonce.as_ptr());
            (self.f.gcm_update)(context, key, aad.len(), aad.as_ptr());
            let crypt = if seal {
                self.f.gcm_encrypt
            } else {
                self.f.gcm_decrypt
            };
            crypt(context, key, cipher, encrypt, octets, at, at);
            (self.f.gcm_digest)(context, key, cipher, encrypt, tag.len(), tag.as_mut_ptr());
        }
        tag
    }
}

impl OneByOne for Block {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        if self.is_ctr {
            self.ctr(one.nonce, one.data);
        } else {
            let tag = self.gcm(&one.nonce, one.aad, one.data, true);
            one.tag.copy_from_slice(&tag);
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        if self.is_ctr {
            self.ctr(one.nonce, one.data);
            return true;
        }
        let tag = self.gcm(&one.nonce, one.aad, one.data, false);
        equal(&self.f, &tag, one.tag)
    }
}

struct Chacha {
    f: Functions,
    context: Box<Room>,
}

impl Chacha {
    fn run(&mut self, nonce: &[u8; 12], aad: &[u8], data: &mut [u8], seal: bool) -> [u8; 16] {
        let mut tag = [0; TAG_OCTETS];
        let context = self.context.at();
        let (at, octets) = (data.as_mut_ptr(), data.len());
        // SAFETY: the context is live and set up; the nonce has its 12 octets; the rest is as long
        // as is said; in place is allowed.
        unsafe {
            (self.f.chacha_set_nonce)(context, nonce.as_ptr());
            (self.f.chacha_update)(context, aad.len(), aad.as_ptr());
            let crypt = if seal {
                self.f.chacha_encrypt
            } else {
                self.f.chacha_decrypt
            };
            crypt(context, octets, at, at);
            (self.f.chacha_digest)(context, tag.len(), tag.as_mut_ptr());
        }
        tag
    }
}

impl OneByOne for Chacha {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let tag = self.run(&one.nonce, one.aad, one.data, true);
        one.tag.copy_from_slice(&tag);
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let tag = self.run(&one.nonce, one.aad, one.data, false);
        equal(&self.f, &tag, one.tag)
    }
}

fn equal(f: &Functions, tag: &[u8; 16], other: &[u8]) -> bool {
    // SAFETY: both have 16 octets; a tag of another length is refused before.
    other.len() == tag.len()
        && unsafe { (f.equal)(tag.as_ptr().cast(), other.as_ptr().cast(), tag.len()) } != 0
}
