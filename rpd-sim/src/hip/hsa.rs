//! The HSA calls that the HIP layer makes, through the public API so that tools get them with their ancestor.
//!
//! Handles are the `u64`s of HSA; a failing status becomes the HIP error the runtime answers for it.

use core::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use super::error::{HipError, HipResult, code};
use crate::api::call;
use crate::hsa::types::{
    BarrierPacket, CONDITION_LT, Dim3 as HsaDim3, HsaQueue, KernelDispatchPacket, LinkInfo,
    PACKET_BYTES, PitchedPtr as HsaPitchedPtr, ProfilingTime, SignalHandler, status,
};

/// The HIP error for a failed HSA call.
fn hip_error(status: u32) -> HipError {
    match status {
        status::ERROR_OUT_OF_RESOURCES | status::ERROR_INVALID_ALLOCATION => code::OUT_OF_MEMORY,
        status::ERROR_INVALID_ARGUMENT => code::INVALID_VALUE,
        status::ERROR_INVALID_CODE_OBJECT | status::ERROR_INVALID_CODE_OBJECT_READER => {
            code::INVALID_IMAGE
        }
        status::ERROR_INCOMPATIBLE_ARGUMENTS | status::ERROR_INVALID_ISA => code::NO_BINARY_FOR_GPU,
        status::ERROR_INVALID_SYMBOL_NAME => code::NOT_FOUND,
        status::ERROR_VARIABLE_UNDEFINED => code::SHARED_OBJECT_SYMBOL_NOT_FOUND,
        status::ERROR_NOT_INITIALIZED => code::NOT_INITIALIZED,
        _ => code::UNKNOWN,
    }
}

pub(super) fn check(status: u32) -> HipResult {
    match status {
        status::SUCCESS | status::INFO_BREAK => Ok(()),
        failed => Err(hip_error(failed)),
    }
}

pub(super) fn out<T>(value: &mut T) -> *mut c_void {
    ptr::from_mut(value).cast()
}

pub(crate) fn init() -> HipResult {
    // SAFETY: no arguments.
    check(unsafe { call::hsa_init() }).map_err(|_| code::NO_DEVICE)
}

unsafe extern "C" fn collect(handle: u64, list: *mut c_void) -> u32 {
    // SAFETY: `list` is the vector that the iterating function below passed.
    unsafe { (*list.cast::<Vec<u64>>()).push(handle) };
    status::SUCCESS
}

pub(crate) fn agents() -> HipResult<Vec<u64>> {
    let mut list: Vec<u64> = Vec::new();
    // SAFETY: the callback gets the vector it expects, which outlives the call.
    check(unsafe { call::hsa_iterate_agents(collect as *mut c_void, out(&mut list)) })?;
    Ok(list)
}

/// Reads one attribute of an agent into a value of the attribute's type.
pub(crate) fn agent_info<T: Copy + Default>(agent: u64, attribute: u32) -> HipResult<T> {
    let mut value = T::default();
    // SAFETY: callers choose `T` as wide as the attribute.
    check(unsafe { call::hsa_agent_get_info(agent, attribute, out(&mut value)) })?;
    Ok(value)
}

/// Reads a text attribute of 64 bytes.
pub(crate) fn agent_text(agent: u64, attribute: u32) -> HipResult<String> {
    let mut text = [0u8; 64];
    // SAFETY: the attribute's type is char[64].
    check(unsafe { call::hsa_agent_get_info(agent, attribute, out(&mut text)) })?;
    let end = text
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(text.len());
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Names of the instruction sets an agent runs, best first.
pub(crate) fn agent_isas(agent: u64) -> HipResult<Vec<String>> {
    const ISA_NAME_LENGTH: u32 = 0;
    const ISA_NAME: u32 = 1;
    let mut isas: Vec<u64> = Vec::new();
    // SAFETY: as in `agents`.
    check(unsafe { call::hsa_agent_iterate_isas(agent, collect as *mut c_void, out(&mut isas)) })?;
    isas.into_iter()
        .map(|isa| {
            let mut length = 0u32;
            // SAFETY: the attribute is a u32.
            check(unsafe { call::hsa_isa_get_info_alt(isa, ISA_NAME_LENGTH, out(&mut length)) })?;
            let mut name = vec![0u8; length as usize + 1];
            // SAFETY: the buffer holds the length the runtime requested.
            check(unsafe { call::hsa_isa_get_info_alt(isa, ISA_NAME, name.as_mut_ptr().cast()) })?;
            let end = name
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(name.len());
            Ok(String::from_utf8_lossy(&name[..end]).into_owned())
        })
        .collect()
}

pub(crate) fn pools(agent: u64) -> HipResult<Vec<u64>> {
    let mut list: Vec<u64> = Vec::new();
    // SAFETY: as in `agents`.
    check(unsafe {
        call::hsa_amd_agent_iterate_memory_pools(agent, collect as *mut c_void, out(&mut list))
    })?;
    Ok(list)
}

pub(crate) fn pool_info<T: Copy + Default>(pool: u64, attribute: u32) -> HipResult<T> {
    let mut value = T::default();
    // SAFETY: callers choose `T` as wide as the attribute.
    check(unsafe { call::hsa_amd_memory_pool_get_info(pool, attribute, out(&mut value)) })?;
    Ok(value)
}

/// The link over which an agent accesses a pool that is not its own.
pub(crate) fn link(agent: u64, pool: u64) -> HipResult<LinkInfo> {
    const LINK_INFO: u32 = 2;
    let mut link = LinkInfo::default();
    // SAFETY: the output is a local of the type that the attribute has for one hop.
    check(unsafe {
        call::hsa_amd_agent_memory_pool_get_info(agent, pool, LINK_INFO, out(&mut link))
    })?;
    Ok(link)
}

pub(crate) fn allocate(pool: u64, size: usize) -> HipResult<usize> {
    let mut pointer: *mut c_void = ptr::null_mut();
    // SAFETY: the output is a local.
    check(unsafe { call::hsa_amd_memory_pool_allocate(pool, size, 0, out(&mut pointer)) })?;
    Ok(pointer as usize)
}

pub(crate) fn free(address: usize) -> HipResult {
    // SAFETY: HSA checks the address against its allocations.
    check(unsafe { call::hsa_amd_memory_pool_free(address as *mut c_void) })
}

pub(crate) fn allow_access(agents: &[u64], address: usize) -> HipResult {
    // SAFETY: the list outlives the call.
    check(unsafe {
        call::hsa_amd_agents_allow_access(
            agents.len() as u32,
            agents.as_ptr() as *mut c_void,
            ptr::null_mut(),
            address as *mut c_void,
        )
    })
}

/// Pins host memory; returns the address at which the agents access it.
pub(crate) fn lock(address: usize, size: usize, agents: &[u64]) -> HipResult<usize> {
    let mut agent_pointer: *mut c_void = ptr::null_mut();
    // SAFETY: the list and the output outlive the call; HSA checks the range.
    check(unsafe {
        call::hsa_amd_memory_lock(
            address as *mut c_void,
            size,
            agents.as_ptr() as *mut c_void,
            agents.len() as i32 as _,
            out(&mut agent_pointer),
        )
    })?;
    Ok(agent_pointer as usize)
}

pub(crate) fn unlock(address: usize) -> HipResult {
    // SAFETY: HSA checks the address against what is pinned.
    check(unsafe { call::hsa_amd_memory_unlock(address as *mut c_void) })
}

pub(crate) fn signal_create(value: i64) -> HipResult<u64> {
    let mut signal = 0u64;
    // SAFETY: no consumers, the output is a local.
    check(unsafe { call::hsa_signal_create(value, 0, ptr::null_mut(), out(&mut signal)) })?;
    Ok(signal)
}

pub(crate) fn signal_destroy(signal: u64) {
    // SAFETY: callers own the signal; a failure leaves it to HSA's shutdown.
    unsafe { call::hsa_signal_destroy(signal) };
}

pub(crate) fn signal_load(signal: u64) -> i64 {
    // SAFETY: callers hold the signal.
    unsafe { call::hsa_signal_load_relaxed(signal) }
}

/// Sets the value of a signal that no thread waits on.
pub(crate) fn signal_reset(signal: u64, value: i64) {
    // SAFETY: callers hold the signal.
    unsafe { call::hsa_signal_silent_store_relaxed(signal, value) };
}

pub(crate) fn signal_store(signal: u64, value: i64) {
    // SAFETY: callers hold the signal.
    unsafe { call::hsa_signal_store_screlease(signal, value) };
}

/// Waits until a signal is below one, for at most `timeout` ticks of the system clock. Returns the last value seen.
pub(crate) fn signal_wait(signal: u64, timeout: u64, active: bool) -> i64 {
    // SAFETY: callers hold the signal. Wait states: 0 blocked, 1 active.
    unsafe { call::hsa_signal_wait_scacquire(signal, CONDITION_LT, 1, timeout, u32::from(active)) }
}

/// Registers `handler`, which is called once the signal is below one.
pub(crate) fn signal_handler(signal: u64, handler: SignalHandler, data: *mut c_void) -> HipResult {
    let handler = handler.map_or(ptr::null_mut(), |function| function as *mut c_void);
    // SAFETY: the handler's contract is that of its caller.
    check(unsafe { call::hsa_amd_signal_async_handler(signal, CONDITION_LT, 1, handler, data) })
}

/// Start and end of a packet that had this completion signal, in ticks of the system clock.
pub(crate) fn dispatch_time(agent: u64, signal: u64) -> HipResult<ProfilingTime> {
    let mut time = ProfilingTime::default();
    // SAFETY: the output is a local of the right type.
    check(unsafe { call::hsa_amd_profiling_get_dispatch_time(agent, signal, out(&mut time)) })?;
    Ok(time)
}

/// Ticks of the system clock in a second.
pub(crate) fn system_frequency() -> HipResult<u64> {
    const TIMESTAMP_FREQUENCY: u32 = 3;
    let mut value = 0u64;
    // SAFETY: the attribute is a u64.
    check(unsafe { call::hsa_system_get_info(TIMESTAMP_FREQUENCY, out(&mut value)) })?;
    Ok(value)
}

/// Packets for which the ring of each hardware queue has room.
const QUEUE_PACKETS: u32 = 16384;
const QUEUE_TYPE_MULTI: u32 = 0;

pub(crate) fn queue_create(agent: u64) -> HipResult<*mut HsaQueue> {
    let mut queue: *mut HsaQueue = ptr::null_mut();
    // SAFETY: the callback has the type HSA calls it with, the output is a local.
    check(unsafe {
        call::hsa_queue_create(
            agent,
            QUEUE_PACKETS,
            QUEUE_TYPE_MULTI,
            queue_error as *mut c_void,
            ptr::null_mut(),
            u32::MAX,
            u32::MAX,
            out(&mut queue),
        )
    })?;
    // SAFETY: the queue was just made.
    check(unsafe { call::hsa_amd_profiling_set_profiler_enabled(queue.cast(), 1) })?;
    Ok(queue)
}

pub(crate) fn queue_set_priority(queue: *mut HsaQueue, priority: u32) -> HipResult {
    // SAFETY: callers hold the queue.
    check(unsafe { call::hsa_amd_queue_set_priority(queue.cast(), priority) })
}

/// Error callback of a queue. The queue has ended and work on it can never finish, so the process must not go on.
unsafe extern "C" fn queue_error(status: u32, queue: *mut HsaQueue, _data: *mut c_void) {
    if status == status::SUCCESS {
        return;
    }
    // SAFETY: HSA passes the queue that failed.
    let id = unsafe { queue.as_ref() }.map_or(0, |queue| queue.id);
    eprintln!("rpd-sim: queue {id} stopped with HSA status {status:#x}, the program is aborted");
    std::process::abort();
}

/// Format of a packet in a queue's ring.
pub(crate) trait Packet: Copy {}
impl Packet for KernelDispatchPacket {}
impl Packet for BarrierPacket {}

/// Writes one packet and rings the doorbell. Callers must not write to the same queue at the same time.
///
/// # Safety
/// `queue` is alive and what the packet refers to stays valid until it has been processed.
pub(crate) unsafe fn queue_submit<P: Packet>(queue: *mut HsaQueue, packet: &P) {
    const { assert!(size_of::<P>() == PACKET_BYTES) };
    // SAFETY: the queue is alive by contract; its ring has `size` slots of 64 bytes, and a slot is free once
    // the read index is less than a ring behind.
    unsafe {
        let index = call::hsa_queue_add_write_index_screlease(queue.cast(), 1);
        let size = u64::from((*queue).size);
        let mut read = call::hsa_queue_load_read_index_relaxed(queue.cast());
        while index.wrapping_sub(read) >= size {
            std::thread::yield_now();
            read = call::hsa_queue_load_read_index_scacquire(queue.cast());
        }
        let slot = ((*queue).base_address as *mut u8).add((index % size) as usize * PACKET_BYTES);
        let source = ptr::from_ref(packet).cast::<u8>();
        ptr::copy_nonoverlapping(source.add(4), slot.add(4), PACKET_BYTES - 4);
        // The first word holds the header: stored last, it hands the packet to the processor.
        let word = source.cast::<u32>().read_unaligned();
        AtomicU32::from_ptr(slot.cast()).store(word, Ordering::Release);
        call::hsa_signal_store_screlease((*queue).doorbell_signal, index as i64);
    }
}

/// Mask of the copy engines that are free for a direction.
pub(crate) fn copy_engines(dst_agent: u64, src_agent: u64) -> u32 {
    let mut mask = 0u32;
    // SAFETY: the output is a local.
    let result =
        unsafe { call::hsa_amd_memory_copy_engine_status(dst_agent, src_agent, out(&mut mask)) };
    if result == status::SUCCESS { mask } else { 0 }
}

/// A list of signals as HSA takes it: null for an empty one.
fn list(signals: &[u64]) -> *mut c_void {
    if signals.is_empty() {
        ptr::null_mut()
    } else {
        signals.as_ptr() as *mut c_void
    }
}

/// Source or destination of a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyEnd {
    pub(crate) address: usize,
    pub(crate) agent: u64,
}

/// Starts a copy on one engine once all signals of `deps` have fallen.
///
/// # Safety
/// Both ranges stay valid until `completion` has fallen.
pub(crate) unsafe fn copy_on_engine(
    dst: CopyEnd,
    src: CopyEnd,
    size: usize,
    deps: &[u64],
    completion: u64,
    engine: u32,
) -> HipResult {
    // SAFETY: the list of dependencies outlives the call, the rest is the caller's.
    check(unsafe {
        call::hsa_amd_memory_async_copy_on_engine(
            dst.address as *mut c_void,
            dst.agent,
            src.address as *mut c_void,
            src.agent,
            size,
            deps.len() as u32,
            list(deps),
            completion,
            engine,
            false as _,
        )
    })
}

/// A box of bytes on one side of a rectangular copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyBox {
    pub(crate) address: usize,
    pub(crate) pitch: usize,
    pub(crate) slice: usize,
}

/// Starts a copy of a box of `width` bytes by `height` rows by `depth` slices.
///
/// # Safety
/// Both boxes stay valid until `completion` has fallen.
pub(crate) unsafe fn copy_rect(
    dst: CopyBox,
    src: CopyBox,
    range: [u32; 3],
    copy_agent: u64,
    direction: u32,
    deps: &[u64],
    completion: u64,
) -> HipResult {
    let side = |side: CopyBox| HsaPitchedPtr {
        base: side.address as *mut u8,
        pitch: side.pitch,
        slice: side.slice,
    };
    let (mut dst, mut src) = (side(dst), side(src));
    let mut zero = HsaDim3::default();
    let mut range = HsaDim3 {
        x: range[0],
        y: range[1],
        z: range[2],
    };
    let offset = out(&mut zero);
    // SAFETY: the descriptions and the list outlive the call, the rest is the caller's.
    check(unsafe {
        call::hsa_amd_memory_async_copy_rect(
            out(&mut dst),
            offset,
            out(&mut src),
            offset,
            out(&mut range),
            copy_agent,
            direction,
            deps.len() as u32,
            list(deps),
            completion,
        )
    })
}

/// A code object loaded for one agent.
#[derive(Debug)]
pub(crate) struct Executable {
    executable: u64,
    reader: u64,
    agent: u64,
}

const PROFILE_FULL: u32 = 1;
const ROUNDING_DEFAULT: u32 = 0;
const SYMBOL_VARIABLE_SIZE: u32 = 9;
const SYMBOL_KERNARG_SIZE: u32 = 11;
const SYMBOL_GROUP_SIZE: u32 = 13;
const SYMBOL_PRIVATE_SIZE: u32 = 14;
const SYMBOL_VARIABLE_ADDRESS: u32 = 21;
const SYMBOL_KERNEL_OBJECT: u32 = 22;

/// Address and sizes of a kernel, as its HSA symbol has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelSymbol {
    pub(crate) object: u64,
    pub(crate) kernarg_size: u32,
    pub(crate) group_size: u32,
    pub(crate) private_size: u32,
}

impl Executable {
    /// Loads an image.
    ///
    /// # Safety
    /// The image stays in place until [`Executable::destroy`].
    pub(crate) unsafe fn load(agent: u64, image: &[u8]) -> HipResult<Self> {
        let mut executable = 0u64;
        let mut reader = 0u64;
        // SAFETY: outputs are locals; the image outlives the executable by contract.
        unsafe {
            check(call::hsa_executable_create_alt(
                PROFILE_FULL,
                ROUNDING_DEFAULT,
                ptr::null_mut(),
                out(&mut executable),
            ))?;
            let loaded = check(call::hsa_code_object_reader_create_from_memory(
                image.as_ptr() as *mut c_void,
                image.len(),
                out(&mut reader),
            ))
            .and_then(|()| {
                check(call::hsa_executable_load_agent_code_object(
                    executable,
                    agent,
                    reader,
                    ptr::null_mut(),
                    ptr::null_mut(),
                ))
            })
            .and_then(|()| check(call::hsa_executable_freeze(executable, ptr::null_mut())));
            if let Err(error) = loaded {
                call::hsa_executable_destroy(executable);
                if reader != 0 {
                    call::hsa_code_object_reader_destroy(reader);
                }
                return Err(error);
            }
        }
        Ok(Self {
            executable,
            reader,
            agent,
        })
    }

    fn symbol(&self, name: &CStr) -> HipResult<u64> {
        let mut symbol = 0u64;
        let mut agent = self.agent;
        // SAFETY: the name and the agent outlive the call, the output is a local.
        check(unsafe {
            call::hsa_executable_get_symbol_by_name(
                self.executable,
                name.as_ptr() as *mut _,
                out(&mut agent),
                out(&mut symbol),
            )
        })
        .map_err(|_| code::NOT_FOUND)?;
        Ok(symbol)
    }

    fn symbol_info<T: Copy + Default>(symbol: u64, attribute: u32) -> HipResult<T> {
        let mut value = T::default();
        // SAFETY: callers choose `T` as wide as the attribute.
        check(unsafe { call::hsa_executable_symbol_get_info(symbol, attribute, out(&mut value)) })?;
        Ok(value)
    }

    /// The kernel whose descriptor is called `name` (with its `.kd`).
    pub(crate) fn kernel(&self, name: &CStr) -> HipResult<KernelSymbol> {
        let symbol = self.symbol(name)?;
        Ok(KernelSymbol {
            object: Self::symbol_info(symbol, SYMBOL_KERNEL_OBJECT)?,
            kernarg_size: Self::symbol_info(symbol, SYMBOL_KERNARG_SIZE)?,
            group_size: Self::symbol_info(symbol, SYMBOL_GROUP_SIZE)?,
            private_size: Self::symbol_info(symbol, SYMBOL_PRIVATE_SIZE)?,
        })
    }

    /// Address and size of a variable.
    pub(crate) fn variable(&self, name: &CStr) -> HipResult<(usize, usize)> {
        let symbol = self.symbol(name)?;
        let address: u64 = Self::symbol_info(symbol, SYMBOL_VARIABLE_ADDRESS)?;
        let size: u32 = Self::symbol_info(symbol, SYMBOL_VARIABLE_SIZE)?;
        Ok((address as usize, size as usize))
    }

    /// Unloads the code object.
    pub(crate) fn destroy(&self) {
        // SAFETY: both handles are ours; callers have waited for its kernels.
        unsafe {
            call::hsa_executable_destroy(self.executable);
            call::hsa_code_object_reader_destroy(self.reader);
        }
    }
}
