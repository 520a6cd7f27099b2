//! What a configuration with `dataplane = "kernel-macsec"` says: the kernel's macsec interfaces, each in place
//! of a client port.

use std::collections::BTreeMap;

use qloak_api::ClientPort;
use serde::Deserialize;

/// The kernel carries the frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelMacsec {
    /// The interfaces, by the number of the client port that they stand for.
    pub interfaces: BTreeMap<ClientPort, MacsecInterface>,
}

/// A macsec interface of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MacsecInterface {
    /// Its name; made over the line's interface when it does not exist.
    pub name: String,
    /// MTU to set, octets; the kernel's own choice (32 less than the line's) when none.
    pub mtu: Option<usize>,
    /// Whether to bring it up.
    pub up: bool,
    /// Who does the work.
    pub offload: Offload,
}

/// Who protects and validates (linux/if_link.h, enum macsec_offload).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Offload {
    /// The kernel, on the CPU.
    #[default]
    Off,
    /// The PHY of the line's interface.
    Phy,
    /// The line's network card.
    Mac,
}

impl Offload {
    /// The kernel's number for it.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Phy => 1,
            Self::Mac => 2,
        }
    }

    /// The word for it in the configuration.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Phy => "phy",
            Self::Mac => "mac",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    const KERNEL: &str = r#"
name = "node-a"
dataplane = "kernel-macsec"
[line]
port = { kind = "af-packet", interface = "eth1" }
address = "02:51:4c:00:00:0a"
peer_address = "02:51:4c:00:00:0b"
peer = "node-b"
[[client]]
number = 1
port = { kind = "macsec", interface = "secure1", mtu = 1468, offload = "mac" }
[[channel]]
number = 7
carriage = "transparent"
clients = [1]
suite = "aes-256-gcm"
[kme]
url = "https://127.0.0.1:7101"
[manage]
listen = "127.0.0.1:7443"
[tls]
ca = "ca.pem"
cert = "node-a.pem"
key = "node-a.key"
"#;

    fn refused(from: &str, to: &str) -> String {
        assert!(KERNEL.contains(from), "{from:?} is not in it");
        let text = KERNEL.replacen(from, to, 1);
        Config::parse(&text, Path::new(""))
            .expect_err("must be refused")
            .to_string()
    }

    #[test]
    fn a_client_port_is_an_interface_of_the_kernel() {
        let config = Config::parse(KERNEL, Path::new("")).expect("valid");
        let kernel = config.kernel.expect("the kernel carries the frames");
        let client = 1.try_into().expect("a client port");
        assert_eq!(
            kernel.interfaces.get(&client),
            Some(&MacsecInterface {
                name: "secure1".into(),
                mtu: Some(1468),
                up: true,
                offload: Offload::Mac,
            })
        );
        assert!(config.clients.is_empty(), "the node has no port there");
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_with_a_reason() {
        let text = refused("aes-256-gcm", "aes-256-ocb");
        assert!(
            text.contains("channel.suite")
                && text.contains("aes-256-ocb")
                && text.contains("aes-128-gcm, aes-256-gcm"),
            "{text}"
        );
        let text = refused("\"transparent\"", "\"aggregated\"");
        assert!(
            text.contains("channel.carriage") && text.contains("transparent"),
            "{text}"
        );
        let text = refused("kind = \"af-packet\"", "kind = \"af-xdp\"");
        assert!(
            text.contains("line.port") && text.contains("af-packet"),
            "{text}"
        );
        let line = "interface = \"eth1\"";
        let text = refused(line, "interface = \"eth1\", namespace = \"far\"");
        assert!(
            text.contains("line.port") && text.contains("ip netns exec far"),
            "{text}"
        );
        let text = refused(
            "peer = \"node-b\"",
            "peer = \"node-b\"\nimpairment = { transmit = { loss = 0.1 } }",
        );
        assert!(text.contains("line.impairment"), "{text}");
        let text = refused("number = 1\n", "number = 1\nweight = 3\n");
        assert!(text.contains("client.weight"), "{text}");
        let text = refused("[line]", "[pipeline]\nthreads = 1\n[line]");
        assert!(
            text.contains("`pipeline`") && text.contains("the kernel carries"),
            "{text}"
        );
        let text = refused("mtu = 1468, offload = \"mac\"", "offload = \"nic\"");
        assert!(text.contains("nic") && text.contains("phy"), "{text}");
    }

    #[test]
    fn all_channels_have_one_suite_since_none_can_change() {
        let second = r#"[[client]]
number = 2
port = { kind = "macsec", interface = "secure2" }
[[channel]]
number = 8
carriage = "transparent"
clients = [2]
suite = "aes-128-gcm"
[kme]"#;
        let text = refused("[kme]", second);
        assert!(
            text.contains("channel.suite") && text.contains("one suite"),
            "{text}"
        );
        let same = KERNEL.replacen("[kme]", &second.replacen("128", "256", 1), 1);
        let config = Config::parse(&same, Path::new("")).expect("valid");
        assert_eq!(config.channels.len(), 2);
    }

    #[test]
    fn each_dataplane_has_its_own_client_ports() {
        let text = refused("dataplane = \"kernel-macsec\"\n", "");
        assert!(
            text.contains("client.port") && text.contains("kernel-macsec"),
            "{text}"
        );
        let text = refused(
            "{ kind = \"macsec\", interface = \"secure1\", mtu = 1468, offload = \"mac\" }",
            "{ kind = \"tap\", interface = \"c1\" }",
        );
        assert!(
            text.contains("client.port") && text.contains("macsec"),
            "{text}"
        );
        let text = refused("kernel-macsec", "kernel");
        assert!(
            text.contains("dataplane") && text.contains("user-space"),
            "{text}"
        );
    }
}
