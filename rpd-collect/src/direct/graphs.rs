//! Executable HIP graphs and their launches.

use rpd_spool::format::GraphLaunch;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::calls;
use super::hooks::{Hook, hook};
use crate::recording::guard::Service;
use crate::recording::{frames, graphs, process, thread};

static SERVICE: Service = Service::new("graphs");

/// Value `hipSuccess`.
const SUCCESS: u32 = 0;

/// Makes an executable graph with `call`, which writes its handle to `out`.
fn instantiated(out: *mut u64, call: impl FnOnce() -> u32) -> u32 {
    let status = call();
    if status == SUCCESS && !out.is_null() {
        // SAFETY: a call that succeeded has written the handle there.
        SERVICE.on_event(|| graphs::instantiated(unsafe { out.read() }));
    }
    status
}

/// Leaves the launch that the thread is in when the call is left by an exception of the program.
struct Entered(bool);

impl Drop for Entered {
    fn drop(&mut self) {
        if self.0 {
            SERVICE.run(graphs::leave);
        }
    }
}

/// Launches an executable graph with `call`.
fn launched(exec: u64, call: impl FnOnce() -> u32) -> u32 {
    let begun = SERVICE.on_event(|| {
        let (number, is_new) = graphs::number(exec);
        (graphs::enter(number), is_new)
    });
    let Some((is_entered, is_new)) = begun else {
        return call();
    };
    let mut entered = Entered(is_entered);
    let start = now();
    let status = call();
    let end = now();
    if !std::mem::take(&mut entered.0) {
        return status;
    }
    SERVICE.run(|| {
        let launch = graphs::leave();
        if status != SUCCESS {
            if is_new {
                graphs::destroyed(exec);
            }
            return;
        }
        if !calls::are_on() {
            return;
        }
        let traced = process::existing().is_some_and(|process| process.options.traces.hip_runtime);
        graphs::launched(&GraphLaunch {
            header: RecordKind::GraphLaunch.head(0),
            thread: thread::id().into(),
            correlation: if traced { frames::correlation() } else { 0 },
            start,
            end,
            agent: launch.agent,
            dispatches: launch.dispatches,
            exec: launch.exec,
            reserved: 0,
        });
    });
    status
}

hook! {
    INSTANTIATE: HIP_RUNTIME_API::hipGraphInstantiate,
    fn instantiate(out: *mut u64, graph: u64, node: u64, log: u64, size: usize) -> u32,
    |next| { instantiated(out, || next(out, graph, node, log, size)) }
}

hook! {
    INSTANTIATE_WITH_FLAGS: HIP_RUNTIME_API::hipGraphInstantiateWithFlags,
    fn instantiate_with_flags(out: *mut u64, graph: u64, flags: u64) -> u32,
    |next| { instantiated(out, || next(out, graph, flags)) }
}

hook! {
    INSTANTIATE_WITH_PARAMS: HIP_RUNTIME_API::hipGraphInstantiateWithParams,
    fn instantiate_with_params(out: *mut u64, graph: u64, parameters: u64) -> u32,
    |next| { instantiated(out, || next(out, graph, parameters)) }
}

hook! {
    EXEC_DESTROY: HIP_RUNTIME_API::hipGraphExecDestroy,
    fn exec_destroy(exec: u64) -> u32,
    |next| {
        let status = next(exec);
        if status == SUCCESS {
            SERVICE.on_event(|| graphs::destroyed(exec));
        }
        status
    }
}

hook! {
    LAUNCH: HIP_RUNTIME_API::hipGraphLaunch,
    fn launch(exec: u64, stream: u64) -> u32,
    |next| { launched(exec, || next(exec, stream)) }
}

hook! {
    LAUNCH_SPT: HIP_RUNTIME_API::hipGraphLaunch_spt,
    fn launch_spt(exec: u64, stream: u64) -> u32,
    |next| { launched(exec, || next(exec, stream)) }
}

/// Hooks for the table of the HIP runtime.
pub(super) static HOOKS: [&Hook; 6] = [
    &INSTANTIATE,
    &INSTANTIATE_WITH_FLAGS,
    &INSTANTIATE_WITH_PARAMS,
    &EXEC_DESTROY,
    &LAUNCH,
    &LAUNCH_SPT,
];
