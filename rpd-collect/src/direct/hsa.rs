//! The functions of the HSA runtime itself, below every wrapper and hook.

use std::ffi::c_void;

/// Value of `hsa_status_t` for success.
pub(super) const SUCCESS: u32 = 0;

/// Calls the runtime's own function of a slot; yields the given default when the table lacks it.
macro_rules! runtime {
    ($kind:ident :: $name:ident ($($t:ty),* $(,)?) -> $r:ty, ($($a:expr),* $(,)?), $missing:expr $(,)?) => {{
        let slot = $crate::direct::wrappers::slot::$kind::$name as usize;
        let function = $crate::direct::wrappers::functions::$kind[slot]
            .runtime
            .load(std::sync::atomic::Ordering::Acquire);
        if function.is_null() {
            $missing
        } else {
            // SAFETY: the slot holds a function of this type; the caller answers for the arguments.
            unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> $r>(function)($($a),*)
            }
        }
    }};
}
pub(super) use runtime;

/// Result for a function that the table lacks: `HSA_STATUS_ERROR`.
pub(super) const MISSING: u32 = 0x1000;

/// An attribute of `hsa_signal_create` of the AMD extension: only GPUs wait for it, so that no interrupt is needed.
const GPU_ONLY: u64 = 1;

/// Makes a signal with value 1 that no thread sleeps on.
pub(super) fn signal_create() -> Option<u64> {
    let mut signal = 0_u64;
    let place = &raw mut signal;
    let none = std::ptr::null::<u64>();
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_signal_create(i64, u32, *const u64, u64, *mut u64) -> u32,
        (1, 0, none, GPU_ONLY, place),
        MISSING
    );
    (status == SUCCESS && signal != 0).then_some(signal)
}

/// The value of a signal, with acquire ordering.
#[inline]
pub(super) fn signal_load(signal: u64) -> i64 {
    runtime!(HSA_CORE_API::hsa_signal_load_scacquire(u64) -> i64, (signal), 1)
}

/// Sets the value of a signal without waiters.
#[inline]
pub(super) fn signal_reset(signal: u64) {
    runtime!(HSA_CORE_API::hsa_signal_store_relaxed(u64, i64) -> (), (signal, 1), ());
}

/// Lowers the value of a signal of the program, as the work that it was given for would have done.
pub(super) fn signal_decrement(signal: u64) {
    runtime!(HSA_CORE_API::hsa_signal_subtract_screlease(u64, i64) -> (), (signal, 1), ());
}

/// Struct `hsa_amd_profiling_dispatch_time_t`.
#[repr(C)]
#[derive(Default)]
struct Times {
    start: u64,
    end: u64,
}

/// Begin and end of the dispatch that completed a signal, in ticks of the system clock.
#[inline]
pub(super) fn dispatch_time(agent: u64, signal: u64) -> Option<(u64, u64)> {
    let mut times = Times::default();
    let place = &raw mut times;
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_profiling_get_dispatch_time(u64, u64, *mut Times) -> u32,
        (agent, signal, place),
        MISSING
    );
    (status == SUCCESS && times.end != 0).then_some((times.start, times.end))
}

/// Begin and end of the copy that completed a signal, in ticks of the system clock.
pub(super) fn copy_time(signal: u64) -> Option<(u64, u64)> {
    let mut times = Times::default();
    let place = &raw mut times;
    let status = runtime!(
        HSA_AMD_EXT_API::hsa_amd_profiling_get_async_copy_time(u64, *mut Times) -> u32,
        (signal, place),
        MISSING
    );
    (status == SUCCESS && times.end != 0).then_some((times.start, times.end))
}

/// `hsa_system_info_t`: ticks of the system clock in a second.
const TIMESTAMP_FREQUENCY: u32 = 3;

/// Ticks of the system clock in a second; 0 while the runtime is not initialised.
pub(super) fn clock_frequency() -> u64 {
    let mut frequency = 0_u64;
    let place = (&raw mut frequency).cast::<c_void>();
    let status = runtime!(
        HSA_CORE_API::hsa_system_get_info(u32, *mut c_void) -> u32,
        (TIMESTAMP_FREQUENCY, place),
        MISSING
    );
    if status == SUCCESS { frequency } else { 0 }
}

/// Reads an attribute of an agent into `value`; false when the runtime lacks it.
///
/// # Safety
///
/// `T` is the attribute's type.
pub(super) unsafe fn agent_info<T>(agent: u64, attribute: u32, value: &mut T) -> bool {
    let place = std::ptr::from_mut(value).cast::<c_void>();
    let status = runtime!(
        HSA_CORE_API::hsa_agent_get_info(u64, u32, *mut c_void) -> u32,
        (agent, attribute, place),
        MISSING
    );
    status == SUCCESS
}

/// A callback of the runtime for each of some handles.
type Visit = unsafe extern "C" fn(u64, *mut c_void) -> u32;

unsafe extern "C" fn collect(handle: u64, into: *mut c_void) -> u32 {
    // SAFETY: the functions below pass a vector.
    unsafe { &mut *into.cast::<Vec<u64>>() }.push(handle);
    SUCCESS
}

/// The agents, in the runtime's order.
pub(super) fn agents() -> Vec<u64> {
    let mut agents = Vec::new();
    let into = (&raw mut agents).cast::<c_void>();
    runtime!(
        HSA_CORE_API::hsa_iterate_agents(Visit, *mut c_void) -> u32,
        (collect, into),
        MISSING
    );
    agents
}

/// The memory pools of an agent.
pub(super) fn pools(agent: u64) -> Vec<u64> {
    let mut pools = Vec::new();
    let into = (&raw mut pools).cast::<c_void>();
    runtime!(
        HSA_AMD_EXT_API::hsa_amd_agent_iterate_memory_pools(u64, Visit, *mut c_void) -> u32,
        (agent, collect, into),
        MISSING
    );
    pools
}

/// The regions of an agent.
pub(super) fn regions(agent: u64) -> Vec<u64> {
    let mut regions = Vec::new();
    let into = (&raw mut regions).cast::<c_void>();
    runtime!(
        HSA_CORE_API::hsa_agent_iterate_regions(u64, Visit, *mut c_void) -> u32,
        (agent, collect, into),
        MISSING
    );
    regions
}

/// The caches of an agent.
pub(super) fn caches(agent: u64) -> Vec<u64> {
    let mut caches = Vec::new();
    let into = (&raw mut caches).cast::<c_void>();
    runtime!(
        HSA_CORE_API::hsa_agent_iterate_caches(u64, Visit, *mut c_void) -> u32,
        (agent, collect, into),
        MISSING
    );
    caches
}

unsafe extern "C" fn collect_symbol(
    _executable: u64,
    _agent: u64,
    symbol: u64,
    into: *mut c_void,
) -> u32 {
    // SAFETY: `symbols` passes a vector.
    unsafe { &mut *into.cast::<Vec<u64>>() }.push(symbol);
    SUCCESS
}

/// The symbols of an executable that an agent has.
pub(super) fn symbols(executable: u64, agent: u64) -> Vec<u64> {
    type Symbol = unsafe extern "C" fn(u64, u64, u64, *mut c_void) -> u32;
    let mut symbols = Vec::new();
    let into = (&raw mut symbols).cast::<c_void>();
    runtime!(
        HSA_CORE_API::hsa_executable_iterate_agent_symbols(u64, u64, Symbol, *mut c_void) -> u32,
        (executable, agent, collect_symbol, into),
        MISSING
    );
    symbols
}

/// Reads an attribute of a symbol into `value`; false when the runtime lacks it.
///
/// # Safety
///
/// `value` has room for the attribute.
pub(super) unsafe fn symbol_info<T: ?Sized>(symbol: u64, attribute: u32, value: &mut T) -> bool {
    let place = std::ptr::from_mut(value).cast::<c_void>();
    let status = runtime!(
        HSA_CORE_API::hsa_executable_symbol_get_info(u64, u32, *mut c_void) -> u32,
        (symbol, attribute, place),
        MISSING
    );
    status == SUCCESS
}

/// Value of `hsa_extension_t` for the loader.
const LOADER: u16 = 0x201;

/// The first functions of `hsa_ven_amd_loader_1_01_pfn_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loader {
    /// The host address of a device address of loaded code.
    pub(super) query_host_address: Option<unsafe extern "C" fn(u64, *mut *const c_void) -> u32>,
    query_segment_descriptors: Option<unsafe extern "C" fn()>,
    query_executable: Option<unsafe extern "C" fn()>,
    /// Visits the loaded code objects of an executable.
    pub(super) iterate: Option<
        unsafe extern "C" fn(
            u64,
            unsafe extern "C" fn(u64, u64, *mut c_void) -> u32,
            *mut c_void,
        ) -> u32,
    >,
    /// An attribute of a loaded code object.
    pub(super) info: Option<unsafe extern "C" fn(u64, u32, *mut c_void) -> u32>,
}

/// The functions of the loader.
pub(super) fn loader() -> Option<Loader> {
    let mut loader = Loader::default();
    let place = (&raw mut loader).cast::<c_void>();
    let status = runtime!(
        HSA_CORE_API::hsa_system_get_major_extension_table(u16, u16, usize, *mut c_void) -> u32,
        (LOADER, 1, size_of::<Loader>(), place),
        MISSING
    );
    (status == SUCCESS && loader.iterate.is_some() && loader.info.is_some()).then_some(loader)
}
