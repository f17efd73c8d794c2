//! Events: marks in streams with the time at which the stream got there.

use core::ffi::c_void;
use std::sync::{Arc, Mutex};

use super::error::{HipResult, api, code, put};
use super::graph;
use super::hsa;
use super::runtime::{self, lock, write};
use super::signal::Signal;
use super::stream::{self, Stream};
use super::types::{Handle, event_flag};

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    flags: u32,
    recorded: Mutex<Option<Recorded>>,
}

/// The stream and position at which an event was recorded last.
#[derive(Debug, Clone)]
pub(crate) enum Recorded {
    /// In a stream; the signal falls when the stream gets there.
    Mark {
        /// Completion signal of the mark.
        signal: Arc<Signal>,
        /// The agent, for its times.
        agent: u64,
    },
    /// In a capture: its id and the nodes before the event.
    Captured(graph::Origin),
}

impl Event {
    pub(crate) fn recorded(&self) -> Option<Recorded> {
        lock(&self.recorded).clone()
    }

    pub(crate) fn set(&self, recorded: Recorded) {
        *lock(&self.recorded) = Some(recorded);
    }

    /// Records it in a stream that is not capturing.
    pub(crate) fn record(&self, stream: &Stream) -> HipResult {
        let mut step = stream.step()?;
        let signal = step.mark()?;
        self.set(Recorded::Mark {
            signal,
            agent: stream.device.agent,
        });
        Ok(())
    }

    /// Makes a stream wait for it.
    pub(crate) fn hold(&self, stream: &Stream) {
        if let Some(Recorded::Mark { signal, .. }) = self.recorded() {
            stream.follow(signal);
        }
    }

    fn end(&self) -> HipResult<Option<u64>> {
        match self.recorded() {
            None => Err(code::INVALID_HANDLE),
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
    if flags & event_flag::INTERPROCESS != 0 {
        return Err(code::NOT_SUPPORTED);
    }
    let runtime = runtime::get()?;
    let event = Arc::new(Event {
        flags,
        recorded: Mutex::new(None),
    });
    let handle = Arc::as_ptr(&event).cast_mut().cast::<c_void>();
    write(&runtime.events).insert(handle as usize, event);
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, handle) }
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
    api(|| match runtime::get()?.event(event)?.recorded() {
        None => Ok(()),
        Some(Recorded::Captured(_)) => Err(code::CAPTURED_EVENT),
        Some(Recorded::Mark { signal, .. }) => {
            signal.wait();
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn hipEventQuery(event: Handle) -> u32 {
    api(|| match runtime::get()?.event(event)?.recorded() {
        Some(Recorded::Captured(_)) => Err(code::CAPTURED_EVENT),
        Some(Recorded::Mark { signal, .. }) if !signal.is_done() => Err(code::NOT_READY),
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
