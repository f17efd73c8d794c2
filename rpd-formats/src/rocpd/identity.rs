//! Which node and which recording: ids that are equal where they must be and differ where they must.

use std::fs::read_to_string;

use rpd_core::session::{Process, Session};

/// The machine that rpd runs on, which is the one it recorded on.
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
    pub(crate) fn of(session: &Session) -> Node {
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
        let hostname = kernel("hostname");
        let machine_id = ["/etc/machine-id", "/var/lib/dbus/machine-id"]
            .into_iter()
            .filter_map(|path| read_to_string(path).ok())
            .filter_map(|text| text.lines().next().map(str::trim).map(str::to_owned))
            .find(|id| !id.is_empty())
            // Containers often have no machine id.
            .unwrap_or_else(|| format!("hostname:{hostname}"));
        let hash = hash(machine_id.as_bytes(), 0) % (i64::MAX as u64);
        Node {
            id: (hash % u64::from(u32::MAX)).cast_signed(),
            hash: hash.cast_signed(),
            machine_id,
            system_name: kernel("ostype"),
            hostname,
            release: kernel("osrelease"),
            version: kernel("version"),
            hardware_name: std::env::consts::ARCH.to_owned(),
            domain_name: kernel("domainname"),
        }
    }
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
