//! Where the figures go: `seal.csv`, `open.csv`, a picture for each load and a `README.md` that says what they
//! are. Without `--record` under `target/bench`, where the next run writes over them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use time::{OffsetDateTime, macros::format_description};

use crate::{
    chart, csv,
    plan::{Load, Plan},
    report::{self, About, MEANING},
    results::{Results, Row},
};

/// The folder of this run; it is made.
pub(crate) fn folder(about: &About, keep: bool) -> io::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().unwrap_or(root);
    let folder = if keep {
        let today = OffsetDateTime::now_utc()
            .format(format_description!("[year]-[month]-[day]"))
            .map_err(io::Error::other)?;
        let family = &about.machine.family;
        root.join("bench/record").join(format!("{today}-{family}"))
    } else {
        root.join("target/bench")
    };
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes all of it.
pub(crate) fn write(
    folder: &Path,
    results: &Results,
    plan: &Plan,
    about: &About,
) -> io::Result<()> {
    for direction in &plan.directions {
        fs::write(
            folder.join(format!("{}.csv", direction.name())),
            csv::text(results, *direction, about.cycles_from),
        )?;
    }
    for load in &plan.loads {
        fs::write(
            folder.join(picture_name(plan, load)),
            picture(results, plan, load, about),
        )?;
    }
    fs::write(folder.join("README.md"), readme(plan, about))
}

fn picture_name(plan: &Plan, load: &Load) -> String {
    format!("{}-{}.svg", report::charted(plan).name(), load.name)
}

fn picture(results: &Results, plan: &Plan, load: &Load, about: &About) -> String {
    let (batch, direction) = (plan.batch_shown(), report::charted(plan));
    let mut rows: Vec<&Row> = Vec::new();
    for row in results.ours(load, batch, direction) {
        // The highest level comes first. Suites that nobody else has, and that do nothing, are no
        // matter for a comparison.
        let is_new = rows.last().is_none_or(|last| last.suite != row.suite);
        if is_new && (results.best_peer(row).is_some() || row.limit.is_some()) {
            rows.push(row);
        }
    }
    let cache = rows.first().map_or("", |row| row.cache.as_str());
    let doing = match direction {
        crate::plan::Direction::Seal => "Sealing",
        crate::plan::Direction::Open => "Opening",
    };
    let words = chart::Words {
        title: format!("{doing} frames of {}, {batch} at a time", load.title()),
        below: format!(
            "{} at {:.2} GHz, one core, frames in {cache}; cycles from {}{}",
            about.machine.cpu,
            about.clock_ghz,
            about.cycles_from,
            if about.quick { "; a quick look" } else { "" }
        ),
    };
    chart::svg(results, &rows, &words)
}

fn readme(plan: &Plan, about: &About) -> String {
    let machine = &about.machine;
    let caches: Vec<String> = machine
        .caches
        .iter()
        .enumerate()
        .map(|(index, octets)| format!("L{} {} KiB", index + 1, octets / 1024))
        .collect();
    let mut text = format!(
        "# Cipher benchmark, {}\n\n    {}\n\n\
         | what | |\n|---|---|\n\
         | CPU | {} |\n| caches | {} |\n| clock | {:.2} GHz |\n| kernel | {} |\n| rustc | {} |\n\
         | cycles from | {} |\n| units | {} |\n",
        machine.family,
        about.command,
        machine.cpu,
        caches.join(", "),
        about.clock_ghz,
        machine.kernel,
        machine.rustc,
        about.method,
        about.units(),
    );
    for [name, version, manner] in &about.peers {
        text += &format!("| {name} | {version}; {manner} |\n");
    }
    text.push('\n');
    for line in MEANING {
        text += &format!("- {line}\n");
    }
    if about.quick {
        text += "- Quick: few windows a figure. A look, not a record.\n";
    }
    for note in &about.notes {
        text += &format!("- {note}\n");
    }
    for direction in &plan.directions {
        let name = direction.name();
        text += &format!("\nEvery figure, {name}: [{name}.csv]({name}.csv).\n");
    }
    for load in &plan.loads {
        let name = picture_name(plan, load);
        text += &format!("\n![{}]({name})\n", load.title());
    }
    text
}
