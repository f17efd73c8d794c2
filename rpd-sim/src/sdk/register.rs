//! Registration of the runtimes' dispatch tables with the provider.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_intercept_table_t as InterceptTable,
    rocprofiler_runtime_initialization_operation_t as Runtime, rocprofiler_status_t as Status,
};

use super::{
    allocation, codeobj, context, counting, device, discovery, foreign, graphs, hip_events,
    intercept, lifecycle, marker, registration_library, runtime, state, stream_wrap as stream,
    trace, variables::truth, wrap,
};
use crate::api::table::{self, Code, Library, Slot, count, next};

/// Runs when the loader has mapped the library: from then on runtimes offer their tables to this module.
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = {
    extern "C" fn on_load() {
        table::offer_to(library);
    }
    on_load
};

/// Whether the registration library would load the SDK.
pub(crate) fn tool_assumed() -> bool {
    if truth("ROCPROFILER_REGISTER_ENABLED") == Some(false) {
        return false;
    }
    // A tool that is linked into the program needs no variable.
    if state::initialized() == 1 || discovery::global().is_some() {
        return true;
    }
    truth("ROCPROFILER_REGISTER_FORCE_LOAD").unwrap_or_else(|| {
        ["ROCPROFILER_REGISTER_LIBRARY", "ROCP_TOOL_LIBRARIES"]
            .iter()
            .any(|name| std::env::var_os(name).is_some())
    })
}

/// Version of the simulated HSA runtime, `10000*major + 100*minor + patch`.
const HSA_VERSION: u64 = 11_800;
const HIP_VERSION: u64 = 70_000;
const ROCTX_VERSION: u64 = 10_000;
/// Version with which RCCL registers: 0, as the real library does.
const RCCL_VERSION: u64 = 0;

/// Offers the tables of a simulated library to tools.
pub(crate) fn library(library: Library) {
    // The variable of the real HSA runtime that keeps it from registering.
    if library == Library::Hsa && truth("HSA_TOOLS_DISABLE_REGISTER") == Some(true) {
        return;
    }
    fn address<T>(table: &'static T) -> *mut c_void {
        ptr::from_ref(table).cast_mut().cast()
    }
    let (name, version, mut tables) = match library {
        Library::Hsa => ("hsa", HSA_VERSION, vec![address(&table::HSA)]),
        Library::Hip => ("hip", HIP_VERSION, vec![address(&table::HIP_RUNTIME_API)]),
        Library::HipCompiler => (
            "hip_compiler",
            HIP_VERSION,
            vec![address(&table::HIP_COMPILER_API)],
        ),
        Library::Roctx => (
            "roctx",
            ROCTX_VERSION,
            vec![
                address(&table::MARKER_CORE_API),
                address(&table::MARKER_CONTROL_API),
                address(&table::MARKER_NAME_API),
            ],
        ),
        Library::Rccl => ("rccl", RCCL_VERSION, vec![address(&table::RCCL_API)]),
    };
    // Without a tool nothing is wrapped, and calls take the direct way through the table.
    if !tool_assumed() {
        return registration_library::remember(name, version, &mut tables);
    }
    match foreign::provider() {
        Some(provider) => foreign::hand_over(provider, name, version, 0, &mut tables),
        None => {
            set(name, version, 0, &mut tables);
        }
    }
}

/// Names and places of a dispatch table's functions.
struct Slots(&'static [Slot]);

impl Slots {
    /// Slots after a `uint64_t size`, at most as many as are known.
    ///
    /// # Safety
    /// `table` is a table of that shape that lives as long as the process.
    unsafe fn flat(table: *mut c_void, known: usize) -> Self {
        // SAFETY: by the contract the table begins with its size, and slots follow.
        unsafe {
            // The runtime of the program may be older or newer than these tables: only slots that both have are
            // touched.
            let size = *table.cast::<u64>() as usize;
            let count = (size.saturating_sub(8) / 8).min(known);
            Self(core::slice::from_raw_parts(
                table.cast::<Slot>().add(1),
                count,
            ))
        }
    }

    /// Slots after an HSA version block.
    ///
    /// # Safety
    /// As for [`Slots::flat`].
    unsafe fn versioned(table: *mut c_void, known: usize) -> Self {
        if table.is_null() {
            return Self(&[]);
        }
        // SAFETY: by the contract the second word of the version block is the size, and slots follow.
        unsafe {
            let size = *table.cast::<u32>().add(1) as usize;
            let count = (size.saturating_sub(16) / 8).min(known);
            Self(core::slice::from_raw_parts(
                table.cast::<Slot>().add(2),
                count,
            ))
        }
    }

    /// Keeps the functions in the slots as those that the wrappers call.
    fn remember(&self, next: &[Slot]) {
        for (slot, next) in self.0.iter().zip(next) {
            next.store(slot.load(Ordering::Acquire), Ordering::Release);
        }
    }

    /// Puts wrappers into slots of operations that some context configured.
    fn wrap(&self, domain: &trace::Domain, wrappers: &[Code]) {
        for (operation, (slot, wrapper)) in self.0.iter().zip(wrappers).enumerate() {
            if domain.wanted(operation) {
                slot.store(wrapper.0.cast_mut().cast(), Ordering::Release);
            }
        }
    }
}

/// Operation of the compiler's table that registers a host stub, `__hipRegisterFunction`.
const REGISTER_FUNCTION: usize = 3;

/// Mask of the runtimes whose tables were registered.
static SEEN: AtomicU32 = AtomicU32::new(0);
/// Bit of the HSA runtime in [`SEEN`].
const HSA: u32 = 3;
/// Bit of RCCL in [`SEEN`].
const RCCL: u32 = 4;

/// Wraps the tables of one runtime; `false` for a name that is unknown.
fn set(name: &str, version: u64, instance: u64, tables: &mut [*mut c_void]) -> bool {
    // Tools are found at the first registration, so that they are configured before any call is made.
    lifecycle::initialize(None);
    if state::finalized() != 0 {
        return true;
    }
    // The functions that wrappers call are kept for one instance of each runtime.
    let first = |bit: u32| SEEN.fetch_or(1 << bit, Ordering::AcqRel) & (1 << bit) == 0;
    let Some(&table) = tables.first() else {
        return false;
    };
    match name {
        "hip" => {
            // SAFETY: this is what runtimes of that name hand over.
            let slots = unsafe { Slots::flat(table, count::HIP_RUNTIME_API) };
            let own = first(0);
            if own {
                slots.remember(&next::HIP_RUNTIME_API);
                graphs::install(slots.0);
                hip_events::install(slots.0);
                slots.wrap(&trace::HIP_RUNTIME_API, &wrap::HIP_RUNTIME_API);
            }
            // Tools hear of every instance of a runtime, wrapped or not.
            runtime::initialized(Runtime::HIP, version, instance);
            // In front of the tracing wrappers: the event that a stream is worked on surrounds the call's own.
            if own && context::any(CallbackKind::HIP_STREAM, BufferKind::HIP_STREAM) {
                for &(operation, wrapper) in stream::WRAPPERS {
                    if let Some(slot) = slots.0.get(operation) {
                        let before = slot.load(Ordering::Acquire);
                        stream::NEXT[operation].store(before, Ordering::Release);
                        slot.store(wrapper.0.cast_mut().cast(), Ordering::Release);
                    }
                }
            }
            // Last, so that tools that patch tables themselves see the wrapped functions.
            intercept::offer(InterceptTable::HIP_RUNTIME_TABLE, version, instance, tables);
        }
        "hip_compiler" => {
            if first(1) {
                // SAFETY: as above.
                let slots = unsafe { Slots::flat(table, count::HIP_COMPILER_API) };
                slots.remember(&next::HIP_COMPILER_API);
                // The wrapper of a traced call calls what was remembered above, not this hook: stubs stay unknown then,
                // as with the SDK.
                if let Some(slot) = slots.0.get(REGISTER_FUNCTION) {
                    codeobj::watch_stubs(slot);
                }
                slots.wrap(&trace::HIP_COMPILER_API, &wrap::HIP_COMPILER_API);
            }
            intercept::offer(
                InterceptTable::HIP_COMPILER_TABLE,
                version,
                instance,
                tables,
            );
        }
        "roctx" => {
            // Three tables are one registration; with fewer no call could be wrapped rightly.
            let &mut [core, control, name, ..] = tables else {
                eprintln!("rpd-sim: roctx registered fewer than three tables");
                std::process::abort();
            };
            if first(2) {
                // SAFETY: as above.
                let slots = unsafe {
                    [
                        Slots::flat(core, count::MARKER_CORE_API),
                        Slots::flat(control, count::MARKER_CONTROL_API),
                        Slots::flat(name, count::MARKER_NAME_API),
                    ]
                };
                slots[0].remember(&next::MARKER_CORE_API);
                slots[0].wrap(&trace::MARKER_CORE_API, &wrap::MARKER_CORE_API);
                slots[1].remember(&next::MARKER_CONTROL_API);
                slots[1].wrap(&trace::MARKER_CONTROL_API, &wrap::MARKER_CONTROL_API);
                slots[2].remember(&next::MARKER_NAME_API);
                slots[2].wrap(&trace::MARKER_NAME_API, &wrap::MARKER_NAME_API);
                // Ranges are seen whether or not single calls are traced: pushes and pops must be paired in any case.
                marker::install(slots[0].0);
            }
            runtime::initialized(Runtime::MARKER, version, instance);
            let kinds = [
                InterceptTable::MARKER_CORE_TABLE,
                InterceptTable::MARKER_CONTROL_TABLE,
                InterceptTable::MARKER_NAME_TABLE,
            ];
            for (kind, table) in kinds.into_iter().zip(tables.chunks_mut(1)) {
                intercept::offer(kind, version, instance, table);
            }
        }
        "hsa" => {
            // Keeps the HSA runtime from loading tools of the older profiler by its own mechanism.
            // SAFETY: text ends with zero; an existing value is kept.
            unsafe {
                libc::setenv(c"HSA_TOOLS_ROCPROFILER_V1_TOOLS".as_ptr(), c"0".as_ptr(), 0);
            }
            if first(HSA) {
                // Device counting may be started from now on.
                state::set_hsa_registered();
                // SAFETY: this is the container that runtimes of that name hand over.
                let sub = unsafe { &*table.cast::<[*mut c_void; 8]>() };
                // Order of the pointers in `HsaApiTable`, after the version block.
                // SAFETY: as above; the version block takes the first two words.
                let slots = unsafe {
                    [
                        Slots::versioned(sub[2], count::HSA_CORE_API),
                        Slots::versioned(sub[3], count::HSA_AMD_EXT_API),
                        Slots::versioned(sub[4], count::HSA_FINALIZE_EXT_API),
                        Slots::versioned(sub[5], count::HSA_IMAGE_EXT_API),
                    ]
                };
                slots[0].remember(&next::HSA_CORE_API);
                slots[1].remember(&next::HSA_AMD_EXT_API);
                slots[2].remember(&next::HSA_FINALIZE_EXT_API);
                slots[3].remember(&next::HSA_IMAGE_EXT_API);
                // Set before any call can create a queue or load code.
                device::install();
                // Allocations are observed below the tracing wrappers, which call them.
                allocation::install(slots[0].0, slots[1].0);
                slots[0].wrap(&trace::HSA_CORE_API, &wrap::HSA_CORE_API);
                slots[1].wrap(&trace::HSA_AMD_EXT_API, &wrap::HSA_AMD_EXT_API);
                slots[2].wrap(&trace::HSA_FINALIZE_EXT_API, &wrap::HSA_FINALIZE_EXT_API);
                slots[3].wrap(&trace::HSA_IMAGE_EXT_API, &wrap::HSA_IMAGE_EXT_API);
            }
            // Contexts that were started before have waited for this runtime.
            counting::device::hsa_initialized();
            runtime::initialized(Runtime::HSA, version, instance);
            intercept::offer(InterceptTable::HSA_TABLE, version, instance, tables);
        }
        "rccl" => {
            if first(RCCL) {
                // SAFETY: this is what runtimes of that name hand over.
                let slots = unsafe { Slots::flat(table, count::RCCL_API) };
                slots.remember(&next::RCCL_API);
                slots.wrap(&trace::RCCL_API, &wrap::RCCL_API);
            }
            runtime::initialized(Runtime::RCCL, version, instance);
            intercept::offer(InterceptTable::RCCL_TABLE, version, instance, tables);
        }
        // The table of ROCm's library for attaching, with functions that list queues and code objects. Both are known here.
        "rocattach" => {}
        // Known runtimes that the simulator lacks: no calls to trace, but tools may patch the tables.
        "rocdecode" => {
            runtime::initialized(Runtime::ROCDECODE, version, instance);
            intercept::offer(InterceptTable::ROCDECODE_TABLE, version, instance, tables);
        }
        "rocjpeg" => {
            runtime::initialized(Runtime::ROCJPEG, version, instance);
            intercept::offer(InterceptTable::ROCJPEG_TABLE, version, instance, tables);
        }
        _ => return false,
    }
    true
}

/// Puts a function into a slot and keeps the previous one in `next`.
pub(crate) fn replace(slot: &Slot, with: *const (), next: &AtomicPtr<c_void>) {
    next.store(slot.load(Ordering::Acquire), Ordering::Release);
    slot.store(with.cast_mut().cast(), Ordering::Release);
}

/// `rocprofiler_set_api_table`: how a registration library outside hands tables over.
///
/// # Safety
/// The tables have the shape that the name implies and live as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_set_api_table(
    name: *const c_char,
    lib_version: u64,
    lib_instance: u64,
    tables: *mut *mut c_void,
    num_tables: u64,
) -> c_int {
    const INVALID: c_int = Status::ERROR_INVALID_ARGUMENT.0 as c_int;
    if name.is_null() || tables.is_null() || num_tables == 0 {
        return INVALID;
    }
    // SAFETY: not null, text by the contract.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: not null, that long by the contract.
    let tables = unsafe { core::slice::from_raw_parts_mut(tables, num_tables as usize) };
    if set(&name, lib_version, lib_instance, tables) {
        0
    } else {
        INVALID
    }
}
