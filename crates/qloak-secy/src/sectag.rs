//! The SecTAG: what stands between the addresses and the secure data of a protected frame.
//!
//! ```text
//!  octet 0       1       2       3       4       5       6       7
//!       +-------+-------+-------+-------+-------+-------+-------+-------+
//!       | EtherType     |TCI/AN |  SL   |  PN, low 32 bits              |
//!       |  0x88   0xE5  |       |       |                               |
//!       +-------+-------+-------+-------+-------+-------+-------+-------+
//!       |  SCI: address of the transmitting line port   | channel       |   only if SC = 1
//!       +-------+-------+-------+-------+-------+-------+-------+-------+
//!
//!  TCI/AN  bit 7    6    5    4    3    2    1  0
//!          +----+----+----+----+----+----+--------+     V   version, 0
//!          | V  | ES | SC |SCB | E  | C  |   AN   |     ES  end station: the SCI is SA || 0001
//!          +----+----+----+----+----+----+--------+     SC  the SCI is in the tag
//!                                                       SCB single copy broadcast (EPON)
//!  SL      bits 7..6 zero, bits 5..0 the octets of      E   encrypted
//!          secure data if under 48, else 0              C   changed text
//! ```
//!
//! Sent by us: SC, E and C set, always with the SCI. Understood from others: the same, and ES in
//! place of the SCI. IEEE 802.1AE-2018, clause 9. Whether the SA exists is not asked here.

use std::ops::Range;

use qloak_api::{An, MacAddress, Sci};

use crate::frame::{ADDRESSES, ETHERTYPE_AGREEMENT, ETHERTYPE_MACSEC, ethertype};

/// Octets of a SecTAG with an SCI, the form that is always sent. EtherType included.
pub const OCTETS: usize = 16;

/// Octets of a SecTAG without SCI.
pub const OCTETS_WITHOUT_SCI: usize = 8;

/// Secure data of fewer octets than this states its length in SL (IEEE 802.1AE-2018, 9.7).
pub const SHORT: usize = 48;

const V: u8 = 0x80;
const ES: u8 = 0x40;
const SC: u8 = 0x20;
const SCB: u8 = 0x10;
const E: u8 = 0x08;
const C: u8 = 0x04;

/// Why a frame has no SecTAG to go on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Another EtherType: not a protected frame.
    NoTag,
    /// Key agreement between nodes: for the key handler, not for the SecY.
    Agreement,
    /// Malformed or truncated.
    BadTag,
}

/// A SecTAG that parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecTag {
    /// The channel; `None` when the tag leaves it to be guessed from the only peer (SC and ES clear).
    pub sci: Option<Sci>,
    /// The association number.
    pub an: An,
    /// The low 32 bits of the PN.
    pub pn: u32,
    /// Octets of secure data if under 48, else 0.
    pub short_length: u8,
    /// Octets of the tag itself: 16 or 8.
    pub octets: usize,
}

/// To which SA a frame says it belongs, as a number of its own, and its PN's low half there; none for frames that are
/// not protected. Unverified: good for nothing but the order of frames.
pub fn claimed_order(frame: &[u8]) -> Option<(u128, u32)> {
    let tag = SecTag::parse(frame).ok()?;
    let sci = tag.sci?;
    let mut name = [0; 16];
    name[..6].copy_from_slice(&sci.address.0);
    name[6..8].copy_from_slice(&sci.port.to_be_bytes());
    name[15] = tag.an.index() as u8;
    Some((u128::from_be_bytes(name), tag.pn))
}

impl SecTag {
    /// Reads the SecTAG of a frame.
    pub fn parse(frame: &[u8]) -> Result<Self, Refused> {
        match ethertype(frame) {
            Some(ETHERTYPE_MACSEC) => {}
            Some(ETHERTYPE_AGREEMENT) => return Err(Refused::Agreement),
            Some(_) => return Err(Refused::NoTag),
            None => return Err(Refused::BadTag),
        }
        let (tag, tail) = frame
            .get(ADDRESSES + 2..)
            .and_then(|rest| rest.split_first_chunk::<6>())
            .ok_or(Refused::BadTag)?;
        let [tci, sl, a, b, c, d] = *tag;

        //= IEEE 802.1AE-2018 9.5
        // Version 0 only; the SCI is either in the tag or named by ES or SCB, never both.
        if tci & V != 0 || (tci & SC != 0 && tci & (ES | SCB) != 0) {
            return Err(Refused::BadTag);
        }
        //= IEEE 802.1AE-2018 9.5, 10.6
        // Every suite here encrypts and so changes the text. A frame without both bits was made under
        // no SA of ours.
        if tci & (E | C) != E | C {
            return Err(Refused::BadTag);
        }
        //= IEEE 802.1AE-2018 9.7
        // The two high bits of SL are zero, and a length is stated only under 48 octets.
        if usize::from(sl) >= SHORT {
            return Err(Refused::BadTag);
        }
        let (sci, octets) = if tci & SC != 0 {
            let sci = tail.first_chunk::<8>().ok_or(Refused::BadTag)?;
            (Some(Sci::from_octets(*sci)), OCTETS)
        } else {
            (sci_from_address(frame, tci), OCTETS_WITHOUT_SCI)
        };
        Ok(Self {
            sci,
            an: An::from_low_bits(tci),
            pn: u32::from_be_bytes([a, b, c, d]),
            short_length: sl,
            octets,
        })
    }

    /// Where the secure data lies in a frame of `frame_octets` under a suite with an ICV of
    /// `icv_octets`; `None` when the lengths contradict each other. What follows the ICV of a short
    /// frame is padding of the line.
    pub fn secure_data(&self, frame_octets: usize, icv_octets: usize) -> Option<Range<usize>> {
        let start = ADDRESSES + self.octets;
        let room = frame_octets.checked_sub(start + icv_octets)?;
        //= IEEE 802.1AE-2018 9.7
        // SL 0 means 48 octets or more; else the frame has at least as many as SL says. The first two
        // octets are the EtherType, without which the client's frame would be none.
        let octets = match usize::from(self.short_length) {
            0 if room >= SHORT => room,
            short if (2..=room).contains(&short) => short,
            _ => return None,
        };
        Some(start..start + octets)
    }

    /// The sixteen octets as sent: SC, E and C set, SCI present.
    pub fn compose(sci: Sci, an: An, pn: u32, secure_octets: usize) -> [u8; OCTETS] {
        let mut tag = [0; OCTETS];
        tag[..2].copy_from_slice(&ETHERTYPE_MACSEC.to_be_bytes());
        tag[2] = SC | E | C | an.number();
        tag[3] = if secure_octets < SHORT {
            secure_octets as u8
        } else {
            0
        };
        tag[4..8].copy_from_slice(&pn.to_be_bytes());
        tag[8..].copy_from_slice(&sci.to_octets());
        tag
    }
}

/// The SCI of a frame that does not carry it.
fn sci_from_address(frame: &[u8], tci: u8) -> Option<Sci> {
    //= IEEE 802.1AE-2018 9.5, 9.9
    // ES: the source address and port 00-01. With SCB the port is the reserved 00-00, which is no
    // channel here.
    let address = frame.get(6..ADDRESSES)?.first_chunk::<6>()?;
    if tci & ES == 0 {
        return None;
    }
    Some(Sci {
        address: MacAddress(*address),
        port: u16::from(tci & SCB == 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SCI: Sci = Sci {
        address: MacAddress([2, 0x51, 0x4c, 0, 0, 0x0a]),
        port: 3,
    };

    fn frame(tci: u8, sl: u8, rest: usize) -> Vec<u8> {
        let mut frame = vec![0x11; ADDRESSES];
        frame.extend(ETHERTYPE_MACSEC.to_be_bytes());
        frame.extend([tci, sl, 0, 0, 0, 9]);
        frame.extend(SCI.to_octets());
        frame.resize(frame.len() + rest, 0);
        frame
    }

    #[test]
    fn what_is_composed_reads_back() {
        for (secure, sl) in [(2, 2), (47, 47), (48, 0), (1500, 0)] {
            let mut frame = vec![0x11; ADDRESSES];
            frame.extend(SecTag::compose(SCI, An::from_low_bits(2), 7, secure));
            frame.resize(frame.len() + secure + 16, 0);
            let tag = SecTag::parse(&frame).unwrap();
            assert_eq!(tag.sci, Some(SCI));
            assert_eq!((tag.an.number(), tag.pn, tag.short_length), (2, 7, sl));
            assert_eq!(tag.secure_data(frame.len(), 16), Some(28..28 + secure));
        }
    }

    //= IEEE 802.1AE-2018 9.5
    #[test]
    fn bits_that_contradict_are_refused() {
        assert!(SecTag::parse(&frame(SC | E | C, 0, 64)).is_ok());
        for tci in [
            V | SC | E | C,
            SC | ES | E | C,
            SC | SCB | E | C,
            SC,
            SC | E,
            SC | C,
        ] {
            assert_eq!(
                SecTag::parse(&frame(tci, 0, 64)),
                Err(Refused::BadTag),
                "{tci:#04x}"
            );
        }
    }

    //= IEEE 802.1AE-2018 9.9
    #[test]
    fn an_end_station_is_known_by_its_address() {
        let sci = |tci| SecTag::parse(&frame(tci, 0, 64)).unwrap().sci;
        let address = MacAddress([0x11; 6]);
        assert_eq!(sci(ES | E | C), Some(Sci { address, port: 1 }));
        assert_eq!(sci(ES | SCB | E | C), Some(Sci { address, port: 0 }));
        assert_eq!(sci(E | C), None);
    }

    //= IEEE 802.1AE-2018 9.7
    #[test]
    fn short_length_is_strict() {
        for sl in [48, 63, 64, 128, 255] {
            assert_eq!(
                SecTag::parse(&frame(SC | E | C, sl, 64)),
                Err(Refused::BadTag)
            );
        }
        let data = |sl, rest| {
            let frame = frame(SC | E | C, sl, rest);
            SecTag::parse(&frame).unwrap().secure_data(frame.len(), 16)
        };
        assert_eq!(data(0, 63), None, "47 octets must say so");
        assert_eq!(data(0, 64), Some(28..76));
        assert_eq!(data(46, 62), Some(28..74));
        assert_eq!(
            data(46, 100),
            Some(28..74),
            "padding of the line is left away"
        );
        assert_eq!(data(46, 61), None, "truncated");
        assert_eq!(data(1, 60), None, "no EtherType");
        assert_eq!(data(0, 3), None);
    }

    #[test]
    fn another_ethertype_is_no_bad_tag() {
        let mut other = frame(SC | E | C, 0, 64);
        other[12..14].copy_from_slice(&[8, 0]);
        assert_eq!(SecTag::parse(&other), Err(Refused::NoTag));
        other[12..14].copy_from_slice(&ETHERTYPE_AGREEMENT.to_be_bytes());
        assert_eq!(SecTag::parse(&other), Err(Refused::Agreement));
        assert_eq!(SecTag::parse(&other[..13]), Err(Refused::BadTag));
        assert_eq!(SecTag::parse(&[]), Err(Refused::BadTag));
    }

    proptest! {
        #[test]
        fn any_octets_are_read_without_panic(mut octets in prop::collection::vec(any::<u8>(), 0..96), tagged: bool, icv in 0..20_usize) {
            if tagged && octets.len() > 14 {
                octets[12..14].copy_from_slice(&ETHERTYPE_MACSEC.to_be_bytes());
            }
            let tag = SecTag::parse(&octets).ok();
            if let Some(data) = tag.and_then(|tag| tag.secure_data(octets.len(), icv)) {
                prop_assert!(data.start < data.end && data.end + icv <= octets.len());
            }
        }
    }
}
