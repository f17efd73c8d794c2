//! Locations and the call tree, shared by all threads of a process.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::facts::{Location, LocationKind, Node, Sink};
use crate::interner::{Interner, NoNumber};

/// Distinct locations of a process.
const LOCATIONS: usize = 1 << 20;
/// Distinct nodes of a process.
const NODES: usize = 3 << 19;

/// Table of locations and nodes.
pub(crate) struct Tree {
    locations: Interner,
    nodes: Interner,
    /// Number of times that the tree was cleared, plus 1: ids are valid for one round.
    round: AtomicU32,
}

impl Tree {
    /// Reserves the tables of locations and nodes.
    pub(crate) fn reserve() -> Tree {
        Tree {
            locations: Interner::reserve(LOCATIONS),
            nodes: Interner::reserve(NODES),
            round: AtomicU32::new(1),
        }
    }

    /// Whether the tables could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.locations.usable() && self.nodes.usable()
    }

    /// The id of a location. `owner` is the module of a native or guessed location, the code object of a Python location and the
    /// registered object of a JIT location.
    #[inline]
    pub(crate) fn location(
        &self,
        kind: LocationKind,
        owner: u32,
        offset: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        self.locations
            .number([(kind as u64) << 32 | u64::from(owner), offset], |id| {
                let owner_of = |owning: &[LocationKind]| {
                    if owning.contains(&kind) { owner } else { 0 }
                };
                sink.location(&Location {
                    id,
                    kind,
                    module: owner_of(&[LocationKind::Native, LocationKind::Guessed]),
                    code: owner_of(&[LocationKind::Python]),
                    object: owner_of(&[LocationKind::Jit]),
                    offset,
                })
            })
    }

    /// Number of the kind of a location, and its owner.
    pub(crate) fn place(&self, location: u32) -> (u8, u32) {
        let [place, _] = self.locations.key(location);
        ((place >> 32) as u8, place as u32)
    }

    /// The id of the node of a location below a parent.
    #[inline]
    pub(crate) fn node(
        &self,
        parent: u32,
        location: u32,
        depth: u32,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        self.nodes
            .number([u64::from(parent) << 32 | u64::from(location), 0], |id| {
                sink.node(&Node {
                    id,
                    parent,
                    location,
                    depth,
                })
            })
    }

    /// Removes all nodes: the ids of a forked child start again.
    pub(crate) fn clear(&self) {
        self.locations.clear();
        self.nodes.clear();
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// The round of the tree. Ids that were given in another round mean nothing any more.
    pub(crate) fn round(&self) -> u32 {
        self.round.load(Ordering::Relaxed)
    }

    /// Locations and nodes in use.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.locations.len(), self.nodes.len())
    }
}
