//! The path of a stack through the call tree, and how much of it stays from one capture to the next.

use crate::capture::flags;
use crate::facts::{LocationKind, Sink};
use crate::interner::NoNumber;
use crate::region::Region;
use crate::tree::Tree;

/// Locations that a path can have.
pub(crate) const CAPACITY: usize = 1 << 17;

/// Locations of the thread's stack, outermost first, and their nodes as far as they are known.
pub(crate) struct Path {
    locations: Region<u32>,
    nodes: Region<u32>,
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
}

impl Path {
    /// Reserves room for a thread's paths.
    pub(crate) fn reserve() -> Path {
        Path {
            locations: Region::reserve(CAPACITY),
            nodes: Region::reserve(CAPACITY),
            len: 0,
            old_len: 0,
            same: 0,
            known: 0,
            stack: 0,
            overflow: false,
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
        self.locations.len() > 0 && self.nodes.len() > 0
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
        let mut parent = if at == 0 { 0 } else { self.nodes[at - 1] };
        for (node, location) in self.nodes[at..outer]
            .iter_mut()
            .zip(&self.locations[at..outer])
        {
            parent = tree.node(parent, *location, at as u32, sink)?;
            *node = parent;
            at += 1;
        }
        self.known = outer;
        if !whole {
            let gap = tree.location(LocationKind::Gap, 0, 0, sink)?;
            parent = tree.node(parent, gap, at as u32, sink)?;
            for location in &self.locations[self.len - (depth - outer)..self.len] {
                at += 1;
                parent = tree.node(parent, *location, at as u32, sink)?;
            }
        }
        Ok(parent)
    }
}
