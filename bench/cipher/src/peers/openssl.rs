//! OpenSSL through EVP: AES in GCM, OCB and CTR, Camellia in CTR, ChaCha20-Poly1305. One frame a
//! call; one context for each direction lives as long as the key, and a frame sets its nonce alone.
#![allow(unsafe_code)]

use std::{
    ffi::{CString, c_char, c_int, c_void},
    ptr::{null, null_mut},
};

use qloak_cipher::{Open, Seal, Suite};

use super::{
    Peer,
    load::{self, symbols},
};
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "OpenSSL";

const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;
const VERSION_TEXT: c_int = 0;

symbols!(Functions {
    version = "OpenSSL_version"(c_int) -> *const c_char;
    cipher_by_name = "EVP_get_cipherbyname"(*const c_char) -> *const c_void;
    context_new = "EVP_CIPHER_CTX_new"() -> *mut c_void;
    context_free = "EVP_CIPHER_CTX_free"(*mut c_void);
    context_ctrl = "EVP_CIPHER_CTX_ctrl"(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
    init = "EVP_CipherInit_ex"(*mut c_void, *const c_void, *const c_void, *const u8, *const u8, c_int) -> c_int;
    update = "EVP_CipherUpdate"(*mut c_void, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    finish = "EVP_CipherFinal_ex"(*mut c_void, *mut u8, *mut c_int) -> c_int;
});

pub(super) fn find() -> Result<Box<dyn Peer>, String> {
    let library = load::library(&["libcrypto.so.4", "libcrypto.so.3"])?;
    Ok(Box::new(OpenSsl(Functions::load(library)?)))
}

struct OpenSsl(Functions);

impl Peer for OpenSsl {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        // SAFETY: any number may be asked for; this one gives the version as a text.
        load::text(unsafe { (self.0.version)(VERSION_TEXT) })
    }

    fn manner(&self) -> &'static str {
        "EVP, one context per key and direction"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let seal = Context::new(self.0, suite, key, true)?;
        let open = Context::new(self.0, suite, key, false)?;
        Some(Box::new(Each(Pair { seal, open })))
    }
}

/// A key in one direction.
struct Context {
    functions: Functions,
    context: *mut c_void,
    encrypt: c_int,
    is_ctr: bool,
}

impl Context {
    fn new(functions: Functions, suite: &Suite, key: &[u8], encrypt: bool) -> Option<Self> {
        let name = CString::new(suite.name.to_uppercase()).ok()?;
        // SAFETY: `name` ends with a zero. A cipher that is not there is a null pointer.
        let cipher = unsafe { (functions.cipher_by_name)(name.as_ptr()) };
        if cipher.is_null() {
            return None;
        }
        // SAFETY: makes a context that is ours until it is freed on drop.
        let context = unsafe { (functions.context_new)() };
        let made = Self {
            functions,
            context,
            encrypt: encrypt.into(),
            is_ctr: suite.name.ends_with("ctr"),
        };
        // SAFETY: context and cipher are live and the key is as long as the suite's; the nonce may be
        // set later.
        let done = unsafe {
            (functions.init)(context, cipher, null(), key.as_ptr(), null(), made.encrypt)
        };
        (done == 1).then_some(made)
    }

    fn start(&mut self, nonce: &[u8; 12], aad: &[u8], tag: Option<&[u8]>) -> bool {
        let block = super::counter_block(*nonce);
        let mut length = 0;
        // SAFETY: the context is live; the nonce has 12 octets, and 16 for CTR, which is what each
        // reads; the tag has 16, which it copies. Cipher and key stay as they were set.
        unsafe {
            let iv = if self.is_ctr {
                block.as_ptr()
            } else {
                nonce.as_ptr()
            };
            let (f, context) = (&self.functions, self.context);
            let mut good = (f.init)(context, null(), null(), null(), iv, self.encrypt) == 1;
            if let Some(tag) = tag {
                let pointer = tag.as_ptr().cast_mut().cast();
                good &= (f.context_ctrl)(context, SET_TAG, tag.len() as c_int, pointer) == 1;
            }
            if !self.is_ctr {
                let octets = aad.len() as c_int;
                good &= (f.update)(context, null_mut(), &raw mut length, aad.as_ptr(), octets) == 1;
            }
            good
        }
    }

    fn work(&mut self, data: &mut [u8]) -> bool {
        let (mut first, mut rest) = (0, 0);
        // SAFETY: in place is allowed; the first call writes at most `data.len()` octets and the
        // second only what the first held back of them.
        unsafe {
            let (f, at) = (&self.functions, data.as_mut_ptr());
            let octets = data.len() as c_int;
            (f.update)(self.context, at, &raw mut first, at, octets) == 1
                && (f.finish)(self.context, at.add(first as usize), &raw mut rest) == 1
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and this is its last use.
        unsafe { (self.functions.context_free)(self.context) };
    }
}

struct Pair {
    seal: Context,
    open: Context,
}

impl OneByOne for Pair {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let context = &mut self.seal;
        let good = context.start(&one.nonce, one.aad, None) && context.work(one.data);
        if good && !context.is_ctr {
            let (pointer, octets) = (one.tag.as_mut_ptr().cast(), one.tag.len() as c_int);
            // SAFETY: the tag has room for the octets that are asked for.
            unsafe { (context.functions.context_ctrl)(context.context, GET_TAG, octets, pointer) };
        }
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let context = &mut self.open;
        let tag = (!context.is_ctr).then_some(one.tag);
        context.start(&one.nonce, one.aad, tag) && context.work(one.data)
    }
}
