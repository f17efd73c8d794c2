//! A few calls of a HIP runtime that show whether it works.

use std::path::Path;

use crate::error::{ReplayError, Status};
use crate::hip::{Hip, word_of};

/// Bytes that are filled and copied.
const LEN: usize = 1 << 16;
/// The byte that memory is filled with.
const VALUE: u8 = 0xa5;
/// Value `hipMemcpyDeviceToHost`.
const DEVICE_TO_HOST: u64 = 2;

/// Fills memory of the first device and copies it back; the number of devices. `library` is the file of the runtime, or
/// its name for the dynamic loader.
///
/// # Errors
/// The library cannot be loaded, a call fails, there is no device, or what comes back is not what was written.
pub fn self_test(library: &Path) -> Result<u32, ReplayError> {
    let mut hip = Hip::load(library)?;
    let mut devices = 0i32;
    hip.check("hipGetDeviceCount", &[word_of(&mut devices)])?;
    let devices = u32::try_from(devices).unwrap_or(0);
    if devices == 0 {
        return Err(ReplayError::new(Status::Api, "the runtime has no device"));
    }
    let mut memory = 0u64;
    hip.check("hipMalloc", &[word_of(&mut memory), LEN as u64])?;
    hip.check("hipMemset", &[memory, VALUE.into(), LEN as u64])?;
    let mut back = vec![0u8; LEN];
    let to = back.as_mut_ptr() as u64;
    hip.check("hipMemcpy", &[to, memory, LEN as u64, DEVICE_TO_HOST])?;
    hip.check("hipFree", &[memory])?;
    match back.iter().find(|byte| **byte != VALUE) {
        None => Ok(devices),
        Some(byte) => Err(ReplayError::failed(format!(
            "memory was filled with {VALUE:#x}, and {byte:#x} came back"
        ))),
    }
}
