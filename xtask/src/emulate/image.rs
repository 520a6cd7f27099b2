//! The disc that the machine boots: a loader, the kernel, and the guest as the kernel's first file system.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::{guest::Guest, parts::Parts};
use crate::{
    proc,
    ui::{Context, Done},
};

/// The loader's configuration. The kernel speaks only when it dies, mends no flaws of a CPU that is
/// none, and takes its randomness from the CPU's instruction.
const LOADER: &str = "\
PROMPT 0
DEFAULT guest
LABEL guest
 KERNEL vmlinuz
 INITRD guest
 APPEND console=ttyS0,115200 quiet loglevel=1 nosmp nokaslr mitigations=off random.trust_cpu=on lpj=1000000
";

/// Makes the disc in `folder` and says where it lies.
pub(super) fn make(folder: &Path, parts: &Parts, guest: &Guest<'_>) -> Done<PathBuf> {
    let tree = folder.join("disc");
    fs::create_dir_all(&tree).cannot("make the disc's folder")?;
    for (from, name) in [
        (&parts.kernel, "vmlinuz"),
        (&parts.loader, "isolinux.bin"),
        (&parts.loader_library, "ldlinux.c32"),
    ] {
        fs::copy(from, tree.join(name)).cannot(format_args!("copy {}", from.display()))?;
    }
    fs::write(tree.join("isolinux.cfg"), LOADER).cannot("write the loader's configuration")?;
    fs::write(tree.join("guest"), guest.archive(&parts.busybox)?).cannot("write the guest")?;
    let disc = folder.join("disc.iso");
    let mut xorriso = Command::new("xorriso");
    xorriso
        .args("-as mkisofs -quiet -no-emul-boot -boot-load-size 4 -boot-info-table".split(' '))
        .args("-b isolinux.bin -c boot.cat -o".split(' '))
        .arg(&disc)
        .arg(&tree);
    proc::output(&mut xorriso)?;
    fs::remove_dir_all(&tree).cannot("remove the disc's folder")?;
    Ok(disc)
}
