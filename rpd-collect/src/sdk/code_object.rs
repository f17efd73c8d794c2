//! Code objects, kernel symbols and host functions.

use std::ffi::c_void;

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t,
    rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t,
    rocprofiler_callback_tracing_code_object_load_data_t, rocprofiler_code_object_storage_type_t,
};
use rpd_spool::format::{CodeObject, HostFunction, KernelSymbol};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::payload::sized;
use super::setup::Setup;
use super::trace::{Phase, Record, Tracer};
use super::{counters, thread_trace};
use crate::captured;
use crate::code_bytes::with_bytes;
use crate::recording::guard::Service;
use crate::recording::text::text;
use crate::recording::{capture, code, meta};

static SERVICE: Service = Service::new("code objects");

/// Numbers of the operations, and the extent of the recording.
struct Operations {
    /// Whether the bytes of loaded code objects are recorded.
    keeps_code: bool,
    load: Option<i32>,
    kernel: Option<i32>,
    host: Option<i32>,
}

pub(super) fn configure(setup: &Setup<'_>) {
    if let Some(kind) = setup.callback_kind("CODE_OBJECT") {
        let operations = Operations {
            keeps_code: setup.options.keeps_code(),
            load: kind.operation("CODE_OBJECT_LOAD"),
            kernel: kind.operation("CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER"),
            host: kind.operation("CODE_OBJECT_HOST_KERNEL_SYMBOL_REGISTER"),
        };
        setup.trace_always("code objects", kind, &[], operations);
    }
}

impl Tracer for Operations {
    const SERVICE: &'static Service = &SERVICE;

    fn record(&self, record: &Record, _slot: &mut u64) {
        let operation = Some(record.operation);
        let loading = record.phase == Phase::LOAD;
        if operation == self.load {
            code_object(record.payload, loading, self.keeps_code);
        } else if loading && operation == self.kernel {
            kernel_symbol(record.payload);
        } else if loading && operation == self.host {
            host_function(record.payload);
        }
    }
}

fn code_object(payload: *const c_void, loading: bool, keeps_code: bool) {
    type Payload = rocprofiler_callback_tracing_code_object_load_data_t;
    // SAFETY: the payload of this operation, within its callback.
    let Some(payload) = (unsafe { sized::<Payload>(payload) }) else {
        return;
    };
    // SAFETY: valid during the callback.
    let uri = unsafe { text(payload.uri) };
    let memory = match payload.storage_type {
        // SAFETY: the storage type says that this member is valid.
        rocprofiler_code_object_storage_type_t::MEMORY => unsafe { payload.storage.memory },
        _ => Default::default(),
    };
    let aux = if loading { 1 } else { 2 };
    let object = CodeObject {
        header: RecordKind::CodeObject.head(uri.len()).with_aux(aux),
        id: payload.code_object_id,
        agent: payload.agent_id.handle,
        load_base: payload.load_base,
        load_size: payload.load_size,
        load_delta: payload.load_delta,
        storage_type: payload.storage_type.0,
        uri_len: uri.len() as u32,
        memory_base: memory.memory_base,
        memory_size: memory.memory_size,
        size: payload.size,
        time: now(),
    };
    meta::write(&object, uri);
    if loading {
        // SAFETY: the image is there during the callback.
        unsafe {
            captured::code_loaded(&captured::Loaded {
                id: object.id,
                agent: object.agent,
                load: (object.load_base, object.load_size),
                memory: (object.memory_base, object.memory_size),
                uri,
            });
        }
    } else {
        capture::code_unloaded(object.id);
    }
    if loading && keeps_code {
        // SAFETY: the bytes of the image are there during the callback.
        let kept = unsafe {
            with_bytes(memory.memory_base, memory.memory_size, uri, |bytes| {
                code::loaded(payload.code_object_id, bytes)
            })
        };
        if kept != Ok(true) {
            let why = kept.err().unwrap_or_else(|| "there is no room".to_owned());
            meta::note(&format!(
                "the bytes of code object {} ({}) are not recorded, so its instructions are not shown: {why}",
                payload.code_object_id,
                String::from_utf8_lossy(uri),
            ));
        }
    }
}

fn kernel_symbol(payload: *const c_void) {
    type Payload = rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t;
    // SAFETY: the payload of this operation, within its callback.
    let Some(payload) = (unsafe { sized::<Payload>(payload) }) else {
        return;
    };
    // SAFETY: valid until the symbol is unloaded.
    let name = unsafe { text(payload.kernel_name) };
    let symbol = KernelSymbol {
        header: RecordKind::KernelSymbol.head(name.len()),
        id: payload.kernel_id,
        code_object: payload.code_object_id,
        kernel_object: payload.kernel_object,
        kernarg_size: payload.kernarg_segment_size,
        kernarg_align: payload.kernarg_segment_alignment,
        group_size: payload.group_segment_size,
        private_size: payload.private_segment_size,
        sgpr_count: payload.sgpr_count,
        arch_vgpr_count: payload.arch_vgpr_count,
        accum_vgpr_count: payload.accum_vgpr_count,
        name_len: name.len() as u32,
        entry_offset: payload.kernel_code_entry_byte_offset,
        kernel_address: payload.kernel_address.as_u64(),
        size: payload.size,
    };
    meta::write(&symbol, name);
    counters::kernel_registered(payload.kernel_id, name);
    thread_trace::kernel_registered(payload.kernel_id, name);
}

fn host_function(payload: *const c_void) {
    type Payload = rocprofiler_callback_tracing_code_object_host_kernel_symbol_register_data_t;
    // SAFETY: the payload of this operation, within its callback.
    let Some(payload) = (unsafe { sized::<Payload>(payload) }) else {
        return;
    };
    // SAFETY: valid during the callback.
    let name = unsafe { text(payload.device_function) };
    let function = HostFunction {
        header: RecordKind::HostFunction.head(name.len()),
        id: payload.host_function_id,
        kernel: payload.kernel_id,
        code_object: payload.code_object_id,
        address: payload.host_function.as_u64(),
        modules: payload.modules.as_u64(),
        name_len: name.len() as u32,
        thread_limit: payload.thread_limit,
    };
    meta::write(&function, name);
}
