//! Numbers in memory that streams write or wait for.

use core::ffi::c_void;

use crate::hip::error::{HipResult, api, code};
use crate::hip::graph::{self, Op};
use crate::hip::memory;
use crate::hip::stream::{self, Stream};
use crate::hip::types::Handle;

/// A number to write, or to wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ValueOp {
    /// Address of the number, as the program passed it.
    pub(crate) pointer: usize,
    pub(crate) value: u64,
    /// Size of the number in bytes: 4 or 8.
    pub(crate) size: u32,
    /// Condition and mask of a wait; `None` for a write.
    pub(crate) wait: Option<(u32, u64)>,
}

impl ValueOp {
    /// Address of the number for the device, after a check of all parameters.
    fn address(&self) -> HipResult<usize> {
        const CONDITIONS: u32 = 3;
        if self
            .wait
            .is_some_and(|(condition, _)| condition > CONDITIONS)
        {
            return Err(code::INVALID_VALUE);
        }
        let place = memory::find(self.pointer)?.ok_or(code::INVALID_VALUE)?;
        let size = self.size as usize;
        if !self.pointer.is_multiple_of(size) || !place.holds(self.pointer, size) {
            return Err(code::INVALID_VALUE);
        }
        Ok(place.address)
    }
}

/// Adds the write or the wait to a stream.
pub(crate) fn run(stream: &Stream, op: &ValueOp) -> HipResult {
    let address = op.address()?;
    let mut step = stream.step()?;
    let blit = step.blit()?;
    match op.wait {
        None => blit.write(&mut step, address, op.value, op.size),
        Some((condition, mask)) => {
            blit.wait(&mut step, address, (op.value, mask), condition, op.size)
        }
    }
}

fn submit(stream: Handle, ops: Vec<ValueOp>) -> HipResult {
    let stream = stream::resolve(stream)?;
    for op in &ops {
        op.address()?;
    }
    graph::submit(&stream, Op::Values(ops))
}

fn write(stream: Handle, pointer: *mut c_void, value: u64, size: u32) -> HipResult {
    let op = ValueOp {
        pointer: pointer as usize,
        value,
        size,
        wait: None,
    };
    submit(stream, vec![op])
}

fn wait(
    stream: Handle,
    pointer: *mut c_void,
    value: u64,
    (condition, mask): (u32, u64),
    size: u32,
) -> HipResult {
    let op = ValueOp {
        pointer: pointer as usize,
        value,
        size,
        wait: Some((condition, mask)),
    };
    submit(stream, vec![op])
}

pub(crate) unsafe extern "C" fn hipStreamWriteValue32(
    stream: Handle,
    pointer: *mut c_void,
    value: u32,
    _flags: u32,
) -> u32 {
    api(|| write(stream, pointer, u64::from(value), 4))
}

pub(crate) unsafe extern "C" fn hipStreamWriteValue64(
    stream: Handle,
    pointer: *mut c_void,
    value: u64,
    _flags: u32,
) -> u32 {
    api(|| write(stream, pointer, value, 8))
}

pub(crate) unsafe extern "C" fn hipStreamWaitValue32(
    stream: Handle,
    pointer: *mut c_void,
    value: u32,
    flags: u32,
    mask: u32,
) -> u32 {
    api(|| {
        wait(
            stream,
            pointer,
            u64::from(value),
            (flags, u64::from(mask)),
            4,
        )
    })
}

pub(crate) unsafe extern "C" fn hipStreamWaitValue64(
    stream: Handle,
    pointer: *mut c_void,
    value: u64,
    flags: u32,
    mask: u64,
) -> u32 {
    api(|| wait(stream, pointer, value, (flags, mask), 8))
}

/// `hipStreamBatchMemOpParams`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchMemOp {
    operation: u32,
    address: *mut c_void,
    value: u64,
    flags: u32,
    alias: *mut c_void,
    pad: u64,
}

const _: () = assert!(size_of::<BatchMemOp>() == 48);

/// Values of the operation in [`BatchMemOp`].
mod operation {
    pub(crate) const WAIT_32: u32 = 1;
    pub(crate) const WRITE_32: u32 = 2;
    pub(crate) const WAIT_64: u32 = 4;
    pub(crate) const WRITE_64: u32 = 5;
}

impl BatchMemOp {
    fn op(&self) -> HipResult<ValueOp> {
        let (size, waits) = match self.operation {
            operation::WAIT_32 => (4, true),
            operation::WRITE_32 => (4, false),
            operation::WAIT_64 => (8, true),
            operation::WRITE_64 => (8, false),
            // Barriers and flushes, as with the real runtime.
            _ => return Err(code::NOT_SUPPORTED),
        };
        let mask = if size == 4 {
            u64::from(u32::MAX)
        } else {
            u64::MAX
        };
        Ok(ValueOp {
            pointer: self.address as usize,
            value: self.value & mask,
            size,
            wait: waits.then_some((self.flags, mask)),
        })
    }

    fn from_op(op: &ValueOp) -> Self {
        let operation = match (op.size, op.wait.is_some()) {
            (4, true) => operation::WAIT_32,
            (4, false) => operation::WRITE_32,
            (_, true) => operation::WAIT_64,
            (_, false) => operation::WRITE_64,
        };
        Self {
            operation,
            address: op.pointer as *mut c_void,
            value: op.value,
            flags: op.wait.map_or(0, |(condition, _)| condition),
            alias: std::ptr::null_mut(),
            pad: 0,
        }
    }
}

/// The operations of a program's list, after a check of each.
///
/// # Safety
/// `list` has `count` entries.
pub(crate) unsafe fn from_list(list: *const BatchMemOp, count: u32) -> HipResult<Vec<ValueOp>> {
    /// Most operations that one call takes.
    const MOST: u32 = 256;
    if list.is_null() || count == 0 || count > MOST {
        return Err(code::INVALID_VALUE);
    }
    (0..count as usize)
        .map(|n| {
            // SAFETY: by contract.
            let op = unsafe { list.add(n).read_unaligned() }.op()?;
            op.address()?;
            Ok(op)
        })
        .collect()
}

/// Writes operations into a program's list.
///
/// # Safety
/// `list` has room for all of `ops`.
pub(crate) unsafe fn to_list(ops: &[ValueOp], list: *mut BatchMemOp) {
    for (n, op) in ops.iter().enumerate() {
        // SAFETY: by contract.
        unsafe { list.add(n).write_unaligned(BatchMemOp::from_op(op)) };
    }
}

pub(crate) unsafe extern "C" fn hipStreamBatchMemOp(
    stream: Handle,
    count: u32,
    list: *const BatchMemOp,
    flags: u32,
) -> u32 {
    api(|| {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's list.
        submit(stream, unsafe { from_list(list, count)? })
    })
}
