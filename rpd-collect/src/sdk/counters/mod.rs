//! Hardware counters of kernels.
//!
//! On a context of their own, which stays on as long as the target runs (see [`super::contexts`]).
//!
//! The provider calls back for each dispatch on the thread that submits it, and delivers the values on its own thread when
//! the kernel is complete. They are written at once, as dispatches are: a target that ends suddenly loses only what its
//! runtime has not delivered.

mod config;
mod facts;
mod replay;
mod turns;

use std::ffi::c_void;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_context_id_t, rocprofiler_counter_config_id_t,
    rocprofiler_counter_flag_t, rocprofiler_counter_record_t,
    rocprofiler_dispatch_counting_service_data_t, rocprofiler_user_data_t,
};
use rpd_spool::EXTRA_COUNTERS_FILE;
use rpd_spool::format::CountedValue;

use super::provider::describe;
use super::setup::Setup;
use super::{agents, dispatch, forked_end};
use crate::recording::guard::Service;
use crate::recording::kernel_selection::Selection;
use crate::recording::{device_work, meta, process, switch, thread};
use config::Configs;
pub(super) use config::available;

static SELECTION: Service = Service::new("selection of kernels to count");
static VALUES: Service = Service::new("counters");
static SYMBOLS: Service = Service::new("kernel filters");

/// The counting service, as it is configured.
struct Counting {
    functions: &'static Functions,
    context: rocprofiler_context_id_t,
    /// The context that has dispatches run once for each group, if that is requested and possible.
    replay: Option<rocprofiler_context_id_t>,
    selection: Selection,
    configs: Configs,
}

static COUNTING: OnceLock<Counting> = OnceLock::new();

/// Passes the user's own definitions to the provider, which reads definitions once, at the first query about counters.
pub(super) fn define(setup: &Setup<'_>) {
    if !setup.options.counters.extra {
        return;
    }
    let failed = |why: &str| meta::note(&format!("the extra counters are not defined: {why}"));
    let Some(load) = setup.functions.rocprofiler_load_counter_definition else {
        return failed("this provider has its own counters only");
    };
    let text = process::existing()
        .and_then(|process| process.directory.path().parent())
        .map(|run| std::fs::read(run.join(EXTRA_COUNTERS_FILE)));
    let Some(Ok(mut text)) = text else {
        return failed("their file cannot be read");
    };
    // NUL-terminated, for a provider that does not use the size.
    text.push(0);
    // SAFETY: the text lives through the call, which copies it.
    let status = unsafe {
        load(
            text.as_ptr().cast(),
            text.len() - 1,
            rocprofiler_counter_flag_t::APPEND_DEFINITION,
        )
    };
    if status != Default::default() {
        let says = describe(setup.functions, status);
        failed(&format!("the provider reports: {says}"));
    }
}

/// Subject of notes about failures.
const PURPOSE: &str = "what counters count";

/// Configures counting. To be called before kernels are registered. Returns the context, which [`begin`] or
/// [`hsa_initialised`] starts.
pub(super) fn configure(setup: &Setup<'_>) -> Option<rocprofiler_context_id_t> {
    let options = &setup.options.counters;
    if !options.any() {
        return None;
    }
    let functions = setup.functions;
    let present = [
        functions
            .rocprofiler_iterate_agent_supported_counters
            .is_some(),
        functions.rocprofiler_query_counter_info.is_some(),
        functions.rocprofiler_create_counter_config.is_some(),
        functions.rocprofiler_query_record_counter_id.is_some(),
    ];
    let service = functions.rocprofiler_configure_callback_dispatch_counting_service;
    // An SDK before counting lacks some of the functions; counting needs all.
    let (Some(service), true) = (service, present.iter().all(|found| *found)) else {
        meta::note("nothing is counted: this provider does not have dispatch counting");
        return None;
    };
    let run = process::existing()?.directory.path().parent()?;
    let selection = match Selection::load(options, run) {
        Ok(selection) => selection,
        Err(file) => {
            meta::note(&format!(
                "nothing is counted: the kernel filter {file} cannot be used"
            ));
            return None;
        }
    };
    let context = setup.context(PURPOSE)?;
    COUNTING.get_or_init(|| Counting {
        functions,
        context,
        replay: (options.replay).then(|| replay::configure(setup)).flatten(),
        configs: Configs::new(options, agents::gpus(), selection.selects_all()),
        selection,
    });
    let data = std::ptr::null_mut();
    // SAFETY: a context of this provider, and callbacks that stay loaded.
    let status = unsafe { service(context, Some(on_dispatch), data, Some(on_counted), data) };
    setup.succeeded(status, PURPOSE).then_some(context)
}

/// Starts counting, unless [`hsa_initialised`] will be called. Everything is configured by now.
///
/// SDK 1.0 starts the thread that delivers values with the context. A forked child does not have the thread: its values
/// would never come, and its exit would wait for the thread forever. So counting must not have started in a process
/// that forks before it uses a GPU.
pub(super) fn begin(setup: &Setup<'_>) {
    if let Some(context) = setup.counting
        && !setup.announces_hsa
        && setup.start(context, PURPOSE)
    {
        if let Some(replay) = COUNTING.get().and_then(|counting| counting.replay) {
            setup.start(replay, replay::PURPOSE);
        }
        forked_end::prepare();
    }
}

/// Whether dispatches are run once for each group.
pub(super) fn replays() -> bool {
    (COUNTING.get()).is_some_and(|counting| counting.replay.is_some())
}

/// Starts counting when the HSA runtime is initialised and has no queue yet.
pub(super) fn hsa_initialised() {
    let Some(counting) = COUNTING.get() else {
        return;
    };
    // SAFETY: a context of this provider. Starting it twice has no effect.
    let status = unsafe { (counting.functions.rocprofiler_start_context)(counting.context) };
    if status != Default::default() {
        let says = describe(counting.functions, status);
        meta::note(&format!("nothing is counted: the provider reports: {says}"));
        return;
    }
    if let Some(replay) = counting.replay {
        // SAFETY: as above.
        let status = unsafe { (counting.functions.rocprofiler_start_context)(replay) };
        if status != Default::default() {
            let says = describe(counting.functions, status);
            meta::note(&format!(
                "no kernel is replayed, and each is counted in the first group alone: the provider reports: {says}"
            ));
        }
    }
    forked_end::prepare();
}

/// Notes the name under which a kernel was registered.
pub(super) fn kernel_registered(id: u64, name: &[u8]) {
    if let Some(counting) = COUNTING.get() {
        SYMBOLS.run(|| {
            counting.selection.registered(id, name);
            if counting.replay.is_some() {
                replay::registered(id, name);
            }
        });
    }
}

unsafe extern "C" fn on_dispatch(
    dispatch: rocprofiler_dispatch_counting_service_data_t,
    config: *mut rocprofiler_counter_config_id_t,
    user_data: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    let selected = SELECTION.on_event(|| {
        let counting = COUNTING.get()?;
        let info = &dispatch.dispatch_info;
        let (dispatch, agent) = (info.dispatch_id, info.agent_id.handle);
        if counting.replay.is_some() {
            return replay::choose(counting, info);
        }
        if switch::is_paused() {
            // The report at the end has the number of dispatches that pauses left out.
            device_work::dispatch_paused();
        }
        // Turns wait for the decision about every number, so that a dispatch which is not counted is told to them, too.
        if !switch::is_on() || !counting.selection.selects(info.kernel_id) {
            counting.configs.pass_over(dispatch);
            return None;
        }
        let configs = &counting.configs;
        let config = configs.of_dispatch(counting.functions, agent, dispatch)?;
        device_work::counting_submitted(dispatch);
        Some((config, None))
    });
    if let Some(Some((selected, pass))) = selected
        && !config.is_null()
        && !user_data.is_null()
    {
        // SAFETY: the slots that the provider wants filled.
        unsafe {
            *config = selected;
            (*user_data).value = replay::pack(thread::id(), pass);
        }
    }
}

unsafe extern "C" fn on_counted(
    dispatch: rocprofiler_dispatch_counting_service_data_t,
    records: *mut rocprofiler_counter_record_t,
    count: usize,
    user_data: rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    VALUES.on_event(|| {
        // The parent's work may be delivered in a child that was forked meanwhile.
        let parents = device_work::is_of_parent(dispatch.start_timestamp);
        if records.is_null() || count == 0 || parents {
            return;
        }
        let Some(counting) = COUNTING.get() else {
            return;
        };
        // SAFETY: the provider's array during this call.
        let records = unsafe { std::slice::from_raw_parts(records, count) };
        let info = &dispatch.dispatch_info;
        facts::instances(counting.functions, info.agent_id.handle, records);
        let correlation = &dispatch.correlation_id;
        let (thread, run) = replay::unpack(user_data.as_u64());
        let mut dispatch = dispatch::record_of(
            thread.into(),
            (correlation.internal, correlation.external),
            (dispatch.start_timestamp, dispatch.end_timestamp),
            info,
        );
        dispatch.header = dispatch.header.with_aux(run);
        let values = records.iter().map(|record| CountedValue {
            instance: record.id,
            value: record.counter_value,
        });
        device_work::counting_complete(dispatch, values);
    });
}
