//! Ids of nodes and recordings: equal for the same node or recording, different for others.

use std::fs::read_to_string;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use rpd_core::session::{Process, Session};

/// The machine that rpd runs on, which is the machine it recorded on.
pub(crate) struct Node {
    /// `hash` of the machine id, folded.
    pub(crate) id: i64,
    pub(crate) hash: i64,
    pub(crate) machine_id: String,
    pub(crate) system_name: String,
    pub(crate) hostname: String,
    pub(crate) release: String,
    pub(crate) version: String,
    pub(crate) hardware_name: String,
    pub(crate) domain_name: String,
}

impl Node {
    /// The machine that a session was recorded on.
    pub(crate) fn from_session(session: &Session) -> Node {
        match &session.origin {
            Some(origin) => Node {
                id: origin.node,
                hash: origin.node_hash,
                machine_id: origin.machine_id.clone(),
                system_name: origin.system_name.clone(),
                hostname: origin.hostname.clone(),
                release: origin.release.clone(),
                version: origin.version.clone(),
                hardware_name: origin.hardware_name.clone(),
                domain_name: origin.domain_name.clone(),
            },
            None => Node::this(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "files of the system")]
    pub(crate) fn this() -> Node {
        let kernel = |name: &str| {
            read_to_string(format!("/proc/sys/kernel/{name}"))
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let machine_id = machine_id(Path::new("/"));
        let hash = hash(machine_id.as_bytes(), 0) % (i64::MAX as u64);
        Node {
            id: (hash % u64::from(u32::MAX)).cast_signed(),
            hash: hash.cast_signed(),
            machine_id,
            system_name: kernel("ostype"),
            hostname: kernel("hostname"),
            release: kernel("osrelease"),
            version: kernel("version"),
            hardware_name: std::env::consts::ARCH.to_owned(),
            domain_name: kernel("domainname"),
        }
    }
}

/// Files with an id of the machine.
const IDS: [&str; 2] = ["etc/machine-id", "var/lib/dbus/machine-id"];
/// Files with a serial number of the machine, which is only stored as a hash: the number's name in the hashed text, and
/// the file.
const NUMBERS: [(&str, &str); 2] = [
    ("product_uuid", "sys/class/dmi/id/product_uuid"),
    ("board_serial", "sys/class/dmi/id/board_serial"),
];
/// Files that together tell machines apart.
const FACTS: [&str; 4] = [
    "proc/cpuinfo",
    "proc/version",
    "proc/devices",
    "proc/filesystems",
];
/// Network interfaces that are looked at first.
const INTERFACES: [&str; 4] = ["eth0", "enp0s3", "wlan0", "eno1"];

/// The id of the machine whose files are below `root`: the same that rocprofv3 finds there, which takes the first of these that is
/// not empty. Empty where there is none, which containers without `/proc` and network are.
#[expect(
    clippy::disallowed_methods,
    reason = "files of the kernel and of the system"
)]
fn machine_id(root: &Path) -> String {
    let first_line = |path: &Path| -> Option<String> {
        let bytes = std::fs::read(path).ok()?;
        let line = bytes.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line).into_owned();
        (!line.is_empty()).then_some(line)
    };
    if let Some(id) = IDS.iter().find_map(|path| first_line(&root.join(path))) {
        return id;
    }
    let hashed = |salt: &str, bytes: &[u8]| {
        let digest = Sha256::new()
            .chain_update(format!("{salt}:"))
            .chain_update(bytes);
        let digits = digest
            .finalize()
            .into_iter()
            .map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    for (salt, path) in NUMBERS {
        if let Some(number) = first_line(&root.join(path)) {
            return hashed(salt, number.as_bytes());
        }
    }
    let facts = FACTS
        .iter()
        .filter_map(|path| std::fs::read(root.join(path)).ok());
    let facts: Vec<u8> = facts.flatten().collect();
    if !facts.is_empty() {
        return hashed("procinfo", &facts);
    }
    let directory = root.join("sys/class/net");
    let address = |interface: &Path| first_line(&directory.join(interface).join("address"));
    // Those of some interfaces are the same on all machines: 00:00:00:00:00:00.
    let is_its_own = |address: &String| {
        let mut parts = address.split(':');
        let first = parts.next();
        parts.any(|part| Some(part) != first)
    };
    let known = INTERFACES.iter().find_map(|name| address(Path::new(name)));
    let found = known.or_else(|| {
        let entries = std::fs::read_dir(&directory).ok()?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let mut addresses = names.filter_map(|name| address(Path::new(&name)));
        addresses.find(is_its_own)
    });
    found.map_or_else(String::new, |address| {
        hashed("mac_address", address.as_bytes())
    })
}

/// The id of a recording: a UUID of version 7's layout over the process' start on the boot clock, with the rest drawn
/// from values that differ between process images and machines.
pub(crate) fn guid(process: &Process, node: &Node) -> String {
    let milliseconds = process.init_time.0 / 1_000_000;
    let origin = format!(
        "{}|{}|{}|{}|{}|{}",
        node.machine_id,
        process.pid,
        process.ppid,
        process.start_ticks,
        process.init_time,
        process.real_time
    );
    let random = hash(origin.as_bytes(), 1) & (u64::MAX >> 2) | 1 << 63;
    format!(
        "{:08x}-{:04x}-7{:03x}-{:04x}-{:012x}",
        milliseconds >> 16 & 0xffff_ffff,
        milliseconds & 0xffff,
        milliseconds & 0xfff,
        random >> 48,
        random & 0xffff_ffff_ffff,
    )
}

/// FNV-1a with a final mix: stable over versions of rpd, which the standard library's hash is not.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = bytes.iter().fold(
        0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
        |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3),
    );
    hash = (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ hash >> 29
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::ids::{Nanoseconds, ProcessId};

    /// The digests are those of `printf 'product_uuid:4C4C' | sha256sum` and the like.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "inputs of the test")]
    fn machine_ids_are_those_of_the_original() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, text).expect("written");
        };
        assert_eq!(machine_id(root.path()), "");
        write("sys/class/net/lo/address", "00:00:00:00:00:00\n");
        assert_eq!(machine_id(root.path()), "");
        write("sys/class/net/wg7/address", "02:42:ac:11:00:02\n");
        let mac = "2e419e3c5e966a139e7d5aadb4220cdfa17ca79edc9f776eaa292dd9421ee409";
        assert_eq!(machine_id(root.path()), mac);
        write("proc/version", "Linux 6\n");
        write("proc/cpuinfo", "cpu 1\n");
        let facts = "2b62982e9d7824ef58de70b62807d98fc6d6a214c666e9d33fff5b4b473bc89d";
        assert_eq!(machine_id(root.path()), facts);
        write("sys/class/dmi/id/board_serial", "B1\n");
        let board = "60c1fbd0874d123dc9bae5b209613ab05b4ce673476d8e3041d8da7a86000798";
        assert_eq!(machine_id(root.path()), board);
        write("sys/class/dmi/id/product_uuid", "4C4C\nmore\n");
        let product = "37cf3dc1d011d3d7da58e31c0837c92bfbf38ad96b790f6dfc02103b7f67647b";
        assert_eq!(machine_id(root.path()), product);
        write("var/lib/dbus/machine-id", "dbus\n");
        assert_eq!(machine_id(root.path()), "dbus");
        write("etc/machine-id", "");
        assert_eq!(machine_id(root.path()), "dbus");
        write("etc/machine-id", "12ab\n");
        assert_eq!(machine_id(root.path()), "12ab");
    }

    #[test]
    fn guids_have_the_layout_and_differ() {
        let node = Node::this();
        let process = Process {
            pid: ProcessId(4333),
            init_time: Nanoseconds(5_760_439_747_740),
            ..Process::default()
        };
        let one = guid(&process, &node);
        assert_eq!(one.len(), 36);
        // 5760439 ms is 0x57e5b7.
        assert!(one.starts_with("00000057-e5b7-75b7-"), "{one}");
        assert!(matches!(one.as_bytes()[19], b'8'..=b'b'), "{one}");
        assert_eq!(guid(&process, &node), one);
        let other = Process {
            pid: ProcessId(4334),
            ..process
        };
        assert_ne!(guid(&other, &node), one);
    }
}
