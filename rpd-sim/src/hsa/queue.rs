//! Queues: creation, indices in all memory orders, priority, compute unit masks.

use core::ffi::c_void;
use std::sync::atomic::Ordering;

use super::agent::{QUEUE_MAX_SIZE, QUEUE_MIN_SIZE};
use super::support::{agent, api, array, ensure, put};
use super::types::{AmdQueue, HsaQueue, QueueErrorCallback, Status, status};
use crate::gpu::agents;
use crate::gpu::machine::machine;
use crate::gpu::queue::{Queue, QueueConfig, QueueState};
use crate::gpu::signal::Signal;

const TYPE_COOPERATIVE: u32 = 2;
const FEATURE_KERNEL_DISPATCH: u32 = 1;
const FEATURE_AGENT_DISPATCH: u32 = 2;

/// The queue of an `hsa_queue_t`.
pub(super) fn queue(queue: *const HsaQueue) -> Result<&'static Queue, Status> {
    ensure(!queue.is_null(), status::ERROR_INVALID_ARGUMENT)?;
    machine()
        .queue(queue as u64)
        .ok_or(status::ERROR_INVALID_QUEUE)
}

/// Makes a queue on a GPU.
pub(crate) unsafe extern "C" fn hsa_queue_create(
    handle: u64,
    size: u32,
    kind: u32,
    callback: QueueErrorCallback,
    data: *mut c_void,
    _private_segment_size: u32,
    _group_segment_size: u32,
    result: *mut *mut HsaQueue,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let valid = !result.is_null() && size.is_power_of_two() && kind <= TYPE_COOPERATIVE;
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        ensure(agent.is_gpu(), status::ERROR_INVALID_QUEUE_CREATION)?;
        ensure(size <= QUEUE_MAX_SIZE, status::ERROR_INVALID_QUEUE_CREATION)?;
        let queue = Queue::create(&QueueConfig {
            agent,
            size: size.max(QUEUE_MIN_SIZE),
            kind,
            features: FEATURE_KERNEL_DISPATCH,
            callback,
            callback_data: data as usize,
            soft_doorbell: None,
            behind: None,
        });
        let queue = queue.map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(result, queue.hsa_queue()) }
    })
}

/// Makes a queue whose packets the program itself processes.
pub(crate) unsafe extern "C" fn hsa_soft_queue_create(
    region: u64,
    size: u32,
    kind: u32,
    features: u32,
    doorbell_signal: u64,
    result: *mut *mut HsaQueue,
) -> Status {
    api(|| {
        let both = FEATURE_KERNEL_DISPATCH | FEATURE_AGENT_DISPATCH;
        let valid = !result.is_null()
            && size.is_power_of_two()
            && kind < TYPE_COOPERATIVE
            && features != 0
            && features & !both == 0;
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let region = agents::pool(region).ok_or(status::ERROR_INVALID_REGION)?;
        ensure(region.is_system(), status::ERROR_INVALID_REGION)?;
        let doorbell = Signal::from_handle(doorbell_signal).ok_or(status::ERROR_INVALID_SIGNAL)?;
        let queue = Queue::create(&QueueConfig {
            agent: agents::cpu_agent(),
            size,
            kind,
            features,
            callback: None,
            callback_data: 0,
            soft_doorbell: Some(doorbell),
            behind: None,
        });
        let queue = queue.map_err(|_| status::ERROR_OUT_OF_RESOURCES)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(result, queue.hsa_queue()) }
    })
}

/// Stops the processing of a queue's packets and frees its ring.
pub(crate) unsafe extern "C" fn hsa_queue_destroy(handle: *mut HsaQueue) -> Status {
    api(|| {
        queue(handle)?.destroy();
        Ok(())
    })
}

/// Stops a queue; packets not yet processed are dropped.
pub(crate) unsafe extern "C" fn hsa_queue_inactivate(handle: *mut HsaQueue) -> Status {
    api(|| {
        queue(handle)?.served().stop(QueueState::Inactive);
        Ok(())
    })
}

/// Which of the two indices of a queue a function accesses: that of the reader or that of the writer.
#[derive(Clone, Copy)]
enum Index {
    Read,
    Write,
}

/// An index of a queue. These functions are on every launch's path, so that like the real ones they check a pointer for
/// null only.
#[inline]
unsafe fn index(
    queue: *const HsaQueue,
    which: Index,
) -> Option<&'static std::sync::atomic::AtomicU64> {
    // SAFETY: the program passes a live queue, whose `hsa_queue_t` begins an `amd_queue_t`.
    let queue = unsafe { queue.cast::<AmdQueue>().as_ref() }?;
    Some(match which {
        Index::Read => &queue.read_dispatch_id,
        Index::Write => &queue.write_dispatch_id,
    })
}

macro_rules! index_loads {
    ($($name:ident = $which:ident, $order:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub(crate) unsafe extern "C" fn $name(queue: *const HsaQueue) -> u64 {
            // SAFETY: the same promise.
            unsafe { index(queue, Index::$which) }.map_or(0, |index| index.load(Ordering::$order))
        }
    )*};
}

macro_rules! index_stores {
    ($($name:ident = $which:ident, $order:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`.")]
        pub(crate) unsafe extern "C" fn $name(queue: *const HsaQueue, value: u64) {
            // SAFETY: the same promise.
            if let Some(index) = unsafe { index(queue, Index::$which) } {
                index.store(value, Ordering::$order);
            }
        }
    )*};
}

macro_rules! index_adds {
    ($($name:ident = $order:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the old index.")]
        pub(crate) unsafe extern "C" fn $name(queue: *const HsaQueue, value: u64) -> u64 {
            // SAFETY: the same promise.
            unsafe { index(queue, Index::Write) }
                .map_or(0, |index| index.fetch_add(value, Ordering::$order))
        }
    )*};
}

macro_rules! index_swaps {
    ($($name:ident = $success:ident, $failure:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`: the index found.")]
        pub(crate) unsafe extern "C" fn $name(
            queue: *const HsaQueue,
            expected: u64,
            value: u64,
        ) -> u64 {
            // SAFETY: the same promise.
            unsafe { index(queue, Index::Write) }.map_or(0, |index| {
                index
                    .compare_exchange(expected, value, Ordering::$success, Ordering::$failure)
                    .unwrap_or_else(|found| found)
            })
        }
    )*};
}

index_loads! {
    hsa_queue_load_read_index_scacquire = Read, Acquire;
    hsa_queue_load_read_index_relaxed = Read, Relaxed;
    hsa_queue_load_write_index_scacquire = Write, Acquire;
    hsa_queue_load_write_index_relaxed = Write, Relaxed;
}

index_stores! {
    hsa_queue_store_write_index_relaxed = Write, Relaxed;
    hsa_queue_store_write_index_screlease = Write, Release;
    hsa_queue_store_read_index_relaxed = Read, Relaxed;
    hsa_queue_store_read_index_screlease = Read, Release;
}

index_adds! {
    hsa_queue_add_write_index_scacq_screl = AcqRel;
    hsa_queue_add_write_index_scacquire = Acquire;
    hsa_queue_add_write_index_relaxed = Relaxed;
    hsa_queue_add_write_index_screlease = Release;
}

index_swaps! {
    hsa_queue_cas_write_index_scacq_screl = AcqRel, Acquire;
    hsa_queue_cas_write_index_scacquire = Acquire, Acquire;
    hsa_queue_cas_write_index_relaxed = Relaxed, Relaxed;
    hsa_queue_cas_write_index_screlease = Release, Relaxed;
}

/// Accepts a priority without an effect: processors serve all queues alike.
pub(crate) unsafe extern "C" fn hsa_amd_queue_set_priority(
    handle: *mut HsaQueue,
    priority: u32,
) -> Status {
    api(|| {
        queue(handle)?;
        ensure(priority <= 2, status::ERROR_INVALID_ARGUMENT)
    })
}

/// Sets the compute units that a queue's kernels may use.
pub(crate) unsafe extern "C" fn hsa_amd_queue_cu_set_mask(
    handle: *const HsaQueue,
    num_cu_mask_count: u32,
    cu_mask: *const u32,
) -> Status {
    api(|| {
        let queue = queue(handle)?.served();
        let whole = num_cu_mask_count.is_multiple_of(32);
        let missing = num_cu_mask_count != 0 && cu_mask.is_null();
        ensure(whole && !missing, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program passed the length of its mask.
        let mask = unsafe { array(cu_mask, num_cu_mask_count as usize / 32) };
        let cus = queue.agent().cus as usize;
        let beyond = mask
            .iter()
            .enumerate()
            .any(|(word, &bits)| (0..32).any(|bit| bits >> bit & 1 != 0 && word * 32 + bit >= cus));
        queue.set_cu_mask(mask.to_vec());
        ensure(!beyond, status::CU_MASK_REDUCED)
    })
}

/// Writes the compute units that a queue's kernels may use.
pub(crate) unsafe extern "C" fn hsa_amd_queue_cu_get_mask(
    handle: *const HsaQueue,
    num_cu_mask_count: u32,
    cu_mask: *mut u32,
) -> Status {
    api(|| {
        let queue = queue(handle)?.served();
        let valid =
            num_cu_mask_count != 0 && num_cu_mask_count.is_multiple_of(32) && !cu_mask.is_null();
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        let mask = queue.cu_mask();
        let cus = queue.agent().cus as usize;
        for word in 0..num_cu_mask_count as usize / 32 {
            let present = (0..32)
                .filter(|bit| word * 32 + bit < cus)
                .fold(0u32, |bits, bit| bits | 1 << bit);
            let chosen =
                mask.get(word)
                    .copied()
                    .unwrap_or(if mask.is_empty() { u32::MAX } else { 0 });
            // SAFETY: the program passed the length of its mask.
            unsafe { cu_mask.add(word).write(present & chosen) };
        }
        Ok(())
    })
}

/// Writes an attribute of a queue: its agent, or the number of its doorbell.
pub(crate) unsafe extern "C" fn hsa_amd_queue_get_info(
    handle: *mut HsaQueue,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let queue = queue(handle)?;
        // SAFETY: the program's pointer is null or has room for the attribute's type.
        unsafe {
            match attribute {
                0 => put(value, queue.agent().handle()),
                1 => put(value, queue.amd.hsa_queue.id),
                _ => Err(status::ERROR_INVALID_ARGUMENT),
            }
        }
    })
}
