//! Copies: the choice of the engine that carries one out, and its order with the rest of its stream.

pub(crate) mod api;
pub(crate) mod blit;
pub(crate) mod fill;
pub(crate) mod fill_api;
pub(crate) mod params;

use std::sync::Arc;

use crate::hip::error::{HipResult, code};
use crate::hip::hsa::{self, CopyBox, CopyEnd};
use crate::hip::memory::{self, MemoryPlace};
use crate::hip::runtime::{self, Runtime};
use crate::hip::stream::signal::Signal;
use crate::hip::stream::{Step, Stream};
use crate::hip::types::kind;

/// Most bytes of pageable memory that are copied through a pinned buffer; larger copies pin the memory itself.
const STAGING_BYTES: usize = 4 << 20;

/// Most bytes of pageable memory that are pinned at a time.
const PINNED_BYTES: usize = 128 << 20;
/// Size of a page in bytes: the first of several pieces ends at the end of a page.
const PAGE: usize = 4096;

/// A stream's pinned buffer, made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    base: usize,
}

impl Staging {
    fn get(&mut self, stream: &Stream) -> HipResult<usize> {
        if self.base == 0 {
            let base = hsa::allocate(stream.device.staging_pool, STAGING_BYTES)?;
            hsa::allow_access(&[stream.device.agent], base)?;
            self.base = base;
        }
        Ok(self.base)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if self.base != 0 {
            // Memory that HSA does not find has been freed already.
            let _ = hsa::free(self.base);
        }
    }
}

/// A copy of a box of bytes; a plain copy has one row and one slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyOp {
    pub(crate) dst: CopyBox,
    pub(crate) src: CopyBox,
    /// Bytes of a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) depth: usize,
    /// `hipMemcpyKind`.
    pub(crate) kind: u32,
}

impl CopyOp {
    /// A copy of consecutive bytes.
    pub(crate) fn linear(dst: usize, src: usize, size: usize, kind: u32) -> Self {
        let side = |address| CopyBox {
            address,
            pitch: size,
            slice: size,
        };
        Self {
            dst: side(dst),
            src: side(src),
            width: size,
            height: 1,
            depth: 1,
            kind,
        }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0 || self.depth == 0
    }

    /// Bytes from the first to the last byte of one side.
    fn span(&self, side: &CopyBox) -> usize {
        side.slice * (self.depth - 1) + side.pitch * (self.height - 1) + self.width
    }

    /// The copy as one of consecutive bytes, if both sides have no gaps between rows and slices.
    fn flatten(mut self) -> Self {
        let dense = |op: &Self, side: &CopyBox| {
            (op.height == 1 || side.pitch == op.width)
                && (op.depth == 1 || side.slice == op.width * op.height)
        };
        if dense(&self, &self.dst) && dense(&self, &self.src) {
            let size = self.width * self.height * self.depth;
            self = Self::linear(self.dst.address, self.src.address, size, self.kind);
        }
        self
    }

    fn is_linear(&self) -> bool {
        self.height == 1 && self.depth == 1
    }
}

/// Source or destination of a copy, with its allocation if there is one.
struct CopySide {
    place: Option<MemoryPlace>,
}

impl CopySide {
    fn from_op(op: &CopyOp, side: &CopyBox) -> HipResult<Self> {
        let place = memory::find(side.address)?;
        if let Some(place) = &place
            && !place.holds(side.address, op.span(side))
        {
            return Err(code::INVALID_VALUE);
        }
        Ok(Self { place })
    }

    fn device(&self) -> Option<usize> {
        self.place
            .as_ref()
            .filter(|place| place.is_device())
            .map(|place| place.allocation.device)
    }

    fn is_pageable(&self) -> bool {
        self.place.is_none()
    }

    fn agent(&self, runtime: &Runtime) -> u64 {
        self.device()
            .map_or(runtime.cpu, |ordinal| runtime.devices[ordinal].agent)
    }

    /// The box in the form that the engines take.
    fn engine_box(&self, side: CopyBox) -> CopyBox {
        let address = self
            .place
            .as_ref()
            .map_or(side.address, |place| place.address);
        CopyBox { address, ..side }
    }
}

/// Checks a copy without carrying it out.
pub(crate) fn check(op: &CopyOp) -> HipResult {
    if !matches!(op.kind, 0..=4 | kind::DEVICE_TO_DEVICE_NO_CU) {
        return Err(code::INVALID_MEMCPY_DIRECTION);
    }
    // The real runtime accepts null pointers for copies without bytes.
    if op.is_empty() {
        return Ok(());
    }
    if op.dst.address == 0 || op.src.address == 0 {
        return Err(code::INVALID_VALUE);
    }
    // A single row has no next one, so that its pitch does not matter.
    if (op.height > 1 || op.depth > 1) && (op.width > op.dst.pitch || op.width > op.src.pitch) {
        return Err(code::INVALID_PITCH_VALUE);
    }
    let (dst, src) = (
        CopySide::from_op(op, &op.dst)?,
        CopySide::from_op(op, &op.src)?,
    );
    let (to_device, from_device) = match op.kind {
        kind::HOST_TO_DEVICE => (true, false),
        kind::DEVICE_TO_HOST => (false, true),
        kind::DEVICE_TO_DEVICE | kind::DEVICE_TO_DEVICE_NO_CU => (true, true),
        _ => (false, false),
    };
    // A kind that names a device must not hide a pointer to ordinary host memory; `hipMemcpyDefault` takes anything.
    if (to_device && dst.is_pageable()) || (from_device && src.is_pageable()) {
        return Err(code::INVALID_VALUE);
    }
    Ok(())
}

/// Carries a checked copy out on a stream. Pageable memory makes it end before this returns.
pub(crate) fn run(stream: &Stream, op: &CopyOp) -> HipResult {
    // A copy onto itself changes nothing.
    if op.is_empty() || op.dst.address == op.src.address {
        return Ok(());
    }
    // One long copy is faster than many rows, and takes the paths for consecutive bytes below.
    let op = op.flatten();
    let (dst, src) = (
        CopySide::from_op(&op, &op.dst)?,
        CopySide::from_op(&op, &op.src)?,
    );
    let mut step = stream.step()?;
    // A kernel of the runtime copies within one device, as in the real runtime: the engines are left to transfers, and
    // tools see the dispatch.
    match (dst.device(), src.device()) {
        (Some(to), Some(from))
            if to == from
                && to == stream.device.ordinal
                && op.kind != kind::DEVICE_TO_DEVICE_NO_CU =>
        {
            step.blit()?.copy(&mut step, &op)
        }
        (None, None) if dst.is_pageable() || src.is_pageable() => {
            // The program may change its memory as soon as the call returns, so that nothing of the copy may be left to
            // do.
            step.drain()?;
            // SAFETY: the program vouches for its own memory, the rest was checked above.
            unsafe { on_host(&op) };
            Ok(())
        }
        _ if dst.is_pageable() => from_engine_to_pageable(&mut step, &op, &src),
        _ if src.is_pageable() => from_pageable_to_engine(&mut step, &op, &dst),
        _ => {
            let runtime = runtime::get()?;
            let ends = (dst.engine_box(op.dst), src.engine_box(op.src));
            let agents = (dst.agent(runtime), src.agent(runtime));
            engine(&mut step, &op, ends, agents, false).map(|_| ())
        }
    }
}

/// Copies between two ranges of the program's own memory.
///
/// # Safety
/// Both boxes are valid.
unsafe fn on_host(op: &CopyOp) {
    for slice in 0..op.depth {
        for row in 0..op.height {
            let at = |side: &CopyBox| side.address + slice * side.slice + row * side.pitch;
            // SAFETY: by contract; the ranges may overlap.
            unsafe {
                std::ptr::copy(at(&op.src) as *const u8, at(&op.dst) as *mut u8, op.width);
            }
        }
    }
}

/// Has a copy engine carry a copy out, after everything before it in the stream. `waits`: the caller waits for its end.
fn engine(
    step: &mut Step<'_>,
    op: &CopyOp,
    (dst, src): (CopyBox, CopyBox),
    (dst_agent, src_agent): (u64, u64),
    waits: bool,
) -> HipResult<Arc<Signal>> {
    let deps = step.before_copy(waits)?;
    let handles: Vec<u64> = deps.iter().map(|signal| signal.handle()).collect();
    let done = step.pending()?;
    let device = step.stream().device;
    let started = if op.is_linear() {
        let end = |side: CopyBox, agent| CopyEnd {
            address: side.address,
            agent,
        };
        // One engine for each direction, as long as HSA offers both.
        let (wanted, there) = if src_agent == device.cpu {
            (1, device.engines.0)
        } else {
            (2, device.engines.1)
        };
        let engine = if there & wanted != 0 || there == 0 {
            wanted
        } else {
            there & there.wrapping_neg()
        };
        let (dst, src) = (end(dst, dst_agent), end(src, src_agent));
        // SAFETY: the ranges were checked; what is freed is waited for first.
        unsafe { hsa::copy_on_engine(dst, src, op.width, &handles, done.handle(), engine) }
    } else {
        // Directions as in `hsa_amd_copy_direction_t`: bit 0 the destination is a device, bit 1 the source is.
        let direction = u32::from(dst_agent != device.cpu) + 2 * u32::from(src_agent != device.cpu);
        let number = |n: usize| u32::try_from(n).map_err(|_| code::INVALID_VALUE);
        let range = [number(op.width)?, number(op.height)?, number(op.depth)?];
        // SAFETY: as above.
        unsafe {
            hsa::copy_rect(
                dst,
                src,
                range,
                device.agent,
                direction,
                &handles,
                done.handle(),
            )
        }
    };
    started?;
    // The signals waited for are kept until the copy has ended: a destroyed one could be used again for something else.
    step.ends_with(Arc::clone(&done), deps);
    Ok(done)
}

fn from_pageable_to_engine(step: &mut Step<'_>, op: &CopyOp, dst: &CopySide) -> HipResult {
    let runtime = runtime::get()?;
    let agents = (dst.agent(runtime), runtime.cpu);
    let to = dst.engine_box(op.dst);
    // Pinning pages costs more than copying small amounts through a buffer that is pinned already.
    if op.is_linear() && op.width <= STAGING_BYTES {
        let stream = step.stream();
        let buffer = step.state().staging.get(stream)?;
        // SAFETY: the program guarantees its memory, the buffer is large enough and not in use now:
        // every copy through it is waited for.
        unsafe {
            std::ptr::copy_nonoverlapping(op.src.address as *const u8, buffer as *mut u8, op.width)
        };
        let from = CopyBox {
            address: buffer,
            ..op.src
        };
        engine(step, op, (to, from), agents, true)?.wait();
        return Ok(());
    }
    for piece in pieces(op, op.src.address) {
        let (offset, op) = piece;
        let to = CopyBox {
            address: to.address + offset,
            ..to
        };
        through_pinned(step, &op, &op.src, agents, |pinned| (to, pinned))?;
    }
    Ok(())
}

fn from_engine_to_pageable(step: &mut Step<'_>, op: &CopyOp, src: &CopySide) -> HipResult {
    let runtime = runtime::get()?;
    let agents = (runtime.cpu, src.agent(runtime));
    let from = src.engine_box(op.src);
    if op.is_linear() && op.width <= STAGING_BYTES {
        let stream = step.stream();
        let buffer = step.state().staging.get(stream)?;
        let to = CopyBox {
            address: buffer,
            ..op.dst
        };
        engine(step, op, (to, from), agents, true)?.wait();
        // SAFETY: as above, in the other direction.
        unsafe {
            std::ptr::copy_nonoverlapping(buffer as *const u8, op.dst.address as *mut u8, op.width)
        };
        return Ok(());
    }
    for piece in pieces(op, op.dst.address) {
        let (offset, op) = piece;
        let from = CopyBox {
            address: from.address + offset,
            ..from
        };
        through_pinned(step, &op, &op.dst, agents, |pinned| (pinned, from))?;
    }
    Ok(())
}

/// The pieces, with their offsets, into which a copy with pageable memory at an address is divided.
fn pieces(op: &CopyOp, pageable: usize) -> Vec<(usize, CopyOp)> {
    if !op.is_linear() {
        return vec![(0, *op)];
    }
    let mut pieces = Vec::new();
    let mut offset = 0;
    // The first piece ends with a page, so that all others begin with one and no page is pinned twice.
    let mut most = (pageable + PINNED_BYTES).next_multiple_of(PAGE) - pageable;
    while offset < op.width {
        let size = most.min(op.width - offset);
        let (dst, src) = (op.dst.address + offset, op.src.address + offset);
        pieces.push((offset, CopyOp::linear(dst, src, size, op.kind)));
        offset += size;
        most = PINNED_BYTES;
    }
    pieces
}

/// Pins the pageable side of a copy, has an engine copy, and waits for it. `ends`: destination and source with the
/// pinned side in place of the pageable one.
fn through_pinned(
    step: &mut Step<'_>,
    op: &CopyOp,
    pageable: &CopyBox,
    agents: (u64, u64),
    ends: impl FnOnce(CopyBox) -> (CopyBox, CopyBox),
) -> HipResult {
    let agent = step.stream().device.agent;
    let address = hsa::lock(pageable.address, op.span(pageable), &[agent])?;
    let pinned = CopyBox {
        address,
        ..*pageable
    };
    // Unpinned in any case: a failed copy must not leave the program's memory pinned.
    let copied = engine(step, op, ends(pinned), agents, true);
    if let Ok(done) = &copied {
        done.wait();
    }
    hsa::unlock(pageable.address)?;
    copied.map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_pageable_memory_are_split_at_pages() {
        let sizes = |address, width| -> Vec<usize> {
            let op = CopyOp::linear(1 << 40, address, width, kind::HOST_TO_DEVICE);
            let pieces = pieces(&op, address);
            let mut next = 0;
            for (offset, piece) in &pieces {
                assert_eq!((*offset, piece.src.address), (next, address + next));
                assert_eq!(piece.dst.address, (1 << 40) + next);
                next += piece.width;
            }
            assert_eq!(next, width);
            pieces.iter().map(|(_, piece)| piece.width).collect()
        };
        assert_eq!(sizes(PAGE, PINNED_BYTES), [PINNED_BYTES]);
        assert_eq!(sizes(PAGE, PINNED_BYTES + 1), [PINNED_BYTES, 1]);
        // The first reaches to the end of its last page.
        assert_eq!(
            sizes(PAGE + 16, 3 * PINNED_BYTES),
            [
                PINNED_BYTES + PAGE - 16,
                PINNED_BYTES,
                PINNED_BYTES - PAGE + 16
            ]
        );
    }
}
