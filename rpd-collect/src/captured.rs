//! Captures: wrappers in the runtimes' dispatch tables, outside of the provider's own. Providers pass it the tables and the code
//! objects.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use rpd_spool::options::CollectorOptions;

use crate::code_bytes::with_bytes;
use crate::recording::capture::{self, CodeObjectLoad};
use crate::recording::guard::Service;
use crate::recording::{meta, text};
use crate::tables::Slot;
use crate::tables::types::{Dim3, Extent, IpcHandle, PitchedPtr};

static SERVICE: Service = Service::new("captures");

/// The argument struct of a call.
#[repr(C, align(8))]
struct Arguments<const N: usize>([u8; N]);

impl<const N: usize> Arguments<N> {
    #[inline(always)]
    fn put<T: Copy>(&mut self, offset: usize, value: &T) {
        assert!(offset + size_of::<T>() <= N);
        // SAFETY: the bytes are inside the array; types of arguments have no padding.
        unsafe {
            std::ptr::copy_nonoverlapping(
                std::ptr::from_ref(value).cast(),
                self.0.as_mut_ptr().add(offset),
                size_of::<T>(),
            );
        }
    }
}

macro_rules! captured {
    ($number:literal, $name:ident, $size:literal, [$($offset:literal $argument:ident: $type:ty,)*]) => {
        #[allow(clippy::too_many_arguments)]
        unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            #[allow(unused_mut)]
            let mut arguments = Arguments::<$size>([0; $size]);
            $(arguments.put($offset, &$argument);)*
            // SAFETY: the arguments are those of this call.
            let begun = SERVICE.on_event(|| unsafe { capture::begin($number, &arguments.0) }).flatten();
            let next = NEXT[$number].load(Ordering::Relaxed);
            // SAFETY: the slot of this function held it.
            let result = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> u32>(next)($($argument),*)
            };
            if let Some(begun) = begun {
                // SAFETY: as above.
                SERVICE.run(|| unsafe { capture::end(begun, &arguments.0, result as i32) });
            }
            result
        }
    };
}

/// The wrappers, and [`WRAPPERS`]: them by number of the function, null for functions without.
#[allow(non_snake_case)]
mod wrappers {
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/capture_wrappers.rs"));

    // SAFETY: addresses of functions, which never change.
    unsafe impl Sync for Code {}
}

use wrappers::{COUNT, WRAPPERS};

/// The runtime's own functions, by slot.
static NEXT: [AtomicPtr<c_void>; COUNT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];

/// Slots of the compiler's table, `rpd-data/data/operations.csv`.
mod compiler {
    pub(super) const REGISTER_FUNCTION: usize = 3;
    pub(super) const REGISTER_MANAGED_VAR: usize = 4;
    pub(super) const REGISTER_TEXTURE: usize = 6;
    pub(super) const REGISTER_VAR: usize = 7;
}

static NEXT_REGISTER_FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_REGISTER_TEXTURE: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_REGISTER_VAR: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NEXT_REGISTER_MANAGED_VAR: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

type RegisterFunction = unsafe extern "C" fn(
    *mut c_void,
    *const c_void,
    *const c_char,
    *const c_char,
    u32,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut i32,
);

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn register_function(
    modules: *mut c_void,
    host: *const c_void,
    device: *const c_char,
    name: *const c_char,
    limit: u32,
    thread: *mut c_void,
    block: *mut c_void,
    block_size: *mut c_void,
    grid_size: *mut c_void,
    wave: *mut i32,
) {
    SERVICE.on_event(|| {
        // SAFETY: compilers pass text.
        capture::register_function(modules as u64, host as u64, unsafe { text::text(device) });
    });
    let next = NEXT_REGISTER_FUNCTION.load(Ordering::Relaxed);
    // SAFETY: the slot of this function held it; the arguments are the caller's.
    unsafe {
        std::mem::transmute::<*mut c_void, RegisterFunction>(next)(
            modules, host, device, name, limit, thread, block, block_size, grid_size, wave,
        );
    }
}

/// A binary of the program has a variable, or a texture reference, called `name`.
///
/// # Safety
/// `name` is null or a C string.
unsafe fn variable_registered(modules: *mut c_void, variable: *mut c_void, name: *const c_char) {
    SERVICE.on_event(|| {
        // SAFETY: by contract.
        let name = unsafe { text::text(name) };
        capture::register_variable(modules as u64, variable as u64, name);
    });
}

type RegisterVar = unsafe extern "C" fn(
    *mut c_void,
    *mut c_void,
    *const c_char,
    *const c_char,
    i32,
    usize,
    i32,
    i32,
);

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn register_var(
    modules: *mut c_void,
    variable: *mut c_void,
    host: *const c_char,
    device: *const c_char,
    external: i32,
    size: usize,
    constant: i32,
    global: i32,
) {
    // SAFETY: compilers pass text.
    unsafe { variable_registered(modules, variable, device) };
    let next = NEXT_REGISTER_VAR.load(Ordering::Relaxed);
    // SAFETY: as above.
    unsafe {
        std::mem::transmute::<*mut c_void, RegisterVar>(next)(
            modules, variable, host, device, external, size, constant, global,
        );
    }
}

type RegisterTexture =
    unsafe extern "C" fn(*mut c_void, *mut c_void, *const c_char, *const c_char, i32, i32, i32);

unsafe extern "C" fn register_texture(
    modules: *mut c_void,
    reference: *mut c_void,
    host: *const c_char,
    device: *const c_char,
    dimensions: i32,
    normalised: i32,
    external: i32,
) {
    // SAFETY: compilers pass text.
    unsafe { variable_registered(modules, reference, device) };
    let next = NEXT_REGISTER_TEXTURE.load(Ordering::Relaxed);
    // SAFETY: the slot of this function held it; the arguments are the caller's.
    unsafe {
        std::mem::transmute::<*mut c_void, RegisterTexture>(next)(
            modules, reference, host, device, dimensions, normalised, external,
        );
    }
}

type RegisterManagedVar =
    unsafe extern "C" fn(*mut c_void, *mut *mut c_void, *mut c_void, *const c_char, usize, u32);

unsafe extern "C" fn register_managed_var(
    module: *mut c_void,
    pointer: *mut *mut c_void,
    initial: *mut c_void,
    name: *const c_char,
    size: usize,
    align: u32,
) {
    let next = NEXT_REGISTER_MANAGED_VAR.load(Ordering::Relaxed);
    // SAFETY: the slot of this function held it; the arguments are the caller's.
    unsafe {
        std::mem::transmute::<*mut c_void, RegisterManagedVar>(next)(
            module, pointer, initial, name, size, align,
        );
    }
    SERVICE.on_event(|| {
        if pointer.is_null() {
            return;
        }
        // SAFETY: the program's pointer variable, which the runtime has set; compilers pass text.
        let (base, name) = unsafe { (pointer.read_unaligned(), text::text(name)) };
        capture::register_managed(
            module as u64,
            pointer as u64,
            base as u64,
            name,
            size as u64,
        );
    });
}

/// Begins the capture of this process if there is to be one. False when there is none.
pub(crate) fn start(options: &CollectorOptions) -> bool {
    if !options.capture.calls {
        return false;
    }
    let started = capture::start();
    if !started {
        meta::note("nothing is captured: the files for it cannot be made");
    }
    started
}

/// Wraps the functions of the compiler's table.
pub(crate) fn wrap_compiler(slots: &[Slot]) {
    for (slot, wrapper, next) in [
        (
            compiler::REGISTER_FUNCTION,
            register_function as *mut c_void,
            &NEXT_REGISTER_FUNCTION,
        ),
        (
            compiler::REGISTER_TEXTURE,
            register_texture as *mut c_void,
            &NEXT_REGISTER_TEXTURE,
        ),
        (
            compiler::REGISTER_VAR,
            register_var as *mut c_void,
            &NEXT_REGISTER_VAR,
        ),
        (
            compiler::REGISTER_MANAGED_VAR,
            register_managed_var as *mut c_void,
            &NEXT_REGISTER_MANAGED_VAR,
        ),
    ] {
        if let Some(slot) = slots.get(slot) {
            replace(slot, wrapper, next);
        }
    }
}

/// Puts a function over a slot, once.
fn replace(slot: &Slot, with: *mut c_void, next: &AtomicPtr<c_void>) {
    let before = slot.load(Ordering::Acquire);
    if before != with && !before.is_null() {
        next.store(before, Ordering::Release);
        slot.store(with, Ordering::Release);
    }
}

/// Wraps the functions of the HIP runtime's table, once.
pub(crate) fn wrap_runtime(slots: &[Slot]) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    capture::set_functions(|number| {
        let slot = slots.get(number as usize);
        slot.map_or(std::ptr::null_mut(), |slot| slot.load(Ordering::Acquire))
    });
    for ((slot, wrapper), next) in slots.iter().zip(&WRAPPERS.0).zip(&NEXT) {
        if let Some(wrapper) = wrapper {
            replace(slot, *wrapper as *mut c_void, next);
        }
    }
    capture::note_unknown_functions(slots.len().saturating_sub(COUNT) as u64);
}

/// A code object that was loaded, as a provider describes it.
pub(crate) struct Loaded<'a> {
    /// The provider's number.
    pub(crate) id: u64,
    /// The provider's handle of the device.
    pub(crate) agent: u64,
    /// Load address, and size in bytes.
    pub(crate) load: (u64, u64),
    /// Address and size of its image; 0 when the URI names a file.
    pub(crate) memory: (u64, u64),
    pub(crate) uri: &'a [u8],
}

/// Takes a code object that was loaded.
///
/// # Safety
/// Its image lies in memory as it says.
pub(crate) unsafe fn code_loaded(loaded: &Loaded<'_>) {
    if !capture::is_active() {
        return;
    }
    let (base, size) = loaded.memory;
    let take = |bytes: &[u8]| {
        capture::code_loaded(&CodeObjectLoad {
            id: loaded.id,
            agent: loaded.agent,
            load: loaded.load,
            bytes,
        });
    };
    // SAFETY: by the contract of this function.
    if unsafe { with_bytes(base, size, loaded.uri, take) }.is_err() {
        take(&[]);
    }
}

#[cfg(test)]
mod tests {
    use rpd_spool::capture::number;

    use super::*;

    extern "C" fn original() -> u32 {
        0
    }

    /// A runtime that is newer than the tables here. Checks capture-47.
    #[test]
    fn functions_that_are_not_known_stay_as_they_are() {
        const MORE: usize = 3;
        let function = original as *mut c_void;
        let mut table = vec![function; 1 + COUNT + MORE];
        table[0] = (size_of::<*mut c_void>() * table.len()) as *mut c_void;
        // Tables live as long as the process.
        let table = Box::leak(table.into_boxed_slice());
        // SAFETY: it begins with its size in bytes.
        wrap_runtime(unsafe { crate::tables::flat(table.as_mut_ptr().cast()) });
        let slots = &table[1..];
        for (number, wrapper) in WRAPPERS.0.iter().enumerate() {
            let expected = wrapper.map_or(function, |wrapper| wrapper as *mut c_void);
            assert_eq!(slots[number], expected, "{number}");
        }
        assert!(slots[COUNT..].iter().all(|slot| *slot == function));
        assert_eq!(
            NEXT[number::hipMalloc as usize].load(Ordering::Relaxed),
            function
        );
    }
}
