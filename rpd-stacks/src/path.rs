//! The path of a stack through the call tree, and how much of it stays from one capture to the next.

use crate::facts::{LocationKind, Sink};
use crate::flags;
use crate::interner::NoNumber;
use crate::region::{Region, Zeroed};
use crate::tree::Tree;

/// Locations that a path can have.
pub(crate) const CAPACITY: usize = 1 << 17;

/// Entries of a thread's cache of nodes.
const CACHE: usize = 1 << 12;

/// A node that was looked up before.
#[derive(Clone, Copy)]
struct Cached {
    /// Parent and location.
    key: u64,
    node: u32,
}

// SAFETY: integers.
unsafe impl Zeroed for Cached {}

/// Locations of the thread's stack, outermost first, and their nodes as far as they are known.
pub(crate) struct Path {
    locations: Region<u32>,
    nodes: Region<u32>,
    /// Per entry, a hash of the locations up to it.
    hashes: Region<u32>,
    /// Nodes by the hash of their locations. The places of a path's nodes do not depend on what is found there, so the
    /// look-ups of one path overlap.
    cache: Region<Cached>,
    len: usize,
    /// Length of the path before `begin`.
    old_len: usize,
    /// Entries that are as they were before `begin`.
    same: usize,
    /// Entries, from the outermost on, whose nodes are right.
    known: usize,
    /// The stack of the path before `begin`, 0 if it has none.
    stack: u32,
    overflow: bool,
    /// The tree's round that the nodes are of.
    round: u32,
}

impl Path {
    /// Reserves room for a thread's paths.
    pub(crate) fn reserve() -> Path {
        Path {
            locations: Region::reserve(CAPACITY),
            nodes: Region::reserve(CAPACITY),
            hashes: Region::reserve(CAPACITY),
            cache: Region::reserve(CACHE),
            len: 0,
            old_len: 0,
            same: 0,
            known: 0,
            stack: 0,
            overflow: false,
            round: 0,
        }
    }

    /// Starts a new path whose outermost `keep` entries are those of the last one. Returns how many it could keep.
    #[inline]
    pub(crate) fn begin(&mut self, keep: usize) -> usize {
        self.old_len = self.len;
        self.len = keep.min(self.len);
        self.same = self.len;
        self.overflow = false;
        self.len
    }

    /// Adds the next location further in.
    #[inline]
    pub(crate) fn push(&mut self, location: u32) {
        let Some(entry) = self.locations.get_mut(self.len) else {
            self.overflow = true;
            return;
        };
        if self.same == self.len && self.len < self.old_len && *entry == location {
            self.same += 1;
        } else {
            *entry = location;
        }
        self.len += 1;
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        [
            self.locations.len(),
            self.nodes.len(),
            self.hashes.len(),
            self.cache.len(),
        ]
        .iter()
        .all(|&len| len > 0)
    }

    /// Forgets the last path.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.old_len = 0;
        self.same = 0;
        self.known = 0;
        self.stack = 0;
    }

    /// The node of the innermost entry, and the flags that finding it gives. At most `depth` entries get nodes (0: all).
    #[inline]
    pub(crate) fn finish(
        &mut self,
        tree: &Tree,
        depth: usize,
        sink: &mut dyn Sink,
    ) -> Result<(u32, u32), NoNumber> {
        if self.overflow {
            self.clear();
            return Err(NoNumber::Full);
        }
        if self.round != tree.round() {
            self.round = tree.round();
            self.cache.discard();
            (self.known, self.stack) = (0, 0);
        }
        let whole = depth == 0 || self.len <= depth;
        let flags = if whole { 0 } else { flags::GAP };
        if self.same == self.len && self.len == self.old_len && self.stack != 0 {
            return Ok((self.stack, flags));
        }
        let found = self.nodes_of(tree, depth, whole, sink);
        match found {
            Ok(stack) => self.stack = stack,
            Err(_) => self.clear(),
        }
        found.map(|stack| (stack, flags))
    }

    fn nodes_of(
        &mut self,
        tree: &Tree,
        depth: usize,
        whole: bool,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let outer = if whole { self.len } else { depth / 4 };
        let mut at = self.known.min(self.same).min(outer);
        let (mut parent, mut hash) = if at == 0 {
            (0, 0)
        } else {
            (self.nodes[at - 1], self.hashes[at - 1])
        };
        let entries = self.nodes[at..outer]
            .iter_mut()
            .zip(&mut self.hashes[at..outer]);
        for ((node, hashed), location) in entries.zip(&self.locations[at..outer]) {
            hash = (hash ^ location).wrapping_mul(0x9e37_79b1).rotate_left(15);
            parent = cached_node(
                &mut self.cache,
                hash,
                tree,
                parent,
                *location,
                at as u32,
                sink,
            )?;
            (*node, *hashed) = (parent, hash);
            at += 1;
        }
        self.known = outer;
        if !whole {
            let gap = tree.location(LocationKind::Gap, 0, 0, sink)?;
            parent = tree.node(parent, gap, at as u32, sink)?;
            for location in &self.locations[self.len - (depth - outer)..self.len] {
                at += 1;
                hash = (hash ^ location).wrapping_mul(0x9e37_79b1).rotate_left(15);
                parent = cached_node(
                    &mut self.cache,
                    hash,
                    tree,
                    parent,
                    *location,
                    at as u32,
                    sink,
                )?;
            }
        }
        Ok(parent)
    }
}

/// The node of a location below a parent, from the thread's cache if it is there.
#[inline(always)]
fn cached_node(
    cache: &mut Region<Cached>,
    hash: u32,
    tree: &Tree,
    parent: u32,
    location: u32,
    depth: u32,
    sink: &mut dyn Sink,
) -> Result<u32, NoNumber> {
    let key = u64::from(parent) << 32 | u64::from(location);
    let slot = hash as usize % CACHE;
    let cached = cache[slot];
    if cached.key == key {
        return Ok(cached.node);
    }
    let node = tree.node(parent, location, depth, sink)?;
    cache[slot] = Cached { key, node };
    Ok(node)
}
