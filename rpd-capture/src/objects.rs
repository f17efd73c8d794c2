//! Objects that the calls of a capture create and destroy: handles, memory, kernels.

use std::collections::BTreeMap;

use rpd_spool::capture::memory_kind;

/// Live memory at a moment, by address.
#[derive(Debug, Default, Clone)]
pub(crate) struct Intervals {
    live: BTreeMap<u64, (u64, i64)>,
}

impl Intervals {
    pub(crate) fn insert(&mut self, base: u64, size: u64, number: i64) {
        self.live.insert(base, (size, number));
    }

    pub(crate) fn remove(&mut self, base: u64) -> Option<i64> {
        self.live.remove(&base).map(|(_, number)| number)
    }

    /// Removes all memory that begins in a range; the numbers.
    pub(crate) fn remove_all(&mut self, base: u64, size: u64) -> Vec<i64> {
        let range = base..base.saturating_add(size);
        let found: Vec<u64> = self.live.range(range).map(|(base, _)| *base).collect();
        found
            .into_iter()
            .filter_map(|base| self.remove(base))
            .collect()
    }

    /// The memory that an address lies in, and how far after its start. The address right after some memory belongs to
    /// that memory where no other begins there.
    pub(crate) fn find(&self, address: u64) -> Option<(i64, u64)> {
        let (&base, &(size, number)) = self.live.range(..=address).next_back()?;
        (address - base <= size).then_some((number, address - base))
    }
}

/// Kinds of memory in outputs.
pub(crate) fn memory_name(kind: u32) -> &'static str {
    match kind {
        memory_kind::DEVICE => "device",
        memory_kind::POOLED => "pool",
        memory_kind::HOST => "host",
        memory_kind::REGISTERED => "registered",
        memory_kind::MANAGED => "managed",
        _ => "unknown",
    }
}
