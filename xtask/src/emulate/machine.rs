//! One run of the emulator: its configuration, its console as it grows, its end.
//!
//! The emulator is stopped when the console says that all is done, so that it need not power off. It has
//! a process group of its own, and nothing else is ever ended.

use std::{
    fs::{self, File},
    io::Read,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use super::{console::Console, cpu::Cpu, parts::Parts};
use crate::{
    limits::FAILURE_LINES_MAX,
    proc,
    ui::{self, Context, Done, Failure},
};

/// A machine to be run once.
pub(super) struct Machine<'a> {
    /// Its CPU.
    pub(super) cpu: Cpu,
    /// The emulator and its firmware.
    pub(super) parts: &'a Parts,
    /// What it boots.
    pub(super) disc: &'a Path,
    /// Where console and logs go.
    pub(super) folder: &'a Path,
    /// How long it may take.
    pub(super) limit: Duration,
    /// Whether the tests' lines are kept from people.
    pub(super) quiet: bool,
}

impl Machine<'_> {
    /// Runs it and gives what its console said, to whatever end it came but a request to stop.
    pub(super) fn run(&self) -> Done<Console> {
        let begin = Instant::now();
        let path = |name: &str| self.folder.join(name);
        fs::write(path("bochsrc"), self.configuration()).cannot("write the configuration")?;
        fs::write(path("console"), "").cannot("write the console")?;
        let mut growing = File::open(path("console")).cannot("read the console")?;
        let words = File::create(path("bochs.out")).cannot("write bochs.out")?;
        let mut bochs = Command::new(&self.parts.bochs)
            .args(["-q", "-f", "bochsrc"])
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stderr(words.try_clone()?)
            .stdout(words)
            .process_group(0)
            .spawn()
            .cannot("start Bochs")?;
        let bar = ui::spinner(&format!("emulated {}", self.cpu.name()));
        let mut console = Console::default();
        let end = loop {
            // Asked before reading: what it wrote before it ended is then read below.
            let ended = bochs.try_wait()?;
            let mut octets = Vec::new();
            growing.read_to_end(&mut octets)?;
            for line in console.take(&String::from_utf8_lossy(&octets)) {
                if !self.quiet {
                    bar.suspend(|| ui::line(&line));
                }
            }
            bar.set_message(console.now().to_owned());
            if console.is_over() {
                break Ok(());
            }
            if ended.is_some() {
                break if octets.is_empty() && console.now() == "booting" {
                    Err(self.own_end())
                } else {
                    Ok(())
                };
            }
            if proc::interrupted() {
                break Err(Failure::new("stopped on request"));
            }
            if begin.elapsed() > self.limit {
                bar.suspend(|| ui::note(format_args!("{} are over", ui::seconds(self.limit))));
                break Ok(());
            }
            thread::sleep(Duration::from_millis(100));
        };
        bar.finish_and_clear();
        proc::end(&mut bochs, Duration::from_secs(1));
        end.map(|()| console)
    }

    fn own_end(&self) -> Failure {
        Failure::new(format!(
            "Bochs ended before its machine had booted:\n{}\n{}\nIts configuration and logs: {}",
            proc::tail(&self.folder.join("bochs.out"), FAILURE_LINES_MAX),
            proc::tail(&self.folder.join("bochs.log"), 10),
            self.folder.display()
        ))
    }

    /// Bochs's configuration. 100 million instructions make a second of the guest's time, about what the
    /// emulator does in one of ours.
    fn configuration(&self) -> String {
        format!(
            "config_interface: textconfig\n\
             display_library: nogui\n\
             cpu: {}, count=1, ips=100000000, reset_on_triple_fault=0, ignore_bad_msrs=1\n\
             memory: guest=1024, host=1024\n\
             romimage: file={}\n\
             vgaromimage: file={}\n\
             ata0-master: type=cdrom, path={}, status=inserted\n\
             boot: cdrom\n\
             log: bochs.log\n\
             panic: action=fatal\n\
             error: action=ignore\n\
             info: action=report\n\
             com1: enabled=1, mode=file, dev=console\n",
            self.cpu.model(),
            self.parts.bios.display(),
            self.parts.vga_bios.display(),
            self.disc.display(),
        )
    }
}
