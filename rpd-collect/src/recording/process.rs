//! The process in the spool: its directory, its meta stream, and the effects of a fork on them.

#![expect(
    clippy::disallowed_types,
    reason = "locks that the fork handlers below take"
)]

use std::cell::UnsafeCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rpd_spool::format::{self, stream};
use rpd_spool::options::CollectorOptions;
use rpd_spool::writer::{self, ForkLock, OpenRecord, SpoolDirectory, StreamWriter};
use rpd_spool::{
    ATTACHED_COLLECT_VARIABLE, ATTACHED_SPOOL_VARIABLE, COLLECT_VARIABLE, SPOOL_VARIABLE,
};

use super::child_note::ChildNote;
use super::guard::Service;
use super::totals::ProcessTotals;
use super::{
    bounded, code, control, fork, process_record, regions, removed, spares, stacks, streams,
    switch, thread,
};

/// Bytes of the first meta segment: most processes never use the GPU and need no more.
const META_SEGMENT: usize = 4096;

/// Facts about this process image. Never freed.
pub(crate) struct Process {
    /// The options from the front end.
    pub(crate) options: CollectorOptions,
    /// The spool directory of the process.
    pub(crate) directory: Arc<SpoolDirectory>,
    lock: ForkLock,
    meta: UnsafeCell<StreamWriter>,
    /// Records in the meta stream.
    records: AtomicU64,
    /// The PROCESS record of the process, which is patched later.
    head: OpenRecord,
    /// Sums that the ledger prints.
    pub(crate) totals: &'static ProcessTotals,
    /// The place for a note of a forked child.
    child_note: Option<&'static ChildNote>,
    /// The provider's version; 0 before a provider has configured the collector.
    version: AtomicU32,
    ended: AtomicBool,
}

// SAFETY: `meta` is only touched with `lock` held.
unsafe impl Sync for Process {}

impl Process {
    /// Lets `act` write to the meta stream. False when that is impossible: a signal handler interrupted a writer.
    pub(crate) fn with_meta(&self, act: impl FnOnce(&mut StreamWriter) -> bool) -> bool {
        self.try_meta(act).unwrap_or_else(|| {
            self.directory.drop_records(1);
            false
        })
    }

    /// Writes to the meta stream with `act`; `None` in a signal handler that interrupted a writer of that stream.
    pub(super) fn try_meta(&self, act: impl FnOnce(&mut StreamWriter) -> bool) -> Option<bool> {
        let _guard = self.lock.lock()?;
        // SAFETY: the lock is held.
        let meta = unsafe { &mut *self.meta.get() };
        let written = act(meta);
        if written {
            self.records.fetch_add(1, Ordering::Relaxed);
        }
        let lost = self.directory.dropped();
        if lost > 0 {
            meta.publish_dropped(lost);
        }
        Some(written)
    }

    /// Writes to the meta stream how many records streams without a segment could not store.
    pub(crate) fn publish_drops(&self) {
        let lost = self.directory.dropped();
        if lost == 0 {
            return;
        }
        // If this thread already holds the lock, the interrupted writer publishes.
        if let Some(_guard) = self.lock.lock() {
            // SAFETY: the lock is held.
            unsafe { &mut *self.meta.get() }.publish_dropped(lost);
        }
    }

    /// Notes the provider's version in the PROCESS record.
    pub(crate) fn set_provider_version(&self, version: u32) {
        self.version.store(version, Ordering::Relaxed);
        let offset = std::mem::offset_of!(format::Process, provider_version);
        self.with_meta(|meta| {
            meta.patch(self.head, offset, version);
            false
        });
    }

    /// The provider's version; 0 before it is known.
    pub(crate) fn provider_version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    /// True for the first caller only.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::Relaxed)
    }
}

static CURRENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
/// Held while [`CURRENT`] is made.
static MAKING: ForkLock = ForkLock::new();
/// Set when this process is not to be recorded.
static OFF: AtomicBool = AtomicBool::new(false);
/// Set when this process, a forked child, was to be recorded and could not: then [`OFF`] is set, too.
static LOST: AtomicBool = AtomicBool::new(false);
/// Time of the fork that made this process, on `CLOCK_BOOTTIME`; 0 when there was none.
static FORK_TIME: AtomicU64 = AtomicU64::new(0);
/// The parent of a forked child, as it was at the fork; null in other processes.
static PARENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
static SERVICE: Service = Service::new("process");

/// Whether this process waits to be attached to, and is recorded only meanwhile.
static WAITS: AtomicBool = AtomicBool::new(false);

/// Makes this process wait to be attached to.
pub(crate) fn wait_for_attach() {
    WAITS.store(true, Ordering::Relaxed);
    OFF.store(true, Ordering::Relaxed);
}

/// Whether this process waits to be attached to, or is attached to.
pub(crate) fn can_be_attached_to() -> bool {
    WAITS.load(Ordering::Relaxed)
}

/// The process as recorded, made on first use. `None` when it is not to be recorded.
#[inline]
pub(crate) fn current() -> Option<&'static Process> {
    // SAFETY: either null or a leaked box.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some(process) => Some(process),
        None => make(),
    }
}

/// The process as recorded, if it has been made.
pub(crate) fn existing() -> Option<&'static Process> {
    // SAFETY: either null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Time of the fork that made this process; 0 when there was none. Device work that began before is the parent's.
pub(crate) fn fork_time() -> u64 {
    FORK_TIME.load(Ordering::Relaxed)
}

#[cold]
fn make() -> Option<&'static Process> {
    if OFF.load(Ordering::Relaxed) {
        return None;
    }
    let guard = MAKING.lock()?;
    if let Some(process) = existing() {
        return Some(process);
    }
    // SAFETY: either null or a leaked box of the parent process, copied by fork.
    let parent = unsafe { PARENT.load(Ordering::Acquire).as_ref() };
    match SERVICE.run(|| create(parent)).flatten() {
        Some(process) => {
            let process = Box::leak(Box::new(process));
            CURRENT.store(process, Ordering::Release);
            drop(guard);
            // The lock is open by now: hooks write records, for which the process has to be there.
            if parent.is_some() {
                fork::child_records();
            }
            Some(process)
        }
        None => {
            // The parent's sums are shared memory, and the only place where this child can leave a trace.
            if let Some(parent) = parent {
                parent.totals.lost_processes.add_one();
                LOST.store(true, Ordering::Relaxed);
            }
            OFF.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Counts a record that this process cannot write, in the sums of its parent.
#[cold]
pub(crate) fn lost_record() {
    if !LOST.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: either null or a leaked box of the parent process, copied by fork.
    if let Some(parent) = unsafe { PARENT.load(Ordering::Acquire).as_ref() } {
        parent.totals.lost_records.add_one();
    }
}

/// Notes something about a child of the process: this one was forked from it, or shares its memory, and is about to become
/// another program.
pub(crate) fn note_of_child(text: &str) {
    // SAFETY: either null or a leaked box of the parent process, copied by fork.
    let parent = || unsafe { PARENT.load(Ordering::Acquire).as_ref() };
    if let Some(note) = existing()
        .or_else(parent)
        .and_then(|process| process.child_note)
    {
        note.write(text);
    }
}

/// The run's directory that the front end named; `None` if there is none. A program that runs with more rights than its user
/// does not write to a directory from the user's environment.
pub(crate) fn requested_directory() -> Option<PathBuf> {
    // SAFETY: the entry may be read at any time.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    let variables = [SPOOL_VARIABLE, ATTACHED_SPOOL_VARIABLE];
    variables
        .into_iter()
        .find_map(std::env::var_os)
        .map(PathBuf::from)
}

/// The options that the front end gave.
fn requested_options() -> CollectorOptions {
    let text = |name| std::env::var_os(name).unwrap_or_default();
    let read = |name| CollectorOptions::from_text(&text(name).to_string_lossy());
    if std::env::var_os(SPOOL_VARIABLE).is_some() {
        return read(COLLECT_VARIABLE);
    }
    CollectorOptions {
        // The program has looked at its signals, and functions that set them are its own.
        disable_signal_handlers: true,
        ..read(ATTACHED_COLLECT_VARIABLE)
    }
}

/// Registers the hooks of modules that are called while a recording begins or ends.
pub(crate) fn register_hooks() {
    bounded::FORK.register();
    regions::FORK.register();
    code::FORK.register();
    streams::FORK.register();
    stacks::FORK.register();
    control::FORK.register();
    spares::FORK.register();
}

/// Begins a recording of this process, which was not recorded so far, in the directory of a run.
///
/// # Errors
/// When its directory or its first records cannot be made.
pub(crate) fn attach(run: &Path, options: CollectorOptions) -> io::Result<&'static Process> {
    bounded::forget();
    regions::forget();
    code::forget();
    streams::forget();
    removed::forget();
    let process = create_in(run, options, None)?;
    let process: &'static Process = Box::leak(Box::new(process));
    OFF.store(false, Ordering::Relaxed);
    CURRENT.store(std::ptr::from_ref(process).cast_mut(), Ordering::Release);
    Ok(process)
}

/// Time in which a thread that is writing a record finishes it.
const WRITING: Duration = Duration::from_millis(5);

/// Ends what [`attach`] has begun: this process is not recorded from then on, and holds nothing of the recording.
pub(crate) fn detach() {
    switch::end();
    OFF.store(true, Ordering::Relaxed);
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    thread::end_recording();
    std::thread::sleep(WRITING);
    writer::retire_all();
}

fn create(parent: Option<&Process>) -> Option<Process> {
    let (run, options) = match parent {
        Some(parent) => (
            parent.directory.path().parent()?.to_owned(),
            parent.options.clone(),
        ),
        None => {
            let run = requested_directory()?;
            // A relative path would be another directory once the program changes its own.
            if !run.is_absolute() {
                return None;
            }
            (run, requested_options())
        }
    };
    create_in(&run, options, parent).ok()
}

fn create_in(
    run: &Path,
    options: CollectorOptions,
    parent: Option<&Process>,
) -> io::Result<Process> {
    let directory = SpoolDirectory::create(run)?;
    directory.on_request_for_spares(spares::request);
    if options.in_pieces {
        directory.set_taken_live();
    }
    if let Some(bytes) = options.spool_limit {
        directory.set_limit(bytes, removed::count);
    }
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0)
        .first_segment(META_SEGMENT);
    let init_time = match fork_time() {
        0 => writer::now(),
        time => time,
    };
    let version = parent.map_or(0, |parent| parent.version.load(Ordering::Relaxed));
    let head = process_record::write(&mut meta, &options, init_time, parent.is_some(), version);
    // No reader takes a directory whose first record is missing for a process.
    if head == OpenRecord::default() {
        // The directory has no record that names the process.
        let _ = std::fs::remove_dir(directory.path());
        return Err(io::Error::new(
            io::ErrorKind::StorageFull,
            "there is no room for a recording",
        ));
    }
    let totals = ProcessTotals::append(&mut meta);
    let child_note = ChildNote::append(&mut meta);
    let inherited = parent.map_or(0, |parent| {
        let records = parent.records.load(Ordering::Relaxed);
        process_record::inherit(&mut meta, parent.directory.path(), records)
    });
    Ok(Process {
        options,
        directory,
        lock: ForkLock::new(),
        meta: UnsafeCell::new(meta),
        records: AtomicU64::new(2 + u64::from(child_note.is_some()) + inherited),
        head,
        totals,
        child_note,
        version: AtomicU32::new(version),
        ended: AtomicBool::new(false),
    })
}

/// Whether the thread that forks holds [`MAKING`], the meta stream's lock, and the registry of mappings.
static HELD: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// For `pthread_atfork`: takes all locks, so that the child finds what they guard in a consistent state.
pub(crate) extern "C" fn before_fork() {
    let making = MAKING.lock();
    HELD[0].store(making.is_some(), Ordering::Relaxed);
    std::mem::forget(making);
    fork::hold_locks();
    let meta = existing().and_then(|process| process.lock.lock());
    HELD[1].store(meta.is_some(), Ordering::Relaxed);
    std::mem::forget(meta);
    let mappings = writer::hold_for_fork();
    HELD[2].store(mappings.is_some(), Ordering::Relaxed);
    std::mem::forget(mappings);
}

/// For `pthread_atfork`: opens what [`before_fork`] has taken.
pub(crate) extern "C" fn after_fork_in_parent() {
    let [making, meta, mappings] = HELD.each_ref().map(|held| held.load(Ordering::Relaxed));
    if mappings {
        writer::release_after_fork();
    }
    if meta && let Some(process) = existing() {
        process.lock.reset();
    }
    fork::release_locks();
    if making {
        MAKING.reset();
    }
}

/// For `pthread_atfork`: separates the child from its parent's recording. Its own directory is made when it records
/// something, so that a child that only calls exec costs nothing more.
pub(crate) extern "C" fn after_fork_in_child() {
    FORK_TIME.store(writer::now(), Ordering::Relaxed);
    writer::abandon_all();
    if let Some(process) = existing() {
        process.lock.reset();
        PARENT.store(std::ptr::from_ref(process).cast_mut(), Ordering::Release);
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    }
    // If this process could not record, its own child may be able to; if not, that one is counted as well.
    if LOST.swap(false, Ordering::Relaxed) {
        OFF.store(false, Ordering::Relaxed);
    }
    fork::forget_parent();
    MAKING.reset();
}

/// Lets this process image record nothing.
pub(crate) fn switch_off() {
    OFF.store(true, Ordering::Relaxed);
}
