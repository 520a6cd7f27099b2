//! One word for one thing: the words in backticks in GLOSSARY.md's column "do not say" are not said.
//!
//! A word is found as a whole word: a letter, a digit, `_` or `-` on either side makes it another
//! (`AF_PACKET` and `VLAN` are names of others). Written in lower case it is found in any case and
//! with an `s` behind it; a word with a capital is found as written. What the column "fine in" has in backticks is no
//! finding. Other words of the column are for human readers: a machine would cry wolf.
//!
//! The tests below need the words themselves: tidy: allow packet in this file,
//! tidy: allow lan in this file, tidy: allow black side in this file.

use super::{
    Finding,
    sources::{Source, Sources},
    table,
};
use crate::ui::{Done, Failure};

const HOME: &str = "GLOSSARY.md";
const HEADING: &str = "Words";

/// A word not to say.
struct Banned {
    word: String,
    instead: String,
    fine_in: Vec<String>,
}

/// Looks through Rust sources and documents.
pub(super) fn check(sources: &Sources) -> Done<Vec<Finding>> {
    let banned = read_table(&sources.get(HOME)?.text)?;
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| is_ours(&source.path)) {
        for (number, line) in source.lines() {
            findings.extend(
                banned
                    .iter()
                    .filter_map(|banned| look(source, number, line, banned)),
            );
        }
    }
    Ok(findings)
}

/// The glossary itself names the words; other people's facts and vectors keep theirs.
fn is_ours(path: &str) -> bool {
    let kind = path.ends_with(".rs") || path.ends_with(".md");
    kind && path != HOME && !path.starts_with("vectors/")
}

fn look(source: &Source, number: usize, line: &str, banned: &Banned) -> Option<Finding> {
    let any_case = banned.word.chars().all(|c| !c.is_uppercase());
    let line = if any_case {
        line.to_lowercase()
    } else {
        line.to_owned()
    };
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let found = line.match_indices(&banned.word).any(|(at, word)| {
        let before = line[..at].chars().next_back();
        let mut rest = line[at + word.len()..].chars();
        let mut after = rest.next();
        if after == Some('s') && any_case {
            after = rest.next();
        }
        let whole = !before.is_some_and(is_word) && !after.is_some_and(is_word);
        let fine = banned.fine_in.iter().any(|phrase| {
            line.match_indices(phrase.as_str())
                .any(|(start, phrase)| start <= at && at + word.len() <= start + phrase.len())
        });
        whole && !fine
    });
    (found && !source.allows(number, &banned.word)).then(|| {
        Finding::new(
            &source.path,
            number,
            format!("\"{}\": say {} ({HOME})", banned.word, banned.instead),
        )
    })
}

fn read_table(text: &str) -> Done<Vec<Banned>> {
    let mut banned = Vec::new();
    for (line, cells) in table::rows(text, HEADING) {
        let [word, _, not, ..] = cells.as_slice() else {
            return Err(Failure::new(format!(
                "{HOME}:{line}: a row needs three cells"
            )));
        };
        let fine_in = cells.get(3).copied().unwrap_or_default();
        banned.extend(table::ticked(not).map(|not| Banned {
            word: not.to_owned(),
            instead: word.replace('*', ""),
            fine_in: table::ticked(fine_in).map(str::to_lowercase).collect(),
        }));
    }
    if banned.is_empty() {
        return Err(Failure::new(format!(
            "{HOME} has no table of words under the heading \"{HEADING}\""
        )));
    }
    Ok(banned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Words\n| word | meaning | do not say | fine in |\n|---|---|---|---|\n\
        | frame | one Ethernet frame | `packet` | `packet number` |\n\
        | client port | the user's side | `LAN`, black | |\n";

    fn findings(path: &str, text: &str) -> Vec<String> {
        let sources = Sources::made_up(&[(HOME, TABLE), (path, text)]);
        let found = check(&sources).expect("a table");
        found.iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_banned_word_is_found_with_the_word_to_use() {
        let found = findings("crates/x/src/a.rs", "//! Fine.\n// Every Packet counts.\n");
        assert_eq!(
            found,
            ["crates/x/src/a.rs:2: \"packet\": say frame (GLOSSARY.md)"]
        );
        assert_eq!(findings("docs/a.md", "ten packets").len(), 1);
        assert_eq!(findings("docs/a.md", "the LAN side").len(), 1);
    }

    #[test]
    fn names_of_others_and_allowed_phrases_are_not_found() {
        for fine in [
            "AF_PACKET",
            "af-packet",
            "PacketNumber",
            "packet_number",
            "the packet number of a frame",
            "a VLAN on a lan",
            "the black side",
        ] {
            assert!(findings("docs/a.md", fine).is_empty(), "{fine}");
        }
        assert_eq!(findings("docs/a.md", "packet number, packet").len(), 1);
    }

    #[test]
    fn a_line_can_say_that_it_must() {
        assert!(findings("a.md", "a packet <!-- tidy: allow packet -->").is_empty());
        assert!(findings("a.rs", "// tidy: allow packet\nlet packet = 1;").is_empty());
        assert_eq!(
            findings("a.rs", "// tidy: allow packet\n\nlet packet = 1;").len(),
            1
        );
        assert_eq!(
            findings("a.rs", "let packet = 1; // tidy: allow lan").len(),
            1
        );
    }

    #[test]
    fn other_kinds_of_file_keep_their_words() {
        assert!(findings("vectors/a.md", "packet").is_empty());
        assert!(findings("a.py", "packet").is_empty());
    }
}
