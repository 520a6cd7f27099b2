//! Every kept input of every target, run as an ordinary test; no fuzzer and no nightly compiler needed.
//!
//! `fuzz/corpus/<target>/` holds the inputs that `seeds.rs` makes, and may hold others: an input that once
//! failed is put there under a name that says what it found. After a change of `seeds.rs`,
//! `QLOAK_UPDATE=1 cargo test -p qloak-fuzz --test corpus` writes the folder anew.

mod seeds;

use std::{
    fs,
    path::{Path, PathBuf},
};

use qloak_fuzz::TARGETS;

fn folder(target: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    corpus.join(target)
}

#[test]
fn every_kept_input_holds() {
    for (target, run) in TARGETS {
        let entries = fs::read_dir(folder(target)).unwrap_or_else(|e| panic!("{target}: {e}"));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            // A failure's own words do not say which input it was.
            println!("{}", path.display());
            run(&fs::read(path).unwrap());
        }
    }
}

#[test]
fn the_seeds_are_kept() {
    for (target, name, octets) in seeds::all() {
        assert!(TARGETS.iter().any(|(known, _)| *known == target));
        let path = folder(target).join(name);
        if std::env::var_os("QLOAK_UPDATE").is_some() {
            fs::create_dir_all(folder(target)).unwrap();
            fs::write(&path, &octets).unwrap();
        }
        let kept = fs::read(&path).ok();
        assert!(
            kept == Some(octets),
            "{} is not what seeds.rs makes: QLOAK_UPDATE=1 cargo test -p qloak-fuzz --test corpus",
            path.display()
        );
    }
}

/// Of any seed, any beginning and a few changes: what a fuzzer does, without one. `ROUNDS=n` makes n
/// neighbours of each seed.
#[test]
fn neighbours_of_the_seeds_hold() {
    let mut state = 1_u32;
    let mut dice = |sides: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % sides.max(1)
    };
    let rounds = std::env::var("ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(12);
    for (target, name, octets) in seeds::all() {
        let run = TARGETS.iter().find(|(known, _)| *known == target);
        let run = run.expect("a target of this name").1;
        for round in 0..rounds {
            let mut octets = octets.clone();
            octets.truncate(octets.len() - dice(octets.len() / 2));
            for _ in 0..dice(4) {
                let at = dice(octets.len());
                octets[at] ^= 1 << dice(8);
            }
            // Shown only when it fails, as an input for `cargo xtask fuzz TARGET --again`.
            println!("{target}, {name}, round {round}: {octets:02x?}");
            run(&octets);
        }
    }
}
