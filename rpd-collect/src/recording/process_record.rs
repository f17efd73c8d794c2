//! The first record of a process, and the records that a forked child repeats of its parent's.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rpd_spool::format::{self, stream};
use rpd_spool::options::CollectorOptions;
use rpd_spool::reader::ProcessSpool;
use rpd_spool::record::{Fork, RecordKind};
use rpd_spool::writer::{self, OpenRecord, StreamWriter, record_len};
use zerocopy::IntoBytes;

/// Repeats the records about names, agents and code objects among the first `count` records of the meta stream in the
/// parent's directory: the provider describes these once, and records of the child refer to them. The number of records
/// written.
pub(super) fn inherit(meta: &mut StreamWriter, parent: &Path, count: u64) -> u64 {
    let Ok(spool) = ProcessSpool::open(parent) else {
        return 0;
    };
    let Some(stream) = spool
        .streams
        .iter()
        .find(|found| found.kind == stream::META)
    else {
        return 0;
    };
    let mut records = stream.records();
    let mut written = 0;
    for _ in 0..count {
        let Some(record) = records.next() else { break };
        let wanted = RecordKind::from_tag(record.header.tag)
            .is_some_and(|kind| kind.fork() == Fork::Repeated);
        if wanted && meta.append_parts(record.bytes, &[]) {
            written += 1;
        }
    }
    written
}

/// Writes the PROCESS record, which is patched later. The empty record when there is no place for it.
pub(super) fn write(
    meta: &mut StreamWriter,
    options: &CollectorOptions,
    init_time: u64,
    forked: bool,
    provider_version: u32,
) -> OpenRecord {
    // From `/proc`: a library has no other way to the arguments and variables that the program was started with.
    let file = |path: &str| std::fs::read(path).unwrap_or_default();
    let command = file("/proc/self/cmdline");
    let environment = recorded_variables(&file("/proc/self/environ"), options);
    let link = |path: &str| std::fs::read_link(path).unwrap_or_default();
    let directory = std::env::current_dir().unwrap_or_default();
    let executable = link("/proc/self/exe");
    let parts = [
        command.as_slice(),
        directory.as_os_str().as_bytes(),
        executable.as_os_str().as_bytes(),
        environment.as_slice(),
    ];
    // SAFETY: these system calls take no pointers.
    let (ppid, pgid, sid) = unsafe { (libc::getppid(), libc::getpgid(0), libc::getsid(0)) };
    let tail: usize = parts.iter().map(|part| 4 + part.len()).sum();
    let len = record_len(size_of::<format::Process>(), tail);
    let process = format::Process {
        header: RecordKind::Process.head(tail),
        pid: std::process::id(),
        ppid: ppid.cast_unsigned(),
        pgid: pgid.cast_unsigned(),
        sid: sid.cast_unsigned(),
        start_ticks: start_ticks(&file("/proc/self/stat")),
        init_time,
        // The clocks are read now, and `init_time` may be earlier (that of a fork): the difference is taken off.
        real_time: writer::real_now().saturating_sub(writer::now() - init_time),
        forked: forked.into(),
        provider_version,
        psize: file(&format!("/proc/{ppid}/task/{ppid}/children"))
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty())
            .count() as u32,
        stacks: options.stacks.any().into(),
    };
    meta.append_open(len, |bytes| {
        let mut at = size_of::<format::Process>();
        bytes[..at].copy_from_slice(process.as_bytes());
        for part in parts {
            bytes[at..at + 4].copy_from_slice(&(part.len() as u32).to_le_bytes());
            at += 4;
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
    })
}

/// The variables of a NUL-separated environment that are recorded.
fn recorded_variables(environment: &[u8], options: &CollectorOptions) -> Vec<u8> {
    let name = |entry: &[u8]| {
        let end = entry.iter().position(|&byte| byte == b'=')?;
        str::from_utf8(&entry[..end]).ok().map(str::to_owned)
    };
    environment
        .split_inclusive(|&byte| byte == 0)
        .filter(|entry| name(entry).is_some_and(|name| options.keeps_variable(&name)))
        .flatten()
        .copied()
        .collect()
}

/// Field 22 of `/proc/<pid>/stat`. The name in field 2 may hold anything, so it is counted from its last parenthesis.
fn start_ticks(stat: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(stat);
    text.rsplit_once(')')
        .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(19))
        .and_then(|field| field.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_ticks_are_found_behind_program_names_with_parentheses() {
        let stat = b"12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_ticks(stat), 4711);
        assert_eq!(start_ticks(b""), 0);
        let own = std::fs::read("/proc/self/stat").expect("procfs");
        assert!(start_ticks(&own) > 0);
    }

    #[test]
    fn recorded_variables_are_those_that_outputs_may_show() {
        let environment = b"HOME=/root\0HSA_XNACK=1\0\xff=x\0none\0RPD_BEARER=s\0WHO=me\0";
        let mut options = CollectorOptions::default();
        assert_eq!(recorded_variables(environment, &options), b"HSA_XNACK=1\0");
        options.variables = vec!["WHO".to_owned()];
        assert_eq!(
            recorded_variables(environment, &options),
            b"HSA_XNACK=1\0WHO=me\0"
        );
        let all = CollectorOptions::from_text("environment=all");
        assert!(recorded_variables(environment, &all).ends_with(b"RPD_BEARER=s\0WHO=me\0"));
        let none = CollectorOptions::from_text("environment=none");
        assert_eq!(recorded_variables(environment, &none), b"");
    }
}
