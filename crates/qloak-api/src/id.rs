//! Identifiers, each with one text form that is the same in configuration, JSON, logs and on screen.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::limits;

/// Why a text is no identifier: says what was given and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no {what}: {allowed}")]
pub struct IdError {
    what: &'static str,
    given: String,
    allowed: &'static str,
}

impl IdError {
    fn new(what: &'static str, given: impl Into<String>, allowed: &'static str) -> Self {
        let mut given: String = given.into();
        if let Some((cut, _)) = given.char_indices().nth(64) {
            given.truncate(cut);
        }
        Self {
            what,
            given,
            allowed,
        }
    }
}

/// Serde by way of `Display` and `FromStr`: one text form everywhere.
macro_rules! text_form {
    ($name:ident, $example:literal) => {
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                utoipa::openapi::ObjectBuilder::new()
                    .schema_type(utoipa::openapi::schema::Type::String)
                    .examples([serde_json::json!($example)])
                    .into()
            }
        }
        impl utoipa::ToSchema for $name {}
    };
}

/// A secure application entity (ETSI GS QKD 014): here a node. Any text of 1 to 128 octets without
/// control characters; it is percent-encoded wherever it enters a URL.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SaeId(String);

impl SaeId {
    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SaeId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let sound = !text.is_empty()
            && text.len() <= limits::SAE_ID_OCTETS_MAX
            && !text.chars().any(char::is_control);
        if sound {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError::new(
                "SAE ID",
                text,
                "1 to 128 octets without control characters",
            ))
        }
    }
}

impl fmt::Display for SaeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
text_form!(SaeId, "node-a");

/// The UUID of a key (ETSI GS QKD 014, RFC 9562). Names a key; tells nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId(pub [u8; 16]);

impl FromStr for KeyId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::parse_str(text)
            .map(|uuid| Self(*uuid.as_bytes()))
            .map_err(|_| {
                IdError::new(
                    "key ID",
                    text,
                    "a UUID such as bc490419-7d60-487f-adc1-4ddcc177c139",
                )
            })
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}
text_form!(KeyId, "bc490419-7d60-487f-adc1-4ddcc177c139");

/// An IEEE 802 MAC address, six octets in the order of the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MacAddress(pub [u8; 6]);

impl FromStr for MacAddress {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || {
            IdError::new(
                "MAC address",
                text,
                "six octets in hex such as 02:51:4c:00:00:0a",
            )
        };
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts
                .next()
                .filter(|part| part.len() == 2)
                .ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_some() {
            Err(wrong())
        } else {
            Ok(Self(octets))
        }
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}
text_form!(MacAddress, "02:51:4c:00:00:0a");

/// Secure channel identifier (IEEE 802.1AE-2018, 9.9): a MAC address and a 16-bit port, here the
/// number of the channel. Text form `02:51:4c:00:00:0a/1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sci {
    /// The address of the line port that transmits on the channel.
    pub address: MacAddress,
    /// The number of the channel.
    pub port: u16,
}

impl Sci {
    /// The SCI of a channel that a line port with this address transmits on.
    pub fn new(address: MacAddress, channel: ChannelNumber) -> Self {
        Self {
            address,
            port: channel.0,
        }
    }

    /// The eight octets as they stand in a SecTAG.
    pub fn to_octets(self) -> [u8; 8] {
        let mut octets = [0; 8];
        octets[..6].copy_from_slice(&self.address.0);
        octets[6..].copy_from_slice(&self.port.to_be_bytes());
        octets
    }

    /// From the eight octets of a SecTAG.
    pub fn from_octets(octets: [u8; 8]) -> Self {
        let [a, b, c, d, e, f, g, h] = octets;
        Self {
            address: MacAddress([a, b, c, d, e, f]),
            port: u16::from_be_bytes([g, h]),
        }
    }
}

impl FromStr for Sci {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || {
            IdError::new(
                "SCI",
                text,
                "a MAC address, a slash and a number such as 02:51:4c:00:00:0a/1",
            )
        };
        let (address, port) = text.split_once('/').ok_or_else(wrong)?;
        Ok(Self {
            address: address.parse().map_err(|_| wrong())?,
            port: port.parse().map_err(|_| wrong())?,
        })
    }
}

impl fmt::Display for Sci {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.port)
    }
}
text_form!(Sci, "02:51:4c:00:00:0a/1");

/// Association number, 0 to 3 (IEEE 802.1AE-2018, 9.6): which of a channel's SAs a frame is under.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(try_from = "u8", into = "u8")]
#[schema(value_type = u8, maximum = 3)]
pub struct An(u8);

impl An {
    /// How many there are.
    pub const COUNT: usize = 4;

    /// The number's two low bits.
    pub const fn from_low_bits(octet: u8) -> Self {
        Self(octet & 3)
    }

    /// The AN after this one, round again after 3.
    pub const fn next(self) -> Self {
        Self((self.0 + 1) & 3)
    }

    /// As a number 0 to 3.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// As an index into a table of four.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<u8> for An {
    type Error = IdError;
    fn try_from(number: u8) -> Result<Self, IdError> {
        if number < 4 {
            Ok(Self(number))
        } else {
            Err(IdError::new("AN", number.to_string(), "0 to 3"))
        }
    }
}

impl From<An> for u8 {
    fn from(an: An) -> u8 {
        an.0
    }
}

impl fmt::Display for An {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A channel of a link: 1 to 1024, the same number at both ends; the port part of its SCIs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(try_from = "u16", into = "u16")]
#[schema(value_type = u16, minimum = 1, maximum = 1024)]
pub struct ChannelNumber(u16);

impl ChannelNumber {
    /// As a number 1 to 1024.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl TryFrom<u16> for ChannelNumber {
    type Error = IdError;
    fn try_from(number: u16) -> Result<Self, IdError> {
        if (1..=limits::CHANNELS_MAX).contains(&number) {
            Ok(Self(number))
        } else {
            Err(IdError::new(
                "channel number",
                number.to_string(),
                "1 to 1024",
            ))
        }
    }
}

impl From<ChannelNumber> for u16 {
    fn from(channel: ChannelNumber) -> u16 {
        channel.0
    }
}

impl fmt::Display for ChannelNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A client port of a node: 1 to 64, the same number at both ends of a link.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
)]
#[serde(try_from = "u8", into = "u8")]
#[schema(value_type = u8, minimum = 1, maximum = 64)]
pub struct ClientPort(u8);

impl ClientPort {
    /// As a number 1 to 64.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl TryFrom<u8> for ClientPort {
    type Error = IdError;
    fn try_from(number: u8) -> Result<Self, IdError> {
        if (1..=limits::CLIENT_PORTS_MAX).contains(&number) {
            Ok(Self(number))
        } else {
            Err(IdError::new("client port", number.to_string(), "1 to 64"))
        }
    }
}

impl From<ClientPort> for u8 {
    fn from(port: ClientPort) -> u8 {
        port.0
    }
}

impl fmt::Display for ClientPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The 64-bit identifier of a cipher suite (IEEE 802.1AE-2018, 14.1). Its upper 24 bits are an OUI:
/// 00-80-C2 for the four standard suites, a locally administered one for ours.
/// Text form: sixteen hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SuiteId(pub u64);

impl FromStr for SuiteId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        if digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()) {
            Ok(Self(u64::from_str_radix(&digits, 16).unwrap_or_default()))
        } else {
            Err(IdError::new(
                "suite identifier",
                text,
                "sixteen hex digits such as 0080c20001000002",
            ))
        }
    }
}

impl fmt::Display for SuiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
text_form!(SuiteId, "0080c20001000002");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_text_form_reads_back(address: [u8; 6], port: u16, id: [u8; 16], suite: u64) {
            let sci = Sci { address: MacAddress(address), port };
            prop_assert_eq!(sci.to_string().parse(), Ok(sci));
            prop_assert_eq!(Sci::from_octets(sci.to_octets()), sci);
            prop_assert_eq!(KeyId(id).to_string().parse(), Ok(KeyId(id)));
            prop_assert_eq!(SuiteId(suite).to_string().parse(), Ok(SuiteId(suite)));
        }

        #[test]
        fn any_text_is_read_without_panic(text: String) {
            let _ = text.parse::<Sci>();
            let _ = text.parse::<MacAddress>();
            let _ = text.parse::<KeyId>();
            let _ = text.parse::<SaeId>();
            let _ = text.parse::<SuiteId>();
        }
    }

    #[test]
    fn an_error_says_what_is_allowed() {
        let error = "02:51:4c".parse::<MacAddress>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"02:51:4c\" is no MAC address: six octets in hex such as 02:51:4c:00:00:0a"
        );
        assert!(ChannelNumber::try_from(0).is_err() && ChannelNumber::try_from(1025).is_err());
        assert!(ClientPort::try_from(65).is_err() && An::try_from(4).is_err());
    }
}
