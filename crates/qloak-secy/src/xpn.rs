//! Packet numbers: the 64-bit PN from its low half, and the nonce from the PN.
//!
//! With extended packet numbering only the low 32 bits of a PN cross the line. The receiver finds the
//! upper half from the lower edge of its replay window, which follows the sender as long as fewer
//! than 2^31 frames are lost in a row. A low half of 0 is legal on the line: it is the first frame
//! after a carry.

use qloak_api::Sci;

/// Largest PN of a channel with 32-bit PNs (IEEE 802.1AE-2018, 9.8).
pub const PN32_LAST: u64 = u32::MAX as u64;

/// Largest PN of a channel with XPN. One less than 64 bits allow, so that "the next PN" always exists.
pub const PN64_LAST: u64 = u64::MAX - 1;

/// The short SCI of every SC here. Each SAK serves one SC only, so one value is enough
/// (IEEE 802.1AE-2018, 9.8 and 10.7.13 let the key agreement choose it).
pub const SSCI: u32 = 1;

/// The 64-bit PN of a frame whose SecTAG carries `low`, given the lowest PN that is still accepted.
pub fn recover(lowest_acceptable: u64, low: u32) -> u64 {
    //= IEEE 802.1AE-2018 10.6.2
    // The upper half is that of the window's lower edge; one more when the low half has passed its
    // carry, seen from the top bit of the edge being set and that of the frame not.
    const TOP: u32 = 1 << 31;
    let upper = lowest_acceptable & !PN32_LAST;
    let carried = lowest_acceptable as u32 & TOP != 0 && low & TOP == 0;
    let upper = if carried {
        upper.wrapping_add(1 << 32)
    } else {
        upper
    };
    upper | u64::from(low)
}

/// The nonce with XPN: salt xor (SSCI || PN).
pub fn nonce(salt: &[u8; 12], pn: u64) -> [u8; 12] {
    //= IEEE 802.1AE-2018 14.7, 14.8
    // The 96-bit IV of the XPN suites.
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&SSCI.to_be_bytes());
    nonce[4..].copy_from_slice(&pn.to_be_bytes());
    for (octet, salt) in nonce.iter_mut().zip(salt) {
        *octet ^= salt;
    }
    nonce
}

/// The nonce with 32-bit PNs: SCI || PN.
pub fn nonce_pn32(sci: Sci, pn: u32) -> [u8; 12] {
    //= IEEE 802.1AE-2018 14.5, 14.6
    // The 96-bit IV of the suites without XPN.
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&sci.to_octets());
    nonce[8..].copy_from_slice(&pn.to_be_bytes());
    nonce
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    //= IEEE 802.1AE-2018 10.6.2
    #[test]
    fn the_upper_half_follows_the_carry() {
        assert_eq!(recover(1, 1), 1);
        assert_eq!(recover(0xffff_fff0, 0xffff_ffff), 0xffff_ffff);
        assert_eq!(recover(0xffff_fff0, 0), 1 << 32, "a low PN of 0 is legal");
        assert_eq!(recover(0xffff_fff0, 5), (1 << 32) + 5);
        assert_eq!(recover(1 << 32, 5), (1 << 32) + 5);
        assert_eq!(recover(u64::MAX, 0), 0, "past the end: late, not a panic");
    }

    proptest! {
        #[test]
        fn every_pn_less_than_2_31_ahead_is_recovered(edge in 0..u64::MAX - (1 << 31), ahead in 0..1_u64 << 31) {
            let pn = edge + ahead;
            prop_assert_eq!(recover(edge, pn as u32), pn);
        }
    }

    #[test]
    fn nonces_never_meet_while_pns_differ() {
        let salt = [0x5a; 12];
        assert_ne!(nonce(&salt, 1), nonce(&salt, (1 << 32) + 1));
        assert_eq!(nonce(&[0; 12], 7), [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
    }
}
