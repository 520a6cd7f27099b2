//! The kernel's SecY in the guest, by `ip macsec`: what an administrator of such a station would type.

use std::fmt::Write as _;

use qloak_api::{An, MacAddress};
use serde_json::Value;

use crate::{
    guest::Guest,
    station::{Sak, Terms},
};

/// A macsec interface over `vec0`, and its peer.
pub(crate) struct Kernel<'a> {
    guest: &'a mut Guest,
    terms: Terms,
    peer: MacAddress,
}

impl<'a> Kernel<'a> {
    /// Makes the interface `ms0` with an address, and the receiving SC.
    pub(crate) fn make(
        guest: &'a mut Guest,
        peer: MacAddress,
        terms: Terms,
        address: &str,
    ) -> Self {
        let cipher = cipher(&terms);
        let replay = match terms.replay_window {
            0 => "replay on window 0".to_owned(),
            window => format!("replay on window {window}"),
        };
        guest.sh(&format!(
            "ip link add link vec0 ms0 type macsec port 1 cipher {cipher} encrypt on {replay}"
        ));
        let mut kernel = Self { guest, terms, peer };
        let sc = kernel.rx_sc();
        kernel.ip(&format!("macsec add ms0 rx {sc} on"));
        kernel.ip(&format!("address add {address} dev ms0"));
        kernel.ip("link set ms0 mtu 1500 up");
        kernel
    }

    /// Accepts frames under a key.
    pub(crate) fn accept(&mut self, an: An, sak: &Sak) {
        let sc = self.rx_sc();
        let key = self.key(sak);
        self.ip(&format!("macsec add ms0 rx {sc} sa {an} {key}"));
    }

    /// Protects under a key from now on.
    pub(crate) fn encode(&mut self, an: An, sak: &Sak) {
        let key = self.key(sak);
        self.ip(&format!("macsec add ms0 tx sa {an} {key}"));
        self.ip(&format!("link set ms0 type macsec encodingsa {an}"));
    }

    /// Accepts frames under an SA no longer.
    pub(crate) fn forget_inbound(&mut self, an: An) {
        let sc = self.rx_sc();
        self.ip(&format!("macsec set ms0 rx {sc} sa {an} off"));
        self.ip(&format!("macsec del ms0 rx {sc} sa {an}"));
    }

    /// Gives up an SA that no longer encodes.
    pub(crate) fn forget_outbound(&mut self, an: An) {
        self.ip(&format!("macsec set ms0 tx sa {an} off"));
        self.ip(&format!("macsec del ms0 tx sa {an}"));
    }

    /// A counter of the SecY or its SCs. Those of single SAs say the same again.
    pub(crate) fn counter(&mut self, name: &str) -> u64 {
        let text = self.ip("-j -s macsec show ms0");
        let all: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let mut sum = None;
        add_up(&all, name, &mut sum);
        sum.unwrap_or_else(|| panic!("the kernel keeps no {name}: {text}"))
    }

    /// A line of shell inside.
    pub(crate) fn sh(&mut self, line: &str) -> String {
        self.guest.sh(line)
    }

    /// Asks for another suite, and gives the status of `ip`.
    pub(crate) fn change_suite(&mut self) -> String {
        let other = match self.terms.suite.name {
            "aes-128-gcm" => "gcm-aes-256",
            _ => "gcm-aes-128",
        };
        let line = format!("ip link set ms0 type macsec cipher {other}");
        self.guest.try_sh(&line).0
    }

    fn ip(&mut self, arguments: &str) -> String {
        self.guest.sh(&format!("ip {arguments}"))
    }

    fn rx_sc(&self) -> String {
        format!("port 1 address {}", self.peer)
    }

    fn key(&self, sak: &Sak) -> String {
        let start = match self.terms.xpn {
            true => format!("xpn 1 salt {} ssci 1", hex(&sak.salt)),
            false => "pn 1".to_owned(),
        };
        format!("{start} on key {} {}", hex(&sak.name), hex(&sak.octets))
    }
}

impl Drop for Kernel<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ip("link del ms0");
        }
    }
}

fn cipher(terms: &Terms) -> &'static str {
    match (terms.suite.name, terms.xpn) {
        ("aes-128-gcm", false) => "gcm-aes-128",
        ("aes-128-gcm", true) => "gcm-aes-xpn-128",
        ("aes-256-gcm", false) => "gcm-aes-256",
        ("aes-256-gcm", true) => "gcm-aes-xpn-256",
        (other, _) => panic!("the kernel has no {other}"),
    }
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |mut text, octet| {
        let _ = write!(text, "{octet:02x}");
        text
    })
}

fn add_up(value: &Value, name: &str, sum: &mut Option<u64>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map.iter().filter(|(key, _)| *key != "sa_list") {
                match value.as_u64().filter(|_| key == name) {
                    Some(number) => *sum = Some(sum.unwrap_or(0) + number),
                    None => add_up(value, name, sum),
                }
            }
        }
        Value::Array(all) => all.iter().for_each(|value| add_up(value, name, sum)),
        _ => {}
    }
}
