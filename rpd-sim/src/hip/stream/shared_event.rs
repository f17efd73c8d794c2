//! Events that several processes share: a page of memory with a word for each of the latest records, which streams write when they get there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crate::api::types::IpcHandle;
use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::memory::physical::{self, SharedHandle};
use crate::hip::runtime::{self, lock};
use crate::hip::stream::Stream;
use crate::hip::stream::signal::Signal;

/// Size of the page that the processes share, in bytes.
const BYTES: usize = 4096;
/// Most records of an event that may be under way at a time.
const RECORDS: u64 = 510;
/// First word of an event's page, by which the page is recognised.
const MAGIC: u64 = 0x7270_6465_7665_6e74;
/// Interval at which words that other processes write are looked at.
const INTERVAL: Duration = Duration::from_micros(100);

/// The page that processes share. Records are numbered from 1; word `n % RECORDS` has the number of the latest record
/// there that its stream has passed.
#[repr(C)]
#[derive(Debug)]
struct Page {
    magic: AtomicU64,
    /// Number of the latest record of any process.
    latest: AtomicU64,
    passed: [AtomicU64; RECORDS as usize],
}

const _: () = assert!(size_of::<Page>() == BYTES);

/// Content of a `hipIpcEventHandle_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventHandle {
    shared: SharedHandle,
    magic: u64,
    process: u64,
    unused: [u64; 2],
}

const _: () = assert!(size_of::<EventHandle>() == size_of::<IpcHandle>());

/// Way in which this process got the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PageOrigin {
    Allocated,
    Attached,
}

/// An interprocess event in one of the processes that share it.
#[derive(Debug)]
pub(crate) struct SharedEvent {
    base: usize,
    origin: PageOrigin,
    /// Number of the latest record that this process made.
    own: AtomicU64,
}

/// The record of this number of a shared event, which streams and hosts can wait for.
#[derive(Debug, Clone)]
pub(crate) struct EventRecord {
    event: Arc<SharedEvent>,
    number: u64,
}

impl SharedEvent {
    /// Makes an event that has not been recorded.
    pub(crate) fn new() -> HipResult<Arc<Self>> {
        let runtime = runtime::get()?;
        let base = hsa::allocate(runtime.host.fine, BYTES)?;
        let event = Arc::new(Self {
            base,
            origin: PageOrigin::Allocated,
            own: AtomicU64::new(0),
        });
        // Kernels on any GPU of the program may write the page.
        hsa::allow_access(&runtime.gpu_agents(), base)?;
        // SAFETY: the allocation has this size, and nothing else refers to it.
        unsafe { std::ptr::write_bytes(base as *mut u8, 0, BYTES) };
        // Last, because other processes take the event for usable when they see it.
        event.page().magic.store(MAGIC, Ordering::Release);
        Ok(event)
    }

    /// An event that another process has made.
    pub(crate) fn open(handle: &EventHandle) -> HipResult<Arc<Self>> {
        if handle.magic != MAGIC {
            return Err(code::INVALID_VALUE);
        }
        // As the real runtime: a process opens only events of others.
        if handle.process == u64::from(std::process::id()) {
            return Err(code::INVALID_CONTEXT);
        }
        let base = physical::attach(&handle.shared, BYTES, &runtime::get()?.gpu_agents())?;
        let event = Arc::new(Self {
            base,
            origin: PageOrigin::Attached,
            own: AtomicU64::new(0),
        });
        if event.page().magic.load(Ordering::Acquire) != MAGIC {
            return Err(code::INVALID_VALUE);
        }
        Ok(event)
    }

    /// Handle with which another process can open the event.
    pub(crate) fn handle(&self) -> HipResult<EventHandle> {
        // Memory that was attached can be shared by its owner alone.
        if self.origin == PageOrigin::Attached {
            return Err(code::INVALID_VALUE);
        }
        Ok(EventHandle {
            shared: physical::share(self.base, BYTES)?,
            magic: MAGIC,
            process: u64::from(std::process::id()),
            unused: [0; 2],
        })
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping has the size of a page, is aligned to it and lives as long as this; any bytes are numbers.
        unsafe { &*(self.base as *const Page) }
    }

    fn word(&self, number: u64) -> &AtomicU64 {
        &self.page().passed[(number % RECORDS) as usize]
    }

    fn is_passed(&self, number: u64) -> bool {
        self.word(number).load(Ordering::Acquire) >= number
    }

    fn wait(&self, number: u64) {
        while !self.is_passed(number) {
            std::thread::sleep(INTERVAL);
        }
    }

    /// The latest record of any process; `None` if the event has not been recorded.
    pub(crate) fn latest(self: &Arc<Self>) -> Option<EventRecord> {
        let number = self.page().latest.load(Ordering::Acquire);
        (number != 0).then(|| EventRecord {
            event: Arc::clone(self),
            number,
        })
    }

    /// Records the event in a stream that is not capturing.
    pub(crate) fn record(self: &Arc<Self>, stream: &Stream) -> HipResult<EventRecord> {
        let number = self.page().latest.fetch_add(1, Ordering::AcqRel) + 1;
        // The word of an earlier record is used again only when nobody can wait for it any more.
        if let Some(earlier) = number.checked_sub(RECORDS) {
            self.wait(earlier);
        }
        let enqueue = || {
            let mut step = stream.step()?;
            let blit = step.blit()?;
            let address = self.word(number).as_ptr() as usize;
            blit.write(&mut step, address, number, size_of::<u64>() as u32)
        };
        // Other processes may wait for the number already.
        enqueue().inspect_err(|_| self.word(number).store(number, Ordering::Release))?;
        self.own.fetch_max(number, Ordering::AcqRel);
        Ok(EventRecord {
            event: Arc::clone(self),
            number,
        })
    }
}

impl Drop for SharedEvent {
    fn drop(&mut self) {
        // A stream that has yet to write the page keeps it from being freed.
        if !self.is_passed(self.own.load(Ordering::Acquire)) {
            return;
        }
        // Memory that HSA does not find has been freed already.
        let _ = match self.origin {
            PageOrigin::Allocated => hsa::free(self.base),
            PageOrigin::Attached => physical::detach(self.base),
        };
    }
}

impl EventRecord {
    /// Whether the stream has got to the record.
    pub(crate) fn is_passed(&self) -> bool {
        self.event.is_passed(self.number)
    }

    /// Blocks until the stream has got to the record.
    pub(crate) fn wait(&self) {
        self.event.wait(self.number);
    }

    /// Makes a stream wait for the record.
    pub(crate) fn hold(self, stream: &Stream) -> HipResult {
        if self.is_passed() {
            return Ok(());
        }
        // HSA's streams wait for signals of this process only, so that a thread falls one in the event's place.
        let passed = stream.signals.take()?;
        watch(WatchedRecord {
            point: self,
            passed: Arc::clone(&passed),
        })?;
        stream.follow(passed);
        Ok(())
    }
}

/// A record that streams of this process wait for, and the signal on which they wait.
#[derive(Debug)]
struct WatchedRecord {
    point: EventRecord,
    passed: Arc<Signal>,
}

/// The process that a watching thread belongs to, and how to reach the thread.
type Watcher = (u32, Sender<WatchedRecord>);

/// Watches records on a thread of their own, because nothing announces a change in memory that another process makes.
fn watch(watched: WatchedRecord) -> HipResult {
    static WATCHER: OnceLock<Mutex<Option<Watcher>>> = OnceLock::new();
    let mut watcher = lock(WATCHER.get_or_init(Mutex::default));
    let process = std::process::id();
    // A forked child has no thread of its parent's.
    if watcher.as_ref().is_none_or(|(owner, _)| *owner != process) {
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("hip-events".into())
            .spawn(move || complete_passed_records(&receiver))
            .map_err(|_| code::OPERATING_SYSTEM)?;
        *watcher = Some((process, sender));
    }
    let sender = watcher.as_ref().map(|(_, sender)| sender);
    let sent = sender.and_then(|sender| sender.send(watched).ok());
    sent.ok_or(code::OPERATING_SYSTEM)
}

/// Completes the signals of records that are passed, and sleeps while there are none to watch.
fn complete_passed_records(receiver: &Receiver<WatchedRecord>) {
    while let Ok(first) = receiver.recv() {
        let mut all = vec![first];
        while !all.is_empty() {
            all.extend(receiver.try_iter());
            all.retain(|watched| {
                let pending = !watched.point.is_passed();
                if !pending {
                    watched.passed.complete();
                }
                pending
            });
            if !all.is_empty() {
                std::thread::sleep(INTERVAL);
            }
        }
    }
}
