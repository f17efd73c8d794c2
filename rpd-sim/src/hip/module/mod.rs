//! Modules that programs load, and queries about kernels.

pub(crate) mod fatbin;
pub(crate) mod function;
pub(crate) mod occupancy;

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, RwLock};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::memory;
use crate::hip::module::function::{Function, Module};
use crate::hip::runtime::{self, lock, read, write};
use crate::hip::types::{FuncAttributes, Handle};
use rpd_gfx::codeobj::bundle;

/// Kernels and modules of the process.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Registered binaries that are loaded, by binary and device.
    pub(crate) binaries: Mutex<HashMap<(usize, usize), Arc<Module>>>,
    /// Kernels by host stub and device.
    pub(crate) by_stub: RwLock<HashMap<(usize, usize), Arc<Function>>>,
    /// Modules by handle.
    modules: RwLock<HashMap<usize, Loaded>>,
    /// Kernels given out as `hipFunction_t`.
    handles: RwLock<HashMap<usize, Arc<Function>>>,
}

#[derive(Debug, Clone)]
struct Loaded {
    module: Arc<Module>,
    kernels: Arc<Mutex<Vec<usize>>>,
    managed: Arc<[ManagedVariable]>,
}

/// A managed variable of a module. The variable of the same name in the code object holds its address.
#[derive(Debug)]
struct ManagedVariable {
    name: String,
    address: usize,
    size: usize,
}

/// Ending of the name of the variable that has a managed variable's initial value.
const INITIAL: &str = ".managed";

/// Allocates the managed variables of a module and copies their initial values.
fn make_managed(module: &Module) -> HipResult<Vec<ManagedVariable>> {
    let mut made = Vec::new();
    for name in module
        .variable_names()
        .filter_map(|name| name.strip_suffix(INITIAL))
    {
        let Ok((pointer, _)) = module.variable(name) else {
            continue;
        };
        let (initial, size) = module.variable(&format!("{name}{INITIAL}"))?;
        let address = memory::malloc_host(size, memory::AllocationKind::Managed, 1)?;
        // SAFETY: the memory was made just now, and device memory is reachable from here.
        unsafe {
            std::ptr::copy_nonoverlapping(initial as *const u8, address as *mut u8, size);
            (pointer as *mut usize).write(address);
        }
        let name = name.to_owned();
        made.push(ManagedVariable {
            name,
            address,
            size,
        });
    }
    Ok(made)
}

fn module(handle: Handle) -> HipResult<Loaded> {
    let functions = &runtime::get()?.functions;
    read(&functions.modules)
        .get(&(handle as usize))
        .cloned()
        .ok_or(code::INVALID_HANDLE)
}

/// Names of the kernels of a module, in the order of its code object.
pub(crate) fn kernel_names(handle: Handle) -> HipResult<Vec<CString>> {
    let module = module(handle)?.module;
    let names = module.kernel_names();
    Ok(names.filter_map(|name| CString::new(name).ok()).collect())
}

/// The module that a kernel was taken from.
pub(crate) fn module_of(kernel: Handle) -> HipResult<Handle> {
    let functions = &runtime::get()?.functions;
    let has = |loaded: &Loaded| lock(&loaded.kernels).contains(&(kernel as usize));
    read(&functions.modules)
        .iter()
        .find(|(_, loaded)| has(loaded))
        .map(|(&handle, _)| handle as Handle)
        .ok_or(code::INVALID_HANDLE)
}

/// The kernel of a `hipFunction_t` or, as with the real runtime, of a host stub.
pub(crate) fn function(handle: Handle) -> HipResult<Arc<Function>> {
    let functions = &runtime::get()?.functions;
    if let Some(function) = read(&functions.handles).get(&(handle as usize)) {
        return Ok(Arc::clone(function));
    }
    if handle.is_null() {
        return Err(code::INVALID_HANDLE);
    }
    fatbin::function(handle).map_err(|_| code::INVALID_HANDLE)
}

fn give_out(function: Arc<Function>) -> HipResult<Handle> {
    let handle = Arc::as_ptr(&function).cast_mut().cast::<c_void>();
    write(&runtime::get()?.functions.handles).insert(handle as usize, function);
    Ok(handle)
}

fn load(out: *mut Handle, image: &'static [u8]) -> HipResult {
    let device = runtime::current()?;
    let image = fatbin::extract(device, image)?;
    // SAFETY: `extract` answers memory that stays.
    let module = Arc::new(unsafe { Module::load(device, image)? });
    let handle = Arc::as_ptr(&module).cast_mut().cast::<c_void>();
    let loaded = Loaded {
        managed: make_managed(&module)?.into(),
        module,
        kernels: Arc::default(),
    };
    write(&runtime::get()?.functions.modules).insert(handle as usize, loaded);
    // SAFETY: the caller's pointer, checked for null.
    unsafe { put(out, handle) }
}

/// Maps a whole file; the mapping stays, so that tools can name the file for its code objects.
fn map(path: &CStr) -> HipResult<&'static [u8]> {
    let path = std::path::Path::new(OsStr::from_bytes(path.to_bytes()));
    let file = File::open(path).map_err(|_| code::FILE_NOT_FOUND)?;
    let size = file.metadata().map_err(|_| code::FILE_NOT_FOUND)?.len() as usize;
    if size == 0 {
        return Err(code::INVALID_IMAGE);
    }
    // SAFETY: a new private mapping of an open file.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(code::OUT_OF_MEMORY);
    }
    // SAFETY: mapped just now, never unmapped.
    Ok(unsafe { std::slice::from_raw_parts(base.cast(), size) })
}

/// # Safety
/// As documented for the C function.
pub(crate) unsafe fn load_file(out: *mut Handle, path: *const c_char) -> HipResult {
    if out.is_null() || path.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's text.
    load(out, map(unsafe { CStr::from_ptr(path) })?)
}

pub(crate) unsafe extern "C" fn hipModuleLoad(out: *mut Handle, path: *const c_char) -> u32 {
    // SAFETY: as documented for the C function.
    api(|| unsafe { load_file(out, path) })
}

/// # Safety
/// `image` is null or points to a whole bundle or code object.
pub(crate) unsafe fn load_data(out: *mut Handle, image: *const c_void) -> HipResult {
    if out.is_null() || image.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: by contract. It is copied at once, the program may free it.
    let data = unsafe { bundle::from_pointer(image.cast()) }.map_err(|error| {
        eprintln!("rpd-sim: module refused: {error}");
        code::INVALID_IMAGE
    })?;
    load(out, Box::leak(data.to_vec().into_boxed_slice()))
}

pub(crate) unsafe extern "C" fn hipModuleLoadData(out: *mut Handle, image: *const c_void) -> u32 {
    // SAFETY: the caller's image.
    api(|| unsafe { load_data(out, image) })
}

pub(crate) unsafe extern "C" fn hipModuleLoadDataEx(
    out: *mut Handle,
    image: *const c_void,
    _count: u32,
    _options: *mut u32,
    _values: *mut *mut c_void,
) -> u32 {
    // Options steer a compiler, which code objects no longer need.
    // SAFETY: the caller's image.
    api(|| unsafe { load_data(out, image) })
}

pub(crate) fn unload(handle: Handle) -> HipResult {
    let loaded = module(handle)?;
    let runtime = runtime::get()?;
    for device in &runtime.devices {
        device.synchronize()?;
    }
    write(&runtime.functions.modules).remove(&(handle as usize));
    write(&runtime.images.references).retain(|_, own| own.module != handle as usize);
    let kernels = std::mem::take(&mut *lock(&loaded.kernels));
    let mut handles = write(&runtime.functions.handles);
    for kernel in kernels {
        handles.remove(&kernel);
    }
    drop(handles);
    for variable in loaded.managed.iter() {
        let address = variable.address as *mut c_void;
        memory::free(address, |kind| kind == memory::AllocationKind::Managed)?;
    }
    loaded.module.unload();
    Ok(())
}

pub(crate) unsafe extern "C" fn hipModuleUnload(handle: Handle) -> u32 {
    api(|| unload(handle))
}

/// # Safety
/// As documented for the C function.
pub(crate) unsafe fn get_function(
    out: *mut Handle,
    handle: Handle,
    name: *const c_char,
) -> HipResult {
    if out.is_null() || name.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let loaded = module(handle)?;
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let kernel = give_out(loaded.module.function(&name)?)?;
    lock(&loaded.kernels).push(kernel as usize);
    // SAFETY: the caller's pointer, not null.
    unsafe { put(out, kernel) }
}

pub(crate) unsafe extern "C" fn hipModuleGetFunction(
    out: *mut Handle,
    handle: Handle,
    name: *const c_char,
) -> u32 {
    // SAFETY: as documented for the C function.
    api(|| unsafe { get_function(out, handle, name) })
}

/// # Safety
/// As documented for the C function.
pub(crate) unsafe fn get_global(
    out: *mut *mut c_void,
    size: *mut usize,
    handle: Handle,
    name: *const c_char,
) -> HipResult {
    if name.is_null() || (out.is_null() && size.is_null()) {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: the caller's text.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let loaded = module(handle)?;
    let managed = loaded.managed.iter().find(|one| one.name == name);
    let (address, bytes) = match managed {
        Some(variable) => (variable.address, variable.size),
        None => loaded.module.variable(&name)?,
    };
    if memory::find(address)?.is_none() {
        let device = runtime::current()?.ordinal;
        memory::note(
            address,
            bytes,
            memory::AllocationKind::Device,
            device,
            0,
            address,
        )?;
    }
    if !out.is_null() {
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, address as *mut c_void)? };
    }
    if !size.is_null() {
        // SAFETY: the caller's pointer, not null.
        unsafe { put(size, bytes)? };
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipModuleGetGlobal(
    out: *mut *mut c_void,
    size: *mut usize,
    handle: Handle,
    name: *const c_char,
) -> u32 {
    // SAFETY: as documented for the C function.
    api(|| unsafe { get_global(out, size, handle, name) })
}

pub(crate) unsafe extern "C" fn hipGetFuncBySymbol(out: *mut Handle, symbol: *const c_void) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(out, give_out(fatbin::function(symbol)?)?) })
}

pub(crate) unsafe extern "C" fn hipFuncGetAttributes(
    out: *mut FuncAttributes,
    stub: *const c_void,
) -> u32 {
    api(|| {
        if out.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, fatbin::function(stub)?.attributes()) }
    })
}

/// # Safety
/// As documented for the C function.
pub(crate) unsafe fn get_attribute(value: *mut c_int, which: u32, handle: Handle) -> HipResult {
    let a = function(handle)?.attributes();
    let answer = match which {
        0 => a.max_threads_per_block,
        1 => a.shared_size_bytes as c_int,
        2 => a.const_size_bytes as c_int,
        3 => a.local_size_bytes as c_int,
        4 => a.num_regs,
        5 => a.ptx_version,
        6 => a.binary_version,
        7 => a.cache_mode_ca,
        8 => a.max_dynamic_shared_size_bytes,
        9 => a.preferred_shmem_carveout,
        _ => return Err(code::INVALID_VALUE),
    };
    // SAFETY: the caller's pointer, checked for null.
    unsafe { put(value, answer) }
}

pub(crate) unsafe extern "C" fn hipFuncGetAttribute(
    value: *mut c_int,
    which: u32,
    handle: Handle,
) -> u32 {
    // SAFETY: as documented for the C function.
    api(|| unsafe { get_attribute(value, which, handle) })
}

pub(crate) unsafe extern "C" fn hipFuncSetAttribute(
    stub: *const c_void,
    which: u32,
    value: c_int,
) -> u32 {
    const MAX_DYNAMIC_SHARED: u32 = 8;
    const CARVEOUT: u32 = 9;
    api(|| {
        let function = fatbin::function(stub)?;
        match which {
            MAX_DYNAMIC_SHARED => {
                let bytes = u32::try_from(value).map_err(|_| code::INVALID_VALUE)?;
                let lds_bytes = function.device.figures.layout.lds_bytes;
                if bytes.saturating_add(function.symbol.group_size) > lds_bytes {
                    return Err(code::INVALID_VALUE);
                }
                function.max_dynamic_shared.store(bytes, Ordering::Relaxed);
                Ok(())
            }
            CARVEOUT => Ok(()),
            _ => Err(code::INVALID_VALUE),
        }
    })
}

pub(crate) unsafe extern "C" fn hipFuncSetCacheConfig(stub: *const c_void, _config: u32) -> u32 {
    api(|| fatbin::function(stub).map(|_| ()))
}

pub(crate) unsafe extern "C" fn hipFuncSetSharedMemConfig(
    stub: *const c_void,
    _config: u32,
) -> u32 {
    api(|| fatbin::function(stub).map(|_| ()))
}

pub(crate) unsafe extern "C" fn hipKernelNameRef(handle: Handle) -> *const c_char {
    // The table keeps the kernel, and with it the text.
    function(handle).map_or(std::ptr::null(), |function| function.name.as_ptr())
}

pub(crate) unsafe extern "C" fn hipKernelNameRefByPtr(
    stub: *const c_void,
    _stream: Handle,
) -> *const c_char {
    if fatbin::function_name(stub).is_none() {
        return std::ptr::null();
    }
    fatbin::function(stub).map_or(std::ptr::null(), |function| function.name.as_ptr())
}
