//! The process, its sums, and texts about its end.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::RecordHeader;

/// The process, known when the collector was loaded. The tail holds, each as a `u32` byte count followed by
/// the bytes: command line (NUL-separated, as `/proc/self/cmdline`), working directory, executable path,
/// environment (NUL-separated).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Process {
    /// Record head.
    pub header: RecordHeader,
    /// Process id.
    pub pid: u32,
    /// Parent process id.
    pub ppid: u32,
    /// Process group.
    pub pgid: u32,
    /// Session.
    pub sid: u32,
    /// Field 22 of `/proc/self/stat`: with `pid` it names a process forever.
    pub start_ticks: u64,
    /// Time at which the collector was loaded, or of the fork that made the process, `CLOCK_BOOTTIME` ns.
    pub init_time: u64,
    /// `CLOCK_REALTIME` ns at `init_time`.
    pub real_time: u64,
    /// 1 when the process came from fork without exec.
    pub forked: u32,
    /// Provider version as `10000*major + 100*minor + patch`; 0 while none was seen. With [`PROVIDER_DIRECT`], the version
    /// of the first runtime that registered its tables.
    pub provider_version: u32,
    /// Number of children of the parent process when it was loaded.
    pub psize: u32,
    /// 1 when calls may have stacks, 0 when none has.
    pub stacks: u32,
}

/// In [`Process::provider_version`]: the collector wrapped the runtimes' functions itself, without an SDK.
pub const PROVIDER_DIRECT: u32 = 1 << 31;

/// Sums over the life of a process. The collector adds to them in place, each with one atomic addition.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Totals {
    /// Record head.
    pub header: RecordHeader,
    /// Dispatches that were submitted and will be recorded when they are complete.
    pub dispatches_begun: u64,
    /// Number of these that the provider reported as complete.
    pub dispatches_ended: u64,
    /// Asynchronous copies that were submitted and will be recorded when they are complete.
    pub copies_begun: u64,
    /// Number of these that the provider reported as complete.
    pub copies_ended: u64,
    /// Dispatches that were submitted to be counted.
    pub counted_begun: u64,
    /// Number of these whose values the provider has delivered.
    pub counted_ended: u64,
    /// Dispatches that were submitted while the program had paused recording, and are not recorded for that reason.
    pub dispatches_paused: u64,
    /// Processes forked off by this one, or by its forked children, that could not open a recording of their own.
    pub lost_processes: u64,
    /// Number of records of those processes.
    pub lost_records: u64,
    /// PC samples that the provider took and called unusable.
    pub invalid_samples: u64,
    /// PC samples that the provider had no room for.
    pub lost_samples: u64,
    /// PC samples of a layout that the collector cannot read.
    pub unknown_samples: u64,
}

/// A runtime handed its tables to the provider.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct RuntimeInit {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's operation number in its RUNTIME_INITIALIZATION callback kind.
    pub operation: u32,
    /// Not used; 0.
    pub reserved: u32,
    /// Version as the runtime numbers it.
    pub version: u64,
    /// Number of the runtime's instance.
    pub instance: u64,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub time: u64,
}

/// The end of a process, or a note: a time and, for a note, a text in the tail.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct TimedText {
    /// Record head.
    pub header: RecordHeader,
    /// Time, in ns of `CLOCK_BOOTTIME`.
    pub time: u64,
    /// Always 0.
    pub value: u64,
    /// Bytes of text in the tail.
    pub text_len: u32,
    /// Thread.
    pub tid: u32,
}
