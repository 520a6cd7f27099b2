//! What a person reads: one table for each load, and the same as one JSON document.

use anstream::println;
use anstyle::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table, presets::UTF8_BORDERS_ONLY};
use serde_json::json;

use crate::{
    chart::{short, significant},
    machine::{Machine, instructions::Units},
    plan::{Direction, Load, Plan},
    results::{Results, Row, Who},
};

const DIM: Style = AnsiColor::BrightBlack.on_default();
const HEAD: Style = AnsiColor::Cyan.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// A run's surroundings, for every output.
pub(crate) struct About {
    pub(crate) machine: Machine,
    pub(crate) clock_ghz: f64,
    pub(crate) cycles_from: &'static str,
    pub(crate) method: &'static str,
    pub(crate) quick: bool,
    pub(crate) command: String,
    /// Name, version and manner of each peer that took part.
    pub(crate) peers: Vec<[String; 3]>,
    /// What the limits rest on.
    pub(crate) units: Option<Units>,
    /// What a reader must know: who is absent, who was left out and why.
    pub(crate) notes: Vec<String>,
}

/// What each figure means, in the tables and in the record.
pub(crate) const MEANING: [&str; 6] = [
    "c/o: cycles per octet of data, one core, in place; AAD of 20 octets and a tag of 16 with each \
     frame of an AEAD; key set up before; every frame its own nonce.",
    "A batch has its frames in buffers of their own; \"in L1\", \"in L2\" is the cache that holds all \
     frames of a round: nothing comes from memory unless it says so.",
    "A peer that knows no batches gets the frames of a batch one after another.",
    "times: the best peer's cycles over ours on the same frames in the same run; above 1 ours is faster.",
    "limit: what the core's units allow for the suite on these frames, from their measured rates.",
    "All who are measured take turns on the same frames, a quarter of a millisecond each time; opening is \
     timed without putting the sealed frames back.",
];

impl About {
    /// What the core's units finish in a cycle, as a sentence.
    pub(crate) fn units(&self) -> String {
        let Some(units) = &self.units else {
            return "not measured on this kind of CPU, so no limit is known".into();
        };
        format!(
            "in a cycle {:.1} AES rounds, {:.1} carry-less products, {:.1} logic operations of 16 octets{}",
            units.aes_rounds,
            units.multiplications,
            units.logic,
            match (units.three_operands, units.affine) {
                (true, true) => "; three operands, affine maps",
                (true, false) => "; three operands",
                (false, true) => "; affine maps",
                (false, false) => "",
            }
        )
    }

    /// The head of all tables.
    pub(crate) fn print(&self) {
        println!("{HEAD}cipher benchmark{HEAD:#}");
        println!("CPU      {} ({})", self.machine.cpu, self.machine.family);
        println!("clock    {:.2} GHz", self.clock_ghz);
        println!("kernel   {}", self.machine.kernel);
        println!("rustc    {}", self.machine.rustc);
        println!("units    {}", self.units());
        for [name, version, manner] in &self.peers {
            println!("peer     {name}: {version} {DIM}({manner}){DIM:#}");
        }
        if self.cycles_from == "counter" {
            println!("method   {}", self.method);
        } else {
            println!("method   {NOTE}{}{NOTE:#}", self.method);
        }
        if self.quick {
            println!("quick    {NOTE}few windows a figure: a look, not a record{NOTE:#}");
        }
        for note in &self.notes {
            println!("{NOTE}note{NOTE:#}     {note}");
        }
        for line in MEANING {
            println!("{DIM}{line}{DIM:#}");
        }
    }
}

/// One table for each load.
pub(crate) fn print_tables(results: &Results, plan: &Plan) {
    for load in &plan.loads {
        print_table(results, plan, load);
    }
}

fn print_table(results: &Results, plan: &Plan, load: &Load) {
    let batch = plan.batch_shown();
    let main = plan.directions[0];
    let rows: Vec<&Row> = results.ours(load, batch, main).collect();
    let Some(first) = rows.first() else {
        return;
    };
    println!();
    println!(
        "{HEAD}{}, batch {batch}{HEAD:#} {DIM}(frames in {}, {}){DIM:#}",
        load.title(),
        first.cache,
        main.name()
    );
    let other_direction = plan.directions.get(1).copied();
    let other_batch = plan
        .batches
        .iter()
        .copied()
        .min()
        .filter(|least| *least != batch);
    let mut head = vec![
        "suite".to_owned(),
        "level".into(),
        "backend".into(),
        format!("{} c/o", main.name()),
        "Gb/s".into(),
        "best peer".into(),
        "c/o".into(),
        "times".into(),
        "of limit".into(),
    ];
    head.extend(other_direction.map(|direction| format!("{} c/o", direction.name())));
    head.extend(other_direction.map(|_| "times".into()));
    head.extend(other_batch.map(|batch| format!("{} c/o, batch {batch}", main.name())));
    let mut table = Table::new();
    table.load_style(UTF8_BORDERS_ONLY);
    table.set_header(
        head.into_iter()
            .map(|word| Cell::new(word).add_attribute(Attribute::Bold)),
    );
    let mut suite = "";
    for row in rows {
        let best_level = row.suite != suite;
        suite = row.suite;
        let mut cells = cells(results, row, best_level);
        if let Some(direction) = other_direction {
            let other = results.like(row, batch, direction);
            cells.push(number(
                other.map(|row| significant(row.figure.cycles_per_octet)),
            ));
            cells.push(times(other.and_then(|row| results.ratio(row))));
        }
        if let Some(batch) = other_batch {
            let other = results.like(row, batch, main);
            cells.push(number(
                other.map(|row| significant(row.figure.cycles_per_octet)),
            ));
        }
        table.add_row(cells);
    }
    println!("{table}");
}

fn cells(results: &Results, row: &Row, best_level: bool) -> Vec<Cell> {
    let (level, backend) = match &row.who {
        Who::Ours { level, backend } => (*level, *backend),
        Who::Peer { name } => ("", *name),
    };
    let best = results.best_peer(row);
    let peer = match best.map(|best| &best.who) {
        Some(Who::Peer { name }) => *name,
        _ => "-",
    };
    let cycles = number(Some(significant(row.figure.cycles_per_octet)));
    vec![
        Cell::new(if best_level { row.suite } else { "" }),
        Cell::new(level),
        Cell::new(backend),
        if best_level {
            cycles.add_attribute(Attribute::Bold)
        } else {
            cycles
        },
        number(Some(short(row.figure.gbps()))),
        Cell::new(peer),
        number(best.map(|best| significant(best.figure.cycles_per_octet))),
        times(results.ratio(row)),
        number(
            row.share_of_limit()
                .map(|share| format!("{:.0} %", share * 100.0)),
        ),
    ]
}

fn number(text: Option<String>) -> Cell {
    Cell::new(text.unwrap_or_else(|| "-".into())).set_alignment(CellAlignment::Right)
}

/// Green where ours is faster, red where it is clearly slower; a tie is neither.
fn times(ratio: Option<f64>) -> Cell {
    let cell = number(ratio.map(significant));
    match ratio {
        Some(1.0..) => cell.fg(Color::Green),
        Some(..0.95) => cell.fg(Color::Red),
        _ => cell,
    }
}

/// One document.
pub(crate) fn json(results: &Results, about: &About) -> serde_json::Value {
    let figure = |row: &Row| {
        let (who, level, backend) = match &row.who {
            Who::Ours { level, backend } => ("qloak", Some(*level), Some(*backend)),
            Who::Peer { name } => (*name, None, None),
        };
        let ours = level.is_some();
        let best = ours.then(|| results.best_peer(row)).flatten();
        let best_name = best.and_then(|best| match &best.who {
            Who::Peer { name } => Some(*name),
            Who::Ours { .. } => None,
        });
        json!({
            "suite": row.suite,
            "direction": row.direction,
            "load": row.load.name,
            "pattern_octets": row.load.pattern,
            "batch_frames": row.batch,
            "who": who,
            "level": level,
            "backend": backend,
            "cycles_per_octet": row.figure.cycles_per_octet,
            "gbps": row.figure.gbps(),
            "clock_ghz": row.figure.clock_ghz,
            "spread_ratio": row.figure.spread,
            "windows": row.figure.windows,
            "frames_in": row.cache,
            "limit_cycles_per_octet": row.limit,
            "share_of_limit_ratio": row.share_of_limit(),
            "best_peer": best_name,
            "best_peer_ratio": best.and_then(|_| results.ratio(row)),
        })
    };
    json!({
        "benchmark": "cipher",
        "machine": about.machine,
        "clock_ghz": about.clock_ghz,
        "cycles_from": about.cycles_from,
        "method": about.method,
        "quick": about.quick,
        "command": about.command,
        "meaning": MEANING,
        "peers": about.peers.iter().map(|[name, version, manner]| {
            json!({ "name": name, "version": version, "manner": manner })
        }).collect::<Vec<_>>(),
        "units_per_cycle": about.units,
        "notes": about.notes,
        "figures": results.rows.iter().map(figure).collect::<Vec<_>>(),
    })
}

/// The direction that charts show.
pub(crate) fn charted(plan: &Plan) -> Direction {
    plan.directions.first().copied().unwrap_or(Direction::Seal)
}
