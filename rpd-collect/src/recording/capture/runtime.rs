//! Functions of the runtime that a capture calls itself, past its own wrappers.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_spool::capture::number;

/// A function of the runtime; null while it is not known.
struct Function(AtomicPtr<c_void>);

impl Function {
    const fn new() -> Function {
        Function(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// The function as a value of its type.
    ///
    /// # Safety
    /// `F` is the type of the function.
    unsafe fn get<F: Copy>(&self) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let found = self.0.load(Ordering::Acquire);
        // SAFETY: a pointer to a function of this type.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
    }
}

static ATTRIBUTES: Function = Function::new();
static HOST_ALLOCATE: Function = Function::new();
static COPY: Function = Function::new();
static COPY_3D: Function = Function::new();
static SYMBOL_ADDRESS: Function = Function::new();
static KERNEL_NAME: Function = Function::new();
static GET_DEVICE: Function = Function::new();

/// Sets the functions; `find` returns the runtime's own function with a number, or null.
pub(crate) fn set_functions(find: impl Fn(u32) -> *mut c_void) {
    for (function, number) in [
        (&ATTRIBUTES, number::hipFuncGetAttributes),
        (&HOST_ALLOCATE, number::hipHostMalloc),
        (&COPY, number::hipMemcpyAsync),
        (&COPY_3D, number::hipMemcpy3DAsync),
        (&SYMBOL_ADDRESS, number::hipGetSymbolAddress),
        (&KERNEL_NAME, number::hipKernelNameRef),
        (&GET_DEVICE, number::hipGetDevice),
    ] {
        function.0.store(find(number), Ordering::Release);
    }
}

/// Value `hipSuccess`.
const SUCCESS: u32 = 0;
/// Value `hipMemcpyDeviceToHost`.
const DEVICE_TO_HOST: u32 = 2;
/// Words of `hipMemcpy3DParms`: srcArray, srcPos (3), srcPtr (address, pitch, bytes, rows); the same of the destination;
/// extent (3), kind.
pub(super) const COPY_3D_WORDS: usize = 20;

/// Makes the runtime load the code of a host function.
pub(super) fn load_code(host: u64) {
    /// Bytes of `hipFuncAttributes`, and more.
    const WORDS: usize = 32;
    type Get = unsafe extern "C" fn(*mut u64, *const c_void) -> u32;
    let mut attributes = [0u64; WORDS];
    // SAFETY: the type of the function; the struct that it writes is shorter than the array.
    unsafe {
        if let Some(get) = ATTRIBUTES.get::<Get>() {
            get(attributes.as_mut_ptr(), host as *const c_void);
        }
    }
}

/// The address of a device variable on the current device.
pub(super) fn symbol_address(host: u64) -> Option<u64> {
    type Get = unsafe extern "C" fn(*mut u64, *const c_void) -> u32;
    let mut address = 0;
    // SAFETY: the type of the function, which stores an address.
    let result = unsafe { SYMBOL_ADDRESS.get::<Get>()?(&mut address, host as *const c_void) };
    (result == SUCCESS && address != 0).then_some(address)
}

/// The current device of this thread.
pub(super) fn current_device() -> Option<i32> {
    type Get = unsafe extern "C" fn(*mut i32) -> u32;
    let mut device = 0;
    // SAFETY: the type of the function, which stores a number.
    let result = unsafe { GET_DEVICE.get::<Get>()?(&mut device) };
    (result == SUCCESS).then_some(device)
}

/// The name of the kernel of a function handle that the runtime has given out.
pub(super) fn kernel_name(function: u64) -> Option<Vec<u8>> {
    type Get = unsafe extern "C" fn(u64) -> *const c_char;
    // SAFETY: the type of the function; it answers null or text that stays while its code is loaded.
    unsafe {
        let name = KERNEL_NAME.get::<Get>()?(function);
        (!name.is_null()).then(|| CStr::from_ptr(name).to_bytes().to_vec())
    }
}

/// Pinned memory of `size` bytes.
pub(super) fn host_allocate(size: u64) -> Option<u64> {
    type Allocate = unsafe extern "C" fn(*mut u64, usize, u32) -> u32;
    let mut address = 0;
    // SAFETY: the type of the function, which stores an address.
    let result = unsafe { HOST_ALLOCATE.get::<Allocate>()?(&mut address, size as usize, 0) };
    (result == SUCCESS && address != 0).then_some(address)
}

/// Adds a copy of `size` bytes from the device to the host. False when the runtime refuses.
///
/// # Safety
/// The host memory has room, and nothing else uses it until the copy is complete.
pub(super) unsafe fn copy_to_host(to: u64, from: u64, size: u64, stream: u64) -> bool {
    type Copy = unsafe extern "C" fn(u64, u64, usize, u32, u64) -> u32;
    // SAFETY: the type of the function, and the contract of this one.
    unsafe {
        COPY.get::<Copy>()
            .is_some_and(|copy| copy(to, from, size as usize, DEVICE_TO_HOST, stream) == SUCCESS)
    }
}

/// As [`copy_to_host`], for a box that `hipMemcpy3DParms` describes; the kind is put in here.
///
/// # Safety
/// As for [`copy_to_host`].
pub(super) unsafe fn copy_box_to_host(mut parameters: [u64; COPY_3D_WORDS], stream: u64) -> bool {
    type Copy = unsafe extern "C" fn(*const u64, u64) -> u32;
    parameters[COPY_3D_WORDS - 1] = u64::from(DEVICE_TO_HOST);
    // SAFETY: the type of the function, and the contract of this one.
    unsafe {
        COPY_3D
            .get::<Copy>()
            .is_some_and(|copy| copy(parameters.as_ptr(), stream) == SUCCESS)
    }
}
