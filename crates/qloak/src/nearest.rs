//! "Did you mean ...?": the names nearest to one that does not exist.

use crate::limits;

/// The known names nearest to `given`, nearest first; none that are too far to have been meant.
pub(crate) fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let given = normal(given);
    // A third of the letters may be wrong; of two letters none.
    let bound = match given.len() {
        0..3 => 0,
        letters => letters.div_ceil(3).max(2),
    };
    let mut near: Vec<_> = known
        .into_iter()
        .map(|name| (distance(&given, &normal(name)), name))
        .filter(|(distance, _)| *distance <= bound)
        .collect();
    near.sort();
    near.into_iter()
        .take(limits::SUGGESTIONS_MAX)
        .map(|(_, name)| name)
        .collect()
}

/// `AES_256_GCM`, `aes256gcm` and `aes-256-gcm` are one.
fn normal(name: &str) -> Vec<char> {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(64)
        .collect()
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let above = *cell;
            *cell = (diagonal + usize::from(x != y))
                .min(above + 1)
                .min(left + 1);
            diagonal = above;
            left = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(a.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 5] = [
        "aes-128-gcm",
        "aes-256-gcm",
        "camellia-256-gcm",
        "serpent-256-ocb",
        "chacha20-poly1305",
    ];

    #[test]
    fn the_nearest_name_comes_first() {
        for (given, meant) in [
            ("aes-265-gcm", "aes-256-gcm"),
            ("AES256GCM", "aes-256-gcm"),
            ("camelia-256-gcm", "camellia-256-gcm"),
            ("serpent-256-ocb3", "serpent-256-ocb"),
            ("chacha20poly1305", "chacha20-poly1305"),
        ] {
            assert_eq!(nearest(given, KNOWN).first(), Some(&meant), "{given}");
        }
        assert!(nearest("des", KNOWN).is_empty());
        assert!(nearest("", KNOWN).is_empty());
        assert!(nearest("7", ["1", "2"]).is_empty());
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        let of = |a: &str, b: &str| {
            distance(
                &a.chars().collect::<Vec<_>>(),
                &b.chars().collect::<Vec<_>>(),
            )
        };
        assert_eq!(of("kitten", "sitting"), 3);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("abc", ""), 3);
        assert_eq!(of("abc", "abc"), 0);
    }
}
