//! The lab's configuration files, written as an operator would write them.
//!
//! One description of a site gives the files of its node and its KMS. Where the pieces of the lab are
//! (namespaces or one host) is decided by [`Place`]; everything else is equal in both.

use std::{
    fmt::Write as _,
    fs,
    net::{Ipv4Addr, TcpListener},
    path::Path,
};

use super::{
    layout::{Channel, Layout, Threads},
    network::Space,
};
use crate::ui::{Context, Done, Failure};

/// The line port's address of node A.
pub(crate) const ADDRESS_A: &str = "02:51:4c:00:00:0a";
/// The line port's address of node B.
pub(crate) const ADDRESS_B: &str = "02:51:4c:00:00:0b";

/// The name of the link at the controller.
pub(crate) const LINK: &str = "metro";

/// Where the lab lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In namespaces: TAP client ports, a veth line, a management network.
    Namespaces,
    /// On the loopback of one host without root: client ports fed from captures, a line in memory.
    /// The doors listen on five ports from `door` on.
    Memory { door: u16 },
}

impl Place {
    /// In memory, with doors that nobody else holds now.
    pub(crate) fn memory() -> Done<Self> {
        const DOORS: u16 = 5;
        let free = |port: u16| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
        (17_100..17_900)
            .step_by(10)
            .find(|door| (*door..door + DOORS).all(free))
            .map(|door| Self::Memory { door })
            .ok_or_else(|| {
                Failure::new("no five ports in a row are free between 17100 and 17900 of 127.0.0.1")
            })
    }
}

/// One of the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// Here.
    A,
    /// There.
    B,
}

impl Site {
    /// Both.
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    fn letter(self) -> char {
        match self {
            Self::A => 'a',
            Self::B => 'b',
        }
    }

    fn far(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// The node's name.
    pub(crate) fn node(self) -> String {
        format!("node-{}", self.letter())
    }

    /// The KMS's name.
    pub(crate) fn kms(self) -> String {
        format!("kms-{}", self.letter())
    }

    /// Where its node and KMS run.
    pub(crate) fn space(self) -> Space {
        match self {
            Self::A => Space::A,
            Self::B => Space::B,
        }
    }

    /// Where its hosts are.
    pub(crate) fn hosts(self) -> Space {
        match self {
            Self::A => Space::HostsA,
            Self::B => Space::HostsB,
        }
    }

    fn line_address(self) -> &'static str {
        match self {
            Self::A => ADDRESS_A,
            Self::B => ADDRESS_B,
        }
    }

    /// Where the node's management door listens.
    pub(crate) fn node_door(self, place: Place) -> String {
        match (place, self) {
            (Place::Namespaces, Self::A) => "10.78.0.1:7443".into(),
            (Place::Namespaces, Self::B) => "10.78.0.2:7443".into(),
            (Place::Memory { door }, Self::A) => format!("127.0.0.1:{door}"),
            (Place::Memory { door }, Self::B) => format!("127.0.0.1:{}", door + 1),
        }
    }

    /// Where the KMS's door listens.
    pub(crate) fn kms_door(self, place: Place) -> String {
        match (place, self) {
            (Place::Namespaces, Self::A) => "10.78.0.1:7101".into(),
            (Place::Namespaces, Self::B) => "10.78.0.2:7101".into(),
            (Place::Memory { door }, Self::A) => format!("127.0.0.1:{}", door + 2),
            (Place::Memory { door }, Self::B) => format!("127.0.0.1:{}", door + 3),
        }
    }
}

/// Where the controller's north door listens.
pub(crate) fn controller_door(place: Place) -> String {
    match place {
        Place::Namespaces => "10.78.0.10:9443".into(),
        Place::Memory { door } => format!("127.0.0.1:{}", door + 4),
    }
}

/// Every host that a certificate of the lab must be good for.
pub(crate) fn hosts(place: Place) -> &'static [&'static str] {
    match place {
        Place::Namespaces => &["10.78.0.1", "10.78.0.2", "10.78.0.10", "127.0.0.1"],
        Place::Memory { .. } => &["127.0.0.1"],
    }
}

/// Writes all files of the lab into its folder.
pub(crate) fn write(folder: &Path, place: Place, layout: &Layout) -> Done {
    for site in Site::BOTH {
        put(
            folder,
            &format!("{}.toml", site.node()),
            &node(site, place, layout),
        )?;
        put(
            folder,
            &format!("{}.toml", site.kms()),
            &kms(site, place, layout),
        )?;
    }
    put(folder, "controller.toml", &controller(place))
}

fn put(folder: &Path, name: &str, text: &str) -> Done {
    let path = folder.join(name);
    fs::write(&path, text).cannot(format_args!("write {}", path.display()))
}

fn node(site: Site, place: Place, layout: &Layout) -> String {
    let line = match place {
        Place::Namespaces => format!(
            "{{ kind = \"af-packet\", interface = \"line-{}\" }}",
            site.letter()
        ),
        Place::Memory { .. } => format!(
            "{{ kind = \"memory\", wire = \"line\", end = \"{}\" }}",
            site.letter()
        ),
    };
    let mut text = format!(
        "name = \"{name}\"\n\n\
         [line]\nport = {line}\naddress = \"{address}\"\npeer_address = \"{far_address}\"\n\
         peer = \"{far}\"\nframe_octets_max = {octets}\n",
        name = site.node(),
        address = site.line_address(),
        far_address = site.far().line_address(),
        far = site.far().node(),
        octets = layout.line_mtu + 14,
    );
    if let Some(us) = layout.drain_us {
        let _ = writeln!(text, "drain_us = {us}");
    }
    for port in 1..=layout.client_ports() {
        let kind = match place {
            Place::Namespaces => format!(
                "{{ kind = \"tap\", interface = \"c{port}\", namespace = \"{}\", mtu = {} }}",
                site.hosts().name(),
                layout.client_mtu
            ),
            // What comes out is kept for one port only, to be compared; of the others it is only counted.
            Place::Memory { .. } => format!(
                "{{ kind = \"pcap\", read = \"from-{letter}.pcap\", write = \"{write}\", pace = \"captured\" }}",
                letter = site.letter(),
                write = match port {
                    1 => format!("out-{}-1.pcap", site.letter()),
                    _ => "/dev/null".to_owned(),
                },
            ),
        };
        let _ = write!(text, "\n[[client]]\nnumber = {port}\nport = {kind}\n");
    }
    for channel in &layout.channels {
        let Channel {
            number,
            name,
            carriage,
            clients,
            constant_rate_bps,
        } = channel;
        let clients: Vec<String> = clients.clone().map(|port| port.to_string()).collect();
        let _ = write!(
            text,
            "\n[[channel]]\nnumber = {number}\nname = \"{name}\"\ncarriage = \"{carriage}\"\n\
             clients = [{}]\nsuite = \"{}\"\n",
            clients.join(", "),
            layout.suite
        );
        if let Some(bps) = constant_rate_bps {
            let _ = writeln!(text, "constant_rate_bps = {bps}");
        }
    }
    if layout.threads != Threads::default() {
        let Threads { count, busy_poll } = layout.threads;
        let _ = write!(
            text,
            "\n[pipeline]\nthreads = {count}\nbusy_poll = {busy_poll}\n"
        );
    }
    let keys = &layout.keys;
    let _ = write!(
        text,
        "\n[key_ram]\nslots = {}\nfill = {}\n\n[policy]\nhazmat = {:?}\n",
        keys.slots, keys.ahead, layout.hazmat
    );
    let _ = write!(
        text,
        "\n[kme]\nurl = \"https://{}\"\nidentity = \"{}\"\nkeys_per_request = {}\n\n[manage]\nlisten = \"{}\"\n\n{}",
        site.kms_door(place),
        site.kms(),
        keys.at_once,
        site.node_door(place),
        tls(&site.node()),
    );
    text
}

fn tls(name: &str) -> String {
    format!("[tls]\nca = \"pki/ca.pem\"\ncert = \"pki/{name}.pem\"\nkey = \"pki/{name}.key\"\n")
}

fn controller(place: Place) -> String {
    let mut text = format!(
        "[north]\nlisten = \"{}\"\n\n{}\n[store]\nfile = \"controller.sqlite\"\n\n[poll]\ninterval_ms = 250\n",
        controller_door(place),
        tls("controller"),
    );
    for site in Site::BOTH {
        let _ = write!(
            text,
            "\n[[node]]\nname = \"{}\"\nurl = \"https://{}\"\n\n[[kms]]\nkme_id = \"{}\"\nurl = \"https://{}\"\n",
            site.node(),
            site.node_door(place),
            site.kms(),
            site.kms_door(place),
        );
    }
    let _ = write!(
        text,
        "\n[[link]]\nname = \"{LINK}\"\na = \"node-a\"\nb = \"node-b\"\n"
    );
    text
}

fn kms(site: Site, place: Place, layout: &Layout) -> String {
    let (name, far) = (site.kms(), site.far());
    let end = match site {
        Site::A => format!(
            "role = \"alice\"\nemulated = {{ length_km = 0.5, loss_db = 5.19, rate_factor = {:.1} }}\n",
            layout.keys.rate_factor
        ),
        Site::B => "role = \"bob\"\n".to_owned(),
    };
    format!(
        "kme_id = \"{name}\"\nlisten = \"{door}\"\nsaes = [\"{node}\"]\n\n{tls}\n\
         [ledger]\nfile = \"{name}.sqlite\"\nkek = \"{name}.kek\"\n\n\
         [[link]]\nname = \"{LINK}\"\npeer = \"{far_kms}\"\npeer_url = \"https://{far_door}\"\n\
         peer_saes = [\"{far_node}\"]\n{end}",
        door = site.kms_door(place),
        node = site.node(),
        tls = tls(&name),
        far_kms = far.kms(),
        far_door = far.kms_door(place),
        far_node = far.node(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_is_what_stands_in_the_files() {
        let mut layout = Layout::demo();
        layout.keys.ahead = 77;
        layout.hazmat = vec!["plain".to_owned()];
        layout.threads.count = 1;
        layout.channels[0].constant_rate_bps = Some(1_000_000_000);
        let text = node(Site::A, Place::Namespaces, &layout);
        let file: toml::Table = toml::from_str(&text).expect("TOML");
        assert_eq!(file["key_ram"]["fill"].as_integer(), Some(77));
        assert_eq!(file["policy"]["hazmat"][0].as_str(), Some("plain"));
        let clients = file["client"].as_array().expect("client ports");
        assert_eq!(clients.len(), usize::from(layout.client_ports()));
        assert_eq!(file["pipeline"]["threads"].as_integer(), Some(1));
        let channels = file["channel"].as_array().expect("channels");
        let rate = |channel: usize| channels[channel].get("constant_rate_bps");
        assert_eq!(
            rate(0).and_then(toml::Value::as_integer),
            Some(1_000_000_000)
        );
        assert!(rate(1).is_none());
        assert_eq!(channels[0]["clients"].as_array().map(Vec::len), Some(8));
        let text = kms(Site::A, Place::Namespaces, &layout);
        assert!(toml::from_str::<toml::Table>(&text).is_ok(), "{text}");
    }
}
