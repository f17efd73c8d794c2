//! The functions of the API that copy to and from arrays.

use core::ffi::c_void;

use crate::hip::copy::CopyOp;
use crate::hip::copy::api::{Resolved, null_stream, submit};
use crate::hip::error::{HipResult, api, code};
use crate::hip::hsa::CopyBox;
use crate::hip::image::array::Array;
use crate::hip::stream;
use crate::hip::types::{Handle, kind};

/// Memory with rows that are `pitch` bytes apart; `None` for rows without gaps.
fn rows(address: *const c_void, pitch: Option<usize>, width: usize) -> HipResult<CopyBox> {
    let pitch = pitch.unwrap_or(width);
    if address.is_null() {
        return Err(code::INVALID_VALUE);
    }
    if pitch < width {
        return Err(code::INVALID_PITCH_VALUE);
    }
    Ok(CopyBox {
        address: address as usize,
        pitch,
        slice: pitch,
    })
}

/// Position in an array: bytes into a row, and row.
type Start = (*const c_void, usize, usize);

fn array_box((array, x, y): Start, width: usize, height: usize) -> HipResult<CopyBox> {
    Array::find(array)?.part([x, y, 0], [width, height, 1])
}

fn op(dst: CopyBox, src: CopyBox, width: usize, height: usize, kind: u32) -> CopyOp {
    CopyOp {
        dst,
        src,
        width,
        height,
        depth: 1,
        kind,
    }
}

fn to_array(
    dst: Start,
    (src, pitch): (*const c_void, Option<usize>),
    (width, height): (usize, usize),
    kind: u32,
) -> HipResult<CopyOp> {
    if !matches!(
        kind,
        kind::HOST_TO_DEVICE | kind::DEVICE_TO_DEVICE | kind::DEFAULT
    ) {
        return Err(code::INVALID_MEMCPY_DIRECTION);
    }
    let dst = array_box(dst, width, height)?;
    Ok(op(dst, rows(src, pitch, width)?, width, height, kind))
}

fn from_array(
    (dst, pitch): (*mut c_void, Option<usize>),
    src: Start,
    (width, height): (usize, usize),
    kind: u32,
) -> HipResult<CopyOp> {
    if !matches!(
        kind,
        kind::DEVICE_TO_HOST | kind::DEVICE_TO_DEVICE | kind::DEFAULT
    ) {
        return Err(code::INVALID_MEMCPY_DIRECTION);
    }
    let src = array_box(src, width, height)?;
    Ok(op(rows(dst, pitch, width)?, src, width, height, kind))
}

/// Width in bytes and height of the box that `count` bytes fill in an array; fails if they do not fill whole rows.
fn whole_rows(array: *const c_void, count: usize) -> HipResult<(usize, usize)> {
    let array = Array::find(array)?;
    let row = array.descriptor.width * array.elements.bytes();
    if count < row {
        return Ok((count, 1));
    }
    if !count.is_multiple_of(row) {
        return Err(code::INVALID_VALUE);
    }
    Ok((row, count / row))
}

/// Copies consecutive bytes between the first rows of arrays, or between an array and memory.
fn line(
    dst: impl FnOnce(usize) -> HipResult<CopyBox>,
    src: impl FnOnce(usize) -> HipResult<CopyBox>,
    (count, kind): (usize, u32),
    stream: Resolved,
    wait: bool,
) -> HipResult {
    submit(stream, op(dst(count)?, src(count)?, count, 1, kind), wait)
}

/// Bytes of the first row of an array from `offset` on, as one side of a copy.
fn array(array: *const c_void, offset: usize) -> impl FnOnce(usize) -> HipResult<CopyBox> {
    move |count| array_box((array, offset, 0), count, 1)
}

/// Linear memory at `address` as one side of a copy, for the number of bytes of the copy.
fn memory(address: *const c_void) -> impl FnOnce(usize) -> HipResult<CopyBox> {
    move |count| rows(address, None, count)
}

macro_rules! to_array_functions {
    ($($name:ident, $stream:expr, $wait:literal $(, $handle:ident)?;)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            dst: *mut c_void,
            x: usize,
            y: usize,
            src: *const c_void,
            pitch: usize,
            width: usize,
            height: usize,
            kind: u32,
            $($handle: Handle,)?
        ) -> u32 {
            api(|| {
                let op = to_array((dst, x, y), (src, Some(pitch)), (width, height), kind)?;
                submit($stream, op, $wait)
            })
        }
    )*};
}

to_array_functions! {
    hipMemcpy2DToArray, null_stream(), true;
    hipMemcpy2DToArray_spt, stream::per_thread(), true;
    hipMemcpy2DToArrayAsync, stream::resolve(stream), false, stream;
    hipMemcpy2DToArrayAsync_spt, stream::resolve_spt(stream), false, stream;
}

macro_rules! from_array_functions {
    ($($name:ident, $stream:expr, $wait:literal $(, $handle:ident)?;)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            dst: *mut c_void,
            pitch: usize,
            src: *const c_void,
            x: usize,
            y: usize,
            width: usize,
            height: usize,
            kind: u32,
            $($handle: Handle,)?
        ) -> u32 {
            api(|| {
                let op = from_array((dst, Some(pitch)), (src, x, y), (width, height), kind)?;
                submit($stream, op, $wait)
            })
        }
    )*};
}

from_array_functions! {
    hipMemcpy2DFromArray, null_stream(), true;
    hipMemcpy2DFromArray_spt, stream::per_thread(), true;
    hipMemcpy2DFromArrayAsync, stream::resolve(stream), false, stream;
    hipMemcpy2DFromArrayAsync_spt, stream::resolve_spt(stream), false, stream;
}

pub(crate) unsafe extern "C" fn hipMemcpy2DArrayToArray(
    dst: *mut c_void,
    dst_x: usize,
    dst_y: usize,
    src: *const c_void,
    src_x: usize,
    src_y: usize,
    width: usize,
    height: usize,
    kind: u32,
) -> u32 {
    api(|| {
        if !matches!(kind, kind::DEVICE_TO_DEVICE | kind::DEFAULT) {
            return Err(code::INVALID_MEMCPY_DIRECTION);
        }
        let to = array_box((dst, dst_x, dst_y), width, height)?;
        let from = array_box((src, src_x, src_y), width, height)?;
        submit(null_stream(), op(to, from, width, height, kind), true)
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyToArray(
    dst: *mut c_void,
    x: usize,
    y: usize,
    src: *const c_void,
    count: usize,
    kind: u32,
) -> u32 {
    api(|| {
        let op = to_array((dst, x, y), (src, None), whole_rows(dst, count)?, kind)?;
        submit(null_stream(), op, true)
    })
}

/// Copies whole rows of an array.
fn rows_from_array(
    stream: Resolved,
    dst: *mut c_void,
    src: Start,
    count: usize,
    kind: u32,
) -> HipResult {
    let op = from_array((dst, None), src, whole_rows(src.0, count)?, kind)?;
    submit(stream, op, true)
}

pub(crate) unsafe extern "C" fn hipMemcpyFromArray(
    dst: *mut c_void,
    src: *const c_void,
    x: usize,
    y: usize,
    count: usize,
    kind: u32,
) -> u32 {
    api(|| rows_from_array(null_stream(), dst, (src, x, y), count, kind))
}

pub(crate) unsafe extern "C" fn hipMemcpyFromArray_spt(
    dst: *mut c_void,
    src: *const c_void,
    x: usize,
    y: usize,
    count: usize,
    kind: u32,
) -> u32 {
    api(|| rows_from_array(stream::per_thread(), dst, (src, x, y), count, kind))
}

pub(crate) unsafe extern "C" fn hipMemcpyAtoH(
    dst: *mut c_void,
    src: *mut c_void,
    src_offset: usize,
    count: usize,
) -> u32 {
    let bytes = (count, kind::DEVICE_TO_HOST);
    api(|| {
        line(
            memory(dst),
            array(src, src_offset),
            bytes,
            null_stream(),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyAtoHAsync(
    dst: *mut c_void,
    src: *mut c_void,
    src_offset: usize,
    count: usize,
    stream: Handle,
) -> u32 {
    let bytes = (count, kind::DEVICE_TO_HOST);
    api(|| {
        line(
            memory(dst),
            array(src, src_offset),
            bytes,
            stream::resolve(stream),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyHtoA(
    dst: *mut c_void,
    dst_offset: usize,
    src: *const c_void,
    count: usize,
) -> u32 {
    let bytes = (count, kind::HOST_TO_DEVICE);
    api(|| {
        line(
            array(dst, dst_offset),
            memory(src),
            bytes,
            null_stream(),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyHtoAAsync(
    dst: *mut c_void,
    dst_offset: usize,
    src: *const c_void,
    count: usize,
    stream: Handle,
) -> u32 {
    let bytes = (count, kind::HOST_TO_DEVICE);
    api(|| {
        line(
            array(dst, dst_offset),
            memory(src),
            bytes,
            stream::resolve(stream),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyAtoD(
    dst: *mut c_void,
    src: *mut c_void,
    src_offset: usize,
    count: usize,
) -> u32 {
    let bytes = (count, kind::DEVICE_TO_DEVICE);
    api(|| {
        line(
            memory(dst),
            array(src, src_offset),
            bytes,
            null_stream(),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyDtoA(
    dst: *mut c_void,
    dst_offset: usize,
    src: *mut c_void,
    count: usize,
) -> u32 {
    let bytes = (count, kind::DEVICE_TO_DEVICE);
    api(|| {
        line(
            array(dst, dst_offset),
            memory(src),
            bytes,
            null_stream(),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemcpyAtoA(
    dst: *mut c_void,
    dst_offset: usize,
    src: *mut c_void,
    src_offset: usize,
    count: usize,
) -> u32 {
    let bytes = (count, kind::DEVICE_TO_DEVICE);
    api(|| {
        line(
            array(dst, dst_offset),
            array(src, src_offset),
            bytes,
            null_stream(),
            true,
        )
    })
}
