//! The launch functions of the API that take a configuration with attributes.

use core::ffi::c_void;

use crate::hip::error::{HipResult, api, code};
use crate::hip::launch::Geometry;
use crate::hip::launch::api::submit;
use crate::hip::module;
use crate::hip::module::fatbin;
use crate::hip::stream;
use crate::hip::types::{DrvLaunchConfig, Handle, LaunchAttribute, LaunchConfig, launch_attribute};

/// Whether attributes make a launch cooperative. Priorities and hints about caches have no effect on simulated devices.
///
/// # Safety
/// `list` has `count` entries.
unsafe fn is_cooperative(list: *const LaunchAttribute, count: u32) -> HipResult<bool> {
    if count > 0 && list.is_null() {
        return Err(code::INVALID_VALUE);
    }
    let mut cooperative = false;
    for n in 0..count as usize {
        // SAFETY: by contract.
        let attribute = unsafe { list.add(n).read_unaligned() };
        match attribute.id {
            launch_attribute::COOPERATIVE => cooperative = attribute.value.number != 0,
            launch_attribute::PRIORITY | launch_attribute::ACCESS_POLICY_WINDOW => {}
            _ => return Err(code::INVALID_VALUE),
        }
    }
    Ok(cooperative)
}

pub(crate) unsafe extern "C" fn hipLaunchKernelExC(
    config: *const LaunchConfig,
    stub: *const c_void,
    args: *mut *mut c_void,
) -> u32 {
    api(|| {
        // SAFETY: the caller's struct, checked for null.
        let config = unsafe { config.as_ref() }.ok_or(code::INVALID_CONFIGURATION)?;
        let stream = stream::resolve(config.stream)?;
        if stub.is_null() {
            return Err(code::INVALID_DEVICE_FUNCTION);
        }
        let function = fatbin::function_on(stub, stream.device)?;
        let geometry = Geometry {
            grid: config.grid,
            block: config.block,
            shared: u32::try_from(config.shared).map_err(|_| code::INVALID_VALUE)?,
            // SAFETY: the caller's list.
            cooperative: unsafe { is_cooperative(config.attributes, config.attribute_count)? },
        };
        // SAFETY: the caller's arguments.
        unsafe {
            submit(
                &stream,
                stub,
                function,
                geometry,
                args,
                std::ptr::null_mut(),
            )
        }
    })
}

pub(crate) unsafe extern "C" fn hipDrvLaunchKernelEx(
    config: *const DrvLaunchConfig,
    named: Handle,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> u32 {
    api(|| {
        // SAFETY: the caller's struct, checked for null.
        let config = unsafe { config.as_ref() }.ok_or(code::INVALID_CONFIGURATION)?;
        let stream = stream::resolve(config.stream)?;
        let function = module::function(named)?;
        let geometry = Geometry {
            grid: config.grid,
            block: config.block,
            shared: config.shared,
            // SAFETY: the caller's list.
            cooperative: unsafe { is_cooperative(config.attributes, config.attribute_count)? },
        };
        // SAFETY: the caller's arguments.
        unsafe { submit(&stream, named, function, geometry, params, extra) }
    })
}
