//! Tests of the HSA API as programs call it.

mod basics;
mod images;
mod intercept;
mod memory;
mod modules;
mod observer;
mod queues;

use core::ffi::c_void;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI64, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::gpu::agents::{self, PoolKind};
use crate::gpu::aql::{BarrierPacket, HEADER_BARRIER, KernelDispatchPacket, packet_type};
use crate::gpu::clock;
use crate::hsa::agent::*;
use crate::hsa::copy::*;
use crate::hsa::executable::*;
use crate::hsa::executable_symbols::*;
use crate::hsa::memory::*;
use crate::hsa::profiling::*;
use crate::hsa::queue::*;
use crate::hsa::reader::*;
use crate::hsa::signal::*;
use crate::hsa::symbol::*;
use crate::hsa::system::*;
use crate::hsa::types::*;
use crate::hsa::vmem::*;

static CODE_OBJECT: &[u8] = include_bytes!("../testdata/kernels.co");
const CONDITION_EQ: u32 = 0;
const FOREVER: u64 = u64::MAX;

fn ok(status: Status) {
    assert_eq!(status, status::SUCCESS);
}

/// Adds a user of the runtime, which each test does: the runtime stays initialised between tests.
fn init() {
    // SAFETY: takes nothing.
    ok(unsafe { hsa_init() });
}

fn gpu() -> u64 {
    agents::gpus()[0].handle()
}

fn cpu() -> u64 {
    agents::cpu_agent().handle()
}

fn pool(agent: usize, kind: PoolKind) -> u64 {
    agents::pool_of(agent, kind)
        .expect("the pool exists")
        .handle()
}

fn new_signal(value: i64) -> u64 {
    let mut signal = 0;
    // SAFETY: all pointers are valid.
    ok(unsafe { hsa_signal_create(value, 0, std::ptr::null(), &mut signal) });
    signal
}

fn allocate(agent: usize, kind: PoolKind, bytes: usize) -> *mut c_void {
    let mut block = std::ptr::null_mut();
    let everyone: Vec<u64> = agents::agents().iter().map(|a| a.handle()).collect();
    // SAFETY: all pointers are valid.
    unsafe {
        ok(hsa_amd_memory_pool_allocate(
            pool(agent, kind),
            bytes,
            0,
            &mut block,
        ));
        let count = everyone.len() as u32;
        ok(hsa_amd_agents_allow_access(
            count,
            everyone.as_ptr(),
            std::ptr::null(),
            block,
        ));
    }
    block
}

fn wait(signal: u64) {
    // SAFETY: takes no pointers.
    let value = unsafe { hsa_signal_wait_scacquire(signal, CONDITION_LT, 1, FOREVER, 0) };
    assert!(value < 1, "signal is {value}");
}

fn new_queue(callback: QueueErrorCallback, data: *mut c_void) -> *mut HsaQueue {
    let mut queue = std::ptr::null_mut();
    // SAFETY: all pointers are valid.
    ok(unsafe { hsa_queue_create(gpu(), 64, 0, callback, data, 0, 0, &mut queue) });
    queue
}

/// Writes a packet, header last, and rings the doorbell.
fn submit<T>(queue: *mut HsaQueue, packet: &T, header: u16) {
    assert_eq!(size_of::<T>(), 64);
    // SAFETY: the queue is alive and the slot free: tests never have more than a ring of packets open.
    unsafe {
        let index = hsa_queue_add_write_index_scacq_screl(queue, 1);
        while index - hsa_queue_load_read_index_scacquire(queue) >= u64::from((*queue).size) {
            std::thread::yield_now();
        }
        let slot = (*queue).base_address as usize + (index as usize % (*queue).size as usize) * 64;
        let bytes = std::ptr::from_ref(packet).cast::<u8>();
        (slot as *mut u8).add(2).copy_from(bytes.add(2), 62);
        AtomicU16::from_ptr(slot as *mut u16).store(header, Ordering::Release);
        hsa_signal_store_screlease((*queue).doorbell_signal, index as i64);
    }
}

struct Module {
    executable: u64,
}

impl Module {
    fn load() -> Self {
        Self::load_from(CODE_OBJECT)
    }

    fn load_from(code_object: &[u8]) -> Self {
        let (mut reader, mut executable, mut loaded) = (0, 0, 0);
        // SAFETY: all pointers are valid.
        unsafe {
            let image = code_object.as_ptr().cast();
            ok(hsa_code_object_reader_create_from_memory(
                image,
                code_object.len(),
                &mut reader,
            ));
            ok(hsa_executable_create_alt(
                1,
                2,
                std::ptr::null(),
                &mut executable,
            ));
            let none = std::ptr::null();
            ok(hsa_executable_load_agent_code_object(
                executable,
                gpu(),
                reader,
                none,
                &mut loaded,
            ));
            ok(hsa_executable_freeze(executable, none));
            ok(hsa_code_object_reader_destroy(reader));
        }
        Self { executable }
    }

    fn symbol(&self, name: &CStr) -> u64 {
        let mut symbol = 0;
        let agent = gpu();
        // SAFETY: all pointers are valid.
        ok(unsafe {
            hsa_executable_get_symbol_by_name(self.executable, name.as_ptr(), &agent, &mut symbol)
        });
        symbol
    }

    fn address(&self, name: &CStr, attribute: u32) -> u64 {
        let mut address = 0u64;
        let place = (&raw mut address).cast();
        // SAFETY: the attribute is an address.
        ok(unsafe { hsa_executable_symbol_get_info(self.symbol(name), attribute, place) });
        address
    }

    fn kernel(&self, name: &CStr) -> u64 {
        self.address(name, 22)
    }
}

fn dispatch(
    kernel_object: u64,
    groups: u32,
    kernarg: *mut c_void,
    completion: u64,
) -> KernelDispatchPacket {
    KernelDispatchPacket {
        setup: 1,
        workgroup_size_x: 64,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        grid_size_x: groups * 64,
        grid_size_y: 1,
        grid_size_z: 1,
        kernel_object,
        kernarg_address: kernarg as u64,
        completion_signal: completion,
        ..KernelDispatchPacket::default()
    }
}

fn kernarg(value: u64) -> *mut c_void {
    let block = allocate(0, PoolKind::SystemKernarg, 64);
    // SAFETY: the block is large enough.
    unsafe { block.cast::<u64>().write(value) };
    block
}
