//! Thread traces: the streams of shader engines, written as the provider delivers them.

use rpd_spool::format::{ThreadTracing, TracePart, TracedDispatch, trace_flag};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::record_len;
use zerocopy::IntoBytes;

use super::{meta, thread};

/// Bytes of a stream in one record.
const PART: usize = 1 << 20;

/// An agent is traced, whose streams have at most `capacity` bytes for each engine. `counters`: those in its traces, as
/// `TracedCounter::label` has them.
pub(crate) fn configured(agent: u64, capacity: u64, whole_agent: bool, counters: &[String]) {
    let names = counters.join(" ");
    let record = ThreadTracing {
        header: RecordKind::ThreadTracing.head(names.len()),
        agent,
        capacity,
        len: names.len() as u32,
        whole_agent: whole_agent.into(),
    };
    meta::write(&record, names.as_bytes());
}

/// Records that a dispatch is traced.
pub(crate) fn dispatch(agent: u64, dispatch: u64, kernel: u64) {
    thread::write(&TracedDispatch {
        header: RecordKind::TracedDispatch.head(0),
        agent,
        dispatch,
        kernel,
    });
}

/// Origin of a delivered piece of a stream.
#[derive(Clone, Copy)]
pub(crate) struct Chunk {
    /// Handle of the agent.
    pub(crate) agent: u64,
    /// Number of the trace.
    pub(crate) trace: u64,
    /// Number of the shader engine.
    pub(crate) engine: u32,
    /// Number of the piece in the stream of the engine.
    pub(crate) number: u64,
    /// Properties of the piece: [`trace_flag`]s.
    pub(crate) flags: u32,
}

/// Writes a piece of the stream of a shader engine.
pub(crate) fn chunk(chunk: Chunk, bytes: &[u8]) {
    // An empty chunk has a record as well: it may be the end.
    let parts = bytes.len().div_ceil(PART).max(1);
    for part in 0..parts {
        let offset = part * PART;
        let piece = &bytes[offset..bytes.len().min(offset + PART)];
        const HEAD: usize = size_of::<TracePart>();
        let len = record_len(HEAD, piece.len());
        let is_last = part + 1 == parts;
        let record = TracePart {
            header: RecordKind::TracePart.head(piece.len()),
            agent: chunk.agent,
            trace: chunk.trace,
            chunk: chunk.number,
            offset: offset as u64,
            size: bytes.len() as u64,
            engine: chunk.engine,
            // Before the last part of a chunk the stream continues.
            flags: if is_last {
                chunk.flags
            } else {
                chunk.flags & !trace_flag::END
            },
            len: piece.len() as u32,
            reserved: 0,
        };
        thread::append(len, |place| {
            let (head, tail) = place.split_at_mut(HEAD);
            head.copy_from_slice(record.as_bytes());
            tail[..piece.len()].copy_from_slice(piece);
        });
    }
}
