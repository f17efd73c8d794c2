//! Names of code that was made at run time, from the map that its program writes for perf (`/tmp/perf-PID.map`).

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rpd_core::session::Process;
use rpd_spool::regular_file::{self, Links};

/// Bytes of a map that are read.
const LONGEST: u64 = 256 << 20;

/// Evidence of such a frame.
pub(crate) const EVIDENCE: &str = "perf map";

/// The map of a process.
pub(crate) struct PerfMap {
    text: String,
}

impl PerfMap {
    /// The map in `directory`; `None` if the process wrote none.
    pub(crate) fn from_process(process: &Process, directory: &Path) -> Option<PerfMap> {
        let path = directory.join(format!("perf-{}.map", process.pid.0));
        let text = read(&path, process.real_time)?;
        Some(PerfMap { text })
    }

    /// The names at addresses.
    pub(crate) fn names(&self, addresses: &[u64]) -> Vec<Option<&str>> {
        let symbols = parse(&self.text);
        let name = |address: &u64| name_at(&symbols, *address);
        addresses.iter().map(name).collect()
    }
}

/// The map, if it is a regular file of this user that was written after `began` (nanoseconds of Unix time).
fn read(path: &Path, began: u64) -> Option<String> {
    let (file, about) = regular_file::open(path, Links::Refuse).ok()?;
    let me = std::fs::metadata("/proc/self").ok()?.uid();
    let written = about.modified().ok()?;
    if about.uid() != me || written < UNIX_EPOCH + Duration::from_nanos(began) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Start, end and name of each line `START SIZE NAME`, by start. Of lines with one start the last counts: code was replaced.
fn parse(text: &str) -> Vec<(u64, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let symbol = |line: &'_ str| -> Option<(u64, u64, usize)> {
        let mut words = line.splitn(3, ' ');
        let (start, size) = (hex(words.next()?)?, hex(words.next()?)?);
        let name = words.next()?;
        Some((start, start.checked_add(size)?, name.len()))
    };
    let mut symbols: Vec<(u64, u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let (start, end, name) = symbol(line)?;
            Some((start, end, &line[line.len() - name..]))
        })
        .collect();
    symbols.reverse();
    symbols.sort_by_key(|symbol| symbol.0);
    symbols.dedup_by_key(|symbol| symbol.0);
    symbols
}

fn name_at<'a>(symbols: &[(u64, u64, &'a str)], address: u64) -> Option<&'a str> {
    let behind = symbols.partition_point(|symbol| symbol.0 <= address);
    let &(_, end, name) = symbols[..behind].last()?;
    (address < end).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perf_map_lines_are_parsed_to_start_size_and_name() {
        let text = "7f00 10 py::f:/a b.py\nnonsense\n7f10 0x8 two\n7f00 4 newer\nffffffffffffffff 2 over\n";
        let symbols = parse(text);
        assert_eq!(
            symbols,
            [(0x7f00, 0x7f04, "newer"), (0x7f10, 0x7f18, "two")]
        );
        for (address, expected) in [
            (0x7eff, None),
            (0x7f00, Some("newer")),
            (0x7f04, None),
            (0x7f17, Some("two")),
            (0x7f18, None),
        ] {
            assert_eq!(name_at(&symbols, address), expected, "{address:x}");
        }
        assert_eq!(parse("7f00 10 py::f:/a b.py\n")[0].2, "py::f:/a b.py");
    }

    #[test]
    fn perf_map_of_an_earlier_process_is_not_used() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("perf-1.map");
        std::fs::write(&path, "1 2 a\n").expect("written");
        assert_eq!(read(&path, 0).as_deref(), Some("1 2 a\n"));
        assert_eq!(read(&path, u64::MAX), None);
    }
}
