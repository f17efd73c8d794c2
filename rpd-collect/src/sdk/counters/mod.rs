//! Hardware counters of kernels.
//!
//! On a context of their own, which stays on as long as the target runs (see [`crate::recording::switch`]).
//!
//! The provider offers each dispatch on the thread that submits it, and tells the values on a thread of its own when the
//! kernel is complete. They are written at once, as kernels are: a target that ends suddenly loses only what its runtime
//! has not handed over.

pub(crate) mod config;
pub(crate) mod facts;

use std::ffi::c_void;
use std::sync::OnceLock;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_context_id_t, rocprofiler_counter_config_id_t,
    rocprofiler_counter_flag_t, rocprofiler_counter_record_t,
    rocprofiler_dispatch_counting_service_data_t, rocprofiler_user_data_t,
};
use rpd_spool::EXTRA_COUNTERS_FILE;
use rpd_spool::format::{Counted, CountedValue, Selected, tag};
use rpd_spool::writer::record_len;
use zerocopy::IntoBytes;

use crate::recording::guard::Service;
use crate::recording::kernel_selection::Selection;
use crate::recording::meta;
use crate::recording::process::{self, fork_time, header};
use crate::sdk::counters::config::Configs;
use crate::sdk::dispatch;
use crate::sdk::entry::{Setup, describe};

static OFFERS: Service = Service::new("selection of kernels to count");
static VALUES: Service = Service::new("counters");
static SYMBOLS: Service = Service::new("kernel filters");

/// Everything that counting needs.
struct Counting {
    functions: &'static Functions,
    context: rocprofiler_context_id_t,
    selection: Selection,
    configs: Configs,
}

static COUNTING: OnceLock<Counting> = OnceLock::new();

/// Hands the user's own definitions to the provider. It reads definitions once, when it is first asked about counters.
pub(crate) fn define(setup: &Setup<'_>) {
    if !setup.options.counters.extra {
        return;
    }
    let refuse = |why: &str| meta::note(&format!("the extra counters are not defined: {why}"));
    let Some(load) = setup.functions.rocprofiler_load_counter_definition else {
        return refuse("this provider has its own counters only");
    };
    let text = process::existing()
        .and_then(|process| process.directory.path().parent())
        .map(|run| std::fs::read(run.join(EXTRA_COUNTERS_FILE)));
    let Some(Ok(mut text)) = text else {
        return refuse("their file cannot be read");
    };
    // Whoever does not trust the size finds an end.
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
        refuse(&format!("the provider says: {says}"));
    }
}

/// What the user reads that cannot be had.
const PURPOSE: &str = "what counters count";

/// To be called before kernels are registered. The context, which is started later.
pub(crate) fn configure(setup: &Setup<'_>) -> Option<rocprofiler_context_id_t> {
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
        selection,
        configs: Configs::new(options, crate::sdk::agents::gpus()),
    });
    let data = std::ptr::null_mut();
    // SAFETY: a context of this provider, and callbacks that stay loaded.
    let status = unsafe { service(context, Some(on_dispatch), data, Some(on_counted), data) };
    setup.succeeded(status, PURPOSE).then_some(context)
}

/// Starts counting, unless `later`: [`hsa_is_there`] will be called. Everything is configured by now.
///
/// The thread of SDK 1.0 that hands values over comes with the start, and a forked child does not have it: the child's
/// values would never come, and its end would wait for that thread for ever. So a process that forks before it uses a
/// GPU must not have started.
pub(crate) fn begin(setup: &Setup<'_>, later: bool) {
    if let Some(context) = setup.counting
        && !later
        && setup.start(context, PURPOSE)
    {
        crate::sdk::forked_end::prepare();
    }
}

/// The HSA runtime is there, and has no queue yet.
pub(crate) fn hsa_is_there() {
    let Some(counting) = COUNTING.get() else {
        return;
    };
    // SAFETY: a context of this provider. Starting it twice has no effect.
    let status = unsafe { (counting.functions.rocprofiler_start_context)(counting.context) };
    if status != Default::default() {
        let says = describe(counting.functions, status);
        meta::note(&format!("nothing is counted: the provider says: {says}"));
        return;
    }
    crate::sdk::forked_end::prepare();
}

/// A kernel was registered under this name.
pub(crate) fn kernel_registered(id: u64, name: &[u8]) {
    if let Some(counting) = COUNTING.get() {
        SYMBOLS.run(|| counting.selection.registered(id, name));
    }
}

unsafe extern "C" fn on_dispatch(
    offered: rocprofiler_dispatch_counting_service_data_t,
    config: *mut rocprofiler_counter_config_id_t,
    user_data: *mut rocprofiler_user_data_t,
    _data: *mut c_void,
) {
    let chosen = OFFERS.told(|| {
        let counting = COUNTING.get()?;
        let info = &offered.dispatch_info;
        if crate::recording::switch::is_paused() {
            dispatch::paused();
        }
        if !crate::recording::switch::is_on() || !counting.selection.takes(info.kernel_id) {
            return None;
        }
        let agent = info.agent_id.handle;
        let config = counting.configs.next(counting.functions, agent)?;
        // Whoever reads the spool knows by this what is missing when the program ends first.
        crate::recording::thread::write(&Selected {
            header: header(tag::SELECTED, size_of::<Selected>()),
            dispatch: info.dispatch_id,
        });
        if let Some(process) = process::existing() {
            process.totals.counted.begin();
        }
        Some(config)
    });
    if let Some(Some(chosen)) = chosen
        && !config.is_null()
        && !user_data.is_null()
    {
        // SAFETY: the slots that the provider wants filled.
        unsafe {
            *config = chosen;
            (*user_data).value = crate::recording::thread::id().into();
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
    VALUES.told(|| {
        // What ran before the fork is the parent's.
        if records.is_null() || count == 0 || dispatch.start_timestamp < fork_time() {
            return;
        }
        let Some(counting) = COUNTING.get() else {
            return;
        };
        // SAFETY: the provider's array during this call.
        let records = unsafe { std::slice::from_raw_parts(records, count) };
        let agent = dispatch.dispatch_info.agent_id.handle;
        facts::instances(counting.functions, agent, records);
        write(&dispatch, records, user_data.as_u64());
        if let Some(process) = process::existing() {
            process.totals.counted.end();
        }
    });
}

fn write(
    told: &rocprofiler_dispatch_counting_service_data_t,
    records: &[rocprofiler_counter_record_t],
    thread: u64,
) {
    const HEAD: usize = size_of::<Counted>();
    let len = record_len(HEAD, records.len() * size_of::<CountedValue>());
    let correlation = &told.correlation_id;
    let counted = Counted {
        dispatch: dispatch::record_of(
            header(tag::COUNTED, len),
            thread,
            (correlation.internal, correlation.external),
            (told.start_timestamp, told.end_timestamp),
            &told.dispatch_info,
        ),
        count: records.len() as u32,
        reserved: 0,
    };
    let written = crate::recording::thread::with(|thread| {
        thread.records.append(len, |bytes| {
            let (head, tail) = bytes.split_at_mut(HEAD);
            head.copy_from_slice(counted.as_bytes());
            for (place, record) in tail
                .chunks_exact_mut(size_of::<CountedValue>())
                .zip(records)
            {
                let value = CountedValue {
                    instance: record.id,
                    value: record.counter_value,
                };
                place.copy_from_slice(value.as_bytes());
            }
        })
    });
    if written == Some(false) {
        crate::recording::thread::lost();
    }
}
