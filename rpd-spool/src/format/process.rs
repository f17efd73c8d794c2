//! The process, sums over its life, and texts with a time.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// The process, as the collector found it when it was loaded. Tail: command line (as in `/proc/self/cmdline`),
/// working directory, path of the executable, environment (as in `/proc/self/environ`, without variables that the
/// options exclude); each as a `u32` length and the bytes.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Process {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the process.
    pub pid: u32,
    /// Id of the parent process.
    pub ppid: u32,
    /// Id of the process group.
    pub pgid: u32,
    /// Id of the session, see getsid(2).
    pub sid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/self/stat`. Together with `pid` it identifies a
    /// process until the next boot.
    pub start_ticks: u64,
    /// Time at which the collector was loaded; in a forked child, time of the fork.
    pub init_time: u64,
    /// `CLOCK_REALTIME` at `init_time`, in nanoseconds since the Unix epoch.
    pub real_time: u64,
    /// 1 when the process was made by `fork` and has not called `exec` since, else 0.
    pub forked: u32,
    /// Version of the provider as `10000*major + 100*minor + patch`; 0 while none has called the collector. With
    /// [`PROVIDER_DIRECT`], the version of the first runtime that registered its tables.
    pub provider_version: u32,
    /// Number of children that the parent process had when the collector was loaded.
    pub psize: u32,
    /// 1 when calls and allocations can have stacks, else 0.
    pub stacks: u32,
}

/// Bit of [`Process::provider_version`]: the collector wraps the runtimes' functions itself, without an SDK.
pub const PROVIDER_DIRECT: u32 = 1 << 31;

/// Bit of [`Process::provider_version`]: the events are from CUPTI alone. The other bits are its version.
pub const PROVIDER_CUDA: u32 = 1 << 30;

/// Sums over the life of a process. The collector adds to each with an atomic operation on the mapped file.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct ProcessTotals {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Number of dispatches that were submitted and will be recorded when they are complete.
    pub dispatches_begun: u64,
    /// Number of recorded dispatches that the provider reported as complete.
    pub dispatches_ended: u64,
    /// Number of asynchronous copies that were submitted and will be recorded when they are complete.
    pub copies_begun: u64,
    /// Number of recorded copies that the provider reported as complete.
    pub copies_ended: u64,
    /// Number of dispatches that were submitted to be counted.
    pub counted_begun: u64,
    /// Number of dispatches to be counted whose counter values the provider has delivered.
    pub counted_ended: u64,
    /// Number of dispatches that are not recorded, because the program had paused recording when they were submitted.
    pub dispatches_paused: u64,
    /// Number of forked children, and their children, that could not open a spool of their own.
    pub lost_processes: u64,
    /// Number of records that processes without a spool of their own could not store.
    pub lost_records: u64,
    /// Number of PC samples that the provider delivered as invalid.
    pub invalid_samples: u64,
    /// Number of PC samples that the provider dropped because its buffer was full.
    pub lost_samples: u64,
    /// Number of PC samples in a layout that the collector cannot read.
    pub unknown_samples: u64,
}

/// A runtime registered its dispatch tables with the provider.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RuntimeInit {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Number of the operation in the callback kind RUNTIME_INITIALIZATION. It tells the runtime.
    pub operation: u32,
    /// Not used: 0.
    pub reserved: u32,
    /// Version of the runtime, `10000*major + 100*minor + patch`.
    pub version: u64,
    /// Number of this registration of the runtime's tables, from 0.
    pub instance: u64,
    /// Time of the registration.
    pub time: u64,
}

/// The end of recording, or a note for the user. Tail: the text of the note; empty for the end.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TimedText {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Time at which the record was written.
    pub time: u64,
    /// Number of forked children that wrote the note, in a note that such children write: the text is that of the
    /// first. 0 in other notes. In the end, `CLOCK_REALTIME` at `time`, in nanoseconds since the Unix epoch.
    pub value: u64,
    /// Length of the text in the tail.
    pub text_len: u32,
    /// Id of the thread that wrote the record.
    pub tid: u32,
}
