//! Fat binaries: registration by compiled programs before `main`, and loading for a device at first use.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, RwLock, RwLockWriteGuard};

use crate::hip::device::Device;
use crate::hip::error::{HipResult, api, code};
use crate::hip::memory;
use crate::hip::module::function::{Function, Module};
use crate::hip::runtime::{self, lock, read, write};
use crate::hip::types::{Dim3, Handle};
use crate::hsa::executable::{exiting, notice_exit};
use rpd_gfx::codeobj::{Target, bundle};

/// A kernel's host stub or a variable's host shadow.
#[derive(Debug, Clone)]
struct Symbol {
    binary: usize,
    name: String,
    /// Address of the host's pointer to the variable, for managed variables; `None` for others.
    managed: Option<usize>,
}

/// Code and symbols that programs have registered.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    next: usize,
    /// Bundles by handle.
    binaries: HashMap<usize, &'static [u8]>,
    functions: HashMap<usize, Symbol>,
    variables: HashMap<usize, Symbol>,
}

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(RwLock::default);

/// Locks the registry while the process forks, so that the child finds it in order.
pub(crate) fn lock_for_fork() -> RwLockWriteGuard<'static, Registry> {
    write(&REGISTRY)
}

/// A bundle's code object for a device, in memory that stays until the process ends.
pub(crate) fn extract(device: &Device, data: &'static [u8]) -> HipResult<&'static [u8]> {
    let refused = |error: rpd_gfx::codeobj::Error| {
        eprintln!("rpd-sim: {error}");
        match error {
            rpd_gfx::codeobj::Error::NoMatch { .. } => code::NO_BINARY_FOR_GPU,
            _ => code::INVALID_IMAGE,
        }
    };
    let target = Target::parse(&device.figures.target).map_err(refused)?;
    Ok(match bundle::pick(data, &target).map_err(refused)? {
        std::borrow::Cow::Borrowed(image) => image,
        std::borrow::Cow::Owned(image) => Box::leak(image.into_boxed_slice()),
    })
}

/// Loads a registered binary for a device unless it is loaded already.
fn load(device: &'static Device, binary: usize) -> HipResult<Arc<Module>> {
    let functions = &runtime::get()?.functions;
    let mut loaded = lock(&functions.binaries);
    if let Some(module) = loaded.get(&(binary, device.ordinal)) {
        return Ok(Arc::clone(module));
    }
    let bundle = *read(&REGISTRY)
        .binaries
        .get(&binary)
        .ok_or(code::INVALID_HANDLE)?;
    let image = extract(device, bundle)?;
    // SAFETY: `extract` answers memory that stays.
    let module = Arc::new(unsafe { Module::load(device, image)? });
    let managed: Vec<Symbol> = read(&REGISTRY)
        .variables
        .values()
        .filter(|symbol| symbol.binary == binary && symbol.managed.is_some())
        .cloned()
        .collect();
    for symbol in managed {
        // The device's variable holds the address of the managed memory.
        let (address, size) = module.variable(&symbol.name)?;
        if let (Some(host), true) = (symbol.managed, size >= 8) {
            // SAFETY: the program's pointer variable; device memory is reachable from here.
            unsafe { (address as *mut usize).write((host as *const usize).read()) };
        }
    }
    loaded.insert((binary, device.ordinal), Arc::clone(&module));
    // Before the handler that unregisters this binary, which was registered when the binary was.
    notice_exit();
    Ok(module)
}

/// The kernel behind a host stub, on the current device.
pub(crate) fn function(stub: *const c_void) -> HipResult<Arc<Function>> {
    let device = runtime::current()?;
    function_on(stub, device)
}

/// The kernel behind a host stub, on a device.
pub(crate) fn function_on(
    stub: *const c_void,
    device: &'static Device,
) -> HipResult<Arc<Function>> {
    let functions = &runtime::get()?.functions;
    let key = (stub as usize, device.ordinal);
    if let Some(function) = read(&functions.by_stub).get(&key) {
        return Ok(Arc::clone(function));
    }
    let symbol = read(&REGISTRY).functions.get(&(stub as usize)).cloned();
    let symbol = symbol.ok_or(code::INVALID_DEVICE_FUNCTION)?;
    let function = load(device, symbol.binary)?
        .function(&symbol.name)
        .map_err(|_| code::INVALID_DEVICE_FUNCTION)?;
    write(&functions.by_stub).insert(key, Arc::clone(&function));
    Ok(function)
}

/// Address and size of a registered variable on the current device.
pub(crate) fn variable(shadow: *const c_void) -> HipResult<(usize, usize)> {
    let device = runtime::current()?;
    let symbol = read(&REGISTRY).variables.get(&(shadow as usize)).cloned();
    let symbol = symbol.ok_or(code::INVALID_SYMBOL)?;
    let (address, size) = load(device, symbol.binary)?
        .variable(&symbol.name)
        .map_err(|_| code::INVALID_SYMBOL)?;
    if memory::find(address)?.is_none() {
        memory::note(
            address,
            size,
            memory::AllocationKind::Device,
            device.ordinal,
            0,
            address,
        )?;
    }
    Ok((address, size))
}

/// Name of the kernel behind a host stub.
pub(crate) fn function_name(stub: *const c_void) -> Option<String> {
    read(&REGISTRY)
        .functions
        .get(&(stub as usize))
        .map(|symbol| symbol.name.clone())
}

pub(crate) unsafe extern "C" fn __hipRegisterFatBinary(wrapper: *const c_void) -> *mut Handle {
    runtime::watch_forks();
    // SAFETY: compilers emit this call with a wrapper in the program's own image.
    let bundle = match unsafe { bundle::from_wrapper(wrapper.cast()) } {
        Ok(bundle) => bundle,
        Err(error) => {
            eprintln!("rpd-sim: fat binary refused: {error}");
            return std::ptr::null_mut();
        }
    };
    let mut registry = write(&REGISTRY);
    registry.next += 16;
    let handle = registry.next;
    registry.binaries.insert(handle, bundle);
    handle as *mut Handle
}

/// # Safety
/// `name` is null or a C string.
unsafe fn text(name: *const c_char) -> Option<String> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by contract.
    Some(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn __hipRegisterFunction(
    modules: *mut Handle,
    stub: *const c_void,
    _device_function: *mut c_char,
    device_name: *const c_char,
    _thread_limit: u32,
    _tid: *mut Dim3,
    _bid: *mut Dim3,
    _block: *mut Dim3,
    _grid: *mut Dim3,
    _warp: *mut c_int,
) {
    // SAFETY: compilers pass C strings.
    let Some(name) = (unsafe { text(device_name) }) else {
        return;
    };
    let symbol = Symbol {
        binary: modules as usize,
        name,
        managed: None,
    };
    write(&REGISTRY).functions.insert(stub as usize, symbol);
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn __hipRegisterVar(
    modules: *mut Handle,
    shadow: *mut c_void,
    _host_name: *mut c_char,
    device_name: *mut c_char,
    _extern: c_int,
    _size: usize,
    _constant: c_int,
    _global: c_int,
) {
    // SAFETY: compilers pass C strings.
    let Some(name) = (unsafe { text(device_name) }) else {
        return;
    };
    let symbol = Symbol {
        binary: modules as usize,
        name,
        managed: None,
    };
    write(&REGISTRY).variables.insert(shadow as usize, symbol);
}

pub(crate) unsafe extern "C" fn __hipRegisterManagedVar(
    modules: *mut c_void,
    pointer: *mut *mut c_void,
    init: *mut c_void,
    name: *const c_char,
    size: usize,
    _align: u32,
) {
    // SAFETY: compilers pass C strings.
    let Some(name) = (unsafe { text(name) }) else {
        return;
    };
    // SAFETY: the program's own pointer variable.
    if unsafe { crate::hip::memory::api::hipMallocManaged(pointer, size, 1) } != code::SUCCESS {
        eprintln!("rpd-sim: no memory for the managed variable {name}");
        return;
    }
    if !init.is_null() {
        // SAFETY: the initial value has the variable's size, the memory was just made.
        unsafe { std::ptr::copy_nonoverlapping(init.cast::<u8>(), (*pointer).cast::<u8>(), size) };
    }
    let symbol = Symbol {
        binary: modules as usize,
        name,
        managed: Some(pointer as usize),
    };
    let mut registry = write(&REGISTRY);
    // Programs name the variable by its pointer or by what it points to.
    // SAFETY: as above.
    registry
        .variables
        .insert(unsafe { *pointer } as usize, symbol.clone());
    registry.variables.insert(pointer as usize, symbol);
}

pub(crate) unsafe extern "C" fn __hipRegisterTexture(
    modules: *mut Handle,
    variable: *mut c_void,
    host_name: *mut c_char,
    device_name: *mut c_char,
    _kind: c_int,
    _normalised: c_int,
    external: c_int,
) {
    // SAFETY: the arguments have the same meaning.
    unsafe { __hipRegisterVar(modules, variable, host_name, device_name, external, 0, 0, 0) }
}

pub(crate) unsafe extern "C" fn __hipRegisterSurface(
    modules: *mut Handle,
    variable: *mut c_void,
    host_name: *mut c_char,
    device_name: *mut c_char,
    _kind: c_int,
    external: c_int,
) {
    // SAFETY: the arguments have the same meaning.
    unsafe { __hipRegisterVar(modules, variable, host_name, device_name, external, 0, 0, 0) }
}

pub(crate) unsafe extern "C" fn __hipUnregisterFatBinary(modules: *mut Handle) {
    let binary = modules as usize;
    if let Some(runtime) = runtime::existing() {
        // No kernel of it may run any more; tools get this as a separate call.
        // SAFETY: no arguments.
        unsafe { crate::api::call::hipDeviceSynchronize() };
        if exiting() {
            // Other threads go on until the end of the process and need what they launch.
            let loaded = lock(&runtime.functions.binaries);
            let gone: Vec<_> = loaded
                .iter()
                .filter(|(key, _)| key.0 == binary)
                .map(|(_, module)| Arc::clone(module))
                .collect();
            drop(loaded);
            gone.iter().for_each(|module| module.unload());
            return;
        }
        let mut gone = Vec::new();
        lock(&runtime.functions.binaries).retain(|key, module| {
            let keep = key.0 != binary;
            if !keep {
                gone.push(Arc::clone(module));
            }
            keep
        });
        let stubs: Vec<usize> = read(&REGISTRY)
            .functions
            .iter()
            .filter(|(_, symbol)| symbol.binary == binary)
            .map(|(&stub, _)| stub)
            .collect();
        write(&runtime.functions.by_stub).retain(|key, _| !stubs.contains(&key.0));
        for module in gone {
            module.unload();
        }
    }
    let mut registry = write(&REGISTRY);
    registry.binaries.remove(&binary);
    registry
        .functions
        .retain(|_, symbol| symbol.binary != binary);
    registry
        .variables
        .retain(|_, symbol| symbol.binary != binary);
}

pub(crate) unsafe extern "C" fn hipGetSymbolAddress(
    out: *mut *mut c_void,
    symbol: *const c_void,
) -> u32 {
    api(|| {
        let (address, _) = variable(symbol)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { crate::hip::error::put(out, address as *mut c_void) }
    })
}

pub(crate) unsafe extern "C" fn hipGetSymbolSize(out: *mut usize, symbol: *const c_void) -> u32 {
    api(|| {
        let (_, size) = variable(symbol)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { crate::hip::error::put(out, size) }
    })
}
