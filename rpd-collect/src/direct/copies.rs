//! Asynchronous copies of memory.
//!
//! A copy keeps the program's completion signal ([`super::borrowed`]). Where that cannot be, the copy has a signal of ours,
//! and a callback of the runtime lowers the program's when the copy is complete.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::format::Copy;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::calls;
use super::hooks::{Hook, hook};
use super::hsa::{self, MISSING, SUCCESS, runtime};
use super::pending::{Node, Pending, Signals, Work};
use super::{agents, poller};
use crate::recording::guard::Service;
use crate::recording::{device_work, frames, graphs, thread};

static SERVICE: Service = Service::new("memory copies");

/// Copies that a few threads submit.
struct Lane {
    /// Whether a thread submits in this lane.
    taken: AtomicBool,
    pending: OnceLock<Pending>,
}

/// All lanes of copies. Threads are spread over them, so that two seldom use one at a time.
static LANES: [Lane; 16] = [const {
    Lane {
        taken: AtomicBool::new(false),
        pending: OnceLock::new(),
    }
}; 16];

/// Whether all copies are over.
pub(super) fn is_idle() -> bool {
    let pending = LANES.iter().filter_map(|lane| lane.pending.get());
    pending.into_iter().all(Pending::is_empty)
}

/// Records copies that are complete. The most that were over in one lane. Only for the thread that polls.
pub(super) fn poll() -> usize {
    let lanes = LANES.iter().filter_map(|lane| lane.pending.get());
    lanes.map(Pending::poll).max().unwrap_or(0)
}

/// Forgets all copies, in a forked child: they are its parent's.
pub(super) fn forget() {
    for lane in &LANES {
        lane.taken.store(false, Ordering::Relaxed);
        if let Some(pending) = lane.pending.get() {
            pending.forget();
        }
    }
}

/// Follows a copy with the program's `signal`.
fn submit(signal: u64, work: Work, tid: u32) -> Option<Signals> {
    let lane = &LANES[tid as usize % LANES.len()];
    while lane
        .taken
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        std::thread::yield_now();
    }
    let signals = lane
        .pending
        .get_or_init(Pending::new)
        .submit(signal, work, now());
    lane.taken.store(false, Ordering::Release);
    signals
}

/// Called by the runtime when a copy with a signal of ours is complete; `data` is a [`Chained`].
unsafe extern "C" fn on_complete(_value: i64, data: *mut c_void) -> bool {
    // SAFETY: `copied` leaked the box, and the runtime calls once.
    let chained = unsafe { Box::from_raw(data.cast::<Chained>()) };
    hsa::signal_decrement(chained.program);
    Pending::completed(chained.node);
    false
}

/// A copy with a signal of ours, and the program's.
struct Chained {
    program: u64,
    node: *const Node,
}

/// A copy between two places.
struct CopyRange {
    to: (u64, u64),
    from: (u64, u64),
    bytes: u64,
}

/// Makes a copy with `call`, which takes the completion signal.
fn copied(place: CopyRange, signal: u64, call: impl Fn(u64) -> u32) -> u32 {
    let followed = SERVICE.on_event(|| {
        if !calls::are_on() || signal == 0 {
            return None;
        }
        let (to, from) = (agents::known(place.to.1)?, agents::known(place.from.1)?);
        // Numbers of the SDK's copy operations: host to host, host to device, device to host, device to device.
        let operation = match (from.is_gpu, to.is_gpu) {
            (false, false) => 1,
            (false, true) => 2,
            (true, false) => 3,
            (true, true) => 4,
        };
        let (correlation, _) = frames::of_work();
        let (tid, region, stream) = thread::with(|thread| {
            let (region, stream) = thread.region_and_stream();
            (thread.tid(), region, stream)
        })?;
        let record = Copy {
            header: RecordKind::Copy.head(0),
            thread: tid.into(),
            correlation,
            start: 0,
            end: 0,
            dst_agent: to.id,
            src_agent: from.id,
            bytes: place.bytes,
            dst_address: place.to.0,
            src_address: place.from.0,
            operation,
            stream,
            region,
            reserved: 0,
            graph: graphs::copy(),
        };
        // Started before the copy is submitted, whose completion nobody else reads.
        poller::start();
        let signals = submit(signal, Work::Copy(record), tid)?;
        if signals.program != 0 && !chain(&signals) {
            Pending::withdraw(&signals);
            return None;
        }
        Some(signals)
    });
    let Some(signals) = followed.flatten() else {
        // The call is not followed and will change the program's signal: work that has borrowed it is ended first.
        super::borrowed::before_change(signal);
        return call(signal);
    };
    let status = call(signals.work);
    // Counted when the runtime has taken the copy: a refused one never completes, and would be reported as unfinished.
    if status == SUCCESS {
        device_work::copy_submitted();
        poller::wake();
    } else {
        Pending::withdraw(&signals);
    }
    status
}

/// Has the runtime change the program's signal when our signal is changed. Returns whether it will.
fn chain(signals: &Signals) -> bool {
    type OnComplete = unsafe extern "C" fn(i64, *mut c_void) -> bool;
    /// Value `HSA_SIGNAL_CONDITION_LT`.
    const LESS: u32 = 2;
    super::borrowed::before_change(signals.program);
    Pending::await_callback(signals);
    let chained = Box::into_raw(Box::new(Chained {
        program: signals.program,
        node: signals.node,
    }));
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_signal_async_handler(
            u64,
            u32,
            i64,
            OnComplete,
            *mut c_void,
        ) -> u32,
        (signals.work, LESS, 1, on_complete, chained.cast()),
        MISSING
    );
    if status != SUCCESS {
        // SAFETY: the runtime did not take it.
        drop(unsafe { Box::from_raw(chained) });
    }
    status == SUCCESS
}

hook! {
    COPY: HSA_AMD_EXT_API::hsa_amd_memory_async_copy,
    fn async_copy(
        to: u64, to_agent: u64, from: u64, from_agent: u64, bytes: usize, count: u32, dependencies: *const u64,
        signal: u64,
    ) -> u32,
    |next| {
        let place = CopyRange { to: (to, to_agent), from: (from, from_agent), bytes: bytes as u64 };
        copied(place, signal, |signal| {
            next(to, to_agent, from, from_agent, bytes, count, dependencies, signal)
        })
    }
}

hook! {
    COPY_ON_ENGINE: HSA_AMD_EXT_API::hsa_amd_memory_async_copy_on_engine,
    fn async_copy_on_engine(
        to: u64, to_agent: u64, from: u64, from_agent: u64, bytes: usize, count: u32, dependencies: *const u64,
        signal: u64, engine: u32, force: bool,
    ) -> u32,
    |next| {
        let place = CopyRange { to: (to, to_agent), from: (from, from_agent), bytes: bytes as u64 };
        copied(place, signal, |signal| {
            next(to, to_agent, from, from_agent, bytes, count, dependencies, signal, engine, force)
        })
    }
}

/// Struct `hsa_pitched_ptr_t` of the runtime.
#[repr(C)]
struct Pitched {
    base: u64,
    pitch: usize,
    slice: usize,
}

hook! {
    COPY_RECT: HSA_AMD_EXT_API::hsa_amd_memory_async_copy_rect,
    fn async_copy_rect(
        to: *const Pitched, to_offset: *const [u32; 3], from: *const Pitched, from_offset: *const [u32; 3],
        range: *const [u32; 3], agent: u64, direction: u32, count: u32, dependencies: *const u64, signal: u64,
    ) -> u32,
    |next| {
        let call = |signal| {
            next(
                to, to_offset, from, from_offset, range, agent, direction, count, dependencies, signal,
            )
        };
        // SAFETY: null, or what the program describes the copy with.
        let (described, start) = unsafe {
            let parts = to.as_ref().zip(from.as_ref()).zip(range.as_ref());
            let start = |side: &Pitched, offset: *const [u32; 3]| {
                let [x, y, z] = offset.as_ref().copied().unwrap_or_default();
                side.base
                    .wrapping_add(u64::from(x))
                    .wrapping_add(u64::from(y) * side.pitch as u64)
                    .wrapping_add(u64::from(z) * side.slice as u64)
            };
            (parts, start)
        };
        let Some(((to_side, from_side), [x, y, z])) = described else {
            return call(signal);
        };
        // `hsa_amd_copy_direction_t`: bit 0 is set for copies to a device, bit 1 for those from one.
        let owner = |device: bool, address: u64| if device {
            agents::gpu_of(address).unwrap_or(agent)
        } else {
            agents::host()
        };
        let (to_address, from_address) = (start(to_side, to_offset), start(from_side, from_offset));
        let place = CopyRange {
            to: (to_address, owner(direction & 1 != 0, to_address)),
            from: (from_address, owner(direction & 2 != 0, from_address)),
            bytes: u64::from(*x) * u64::from(*y) * u64::from(*z),
        };
        copied(place, signal, call)
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 3] = [&COPY, &COPY_ON_ENGINE, &COPY_RECT];

/// Makes the runtime keep the times of copies.
pub(super) fn enable_times() {
    set_times(true);
}

/// Makes the runtime keep the times of copies, or not.
pub(super) fn set_times(on: bool) {
    runtime!(HSA_AMD_EXT_API::hsa_amd_profiling_async_copy_enable(bool) -> u32, (on), MISSING);
}

hook! {
    TIMES: HSA_AMD_EXT_API::hsa_amd_profiling_async_copy_enable,
    fn async_copy_enable(_enable: bool) -> u32,
    |next| {
        // They are needed whether or not the program requests them.
        next(true)
    }
}

/// As [`HOOKS`], for the program's own use of times.
pub(super) static TIMES_HOOK: &Hook = &TIMES;
