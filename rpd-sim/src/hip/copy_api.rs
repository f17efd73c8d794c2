//! The copy functions of the API.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use super::copy::{self, CopyOp};
use super::error::{HipResult, api, code};
use super::fatbin;
use super::graph::{self, Op};
use super::hsa::CopyBox;
use super::runtime;
use super::stream::{self, Stream};
use super::types::{DrvMemcpy2D, DrvMemcpy3D, Handle, Memcpy3D, kind, memory_type};

type Resolved = HipResult<Arc<Stream>>;

/// Enqueues a copy and, for the synchronous functions, waits for it.
fn submit(stream: Resolved, op: CopyOp, wait: bool) -> HipResult {
    copy::check(&op)?;
    let stream = stream?;
    if wait && stream.is_capturing() {
        return Err(code::STREAM_CAPTURE_UNSUPPORTED);
    }
    graph::submit(&stream, Op::Copy(op))?;
    if wait { stream.synchronize() } else { Ok(()) }
}

fn null_stream() -> Resolved {
    stream::resolve(std::ptr::null_mut())
}

fn linear(dst: *mut c_void, src: *const c_void, size: usize, kind: u32) -> CopyOp {
    CopyOp::linear(dst as usize, src as usize, size, kind)
}

fn rect(
    (dst, dpitch): (*mut c_void, usize),
    (src, spitch): (*const c_void, usize),
    width: usize,
    height: usize,
    kind: u32,
) -> CopyOp {
    let side = |address, pitch| CopyBox {
        address,
        pitch,
        slice: pitch * height,
    };
    CopyOp {
        dst: side(dst as usize, dpitch),
        src: side(src as usize, spitch),
        width,
        height,
        depth: 1,
        kind,
    }
}

/// `parameters` is what the program passed.
fn cube(parameters: *const Memcpy3D) -> HipResult<CopyOp> {
    if parameters.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: not null, and the program vouches for its own struct.
    let p = unsafe { parameters.read_unaligned() };
    if !p.src_array.is_null() || !p.dst_array.is_null() {
        return Err(code::NOT_SUPPORTED);
    }
    let side = |pointer: super::types::PitchedPtr, at: super::types::Pos| {
        let slice = pointer.pitch * pointer.ysize;
        CopyBox {
            address: pointer.ptr as usize + at.x + at.y * pointer.pitch + at.z * slice,
            pitch: pointer.pitch,
            slice,
        }
    };
    Ok(CopyOp {
        dst: side(p.dst_ptr, p.dst_pos),
        src: side(p.src_ptr, p.src_pos),
        width: p.extent.width,
        height: p.extent.height,
        depth: p.extent.depth,
        kind: p.kind,
    })
}

/// The address the driver functions mean by memory type, host and device address.
fn driver_address(kind: u32, host: usize, device: usize) -> HipResult<usize> {
    match kind {
        memory_type::HOST => Ok(host),
        memory_type::DEVICE | memory_type::UNIFIED | memory_type::MANAGED => Ok(device),
        memory_type::ARRAY => Err(code::NOT_SUPPORTED),
        _ => Err(code::INVALID_VALUE),
    }
}

/// `parameters` is what the program passed.
fn driver_rect(parameters: *const DrvMemcpy2D) -> HipResult<CopyOp> {
    if parameters.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: not null, and the program vouches for its own struct.
    let p = unsafe { parameters.read_unaligned() };
    let dst = driver_address(p.dst_type, p.dst_host as usize, p.dst_device as usize)?;
    let src = driver_address(p.src_type, p.src_host as usize, p.src_device as usize)?;
    let pitch = |pitch: usize| if pitch == 0 { p.width } else { pitch };
    let (dpitch, spitch) = (pitch(p.dst_pitch), pitch(p.src_pitch));
    Ok(rect(
        ((dst + p.dst_y * dpitch + p.dst_x) as *mut c_void, dpitch),
        ((src + p.src_y * spitch + p.src_x) as *const c_void, spitch),
        p.width,
        p.height,
        kind::DEFAULT,
    ))
}

/// `parameters` is what the program passed.
fn driver_cube(parameters: *const DrvMemcpy3D) -> HipResult<CopyOp> {
    if parameters.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: not null, and the program vouches for its own struct.
    let p = unsafe { parameters.read_unaligned() };
    let dst = driver_address(p.dst_type, p.dst_host as usize, p.dst_device as usize)?;
    let src = driver_address(p.src_type, p.src_host as usize, p.src_device as usize)?;
    let side = |base: usize, pitch: usize, height: usize, at: (usize, usize, usize)| {
        let pitch = if pitch == 0 { p.width } else { pitch };
        let slice = pitch * if height == 0 { p.height } else { height };
        CopyBox {
            address: base + at.0 + at.1 * pitch + at.2 * slice,
            pitch,
            slice,
        }
    };
    Ok(CopyOp {
        dst: side(dst, p.dst_pitch, p.dst_height, (p.dst_x, p.dst_y, p.dst_z)),
        src: side(src, p.src_pitch, p.src_height, (p.src_x, p.src_y, p.src_z)),
        width: p.width,
        height: p.height,
        depth: p.depth,
        kind: kind::DEFAULT,
    })
}

/// A part of a registered variable.
fn symbol(symbol: *const c_void, offset: usize, size: usize) -> HipResult<usize> {
    let (address, whole) = fatbin::variable(symbol)?;
    match offset.checked_add(size) {
        Some(end) if end <= whole => Ok(address + offset),
        _ => Err(code::INVALID_VALUE),
    }
}

fn to_symbol(
    to: *const c_void,
    src: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> HipResult<CopyOp> {
    if !matches!(
        kind,
        kind::HOST_TO_DEVICE | kind::DEVICE_TO_DEVICE | kind::DEFAULT
    ) {
        return Err(code::INVALID_MEMCPY_DIRECTION);
    }
    Ok(CopyOp::linear(
        symbol(to, offset, size)?,
        src as usize,
        size,
        kind,
    ))
}

fn from_symbol(
    dst: *mut c_void,
    from: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> HipResult<CopyOp> {
    if !matches!(
        kind,
        kind::DEVICE_TO_HOST | kind::DEVICE_TO_DEVICE | kind::DEFAULT
    ) {
        return Err(code::INVALID_MEMCPY_DIRECTION);
    }
    Ok(CopyOp::linear(
        dst as usize,
        symbol(from, offset, size)?,
        size,
        kind,
    ))
}

fn devices_exist(a: c_int, b: c_int) -> HipResult {
    runtime::device(a)?;
    runtime::device(b).map(|_| ())
}

pub(crate) unsafe extern "C" fn hipMemcpy(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
) -> u32 {
    api(|| submit(null_stream(), linear(dst, src, size, kind), true))
}

pub(crate) unsafe extern "C" fn hipMemcpy_spt(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
) -> u32 {
    api(|| submit(stream::per_thread(), linear(dst, src, size, kind), true))
}

pub(crate) unsafe extern "C" fn hipMemcpyAsync(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), linear(dst, src, size, kind), false))
}

pub(crate) unsafe extern "C" fn hipMemcpyAsync_spt(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve_spt(stream),
            linear(dst, src, size, kind),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyWithStream(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), linear(dst, src, size, kind), true))
}

pub(crate) unsafe extern "C" fn hipMemcpyHtoD(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            linear(dst, src, size, kind::HOST_TO_DEVICE),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyHtoDAsync(
    dst: *mut c_void,
    src: *const c_void,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            linear(dst, src, size, kind::HOST_TO_DEVICE),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyDtoH(
    dst: *mut c_void,
    src: *mut c_void,
    size: usize,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            linear(dst, src, size, kind::DEVICE_TO_HOST),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyDtoHAsync(
    dst: *mut c_void,
    src: *mut c_void,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            linear(dst, src, size, kind::DEVICE_TO_HOST),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyDtoD(
    dst: *mut c_void,
    src: *mut c_void,
    size: usize,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            linear(dst, src, size, kind::DEVICE_TO_DEVICE),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyDtoDAsync(
    dst: *mut c_void,
    src: *mut c_void,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            linear(dst, src, size, kind::DEVICE_TO_DEVICE),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpy2D(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            rect((dst, dpitch), (src, spitch), width, height, kind),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpy2D_spt(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            stream::per_thread(),
            rect((dst, dpitch), (src, spitch), width, height, kind),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpy2DAsync(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            rect((dst, dpitch), (src, spitch), width, height, kind),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpy2DAsync_spt(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve_spt(stream),
            rect((dst, dpitch), (src, spitch), width, height, kind),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpy3D(parameters: *const Memcpy3D) -> u32 {
    api(|| submit(null_stream(), cube(parameters)?, true))
}

pub(crate) unsafe extern "C" fn hipMemcpy3D_spt(parameters: *const Memcpy3D) -> u32 {
    api(|| submit(stream::per_thread(), cube(parameters)?, true))
}

pub(crate) unsafe extern "C" fn hipMemcpy3DAsync(
    parameters: *const Memcpy3D,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), cube(parameters)?, false))
}

pub(crate) unsafe extern "C" fn hipMemcpy3DAsync_spt(
    parameters: *const Memcpy3D,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve_spt(stream), cube(parameters)?, false))
}

pub(crate) unsafe extern "C" fn hipMemcpyParam2D(parameters: *const DrvMemcpy2D) -> u32 {
    api(|| submit(null_stream(), driver_rect(parameters)?, true))
}

pub(crate) unsafe extern "C" fn hipMemcpyParam2DAsync(
    parameters: *const DrvMemcpy2D,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), driver_rect(parameters)?, false))
}

pub(crate) unsafe extern "C" fn hipDrvMemcpy2DUnaligned(parameters: *const DrvMemcpy2D) -> u32 {
    api(|| submit(null_stream(), driver_rect(parameters)?, true))
}

pub(crate) unsafe extern "C" fn hipDrvMemcpy3D(parameters: *const DrvMemcpy3D) -> u32 {
    api(|| submit(null_stream(), driver_cube(parameters)?, true))
}

pub(crate) unsafe extern "C" fn hipDrvMemcpy3DAsync(
    parameters: *const DrvMemcpy3D,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), driver_cube(parameters)?, false))
}

pub(crate) unsafe extern "C" fn hipMemcpyPeer(
    dst: *mut c_void,
    dst_device: c_int,
    src: *const c_void,
    src_device: c_int,
    size: usize,
) -> u32 {
    api(|| {
        devices_exist(dst_device, src_device)?;
        submit(
            null_stream(),
            linear(dst, src, size, kind::DEVICE_TO_DEVICE),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyPeerAsync(
    dst: *mut c_void,
    dst_device: c_int,
    src: *const c_void,
    src_device: c_int,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        devices_exist(dst_device, src_device)?;
        submit(
            stream::resolve(stream),
            linear(dst, src, size, kind::DEVICE_TO_DEVICE),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbol(
    symbol: *const c_void,
    src: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            to_symbol(symbol, src, size, offset, kind)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbol_spt(
    symbol: *const c_void,
    src: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            stream::per_thread(),
            to_symbol(symbol, src, size, offset, kind)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbolAsync(
    symbol: *const c_void,
    src: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            to_symbol(symbol, src, size, offset, kind)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyToSymbolAsync_spt(
    symbol: *const c_void,
    src: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve_spt(stream),
            to_symbol(symbol, src, size, offset, kind)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbol(
    dst: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            null_stream(),
            from_symbol(dst, symbol, size, offset, kind)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbol_spt(
    dst: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
) -> u32 {
    api(|| {
        submit(
            stream::per_thread(),
            from_symbol(dst, symbol, size, offset, kind)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbolAsync(
    dst: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            from_symbol(dst, symbol, size, offset, kind)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyFromSymbolAsync_spt(
    dst: *mut c_void,
    symbol: *const c_void,
    size: usize,
    offset: usize,
    kind: u32,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve_spt(stream),
            from_symbol(dst, symbol, size, offset, kind)?,
            false,
        )
    })
}
