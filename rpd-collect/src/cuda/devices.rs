//! CUDA's devices, and the host, as agents.

use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cupti_sys::activity::Device;
use rocprofiler_sdk_sys::{
    HSA_HEAPTYPE, rocprofiler_agent_cache_t as Cache, rocprofiler_agent_mem_bank_t as Bank,
    rocprofiler_agent_type_t as AgentType, rocprofiler_agent_v0_t as Agent,
    rocprofiler_dim3_t as Dim3, rocprofiler_uuid_t as Uuid,
};

use crate::agent;
use crate::recording::fork::ForkHook;
use crate::recording::text::text;

/// Handle of the host. Handles of the SDK and of the direct provider are small numbers or addresses.
const HOST: u64 = 0x6375_6461_0000;
/// NVIDIA's number among vendors of PCI devices.
const VENDOR: u32 = 0x10de;

/// Devices that are described, a bit each; those from number 63 on share one.
static DESCRIBED: AtomicU64 = AtomicU64::new(0);
static HOST_DESCRIBED: AtomicBool = AtomicBool::new(false);
/// A child describes the devices in its own recording.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(|| {
    DESCRIBED.store(0, Ordering::Relaxed);
    HOST_DESCRIBED.store(false, Ordering::Relaxed);
});

/// Handle of the host.
pub(super) fn host() -> u64 {
    HOST
}

/// Handle of a device.
pub(super) fn handle(device: u32) -> u64 {
    HOST + 1 + u64::from(device)
}

fn leaked(text: String) -> &'static CStr {
    // Names of devices have no zeros.
    Box::leak(CString::new(text).unwrap_or_default().into_boxed_c_str())
}

/// Records the host, once.
pub(super) fn describe_host() {
    if HOST_DESCRIBED.swap(true, Ordering::Relaxed) {
        return;
    }
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == "model name")
        .map_or("CPU", |(_, value)| value.trim());
    let name = leaked(model.to_owned());
    // SAFETY: the call takes a number.
    let cores = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    let mut described = Agent {
        size: size_of::<Agent>() as u64,
        r#type: AgentType::CPU,
        cpu_cores_count: u32::try_from(cores).unwrap_or(0),
        name: name.as_ptr(),
        vendor_name: c"CPU".as_ptr(),
        product_name: name.as_ptr(),
        model_name: c"".as_ptr(),
        ..Agent::default()
    };
    described.id.handle = HOST;
    described.runtime_visibility.bits = 0b1111;
    record(&described);
}

fn record(described: &Agent) {
    // SAFETY: the struct has the size that it states; what it points to is never freed.
    unsafe { agent::record(std::ptr::from_ref(described).cast::<c_void>(), described) };
}

/// Records a device, once.
pub(super) fn describe(device: &Device) {
    describe_host();
    let bit = 1 << device.id.min(63);
    if DESCRIBED.fetch_or(bit, Ordering::Relaxed) & bit != 0 && device.id < 63 {
        return;
    }
    // SAFETY: text of CUPTI's.
    let product = String::from_utf8_lossy(unsafe { text(device.name) }).into_owned();
    let [major, minor] = device.capability;
    let banks = Vec::leak(vec![Bank {
        heap_type: HSA_HEAPTYPE::FRAME_BUFFER_PUBLIC,
        size_in_bytes: device.memory_size,
        ..Bank::default()
    }]);
    let caches = Vec::leak(vec![Cache {
        size: u64::from(device.l2_size / 1024),
        level: 2,
        ..Cache::default()
    }]);
    let mut described = Agent {
        size: size_of::<Agent>() as u64,
        r#type: AgentType::GPU,
        mem_banks_count: 1,
        caches_count: 1,
        mem_banks: banks.as_ptr(),
        caches: caches.as_ptr(),
        lds_size_in_kb: device.max_shared_memory / 1024,
        wave_front_size: device.warp_size,
        num_xcc: 1,
        cu_count: device.multiprocessors,
        max_waves_per_cu: device.max_warps,
        vendor_id: VENDOR as _,
        num_sdma_engines: device.copy_engines,
        max_engine_clk_fcompute: device.clock / 1000,
        workgroup_max_size: device.max_block_threads,
        workgroup_max_dim: dim3(device.max_block),
        grid_max_dim: dim3(device.max_grid),
        local_mem_size: device.memory_size,
        name: leaked(format!("sm_{major}{minor}")).as_ptr(),
        vendor_name: c"NVIDIA".as_ptr(),
        product_name: leaked(product).as_ptr(),
        model_name: c"".as_ptr(),
        node_id: device.id + 1,
        logical_node_id: device.id.cast_signed() + 1,
        logical_node_type_id: device.id.cast_signed(),
        uuid: Uuid { bytes: device.uuid },
        ..Agent::default()
    };
    described.id.handle = handle(device.id);
    described.runtime_visibility.bits = 0b1111;
    record(&described);
}

fn dim3([x, y, z]: [u32; 3]) -> Dim3 {
    Dim3 { x, y, z }
}
