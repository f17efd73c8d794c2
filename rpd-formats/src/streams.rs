//! Streams on which HIP calls work.
//!
//! Records of calls carry the address of the runtime's stream object among their arguments, not the number that
//! dispatches and copies carry. The first dispatch or copy of each stream links its address and its number.

use std::collections::{BTreeMap, HashMap};

use rpd_core::domain::Kind;
use rpd_core::ids::{CorrelationId, Nanoseconds, StreamId, ThreadId};
use rpd_core::options::Options;
use rpd_core::session::{OperationClass, Session};
use rpd_core::spool::format::call_flag;
use rpd_core::text::args::{for_each_argument, layout};

/// Largest number of steps from a copy up to the HIP call that caused it: HSA calls lie between.
const MAX_DEPTH: usize = 4;

/// The streams of one address, one after the other.
#[derive(Default)]
struct AddressStreams {
    /// First use and number.
    streams: Vec<(Nanoseconds, StreamId)>,
    current: usize,
}

/// The source of an operation's stream.
#[derive(Clone, Copy, Default)]
struct StreamArgument {
    works: bool,
    offset: Option<u32>,
    destroys: bool,
    /// The null stream of the call is the thread's own.
    is_own: bool,
}

/// Finds the stream of each call of a session. Calls must be passed in their order.
pub(crate) struct CallStreams<'a> {
    session: &'a Session,
    places: Vec<StreamArgument>,
    lives: HashMap<StreamKey, AddressStreams>,
}

/// Handle of a stream, with the thread where that has a stream of its own under this handle; else with thread 0.
type StreamKey = (u64, ThreadId);

/// Value `hipStreamPerThread`.
const PER_THREAD: u64 = 2;

impl<'a> CallStreams<'a> {
    pub(crate) fn new(session: &'a Session, options: &Options) -> CallStreams<'a> {
        let places = session.operations.iter().map(|operation| {
            let name = session.strings.get(operation.name);
            let arguments = layout(operation.kind, name).map(|layout| layout.arguments);
            let stream = arguments
                .into_iter()
                .flatten()
                .find(|argument| argument.declared == "hipStream_t");
            StreamArgument {
                // A call of the runtime has the stream on which it works; calls of the compiler interface, which `<<<>>>` becomes, only announce it.
                works: operation.kind == Kind::HipRuntime,
                offset: stream.map(|argument| argument.offset),
                destroys: operation.class == OperationClass::StreamDestroy,
                is_own: name.ends_with("_spt"),
            }
        });
        let mut streams = CallStreams {
            session,
            places: places.collect(),
            lives: HashMap::new(),
        };
        if !options.group_by_queue {
            streams.link_addresses();
        }
        streams
    }

    fn link_addresses(&mut self) {
        let session = self.session;
        let mut first: BTreeMap<StreamId, (Nanoseconds, CorrelationId)> = BTreeMap::new();
        let (dispatches, copies) = (&session.dispatches, &session.copies);
        for (streams, starts, correlations) in [
            (
                &dispatches.stream,
                &dispatches.start,
                &dispatches.correlation,
            ),
            (&copies.stream, &copies.start, &copies.correlation),
        ] {
            for ((&stream, &start), &correlation) in streams.iter().zip(starts).zip(correlations) {
                if stream.0 != 0 && first.get(&stream).is_none_or(|found| start < found.0) {
                    first.insert(stream, (start, correlation));
                }
            }
        }
        let mut wanted: HashMap<CorrelationId, StreamId> = first
            .into_iter()
            .map(|(stream, (_, correlation))| (correlation, stream))
            .collect();
        let calls = &session.calls;
        // Calls below a HIP call submit the work: the calls above them are searched for one with the stream as
        // argument.
        for _ in 0..MAX_DEPTH {
            if wanted.is_empty() {
                break;
            }
            let mut above = HashMap::new();
            for index in calls.indices() {
                let Some(&stream) = wanted.get(&calls.correlation[index]) else {
                    continue;
                };
                let place = self.places[calls.operation[index].0 as usize];
                if let Some(key) = self.key(index, place) {
                    let life = self.lives.entry(key).or_default();
                    life.streams.push((calls.start[index], stream));
                } else if session.call(index).kind != Kind::HipRuntime
                    && calls.ancestor[index].0 != 0
                {
                    above.insert(calls.ancestor[index], stream);
                }
            }
            wanted = above;
        }
        // The streams of an address are searched by time.
        for life in self.lives.values_mut() {
            life.streams.sort_unstable();
        }
    }

    fn key(&self, index: usize, place: StreamArgument) -> Option<StreamKey> {
        let handle = match (self.address(index, place), place.is_own) {
            (None | Some(0), true) => PER_THREAD,
            (address, _) => address?,
        };
        let thread = match handle {
            PER_THREAD => self.session.calls.thread[index],
            _ => ThreadId(0),
        };
        Some((handle, thread))
    }

    fn address(&self, index: usize, place: StreamArgument) -> Option<u64> {
        let calls = &self.session.calls;
        let args = calls.args[index];
        let from = usize::try_from(args.offset).ok()?;
        let end = from.saturating_add(args.len as usize);
        let raw = calls.arena.get(from..end)?;
        if args.flags & call_flag::ARGUMENTS != 0 {
            let bytes = raw.get(place.offset? as usize..)?.first_chunk()?;
            return Some(u64::from_le_bytes(*bytes));
        }
        let mut address = None;
        for_each_argument(None, args.flags, raw, |_, declared, _, value| {
            if declared == "ihipStream_t*" {
                let digits = value.strip_prefix("0x").unwrap_or_default();
                address = u64::from_str_radix(digits, 16).ok();
            }
        });
        address
    }

    /// The stream of call `index`; 0 when it has none, or it is not known.
    #[inline]
    pub(crate) fn of(&mut self, index: usize) -> StreamId {
        let calls = &self.session.calls;
        if self.lives.is_empty() || calls.args[index].len == 0 {
            return StreamId(0);
        }
        let place = self.places[calls.operation[index].0 as usize];
        if !place.works {
            return StreamId(0);
        }
        let Some(life) = self
            .key(index, place)
            .and_then(|key| self.lives.get_mut(&key))
        else {
            return StreamId(0);
        };
        let (first_use, stream) = life.streams[life.current];
        if !place.destroys {
            return stream;
        }
        // A stream that was never used may have had the address before.
        if first_use <= calls.start[index] && life.current + 1 < life.streams.len() {
            life.current += 1;
        }
        StreamId(0)
    }
}
