//! Cost of LDS accesses.

use crate::isa::{Operation, Transfer};

/// Number of banks. A bank has a width of one dword.
const BANKS: usize = 32;

/// Cycles that an access takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Number of all cycles.
    pub(crate) active: u64,
    /// Cycles due to lanes that accessed different dwords of the same bank.
    pub(crate) bank_conflict: u64,
    /// Cycles due to lanes that changed the same dword.
    pub(crate) address_conflict: u64,
    /// Cycles in which old values of atomics were returned.
    pub(crate) atomic_return: u64,
    /// Cycles that would be saved if the data of each lane began at a multiple of its size, or of 4 bytes.
    pub(crate) unaligned: u64,
}

/// Cost of an access. Groups of lanes that access 32 dwords together are executed one after the other; a group takes as
/// many cycles as its busiest bank has different dwords. Lanes that read or write the same dword do not conflict, lanes
/// that change it do.
pub(crate) fn cost(transfer: &Transfer) -> Cost {
    let size = u64::from(transfer.bytes.clamp(1, 4));
    let cost = cost_at(transfer, |address| address);
    let lanes = (0..64).filter(|l| transfer.lanes >> l & 1 != 0);
    if lanes.map(|l| transfer.addresses[l]).all(|a| a % size == 0) {
        return cost;
    }
    let aligned = cost_at(transfer, |address| address - address % size);
    Cost {
        unaligned: cost.active.saturating_sub(aligned.active),
        ..cost
    }
}

/// Cost of an access whose lanes have their data at `place` of their addresses.
fn cost_at(transfer: &Transfer, place: impl Fn(u64) -> u64) -> Cost {
    let dwords = (transfer.bytes.div_ceil(4) as usize).max(1);
    let at_once = (BANKS / dwords.next_power_of_two()).max(1);
    let atomic = matches!(transfer.operation, Operation::Atomic(_));
    let mut cost = Cost::default();
    let mut seen: Vec<u64> = Vec::with_capacity(BANKS);
    for first in (0..64).step_by(at_once) {
        seen.clear();
        let (mut distinct, mut all) = ([0u64; BANKS], [0u64; BANKS]);
        let lanes = (first..first + at_once).filter(|l| transfer.lanes >> l & 1 != 0);
        for address in lanes.map(|l| place(transfer.addresses[l])) {
            let last = address + u64::from(transfer.bytes) - 1;
            for dword in address / 4..=last / 4 {
                let bank = (dword % BANKS as u64) as usize;
                all[bank] += 1;
                if !seen.contains(&dword) {
                    seen.push(dword);
                    distinct[bank] += 1;
                }
            }
        }
        let busiest = |uses: &[u64; BANKS]| uses.iter().copied().max().unwrap_or(0);
        let reads = busiest(&distinct);
        if reads == 0 {
            continue;
        }
        let cycles = if atomic { busiest(&all) } else { reads };
        cost.active += cycles;
        cost.bank_conflict += reads - 1;
        cost.address_conflict += cycles - reads;
        cost.atomic_return += u64::from(transfer.operation == Operation::Atomic(true));
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Space;

    fn of(operation: Operation, bytes: u32, address: impl Fn(u64) -> u64) -> Cost {
        cost(&Transfer {
            space: Space::Lds,
            operation,
            bytes,
            lanes: u64::MAX,
            addresses: std::array::from_fn(|l| address(l as u64)),
        })
    }

    fn conflicts(bytes: u32, address: impl Fn(u64) -> u64) -> (u64, u64) {
        let cost = of(Operation::Load, bytes, address);
        (cost.active, cost.bank_conflict)
    }

    #[test]
    fn lds_accesses_of_neighbouring_lanes_do_not_conflict() {
        assert_eq!(conflicts(4, |l| 4 * l), (2, 0));
        assert_eq!(conflicts(8, |l| 8 * l), (4, 0));
        assert_eq!(conflicts(16, |l| 16 * l), (8, 0));
        assert_eq!(conflicts(1, |l| l), (2, 0));
    }

    #[test]
    fn lds_accesses_with_a_stride_conflict_as_often_as_they_share_banks() {
        assert_eq!(conflicts(4, |l| 8 * l), (4, 2));
        assert_eq!(conflicts(4, |l| 128 * l), (64, 62));
        assert_eq!(conflicts(4, |l| 132 * l), (2, 0));
        // One dword for all is read once for each half of the wave.
        assert_eq!(conflicts(4, |_| 64), (2, 0));
    }

    #[test]
    fn unaligned_lds_accesses_take_longer() {
        let cost = |address: fn(u64) -> u64| {
            let cost = of(Operation::Load, 4, address);
            (cost.active, cost.unaligned)
        };
        // Each lane needs two dwords, so that each bank has two.
        assert_eq!(cost(|l| 4 * l + 2), (4, 2));
        assert_eq!(cost(|l| 4 * l), (2, 0));
        assert_eq!(of(Operation::Load, 1, |l| l).unaligned, 0);
    }

    #[test]
    fn lds_atomics_on_one_dword_are_serialised() {
        let cost = of(Operation::Atomic(true), 4, |_| 0);
        let expected = Cost {
            active: 64,
            bank_conflict: 0,
            address_conflict: 62,
            atomic_return: 2,
            unaligned: 0,
        };
        assert_eq!(cost, expected);
    }
}
