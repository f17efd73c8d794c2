//! State of the sequence of packets, of which a trace has one: clock, names, ids.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use rpd_core::domain::Domain;
use rpd_core::session::{Process, Session};
use rpd_core::storage::by_id::ById;

use super::proto::{field, nested, text, uint};
use crate::file::TextFile;
use crate::{Placed, WriteError};

/// Value `BUILTIN_CLOCK_BOOTTIME`.
const BOOTTIME: u64 = 6;
/// Value `BUILTIN_CLOCK_REALTIME`.
const REALTIME: u64 = 1;

/// `SEQ_INCREMENTAL_STATE_CLEARED`: nothing of before counts.
const CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`: names and defaults of before count.
const CONTINUED: u64 = 2;

/// Number and name of a domain's category; `None` for domains without slices.
const fn category_of(domain: Domain) -> Option<(u64, &'static str)> {
    match domain {
        Domain::HsaApi => Some((1, "hsa_api")),
        Domain::HipApi => Some((2, "hip_api")),
        Domain::MarkerApi => Some((3, "marker_api")),
        Domain::RcclApi => Some((4, "rccl_api")),
        Domain::KernelDispatch => Some((5, "kernel_dispatch")),
        Domain::MemoryCopy => Some((6, "memory_copy")),
        Domain::RocdecodeApi => Some((7, "rocdecode_api")),
        Domain::RocjpegApi => Some((8, "rocjpeg_api")),
        Domain::CudaApi => Some((9, "cuda_api")),
        Domain::CudaDriverApi => Some((10, "cuda_driver_api")),
        Domain::RocshmemApi => Some((11, "rocshmem_api")),
        Domain::HipfileApi => Some((12, "hipfile_api")),
        Domain::Ompt => Some((13, "openmp")),
        Domain::Kfd => Some((14, "kfd_events")),
        // These are counter tracks.
        Domain::ScratchMemory | Domain::CounterCollection | Domain::MemoryAllocation => None,
    }
}

/// The number of a domain's category; 0 is none.
pub(super) fn category(domain: Domain) -> u64 {
    category_of(domain).map_or(0, |(number, _)| number)
}

/// The categories in the order of their numbers.
fn categories() -> Vec<(u64, &'static str)> {
    let mut categories: Vec<_> = Domain::ALL.into_iter().filter_map(category_of).collect();
    categories.sort_unstable();
    categories
}

macro_rules! annotations {
    ($($constant:ident = $text:literal,)*) => {
        #[expect(non_camel_case_types, clippy::upper_case_acronyms, reason = "numbers of the constants below")]
        #[repr(u64)]
        enum Number { $($constant,)* }
        $(pub(super) const $constant: u64 = Number::$constant as u64 + 1;)*
        /// Names of annotations by number, from 1.
        const ANNOTATIONS: &[&str] = &[$($text,)*];
    };
}

annotations! {
    BEGIN_NS = "begin_ns",
    END_NS = "end_ns",
    DELTA_NS = "delta_ns",
    TID = "tid",
    KIND = "kind",
    OPERATION = "operation",
    CORR_ID = "corr_id",
    ANCESTOR_ID = "ancestor_id",
    GRAPH_EXEC_ID = "graph_exec_id",
    GRAPH_NODE_ID = "graph_node_id",
    STREAM_ID = "stream_ID",
    SRC_AGENT = "src_agent",
    DST_AGENT = "dst_agent",
    COPY_BYTES = "copy_bytes",
    AGENT = "agent",
    AGENT_TYPE = "agent_type",
    QUEUE = "queue",
    KERNEL_ID = "kernel_id",
    SCRATCH_SIZE = "Scratch_Size",
    LDS_BLOCK_SIZE = "LDS_Block_Size",
    VGPR_COUNT = "VGPR_Count",
    ACCUM_VGPR_COUNT = "Accum_VGPR_Count",
    SGPR_COUNT = "SGPR_Count",
    WORKGROUP_SIZE = "workgroup_size",
    GRID_SIZE = "grid_size",
}

/// A trace in the making.
pub(super) struct Trace {
    pub(super) file: TextFile,
    /// Part of the ids of tracks and flows that makes them unique when traces of several processes are put together.
    pub(super) process: u64,
    /// Sequence and flags, as they stand in every packet.
    sequence: Vec<u8>,
    last_track: u64,
    /// Whether the trace has the name of an event (1), by number of the name.
    event_names: ById<u8>,
    /// Nanoseconds to add to the times of packets.
    pub(super) shift: i64,
    /// Number to add to process and thread ids.
    pub(super) first_id: u64,
    /// What the process is called, if not by its program.
    pub(super) label: Option<String>,
    annotation_names: HashMap<Box<str>, u64>,
}

impl Trace {
    /// The trace of a recording; with `placed`, a part of the trace of several.
    pub(super) fn new(file: TextFile, session: &Session, placed: Option<&Placed<'_>>) -> Trace {
        let process = &session.process;
        let sequence_id = match placed {
            // Processes of several machines may have the same id.
            Some(placed) => placed.number as u64 + 1,
            None => u64::from(process.pid.0).max(1),
        };
        let mut sequence = Vec::new();
        uint(&mut sequence, field::packet::SEQUENCE, sequence_id);
        uint(&mut sequence, field::packet::SEQUENCE_FLAGS, CONTINUED);
        let process_id = identity(process);
        let mut trace = Trace {
            file,
            process: process_id,
            sequence,
            // Few enough bits for a short number: every event has one.
            last_track: process_id >> 15,
            event_names: ById::zeros(session.strings.len(), session.storage.as_ref()),
            shift: placed.map_or(0, |placed| placed.shift),
            first_id: placed.map_or(0, |placed| placed.first_id),
            label: placed.map(|placed| placed.label.to_owned()),
            annotation_names: (1..)
                .zip(ANNOTATIONS)
                .map(|(number, &name)| (name.into(), number))
                .collect(),
        };
        trace.start(process, sequence_id);
        trace
    }

    /// The packet that clears the state, and sets clocks and fixed names.
    fn start(&mut self, process: &Process, sequence_id: u64) {
        nested(&mut self.file.buffer, field::PACKET, |out| {
            // The first packet tells readers to forget what they know of a sequence with this id.
            uint(out, field::packet::SEQUENCE, sequence_id);
            uint(out, field::packet::SEQUENCE_FLAGS, CLEARED);
            uint(out, field::packet::FIRST_ON_SEQUENCE, 1);
            nested(out, field::packet::CLOCK_SNAPSHOT, |out| {
                let known = [
                    (
                        BOOTTIME,
                        process.init_time.0.saturating_add_signed(self.shift),
                    ),
                    (REALTIME, process.real_time),
                ];
                for (id, time) in known.into_iter().filter(|(_, time)| *time != 0) {
                    nested(out, field::clocks::CLOCK, |out| {
                        uint(out, field::clocks::ID, id);
                        uint(out, field::clocks::TIMESTAMP, time);
                    });
                }
                uint(out, field::clocks::PRIMARY, BOOTTIME);
            });
            nested(out, field::packet::DEFAULTS, |out| {
                uint(out, field::defaults::CLOCK, BOOTTIME);
            });
            nested(out, field::packet::INTERNED_DATA, |out| {
                for (number, name) in categories() {
                    intern(out, field::interned::CATEGORIES, number, name);
                }
                for (number, name) in (1..).zip(ANNOTATIONS) {
                    intern(out, field::interned::ANNOTATION_NAMES, number, name);
                }
            });
        });
    }

    /// A number for a new track.
    pub(super) fn new_track(&mut self) -> u64 {
        self.last_track += 1;
        self.last_track
    }

    /// A packet with a time.
    #[inline]
    pub(super) fn packet(&mut self, time: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        nested(&mut self.file.buffer, field::PACKET, |out| {
            uint(
                out,
                field::packet::TIMESTAMP,
                time.saturating_add_signed(self.shift),
            );
            out.extend_from_slice(&self.sequence);
            fill(out);
        });
    }

    /// A packet without a time.
    pub(super) fn without_time(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        nested(&mut self.file.buffer, field::PACKET, |out| {
            out.extend_from_slice(&self.sequence);
            fill(out);
        });
    }

    /// Interns `name` as event name `number`, unless that was done before.
    #[inline]
    pub(super) fn event_name(&mut self, number: u64, name: &str) {
        // There are no more of them than 32 bits can number.
        if self.event_names.get(number as u32) == 0 {
            self.new_event_name(number, name);
        }
    }

    #[cold]
    fn new_event_name(&mut self, number: u64, name: &str) {
        self.event_names.grow(number as usize + 1);
        if let Some(is_known) = self.event_names.get_mut(number as u32) {
            *is_known = 1;
        }
        self.without_time(|out| {
            nested(out, field::packet::INTERNED_DATA, |out| {
                intern(out, field::interned::EVENT_NAMES, number, name);
            });
        });
    }

    /// The number of an annotation for the argument `name`. An argument with the name of one of our annotations
    /// gets its own number.
    pub(super) fn argument_name(&mut self, name: &str) -> u64 {
        let told_apart;
        let name = if ANNOTATIONS.contains(&name) {
            told_apart = format!("{name} (argument)");
            &told_apart
        } else {
            name
        };
        if let Some(&number) = self.annotation_names.get(name) {
            return number;
        }
        let number = self.annotation_names.len() as u64 + 1;
        self.annotation_names.insert(name.into(), number);
        self.without_time(|out| {
            nested(out, field::packet::INTERNED_DATA, |out| {
                intern(out, field::interned::ANNOTATION_NAMES, number, name);
            });
        });
        number
    }

    /// A packet with names and the like for packets that follow.
    pub(super) fn intern(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        self.without_time(|out| nested(out, field::packet::INTERNED_DATA, fill));
    }

    /// Makes `number` stand for a text in a table of interned texts.
    pub(super) fn intern_text(&mut self, table: u32, number: u64, name: &str) {
        self.intern(|out| intern(out, table, number, name));
    }

    /// Writes packets out when there are many. To be called between packets.
    #[inline]
    pub(super) fn flush_if_full(&mut self) -> Result<(), WriteError> {
        self.file.flush_if_full()
    }
}

fn intern(out: &mut Vec<u8>, table: u32, number: u64, name: &str) {
    nested(out, table, |out| {
        uint(out, field::interned::ID, number);
        text(out, field::interned::TEXT, name);
    });
}

/// Identity of a process image: FNV-1a over its numbers and times, with a final mix.
fn identity(process: &Process) -> u64 {
    let facts = [
        u64::from(process.pid.0),
        process.start_ticks,
        process.init_time.0,
        process.real_time,
    ];
    let bytes = facts.into_iter().flat_map(u64::to_le_bytes);
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ hash >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_categories_have_distinct_numbers() {
        let numbers = categories().into_iter().map(|(number, _)| number);
        assert!(numbers.eq(1..=categories().len() as u64));
    }
}
