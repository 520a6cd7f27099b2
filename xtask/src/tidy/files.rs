//! Rules about single files: each module tells its story, unsafe stays in its fence with its reason
//! beside it, files stay short, and nothing of the machine or the moment of writing is left behind.

use super::{
    Finding,
    sources::{Source, Sources},
    table,
};
use crate::{
    limits::FILE_LINES_MAX,
    ui::{Done, Failure},
};

const HOME: &str = "ARCHITECTURE.md";
const FENCE_HEADING: &str = "Where unsafe may stand";

/// How far above an unsafe block its reason may stand.
const SAFETY_LINES: usize = 8;

/// Each Rust file under a `src` begins with its story.
pub(super) fn stories(sources: &Sources) -> Vec<Finding> {
    sources
        .iter()
        .filter(|source| source.is_rust() && source.path.contains("/src/"))
        .filter(|source| !source.text.starts_with("//!"))
        .map(|source| {
            Finding::new(
                &source.path,
                1,
                "no story; begin with `//!`: what it is, where it lies, what always holds",
            )
        })
        .collect()
}

/// No Rust file is longer than the bound.
pub(super) fn sizes(sources: &Sources) -> Vec<Finding> {
    let long = |source: &&Source| source.is_rust() && source.text.lines().count() > FILE_LINES_MAX;
    sources
        .iter()
        .filter(long)
        .map(|source| {
            let lines = source.text.lines().count();
            Finding::new(
                &source.path,
                FILE_LINES_MAX,
                format!("{lines} lines, {FILE_LINES_MAX} at most; make it two files"),
            )
        })
        .collect()
}

/// No path of somebody's machine and no note to oneself.
pub(super) fn marks(sources: &Sources) -> Vec<Finding> {
    // Written apart, so that this file does not find itself.
    let paths = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/tmp/ba", "sh"),
        concat!("/tmp/", "q/"),
    ];
    let notes = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X:"),
        concat!("HA", "CK:"),
    ];
    let mut findings = Vec::new();
    for source in sources.iter() {
        for (number, line) in source.lines() {
            if let Some(path) = paths.iter().find(|path| holds_path(line, path))
                && !source.allows(number, "path")
            {
                let text = format!("{path}: a path of one machine; write it from the root");
                findings.push(Finding::new(&source.path, number, text));
            }
            if let Some(note) = notes.iter().find(|note| holds_word(line, note))
                && !source.allows(number, "note")
            {
                let text = format!("{note}: do it, or open an issue and name it");
                findings.push(Finding::new(&source.path, number, text));
            }
        }
    }
    findings
}

/// Unsafe stands only in the files that ARCHITECTURE.md lists, each block with its SAFETY comment.
pub(super) fn unsafe_code(sources: &Sources) -> Done<Vec<Finding>> {
    let fence: Vec<&str> = table::rows(&sources.get(HOME)?.text, FENCE_HEADING)
        .iter()
        .filter_map(|(_, cells)| table::ticked(cells.first()?).next())
        .collect();
    if fence.is_empty() {
        return Err(Failure::new(format!(
            "{HOME} has no table under the heading \"{FENCE_HEADING}\""
        )));
    }
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let inside = fence.iter().any(|place| source.path.starts_with(place));
        let lines: Vec<&str> = source.text.lines().collect();
        for (number, line) in source.lines() {
            let code = without_comment_and_text(line);
            if !holds_word(&code, "unsafe") || source.allows(number, "unsafe") {
                continue;
            }
            if !inside {
                let text = format!("unsafe outside its fence ({HOME}, {FENCE_HEADING})");
                findings.push(Finding::new(&source.path, number, text));
            } else if code.contains("unsafe {") || code.contains("unsafe impl") {
                let above = &lines[(number - 1).saturating_sub(SAFETY_LINES)..number];
                if !above.iter().any(|line| line.contains("SAFETY")) {
                    let text =
                        "unsafe without the fact that makes it true: `// SAFETY: ...` above it";
                    findings.push(Finding::new(&source.path, number, text));
                }
            }
        }
    }
    Ok(findings)
}

/// The line's code: strings emptied, the comment cut off. Good enough for one keyword.
fn without_comment_and_text(line: &str) -> String {
    let mut code = String::new();
    let mut text = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if text => {
                characters.next();
            }
            '"' => text = !text,
            '/' if !text && characters.peek() == Some(&'/') => break,
            c if !text => code.push(c),
            _ => {}
        }
    }
    code
}

/// Whether the path begins here, and not in the middle of a longer one or of a URL.
fn holds_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~*>}".contains(c))
    })
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, word)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(findings: &[Finding]) -> Vec<String> {
        findings.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_module_without_story_is_found() {
        let sources = Sources::made_up(&[
            ("crates/x/src/a.rs", "use std::io;\n"),
            ("crates/x/src/b.rs", "//! Told.\n"),
            ("crates/x/tests/c.rs", "use std::io;\n"),
        ]);
        let found = texts(&stories(&sources));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/src/a.rs:1: no story"));
    }

    #[test]
    fn a_long_file_is_found() {
        let long = "\n".repeat(FILE_LINES_MAX + 1);
        let fits = "\n".repeat(FILE_LINES_MAX);
        let sources = Sources::made_up(&[("a.rs", &long), ("b.rs", &fits), ("c.md", &long)]);
        assert_eq!(
            texts(&sizes(&sources)),
            ["a.rs:500: 501 lines, 500 at most; make it two files"]
        );
    }

    #[test]
    fn paths_of_a_machine_and_notes_are_found() {
        let path = concat!("see /ro", "ot/x\n");
        let note = concat!("fine\n// TO", "DO later\n");
        let fine = concat!("https://x.org/ho", "me/x and METHOD and XX", "X\n");
        let sources = Sources::made_up(&[("a.md", path), ("b.rs", note), ("c.md", fine)]);
        let found = texts(&marks(&sources));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.md:1:"), "{found:?}");
        assert!(found[1].starts_with("b.rs:2:"), "{found:?}");
    }

    const FENCE: (&str, &str) = (
        "ARCHITECTURE.md",
        "## Where unsafe may stand\n| where | why |\n|---|---|\n| `crates/p/src/raw.rs` | sockets |\n",
    );

    #[test]
    fn unsafe_outside_its_fence_is_found() {
        let code = "// unsafe in words\nlet a = \"unsafe {\";\nunsafe { b() }\n";
        let sources = Sources::made_up(&[FENCE, ("crates/p/src/a.rs", code)]);
        let found = texts(&unsafe_code(&sources).expect("a fence"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/p/src/a.rs:3: unsafe outside its fence"));
    }

    #[test]
    fn lifting_the_lint_outside_the_fence_is_not_enough_to_hide() {
        let code = "#![allow(unsafe_code)]\nfn a() {}\nunsafe impl Send for A {}";
        let sources = Sources::made_up(&[FENCE, ("crates/p/src/a.rs", code)]);
        assert_eq!(unsafe_code(&sources).expect("a fence").len(), 1);
    }

    #[test]
    fn unsafe_inside_its_fence_needs_its_reason() {
        let code =
            "unsafe { a() }\n\n\n\n\n\n\n\n\n\n// SAFETY: b takes anything.\nunsafe { b() }\n";
        let sources = Sources::made_up(&[FENCE, ("crates/p/src/raw.rs", code)]);
        let found = texts(&unsafe_code(&sources).expect("a fence"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/p/src/raw.rs:1: unsafe without"));
    }

    #[test]
    fn no_fence_is_an_error() {
        assert!(unsafe_code(&Sources::made_up(&[("ARCHITECTURE.md", "")])).is_err());
    }
}
