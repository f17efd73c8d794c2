//! Errors of kernels, found while they execute and written to a directory that a tool names.
//!
//! From [`start`] on every dispatch is watched on one thread, allocations have guard zones around them, and freed memory is not used again. The directory gets
//! `findings-<pid>`, a line for each finding ([`CheckSession::report`]), `launches-<pid>`, a line with count and name for each kernel, and `object-<pid>-<address>.co`, the code objects of kernels with findings.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::exec::Kernel;
use super::machine::machine;
use rpd_gfx::check::{Finding, FindingKind, Heap, Place};

/// Bytes without memory before and after each allocation; an access within that distance of an allocation is attributed
/// to it.
pub(crate) const GUARD: usize = 1 << 20;
/// Most findings that a process reports; further findings are only counted.
const MOST: usize = 1000;
/// Size in bytes of the memory whose state one entry of [`CheckSession::written`] describes.
const PAGE: u64 = 4096;

/// State over all dispatches of a process.
pub(crate) struct CheckSession {
    directory: PathBuf,
    findings: Mutex<Findings>,
    /// State of device memory by page number: a bit for each byte, set once it has been written.
    written: Mutex<HashMap<u64, Box<[u64; 64]>>>,
}

#[derive(Default)]
struct Findings {
    process: u32,
    file: Option<File>,
    known: HashSet<(FindingKind, u64, Option<u64>)>,
    /// Names of the files of code objects that have been written.
    saved: HashSet<String>,
    launches: Launches,
}

/// Number of watched launches of each kernel. The counts are in a file from the first launch on, because the process
/// may be killed.
#[derive(Default)]
struct Launches {
    file: Option<File>,
    /// Number of launches and the position of that number in the file, by kernel name.
    kernels: HashMap<String, (u64, u64)>,
    end: u64,
}

/// Digits of a count in the file of launches.
const DIGITS: usize = 20;

impl Launches {
    fn add(&mut self, path: &Path, kernel: &str) -> std::io::Result<()> {
        if self.file.is_none() {
            self.file = Some(File::create(path)?);
        }
        let line = match self.kernels.get_mut(kernel) {
            Some((count, place)) => {
                *count += 1;
                Some((format!("{count:0DIGITS$}"), *place))
            }
            None => None,
        };
        // Counts have a fixed width, so that a later one can replace the digits in place without moving what follows.
        let (text, place) = line.unwrap_or_else(|| {
            let text = format!("{:0DIGITS$}\t{kernel}\n", 1);
            let place = self.end;
            self.end += text.len() as u64;
            self.kernels.insert(kernel.to_owned(), (1, place));
            (text, place)
        });
        let file = self.file.as_ref();
        file.map_or(Ok(()), |file| file.write_all_at(text.as_bytes(), place))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

static SESSION: OnceLock<CheckSession> = OnceLock::new();

/// The session of this process, if it is checked.
pub(crate) fn session() -> Option<&'static CheckSession> {
    SESSION.get()
}

/// Begins to check this process, with findings in `directory`; false if the process is checked already.
pub(crate) fn start(directory: PathBuf) -> bool {
    let session = CheckSession {
        directory,
        findings: Mutex::default(),
        written: Mutex::default(),
    };
    SESSION.set(session).is_ok()
}

impl CheckSession {
    /// Saves the code object of a kernel that has findings; returns the name of the file.
    // The load address makes the name unique: several code objects may have kernels of the same name.
    fn save(&self, findings: &mut Findings, kernel: &Kernel) -> String {
        let name = format!("object-{}-{:x}.co", findings.process, kernel.image.base());
        if findings.saved.insert(name.clone())
            && let Err(error) = std::fs::write(self.directory.join(&name), &*kernel.file)
        {
            eprintln!(
                "rpd-sim: {}/{name}: {error}; findings have no source lines",
                self.directory.display()
            );
        }
        name
    }

    /// Notes that bytes of memory are written.
    pub(crate) fn wrote_range(&self, address: u64, bytes: u64) {
        let mut written = lock(&self.written);
        let end = address.saturating_add(bytes);
        let mut at = address;
        while at < end {
            let page = written
                .entry(at / PAGE)
                .or_insert_with(|| Box::new([0; 64]));
            let stop = end.min((at / PAGE + 1) * PAGE);
            while at < stop {
                let (word, bit) = ((at % PAGE / 64) as usize, at % 64);
                let count = (64 - bit).min(stop - at);
                page[word] |= (u64::MAX >> (64 - count)) << bit;
                at += count;
            }
        }
    }

    /// Counts a launch of a kernel that was watched, and appends findings that are new. A line of these has, separated by tabs: kind, kernel, code object, address of the instruction, workgroup, wave, lanes, address of the access, its
    /// bytes, whether it writes, times, what the address is in words, and of the other instruction address, workgroup, wave and whether it
    /// writes.
    pub(crate) fn report(&self, kernel: &Kernel, list: &[Finding]) {
        let mut findings = lock(&self.findings);
        // A forked child has its own file.
        let process = std::process::id();
        if findings.process != process {
            *findings = Findings {
                process,
                ..Findings::default()
            };
        }
        let launches = self.directory.join(format!("launches-{process}"));
        // The count is kept for a launch without findings as well: a report that finds nothing has to say what it
        // watched.
        if let Err(error) = findings.launches.add(&launches, &kernel.name) {
            eprintln!(
                "rpd-sim: {}: {error}; a launch is not counted",
                launches.display()
            );
        }
        // Findings have offsets in the loaded image. Readers of the file have the code object, so that they need its
        // addresses.
        let first = kernel.address_in_file(kernel.program.base());
        let address = |offset: u64| first.wrapping_add(offset);
        for finding in list {
            // The load address makes the key differ between kernels of two code objects that have the same offset.
            let key = (
                finding.kind,
                kernel.image.base().wrapping_add(finding.offset),
                finding.other.map(|other| other.offset),
            );
            // A kernel repeats a mistake in every launch; one line for each place is enough, and bounds the file.
            if findings.known.len() >= MOST || !findings.known.insert(key) {
                continue;
            }
            let object = self.save(&mut findings, kernel);
            let other = finding.other.map_or_else(String::new, |other| {
                format!(
                    "{:x}\t{}\t{}\t{}",
                    address(other.offset),
                    other.group,
                    other.wave,
                    u8::from(other.writes)
                )
            });
            let line = format!(
                "{}\t{}\t{object}\t{:x}\t{}\t{}\t{:x}\t{:x}\t{}\t{}\t{}\t{}\t{other}\n",
                finding.kind.words(),
                kernel.name,
                address(finding.offset),
                finding.group,
                finding.wave,
                finding.lanes,
                finding.address,
                finding.bytes,
                u8::from(finding.writes),
                finding.times,
                finding
                    .place
                    .map_or_else(String::new, |place| place.describe(finding.address)),
            );
            if let Err(error) = self.append(&mut findings, line.as_bytes()) {
                eprintln!(
                    "rpd-sim: {}: {error}; a finding is lost",
                    self.directory.display()
                );
            }
        }
    }

    fn append(&self, findings: &mut Findings, line: &[u8]) -> std::io::Result<()> {
        if findings.file.is_none() {
            let path = self
                .directory
                .join(format!("findings-{}", findings.process));
            findings.file = Some(OpenOptions::new().create(true).append(true).open(path)?);
        }
        findings
            .file
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(line))
    }
}

impl Heap for CheckSession {
    fn place(&self, address: u64) -> Place {
        machine().memory.place(address)
    }

    fn is_written(&self, address: u64, bytes: u32) -> bool {
        let written = lock(&self.written);
        // Each byte has a bit of its own: kernels write single bytes, and structs have gaps that nobody writes.
        (address..address.saturating_add(bytes.into())).all(|byte| {
            let page = written.get(&(byte / PAGE));
            page.is_some_and(|page| page[(byte % PAGE / 64) as usize] >> (byte % 64) & 1 != 0)
        })
    }

    fn wrote(&self, address: u64, bytes: u32) {
        self.wrote_range(address, bytes.into());
    }
}
