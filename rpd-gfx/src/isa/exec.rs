//! The state of a wave, and the operations on it that instructions use.

use super::inst::{EXEC, M0, VCC, VGPR};
use super::lanes::Lanes;
use super::memory::Cache;
use super::trace::Trace;
use super::{Dispatch, Fault, Stats};
use std::sync::atomic::{Ordering, fence};

/// Number of dwords of a program that are decoded together.
pub(super) const PAGE: usize = 1024;

/// High dword of flat addresses in LDS.
pub(super) const SHARED_APERTURE: u32 = 0x0001_0000;
/// High dword of flat addresses in scratch.
pub(super) const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// The execution state of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaveState {
    /// The wave executes instructions.
    Running,
    /// The wave waits for the other waves of its workgroup.
    Barrier,
    /// The wave lets other waves run first (`s_sleep`).
    Yield,
    /// The wave waits for waves of other workgroups: see [`Wave::wait`].
    Global,
    /// The wave has ended.
    Ended,
    /// The wave was stopped by the fault in [`Exec::fault`].
    Faulted,
}

/// A condition that a wave waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Ends when the number of completed barriers of a resource becomes greater than this.
    Barrier(usize, u64),
    /// Ends when the semaphore has a unit, or when its waves are released more often than this.
    Semaphore(usize, u64),
}

/// Architectural state of a wave.
pub(super) struct Wave {
    /// VGPRs, then AGPRs.
    pub(super) v: Box<[Lanes; 512]>,
    /// SGPRs and special registers by operand code, and one more, because a register pair may begin with the last.
    pub(super) s: [u32; 129],
    /// Scalar condition code.
    pub(super) scc: bool,
    /// Program counter: address of the next instruction.
    pub(super) pc: u64,
    /// MODE register.
    pub(super) mode: u32,
    /// Whether single-precision denormals are flushed, from `mode`.
    pub(super) flush32: bool,
    /// Operands to which VGPR indexing applies, one bit for each (SRC0, SRC1, SRC2, DST); 0 when indexing is off.
    pub(super) index_mode: u8,
    /// State of the wave's execution.
    pub(super) state: WaveState,
    /// The condition that the wave waits for.
    pub(super) wait: Option<Wait>,
}

/// Index of a vector register among those of a wave.
#[inline(always)]
pub(super) fn register(code: u16) -> usize {
    usize::from(code.wrapping_sub(VGPR)) & 511
}

impl Wave {
    pub(super) fn new() -> Self {
        let v: Box<[Lanes]> = vec![[0; 64]; 512].into_boxed_slice();
        Self {
            v: v.try_into()
                .unwrap_or_else(|_| unreachable!("512 registers were made")),
            s: [0; 129],
            scc: false,
            pc: 0,
            mode: 0,
            flush32: false,
            index_mode: 0,
            state: WaveState::Ended,
            wait: None,
        }
    }

    /// Sets the MODE register.
    pub(super) fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
        self.flush32 = mode & 0x30 == 0;
    }
}

/// A wave in execution, with everything that its instructions access.
pub(super) struct Exec<'d> {
    /// The wave that is executing.
    pub(super) w: Box<Wave>,
    /// LDS of the workgroup.
    pub(super) lds: Vec<u8>,
    /// Global memory of the device.
    pub(super) mem: Cache<'d>,
    /// Counts of the executed instructions.
    pub(super) stats: Stats,
    /// The probe that observes the dispatch, if any.
    pub(super) trace: Option<Box<Trace<'d>>>,
    /// Whether a later load could be executed by the host before a store to global memory that was executed already.
    pub(super) stores_unordered: bool,
    /// Whether the clocks that kernels read advance with the number of executed instructions instead of with time.
    pub(super) own_clock: bool,
    /// Fault that stopped the wave; `None` while it can run.
    pub(super) fault: Option<Fault>,
    /// Number of the workgroup that the wave belongs to.
    pub(super) group: u64,
    /// Number of the wave in the workgroup.
    pub(super) wave: u32,
    /// The dispatch that the wave belongs to.
    pub(super) d: &'d Dispatch<'d>,
    /// Address of the kernel's first instruction.
    pub(super) entry: u64,
}

impl<'d> Exec<'d> {
    /// Creates the state before the first instruction.
    pub(super) fn new(d: &'d Dispatch<'d>, mem: Cache<'d>, entry: u64) -> Self {
        Self {
            w: Box::new(Wave::new()),
            lds: Vec::new(),
            mem,
            stats: Stats::default(),
            trace: None,
            stores_unordered: false,
            own_clock: false,
            fault: None,
            group: 0,
            wave: 0,
            d,
            entry,
        }
    }
}

impl Exec<'_> {
    /// The EXEC mask.
    #[inline(always)]
    pub(super) fn exec(&self) -> u64 {
        self.pair(EXEC)
    }

    /// A pair of scalar registers.
    #[inline(always)]
    pub(super) fn pair(&self, code: u16) -> u64 {
        let at = usize::from(code) & 127;
        u64::from(self.w.s[at]) | u64::from(self.w.s[at + 1]) << 32
    }

    /// Sets a pair of scalar registers.
    #[inline(always)]
    pub(super) fn set_pair(&mut self, code: u16, value: u64) {
        let at = usize::from(code) & 127;
        self.w.s[at] = value as u32;
        self.w.s[at + 1] = (value >> 32) as u32;
    }

    /// Sets a scalar register.
    #[inline(always)]
    pub(super) fn set(&mut self, code: u16, value: u32) {
        self.w.s[usize::from(code) & 127] = value;
    }

    /// Orders all earlier stores before later loads, for this wave and for others (a fence of the host).
    #[inline(always)]
    pub(super) fn order_stores(&mut self) {
        if self.stores_unordered {
            self.stores_unordered = false;
            fence(Ordering::SeqCst);
        }
    }

    /// The core clock, where it advances with the number of executed instructions: four cycles for each. Later
    /// dispatches of a queue begin at later times.
    pub(super) fn own_clock(&self) -> Option<u64> {
        self.own_clock.then(|| {
            let executed: u64 = self.stats.instructions.iter().sum();
            (self.d.dispatch_id << 36).wrapping_add(4 * executed)
        })
    }

    /// The VCC mask.
    #[inline(always)]
    pub(super) fn vcc(&self) -> u64 {
        self.pair(VCC)
    }

    /// The M0 register.
    #[inline(always)]
    pub(super) fn m0(&self) -> u32 {
        self.w.s[usize::from(M0)]
    }

    /// A vector register.
    #[inline(always)]
    pub(super) fn vgpr(&self, code: u16) -> &Lanes {
        &self.w.v[register(code)]
    }

    /// A vector register, to be written.
    #[inline(always)]
    pub(super) fn vgpr_mut(&mut self, code: u16) -> &mut Lanes {
        &mut self.w.v[register(code)]
    }

    /// Counts the active lanes of a VALU instruction.
    #[inline(always)]
    pub(super) fn count_lanes(&mut self) {
        self.stats.valu_lanes += u64::from(self.exec().count_ones());
    }
}
