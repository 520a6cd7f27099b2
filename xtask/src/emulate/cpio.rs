//! An archive of the form that a Linux kernel unpacks as its first file system ("newc" of cpio).
//!
//!     entry    070701, 13 numbers of 8 hexadecimal digits, name, 0, to a multiple of 4, content, likewise
//!     archive  entry ... entry, and one named TRAILER!!!

use std::collections::BTreeSet;

const FOLDER: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive that grows.
#[derive(Default)]
pub(super) struct Archive {
    octets: Vec<u8>,
    folders: BTreeSet<String>,
    entries: u32,
}

impl Archive {
    /// A folder, with those above it.
    pub(super) fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entry(path, FOLDER, &[]);
        self.folders.insert(path.to_owned());
    }

    /// A file that may be run, with the folders above it.
    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        let path = path.trim_matches('/');
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entry(path, PROGRAM, content);
    }

    /// The archive, closed.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.octets
    }

    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entries += 1;
        let links = if mode == FOLDER { 2 } else { 1 };
        let size = u32::try_from(content.len()).expect("a file of the guest is below 4 GiB");
        let name_size = u32::try_from(name.len() + 1).expect("a name is short");
        let numbers = [
            self.entries,
            mode,
            0,
            0,
            links,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        self.octets.extend(b"070701");
        for number in numbers {
            self.octets.extend(format!("{number:08x}").bytes());
        }
        self.octets.extend(name.bytes());
        self.octets.push(0);
        self.pad();
        self.octets.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.octets.resize(self.octets.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_laid_out_as_the_kernel_reads_it() {
        let mut archive = Archive::default();
        archive.file("init", b"hello");
        let octets = archive.finish();
        let text = String::from_utf8_lossy(&octets);
        assert_eq!(&text[..14], "07070100000001");
        assert_eq!(&text[14..22], "000081ed", "mode");
        assert_eq!(&text[54..62], "00000005", "size");
        assert_eq!(&text[94..102], "00000005", "size of the name with its zero");
        assert_eq!(&text[110..115], "init\0");
        assert_eq!(&octets[116..124], b"hello\0\0\0");
        assert_eq!(&text[124..130], "070701");
        assert!(text.ends_with("TRAILER!!!\0\0\0\0"));
        assert_eq!(octets.len() % 4, 0);
    }

    #[test]
    fn a_folder_stands_once_and_before_what_it_holds() {
        let mut archive = Archive::default();
        archive.file("/a/b/one", b"");
        archive.file("/a/b/two", b"");
        let octets = archive.finish();
        let text = String::from_utf8_lossy(&octets);
        let places: Vec<usize> = ["a\0", "a/b\0", "a/b/one\0", "a/b/two\0"]
            .iter()
            .map(|name| {
                text.find(name)
                    .unwrap_or_else(|| panic!("{name} is missing"))
            })
            .collect();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(text.matches("070701").count(), 5);
    }
}
