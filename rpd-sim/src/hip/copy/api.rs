//! The copy functions of the API.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::hip::copy::params::{
    cube, driver_cube, driver_rect, from_symbol, linear, rect, to_symbol,
};
use crate::hip::copy::{self, CopyOp};
use crate::hip::error::{HipResult, api, code};
use crate::hip::graph::capture_rules;
use crate::hip::graph::{self, Op};
use crate::hip::runtime;
use crate::hip::stream::{self, Stream};
use crate::hip::types::{DrvMemcpy2D, DrvMemcpy3D, Handle, Memcpy3D, kind};

/// The stream of a call, or the error for a stream that does not exist.
pub(crate) type Resolved = HipResult<Arc<Stream>>;

/// Enqueues a copy and, for the synchronous functions, waits for it.
pub(crate) fn submit(stream: Resolved, op: CopyOp, wait: bool) -> HipResult {
    if wait {
        capture_rules::synchronous()?;
    }
    copy::check(&op)?;
    let stream = stream?;
    graph::submit(&stream, Op::Copy(op))?;
    if wait { stream.synchronize() } else { Ok(()) }
}

pub(crate) fn null_stream() -> Resolved {
    stream::resolve(std::ptr::null_mut())
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
    api(|| {
        let stream = stream::resolve(stream)?;
        if stream.is_capturing() {
            return Err(code::STREAM_CAPTURE_UNSUPPORTED);
        }
        // Permitted while other streams capture.
        submit(Ok(Arc::clone(&stream)), linear(dst, src, size, kind), false)?;
        stream.synchronize()
    })
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
