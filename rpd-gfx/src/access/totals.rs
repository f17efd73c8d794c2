//! Sums over the memory accesses of executed instructions.

use std::collections::HashMap;

use crate::isa::{Space, Transfer, lanes};
use crate::perf::lds;

/// Size of a line of the first-level vector cache in bytes.
pub const LINE: u64 = 64;
/// Number of different strides that are counted separately.
const MOST_STRIDES: usize = 64;

/// Sums over the executions of an instruction, for one memory space and one direction of access.
#[derive(Debug, Clone, Default)]
pub struct AccessTotals {
    /// Number of executions by waves.
    pub executions: u64,
    /// Number of active lanes, added up over the executions.
    pub lanes: u64,
    /// Number of bytes that lanes requested.
    pub bytes: u64,
    /// Number of 64-byte lines that the executions touched, each execution counted separately.
    pub lines: u64,
    /// Number of lines that would hold the different bytes of each execution if these were contiguous.
    pub ideal_lines: u64,
    /// Cycles in which LDS was busy with the accesses.
    pub lds_cycles: u64,
    /// The part of `lds_cycles` that is due to conflicts: lanes accessed different dwords of a bank, or changed the
    /// same dword.
    pub conflict_cycles: u64,
    /// Lines that were touched, a bit each in words of 64 lines.
    touched: HashMap<u64, u64>,
    /// Number of executions by stride between neighbouring active lanes, where it is constant.
    strides: HashMap<i64, u64>,
    /// Number of executions without a constant stride.
    irregular: u64,
}

/// Distance between the addresses of neighbouring active lanes in most executions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stride {
    /// Distance in bytes; 0 when all lanes accessed the same address.
    Constant(i64),
    /// The distance is not constant.
    Irregular,
}

impl AccessTotals {
    /// Adds an execution with this many active lanes. Its accesses are added separately.
    pub fn executed(&mut self, lanes: u64) {
        self.executions += 1;
        self.lanes += u64::from(lanes.count_ones());
    }

    /// Adds the ranges, as address and length, that a scalar load read.
    pub fn add_scalar(&mut self, ranges: &[(u64, u64)]) {
        let mut bytes: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for &(address, size) in ranges {
            self.bytes = self.bytes.saturating_add(size);
            bytes.push((address, address.saturating_add(size)));
        }
        self.add_lines(&mut bytes);
    }

    /// Adds an access of the lanes of an execution.
    pub fn add(&mut self, transfer: &Transfer) {
        let count = u64::from(transfer.lanes.count_ones());
        let size = u64::from(transfer.bytes);
        self.bytes = self.bytes.saturating_add(count * size);
        let addresses = lanes(transfer.lanes).map(|lane| transfer.addresses[lane]);
        self.add_stride(addresses.clone());
        if transfer.space == Space::Lds {
            let cost = lds::cost(transfer);
            self.lds_cycles += cost.active;
            self.conflict_cycles += cost.bank_conflict + cost.address_conflict;
            return;
        }
        let mut bytes: Vec<(u64, u64)> = addresses
            .map(|address| (address, address.saturating_add(size)))
            .collect();
        self.add_lines(&mut bytes);
    }

    fn add_stride(&mut self, addresses: impl Iterator<Item = u64> + Clone) {
        let mut steps = addresses
            .clone()
            .zip(addresses.skip(1))
            .map(|(a, b)| b.wrapping_sub(a).cast_signed());
        let Some(first) = steps.next() else { return };
        let constant = steps.all(|step| step == first);
        let room = self.strides.len() < MOST_STRIDES || self.strides.contains_key(&first);
        if constant && room {
            *self.strides.entry(first).or_default() += 1
        } else {
            self.irregular += 1
        }
    }

    /// Adds the lines of an execution's ranges, and the number that would have sufficed.
    fn add_lines(&mut self, ranges: &mut [(u64, u64)]) {
        ranges.sort_unstable();
        let (mut distinct, mut reached) = (0, 0);
        let mut last_line = None;
        for &mut (start, end) in ranges {
            distinct += end.saturating_sub(start.max(reached));
            reached = reached.max(end);
            let Some(last) = end.checked_sub(1).filter(|last| *last >= start) else {
                continue;
            };
            let first = start / LINE;
            let fresh = last_line.map_or(first, |known: u64| first.max(known + 1));
            for line in fresh..=last / LINE {
                self.lines += 1;
                *self.touched.entry(line / 64).or_default() |= 1 << (line % 64);
                last_line = Some(line);
            }
        }
        self.ideal_lines += distinct.div_ceil(LINE);
    }

    /// Number of different 64-byte lines that were touched.
    pub fn unique_lines(&self) -> u64 {
        let lines = self.touched.values().map(|set| u64::from(set.count_ones()));
        lines.sum()
    }

    /// `ideal_lines` divided by `lines`; `None` without lines.
    pub fn coalescing(&self) -> Option<f64> {
        (self.lines > 0).then(|| self.ideal_lines as f64 / self.lines as f64)
    }

    /// The most frequent stride of executions with several active lanes, and its share of these executions (0 to 1).
    pub fn stride(&self) -> Option<(Stride, f64)> {
        let constant = self.strides.iter().map(|(stride, count)| (*count, *stride));
        let all = self.irregular + self.strides.values().sum::<u64>();
        let (count, stride) = constant
            .max_by_key(|&(count, stride)| (count, -stride.abs(), stride))
            .filter(|(count, _)| *count >= self.irregular)
            .map_or((self.irregular, Stride::Irregular), |(count, stride)| {
                (count, Stride::Constant(stride))
            });
        (all > 0).then(|| (stride, count as f64 / all as f64))
    }
}
