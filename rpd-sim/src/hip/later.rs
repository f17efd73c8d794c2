//! Functions of HIP 7.1 and later, and a few that never had a slot in the dispatch table. The interface that tools
//! trace (that of SDK 1.0) does not have them: they are exported by name and are not recorded, as with that SDK.

// Exported by symbol name: its visibility among modules does not matter.
#![allow(unreachable_pub)]

use core::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use super::error::{HipResult, api, code, put};
use super::hsa::CopyBox;
use super::misc;
use super::runtime;
use super::types::{
    Extent, Handle, LaunchAttributeValue, MemLocation, PitchedPtr, Pos, kind, launch_attribute,
};
use crate::hip::copy::CopyOp;
use crate::hip::copy::fill::FillOp;
use crate::hip::copy::fill_api;
use crate::hip::copy::params;
use crate::hip::device::api as device_api;
use crate::hip::graph;
use crate::hip::graph::node as node_op;
use crate::hip::memory::managed_api;
use crate::hip::module;
use crate::hip::module::occupancy;
use crate::hip::stream::{self, Stream};

/// Defines exported functions whose bodies return a [`HipResult`].
macro_rules! exported {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As documented for the C function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
            api(|| $body)
        }
    )*};
}

/// Device ordinal that stands for a location in the functions of earlier versions.
fn ordinal(location: MemLocation) -> HipResult<c_int> {
    const DEVICE: u32 = 1;
    const HOST: u32 = 2;
    const HOST_ORDINAL: c_int = -1;
    match location.kind {
        DEVICE => Ok(location.id),
        HOST..=4 => Ok(HOST_ORDINAL),
        _ => Err(code::INVALID_VALUE),
    }
}

exported! {
    /// Loads code for several calls of `hipLibraryGetKernel`. Options are ignored: they steer a compiler, which code
    /// objects no longer need.
    fn hipLibraryLoadData(
        out: *mut Handle,
        image: *const c_void,
        _options: *mut u32,
        _values: *mut *mut c_void,
        _count: u32,
        _library_options: *mut u32,
        _library_values: *mut *mut c_void,
        _library_count: u32,
    ) {
        // SAFETY: the caller's image.
        unsafe { module::load_data(out, image) }
    }

    /// Loads the code object or fat binary in a file as a library; options are ignored.
    fn hipLibraryLoadFromFile(
        out: *mut Handle,
        path: *const c_char,
        _options: *mut u32,
        _values: *mut *mut c_void,
        _count: u32,
        _library_options: *mut u32,
        _library_values: *mut *mut c_void,
        _library_count: u32,
    ) {
        // SAFETY: the caller's text.
        unsafe { module::load_file(out, path) }
    }

    /// Unloads a library; its kernels become invalid.
    fn hipLibraryUnload(library: Handle) {
        module::unload(library)
    }

    /// Finds a kernel of a library by name.
    fn hipLibraryGetKernel(out: *mut Handle, library: Handle, name: *const c_char) {
        // SAFETY: the caller's pointers.
        unsafe { module::get_function(out, library, name) }
    }

    /// Finds address and size of a variable of a library by name.
    fn hipLibraryGetGlobal(out: *mut *mut c_void, size: *mut usize, library: Handle, name: *const c_char) {
        // SAFETY: the caller's pointers.
        unsafe { module::get_global(out, size, library, name) }
    }

    /// Counts the kernels of a library.
    fn hipLibraryGetKernelCount(out: *mut u32, library: Handle) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, module::kernel_names(library)?.len() as u32) }
    }

    /// Counts the kernels of a module.
    fn hipModuleGetFunctionCount(out: *mut u32, module: Handle) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, module::kernel_names(module)?.len() as u32) }
    }

    /// Lists at most `count` kernels of a library.
    fn hipLibraryEnumerateKernels(out: *mut Handle, count: u32, library: Handle) {
        if out.is_null() || count == 0 {
            return Err(code::INVALID_VALUE);
        }
        for (n, name) in module::kernel_names(library)?.iter().take(count as usize).enumerate() {
            // SAFETY: the caller's list has room for `count` entries.
            unsafe { module::get_function(out.add(n), library, name.as_ptr()) }?;
        }
        Ok(())
    }

    /// Loads the fat binary at an address as a module.
    fn hipModuleLoadFatBinary(out: *mut Handle, binary: *const c_void) {
        // SAFETY: the caller's image.
        unsafe { module::load_data(out, binary) }
    }

    /// Gives the name of a kernel; the text lives as long as its module.
    fn hipKernelGetName(out: *mut *const c_char, kernel: Handle) {
        let kernel = module::function(kernel)?;
        // SAFETY: the caller's pointer, checked for null; the kernel's table keeps the text.
        unsafe { put(out, kernel.name.as_ptr()) }
    }

    /// Gives the function of a kernel; both have the same handle here.
    fn hipKernelGetFunction(out: *mut Handle, kernel: Handle) {
        module::function(kernel)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, kernel) }
    }

    /// Gives the library that a kernel was loaded with.
    fn hipKernelGetLibrary(out: *mut Handle, kernel: Handle) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, module::module_of(kernel)?) }
    }

    /// Gives a `hipFunction_attribute` of a kernel, the same for all devices.
    fn hipKernelGetAttribute(out: *mut c_int, which: u32, kernel: Handle, _device: c_int) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { module::get_attribute(out, which, kernel) }
    }

    /// Offset and size of an argument of a kernel.
    fn hipKernelGetParamInfo(kernel: Handle, index: usize, offset: *mut usize, size: *mut usize) {
        let function = module::function(kernel)?;
        let argument = function.explicit.get(index).ok_or(code::INVALID_VALUE)?;
        // SAFETY: the caller's pointers, checked for null; the size may be left out.
        unsafe {
            put(offset, argument.offset)?;
            if size.is_null() { Ok(()) } else { put(size, argument.size) }
        }
    }

    /// Gives the local memory in bytes that is left for each workgroup when this number of workgroups run on a compute
    /// unit.
    fn hipOccupancyAvailableDynamicSMemPerBlock(
        out: *mut usize,
        stub: *const c_void,
        blocks: c_int,
        items: c_int,
    ) {
        let function = module::function(stub.cast_mut())?;
        let (Ok(blocks @ 1..), Ok(1..)) = (usize::try_from(blocks), u64::try_from(items)) else {
            return Err(code::INVALID_VALUE);
        };
        let free = occupancy::local_memory_per_block(&function, blocks, items as u64)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, free) }
    }

    /// The address of a function of the API.
    fn hipGetDriverEntryPoint(name: *const c_char, out: *mut *mut c_void, _flags: u64, status: *mut u32) {
        // SAFETY: the caller's pointers, checked for null.
        unsafe { misc::look_up(name, out, status) }
    }

    /// Gives the address of a function of the API, for programs whose null stream is the thread's own.
    fn hipGetDriverEntryPoint_spt(name: *const c_char, out: *mut *mut c_void, _flags: u64, status: *mut u32) {
        // SAFETY: the caller's pointers, checked for null.
        unsafe { misc::look_up(name, out, status) }
    }

    /// Advises about managed memory, with a location.
    fn hipMemAdvise_v2(pointer: *const c_void, count: usize, advice: u32, location: MemLocation) {
        managed_api::advise(pointer, count, advice, ordinal(location)?)
    }

    /// Moves managed memory to a location.
    fn hipMemPrefetchAsync_v2(
        pointer: *const c_void,
        count: usize,
        location: MemLocation,
        _flags: u32,
        stream: Handle,
    ) {
        managed_api::prefetch(pointer, count, ordinal(location)?, stream)
    }

    /// Gives the number of a stream, which no other stream of the process has.
    fn hipStreamGetId(stream: Handle, out: *mut u64) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, stream::resolve(stream)?.id) }
    }

    /// Gives a stream the attributes of another one.
    fn hipStreamCopyAttributes(to: Handle, from: Handle) {
        let (to, from) = (stream::resolve(to)?, stream::resolve(from)?);
        to.policy.store(from.policy.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(())
    }

    /// Sets an attribute of a stream. Nothing changes: policies affect how the host waits and what caches keep.
    fn hipStreamSetAttribute(stream: Handle, attribute: u32, value: *const LaunchAttributeValue) {
        let stream = stream::resolve(stream)?;
        // SAFETY: the caller's value, checked for null.
        let number = unsafe { value.as_ref() }.ok_or(code::INVALID_VALUE)?.number;
        match attribute {
            launch_attribute::ACCESS_POLICY_WINDOW => Ok(()),
            launch_attribute::SYNCHRONIZATION_POLICY if (1..=4).contains(&number) => {
                stream.policy.store(number, Ordering::Relaxed);
                Ok(())
            }
            // The priority is part of the hardware queue, chosen when the stream is made.
            launch_attribute::PRIORITY if number == stream.priority => Ok(()),
            launch_attribute::PRIORITY => Err(code::NOT_SUPPORTED),
            _ => Err(code::INVALID_VALUE),
        }
    }

    /// Gives an attribute of a stream, such as its synchronization policy.
    fn hipStreamGetAttribute(stream: Handle, attribute: u32, value: *mut LaunchAttributeValue) {
        let stream = stream::resolve(stream)?;
        let number = match attribute {
            launch_attribute::ACCESS_POLICY_WINDOW => 0,
            launch_attribute::SYNCHRONIZATION_POLICY => stream.policy.load(Ordering::Relaxed),
            launch_attribute::PRIORITY => stream.priority,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(value, LaunchAttributeValue { number, rest: [0; 60] }) }
    }

    /// Copies several ranges in order. Attributes are hints and ignored; the index of the first copy that is refused is
    /// written to `failed`.
    fn hipMemcpyBatchAsync(
        destinations: *const *mut c_void,
        sources: *const *const c_void,
        sizes: *const usize,
        count: usize,
        _attributes: *const c_void,
        _attribute_places: *const usize,
        _attribute_count: usize,
        failed: *mut usize,
        stream: Handle,
    ) {
        if destinations.is_null() || sources.is_null() || sizes.is_null() || count == 0 {
            return Err(code::INVALID_VALUE);
        }
        let stream = stream::resolve(stream)?;
        in_order(count, failed, |n| {
            // SAFETY: the caller's lists have `count` entries.
            let (to, from, size) = unsafe { (*destinations.add(n), *sources.add(n), *sizes.add(n)) };
            graph::submit(&stream, node_op::linear_copy(to, from, size, kind::DEFAULT)?)
        })
    }

    /// Copies several boxes in order; the index of the first copy that is refused is written to `failed`. Arrays are
    /// refused.
    fn hipMemcpy3DBatchAsync(
        count: usize,
        list: *const BatchBox,
        failed: *mut usize,
        _flags: u64,
        stream: Handle,
    ) {
        if list.is_null() || count == 0 {
            return Err(code::INVALID_VALUE);
        }
        let stream = stream::resolve(stream)?;
        in_order(count, failed, |n| {
            // SAFETY: the caller's list has `count` entries.
            let op = unsafe { list.add(n).read_unaligned() }.op()?;
            graph::submit(&stream, node_op::checked_copy(op)?)
        })
    }

    /// Copies a box between devices.
    fn hipMemcpy3DPeer(parameters: *const PeerBox) {
        let stream = stream::resolve(std::ptr::null_mut())?;
        peer_copy(&stream, parameters)?;
        stream.synchronize()
    }

    /// Copies a box between devices without waiting for the copy.
    fn hipMemcpy3DPeerAsync(parameters: *const PeerBox, stream: Handle) {
        peer_copy(&*stream::resolve(stream)?, parameters)
    }

    /// Fills rows with bytes.
    fn hipMemsetD2D8(to: *mut c_void, pitch: usize, value: u8, width: usize, height: usize) {
        fill_rows(std::ptr::null_mut(), (to, pitch), (u32::from(value), 1), (width, height), true)
    }

    /// Fills rows with bytes without waiting.
    fn hipMemsetD2D8Async(to: *mut c_void, pitch: usize, value: u8, width: usize, height: usize, stream: Handle) {
        fill_rows(stream, (to, pitch), (u32::from(value), 1), (width, height), false)
    }

    /// Fills rows with 16-bit numbers.
    fn hipMemsetD2D16(to: *mut c_void, pitch: usize, value: u16, width: usize, height: usize) {
        fill_rows(std::ptr::null_mut(), (to, pitch), (u32::from(value), 2), (width, height), true)
    }

    /// Fills rows with 16-bit numbers without waiting.
    fn hipMemsetD2D16Async(to: *mut c_void, pitch: usize, value: u16, width: usize, height: usize, stream: Handle) {
        fill_rows(stream, (to, pitch), (u32::from(value), 2), (width, height), false)
    }

    /// Fills rows with 32-bit numbers.
    fn hipMemsetD2D32(to: *mut c_void, pitch: usize, value: u32, width: usize, height: usize) {
        fill_rows(std::ptr::null_mut(), (to, pitch), (value, 4), (width, height), true)
    }

    /// Fills rows with 32-bit numbers without waiting.
    fn hipMemsetD2D32Async(to: *mut c_void, pitch: usize, value: u32, width: usize, height: usize, stream: Handle) {
        fill_rows(stream, (to, pitch), (value, 4), (width, height), false)
    }

    /// Chooses the device whose properties are nearest to the given ones: the first, because all simulated devices are
    /// alike.
    fn hipChooseDeviceR0600(out: *mut c_int, properties: *const c_void) {
        if properties.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, 0) }
    }

    /// Gives the properties of a device in their layout before HIP 6.
    fn hipGetDeviceProperties(out: *mut crate::hip::device::props::OldProperties, device: c_int) {
        // SAFETY: the caller's pointer, checked for null.
        unsafe { device_api::old_properties(out, device) }
    }
}

/// The former interface for tools, which the real library still exports: the function is never called.
///
/// # Safety
/// The function is not called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hipRegisterTracerCallback(_function: *const c_void) {}

/// Runs the parts of a batch in order, and writes the index of the first one that is refused.
fn in_order(
    count: usize,
    failed: *mut usize,
    mut part: impl FnMut(usize) -> HipResult,
) -> HipResult {
    for n in 0..count {
        if let Err(error) = part(n) {
            if !failed.is_null() {
                // SAFETY: the caller's pointer, not null.
                unsafe { put(failed, n)? };
            }
            return Err(error);
        }
    }
    Ok(())
}

fn fill_rows(
    stream: Handle,
    (to, pitch): (*mut c_void, usize),
    (value, element): (u32, usize),
    (width, rows): (usize, usize),
    wait: bool,
) -> HipResult {
    let op = FillOp {
        dst: to as usize,
        pitch,
        width: width.checked_mul(element).ok_or(code::INVALID_VALUE)?,
        rows,
        value,
        element,
    };
    fill_api::submit(stream::resolve(stream), op, wait)
}

/// `hipMemcpy3DPeerParms`: a copy of a box between devices.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PeerBox {
    src_array: *mut c_void,
    src_pos: Pos,
    src_ptr: PitchedPtr,
    src_device: c_int,
    dst_array: *mut c_void,
    dst_pos: Pos,
    dst_ptr: PitchedPtr,
    dst_device: c_int,
    extent: Extent,
}

const _: () = assert!(size_of::<PeerBox>() == 168);

fn peer_copy(stream: &Stream, parameters: *const PeerBox) -> HipResult {
    // SAFETY: the caller's struct, checked for null.
    let p = unsafe { parameters.as_ref() }.ok_or(code::INVALID_VALUE)?;
    if !p.src_array.is_null() || !p.dst_array.is_null() {
        return Err(code::NOT_SUPPORTED);
    }
    runtime::device(p.src_device)?;
    runtime::device(p.dst_device)?;
    let op = CopyOp {
        dst: params::part(p.dst_ptr, p.dst_pos),
        src: params::part(p.src_ptr, p.src_pos),
        width: p.extent.width,
        height: p.extent.height,
        depth: p.extent.depth,
        kind: kind::DEFAULT,
    };
    graph::submit(stream, node_op::checked_copy(op)?)
}

/// `hipMemcpy3DOperand` of a pointer; with another type the union holds an array.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Operand {
    kind: u32,
    pointer: *mut c_void,
    /// Elements (bytes) of a row and rows of a slice; 0 means as many as are copied.
    row: usize,
    rows: usize,
    location: MemLocation,
}

/// `hipMemcpy3DBatchOp`: a copy of a box in a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BatchBox {
    src: Operand,
    dst: Operand,
    extent: Extent,
    order: u32,
    flags: u32,
}

impl BatchBox {
    fn op(&self) -> HipResult<CopyOp> {
        const POINTER: u32 = 1;
        if self.src.kind != POINTER || self.dst.kind != POINTER {
            return Err(code::NOT_SUPPORTED);
        }
        let Extent {
            width,
            height,
            depth,
        } = self.extent;
        let side = |operand: &Operand| {
            let pitch = if operand.row == 0 { width } else { operand.row };
            let rows = if operand.rows == 0 {
                height
            } else {
                operand.rows
            };
            CopyBox {
                address: operand.pointer as usize,
                pitch,
                slice: pitch * rows,
            }
        };
        Ok(CopyOp {
            dst: side(&self.dst),
            src: side(&self.src),
            width,
            height,
            depth,
            kind: kind::DEFAULT,
        })
    }
}
