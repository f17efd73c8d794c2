//! Code objects and their kernels.

use core::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use std::{
    collections::{HashMap, HashSet},
    ffi::CString,
    sync::Mutex,
};

use rocprofiler_sdk_sys::{
    hsa_agent_t, rocprofiler_address_t as Address, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t as HostPayload,
    rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t as SymbolPayload,
    rocprofiler_callback_tracing_code_object_load_data_t as LoadPayload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_code_object_operation_t as Operation,
    rocprofiler_code_object_storage_file_t as StorageFile,
    rocprofiler_code_object_storage_memory_t as StorageMemory,
    rocprofiler_code_object_storage_t as Storage,
    rocprofiler_code_object_storage_type_t as StorageType, rocprofiler_dim3_t as Dim3,
    rocprofiler_user_data_t as UserData,
};

use super::kept::{keep, keep_c};
use super::{agents, context, register, state, thread, thread_trace};
use crate::api::table::Slot;
use crate::gpu::machine::generation;
use crate::gpu::observe::{CodeObjectInfo, CodeObjectStorage};

/// A kernel that was reported to tools.
struct Symbol {
    payload: SymbolPayload,
    /// Host stub by which programs launch the kernel, if one was registered.
    host: Option<HostPayload>,
    user: HashMap<usize, UserData>,
}

/// A code object that was reported to tools.
struct ReportedObject {
    handle: u64,
    payload: LoadPayload,
    symbols: Vec<Symbol>,
    /// Contexts that the load was reported to, a bit each; the unload is reported to the same ones.
    reported: u64,
    user: HashMap<usize, UserData>,
}

// SAFETY: pointers in payloads lead to texts that are never freed or changed.
unsafe impl Send for ReportedObject {}

#[derive(Default)]
struct CodeObjectState {
    objects: Vec<ReportedObject>,
    /// Handles of the objects, and of those that are being reported, each with the number of forks before: a forked child
    /// gives handles of its parent out again.
    handles: HashSet<(u32, u64)>,
    /// Kernel ids by address of the kernel descriptor.
    kernels: HashMap<u64, u64>,
    /// Host stubs by kernel name, as programs registered them; their ids are not set.
    stubs: HashMap<&'static CStr, HostPayload>,
    last_object: u64,
    last_kernel: u64,
    last_stub: u64,
}

// SAFETY: pointers in payloads lead to strings that are never freed.
unsafe impl Send for CodeObjectState {}

static STATE: Mutex<Option<CodeObjectState>> = Mutex::new(None);

/// Id of the kernel whose descriptor is at an address; 0 when it is unknown.
pub(crate) fn kernel_id(kernel_object: u64) -> u64 {
    let state = STATE.lock().unwrap_or_else(|e| e.into_inner());
    state
        .as_ref()
        .and_then(|s| s.kernels.get(&kernel_object))
        .copied()
        .unwrap_or(0)
}

/// Id of the code object at an address, and the offset from its first byte; 0 and the address where there is none.
pub(crate) fn locate(address: u64) -> (u64, u64) {
    let state = STATE.lock().unwrap_or_else(|e| e.into_inner());
    let objects = state.as_ref().map_or(&[][..], |state| &state.objects);
    objects
        .iter()
        .map(|object| &object.payload)
        .find(|load| (load.load_base..load.load_base + load.load_size).contains(&address))
        .map_or((0, address), |load| {
            (load.code_object_id, address - load.load_base)
        })
}

/// Id, lowest address and size of the code objects that are loaded for the agent of a handle.
pub(crate) fn loaded_for(agent: u64) -> Vec<(u64, u64, u64)> {
    let state = STATE.lock().unwrap_or_else(|e| e.into_inner());
    let objects = state.as_ref().map_or(&[][..], |state| &state.objects);
    let loads = objects.iter().map(|object| &object.payload);
    loads
        .filter(|load| load.hsa_agent.handle == agent)
        .map(place)
        .collect()
}

fn place(load: &LoadPayload) -> (u64, u64, u64) {
    (load.code_object_id, load.load_base, load.load_size)
}

/// The function that the hook of `__hipRegisterFunction` replaced.
static NEXT_REGISTER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

type RegisterFn = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    *const c_char,
    *const c_char,
    u32,
    *const Dim3,
    *const Dim3,
    *const Dim3,
    *const Dim3,
    *const c_int,
);

/// Takes host stubs from the compiler's table: `slot` is that of `__hipRegisterFunction`. The SDK wraps traced calls
/// around what the slot held before this hook, so that stubs stay unknown where that call is traced.
pub(crate) fn watch_stubs(slot: &Slot) {
    register::replace(slot, register_function as *const (), &NEXT_REGISTER);
}

unsafe extern "C" fn register_function(
    modules: *mut c_void,
    stub: *const c_void,
    device_function: *const c_char,
    device_name: *const c_char,
    thread_limit: u32,
    thread: *const Dim3,
    block: *const Dim3,
    block_size: *const Dim3,
    grid_size: *const Dim3,
    warp: *const c_int,
) {
    // SAFETY: `watch_stubs` stored the function of this type that the slot held.
    let next = unsafe {
        core::mem::transmute::<*mut c_void, RegisterFn>(NEXT_REGISTER.load(Ordering::Acquire))
    };
    if !device_function.is_null() {
        // SAFETY: compilers pass text, and null or a readable value behind each of the other pointers.
        // The program may free its text after the call; tools keep the pointer.
        let (name, [thread, block, block_size, grid_size], workgroup_size) = unsafe {
            let name = keep_c(CStr::from_ptr(device_function));
            let dimensions = [thread, block, block_size, grid_size];
            let dimensions = dimensions.map(|at| at.as_ref().copied().unwrap_or_default());
            (name, dimensions, warp.as_ref().copied().unwrap_or(0))
        };
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        let stubs = &mut state.get_or_insert_default().stubs;
        // A kernel of a template may be registered by several modules; the first registration is kept.
        if !stubs.contains_key(name) {
            let payload = HostPayload {
                size: size_of::<HostPayload>() as u64,
                host_function: Address::from(stub as u64),
                modules: Address::from(modules as u64),
                device_function: name.as_ptr(),
                thread_limit,
                thread_ids: thread,
                block_ids: block,
                block_dims: block_size,
                grid_dims: grid_size,
                workgroup_size: workgroup_size as u64,
                ..HostPayload::default()
            };
            stubs.insert(name, payload);
        }
    }
    // SAFETY: the arguments are the caller's.
    unsafe {
        next(
            modules,
            stub,
            device_function,
            device_name,
            thread_limit,
            thread,
            block,
            block_size,
            grid_size,
            warp,
        );
    }
}

impl CodeObjectState {
    /// The host stub, with ids, of the kernel whose descriptor is called `symbol`.
    fn host(&mut self, symbol: &str, kernel: u64, object: u64) -> Option<HostPayload> {
        let name = CString::new(symbol.strip_suffix(".kd")?).ok()?;
        let stub = *self.stubs.get(name.as_c_str())?;
        self.last_stub += 1;
        Some(HostPayload {
            host_function_id: self.last_stub,
            kernel_id: kernel,
            code_object_id: object,
            ..stub
        })
    }
}

fn wanting(operation: Operation) -> u64 {
    let kind = CallbackKind::CODE_OBJECT.0 as usize;
    context::active() & context::want_callbacks(kind, operation.0 as usize)
}

fn report(
    mask: u64,
    operation: Operation,
    phase: Phase,
    payload: *mut core::ffi::c_void,
    user: &mut HashMap<usize, UserData>,
) {
    for index in context::bits(mask) {
        let record = CallbackRecord {
            thread_id: thread::current(),
            kind: CallbackKind::CODE_OBJECT,
            operation: operation.0 as i32,
            phase,
            payload,
            ..CallbackRecord::default()
        };
        context::get(index).call(record, user.entry(index).or_insert(UserData::from(0)));
    }
}

impl ReportedObject {
    /// Reports a code object to the contexts of the mask `objects`, then each kernel to those of `symbols`, followed by
    /// its host stub to those of `stubs`.
    fn report(&mut self, phase: Phase, objects: u64, symbols: u64, stubs: u64) {
        let at = ptr::from_mut(&mut self.payload).cast();
        report(objects, Operation::LOAD, phase, at, &mut self.user);
        for symbol in &mut self.symbols {
            let at = ptr::from_mut(&mut symbol.payload).cast();
            let operation = Operation::DEVICE_KERNEL_SYMBOL_REGISTER;
            report(symbols, operation, phase, at, &mut symbol.user);
            if let Some(host) = &mut symbol.host {
                let at = ptr::from_mut(host).cast();
                let operation = Operation::HOST_KERNEL_SYMBOL_REGISTER;
                report(stubs, operation, phase, at, &mut symbol.user);
            }
        }
    }
}

/// Reports a code object that was loaded, once; called on the thread that froze its executable, or later when a tool was
/// attached.
pub(crate) fn loaded(info: &CodeObjectInfo) {
    // The lock is not held while tools are called: they may load code themselves.
    let mut object = {
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        let state = state.get_or_insert_default();
        if !state.handles.insert((generation(), info.handle)) {
            return;
        }
        state.last_object += 1;
        let object_id = state.last_object;
        let (storage_type, storage) = match info.storage {
            CodeObjectStorage::File => (
                StorageType::FILE,
                Storage {
                    file: StorageFile {
                        storage_file: info.file,
                    },
                },
            ),
            CodeObjectStorage::Memory => (
                StorageType::MEMORY,
                Storage {
                    memory: StorageMemory {
                        memory_base: info.memory_base,
                        memory_size: info.memory_size,
                    },
                },
            ),
        };
        let symbols = info
            .kernels
            .iter()
            .map(|kernel| {
                // Kernels are known to dispatches from here on, before the tools have been told, so that a launch by a
                // callback has an id.
                state.last_kernel += 1;
                state
                    .kernels
                    .insert(kernel.kernel_object, state.last_kernel);
                let host = state.host(&kernel.name, state.last_kernel, object_id);
                Symbol {
                    payload: SymbolPayload {
                        size: size_of::<SymbolPayload>() as u64,
                        kernel_id: state.last_kernel,
                        code_object_id: object_id,
                        // Tools read names when they finalise, after the code object has gone.
                        kernel_name: keep(&kernel.name).as_ptr(),
                        kernel_object: kernel.kernel_object,
                        kernarg_segment_size: kernel.kernarg_size,
                        kernarg_segment_alignment: kernel.kernarg_align,
                        group_segment_size: kernel.group_size,
                        private_segment_size: kernel.private_size,
                        sgpr_count: kernel.sgpr_count,
                        arch_vgpr_count: kernel.arch_vgpr_count,
                        accum_vgpr_count: kernel.accum_vgpr_count,
                        kernel_code_entry_byte_offset: kernel.entry_offset,
                        kernel_address: Address::from(
                            kernel
                                .kernel_object
                                .wrapping_add_signed(kernel.entry_offset),
                        ),
                    },
                    host,
                    user: HashMap::new(),
                }
            })
            .collect();
        ReportedObject {
            handle: info.handle,
            payload: LoadPayload {
                size: size_of::<LoadPayload>() as u64,
                code_object_id: object_id,
                agent_id: agents::of_handle(info.agent),
                hsa_agent: hsa_agent_t { handle: info.agent },
                uri: keep(&info.uri).as_ptr(),
                load_base: info.load_base,
                load_size: info.load_size,
                load_delta: info.load_delta,
                storage_type,
                storage,
            },
            symbols,
            reported: 0,
            user: HashMap::new(),
        }
    };
    // Ids are given in any case, so that those of later objects do not depend on when a tool finalised.
    if state::finalized() == 0 {
        let objects = wanting(Operation::LOAD);
        let symbols = wanting(Operation::DEVICE_KERNEL_SYMBOL_REGISTER);
        let stubs = wanting(Operation::HOST_KERNEL_SYMBOL_REGISTER);
        // Which contexts will hear of the unload is fixed now: a context that starts later never heard of the load.
        object.reported = objects | symbols;
        object.report(Phase::LOAD, objects, symbols, stubs);
    }
    let (agent, place) = (info.agent, place(&object.payload));
    {
        // Only now: an unload on another thread must find an object that was reported completely.
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        state.get_or_insert_default().objects.push(object);
    }
    thread_trace::object_changed(agent, place, false);
}

fn unload(object: &mut ReportedObject) {
    let objects = object.reported & wanting(Operation::LOAD);
    let symbols = object.reported & wanting(Operation::DEVICE_KERNEL_SYMBOL_REGISTER);
    // Host stubs are not taken back.
    object.report(Phase::UNLOAD, objects, symbols, 0);
}

/// Reports a code object that is about to be unloaded.
pub(crate) fn unloaded(handle: u64) {
    let object = {
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        let Some(state) = state.as_mut() else { return };
        // An object that was loaded before the observer was set has no entry.
        let Some(at) = state.objects.iter().position(|o| o.handle == handle) else {
            return;
        };
        let object = state.objects.remove(at);
        state.handles.remove(&(generation(), handle));
        for symbol in &object.symbols {
            state.kernels.remove(&symbol.payload.kernel_object);
        }
        object
    };
    let agent = object.payload.hsa_agent.handle;
    // Traces are told while the object's addresses are still its own.
    thread_trace::object_changed(agent, place(&object.payload), true);
    if state::finalized() == 0 {
        unload(&mut { object });
    }
}

/// Reports all loaded code objects as unloaded when finalisation begins.
pub(crate) fn unload_all() {
    let objects = {
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        state
            .as_mut()
            .map(|s| core::mem::take(&mut s.objects))
            .unwrap_or_default()
    };
    for mut object in objects {
        unload(&mut object);
    }
}
