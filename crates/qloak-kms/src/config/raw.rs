//! What stands in the file, word by word, and the checks that make a [`Config`] of it.

use std::{
    collections::HashSet,
    fmt::Display,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    time::Duration,
};

use qloak_api::SaeId;
use qloak_door::TlsFiles;
use qloak_qkd::{Emulator, Fibre};
use serde::Deserialize;
use toml::Spanned;

use super::{Config, ConfigError, End, Keys, Link};
use crate::limits;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    kme_id: Spanned<String>,
    listen: Spanned<String>,
    saes: Spanned<Vec<Spanned<String>>>,
    tls: RawTls,
    ledger: RawLedger,
    #[serde(default)]
    keys: RawKeys,
    #[serde(rename = "link")]
    links: Spanned<Vec<RawLink>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTls {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLedger {
    file: PathBuf,
    kek: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct RawKeys {
    size_bits: Option<Spanned<i64>>,
    size_bits_min: Option<Spanned<i64>>,
    size_bits_max: Option<Spanned<i64>>,
    per_request_max: Option<Spanned<i64>>,
    store_max: Option<Spanned<i64>>,
    additional_saes_max: Option<Spanned<i64>>,
    unfetched_s_max: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    name: Spanned<String>,
    peer: Spanned<String>,
    peer_url: Spanned<String>,
    peer_saes: Spanned<Vec<Spanned<String>>>,
    role: Spanned<String>,
    emulated: Option<Spanned<RawEmulated>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEmulated {
    length_km: f64,
    loss_db: f64,
    #[serde(default = "physics")]
    rate_factor: f64,
}

fn physics() -> f64 {
    1.0
}

/// The text, for the lines of errors.
#[derive(Clone, Copy)]
struct Text<'a>(&'a str);

impl Text<'_> {
    fn refuse<T>(self, at: &Spanned<T>, key: &str, what: impl Into<String>) -> ConfigError {
        ConfigError::at(self.0, at.span(), key, what)
    }
}

pub(super) fn parse(text: &str, folder: &Path) -> Result<Config, ConfigError> {
    let raw: RawConfig =
        toml::from_str(text).map_err(|error| ConfigError::from_toml(text, &error))?;
    let text = Text(text);
    let kme_id = identity(text, &raw.kme_id, "kme_id")?;
    let listen = raw.listen.get_ref().parse().map_err(|_| {
        text.refuse(
            &raw.listen,
            "listen",
            "must be an address and a port such as 127.0.0.1:7101",
        )
    })?;
    let saes = sae_ids(text, &raw.saes, "saes")?;
    let keys = raw.keys.check(text)?;
    if !limits::LINKS.contains(&raw.links.get_ref().len()) {
        return Err(text.refuse(&raw.links, "link", "1 to 64 links are allowed"));
    }
    let mut links: Vec<Link> = Vec::new();
    for raw in raw.links.into_inner() {
        let (name_at, saes_at) = (raw.name.clone(), raw.peer_saes.clone());
        let link = raw.check(text, keys.size_bits)?;
        if links.iter().any(|other| other.name == link.name) {
            return Err(text.refuse(&name_at, "link.name", "another link has this name already"));
        }
        let elsewhere = |sae: &&SaeId| {
            saes.contains(*sae) || links.iter().any(|other| other.peer_saes.contains(*sae))
        };
        if let Some(sae) = link.peer_saes.iter().find(elsewhere) {
            let what = format!(
                "{sae:?} is served elsewhere already; an SAE belongs to one KME",
                sae = sae.as_str()
            );
            return Err(text.refuse(&saes_at, "link.peer_saes", what));
        }
        if link.peer == kme_id {
            return Err(text.refuse(&name_at, "link.peer", "a KME has no link to itself"));
        }
        links.push(link);
    }
    Ok(Config {
        kme_id,
        listen,
        saes,
        tls: TlsFiles {
            ca: folder.join(raw.tls.ca),
            cert: folder.join(raw.tls.cert),
            key: folder.join(raw.tls.key),
        },
        ledger: folder.join(raw.ledger.file),
        kek: folder.join(raw.ledger.kek),
        keys,
        links,
    })
}

impl RawKeys {
    fn check(self, text: Text<'_>) -> Result<Keys, ConfigError> {
        let bits = limits::KEY_BITS;
        let size = ranged(text, &self.size_bits, 256, bits.clone(), "keys.size_bits")?;
        let keys = Keys {
            size_bits: size,
            size_bits_min: ranged(
                text,
                &self.size_bits_min,
                size.min(64),
                bits.clone(),
                "keys.size_bits_min",
            )?,
            size_bits_max: ranged(
                text,
                &self.size_bits_max,
                size.max(1024),
                bits,
                "keys.size_bits_max",
            )?,
            per_request_max: ranged(
                text,
                &self.per_request_max,
                128,
                limits::KEYS_PER_REQUEST,
                "keys.per_request_max",
            )?,
            store_max: ranged(text, &self.store_max, 4096, limits::STORE, "keys.store_max")?,
            additional_saes_max: ranged(
                text,
                &self.additional_saes_max,
                8,
                limits::ADDITIONAL_SAES,
                "keys.additional_saes_max",
            )?,
            unfetched_s_max: ranged(
                text,
                &self.unfetched_s_max,
                3600,
                limits::UNFETCHED_S,
                "keys.unfetched_s_max",
            )?,
        };
        let sizes = [
            (&self.size_bits, keys.size_bits, "keys.size_bits"),
            (
                &self.size_bits_min,
                keys.size_bits_min,
                "keys.size_bits_min",
            ),
            (
                &self.size_bits_max,
                keys.size_bits_max,
                "keys.size_bits_max",
            ),
        ];
        for (given, bits, key) in sizes {
            let ordered = (keys.size_bits_min..=keys.size_bits_max).contains(&bits)
                && (keys.size_bits_min..=keys.size_bits_max).contains(&keys.size_bits);
            if let Some(given) = given.as_ref().filter(|_| bits % 8 != 0 || !ordered) {
                let what = format!(
                    "{bits}: sizes are multiples of 8 with size_bits_min <= size_bits <= size_bits_max"
                );
                return Err(text.refuse(given, key, what));
            }
        }
        Ok(keys)
    }
}

impl RawLink {
    fn check(self, text: Text<'_>, block_bits: u32) -> Result<Link, ConfigError> {
        let name = self.name.get_ref();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if !limits::LINK_NAME_CHARS.contains(&name.len()) || !name.chars().all(plain) {
            return Err(text.refuse(
                &self.name,
                "link.name",
                "must be 1 to 64 letters, digits, '-', '_' or '.'",
            ));
        }
        if !self.peer_url.get_ref().starts_with("https://") {
            return Err(text.refuse(&self.peer_url, "link.peer_url", "must begin with https://"));
        }
        let end = match (self.role.get_ref().as_str(), &self.emulated) {
            ("alice", Some(emulated)) => source(text, emulated, block_bits)?,
            ("alice", None) => {
                let what =
                    "alice generates the keys: give emulated = { length_km = .., loss_db = .. }";
                return Err(text.refuse(&self.role, "link.role", what));
            }
            ("bob", None) => End::Bob,
            ("bob", Some(emulated)) => {
                let what = "only alice has a source; take this line away, or change the role";
                return Err(text.refuse(emulated, "link.emulated", what));
            }
            (other, _) => {
                let what = format!("{other:?} is neither \"alice\" nor \"bob\"");
                return Err(text.refuse(&self.role, "link.role", what));
            }
        };
        Ok(Link {
            peer: identity(text, &self.peer, "link.peer")?,
            peer_saes: sae_ids(text, &self.peer_saes, "link.peer_saes")?,
            name: self.name.into_inner(),
            peer_url: self.peer_url.into_inner(),
            end,
        })
    }
}

fn source(text: Text<'_>, raw: &Spanned<RawEmulated>, block_bits: u32) -> Result<End, ConfigError> {
    let refuse = |what: String| text.refuse(raw, "link.emulated", what);
    let RawEmulated {
        length_km,
        loss_db,
        rate_factor,
    } = *raw.get_ref();
    let fibre = Fibre::new(length_km, loss_db).map_err(|error| refuse(error.to_string()))?;
    // Tried here, so that a fibre without key is a fault of the configuration and not of the first tick.
    Emulator::new(fibre, block_bits as usize / 8, rate_factor, Duration::ZERO)
        .map_err(|error| refuse(error.to_string()))?;
    Ok(End::Alice { fibre, rate_factor })
}

fn identity(text: Text<'_>, given: &Spanned<String>, key: &str) -> Result<String, ConfigError> {
    // A KME ID stands where an SAE ID could: in certificates, JSON and logs. The same rule holds.
    given
        .get_ref()
        .parse::<SaeId>()
        .map(|id| id.as_str().to_owned())
        .map_err(|_| {
            text.refuse(
                given,
                key,
                "must be 1 to 128 octets without control characters",
            )
        })
}

fn sae_ids(
    text: Text<'_>,
    given: &Spanned<Vec<Spanned<String>>>,
    key: &str,
) -> Result<HashSet<SaeId>, ConfigError> {
    if !limits::SAES.contains(&given.get_ref().len()) {
        return Err(text.refuse(given, key, "1 to 1024 SAE IDs are allowed"));
    }
    let mut ids = HashSet::new();
    for raw in given.get_ref() {
        let id = raw
            .get_ref()
            .parse::<SaeId>()
            .map_err(|error| text.refuse(raw, key, error.to_string()))?;
        if !ids.insert(id) {
            return Err(text.refuse(raw, key, "is named twice"));
        }
    }
    Ok(ids)
}

/// An integer within its range, or its default.
fn ranged<T>(
    text: Text<'_>,
    given: &Option<Spanned<i64>>,
    default: T,
    allowed: RangeInclusive<T>,
    key: &str,
) -> Result<T, ConfigError>
where
    T: TryFrom<i64> + PartialOrd + Display,
{
    let Some(given) = given else {
        return Ok(default);
    };
    let number = *given.get_ref();
    T::try_from(number)
        .ok()
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            let what = format!(
                "{number} is given; {} to {} are allowed",
                allowed.start(),
                allowed.end()
            );
            text.refuse(given, key, what)
        })
}
