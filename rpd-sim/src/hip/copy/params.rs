//! Converts the parameters of copy functions to operations.

use core::ffi::c_void;
use std::sync::Arc;

use crate::hip::copy::CopyOp;
use crate::hip::error::{HipResult, argument, code};
use crate::hip::hsa::CopyBox;
use crate::hip::image::array::Array;
use crate::hip::module::fatbin;
use crate::hip::types::{
    DrvMemcpy2D, DrvMemcpy3D, Extent, Memcpy3D, PitchedPtr, Pos, kind, memory_type,
};

pub(crate) fn linear(dst: *mut c_void, src: *const c_void, size: usize, kind: u32) -> CopyOp {
    CopyOp::linear(dst as usize, src as usize, size, kind)
}

pub(crate) fn rect(
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
pub(crate) fn part(pointer: PitchedPtr, at: Pos) -> CopyBox {
    let slice = pointer.pitch * pointer.ysize;
    CopyBox {
        address: pointer.ptr as usize + at.x + at.y * pointer.pitch + at.z * slice,
        pitch: pointer.pitch,
        slice,
    }
}

/// The copy that the parameters of `hipMemcpy3D` describe, as the program passed them.
pub(crate) fn cube(parameters: *const Memcpy3D) -> HipResult<CopyOp> {
    // SAFETY: the program vouches for its own struct.
    let p = unsafe { argument(parameters)? };
    let Extent {
        width,
        height,
        depth,
    } = p.extent;
    let arrays = [p.dst_array, p.src_array];
    let [dst, src] = arrays.map(|array| (!array.is_null()).then(|| Array::find(array)));
    let (dst, src) = (dst.transpose()?, src.transpose()?);
    // With an array the width counts elements, and so do positions in arrays.
    let element = src.as_ref().or(dst.as_ref());
    let width = width.saturating_mul(element.map_or(1, |array| array.elements.bytes()));
    let side = |array: Option<&Arc<Array>>, pointer, at: Pos| match array {
        Some(array) => array.part(
            [at.x.saturating_mul(array.elements.bytes()), at.y, at.z],
            [width, height, depth],
        ),
        None => Ok(part(pointer, at)),
    };
    Ok(CopyOp {
        dst: side(dst.as_ref(), p.dst_ptr, p.dst_pos)?,
        src: side(src.as_ref(), p.src_ptr, p.src_pos)?,
        width,
        height,
        depth,
        kind: p.kind,
    })
}

/// One side of a copy of the driver functions.
struct DriverSide {
    /// `hipMemoryType`.
    kind: u32,
    host: usize,
    device: usize,
    array: *mut c_void,
    /// Bytes from one row to the next, 0 if there is no gap.
    pitch: usize,
    /// Rows from one slice to the next, 0 if there is no gap.
    height: usize,
    /// Position of the first byte: bytes into a row, row, and slice.
    at: [usize; 3],
}

impl DriverSide {
    /// A box of this size on this side of the copy.
    fn part(&self, [width, height, depth]: [usize; 3]) -> HipResult<CopyBox> {
        let base = match self.kind {
            memory_type::HOST => self.host,
            memory_type::DEVICE | memory_type::UNIFIED | memory_type::MANAGED => self.device,
            memory_type::ARRAY => {
                return Array::find(self.array)?.part(self.at, [width, height, depth]);
            }
            _ => return Err(code::INVALID_VALUE),
        };
        let otherwise = |given: usize, instead: usize| if given == 0 { instead } else { given };
        let pitch = otherwise(self.pitch, width);
        let slice = pitch * otherwise(self.height, height);
        let [x, y, z] = self.at;
        Ok(CopyBox {
            address: base + x + y * pitch + z * slice,
            pitch,
            slice,
        })
    }
}

/// A copy of a box of this size.
fn driver_copy(dst: &DriverSide, src: &DriverSide, size: [usize; 3]) -> HipResult<CopyOp> {
    let [width, height, depth] = size;
    Ok(CopyOp {
        dst: dst.part(size)?,
        src: src.part(size)?,
        width,
        height,
        depth,
        kind: kind::DEFAULT,
    })
}

/// The copy that the parameters of `hipMemcpyParam2D` describe, as the program passed them.
pub(crate) fn driver_rect(parameters: *const DrvMemcpy2D) -> HipResult<CopyOp> {
    // SAFETY: the program vouches for its own struct.
    let p = unsafe { argument(parameters)? };
    let dst = DriverSide {
        kind: p.dst_type,
        host: p.dst_host as usize,
        device: p.dst_device as usize,
        array: p.dst_array,
        pitch: p.dst_pitch,
        height: 0,
        at: [p.dst_x, p.dst_y, 0],
    };
    let src = DriverSide {
        kind: p.src_type,
        host: p.src_host as usize,
        device: p.src_device as usize,
        array: p.src_array,
        pitch: p.src_pitch,
        height: 0,
        at: [p.src_x, p.src_y, 0],
    };
    driver_copy(&dst, &src, [p.width, p.height, 1])
}

/// The copy that the parameters of `hipDrvMemcpy3D` describe, as the program passed them.
pub(crate) fn driver_cube(parameters: *const DrvMemcpy3D) -> HipResult<CopyOp> {
    // SAFETY: the program vouches for its own struct.
    let p = unsafe { argument(parameters)? };
    let dst = DriverSide {
        kind: p.dst_type,
        host: p.dst_host as usize,
        device: p.dst_device as usize,
        array: p.dst_array,
        pitch: p.dst_pitch,
        height: p.dst_height,
        at: [p.dst_x, p.dst_y, p.dst_z],
    };
    let src = DriverSide {
        kind: p.src_type,
        host: p.src_host as usize,
        device: p.src_device as usize,
        array: p.src_array,
        pitch: p.src_pitch,
        height: p.src_height,
        at: [p.src_x, p.src_y, p.src_z],
    };
    driver_copy(&dst, &src, [p.width, p.height, p.depth])
}

/// A part of a registered variable.
fn symbol(symbol: *const c_void, offset: usize, size: usize) -> HipResult<usize> {
    let (address, whole) = fatbin::variable(symbol)?;
    match offset.checked_add(size) {
        Some(end) if end <= whole => Ok(address + offset),
        _ => Err(code::INVALID_VALUE),
    }
}

pub(crate) fn to_symbol(
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

pub(crate) fn from_symbol(
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
