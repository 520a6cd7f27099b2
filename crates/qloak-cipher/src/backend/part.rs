//! Part of a block in and out of a number, without a call to `memcpy`: such a call costs more than
//! the block, and would make the kernel around it give up all of its registers.

/// The octets of `from`, at most 16, as the low octets of a number.
#[inline(always)]
pub(crate) fn read(from: &[u8]) -> u128 {
    let count = from.len();
    if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
        let (first, last) = (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
        overlapped(first.into(), last.into(), count - 8)
    } else if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        overlapped(first.into(), last.into(), count - 4)
    } else if let (Some(first), Some(last)) = (from.first_chunk(), from.last_chunk()) {
        let (first, last) = (u16::from_le_bytes(*first), u16::from_le_bytes(*last));
        overlapped(first.into(), last.into(), count - 2)
    } else {
        from.first().copied().unwrap_or(0).into()
    }
}

/// Two pieces of which the second begins at octet `at`; where they overlap they agree.
#[inline(always)]
fn overlapped(first: u128, last: u128, at: usize) -> u128 {
    first | last << (8 * at)
}

/// As many of the low octets of `number` as `to` has, at most 16.
#[inline(always)]
pub(crate) fn write(number: u128, to: &mut [u8]) {
    let count = to.len();
    if count >= 8 {
        pieces::<8>(number, to);
    } else if count >= 4 {
        pieces::<4>(number, to);
    } else if count >= 2 {
        pieces::<2>(number, to);
    } else if let Some(octet) = to.first_mut() {
        *octet = number as u8;
    }
}

/// The first `N` octets and the last `N`, which may overlap.
#[inline(always)]
fn pieces<const N: usize>(number: u128, to: &mut [u8]) {
    let at = to.len() - N;
    for (start, number) in [(0, number), (at, number >> (8 * at))] {
        if let (Some(to), Some(from)) = (
            to[start..].first_chunk_mut::<N>(),
            number.to_le_bytes().first_chunk::<N>(),
        ) {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_and_nothing_beside_it_changes() {
        let octets: [u8; 16] = std::array::from_fn(|i| 0xa0 + i as u8);
        for count in 0..=16 {
            let number = read(&octets[..count]);
            let mut expected = [0; 16];
            expected[..count].copy_from_slice(&octets[..count]);
            assert_eq!(number.to_le_bytes(), expected);

            let mut out = [0x11; 18];
            write(u128::from_le_bytes(octets), &mut out[1..=count]);
            let mut expected = [0x11; 18];
            expected[1..=count].copy_from_slice(&octets[..count]);
            assert_eq!(out, expected);
        }
    }
}
