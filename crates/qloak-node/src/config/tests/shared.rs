//! Lines that more than two nodes share, and client ports that several channels do.

use super::*;

/// The example with a third node, and more to say of channel 1.
fn shared(peer: &str, channel: &str) -> Result<Config, ConfigError> {
    let text = EXAMPLE.replacen("clients = [1]", &format!("clients = [1]\n{channel}"), 1);
    let text = text.replacen("[[channel]]", &format!("{peer}\n[[channel]]"), 1);
    Config::parse(&text, Path::new(""))
}

#[test]
fn more_nodes_than_two_can_share_a_line() {
    let peer = |name: &str, address: &str| {
        format!("[[peer]]\nname = \"{name}\"\naddress = \"02:51:4c:00:00:{address}\"")
    };
    let third = peer("node-c", "0c");
    let config = shared(&third, "peer = \"node-c\"\nvlans = [10, 20]").expect("valid");
    let names: Vec<_> = config.peers().into_iter().map(|peer| peer.name).collect();
    assert_eq!(
        names.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        ["node-b", "node-c"]
    );
    assert_eq!(config.peer(&config.channels[0]).as_str(), "node-c");
    assert_eq!(config.peer(&config.channels[1]).as_str(), "node-b");
    assert_eq!(config.channels[0].vlans, [10, 20]);
    assert_eq!(config.further[0].kme.url, config.kme.url);
    let second = |more: &str| {
        format!(
            "[[channel]]\nnumber = 3\ncarriage = \"aggregated\"\nclients = [1]\nsuite = \"aes-256-gcm\"\n{more}\n{third}"
        )
    };
    // A mesh of two far nodes, and VLANs beside the rest.
    shared(&second("peer = \"node-c\""), "").expect("another far node");
    shared(&second("vlans = [7]"), "").expect("another VLAN");
    for (peers, channel, words) in [
        (
            peer("node-b", "0c"),
            "",
            "peer.name|node-b is named already",
        ),
        (
            peer("node-a", "0c"),
            "",
            "peer.name|node-a is named already",
        ),
        (peer("node-c", "0a"), "", "peer.address|another node's"),
        (
            third.clone(),
            "peer = \"node-d\"",
            "channel.peer|node-d is no far node|node-b, node-c",
        ),
        (
            third.clone(),
            "vlans = [4095]",
            "channel.vlans|VLAN 4095|1 to 4094",
        ),
        (
            second(""),
            "",
            "channel.clients|client port 1|has a channel already",
        ),
        (
            second("vlans = [7]"),
            "vlans = [5, 7]",
            "channel.clients|client port 1|other VLANs",
        ),
        (
            second("vlans = [7]"),
            "constant_rate_bps = 1000000000",
            "channel.constant_rate_bps|hold up the others",
        ),
    ] {
        let error = shared(&peers, channel).expect_err(words).to_string();
        for word in words.split('|') {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    }
    let many: Vec<_> = (0..16)
        .map(|n| peer(&format!("n{n}"), &format!("{:02x}", 0x20 + n)))
        .collect();
    let error = shared(&many.join("\n"), "")
        .expect_err("too many")
        .to_string();
    assert!(
        error.contains("peer.name") && error.contains("15 further"),
        "{error}"
    );
    let lane =
        r#"{ kind = "af-packet", interface = "l0" }, { kind = "af-packet", interface = "l1" }"#;
    let lanes = EXAMPLE.replacen(LINE_PORT, &format!("lanes = [{lane}]"), 1) + &third;
    let error = Config::parse(&lanes, Path::new(""))
        .expect_err("lanes")
        .to_string();
    assert!(error.contains("a line of two nodes"), "{error}");
}
