//! What a machine is made of: the emulator, built here, and pieces of Debian, unpacked and not installed.
//!
//! Bochs is built from the source that Debian carries, because Debian's own build has the debugger in it
//! (several times slower) and in older suites a version whose CPU models are incomplete. Its archive is
//! checked against the digest below; apt checks the signatures of the rest.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use crate::{
    debian::{self, empty, once},
    proc,
    setup::{self, Need},
    ui::{self, Context, Done, Failure},
};

/// The source of Bochs, as Debian 13 has it.
const SOURCE: &str = "http://deb.debian.org/debian/pool/main/b/bochs/bochs_3.0+dfsg.orig.tar.xz";
const SOURCE_SHA256: &str = "78f6c73d4a6472d5130a87ab9dc306d02c7c71ed8e25b3a8ef642e2a7acd282b";

/// The folder of the built one. The number behind the version counts our changes below.
const BUILT: &str = "bochs-3.0-1";

/// What Bochs is built with: all instructions, all that makes it fast, no screen.
const OPTIONS: &str = "--enable-cpu-level=6 --enable-x86-64 --enable-avx --enable-evex \
    --enable-all-optimizations --enable-long-phy-address --disable-docbook --disable-gameport \
    --with-nogui --without-x";

/// Instructions that Bochs 3.0 gets wrong, by the programmer's manual of the CPU: file, words, better
/// words, how often they stand there.
const MENDED: [(&str, &str, &str, usize); 3] = [
    // VGF2P8AFFINEQB and its inverse are masked octet by octet, not by eight of them.
    (
        "cpu/gf2.cc",
        "avx512_write_regq_masked(i, &dst, len, BX_READ_8BIT_OPMASK(i->opmask()))",
        "avx512_write_regb_masked(i, &dst, len, BX_READ_OPMASK(i->opmask()))",
        2,
    ),
    // VPEXPANDB and VPEXPANDW read memory in one piece; the mask says where it goes.
    (
        "cpu/decoder/ia_opcodes_evex.def",
        "\"vpexpandb\", &BX_CPU_C::LOAD_MASK_VectorB,",
        "\"vpexpandb\", &BX_CPU_C::LOAD_Vector,",
        1,
    ),
    (
        "cpu/decoder/ia_opcodes_evex.def",
        "\"vpexpandw\", &BX_CPU_C::LOAD_MASK_VectorW,",
        "\"vpexpandw\", &BX_CPU_C::LOAD_Vector,",
        1,
    ),
];

/// Debian's name for the newest kernel that is made for virtual machines: small, quick to boot.
const KERNEL: &str = "linux-image-cloud-amd64";

/// The pieces, ready.
pub(super) struct Parts {
    /// The emulator.
    pub(super) bochs: PathBuf,
    /// Its firmware (SeaBIOS).
    pub(super) bios: PathBuf,
    /// The firmware of its graphics card, which it will not start without.
    pub(super) vga_bios: PathBuf,
    /// Linux.
    pub(super) kernel: PathBuf,
    /// What loads it from the disc.
    pub(super) loader: PathBuf,
    /// What the loader loads first.
    pub(super) loader_library: PathBuf,
    /// The guest's shell.
    pub(super) busybox: PathBuf,
}

impl Parts {
    /// Brings what is not here yet.
    pub(super) fn bring(folder: &Path) -> Done<Self> {
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            return Err(Failure::new(
                "the tests are built here and run inside, so this must be Linux on x86-64",
            ));
        }
        let bochs = folder.join(BUILT);
        let unpacked = folder.join("debian");
        if !(bochs.is_dir() && unpacked.is_dir()) {
            debian::is_here("the kernel, the loader and the source of the emulator")?;
        }
        setup::ensure(&[Need::Xorriso])?;
        if !bochs.is_dir() {
            setup::ensure(&[Need::Cxx, Need::Make])?;
            build_bochs(folder, &bochs)?;
        }
        if !unpacked.is_dir() {
            fetch_debian(&unpacked)?;
        }
        Ok(Self {
            bochs: bochs.join("bochs"),
            bios: bochs.join("bios/bios.bin-1.13.0"),
            vga_bios: bochs.join("bios/vgabios-cirrus.bin-1.13.0"),
            kernel: kernel_in(&unpacked.join("boot"))?,
            loader: unpacked.join("usr/lib/ISOLINUX/isolinux.bin"),
            loader_library: unpacked.join("usr/lib/syslinux/modules/bios/ldlinux.c32"),
            busybox: unpacked.join("bin/busybox"),
        })
    }
}

/// Fetches, mends and builds Bochs, and gives the folder its name when all is done.
fn build_bochs(folder: &Path, built: &Path) -> Done {
    ui::line("building Bochs 3.0, the emulator (once; some minutes)");
    let archive = folder.join("bochs.tar.xz");
    let mut fetch = Command::new("/usr/lib/apt/apt-helper");
    fetch
        .args(["-o", "APT::Sandbox::User=", "download-file", SOURCE])
        .arg(&archive)
        .arg(format!("SHA256:{SOURCE_SHA256}"));
    once(&mut fetch, "emulate fetch Bochs")?;
    let unready = folder.join("bochs.new");
    empty(&unready)?;
    let mut unpack = Command::new("tar");
    unpack
        .args(["--strip-components=1", "-xJf"])
        .arg(&archive)
        .arg("-C")
        .arg(&unready);
    once(&mut unpack, "emulate unpack Bochs")?;
    for (file, wrong, right, times) in MENDED {
        let path = unready.join(file);
        let text = fs::read_to_string(&path).cannot(format_args!("read {}", path.display()))?;
        fs::write(&path, mended(&text, wrong, right, times)?).cannot("mend Bochs")?;
    }
    let mut configure = Command::new("./configure");
    configure
        .args(OPTIONS.split_whitespace())
        .env("CXXFLAGS", "-O2 -w")
        .env("CFLAGS", "-O2 -w")
        .current_dir(&unready);
    once(&mut configure, "emulate configure Bochs")?;
    let jobs = thread::available_parallelism().map_or(1, usize::from);
    let mut make = Command::new("make");
    make.arg(format!("-j{jobs}")).current_dir(&unready);
    once(&mut make, "emulate build Bochs")?;
    fs::rename(&unready, built).cannot("name the built Bochs")
}

/// A text with its wrong words replaced; a text that does not have them is not the one we know.
fn mended(text: &str, wrong: &str, right: &str, times: usize) -> Done<String> {
    let found = text.matches(wrong).count();
    if found == times {
        return Ok(text.replace(wrong, right));
    }
    Err(Failure::new(format!(
        "the source of Bochs has `{wrong}` {found} times instead of {times}; MENDED in \
         xtask/src/emulate/parts.rs wants a new look"
    )))
}

/// Fetches and unpacks what comes as Debian packages.
fn fetch_debian(folder: &Path) -> Done {
    ui::line("fetching a kernel, a boot loader and busybox from Debian (about 30 MB)");
    debian::unpack(folder, "emulate", || {
        let depends = proc::output(Command::new("apt-cache").args(["depends", KERNEL]))?;
        let kernel = depends
            .lines()
            .find_map(|line| line.trim().strip_prefix("Depends: linux-image-"))
            .ok_or_else(|| Failure::new(format!("apt knows no {KERNEL}")))?;
        let mut names: Vec<String> = ["isolinux", "syslinux-common", "busybox-static"]
            .map(str::to_owned)
            .into();
        names.push(format!("linux-image-{kernel}"));
        Ok(names)
    })
}

fn kernel_in(boot: &Path) -> Done<PathBuf> {
    let entries = boot.read_dir().cannot("find the kernel that was fetched")?;
    entries
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        })
        .ok_or_else(|| {
            Failure::new(format!(
                "there is no kernel in {}; remove it",
                boot.display()
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn words_are_replaced_only_where_all_of_them_are_found() {
        assert_eq!(mended("a b a", "a", "c", 2).expect("two of them"), "c b c");
        let failure = mended("a b", "a", "c", 2).expect_err("one of them");
        assert!(failure.to_string().contains("1 times instead of 2"));
    }
}
