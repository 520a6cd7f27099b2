//! User-mode Linux: a whole kernel as one process, for the drivers that the kernel outside may lack.
//!
//! Its disc is the host's own, read only, so every program of the host runs inside. Its interfaces
//! `vec0`, `vec1` ... are joined to interfaces of the namespace that it was started in. Commands go to a
//! shell on its console, and what they print comes back:
//!
//!     to it      a line, which the shell runs
//!     from it    what the line prints, then "@end STATUS"

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

/// How long the guest may be silent. It boots in a second or two; on a machine with much else to do, in
/// ten.
const PATIENCE: Duration = Duration::from_secs(60);

/// Modules in the order in which they need each other.
const MODULES: [&str; 5] = [
    "crypto/gf128mul",
    "crypto/ghash-generic",
    "crypto/ctr",
    "crypto/gcm",
    "drivers/net/macsec",
];

/// A running kernel.
pub(crate) struct Guest {
    kernel: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    version: String,
    _folder: tempfile::TempDir,
}

impl Guest {
    /// Boots; `debian` is the folder with Debian's packages unpacked, `interfaces` those of the host that
    /// become `vec0` and so on.
    pub(crate) fn boot(debian: &Path, interfaces: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let init = folder.path().join("init");
        fs::write(&init, script(debian)).unwrap();
        fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(debian.join("usr/bin/linux.uml"));
        command
            .args("mem=192M root=/dev/root rootfstype=hostfs rootflags=/ ro quiet".split(' '))
            .args(["con=null", "con0=fd:0,fd:1"])
            .arg(format!("init={}", init.display()))
            .arg(format!("uml_dir={}", folder.path().display()));
        for (number, interface) in interfaces.iter().enumerate() {
            command.arg(format!(
                "vec{number}:transport=tap,ifname={interface},depth=128,mtu=9000"
            ));
        }
        let mut kernel = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("user-mode Linux is here: `cargo xtask macsec` brings it");
        let output = kernel.stdout.take().unwrap();
        let (told, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).replace('\r', "");
                if told.send(line).is_err() {
                    return;
                }
            }
        });
        let mut guest = Self {
            input: kernel.stdin.take().unwrap(),
            kernel,
            lines,
            version: String::new(),
            _folder: folder,
        };
        let (version, boot) = guest.until("@ready ");
        assert!(!boot.contains("insmod"), "{boot}");
        guest.version = version;
        guest
    }

    /// The kernel's version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Runs a line of shell, which must succeed; gives what it printed.
    pub(crate) fn sh(&mut self, line: &str) -> String {
        let (status, said) = self.try_sh(line);
        assert_eq!(status, "0", "{line}: {said}");
        said
    }

    /// Runs a line of shell; gives its status and what it printed.
    pub(crate) fn try_sh(&mut self, line: &str) -> (String, String) {
        writeln!(self.input, "{line}").expect("the guest runs");
        self.until("@end ")
    }

    /// What follows a mark, and what came before it.
    fn until(&mut self, mark: &str) -> (String, String) {
        let mut said = String::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => {
                    if let Some((before, after)) = line.split_once(mark) {
                        return (after.to_owned(), said + before);
                    }
                    said += &line;
                    said += "\n";
                }
                Err(RecvTimeoutError::Timeout) => panic!("the guest is silent after: {said}"),
                Err(RecvTimeoutError::Disconnected) => panic!("the guest ended after: {said}"),
            }
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Its processes are ours; asked to, it ends them all itself.
        let _ = writeln!(self.input, "busybox poweroff -f");
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if matches!(self.kernel.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = self.kernel.kill();
        let _ = self.kernel.wait();
    }
}

/// The first program inside.
fn script(debian: &Path) -> String {
    let busybox = debian.join("bin/busybox");
    let busybox = busybox.display();
    let mut text = format!(
        "#!/bin/sh\n\
         export PATH=/usr/sbin:/sbin:/usr/bin:/bin\n\
         busybox() {{ {busybox} \"$@\"; }}\n\
         busybox mount -t proc proc /proc\n\
         busybox mount -t sysfs sys /sys\n\
         busybox mount -t tmpfs run /run\n\
         busybox stty -echo\n"
    );
    for module in MODULES {
        let path = modules(debian).join(module);
        text += &format!("busybox insmod {}.ko\n", path.display());
    }
    text += "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6\n\
             echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6\n\
             ip link set lo up\n\
             echo \"@ready $(busybox uname -r)\"\n\
             while read -r line; do eval \"$line\"; echo \"@end $?\"; done\n\
             busybox poweroff -f\n";
    text
}

/// Where the package keeps its modules: under the only version that it has.
fn modules(debian: &Path) -> PathBuf {
    let all = debian.join("usr/lib/uml/modules");
    let mut versions = all.read_dir().expect("the package has modules").flatten();
    versions.next().expect("a version").path().join("kernel")
}
