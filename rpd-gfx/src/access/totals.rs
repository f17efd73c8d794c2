//! Summed costs of executed instructions.

use std::collections::HashMap;

use crate::isa::{Space, Transfer, lanes};
use crate::perf::lds;

/// Bytes of a line of the vector L1 cache.
pub const LINE: u64 = 64;
/// Different strides that are counted one by one.
const MOST_STRIDES: usize = 64;

/// Sums over executions of instructions that access one space in one way.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Executions by waves.
    pub executions: u64,
    /// Active lanes of all of them.
    pub lanes: u64,
    /// Bytes that lanes requested.
    pub bytes: u64,
    /// Lines of 64 bytes that executions touched, those of each counted.
    pub lines: u64,
    /// Lines that would have sufficed for the different bytes of each execution, had they been side by side.
    pub ideal_lines: u64,
    /// Cycles that LDS needed for the accesses.
    pub lds_cycles: u64,
    /// Of these, those because lanes accessed different dwords of a bank, or changed the same dword.
    pub conflict_cycles: u64,
    /// Sets of 64 lines that were touched, by number of the first line / 64.
    touched: HashMap<u64, u64>,
    /// Executions by stride between neighbouring active lanes, if it is constant.
    strides: HashMap<i64, u64>,
    /// Executions without a constant stride.
    irregular: u64,
}

/// The distance between neighbouring active lanes that most executions had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stride {
    /// Bytes; 0: all lanes accessed the same address.
    Constant(i64),
    /// Strides that differ.
    Irregular,
}

impl Totals {
    /// Adds an execution in which some lanes took part; what they accessed is added by itself.
    pub fn executed(&mut self, lanes: u64) {
        self.executions += 1;
        self.lanes += u64::from(lanes.count_ones());
    }

    /// Adds what a scalar load read.
    pub fn add_scalar(&mut self, ranges: &[(u64, u64)]) {
        let mut bytes: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for &(address, size) in ranges {
            self.bytes = self.bytes.saturating_add(size);
            bytes.push((address, address.saturating_add(size)));
        }
        self.add_lines(&mut bytes);
    }

    /// Adds what an execution's lanes accessed.
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
        match constant && room {
            true => *self.strides.entry(first).or_default() += 1,
            false => self.irregular += 1,
        }
    }

    /// Adds the lines of an execution's ranges, and how few would have sufficed.
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

    /// Different lines of 64 bytes that were touched.
    pub fn unique_lines(&self) -> u64 {
        let lines = self.touched.values().map(|set| u64::from(set.count_ones()));
        lines.sum()
    }

    /// The lines that would have sufficed, as a part of those that were touched; `None` where there are no lines.
    pub fn coalescing(&self) -> Option<f64> {
        (self.lines > 0).then(|| self.ideal_lines as f64 / self.lines as f64)
    }

    /// The stride of most executions with more than one active lane, and their part of these.
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
