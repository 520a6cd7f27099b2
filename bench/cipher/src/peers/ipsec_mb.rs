//! intel-ipsec-mb: AES in GCM by its direct functions, AES in CTR as a whole batch of jobs in one call,
//! ChaCha20-Poly1305 by its direct functions. Keys are expanded before.
//!
//! Its functions lie in the manager's struct, at places that belong to one version of the library;
//! another version is not touched.
#![allow(unsafe_code)]

use std::{
    ffi::{c_char, c_int, c_void},
    ptr::{null, null_mut},
};

use qloak_cipher::{Mode, Open, Seal, Suite, limits::TAG_OCTETS};

use super::{
    Peer,
    load::{self, symbols},
};
use crate::party::{Each, OneByOne, Party};

pub(super) const NAME: &str = "ipsec-mb";

/// The version whose structs are drawn below.
const KNOWN_VERSION: &str = "1.3.";

/// Where the functions begin in the manager, in words of 8 octets, and which is which.
const FUNCTIONS: usize = 8;
const EXPAND_KEY: usize = FUNCTIONS + 6;
const GCM_ENCRYPT: usize = FUNCTIONS + 24;
const GCM_DECRYPT: usize = FUNCTIONS + 27;
const GCM_PREPARE: usize = FUNCTIONS + 48;
const CHACHA_INIT: usize = FUNCTIONS + 107;
const CHACHA_ENCRYPT: usize = FUNCTIONS + 108;
const CHACHA_DECRYPT: usize = FUNCTIONS + 109;
const CHACHA_FINISH: usize = FUNCTIONS + 110;
const SUBMIT_CIPHERS: usize = FUNCTIONS + 116;

const CIPHER_CTR: c_int = 2;
const HASH_NONE: c_int = 8;
const ENCRYPT: c_int = 1;
const CIPHER_THEN_HASH: c_int = 1;

/// Jobs that one call may take.
const JOBS_MAX: usize = 128;

type ExpandKey = unsafe extern "C" fn(*const u8, *mut c_void, *mut c_void);
type PrepareKey = unsafe extern "C" fn(*const u8, *mut c_void);
type Gcm = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
);
type ChachaInit = unsafe extern "C" fn(*const u8, *mut c_void, *const u8, *const u8, u64) -> c_int;
type ChachaUpdate = unsafe extern "C" fn(*const u8, *mut c_void, *mut u8, *const u8, u64) -> c_int;
type ChachaFinish = unsafe extern "C" fn(*mut c_void, *mut u8, u64) -> c_int;
type Submit = unsafe extern "C" fn(*mut c_void, *mut Job, u32, c_int, c_int, c_int) -> u32;

symbols!(Functions {
    version = "imb_get_version_str"() -> *const c_char;
    alloc = "alloc_mb_mgr"(u64) -> *mut c_void;
    init = "init_mb_mgr_auto"(*mut c_void, *mut c_int);
});

/// Room for any of its contexts: GCM's key has 1008 octets and wants to lie on a cache line.
#[repr(C, align(64))]
struct Room([u8; 1024]);

impl Room {
    fn new() -> Box<Self> {
        Box::new(Self([0; 1024]))
    }

    fn at(&mut self) -> *mut c_void {
        (&raw mut self.0).cast()
    }
}

/// A job, as version 1.3 lays it out.
#[repr(C)]
#[derive(Clone, Copy)]
struct Job {
    encrypt_keys: *const c_void,
    decrypt_keys: *const c_void,
    key_octets: u64,
    source: *const u8,
    destination: *mut u8,
    cipher_offset: u64,
    cipher_octets: u64,
    hash_offset: u64,
    hash_octets: u64,
    iv: *const u8,
    iv_octets: u64,
    tag: *mut u8,
    tag_octets: u64,
    of_the_hash: [u64; 3],
    status: c_int,
    cipher: c_int,
    direction: c_int,
    hash: c_int,
    order: c_int,
    user: [*mut c_void; 2],
    functions: [*const c_void; 2],
    parts: c_int,
    of_the_cipher: u64,
}

const _: () = assert!(size_of::<Job>() == 200);

pub(super) fn find() -> Result<Box<dyn Peer>, String> {
    let functions = Functions::load(load::library(&["libIPSec_MB.so.1"])?)?;
    // SAFETY: needs nothing, and gives a text that the library keeps.
    let version = load::text(unsafe { (functions.version)() });
    if !version.starts_with(KNOWN_VERSION) {
        return Err(format!(
            "version {version} lies otherwise in memory than 1.3"
        ));
    }
    // SAFETY: makes a manager and sets it up for this CPU. It lives as long as the program.
    let manager = unsafe {
        let manager = (functions.alloc)(0);
        if !manager.is_null() {
            (functions.init)(manager, null_mut());
        }
        manager
    };
    if manager.is_null() {
        return Err("it makes no manager".into());
    }
    Ok(Box::new(IpsecMb { version, manager }))
}

struct IpsecMb {
    version: String,
    manager: *mut c_void,
}

impl IpsecMb {
    /// A function of the manager; the three key lengths lie side by side.
    ///
    /// # Safety
    /// `T` is the type of the function at that place.
    unsafe fn function<T: Copy>(&self, place: usize) -> Option<T> {
        const { assert!(size_of::<T>() == size_of::<usize>()) };
        // SAFETY: the manager of the known version is longer than the last place, and each place
        // holds a function; the caller names its type.
        unsafe {
            let at = self.manager.cast::<usize>().add(place);
            (at.read() != 0).then(|| at.cast::<T>().read())
        }
    }
}

impl Peer for IpsecMb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn manner(&self) -> &'static str {
        "direct functions for AEADs, one call per batch for CTR"
    }

    fn party(&self, suite: &Suite, key: &[u8]) -> Option<Box<dyn Party>> {
        let length = match suite.cipher {
            "AES-128" => 0,
            "AES-192" => 1,
            "AES-256" => 2,
            "ChaCha20" => 3,
            _ => return None,
        };
        let mut room = Room::new();
        // SAFETY: each place has the type that is asked for here; rooms are larger than contexts, and
        // the key has the octets that the function of its length reads.
        unsafe {
            match suite.mode {
                Mode::Gcm => {
                    let prepare: PrepareKey = self.function(GCM_PREPARE + length)?;
                    prepare(key.as_ptr(), room.at());
                    Some(Box::new(Each(GcmKey {
                        key: room,
                        context: Room::new(),
                        encrypt: self.function(GCM_ENCRYPT + length)?,
                        decrypt: self.function(GCM_DECRYPT + length)?,
                    })))
                }
                Mode::Ctr => {
                    let mut decrypt = Room::new();
                    let expand: ExpandKey = self.function(EXPAND_KEY + length)?;
                    expand(key.as_ptr(), room.at(), decrypt.at());
                    Some(Box::new(CtrKey {
                        manager: self.manager,
                        key: room,
                        key_octets: key.len(),
                        submit: self.function(SUBMIT_CIPHERS)?,
                        jobs: Vec::with_capacity(JOBS_MAX),
                    }))
                }
                Mode::Poly1305 => Some(Box::new(Each(ChachaKey {
                    key: key.try_into().ok()?,
                    context: room,
                    init: self.function(CHACHA_INIT)?,
                    encrypt: self.function(CHACHA_ENCRYPT)?,
                    decrypt: self.function(CHACHA_DECRYPT)?,
                    finish: self.function(CHACHA_FINISH)?,
                }))),
                _ => None,
            }
        }
    }
}

struct GcmKey {
    key: Box<Room>,
    context: Box<Room>,
    encrypt: Gcm,
    decrypt: Gcm,
}

impl GcmKey {
    fn run(&mut self, way: Gcm, nonce: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; TAG_OCTETS];
        let (at, octets) = (data.as_mut_ptr(), data.len() as u64);
        // SAFETY: key and context are live and set up; all octets are as many as is said; in place is
        // allowed.
        unsafe {
            way(
                self.key.at(),
                self.context.at(),
                at,
                at,
                octets,
                nonce.as_ptr(),
                aad.as_ptr(),
                aad.len() as u64,
                tag.as_mut_ptr(),
                tag.len() as u64,
            );
        }
        tag
    }
}

impl OneByOne for GcmKey {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let tag = self.run(self.encrypt, &one.nonce, one.aad, one.data);
        one.tag.copy_from_slice(&tag);
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let tag = self.run(self.decrypt, &one.nonce, one.aad, one.data);
        same(&tag, one.tag)
    }
}

struct ChachaKey {
    key: [u8; 32],
    context: Box<Room>,
    init: ChachaInit,
    encrypt: ChachaUpdate,
    decrypt: ChachaUpdate,
    finish: ChachaFinish,
}

impl ChachaKey {
    fn run(
        &mut self,
        way: ChachaUpdate,
        nonce: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
    ) -> [u8; 16] {
        let mut tag = [0; TAG_OCTETS];
        let (key, context) = (self.key.as_ptr(), self.context.at());
        let (at, octets) = (data.as_mut_ptr(), data.len() as u64);
        // SAFETY: the context is live; key and nonce have 32 and 12 octets, the rest as many as is
        // said; in place is allowed.
        unsafe {
            (self.init)(key, context, nonce.as_ptr(), aad.as_ptr(), aad.len() as u64);
            way(key, context, at, at, octets);
            (self.finish)(context, tag.as_mut_ptr(), tag.len() as u64);
        }
        tag
    }
}

impl OneByOne for ChachaKey {
    fn seal_one(&mut self, one: &mut Seal<'_>) {
        let tag = self.run(self.encrypt, &one.nonce, one.aad, one.data);
        one.tag.copy_from_slice(&tag);
    }

    fn open_one(&mut self, one: &mut Open<'_>) -> bool {
        let tag = self.run(self.decrypt, &one.nonce, one.aad, one.data);
        same(&tag, one.tag)
    }
}

struct CtrKey {
    manager: *mut c_void,
    key: Box<Room>,
    key_octets: usize,
    submit: Submit,
    /// Kept, so that a batch allocates nothing; its pointers are read in `run` alone.
    jobs: Vec<Job>,
}

impl CtrKey {
    fn run<'a>(&mut self, frames: impl Iterator<Item = (&'a [u8; 12], &'a mut [u8])>) -> bool {
        let key: *const c_void = self.key.at();
        let job = |(nonce, data): (&[u8; 12], &mut [u8])| Job {
            encrypt_keys: key,
            decrypt_keys: key,
            key_octets: self.key_octets as u64,
            source: data.as_ptr(),
            destination: data.as_mut_ptr(),
            cipher_offset: 0,
            cipher_octets: data.len() as u64,
            hash_offset: 0,
            hash_octets: 0,
            iv: nonce.as_ptr(),
            // With 12 octets it begins to count at 1 by itself.
            iv_octets: 12,
            tag: null_mut(),
            tag_octets: 0,
            of_the_hash: [0; 3],
            status: 0,
            cipher: CIPHER_CTR,
            direction: ENCRYPT,
            hash: HASH_NONE,
            order: CIPHER_THEN_HASH,
            user: [null_mut(); 2],
            functions: [null(); 2],
            parts: 0,
            of_the_cipher: 0,
        };
        self.jobs.clear();
        self.jobs.extend(frames.map(job));
        let (cipher, octets) = (CIPHER_CTR, self.key_octets as c_int);
        let mut done = 0;
        for jobs in self.jobs.chunks_mut(JOBS_MAX) {
            let count = jobs.len() as u32;
            // SAFETY: the manager is live, and so is everything that the jobs point to: the frames
            // are borrowed until this function returns, and all jobs are done when the call is.
            done += unsafe {
                (self.submit)(
                    self.manager,
                    jobs.as_mut_ptr(),
                    count,
                    cipher,
                    ENCRYPT,
                    octets,
                )
            };
        }
        done as usize == self.jobs.len()
    }
}

impl Party for CtrKey {
    fn seal(&mut self, batch: &mut [Seal<'_>]) {
        self.run(batch.iter_mut().map(|one| (&one.nonce, &mut *one.data)));
    }

    fn open(&mut self, batch: &mut [Open<'_>]) {
        let done = self.run(batch.iter_mut().map(|one| (&one.nonce, &mut *one.data)));
        for one in batch {
            one.valid = done;
        }
    }
}

/// Equal, in constant time: the library leaves the comparison to its caller.
fn same(tag: &[u8; 16], other: &[u8]) -> bool {
    let pairs = tag.iter().zip(other);
    other.len() == tag.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
