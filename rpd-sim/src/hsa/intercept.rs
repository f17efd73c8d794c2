//! Queues whose packets a tool rewrites.

use core::ffi::c_void;

use super::agent::QUEUE_MAX_SIZE;
use super::queue::{hsa_queue_create, queue};
use super::support::{api, ensure, put};
use super::types::{HsaQueue, QueueErrorCallback, Status, status};
use crate::gpu::intercept::Handler;
use crate::gpu::queue::{Queue, QueueConfig};

/// Number of packets for which a queue must have room: one packet, a packet that signals free space, and one more of
/// each.
const LEAST_PACKETS: u32 = 4;

/// Makes a queue in front of another one.
pub(crate) unsafe extern "C" fn hsa_amd_queue_intercept_create(
    agent_handle: u64,
    size: u32,
    kind: u32,
    callback: QueueErrorCallback,
    data: *mut c_void,
    private_segment_size: u32,
    group_segment_size: u32,
    result: *mut *mut HsaQueue,
) -> Status {
    api(|| {
        ensure(!result.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        ensure(size <= QUEUE_MAX_SIZE, status::ERROR_INVALID_QUEUE_CREATION)?;
        let mut behind: *mut HsaQueue = core::ptr::null_mut();
        // SAFETY: the same promises; `behind` is writable.
        let made = unsafe {
            hsa_queue_create(
                agent_handle,
                size.max(LEAST_PACKETS),
                kind,
                callback,
                data,
                private_segment_size,
                group_segment_size,
                &mut behind,
            )
        };
        ensure(made == status::SUCCESS, made)?;
        let behind = queue(behind)?;
        let front = Queue::create(&QueueConfig {
            agent: behind.agent(),
            size: behind.amd.hsa_queue.size,
            kind,
            features: behind.amd.hsa_queue.features,
            callback,
            callback_data: data as usize,
            soft_doorbell: None,
            behind: Some(behind),
        });
        let Ok(front) = front else {
            behind.destroy();
            return Err(status::ERROR_OUT_OF_RESOURCES);
        };
        // SAFETY: the program's pointer is writable.
        unsafe { put(result, front.hsa_queue()) }
    })
}

/// Registers a function that gets a queue's packets before the functions that are registered already.
pub(crate) unsafe extern "C" fn hsa_amd_queue_intercept_register(
    handle: *mut HsaQueue,
    callback: Option<Handler>,
    user_data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let intercept = queue(handle)?.intercept();
        let intercept = intercept.ok_or(status::ERROR_INVALID_QUEUE)?;
        intercept.register(callback, user_data as usize);
        Ok(())
    })
}
