//! Code objects and their kernels.

use core::ptr;
use std::{collections::HashMap, ffi::CString, sync::Mutex};

use rocprofiler_sdk_sys::{
    hsa_agent_t, rocprofiler_address_t as Address, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t as SymbolPayload,
    rocprofiler_callback_tracing_code_object_load_data_t as LoadPayload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_code_object_operation_t as Operation,
    rocprofiler_code_object_storage_file_t as StorageFile,
    rocprofiler_code_object_storage_memory_t as StorageMemory,
    rocprofiler_code_object_storage_t as Storage,
    rocprofiler_code_object_storage_type_t as StorageType, rocprofiler_user_data_t as UserData,
};

use super::{agents, context, lifecycle, thread};
use crate::gpu::observe::{CodeObjectInfo, CodeObjectStorage};

/// A kernel that was told about.
struct Symbol {
    payload: SymbolPayload,
    /// What the payload's name points to.
    _name: CString,
    user: HashMap<usize, UserData>,
}

/// A code object that was told about.
struct Object {
    handle: u64,
    payload: LoadPayload,
    /// What the payload's URI points to.
    _uri: CString,
    symbols: Vec<Symbol>,
    /// Contexts that were told of the load, which are told of the unload.
    told: u64,
    user: HashMap<usize, UserData>,
}

// SAFETY: pointers in payloads lead to strings that are kept beside them and never changed.
unsafe impl Send for Object {}

#[derive(Default)]
struct State {
    objects: Vec<Object>,
    /// Kernel ids by kernel object address.
    kernels: HashMap<u64, u64>,
    last_object: u64,
    last_kernel: u64,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);

/// Id of the kernel with an object address; 0 when it is unknown.
pub(crate) fn kernel_id(kernel_object: u64) -> u64 {
    let state = STATE.lock().unwrap_or_else(|e| e.into_inner());
    state
        .as_ref()
        .and_then(|s| s.kernels.get(&kernel_object))
        .copied()
        .unwrap_or(0)
}

fn wanting(operation: Operation) -> u64 {
    let kind = CallbackKind::CODE_OBJECT.0 as usize;
    context::active() & context::want_callbacks(kind, operation.0 as usize)
}

fn tell(
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

impl Object {
    /// Reports the object, then its kernels, to contexts of both masks.
    fn report(&mut self, phase: Phase, objects: u64, symbols: u64) {
        let at = ptr::from_mut(&mut self.payload).cast();
        tell(objects, Operation::LOAD, phase, at, &mut self.user);
        for symbol in &mut self.symbols {
            let at = ptr::from_mut(&mut symbol.payload).cast();
            let operation = Operation::DEVICE_KERNEL_SYMBOL_REGISTER;
            tell(symbols, operation, phase, at, &mut symbol.user);
        }
    }
}

/// A code object was loaded; on the thread that froze its executable.
pub(crate) fn loaded(info: &CodeObjectInfo) {
    let mut object = {
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        let state = state.get_or_insert_default();
        state.last_object += 1;
        let object_id = state.last_object;
        let uri = CString::new(info.uri.as_str()).unwrap_or_default();
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
                state.last_kernel += 1;
                state
                    .kernels
                    .insert(kernel.kernel_object, state.last_kernel);
                let name = CString::new(kernel.name.as_str()).unwrap_or_default();
                Symbol {
                    payload: SymbolPayload {
                        size: size_of::<SymbolPayload>() as u64,
                        kernel_id: state.last_kernel,
                        code_object_id: object_id,
                        kernel_name: name.as_ptr(),
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
                    _name: name,
                    user: HashMap::new(),
                }
            })
            .collect();
        Object {
            handle: info.handle,
            payload: LoadPayload {
                size: size_of::<LoadPayload>() as u64,
                code_object_id: object_id,
                agent_id: agents::of_handle(info.agent),
                hsa_agent: hsa_agent_t { handle: info.agent },
                uri: uri.as_ptr(),
                load_base: info.load_base,
                load_size: info.load_size,
                load_delta: info.load_delta,
                storage_type,
                storage,
            },
            _uri: uri,
            symbols,
            told: 0,
            user: HashMap::new(),
        }
    };
    if lifecycle::finalized() == 0 {
        let objects = wanting(Operation::LOAD);
        let symbols = wanting(Operation::DEVICE_KERNEL_SYMBOL_REGISTER);
        object.told = objects | symbols;
        object.report(Phase::LOAD, objects, symbols);
    }
    let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
    state.get_or_insert_default().objects.push(object);
}

fn unload(object: &mut Object) {
    let objects = object.told & wanting(Operation::LOAD);
    let symbols = object.told & wanting(Operation::DEVICE_KERNEL_SYMBOL_REGISTER);
    object.report(Phase::UNLOAD, objects, symbols);
}

/// A code object is about to go.
pub(crate) fn unloaded(handle: u64) {
    let object = {
        let mut state = STATE.lock().unwrap_or_else(|e| e.into_inner());
        let Some(state) = state.as_mut() else { return };
        let Some(at) = state.objects.iter().position(|o| o.handle == handle) else {
            return;
        };
        let object = state.objects.remove(at);
        for symbol in &object.symbols {
            state.kernels.remove(&symbol.payload.kernel_object);
        }
        object
    };
    if lifecycle::finalized() == 0 {
        unload(&mut { object });
    }
}

/// Reports everything still loaded as unloaded: finalisation has begun.
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
