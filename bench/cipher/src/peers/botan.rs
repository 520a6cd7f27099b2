//! Botan through its C interface: AES, Camellia and Serpent in GCM, OCB and CTR, ChaCha20-Poly1305.
//! One frame a call. The interface copies each frame into a buffer of its own and back, which its
//! C++ users need not pay; there is no other way in for us.
#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::null_mut,
};

use qloak_cipher::{Mode, Open, Seal, Suite, limits::TAG_OCTETS};

use super::{
    Peer,
    load::{self, symbols},
};
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "Botan";

const ENCRYPT: u32 = 0;
const DECRYPT: u32 = 1;
const FINAL: u32 = 1;

symbols!(Functions {
    version = "botan_version_string"() -> *const c_char;
    init = "botan_cipher_init"(*mut *mut c_void, *const c_char, u32) -> c_int;
    destroy = "botan_cipher_destroy"(*mut c_void) -> c_int;
    set_key = "botan_cipher_set_key"(*mut c_void, *const u8, usize) -> c_int;
    set_aad = "botan_cipher_set_associated_data"(*mut c_void, *const u8, usize) -> c_int;
    start = "botan_cipher_start"(*mut c_void, *const u8, usize) -> c_int;
    update = "botan_cipher_update"(
        *mut c_void, u32, *mut u8, usize, *mut usize, *const u8, usize, *mut usize,
    ) -> c_int;
});

pub(super) fn find() -> Result<Box<dyn Peer>, String> {
    let library = load::library(&["libbotan-3.so", "libbotan-2.so.19"])?;
    Ok(Box::new(Botan(Functions::load(library)?)))
}

struct Botan(Functions);

impl Peer for Botan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        // SAFETY: needs nothing, and gives a text that the library keeps.
        let text = load::text(unsafe { (self.0.version)() });
        // Behind its name and number it says at length where it was built.
        text.split(" (").next().unwrap_or(&text).to_owned()
    }

    fn manner(&self) -> &'static str {
        "its C interface, which copies each frame"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let cipher = match suite.cipher {
            cipher if cipher.starts_with("Serpent") => "Serpent",
            cipher => cipher,
        };
        let name = match suite.mode {
            Mode::Gcm => format!("{cipher}/GCM(16)"),
            Mode::Ocb3 => format!("{cipher}/OCB(16)"),
            Mode::Ctr => format!("CTR-BE({cipher})"),
            Mode::Poly1305 => "ChaCha20Poly1305".to_owned(),
            _ => return None,
        };
        let name = CString::new(name).ok()?;
        let cipher = |direction| Cipher::new(self.0, &name, direction, key);
        Some(Box::new(Each(Pair {
            is_ctr: suite.mode == Mode::Ctr,
            seal: cipher(ENCRYPT)?,
            open: cipher(DECRYPT)?,
            buffer: Vec::new(),
        })))
    }
}

/// A key in one direction.
struct Cipher {
    functions: Functions,
    cipher: *mut c_void,
}

impl Cipher {
    fn new(functions: Functions, name: &CString, direction: u32, key: &[u8]) -> Option<Self> {
        let mut cipher = null_mut();
        // SAFETY: `name` ends with a zero; a cipher is written through the pointer, or none with an error.
        if unsafe { (functions.init)(&raw mut cipher, name.as_ptr(), direction) } != 0 {
            return None;
        }
        let made = Self { functions, cipher };
        // SAFETY: the cipher is live, and the key is as long as is said.
        let set = unsafe { (functions.set_key)(cipher, key.as_ptr(), key.len()) };
        (set == 0).then_some(made)
    }

    /// One frame from `input` into `output`, which has room for a tag more. How much was written.
    fn work(&mut self, iv: &[u8], aad: &[u8], input: &[u8], output: &mut [u8]) -> Option<usize> {
        let (f, cipher) = (&self.functions, self.cipher);
        let (mut written, mut consumed) = (0, 0);
        // SAFETY: the cipher is live, and all octets are as many as is said.
        let good = unsafe {
            (aad.is_empty() || (f.set_aad)(cipher, aad.as_ptr(), aad.len()) == 0)
                && (f.start)(cipher, iv.as_ptr(), iv.len()) == 0
                && (f.update)(
                    cipher,
                    FINAL,
                    output.as_mut_ptr(),
                    output.len(),
                    &raw mut written,
                    input.as_ptr(),
                    input.len(),
                    &raw mut consumed,
                ) == 0
        };
        good.then_some(written)
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: the cipher is ours, and this is its last use.
        unsafe { (self.functions.destroy)(self.cipher) };
    }
}

struct Pair {
    is_ctr: bool,
    seal: Cipher,
    open: Cipher,
    /// Data and tag side by side, as the interface gives and takes them.
    buffer: Vec<u8>,
}

impl Pair {
    /// Room for this many octets and a tag, grown once for a load.
    fn room(&mut self, octets: usize) {
        if self.buffer.len() < octets + TAG_OCTETS {
            self.buffer.resize(octets + TAG_OCTETS, 0);
        }
    }

    fn ctr(&mut self, nonce: [u8; 12], data: &mut [u8]) -> bool {
        let octets = data.len();
        let output = &mut self.buffer[..octets + TAG_OCTETS];
        let block = super::counter_block(nonce);
        match self.seal.work(&block, &[], data, output) {
            Some(written) if written == octets => {
                data.copy_from_slice(&output[..octets]);
                true
            }
            _ => false,
        }
    }
}

impl OneByOne for Pair {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let octets = one.data.len();
        self.room(octets);
        if self.is_ctr {
            self.ctr(one.nonce, one.data);
            return;
        }
        let output = &mut self.buffer[..octets + TAG_OCTETS];
        if self.seal.work(&one.nonce, one.aad, one.data, output) == Some(output.len()) {
            let (data, tag) = output.split_at(octets);
            one.data.copy_from_slice(data);
            one.tag.copy_from_slice(tag);
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let octets = one.data.len();
        self.room(octets);
        if self.is_ctr {
            return self.ctr(one.nonce, one.data);
        }
        let input = &mut self.buffer[..octets + TAG_OCTETS];
        input[..octets].copy_from_slice(one.data);
        input[octets..].copy_from_slice(one.tag);
        let opened = self.open.work(&one.nonce, one.aad, input, one.data);
        opened == Some(octets)
    }
}
