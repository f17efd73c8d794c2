//! PC sampling: CUPTI samples the program counters of warps and adds the samples up by instruction and reason.
//!
//! Each context is sampled from its creation to its end, in the mode in which kernels run concurrently as without sampling. A
//! thread fetches the sums a few times a second. They have no times: what was sampled during a pause is told from the rest by
//! when it was fetched.

#![expect(
    clippy::disallowed_types,
    reason = "a forked child, which has no CUPTI, never takes the lock"
)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};
use std::time::Duration;

use cupti_sys::callback::{ModuleData, resource};
use cupti_sys::pc_sampling::{
    Attribute, Configuration, Data, GetCubinCrc, GetData, GetReasonCount, GetStallReasons,
    OfContext, PcData, REASON_NAME, StallReason, attribute,
};
use cupti_sys::{Functions, result};
use rpd_spool::format::{FIRST_WARP_REASON, PcCount, PcSampling, WARP_ISSUED, WARP_REASONS};
use rpd_spool::options::{CollectorOptions, SamplingMethod, SamplingUnit};
use rpd_spool::record::RecordKind;

use super::{cupti, devices, kernels};
use crate::recording::background::{InChild, spawn};
use crate::recording::guard::{self, Service};
use crate::recording::text::text;
use crate::recording::{code, meta, samples, switch, thread};

static SERVICE: Service = Service::new("CUDA's PC samples");

/// Interval between two requests for samples.
const INTERVAL: Duration = Duration::from_millis(100);
/// Instructions that are fetched at once.
const PCS: usize = 4096;
/// Instructions that CUPTI can keep for the end of sampling.
const KEPT_PCS: usize = 16384;
/// Requests for one context in a row; each brings at most [`PCS`] instructions.
const REQUESTS: u32 = 64;
/// Shortest and longest distance of two samples, as powers of two.
const PERIODS: std::ops::RangeInclusive<u32> = 5..=31;
/// Steps of a millisecond that a thread of the program waits for its turn at most.
const PATIENCE: u32 = 2000;
/// First number of modules among code objects; devices have those before it.
const FIRST_MODULE: u64 = 1 << 16;

/// Sampling as it was requested.
struct Settings {
    /// Distance of two samples as a power of two, in cycles.
    period: u32,
    cycles: u64,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();
/// Whether a context could not be sampled, which a note says once.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);
/// Whether the hardware's buffer was full, which a note says once.
static IS_FULL: AtomicBool = AtomicBool::new(false);
/// Samples of code that is not the program's.
static OTHERS: AtomicU64 = AtomicU64::new(0);
/// Samples in all, those included.
static TOTAL: AtomicU64 = AtomicU64::new(0);
/// Devices whose sampling is recorded, a bit each.
static CONFIGURED: AtomicU32 = AtomicU32::new(0);

/// Room for samples at instructions.
struct Room {
    /// Counts and the address of the instructions, at an address that does not change: CUPTI knows it.
    data: Box<Data>,
    /// The instructions, which the data point to.
    pcs: Box<[u64]>,
    /// Room for reasons, which the instructions point to.
    _reasons: Box<[StallReason]>,
    /// Distance of two instructions, in words.
    stride: usize,
}

impl Room {
    /// Room for so many instructions with so many reasons each.
    fn new(version: u32, room: usize, reasons: usize) -> Room {
        let stride = PcData::size_in(version) / 8;
        let mut pcs = vec![0_u64; room * stride].into_boxed_slice();
        let mut lists = vec![StallReason::default(); room * reasons].into_boxed_slice();
        for (pc, list) in pcs
            .chunks_exact_mut(stride)
            .zip(lists.chunks_exact_mut(reasons.max(1)))
        {
            let pc = pc.as_mut_ptr().cast::<PcData>();
            // SAFETY: the fields are among those that every version has, for which there is room.
            unsafe {
                (&raw mut (*pc).size).write(stride * 8);
                (&raw mut (*pc).reasons).write(list.as_mut_ptr());
            }
        }
        Room {
            data: Box::new(Data::new(pcs.as_mut_ptr().cast::<PcData>(), room)),
            pcs,
            _reasons: lists,
            stride,
        }
    }

    /// The instructions that were fetched.
    fn fetched(&self) -> impl Iterator<Item = FetchedPc<'_>> {
        let count = self.data.count.min(self.data.room);
        self.pcs.chunks_exact(self.stride).take(count).map(|pc| {
            let pc = pc.as_ptr().cast::<PcData>();
            // SAFETY: the fields are among those that every version has, and CUPTI has filled them. Each list has room for all
            // reasons that are collected.
            unsafe {
                let reasons = (&raw const (*pc).reasons).read();
                let count = (&raw const (*pc).reason_count).read();
                FetchedPc {
                    crc: (&raw const (*pc).cubin_crc).read(),
                    offset: (&raw const (*pc).pc_offset).read(),
                    function: (&raw const (*pc).function_index).read(),
                    name: (&raw const (*pc).function_name).read(),
                    reasons: if reasons.is_null() {
                        &[]
                    } else {
                        std::slice::from_raw_parts(reasons, count)
                    },
                }
            }
        })
    }
}

/// Samples at an instruction.
struct FetchedPc<'a> {
    crc: u64,
    offset: u64,
    function: u32,
    name: *const c_char,
    reasons: &'a [StallReason],
}

/// A context that is sampled.
struct Sampled {
    context: usize,
    device: u32,
    fetched: Room,
    /// What CUPTI writes when sampling ends.
    last: Room,
    /// State for records, by CUPTI's number of the reason.
    reasons: HashMap<u32, u32>,
}

// SAFETY: the pointers in it are to its own memory, and to names that stay where they are.
unsafe impl Send for Sampled {}

/// What is known of modules and their functions.
#[derive(Default)]
struct Modules {
    /// Code objects by device and checksum.
    objects: HashMap<(u32, u64), u64>,
    /// Numbers of functions as kernel symbols, by code object and number in the module.
    functions: HashMap<(u64, u32), u64>,
}

#[derive(Default)]
struct State {
    contexts: Vec<Sampled>,
    modules: Modules,
}

/// The state. In a forked child nothing uses it: [`cupti::functions`] has none there.
static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Waits for the state as long as a thread of the program may. `None` when another thread is in a long call of CUPTI's.
fn state() -> Option<MutexGuard<'static, Option<State>>> {
    for _ in 0..PATIENCE {
        match STATE.try_lock() {
            Ok(state) => return Some(state),
            Err(TryLockError::Poisoned(state)) => return Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

/// Decides whether contexts are sampled. The ids of callbacks of resources that are to be enabled for it.
pub(super) fn prepare(options: &CollectorOptions) -> &'static [u32] {
    let Some(wanted) = options.sampling else {
        return &[];
    };
    let fits = wanted.method == SamplingMethod::Stochastic
        && wanted.unit == SamplingUnit::Cycles
        && wanted.interval.is_power_of_two()
        && PERIODS.contains(&wanted.interval.ilog2());
    if !fits {
        meta::note(
            "CUDA: program counters are not sampled: NVIDIA GPUs have --pc-sampling-method stochastic with --pc-sampling-unit \
             cycles and an interval that is a power of two from 32 to 2147483648",
        );
        return &[];
    }
    SETTINGS.get_or_init(|| Settings {
        period: wanted.interval.ilog2(),
        cycles: wanted.interval,
    });
    let started = spawn(
        "rpd-pc-samples",
        InChild::Nothing("a forked child never calls CUPTI, and nothing waits for the thread"),
        || {
            SERVICE.run(run);
        },
    );
    if !started {
        meta::note(
            "CUDA: PC samples are lost if the program is killed: the target cannot have another thread",
        );
    }
    &[
        resource::CONTEXT_CREATED,
        resource::CONTEXT_DESTROY_STARTING,
        resource::MODULE_LOADED,
    ]
}

fn run() {
    while !guard::is_finalized() {
        std::thread::sleep(INTERVAL);
        if !guard::is_finalized() {
            fetch(switch::is_on());
        }
    }
}

/// Fetches the samples of all contexts. `wanted`: they are recorded.
pub(super) fn fetch(wanted: bool) {
    let Some(functions) = cupti::functions().filter(|_| SETTINGS.get().is_some()) else {
        return;
    };
    let Some(mut state) = state() else { return };
    let State { contexts, modules } = state.get_or_insert_default();
    for sampled in contexts {
        fetch_of(functions, sampled, modules, wanted);
    }
}

fn fetch_of(functions: &Functions, sampled: &mut Sampled, modules: &mut Modules, wanted: bool) {
    let Some(get) = functions.pc_sampling_get_data else {
        return;
    };
    for _ in 0..REQUESTS {
        sampled.fetched.data.count = 0;
        sampled.fetched.data.remaining = 0;
        let mut arguments = GetData::new(
            sampled.context as *mut c_void,
            &raw mut *sampled.fetched.data,
        );
        // SAFETY: the context is sampled, and the data have the room that they state.
        let status = unsafe { get(&raw mut arguments) };
        if status == result::OUT_OF_MEMORY || sampled.fetched.data.is_full != 0 {
            note_full();
        }
        if status != result::SUCCESS {
            return;
        }
        record(sampled, modules, false, wanted);
        if sampled.fetched.data.remaining == 0 || sampled.fetched.data.count == 0 {
            return;
        }
    }
}

fn note_full() {
    if !IS_FULL.swap(true, Ordering::Relaxed) {
        meta::note(
            "CUDA: PC samples are missing: the GPU's buffer was full; a longer --pc-sampling-interval takes fewer",
        );
    }
}

/// Records what was fetched, or what is left at the end of sampling.
fn record(sampled: &mut Sampled, modules: &mut Modules, last: bool, wanted: bool) {
    let device = sampled.device;
    let room = if last {
        &sampled.last
    } else {
        &sampled.fetched
    };
    if !wanted {
        return;
    }
    OTHERS.fetch_add(room.data.other_samples, Ordering::Relaxed);
    TOTAL.fetch_add(room.data.total_samples, Ordering::Relaxed);
    samples::left_out(0, room.data.dropped_samples, 0);
    for pc in room.fetched() {
        let object = modules.object(device, pc.crc);
        // SAFETY: text of CUPTI's, which stays where it is.
        let function = modules.function(object, pc.function, unsafe { text(pc.name) });
        for reason in pc.reasons.iter().filter(|reason| reason.samples > 0) {
            let Some(issue) = sampled.reasons.get(&reason.index) else {
                continue;
            };
            thread::write(&PcCount {
                header: RecordKind::PcCount.head(0),
                code_object: object,
                offset: u64::from(pc.function) << 32 | pc.offset & u64::from(u32::MAX),
                function,
                samples: reason.samples.into(),
                issue: *issue,
                reserved: 0,
            });
        }
    }
}

impl Modules {
    /// The code object of a module; one without bytes for a module that was loaded before it could be observed.
    fn object(&mut self, device: u32, crc: u64) -> u64 {
        let next = FIRST_MODULE + self.objects.len() as u64;
        *self.objects.entry((device, crc)).or_insert_with(|| {
            let uri = format!("cuda://device/{device}/module/{crc:x}");
            kernels::write_code(next, device, &uri);
            next
        })
    }

    fn function(&mut self, object: u64, number: u32, name: &[u8]) -> u64 {
        *self
            .functions
            .entry((object, number))
            .or_insert_with(|| kernels::of_module(object, name))
    }
}

/// A context or module was made, or a context is about to be destroyed.
///
/// # Safety
///
/// `context` is CUPTI's, and `module` what it says about a module.
pub(super) unsafe fn on_resource(id: u32, context: *mut c_void, module: Option<&ModuleData>) {
    let (Some(functions), Some(settings)) = (cupti::functions(), SETTINGS.get()) else {
        return;
    };
    match id {
        resource::CONTEXT_CREATED => begin(functions, settings, context),
        resource::CONTEXT_DESTROY_STARTING => end_of(functions, context),
        resource::MODULE_LOADED => {
            if let Some(module) = module {
                // SAFETY: the image is valid during the callback.
                unsafe { loaded(functions, context, module) };
            }
        }
        _ => {}
    }
}

fn device_of(functions: &Functions, context: *mut c_void) -> u32 {
    let mut device = 0;
    if let Some(get) = functions.get_device_id {
        // SAFETY: a context of the program's; the number is written.
        unsafe { get(context, &raw mut device) };
    }
    device
}

/// Records the bytes of a module.
///
/// # Safety
///
/// The image is valid.
unsafe fn loaded(functions: &Functions, context: *mut c_void, module: &ModuleData) {
    let Some(get) = functions.get_cubin_crc else {
        return;
    };
    if module.image.is_null() || module.length == 0 {
        return;
    }
    let mut arguments = GetCubinCrc::new(module.image, module.length);
    // SAFETY: the image has that many bytes.
    if unsafe { get(&raw mut arguments) } != result::SUCCESS {
        return;
    }
    let device = device_of(functions, context);
    let object = {
        let Some(mut state) = state() else { return };
        let modules = &mut state.get_or_insert_default().modules;
        modules.object(device, arguments.crc)
    };
    // SAFETY: as above.
    let bytes = unsafe { std::slice::from_raw_parts(module.image.cast::<u8>(), module.length) };
    code::loaded(object, bytes);
}

/// Begins to sample a context.
fn begin(functions: &Functions, settings: &Settings, context: *mut c_void) {
    let device = device_of(functions, context);
    match enable(functions, settings, context, device) {
        Ok(sampled) => {
            if CONFIGURED.fetch_or(1 << device.min(31), Ordering::Relaxed) >> device.min(31) & 1
                == 0
            {
                samples::configured(&PcSampling {
                    header: RecordKind::PcSampling.head(0),
                    agent: devices::handle(device),
                    method: SamplingMethod::Stochastic.number(),
                    unit: SamplingUnit::Cycles.number(),
                    interval: settings.cycles,
                });
            }
            if let Some(mut state) = state() {
                state.get_or_insert_default().contexts.push(sampled);
            }
        }
        Err(why) => {
            if !IS_REFUSED.swap(true, Ordering::Relaxed) {
                meta::note(&format!(
                    "CUDA: program counters of device {device} are not sampled: {why}"
                ));
            }
        }
    }
}

/// Has CUPTI sample a context.
///
/// # Errors
/// Why it is not sampled, as text for the user.
fn enable(
    functions: &Functions,
    settings: &Settings,
    context: *mut c_void,
    device: u32,
) -> Result<Sampled, String> {
    let (Some(enable), Some(configure), Some(disable), Some(_)) = (
        functions.pc_sampling_enable,
        functions.pc_sampling_configure,
        functions.pc_sampling_disable,
        functions.pc_sampling_get_data,
    ) else {
        return Err("this CUPTI has no PC sampling".to_owned());
    };
    let check = |function: &str, status: c_int| match status {
        result::SUCCESS => Ok(()),
        status => Err(cupti::refusal(functions, function, status)),
    };
    let mut of_context = OfContext::new(context);
    // SAFETY: a context that was just made.
    let status = unsafe { enable(&raw mut of_context) };
    check("cuptiPCSamplingEnable", status)?;
    let configured = stall_reasons(functions, context).and_then(|(reasons, unknown)| {
        if !unknown.is_empty() {
            meta::note(&format!(
                "CUDA: reasons that this rpd does not know are recorded as {}: {}",
                WARP_REASONS[WARP_REASONS.len() - 1],
                unknown.join(", ")
            ));
        }
        let collected: Vec<u32> = reasons.keys().copied().collect();
        let version = cupti::version();
        let mut last = Room::new(version, KEPT_PCS, collected.len());
        let mut attributes = [
            Attribute::number(attribute::PERIOD, settings.period.into()),
            Attribute::number(attribute::COLLECTION_MODE, attribute::CONTINUOUS),
            Attribute::number(attribute::DATA_BUFFER, (&raw mut *last.data) as u64),
            Attribute::list(attribute::STALL_REASONS, &collected),
        ];
        let mut configuration = Configuration::new(context, &mut attributes);
        // SAFETY: the context is sampled; the buffer lives until sampling ends, and the list during the call.
        let status = unsafe { configure(&raw mut configuration) };
        check("cuptiPCSamplingSetConfigurationAttribute", status)?;
        Ok(Sampled {
            context: context as usize,
            device,
            fetched: Room::new(version, PCS, collected.len()),
            last,
            reasons,
        })
    });
    if configured.is_err() {
        // SAFETY: as above.
        unsafe { disable(&raw mut of_context) };
    }
    configured
}

/// States for records by CUPTI's numbers of the reasons to collect, and the names of reasons that have none.
///
/// # Errors
/// Why CUPTI does not tell them, as text for the user.
fn stall_reasons(
    functions: &Functions,
    context: *mut c_void,
) -> Result<(HashMap<u32, u32>, Vec<String>), String> {
    let (Some(count_of), Some(names_of)) = (
        functions.pc_sampling_reason_count,
        functions.pc_sampling_reasons,
    ) else {
        return Err("this CUPTI does not tell why warps wait".to_owned());
    };
    let mut count = 0;
    let mut arguments = GetReasonCount::new(context, &raw mut count);
    // SAFETY: the context is sampled; the number is written.
    let status = unsafe { count_of(&raw mut arguments) };
    if status != result::SUCCESS {
        return Err(cupti::refusal(
            functions,
            "cuptiPCSamplingGetNumStallReasons",
            status,
        ));
    }
    let mut texts = vec![[0 as c_char; REASON_NAME]; count];
    let mut names: Vec<*mut c_char> = texts.iter_mut().map(|text| text.as_mut_ptr()).collect();
    let mut indices = vec![0; count];
    let mut arguments = GetStallReasons::new(context, &mut indices, &mut names);
    // SAFETY: there is room for so many indices and names.
    let status = unsafe { names_of(&raw mut arguments) };
    if status != result::SUCCESS {
        return Err(cupti::refusal(
            functions,
            "cuptiPCSamplingGetStallReasons",
            status,
        ));
    }
    let mut reasons = HashMap::new();
    let mut unknown = Vec::new();
    for (index, name) in indices.into_iter().zip(&mut texts) {
        if let Some(last) = name.last_mut() {
            *last = 0;
        }
        // SAFETY: the text ends with a zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy();
        match state_of(&name) {
            Reason::Other => {}
            Reason::Known(issue) => {
                reasons.insert(index, issue);
            }
            Reason::Unknown(reason) => {
                unknown.push(reason.to_owned());
                let last = WARP_REASONS.len() as u32 - 1;
                reasons.insert(index, FIRST_WARP_REASON + last);
            }
        }
    }
    Ok((reasons, unknown))
}

/// What a name of CUPTI's stands for.
#[derive(Debug, PartialEq, Eq)]
enum Reason<'a> {
    /// The state in records.
    Known(u32),
    /// A reason that has no state, by its name.
    Unknown(&'a str),
    /// No reason, or a part of another one.
    Other,
}

/// What a name of CUPTI's stands for, such as `smsp__pcsamp_warps_issue_stalled_long_scoreboard`. Those that end with
/// `_not_issued` count samples of the same reason in which no other warp issued either: they would count twice.
fn state_of(name: &str) -> Reason<'_> {
    let Some((_, reason)) = name.split_once("_stalled_") else {
        return Reason::Other;
    };
    if reason.ends_with("_not_issued") {
        return Reason::Other;
    }
    if reason == "selected" {
        return Reason::Known(WARP_ISSUED);
    }
    let mut known = (FIRST_WARP_REASON..).zip(WARP_REASONS);
    match known.find(|(_, known)| known.eq_ignore_ascii_case(reason)) {
        Some((issue, _)) => Reason::Known(issue),
        None => Reason::Unknown(reason),
    }
}

/// Ends the sampling of a context that is about to be destroyed.
fn end_of(functions: &Functions, context: *mut c_void) {
    let Some(mut state) = state() else { return };
    let State { contexts, modules } = state.get_or_insert_default();
    let found = contexts
        .iter()
        .position(|sampled| sampled.context == context as usize);
    if let Some(found) = found {
        finish(functions, contexts.swap_remove(found), modules);
    }
}

/// Fetches the last samples of a context, and ends its sampling.
fn finish(functions: &Functions, mut sampled: Sampled, modules: &mut Modules) {
    let wanted = switch::is_on();
    fetch_of(functions, &mut sampled, modules, wanted);
    let Some(disable) = functions.pc_sampling_disable else {
        return;
    };
    let mut arguments = OfContext::new(sampled.context as *mut c_void);
    // SAFETY: the context is sampled, and the buffer that it was configured with is there.
    let status = unsafe { disable(&raw mut arguments) };
    if status == result::SUCCESS {
        if sampled.last.data.is_full != 0 {
            note_full();
        }
        record(&mut sampled, modules, true, wanted);
    } else {
        // CUPTI may still write to the buffer.
        std::mem::forget(sampled);
    }
}

/// Ends sampling: recording is about to end.
pub(super) fn end() {
    let Some(functions) = cupti::functions().filter(|_| SETTINGS.get().is_some()) else {
        return;
    };
    let Some(mut state) = state() else { return };
    let State { contexts, modules } = state.get_or_insert_default();
    for sampled in std::mem::take(contexts) {
        finish(functions, sampled, modules);
    }
    // Every program has a few of them.
    let (others, all) = (
        OTHERS.load(Ordering::Relaxed),
        TOTAL.load(Ordering::Relaxed),
    );
    if others > all / 20 {
        meta::note(&format!(
            "CUDA: {others} of {all} PC samples are of kernels that are not the program's (such as copies of the driver): CUPTI does not \
             say where they are"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_stall_reasons_have_states() {
        let state = |name: &'static str| state_of(name);
        assert_eq!(
            state("smsp__pcsamp_warps_issue_stalled_selected"),
            Reason::Known(WARP_ISSUED)
        );
        assert_eq!(
            state("smsp__pcsamp_warps_issue_stalled_barrier"),
            Reason::Known(FIRST_WARP_REASON)
        );
        assert_eq!(
            state("smsp__pcsamp_warps_issue_stalled_moon_phase"),
            Reason::Unknown("moon_phase")
        );
        for other in [
            "smsp__pcsamp_sample_count",
            "smsp__pcsamp_warps_issue_stalled_barrier_not_issued",
        ] {
            assert_eq!(state(other), Reason::Other);
        }
    }

    #[test]
    fn room_has_instructions_at_the_distance_of_the_version() {
        for (version, stride) in [(18, 7), (22, 8), (130_001, 8)] {
            let room = Room::new(version, 10, 3);
            assert_eq!((room.stride, room.pcs.len()), (stride, 10 * stride));
            assert_eq!(room.pcs[stride], stride as u64 * 8);
            assert_eq!(room.fetched().count(), 0);
        }
    }
}
