//! Times of dispatches and copies.

use super::queue::queue;
use super::support::{agent, api, ensure, put};
use super::types::{HsaQueue, ProfilingTime, Status, status};
use crate::gpu::clock;
use crate::gpu::machine::machine;
use crate::gpu::signal::Signal;
use std::sync::atomic::Ordering;

/// Turns times in completion signals on or off.
pub(crate) unsafe extern "C" fn hsa_amd_profiling_set_profiler_enabled(
    handle: *mut HsaQueue,
    enable: i32,
) -> Status {
    api(|| {
        queue(handle)?.served().set_profiling(enable != 0);
        Ok(())
    })
}

/// Accepts whether times of copies are recorded; they are recorded in any case.
pub(crate) unsafe extern "C" fn hsa_amd_profiling_async_copy_enable(enable: bool) -> Status {
    api(|| {
        machine().copy_profiling.store(enable, Ordering::Relaxed);
        Ok(())
    })
}

unsafe fn times(handle: u64, time: *mut ProfilingTime) -> Result<(), Status> {
    ensure(!time.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    let signal = Signal::from_handle(handle).ok_or(status::ERROR_INVALID_SIGNAL)?;
    let (start, end) = signal.times();
    // Nothing has run yet.
    ensure(end != 0, status::ERROR)?;
    let times = ProfilingTime {
        start: clock::ticks_to_ns(start),
        end: clock::ticks_to_ns(end),
    };
    // SAFETY: the program's pointer is writable.
    unsafe { put(time, times) }
}

/// Writes start and end of the dispatch of a completion signal, in nanoseconds of the system clock.
pub(crate) unsafe extern "C" fn hsa_amd_profiling_get_dispatch_time(
    handle: u64,
    signal: u64,
    time: *mut ProfilingTime,
) -> Status {
    api(|| {
        ensure(!time.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let agent = agent(handle)?;
        ensure(agent.is_gpu(), status::ERROR_INVALID_AGENT)?;
        // SAFETY: the same promise.
        unsafe { times(signal, time) }
    })
}

/// Writes start and end of the copy of a completion signal, in nanoseconds of the system clock.
pub(crate) unsafe extern "C" fn hsa_amd_profiling_get_async_copy_time(
    signal: u64,
    time: *mut ProfilingTime,
) -> Status {
    // SAFETY: the same promise.
    api(|| unsafe { times(signal, time) })
}

/// Converts a tick of an agent to nanoseconds of the system clock.
pub(crate) unsafe extern "C" fn hsa_amd_profiling_convert_tick_to_system_domain(
    handle: u64,
    agent_tick: u64,
    system_tick: *mut u64,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        ensure(agent.is_gpu(), status::ERROR_INVALID_AGENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(system_tick, clock::ticks_to_ns(agent_tick)) }
    })
}
