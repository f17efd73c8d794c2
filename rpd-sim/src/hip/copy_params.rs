//! Converts the parameters of copy functions to operations.

use core::ffi::c_void;

use super::copy::CopyOp;
use super::error::{HipResult, code};
use super::fatbin;
use super::hsa::CopyBox;
use super::types::{DrvMemcpy2D, DrvMemcpy3D, Memcpy3D, PitchedPtr, Pos, kind, memory_type};

pub(super) fn linear(dst: *mut c_void, src: *const c_void, size: usize, kind: u32) -> CopyOp {
    CopyOp::linear(dst as usize, src as usize, size, kind)
}

pub(super) fn rect(
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

/// A box of pitched memory from a position on.
pub(super) fn part(pointer: PitchedPtr, at: Pos) -> CopyBox {
    let slice = pointer.pitch * pointer.ysize;
    CopyBox {
        address: pointer.ptr as usize + at.x + at.y * pointer.pitch + at.z * slice,
        pitch: pointer.pitch,
        slice,
    }
}

/// `parameters` is what the program passed.
pub(super) fn cube(parameters: *const Memcpy3D) -> HipResult<CopyOp> {
    if parameters.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: not null, and the program vouches for its own struct.
    let p = unsafe { parameters.read_unaligned() };
    if !p.src_array.is_null() || !p.dst_array.is_null() {
        return Err(code::NOT_SUPPORTED);
    }
    Ok(CopyOp {
        dst: part(p.dst_ptr, p.dst_pos),
        src: part(p.src_ptr, p.src_pos),
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
pub(super) fn driver_rect(parameters: *const DrvMemcpy2D) -> HipResult<CopyOp> {
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
pub(super) fn driver_cube(parameters: *const DrvMemcpy3D) -> HipResult<CopyOp> {
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

pub(super) fn to_symbol(
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

pub(super) fn from_symbol(
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
