//! What there is: nodes, KMSs and the links between nodes, and the rules they obey.
//!
//! Pure data. A record enters by `add_*` or not at all, so that these hold always:
//! - a URL is `https://host[:port]`, without a path;
//! - the two ends of a link are known nodes and differ;
//! - two nodes have one link at most; a node on a line that several share stands in one for each far node;
//! - what a link needs cannot be removed.

use std::collections::BTreeMap;

use qloak_api::{
    Problem, SaeId,
    control::{KmsRecord, LinkRecord, NodeRecord},
};

use crate::limits;

/// All records, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    /// Nodes.
    pub nodes: BTreeMap<SaeId, NodeRecord>,
    /// KMSs.
    pub kms: BTreeMap<String, KmsRecord>,
    /// Links.
    pub links: BTreeMap<String, LinkRecord>,
}

/// Why a record was not taken or not removed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The record itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// Other records forbid it.
    #[error("{0}")]
    Conflict(String),
    /// There is no such record.
    #[error("{0}")]
    Missing(String),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Problem {
        match fault {
            Fault::Invalid(detail) => Problem::bad_request(detail),
            Fault::Conflict(detail) => Problem::conflict(detail),
            Fault::Missing(detail) => Problem::not_found(detail),
        }
    }
}

impl Topology {
    /// Adds a node.
    ///
    /// # Errors
    /// Its URL is no door, its name is taken, or there are too many.
    pub fn add_node(&mut self, record: NodeRecord) -> Result<(), Fault> {
        check_url(&record.url)?;
        if self.nodes.contains_key(&record.name) {
            return Err(taken("node", &record.name));
        }
        room("nodes", self.nodes.len(), limits::NODES_MAX)?;
        self.nodes.insert(record.name.clone(), record);
        Ok(())
    }

    /// Removes a node.
    ///
    /// # Errors
    /// There is none of that name, or a link ends at it.
    pub fn remove_node(&mut self, name: &SaeId) -> Result<NodeRecord, Fault> {
        if let Some(link) = self.links_of(name).next() {
            return Err(Fault::Conflict(format!(
                "link {} ends at {name}; remove the link first",
                link.name
            )));
        }
        self.nodes
            .remove(name)
            .ok_or_else(|| missing("node", name, self.nodes.keys()))
    }

    /// Adds a KMS.
    ///
    /// # Errors
    /// Its KME ID or URL is not valid, its KME ID is taken, or there are too many.
    pub fn add_kms(&mut self, record: KmsRecord) -> Result<(), Fault> {
        record.kme_id.parse::<SaeId>().map_err(|_| {
            Fault::Invalid("a KME ID has 1 to 128 octets and no control characters".to_owned())
        })?;
        check_url(&record.url)?;
        if self.kms.contains_key(&record.kme_id) {
            return Err(taken("KMS", &record.kme_id));
        }
        room("KMSs", self.kms.len(), limits::KMS_MAX)?;
        self.kms.insert(record.kme_id.clone(), record);
        Ok(())
    }

    /// Removes a KMS.
    ///
    /// # Errors
    /// There is none of that KME ID.
    pub fn remove_kms(&mut self, kme_id: &str) -> Result<KmsRecord, Fault> {
        self.kms
            .remove(kme_id)
            .ok_or_else(|| missing("KMS", kme_id, self.kms.keys()))
    }

    /// Adds a link.
    ///
    /// # Errors
    /// Its name is not valid or taken, an end is unknown, both ends are the same or have a link already,
    /// or there are too many.
    pub fn add_link(&mut self, record: LinkRecord) -> Result<(), Fault> {
        check_link_name(&record.name)?;
        if self.links.contains_key(&record.name) {
            return Err(taken("link", &record.name));
        }
        if record.a == record.b {
            return Err(Fault::Invalid(format!(
                "both ends of link {} are {}",
                record.name, record.a
            )));
        }
        for end in [&record.a, &record.b] {
            if !self.nodes.contains_key(end) {
                return Err(Fault::Conflict(format!(
                    "link {} ends at {end}, which is no node here; {}",
                    record.name,
                    known(self.nodes.keys())
                )));
            }
        }
        if let Some(other) = self
            .links_of(&record.a)
            .find(|link| link.a == record.b || link.b == record.b)
        {
            return Err(Fault::Conflict(format!(
                "{} and {} are the ends of link {} already",
                record.a, record.b, other.name
            )));
        }
        room("links", self.links.len(), limits::LINKS_MAX)?;
        self.links.insert(record.name.clone(), record);
        Ok(())
    }

    /// Removes a link.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn remove_link(&mut self, name: &str) -> Result<LinkRecord, Fault> {
        self.links
            .remove(name)
            .ok_or_else(|| missing("link", name, self.links.keys()))
    }

    /// A link by name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn link(&self, name: &str) -> Result<&LinkRecord, Fault> {
        self.links
            .get(name)
            .ok_or_else(|| missing("link", name, self.links.keys()))
    }

    /// A node by name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn node(&self, name: &SaeId) -> Result<&NodeRecord, Fault> {
        self.nodes
            .get(name)
            .ok_or_else(|| missing("node", name, self.nodes.keys()))
    }

    /// The links that a node stands in.
    pub fn links_of(&self, node: &SaeId) -> impl Iterator<Item = &LinkRecord> {
        let stands = move |link: &&LinkRecord| link.a == *node || link.b == *node;
        self.links.values().filter(stands)
    }
}

fn check_url(url: &str) -> Result<(), Fault> {
    let wrong = || {
        Fault::Invalid(format!(
            "{:?} is no door; https://host:port is allowed, without a path",
            url.chars().take(64).collect::<String>()
        ))
    };
    if url.len() > limits::URL_OCTETS_MAX {
        return Err(wrong());
    }
    let authority = url.strip_prefix("https://").ok_or_else(wrong)?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if authority.is_empty() || !authority.chars().all(sound) {
        return Err(wrong());
    }
    Ok(())
}

fn check_link_name(name: &str) -> Result<(), Fault> {
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    // "." and ".." would be eaten by whatever normalises the URL that the name stands in.
    let dots = name.chars().all(|c| c == '.');
    if !dots && name.len() <= limits::LINK_NAME_OCTETS_MAX && name.chars().all(sound) {
        Ok(())
    } else {
        Err(Fault::Invalid(format!(
            "{:?} is no name of a link; 1 to {} letters, digits, dots, dashes and underscores are allowed",
            name.chars().take(80).collect::<String>(),
            limits::LINK_NAME_OCTETS_MAX
        )))
    }
}

fn room(what: &str, count: usize, max: usize) -> Result<(), Fault> {
    if count < max {
        Ok(())
    } else {
        Err(Fault::Conflict(format!(
            "there are {max} {what} already, and no more are allowed"
        )))
    }
}

fn taken(what: &str, name: &impl std::fmt::Display) -> Fault {
    Fault::Conflict(format!(
        "there is a {what} {name} already; remove it first to give it another meaning"
    ))
}

fn missing<T: std::fmt::Display>(
    what: &str,
    name: &(impl std::fmt::Display + ?Sized),
    there: impl Iterator<Item = T>,
) -> Fault {
    Fault::Missing(format!("there is no {what} {name}; {}", known(there)))
}

fn known<T: std::fmt::Display>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.take(32).map(|name| name.to_string()).collect();
    if names.is_empty() {
        "none is known".to_owned()
    } else {
        format!("known are: {}", names.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SaeId {
        name.parse().expect("an SAE ID")
    }

    fn node(name: &str) -> NodeRecord {
        NodeRecord {
            name: id(name),
            url: "https://127.0.0.1:7443".to_owned(),
        }
    }

    fn link(name: &str, a: &str, b: &str) -> LinkRecord {
        LinkRecord {
            name: name.to_owned(),
            a: id(a),
            b: id(b),
        }
    }

    fn three_nodes() -> Topology {
        let mut topology = Topology::default();
        for name in ["a", "b", "c"] {
            topology.add_node(node(name)).expect("sound");
        }
        topology
    }

    #[test]
    fn a_link_needs_two_nodes_that_have_none() {
        let mut topology = three_nodes();
        assert!(matches!(
            topology.add_link(link("l", "a", "a")),
            Err(Fault::Invalid(_))
        ));
        assert!(matches!(
            topology.add_link(link("l", "a", "x")),
            Err(Fault::Conflict(_))
        ));
        topology.add_link(link("l", "a", "b")).expect("sound");
        assert!(matches!(
            topology.add_link(link("l", "a", "b")),
            Err(Fault::Conflict(_))
        ));
        assert!(matches!(
            topology.add_link(link("m", "b", "a")),
            Err(Fault::Conflict(_))
        ));
        // A line that three nodes share.
        topology.add_link(link("m", "b", "c")).expect("sound");
        let b = id("b");
        let names = topology.links_of(&b).map(|link| link.name.as_str());
        let names: Vec<_> = names.collect();
        assert_eq!(names, ["l", "m"]);
    }

    #[test]
    fn what_a_link_needs_stays() {
        let mut topology = three_nodes();
        topology.add_link(link("l", "a", "b")).expect("sound");
        assert!(matches!(
            topology.remove_node(&id("a")),
            Err(Fault::Conflict(_))
        ));
        assert!(matches!(
            topology.remove_node(&id("x")),
            Err(Fault::Missing(_))
        ));
        topology.remove_link("l").expect("there");
        topology.remove_node(&id("a")).expect("free");
        assert!(matches!(topology.remove_link("l"), Err(Fault::Missing(_))));
    }

    #[test]
    fn doors_and_names_are_checked() {
        let mut topology = three_nodes();
        for url in [
            "",
            "http://a:1",
            "https://",
            "https://a/b",
            "https://u@a",
            "https://a?b",
            &"x".repeat(300),
        ] {
            let record = NodeRecord {
                name: id("d"),
                url: url.to_owned(),
            };
            assert!(
                matches!(topology.add_node(record), Err(Fault::Invalid(_))),
                "{url}"
            );
        }
        for name in ["", ".", "..", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(
                matches!(
                    topology.add_link(link(name, "a", "b")),
                    Err(Fault::Invalid(_))
                ),
                "{name}"
            );
        }
        let kms = |kme_id: &str| KmsRecord {
            kme_id: kme_id.to_owned(),
            url: "https://[::1]:7101/".to_owned(),
        };
        topology.add_kms(kms("kms-a")).expect("sound");
        assert!(topology.add_kms(kms("kms-a")).is_err() && topology.add_kms(kms("")).is_err());
        assert!(matches!(
            topology.remove_kms("kms-b"),
            Err(Fault::Missing(_))
        ));
    }
}
