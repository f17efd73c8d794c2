//! Launches: the kernel, its explicit argument bytes, and the host-visible memory that it may read.

use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_spool::capture::{NO_ARGUMENT, Role, call_flag, data_use, item, number};

use super::metadata::Kernel;
use super::state::{Launchable, STATE};
use super::{Begun, LOADED, options};

/// `hipFuncGetAttributes` of the runtime, which loads the code of a kernel; null while that is not known.
static ATTRIBUTES: AtomicPtr<std::ffi::c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Bytes of `hipFuncAttributes`, and more.
const ATTRIBUTE_WORDS: usize = 32;

/// Sets the runtime's `hipFuncGetAttributes`.
pub(crate) fn set_attributes_function(function: *mut std::ffi::c_void) {
    ATTRIBUTES.store(function, Ordering::Release);
}

/// Kernel that the function launches. The code of a host function is loaded first: runtimes do that at the first launch, and the
/// layout of the arguments is needed before.
fn launchable(function: u64) -> Option<Launchable> {
    let known = STATE.with(|state| {
        let loaded = state.launch(function, &[]);
        loaded.ok_or_else(|| state.is_registered(function))
    })?;
    match known {
        Ok(found) => return Some(found),
        Err(false) => return None,
        Err(true) => {}
    }
    type GetAttributes = unsafe extern "C" fn(*mut u64, *const std::ffi::c_void) -> u32;
    let get = ATTRIBUTES.load(Ordering::Acquire);
    if !get.is_null() {
        let mut attributes = [0u64; ATTRIBUTE_WORDS];
        // SAFETY: `set_attributes_function` was given a function of this type; the struct is shorter than the array.
        unsafe {
            let get = std::mem::transmute::<*mut std::ffi::c_void, GetAttributes>(get);
            get(attributes.as_mut_ptr(), function as *const std::ffi::c_void);
        }
    }
    let loaded = LOADED.get();
    STATE
        .with(|state| state.launch(function, loaded.ids()))
        .flatten()
}

/// Packs the arguments of a kernel: from one pointer for each, or from the list with the packed ones.
///
/// # Safety
/// The pointers are what a launch of this kernel gets.
unsafe fn pack(kernel: &Kernel, pointers: u64, extra: u64) -> Option<Vec<u8>> {
    let mut packed = vec![0; kernel.explicit_bytes()];
    if pointers != 0 {
        let pointers = pointers as *const *const u8;
        for (index, (offset, size)) in kernel.arguments.iter().enumerate() {
            let (offset, size) = (*offset as usize, *size as usize);
            // SAFETY: there is a pointer for each explicit argument, to as many bytes as it has.
            unsafe {
                let source = pointers.add(index).read_unaligned();
                if source.is_null() {
                    return None;
                }
                let bytes = std::slice::from_raw_parts(source, size);
                packed
                    .get_mut(offset..offset + size)?
                    .copy_from_slice(bytes);
            }
        }
        return Some(packed);
    }
    if extra == 0 {
        return kernel.arguments.is_empty().then_some(packed);
    }
    const POINTER: u64 = 1;
    const SIZE: u64 = 2;
    const END: u64 = 3;
    let (mut buffer, mut size) = (0, 0);
    let list = extra as *const u64;
    for index in (0..8).step_by(2) {
        // SAFETY: the list ends with its end marker.
        let (key, value) = unsafe { (list.add(index).read_unaligned(), list.add(index + 1)) };
        match key {
            END => break,
            // SAFETY: a key is followed by its value.
            POINTER => buffer = unsafe { value.read_unaligned() },
            // SAFETY: as above; this value is a pointer to the size.
            SIZE => size = unsafe { (value.read_unaligned() as *const u64).read_unaligned() },
            _ => return None,
        }
    }
    if buffer == 0 {
        return kernel.arguments.is_empty().then_some(packed);
    }
    let len = packed.len().min(size as usize);
    // SAFETY: the buffer has the size that the list says.
    let bytes = unsafe { std::slice::from_raw_parts(buffer as *const u8, len) };
    packed[..len].copy_from_slice(bytes);
    Some(packed)
}

/// Adds kernel and arguments; the words of the arguments.
///
/// # Safety
/// As for [`pack`].
unsafe fn add(begun: &mut Begun, function: u64, pointers: u64, extra: u64) -> Vec<u64> {
    let Some(found) = launchable(function) else {
        begun.missing("the kernel is in no code object that was captured");
        return Vec::new();
    };
    begun.items.add_kernel(found.code, &found.kernel.name);
    // The code may have been loaded since the call began, by this or by another thread.
    begun.entry = super::next();
    // SAFETY: by the contract of this function.
    match unsafe { pack(&found.kernel, pointers, extra) } {
        Some(packed) => {
            begun
                .items
                .add(item::KERNEL_ARGUMENTS, NO_ARGUMENT, &packed);
            let (words, _) = packed.as_chunks::<8>();
            words.iter().map(|word| u64::from_le_bytes(*word)).collect()
        }
        None => {
            begun.missing("the arguments of the kernel are not understood");
            Vec::new()
        }
    }
}

/// The stream of a launch.
///
/// # Safety
/// As for [`super::begin`].
unsafe fn stream(begun: &Begun, arguments: &[u8]) -> u64 {
    if begun.number == number::hipLaunchKernelExC {
        let config = begun.argument(arguments, "config") as *const u64;
        if !config.is_null() {
            // SAFETY: the stream is the fifth word of `hipLaunchConfig_t`.
            return super::order::stream(unsafe { config.add(4).read_unaligned() }, false);
        }
    }
    begun.stream(arguments)
}

/// Takes what a launch needs.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    // SAFETY: by the contract of this function.
    let stream = unsafe { stream(begun, arguments) };
    let capture = STATE.with(|state| state.capturing(stream)).flatten();
    if capture.is_some() {
        begun.flags |= call_flag::IN_STREAM_CAPTURE;
    }
    if matches!(
        begun.number,
        number::hipGraphLaunch | number::hipGraphLaunch_spt
    ) {
        let graph = begun.argument(arguments, "graphExec");
        let sources = STATE.with(|state| state.graph(graph).0).unwrap_or_default();
        for source in sources {
            update(begun, &source);
        }
        visible(begun, std::iter::empty(), stream);
        return;
    }
    let with = |role| {
        begun
            .operation
            .with_role(role)
            .map_or(0, |one| one.value(arguments))
    };
    let function = match with(Role::Kernel) {
        0 => begun.argument(arguments, "f"),
        kernel => kernel,
    };
    let (pointers, extra) = (with(Role::Arguments), with(Role::Extra));
    // SAFETY: by the contract of this function.
    let words = unsafe { add(begun, function, pointers, extra) };
    if capture.is_none() {
        visible(begun, words.into_iter(), stream);
    }
}

/// Takes the host-visible memory that a launch may read.
fn visible(begun: &mut Begun, words: impl Iterator<Item = u64>, stream: u64) {
    let (launch, all) = (
        begun.entry,
        options().is_some_and(|options| options.snapshot),
    );
    let changed = STATE.with(|state| match all {
        true => state.all_visible(launch, stream),
        false => state.visible(words, launch, stream),
    });
    for range in changed.unwrap_or_default() {
        update(begun, &range);
    }
}

fn update(begun: &mut Begun, range: &super::ranges::Range) {
    if !begun.items.add_data(range, data_use::UPDATE, 0, false) {
        begun.missing("host memory that the launch may read could not be taken");
    }
}

/// Takes the kernel of a graph node.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin_node(begun: &mut Begun, arguments: &[u8]) {
    let Some(argument) = begun.operation.with_role(Role::KernelNode) else {
        return;
    };
    let parameters = argument.value(arguments) as *const u64;
    if parameters.is_null() {
        return;
    }
    // blockDim, extra, func, gridDim, kernelParams, sharedMemBytes.
    // SAFETY: the call reads `hipKernelNodeParams` there.
    let (extra, function, pointers) = unsafe {
        (
            parameters.add(2).read_unaligned(),
            parameters.add(3).read_unaligned(),
            parameters.add(6).read_unaligned(),
        )
    };
    // SAFETY: by the contract of this function.
    unsafe { add(begun, function, pointers, extra) };
}

/// The call of a launch has returned: its work is under way, and a graph writes host memory until it is complete.
///
/// # Safety
/// As for [`super::end`].
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8], failed: bool) {
    if begun.flags & call_flag::IN_STREAM_CAPTURE != 0 {
        return;
    }
    // SAFETY: by the contract of this function.
    let stream = unsafe { stream(begun, arguments) };
    let entry = begun.entry;
    let writes_host = !failed
        && matches!(
            begun.number,
            number::hipGraphLaunch | number::hipGraphLaunch_spt
        );
    let graph = begun.argument(arguments, "graphExec");
    STATE.with(|state| {
        state.launched(entry, stream, failed);
        if writes_host {
            for range in state.graph(graph).1 {
                state.order.pend(stream, entry, range);
            }
        }
    });
}
