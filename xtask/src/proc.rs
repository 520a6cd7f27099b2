//! Running a program with its output in a log, a spinner for people and a bound on its time.
//!
//! The program gets its own process group, so that what it starts ends with it: on the time limit,
//! and when a person presses Ctrl-C (which we then pass on).

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    limits::FAILURE_LINES_MAX,
    ui::{self, Context, Done, Failure},
};

/// True once someone asked us to stop (Ctrl-C, SIGTERM, SIGHUP).
pub(crate) fn interrupted() -> bool {
    interrupt_flag().load(Ordering::Relaxed)
}

/// Fails once someone asked us to stop.
pub(crate) fn check_interrupt() -> Done {
    if interrupted() {
        Err(Failure::new("stopped on request"))
    } else {
        Ok(())
    }
}

/// The flag that signals set. Asking for it installs the handlers.
pub(crate) fn interrupt_flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [
            signal_hook::consts::SIGINT,
            signal_hook::consts::SIGTERM,
            signal_hook::consts::SIGHUP,
        ] {
            // A signal that cannot be caught keeps its default: the process ends.
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        flag
    })
}

/// Runs a program to its end with output in `log`. Its failure carries the log's last lines.
pub(crate) fn run(
    command: &mut Command,
    text: &str,
    log: &Path,
    limit: Duration,
) -> Done<Duration> {
    interrupt_flag();
    let begin = Instant::now();
    let program = command.get_program().to_string_lossy().into_owned();
    let file = File::create(log).cannot(format_args!("write {}", log.display()))?;
    let errors = file.try_clone()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .cannot(format_args!("start {program}"))?;
    let bar = ui::spinner(text);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Ok(status);
        }
        if interrupted() {
            break Err(Failure::new("stopped on request"));
        }
        if begin.elapsed() > limit {
            break Err(Failure::new(format!(
                "{text} took longer than {}; its output is in {}",
                ui::seconds(limit),
                log.display()
            )));
        }
        bar.set_message(last_line(log));
        thread::sleep(Duration::from_millis(100));
    };
    bar.finish_and_clear();
    match status {
        Ok(status) if status.success() => Ok(begin.elapsed()),
        Ok(status) => Err(Failure::new(format!(
            "{text}: {program} ended with {status}\n{}\nall of it: {}",
            tail(log, FAILURE_LINES_MAX),
            log.display()
        ))),
        Err(failure) => {
            end(&mut child, Duration::from_secs(3));
            Err(failure)
        }
    }
}

/// Ends a child that leads its own process group: asks, waits up to `patience`, then forces.
pub(crate) fn end(child: &mut Child, patience: Duration) {
    let Some(group) = Pid::from_raw(child.id().cast_signed()) else {
        return;
    };
    if matches!(child.try_wait(), Ok(Some(_))) {
        return;
    }
    // The group may be gone between the check and the signal; then there is nothing to end.
    let _ = kill_process_group(group, Signal::TERM);
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if matches!(child.try_wait(), Ok(Some(_))) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let _ = kill_process_group(group, Signal::KILL);
    let _ = child.wait();
}

/// Runs a short program and gives what it prints; its own words are in the failure.
pub(crate) fn output(command: &mut Command) -> Done<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let out = command
        .stdin(Stdio::null())
        .output()
        .cannot(format_args!("start {program}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        let arguments: Vec<_> = command
            .get_args()
            .map(|argument| argument.to_string_lossy())
            .collect();
        Err(Failure::new(format!(
            "{program} {} ended with {}: {}{}",
            arguments.join(" "),
            out.status,
            String::from_utf8_lossy(&out.stdout).trim(),
            String::from_utf8_lossy(&out.stderr).trim(),
        )))
    }
}

/// The last lines of a file.
pub(crate) fn tail(path: &Path, lines: usize) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The last line that says something, short enough for a spinner.
fn last_line(path: &Path) -> String {
    const LOOK_BACK: u64 = 512;
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOOK_BACK)))?;
        let mut octets = Vec::new();
        file.take(LOOK_BACK).read_to_end(&mut octets)?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    };
    let text = read().unwrap_or_default();
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().chars().take(100).collect()
}
