//! Each outside crate has its line in docs/adr/0002-libraries.md, and no line is left over from one
//! that has gone.

use std::collections::BTreeSet;

use super::{Finding, sources::Sources};
use crate::ui::{Context, Done};

const HOME: &str = "docs/adr/0002-libraries.md";
const MANIFEST: &str = "Cargo.toml";

/// Compares the root manifest with the record.
pub(super) fn check(sources: &Sources) -> Done<Vec<Finding>> {
    let manifest = sources.get(MANIFEST)?;
    let record = sources.get(HOME)?;
    let table: toml::Table = manifest
        .text
        .parse()
        .cannot(format_args!("read {MANIFEST}"))?;
    let named: BTreeSet<&str> = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies")?.as_table())
        .into_iter()
        .flat_map(|dependencies| dependencies.keys().map(String::as_str))
        .filter(|name| !name.starts_with("qloak-"))
        .collect();
    let told: Vec<(usize, &str)> = record
        .lines()
        .flat_map(|(line, text)| names(text).map(move |name| (line, name)))
        .collect();
    let mut findings = Vec::new();
    for name in &named {
        if !told.iter().any(|(_, told)| told == name) {
            let line = manifest
                .lines()
                .find(|(_, text)| text.starts_with(name))
                .map_or(1, |(line, _)| line);
            let text = format!("`{name}` has no line in {HOME}: why, licence, upkeep");
            findings.push(Finding::new(MANIFEST, line, text));
        }
    }
    for (line, name) in told {
        if !named.contains(name) {
            findings.push(Finding::new(
                HOME,
                line,
                format!("`{name}` is not used; take it out"),
            ));
        }
    }
    Ok(findings)
}

/// The crates that a row of the record begins with.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let cell = line
        .strip_prefix("| ")
        .and_then(|rest| rest.split(" |").next())
        .unwrap_or_default();
    cell.split(',')
        .map(|name| name.split('(').next().unwrap_or_default().trim())
        .filter(|name| !name.is_empty() && *name != "crate")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: &str =
        "[workspace.dependencies]\nqloak-api = { path = \"a\" }\nserde = \"1\"\nlibc = \"0.2\"\n";

    fn findings(record: &str) -> Vec<String> {
        let sources = Sources::made_up(&[(MANIFEST, CARGO), (HOME, record)]);
        check(&sources)
            .expect("both")
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn every_crate_told_and_no_other_is_no_finding() {
        let record = "| crate | why |\n|---|---|\n| serde (derive), libc | words |\n";
        assert!(findings(record).is_empty(), "{:?}", findings(record));
    }

    #[test]
    fn a_crate_without_line_and_a_line_without_crate_are_found() {
        let found = findings("| crate | why |\n|---|---|\n| serde | words |\n| gone | once |\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("Cargo.toml:4: `libc` has no line"),
            "{found:?}"
        );
        assert!(found[1].contains("`gone` is not used"), "{found:?}");
    }
}
