//! An outside view of the line: what does tshark, which knows nothing of us, see in the record?

use std::{collections::BTreeMap, path::Path, process::Command};

use crate::{
    lab::{
        config::{ADDRESS_A, ADDRESS_B},
        layout::CHANNELS,
    },
    proc, tree,
    ui::{Done, Failure},
};

/// What tshark saw of one SC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sc {
    frames: u64,
    /// ANs that were in use.
    ans: Vec<String>,
}

/// How many MACsec frames of an SC tshark sees in a record.
pub(crate) fn count(record: &Path, address: &str, port: u16) -> Done<u64> {
    match see(record)?.get(&(address.to_owned(), port)) {
        Some(sc) => Ok(sc.frames),
        None => Err(Failure::new(format!(
            "tshark sees no MACsec frame in {}",
            record.display()
        ))),
    }
}

/// Opens the record of the lab's line in tshark; what it sees in words, or why that is not MACsec.
pub(crate) fn look(record: &Path) -> Done<Vec<String>> {
    let seen = see(record)?;
    let mut words = Vec::new();
    for (number, name, carriage, ..) in CHANNELS {
        for address in [ADDRESS_A, ADDRESS_B] {
            let Some(sc) = seen.get(&(address.to_owned(), number)) else {
                return Err(Failure::new(format!(
                    "tshark sees no MACsec frame of {name} from {address} in {}",
                    record.display()
                )));
            };
            words.push(format!(
                "{name:<9} {carriage:<11} SCI {address}/{number}  {} frames, AN {}",
                sc.frames,
                sc.ans.join(" ")
            ));
        }
    }
    Ok(words)
}

fn see(record: &Path) -> Done<BTreeMap<(String, u16), Sc>> {
    let Some(tshark) = tree::program("tshark") else {
        return Err(Failure::new("tshark is absent: cargo xtask setup"));
    };
    let mut command = Command::new(tshark);
    command.arg("-r").arg(record).args([
        "-Y",
        "macsec",
        "-T",
        "fields",
        "-e",
        "macsec.SCI.system_identifier",
        "-e",
        "macsec.SCI.port_identifier",
        "-e",
        "macsec.AN",
    ]);
    proc::output(&mut command).map(|text| parse(&text))
}

fn parse(text: &str) -> BTreeMap<(String, u16), Sc> {
    let mut seen: BTreeMap<(String, u16), Sc> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let (Some(address), Some(port), Some(an)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let Some(port) = number(port) else { continue };
        let sc = seen.entry((address.to_lowercase(), port)).or_default();
        sc.frames += 1;
        let an = number(an).map_or_else(|| an.to_owned(), |an| an.to_string());
        if !sc.ans.contains(&an) {
            sc.ans.push(an);
            sc.ans.sort();
        }
    }
    seen
}

/// Versions of tshark write numbers in either base.
fn number(text: &str) -> Option<u16> {
    match text.strip_prefix("0x") {
        Some(hex) => u16::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_tshark_are_read_in_either_base() {
        let text = "02:51:4c:00:00:0a\t1\t0x02\t7\n02:51:4C:00:00:0a\t0x0001\t3\t9\nnonsense\n";
        let seen = parse(text);
        let sc = &seen[&("02:51:4c:00:00:0a".to_owned(), 1)];
        assert_eq!(
            (sc.frames, sc.ans.clone()),
            (2, vec!["2".to_owned(), "3".to_owned()])
        );
        assert_eq!(seen.len(), 1);
    }
}
