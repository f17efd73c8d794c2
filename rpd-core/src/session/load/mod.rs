//! Loads a session from a spool.
//!
//! Streams are read one after the other. Each record is read once and goes straight into the columns. A stream is
//! almost sorted in itself (exceptions are equal times and joined ranges), so sorting the tables amounts to merging
//! the streams.

#![deny(clippy::wildcard_enum_match_arm)]

mod counters;
mod meta;
mod ranges;
mod records;
mod samples;
mod stacks;
mod totals;
mod traces;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::columns::span_of;
use super::growth::Growth;
use super::{Session, Table};
use crate::ids::Nanoseconds;
use crate::spool::format::{self, stream};
use crate::spool::reader::ProcessSpool;
use crate::spool::record::RecordKind;
use crate::storage::column::Storage;
use meta::Meta;
use records::Rows;

/// Optional parts of a session to be loaded, and the storage of long columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// Whether the raw arguments and return values of calls are kept.
    pub args: bool,
    /// Number of rows of a table that are kept in memory before they are written to files; `None` for the default.
    /// Set by tests and measurements only.
    pub rows: Option<usize>,
}

impl LoadOptions {
    /// Storage for long columns of a session that is read from `directory`.
    pub fn storage(&self, directory: &Path) -> Storage {
        let storage = Storage::new(directory);
        match self.rows {
            Some(rows) => storage.with_rows(rows),
            None => storage,
        }
    }
}

/// Reason why no session could be made of a spool. Damage to single segments is not an error: see
/// [`super::Ledger::damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory of the recording cannot be listed.
    #[error("cannot list {path}: {source}")]
    Unreadable {
        /// Path of the recording's directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// A table that is too long for memory cannot be written to a file.
    #[error("{path}: cannot store the records beside the recording: {source}")]
    Storage {
        /// Path of the recording's directory.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The directory has neither records nor damage: the process ended before it wrote its first record.
    #[error("{path} holds no records: the process ended before it wrote one")]
    NothingRecorded {
        /// Path of the recording's directory.
        path: PathBuf,
    },
    /// No readable process description was found in the directory.
    #[error("{path} holds no recording of a process: {reason}")]
    NotASpool {
        /// Path of the recording's directory.
        path: PathBuf,
        /// Reason why the directory's content is no recording: the first damage, or that no record names the process.
        reason: String,
    },
}

/// Number of messages about damage that are kept. A further message says that there are more.
const MAX_DAMAGE: usize = 100;

impl Session {
    /// Opens the spool directory of one process image.
    ///
    /// # Errors
    /// When the directory cannot be listed, or has no process description.
    pub fn open(directory: &Path, options: LoadOptions) -> Result<Session, LoadError> {
        Self::load(directory, ProcessSpool::open(directory), options)
    }

    /// Reads the facts and sums of a recording, without its records. The process may still run. The directory is open
    /// already; messages call it `shown`.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_facts_at(directory: OwnedFd, shown: &Path) -> Result<Session, LoadError> {
        let spool = ProcessSpool::open_at(directory, shown).map(|mut spool| {
            spool.streams.retain(|found| found.kind == stream::META);
            spool
        });
        Self::load(shown, spool, LoadOptions::default())
    }

    /// As [`Session::open`], with a directory that is open already, so that it cannot be replaced by another between
    /// two steps. Messages call it `shown`.
    ///
    /// # Errors
    /// As [`Session::open`].
    pub fn open_at(
        directory: OwnedFd,
        shown: &Path,
        options: LoadOptions,
    ) -> Result<Session, LoadError> {
        Self::load(shown, ProcessSpool::open_at(directory, shown), options)
    }

    fn load(
        directory: &Path,
        spool: std::io::Result<ProcessSpool>,
        options: LoadOptions,
    ) -> Result<Session, LoadError> {
        let spool = spool.map_err(|source| LoadError::Unreadable {
            path: directory.to_owned(),
            source,
        })?;
        // The path by which the directory was listed: it cannot be replaced in between.
        let storage = options.storage(spool.path());
        let mut tables = Growth::new(storage.clone());
        let failed = |source| LoadError::Storage {
            path: directory.to_owned(),
            source,
        };
        let mut meta = Meta::default();
        let mut rows = Rows::new(options, &storage);
        let mut contents = samples::Contents::default();
        let mut streams = traces::Streams::default();
        let mut totals = totals::DeviceTotals::default();
        let mut removed = totals::RemovedTotals::default();
        let mut strange = UnreadableRecords::default();
        let mut session = Session::default();
        session.strings.spill_to(&storage);
        // Id 0 stands for an absent text in every column.
        session.strings.intern("");
        let mut has_records = false;

        // Streams are read in two rounds, because records of threads refer to names in the meta stream. The first
        // stream is the meta stream; in a damaged spool, names may be in others, too.
        for (index, stream) in spool.streams.iter().enumerate() {
            if index == 1 {
                meta.resolve(&mut session);
            }
            let mut records = stream.records();
            while let Some(record) = records.next() {
                has_records = true;
                // A newer collector may write kinds that this version lacks; all others are still good.
                let Some(kind) = RecordKind::from_tag(record.header.tag) else {
                    strange.unknown(record.header.tag);
                    continue;
                };
                let taken = match kind {
                    RecordKind::Call => {
                        let stored = rows.load_call(&record, stream.tid, &mut meta, &mut session);
                        stored.transpose().map_err(failed)?
                    }
                    RecordKind::RangeBegin => {
                        let stored = rows.load_range(&record, stream.tid, &mut meta, &mut session);
                        stored.transpose().map_err(failed)?
                    }
                    RecordKind::RangeEnd => {
                        rows.ranges.load_end(&record).transpose().map_err(failed)?
                    }
                    RecordKind::Dispatch => records::load_dispatch(&record, &mut session),
                    RecordKind::Copy => records::load_copy(&record, &mut meta, &mut session),
                    RecordKind::Allocation => {
                        records::load_allocation(&record, &mut meta, &mut session)
                    }
                    RecordKind::Scratch => records::load_scratch(&record, &mut meta, &mut session),
                    RecordKind::GraphLaunch => records::load_graph_launch(&record, &mut session),
                    RecordKind::HipEvent => records::load_hip_event(&record, &mut session),
                    RecordKind::KfdEvent => {
                        records::load_kfd_event(&record, &mut meta, &mut session)
                    }
                    RecordKind::DeviceTotal => totals.load(&record),
                    RecordKind::RemovedTotal => removed.load(&record),
                    RecordKind::Counted => rows.counters.load_counted(&record, &mut session),
                    RecordKind::Selected => rows.counters.load_selected(&record),
                    RecordKind::Counter => rows.counters.load_counter(&record),
                    RecordKind::CounterInstance => rows.counters.load_instance(&record),
                    RecordKind::Process => meta.load_process(&record, &mut session),
                    RecordKind::KindName => meta.load_kind_name(&record),
                    RecordKind::OperationName => meta.load_operation_name(&record),
                    RecordKind::Agent => meta::load_agent(&record, &mut session),
                    RecordKind::CodeObject => meta::load_code_object(&record, &mut session),
                    RecordKind::KernelSymbol => meta::load_kernel_symbol(&record, &mut session),
                    RecordKind::HostFunction => meta::load_host_function(&record, &mut session),
                    RecordKind::ResourceName => meta::load_resource_name(&record, &mut session),
                    RecordKind::StackModule => stacks::load_module(&record, &mut session),
                    RecordKind::StackCode => stacks::load_code(&record, &mut session),
                    RecordKind::StackLocation => stacks::load_location(&record, &mut session),
                    RecordKind::StackNode => stacks::load_node(&record, &mut session),
                    RecordKind::StackObject => stacks::load_object(&record, &mut session),
                    RecordKind::StackSource => stacks::load_source(&record, &mut session),
                    RecordKind::Region => meta.load_region(&record, &mut session),
                    RecordKind::RuntimeInit => meta::load_runtime(&record, &mut session),
                    RecordKind::End => meta.load_end(&record, &mut session),
                    RecordKind::Note => meta::load_note(&record, &mut session),
                    RecordKind::ProcessTotals => meta::load_totals(&record, &mut session),
                    RecordKind::PcSample => samples::load_sample(&record, &mut session),
                    RecordKind::PcCount => samples::load_count(&record, &mut session),
                    RecordKind::CapturedNode => records::load_captured_node(&record, &mut session),
                    RecordKind::PcSampling => samples::load_sampling(&record, &mut session),
                    RecordKind::ThreadTracing => traces::load_tracing(&record, &mut session),
                    RecordKind::TracedDispatch => traces::load_chosen(&record, &mut session),
                    RecordKind::TracePart => match streams.load(&record, tables.storage()) {
                        Some(stored) => Some(stored.map_err(failed)?),
                        None => None,
                    },
                    RecordKind::CodeContent => contents.load_content(&record),
                    RecordKind::CodeBytes => {
                        let stored = contents.load_bytes(&record, &mut session, &storage);
                        stored.transpose().map_err(failed)?
                    }
                    // `rpd-capture` reads these when it makes the capture.
                    RecordKind::CaptureCall => record.parse::<format::CaptureCall>().map(drop),
                    RecordKind::CaptureCode => record.parse::<format::CaptureCode>().map(drop),
                    RecordKind::CaptureMarker => record.parse::<format::CaptureMarker>().map(drop),
                };
                // A record that is too short is left out and counted: the rest of the stream is still in step, as
                // lengths are in heads.
                if taken.is_none() {
                    strange.short(kind);
                }
                // After each record, because this is where tables that have become long move their rows to files.
                tables.taken(&mut session).map_err(failed)?;
                rows.counters.taken(&storage).map_err(failed)?;
            }
            let ledger = &mut session.ledger;
            ledger.dropped = ledger.dropped.saturating_add(records.dropped());
            ledger.bytes = ledger.bytes.saturating_add(records.bytes());
            for damage in records.into_damage() {
                note_damage(&mut ledger.damage, damage.to_string());
            }
        }
        // Only a directory without any sign of records is a process that ended early. Damage must not be called that.
        if !has_records && session.ledger.damage.is_empty() && session.ledger.dropped == 0 {
            return Err(LoadError::NothingRecorded {
                path: directory.to_owned(),
            });
        }
        // Without a description of the process there is no pid and no clock: nothing could be labelled or converted.
        if !meta.has_process {
            return Err(LoadError::NotASpool {
                path: directory.to_owned(),
                reason: match session.ledger.damage.first() {
                    Some(damage) => damage.clone(),
                    None => "no record names the process".to_owned(),
                },
            });
        }
        // What needs names comes now: every record of the meta stream has been read, in whatever stream it was.
        totals.finish(&mut meta, &mut session);
        removed.finish(&mut meta, &mut session);
        let counters = rows
            .finish(&meta, &mut session, &mut tables)
            .map_err(failed)?;
        contents.finish(&mut session);
        streams
            .finish(&mut session, tables.storage())
            .map_err(failed)?;
        strange.finish(&mut session.ledger.damage);
        let said = meta.end_time;
        // Rows can be read only when the tables are complete, and counters and stacks are joined with their rows.
        tables.finish(&mut session).map_err(failed)?;
        counters.finish(&mut session, &storage).map_err(failed)?;
        meta.finish(&mut session, &storage).map_err(failed)?;
        stacks::finish(&mut session, &storage).map_err(failed)?;
        // Sorting is last: names and labels, by which equal times are ordered, are known only now.
        tables.sort(&mut session).map_err(failed)?;
        let ends = Table::ALL
            .iter()
            .filter_map(|table| Some(span_of(session.columns(*table))?.1));
        let removed = session.removed.iter().map(|total| total.last);
        let last = ends.chain(removed).max().unwrap_or_default();
        session.process.fini_time = end_of_recording(&session, said, last);
        Ok(session)
    }
}

/// Numbers of records that cannot be read.
#[derive(Debug, Default)]
struct UnreadableRecords {
    /// Number of records that are shorter than the fixed part of their kind, by kind.
    short: BTreeMap<RecordKind, u64>,
    /// Number of records whose tag no kind has.
    unknown: u64,
    /// Tag of the first record whose tag no kind has.
    tag: u16,
}

impl UnreadableRecords {
    #[cold]
    fn short(&mut self, kind: RecordKind) {
        *self.short.entry(kind).or_default() += 1;
    }

    #[cold]
    fn unknown(&mut self, tag: u16) {
        if self.unknown == 0 {
            self.tag = tag;
        }
        self.unknown += 1;
    }

    fn finish(self, damage: &mut Vec<String>) {
        for (kind, count) in self.short {
            note_damage(
                damage,
                format!("{count} records are too short to be {kind:?}"),
            );
        }
        if self.unknown > 0 {
            let UnreadableRecords { unknown, tag, .. } = self;
            note_damage(
                damage,
                format!(
                    "{unknown} records of unknown kinds are left out (tag {tag}): use the rpd that recorded them"
                ),
            );
        }
    }
}

fn note_damage(damage: &mut Vec<String>, text: String) {
    if damage.len() < MAX_DAMAGE {
        damage.push(text);
    } else if damage.len() == MAX_DAMAGE {
        damage.push("and more".to_owned());
    }
}

/// The end of recording: the latest of the time that the collector wrote (`said`), the last time in the tables and the
/// last begin of a call that had not returned.
fn end_of_recording(session: &Session, said: u64, last: Nanoseconds) -> Nanoseconds {
    let open = session.ledger.open_calls.iter().map(|call| call.start);
    [Nanoseconds(said), session.process.init_time, last]
        .into_iter()
        .chain(open)
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
