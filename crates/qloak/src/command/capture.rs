//! `qloak capture`.

use std::{
    fs::File,
    io::{self, BufWriter, IsTerminal, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use clap::{Args, ValueEnum};
use qloak_api::{CaptureOrder, ClientPort, Side};
use qloak_door::Client;
use qloak_node::capture::Blocks;
use serde::Serialize;

use super::service;
use crate::{
    connect::{Connection, is_door},
    error::{Error, Outcome},
    limits, output, words,
};

/// Record frames of one side of a node as pcapng, while they pass
///
/// Ends with the first bound that is reached, or with Ctrl-C; the file is readable in any case. Frames that the node
/// had no room to record are counted and the file says how many. `-w - | wireshark -k -i -` shows them at once. The
/// node's own configuration says which side may be recorded; keys never are.
#[derive(Debug, Args)]
pub(crate) struct Capture {
    /// The node: its name (through the controller), or its door such as https://192.0.2.1:7443 or
    /// NAME=https://192.0.2.1:7443
    node: String,
    /// Client ports, in the clear, or the line port, as protected
    #[arg(long, value_name = "SIDE")]
    side: SideName,
    /// One client port alone
    #[arg(long, value_name = "NUMBER", value_parser = client_port)]
    port: Option<ClientPort>,
    /// End after so many seconds
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    seconds: u32,
    /// End after so many frames
    #[arg(long, value_name = "COUNT", default_value_t = 100_000)]
    frames: u64,
    /// Octets of each frame to keep
    #[arg(long, value_name = "OCTETS", default_value_t = 65_535)]
    snap: u32,
    /// File to write, `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    write: PathBuf,
    // Last: its heading is that of every argument after it.
    #[command(flatten)]
    connection: Connection,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SideName {
    Client,
    Line,
}

/// What became of it.
#[derive(Debug, Serialize)]
struct Report {
    node: String,
    file: PathBuf,
    frames: u64,
    /// Frames that the node had no room to record; none where the capture was ended before the node said.
    dropped: Option<u64>,
    octets: u64,
    seconds: f64,
    /// Ended by the node, at a bound that was asked for; else here.
    complete: bool,
    /// Ended by the node or the controller before any bound was reached: one of them stopped.
    cut: bool,
}

fn client_port(text: &str) -> Result<ClientPort, String> {
    let number: u8 = text
        .parse()
        .map_err(|_| "a number from 1 to 64 is wanted".to_owned())?;
    ClientPort::try_from(number).map_err(|error| error.to_string())
}

impl Capture {
    pub(super) fn run(&self, json: bool) -> Result<Outcome, Error> {
        let order = CaptureOrder {
            side: match self.side {
                SideName::Client => Side::Client,
                SideName::Line => Side::Line,
            },
            port: self.port,
            seconds: self.seconds,
            frames: self.frames,
            snap_octets: self.snap,
        };
        order.check().map_err(Error::Usage)?;
        let to_stdout = self.write == Path::new("-");
        if to_stdout && io::stdout().is_terminal() {
            return Err(Error::Usage(
                "a capture is nothing to look at in a terminal: name a file, or put `| wireshark -k -i -` behind".into(),
            ));
        }
        let report = service::block_on(self.record(&order, to_stdout))?;
        let text = self.in_words(&report);
        match (json, to_stdout) {
            (true, false) => output::json(&report)?,
            (true, true) => anstream::eprintln!("{}", serde_json::json!(report)),
            (false, _) => anstream::eprintln!("{text}"),
        }
        Ok(match report.cut {
            true => Outcome::NotAllWell,
            false => Outcome::Well,
        })
    }

    async fn record(&self, order: &CaptureOrder, to_stdout: bool) -> Result<Report, Error> {
        let (peer, path) = if is_door(&self.node) {
            (self.connection.node(&self.node)?, "/v1/capture".to_owned())
        } else {
            let node = Client::segment(&self.node);
            (
                self.connection.controller()?,
                format!("/v1/nodes/{node}/capture"),
            )
        };
        let lasts = Duration::from_secs(order.seconds.into());
        let begun = Instant::now();
        let mut flow = peer.flow(&path, order, lasts).await?;
        // Only now: a refused capture leaves no empty file and replaces none.
        let mut sink: Box<dyn Write + Send> = if to_stdout {
            Box::new(io::stdout())
        } else {
            let file =
                File::create(&self.write).map_err(|error| Error::file(&self.write, error))?;
            Box::new(BufWriter::with_capacity(
                limits::CAPTURE_BUFFER_OCTETS,
                file,
            ))
        };
        let mut blocks = Blocks::default();
        let mut octets = 0;
        let mut progress = Progress::new();
        let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
        let complete = loop {
            let piece = tokio::select! {
                piece = flow.next() => piece,
                _ = &mut interrupt => break false,
                () = tokio::time::sleep(limits::PROGRESS_EVERY) => {
                    progress.show(&blocks, octets);
                    continue;
                }
            };
            let Some(piece) = piece.map_err(Error::Door)? else {
                break true;
            };
            let whole = blocks
                .push(&piece)
                .map_err(|error| Error::file(&self.node, error))?;
            octets += whole.len() as u64;
            let written = sink.write_all(&whole).and_then(|()| sink.flush());
            match written {
                // Who looked at it has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break false,
                written => written.map_err(|error| Error::file(&self.write, error))?,
            }
            progress.show(&blocks, octets);
        };
        progress.clear();
        let early = begun.elapsed() + limits::CAPTURE_END_EARLY < lasts;
        let cut = complete && early && blocks.frames() < order.frames;
        Ok(Report {
            node: self.node.clone(),
            file: self.write.clone(),
            frames: blocks.frames(),
            dropped: blocks.dropped(),
            octets,
            seconds: begun.elapsed().as_secs_f64(),
            complete: complete && !cut,
            cut,
        })
    }

    fn in_words(&self, report: &Report) -> String {
        let frames = words::plural(report.frames, "frame");
        let missing = match report.dropped {
            Some(0) => "none is missing".to_owned(),
            Some(dropped) => output::loud(&format!(
                "{dropped} are missing: the node had no room for them"
            )),
            None => "it was ended before the node said how many are missing".to_owned(),
        };
        let ended = match (report.complete, report.cut) {
            (true, _) => String::new(),
            (false, false) => "; ended here".to_owned(),
            (false, true) => format!(
                "; {}",
                output::loud("cut short: the node or the controller stopped")
            ),
        };
        format!(
            "{}: {frames} in {:.1} s, {} in {}; {missing}{ended}",
            report.node,
            report.seconds,
            words::octets(report.octets),
            report.file.display()
        )
    }
}

/// A line on standard error that is written over again and again, where that is a terminal.
struct Progress {
    shown: Option<Instant>,
    wanted: bool,
}

impl Progress {
    fn new() -> Self {
        Self {
            shown: None,
            wanted: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self, blocks: &Blocks, octets: u64) {
        let lately = |shown: Instant| shown.elapsed() < limits::PROGRESS_EVERY;
        if !self.wanted || self.shown.is_some_and(lately) {
            return;
        }
        self.shown = Some(Instant::now());
        let dropped = match blocks.dropped() {
            None | Some(0) => String::new(),
            Some(dropped) => format!(", {} missing", words::count(dropped)),
        };
        anstream::eprint!(
            "\r{} frames, {}{dropped}; Ctrl-C ends \x1b[K",
            words::count(blocks.frames()),
            words::octets(octets)
        );
    }

    fn clear(&self) {
        if self.shown.is_some() {
            anstream::eprint!("\r\x1b[K");
        }
    }
}
