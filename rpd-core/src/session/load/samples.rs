//! PC samples, and the bytes of code objects.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use super::super::code::{CodeImage, Sampling};
use super::super::samples::Issue;
use super::super::totals::Place;
use super::super::{SampleRow, Session};
use super::note_damage;
use crate::ids::{AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds};
use crate::spool::format;
use crate::spool::options::{SamplingMethod, SamplingUnit};
use crate::spool::reader::Record;
use crate::storage::column::{Column, Storage};

/// Greatest size of a code object in bytes. A greater size in a record is damage.
const LARGEST: u64 = 4 << 30;
/// Size in bytes from which the bytes of a code object are kept in a file.
const LONG: usize = 1 << 20;

/// Joins the parts of code objects' bytes.
#[derive(Default)]
pub(super) struct Contents {
    /// The image whose parts are being read: its hash, its size in bytes, and the bytes so far.
    open: Option<([u64; 2], u64, Vec<u8>)>,
    places: HashMap<[u64; 2], u32>,
    of_objects: Vec<(CodeObjectId, [u64; 2])>,
    /// Number of images whose parts do not fit together.
    broken: u64,
}

impl Contents {
    pub(super) fn load_bytes(
        &mut self,
        record: &Record<'_>,
        session: &mut Session,
        storage: &Storage,
    ) -> Option<io::Result<()>> {
        let (fixed, tail) = record.parse::<format::CodeBytes>()?;
        let part = tail.get(..fixed.len as usize)?;
        // Parts of an image are consecutive in a stream. Offset 0 begins the next one, so an unfinished one stays
        // unfinished.
        if fixed.offset == 0 {
            self.broken += u64::from(self.open.is_some());
            self.open = Some((fixed.content, fixed.size, Vec::new()));
        }
        let fits = match &self.open {
            Some((content, size, bytes)) => {
                *content == fixed.content
                    && *size == fixed.size
                    && *size <= LARGEST
                    && bytes.len() as u64 == fixed.offset
                    && fixed.offset + part.len() as u64 <= *size
            }
            None => false,
        };
        // The parts that follow do not fit either, and are skipped until the next offset 0.
        if !fits {
            self.broken += u64::from(self.open.take().is_some());
            return Some(Ok(()));
        }
        let (content, size, mut bytes) = self.open.take()?;
        bytes.extend_from_slice(part);
        if (bytes.len() as u64) < size {
            self.open = Some((content, size, bytes));
            return Some(Ok(()));
        }
        Some(self.add(content, bytes, session, storage))
    }

    fn add(
        &mut self,
        content: [u64; 2],
        bytes: Vec<u8>,
        session: &mut Session,
        storage: &Storage,
    ) -> io::Result<()> {
        let images = &mut session.code.images;
        if self.places.contains_key(&content) {
            return Ok(());
        }
        self.places.insert(content, images.len() as u32);
        let is_long = bytes.len() >= LONG;
        let mut column = Column::from(bytes);
        if is_long {
            column.spill(storage)?;
            column.seal(storage)?;
        }
        images.push(CodeImage {
            content,
            bytes: Arc::new(column),
        });
        Ok(())
    }

    pub(super) fn load_content(&mut self, record: &Record<'_>) -> Option<()> {
        let (fixed, _) = record.parse::<format::CodeContent>()?;
        self.of_objects
            .push((CodeObjectId(fixed.code_object), fixed.content));
        Some(())
    }

    /// Assigns images to code objects, and reports missing bytes as damage.
    pub(super) fn finish(self, session: &mut Session) {
        let mut missing = self.broken + u64::from(self.open.is_some());
        for (object, content) in self.of_objects {
            match self.places.get(&content) {
                Some(&place) => {
                    session.code.image_of.insert(object, place);
                }
                None => missing += 1,
            }
        }
        if missing > 0 {
            note_damage(
                &mut session.ledger.damage,
                format!("the bytes of {missing} code objects are incomplete"),
            );
        }
    }
}

pub(super) fn load_sampling(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::PcSampling>()?;
    let method = SamplingMethod::ALL
        .into_iter()
        .find(|method| method.number() == fixed.method);
    let unit = SamplingUnit::ALL
        .into_iter()
        .find(|unit| unit.number() == fixed.unit);
    session.sampling.push(Sampling {
        agent: AgentHandle(fixed.agent),
        method: method?,
        unit: unit?,
        interval: fixed.interval,
    });
    Some(())
}

pub(super) fn load_count(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::PcCount>()?;
    let place = Place {
        kernel: KernelId(fixed.function),
        object: CodeObjectId(fixed.code_object),
        offset: fixed.offset,
    };
    match Issue::from_count(fixed.issue) {
        Some(issue) => session.sample_counts.add(place, issue, fixed.samples),
        // Of a newer collector: the ledger has their number.
        None => session.ledger.unknown_samples += fixed.samples,
    }
    Some(())
}

#[inline]
pub(super) fn load_sample(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::PcSample>()?;
    let samples = &mut session.samples;
    samples.push(SampleRow {
        start: Nanoseconds(fixed.time),
        end: Nanoseconds(fixed.time),
        object: CodeObjectId(fixed.code_object),
        offset: fixed.offset,
        exec: fixed.exec,
        dispatch: DispatchId(fixed.dispatch),
        correlation: CorrelationId(fixed.correlation),
        region: fixed.region,
        hardware: fixed.hardware,
        workgroup: fixed.workgroup,
        wave: fixed.wave,
        flags: fixed.flags,
        class: fixed.class,
        waves: fixed.waves,
        snapshot: fixed.snapshot,
        memory: fixed.memory,
    });
    Some(())
}
