//! Computes how many workgroups of a kernel run on a compute unit at the same time.

use core::ffi::{c_int, c_void};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::module::function::Function;
use crate::hip::types::Handle;

/// Number of workgroups of `block` work-items, with `shared` bytes of dynamic local memory, that run on one compute
/// unit at a time.
pub(crate) fn blocks_per_unit(function: &Function, block: u64, shared: usize) -> u32 {
    let figures = &function.device.figures;
    let layout = figures.layout;
    let waves_per_simd = layout.waves_by_registers(function.kernel.vgpr_count);
    let waves = block.div_ceil(u64::from(figures.wavefront));
    let waves = u32::try_from(waves).unwrap_or(u32::MAX).max(1);
    let by_waves = waves_per_simd * layout.simds_per_unit / waves;
    let lds = function.symbol.group_size as usize + shared;
    let by_lds = (layout.lds_bytes as usize)
        .checked_div(lds)
        .map_or(u32::MAX, |groups| groups as u32);
    by_waves.min(by_lds)
}

/// Bytes of dynamic local memory that each of `blocks` workgroups can have when they run on a compute unit at the same
/// time.
pub(crate) fn local_memory_per_block(
    function: &Function,
    blocks: usize,
    block: u64,
) -> HipResult<usize> {
    if blocks > blocks_per_unit(function, block, 0) as usize {
        return Err(code::INVALID_VALUE);
    }
    let bytes = function.device.figures.layout.lds_bytes as usize / blocks;
    Ok(bytes.saturating_sub(function.symbol.group_size as usize))
}

/// # Safety
/// `out` is null or valid.
unsafe fn active(
    out: *mut c_int,
    function: HipResult<std::sync::Arc<Function>>,
    block: c_int,
    shared: usize,
) -> HipResult {
    let function = function?;
    let items = u64::try_from(block)
        .ok()
        .filter(|n| *n > 0)
        .ok_or(code::INVALID_VALUE)?;
    let blocks = if items > u64::from(function.max_threads()) {
        0
    } else {
        blocks_per_unit(&function, items, shared)
    };
    // SAFETY: by contract, checked for null.
    unsafe { put(out, blocks as c_int) }
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
    out: *mut c_int,
    stub: *const c_void,
    block: c_int,
    shared: usize,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { active(out, fatbin::function(stub), block, shared) })
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    out: *mut c_int,
    stub: *const c_void,
    block: c_int,
    shared: usize,
    _flags: u32,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { active(out, fatbin::function(stub), block, shared) })
}

pub(crate) unsafe extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    out: *mut c_int,
    function: Handle,
    block: c_int,
    shared: usize,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { active(out, module::function(function), block, shared) })
}

pub(crate) unsafe extern "C" fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    out: *mut c_int,
    function: Handle,
    block: c_int,
    shared: usize,
    _flags: u32,
) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { active(out, module::function(function), block, shared) })
}

/// # Safety
/// `grid` and `block` are null or valid.
unsafe fn potential(
    grid: *mut c_int,
    block: *mut c_int,
    function: HipResult<std::sync::Arc<Function>>,
    shared: usize,
    limit: c_int,
) -> HipResult {
    let function = function?;
    let most = match u32::try_from(limit) {
        Ok(0) => function.max_threads(),
        Ok(limit) => limit.min(function.max_threads()),
        Err(_) => return Err(code::INVALID_VALUE),
    };
    // The largest size that fills a compute unit best; larger groups win a draw.
    let sizes = (1..=most.div_ceil(64)).map(|waves| (waves * 64).min(most));
    let filled = |size: u32| blocks_per_unit(&function, u64::from(size), shared) * size;
    let best = sizes.max_by_key(|&size| (filled(size), size)).unwrap_or(64);
    let per_unit = blocks_per_unit(&function, u64::from(best), shared);
    let units = function.device.figures.compute_units;
    // SAFETY: by contract, checked for null.
    unsafe {
        put(grid, (per_unit * units) as c_int)?;
        put(block, best as c_int)
    }
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    stub: *const c_void,
    shared: usize,
    limit: c_int,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { potential(grid, block, fatbin::function(stub), shared, limit) })
}

pub(crate) unsafe extern "C" fn hipModuleOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    function: Handle,
    shared: usize,
    limit: c_int,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { potential(grid, block, module::function(function), shared, limit) })
}

pub(crate) unsafe extern "C" fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
    grid: *mut c_int,
    block: *mut c_int,
    function: Handle,
    shared: usize,
    limit: c_int,
    _flags: u32,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { potential(grid, block, module::function(function), shared, limit) })
}
