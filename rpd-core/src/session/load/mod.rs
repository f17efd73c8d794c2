//! From a spool to a session.
//!
//! Streams are read one after the other, each record once, straight into the columns. Streams are sorted in themselves
//! (almost: clock ties, joined ranges), so putting everything in order is a merge.

mod counters;
mod meta;
mod order;
mod records;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::Session;
use crate::ids::Nanoseconds;
use crate::spool::format::tag;
use crate::spool::reader::ProcessSpool;
use meta::Meta;
pub(super) use order::put_in_order;
use records::Collector;

/// What to load besides the columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct LoadOptions {
    /// Keep the raw arguments of calls, and what they returned.
    pub args: bool,
}

/// Why a spool could not be read at all. Damage to single segments is no error: see [`super::Ledger::damage`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The directory cannot be listed.
    #[error("cannot list {path}: {source}")]
    Unreadable {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The directory holds no readable process description.
    #[error("{path} holds no recording of a process: {reason}")]
    NotASpool {
        /// The directory.
        path: PathBuf,
        /// What was wrong with it.
        reason: String,
    },
}

/// Texts of damage kept; what is beyond them is counted.
const MAX_DAMAGE: usize = 100;

impl Session {
    /// Opens the spool directory of one process image.
    ///
    /// # Errors
    /// When it cannot be listed or there is no process description in it.
    pub fn open(directory: &Path, options: LoadOptions) -> Result<Session, LoadError> {
        Self::load(directory, ProcessSpool::open(directory), options)
    }

    /// As [`Session::open`], with a directory that is open already, so that nobody can put another in its place. Messages
    /// name it `shown`.
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
        let mut meta = Meta::default();
        let mut collector = Collector::new(options);
        let mut session = Session::default();
        session.strings.intern("");

        // Two rounds, since the records of threads need the names from the meta stream, and a damaged spool may have
        // them anywhere: the first stream is the meta stream.
        for (index, stream) in spool.streams.iter().enumerate() {
            if index == 1 {
                meta.resolve(&mut session);
            }
            let mut records = stream.records();
            while let Some(record) = records.next() {
                match record.header.tag {
                    tag::COUNTER | tag::COUNTER_INSTANCE | tag::API..=tag::SELECTED => {
                        collector.take(&record, stream.tid, &meta, &mut session);
                    }
                    _ => meta.take(&record, &mut session),
                }
            }
            let ledger = &mut session.ledger;
            ledger.dropped = ledger.dropped.saturating_add(records.dropped());
            ledger.bytes = ledger.bytes.saturating_add(records.bytes());
            for damage in records.into_damage() {
                note_damage(&mut ledger.damage, damage.to_string());
            }
        }
        if !meta.has_process {
            return Err(LoadError::NotASpool {
                path: directory.to_owned(),
                reason: match session.ledger.damage.first() {
                    Some(damage) => damage.clone(),
                    None => "nothing says which process it was".to_owned(),
                },
            });
        }
        collector.finish(&meta, &mut session);
        let said = meta.end_time;
        meta.finish(&mut session);
        order::put_in_order(&mut session);
        session.process.fini_time = end_of_recording(&session, said);
        Ok(session)
    }
}

fn note_damage(damage: &mut Vec<String>, text: String) {
    if damage.len() < MAX_DAMAGE {
        damage.push(text);
    } else if damage.len() == MAX_DAMAGE {
        damage.push("and more".to_owned());
    }
}

/// The latest time known: what the collector called the end, or the end of the last record.
fn end_of_recording(session: &Session, said: u64) -> Nanoseconds {
    let last = |times: &[Nanoseconds]| times.iter().max().map_or(0, |time| time.0);
    let open = session.ledger.open_calls.iter().map(|call| call.start.0);
    Nanoseconds(
        [
            said,
            session.process.init_time.0,
            last(&session.api.end),
            last(&session.dispatches.end),
            last(&session.copies.end),
            last(&session.allocations.end),
            last(&session.scratch.end),
            last(&session.counted.dispatches.end),
            open.max().unwrap_or(0),
        ]
        .into_iter()
        .max()
        .unwrap_or(0),
    )
}

#[cfg(test)]
mod tests;
