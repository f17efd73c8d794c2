//! Counting of single dispatches.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
};
use std::sync::{Arc, Mutex, OnceLock};

use rocprofiler_sdk_sys::{
    rocprofiler_async_correlation_id_t as AsyncCorrelationId,
    rocprofiler_buffer_category_t as Category, rocprofiler_buffer_id_t as BufferId,
    rocprofiler_context_id_t as ContextId, rocprofiler_counter_config_id_t as ConfigId,
    rocprofiler_counter_record_kind_t as Kind, rocprofiler_counter_record_t as Record,
    rocprofiler_dispatch_counting_record_cb_t as RecordFn,
    rocprofiler_dispatch_counting_service_cb_t as ChooseFn,
    rocprofiler_dispatch_counting_service_data_t as Data,
    rocprofiler_dispatch_counting_service_record_t as HeaderRecord,
    rocprofiler_kernel_dispatch_info_t as Info, rocprofiler_status_t as Status,
    rocprofiler_user_data_t as UserData,
};

use super::{
    config::{self, Config},
    consumer, device,
};
use crate::{
    gpu::observe::Interval,
    sdk::{
        buffer::{self, Buffer},
        context::{self, Callback, Context, DISPATCH_COUNTING, PC_SAMPLING},
        state,
    },
};
use rpd_gfx::perf::Counts;

/// Dispatch counting of one context: choice of counters and destination of values.
pub(crate) struct DispatchService {
    choose: Callback<<ChooseFn as IntoIterator>::Item>,
    deliver: Deliver,
}

/// Dispatch counting services by index of their context.
static SERVICES: [OnceLock<DispatchService>; context::MAX] =
    [const { OnceLock::new() }; context::MAX];

/// Whether a context counts dispatches.
pub(super) fn is_configured(context: &Context) -> bool {
    SERVICES[context.index].get().is_some()
}

/// Destination of values.
enum Deliver {
    Callback(Callback<<RecordFn as IntoIterator>::Item>),
    Buffer(&'static Buffer),
}

/// The config that a tool chose for a dispatch, with the tool's value for the records.
pub(crate) struct ChosenCounters {
    service: &'static DispatchService,
    config: Arc<Config>,
    user: UserData,
}

/// A counted dispatch that ended.
pub(super) struct Finished {
    service: &'static DispatchService,
    config: Arc<Config>,
    user: UserData,
    data: Data,
    counts: Counts,
}

// SAFETY: pointers inside are user data, which are only handed back to the tool.
unsafe impl Send for Finished {}

/// Has the tool choose the counters for a dispatch; called on the enqueuing thread. `agent` is the index of the
/// dispatch's agent.
pub(crate) fn choose(
    context: usize,
    agent: usize,
    correlation_id: AsyncCorrelationId,
    dispatch_info: Info,
) -> Option<ChosenCounters> {
    let service = SERVICES[context].get()?;
    let mut config = ConfigId { handle: 0 };
    let mut user = UserData::from(0);
    let data = data(correlation_id, Interval { start: 0, end: 0 }, dispatch_info);
    // SAFETY: the tool gave the function for this; what it fills outlives the call.
    unsafe { (service.choose.function)(data, &mut config, &mut user, service.choose.data) };
    if config.handle == 0 {
        return None;
    }
    let report = |what: &str| {
        static ONCE: AtomicBool = AtomicBool::new(false);
        if !ONCE.swap(true, Ordering::Relaxed) {
            let (id, handle) = (dispatch_info.dispatch_id, config.handle);
            eprintln!("rpd-sim: dispatch {id} is not counted: {what} {handle}");
        }
    };
    let Some(found) = config::find(config) else {
        report("there is no counter config");
        return None;
    };
    if found.agent != agent {
        report("it runs on another agent than that of counter config");
        return None;
    }
    Some(ChosenCounters {
        service,
        config: found,
        user,
    })
}

fn data(correlation_id: AsyncCorrelationId, time: Interval, dispatch_info: Info) -> Data {
    Data {
        size: size_of::<Data>() as u64,
        correlation_id,
        start_timestamp: time.start,
        end_timestamp: time.end,
        dispatch_info,
    }
}

impl ChosenCounters {
    /// Passes the counts of a dispatch that ended on for delivery; called on the device's signal handler thread.
    pub(crate) fn finish(
        &self,
        correlation_id: AsyncCorrelationId,
        dispatch_info: Info,
        counts: &Counts,
        time: Interval,
    ) {
        consumer::submit(Box::new(Finished {
            service: self.service,
            config: Arc::clone(&self.config),
            user: self.user,
            data: data(correlation_id, time, dispatch_info),
            counts: counts.clone(),
        }));
    }
}

impl Finished {
    /// Computes the values and delivers them.
    pub(super) fn deliver(&self) {
        if state::finalized() == 1 {
            return;
        }
        let info = &self.data.dispatch_info;
        let template = Record {
            dispatch_id: info.dispatch_id,
            agent_id: info.agent_id,
            ..Record::default()
        };
        let mut records = self.config.records(&self.counts, template);
        if records.is_empty() {
            return;
        }
        match &self.service.deliver {
            Deliver::Callback(callback) => {
                // SAFETY: the tool gave the function for this; the array outlives the call.
                unsafe {
                    (callback.function)(
                        self.data,
                        records.as_mut_ptr(),
                        records.len(),
                        self.user,
                        callback.data,
                    );
                }
            }
            Deliver::Buffer(buffer) => {
                // A dispatch's values follow its header.
                static ORDER: Mutex<()> = Mutex::new(());
                let _guard = ORDER.lock().unwrap_or_else(|e| e.into_inner());
                buffer.emit_as(
                    Category::COUNTERS,
                    Kind::PROFILE_COUNTING_DISPATCH_HEADER.0,
                    &HeaderRecord {
                        size: size_of::<HeaderRecord>() as u64,
                        num_records: records.len() as u64,
                        correlation_id: self.data.correlation_id,
                        start_timestamp: self.data.start_timestamp,
                        end_timestamp: self.data.end_timestamp,
                        dispatch_info: *info,
                    },
                );
                for record in &mut records {
                    record.user_data = self.user;
                    buffer.emit_as(Category::COUNTERS, Kind::VALUE.0, record);
                }
            }
        }
    }
}

fn configure(id: ContextId, service: DispatchService) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(context) = context::find(id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    if PC_SAMPLING.has(context) {
        return Status::ERROR_CONTEXT_CONFLICT;
    }
    if device::is_configured(context) {
        return Status::ERROR_AGENT_DISPATCH_CONFLICT;
    }
    if SERVICES[context.index].set(service).is_err() {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    DISPATCH_COUNTING.add(context);
    Status::SUCCESS
}

/// `rocprofiler_configure_callback_dispatch_counting_service`.
///
/// # Safety
/// The callbacks stay callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_callback_dispatch_counting_service(
    context_id: ContextId,
    dispatch_callback: ChooseFn,
    dispatch_callback_args: *mut c_void,
    record_callback: RecordFn,
    record_callback_args: *mut c_void,
) -> Status {
    let (Some(choose), Some(deliver)) = (dispatch_callback, record_callback) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    configure(
        context_id,
        DispatchService {
            choose: Callback {
                function: choose,
                data: dispatch_callback_args,
            },
            deliver: Deliver::Callback(Callback {
                function: deliver,
                data: record_callback_args,
            }),
        },
    )
}

/// `rocprofiler_configure_buffer_dispatch_counting_service`.
///
/// # Safety
/// The callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_buffer_dispatch_counting_service(
    context_id: ContextId,
    buffer_id: BufferId,
    callback: ChooseFn,
    callback_data: *mut c_void,
) -> Status {
    let Some(choose) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let Some(buffer) = buffer::find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    configure(
        context_id,
        DispatchService {
            choose: Callback {
                function: choose,
                data: callback_data,
            },
            deliver: Deliver::Buffer(buffer),
        },
    )
}
