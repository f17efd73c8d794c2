//! PC sampling: program counters of waves, taken periodically.
//!
//! All GPUs that have the configuration are sampled on the client context, so that pauses, regions and periods stop it, into
//! one buffer with its own thread. The buffer's callback writes the samples into the spool at once. A thread of the
//! collector flushes the buffer periodically: the provider keeps what it has taken until there are many, and a target that is
//! killed loses what was not delivered.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_id_t, rocprofiler_buffer_category_t, rocprofiler_buffer_id_t,
    rocprofiler_buffer_policy_t, rocprofiler_callback_thread_t, rocprofiler_context_id_t,
    rocprofiler_pc_sampling_configuration_t, rocprofiler_pc_sampling_method_t,
    rocprofiler_pc_sampling_record_host_trap_v0_t, rocprofiler_pc_sampling_record_kind_t,
    rocprofiler_pc_sampling_record_stochastic_v0_t, rocprofiler_pc_sampling_unit_t,
    rocprofiler_record_header_t, rocprofiler_status_t,
};
use rpd_spool::format::{PcSample, PcSampling, sample_flag};
use rpd_spool::options::SamplingOptions;
use rpd_spool::record::RecordKind;

use super::provider::describe;
use super::query::visit2;
use super::setup::Setup;
use super::stream::unpack;
use super::{agents, forked_end};
use crate::recording::background::{InChild, spawn};
use crate::recording::guard::{self, Service};
use crate::recording::{meta, samples};

static SAMPLES: Service = Service::new("PC samples");
static FLUSHES: Service = Service::new("flushes of PC samples");

/// Bytes of the buffer, and of its content at which it is delivered: as the original's tool has them.
const BUFFER: usize = 16 * 4096;
const WATERMARK: usize = 15 * 4096;

/// Interval between two flushes: a target that is killed loses the samples of that time at most.
const FLUSH_INTERVAL: Duration = Duration::from_millis(250);

/// Longest wait for a flush that is under way when recording ends.
const LONGEST_FLUSH: Duration = Duration::from_secs(5);

/// The SDK's buffer for samples. Set when sampling has been configured for a GPU.
struct Sampled {
    functions: &'static Functions,
    buffer: rocprofiler_buffer_id_t,
}

static SAMPLED: OnceLock<Sampled> = OnceLock::new();

/// States of the flushing thread.
mod state {
    pub(super) const IDLE: u32 = 0;
    pub(super) const FLUSHING: u32 = 1;
    pub(super) const ENDED: u32 = 2;
}

static STATE: AtomicU32 = AtomicU32::new(state::IDLE);

/// Subject of notes about failures.
const PURPOSE: &str = "PC sampling";

/// Samples every GPU that has the configuration requested. To be called before the client context is started.
pub(super) fn configure(setup: &Setup<'_>) {
    let Some(options) = setup.options.sampling else {
        return;
    };
    let functions = setup.functions;
    let (Some(query), Some(service)) = (
        functions.rocprofiler_query_pc_sampling_agent_configurations,
        functions.rocprofiler_configure_pc_sampling_service,
    ) else {
        meta::note("program counters are not sampled: this provider does not have PC sampling");
        return;
    };
    let mut buffer = None;
    let mut refusals = Vec::new();
    let mut sampled = 0;
    for (number, &agent) in agents::gpus().iter().enumerate() {
        let id = rocprofiler_agent_id_t { handle: agent };
        let mut fits = false;
        // SAFETY: callback and data belong together.
        let status = visit2(
            |list: *const rocprofiler_pc_sampling_configuration_t, count: usize| {
                if !list.is_null() {
                    // SAFETY: the provider's array during this call.
                    let list = unsafe { std::slice::from_raw_parts(list, count) };
                    fits = list.iter().any(|offered| has(offered, &options));
                }
            },
            |visit, data| unsafe { query(id, visit, data) },
        );
        if status != rocprofiler_status_t::SUCCESS {
            refusals.push((number, describe(functions, status)));
            continue;
        }
        if !fits {
            // If no GPU has it, the front end has reported that.
            continue;
        }
        let Some(buffer) = *buffer.get_or_insert_with(|| make_buffer(setup)) else {
            return;
        };
        // SAFETY: context, buffer and agent are the provider's.
        let status = unsafe {
            service(
                setup.client,
                id,
                rocprofiler_pc_sampling_method_t(options.method.number()),
                rocprofiler_pc_sampling_unit_t(options.unit.number()),
                options.interval,
                buffer,
                0,
            )
        };
        if status != rocprofiler_status_t::SUCCESS {
            refusals.push((number, describe(functions, status)));
            continue;
        }
        sampled += 1;
        samples::configured(&PcSampling {
            header: RecordKind::PcSampling.head(0),
            agent,
            method: options.method.number(),
            unit: options.unit.number(),
            interval: options.interval,
        });
    }
    for (gpu, says) in refusals {
        meta::note(&format!(
            "program counters of GPU {gpu} are not sampled: the provider reports: {says}"
        ));
    }
    if let Some(Some(buffer)) = buffer
        && sampled > 0
    {
        SAMPLED.get_or_init(|| Sampled { functions, buffer });
        // The buffer has a thread of the provider's, which a forked child lacks.
        forked_end::prepare();
        let flushing = spawn(
            "rpd-pc-samples",
            InChild::Nothing("a child has no buffer to flush, and [`end`] does not wait in it"),
            || {
                FLUSHES.run(flush_periodically);
            },
        );
        if !flushing {
            meta::note(
                "PC samples are delivered late: the target cannot have another thread, and what is not delivered when it is killed is lost",
            );
        }
    }
}

/// Whether a configuration that the provider offers is the requested one.
fn has(offered: &rocprofiler_pc_sampling_configuration_t, wanted: &SamplingOptions) -> bool {
    offered.method.0 == wanted.method.number()
        && offered.unit.0 == wanted.unit.number()
        && (offered.min_interval as u64..=offered.max_interval as u64).contains(&wanted.interval)
}

/// Makes a buffer on the client context, with its own thread where the provider has them.
fn make_buffer(setup: &Setup<'_>) -> Option<rocprofiler_buffer_id_t> {
    let functions = setup.functions;
    let mut buffer = rocprofiler_buffer_id_t::default();
    // SAFETY: a context of this provider, a callback that stays loaded, and a place for the result.
    let status = unsafe {
        (functions.rocprofiler_create_buffer)(
            setup.client,
            BUFFER,
            WATERMARK,
            rocprofiler_buffer_policy_t::LOSSLESS,
            Some(on_samples),
            std::ptr::null_mut(),
            &mut buffer,
        )
    };
    if !setup.succeeded(status, PURPOSE) {
        return None;
    }
    if let (Some(create), Some(assign)) = (
        functions.rocprofiler_create_callback_thread,
        functions.rocprofiler_assign_callback_thread,
    ) {
        let mut thread = rocprofiler_callback_thread_t::default();
        // SAFETY: a place for the result, then two things of this provider. Without its own thread the buffer shares
        // the provider's.
        unsafe {
            if create(&mut thread) == rocprofiler_status_t::SUCCESS {
                assign(buffer, thread);
            }
        }
    }
    Some(buffer)
}

/// The body of the flushing thread.
fn flush_periodically() {
    loop {
        std::thread::sleep(FLUSH_INTERVAL);
        if guard::is_finalized() || !flush_unless_ended() {
            return;
        }
    }
}

/// Has the provider deliver the samples so far, for a request of `rpd control`.
pub(super) fn flush_on_request() {
    if is_on() && !guard::is_finalized() {
        flush_unless_ended();
    }
}

/// Has the provider deliver what it has taken, unless another thread is at it. False when sampling has ended.
fn flush_unless_ended() -> bool {
    let change = |from, to| STATE.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
    match change(state::IDLE, state::FLUSHING) {
        Ok(_) => {
            flush();
            // `end` gives up waiting after a while and sets the state itself.
            change(state::FLUSHING, state::IDLE).is_ok()
        }
        Err(now) => now != state::ENDED,
    }
}

/// Makes the provider deliver the samples that it has taken.
fn flush() {
    if let Some(sampled) = SAMPLED.get() {
        // SAFETY: a buffer of this provider. For a buffer that is being delivered the result is "busy": its content is delivered as well.
        unsafe { (sampled.functions.rocprofiler_flush_buffer)(sampled.buffer) };
    }
}

/// Whether the provider may hold samples that it has not delivered.
pub(super) fn is_on() -> bool {
    SAMPLED.get().is_some()
        && STATE.load(Ordering::Relaxed) != state::ENDED
        && !forked_end::applies()
}

/// Makes the provider deliver the last samples: recording is about to end. No flush begins after this.
pub(super) fn end() {
    // A forked child has neither of the threads.
    if SAMPLED.get().is_none() || forked_end::applies() {
        return;
    }
    // The thread that flushes changes the state back only if it is as that left it, so it is waited for by its own word.
    let until = std::time::Instant::now() + LONGEST_FLUSH;
    loop {
        match STATE.compare_exchange(
            state::IDLE,
            state::ENDED,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => break,
            Err(state::ENDED) => return,
            Err(_) if std::time::Instant::now() > until => {
                STATE.store(state::ENDED, Ordering::Release);
                return;
            }
            Err(_) => std::thread::sleep(Duration::from_micros(200)),
        }
    }
    flush();
}

unsafe extern "C" fn on_samples(
    _context: rocprofiler_context_id_t,
    _buffer: rocprofiler_buffer_id_t,
    headers: *mut *mut rocprofiler_record_header_t,
    count: usize,
    _data: *mut c_void,
    dropped: u64,
) {
    SAMPLES.on_event(|| {
        let (mut invalid, mut unknown) = (0, 0);
        if !headers.is_null() {
            // SAFETY: the provider's array during this call.
            let headers = unsafe { std::slice::from_raw_parts(headers, count) };
            for &header in headers {
                // SAFETY: null, or a header that is valid during this call.
                let Some(header) = (unsafe { header.as_ref() }) else {
                    continue;
                };
                // SAFETY: as above.
                match unsafe { take(header) } {
                    RecordResult::Recorded => {}
                    RecordResult::Invalid => invalid += 1,
                    RecordResult::Unknown => unknown += 1,
                }
            }
        }
        samples::left_out(invalid, dropped, unknown);
    });
}

/// Makes a sample from the fields that both kinds of records have; the other fields are 0.
macro_rules! sample_of {
    ($from:expr) => {{
        let from = $from;
        PcSample {
            header: RecordKind::PcSample.head(0),
            time: from.timestamp,
            code_object: from.pc.code_object_id,
            offset: from.pc.code_object_offset,
            exec: from.exec_mask,
            dispatch: from.dispatch_id,
            correlation: from.correlation_id.internal,
            hardware: from.hw_id.bits,
            workgroup: [
                from.workgroup_id.x,
                from.workgroup_id.y,
                from.workgroup_id.z,
            ],
            region: unpack(from.correlation_id.external.as_u64()).0,
            wave: from.wave_in_group,
            flags: 0,
            class: 0,
            reserved: 0,
            waves: 0,
            snapshot: 0,
            memory: 0,
        }
    }};
}

/// Result of taking a record.
enum RecordResult {
    Recorded,
    /// The provider calls the sample unusable.
    Invalid,
    /// The record is of another service, or shorter than this build's structs.
    Unknown,
}

/// # Safety
///
/// The payload is one of the provider's, of the kind that the header says.
unsafe fn take(header: &rocprofiler_record_header_t) -> RecordResult {
    type Kind = rocprofiler_pc_sampling_record_kind_t;
    type HostTrap = rocprofiler_pc_sampling_record_host_trap_v0_t;
    type Stochastic = rocprofiler_pc_sampling_record_stochastic_v0_t;
    if header.category != rocprofiler_buffer_category_t::PC_SAMPLING.0 || header.payload.is_null() {
        return RecordResult::Unknown;
    }
    // SAFETY: every sampling record begins with its size.
    let size = unsafe { header.payload.cast::<u64>().read_unaligned() } as usize;
    let sample = match rocprofiler_pc_sampling_record_kind_t(header.kind) {
        Kind::INVALID_SAMPLE => return RecordResult::Invalid,
        Kind::HOST_TRAP_V0_SAMPLE if size >= size_of::<HostTrap>() => {
            // SAFETY: kind and size say so.
            sample_of!(unsafe { header.payload.cast::<HostTrap>().read_unaligned() })
        }
        Kind::STOCHASTIC_V0_SAMPLE if size >= size_of::<Stochastic>() => {
            // SAFETY: kind and size say so.
            of_stochastic(&unsafe { header.payload.cast::<Stochastic>().read_unaligned() })
        }
        _ => return RecordResult::Unknown,
    };
    samples::sample(&sample);
    RecordResult::Recorded
}

fn of_stochastic(from: &rocprofiler_pc_sampling_record_stochastic_v0_t) -> PcSample {
    let mut flags = sample_flag::STOCHASTIC;
    if from.wave_issued() != 0 {
        flags |= sample_flag::ISSUED;
    }
    if from.flags.has_memory_counter() != 0 {
        flags |= sample_flag::MEMORY;
    }
    PcSample {
        flags,
        class: from.inst_type(),
        waves: from.wave_count,
        snapshot: from.snapshot.bits,
        memory: from.memory_counters.bits,
        ..sample_of!(from)
    }
}
