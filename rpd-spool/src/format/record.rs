//! The kinds of record: a table with the tag of each, its struct, what becomes of the record when the process forks,
//! and its role in a session.
//!
//! Everything else that depends on the kind, above all how a session loads it, is an exhaustive `match` over
//! [`RecordKind`] or, for records that become rows, over [`Table`]. A new kind compiles when each of them handles it.

#![deny(clippy::wildcard_enum_match_arm)]

use super::record_len;
use crate::format;

/// Treatment of a record in a forked child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The child repeats the record: the provider reports the fact once only, and records of the child refer to it.
    Repeated,
    /// The child does not have the record, because it is about the parent.
    Left,
}

/// Role of a record in the session that is loaded from a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordRole {
    /// A row of a table.
    Row(Table),
    /// One of two records that make a row of a table.
    HalfRow(Table),
    /// A fact that rows refer to, or a fact about the process: kept once for each id.
    Fact,
    /// A statement about how complete the recording is.
    Completeness,
    /// Part of a capture, which is not a session.
    Capture(CapturePart),
}

/// Kind of a capture's part. `rpd-capture` takes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePart {
    /// A call, with the data that it reads and writes.
    Call,
    /// A code object.
    Code,
    /// A marker between calls.
    Marker,
}

macro_rules! record_kinds {
    ($($(#[$doc:meta])* $kind:ident = $constant:ident $tag:literal, $fixed:ident, $fork:ident, $role:expr;)*) => {
        /// The kinds of records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum RecordKind {
            $($(#[$doc])* $kind,)*
        }

        impl RecordKind {
            /// Every kind, in the order of tags.
            pub const ALL: &'static [RecordKind] = &[$(RecordKind::$kind,)*];

            /// The kind that [`format::RecordHeader::tag`] names; `None` for what a newer collector writes.
            #[inline]
            pub const fn from_tag(tag: u16) -> Option<RecordKind> {
                match tag {
                    $($tag => Some(RecordKind::$kind),)*
                    _ => None,
                }
            }

            /// Number of the kind in [`format::RecordHeader::tag`].
            pub const fn tag(self) -> u16 {
                match self {
                    $(RecordKind::$kind => $tag,)*
                }
            }

            /// Bytes of the fixed part, head included; a variable tail may follow.
            pub const fn fixed_len(self) -> usize {
                match self {
                    $(RecordKind::$kind => size_of::<format::$fixed>(),)*
                }
            }

            /// Head of a record of this kind whose tail has so many bytes.
            #[inline]
            pub const fn head(self, tail: usize) -> format::RecordHeader {
                format::RecordHeader {
                    // Writers refuse records beyond `MAX_RECORD`, whose length fits.
                    len: record_len(self.fixed_len(), tail) as u32,
                    tag: self.tag(),
                    aux: 0,
                }
            }

            /// Treatment of the record in a forked child.
            pub const fn fork(self) -> Fork {
                match self {
                    $(RecordKind::$kind => Fork::$fork,)*
                }
            }

            /// Role of the record in a session.
            pub const fn role(self) -> RecordRole {
                match self {
                    $(RecordKind::$kind => $role,)*
                }
            }
        }

        /// Record tags.
        pub mod tag {
            $(#[doc = concat!("[`super::RecordKind::", stringify!($kind), "`], [`crate::format::", stringify!($fixed), "`].")]
            pub const $constant: u16 = $tag;)*
        }
    };
}

// Tags 13 and 14 were events of streams and of recording, which nothing read.
record_kinds! {
    /// The process. Tail: see [`format::Process`]. First record of the meta stream.
    Process = PROCESS 1, Process, Left, RecordRole::Fact;
    /// A kind of the provider. Tail: the text.
    KindName = KIND_NAME 2, Name, Repeated, RecordRole::Fact;
    /// Operations of a kind. Tail: their names.
    OperationName = OPERATION_NAME 3, Name, Repeated, RecordRole::Fact;
    /// An agent. Tail: see [`format::AgentRecord`].
    Agent = AGENT 4, AgentRecord, Repeated, RecordRole::Fact;
    /// A code object was loaded or unloaded. Tail: URI.
    CodeObject = CODE_OBJECT 5, CodeObject, Repeated, RecordRole::Fact;
    /// A kernel symbol was registered. Tail: the kernel's name as registered.
    KernelSymbol = KERNEL_SYMBOL 6, KernelSymbol, Repeated, RecordRole::Fact;
    /// A host stub of a kernel is known. Tail: the function's name.
    HostFunction = HOST_FUNCTION 7, HostFunction, Repeated, RecordRole::Fact;
    /// A name was given through ROCTx. Tail: the name.
    ResourceName = RESOURCE_NAME 8, NamedResource, Repeated, RecordRole::Fact;
    /// A region that renames kernels. Tail: the message.
    Region = REGION 9, Region, Repeated, RecordRole::Fact;
    /// A runtime handed its tables over.
    RuntimeInit = RUNTIME_INIT 10, RuntimeInit, Repeated, RecordRole::Completeness;
    /// Recording ended in good order (finalise function or exit handler).
    End = END 11, TimedText, Left, RecordRole::Completeness;
    /// A text for the user (a feature the provider lacks, a service switched off). Tail: the text.
    Note = NOTE 12, TimedText, Left, RecordRole::Completeness;
    /// A counter that is collected. Tail: see [`format::Counter`].
    Counter = COUNTER 15, Counter, Repeated, RecordRole::Fact;
    /// One of the values that a counter yields. Tail: see [`format::CounterInstance`].
    CounterInstance = COUNTER_INSTANCE 16, CounterInstance, Repeated, RecordRole::Fact;
    /// Sums that are kept up to date in place. One per process.
    ProcessTotals = TOTALS 17, ProcessTotals, Left, RecordRole::Completeness;
    /// A file with code that a stack has frames in. Tail: see [`format::StackModule`]. In the stream of the
    /// thread whose stack had it first, as all facts about stacks. A forked child starts with none and writes those of its own stacks.
    StackModule = STACK_MODULE 18, StackModule, Left, RecordRole::Fact;
    /// A Python code object. Tail: see [`format::StackCode`].
    StackCode = STACK_CODE 19, StackCode, Left, RecordRole::Fact;
    /// A place in code. aux: [`format::location_kind`].
    StackLocation = STACK_LOCATION 20, StackLocation, Left, RecordRole::Fact;
    /// A node of the call tree.
    StackNode = STACK_NODE 21, StackNode, Left, RecordRole::Fact;
    /// Sources of lines of a generated Python file. Tail: see [`format::StackSource`].
    StackSource = STACK_SOURCE 26, StackSource, Left, RecordRole::Fact;
    /// An ELF object that describes code that was made at run time. Tail: see [`format::StackObject`].
    StackObject = STACK_OBJECT 27, StackObject, Left, RecordRole::Fact;
    /// A call or marker. Tail: arguments or message. aux: the provider's callback kind.
    Call = API 32, CallRecord, Left, RecordRole::Row(Table::Calls);
    /// A process range was started. Tail: message, counted. aux: the provider's callback kind.
    RangeBegin = RANGE_BEGIN 33, RangeBegin, Left, RecordRole::HalfRow(Table::Calls);
    /// A process range was stopped, on any thread.
    RangeEnd = RANGE_END 34, RangeEnd, Left, RecordRole::HalfRow(Table::Calls);
    /// Sampling configuration of an agent.
    PcSampling = PC_SAMPLING 48, PcSampling, Left, RecordRole::Fact;
    /// A part of the bytes of a code object. Tail: the bytes.
    CodeBytes = CODE_BYTES 49, CodeBytes, Repeated, RecordRole::Fact;
    /// The content of a code object, by its hash.
    CodeContent = CODE_CONTENT 50, CodeContent, Repeated, RecordRole::Fact;
    /// Trace configuration of an agent. Tail: counters.
    ThreadTracing = THREAD_TRACING 51, ThreadTracing, Repeated, RecordRole::Fact;
    /// A dispatch is traced.
    TracedDispatch = TRACED_DISPATCH 52, TracedDispatch, Left, RecordRole::Fact;
    /// A part of the thread trace of a shader engine. Tail: the bytes.
    TracePart = TRACE_PART 53, TracePart, Left, RecordRole::Fact;
    /// A kernel ran.
    Dispatch = DISPATCH 64, Dispatch, Left, RecordRole::Row(Table::Dispatches);
    /// An asynchronous copy ran.
    Copy = COPY 65, Copy, Left, RecordRole::Row(Table::Copies);
    /// Memory was allocated or freed.
    Allocation = ALLOCATION 66, Allocation, Left, RecordRole::Row(Table::Allocations);
    /// Scratch memory changed.
    Scratch = SCRATCH 67, Scratch, Left, RecordRole::Row(Table::Scratch);
    /// Counter values of a dispatch. Tail: see [`format::CountedDispatch`].
    Counted = COUNTED 68, CountedDispatch, Left, RecordRole::Row(Table::Counted);
    /// A dispatch is going to be counted.
    Selected = SELECTED 69, Selected, Left, RecordRole::Completeness;
    /// A program counter of a wave.
    PcSample = PC_SAMPLE 70, PcSample, Left, RecordRole::Row(Table::Samples);
    /// Sums of device work of one sort.
    DeviceTotal = DEVICE_TOTAL 71, DeviceTotal, Left, RecordRole::Fact;
    /// Sums of records that were removed. aux: their tag.
    RemovedTotal = REMOVED_TOTAL 72, RemovedTotal, Left, RecordRole::Completeness;
    /// A graph was launched.
    GraphLaunch = GRAPH_LAUNCH 73, GraphLaunch, Left, RecordRole::Row(Table::GraphLaunches);
    /// The device recorded a HIP event, or waited for one. aux: [`format::event_operation`].
    HipEvent = HIP_EVENT 74, HipEvent, Left, RecordRole::Row(Table::HipEvents);
    /// An event of the kernel driver. aux: [`format::kfd_kind`].
    KfdEvent = KFD_EVENT 75, KfdEvent, Left, RecordRole::Row(Table::KfdEvents);
    /// Samples at an instruction, added up by the provider.
    PcCount = PC_COUNT 76, PcCount, Left, RecordRole::Fact;
    /// A node was added to a graph by a call.
    CapturedNode = CAPTURED_NODE 77, CapturedNode, Left, RecordRole::Fact;
    /// A call of a capture. Tail: see [`crate::capture`].
    CaptureCall = CAPTURE_CALL 96, CaptureCall, Left, RecordRole::Capture(CapturePart::Call);
    /// A code object of a capture. Tail: see [`crate::capture`].
    CaptureCode = CAPTURE_CODE 97, CaptureCode, Left, RecordRole::Capture(CapturePart::Code);
    /// A marker of a capture. Tail: the message. aux: see [`crate::capture`].
    CaptureMarker = CAPTURE_MARKER 98, CaptureMarker, Left, RecordRole::Capture(CapturePart::Marker);
}

macro_rules! tables {
    ($($(#[$doc:meta])* $table:ident,)*) => {
        /// The tables of a session that records become rows of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table {
            $($(#[$doc])* $table,)*
        }

        impl Table {
            /// Every table.
            pub const ALL: &'static [Table] = &[$(Table::$table,)*];

            /// Bytes that the record of a row takes in the spool, without its tail.
            pub fn record_len(self) -> usize {
                RecordKind::ALL
                    .iter()
                    .find(|kind| kind.role() == RecordRole::Row(self))
                    .map_or(0, |kind| kind.fixed_len())
            }
        }
    };
}

tables! {
    /// Calls and markers.
    Calls,
    /// Kernel dispatches.
    Dispatches,
    /// Memory copies.
    Copies,
    /// Allocations and frees.
    Allocations,
    /// Scratch operations.
    Scratch,
    /// Dispatches with their counter values.
    Counted,
    /// PC samples.
    Samples,
    /// Launches of graphs.
    GraphLaunches,
    /// HIP events on the device.
    HipEvents,
    /// Events of the kernel driver.
    KfdEvents,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_tags_ascend_and_lead_back_to_their_kinds() {
        for kind in RecordKind::ALL {
            assert_eq!(RecordKind::from_tag(kind.tag()), Some(*kind));
            assert!(kind.fixed_len() >= size_of::<format::RecordHeader>());
        }
        assert!(RecordKind::ALL.is_sorted_by(|a, b| a.tag() < b.tag()));
        assert_eq!(RecordKind::from_tag(13), None);
        assert_eq!(tag::COUNTED, RecordKind::Counted.tag());
    }

    #[test]
    fn records_that_a_forked_child_repeats_are_no_rows() {
        for kind in RecordKind::ALL {
            let is_row = matches!(kind.role(), RecordRole::Row(_) | RecordRole::HalfRow(_));
            assert!(!is_row || kind.fork() == Fork::Left, "{kind:?}");
        }
    }

    #[test]
    fn every_table_has_a_record() {
        let sizes = Table::ALL.iter().map(|table| table.record_len());
        assert!(sizes.eq([56, 120, 104, 80, 80, 128, 96, 64, 80, 88]));
    }
}
