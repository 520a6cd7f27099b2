//! Capture files as a port: frames come from one file and go to another.
//!
//! For replays, tests and demonstrations without privileges. A frame comes when its pace says so: at
//! once, at the distances of its stamps, or at a fixed rate. Frames that the capture cut short are
//! counted as malformed. Reading and writing files may wait for the disk: no port for a live line.

use std::{
    fs::File,
    io::{BufReader, BufWriter},
    os::fd::BorrowedFd,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    Batch, Counters, Kind, Pace, PcapConfig, Port, PortError, Sizes,
    capture::{CaptureError, Reader, Writer},
    counters::Shared,
    limits,
};

/// Capture files as a port.
pub(crate) struct PcapPort {
    name: String,
    octets_max: usize,
    source: Arc<Mutex<Option<Source>>>,
    sink: Arc<Mutex<Option<Sink>>>,
    counters: Arc<Shared>,
}

impl PcapPort {
    /// Opens the files.
    pub(crate) fn open(config: &PcapConfig, sizes: &Sizes) -> Result<Self, PortError> {
        let named = config.read.as_ref().or(config.write.as_ref());
        let name = named.map_or_else(String::new, |path| path.display().to_string());
        let source = config
            .read
            .clone()
            .map(|path| Source::open(path, config))
            .transpose()?;
        let sink = config.write.clone().map(Sink::create).transpose()?;
        Ok(Self {
            name,
            octets_max: sizes.octets_max,
            source: Arc::new(Mutex::new(source)),
            sink: Arc::new(Mutex::new(sink)),
            counters: Arc::new(Shared::default()),
        })
    }
}

impl Port for PcapPort {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> Kind {
        Kind::Pcap
    }

    fn mac(&self) -> Option<[u8; 6]> {
        None
    }

    fn receive(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let Ok(mut source) = self.source.try_lock() else {
            return Ok(0);
        };
        let Some(reader) = source.as_mut() else {
            return Ok(0);
        };
        let now = Instant::now();
        let (mut frames, mut octets) = (0, 0);
        while !batch.is_full() && reader.due(now) {
            let frame = reader.reader.frame();
            let length = frame.octets.len();
            let sound =
                !frame.is_cut() && (limits::FRAME_OCTETS_MIN..=self.octets_max).contains(&length);
            if sound && batch.push(frame.octets) {
                frames += 1;
                octets += length as u64;
            } else {
                self.counters.malformed(1);
            }
            if let Err(error) = reader.advance() {
                // What was read before is sound; the file gives no more.
                let path = reader.path.clone();
                *source = None;
                self.counters.received(frames, octets);
                return Err(PortError::Capture { path, error });
            }
        }
        if reader.at_end() {
            *source = None;
        }
        self.counters.received(frames, octets);
        Ok(frames as usize)
    }

    fn transmit(&mut self, batch: &mut Batch) -> Result<usize, PortError> {
        let Ok(mut sink) = self.sink.try_lock() else {
            return Ok(0);
        };
        let frames = batch.len();
        if let Some(sink) = sink.as_mut() {
            sink.write(batch)?;
            let octets = batch.frames().iter().map(|frame| frame.len() as u64).sum();
            self.counters.transmitted(frames as u64, octets);
        } else {
            self.counters.transmit_dropped(frames as u64);
        }
        batch.clear();
        Ok(frames)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn counters(&self) -> Counters {
        self.counters.read()
    }

    fn twin(&self) -> Result<Box<dyn Port>, PortError> {
        Ok(Box::new(Self {
            name: self.name.clone(),
            octets_max: self.octets_max,
            source: self.source.clone(),
            sink: self.sink.clone(),
            counters: self.counters.clone(),
        }))
    }

    fn finished(&self) -> bool {
        self.source.try_lock().is_ok_and(|source| source.is_none())
    }
}

/// The file that frames come from; its reader stands at the frame that comes next.
struct Source {
    path: PathBuf,
    reader: Reader<BufReader<File>>,
    pace: Pace,
    /// Times that the file is still to be read again.
    repeats_left: u64,
    /// When the frame that comes next is due; none when there is none.
    next: Option<Due>,
}

#[derive(Clone, Copy)]
enum Due {
    /// As soon as it is asked for: the first frame, and every one without pace.
    Now,
    At(Instant),
}

impl Source {
    fn open(path: PathBuf, config: &PcapConfig) -> Result<Self, PortError> {
        let mut source = Reader::open(&path).and_then(|mut reader| {
            let next = reader.advance()?.then_some(Due::Now);
            Ok(Self {
                path: path.clone(),
                reader,
                pace: config.pace,
                repeats_left: config.repeat,
                next,
            })
        });
        if let Ok(source) = &mut source
            && source.next.is_none()
        {
            // A file without frames stays one, however often it is read.
            source.repeats_left = 0;
        }
        source.map_err(|error| PortError::Capture { path, error })
    }

    /// Whether the next frame is due; fixes the time of the first.
    fn due(&mut self, now: Instant) -> bool {
        match self.next {
            None => false,
            Some(Due::At(due)) => due <= now,
            Some(Due::Now) => {
                self.next = Some(Due::At(now));
                true
            }
        }
    }

    fn at_end(&self) -> bool {
        self.next.is_none()
    }

    /// Goes to the next frame and sets when it is due.
    fn advance(&mut self) -> Result<(), CaptureError> {
        let before = self.reader.frame().stamp_ns;
        let mut gap_ns = None;
        if !self.reader.advance()? {
            if self.repeats_left == 0 {
                self.next = None;
                return Ok(());
            }
            self.repeats_left -= 1;
            self.reader = Reader::open(&self.path)?;
            if !self.reader.advance()? {
                self.next = None;
                return Ok(());
            }
            gap_ns = Some(0);
        }
        let gap = match self.pace {
            Pace::Unpaced => Duration::ZERO,
            // Stamps may go backwards (clocks are set, interfaces are merged): then there is no gap.
            Pace::Captured => Duration::from_nanos(
                gap_ns.unwrap_or_else(|| self.reader.frame().stamp_ns.saturating_sub(before)),
            ),
            Pace::FramesPerSecond(rate) => Duration::from_secs_f64(1.0 / rate),
        };
        self.next = self.next.map(|due| match due {
            Due::Now => Due::Now,
            // A gap that no clock can hold never ends: the frame waits for ever, as the file asks.
            Due::At(at) => Due::At(
                at.checked_add(gap)
                    .unwrap_or(at + Duration::from_secs(1 << 30)),
            ),
        });
        Ok(())
    }
}

/// The file that frames go to.
struct Sink {
    path: PathBuf,
    writer: Writer<BufWriter<File>>,
}

impl Sink {
    fn create(path: PathBuf) -> Result<Self, PortError> {
        match Writer::create(&path).and_then(|mut writer| writer.flush().map(|()| writer)) {
            Ok(writer) => Ok(Self { path, writer }),
            Err(error) => Err(PortError::Capture { path, error }),
        }
    }

    /// Writes a batch and hands it to the system, so that another program can read along.
    fn write(&mut self, batch: &Batch) -> Result<(), PortError> {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let stamp_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let mut done = Ok(());
        for frame in batch.frames() {
            done = done.and_then(|()| self.writer.frame(stamp_ns, frame.octets()));
        }
        done.and_then(|()| self.writer.flush())
            .map_err(|error| PortError::Capture {
                path: self.path.clone(),
                error,
            })
    }
}
