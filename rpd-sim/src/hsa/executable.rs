//! Executables: loading code objects for agents, freezing, unloading.

use core::ffi::{c_char, c_void};
use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::reader::{Reader, reader};
use super::state::{lock, state};
use super::support::{Outcome, agent, api, ensure, put, text};
use super::symbol::{Symbol, SymbolKind};
use super::types::{CONDITION_LT, Status, status};
use crate::api::call;
use crate::gpu::agents::{self, Agent, PoolKind};
use crate::gpu::exec::Kernel;
use crate::gpu::machine::machine;
use crate::gpu::memory::Use;
use crate::gpu::observe::{self, CodeObjectInfo, KernelInfo};
use rpd_gfx::codeobj::{CodeObject, Error, Image, KernelDescriptor};
use rpd_gfx::isa::{InstructionSet, Program};

const STATE_FROZEN: u32 = 1;
const ROUNDING_NEAR: u32 = 2;

/// A code object in the memory of an agent.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) agent: &'static Agent,
    pub(super) info: CodeObjectInfo,
    pub(super) reader: Arc<Reader>,
    image: Arc<Image>,
}

#[derive(Debug, Default)]
struct Contents {
    frozen: bool,
    objects: Vec<Arc<Loaded>>,
    symbols: Vec<Arc<Symbol>>,
    /// Indices in `symbols` by name; a map, because libraries of kernels have tens of thousands of symbols.
    by_name: HashMap<String, Vec<usize>>,
    variables: HashMap<(String, Option<usize>), u64>,
}

/// Whether the process has begun to exit.
static EXITING: AtomicBool = AtomicBool::new(false);

/// An `hsa_executable_t`: code objects that are loaded together, and variables that the program defines for them.
#[derive(Debug)]
pub(crate) struct Executable {
    pub(super) handle: u64,
    profile: u32,
    rounding: u32,
    contents: Mutex<Contents>,
}

impl Executable {
    /// Code objects of the executable in the order of loading.
    pub(super) fn objects(&self) -> Vec<Arc<Loaded>> {
        lock(&self.contents).objects.clone()
    }

    /// Symbols of the executable in the order of loading.
    pub(super) fn symbols(&self) -> Vec<Arc<Symbol>> {
        lock(&self.contents).symbols.clone()
    }

    /// The first symbol of a name that belongs to an agent.
    pub(super) fn symbol(&self, name: &str, agent: &Agent) -> Option<Arc<Symbol>> {
        let contents = lock(&self.contents);
        let places = contents.by_name.get(name)?;
        let mut symbols = places.iter().map(|&place| &contents.symbols[place]);
        symbols
            .find(|symbol| symbol.agent.index == agent.index)
            .cloned()
    }

    /// Reports the code objects as unloaded and frees them. While the process exits they stay in memory: see
    /// [`exiting`].
    fn unload(&self) {
        let contents = std::mem::take(&mut *lock(&self.contents));
        let observer = observe::get().filter(|_| contents.frozen);
        let machine = machine();
        {
            let mut symbols = lock(&state().symbols);
            for symbol in &contents.symbols {
                symbols.remove(&symbol.handle);
            }
        }
        for object in contents.objects.iter().rev() {
            if let Some(observer) = observer {
                observer.code_object_unloaded(&object.info);
            }
            if exiting() {
                continue;
            }
            for kernel in &object.info.kernels {
                machine.kernels.remove(kernel.kernel_object);
            }
            machine
                .memory
                .free(object.image.base() as usize, Use::CodeObject);
            if let Some(pool) = agents::pool_of(object.agent.index, PoolKind::DeviceCoarse) {
                machine.memory.unaccount(pool, object.image.size() as usize);
            }
        }
    }
}

/// Address and size of the writable variables of the code that is loaded on an agent.
pub(crate) fn writable_variables(agent: usize) -> Vec<(usize, usize)> {
    let executables: Vec<_> = lock(&state().executables).values().cloned().collect();
    let symbols = executables.iter().flat_map(|one| one.symbols());
    let of_agent = symbols.filter(|symbol| symbol.agent.index == agent);
    of_agent
        .filter_map(|symbol| match symbol.kind {
            SymbolKind::Variable {
                size,
                is_writable: true,
            } => Some((symbol.address as usize, size as usize)),
            SymbolKind::Variable { .. } | SymbolKind::Kernel { .. } => None,
        })
        .collect()
}

/// Whether the process has begun to exit. Its other threads run until its very end and may launch the kernels that they
/// have: code objects that are unloaded from then on are reported as unloaded, but stay in memory.
pub(crate) fn exiting() -> bool {
    EXITING.load(Ordering::Acquire)
}

/// Sets [`exiting`] before the exit handlers run that are registered by now: handlers run in reverse order.
pub(crate) fn notice_exit() {
    extern "C" fn on_exit() {
        EXITING.store(true, Ordering::Release);
    }
    // SAFETY: the handler is a function of this library and touches only one flag. A failure (no memory) leaves the exit
    // unnoticed.
    unsafe { libc::atexit(on_exit) };
}

/// The executable of a handle; `ERROR_INVALID_EXECUTABLE` when there is none.
pub(super) fn executable(handle: u64) -> Result<Arc<Executable>, Status> {
    let executables = lock(&state().executables);
    let executable = executables.get(&handle).cloned();
    executable.ok_or(status::ERROR_INVALID_EXECUTABLE)
}

/// All executables in the order of creation.
pub(super) fn executables() -> Vec<Arc<Executable>> {
    lock(&state().executables).values().cloned().collect()
}

/// Code objects of the executables that are frozen.
fn loaded_code() -> Vec<CodeObjectInfo> {
    let of_executable = |executable: Arc<Executable>| {
        let contents = lock(&executable.contents);
        let objects = contents.objects.iter().filter(|_| contents.frozen);
        objects
            .map(|object| object.info.clone())
            .collect::<Vec<_>>()
    };
    executables().into_iter().flat_map(of_executable).collect()
}

/// Unloads all executables, the latest first.
pub(super) fn unload_all() {
    let all = std::mem::take(&mut *lock(&state().executables));
    all.values()
        .rev()
        .for_each(|executable| executable.unload());
}

fn create(profile: u32, rounding: u32, frozen: bool, result: *mut u64) -> Outcome {
    let valid = !result.is_null() && profile <= 1 && rounding <= 2;
    ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
    let handle = state().handle();
    let executable = Executable {
        handle,
        profile,
        rounding,
        contents: Mutex::new(Contents {
            frozen,
            ..Contents::default()
        }),
    };
    lock(&state().executables).insert(handle, Arc::new(executable));
    // SAFETY: the program's pointer is writable.
    unsafe { put(result, handle) }
}

/// Makes an executable in a state.
pub(crate) unsafe extern "C" fn hsa_executable_create(
    profile: u32,
    executable_state: u32,
    _options: *const c_char,
    result: *mut u64,
) -> Status {
    api(|| {
        ensure(
            executable_state <= STATE_FROZEN,
            status::ERROR_INVALID_ARGUMENT,
        )?;
        create(
            profile,
            ROUNDING_NEAR,
            executable_state == STATE_FROZEN,
            result,
        )
    })
}

/// Makes an empty executable.
pub(crate) unsafe extern "C" fn hsa_executable_create_alt(
    profile: u32,
    default_float_rounding_mode: u32,
    _options: *const c_char,
    result: *mut u64,
) -> Status {
    api(|| create(profile, default_float_rounding_mode, false, result))
}

/// Unloads the code objects of an executable and makes its handle invalid.
pub(crate) unsafe extern "C" fn hsa_executable_destroy(handle: u64) -> Status {
    api(|| {
        let executable = lock(&state().executables).remove(&handle);
        executable.ok_or(status::ERROR_INVALID_EXECUTABLE)?.unload();
        Ok(())
    })
}

/// Loads the code object of a reader into the memory of an agent.
pub(crate) unsafe extern "C" fn hsa_executable_load_agent_code_object(
    handle: u64,
    agent_handle: u64,
    code_object_reader: u64,
    _options: *const c_char,
    loaded_code_object: *mut u64,
) -> Status {
    api(|| {
        let executable = executable(handle)?;
        let agent = agent(agent_handle)?;
        let reader = reader(code_object_reader)?;
        ensure(agent.is_gpu(), status::ERROR_INVALID_AGENT)?;
        let loaded = load(&executable, agent, reader)?;
        if loaded_code_object.is_null() {
            return Ok(());
        }
        // SAFETY: the program's pointer is writable.
        unsafe { put(loaded_code_object, loaded) }
    })
}

fn refuse(reader: &Reader, error: &Error) -> Status {
    eprintln!("rpd-sim: code object {}: {error}", reader.uri);
    match error {
        Error::Undefined(_) => status::ERROR_VARIABLE_UNDEFINED,
        Error::Allocation { .. } => status::ERROR_OUT_OF_RESOURCES,
        _ => status::ERROR_INVALID_CODE_OBJECT,
    }
}

fn load(
    executable: &Executable,
    agent: &'static Agent,
    reader: Arc<Reader>,
) -> Result<u64, Status> {
    // Held to the end: two threads may load into one executable, and their symbols must not mix.
    let mut contents = lock(&executable.contents);
    ensure(!contents.frozen, status::ERROR_FROZEN_EXECUTABLE)?;
    let refused = |error| refuse(&reader, &error);
    let object = CodeObject::parse(&reader.bytes).map_err(refused)?;
    let target = agents::device().target();
    // Code for other devices, or with other features, could be decoded and would compute something else.
    if !object.target().runs_on(&target) {
        eprintln!(
            "rpd-sim: code object {}: made for {}, the agent is {target}",
            reader.uri,
            object.target(),
        );
        return Err(status::ERROR_INCOMPATIBLE_ARGUMENTS);
    }
    // Variables for one agent take precedence over those for all.
    let variables = &contents.variables;
    let image = Image::load(&object, |name| {
        let own = variables.get(&(name.to_owned(), Some(agent.index)));
        own.or_else(|| variables.get(&(name.to_owned(), None)))
            .copied()
    });
    let image = Arc::new(image.map_err(refused)?);
    let (symbols, kernels) = describe(&object, &image, agent, &reader)?;
    let pool = agents::pool_of(agent.index, PoolKind::DeviceCoarse).ok_or(status::ERROR)?;
    let memory = &machine().memory;
    let bytes = image.size() as usize;
    // The image is memory of the device that programs cannot allocate any more.
    memory
        .account(pool, bytes)
        .map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
    // Kernels can be found by packets from here on, so that this comes after all checks that can fail.
    insert_kernels(&image, &reader, &kernels).inspect_err(|_| memory.unaccount(pool, bytes))?;
    let access = agent.bit() | agents::cpu_agent().bit();
    // The image was mapped by the loader; the registry only has to know it for access checks.
    memory.adopt(
        pool,
        image.base() as usize,
        image.size() as usize,
        Use::CodeObject,
        access,
    );
    let handle = state().handle();
    let in_memory = reader.file < 0;
    let info = CodeObjectInfo {
        handle,
        agent: agent.handle(),
        uri: reader.uri.clone(),
        storage: reader.storage,
        memory_base: reader.memory_base,
        // For files the URI has the size; tools read it from there.
        memory_size: if in_memory {
            reader.bytes.len() as u64
        } else {
            0
        },
        file: reader.file,
        load_base: image.base(),
        load_size: span(&object),
        load_delta: image.delta() as i64,
        kernels: kernels.into_iter().map(|(info, _)| info).collect(),
    };
    {
        // Handles are known before the executable lists them: programs may use one as soon as they see it.
        let mut known = lock(&state().symbols);
        for symbol in &symbols {
            known.insert(symbol.handle, Arc::clone(symbol));
        }
    }
    for symbol in symbols {
        let place = contents.symbols.len();
        let name = symbol.name.clone();
        contents.by_name.entry(name).or_default().push(place);
        contents.symbols.push(symbol);
    }
    contents.objects.push(Arc::new(Loaded {
        agent,
        info,
        reader,
        image,
    }));
    Ok(handle)
}

/// Bytes from the lowest to the highest address of the segments.
fn span(object: &CodeObject) -> u64 {
    // Segments are in no particular order in the file.
    let first = object.segments().iter().map(|s| s.address).min();
    let last = object
        .segments()
        .iter()
        .map(|s| s.address + s.memory_size)
        .max();
    last.unwrap_or(0) - first.unwrap_or(0)
}

type Described = (Vec<Arc<Symbol>>, Vec<(KernelInfo, KernelDescriptor)>);

fn describe(
    object: &CodeObject,
    image: &Image,
    agent: &'static Agent,
    reader: &Reader,
) -> Result<Described, Status> {
    let mut symbols = Vec::new();
    let mut kernels = Vec::new();
    let mut symbol = |name: &str, address, kind| {
        symbols.push(Arc::new(Symbol {
            handle: state().handle(),
            name: name.to_owned(),
            agent,
            address,
            kind,
        }));
    };
    // The real loader's symbol table lists the latest first, and kernel ids follow from its order.
    for kernel in object.kernels().iter().rev() {
        let found = image.descriptor(object, &kernel.symbol);
        let (address, descriptor) = found.map_err(|error| refuse(reader, &error))?;
        let kind = SymbolKind::Kernel {
            kernarg_size: kernel.kernarg_segment_size,
            kernarg_align: kernel.kernarg_segment_align,
            group_size: kernel.group_segment_fixed_size,
            private_size: kernel.private_segment_fixed_size,
            dynamic_stack: kernel.uses_dynamic_stack,
        };
        symbol(&kernel.symbol, address, kind);
        // Registers are what the descriptor allocates, as the profiling SDK computes them.
        let vgprs = descriptor.vgprs();
        let arch_vgprs = descriptor.accum_offset().min(vgprs);
        let info = KernelInfo {
            name: kernel.symbol.clone(),
            kernel_object: address,
            kernarg_size: kernel.kernarg_segment_size,
            kernarg_align: kernel.kernarg_segment_align,
            group_size: kernel.group_segment_fixed_size,
            private_size: kernel.private_segment_fixed_size,
            sgpr_count: descriptor.sgprs(),
            arch_vgpr_count: arch_vgprs,
            accum_vgpr_count: vgprs - arch_vgprs,
            entry_offset: descriptor.entry_offset,
        };
        kernels.push((info, descriptor));
    }
    for variable in object.variables() {
        if let Some(address) = image.address_of(object, &variable.name) {
            let kind = SymbolKind::Variable {
                size: variable.size as u32,
                is_writable: object.is_writable(variable),
            };
            symbol(&variable.name, address, kind);
        }
    }
    Ok((symbols, kernels))
}

fn insert_kernels(
    image: &Arc<Image>,
    reader: &Reader,
    kernels: &[(KernelInfo, KernelDescriptor)],
) -> Outcome {
    // Several ranges become one program: jumps between them are then possible, and gaps are never executed.
    let start = image.code().iter().map(|range| range.0).min();
    let end = image.code().iter().map(|range| range.0 + range.1).max();
    let Some((start, end)) = start.zip(end) else {
        return ensure(kernels.is_empty(), status::ERROR_INVALID_CODE_OBJECT);
    };
    let set =
        InstructionSet::from_processor(agents::device().name).ok_or(status::ERROR_INVALID_ISA)?;
    // SAFETY: the range lies in the image, which every kernel keeps mapped; code is not written once loaded.
    let program = Arc::new(unsafe { Program::new(start, end - start, set) });
    for (info, descriptor) in kernels {
        let name = info.name.strip_suffix(".kd").unwrap_or(&info.name);
        let kernel = Kernel {
            name: name.to_owned(),
            program: Arc::clone(&program),
            descriptor: *descriptor,
            image: Arc::clone(image),
            file: Arc::clone(&reader.bytes),
        };
        machine().kernels.insert(info.kernel_object, kernel);
    }
    Ok(())
}

/// Makes an executable usable; its code objects are reported as loaded.
pub(crate) unsafe extern "C" fn hsa_executable_freeze(
    handle: u64,
    _options: *const c_char,
) -> Status {
    api(|| {
        let executable = executable(handle)?;
        observe::list_code_with(loaded_code);
        let objects = {
            let mut contents = lock(&executable.contents);
            ensure(!contents.frozen, status::ERROR_FROZEN_EXECUTABLE)?;
            contents.frozen = true;
            contents.objects.clone()
        };
        wait_for_copy()?;
        if let Some(observer) = observe::get() {
            for object in objects {
                observer.code_object_loaded(&object.info);
            }
        }
        Ok(())
    })
}

/// Creates a signal and waits for it, as the real runtime does when it copies code to the device: tools see these
/// calls. Nothing is copied, because simulated devices execute the code in place.
fn wait_for_copy() -> Result<(), Status> {
    let mut signal = 0u64;
    let made = ptr::from_mut(&mut signal).cast();
    // SAFETY: the place is writable, and nothing else has the signal.
    unsafe {
        ok(call::hsa_signal_create(0, 0, ptr::null_mut(), made))?;
        call::hsa_signal_wait_scacquire(signal, CONDITION_LT, 1, u64::MAX, 0);
        ok(call::hsa_signal_destroy(signal))
    }
}

fn ok(status: Status) -> Result<(), Status> {
    if status == status::SUCCESS {
        Ok(())
    } else {
        Err(status)
    }
}

/// Writes the value of an `hsa_executable_info_t`: profile, state or rounding mode.
pub(crate) unsafe extern "C" fn hsa_executable_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let executable = executable(handle)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                1 => put(value, executable.profile),
                2 => put(value, u32::from(lock(&executable.contents).frozen)),
                3 => put(value, executable.rounding),
                _ => Err(status::ERROR_INVALID_ARGUMENT),
            }
        }
    })
}

unsafe fn define(
    handle: u64,
    agent: Option<usize>,
    name: *const c_char,
    address: *mut c_void,
) -> Outcome {
    let executable = executable(handle)?;
    // SAFETY: the program's string is ended by a zero.
    let name = unsafe { text(name) }.ok_or(status::ERROR_INVALID_ARGUMENT)?;
    ensure(!address.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    let mut contents = lock(&executable.contents);
    ensure(!contents.frozen, status::ERROR_FROZEN_EXECUTABLE)?;
    let key = (name.to_owned(), agent);
    let known = contents.variables.contains_key(&key);
    ensure(!known, status::ERROR_VARIABLE_ALREADY_DEFINED)?;
    contents.variables.insert(key, address as u64);
    Ok(())
}

/// Defines the address, for all agents, of a variable that code objects leave undefined.
pub(crate) unsafe extern "C" fn hsa_executable_global_variable_define(
    handle: u64,
    variable_name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the same promises.
    api(|| unsafe { define(handle, None, variable_name, address) })
}

/// Defines the address, for one agent, of a variable that code objects leave undefined.
pub(crate) unsafe extern "C" fn hsa_executable_agent_global_variable_define(
    handle: u64,
    agent_handle: u64,
    variable_name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the same promises.
    api(|| unsafe {
        define(
            handle,
            Some(agent(agent_handle)?.index),
            variable_name,
            address,
        )
    })
}

/// Defines the address, for one agent, of a read-only variable that code objects leave undefined.
pub(crate) unsafe extern "C" fn hsa_executable_readonly_variable_define(
    handle: u64,
    agent_handle: u64,
    variable_name: *const c_char,
    address: *mut c_void,
) -> Status {
    // SAFETY: the same promises.
    api(|| unsafe {
        define(
            handle,
            Some(agent(agent_handle)?.index),
            variable_name,
            address,
        )
    })
}

/// Reports an executable as valid: invalid code objects are refused when they are loaded.
pub(crate) unsafe extern "C" fn hsa_executable_validate(handle: u64, result: *mut u32) -> Status {
    api(|| {
        executable(handle)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(result, 0u32) }
    })
}

/// Reports an executable as valid: invalid code objects are refused when they are loaded.
pub(crate) unsafe extern "C" fn hsa_executable_validate_alt(
    handle: u64,
    _options: *const c_char,
    result: *mut u32,
) -> Status {
    api(|| {
        executable(handle)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(result, 0u32) }
    })
}
