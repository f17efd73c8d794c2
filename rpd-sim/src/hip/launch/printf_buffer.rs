//! Buffered `printf` of kernels (`-mprintf-kind=buffered`): the kernel appends messages to a buffer, and the host
//! prints them when the kernel has ended. A launch of such a kernel waits for its end, as with the real runtime.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::hip::device::{Device, limit};
use crate::hip::error::HipResult;
use crate::hip::hsa;
use crate::hip::launch::printf::print_buffered;
use crate::hip::module::function::Function;
use rpd_gfx::codeobj::ArgKind;

/// Size in bytes of the buffer's head: two dwords, the offset after the last message and the room for messages in
/// bytes.
const HEAD: usize = 8;

/// Memory that the `printf` calls of a launch write their arguments to.
#[derive(Debug)]
pub(crate) struct PrintfBuffer {
    base: usize,
    capacity: usize,
    function: Arc<Function>,
}

impl PrintfBuffer {
    /// A buffer of the size set with `hipDeviceSetLimit`, for a launch of a kernel that expects one.
    pub(crate) fn for_launch(function: &Arc<Function>) -> HipResult<Option<Self>> {
        let expected = |hidden: &(ArgKind, usize, usize)| hidden.0 == ArgKind::HiddenPrintfBuffer;
        if !function.hidden.iter().any(expected) {
            return Ok(None);
        }
        let device: &Device = function.device;
        let bytes = device.limits[limit::PRINTF].load(Ordering::Relaxed);
        let bytes = bytes.clamp(HEAD, u32::MAX as usize);
        let base = hsa::allocate(device.staging_pool, bytes)?;
        let buffer = Self {
            base,
            capacity: bytes - HEAD,
            function: Arc::clone(function),
        };
        hsa::allow_access(&[device.agent], base)?;
        // SAFETY: freshly allocated host memory of at least this size, at whole pages.
        unsafe { (base as *mut [u32; 2]).write([0, buffer.capacity as u32]) };
        Ok(Some(buffer))
    }

    /// Address of the buffer for the kernel.
    pub(crate) fn address(&self) -> u64 {
        self.base as u64
    }

    /// Prints the messages of the kernel, which must have ended.
    pub(crate) fn print(self) {
        // SAFETY: the kernel has ended, and `capacity` bytes follow the head.
        let messages = unsafe {
            let written = (self.base as *const u32).read() as usize;
            std::slice::from_raw_parts((self.base + HEAD) as *const u8, written.min(self.capacity))
        };
        let left = print_buffered(messages, self.function.module_formats());
        if left != 0 {
            eprintln!(
                "rpd-sim: kernel {} left {left} bytes in its printf buffer that are not a message",
                self.function.name.to_string_lossy()
            );
        }
    }
}

impl Drop for PrintfBuffer {
    fn drop(&mut self) {
        // Memory that HSA does not find has been freed already.
        let _ = hsa::free(self.base);
    }
}
