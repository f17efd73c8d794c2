//! The process as the spool knows it: its directory, its meta stream, and what a fork makes of them.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rpd_spool::format::{self, RecordHeader, stream, tag};
use rpd_spool::options::CollectorOptions;
use rpd_spool::reader::ProcessSpool;
use rpd_spool::record::{Fork, RecordKind};
use rpd_spool::writer::{self, ForkLock, OpenRecord, SpoolDirectory, StreamWriter, record_len};
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};
use zerocopy::IntoBytes;

use crate::recording::guard::Service;
use crate::recording::totals::Totals;

/// Bytes of the first meta segment: most processes never use the GPU and need no more.
const META_SEGMENT: usize = 4096;

/// What is known about this process image. Never freed.
pub(crate) struct Process {
    /// What to record.
    pub(crate) options: CollectorOptions,
    /// Where to write.
    pub(crate) directory: Arc<SpoolDirectory>,
    lock: ForkLock,
    meta: UnsafeCell<StreamWriter>,
    /// Records in the meta stream.
    records: AtomicU64,
    /// The PROCESS record.
    head: OpenRecord,
    /// Sums that the user is told.
    pub(crate) totals: &'static Totals,
    /// The provider's version; 0 while none was met.
    version: AtomicU32,
    ended: AtomicBool,
}

// SAFETY: `meta` is only touched with `lock` held.
unsafe impl Sync for Process {}

impl Process {
    /// Lets `act` write to the meta stream. False when that is impossible: a signal handler interrupted a writer.
    pub(crate) fn with_meta(&self, act: impl FnOnce(&mut StreamWriter) -> bool) -> bool {
        let Some(_guard) = self.lock.lock() else {
            self.directory.drop_records(1);
            return false;
        };
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
        written
    }

    /// Lets the meta stream say how many records streams without a segment could not store.
    pub(crate) fn publish_drops(&self) {
        let lost = self.directory.dropped();
        if lost == 0 {
            return;
        }
        // When this very thread holds the lock, the writer it interrupted publishes.
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
/// When this process was forked off, on `CLOCK_BOOTTIME`; 0 when it was not.
static FORK_TIME: AtomicU64 = AtomicU64::new(0);
/// The process that was forked, as the child remembers it.
static PARENT: AtomicPtr<Process> = AtomicPtr::new(std::ptr::null_mut());
static SERVICE: Service = Service::new("process");

/// This process, made on first use. `None` when it is not to be recorded.
#[inline]
pub(crate) fn current() -> Option<&'static Process> {
    // SAFETY: either null or a leaked box.
    match unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        Some(process) => Some(process),
        None => make(),
    }
}

/// This process if it has been made.
pub(crate) fn existing() -> Option<&'static Process> {
    // SAFETY: either null or a leaked box.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// When this process was forked off; 0 when it was not. Device work that began before is the parent's.
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
            if parent.is_some() {
                crate::recording::switch::go_on_in_child();
                crate::lifecycle::signals::go_on_in_child();
            }
            Some(process)
        }
        None => {
            if let Some(parent) = parent {
                parent.totals.lost_processes.add_one();
                LOST.store(true, Ordering::Relaxed);
            }
            OFF.store(true, Ordering::Relaxed);
            None
        }
    }
}

/// Counts a record that this process has nowhere to write to, in what its parent left it.
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

fn create(parent: Option<&Process>) -> Option<Process> {
    let (run, options) = match parent {
        Some(parent) => (
            parent.directory.path().parent()?.to_owned(),
            parent.options.clone(),
        ),
        None => {
            let run = PathBuf::from(std::env::var_os(SPOOL_VARIABLE)?);
            if !run.is_absolute() {
                return None;
            }
            let text = std::env::var_os(COLLECT_VARIABLE).unwrap_or_default();
            (run, CollectorOptions::from_text(&text.to_string_lossy()))
        }
    };
    let directory = SpoolDirectory::create(&run).ok()?;
    let mut meta = StreamWriter::new(&directory, "meta".to_owned(), stream::META, 0)
        .first_segment(META_SEGMENT);
    let init_time = match fork_time() {
        0 => writer::now(),
        time => time,
    };
    let version = parent.map_or(0, |parent| parent.version.load(Ordering::Relaxed));
    let head = write_process(&mut meta, &options, init_time, parent.is_some(), version);
    if head == OpenRecord::default() {
        // Nothing in there says whose it is.
        let _ = std::fs::remove_dir(directory.path());
        return None;
    }
    let totals = Totals::append(&mut meta);
    let inherited = parent.map_or(0, |parent| inherit(&mut meta, parent));
    Some(Process {
        options,
        directory,
        lock: ForkLock::new(),
        meta: UnsafeCell::new(meta),
        records: AtomicU64::new(2 + inherited),
        head,
        totals,
        version: AtomicU32::new(version),
        ended: AtomicBool::new(false),
    })
}

/// Repeats what the parent had written about names, agents and code objects until the fork: the provider tells it once
/// only, and records of the child refer to it.
fn inherit(meta: &mut StreamWriter, parent: &Process) -> u64 {
    let Ok(spool) = ProcessSpool::open(parent.directory.path()) else {
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
    for _ in 0..parent.records.load(Ordering::Relaxed) {
        let Some(record) = records.next() else { break };
        let wanted = RecordKind::from_tag(record.header.tag)
            .is_some_and(|kind| kind.fork() == Fork::Repeated);
        if wanted && meta.append_parts(record.bytes, &[]) {
            written += 1;
        }
    }
    written
}

fn write_process(
    meta: &mut StreamWriter,
    options: &CollectorOptions,
    init_time: u64,
    forked: bool,
    provider_version: u32,
) -> OpenRecord {
    let file = |path: &str| std::fs::read(path).unwrap_or_default();
    let command = file("/proc/self/cmdline");
    let environment = kept_variables(&file("/proc/self/environ"), options);
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
        header: header(tag::PROCESS, len),
        pid: std::process::id(),
        ppid: ppid.cast_unsigned(),
        pgid: pgid.cast_unsigned(),
        sid: sid.cast_unsigned(),
        start_ticks: start_ticks(&file("/proc/self/stat")),
        init_time,
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

/// What of a NUL-separated environment goes into the recording.
fn kept_variables(environment: &[u8], options: &CollectorOptions) -> Vec<u8> {
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

/// Head of a record with this tag and length.
#[inline]
pub(crate) fn header(tag: u16, len: usize) -> RecordHeader {
    RecordHeader {
        len: len as u32,
        tag,
        aux: 0,
    }
}

/// Locks of services. Nothing but their own subject is touched while one is held, so their order is of no account.
static SERVICES: [&ForkLock; 4] = [
    &crate::lifecycle::signals::LOCK,
    &crate::sdk::rename::LOCK,
    &crate::recording::kernel_selection::LOCK,
    &crate::sdk::counters::facts::LOCK,
];
/// Which locks the thread that forks has taken: 1 the mappings, 2 the meta stream, 4 the making of the process, from 8 on
/// those of [`SERVICES`].
static HELD: AtomicU32 = AtomicU32::new(0);

extern "C" fn before_fork() {
    let mut held = 0;
    if let Some(guard) = MAKING.lock() {
        std::mem::forget(guard);
        held |= 4;
    }
    for (number, lock) in SERVICES.iter().enumerate() {
        if let Some(guard) = lock.lock() {
            std::mem::forget(guard);
            held |= 8 << number;
        }
    }
    if let Some(process) = existing()
        && let Some(guard) = process.lock.lock()
    {
        std::mem::forget(guard);
        held |= 2;
    }
    if let Some(guard) = writer::hold_for_fork() {
        std::mem::forget(guard);
        held |= 1;
    }
    HELD.store(held, Ordering::Relaxed);
}

extern "C" fn after_fork_in_parent() {
    let held = HELD.load(Ordering::Relaxed);
    if held & 1 != 0 {
        writer::release_after_fork();
    }
    if held & 2 != 0
        && let Some(process) = existing()
    {
        process.lock.reset();
    }
    for (number, lock) in SERVICES.iter().enumerate() {
        if held & (8 << number) != 0 {
            lock.reset();
        }
    }
    if held & 4 != 0 {
        MAKING.reset();
    }
}

/// Cuts the child loose. Its own directory is made when it records something, so that fork and exec cost nothing more.
extern "C" fn after_fork_in_child() {
    FORK_TIME.store(writer::now(), Ordering::Relaxed);
    writer::abandon_all();
    if let Some(process) = existing() {
        process.lock.reset();
        PARENT.store(std::ptr::from_ref(process).cast_mut(), Ordering::Release);
        CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    }
    // A child that could not record may have a child that can; else that one is counted, too.
    if LOST.swap(false, Ordering::Relaxed) {
        OFF.store(false, Ordering::Relaxed);
    }
    for lock in SERVICES {
        lock.reset();
    }
    crate::lifecycle::signals::forget_after_fork();
    crate::sdk::counters::config::MAKING.reset();
    MAKING.reset();
    crate::recording::thread::forget_after_fork();
    crate::recording::stacks::forked();
}

/// Runs when the library is loaded, before the target's `main`.
extern "C" fn on_load() {
    if std::env::var_os(SPOOL_VARIABLE).is_none() {
        OFF.store(true, Ordering::Relaxed);
        return;
    }
    install();
    current();
}

/// Runs when the process exits in good order.
extern "C" fn on_exit() {
    SERVICE.run(|| {
        if let Some(process) = existing() {
            crate::recording::meta::end(process);
        }
    });
}

/// Once per process image, whoever comes first: the loader, or a provider that asks before it has run our constructors.
pub(crate) fn install() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    crate::recording::guard::silence_panics();
    // SAFETY: the handlers are functions of this library, which is never unloaded once the target uses it.
    let status: c_int = unsafe {
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork_in_parent),
            Some(after_fork_in_child),
        )
    };
    let _ = status;
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = on_exit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_ticks_survives_odd_program_names() {
        let stat = b"12 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20";
        assert_eq!(start_ticks(stat), 4711);
        assert_eq!(start_ticks(b""), 0);
        let own = std::fs::read("/proc/self/stat").expect("procfs");
        assert!(start_ticks(&own) > 0);
    }

    #[test]
    fn only_what_outputs_may_show_is_recorded() {
        let environment = b"HOME=/root\0HSA_XNACK=1\0\xff=x\0none\0RPD_BEARER=s\0WHO=me\0";
        let mut options = CollectorOptions::default();
        assert_eq!(kept_variables(environment, &options), b"HSA_XNACK=1\0");
        options.variables = vec!["WHO".to_owned()];
        assert_eq!(
            kept_variables(environment, &options),
            b"HSA_XNACK=1\0WHO=me\0"
        );
        let all = CollectorOptions::from_text("environment=all");
        assert!(kept_variables(environment, &all).ends_with(b"RPD_BEARER=s\0WHO=me\0"));
        let none = CollectorOptions::from_text("environment=none");
        assert_eq!(kept_variables(environment, &none), b"");
    }

    #[test]
    fn hooks_have_the_signature_the_loader_calls() {
        let hooks: [extern "C" fn(); 2] = [on_load, on_exit];
        assert_ne!(hooks[0] as usize, hooks[1] as usize);
    }
}
