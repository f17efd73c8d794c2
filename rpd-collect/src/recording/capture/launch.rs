//! Launches: the kernel, its explicit argument bytes, and the host-visible memory that it may read.

use rpd_spool::capture::{NO_ARGUMENT, Role, call_flag, data_use, item, number};

use super::graphs::HostUse;
use super::metadata::Kernel;
use super::state::{Launchable, STATE};
use super::{Begun, LOADED, behind, configured, options, pinned, runtime};

/// Kernel that the function launches. The code of a host function is loaded first: runtimes do that at the first launch, and the
/// layout of the arguments is needed before. `is_handle`: it is a handle that the runtime has given out.
pub(super) fn launchable(function: u64, is_handle: bool) -> Option<Launchable> {
    let known = STATE.with(|state| {
        let known = state.known_launch(function);
        known.ok_or_else(|| state.is_registered(function))
    })?;
    match known {
        Ok(found) => return Some(found),
        // A function without a wrapper has made the handle, such as one of the library interface.
        Err(false) if is_handle && function != 0 => {
            let name = runtime::kernel_name(function)?;
            return STATE
                .with(|state| state.function_named(function, &name))
                .flatten();
        }
        Err(false) => return None,
        Err(true) => {}
    }
    runtime::load_code(function);
    let loaded = LOADED.get();
    STATE
        .with(|state| state.launch(function, loaded.ids()))
        .flatten()
}

/// Packs the arguments of a kernel: from one pointer for each, or from the list with the packed ones.
///
/// # Safety
/// The pointers are what a launch of this kernel gets.
pub(super) unsafe fn pack(kernel: &Kernel, pointers: u64, extra: u64) -> Option<Vec<u8>> {
    let mut packed = vec![0; kernel.explicit_bytes()];
    if pointers != 0 {
        let pointers = pointers as *const *const u8;
        for (index, (offset, size)) in kernel.arguments.iter().enumerate() {
            let (offset, size) = (*offset as usize, *size as usize);
            // SAFETY: there is a pointer for each explicit argument, to as many bytes as its size.
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
    // SAFETY: the buffer has the size that is in the list.
    let bytes = unsafe { std::slice::from_raw_parts(buffer as *const u8, len) };
    packed[..len].copy_from_slice(bytes);
    Some(packed)
}

/// Whether a launch names its kernel by a handle. Host functions go by another role.
pub(super) fn is_by_handle(begun: &Begun) -> bool {
    let name = begun.operation.name();
    name.contains("ModuleLaunch") || name.contains("DrvLaunch")
}

/// Adds the kernel of a launch, and its arguments as `pack` finds them.
pub(super) fn add_kernel(
    begun: &mut Begun,
    function: u64,
    pack: impl FnOnce(&Kernel) -> Option<Vec<u8>>,
) {
    let Some(found) = launchable(function, is_by_handle(begun)) else {
        begun.missing("the kernel is in no code object that was captured");
        return;
    };
    begun.items.add_kernel(found.code, &found.kernel.name);
    // The code may have been loaded since the call began, by this or by another thread.
    begun.entry = super::next();
    match pack(&found.kernel) {
        Some(packed) => begun
            .items
            .add(item::KERNEL_ARGUMENTS, NO_ARGUMENT, &packed),
        None => begun.missing("the arguments of the kernel are not understood"),
    }
}

/// As [`add_kernel`], with arguments from one pointer for each, or from the list with the packed ones.
///
/// # Safety
/// As for [`pack`].
pub(super) unsafe fn add(begun: &mut Begun, function: u64, pointers: u64, extra: u64) {
    // SAFETY: by the contract of this function.
    add_kernel(begun, function, |kernel| unsafe {
        pack(kernel, pointers, extra)
    });
}

/// The stream of a launch.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn stream(begun: &Begun, arguments: &[u8]) -> u64 {
    if let Some(config) = begun.operation.with_role(Role::LaunchConfig) {
        let config = config.value(arguments) as *const u64;
        if !config.is_null() {
            // SAFETY: the stream is the fifth word of `hipLaunchConfig_t` and `HIP_LAUNCH_CONFIG`.
            return super::order::stream(unsafe { config.add(4).read_unaligned() }, false);
        }
    }
    if begun.number == number::hipLaunchByPtr {
        return configured::stream(begun);
    }
    begun.stream(arguments)
}

/// Takes the kernel, the arguments and the host-visible memory of a launch.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    // SAFETY: by the contract of this function.
    let stream = unsafe { stream(begun, arguments) };
    let capture = STATE.with(|state| state.graphs.capturing(stream)).flatten();
    if capture.is_some() {
        begun.flags |= call_flag::IN_STREAM_CAPTURE;
    }
    if matches!(
        begun.number,
        number::hipGraphLaunch | number::hipGraphLaunch_spt
    ) {
        let graph = begun.argument(arguments, "graphExec");
        let uses = STATE.with(|state| state.graphs.uses(graph).to_vec());
        let uses = uses.unwrap_or_default();
        if let Some(capture) = capture {
            STATE.with(|state| state.graphs.captured_graph(capture, uses));
            return;
        }
        for source in uses.iter().filter_map(|one| one.source) {
            update(begun, &source);
        }
        let written: Vec<_> = uses.iter().filter_map(|one| one.destination).collect();
        let by_device: Vec<_> = uses.iter().filter_map(|one| one.written).collect();
        let all: Vec<_> = written.iter().chain(&by_device).copied().collect();
        pinned::device_writes(begun, |_| written);
        let words: Vec<u64> = uses.into_iter().flat_map(|one| one.words).collect();
        visible(begun, &words, stream);
        // After it was looked at.
        STATE.with(|state| all.iter().for_each(|range| state.copy_writes(range)));
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
    if begun.number == number::hipLaunchByPtr {
        configured::add(begun, function);
    } else {
        let (pointers, extra) = (with(Role::Arguments), with(Role::Extra));
        // SAFETY: by the contract of this function.
        unsafe { add(begun, function, pointers, extra) };
    }
    let words = argument_words(begun);
    match capture {
        None => visible(begun, &words, stream),
        Some(capture) => {
            STATE.with(|state| {
                let words = state.host_words(words);
                if !words.is_empty() {
                    let uses = HostUse {
                        words,
                        ..HostUse::default()
                    };
                    state.graphs.captured(capture, uses);
                }
            });
        }
    }
}

/// Takes the host-visible memory that a launch may read.
fn visible(begun: &mut Begun, words: &[u64], stream: u64) {
    pinned::device_writes(begun, |state| {
        let found = words.iter().filter_map(|word| state.pointed_to(*word));
        found.collect()
    });
    let launch = begun.entry;
    let options = options().copied().unwrap_or_default();
    let changed = STATE.with(|state| {
        let mut changed = state.visible(words.iter().copied(), launch, stream);
        if options.snapshot || options.pageguard {
            state.look_at_others(&mut changed);
        }
        changed
    });
    for range in changed.unwrap_or_default() {
        update(begun, &range);
    }
    behind::launched(begun);
}

fn update(begun: &mut Begun, range: &super::ranges::Range) {
    if !begun.items.add_data(range, data_use::UPDATE, 0, false) {
        begun.missing("host memory that the launch may read could not be taken");
    }
}

/// The words of the kernel arguments that were taken of a call, and the addresses of the memory that its textures read.
pub(super) fn argument_words(begun: &Begun) -> Vec<u64> {
    let packed = rpd_spool::capture::Items(begun.items.bytes())
        .find(|item| item.kind == item::KERNEL_ARGUMENTS)
        .map_or(&[][..], |item| item.payload);
    let (words, _) = packed.as_chunks::<8>();
    let mut words = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
    STATE.with(|state| state.images.add_memory(&mut words));
    words
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
            for uses in state.graphs.uses(graph).to_vec() {
                if let Some(range) = uses.destination {
                    state.order.pend(stream, entry, range);
                }
                if let Some(range) = uses.written {
                    state.order.pend_write(stream, range);
                }
            }
        }
    });
}
