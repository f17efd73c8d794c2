//! Events: marks in streams with the time at which the stream got there.

use core::ffi::c_void;
use std::sync::{Arc, Mutex};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph;
use crate::hip::graph::capture_rules;
use crate::hip::hsa;
use crate::hip::runtime::{self, lock, write};
use crate::hip::stream::shared_event::{EventRecord, SharedEvent};
use crate::hip::stream::signal::Signal;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{Handle, event_flag};

/// A `hipEvent_t`.
#[derive(Debug)]
pub(crate) struct Event {
    flags: u32,
    recorded: Mutex<Option<Recorded>>,
    /// Page that other processes map too, for an event that was made to be shared.
    shared: Option<Arc<SharedEvent>>,
}

/// The stream and position at which an event was recorded last.
#[derive(Debug, Clone)]
pub(crate) enum Recorded {
    /// In a stream; the signal falls when the stream gets there.
    Mark {
        /// Completion signal of the mark.
        signal: Arc<Signal>,
        /// Agent of the stream, through which the times of the signal are asked for.
        agent: u64,
    },
    /// In a capture, at this position.
    Captured(graph::Origin),
    /// In a stream of one of the processes that share the event.
    Shared(EventRecord),
}

impl Event {
    pub(crate) fn recorded(&self) -> Option<Recorded> {
        let own = lock(&self.recorded).clone();
        match (&self.shared, own) {
            (Some(shared), None | Some(Recorded::Shared(_))) => {
                shared.latest().map(Recorded::Shared)
            }
            (_, own) => own,
        }
    }

    /// The page that other processes map; fails if the event was not made to be shared.
    pub(crate) fn shared(&self) -> HipResult<&Arc<SharedEvent>> {
        self.shared.as_ref().ok_or(code::INVALID_VALUE)
    }

    pub(crate) fn set(&self, recorded: Recorded) {
        *lock(&self.recorded) = Some(recorded);
    }

    /// Records the event in a stream that is not capturing.
    pub(crate) fn record(&self, stream: &Stream) -> HipResult {
        if let Some(shared) = &self.shared {
            self.set(Recorded::Shared(shared.record(stream)?));
            return Ok(());
        }
        let mut step = stream.step()?;
        let signal = step.mark()?;
        self.set(Recorded::Mark {
            signal,
            agent: stream.device.agent,
        });
        Ok(())
    }

    /// Makes a stream wait for the latest record of the event.
    pub(crate) fn hold(&self, stream: &Stream) -> HipResult {
        match self.recorded() {
            Some(Recorded::Mark { signal, .. }) => stream.follow(signal),
            Some(Recorded::Shared(point)) => point.hold(stream)?,
            None | Some(Recorded::Captured(_)) => {}
        }
        Ok(())
    }

    fn end(&self) -> HipResult<Option<u64>> {
        match self.recorded() {
            // Shared events have no times.
            None | Some(Recorded::Shared(_)) => Err(code::INVALID_HANDLE),
            Some(Recorded::Captured(_)) => Err(code::CAPTURED_EVENT),
            Some(Recorded::Mark { signal, agent }) => {
                if !signal.is_done() {
                    return Ok(None);
                }
                hsa::dispatch_time(agent, signal.handle()).map(|time| Some(time.end))
            }
        }
    }
}

fn create(out: *mut Handle, flags: u32) -> HipResult {
    const KNOWN: u32 = event_flag::BLOCKING_SYNC
        | event_flag::DISABLE_TIMING
        | event_flag::INTERPROCESS
        | event_flag::DISABLE_SYSTEM_FENCE
        | event_flag::RELEASE_TO_DEVICE
        | event_flag::RELEASE_TO_SYSTEM;
    let releases = event_flag::RELEASE_TO_DEVICE | event_flag::RELEASE_TO_SYSTEM;
    if out.is_null() || flags & !KNOWN != 0 || flags & releases == releases {
        return Err(code::INVALID_VALUE);
    }
    let between_processes = flags & event_flag::INTERPROCESS != 0;
    if between_processes && flags & event_flag::DISABLE_TIMING == 0 {
        return Err(code::INVALID_VALUE);
    }
    let shared = if between_processes {
        Some(SharedEvent::new()?)
    } else {
        None
    };
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, add(flags, shared)?) }
}

/// Registers a new event and gives its handle.
pub(crate) fn add(flags: u32, shared: Option<Arc<SharedEvent>>) -> HipResult<Handle> {
    let event = Arc::new(Event {
        flags,
        recorded: Mutex::new(None),
        shared,
    });
    let handle = Arc::as_ptr(&event).cast_mut().cast::<c_void>();
    write(&runtime::get()?.events).insert(handle as usize, event);
    Ok(handle)
}

pub(crate) unsafe extern "C" fn hipEventCreate(out: *mut Handle) -> u32 {
    api(|| create(out, 0))
}

pub(crate) unsafe extern "C" fn hipEventCreateWithFlags(out: *mut Handle, flags: u32) -> u32 {
    api(|| create(out, flags))
}

pub(crate) unsafe extern "C" fn hipEventDestroy(event: Handle) -> u32 {
    api(|| {
        let gone = write(&runtime::get()?.events).remove(&(event as usize));
        let gone = gone.ok_or(code::INVALID_HANDLE)?;
        // Its signal goes back to the pool, so its mark must have been passed; streams that were made to
        // follow it hold it themselves.
        drop(gone);
        Ok(())
    })
}

fn record(event: Handle, stream: Arc<Stream>) -> HipResult {
    let event = runtime::get()?.event(event)?;
    graph::submit(&stream, graph::Op::Record(event))
}

pub(crate) unsafe extern "C" fn hipEventRecord(event: Handle, stream: Handle) -> u32 {
    api(|| record(event, stream::resolve(stream)?))
}

pub(crate) unsafe extern "C" fn hipEventRecord_spt(event: Handle, stream: Handle) -> u32 {
    api(|| record(event, stream::resolve_spt(stream)?))
}

pub(crate) unsafe extern "C" fn hipEventRecordWithFlags(
    event: Handle,
    stream: Handle,
    flags: u32,
) -> u32 {
    const EXTERNAL: u32 = 1;
    api(|| {
        if flags & !EXTERNAL != 0 {
            return Err(code::INVALID_VALUE);
        }
        record(event, stream::resolve(stream)?)
    })
}

pub(crate) unsafe extern "C" fn hipEventSynchronize(event: Handle) -> u32 {
    api(|| {
        capture_rules::unsafe_call()?;
        match runtime::get()?.event(event)?.recorded() {
            None => Ok(()),
            Some(Recorded::Captured(_)) => Err(code::CAPTURED_EVENT),
            Some(Recorded::Mark { signal, .. }) => {
                signal.wait();
                Ok(())
            }
            Some(Recorded::Shared(point)) => {
                point.wait();
                Ok(())
            }
        }
    })
}

pub(crate) unsafe extern "C" fn hipEventQuery(event: Handle) -> u32 {
    api(|| match runtime::get()?.event(event)?.recorded() {
        Some(Recorded::Captured(_)) => Err(code::CAPTURED_EVENT),
        Some(Recorded::Mark { signal, .. }) if !signal.is_done() => Err(code::NOT_READY),
        Some(Recorded::Shared(point)) if !point.is_passed() => Err(code::NOT_READY),
        _ => Ok(()),
    })
}

pub(crate) unsafe extern "C" fn hipEventElapsedTime(
    out: *mut f32,
    start: Handle,
    stop: Handle,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let runtime = runtime::get()?;
        let (start, stop) = (runtime.event(start)?, runtime.event(stop)?);
        if (start.flags | stop.flags) & event_flag::DISABLE_TIMING != 0 {
            return Err(code::INVALID_HANDLE);
        }
        let (Some(start), Some(stop)) = (start.end()?, stop.end()?) else {
            return Err(code::NOT_READY);
        };
        let ticks = stop as i64 - start as i64;
        let milliseconds = ticks as f64 * 1000.0 / runtime.clock_hz as f64;
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, milliseconds as f32) }
    })
}
