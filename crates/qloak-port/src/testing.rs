//! What tests that need the kernel share.

use std::process::Command;

use crate::sys::namespace;

/// Does `test` on a thread of its own in a new, empty network namespace; where the kernel does not
/// allow that, says that the test was not run and why.
pub(crate) fn in_namespace(name: &str, test: impl FnOnce(i32) + Send) {
    std::thread::scope(|scope| {
        scope.spawn(|| match namespace::leave() {
            Ok(thread) => test(thread),
            Err(error) => {
                // To the terminal itself: the harness would swallow what a passing test prints.
                use std::io::Write;
                let line = format!(
                    "test {name} was not run: it needs root for a network namespace ({error})\n"
                );
                let _ = std::io::stderr().write_all(line.as_bytes());
            }
        });
    });
}

/// Runs `ip` with these words in the namespace of the calling thread.
#[track_caller]
pub(crate) fn ip(words: &str) {
    let output = Command::new("ip")
        .args(words.split_whitespace())
        .output()
        .expect("`ip` (iproute2) is needed");
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
