//! The interpreter: executes code of gfx90a and gfx942, wave by wave, 64 lanes at a time.
//!
//! A [`Program`] holds the decoded instructions of one loaded code object. [`run_dispatch`] executes a
//! [`Dispatch`] on it and returns what it did ([`Stats`]) or what stopped it ([`Fault`]).
//!
//! Every instruction format has its own file with its decoder and its table of operations; an
//! operation is a function on the wave (`exec::Exec`) and the decoded instruction (`inst::Inst`).
//! Operands are fetched and results written in `operand` alone; `lanewise` has the loops over lanes. Tables of operations
//! are compiled for several sets of vector instructions of the host (`host`).

mod atomics;
mod decode;
mod dispatch;
mod division;
mod ds;
mod exec;
mod facts;
mod fault;
mod flat;
mod float;
mod flow;
mod fp8;
mod gfx942;
mod group;
mod gws;
mod helpers;
mod host;
pub mod image;
mod inst;
mod kind;
mod lanes;
mod lanewise;
mod memory;
mod mfma;
mod mimg;
mod mubuf;
mod operand;
mod program;
mod schedule;
mod smem;
mod sop;
mod sparse_mfma;
mod stats;
#[cfg(test)]
pub(crate) mod tests;
mod texels;
mod trace;
mod transfer;
mod typed_buffer;
mod vop;
mod vop1;
mod vop2;
mod vop3;
mod vop3p;
mod vopc;

pub use crate::instruction_set::InstructionSet;
pub use dispatch::{follow_dispatch, run_dispatch, watch_dispatch};
pub use facts::{Facts, Registers};
pub use fault::{Access, AddressTarget, Fault, Refused, Site};
pub use gws::WaveSync;
pub use helpers::forget_helpers;
pub use kind::{Kind, Matrix, MatrixElement, Operation, Valu, Vmem};
pub use lanes::{lane_numbers, lanes};
pub use program::Program;
pub use stats::{Class, Stats};
pub use trace::{Probe, Space, Step, Transfer, Workgroup};

use crate::codeobj::KernelDescriptor;
use crate::device::Device;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A range of memory that a kernel may access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Address of the first byte.
    pub start: u64,
    /// Address after the last byte.
    pub end: u64,
    /// Whether stores are allowed.
    pub writable: bool,
    /// Whether accesses of host and device are visible to each other while a kernel runs.
    pub fine_grained: bool,
}

/// The device's functions that the interpreter calls.
pub trait Memory: Sync {
    /// The accessible range around `address`, or `None`, which ends the dispatch with a memory fault.
    ///
    /// A thread of a dispatch keeps answers until [`Memory::changes`] differs at the start of a workgroup, so this need
    /// not be fast.
    fn extent(&self, address: u64) -> Option<Extent>;

    /// A number that changes whenever answers of [`Memory::extent`] may have changed; read once for each workgroup.
    fn changes(&self) -> u64;

    /// The constant 100 MHz counter that `s_memrealtime` reads.
    fn realtime(&self) -> u64 {
        use std::time::Instant;
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        (START.get_or_init(Instant::now).elapsed().as_nanos() / 10) as u64
    }

    /// The device's counters for waves that wait for other workgroups; by default those of a device that all share.
    fn wave_sync(&self) -> &WaveSync {
        static SHARED: WaveSync = WaveSync::new();
        &SHARED
    }

    /// A wave sent an interrupt (`s_sendmsg`): a signal's event that hosts may be waiting for.
    fn interrupt(&self, _event: u32) {}
}

/// The parameters of a kernel dispatch.
#[derive(Debug, Clone, Copy)]
pub struct Dispatch<'a> {
    /// The device that executes it.
    pub device: &'static Device,
    /// Name of the kernel, for messages.
    pub kernel: &'a str,
    /// The decoded instructions.
    pub program: &'a Program,
    /// Address of the kernel descriptor, from the packet.
    pub kernel_object: u64,
    /// The descriptor, see [`KernelDescriptor::parse`].
    pub descriptor: KernelDescriptor,
    /// Work-items in each dimension (1 where the packet's dimensions do not reach).
    pub grid: [u32; 3],
    /// Work-items of a workgroup in each dimension.
    pub workgroup: [u16; 3],
    /// LDS bytes of a workgroup: the packet's, static and dynamic together.
    pub group_segment_size: u32,
    /// Scratch bytes of a work-item: the packet's.
    pub private_segment_size: u32,
    /// Address of the kernel arguments.
    pub kernarg: u64,
    /// Address of a copy of the AQL packet that stays valid while the dispatch runs.
    pub packet: u64,
    /// Address of the queue's `amd_queue_t`.
    pub queue: u64,
    /// The packet's index in the queue.
    pub dispatch_id: u64,
}

impl Dispatch<'_> {
    /// Address of the kernel's first instruction.
    pub fn entry(&self) -> u64 {
        let entry = self
            .kernel_object
            .wrapping_add_signed(self.descriptor.entry_offset);
        // With preloaded arguments the code for firmware that cannot preload comes first.
        if self.descriptor.preload & 0x7f != 0 {
            return entry.wrapping_add(256);
        }
        entry
    }
}

/// Options for the execution of a dispatch.
#[derive(Debug, Clone, Copy)]
pub struct Control<'a> {
    /// Threads to spread workgroups over, at least 1.
    pub threads: usize,
    /// Ends the dispatch soon after it becomes true.
    pub stop: &'a AtomicBool,
    /// Makes the order in which waves and workgroups execute instructions a function of this number and of
    /// [`Dispatch::dispatch_id`], on one thread, and the clocks that kernels read one of what was executed.
    pub seed: Option<u64>,
}

/// The result of a dispatch that was executed completely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// Counts of the executed instructions.
    pub stats: Stats,
    /// Duration without the time in which its threads had to wait for a CPU: their CPU time, spread evenly
    /// over them.
    pub time: Duration,
}
