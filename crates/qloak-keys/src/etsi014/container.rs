//! The key container (6.3): the one document that carries keys, and therefore the one whose buffers
//! are all wiped. Keys are decoded from the body itself straight into their own container.

use base64::{
    DecodeSliceError, Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose::STANDARD},
};
use qloak_api::KeyId;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::{DocumentError, an_object, bounded, not_too_long};
use crate::{Key, NamedKey, limits};

/// Standard alphabet (RFC 4648, 4); padding is read leniently, since makers differ.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

#[derive(Deserialize)]
struct Container<'a> {
    #[serde(borrow)]
    keys: Vec<Entry<'a>>,
}

/// Borrowed text, so that serde copies no key.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(rename = "key_ID")]
    key_id: KeyId,
    #[serde(borrow)]
    key: &'a str,
}

/// Reads a key container. The body is wiped, whatever comes of it.
///
/// # Errors
/// See [`DocumentError`]; more than 1024 keys are too many. No error contains a part of the body.
pub fn parse_container(mut body: Zeroizing<Vec<u8>>) -> Result<Vec<NamedKey>, DocumentError> {
    const DOCUMENT: &str = "key container";
    not_too_long(&body, DOCUMENT)?;
    an_object(&body, DOCUMENT)?;
    plain_solidus(&mut body);
    let container: Container<'_> =
        serde_json::from_slice(&body).map_err(|error| DocumentError::Form {
            document: DOCUMENT,
            // serde's own words may quote the value that it found.
            reason: format!(
                "no JSON of that form at line {}, column {}",
                error.line(),
                error.column()
            ),
        })?;
    bounded("keys", container.keys.len(), limits::KEYS_PER_CONTAINER_MAX)?;
    let read = |(index, entry): (usize, &Entry<'_>)| {
        let key = decode(entry.key).map_err(|reason| DocumentError::Key { index, reason })?;
        Ok(NamedKey {
            id: entry.key_id,
            key,
        })
    };
    container.keys.iter().enumerate().map(read).collect()
}

/// Writes a key container. The answer is wiped when it is dropped.
pub fn write_container<'a>(
    keys: impl IntoIterator<Item = (&'a KeyId, &'a Key)>,
) -> Zeroizing<Vec<u8>> {
    let keys: Vec<_> = keys.into_iter().collect();
    // The whole capacity at once: a growing vector would leave unwiped copies behind.
    let octets = |(_, key): &(&KeyId, &Key)| 80 + key.octets().div_ceil(3) * 4;
    let capacity = 16 + keys.iter().map(octets).sum::<usize>();
    let mut body = Zeroizing::new(Vec::with_capacity(capacity));
    body.extend_from_slice(b"{\"keys\":[");
    let mut text = Zeroizing::new([0; limits::KEY_OCTETS_BASE64]);
    for (index, (id, key)) in keys.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(b"{\"key_ID\":\"");
        body.extend_from_slice(id.to_string().as_bytes());
        body.extend_from_slice(b"\",\"key\":\"");
        // A Key has at most 128 octets, for which the room is made.
        let written = STANDARD
            .encode_slice(key.as_slice(), text.as_mut_slice())
            .unwrap_or(0);
        body.extend_from_slice(&text[..written]);
        body.extend_from_slice(b"\"}");
    }
    body.extend_from_slice(b"]}");
    debug_assert!(body.len() <= capacity);
    body
}

fn decode(text: &str) -> Result<Key, &'static str> {
    let mut octets = Zeroizing::new([0; *limits::KEY_OCTETS.end() + 3]);
    let length = match LENIENT.decode_slice(text, octets.as_mut_slice()) {
        Ok(length) => length,
        Err(DecodeSliceError::OutputSliceTooSmall) => return Err("has more than 1024 bits"),
        Err(DecodeSliceError::DecodeError(_)) => return Err("is no base64"),
    };
    Key::from_slice(&octets[..length]).map_err(|_| "has a length outside 64 to 1024 bits")
}

/// Some writers of JSON escape each `/` as `\/`, and base64 has many. A text with an escape cannot be
/// borrowed, so it is made plain here, inside the buffer that is wiped.
fn plain_solidus(body: &mut Vec<u8>) {
    let mut to = 0;
    let mut from = 0;
    while let Some(&octet) = body.get(from) {
        let escaped = (octet == b'\\')
            .then(|| body.get(from + 1))
            .flatten()
            .copied();
        match escaped {
            Some(b'/') => {
                body[to] = b'/';
                to += 1;
                from += 2;
            }
            Some(next) => {
                body[to] = octet;
                body[to + 1] = next;
                to += 2;
                from += 2;
            }
            None => {
                body[to] = octet;
                to += 1;
                from += 1;
            }
        }
    }
    // What stays behind the new end is part of the same allocation and wiped with it.
    body[to..].fill(0);
    body.truncate(to);
}
