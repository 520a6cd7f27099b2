//! The table and the JSON document.

use qloak_cipher::{Level, Mode, Suite};
use serde_json::json;

use crate::{
    measure::{Cell, LOADS},
    peers,
};

/// One suite's figures.
pub(crate) struct Row {
    pub(crate) suite: &'static Suite,
    pub(crate) cells: Vec<Cell>,
}

/// What stands above and below them.
pub(crate) struct Report {
    cpu: String,
    level: Level,
    aggregated: bool,
    quick: bool,
    command: String,
}

/// What the seeds' FPGAs reached, in Gb/s: which seed, how. From their own tables.
fn seed(suite: &Suite) -> Option<(f64, &'static str)> {
    const BLOCKWISE: &str = "001, 100G line, block by block, no mode and no ICV";
    const STRATIX: &str = "002, clock times width of a Stratix IV, tested at 40G";
    let family = suite.cipher.split('-').next().unwrap_or_default();
    Some(match (suite.mode, family) {
        (Mode::Gcm, "AES") => (105.0, STRATIX),
        (Mode::Gcm, "Serpent") => (104.0, STRATIX),
        (Mode::Ocb3, "AES") => (128.0, STRATIX),
        (Mode::Ocb3, "Serpent") => (141.0, STRATIX),
        (Mode::Gcm | Mode::Ocb3, "Camellia") if suite.cipher.ends_with("256") => (90.2, BLOCKWISE),
        (Mode::RawBlock, _) => (91.3, BLOCKWISE),
        (Mode::Xor | Mode::Plain, _) => (92.17, BLOCKWISE),
        _ => return None,
    })
}

impl Report {
    pub(crate) fn new(level: Level, aggregated: bool, quick: bool) -> Self {
        let words = std::env::args().skip(1).filter(|word| word != "--bench");
        let words: Vec<_> = words.collect();
        let command = format!(
            "cargo bench -p qloak-secy --bench line -- {}",
            words.join(" ")
        );
        Self {
            cpu: cpu(),
            level,
            aggregated,
            quick,
            command: command.trim_end_matches([' ', '-']).to_owned(),
        }
    }

    pub(crate) fn print_head(&self) {
        println!("CPU      {}", self.cpu);
        println!("level    {}", self.level.name());
        println!("command  {}", self.command);
        println!();
        println!(
            "Gb/s of client frames (without FCS), in memory, one core, in place, batches of 60."
        );
        let (out, back) = if self.aggregated {
            (
                "mux + protect, line frames of 9000 octets",
                "validate + demux",
            )
        } else {
            ("protect, one line frame for each client frame", "validate")
        };
        println!("out: {out}.  in: {back}.");
        println!(
            "x: out over a plain library's seal of the same octets in the same run (1.00 is as fast)."
        );
        println!(
            "   AWS-LC for GCM-AES and ChaCha20-Poly1305, else RustCrypto.  seed: FPGA figure, see below."
        );
        if self.quick {
            println!("Quick: a few milliseconds a cell. A look, not a record.");
        }
        println!();
        print!("{:<22}{:>7}", "octets", "");
        LOADS.iter().for_each(|load| print!("{:^20}", load.name));
        print!("\n{:<22}{:>7}", "suite", "seed");
        LOADS
            .iter()
            .for_each(|_| print!("{:>7}{:>7}{:>6}", "out", "in", "x"));
        println!();
    }

    pub(crate) fn print_foot(&self) {
        println!();
        println!(
            "Seeds, for scale: 000/001 on a VCU108 (312.5 MHz, 512 bits) AES 91.3, Camellia-256 90.2,"
        );
        println!(
            "XOR and plain 92.17 Gb/s on a 100G line, each block by block without mode or ICV (here"
        );
        println!(
            "nearest: raw-block, xor, plain; the Camellia figure stands beside Camellia-256's AEADs)."
        );
        println!(
            "002 on a Stratix IV at 275 MHz: OCB-Serpent 141, OCB-AES 128, GCM-Serpent 104, GCM-AES 105."
        );
        println!(
            "Theirs is a whole FPGA at line rate; ours is one core of the CPU above without ports."
        );
    }

    pub(crate) fn print_json(&self, rows: &[Row]) {
        let loads = |row: &Row| -> Vec<serde_json::Value> {
            let cells = LOADS.iter().zip(&row.cells);
            cells
                .map(|(load, cell)| json!({ "load": load.name, "pattern": load.pattern, "cell": cell }))
                .collect()
        };
        let suites: Vec<_> = rows
            .iter()
            .map(|row| {
                let seed = seed(row.suite).map(|(gbps, how)| json!({ "gbps": gbps, "how": how }));
                json!({
                    "suite": row.suite.name,
                    "peer": peers::name(row.suite),
                    "seed": seed,
                    "loads": loads(row),
                })
            })
            .collect();
        let document = json!({
            "benchmark": "line",
            "cpu": self.cpu,
            "level": self.level.name(),
            "command": self.command,
            "carriage": if self.aggregated { "aggregated" } else { "transparent" },
            "quick": self.quick,
            "unit": "Gb/s of client frames without FCS, one core",
            "suites": suites,
        });
        println!("{document:#}");
    }
}

impl Row {
    pub(crate) fn print(&self) {
        let seed = seed(self.suite).map_or_else(|| "-".into(), |(gbps, _)| format!("{gbps:.1}"));
        print!("{:<22}{seed:>7}", self.suite.name);
        for cell in &self.cells {
            let ratio = cell
                .protect_to_peer_ratio
                .map_or_else(|| "-".into(), |ratio| format!("{ratio:.2}"));
            let (out, back) = (cell.protect_gbps, cell.validate_gbps);
            print!("{:>7}{:>7}{ratio:>6}", short(out), short(back));
        }
        println!();
    }
}

/// Three digits that count, not more.
fn short(gbps: f64) -> String {
    match gbps {
        100.0.. => format!("{gbps:.0}"),
        10.0.. => format!("{gbps:.1}"),
        _ => format!("{gbps:.2}"),
    }
}

/// The CPU's own name, where the system tells it.
fn cpu() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about
        .lines()
        .filter(|line| line.starts_with("model name"))
        .find_map(|line| line.split_once(':'));
    model.map_or_else(
        || format!("{} (model unknown)", std::env::consts::ARCH),
        |(_, model)| model.trim().to_owned(),
    )
}
