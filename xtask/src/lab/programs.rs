//! The lab's programs as real processes: started, watched, stopped, each with its log.
//!
//! A program that is dropped is stopped. A program that ends by itself is a failure, told with the last
//! lines of its log.

use std::{
    ffi::OsString,
    fs::File,
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::{Duration, Instant},
};

use super::network::Space;
use crate::{
    proc,
    ui::{Context, Done, Failure},
};

/// How long a program may take to end when asked: a node zeroises its keys, a KMS closes its ledger.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Lines of a log that a failure shows.
const LOG_LINES: usize = 25;

/// A program of the lab.
pub(crate) struct Program {
    name: String,
    space: Option<Space>,
    binary: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    child: Option<Child>,
}

impl Program {
    /// Described, not started.
    pub(crate) fn new(
        name: impl Into<String>,
        space: Option<Space>,
        binary: &Path,
        folder: &Path,
    ) -> Self {
        Self {
            name: name.into(),
            space,
            binary: binary.to_owned(),
            arguments: Vec::new(),
            folder: folder.to_owned(),
            child: None,
        }
    }

    /// With an argument more.
    pub(crate) fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Its log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// Starts it; its log goes on where it was.
    pub(crate) fn start(&mut self) -> Done {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.log())
            .cannot(format_args!("write {}", self.log().display()))?;
        let errors = log.try_clone()?;
        let child = command(self.space, &self.binary)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .cannot(format_args!("start {}", self.name))?;
        self.child = Some(child);
        Ok(())
    }

    /// Fails when it has ended by itself.
    pub(crate) fn check(&mut self) -> Done {
        let Some(child) = &mut self.child else {
            return Ok(());
        };
        match child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(Failure::new(format!(
                "{} ended by itself ({status}). Its last words:\n{}",
                self.name,
                proc::tail(&self.log(), LOG_LINES)
            ))),
        }
    }

    /// Its process. `ip netns exec` becomes the program that it starts, so this is the program itself.
    pub(crate) fn pid(&self) -> Done<u32> {
        let child = self.child.as_ref().map(Child::id);
        child.ok_or_else(|| Failure::new(format!("{} does not run", self.name)))
    }

    /// Stops it; nothing happens if it does not run.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            proc::end(&mut child, END_PATIENCE);
        }
    }

    /// Lets it run on after us.
    pub(crate) fn release(&mut self) {
        self.child = None;
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A part of the demo or of a benchmark inside a namespace; see [`crate::parts`].
pub(crate) struct Part {
    name: &'static str,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Part {
    /// Starts `xtask part <arguments>` in a namespace; its errors go to a log in the folder.
    pub(crate) fn start(
        name: &'static str,
        space: Space,
        folder: &Path,
        arguments: &[&str],
    ) -> Done<Self> {
        let log = folder.join(format!("{name}.log"));
        let errors = File::create(&log).cannot(format_args!("write {}", log.display()))?;
        // Not its path: cargo may have put another binary there since we started.
        let own = PathBuf::from(format!("/proc/{}/exe", std::process::id()));
        let mut child = command(Some(space), &own)
            .arg("part")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .process_group(0)
            .spawn()
            .cannot(format_args!("start {name}"))?;
        let input = child.stdin.take();
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self {
            name,
            child,
            input,
            lines,
        })
    }

    /// The far end of [`Part::send`], ready.
    pub(crate) fn answer(folder: &Path) -> Done<Self> {
        let part = Self::start("answer", Space::HostsB, folder, &["answer"])?;
        part.hear(Duration::from_secs(5))?;
        Ok(part)
    }

    /// TCP through client ports 1 to `ports`, both ways; 0 octets per second: as fast as it goes. At its end
    /// it says [`crate::parts::Sent`].
    pub(crate) fn send(folder: &Path, ports: u8, time: Duration, octets_per_s: u64) -> Done<Self> {
        let (ports, time, pace) = (
            ports.to_string(),
            time.as_millis().to_string(),
            octets_per_s.to_string(),
        );
        let arguments = [
            "send",
            "--ports",
            &ports,
            "--time-ms",
            &time,
            "--octets-per-s",
            &pace,
        ];
        Self::start("send", Space::HostsA, folder, &arguments)
    }

    /// Gives it a line.
    pub(crate) fn tell(&mut self, line: &str) -> Done {
        match &mut self.input {
            Some(input) => writeln!(input, "{line}").cannot(format_args!("talk to {}", self.name)),
            None => Ok(()),
        }
    }

    /// The line that it says next, if it has said one.
    pub(crate) fn said(&self) -> Done<Option<String>> {
        match self.lines.recv_timeout(Duration::ZERO) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::new(format!(
                "the {} part ended early; see its log",
                self.name
            ))),
        }
    }

    /// The line that it says next.
    pub(crate) fn hear(&self, patience: Duration) -> Done<String> {
        let begin = Instant::now();
        loop {
            if let Some(line) = self.said()? {
                return Ok(line);
            }
            proc::check_interrupt()?;
            if begin.elapsed() > patience {
                return Err(Failure::new(format!(
                    "the {} part said nothing for {} s",
                    self.name,
                    patience.as_secs()
                )));
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Closes its input, so that it ends in order; what it says at its end can still be heard.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// The same, and waits a little.
    pub(crate) fn finish(&mut self) {
        self.close();
        let begin = Instant::now();
        while begin.elapsed() < END_PATIENCE {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.input = None;
        proc::end(&mut self.child, Duration::from_millis(500));
    }
}

/// A command in a namespace, or here.
pub(crate) fn command(space: Option<Space>, program: &Path) -> Command {
    match space {
        Some(space) => space.command(program),
        None => Command::new(program),
    }
}
