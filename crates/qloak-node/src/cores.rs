//! The machine's cores: which of them this process may use, a thread kept on one, and where they lie beside the
//! line's interface.
//!
//! A thread that is kept on a core first touches its batches there, and the kernel puts memory where it is first
//! touched: nothing else is done for memory.

use std::{fs, io, path::Path};

use qloak_port::PortConfig;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The cores that this process may use, ascending; none when the kernel does not say.
pub(crate) fn usable() -> Option<Vec<usize>> {
    let set = sched_getaffinity(None).ok()?;
    Some(
        (0..CpuSet::MAX_CPU)
            .filter(|core| set.is_set(*core))
            .collect(),
    )
}

/// Keeps the calling thread on a core, if one is named.
pub(crate) fn stay_on(core: Option<usize>) -> Result<(), crate::Error> {
    let Some(core) = core else { return Ok(()) };
    let refused = |error: io::Error| crate::Error::Core { core, error };
    if core >= CpuSet::MAX_CPU {
        return Err(refused(io::ErrorKind::InvalidInput.into()));
    }
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).map_err(|error| refused(error.into()))
}

/// What to say when an interface of the line hangs on another NUMA node than a core that serves it. `root` is `/`.
pub(crate) fn distance(root: &Path, line: &PortConfig, core: usize) -> Option<String> {
    let name = interface(line)?;
    let there = interface_node(root, name)?;
    let here = core_node(root, core)?;
    if here == there {
        return None;
    }
    let near = cores_of(root, there).unwrap_or_else(|| "none that is known".to_owned());
    Some(format!(
        "the line's interface {name} is at NUMA node {there}, core {core} of pipeline.cores at node {here}: each frame crosses between the two; cores near the interface are {near}"
    ))
}

/// The interface of a port in this process's own network namespace.
fn interface(port: &PortConfig) -> Option<&str> {
    let interface = match port {
        PortConfig::AfPacket(config) => &config.interface,
        PortConfig::AfXdp(config) => &config.interface,
        PortConfig::Impaired(config) => return interface(&config.port),
        PortConfig::Tap(_) | PortConfig::Memory(_) | PortConfig::Pcap(_) => return None,
    };
    interface.namespace.is_none().then_some(&interface.name)
}

/// The NUMA node of an interface's device; none for one without a device, or where there is one node only
/// (Documentation/ABI/testing/sysfs-bus-pci: -1).
fn interface_node(root: &Path, name: &str) -> Option<usize> {
    let file = root.join(format!("sys/class/net/{name}/device/numa_node"));
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The NUMA node of a core.
fn core_node(root: &Path, core: usize) -> Option<usize> {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{core}"));
    let entries = fs::read_dir(folder).ok()?.flatten();
    entries
        .filter_map(|entry| {
            entry
                .file_name()
                .to_str()?
                .strip_prefix("node")?
                .parse()
                .ok()
        })
        .next()
}

/// The cores of a NUMA node in the kernel's words: `0-7,16-23`.
fn cores_of(root: &Path, node: usize) -> Option<String> {
    let file = root.join(format!("sys/devices/system/node/node{node}/cpulist"));
    let text = fs::read_to_string(file).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use qloak_port::{AfPacketConfig, TapConfig};

    /// A machine of two NUMA nodes with an interface at node 1.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        put("sys/class/net/eth1/device/numa_node", "1\n");
        put("sys/class/net/eth2/device/numa_node", "-1\n");
        put("sys/devices/system/cpu/cpu2/node0/x", "");
        put("sys/devices/system/cpu/cpu9/node1/x", "");
        put("sys/devices/system/node/node1/cpulist", "8-15\n");
        root
    }

    #[test]
    fn a_core_far_from_the_line_is_told_and_what_to_do() {
        let machine = machine();
        let line = |name: &'static str| PortConfig::AfPacket(AfPacketConfig::new(name));
        let said = |name, core| distance(machine.path(), &line(name), core);
        let words = said("eth1", 2).expect("far");
        assert!(
            words.contains("eth1 is at NUMA node 1")
                && words.contains("core 2 of pipeline.cores at node 0")
                && words.contains("8-15"),
            "{words}"
        );
        assert_eq!(said("eth1", 9), None, "the same node");
        assert_eq!(said("eth2", 2), None, "a machine of one node");
        assert_eq!(said("veth", 2), None, "an interface without a device");
        assert_eq!(said("eth1", 77), None, "a core that nothing is known of");
        let tap = PortConfig::Tap(TapConfig::new("eth1"));
        assert_eq!(distance(machine.path(), &tap, 2), None);
    }

    #[test]
    fn a_thread_stays_on_its_core_and_a_core_that_is_not_there_is_named() {
        let core = *usable().expect("cores").last().expect("one");
        std::thread::spawn(move || {
            stay_on(Some(core)).expect("it may");
            assert_eq!(usable(), Some(vec![core]));
        })
        .join()
        .expect("pinned");
        for core in [CpuSet::MAX_CPU - 1, CpuSet::MAX_CPU, usize::MAX] {
            let error = stay_on(Some(core)).expect_err("no such core").to_string();
            assert!(error.contains(&core.to_string()), "{error}");
        }
        stay_on(None).expect("nothing is asked");
    }
}
