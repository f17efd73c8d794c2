//! The path of a stack through the call tree, and how much of it stays from one capture to the next.

use crate::cut::{self, Ends};
use crate::facts::{LocationKind, Sink};
use crate::flags;
use crate::interner::NoNumber;
use crate::options::FrameClass;
use crate::region::{Region, Zeroed};
use crate::tree::Tree;

/// Locations that a path can have.
pub(crate) const CAPACITY: usize = 1 << 17;

/// Entries for which memory is taken from the kernel at once: a page of each table.
const PART: usize = 1 << 10;

/// Entries of a thread's cache of nodes.
const CACHE: usize = 1 << 11;

/// A node that was looked up before.
#[derive(Clone, Copy)]
struct Cached {
    /// Parent and location of the node.
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
    /// Entries whose memory was requested from the kernel in advance.
    room: usize,
    len: usize,
    /// Length of the path before `begin`.
    old_len: usize,
    /// Entries that are as they were before `begin`.
    same: usize,
    /// Entries, from the outermost on, whose nodes are right.
    known: usize,
    /// The stack of the path before `begin`, 0 if it has none.
    stack: u32,
    /// The flags of that stack.
    flags: u32,
    overflow: bool,
    /// The tree's round that the nodes are of, 0 before the first.
    round: u32,
}

/// The next entries of a path.
pub(crate) struct Entries<'a> {
    left: std::slice::IterMut<'a, u32>,
    /// Whether all entries so far are as they were.
    is_same: bool,
    same: usize,
}

impl Entries<'_> {
    /// Adds the next location further in. Does nothing when there is no room left.
    #[inline(always)]
    pub(crate) fn push(&mut self, location: u32) {
        if let Some(entry) = self.left.next() {
            // Without a branch, because a processor cannot predict at which entry the paths begin to differ.
            self.is_same &= *entry == location;
            self.same += usize::from(self.is_same);
            *entry = location;
        }
    }

    /// Adds many locations, each further in than the one before: once entries differ they are copied without a look at
    /// the old ones.
    #[inline(always)]
    fn extend(&mut self, mut locations: impl Iterator<Item = u32>) {
        if self.is_same {
            for (location, entry) in locations.by_ref().zip(self.left.by_ref()) {
                if *entry != location {
                    *entry = location;
                    self.is_same = false;
                    break;
                }
                self.same += 1;
            }
        }
        for (location, entry) in locations.zip(self.left.by_ref()) {
            *entry = location;
        }
    }
}

impl Path {
    /// Reserves room for a thread's paths.
    pub(crate) fn reserve() -> Path {
        let cache = Region::reserve(CACHE);
        // Entries are read before they are written: each page would be faulted in twice.
        cache.populate(0..CACHE);
        Path {
            locations: Region::reserve(CAPACITY),
            nodes: Region::reserve(CAPACITY),
            hashes: Region::reserve(CAPACITY),
            cache,
            room: 0,
            len: 0,
            old_len: 0,
            same: 0,
            known: 0,
            stack: 0,
            flags: 0,
            overflow: false,
            round: 0,
        }
    }

    /// Starts a new path whose outermost `keep` entries are those of the last one. Returns the number that it could
    /// keep.
    #[inline]
    pub(crate) fn begin(&mut self, keep: usize) -> usize {
        self.old_len = self.len;
        self.len = keep.min(self.len);
        self.same = self.len;
        self.overflow = false;
        self.len
    }

    /// Starts a new path that is the last one without its `count` innermost entries.
    #[inline]
    pub(crate) fn begin_without(&mut self, count: usize) {
        self.begin(self.len.saturating_sub(count));
    }

    /// Adds the next location further in.
    #[inline(always)]
    pub(crate) fn push(&mut self, location: u32) {
        self.add(1, |entries| entries.push(location));
    }

    /// Adds locations, each further in than the one before.
    #[inline(always)]
    pub(crate) fn extend(&mut self, locations: impl ExactSizeIterator<Item = u32>) {
        self.add(locations.len(), |entries| entries.extend(locations));
    }

    /// Adds the locations that `fill` gives, at most `most`. `fill` is not called if the path cannot have as many.
    #[inline(always)]
    pub(crate) fn add(&mut self, most: usize, fill: impl FnOnce(&mut Entries<'_>)) {
        let end = self.len + most;
        if end > self.room && !self.grow(end) {
            self.overflow = true;
            return;
        }
        let mut entries = Entries {
            left: self.locations[self.len..end].iter_mut(),
            is_same: self.same == self.len,
            same: 0,
        };
        fill(&mut entries);
        let (unused, same) = (entries.left.len(), entries.same);
        // What lies behind the old path is equal by chance.
        self.same = (self.same + same).min(self.old_len.max(self.same));
        self.len = end - unused;
    }

    /// Makes the kernel provide memory for `len` entries in one go, which takes less time than a fault for each page.
    /// `false` if a path cannot have as many.
    #[cold]
    fn grow(&mut self, len: usize) -> bool {
        if len > CAPACITY {
            return false;
        }
        let larger = len.next_multiple_of(PART);
        for table in [&self.locations, &self.nodes, &self.hashes] {
            table.populate(self.room..larger);
        }
        self.room = larger;
        true
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

    /// Clears the last path.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.old_len = 0;
        self.same = 0;
        self.known = 0;
        self.stack = 0;
    }

    /// The node of the innermost entry, and the flags that finding it gives. Entries get nodes until `depth` of them are shown
    /// (0: all).
    #[inline]
    pub(crate) fn finish(
        &mut self,
        tree: &Tree,
        depth: usize,
        class_of: impl Fn(u32) -> FrameClass,
        sink: &mut dyn Sink,
    ) -> Result<(u32, u32), NoNumber> {
        if self.overflow {
            self.clear();
            return Err(NoNumber::Full);
        }
        if self.round != tree.round() {
            if self.round != 0 {
                self.cache.discard();
            }
            self.round = tree.round();
            (self.known, self.stack) = (0, 0);
        }
        if self.same == self.len && self.len == self.old_len && self.stack != 0 {
            return Ok((self.stack, self.flags));
        }
        let ends = cut::ends(&self.locations[..self.len], depth, class_of);
        let flags = if ends.is_none() { 0 } else { flags::GAP };
        self.flags = flags;
        let found = self.nodes_of(tree, ends, sink);
        match found {
            Ok(stack) => self.stack = stack,
            Err(_) => self.clear(),
        }
        found.map(|stack| (stack, flags))
    }

    fn nodes_of(
        &mut self,
        tree: &Tree,
        ends: Option<Ends>,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let outer = ends.map_or(self.len, |ends| ends.outer);
        // Nodes of entries that stayed the same are still right, as far as they were looked up.
        let mut at = self.known.min(self.same).min(outer);
        let (mut parent, mut hash) = if at == 0 {
            (0, 0)
        } else {
            (self.nodes[at - 1], self.hashes[at - 1])
        };
        let cache = self.cache.first_mut();
        let entries = self.nodes[at..outer]
            .iter_mut()
            .zip(&mut self.hashes[at..outer]);
        for ((node, hashed), location) in entries.zip(&self.locations[at..outer]) {
            hash = hash_with(hash, *location);
            parent = cached_node(cache, hash, tree, parent, *location, at as u32, sink)?;
            (*node, *hashed) = (parent, hash);
            at += 1;
        }
        self.known = outer;
        if let Some(Ends { inner, .. }) = ends {
            // A stack with a gap has nodes of its own behind the gap: their parents are others.
            let gap = tree.location(LocationKind::Gap, 0, 0, sink)?;
            parent = tree.node(parent, gap, at as u32, sink)?;
            for location in &self.locations[self.len - inner..self.len] {
                at += 1;
                hash = hash_with(hash, *location);
                parent = cached_node(cache, hash, tree, parent, *location, at as u32, sink)?;
            }
        }
        Ok(parent)
    }
}

/// The hash of a path extended by a location. Each depends on the one before, so it is a short computation.
#[inline(always)]
fn hash_with(hash: u32, location: u32) -> u32 {
    hash.rotate_left(5).wrapping_add(location)
}

/// The node of a location below a parent, from the thread's cache if it is there.
#[inline(always)]
fn cached_node(
    cache: &mut [Cached; CACHE],
    hash: u32,
    tree: &Tree,
    parent: u32,
    location: u32,
    depth: u32,
    sink: &mut dyn Sink,
) -> Result<u32, NoNumber> {
    let key = u64::from(parent) << 32 | u64::from(location);
    let slot = (hash.wrapping_mul(0x9e37_79b1) >> 16) as usize % CACHE;
    let cached = cache[slot];
    if cached.key == key {
        return Ok(cached.node);
    }
    let node = tree.node(parent, location, depth, sink)?;
    cache[slot] = Cached { key, node };
    Ok(node)
}
