//! libgcrypt: AES, Camellia and Serpent in GCM, OCB and CTR, ChaCha20-Poly1305. One frame a call; one
//! handle lives as long as the key, and setting a nonce begins a frame.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_int, c_uint, c_void},
    ptr::{null, null_mut},
};

use qloak_cipher::{Mode, Open, Seal, Suite};

use super::{
    Peer,
    load::{self, symbols},
};
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "libgcrypt";

const DISABLE_SECURE_MEMORY: c_int = 37;
const INITIALIZATION_FINISHED: c_int = 38;
const FINALIZE: c_int = 5;

symbols!(Functions {
    check_version = "gcry_check_version"(*const c_char) -> *const c_char;
    control = "gcry_control"(c_int, c_int) -> c_uint;
    open = "gcry_cipher_open"(*mut *mut c_void, c_int, c_int, c_uint) -> c_uint;
    close = "gcry_cipher_close"(*mut c_void);
    ctl = "gcry_cipher_ctl"(*mut c_void, c_int, *mut c_void, usize) -> c_uint;
    set_key = "gcry_cipher_setkey"(*mut c_void, *const u8, usize) -> c_uint;
    set_iv = "gcry_cipher_setiv"(*mut c_void, *const u8, usize) -> c_uint;
    set_counter = "gcry_cipher_setctr"(*mut c_void, *const u8, usize) -> c_uint;
    authenticate = "gcry_cipher_authenticate"(*mut c_void, *const u8, usize) -> c_uint;
    encrypt = "gcry_cipher_encrypt"(*mut c_void, *mut u8, usize, *const u8, usize) -> c_uint;
    decrypt = "gcry_cipher_decrypt"(*mut c_void, *mut u8, usize, *const u8, usize) -> c_uint;
    get_tag = "gcry_cipher_gettag"(*mut c_void, *mut u8, usize) -> c_uint;
    check_tag = "gcry_cipher_checktag"(*mut c_void, *const u8, usize) -> c_uint;
});

pub(super) fn find() -> Result<Box<dyn Peer>, String> {
    let functions = Functions::load(load::library(&["libgcrypt.so.20"])?)?;
    // SAFETY: the order that its manual asks for: the version first, then the settings. It takes a
    // variable list of arguments there, and on our machines a fixed one is passed in the same way.
    let version = unsafe {
        let version = load::text((functions.check_version)(null()));
        (functions.control)(DISABLE_SECURE_MEMORY, 0);
        (functions.control)(INITIALIZATION_FINISHED, 0);
        version
    };
    Ok(Box::new(Gcrypt { functions, version }))
}

struct Gcrypt {
    functions: Functions,
    version: String,
}

impl Peer for Gcrypt {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn manner(&self) -> &'static str {
        "one handle per key"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let algorithm = match suite.cipher {
            "AES-128" => 7,
            "AES-192" => 8,
            "AES-256" => 9,
            "Serpent-128" => 304,
            "Serpent-192" => 305,
            "Serpent-256" => 306,
            "Camellia-128" => 310,
            "Camellia-192" => 311,
            "Camellia-256" => 312,
            "ChaCha20" => 316,
            _ => return None,
        };
        let mode = match suite.mode {
            Mode::Ctr => 6,
            Mode::Gcm => 9,
            Mode::Poly1305 => 10,
            Mode::Ocb3 => 11,
            _ => return None,
        };
        let mut handle = null_mut();
        // SAFETY: writes a handle through the pointer, or an error and no handle.
        if unsafe { (self.functions.open)(&raw mut handle, algorithm, mode, 0) } != 0 {
            return None;
        }
        let handle = Handle {
            functions: self.functions,
            handle,
            mode: suite.mode,
        };
        // SAFETY: the handle is live, and the key is as long as is said.
        let set = unsafe { (self.functions.set_key)(handle.handle, key.as_ptr(), key.len()) };
        (set == 0).then(|| Box::new(Each(handle)) as Box<dyn Party>)
    }
}

struct Handle {
    functions: Functions,
    handle: *mut c_void,
    mode: Mode,
}

impl Handle {
    fn start(&mut self, nonce: [u8; 12], aad: &[u8]) -> bool {
        let (f, handle) = (&self.functions, self.handle);
        // SAFETY: the handle is live, and all octets are as many as is said. OCB must hear before
        // its only part of data that it is the last.
        unsafe {
            if self.mode == Mode::Ctr {
                let block = super::counter_block(nonce);
                return (f.set_counter)(handle, block.as_ptr(), block.len()) == 0;
            }
            (f.set_iv)(handle, nonce.as_ptr(), nonce.len()) == 0
                && (f.authenticate)(handle, aad.as_ptr(), aad.len()) == 0
                && (self.mode != Mode::Ocb3 || (f.ctl)(handle, FINALIZE, null_mut(), 0) == 0)
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and this is its last use.
        unsafe { (self.functions.close)(self.handle) };
    }
}

impl OneByOne for Handle {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        if !self.start(one.nonce, one.aad) {
            return;
        }
        let (f, handle) = (&self.functions, self.handle);
        // SAFETY: the handle is live; without a second buffer it works in place; the tag has room for
        // as many octets as is said.
        unsafe {
            (f.encrypt)(handle, one.data.as_mut_ptr(), one.data.len(), null(), 0);
            if self.mode != Mode::Ctr {
                (f.get_tag)(handle, one.tag.as_mut_ptr(), one.tag.len());
            }
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        if !self.start(one.nonce, one.aad) {
            return false;
        }
        let (f, handle) = (&self.functions, self.handle);
        // SAFETY: as in sealing.
        unsafe {
            (f.decrypt)(handle, one.data.as_mut_ptr(), one.data.len(), null(), 0) == 0
                && (self.mode == Mode::Ctr
                    || (f.check_tag)(handle, one.tag.as_ptr(), one.tag.len()) == 0)
        }
    }
}
