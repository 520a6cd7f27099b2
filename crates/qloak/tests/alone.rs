//! What the binary does without any other program running.

mod common;

use std::{fs, path::Path};

use common::{frame, qloak, read_pcap, run, write_pcap};
use tempfile::tempdir;

#[test]
fn help_names_every_command_and_the_exit_codes() {
    let folder = tempdir().unwrap();
    let help = run(folder.path(), "--help").well();
    for word in [
        "node",
        "kms",
        "controller",
        "pki",
        "status",
        "suite",
        "key",
        "top",
        "capture",
        "protect",
        "validate",
        "completions",
        "man",
        "Exit codes:",
        "cli.toml",
    ] {
        assert!(help.contains(word), "{word}");
    }
    run(folder.path(), "statsu").fails(2, &["similar", "status"]);
    run(folder.path(), "node").fails(2, &["--config"]);
}

#[test]
fn the_library_of_this_machine_has_19_suites_and_apart_the_hazmat_ones() {
    let folder = tempdir().unwrap();
    let suites = run(folder.path(), "suite list --json").json();
    let suites = suites.as_array().unwrap();
    let hazmat = |suite: &&serde_json::Value| suite["hazmat"].as_bool().unwrap();
    assert_eq!(suites.iter().filter(|suite| !hazmat(suite)).count(), 19);
    assert_eq!(suites.iter().filter(hazmat).count(), 12);
    assert!(suites.iter().all(|suite| suite["self_test_passed"] == true));
    let text = run(folder.path(), "suite list --about").well();
    let (aead, rest) = text.split_once("12 hazmat suites").unwrap();
    assert!(
        aead.starts_with("19 authenticated suites of this machine"),
        "{text}"
    );
    assert!(aead.contains("serpent-256-ocb") && !aead.contains("xor"));
    assert!(rest.contains("raw-block-aes-256") && rest.contains("All 31 met their known answers."));
    // No colours where nobody looks.
    assert!(!text.contains('\x1b'));
}

#[test]
fn certificates_of_a_lab_are_made_shown_and_not_overwritten() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    let init = "pki init --dir pki --node node-a --node node-b --kms kms-a --controller controller --operator admin";
    let text = run(
        path,
        &format!("{init} --host node-a=192.0.2.1 --host lab.example"),
    )
    .well();
    assert!(
        text.contains("5 certificates under pki/ca.pem") && text.contains("QLOAK_AS=admin"),
        "{text}"
    );
    let shown = run(path, "pki show pki/node-a.pem --json").json();
    assert_eq!(shown[0]["name"], "node-a");
    assert_eq!(shown[0]["role"], "node");
    let hosts: Vec<_> = shown[0]["good_for"]
        .as_array()
        .unwrap()
        .iter()
        .map(|host| host.as_str().unwrap())
        .collect();
    assert_eq!(
        hosts,
        [
            "node-a",
            "localhost",
            "127.0.0.1",
            "::1",
            "192.0.2.1",
            "lab.example"
        ]
    );
    let shown = run(path, "pki show pki/ca.pem").well();
    assert!(
        shown.contains("certificate authority") && shown.contains("days left"),
        "{shown}"
    );
    let other = run(path, "pki show pki/node-b.pem").well();
    assert!(!other.contains("192.0.2.1") && other.contains("lab.example"));

    run(path, init).fails(
        3,
        &["pki/ca.pem", "there is a CA already", "--add", "--force"],
    );
    let before = fs::read(path.join("pki/ca.pem")).unwrap();
    let added = run(
        path,
        "pki init --dir pki --node node-a --node node-c --add --json",
    )
    .json();
    assert_eq!(added["certificates"][0]["new"], false);
    assert_eq!(added["certificates"][1]["new"], true);
    assert_eq!(fs::read(path.join("pki/ca.pem")).unwrap(), before);
    run(path, &format!("{init} --force")).well();
    assert_ne!(fs::read(path.join("pki/ca.pem")).unwrap(), before);

    run(path, "pki show pki/node-a.key").fails(3, &["private key, which is not shown"]);
    run(path, "pki show none.pem").fails(3, &["none.pem"]);
    fs::write(path.join("text"), "hello").unwrap();
    run(path, "pki show text").fails(3, &["holds no certificate"]);
    run(path, "pki init --dir p2").fails(2, &["--node"]);
    run(path, "pki init --dir p2 --node a --kms a").fails(2, &["given twice"]);
    run(path, "pki init --dir p2 --node node-a --host nodea=1.2.3.4")
        .fails(5, &["did you mean node-a?"]);
    run(path, "pki init --dir p2 --node ../x").fails(3, &["is no name for a certificate"]);
}

#[test]
fn an_unknown_connection_says_what_to_set_and_where() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    run(path, "status").fails(
        2,
        &["--controller", "QLOAK_CONTROLLER", "config/qloak/cli.toml"],
    );
    run(path, "status --controller https://127.0.0.1:1").fails(2, &["--pki", "QLOAK_PKI"]);
    run(path, "status --controller https://127.0.0.1:1 --pki pki").fails(2, &["--as", "QLOAK_AS"]);
    run(path, "pki init --dir config/qloak/pki --operator admin").well();
    run(
        path,
        "status --controller https://127.0.0.1:1 --pki config/qloak/pki --as admni",
    )
    .fails(3, &["admni.pem"]);
    run(
        path,
        "status --controller 127.0.0.1:1 --pki config/qloak/pki --as admin",
    )
    .fails(2, &["https://"]);
    // All three from the file; the folder is meant from where the file is.
    let file = path.join("config/qloak/cli.toml");
    fs::write(
        &file,
        "pki = \"pki\"\nas = \"admin\"\ncontroller = \"https://127.0.0.1:1\"\n",
    )
    .unwrap();
    run(path, "status").fails(
        4,
        &["https://127.0.0.1:1", "unreachable", "qloak controller -c"],
    );
    let json = run(path, "status --json").fails(4, &["\"exit_code\":4"]);
    assert!(
        serde_json::from_str::<serde_json::Value>(&json).is_ok(),
        "{json}"
    );
    // The environment goes before the file.
    let output = qloak(path)
        .arg("status")
        .env("QLOAK_CONTROLLER", "https://127.0.0.1:2")
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("127.0.0.1:2"));
    fs::write(&file, "contoller = \"x\"\n").unwrap();
    run(path, "status").fails(
        3,
        &["cli.toml", "contoller", "allowed are: pki, as, controller"],
    );
}

const SAK: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn capture(path: &Path) -> Vec<Vec<u8>> {
    let frames: Vec<_> = (0..20)
        .map(|number| frame(60 + usize::from(number) * 70, number))
        .collect();
    write_pcap(&path.join("in.pcap"), &frames);
    frames
}

#[test]
fn a_capture_is_protected_and_validated_with_every_form_of_packet_number() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    let frames = capture(path);
    fs::write(path.join("pn32"), SAK).unwrap();
    fs::write(
        path.join("xpn"),
        format!("# lab key\n{SAK}\n000102030405060708090a0b\n"),
    )
    .unwrap();
    for (suite, keys) in [
        ("aes-256-gcm", "pn32"),
        ("aes-256-gcm", "xpn"),
        ("serpent-256-ocb", "xpn"),
        ("chacha20-poly1305", "xpn"),
    ] {
        let words =
            format!("--suite {suite} --sak-file {keys} --sci 02:51:4c:00:00:0a/1 --an 2 --force");
        let text = run(path, &format!("protect {words} in.pcap line.pcap")).well();
        assert!(text.contains("20 of 20 frames protected"), "{text}");
        let line = read_pcap(&path.join("line.pcap"));
        assert!(line.iter().all(|frame| frame[12..14] == [0x88, 0xe5]));
        assert_eq!(line[3].len(), frames[3].len() + 32);
        run(path, &format!("validate {words} line.pcap out.pcap")).well();
        assert_eq!(read_pcap(&path.join("out.pcap")), frames, "{suite} {keys}");
    }
}

#[test]
fn what_is_not_valid_is_counted_and_not_written() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    let frames = capture(path);
    fs::write(path.join("sak"), SAK).unwrap();
    let words = "--suite aes-256-gcm --sak-file sak --sci 02:51:4c:00:00:0a/1";
    run(path, &format!("protect {words} in.pcap line.pcap")).well();
    let mut line = read_pcap(&path.join("line.pcap"));
    line[4][40] ^= 1;
    line.push(line[7].clone());
    line.push(frame(80, 1));
    write_pcap(&path.join("line.pcap"), &line);
    let ended = run(path, &format!("validate {words} line.pcap out.pcap"));
    assert_eq!(ended.code, 6);
    for words in [
        "19 of 22 frames valid",
        "1 not valid",
        "1 replayed",
        "1 of another secure channel",
    ] {
        assert!(
            ended.out.contains(words),
            "{words} is missing in\n{}",
            ended.out
        );
    }
    let mut sound = frames;
    sound.remove(4);
    assert_eq!(read_pcap(&path.join("out.pcap")), sound);
}

#[test]
fn offline_work_refuses_what_cannot_be_and_never_shows_a_key() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    capture(path);
    fs::write(path.join("sak"), SAK).unwrap();
    fs::write(path.join("short"), &SAK[..20]).unwrap();
    fs::write(path.join("bad"), format!("{}zz", &SAK[..62])).unwrap();
    fs::write(path.join("octets"), [0xff, 0xfe]).unwrap();
    let protect = |suite: &str, key: &str, rest: &str| {
        run(
            path,
            &format!("protect --suite {suite} --sak-file {key} --sci 02:51:4c:00:00:0a/1 {rest}"),
        )
    };
    protect("aes-265-gcm", "sak", "in.pcap out.pcap").fails(5, &["did you mean aes-256-gcm"]);
    protect("aes-256-gcm", "none", "in.pcap out.pcap").fails(3, &["none: the SAK file"]);
    protect("aes-256-gcm", "octets", "in.pcap out.pcap").fails(3, &["octets: the SAK file"]);
    protect("aes-256-gcm", "short", "in.pcap out.pcap").fails(3, &["has 20 characters"]);
    let error = protect("aes-256-gcm", "bad", "in.pcap out.pcap")
        .fails(3, &["no hex digit as its character 63"]);
    assert!(!error.contains("zz"), "{error}");
    for key in ["short", "bad"] {
        let error = protect("aes-256-gcm", key, "in.pcap out.pcap").fails(3, &["64 hex digits"]);
        assert!(!error.contains("0001020304"), "{error}");
    }
    protect("serpent-256-gcm", "sak", "in.pcap out.pcap")
        .fails(3, &["64-bit packet numbers", "salt"]);
    protect("aes-256-gcm", "sak", "in.pcap in.pcap").fails(2, &["IN and OUT are both"]);
    protect("aes-256-gcm", "sak", "sak out.pcap").fails(3, &["no pcap or pcapng file"]);
    protect("aes-256-gcm", "sak", "in.pcap out.pcap --force").well();
    protect("aes-256-gcm", "sak", "in.pcap out.pcap").fails(3, &["out.pcap", "--force"]);
    run(
        path,
        "protect --suite aes-256-gcm --sak-file sak --sci 5 in.pcap o.pcap",
    )
    .fails(2, &["02:51:4c:00:00:0a/1"]);
    protect("aes-256-gcm", "sak", "--an 4 in.pcap o.pcap").fails(2, &["4"]);
}

#[test]
fn a_run_that_fails_leaves_no_file_and_no_file_changed() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    capture(path);
    fs::write(path.join("sak"), SAK).unwrap();
    let whole = fs::read(path.join("in.pcap")).unwrap();
    fs::write(path.join("cut.pcap"), &whole[..whole.len() - 7]).unwrap();
    let words = "--suite aes-256-gcm --sak-file sak --sci 02:51:4c:00:00:0a/1";
    let names = || {
        let found = fs::read_dir(path).unwrap();
        let mut names: Vec<_> = found.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for command in ["protect", "validate"] {
        run(path, &format!("{command} {words} cut.pcap out.pcap")).fails(3, &["cut.pcap"]);
        assert_eq!(names(), before, "{command}");
    }
    run(
        path,
        &format!("protect {words} --pn 4294967290 in.pcap out.pcap"),
    )
    .fails(3, &["used up"]);
    assert_eq!(names(), before);
    run(path, &format!("protect {words} in.pcap no/such/out.pcap")).fails(3, &["no/such/out.pcap"]);
    // Corrected, it needs no --force; and with it, what was there stays until the new one is whole.
    run(path, &format!("protect {words} in.pcap out.pcap")).well();
    let good = fs::read(path.join("out.pcap")).unwrap();
    run(path, &format!("protect {words} --force cut.pcap out.pcap")).fails(3, &["cut.pcap"]);
    assert_eq!(fs::read(path.join("out.pcap")).unwrap(), good);
    run(path, &format!("protect {words} --force in.pcap /dev/null")).well();
}

#[cfg(unix)]
#[test]
fn a_sak_that_others_may_read_draws_a_warning() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempdir().unwrap();
    let path = folder.path();
    capture(path);
    fs::write(path.join("sak"), SAK).unwrap();
    for (mode, warned) in [(0o644, true), (0o600, false)] {
        fs::set_permissions(path.join("sak"), fs::Permissions::from_mode(mode)).unwrap();
        let words = "--suite aes-256-gcm --sak-file sak --sci 02:51:4c:00:00:0a/1 --force";
        let ended = run(path, &format!("protect {words} in.pcap out.pcap"));
        assert_eq!(ended.err.contains("chmod 600"), warned, "{}", ended.err);
        ended.well();
    }
}

#[test]
fn positional_arguments_stand_first_and_in_their_order() {
    let folder = tempdir().unwrap();
    for (command, names) in [
        ("suite set", &["LINK>", "CHANNEL>", "SUITE]"][..]),
        ("key rekey", &["LINK>", "CHANNEL>"]),
        ("key resize", &["SLOTS>"]),
        ("key load-outbound", &["COUNT>"]),
        ("key load-inbound", &["KEY_ID>"]),
    ] {
        let help = run(folder.path(), &format!("{command} -h")).well();
        let (_, rest) = help.split_once("Arguments:").expect(command);
        let (arguments, _) = rest.split_once("Options:").expect(command);
        let places: Vec<_> = names.iter().map(|name| arguments.find(name)).collect();
        assert!(places.is_sorted() && places[0].is_some(), "{help}");
    }
}

#[test]
fn completions_and_man_pages_come_from_the_commands() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            run(path, &format!("completions {shell}"))
                .well()
                .contains("validate"),
            "{shell}"
        );
    }
    run(path, "completions tcsh").fails(2, &["bash"]);
    let text = run(path, "man pages").well();
    assert!(text.contains("man pages/qloak.1"), "{text}");
    let page = fs::read_to_string(path.join("pages/qloak-suite-set.1")).unwrap();
    assert!(page.contains("rekey"), "{page}");
}

#[test]
fn a_bad_configuration_ends_a_program_with_the_fault_in_words() {
    let folder = tempdir().unwrap();
    let path = folder.path();
    for program in ["node", "kms", "controller"] {
        run(path, &format!("{program} -c none.toml")).fails(3, &["none.toml"]);
        fs::write(path.join("bad.toml"), "nonsense = 1\n").unwrap();
        run(path, &format!("{program} -c bad.toml")).fails(3, &["bad.toml"]);
    }
}
