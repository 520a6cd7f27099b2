//! Capture files protected and validated offline.

use std::path::Path;

use qloak_api::{An, Sci};
use qloak_cipher::suite::Suite;
use qloak_keys::Key;
use qloak_node::offline::{self, Job, OfflineError};
use qloak_port::capture::{Reader, Writer};

fn job(suite: &str, key_octet: u8, salt: Option<[u8; 12]>) -> Job {
    let suite = Suite::by_name(suite).expect("in the table");
    Job {
        suite,
        sak: Key::from_slice(&vec![key_octet; suite.key_octets]).expect("a key"),
        salt,
        sci: "02:51:4c:00:00:0a/1".parse::<Sci>().expect("an SCI"),
        an: An::from_low_bits(2),
        first_pn: 1,
    }
}

fn capture(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    let mut reader = Reader::open(path).expect("a capture");
    while let Some(frame) = reader.next().expect("sound") {
        frames.push((frame.stamp_ns, frame.octets.to_vec()));
    }
    frames
}

fn write(path: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut writer = Writer::create(path).expect("a file");
    let frames: Vec<_> = [60usize, 61, 1500, 9000]
        .iter()
        .map(|&octets| {
            (
                1_700_000_000_000_000_000 + octets as u64,
                (0..octets).map(|at| at as u8 & 0xfe).collect(),
            )
        })
        .collect();
    for (stamp_ns, octets) in &frames {
        let octets: &Vec<u8> = octets;
        writer.frame(*stamp_ns, octets).expect("written");
    }
    writer.flush().expect("written");
    frames
}

#[test]
fn what_was_protected_is_validated_to_the_same_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let [clear, line, back] =
        ["clear.pcap", "line.pcap", "back.pcap"].map(|name| folder.path().join(name));
    let frames = write(&clear);
    for (suite, salt) in [
        ("aes-256-gcm", None),
        ("aes-256-gcm", Some([7; 12])),
        ("serpent-256-ocb", Some([9; 12])),
    ] {
        let report = offline::protect(job(suite, 1, salt), &clear, &line).expect("protected");
        assert_eq!((report.frames_in, report.frames_out), (4, 4));
        for ((_, plain), (_, sealed)) in frames.iter().zip(capture(&line)) {
            assert_eq!(sealed[12..14], [0x88, 0xe5]);
            assert_eq!(sealed.len(), plain.len() + 32);
        }
        let report = offline::validate(job(suite, 1, salt), &line, &back).expect("validated");
        assert_eq!((report.frames_out, report.verdicts.ok), (4, 4));
        assert_eq!(capture(&back), frames, "{suite}");

        let report = offline::validate(job(suite, 2, salt), &line, &back).expect("read");
        assert_eq!(
            (report.frames_out, report.verdicts.not_valid),
            (0, 4),
            "a wrong SAK opens nothing"
        );
    }
    let report = offline::validate(job("aes-256-gcm", 1, None), &clear, &back).expect("read");
    assert_eq!(
        (report.frames_out, report.foreign),
        (0, 4),
        "frames that nobody protected"
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let (clear, out) = (
        folder.path().join("clear.pcap"),
        folder.path().join("out.pcap"),
    );
    write(&clear);
    let text =
        |result: Result<offline::Report, OfflineError>| result.expect_err("refused").to_string();
    let no_salt = text(offline::protect(
        job("camellia-256-gcm", 1, None),
        &clear,
        &out,
    ));
    assert!(no_salt.contains("needs 64-bit"), "{no_salt}");
    let mut odd = job("aes-256-gcm", 1, None);
    odd.sak = Key::from_slice(&[1; 16]).expect("a key");
    let short = text(offline::protect(odd, &clear, &out));
    assert!(
        short.contains("16 octets") && short.contains("32"),
        "{short}"
    );
    let mut last = job("aes-256-gcm", 1, None);
    last.first_pn = u64::from(u32::MAX);
    let spent = text(offline::protect(last, &clear, &out));
    assert!(spent.contains("used up (frames protected: 1)"), "{spent}");
    let missing = text(offline::protect(
        job("aes-256-gcm", 1, None),
        Path::new("no/such.pcap"),
        &out,
    ));
    assert!(missing.contains("no/such.pcap"), "{missing}");
    std::fs::write(&clear, b"GIF89a, not frames").expect("written");
    let none = text(offline::protect(job("aes-256-gcm", 1, None), &clear, &out));
    assert!(none.contains("no pcap or pcapng"), "{none}");
    let mut group = job("aes-256-gcm", 1, None);
    group.sci = "03:00:00:00:00:00/1".parse().expect("an SCI");
    write(&clear);
    assert!(offline::protect(group, &clear, &out).is_err());
}
