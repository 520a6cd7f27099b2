//! Who may import whom: ARCHITECTURE.md's table against `cargo metadata`.
//!
//! A row is `| crates | what they may import |`, names in backticks without the `qloak-` in front;
//! `nothing of ours` and `all` mean what they say. Only normal and build dependencies count: what a
//! crate's own tests use does not travel with it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Finding, sources::Sources, table};
use crate::{
    proc,
    steps::cargo,
    tree,
    ui::{Context, Done, Failure},
};

const HOME: &str = "ARCHITECTURE.md";
const HEADING: &str = "Who may import whom";

/// What `cargo metadata` says.
#[derive(Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None for a normal one.
    kind: Option<String>,
    /// Set for crates of this workspace.
    path: Option<String>,
}

/// Asks cargo.
pub(super) fn metadata() -> Done<Metadata> {
    let mut command = cargo();
    command
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(tree::root());
    let text = proc::output(&mut command)?;
    serde_json::from_str(&text).cannot("read what cargo metadata says")
}

/// What a row allows.
enum Allowed {
    All,
    These(BTreeSet<String>),
}

/// Compares the table with the truth.
pub(super) fn check(sources: &Sources, metadata: &Metadata) -> Done<Vec<Finding>> {
    let allowed = read_table(&sources.get(HOME)?.text)?;
    let mut findings = Vec::new();
    let ours: BTreeSet<&str> = metadata
        .packages
        .iter()
        .map(|package| short(&package.name))
        .collect();
    for (name, (line, _)) in &allowed {
        if !ours.contains(name.as_str()) {
            findings.push(Finding::new(
                HOME,
                *line,
                format!("there is no crate `{name}`; take its row out"),
            ));
        }
    }
    for package in &metadata.packages {
        let name = short(&package.name);
        let manifest = manifest(name);
        let Some((_, allowed)) = allowed.get(name) else {
            findings.push(Finding::new(
                &manifest,
                1,
                format!("`{name}` has no row in {HOME}'s table; say there what it may import"),
            ));
            continue;
        };
        for dependency in &package.dependencies {
            let counts = dependency.path.is_some() && dependency.kind.as_deref() != Some("dev");
            let import = short(&dependency.name);
            let fine = match allowed {
                Allowed::All => true,
                Allowed::These(names) => names.contains(import),
            };
            if counts && !fine {
                findings.push(Finding::new(
                    &manifest,
                    line_of(sources, &manifest, &dependency.name),
                    format!("`{name}` may not import `{import}` ({HOME}, {HEADING}); take it out, or change the table and say why in docs/adr/"),
                ));
            }
        }
    }
    Ok(findings)
}

fn read_table(text: &str) -> Done<BTreeMap<String, (usize, Allowed)>> {
    let mut allowed = BTreeMap::new();
    for (line, cells) in table::rows(text, HEADING) {
        let [crates, imports, ..] = cells.as_slice() else {
            return Err(Failure::new(format!(
                "{HOME}:{line}: a row needs two cells"
            )));
        };
        for name in table::ticked(crates) {
            let imports = if imports.starts_with("all") {
                Allowed::All
            } else {
                Allowed::These(table::ticked(imports).map(str::to_owned).collect())
            };
            allowed.insert(name.to_owned(), (line, imports));
        }
    }
    if allowed.is_empty() {
        return Err(Failure::new(format!(
            "{HOME} has no table under the heading \"{HEADING}\""
        )));
    }
    Ok(allowed)
}

fn short(name: &str) -> &str {
    name.strip_prefix("qloak-").unwrap_or(name)
}

fn manifest(name: &str) -> String {
    match name {
        "xtask" => "xtask/Cargo.toml".into(),
        "bench" => "bench/cipher/Cargo.toml".into(),
        "proof" => "proof/Cargo.toml".into(),
        "qloak" => "crates/qloak/Cargo.toml".into(),
        name => format!("crates/qloak-{name}/Cargo.toml"),
    }
}

fn line_of(sources: &Sources, manifest: &str, dependency: &str) -> usize {
    let Ok(source) = sources.get(manifest) else {
        return 1;
    };
    source
        .lines()
        .find(|(_, line)| line.starts_with(dependency))
        .map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "## Who may import whom\n\n| crate | may import |\n|---|---|\n\
        | `api`, `cipher` | nothing of ours |\n| `secy` | `api`, `cipher` |\n| `sim` | all of ours |\n";

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        Package {
            name: name.into(),
            dependencies: dependencies
                .iter()
                .map(|(name, kind)| Dependency {
                    name: (*name).into(),
                    kind: kind.map(str::to_owned),
                    path: name.starts_with("qloak").then(String::new),
                })
                .collect(),
        }
    }

    fn findings(packages: Vec<Package>) -> Vec<String> {
        let manifest = "[dependencies]\nserde = 1\nqloak-secy = 1\n";
        let sources =
            Sources::made_up(&[(HOME, TABLE), ("crates/qloak-cipher/Cargo.toml", manifest)]);
        let found = check(&sources, &Metadata { packages }).expect("a table");
        found.iter().map(Finding::to_string).collect()
    }

    fn sound() -> Vec<Package> {
        vec![
            package("qloak-api", &[("serde", None)]),
            package("qloak-cipher", &[("qloak-api", Some("dev"))]),
            package("qloak-secy", &[("qloak-api", None), ("qloak-cipher", None)]),
            package("qloak-sim", &[("qloak-secy", None)]),
        ]
    }

    #[test]
    fn what_the_table_allows_is_no_finding() {
        assert!(findings(sound()).is_empty());
    }

    #[test]
    fn an_import_that_the_table_does_not_name_is_found_at_its_line() {
        let mut packages = sound();
        packages[1] = package("qloak-cipher", &[("qloak-secy", None)]);
        let found = findings(packages);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0]
                .starts_with("crates/qloak-cipher/Cargo.toml:3: `cipher` may not import `secy`")
        );
    }

    #[test]
    fn a_build_dependency_counts() {
        let mut packages = sound();
        packages[0] = package("qloak-api", &[("qloak-cipher", Some("build"))]);
        assert_eq!(findings(packages).len(), 1);
    }

    #[test]
    fn a_crate_without_row_and_a_row_without_crate_are_found() {
        let mut packages = sound();
        packages.push(package("qloak-new", &[]));
        packages.remove(0);
        let found = findings(packages);
        assert!(found[0].contains("there is no crate `api`"), "{found:?}");
        assert!(found[1].contains("`new` has no row"), "{found:?}");
    }

    #[test]
    fn no_table_is_an_error() {
        let sources = Sources::made_up(&[(HOME, "nothing")]);
        assert!(check(&sources, &Metadata { packages: sound() }).is_err());
    }
}
