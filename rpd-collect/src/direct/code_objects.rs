//! Code objects, their kernels, and the host functions that launch these.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use rpd_spool::format::{CodeObject, HostFunction, KernelSymbol};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::agents;
use super::hooks::{Hook, hook};
use super::hsa::{self, SUCCESS};
use crate::captured;
use crate::recording::capture;
use crate::recording::fork::ForkHook;
use crate::recording::guard::Service;
use crate::recording::meta;

static SERVICE: Service = Service::new("code objects");

/// Kernel ids by kernel object: a hash table that is read without a lock. A full one is replaced by a larger one, and
/// stays where it is for those who read it.
struct KernelIdTable {
    /// Kernel object and id; 0 where there is none. Their number is a power of two.
    slots: Box<[(AtomicU64, AtomicU64)]>,
}

static TABLE: AtomicPtr<KernelIdTable> = AtomicPtr::new(std::ptr::null_mut());

impl KernelIdTable {
    fn new(slots: usize) -> KernelIdTable {
        KernelIdTable {
            slots: (0..slots)
                .map(|_| (AtomicU64::new(0), AtomicU64::new(0)))
                .collect(),
        }
    }

    /// The slot of a kernel object, or the free one where it would be. A table is never full.
    #[inline]
    fn slot(&self, object: u64) -> &(AtomicU64, AtomicU64) {
        let mask = self.slots.len() - 1;
        // Kernel objects lie at multiples of 64 bytes.
        let mut index = ((object >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        loop {
            let slot = &self.slots[index];
            let found = slot.0.load(Ordering::Acquire);
            if found == object || found == 0 {
                return slot;
            }
            index = (index + 1) & mask;
        }
    }

    /// True when the kernel object was not there before.
    fn insert(&self, object: u64, id: u64) -> bool {
        let slot = self.slot(object);
        slot.1.store(id, Ordering::Relaxed);
        slot.0.swap(object, Ordering::AcqRel) == 0
    }
}

/// The id of the kernel with this kernel object; 0 when it is unknown.
#[inline]
pub(super) fn kernel(object: u64) -> u64 {
    // SAFETY: null or a leaked box.
    match unsafe { TABLE.load(Ordering::Acquire).as_ref() } {
        Some(table) if object != 0 => {
            let slot = table.slot(object);
            match slot.0.load(Ordering::Acquire) {
                0 => 0,
                _ => slot.1.load(Ordering::Relaxed),
            }
        }
        _ => 0,
    }
}

/// A code object that was loaded.
struct Loaded {
    /// Handle of the code object in the runtime.
    handle: u64,
    record: CodeObject,
    uri: Vec<u8>,
    /// Kernel objects of its kernels.
    kernels: Vec<u64>,
}

#[derive(Default)]
struct CodeObjectState {
    objects: Vec<Loaded>,
    /// Entries of the table in use.
    used: usize,
    last_object: u64,
    last_kernel: u64,
    last_stub: u64,
    /// Host functions by name of the kernel, as registered.
    stubs: HashMap<Box<[u8]>, Stub>,
}

/// A host function as the program registered it.
#[derive(Debug, Clone, Copy)]
struct Stub {
    address: u64,
    modules: u64,
    thread_limit: u32,
}

struct SharedCodeObjects(UnsafeCell<Option<CodeObjectState>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for SharedCodeObjects {}

static STATE: SharedCodeObjects = SharedCodeObjects(UnsafeCell::new(None));
/// Hook that makes a forked child forget loaded code objects. To be registered before the runtime loads anything.
pub(super) static FORK: ForkHook =
    ForkHook::new().in_child(|| FORKED.store(true, Ordering::Relaxed));
/// Whether this process is a forked child that has not forgotten its parent's code objects yet: its own runtime may
/// give the same handles out.
static FORKED: AtomicBool = AtomicBool::new(false);

fn with<T>(act: impl FnOnce(&mut CodeObjectState) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    let state = unsafe { &mut *STATE.0.get() }.get_or_insert_default();
    if FORKED.swap(false, Ordering::Relaxed) {
        state.objects.clear();
    }
    Some(act(state))
}

impl CodeObjectState {
    fn insert(&mut self, object: u64, id: u64) {
        // SAFETY: null or a leaked box.
        let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
        let is_new = match table {
            Some(table) if self.used * 2 < table.slots.len() => table.insert(object, id),
            _ => {
                let larger = KernelIdTable::new(table.map_or(256, |table| table.slots.len() * 2));
                for (object, id) in table.iter().flat_map(|table| &table.slots) {
                    let object = object.load(Ordering::Relaxed);
                    if object != 0 {
                        let _ = larger.insert(object, id.load(Ordering::Relaxed));
                    }
                }
                let is_new = larger.insert(object, id);
                TABLE.store(Box::leak(Box::new(larger)), Ordering::Release);
                is_new
            }
        };
        self.used += usize::from(is_new);
    }
}

/// Values of `hsa_ven_amd_loader_loaded_code_object_info_t`.
mod info {
    pub(super) const AGENT: u32 = 3;
    pub(super) const STORAGE_TYPE: u32 = 4;
    pub(super) const MEMORY_BASE: u32 = 5;
    pub(super) const MEMORY_SIZE: u32 = 6;
    pub(super) const LOAD_DELTA: u32 = 8;
    pub(super) const LOAD_BASE: u32 = 9;
    pub(super) const LOAD_SIZE: u32 = 10;
    pub(super) const URI_LENGTH: u32 = 11;
    pub(super) const URI: u32 = 12;
}

/// Values of `hsa_executable_symbol_info_t`.
mod symbol {
    pub(super) const TYPE: u32 = 0;
    pub(super) const NAME_LENGTH: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const KERNARG_SIZE: u32 = 11;
    pub(super) const KERNARG_ALIGN: u32 = 12;
    pub(super) const GROUP_SIZE: u32 = 13;
    pub(super) const PRIVATE_SIZE: u32 = 14;
    pub(super) const KERNEL_OBJECT: u32 = 22;
    /// Value `HSA_SYMBOL_KIND_KERNEL`.
    pub(super) const KERNEL: u32 = 1;
}

/// Code objects in memory, as the runtime's loader and the SDK number storage types.
const IN_MEMORY: u32 = 2;

unsafe extern "C" fn collect(_executable: u64, object: u64, into: *mut c_void) -> u32 {
    // SAFETY: `objects_of` passes a vector.
    unsafe { &mut *into.cast::<Vec<u64>>() }.push(object);
    SUCCESS
}

/// The code objects that an executable has loaded.
fn objects_of(executable: u64, loader: &hsa::Loader) -> Vec<u64> {
    let mut objects = Vec::new();
    if let Some(iterate) = loader.iterate {
        // SAFETY: callback and data belong together.
        unsafe { iterate(executable, collect, (&raw mut objects).cast()) };
    }
    objects
}

/// Begins anew, for another recording of a process that is attached to: numbers start again.
pub(super) fn forget() {
    with(|state| {
        state.objects.clear();
        state.last_object = 0;
        state.last_kernel = 0;
        state.last_stub = 0;
    });
}

/// Records the code objects that an executable, which the program has frozen, has loaded.
pub(super) fn loaded(executable: u64) {
    let Some(loader) = hsa::loader() else { return };
    for handle in objects_of(executable, &loader) {
        let known = with(|state| state.objects.iter().any(|object| object.handle == handle));
        if known == Some(false) {
            load(executable, handle, &loader);
        }
    }
}

fn load(executable: u64, handle: u64, loader: &hsa::Loader) {
    let Some(info) = loader.info else { return };
    let read = |attribute: u32| {
        let mut value = 0_u64;
        // SAFETY: no attribute that this is used for is larger.
        unsafe { info(handle, attribute, (&raw mut value).cast()) };
        value
    };
    let hsa_agent = read(info::AGENT);
    let Some(agent) = agents::known(hsa_agent) else {
        return;
    };
    let mut uri = vec![0_u8; read(info::URI_LENGTH) as u32 as usize];
    // SAFETY: the text has this length.
    unsafe { info(handle, info::URI, uri.as_mut_ptr().cast()) };
    let storage_type = read(info::STORAGE_TYPE) as u32;
    // Only an image in memory has these attributes.
    let of_memory = |attribute| match storage_type {
        IN_MEMORY => read(attribute),
        _ => 0,
    };
    let mut record = CodeObject {
        header: RecordKind::CodeObject.head(uri.len()).with_aux(1),
        id: 0,
        agent: agent.id,
        load_base: read(info::LOAD_BASE),
        load_size: read(info::LOAD_SIZE),
        load_delta: read(info::LOAD_DELTA).cast_signed(),
        storage_type,
        uri_len: uri.len() as u32,
        memory_base: of_memory(info::MEMORY_BASE),
        memory_size: of_memory(info::MEMORY_SIZE),
        size: OBJECT_SIZE,
        time: now(),
    };
    // The number is given under the lock and the record is written without it: writing takes the lock of the meta
    // stream.
    let Some(id) = with(|state| {
        state.last_object += 1;
        state.last_object
    }) else {
        return;
    };
    record.id = id;
    meta::write(&record, &uri);
    // SAFETY: the runtime has said where the image is, which it keeps while the executable is being frozen.
    unsafe {
        captured::code_loaded(&captured::Loaded {
            id,
            agent: record.agent,
            load: (record.load_base, record.load_size),
            memory: (record.memory_base, record.memory_size),
            uri: &uri,
        });
    }
    let symbols = hsa::symbols(executable, hsa_agent);
    let kernels = symbols
        .into_iter()
        .filter_map(|symbol| kernel_symbol(symbol, id, &record, &agent.name, loader))
        .collect();
    with(|state| {
        state.objects.push(Loaded {
            handle,
            record,
            uri,
            kernels,
        });
    });
}

/// Sizes of the SDK's payloads, which the records repeat.
const OBJECT_SIZE: u64 =
    size_of::<rocprofiler_sdk_sys::rocprofiler_callback_tracing_code_object_load_data_t>() as u64;
const SYMBOL_SIZE: u64 = size_of::<
    rocprofiler_sdk_sys::rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t,
>() as u64;

/// Records a symbol if it is a kernel of this code object. Returns its kernel object.
fn kernel_symbol(
    symbol: u64,
    code_object: u64,
    object: &CodeObject,
    agent: &str,
    loader: &hsa::Loader,
) -> Option<u64> {
    let number = |attribute: u32| {
        let mut value = 0_u32;
        // SAFETY: the attribute has this type.
        unsafe { hsa::symbol_info(symbol, attribute, &mut value) };
        value
    };
    if number(symbol::TYPE) != symbol::KERNEL {
        return None;
    }
    let mut kernel_object = 0_u64;
    let mut name = vec![0_u8; number(symbol::NAME_LENGTH) as usize];
    // SAFETY: the attributes have this type and this length.
    unsafe {
        hsa::symbol_info(symbol, symbol::KERNEL_OBJECT, &mut kernel_object);
        hsa::symbol_info(symbol, symbol::NAME, name.as_mut_slice());
    }
    // An executable may have loaded several code objects for the agent.
    let range = object.load_base..object.load_base + object.load_size;
    if !range.contains(&kernel_object) {
        return None;
    }
    let length = name.iter().position(|&byte| byte == 0);
    name.truncate(length.unwrap_or(name.len()));
    let descriptor = descriptor(kernel_object, loader);
    let entry_offset = descriptor.map_or(0, |descriptor| descriptor.entry_offset);
    let registers = descriptor.map_or([0; 3], |descriptor| descriptor.registers(agent));
    let (id, stub) = with(|state| {
        state.last_kernel += 1;
        let id = state.last_kernel;
        state.insert(kernel_object, id);
        // Host functions were registered by the kernel's name, without the suffix of its descriptor.
        let function = name.strip_suffix(b".kd").unwrap_or(&name);
        let stub = state.stubs.get(function).copied().map(|stub| {
            state.last_stub += 1;
            (state.last_stub, stub)
        });
        (id, stub)
    })?;
    let record = KernelSymbol {
        header: RecordKind::KernelSymbol.head(name.len()),
        id,
        code_object,
        kernel_object,
        kernarg_size: number(symbol::KERNARG_SIZE),
        kernarg_align: number(symbol::KERNARG_ALIGN),
        group_size: number(symbol::GROUP_SIZE),
        private_size: number(symbol::PRIVATE_SIZE),
        sgpr_count: registers[0],
        arch_vgpr_count: registers[1],
        accum_vgpr_count: registers[2],
        name_len: name.len() as u32,
        entry_offset,
        kernel_address: kernel_object.wrapping_add_signed(entry_offset),
        size: SYMBOL_SIZE,
    };
    meta::write(&record, &name);
    if let Some((stub_id, stub)) = stub {
        let function = name.strip_suffix(b".kd").unwrap_or(&name);
        let record = HostFunction {
            header: RecordKind::HostFunction.head(function.len()),
            id: stub_id,
            kernel: id,
            code_object,
            address: stub.address,
            modules: stub.modules,
            name_len: function.len() as u32,
            thread_limit: stub.thread_limit,
        };
        meta::write(&record, function);
    }
    Some(kernel_object)
}

/// A kernel descriptor of code object format 3 and later.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Descriptor {
    sizes: [u8; 16],
    entry_offset: i64,
    reserved: [u8; 20],
    rsrc3: u32,
    rsrc1: u32,
    rsrc2: u32,
    properties: u16,
    rest: [u8; 6],
}

fn descriptor(kernel_object: u64, loader: &hsa::Loader) -> Option<Descriptor> {
    let mut host: *const c_void = std::ptr::null();
    let query = loader.query_host_address?;
    // SAFETY: the pointer is valid for the call.
    let status = unsafe { query(kernel_object, &mut host) };
    let at = match status {
        SUCCESS if !host.is_null() => host,
        // The device's memory is visible to the host then.
        _ => kernel_object as *const c_void,
    };
    // SAFETY: a kernel object is the address of a descriptor.
    Some(unsafe { at.cast::<Descriptor>().read_unaligned() })
}

impl Descriptor {
    /// Scalar, vector and accumulation registers that a wave has, by the formulas of the LLVM documentation.
    fn registers(&self, agent: &str) -> [u32; 3] {
        let unified = agent == "gfx90a" || agent.starts_with("gfx94") || agent.starts_with("gfx95");
        let vector = (self.rsrc1 & 0x3f) + 1;
        let scalar = match agent.strip_prefix("gfx") {
            Some(version) if version.len() > 3 => 128,
            Some(_) => ((self.rsrc1 >> 6 & 0xf) / 2 + 1) * 16,
            None => 0,
        };
        if unified {
            let first = ((self.rsrc3 & 0x3f) + 1) * 4;
            return [scalar, first, (vector * 8).saturating_sub(first)];
        }
        let wave32 = self.properties >> 10 & 1 != 0;
        let vectors = vector * if wave32 { 8 } else { 4 };
        let accumulation = if agent == "gfx908" { vectors } else { 0 };
        [scalar, vectors, accumulation]
    }
}

/// Records that the code objects of an executable are unloaded, which the program destroys.
pub(super) fn unloaded(executable: u64) {
    let Some(loader) = hsa::loader() else { return };
    for handle in objects_of(executable, &loader) {
        let found = with(|state| {
            let index = state
                .objects
                .iter()
                .position(|object| object.handle == handle)?;
            Some(state.objects.swap_remove(index))
        });
        if let Some(object) = found.flatten() {
            unload(&object);
        }
    }
}

fn unload(object: &Loaded) {
    // SAFETY: null or a leaked box.
    if let Some(table) = unsafe { TABLE.load(Ordering::Acquire).as_ref() } {
        for kernel in &object.kernels {
            table.slot(*kernel).1.store(0, Ordering::Relaxed);
        }
    }
    let record = CodeObject {
        header: object.record.header.with_aux(2),
        time: now(),
        ..object.record
    };
    meta::write(&record, &object.uri);
    capture::code_unloaded(record.id);
}

/// Records at the end of recording that everything that is loaded counts as unloaded.
pub(super) fn end() {
    let objects = with(|state| std::mem::take(&mut state.objects));
    for object in objects.unwrap_or_default() {
        unload(&object);
    }
}

hook! {
    FREEZE: HSA_CORE_API::hsa_executable_freeze,
    fn executable_freeze(executable: u64, options: *const c_char) -> u32,
    |next| {
        let status = next(executable, options);
        if status == SUCCESS {
            SERVICE.on_event(|| loaded(executable));
        }
        status
    }
}

hook! {
    DESTROY: HSA_CORE_API::hsa_executable_destroy,
    fn executable_destroy(executable: u64) -> u32,
    |next| {
        SERVICE.on_event(|| unloaded(executable));
        next(executable)
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 2] = [&FREEZE, &DESTROY];

hook! {
    REGISTER: HIP_COMPILER_API::__hipRegisterFunction,
    fn register_function(
        modules: *mut c_void, stub: u64, device_function: *const c_char, device_name: *const c_char, limit: u32,
        thread: *mut c_void, block: *mut c_void, block_size: *mut c_void, grid_size: *mut c_void, warp: *mut c_void,
    ) -> (),
    |next| {
        // Also while nothing is recorded, but a later recording may need it.
        SERVICE.run(|| {
            if !device_function.is_null() {
                // SAFETY: compilers pass text.
                let name = unsafe { CStr::from_ptr(device_function) }.to_bytes();
                let stub = Stub {
                    address: stub,
                    modules: modules as u64,
                    thread_limit: limit,
                };
                with(|state| {
                    state.stubs.entry(name.into()).or_insert(stub);
                });
            }
        });
        next(
            modules, stub, device_function, device_name, limit, thread, block, block_size, grid_size, warp,
        );
    }
}

/// Hooks for the table of the HIP compiler.
pub(super) static COMPILER_HOOKS: [&Hook; 1] = [&REGISTER];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_id_table_finds_kernels_while_it_grows() {
        let mut state = CodeObjectState::default();
        for number in 1..2000_u64 {
            state.insert(number * 64, number);
        }
        assert!((1..2000).all(|number| kernel(number * 64) == number));
        assert_eq!((kernel(0), kernel(7 << 40)), (0, 0));
    }

    #[test]
    fn kernel_registers_are_computed_by_the_architectures_formula() {
        let descriptor = Descriptor {
            sizes: [0; 16],
            entry_offset: 0,
            reserved: [0; 20],
            rsrc3: 3,
            rsrc1: 3 | 4 << 6,
            rsrc2: 0,
            properties: 1 << 10,
            rest: [0; 6],
        };
        assert_eq!(descriptor.registers("gfx90a"), [48, 16, 16]);
        assert_eq!(descriptor.registers("gfx908"), [48, 32, 32]);
        assert_eq!(descriptor.registers("gfx1030"), [128, 32, 0]);
    }
}
