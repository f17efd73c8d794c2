//! The memset functions of the API.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::hip::copy::fill::{self, FillOp};
use crate::hip::error::{HipResult, api, code};
use crate::hip::graph::capture_rules;
use crate::hip::graph::{self, Op};
use crate::hip::stream::{self, Stream};
use crate::hip::types::{Extent, Handle, PitchedPtr};

type Resolved = HipResult<Arc<Stream>>;

/// Enqueues a fill and, for the synchronous functions, waits for it.
pub(crate) fn submit(stream: Resolved, op: FillOp, wait: bool) -> HipResult {
    if wait {
        capture_rules::synchronous()?;
    }
    fill::check(&op)?;
    let stream = stream?;
    graph::submit(&stream, Op::Fill(op))?;
    if wait { stream.synchronize() } else { Ok(()) }
}

fn null_stream() -> Resolved {
    stream::resolve(std::ptr::null_mut())
}

fn bytes(dst: *mut c_void, value: c_int, size: usize) -> FillOp {
    FillOp::linear(dst as usize, size, value as u32, 1)
}

fn elements(dst: *mut c_void, value: u32, count: usize, element: usize) -> HipResult<FillOp> {
    let size = count.checked_mul(element).ok_or(code::INVALID_VALUE)?;
    Ok(FillOp::linear(dst as usize, size, value, element))
}

fn rect(dst: *mut c_void, pitch: usize, value: c_int, width: usize, rows: usize) -> FillOp {
    FillOp {
        dst: dst as usize,
        pitch,
        width,
        rows,
        value: value as u32,
        element: 1,
    }
}

/// The fills of a box: one for all slices if these lie one after the other without gaps, otherwise one for each slice.
fn cube(to: PitchedPtr, value: c_int, extent: Extent) -> HipResult<Vec<FillOp>> {
    let op = rect(to.ptr, to.pitch, value, extent.width, extent.height);
    if to.ysize == extent.height {
        let rows = extent
            .height
            .checked_mul(extent.depth)
            .ok_or(code::INVALID_VALUE)?;
        return Ok(vec![FillOp { rows, ..op }]);
    }
    let slice = to.pitch * to.ysize;
    Ok((0..extent.depth)
        .map(|z| FillOp {
            dst: op.dst + z * slice,
            ..op
        })
        .collect())
}

fn submit_all(stream: impl Fn() -> Resolved, ops: Vec<FillOp>, wait: bool) -> HipResult {
    ops.into_iter()
        .try_for_each(|op| submit(stream(), op, wait))
}

pub(crate) unsafe extern "C" fn hipMemset(dst: *mut c_void, value: c_int, size: usize) -> u32 {
    api(|| submit(null_stream(), bytes(dst, value, size), true))
}

pub(crate) unsafe extern "C" fn hipMemset_spt(dst: *mut c_void, value: c_int, size: usize) -> u32 {
    api(|| submit(stream::per_thread(), bytes(dst, value, size), true))
}

pub(crate) unsafe extern "C" fn hipMemsetAsync(
    dst: *mut c_void,
    value: c_int,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve(stream), bytes(dst, value, size), false))
}

pub(crate) unsafe extern "C" fn hipMemsetAsync_spt(
    dst: *mut c_void,
    value: c_int,
    size: usize,
    stream: Handle,
) -> u32 {
    api(|| submit(stream::resolve_spt(stream), bytes(dst, value, size), false))
}

pub(crate) unsafe extern "C" fn hipMemsetD8(dst: *mut c_void, value: u8, count: usize) -> u32 {
    api(|| {
        submit(
            null_stream(),
            elements(dst, u32::from(value), count, 1)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemsetD8Async(
    dst: *mut c_void,
    value: u8,
    count: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            elements(dst, u32::from(value), count, 1)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemsetD16(dst: *mut c_void, value: u16, count: usize) -> u32 {
    api(|| {
        submit(
            null_stream(),
            elements(dst, u32::from(value), count, 2)?,
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemsetD16Async(
    dst: *mut c_void,
    value: u16,
    count: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            elements(dst, u32::from(value), count, 2)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemsetD32(dst: *mut c_void, value: c_int, count: usize) -> u32 {
    api(|| submit(null_stream(), elements(dst, value as u32, count, 4)?, true))
}

pub(crate) unsafe extern "C" fn hipMemsetD32Async(
    dst: *mut c_void,
    value: c_int,
    count: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            elements(dst, value as u32, count, 4)?,
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemset2D(
    dst: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> u32 {
    api(|| submit(null_stream(), rect(dst, pitch, value, width, height), true))
}

pub(crate) unsafe extern "C" fn hipMemset2D_spt(
    dst: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
) -> u32 {
    api(|| {
        submit(
            stream::per_thread(),
            rect(dst, pitch, value, width, height),
            true,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemset2DAsync(
    dst: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve(stream),
            rect(dst, pitch, value, width, height),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemset2DAsync_spt(
    dst: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: Handle,
) -> u32 {
    api(|| {
        submit(
            stream::resolve_spt(stream),
            rect(dst, pitch, value, width, height),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipMemset3D(to: PitchedPtr, value: c_int, extent: Extent) -> u32 {
    api(|| submit_all(null_stream, cube(to, value, extent)?, true))
}

pub(crate) unsafe extern "C" fn hipMemset3D_spt(
    to: PitchedPtr,
    value: c_int,
    extent: Extent,
) -> u32 {
    api(|| submit_all(stream::per_thread, cube(to, value, extent)?, true))
}

pub(crate) unsafe extern "C" fn hipMemset3DAsync(
    to: PitchedPtr,
    value: c_int,
    extent: Extent,
    stream: Handle,
) -> u32 {
    api(|| submit_all(|| stream::resolve(stream), cube(to, value, extent)?, false))
}

pub(crate) unsafe extern "C" fn hipMemset3DAsync_spt(
    to: PitchedPtr,
    value: c_int,
    extent: Extent,
    stream: Handle,
) -> u32 {
    api(|| {
        submit_all(
            || stream::resolve_spt(stream),
            cube(to, value, extent)?,
            false,
        )
    })
}
