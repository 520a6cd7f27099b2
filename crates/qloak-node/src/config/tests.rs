//! The example of a configuration, changed in one place at a time.

use super::*;

const EXAMPLE: &str = include_str!("../../node.example.toml");

/// The port of the example's line.
const LINE_PORT: &str = r#"port = { kind = "af-packet", interface = "line-a" }"#;

/// The line of the example's second client port.
const NUMBER_2: &str = "number = 2\n# When";

/// Where the example first says this.
fn line_of(text: &str) -> usize {
    let before = EXAMPLE.lines().take_while(|line| !line.contains(text));
    before.count() + 1
}

fn changed(from: &str, to: &str) -> Result<Config, ConfigError> {
    assert!(EXAMPLE.contains(from), "the example has no {from:?}");
    Config::parse(&EXAMPLE.replacen(from, to, 1), Path::new(""))
}

/// Each row: what stands in the example, what is put there, and words of the error, parted by `|`.
fn refused(rows: &[(&str, &str, &str)]) {
    for (from, to, words) in rows {
        let error = changed(from, to).expect_err(to).to_string();
        for word in words.split('|') {
            assert!(error.contains(word), "{to}: {word:?} is not in {error:?}");
        }
    }
}

#[test]
fn the_example_is_valid() {
    let config = Config::parse(EXAMPLE, Path::new("/etc/qloak")).expect("valid");
    assert_eq!(config.channels.len(), 2);
    assert_eq!(config.tls.cert, Path::new("/etc/qloak/pki/node-a.pem"));
    assert_eq!(config.key_ram_slots, 512);
    assert_eq!(config.channels[0].wait_us, 20);
    assert!(config.weights.values().all(|weight| *weight == 1));
}

#[test]
fn only_the_line_may_be_recorded_unless_the_file_says_more() {
    let key = "capture = \"line\"";
    let said = |value: &str| changed(key, value).map(|config| config.capture);
    assert_eq!(said("").expect("may be left out"), CaptureSides::Line);
    assert_eq!(
        said("capture = \"off\"").expect("allowed"),
        CaptureSides::Off
    );
    assert_eq!(
        said("capture = \"both\"").expect("allowed"),
        CaptureSides::Both
    );
    refused(&[
        (key, "capture = \"client\"", "capture|`off`, `line`, `both`"),
        (key, "capture = true", "capture"),
    ]);
}

#[test]
fn an_error_names_line_key_and_what_is_allowed() {
    let suite = r#"suite = "aes-256-gcm""#;
    refused(&[
        (
            suite,
            r#"suite = "aes-256-gmc""#,
            &format!("line {}|channel.suite|aes-256-gcm", line_of(suite)),
        ),
        (suite, r#"suite = "plain""#, "hazmat"),
        (
            "frame_octets_max = 9014",
            "frame_octets_max = 90",
            "line.frame_octets_max|256 to 16000",
        ),
        (
            "packet_number_bits = 64",
            "packet_number_bits = 48",
            "32 or 64",
        ),
        (r#"peer = "node-b""#, r#"peeer = "node-b""#, "peeer"),
        (
            r#"peer = "node-b""#,
            r#"peer = "node-a""#,
            "line.peer|own name",
        ),
        (
            r#"peer_address = "02:51:4c:00:00:0b""#,
            r#"peer_address = "02:51:4c:00:00:0a""#,
            "line.peer_address|same",
        ),
        (
            r#"address = "02:51:4c:00:00:0a""#,
            r#"address = "03:51:4c:00:00:0a""#,
            "line.address|group",
        ),
        (
            r#"listen = "127.0.0.1:7443""#,
            r#"listen = "here""#,
            "listen",
        ),
        (r#"url = "https://"#, r#"url = "http://"#, "https"),
    ]);
}

#[test]
fn client_ports_channels_and_their_shares_fit_together() {
    refused(&[
        (
            r#"name = "lease""#,
            r#"name = "trunk""#,
            "channels 1 and 2|both named",
        ),
        (
            "clients = [2]",
            "clients = [1]",
            "client port 1|channel 2|both aggregated",
        ),
        (
            "clients = [2]",
            "clients = [2, 1]",
            "transparent|one client port",
        ),
        ("clients = [2]", "clients = [7]", "client port 7"),
        (
            r#"interface = "c2""#,
            r#"interface = "c1""#,
            "client.port|client port 2|its own",
        ),
        (
            NUMBER_2,
            "number = 2\nweight = 0\n# When",
            "client.weight|1 to 64",
        ),
        (
            "clients = [1]",
            "clients = [1]\nwait_us = 1001",
            "channel.wait_us|0 to 1000",
        ),
        (
            "clients = [2]",
            "clients = [2]\nwait_us = 20",
            "channel.wait_us|aggregated",
        ),
        (
            "clients = [1]",
            "clients = [1]\nconstant_rate_bps = 100000000\nwait_us = 20",
            "channel.wait_us|constant rate",
        ),
        (
            "clients = [1]",
            "clients = [1]\nconstant_rate_bps = 99999999",
            "channel.constant_rate_bps|100000000 to 400000000000",
        ),
        (
            "clients = [2]",
            "clients = [2]\nconstant_rate_bps = 1000000",
            "channel.constant_rate_bps|aggregated",
        ),
    ]);
    let config = changed("clients = [1]", "clients = [1]\nwait_us = 0").expect("valid");
    assert_eq!(config.channels[0].wait_us, 0);
    let config = changed(NUMBER_2, "number = 2\nweight = 64\n# When").expect("valid");
    assert!(config.weights.into_values().eq([1, 64]));
}

#[test]
fn a_line_can_be_af_xdp_and_impaired() {
    let line = r#"port = { kind = "af-xdp", interface = "line-a", modes = ["skb"], busy_poll = { microseconds = 20, frames = 64 } }
impairment = { seed = 7, transmit = { loss = 0.5, delay_us = 3 }, receive = { loss = { to_bad = 0.1, to_good = 0.2 } } }"#;
    let config = changed(LINE_PORT, line).expect("valid");
    let PortConfig::Impaired(line) = &config.line.lanes[0] else {
        panic!("another kind of port")
    };
    let PortConfig::AfXdp(xdp) = &line.port else {
        panic!("another kind of port")
    };
    assert_eq!(xdp.modes, [qloak_port::XdpMode::Skb]);
    assert!(xdp.fallback && xdp.busy_poll.is_some_and(|poll| poll.frames == 64));
    let faults = &line.impairment.transmit;
    assert_eq!(
        faults.loss,
        qloak_port::Loss::Independent { probability: 0.5 }
    );
    assert_eq!(faults.delay.fixed_ns, 3000);
    assert!(matches!(
        line.impairment.receive.loss,
        qloak_port::Loss::Spells(spells) if spells.lost_in_bad == 1.0
    ));
    let impaired = |table: &str| format!("{LINE_PORT}\nimpairment = {{ {table} }}");
    refused(&[
        (LINE_PORT, &impaired("transmit = { los = 1 }"), "los"),
        (
            LINE_PORT,
            &impaired("transmit = { loss = 2 }"),
            "line.impairment|2|0 to 1",
        ),
    ]);
}

#[test]
fn a_line_can_have_several_lanes() {
    let lane = |name: &str| format!(r#"{{ kind = "af-packet", interface = "{name}" }}"#);
    let lanes = |names: &[&str]| {
        let lanes: Vec<_> = names.iter().map(|name| lane(name)).collect();
        format!("lanes = [{}]\n", lanes.join(", "))
    };
    let config = changed(LINE_PORT, &lanes(&["l0", "l1", "l2"])).expect("valid");
    assert_eq!(config.line.lanes.len(), 3);
    assert_eq!(config.line.lane_hold_us, 500);
    let many: Vec<_> = (0..17).map(|lane| format!("l{lane}")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    refused(&[
        (LINE_PORT, "", "line`|`port` or `lanes`"),
        (LINE_PORT, "lanes = []", "line`|`port` or `lanes`"),
        (
            LINE_PORT,
            &format!("{LINE_PORT}\n{}", lanes(&["l0"])),
            "one of them",
        ),
        (
            LINE_PORT,
            &lanes(&["l0", "l0"]),
            "line 32|line.lanes|l0|twice",
        ),
        (
            LINE_PORT,
            &lanes(&["l0", "c1"]),
            "client.port|client port 1|in use",
        ),
        (
            LINE_PORT,
            &lanes(&["l0", "a/b"]),
            "line.lanes|the name of an interface",
        ),
        (LINE_PORT, &lanes(&many), "line.lanes|17 are given|16"),
        (
            LINE_PORT,
            &format!("{}lane_hold_us = 0", lanes(&["l0", "l1"])),
            "line.lane_hold_us|1 to 20000",
        ),
        (
            LINE_PORT,
            &format!("{}drain_us = 999", lanes(&["l0", "l1"])),
            "line.drain_us|999 is given|500 us late|lane_hold_us",
        ),
    ]);
}

#[test]
fn an_old_sa_is_accepted_for_as_long_as_frames_under_it_may_wait() {
    let drained = |us: &str| format!("{LINE_PORT}\ndrain_us = {us}");
    let config = changed(LINE_PORT, &drained("2000")).expect("valid");
    assert_eq!(config.line.drain_us, 2000);
    refused(&[(LINE_PORT, &drained("199"), "line.drain_us|200 to 1000000")]);
    let rate = "# constant_rate_bps = 1000000000";
    let slow = EXAMPLE.replace(rate, "constant_rate_bps = 100000000");
    let text = slow.replacen(LINE_PORT, &drained("40000"), 1);
    let error = Config::parse(&text, Path::new("")).expect_err("too short");
    let error = error.to_string();
    for word in ["line.drain_us", "channel 1", "24518 us"] {
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn what_a_port_cannot_be_is_said_with_its_line() {
    let rows = [
        (r#""tap", interface = "much-too-long-a-name""#, "1 to 15"),
        (r#""tap", interface = "t0", mtu = 60"#, "60 octets|68 to"),
        (r#""tap", interface = "t0", namespace = "a/b""#, "ip netns"),
        (
            r#""af-packet", interface = "v0", ring_octets = 5"#,
            "5 octets|65536 to 1073741824",
        ),
        (
            r#""af-xdp", interface = "v0", frames = 1000"#,
            "power of two",
        ),
        (r#""af-xdp", interface = "v0", modes = []"#, "zero-copy"),
        (
            r#""af-xdp", interface = "v0", modes = ["fast"]"#,
            "zero-copy",
        ),
        (
            r#""af-xdp", interface = "v0", busy_poll = { microseconds = 0, frames = 64 }"#,
            "0 us|1 to 10000",
        ),
        (
            r#""memory", wire = "w", end = "a", frames = 0"#,
            "1 to 65536",
        ),
        (
            r#""memory", wire = "w", end = "a", frames = 65537"#,
            "1 to 65536",
        ),
        (r#""pcap""#, "`read`, `write`"),
        (r#""pcap", read = "x", write = "x""#, "two files"),
        (r#""pcap", read = "x", pace = 0.0"#, "0.001"),
    ];
    for (table, words) in rows {
        let port = format!("port = {{ kind = {table} }}");
        let words = format!("line 32|port`|{words}");
        refused(&[(LINE_PORT, &port, &words)]);
    }
    let client = "port = { kind = \"tap\", interface = \"c1\"";
    refused(&[(
        client,
        &client.replace("c1", "c%d"),
        "client.port|the name of an interface",
    )]);
}

#[test]
fn threads_and_their_cores_fit_the_machine() {
    const TABLE: &str = "# [pipeline]\n";
    let pipeline = |lines: &str| format!("[pipeline]\n{lines}\n");
    let read = |lines: &str| changed(TABLE, &pipeline(lines)).map(|config| config.pipeline);
    assert_eq!(
        changed("", "").expect("valid").pipeline,
        Pipeline::default()
    );
    let core = crate::cores::usable().expect("cores")[0];
    let one = read(&format!("threads = 1\ncores = [{core}]\nbusy_poll = true")).expect("valid");
    assert_eq!(
        (one.threads, one.core(0), one.busy_poll),
        (1, Some(core), true)
    );
    let shared = read(&format!("cores = [{core}]")).expect("valid");
    assert_eq!((shared.threads, shared.core(1)), (2, Some(core)));
    let wrong = [
        (
            "cores = [4096]",
            "line 13|pipeline.cores|core 4096|may use".to_owned(),
        ),
        ("cores = []", "pipeline.cores|0 are given|1 or 2".to_owned()),
        (
            "cores = [0, 1, 2]",
            "pipeline.cores|3 are given|threads = 2".to_owned(),
        ),
        (
            "threads = 1\ncores = [0, 1]",
            "line 14|pipeline.cores|threads = 1".to_owned(),
        ),
        ("cores = [0, 0]", "pipeline.cores|core 0|twice".to_owned()),
        ("cores = [-1]", "line 13|cores".to_owned()),
        (
            "threads = 3",
            "pipeline.threads|3 is given|1 to 2".to_owned(),
        ),
        ("busy_pol = true", "busy_pol".to_owned()),
    ];
    for (lines, words) in &wrong {
        refused(&[(TABLE, &pipeline(lines), words)]);
    }
    let awake = pipeline(&format!("cores = [{core}]\nbusy_poll = true"));
    refused(&[(TABLE, &awake, "pipeline.cores|never sleep|two cores")]);
}

#[test]
fn a_memory_wire_says_how_many_frames_it_holds() {
    for (frames, held) in [
        ("", 4096),
        (", frames = 1", 1),
        (", frames = 65536", 65_536),
    ] {
        let port = format!(r#"port = {{ kind = "memory", wire = "line", end = "a"{frames} }}"#);
        let config = changed(LINE_PORT, &port).expect("valid");
        let PortConfig::Memory(wire) = &config.line.lanes[0] else {
            panic!("another kind of port")
        };
        assert_eq!(wire.frames, held);
    }
}

/// Any number of ports read one file and write to nowhere; a file that is written is one port's.
#[test]
fn captures_are_shared_where_they_can_be() {
    let (one, two) = (
        r#"port = { kind = "tap", interface = "c1", mtu = 1500 }"#,
        r#"port = { kind = "tap", interface = "c2", mtu = 1500 }"#,
    );
    for (write, fine) in [("/dev/null", true), ("out.pcap", false)] {
        let pcap = format!(r#"port = {{ kind = "pcap", read = "in.pcap", write = "{write}" }}"#);
        let text = EXAMPLE.replacen(one, &pcap, 1).replacen(two, &pcap, 1);
        let parsed = Config::parse(&text, Path::new(""));
        assert_eq!(parsed.is_ok(), fine, "{write}");
    }
}

#[test]
fn what_is_hazmat_and_what_is_not_is_told_apart() {
    refused(&[
        ("hazmat = []", r#"hazmat = ["xorr"]"#, "xorr|plain"),
        (
            "hazmat = []",
            r#"hazmat = ["aes-256-gcm"]"#,
            "authenticates",
        ),
    ]);
    let error = changed("hazmat = []", r#"hazmat = ["xorr"]"#).expect_err("no such suite");
    assert!(!error.to_string().contains("gcm"), "{error}");
}

#[test]
fn a_file_that_is_no_configuration_is_refused() {
    assert!(Config::parse("\u{1}\u{2}", Path::new("")).is_err());
    assert!(Config::parse("", Path::new("")).is_err());
    let missing = Config::read(Path::new("no/such/node.toml")).expect_err("missing");
    assert!(missing.to_string().contains("no/such/node.toml"));
}

mod shared;
