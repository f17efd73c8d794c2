//! The file that pages are appended to: their numbers, and the header that counts them.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// SQLite locks bytes from here on; the page that they are in has no content.
const LOCKED_BYTE: u64 = 1 << 30;
/// The largest page number.
const MOST_PAGES: u64 = 0xffff_fffe;

/// Offsets in the header of a database.
mod header {
    pub(super) const PAGE_SIZE: usize = 16;
    pub(super) const RESERVED: usize = 20;
    pub(super) const CHANGES: usize = 24;
    pub(super) const PAGES: usize = 28;
    pub(super) const FREE_PAGES: usize = 36;
    pub(super) const AUTO_VACUUM: usize = 52;
    pub(super) const VALID_FOR: usize = 92;
    pub(super) const BYTES: usize = 100;
}

/// A database that no connection has open, while pages are appended to it.
pub(in crate::rocpd) struct PageFile {
    file: File,
    page_size: usize,
    /// Number of the page that holds [`LOCKED_BYTE`].
    locked_page: u64,
    /// The number that the next page gets; the first page of a database has 1.
    next: Cell<u64>,
}

impl PageFile {
    /// Opens a database.
    ///
    /// # Errors
    /// When it cannot be read or written, or has free pages or pages of other kinds than tables and indices need.
    pub(in crate::rocpd) fn open(path: &Path) -> io::Result<PageFile> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut bytes = [0; header::BYTES];
        file.read_exact_at(&mut bytes, 0)?;
        let page_size =
            match u16::from_be_bytes([bytes[header::PAGE_SIZE], bytes[header::PAGE_SIZE + 1]]) {
                1 => 1 << 16,
                size => usize::from(size),
            };
        let pages = u64::from(word(&bytes, header::PAGES));
        let is_plain = page_size.is_power_of_two()
            && (512..=1 << 16).contains(&page_size)
            && bytes[header::RESERVED] == 0
            && word(&bytes, header::FREE_PAGES) == 0
            && word(&bytes, header::AUTO_VACUUM) == 0
            && file.metadata()?.len() == pages * page_size as u64;
        if !is_plain {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "pages cannot be appended to this database",
            ));
        }
        Ok(PageFile {
            file,
            page_size,
            locked_page: LOCKED_BYTE / page_size as u64 + 1,
            next: Cell::new(pages + 1),
        })
    }

    pub(super) fn page_size(&self) -> usize {
        self.page_size
    }

    /// Gives numbers to `count` pages, ascending.
    pub(super) fn allocate(&self, count: usize) -> io::Result<impl Iterator<Item = u32> + use<>> {
        let locked = self.locked_page;
        let first = self.next.get();
        let end = first + count as u64;
        let end = end + u64::from((first..end).contains(&locked));
        if end > MOST_PAGES + 1 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.next.set(end);
        let numbers = (first..end).filter(move |number| *number != locked);
        Ok(numbers.map(|number| number as u32))
    }

    /// Writes the page with this number.
    pub(super) fn write(&self, number: u32, page: &[u8]) -> io::Result<()> {
        self.file.write_all_at(page, self.offset(number))
    }

    /// Appends whole pages and returns their numbers, ascending.
    pub(super) fn append(&self, pages: &[u8]) -> io::Result<impl Iterator<Item = u32> + use<>> {
        let count = pages.len() / self.page_size;
        let (first, last) = {
            let mut numbers = self.allocate(count)?.peekable();
            let first = numbers.peek().copied().unwrap_or_default();
            (first, numbers.last().unwrap_or_default())
        };
        let locked = self.locked_page;
        // Pages on either side of the locked one are apart in the file.
        let before = if (u64::from(first)..u64::from(last)).contains(&locked) {
            (locked - u64::from(first)) as usize
        } else {
            count
        };
        let (before, behind) = pages.split_at(before * self.page_size);
        self.write(first, before)?;
        if !behind.is_empty() {
            self.write(locked as u32 + 1, behind)?;
        }
        Ok((first..=last).filter(move |number| u64::from(*number) != locked))
    }

    fn offset(&self, number: u32) -> u64 {
        u64::from(number - 1) * self.page_size as u64
    }

    /// Completes the header. SQLite takes the pages for its own from then on.
    pub(in crate::rocpd) fn finish(self) -> io::Result<()> {
        let mut bytes = [0; header::BYTES];
        self.file.read_exact_at(&mut bytes, 0)?;
        let changes = word(&bytes, header::CHANGES).wrapping_add(1);
        let pages = (self.next.get() - 1) as u32;
        for (at, value) in [
            (header::CHANGES, changes),
            (header::PAGES, pages),
            // The count of pages is believed only when the two counts of changes agree.
            (header::VALID_FOR, changes),
        ] {
            bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
        self.file.write_all_at(&bytes, 0)
    }
}

fn word(bytes: &[u8; header::BYTES], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_pages_leave_the_locked_page_out() {
        let file = |next| PageFile {
            file: tempfile::tempfile().expect("a file"),
            page_size: 4096,
            locked_page: LOCKED_BYTE / 4096 + 1,
            next: Cell::new(next),
        };
        let locked = 262_145;
        for (next, expected) in [
            (locked - 4, [locked - 4, locked - 3, locked - 2]),
            (locked - 3, [locked - 3, locked - 2, locked - 1]),
            (locked - 1, [locked - 1, locked + 1, locked + 2]),
            (locked, [locked + 1, locked + 2, locked + 3]),
            (locked + 1, [locked + 1, locked + 2, locked + 3]),
        ] {
            let file = file(u64::from(next));
            let found: Vec<u32> = file.allocate(3).expect("numbers").collect();
            assert_eq!(found, expected);
            let after = file.allocate(1).expect("a number").next();
            let expected = match expected[2] + 1 {
                behind if behind == locked => locked + 1,
                behind => behind,
            };
            assert_eq!(after, Some(expected));
        }
        assert!(file(MOST_PAGES).allocate(2).is_err());
    }
}
