//! Several secrets become one key, such that the key is safe while any one of them is.
//!
//! The form of ETSI TS 103 744 (CatKDF): the secrets one after the other, each behind its length, are
//! the input of HKDF; what both ends said while agreeing is the context. The QKD key stands in the
//! slot of the pre-shared key, before the key exchanges. Lengths are written out, so that no secret can
//! be read as part of its neighbour, and each secret carries its label, so that a missing one gives
//! another key rather than the same one: a link never falls back to a weaker policy silently.

use zeroize::Zeroizing;

use crate::{Key, derive, limits};

/// One secret that goes into a combined key.
pub struct Part<'a> {
    /// Where it comes from, such as `qkd` or `ml-kem-768`; both ends must say the same.
    pub label: &'a str,
    /// The secret.
    pub secret: &'a Key,
}

/// Why secrets cannot be combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CombineError {
    /// Fewer than one or more than eight secrets.
    #[error("{given} secrets were given to combine; 1 to 8 are allowed")]
    Count {
        /// Secrets that were given.
        given: usize,
    },
    /// A label is longer than 64 octets.
    #[error("the label of a secret has {given} octets; at most 64 are allowed")]
    Label {
        /// Octets of the label.
        given: usize,
    },
}

/// One key of 32 octets made of all `parts`, in their order. `context` is what both ends agree on
/// in the open (at most 65535 octets count), for example the hash of the messages exchanged.
///
/// # Errors
/// No part, more than eight, or a label over 64 octets.
pub fn combine(parts: &[Part<'_>], context: &[u8]) -> Result<Key, CombineError> {
    if parts.is_empty() || parts.len() > limits::COMBINED_MAX {
        return Err(CombineError::Count { given: parts.len() });
    }
    let octets = parts
        .iter()
        .map(|part| 4 + part.label.len() + part.secret.octets());
    // Whole capacity at once: a growing vector would leave unwiped copies behind.
    let mut input = Zeroizing::new(Vec::with_capacity(octets.sum()));
    for part in parts {
        if part.label.len() > 64 {
            return Err(CombineError::Label {
                given: part.label.len(),
            });
        }
        for field in [part.label.as_bytes(), part.secret.as_slice()] {
            // Both bounds (64 and 128 octets) are far below 65535.
            input.extend_from_slice(&(field.len() as u16).to_be_bytes());
            input.extend_from_slice(field);
        }
    }
    let context = &context[..context.len().min(usize::from(u16::MAX))];
    Ok(Key::derived(32, |room| {
        derive::expand_octets(&input, b"combine", &[context], room);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(octet: u8, octets: usize) -> Key {
        Key::from_slice(&vec![octet; octets]).unwrap_or_else(|e| panic!("{e}"))
    }

    fn combined(parts: &[(&str, &Key)], context: &[u8]) -> Key {
        let parts: Vec<Part<'_>> = parts
            .iter()
            .map(|(label, secret)| Part { label, secret })
            .collect();
        combine(&parts, context).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn every_secret_label_order_and_context_counts() {
        let (qkd, kem, other) = (key(1, 32), key(2, 32), key(3, 32));
        let base = combined(&[("qkd", &qkd), ("kem", &kem)], b"t");
        for different in [
            combined(&[("qkd", &qkd), ("kem", &other)], b"t"),
            combined(&[("qkd", &other), ("kem", &kem)], b"t"),
            combined(&[("qkd", &qkd), ("dh", &kem)], b"t"),
            combined(&[("kem", &kem), ("qkd", &qkd)], b"t"),
            combined(&[("qkd", &qkd)], b"t"),
            combined(&[("qkd", &qkd), ("kem", &kem)], b"u"),
        ] {
            assert!(!base.same_as(&different));
        }
        assert!(base.same_as(&combined(&[("qkd", &qkd), ("kem", &kem)], b"t")));
    }

    #[test]
    fn a_secret_cannot_be_shifted_into_its_neighbour() {
        let left = combined(&[("a", &key(1, 16)), ("b", &key(1, 32))], b"");
        let right = combined(&[("a", &key(1, 32)), ("b", &key(1, 16))], b"");
        assert!(!left.same_as(&right));
    }

    #[test]
    fn none_and_too_many_are_refused() {
        assert_eq!(
            combine(&[], b"").err(),
            Some(CombineError::Count { given: 0 })
        );
        let secret = key(1, 32);
        let long = "x".repeat(65);
        let part = Part {
            label: &long,
            secret: &secret,
        };
        assert_eq!(
            combine(&[part], b"").err(),
            Some(CombineError::Label { given: 65 })
        );
    }
}
