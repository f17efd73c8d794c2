//! Records of thread traces: joins the parts of the streams.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::super::Session;
use super::super::traces::{ChosenDispatch, TraceStream, Tracing};
use crate::ids::{AgentHandle, DispatchId, KernelId};
use crate::spool::format::{self, trace_flag};
use crate::spool::reader::Record;
use crate::storage::column::{Column, Storage};

/// Size in bytes from which a part, or a stream, is kept in a file.
const LONG: usize = 1 << 18;

/// Length of the longest token in bytes: a full buffer can have less room than that left.
const LONGEST_TOKEN: u64 = 32;

/// A part of a chunk of a stream.
struct Part {
    chunk: u64,
    offset: u64,
    /// Size of the whole chunk in bytes.
    size: u64,
    flags: u32,
    bytes: Column<u8>,
}

/// Parts by agent, trace and shader engine.
#[derive(Default)]
pub(super) struct Streams {
    parts: BTreeMap<(u64, u64, u32), Vec<Part>>,
}

impl Streams {
    pub(super) fn load(
        &mut self,
        record: &Record<'_>,
        storage: &Storage,
    ) -> Option<io::Result<()>> {
        let (fixed, tail) = record.parse::<format::TracePart>()?;
        let mut bytes = Column::from(tail.get(..fixed.len as usize)?.to_vec());
        let stored = if bytes.len() >= LONG {
            bytes.spill(storage).and_then(|()| bytes.seal(storage))
        } else {
            Ok(())
        };
        self.parts
            .entry((fixed.agent, fixed.trace, fixed.engine))
            .or_default()
            .push(Part {
                chunk: fixed.chunk,
                offset: fixed.offset,
                size: fixed.size,
                flags: fixed.flags,
                bytes,
            });
        Some(stored)
    }

    /// Joins the parts to streams, in the order of the chunks' numbers: the provider may have delivered chunks in any
    /// order.
    pub(super) fn finish(self, session: &mut Session, storage: &Storage) -> io::Result<()> {
        for ((agent, trace, engine), mut parts) in self.parts {
            parts.sort_by_key(|part| (part.chunk, part.offset));
            let mut bytes = Column::default();
            // The chunk that is being joined: its number, how many of its bytes were found, and its size.
            let mut chunk = None;
            let (mut reached, mut size) = (0, 0);
            let mut incomplete = false;
            let mut flags = 0;
            let mut is_long = false;
            for part in parts {
                let next = chunk.map_or(0, |chunk: u64| chunk + 1);
                if reached == size && part.chunk == next && part.offset == 0 {
                    (chunk, reached, size) = (Some(part.chunk), 0, part.size);
                }
                // Data after a gap cannot be decoded, because the start of a token cannot be recognised.
                if Some(part.chunk) != chunk || part.offset != reached {
                    incomplete = true;
                    break;
                }
                reached += part.bytes.len() as u64;
                flags |= part.flags;
                bytes.extend_from_slice(&part.bytes);
                if bytes.len() >= LONG {
                    is_long = true;
                    bytes.spill(storage)?;
                }
            }
            if is_long {
                bytes.spill(storage)?;
                bytes.seal(storage)?;
            }
            let agent = AgentHandle(agent);
            let traces = &mut session.thread_traces;
            let capacity = traces.tracing.iter().find(|tracing| tracing.agent == agent);
            let at_capacity = capacity
                .is_some_and(|tracing| bytes.total() as u64 + LONGEST_TOKEN > tracing.capacity);
            traces.streams.push(TraceStream {
                agent,
                trace,
                engine,
                full: flags & trace_flag::FULL != 0 || at_capacity,
                incomplete: incomplete || reached != size || flags & trace_flag::END == 0,
                bytes: Arc::new(bytes),
            });
        }
        Ok(())
    }
}

pub(super) fn load_tracing(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, tail) = record.parse::<format::ThreadTracing>()?;
    let names = String::from_utf8_lossy(tail.get(..fixed.len as usize)?);
    session.thread_traces.tracing.push(Tracing {
        agent: AgentHandle(fixed.agent),
        capacity: fixed.capacity,
        counters: names.split_whitespace().map(str::to_owned).collect(),
        whole_agent: fixed.whole_agent != 0,
    });
    Some(())
}

pub(super) fn load_chosen(record: &Record<'_>, session: &mut Session) -> Option<()> {
    let (fixed, _) = record.parse::<format::TracedDispatch>()?;
    session.thread_traces.chosen.push(ChosenDispatch {
        agent: AgentHandle(fixed.agent),
        dispatch: DispatchId(fixed.dispatch),
        kernel: KernelId(fixed.kernel),
    });
    Some(())
}
