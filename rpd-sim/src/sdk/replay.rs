//! Kernel replay: the callback kind KERNEL_REPLAY, from SDK 1.4 on. A dispatch runs several times on the same input.
//!
//! What is put back between runs is what the SDK tracks: coarse-grained memory that was allocated on the GPU, and variables of loaded
//! code. Managed memory, memory of the host, fine-grained memory, pools and mapped memory stay as a run left them.

use core::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_kernel_replay_data_t as Payload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord, rocprofiler_context_id_t as ContextId,
    rocprofiler_correlation_id_t as CorrelationId, rocprofiler_kernel_dispatch_info_t as Info,
    rocprofiler_kernel_replay_continue_t as Continue,
    rocprofiler_kernel_replay_operation_t as Operation, rocprofiler_status_t as Status,
    rocprofiler_user_data_t as UserData,
};

use super::context::Context;
use super::correlation::{self, Scope, Use};
use super::{context, external, graphs, state, thread};
use crate::gpu::agents;
use crate::gpu::observe::{DispatchInfo, Observer as _, QueueInfo};
use crate::gpu::replay::{Alone, Candidate, Snapshot};
use crate::hip;
use crate::hsa;

const KIND: CallbackKind = CallbackKind::KERNEL_REPLAY;
/// Largest variable in bytes that is put back.
const MOST_VARIABLE: usize = 1 << 30;

/// Index of the one context that replays.
static CONTEXT: OnceLock<usize> = OnceLock::new();

thread_local! {
    /// Contexts that are left out of the passes of the dispatch that this thread replays.
    static STOPPED: Cell<u64> = const { Cell::new(0) };
    /// Whether a tool may change [`STOPPED`] now.
    static IN_PASS_ENTER: Cell<bool> = const { Cell::new(false) };
    /// Id that the next dispatch of this thread has; 0 for a new one.
    static RESERVED: Cell<u64> = const { Cell::new(0) };
}

/// Makes a context the one that replays; `false` when there is one already.
pub(super) fn claim(context: &Context) -> bool {
    CONTEXT.set(context.index).is_ok()
}

/// Whether a context replays, active or not.
pub(crate) fn configured() -> bool {
    CONTEXT.get().is_some()
}

/// Mask of the contexts that are left out of the dispatch that this thread submits.
pub(super) fn stopped() -> u64 {
    STOPPED.get()
}

/// Id that was reserved for the dispatch that this thread submits.
pub(super) fn take_reserved() -> Option<u64> {
    Some(RESERVED.take()).filter(|id| *id != 0)
}

/// The context that replays, if it is active and has callbacks for an operation.
fn active() -> Option<&'static Context> {
    let index = *CONTEXT.get()?;
    let wanted =
        context::active() & context::want_callbacks(KIND.0 as usize, Operation::CONFIG.0 as usize);
    (state::finalized() == 0 && wanted & 1 << index != 0).then(|| context::get(index))
}

/// Prints a line of the provider.
fn warn(dispatch: u64, what: &str) {
    eprintln!("rpd-sim: [kernel-replay] dispatch {dispatch} runs once: {what}");
}

/// A dispatch that the tool is asked about.
struct Replay<'a> {
    context: &'static Context,
    candidate: &'a Candidate<'a>,
    dispatch: &'a DispatchInfo<'a>,
    info: Info,
    id: Use,
}

/// Functions and number of passes that the tool has chosen.
struct Chosen {
    total: u64,
    proceed: Continue,
    user: UserData,
}

impl Replay<'_> {
    fn report(
        &self,
        operation: Operation,
        phase: Phase,
        payload: &mut Payload,
        user: &mut UserData,
    ) {
        let kinds = &self.context.callbacks[KIND.0 as usize];
        if kinds.get().is_none()
            || context::want_callbacks(KIND.0 as usize, operation.0 as usize)
                & 1 << self.context.index
                == 0
        {
            return;
        }
        let thread = thread::current();
        let record = CallbackRecord {
            thread_id: thread,
            correlation_id: CorrelationId {
                internal: self.id.internal,
                external: UserData::from(external::pushed(self.context, thread)),
                ancestor: self.id.ancestor,
            },
            kind: KIND,
            operation: operation.0 as i32,
            phase,
            payload: ptr::from_mut(payload).cast(),
            ..CallbackRecord::default()
        };
        self.context.call(record, user);
    }

    fn payload(&self) -> Payload {
        Payload {
            size: size_of::<Payload>() as u64,
            dispatch_info: self.info,
            ..Payload::default()
        }
    }

    /// Asks the tool; `None` when the dispatch is to run once.
    fn configure(&self, user: &mut UserData) -> Option<Chosen> {
        let mut payload = self.payload();
        self.report(Operation::CONFIG, Phase::ENTER, &mut payload, user);
        let count = payload.replay_pass_count?;
        // SAFETY: the tool set the function for this call.
        let total = unsafe { count(self.info, *user) };
        if total == 1 {
            return None;
        }
        let proceed = payload.replay_continue;
        if total == 0 && proceed.is_none() {
            warn(
                self.info.dispatch_id,
                "the tool asked for an endless loop and has no replay_continue",
            );
            return None;
        }
        Some(Chosen {
            total,
            proceed,
            user: *user,
        })
    }

    /// Runs all passes. `None` when the dispatch is to run once instead; the result of the last pass is `Err` when the queue stopped.
    fn run(&self, chosen: &Chosen, run: &Alone<'_>, snapshot: &Snapshot) -> Option<(u64, u64)> {
        let dispatch = self.info.dispatch_id;
        let mut current = 0;
        loop {
            let mut user = chosen.user;
            let mut payload = Payload {
                current_pass: current,
                total_passes: chosen.total,
                replay_start_context: Some(start_context),
                replay_stop_context: Some(stop_context),
                ..self.payload()
            };
            IN_PASS_ENTER.set(true);
            self.report(Operation::PASS, Phase::ENTER, &mut payload, &mut user);
            IN_PASS_ENTER.set(false);
            RESERVED.set(dispatch);
            let token = super::device::PROVIDER.dispatch_enqueued(self.dispatch);
            RESERVED.set(0);
            let ran = run.run(token);
            let mut payload = Payload {
                current_pass: current,
                total_passes: chosen.total,
                replay_continue: chosen.proceed,
                ..self.payload()
            };
            self.report(Operation::PASS, Phase::EXIT, &mut payload, &mut user);
            // The packet of a queue that has stopped never completes.
            let Ok(ticks) = ran else { return Some((0, 0)) };
            let is_last = chosen.total != 0 && current + 1 >= chosen.total;
            let goes_on = !is_last
                && payload.replay_continue.is_none_or(|proceed| {
                    // SAFETY: the tool set the function for this call.
                    unsafe { proceed(self.info, current, chosen.total, user) != 0 }
                });
            if !goes_on {
                return Some(ticks);
            }
            for address in snapshot.restore() {
                eprintln!(
                    "rpd-sim: [kernel-replay] dispatch {dispatch}: the memory at {address:#x} was freed between passes and is not put back"
                );
            }
            current += 1;
        }
    }
}

/// Address and size of the writable variables of the code that is loaded on an agent.
fn variables(agent: usize) -> Vec<(usize, usize)> {
    let mut found = hsa::executable::writable_variables(agent);
    found.retain(|&(address, size)| address != 0 && size != 0 && size <= MOST_VARIABLE);
    found
}

/// Replays a dispatch if the tool wants that; see [`crate::gpu::observe::Observer::replay`]. `describe` makes the description of the
/// dispatch with an id.
pub(super) fn attempt(
    dispatch: &DispatchInfo<'_>,
    candidate: &Candidate<'_>,
    describe: impl FnOnce(&DispatchInfo<'_>) -> Info,
) -> Option<(u64, u64)> {
    let context = active()?;
    if candidate.is_nested() {
        return None;
    }
    if graphs::is_launching() {
        static ONCE: AtomicBool = AtomicBool::new(false);
        if !ONCE.swap(true, Ordering::Relaxed) {
            eprintln!("rpd-sim: [kernel-replay] dispatches of graphs run once");
        }
        return None;
    }
    // Outside of traced calls, too, all passes have one correlation id.
    let mut scope = Scope::unused();
    let is_outside = correlation::current().is_none();
    if is_outside {
        scope.enter();
    }
    let replay = Replay {
        context,
        candidate,
        dispatch,
        info: describe(dispatch),
        id: Use::current(),
    };
    let mut user = UserData::from(0);
    let ticks = replay
        .configure(&mut user)
        .and_then(|chosen| passes(&replay, &chosen));
    let mut payload = replay.payload();
    replay.report(Operation::CONFIG, Phase::EXIT, &mut payload, &mut user);
    STOPPED.set(0);
    if is_outside {
        scope.leave();
        scope.release();
    }
    if ticks.is_none() {
        RESERVED.set(replay.info.dispatch_id);
    }
    ticks
}

/// Makes the snapshot and runs the passes; `None` where that is not possible.
fn passes(replay: &Replay<'_>, chosen: &Chosen) -> Option<(u64, u64)> {
    let id = replay.info.dispatch_id;
    let Some(run) = replay.candidate.alone() else {
        warn(
            id,
            "work that was submitted before does not end (agent_drain_stuck)",
        );
        return None;
    };
    let QueueInfo { agent, .. } = replay.dispatch.queue;
    let agent = agents::agent(agent)?.index;
    let snapshot = Snapshot::new(
        agent,
        |allocation| hip::memory::is_of_hip_malloc(allocation.base),
        &variables(agent),
    );
    match snapshot {
        Ok(snapshot) => replay.run(chosen, &run, &snapshot),
        Err(no_room) => {
            warn(
                id,
                &format!(
                    "there is no memory to keep the {} bytes at {:#x} in",
                    no_room.bytes, no_room.address
                ),
            );
            None
        }
    }
}

/// Changes which contexts are left out, by a tool that is in PASS ENTER.
fn change(id: ContextId, change: impl FnOnce(u64, u64) -> u64) -> Status {
    if !IN_PASS_ENTER.get() {
        return Status::ERROR_CONTEXT_ERROR;
    }
    let Some(context) = context::find(id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    STOPPED.set(change(STOPPED.get(), 1 << context.index));
    Status::SUCCESS
}

unsafe extern "C" fn start_context(id: ContextId) -> Status {
    change(id, |stopped, bit| stopped & !bit)
}

unsafe extern "C" fn stop_context(id: ContextId) -> Status {
    change(id, |stopped, bit| stopped | bit)
}
