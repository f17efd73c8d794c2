//! B-trees that grow at their end only: tables whose rows come in the order of their ids, and indices whose entries come in order.

use std::io;
use std::mem;

use super::file::PageFile;

/// Pages of a tree that are written at once.
const BATCH: usize = 64;
/// Bytes in front of the cells of a page without and with pages below it.
const LEAF_HEADER: usize = 8;
const INTERIOR_HEADER: usize = 12;

/// The kind of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Table,
    Index,
}

impl Kind {
    fn leaf(self) -> u8 {
        match self {
            Kind::Table => 13,
            Kind::Index => 10,
        }
    }

    fn interior(self) -> u8 {
        match self {
            Kind::Table => 5,
            Kind::Index => 2,
        }
    }

    /// The most bytes of a record that stand in its cell as a whole.
    fn most_inline(self, page_size: usize) -> usize {
        match self {
            Kind::Table => page_size - 35,
            Kind::Index => (page_size - 12) * 64 / 255 - 23,
        }
    }
}

/// Makes the pages of a tree.
///
/// A page is full when the next cell does not fit into it. What divides its rows from those of the next page then goes up to
/// the page above both: of a table the last id, of an index the last entry, which stands there only.
pub(super) struct Tree<'f> {
    file: &'f PageFile,
    kind: Kind,
    /// The page of the tree's root, which SQLite made.
    root: u32,
    /// Complete leaves, and one that is filled from its end, where `free` says.
    leaves: Vec<u8>,
    /// Begin of the page that is filled.
    page: usize,
    cells: usize,
    /// Where the cells of the page begin, from the page's begin.
    free: usize,
    /// Bytes of the last cell.
    last_cell: usize,
    last_id: i64,
    /// What divides each complete leaf from the next.
    dividers: Vec<Vec<u8>>,
    levels: Vec<Level>,
}

/// The pages of one level that have no page above them yet.
#[derive(Default)]
struct Level {
    /// Numbers of the pages, each with what divides it from the next.
    children: Vec<(u32, Vec<u8>)>,
    /// Bytes of a page above them.
    bytes: usize,
    /// Whether some pages have one.
    is_split: bool,
}

impl<'f> Tree<'f> {
    pub(super) fn new(file: &'f PageFile, kind: Kind, root: u32) -> Tree<'f> {
        let page_size = file.page_size();
        Tree {
            file,
            kind,
            root,
            leaves: vec![0; page_size],
            page: 0,
            cells: 0,
            free: page_size,
            last_cell: 0,
            last_id: i64::MIN,
            dividers: Vec::new(),
            levels: vec![Level::default()],
        }
    }

    /// Adds a row of a table, whose id is greater than those before it. `parts` are its record.
    pub(super) fn row(&mut self, id: i64, parts: [&[u8]; 3]) -> io::Result<()> {
        if id <= self.last_id && self.last_id != i64::MIN {
            let text = format!("row {id} of a table comes after row {}", self.last_id);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        self.record(Some(id), parts)?;
        self.last_id = id;
        Ok(())
    }

    /// Adds an entry of an index, which comes after those before it. `parts` are its record.
    pub(super) fn entry(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        self.record(None, parts)
    }

    #[inline]
    fn record(&mut self, id: Option<i64>, parts: [&[u8]; 3]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let mut front = Varints::default();
        front.push(bytes as u64);
        if let Some(id) = id {
            front.push(id.cast_unsigned());
        }
        if bytes > self.kind.most_inline(self.file.page_size()) {
            let cell = self.long_cell(front.bytes(), &parts.concat())?;
            return self.cell([&cell, &[], &[], &[]]);
        }
        let [header, types, body] = parts;
        self.cell([front.bytes(), header, types, body])
    }

    /// The cell of a record that does not fit: its end is in pages of its own, each of which names the next.
    fn long_cell(&self, front: &[u8], record: &[u8]) -> io::Result<Vec<u8>> {
        let page_size = self.file.page_size();
        let room = page_size - 4;
        let least = (page_size - 12) * 32 / 255 - 23;
        // The last page is full where that leaves no more in the cell than it may have.
        let inline = match least + (record.len() - least) % room {
            inline if inline <= self.kind.most_inline(page_size) => inline,
            _ => least,
        };
        let (inline, rest) = record.split_at(inline);
        let count = rest.len().div_ceil(room);
        let mut numbers = self.file.allocate(count)?.peekable();
        let first = numbers.peek().copied().unwrap_or_default();
        for part in rest.chunks(room) {
            let number = numbers.next().unwrap_or_default();
            let next = numbers.peek().copied().unwrap_or_default();
            let mut page = next.to_be_bytes().to_vec();
            page.extend(part);
            page.resize(page_size, 0);
            self.file.write(number, &page)?;
        }
        Ok([front, inline, &first.to_be_bytes()].concat())
    }

    #[inline]
    fn cell(&mut self, parts: [&[u8]; 4]) -> io::Result<()> {
        // SQLite counts fewer bytes as 4.
        let bytes = parts.iter().map(|part| part.len()).sum::<usize>().max(4);
        if LEAF_HEADER + 2 * (self.cells + 1) + bytes > self.free {
            self.end_leaf()?;
        }
        self.free -= bytes;
        let mut at = self.page + self.free;
        for part in parts {
            self.leaves[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        let pointer = self.page + LEAF_HEADER + 2 * self.cells;
        self.leaves[pointer..pointer + 2].copy_from_slice(&(self.free as u16).to_be_bytes());
        self.cells += 1;
        self.last_cell = bytes;
        Ok(())
    }

    /// Completes a leaf that another follows.
    fn end_leaf(&mut self) -> io::Result<()> {
        let divider = match self.kind {
            Kind::Table => Varints::new(self.last_id.cast_unsigned()).bytes().to_vec(),
            Kind::Index => {
                let from = self.page + self.free;
                let cell = &mut self.leaves[from..from + self.last_cell];
                let divider = cell.to_vec();
                cell.fill(0);
                self.free += self.last_cell;
                self.cells -= 1;
                let pointer = self.page + LEAF_HEADER + 2 * self.cells;
                self.leaves[pointer..pointer + 2].fill(0);
                divider
            }
        };
        self.complete_leaf(divider);
        if self.dividers.len() == BATCH {
            self.flush()?;
        }
        self.page = self.leaves.len();
        self.leaves.resize(self.page + self.file.page_size(), 0);
        self.cells = 0;
        self.free = self.file.page_size();
        Ok(())
    }

    fn complete_leaf(&mut self, divider: Vec<u8>) {
        let header = &mut self.leaves[self.page..self.page + LEAF_HEADER];
        header.copy_from_slice(&page_header(self.kind.leaf(), self.cells, self.free));
        self.dividers.push(divider);
    }

    /// Writes complete leaves.
    fn flush(&mut self) -> io::Result<()> {
        let numbers = self.file.append(&self.leaves)?;
        for (number, divider) in numbers.zip(mem::take(&mut self.dividers)) {
            self.add(0, number, divider)?;
        }
        self.leaves.clear();
        Ok(())
    }

    /// Adds a page of a level. A page above is made of those that it has room for, but two, so that the last page above never has
    /// a single one.
    fn add(&mut self, level: usize, number: u32, divider: Vec<u8>) -> io::Result<()> {
        if level == self.levels.len() {
            self.levels.push(Level::default());
        }
        let room = self.file.page_size() - INTERIOR_HEADER;
        let found = &mut self.levels[level];
        found.bytes += interior_cell(&divider);
        found.children.push((number, divider));
        if found.bytes <= room {
            return Ok(());
        }
        found.is_split = true;
        let rest = found.children.split_off(found.children.len() - 2);
        found.bytes = rest.iter().map(|(_, divider)| interior_cell(divider)).sum();
        let children = mem::replace(&mut found.children, rest);
        let (page, divider) = self.interior(children);
        let number = self.file.append(&page)?.next().unwrap_or_default();
        self.add(level + 1, number, divider)
    }

    /// A page above others, and what divides them from those of the next.
    fn interior(&self, mut children: Vec<(u32, Vec<u8>)>) -> (Vec<u8>, Vec<u8>) {
        let mut page = vec![0; self.file.page_size()];
        let mut free = page.len();
        let (last, last_divider) = children.pop().unwrap_or_default();
        for (index, (number, divider)) in children.iter().enumerate() {
            free -= 4 + divider.len();
            page[free..free + 4].copy_from_slice(&number.to_be_bytes());
            page[free + 4..free + 4 + divider.len()].copy_from_slice(divider);
            let pointer = INTERIOR_HEADER + 2 * index;
            page[pointer..pointer + 2].copy_from_slice(&(free as u16).to_be_bytes());
        }
        page[..8].copy_from_slice(&page_header(self.kind.interior(), children.len(), free));
        page[8..INTERIOR_HEADER].copy_from_slice(&last.to_be_bytes());
        (page, last_divider)
    }

    /// Writes what is left over, and the root into its place.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.complete_leaf(Varints::new(self.last_id.cast_unsigned()).bytes().to_vec());
        let has_levels = self.dividers.len() > 1 || !self.levels[0].children.is_empty();
        if !has_levels {
            return self.file.write(self.root, &self.leaves);
        }
        self.flush()?;
        let mut level = 0;
        loop {
            let children = mem::take(&mut self.levels[level].children);
            let (page, divider) = self.interior(children);
            if !self.levels[level].is_split {
                return self.file.write(self.root, &page);
            }
            let number = self.file.append(&page)?.next().unwrap_or_default();
            self.add(level + 1, number, divider)?;
            level += 1;
        }
    }
}

/// Bytes that a page with a divider takes on the page above.
fn interior_cell(divider: &[u8]) -> usize {
    // Pointer to the cell, number of the page.
    2 + 4 + divider.len()
}

/// The begin of a page: kind, no free blocks, cells, where they begin (0 for 65,536), no loose bytes.
fn page_header(kind: u8, cells: usize, free: usize) -> [u8; 8] {
    let [cells_high, cells_low] = (cells as u16).to_be_bytes();
    let [free_high, free_low] = (free as u16).to_be_bytes();
    [kind, 0, 0, cells_high, cells_low, free_high, free_low, 0]
}

/// Up to two numbers in SQLite's encoding: 7 bits a byte, the highest first; a ninth byte has 8.
#[derive(Default)]
pub(super) struct Varints {
    bytes: [u8; 18],
    len: usize,
}

impl Varints {
    pub(super) fn new(value: u64) -> Varints {
        let mut varint = Varints::default();
        varint.push(value);
        varint
    }

    #[inline]
    pub(super) fn push(&mut self, value: u64) {
        let at = self.len;
        if value < 1 << 7 {
            self.bytes[at] = value as u8;
            self.len += 1;
        } else if value >> 56 != 0 {
            self.bytes[at + 8] = value as u8;
            for index in 0..8 {
                self.bytes[at + index] = 0x80 | (value >> (57 - 7 * index)) as u8;
            }
            self.len += 9;
        } else {
            let count = (64 - value.leading_zeros() as usize).div_ceil(7);
            for index in 0..count {
                self.bytes[at + index] = 0x80 | (value >> (7 * (count - 1 - index))) as u8;
            }
            self.bytes[at + count - 1] &= 0x7f;
            self.len += count;
        }
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
