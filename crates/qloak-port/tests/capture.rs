//! Capture files: what is written reads back, here and in another program's reader; what is damaged is
//! refused with words; frames come at their pace.
//! Names of other programs stay theirs (tidy: allow packet in this file).

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use qloak_port::{
    Batch, Pace, PcapConfig, Port, PortConfig, Sizes,
    capture::{CaptureError, NgWriter, Reader, Recorded, Statistics, Way, Writer},
    open,
};

const SIZES: Sizes = Sizes {
    headroom: 32,
    octets_max: 1514,
    tailroom: 32,
};

fn written(frames: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::new(&mut file).unwrap();
    for (stamp, octets) in frames {
        writer.frame(*stamp, octets).unwrap();
    }
    writer.flush().unwrap();
    file
}

fn read(file: &[u8]) -> Result<Vec<(u64, Vec<u8>)>, CaptureError> {
    let mut reader = Reader::new(Cursor::new(file))?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next()? {
        frames.push((frame.stamp_ns, frame.octets.to_vec()));
    }
    Ok(frames)
}

fn words(file: &[u8]) -> String {
    read(file).unwrap_err().to_string()
}

#[test]
fn a_pcapng_file_of_ours_reads_back_here_and_elsewhere() {
    let mut writer = NgWriter::new("qloak test", "two interfaces");
    writer.interface("line eth0", "as protected", 65_535);
    writer.interface("client 1 c1", "in the clear", 20);
    let frames: Vec<Vec<u8>> = (60..75).map(|octets| vec![octets as u8; octets]).collect();
    let begun_ns = 1_700_000_000_123_456_789;
    for (number, octets) in (0..).zip(&frames) {
        writer.frame(&Recorded {
            interface: number % 2,
            stamp_ns: begun_ns + u64::from(number),
            way: [Way::Received, Way::Transmitted][number as usize / 2 % 2],
            wire_octets: 100 + number,
            octets,
        });
    }
    let said = [(9, 1), (8, 0)].map(|(passed, dropped)| Statistics { passed, dropped });
    (0..)
        .zip(said)
        .for_each(|(interface, statistics)| writer.statistics(interface, begun_ns, statistics));
    let file = writer.take();
    assert!(writer.is_empty());

    let mut reader = Reader::new(Cursor::new(&file)).unwrap();
    let mut number = 0;
    while reader.advance().unwrap() {
        let (frame, origin) = (reader.frame(), reader.origin());
        assert_eq!(frame.octets, frames[number]);
        assert_eq!(frame.stamp_ns, begun_ns + number as u64);
        assert_eq!(frame.wire_octets, 100 + number);
        assert_eq!(origin.interface, number % 2);
        assert_eq!(
            origin.way,
            Some([Way::Received, Way::Transmitted][number / 2 % 2])
        );
        number += 1;
    }
    assert_eq!(number, frames.len());
    let seen: Vec<_> = reader.interfaces_seen().collect();
    assert_eq!(
        seen,
        [("line eth0", Some(said[0])), ("client 1 c1", Some(said[1]))]
    );

    let mut other = pcap_file::pcapng::PcapNgReader::new(Cursor::new(&file)).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = other.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            blocks.push(packet.data.to_vec());
        }
    }
    assert_eq!(blocks, frames);
}

/// A pcapng block of either byte order.
fn block(big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let word = |word: u32| {
        if big {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    };
    let mut padded = body.to_vec();
    padded.resize(body.len().next_multiple_of(4), 0);
    let length = padded.len() as u32 + 12;
    [&word(kind)[..], &word(length), &padded, &word(length)].concat()
}

/// A pcapng file with one interface and one enhanced packet of 60 octets at `ticks`.
fn pcapng(big: bool, link_type: u16, options: &[u8], ticks: u64) -> Vec<u8> {
    let word = |word: u32| {
        if big {
            word.to_be_bytes()
        } else {
            word.to_le_bytes()
        }
    };
    let half = |half: u16| {
        if big {
            half.to_be_bytes()
        } else {
            half.to_le_bytes()
        }
    };
    let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    let interface = [&half(link_type)[..], &half(0), &word(0), options].concat();
    let head = [
        word(0),
        word((ticks >> 32) as u32),
        word(ticks as u32),
        word(60),
        word(60),
    ]
    .concat();
    [
        block(big, 0x0a0d_0d0a, &section),
        block(big, 1, &interface),
        block(big, 5, &[0; 12]),
        block(big, 6, &[&head[..], &[7; 60]].concat()),
    ]
    .concat()
}

proptest! {
    #[test]
    fn what_is_written_reads_back_here_and_elsewhere(
        frames in proptest::collection::vec(
            (0..u64::from(u32::MAX) * 1_000_000_000, proptest::collection::vec(any::<u8>(), 14..200)), 0..20),
    ) {
        let file = written(&frames);
        prop_assert_eq!(&read(&file).unwrap(), &frames);
        let mut other = pcap_file::pcap::PcapReader::new(Cursor::new(&file)).unwrap();
        for (stamp, octets) in &frames {
            let packet = other.next_packet().unwrap().unwrap();
            prop_assert_eq!(packet.timestamp, Duration::from_nanos(*stamp));
            prop_assert_eq!(&*packet.data, &octets[..]);
        }
        prop_assert!(other.next_packet().is_none());
    }

    #[test]
    fn a_file_cut_anywhere_gives_the_frames_before_and_an_error(cut in 0_usize..300) {
        let frames: Vec<_> = (1..4).map(|number| (number, vec![number as u8; 60])).collect();
        for file in [written(&frames), pcapng(true, 1, &[], 5)] {
            let part = &file[..cut.min(file.len())];
            match read(part) {
                Ok(_) => {}
                Err(CaptureError::Truncated { .. } | CaptureError::NotCapture { .. }) => {}
                Err(error) => prop_assert!(false, "{error}"),
            }
        }
    }

    #[test]
    fn no_octets_make_the_reader_panic(mut file in proptest::collection::vec(any::<u8>(), 0..400), form in 0..4) {
        let real = [written(&[(1, vec![1; 60])]), pcapng(true, 1, &[], 5), pcapng(false, 1, &[], 5), Vec::new()];
        let head = &real[form as usize][..real[form as usize].len().min(28)];
        file.splice(0..0, head.iter().copied());
        let _ = read(&file);
    }

    #[test]
    fn no_flipped_octet_makes_the_reader_panic(at: prop::sample::Index, value: u8, big: bool) {
        let mut file = pcapng(big, 1, &[9, 0, 1, 0, 9, 0, 0, 0], 5);
        let at = at.index(file.len());
        file[at] = value;
        let _ = read(&file);
    }
}

#[test]
fn pcapng_of_either_byte_order_and_any_resolution_is_read() {
    let at = |options: &[u8], big, ticks| read(&pcapng(big, 1, options, ticks)).unwrap()[0].0;
    assert_eq!(
        read(&pcapng(false, 1, &[], 1_000_001)).unwrap(),
        [(1_000_001_000, vec![7; 60])]
    );
    assert_eq!(at(&[], true, 1_000_001), 1_000_001_000);
    assert_eq!(at(&[9, 0, 1, 0, 9, 0, 0, 0], false, 17), 17);
    assert_eq!(at(&[0, 9, 0, 1, 0x81, 0, 0, 0], true, 3), 1_500_000_000);
    let offset = [&[14, 0, 8, 0][..], &5_i64.to_le_bytes()].concat();
    assert_eq!(at(&offset, false, 1), 5_000_001_000);
    // The other reader finds the same frame.
    let file = pcapng(false, 1, &[], 1_000_001);
    let mut other = pcap_file::pcapng::PcapNgReader::new(Cursor::new(&file)).unwrap();
    let mut found = 0;
    while let Some(block) = other.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(&*packet.data, [7; 60]);
            found += 1;
        }
    }
    assert_eq!(found, 1);
}

#[test]
fn pcap_of_either_byte_order_with_microseconds_and_an_fcs_is_read() {
    let mut file = Vec::new();
    for word in [
        0xa1b2_c3d4_u32,
        0x0002_0004,
        0,
        0,
        65535,
        1 | 1 << 26 | 2 << 28,
    ] {
        file.extend(word.to_be_bytes());
    }
    for word in [3_u32, 250_000, 64, 64] {
        file.extend(word.to_be_bytes());
    }
    file.extend([7; 64]);
    assert_eq!(read(&file).unwrap(), [(3_250_000_000, vec![7; 60])]);
}

#[test]
fn errors_say_what_is_wrong() {
    assert_eq!(words(b""), "this is no pcap or pcapng file: it is empty");
    assert!(words(b"GIF89a").contains("it begins with [47, 49, 46, 38]"));
    let mut cooked = written(&[]);
    cooked[20] = 113;
    assert!(
        words(&cooked).contains("link type 113 (Linux cooked, what `any` gives), not Ethernet (1)")
    );
    assert!(words(&pcapng(false, 127, &[], 0)).contains("link type 127 (Wi-Fi)"));
    let file = written(&[(1, vec![1; 60]), (2, vec![2; 60])]);
    assert_eq!(
        words(&file[..file.len() - 1]),
        "the file is truncated: it ends within frame 2; the 1 before it are sound"
    );
    let mut huge = file.clone();
    huge[24 + 8..24 + 12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(words(&huge).contains("damaged at frame 1: a length of 4294967295 octets"));
    let mut file = pcapng(false, 1, &[], 0);
    let last = file.len() - 4;
    file[last] ^= 4;
    assert!(words(&file).contains("two lengths differ"));
}

#[test]
fn an_interface_description_that_is_too_short_is_damage() {
    let whole = pcapng(false, 1, &[], 0);
    // Behind the section header, whose octets are still in the reader's buffer.
    let (section, rest) = whole.split_at(28);
    for octets in [0, 4] {
        let file = [section, &block(false, 1, &[1, 0, 0, 0][..octets]), rest].concat();
        let wanted = format!("an interface description of {octets} octets");
        assert!(words(&file).contains(&wanted), "{}", words(&file));
    }
}

fn file(folder: &Path, name: &str, octets: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, octets).unwrap();
    path
}

fn drain(port: &mut dyn Port) -> Vec<Vec<u8>> {
    let mut batch = Batch::with_sizes(4, SIZES);
    let mut got = Vec::new();
    while !port.finished() {
        batch.clear();
        port.receive(&mut batch).unwrap();
        got.extend(batch.frames().iter().map(|frame| frame.octets().to_vec()));
    }
    got
}

#[test]
fn a_port_reads_one_file_so_often_as_asked_and_writes_another() {
    let folder = tempfile::tempdir().unwrap();
    let frames: Vec<_> = (0..7)
        .map(|number| (number, vec![number as u8; 60]))
        .collect();
    let out = folder.path().join("out.pcap");
    let config = PcapConfig {
        read: Some(file(folder.path(), "in.pcap", &written(&frames))),
        write: Some(out.clone()),
        repeat: 2,
        ..PcapConfig::default()
    };
    let mut port = open(&PortConfig::Pcap(config), &SIZES).unwrap();
    let mut twin = port.twin().unwrap();
    let got = drain(&mut *port);
    assert_eq!(got.len(), 21);
    let mut batch = Batch::with_sizes(32, SIZES);
    for frame in &got {
        assert!(batch.push(frame));
    }
    assert_eq!(twin.transmit(&mut batch).unwrap(), 21);
    let back: Vec<_> = read(&fs::read(out).unwrap())
        .unwrap()
        .into_iter()
        .map(|(_, frame)| frame)
        .collect();
    assert_eq!(back, got);
    let counters = port.counters();
    assert_eq!(
        (counters.received_frames, counters.transmitted_octets),
        (21, 21 * 60)
    );
    assert!(port.finished() && twin.finished());
}

#[test]
fn frames_that_are_cut_short_or_too_long_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut octets = written(&[
        (1, vec![1; 60]),
        (2, vec![2; 5]),
        (3, vec![3; 2000]),
        (4, vec![4; 70]),
    ]);
    // The first frame was 61 octets on the wire.
    octets[24 + 12] = 61;
    let config = PcapConfig {
        read: Some(file(folder.path(), "in.pcap", &octets)),
        ..PcapConfig::default()
    };
    let mut port = open(&PortConfig::Pcap(config), &SIZES).unwrap();
    assert_eq!(drain(&mut *port), [vec![4; 70]]);
    assert_eq!(port.counters().malformed, 3);
}

#[test]
fn a_paced_port_gives_no_frame_before_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let frames = [
        (1_000_000_000, vec![1; 60]),
        (1_030_000_000, vec![2; 60]),
        (1_020_000_000, vec![3; 60]),
    ];
    let path = file(folder.path(), "in.pcap", &written(&frames));
    for pace in [Pace::Captured, Pace::FramesPerSecond(66.0)] {
        let config = PcapConfig {
            read: Some(path.clone()),
            pace,
            ..PcapConfig::default()
        };
        let mut port = open(&PortConfig::Pcap(config), &SIZES).unwrap();
        let begin = Instant::now();
        assert_eq!(drain(&mut *port).len(), 3);
        assert!(begin.elapsed() >= Duration::from_millis(30));
    }
}

#[test]
fn bad_files_and_settings_are_refused_with_words() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |config: PcapConfig| {
        open(&PortConfig::Pcap(config), &SIZES)
            .err()
            .unwrap()
            .to_string()
    };
    let reading = |path: PathBuf| PcapConfig {
        read: Some(path),
        ..PcapConfig::default()
    };
    assert!(refused(PcapConfig::default()).contains("without a file"));
    assert!(
        refused(reading(folder.path().join("none.pcap")))
            .contains("none.pcap: cannot open the file")
    );
    let text = file(folder.path(), "text", b"hello");
    assert!(refused(reading(text.clone())).contains("no pcap or pcapng file"));
    let both = PcapConfig {
        write: Some(text.clone()),
        ..reading(text.clone())
    };
    assert!(refused(both).contains("two files"));
    let pace = PcapConfig {
        pace: Pace::FramesPerSecond(f64::NAN),
        ..reading(text)
    };
    assert!(refused(pace).contains("NaN frames per second"));
    // Damage behind the first frame shows when it is reached; the frames before it come.
    let octets = written(&[(1, vec![1; 60]), (2, vec![2; 60])]);
    let path = file(folder.path(), "cut.pcap", &octets[..octets.len() - 1]);
    let mut port = open(&PortConfig::Pcap(reading(path)), &SIZES).unwrap();
    let mut batch = Batch::with_sizes(4, SIZES);
    let error = port.receive(&mut batch).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("cut.pcap: the file is truncated"),
        "{error}"
    );
    assert_eq!((batch.len(), port.finished()), (1, true));
    let too_long = Sizes {
        octets_max: 100_000,
        ..SIZES
    };
    let error = open(&PortConfig::Pcap(PcapConfig::default()), &too_long)
        .err()
        .unwrap();
    assert!(error.to_string().contains("100000 octets"));
}
