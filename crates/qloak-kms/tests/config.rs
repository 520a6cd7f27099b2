//! A configuration at fault is told with its line, its key and what is allowed.

use std::{fs, path::Path};

use qloak_kms::{Config, config::End};

const EXAMPLE: &str = include_str!("../kms.example.toml");

fn told(text: &str) -> String {
    Config::parse(text, Path::new(""))
        .expect_err("refused")
        .to_string()
}

#[test]
fn the_example_is_valid_and_names_every_key() {
    let config = Config::parse(EXAMPLE, Path::new("/lab")).unwrap();
    assert_eq!(
        (config.kme_id.as_str(), config.listen.port()),
        ("kms-a", 7101)
    );
    assert_eq!(config.tls.cert, Path::new("/lab/pki/kms-a.pem"));
    assert_eq!(config.ledger, Path::new("/lab/kms-a.sqlite"));
    let End::Alice { fibre, rate_factor } = config.links[0].end else {
        panic!("alice")
    };
    assert_eq!(
        (fibre.length_km(), fibre.loss_db(), rate_factor),
        (0.5, 5.19, 1.0)
    );
    // The defaults are what the example says.
    let keys = EXAMPLE
        .split("[keys]")
        .nth(1)
        .unwrap()
        .split("[[link]]")
        .next()
        .unwrap();
    let without = Config::parse(&EXAMPLE.replace(keys, "\n"), Path::new("")).unwrap();
    assert_eq!(without.keys, config.keys);
}

#[test]
fn faults_name_line_key_and_what_is_allowed() {
    // What is replaced in the example, by what, and what the message must contain.
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "kme_id = \"kms-a\"",
            "kme_id = \"\"",
            &["line 5", "`kme_id`", "1 to 128 octets"],
        ),
        ("kme_id = \"kms-a\"", "", &["missing field `kme_id`"]),
        (
            "kme_id = \"kms-a\"",
            "kme = \"kms-a\"",
            &["line 5, key `kme`", "unknown field `kme`"],
        ),
        (
            "\"127.0.0.1:7101\"",
            "\"localhost\"",
            &["`listen`", "127.0.0.1:7101"],
        ),
        ("saes = [\"node-a\"]", "saes = []", &["`saes`", "1 to 1024"]),
        (
            "saes = [\"node-a\"]",
            "saes = [\"node-a\", \"node-a\"]",
            &["`saes`", "twice"],
        ),
        (
            "saes = [\"node-a\"]",
            "saes = [\"a\\u0000\"]",
            &["`saes`", "128 octets"],
        ),
        (
            "size_bits = 256",
            "size_bits = 255",
            &["`keys.size_bits`", "multiples of 8"],
        ),
        (
            "size_bits = 256",
            "size_bits = 32",
            &["`keys.size_bits`", "64 to 1024"],
        ),
        (
            "size_bits = 256",
            "size_bits = \"256\"",
            &["line", "key `keys.size_bits`", "expected i64"],
        ),
        (
            "size_bits_min = 64",
            "size_bits_min = 512",
            &["`keys.size_bits", "size_bits_min <= size_bits"],
        ),
        (
            "size_bits_max = 1024",
            "size_bits_max = 128",
            &["`keys.size_bits", "<= size_bits_max"],
        ),
        (
            "per_request_max = 128",
            "per_request_max = 0",
            &["`keys.per_request_max`", "1 to 1024"],
        ),
        (
            "store_max = 4096",
            "store_max = -1",
            &["`keys.store_max`", "16 to 65536"],
        ),
        (
            "additional_saes_max = 8",
            "additional_saes_max = 65",
            &["0 to 64"],
        ),
        (
            "unfetched_s_max = 3600",
            "unfetched_s_max = 1",
            &["10 to 604800"],
        ),
        (
            "name = \"metro\"",
            "name = \"a b\"",
            &["`link.name`", "1 to 64 letters"],
        ),
        (
            "peer = \"kms-b\"",
            "peer = \"kms-a\"",
            &["no link to itself"],
        ),
        (
            "\"https://127.0.0.1:7102\"",
            "\"http://127.0.0.1:7102\"",
            &["`link.peer_url`", "https://"],
        ),
        (
            "peer_saes = [\"node-b\"]",
            "peer_saes = [\"node-a\"]",
            &["`link.peer_saes`", "one KME"],
        ),
        (
            "role = \"alice\"",
            "role = \"bob\"",
            &["`link.emulated`", "only alice"],
        ),
        (
            "role = \"alice\"",
            "role = \"eve\"",
            &["`link.role`", "neither"],
        ),
        ("emulated = {", "# {", &["`link.role`", "length_km"]),
        (
            "loss_db = 5.19",
            "loss_db = 61.0",
            &["`link.emulated`", "0 to 60 dB"],
        ),
        (
            "loss_db = 5.19",
            "loss_db = 20.0",
            &["`link.emulated`", "no secret key"],
        ),
        (
            "loss_db = 5.19",
            "loss_db = nan",
            &["`link.emulated`", "0 to 60 dB"],
        ),
        (
            "rate_factor = 1.0",
            "rate_factor = 0.0",
            &["`link.emulated`", "1 is physics"],
        ),
        (
            "rate_factor = 1.0",
            "speed = 1.0",
            &["key `link.emulated`", "unknown field `speed`"],
        ),
        ("[[link]]", "[link]", &["line"]),
        ("[ledger]", "[ledger", &["line"]),
    ];
    for (from, to, says) in cases {
        assert!(EXAMPLE.contains(from), "{from}");
        let message = told(&EXAMPLE.replacen(from, to, 1));
        for part in *says {
            assert!(message.contains(part), "{to}: {message}");
        }
    }
    let link = EXAMPLE.split("[[link]]").nth(1).unwrap();
    let message = told(&format!("{EXAMPLE}\n[[link]]{link}"));
    assert!(message.contains("another link has this name"), "{message}");
    let other = link.replace("metro", "other");
    let message = told(&format!("{EXAMPLE}\n[[link]]{other}"));
    assert!(message.contains("one KME"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_run_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kms.toml");
    let run = async || {
        qloak_kms::run(&path, std::future::ready(()))
            .await
            .expect_err("refused")
            .to_string()
    };
    let message = run().await;
    assert!(
        message.contains("kms.toml") && message.contains("cannot be read"),
        "{message}"
    );
    fs::write(&path, "kme_id = 5").unwrap();
    let message = run().await;
    assert!(
        message.contains("kms.toml, line 1, key `kme_id`"),
        "{message}"
    );
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(run().await.contains("longer than"));
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(run().await.contains("cannot be read"));
    fs::write(&path, EXAMPLE).unwrap();
    let message = run().await;
    assert!(
        message.contains("kms-a.pem") || message.contains("ca.pem"),
        "{message}"
    );
}
