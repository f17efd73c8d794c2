//! The interpreter: executes code of gfx90a and gfx942, one wave of 64 lanes at a time.
//!
//! A [`Program`] contains the decoded instructions of a loaded code object. [`run_dispatch`] executes a [`Dispatch`]
//! of it, and returns counts of what was executed ([`Stats`]) or the reason why it stopped ([`Fault`]).
//!
//! Each encoding has a file with its decoder and its table of operations. An operation is a function of the wave
//! (`exec::Exec`) and the decoded instruction (`inst::Inst`). Only `operand` reads operands and writes results;
//! `lanewise` has the loops over lanes. Tables of operations are compiled for several instruction sets of the host
//! (`host`).

mod atomics;
mod classify;
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
mod run;
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
    /// End of the range, exclusive.
    pub end: u64,
    /// Whether kernels may store to the range.
    pub writable: bool,
    /// Whether host and device see each other's accesses to the range while a kernel runs.
    pub fine_grained: bool,
}

/// Functions of the device that the interpreter calls.
pub trait Memory: Sync {
    /// The accessible range that contains `address`, which is about to be loaded or, with `write`, stored; `None` ends the
    /// dispatch with a memory fault.
    ///
    /// The threads of a dispatch cache the result until [`Memory::changes`] differs at the start of a workgroup, so
    /// this function need not be fast.
    fn extent(&self, address: u64, write: bool) -> Option<Extent>;

    /// A number that changes when results of [`Memory::extent`] may have changed. Read once for each workgroup.
    fn changes(&self) -> u64;

    /// Value of the constant 100 MHz clock, for `s_memrealtime`.
    fn realtime(&self) -> u64 {
        use std::time::Instant;
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        (START.get_or_init(Instant::now).elapsed().as_nanos() / 10) as u64
    }

    /// Resources of the device for global wave sync. The default is one set for all devices.
    fn wave_sync(&self) -> &WaveSync {
        static SHARED: WaveSync = WaveSync::new();
        &SHARED
    }

    /// Called when a wave sends an interrupt (`s_sendmsg`), which is the event of a signal that a host thread may wait
    /// for.
    fn interrupt(&self, _event: u32) {}
}

/// Parameters of a kernel dispatch.
#[derive(Debug, Clone, Copy)]
pub struct Dispatch<'a> {
    /// Device that executes the dispatch.
    pub device: &'static Device,
    /// Name of the kernel, for messages.
    pub kernel: &'a str,
    /// Decoded instructions of the code object.
    pub program: &'a Program,
    /// Address of the kernel descriptor, from the packet.
    pub kernel_object: u64,
    /// The descriptor, see [`KernelDescriptor::parse`].
    pub descriptor: KernelDescriptor,
    /// Work-items of the grid: x, y, z; 1 for dimensions that the packet does not have.
    pub grid: [u32; 3],
    /// Work-items of a workgroup: x, y, z.
    pub workgroup: [u16; 3],
    /// LDS of a workgroup in bytes, static and dynamic, from the packet.
    pub group_segment_size: u32,
    /// Scratch memory of a work-item in bytes, from the packet.
    pub private_segment_size: u32,
    /// Address of the kernel argument block.
    pub kernarg: u64,
    /// Address of a copy of the dispatch packet. It stays valid during the dispatch.
    pub packet: u64,
    /// Address of the queue's `amd_queue_t`.
    pub queue: u64,
    /// Index of the packet in the queue.
    pub dispatch_id: u64,
}

impl Dispatch<'_> {
    /// Address of the kernel's first instruction.
    pub fn entry(&self) -> u64 {
        let entry = self
            .kernel_object
            .wrapping_add_signed(self.descriptor.entry_offset);
        // Kernels with preloaded arguments begin with code for firmware that cannot preload.
        if self.descriptor.preload & 0x7f != 0 {
            return entry.wrapping_add(256);
        }
        entry
    }
}

/// Settings for the execution of a dispatch.
#[derive(Debug, Clone, Copy)]
pub struct Control<'a> {
    /// Number of threads that execute workgroups, at least 1.
    pub threads: usize,
    /// Flag that ends the dispatch soon after it becomes true.
    pub stop: &'a AtomicBool,
    /// Seed for the order in which waves and workgroups execute instructions. The order then depends only on this
    /// number and [`Dispatch::dispatch_id`], one thread executes the dispatch, and the clocks that kernels read
    /// advance with the number of executed instructions.
    pub seed: Option<u64>,
}

/// Result of a dispatch that was executed to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executed {
    /// Counts of the executed instructions.
    pub stats: Stats,
    /// Duration as if each thread had had a CPU at all times: the CPU time of all threads, distributed evenly over
    /// them.
    pub time: Duration,
}
