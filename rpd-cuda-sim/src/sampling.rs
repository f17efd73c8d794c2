//! PC sampling: each kernel that runs leaves the same samples, at instructions that depend on the kernel alone.
//!
//! What the latest kernel has left is delivered when sampling ends, as CUPTI keeps a part until then.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

use cupti_sys::pc_sampling::{
    Configuration, Data, GetCubinCrc, GetData, GetReasonCount, GetStallReasons, OfContext, PcData,
    StallReason, attribute,
};
use cupti_sys::result;

use crate::device::Kernel;
use crate::records::layouts;
use crate::switches;

/// Reasons by their numbers: what CUPTI has of an H200, in part.
const REASONS: [&str; 8] = [
    "smsp__pcsamp_sample_count",
    "smsp__pcsamp_samples_data_dropped",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
    "smsp__pcsamp_warps_issue_stalled_selected",
    "smsp__pcsamp_warps_issue_stalled_selected_not_issued",
    "smsp__pcsamp_warps_issue_stalled_wait",
    "smsp__pcsamp_warps_issue_stalled_moon_phase",
];

/// Samples of a launch: offset, number of the reason, samples.
const SAMPLES: [(u64, u32, u32); 6] = [
    (0x10, 2, 5),
    (0x10, 3, 4),
    (0x10, 4, 1),
    (0x20, 6, 2),
    (0x20, 4, 1),
    (0x30, 7, 1),
];

/// The image of the only module: the head of an ELF file for NVIDIA's GPUs.
pub(crate) const IMAGE: [u8; 64] = {
    let mut image = [0; 64];
    let head = [
        0x7f, b'E', b'L', b'F', 2, 1, 1, 0x41, 8, 0, 0, 0, 0, 0, 0, 0, 2, 0, 190, 0,
    ];
    let mut at = 0;
    while at < head.len() {
        image[at] = head[at];
        at += 1;
    }
    image
};

/// Samples by kernel, offset and reason.
type Counts = BTreeMap<(u32, u64), BTreeMap<u32, u32>>;

#[derive(Default)]
struct Sampler {
    /// The context that is sampled; 0 for none.
    context: usize,
    /// Reasons to collect.
    reasons: Vec<u32>,
    /// Where the last samples go.
    last: usize,
    ready: Counts,
    latest: Counts,
}

static SAMPLER: Mutex<Option<Sampler>> = Mutex::new(None);

fn with<T>(act: impl FnOnce(&mut Sampler) -> T) -> T {
    let mut sampler = SAMPLER.lock().unwrap_or_else(PoisonError::into_inner);
    act(sampler.get_or_insert_default())
}

/// A kernel has run.
pub(crate) fn executed(kernel: Kernel) {
    with(|sampler| {
        if sampler.context == 0 {
            return;
        }
        let latest = std::mem::take(&mut sampler.latest);
        for (place, reasons) in latest {
            let sums = sampler.ready.entry(place).or_default();
            for (reason, samples) in reasons {
                *sums.entry(reason).or_default() += samples;
            }
        }
        for (offset, reason, samples) in SAMPLES {
            if sampler.reasons.contains(&reason) {
                let place = (kernel as u32, offset);
                let sums = sampler.latest.entry(place).or_default();
                sums.insert(reason, samples);
            }
        }
    });
}

fn is_sampled(context: *mut c_void) -> bool {
    with(|sampler| sampler.context != 0 && sampler.context == context as usize)
}

/// Moves as many samples as there is room for.
///
/// # Safety
///
/// `data` has the room that it states.
unsafe fn deliver(counts: &mut Counts, data: *mut Data) {
    let stride = PcData::size_in(layouts().version);
    // SAFETY: by the contract of this function.
    unsafe {
        let room = (*data).room;
        let mut count = 0;
        while count < room {
            let Some(((kernel, offset), reasons)) = counts.pop_first() else {
                break;
            };
            let pc = (*data).pcs.byte_add(count * stride);
            (&raw mut (*pc).cubin_crc).write(crc(&IMAGE));
            (&raw mut (*pc).pc_offset).write(offset);
            (&raw mut (*pc).function_index).write(14 + kernel);
            (&raw mut (*pc).function_name).write(Kernel::from_number(kernel).name().as_ptr());
            (&raw mut (*pc).reason_count).write(reasons.len());
            let list = (&raw const (*pc).reasons).read();
            for (place, (index, samples)) in reasons.into_iter().enumerate() {
                list.add(place).write(StallReason { index, samples });
                (*data).total_samples += u64::from(samples);
            }
            count += 1;
        }
        (*data).count = count;
        (*data).remaining = counts.len();
    }
}

/// A checksum of an image.
fn crc(image: &[u8]) -> u64 {
    image.iter().fold(0x811c_9dc5, |sum: u64, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0193) & 0xffff_ffff
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingEnable(arguments: *mut OfContext) -> c_int {
    let status = switches::get().pc_sampling;
    if status != result::SUCCESS {
        return status;
    }
    // SAFETY: the caller's struct.
    with(|sampler| sampler.context = unsafe { (*arguments).context } as usize);
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingDisable(arguments: *mut OfContext) -> c_int {
    // SAFETY: the caller's struct, and the buffer that it has configured.
    unsafe {
        if !is_sampled((*arguments).context) {
            return result::INVALID_OPERATION;
        }
        with(|sampler| {
            let mut rest = std::mem::take(&mut sampler.ready);
            for (place, reasons) in std::mem::take(&mut sampler.latest) {
                let sums = rest.entry(place).or_default();
                for (reason, samples) in reasons {
                    *sums.entry(reason).or_default() += samples;
                }
            }
            if sampler.last != 0 {
                deliver(&mut rest, sampler.last as *mut Data);
            }
            sampler.context = 0;
        });
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingSetConfigurationAttribute(
    arguments: *mut Configuration,
) -> c_int {
    // SAFETY: the caller's struct and attributes.
    unsafe {
        if !is_sampled((*arguments).context) {
            return result::INVALID_OPERATION;
        }
        let attributes = std::slice::from_raw_parts((*arguments).attributes, (*arguments).count);
        for given in attributes {
            let [first, second, _] = given.value;
            match given.kind {
                attribute::PERIOD if (5..=31).contains(&first) => {}
                attribute::COLLECTION_MODE if first == attribute::CONTINUOUS => {}
                attribute::DATA_BUFFER => with(|sampler| sampler.last = first as usize),
                attribute::STALL_REASONS => {
                    let list = std::slice::from_raw_parts(second as *const u32, first as usize);
                    with(|sampler| sampler.reasons = list.to_vec());
                }
                _ => return result::INVALID_PARAMETER,
            }
        }
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingGetData(arguments: *mut GetData) -> c_int {
    // SAFETY: the caller's struct and room.
    unsafe {
        let data = (*arguments).data;
        if !is_sampled((*arguments).context) {
            return result::INVALID_OPERATION;
        }
        if switches::get().pc_buffer_full {
            (*data).is_full = 1;
            return result::OUT_OF_MEMORY;
        }
        (*data).total_samples = 0;
        with(|sampler| deliver(&mut sampler.ready, data));
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingGetNumStallReasons(
    arguments: *mut GetReasonCount,
) -> c_int {
    // SAFETY: the caller's struct, and its place for the number.
    unsafe {
        // Before sampling begins, CUPTI does not know.
        if !is_sampled((*arguments).context) {
            return result::INVALID_OPERATION;
        }
        (*arguments).count.write(REASONS.len());
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiPCSamplingGetStallReasons(
    arguments: *mut GetStallReasons,
) -> c_int {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let names = REASONS.into_iter().map(CString::new);
        names.map(Result::unwrap_or_default).collect()
    });
    // SAFETY: the caller's struct, with room for so many numbers and for names of 128 bytes.
    unsafe {
        let count = (*arguments).count.min(names.len());
        // In no order, as from CUPTI.
        for (place, number) in (0..count).rev().enumerate() {
            (*arguments).indices.add(place).write(number as u32);
            let to: *mut c_char = (*arguments).names.add(place).read();
            let name = names[number].as_bytes_with_nul();
            std::ptr::copy_nonoverlapping(name.as_ptr().cast::<c_char>(), to, name.len());
        }
    }
    result::SUCCESS
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn cuptiGetCubinCrc(arguments: *mut GetCubinCrc) -> c_int {
    // SAFETY: the caller's struct, and an image of that many bytes.
    unsafe {
        let image = (*arguments).image.cast::<u8>();
        let length = (*arguments).length;
        if image.is_null() || length == 0 {
            return result::INVALID_PARAMETER;
        }
        (*arguments).crc = crc(std::slice::from_raw_parts(image, length));
    }
    result::SUCCESS
}
