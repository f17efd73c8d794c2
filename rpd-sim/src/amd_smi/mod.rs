//! The newer library for system management (AMD SMI 26), for the simulated GPUs.
//!
//! It is written on ROCm SMI, as the real one is: the same information is here by handles instead of indices, and in larger structs. What no
//! simulated GPU has (temperatures, power, load, error counters, settings) and everything about host processors is not supported.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub, non_snake_case)]

mod links;
mod processes;
mod refused;
mod types;

use core::ffi::{CStr, c_char, c_void};

use crate::gpu::agents::{self, Agent};
use crate::gpu::machine::machine;
use crate::rocm_smi::{self as smi, Frequencies};
use types::*;

/// `amdsmi_socket_handle` and `amdsmi_processor_handle`.
pub type Handle = usize;

/// Declares the statuses with their names and texts.
macro_rules! statuses {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Values of `amdsmi_status_t` that are returned.
        mod status {
            $(pub(super) const $name: u32 = $number;)*
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
    SUCCESS = 0, c"AMDSMI_STATUS_SUCCESS: The call succeeded.";
    INVAL = 1, c"AMDSMI_STATUS_INVAL: An argument is not valid.";
    NOT_SUPPORTED = 2, c"AMDSMI_STATUS_NOT_SUPPORTED: The device does not support this.";
    OUT_OF_RESOURCES = 15, c"AMDSMI_STATUS_OUT_OF_RESOURCES: The place for the result is too small.";
    NOT_FOUND = 31, c"AMDSMI_STATUS_NOT_FOUND: The requested item was not found.";
    NOT_INIT = 32, c"AMDSMI_STATUS_NOT_INIT: The library is not initialized.";
    INSUFFICIENT_SIZE = 41, c"AMDSMI_STATUS_INSUFFICIENT_SIZE: The place for the result is too small.";
    UNKNOWN_ERROR = 0xffff_ffff, c"AMDSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.";
}

type Outcome<T = ()> = Result<T, u32>;

fn answer(outcome: Outcome) -> u32 {
    outcome.err().unwrap_or(status::SUCCESS)
}

/// Status of AMD SMI for a status that a function of ROCm SMI returned; `Ok` for success.
fn from_smi(status: u32) -> Outcome {
    Err(match status {
        smi::status::SUCCESS => return Ok(()),
        smi::status::INVALID_ARGS => status::INVAL,
        smi::status::NOT_SUPPORTED => status::NOT_SUPPORTED,
        smi::status::INIT_ERROR => status::NOT_INIT,
        smi::status::NOT_FOUND => status::NOT_FOUND,
        smi::status::INSUFFICIENT_SIZE => status::INSUFFICIENT_SIZE,
        _ => status::UNKNOWN_ERROR,
    })
}

/// Checks that the library has been initialized; fails with `NOT_INIT` otherwise.
fn initialized() -> Outcome {
    let mut count = 0;
    // SAFETY: the place is a local.
    from_smi(unsafe { smi::rsmi_num_monitor_devices(&mut count) })
}

/// Bit that the handle of a socket lacks and the handle of its GPU has. Each socket has one GPU.
const SOCKET: usize = 1;

/// A GPU and its index by its handle; the library must have been initialized.
fn gpu(handle: Handle) -> Outcome<(u32, &'static Agent)> {
    initialized()?;
    let mut all = (0..).zip(agents::gpus());
    let found = all.find(|(_, gpu)| gpu.handle() as usize == handle);
    found.ok_or(status::INVAL)
}

/// Writes a result to a place of the caller's; fails with `INVAL` if the place is null.
///
/// # Safety
/// `place` is null or can be written.
unsafe fn put<T>(place: *mut T, value: T) -> Outcome {
    // SAFETY: by contract.
    unsafe { smi::put(place, value) }.or_else(from_smi)
}

/// Initialises the library. The flags are ignored: there are only GPUs.
#[unsafe(no_mangle)]
pub extern "C" fn amdsmi_init(_flags: u64) -> u32 {
    answer(from_smi(smi::rsmi_init(0)))
}

/// Undoes one call of [`amdsmi_init`].
#[unsafe(no_mangle)]
pub extern "C" fn amdsmi_shut_down() -> u32 {
    answer(from_smi(smi::rsmi_shut_down()))
}

/// The version of the interface.
///
/// # Safety
/// `version` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_lib_version(version: *mut Version) -> u32 {
    let own = Version {
        major: 26,
        minor: 2,
        release: 0,
        build: c"rpd-sim".as_ptr(),
    };
    // SAFETY: by contract.
    answer(unsafe { put(version, own) })
}

/// The text of a status.
///
/// # Safety
/// `text` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_status_code_to_string(
    status: u32,
    text: *mut *const c_char,
) -> u32 {
    let shown =
        text_of(status).unwrap_or(c"AMDSMI_STATUS_UNKNOWN_ERROR: An unknown error occurred.");
    // SAFETY: by contract.
    answer(unsafe { put(text, shown.as_ptr()) })
}

/// Frees a list that a function returned; none does.
#[unsafe(no_mangle)]
pub extern "C" fn amdsmi_free_name_value_pairs(_list: *mut c_void) {}

/// Writes a list, or as much of it as the caller's buffer has room for, and its full length. If `list` is null only the
/// length is written.
///
/// # Safety
/// `list` is null or has `count` places; `count` is null or can be read and written.
unsafe fn put_list<T>(list: *mut T, count: *mut u32, items: Vec<T>) -> Outcome {
    if count.is_null() {
        return Err(status::INVAL);
    }
    let all = items.len() as u32;
    let room = if list.is_null() {
        0
    } else {
        // SAFETY: by contract.
        unsafe { count.read() }
    };
    for (place, item) in items.into_iter().take(room as usize).enumerate() {
        // SAFETY: by contract.
        unsafe { list.add(place).write(item) };
    }
    // SAFETY: by contract.
    unsafe { count.write(all) };
    if !list.is_null() && room < all {
        return Err(status::OUT_OF_RESOURCES);
    }
    Ok(())
}

/// Lists the handles of all sockets: one for each GPU.
///
/// # Safety
/// As of [`put_list`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_socket_handles(count: *mut u32, list: *mut Handle) -> u32 {
    let all = agents::gpus()
        .iter()
        .map(|gpu| gpu.handle() as usize + SOCKET);
    // SAFETY: by contract.
    answer(initialized().and_then(|()| unsafe { put_list(list, count, all.collect()) }))
}

fn address(gpu: &Agent) -> String {
    let location = gpu.location_id;
    let (bus, slot, function) = (location >> 8, location >> 3 & 0x1f, location & 7);
    format!("{:04x}:{bus:02x}:{slot:02x}.{function}", gpu.domain)
}

/// The name of a socket: the PCI address without the function.
///
/// # Safety
/// `place` is null or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_socket_info(
    socket: Handle,
    len: usize,
    place: *mut c_char,
) -> u32 {
    answer(gpu(socket.wrapping_sub(SOCKET)).and_then(|(_, gpu)| {
        let address = address(gpu);
        let name = address.rsplit_once('.').map_or(&*address, |(name, _)| name);
        // SAFETY: by contract.
        unsafe { smi::put_text(place, len, name) }.or_else(from_smi)
    }))
}

/// Lists the handles of the processors of a socket, which has one GPU.
///
/// # Safety
/// As of [`put_list`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_processor_handles(
    socket: Handle,
    count: *mut u32,
    list: *mut Handle,
) -> u32 {
    let handle = socket.wrapping_sub(SOCKET);
    // SAFETY: by contract.
    answer(gpu(handle).and_then(|_| unsafe { put_list(list, count, vec![handle]) }))
}

/// The processors of a socket that are of a type.
///
/// # Safety
/// As of [`put_list`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_processor_handles_by_type(
    socket: Handle,
    kind: u32,
    list: *mut Handle,
    count: *mut u32,
) -> u32 {
    let handle = socket.wrapping_sub(SOCKET);
    let found = if kind == TYPE_GPU {
        vec![handle]
    } else {
        vec![]
    };
    // SAFETY: by contract.
    answer(gpu(handle).and_then(|_| unsafe { put_list(list, count, found) }))
}

/// `AMDSMI_PROCESSOR_TYPE_AMD_GPU`.
const TYPE_GPU: u32 = 1;

/// The GPU at a PCI address.
///
/// # Safety
/// `handle` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_processor_handle_from_bdf(
    wanted: u64,
    handle: *mut Handle,
) -> u32 {
    answer(initialized().and_then(|()| {
        let found = agents::gpus().iter().find(|gpu| bdf(gpu) == wanted);
        let found = found.ok_or(status::NOT_FOUND)?;
        // SAFETY: by contract.
        unsafe { put(handle, found.handle() as usize) }
    }))
}

/// `amdsmi_bdf_t`: function, device, bus and domain from the lowest bit on.
fn bdf(gpu: &Agent) -> u64 {
    u64::from(gpu.domain) << 16 | u64::from(gpu.location_id & 0xffff)
}

/// The UUID as the real library makes it of the serial number and the device id.
fn uuid(gpu: &Agent) -> String {
    let [b7, b6, b5, b4, b3, b2, b1, b0] = gpu.unique_id().to_be_bytes();
    format!(
        "{b7:02x}ff{:04x}-0000-1000-80{b6:02x}-{b5:02x}{b4:02x}{b3:02x}{b2:02x}{b1:02x}{b0:02x}",
        gpu.device_id as u16
    )
}

/// The UUID of a GPU, for which `len` must have room.
///
/// # Safety
/// `len` is null or can be read, `place` is null or has so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_device_uuid(
    handle: Handle,
    len: *mut u32,
    place: *mut c_char,
) -> u32 {
    const LEAST: u32 = 38;
    answer(gpu(handle).and_then(|(_, gpu)| {
        // SAFETY: by contract.
        if len.is_null() || unsafe { len.read() } < LEAST {
            return Err(status::INVAL);
        }
        // SAFETY: by contract.
        unsafe { smi::put_text(place, LEAST as usize, &uuid(gpu)) }.or_else(from_smi)
    }))
}

/// Declares functions that write one value of a GPU.
macro_rules! values {
    ($($(#[$doc:meta])* $name:ident($t:ty) = $value:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `place` is null or can be written.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: Handle, place: *mut $t) -> u32 {
            let value: fn(&'static Agent) -> $t = $value;
            // SAFETY: by contract.
            answer(gpu(handle).and_then(|(_, gpu)| unsafe { put(place, value(gpu)) }))
        }
    )*};
}

const MIB: u64 = 1 << 20;

values! {
    /// Type of the processor of a handle: always a GPU.
    amdsmi_get_processor_type(u32) = |_| TYPE_GPU;
    /// The PCI address.
    amdsmi_get_gpu_device_bdf(u64) = bdf;
    /// Numbers by which other interfaces know the GPU.
    amdsmi_get_gpu_enumeration_info(EnumerationInfo) = |gpu| {
        let place = gpu.index as u32 - 1;
        EnumerationInfo {
            drm_render: gpu.drm_render_minor,
            drm_card: place,
            hsa_id: gpu.index as u32,
            hip_id: place,
            hip_uuid: text(&gpu.uuid),
        }
    };
    /// Product name, PCI ids, compute units and target of a GPU.
    amdsmi_get_gpu_asic_info(AsicInfo) = |gpu| AsicInfo {
        market_name: text(&gpu.product),
        vendor_id: gpu.vendor_id,
        vendor_name: text(gpu.vendor),
        subvendor_id: gpu.vendor_id,
        device_id: gpu.device_id.into(),
        rev_id: 0,
        asic_serial: text(&format!("0x{:016X}", gpu.unique_id())),
        oam_id: gpu.index as u32 - 1,
        num_of_compute_units: gpu.cus,
        target_graphics_version: gpu.target_digits(),
        subsystem_id: gpu.device_id,
        reserved: [0; 21],
    };
    /// The driver's ids.
    amdsmi_get_gpu_kfd_info(KfdInfo) = |gpu| KfdInfo {
        kfd_id: gpu.gpu_id,
        node_id: gpu.index as u32,
        current_partition_id: 0,
        reserved: [0; 12],
    };
    /// Type, vendor, size and bus width of the device memory.
    amdsmi_get_gpu_vram_info(VramInfo) = |gpu| {
        // Two transfers a clock.
        let bandwidth = u64::from(gpu.memory_clock_mhz) * 2 * u64::from(gpu.memory_width) / 8 / 1000;
        VramInfo {
            kind: 0,
            vendor: text("rpd-sim"),
            size: gpu.memory_bytes / MIB,
            bit_width: gpu.memory_width,
            max_bandwidth: bandwidth,
            reserved: [0; 37],
        }
    };
    /// Size of the device memory and the part of it that this process uses, in MiB.
    amdsmi_get_gpu_vram_usage(VramUsage) = |gpu| VramUsage {
        total: (gpu.memory_bytes / MIB) as u32,
        used: (machine().memory.used(gpu.index) / MIB) as u32,
        reserved: [0; 2],
    };
    /// The description of the driver, in whose place the simulator stands.
    amdsmi_get_gpu_driver_info(DriverInfo) = |_| DriverInfo {
        version: text(env!("CARGO_PKG_VERSION")),
        date: text(""),
        name: text("rpd-sim"),
    };
    /// The board, of which nothing but the product is known.
    amdsmi_get_gpu_board_info(BoardInfo) = |gpu| BoardInfo {
        model_number: text(""),
        product_serial: text(""),
        fru_id: text(""),
        product_name: text(&gpu.product),
        manufacturer_name: text(gpu.vendor),
        reserved: [0; 64],
    };
    /// The firmware of compute and copy engines.
    amdsmi_get_fw_info(FirmwareInfo) = |gpu| {
        const COMPUTE: u32 = 7;
        const COPY: u32 = 10;
        let mut list = [Firmware::default(); 80];
        for (place, (block, version)) in [(COMPUTE, gpu.cp_fw), (COPY, gpu.sdma_fw)].into_iter().enumerate() {
            list[place] = Firmware { block, version: version.into(), reserved: [0; 2] };
        }
        FirmwareInfo { count: 2, list, reserved: [0; 7] }
    };
    /// The caches, innermost first.
    amdsmi_get_gpu_cache_info(CacheInfo) = |gpu| {
        const ENABLED: u32 = 1;
        const DATA: u32 = 2;
        const SIMD: u32 = 16;
        let mut caches = [Cache::default(); 10];
        for (place, cache) in gpu.caches.iter().enumerate() {
            let shared_by = if cache.level == 1 { 1 } else { gpu.cus / gpu.xccs };
            caches[place] = Cache {
                properties: ENABLED | DATA | SIMD,
                size: cache.bytes / 1024,
                level: cache.level,
                most_units: shared_by,
                instances: gpu.cus / shared_by,
                reserved: [0; 3],
            };
        }
        CacheInfo { count: gpu.caches.len() as u32, caches, reserved: [0; 15] }
    };
}

/// Declares functions that ROCm SMI answers by the index of the GPU.
macro_rules! of_smi {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $t:ty),*) = $smi:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As of the function of ROCm SMI.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(handle: Handle, $($argument: $t),*) -> u32 {
            // SAFETY: by contract.
            answer(gpu(handle).and_then(|(index, _)| from_smi(unsafe { smi::$smi(index, $($argument),*) })))
        }
    )*};
}

of_smi! {
    /// The PCI device id.
    amdsmi_get_gpu_id(place: *mut u16) = rsmi_dev_id_get;
    /// Name of the vendor as text of at most `len` bytes.
    amdsmi_get_gpu_vendor_name(place: *mut c_char, len: usize) = rsmi_dev_vendor_name_get;
    /// PCI domain, bus, device and function.
    amdsmi_get_gpu_bdf_id(place: *mut u64) = rsmi_dev_pci_id_get;
    /// The NUMA node of the host that the GPU is at.
    amdsmi_get_gpu_topo_numa_affinity(place: *mut i32) = rsmi_topo_numa_affinity_get;
    /// The NUMA node of the host that the GPU is at.
    amdsmi_topo_get_numa_node_number(place: *mut u32) = rsmi_topo_get_numa_node_number;
    /// Size in bytes of the memory of a kind (VRAM, visible VRAM or GTT).
    amdsmi_get_gpu_memory_total(kind: u32, place: *mut u64) = rsmi_dev_memory_total_get;
    /// Bytes of a kind of memory that this process uses.
    amdsmi_get_gpu_memory_usage(kind: u32, place: *mut u64) = rsmi_dev_memory_usage_get;
    /// The frequency of a clock.
    amdsmi_get_clk_freq(clock: u32, place: *mut Frequencies) = rsmi_dev_gpu_clk_freq_get;
}

/// The current, lowest and highest frequency of a clock, which are the same: simulated clocks have one frequency.
///
/// # Safety
/// `place` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_clock_info(
    handle: Handle,
    clock: u32,
    place: *mut ClockInfo,
) -> u32 {
    answer(gpu(handle).and_then(|(index, _)| {
        let mut found = Frequencies::one(0);
        // SAFETY: the place is a local.
        from_smi(unsafe { smi::rsmi_dev_gpu_clk_freq_get(index, clock, &mut found) })?;
        let mhz = (found.now() / 1_000_000) as u32;
        let info = ClockInfo {
            now: mhz,
            least: mhz,
            most: mhz,
            locked: 0,
            deep_sleep: 0,
            reserved: [0; 4],
        };
        // SAFETY: by contract.
        unsafe { put(place, info) }
    }))
}
