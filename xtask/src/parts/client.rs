//! Records a client port's traffic, whole frames and both ways, until a small file is full: what the
//! demo without root feeds its client ports with (`lab/traffic.pcap`).

use std::{
    io::{self, Read},
    path::PathBuf,
    sync::mpsc::{TryRecvError, channel},
    thread,
};

use super::raw::Line;
use crate::{
    pcap::Writer,
    ui::{self, Context, Done},
};

/// Octets of frames that the file takes: it lives in the repository.
const OCTETS_MAX: usize = 240 * 1024;

/// Longest frame of a client port.
const FRAME_OCTETS_MAX: usize = 1514;

/// Where and what.
#[derive(clap::Args)]
pub(crate) struct ClientArguments {
    /// The interface.
    #[arg(long)]
    interface: String,
    /// The file.
    #[arg(long)]
    record: PathBuf,
}

/// Records until the file is full or standard input closes.
pub(super) fn run(arguments: &ClientArguments) -> Done {
    let mut line = Line::open(&arguments.interface).cannot(format_args!(
        "open a packet socket on {}",
        arguments.interface
    ))?;
    line.listen(true)?;
    let mut record = Writer::create(&arguments.record, FRAME_OCTETS_MAX)
        .cannot(format_args!("write {}", arguments.record.display()))?;
    ui::line("{\"ready\":true}");
    let (sender, closed) = channel::<()>();
    thread::spawn(move || {
        let mut rest = Vec::new();
        // Whatever ends the input ends the record.
        let _ = io::stdin().read_to_end(&mut rest);
        drop(sender);
    });
    let mut room = vec![0; 1 << 16];
    let mut octets = 0;
    while octets < OCTETS_MAX && closed.try_recv() == Err(TryRecvError::Empty) {
        if let Some(length) = line.receive(&mut room)? {
            record.frame(&room[..length]).cannot("write the record")?;
            octets += length;
        }
    }
    record.finish().cannot("finish the record")
}
