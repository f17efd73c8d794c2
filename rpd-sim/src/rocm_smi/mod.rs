//! The library for system management (ROCm SMI 7), for the simulated GPUs.
//!
//! It reports what a simulated GPU has: identity, memory, clocks, links, firmware of the engines. What it has not (temperatures, power, fans,
//! error counters, settings) is not supported, which is the real library's answer on hardware that lacks something. All GPUs are there:
//! the variables that choose GPUs for HIP or HSA have no effect.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub, non_snake_case)]

mod refused;

use core::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::gpu::agents::{self, Agent};
use crate::gpu::machine::machine;
use rpd_gfx::device::Link;

/// Declares the statuses with their names and texts.
macro_rules! statuses {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Values of `rsmi_status_t`.
        #[allow(dead_code)]
        pub(crate) mod status {
            $(pub(crate) const $name: u32 = $number;)*
        }

        fn text_of(status: u32) -> Option<&'static CStr> {
            match status {
                $($number => Some($text),)*
                _ => None,
            }
        }
    };
}

statuses! {
    SUCCESS = 0, c"RSMI_STATUS_SUCCESS: The call succeeded.";
    INVALID_ARGS = 1, c"RSMI_STATUS_INVALID_ARGS: An argument is not valid.";
    NOT_SUPPORTED = 2, c"RSMI_STATUS_NOT_SUPPORTED: The device does not support this.";
    FILE_ERROR = 3, c"RSMI_STATUS_FILE_ERROR: A file could not be accessed.";
    PERMISSION = 4, c"RSMI_STATUS_PERMISSION: Permission was denied.";
    OUT_OF_RESOURCES = 5, c"RSMI_STATUS_OUT_OF_RESOURCES: Memory or another resource is exhausted.";
    INTERNAL_EXCEPTION = 6, c"RSMI_STATUS_INTERNAL_EXCEPTION: The library failed.";
    INPUT_OUT_OF_BOUNDS = 7, c"RSMI_STATUS_INPUT_OUT_OF_BOUNDS: An argument is out of its range.";
    INIT_ERROR = 8, c"RSMI_STATUS_INIT_ERROR: The library is not initialized.";
    NOT_YET_IMPLEMENTED = 9, c"RSMI_STATUS_NOT_YET_IMPLEMENTED: The function is not implemented.";
    NOT_FOUND = 10, c"RSMI_STATUS_NOT_FOUND: The requested item was not found.";
    INSUFFICIENT_SIZE = 11, c"RSMI_STATUS_INSUFFICIENT_SIZE: The place for the result is too small.";
    INTERRUPT = 12, c"RSMI_STATUS_INTERRUPT: The call was interrupted.";
    UNEXPECTED_SIZE = 13, c"RSMI_STATUS_UNEXPECTED_SIZE: There is more or less data than expected.";
    NO_DATA = 14, c"RSMI_STATUS_NO_DATA: There is no data.";
    UNEXPECTED_DATA = 15, c"RSMI_STATUS_UNEXPECTED_DATA: The data is not as expected.";
    BUSY = 16, c"RSMI_STATUS_BUSY: A resource is busy.";
    REFCOUNT_OVERFLOW = 17, c"RSMI_STATUS_REFCOUNT_OVERFLOW: The library was initialized too often.";
    SETTING_UNAVAILABLE = 18, c"RSMI_STATUS_SETTING_UNAVAILABLE: The setting is not available.";
    AMDGPU_RESTART_ERR = 19, c"RSMI_STATUS_AMDGPU_RESTART_ERR: The driver could not be restarted.";
    UNKNOWN_ERROR = 0xffff_ffff, c"RSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.";
}

type Outcome = Result<(), u32>;

/// Number of initialisations without a shutdown.
static USERS: AtomicU32 = AtomicU32::new(0);

fn answer(outcome: Outcome) -> u32 {
    outcome.err().unwrap_or(status::SUCCESS)
}

/// A GPU by its index; the library must have been initialized.
fn gpu(index: u32) -> Result<&'static Agent, u32> {
    if USERS.load(Ordering::Acquire) == 0 {
        return Err(status::INIT_ERROR);
    }
    agents::gpus()
        .get(index as usize)
        .ok_or(status::INVALID_ARGS)
}

/// Writes a result to a place of the caller's; fails with `INVALID_ARGS` if the place is null.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(status::INVALID_ARGS);
    }
    // SAFETY: by contract.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Writes a text with its terminating zero, as far as there is room.
///
/// # Safety
/// `place` is null or has `len` bytes.
pub(crate) unsafe fn put_text(place: *mut c_char, len: usize, text: &str) -> Outcome {
    if place.is_null() || len == 0 {
        return Err(status::INVALID_ARGS);
    }
    let kept = text.len().min(len - 1);
    // SAFETY: by contract.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), place.cast(), kept);
        place.add(kept).write(0);
    }
    if kept < text.len() {
        return Err(status::INSUFFICIENT_SIZE);
    }
    Ok(())
}

/// Initialises the library.
#[unsafe(no_mangle)]
pub extern "C" fn rsmi_init(_flags: u64) -> u32 {
    USERS.fetch_add(1, Ordering::AcqRel);
    status::SUCCESS
}

/// Undoes one call of [`rsmi_init`].
#[unsafe(no_mangle)]
pub extern "C" fn rsmi_shut_down() -> u32 {
    let less = |users: u32| users.checked_sub(1);
    match USERS.fetch_update(Ordering::AcqRel, Ordering::Acquire, less) {
        Ok(_) => status::SUCCESS,
        Err(_) => status::INIT_ERROR,
    }
}

/// The number of GPUs.
///
/// # Safety
/// `count` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_num_monitor_devices(count: *mut u32) -> u32 {
    if USERS.load(Ordering::Acquire) == 0 {
        return status::INIT_ERROR;
    }
    // SAFETY: by contract.
    answer(unsafe { put(count, agents::gpus().len() as u32) })
}

/// The text of a status.
///
/// # Safety
/// `text` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_status_string(status: u32, text: *mut *const c_char) -> u32 {
    let known = text_of(status);
    let shown = known.unwrap_or(c"RSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.");
    // SAFETY: by contract.
    answer(unsafe { put(text, shown.as_ptr()) }.and(known.map(|_| ()).ok_or(status::INVALID_ARGS)))
}

/// `rsmi_version_t`.
#[repr(C)]
pub struct Version {
    major: u32,
    minor: u32,
    patch: u32,
    build: *const c_char,
}

/// The version of the interface.
///
/// # Safety
/// `version` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_version_get(version: *mut Version) -> u32 {
    let own = Version {
        major: 7,
        minor: 8,
        patch: 0,
        build: c"rpd-sim".as_ptr(),
    };
    // SAFETY: by contract.
    answer(unsafe { put(version, own) })
}

/// Declares functions that write one number of a GPU.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($t:ty) = $value:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `place` is null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(index: u32, place: *mut $t) -> u32 {
            let value: fn(&Agent) -> $t = $value;
            // SAFETY: by contract.
            answer(gpu(index).and_then(|gpu| unsafe { put(place, value(gpu)) }))
        }
    )*};
}

numbers! {
    /// The PCI device id.
    rsmi_dev_id_get(u16) = |gpu| gpu.device_id as u16;
    /// PCI vendor id.
    rsmi_dev_vendor_id_get(u16) = |gpu| gpu.vendor_id as u16;
    /// N of `/dev/dri/renderDN`.
    rsmi_dev_drm_render_minor_get(u32) = |gpu| gpu.drm_render_minor;
    /// Number in the UUID, which no other GPU has.
    rsmi_dev_unique_id_get(u64) = |gpu| gpu.unique_id();
    /// The driver's id.
    rsmi_dev_guid_get(u64) = |gpu| gpu.gpu_id;
    /// Number of the node in the KFD topology.
    rsmi_dev_node_id_get(u32) = |gpu| gpu.index as u32;
    /// PCI domain, bus, device and function.
    rsmi_dev_pci_id_get(u64) = |gpu| u64::from(gpu.domain) << 32 | u64::from(gpu.location_id);
    /// The NUMA node of the host that the GPU is at.
    rsmi_topo_numa_affinity_get(i32) = |_| agents::cpu_agent().index as i32;
    /// The NUMA node of the host that the GPU is at.
    rsmi_topo_get_numa_node_number(u32) = |_| agents::cpu_agent().index as u32;
    /// The number of the architecture, in hexadecimal digits as in its name.
    rsmi_dev_target_graphics_version_get(u64) = Agent::target_digits;
}

/// Declares functions that write a text of a GPU.
macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident($len:ty) = $value:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `place` is null or has `len` bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(index: u32, place: *mut c_char, len: $len) -> u32 {
            let value: fn(&Agent) -> &str = $value;
            // SAFETY: by contract.
            answer(gpu(index).and_then(|gpu| unsafe { put_text(place, len as usize, value(gpu)) }))
        }
    )*};
}

texts! {
    /// Name under which the product is sold.
    rsmi_dev_name_get(usize) = |gpu| &gpu.product;
    /// Name under which the product is sold.
    rsmi_dev_market_name_get(u32) = |gpu| &gpu.product;
    /// Name of the vendor.
    rsmi_dev_vendor_name_get(usize) = |gpu| gpu.vendor;
}

/// Capacity and use in bytes of a kind of memory: the GPU's own, the part of it that the host can access (all of it),
/// and host memory that the GPU can access.
fn memory(gpu: &'static Agent, kind: u32) -> Result<&'static Agent, u32> {
    match kind {
        0 | 1 => Ok(gpu),
        2 => Ok(agents::cpu_agent()),
        _ => Err(status::INVALID_ARGS),
    }
}

/// Bytes of a kind of memory.
///
/// # Safety
/// `total` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_memory_total_get(index: u32, kind: u32, total: *mut u64) -> u32 {
    let memory = gpu(index).and_then(|gpu| memory(gpu, kind));
    // SAFETY: by contract.
    answer(memory.and_then(|agent| unsafe { put(total, agent.memory_bytes) }))
}

/// Bytes of a kind of memory that this process uses; another process has simulated GPUs of its own.
///
/// # Safety
/// `used` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_memory_usage_get(index: u32, kind: u32, used: *mut u64) -> u32 {
    let memory = gpu(index).and_then(|gpu| memory(gpu, kind));
    // SAFETY: by contract.
    answer(memory.and_then(|agent| unsafe { put(used, machine().memory.used(agent.index)) }))
}

/// Most frequencies of a clock.
const MAX_FREQUENCIES: usize = 33;

/// `rsmi_frequencies_t`; frequencies in hertz.
#[repr(C)]
pub struct Frequencies {
    has_deep_sleep: bool,
    count: u32,
    current: u32,
    frequency: [u64; MAX_FREQUENCIES],
}

impl Frequencies {
    /// Frequencies of a clock that has only one.
    pub(crate) fn one(hertz: u64) -> Self {
        let mut frequency = [0; MAX_FREQUENCIES];
        frequency[0] = hertz;
        Self {
            has_deep_sleep: false,
            count: 1,
            current: 0,
            frequency,
        }
    }

    /// The frequency at which the clock runs, in Hz.
    pub(crate) fn now(&self) -> u64 {
        self.frequency[0]
    }
}

/// Writes the frequency of a clock, the only one that it has.
///
/// # Safety
/// `place` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_gpu_clk_freq_get(
    index: u32,
    clock: u32,
    place: *mut Frequencies,
) -> u32 {
    const SYSTEM: u32 = 0;
    const MEMORY: u32 = 4;
    answer(gpu(index).and_then(|gpu| {
        let mhz = match clock {
            SYSTEM => gpu.gpu_clock_mhz,
            MEMORY => gpu.memory_clock_mhz,
            1..MEMORY => return Err(status::NOT_SUPPORTED),
            _ => return Err(status::INVALID_ARGS),
        };
        let clock = Frequencies::one(u64::from(mhz) * 1_000_000);
        // SAFETY: by contract.
        unsafe { put(place, clock) }
    }))
}

/// The version of the firmware of an engine.
///
/// # Safety
/// `version` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_dev_firmware_version_get(
    index: u32,
    block: u32,
    version: *mut u64,
) -> u32 {
    const COMPUTE: u32 = 5;
    const COPY: u32 = 14;
    const LAST: u32 = 22;
    answer(gpu(index).and_then(|gpu| {
        let found = match block {
            COMPUTE => gpu.cp_fw,
            COPY => gpu.sdma_fw,
            0..=LAST => return Err(status::NOT_SUPPORTED),
            _ => return Err(status::INVALID_ARGS),
        };
        // SAFETY: by contract.
        unsafe { put(version, found.into()) }
    }))
}

/// Index that stands for the host.
const HOST: u32 = u32::MAX;

/// The link to another GPU or the host; fails for other indices.
fn link(gpu: &Agent, index: u32) -> Result<Link, u32> {
    let other = match index {
        HOST => agents::cpu_agent(),
        _ => self::gpu(index)?,
    };
    if other.index == gpu.index {
        return Err(status::INVALID_ARGS);
    }
    gpu.link_to(other).ok_or(status::INVALID_ARGS)
}

/// The number of hops to another GPU or the host, and the kind of link.
///
/// # Safety
/// The places are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_topo_get_link_type(
    from: u32,
    to: u32,
    hops: *mut u64,
    kind: *mut u32,
) -> u32 {
    answer(gpu(from).and_then(|gpu| {
        // PCI Express leads over a bridge.
        let (number, link) = if link(gpu, to)?.xgmi { (1, 2) } else { (2, 1) };
        // SAFETY: by contract.
        unsafe { put(hops, number).and_then(|()| put(kind, link)) }
    }))
}

/// The weight of the link to another GPU.
///
/// # Safety
/// `weight` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_topo_get_link_weight(from: u32, to: u32, weight: *mut u64) -> u32 {
    answer(gpu(from).and_then(|gpu| {
        let link = link(gpu, to)?;
        // SAFETY: by contract.
        unsafe { put(weight, link.weight.into()) }
    }))
}

/// Whether a GPU can access the memory of another: always.
///
/// # Safety
/// `accessible` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_is_P2P_accessible(from: u32, to: u32, accessible: *mut bool) -> u32 {
    let both = gpu(from).and_then(|_| gpu(to));
    // SAFETY: by contract.
    answer(both.and_then(|_| unsafe { put(accessible, true) }))
}

/// `rsmi_process_info_t`; memory in bytes.
#[repr(C)]
pub struct Process {
    id: u32,
    pasid: u32,
    memory: u64,
    copy_time: u64,
    occupancy: u32,
}

impl Process {
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Bytes of memory that the process has on GPUs.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
    }
}

/// Facts about this process; fails if it uses no GPU.
pub(crate) fn this_process() -> Result<Process, u32> {
    gpu(0)?;
    check_process(std::process::id())?;
    Ok(process(used()))
}

/// Indices of the GPUs that this process uses: those on which it has memory.
fn used() -> impl Iterator<Item = u32> {
    let uses = |gpu: &Agent| machine().memory.used(gpu.index) != 0;
    let all = agents::gpus().iter().enumerate();
    all.filter(move |(_, gpu)| uses(gpu))
        .map(|(index, _)| index as u32)
}

/// Facts about this process on some GPUs.
fn process(gpus: impl Iterator<Item = u32>) -> Process {
    let memory = |index: u32| machine().memory.used(agents::gpus()[index as usize].index);
    Process {
        id: std::process::id(),
        pasid: 0,
        memory: gpus.map(memory).sum(),
        copy_time: 0,
        occupancy: 0,
    }
}

/// Writes at most `count` items of a list, and the number of all items.
///
/// # Safety
/// `list` is null, to get the number alone, or has `count` places; `count` is null or can be read and written.
unsafe fn put_list<T>(list: *mut T, count: *mut u32, items: Vec<T>) -> Outcome {
    if count.is_null() {
        return Err(status::INVALID_ARGS);
    }
    let all = items.len();
    // SAFETY: by contract.
    unsafe {
        let room = if list.is_null() {
            all
        } else {
            all.min(count.read() as usize)
        };
        if !list.is_null() {
            for (place, item) in items.into_iter().take(room).enumerate() {
                list.add(place).write(item);
            }
        }
        count.write(room as u32);
        if room < all {
            return Err(status::INSUFFICIENT_SIZE);
        }
    }
    Ok(())
}

/// Lists the processes that use GPUs: only the calling one can be known.
///
/// # Safety
/// The requirements of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_compute_process_info_get(list: *mut Process, count: *mut u32) -> u32 {
    let all = used().next().map(|_| process(used()));
    // SAFETY: by contract.
    answer(gpu(0).and_then(|_| unsafe { put_list(list, count, all.into_iter().collect()) }))
}

/// Fails unless `id` is the id of this process.
fn check_process(id: u32) -> Outcome {
    if id == std::process::id() && used().next().is_some() {
        return Ok(());
    }
    Err(status::NOT_FOUND)
}

/// Writes facts about a process.
///
/// # Safety
/// `place` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_compute_process_info_by_pid_get(id: u32, place: *mut Process) -> u32 {
    let known = gpu(0).and_then(|_| check_process(id));
    // SAFETY: by contract.
    answer(known.and_then(|()| unsafe { put(place, process(used())) }))
}

/// Writes facts about a process on a GPU.
///
/// # Safety
/// `place` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_compute_process_info_by_device_get(
    id: u32,
    index: u32,
    place: *mut Process,
) -> u32 {
    let known = gpu(index).and_then(|_| check_process(id));
    let on_it = || process(used().filter(|&used| used == index));
    // SAFETY: by contract.
    answer(known.and_then(|()| unsafe { put(place, on_it()) }))
}

/// Writes the indices of the GPUs that a process uses.
///
/// # Safety
/// The requirements of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rsmi_compute_process_gpus_get(
    id: u32,
    list: *mut u32,
    count: *mut u32,
) -> u32 {
    let known = gpu(0).and_then(|_| check_process(id));
    // SAFETY: by contract.
    answer(known.and_then(|()| unsafe { put_list(list, count, used().collect()) }))
}
