//! Python files in stacks, for the Python package `rpd`, which requests them and reports the sources of generated
//! files.
//!
//! A thread that has a file in a stack for the first time only appends the name to a log: it takes no lock
//! and never waits. A thread of the package waits for the names.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use rpd_spool::format::StackSource;
use rpd_spool::record::RecordKind;

use super::{futex, meta};

/// Words of the log; names of some thousand files.
const WORDS: usize = 1 << 16;
/// Slots of the table of files that are in the log.
const SEEN: usize = 1 << 12;
/// Largest size of one report about a file, in bytes.
const LONGEST_SOURCE: usize = 1 << 20;

static LOG: Log = Log::new();

/// Names in the order in which they were seen, each a word with its length plus one, and its bytes.
struct Log {
    words: [AtomicU64; WORDS],
    /// Number of words of the buffer that are taken.
    used: AtomicUsize,
    /// Number of words that were read.
    read: AtomicUsize,
    /// Hashes of logged names, each in the slot that it selects. A name that lost its slot is logged again.
    seen: [AtomicU64; SEEN],
    /// Futex: incremented with every name. Readers wait until it changes.
    signal: AtomicU32,
    waiting: AtomicU32,
    is_full: AtomicBool,
    /// Whether a note says that the log was full.
    is_noted: AtomicBool,
}

impl Log {
    const fn new() -> Log {
        Log {
            words: [const { AtomicU64::new(0) }; WORDS],
            used: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            seen: [const { AtomicU64::new(0) }; SEEN],
            signal: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            is_full: AtomicBool::new(false),
            is_noted: AtomicBool::new(false),
        }
    }

    fn append(&self, name: &[u8]) {
        let hash = hash(name);
        let seen = &self.seen[hash as usize % SEEN];
        if seen.swap(hash, Ordering::Relaxed) == hash {
            return;
        }
        let size = 1 + name.len().div_ceil(8);
        let room = |used: usize| used.checked_add(size).filter(|end| *end <= WORDS);
        let taken = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        let Ok(at) = taken else {
            self.is_full.store(true, Ordering::Relaxed);
            return;
        };
        for (word, bytes) in self.words[at + 1..at + size].iter().zip(name.chunks(8)) {
            let mut own = [0; 8];
            own[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(own), Ordering::Relaxed);
        }
        self.words[at].store(name.len() as u64 + 1, Ordering::Release);
        self.signal.fetch_add(1, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.signal);
        }
    }

    /// Takes the next name; `None` if there is none. What does not fit into `buffer` is left out.
    fn take(&self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            let at = self.read.load(Ordering::Acquire);
            let length = self.words.get(at)?.load(Ordering::Acquire).checked_sub(1)? as usize;
            let size = 1 + length.div_ceil(8);
            let kept = length.min(buffer.len());
            let words = &self.words[at + 1..at + size];
            for (bytes, word) in buffer[..kept].chunks_mut(8).zip(words) {
                let word = word.load(Ordering::Relaxed).to_ne_bytes();
                bytes.copy_from_slice(&word[..bytes.len()]);
            }
            let next =
                self.read
                    .compare_exchange(at, at + size, Ordering::AcqRel, Ordering::Relaxed);
            if next.is_ok() {
                return Some(kept);
            }
        }
    }

    /// Whether there is a next name.
    fn has_next(&self) -> bool {
        let next = self.words.get(self.read.load(Ordering::Acquire));
        next.is_some_and(|length| length.load(Ordering::Acquire) != 0)
    }

    /// Waits until there is a next name, at most `time` or without end. Returns whether there is one.
    fn wait(&self, time: Option<Duration>) -> bool {
        while !self.has_next() {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let before = self.signal.load(Ordering::SeqCst);
            let in_time = self.has_next() || futex::wait(&self.signal, before, time);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            if !in_time {
                return self.has_next();
            }
        }
        true
    }

    /// Whether a name did not fit, for the first caller after that.
    fn is_newly_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) && !self.is_noted.swap(true, Ordering::Relaxed)
    }

    /// Removes all entries. There is no other thread.
    fn clear(&self) {
        let used = self.used.swap(0, Ordering::Relaxed);
        for word in &self.words[..used.min(WORDS)] {
            word.store(0, Ordering::Relaxed);
        }
        for slot in &self.seen {
            slot.store(0, Ordering::Relaxed);
        }
        self.read.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.is_full.store(false, Ordering::Relaxed);
        self.is_noted.store(false, Ordering::Relaxed);
    }
}

/// FNV-1a of 64 bits, never 0.
fn hash(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix) | 1 << 63
}

/// Appends the name of a file, of which a stack has code, to the log.
#[inline]
pub(super) fn met(name: &[u8]) {
    LOG.append(name);
}

/// A forked child reports the files of its own stacks.
pub(super) fn forked() {
    LOG.clear();
}

/// Waits until there is a file that [`next`] returns, at most `time` or without end. Returns whether there is one.
pub(crate) fn wait_for_next(time: Option<Duration>) -> bool {
    LOG.wait(time)
}

/// The next file that a stack had code of, in `buffer`: its length, or `None` when there is none.
pub(crate) fn next(buffer: &mut [u8]) -> Option<usize> {
    if LOG.is_newly_full() {
        meta::note(
            "stacks have more Python files than rpd.register_generated can take; the later ones have no source frames",
        );
    }
    LOG.take(buffer)
}

/// Records the sources of lines of a generated file. `frames` is as in [`StackSource`]. Returns whether they were
/// stored.
pub(crate) fn source(file: &[u8], first: u32, last: u32, frames: &[u8]) -> bool {
    if first > last || file.len().saturating_add(frames.len()) > LONGEST_SOURCE {
        return false;
    }
    let fixed = StackSource {
        header: RecordKind::StackSource.head(file.len() + frames.len()),
        first,
        last,
        file_len: file.len() as u32,
        frames_len: frames.len() as u32,
    };
    meta::write(&fixed, &[file, frames].concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn taken(log: &Log) -> Option<String> {
        let mut buffer = [0; 64];
        let length = log.take(&mut buffer)?;
        Some(String::from_utf8_lossy(&buffer[..length]).into_owned())
    }

    #[test]
    fn file_log_reports_every_name_once_and_in_order() {
        static LOG: Log = Log::new();
        for name in ["/a.py", "/a.py", "<string>", "/a.py", "12345678", ""] {
            LOG.append(name.as_bytes());
        }
        for name in ["/a.py", "<string>", "12345678", ""] {
            assert_eq!(taken(&LOG).as_deref(), Some(name));
        }
        assert_eq!(taken(&LOG), None);
        LOG.append(b"/b.py");
        LOG.clear();
        assert_eq!(taken(&LOG), None);
        LOG.append(b"/b.py");
        assert_eq!(taken(&LOG).as_deref(), Some("/b.py"));
    }

    #[test]
    fn file_log_keeps_its_names_when_it_is_full() {
        static LOG: Log = Log::new();
        let name = |number: usize| format!("{number:0>800}");
        for number in 0..WORDS / 101 + 2 {
            LOG.append(name(number).as_bytes());
        }
        assert!(LOG.is_newly_full() && !LOG.is_newly_full());
        let mut buffer = [0; 1000];
        let mut count = 0;
        while let Some(length) = LOG.take(&mut buffer) {
            assert_eq!(&buffer[..length], name(count).as_bytes());
            count += 1;
        }
        assert_eq!(count, WORDS / 101);
        // A forked child that has as many of its own reports that, too.
        LOG.clear();
        assert!(!LOG.is_newly_full());
        for number in 0..WORDS / 101 + 2 {
            LOG.append(name(number).as_bytes());
        }
        assert!(LOG.is_newly_full());
    }

    #[test]
    fn file_log_readers_wait_and_share_the_names() {
        static LOG: Log = Log::new();
        let mut all: Vec<u32> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut found = Vec::new();
                        let mut buffer = [0; 16];
                        while LOG.wait(Some(Duration::from_secs(2))) {
                            let Some(length) = LOG.take(&mut buffer) else {
                                continue;
                            };
                            let text = std::str::from_utf8(&buffer[..length]).unwrap();
                            found.push(text.parse().unwrap());
                        }
                        found
                    })
                })
                .collect();
            for thread in 0..4_u32 {
                scope.spawn(move || {
                    for number in 0..100 {
                        LOG.append((thread * 1000 + number).to_string().as_bytes());
                    }
                });
            }
            let found = readers
                .into_iter()
                .flat_map(|reader| reader.join().unwrap());
            found.collect()
        });
        all.sort_unstable();
        // A name whose slot another took in between is logged again.
        all.dedup();
        let expected = (0..4).flat_map(|thread| (0..100).map(move |number| thread * 1000 + number));
        assert_eq!(all, expected.collect::<Vec<u32>>());
    }
}
