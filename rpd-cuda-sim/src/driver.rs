//! Functions of the driver.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use cupti_sys::callback::{ModuleData, ResourceData, domain, resource};

use crate::calls::{Two, driver};
use crate::device::{self, Action, Kernel, Stream, status};
use crate::{cupti, sampling};

/// Process that has initialised the driver; 0 before.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Numbers of functions.
mod function {
    pub(super) const INIT: u32 = 1;
    pub(super) const DEVICE_GET: u32 = 3;
    pub(super) const DEVICE_GET_COUNT: u32 = 4;
    pub(super) const CTX_SYNCHRONIZE: u32 = 17;
    pub(super) const MODULE_LOAD_DATA: u32 = 19;
    pub(super) const MODULE_GET_FUNCTION: u32 = 23;
    pub(super) const STREAM_CREATE: u32 = 124;
    pub(super) const STREAM_SYNCHRONIZE: u32 = 126;
    pub(super) const MEMSET_D32_ASYNC: u32 = 220;
    pub(super) const MEM_ALLOC: u32 = 243;
    pub(super) const MEM_FREE: u32 = 245;
    pub(super) const MEMCPY_H_TO_D_ASYNC: u32 = 277;
    pub(super) const MEMCPY_D_TO_H_ASYNC: u32 = 279;
    pub(super) const CTX_SET_CURRENT: u32 = 303;
    pub(super) const CTX_GET_CURRENT: u32 = 304;
    pub(super) const LAUNCH_KERNEL: u32 = 307;
    pub(super) const PRIMARY_CTX_RETAIN: u32 = 386;
    pub(super) const PRIMARY_CTX_RELEASE: u32 = 544;
}

/// Opens the library that `CUDA_INJECTION64_PATH` names, and has it begin.
fn inject() {
    let Some(path) = std::env::var_os("CUDA_INJECTION64_PATH") else {
        return;
    };
    let Ok(path) = CString::new(path.into_encoded_bytes()) else {
        return;
    };
    // SAFETY: the path and the name are text; the function has this type by CUDA's interface.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return;
        }
        let found = libc::dlsym(library, c"InitializeInjection".as_ptr());
        if !found.is_null() {
            // What it returns changes nothing.
            std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(found)();
        }
    }
}

/// Whether this process may use the driver.
fn is_ready() -> bool {
    OWNER.load(Ordering::Acquire) == std::process::id()
}

/// Initialises the driver; a status.
pub(crate) fn initialize() -> u32 {
    let own = std::process::id();
    match OWNER.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            inject();
            if cupti::wants(domain::RESOURCE, resource::INIT_FINISHED) {
                cupti::call(domain::RESOURCE, resource::INIT_FINISHED, std::ptr::null());
            }
            device::describe();
            context_callback(resource::CONTEXT_CREATED);
            load_module();
            status::SUCCESS
        }
        Err(owner) if owner == own => status::SUCCESS,
        // Forked from a process that has used it.
        Err(_) => status::NOT_INITIALIZED,
    }
}

/// Tells the tool about something of the only context.
fn resource_callback(id: u32, descriptor: *const c_void) {
    if !cupti::wants(domain::RESOURCE, id) {
        return;
    }
    let data = ResourceData {
        context: OWNER.as_ptr().cast::<c_void>(),
        stream: std::ptr::null_mut(),
        descriptor,
    };
    cupti::call(domain::RESOURCE, id, (&raw const data).cast());
}

fn context_callback(id: u32) {
    resource_callback(id, std::ptr::null());
}

/// Tells the tool about the module that has all kernels.
fn load_module() {
    let module = ModuleData {
        module: 1,
        length: sampling::IMAGE.len(),
        image: sampling::IMAGE.as_ptr().cast::<c_void>(),
    };
    resource_callback(resource::MODULE_LOADED, (&raw const module).cast());
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxRelease_v2(device: c_int) -> u32 {
    driver(function::PRIMARY_CTX_RELEASE, &device, || {
        device::synchronize();
        context_callback(resource::CONTEXT_DESTROY_STARTING);
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuInit(flags: c_uint) -> u32 {
    // The library is injected before the call can be observed.
    let initialized = initialize();
    driver(function::INIT, &flags, || initialized)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    driver(function::DEVICE_GET, &Two(device, ordinal), || {
        if !(0..device::DEVICES).contains(&ordinal) {
            return status::INVALID_VALUE;
        }
        // SAFETY: the caller's place for it.
        unsafe { device.write(ordinal) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDeviceGetCount(count: *mut c_int) -> u32 {
    driver(function::DEVICE_GET_COUNT, &count, || {
        // SAFETY: the caller's place for it.
        unsafe { count.write(device::DEVICES) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuDevicePrimaryCtxRetain(context: *mut *mut c_void, device: c_int) -> u32 {
    driver(function::PRIMARY_CTX_RETAIN, &Two(context, device), || {
        if !is_ready() {
            return status::NOT_INITIALIZED;
        }
        // SAFETY: the caller's place for it.
        unsafe { context.write(OWNER.as_ptr().cast::<c_void>()) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSetCurrent(context: *mut c_void) -> u32 {
    driver(function::CTX_SET_CURRENT, &context, || status::SUCCESS)
}

/// The runtime makes this call in most of its own.
pub(crate) fn ctx_get_current() -> u32 {
    let mut context: *mut c_void = std::ptr::null_mut();
    driver(function::CTX_GET_CURRENT, &(&raw mut context), || {
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuCtxSynchronize() -> u32 {
    driver(function::CTX_SYNCHRONIZE, &(), || {
        device::wait(4, u32::MAX);
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuModuleLoadData(module: *mut *const c_void, image: *const c_void) -> u32 {
    driver(
        function::MODULE_LOAD_DATA,
        &[module as usize, image as usize],
        || {
            // SAFETY: the caller's place for it.
            unsafe { module.write(image) };
            status::SUCCESS
        },
    )
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuModuleGetFunction(
    found: *mut usize,
    module: *const c_void,
    name: *const c_char,
) -> u32 {
    let parameters = [found as usize, module as usize, name as usize];
    driver(function::MODULE_GET_FUNCTION, &parameters, || {
        // SAFETY: the caller's text, and its place for the function.
        unsafe {
            match Kernel::from_name(CStr::from_ptr(name)) {
                Some(kernel) => {
                    found.write(kernel as usize + 1);
                    status::SUCCESS
                }
                None => status::NOT_FOUND,
            }
        }
    })
}

fn kernel(function: usize) -> Option<Kernel> {
    [Kernel::Scale, Kernel::Add, Kernel::Spin, Kernel::Empty]
        .into_iter()
        .find(|kernel| *kernel as usize + 1 == function)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemAlloc_v2(address: *mut usize, bytes: usize) -> u32 {
    driver(function::MEM_ALLOC, &[address as usize, bytes], || {
        if !is_ready() {
            return status::NOT_INITIALIZED;
        }
        let made = device::allocate(bytes);
        if made == 0 {
            return status::OUT_OF_MEMORY;
        }
        // SAFETY: the caller's place for it.
        unsafe { address.write(made) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemFree_v2(address: usize) -> u32 {
    driver(function::MEM_FREE, &address, || {
        if device::free(address) {
            status::SUCCESS
        } else {
            status::INVALID_VALUE
        }
    })
}

/// A copy as the driver makes it; `direction` as in records.
pub(crate) fn copy(
    direction: u8,
    to: usize,
    from: usize,
    bytes: usize,
    stream: *const Stream,
) -> u32 {
    let function = match direction {
        2 => function::MEMCPY_D_TO_H_ASYNC,
        _ => function::MEMCPY_H_TO_D_ASYNC,
    };
    driver(function, &[to, from, bytes, stream as usize], || {
        if !is_ready() {
            return status::NOT_INITIALIZED;
        }
        device::launch(stream, Action::Copy(direction, to, from, bytes));
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemcpyHtoDAsync_v2(
    to: usize,
    from: usize,
    bytes: usize,
    stream: *const Stream,
) -> u32 {
    copy(1, to, from, bytes, stream)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemcpyDtoHAsync_v2(
    to: usize,
    from: usize,
    bytes: usize,
    stream: *const Stream,
) -> u32 {
    copy(2, to, from, bytes, stream)
}

/// A fill as the driver makes it.
pub(crate) fn fill(address: usize, byte: u8, bytes: usize, stream: *const Stream) -> u32 {
    let parameters = [address, byte.into(), bytes / 4, stream as usize];
    driver(function::MEMSET_D32_ASYNC, &parameters, || {
        if !is_ready() {
            return status::NOT_INITIALIZED;
        }
        device::launch(stream, Action::Fill(address, byte, bytes));
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuMemsetD32Async(
    address: usize,
    value: c_uint,
    count: usize,
    stream: *const Stream,
) -> u32 {
    fill(address, value as u8, count * 4, stream)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamCreate(stream: *mut *const Stream, flags: c_uint) -> u32 {
    driver(function::STREAM_CREATE, &Two(stream, flags), || {
        // SAFETY: the caller's place for it.
        unsafe { stream.write(device::new_stream()) };
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuStreamSynchronize(stream: *const Stream) -> u32 {
    driver(function::STREAM_SYNCHRONIZE, &stream, || {
        device::wait(3, device::stream_number(stream));
        status::SUCCESS
    })
}

/// Arguments of `cuLaunchKernel`, in order.
#[repr(C)]
struct LaunchParameters {
    function: usize,
    grid: [c_uint; 3],
    block: [c_uint; 3],
    shared: c_uint,
    stream: *const Stream,
    arguments: *const *const c_void,
    extra: *const *const c_void,
}

/// A launch as the driver makes it.
pub(crate) fn launch(
    kernel: Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    stream: *const Stream,
    arguments: *const *const c_void,
) -> u32 {
    let parameters = LaunchParameters {
        function: kernel as usize + 1,
        grid,
        block,
        shared,
        stream,
        arguments,
        extra: std::ptr::null(),
    };
    driver(function::LAUNCH_KERNEL, &parameters, || {
        if !is_ready() {
            return status::NOT_INITIALIZED;
        }
        cupti::fatal();
        let mut values = [0; 3];
        // Sizes of the kernels' arguments.
        let sizes: &[usize] = match kernel {
            Kernel::Scale => &[8, 4, 4],
            Kernel::Add => &[8, 8, 4],
            Kernel::Spin => &[8],
            Kernel::Empty => &[],
        };
        for (index, (value, size)) in values.iter_mut().zip(sizes).enumerate() {
            // SAFETY: the caller's arguments, of which each is a pointer to a value of this size.
            unsafe {
                let place = *arguments.add(index);
                *value = match size {
                    4 => place.cast::<u32>().read().into(),
                    _ => place.cast::<u64>().read(),
                };
            }
        }
        device::launch(
            stream,
            Action::Kernel {
                kernel,
                grid,
                block,
                shared,
                arguments: values,
            },
        );
        status::SUCCESS
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn cuLaunchKernel(
    function: usize,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    shared: c_uint,
    stream: *const Stream,
    arguments: *const *const c_void,
    _extra: *const *const c_void,
) -> u32 {
    let Some(kernel) = kernel(function) else {
        return status::INVALID_VALUE;
    };
    let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
    launch(kernel, grid, block, shared, stream, arguments)
}
