//! Detection of the pages of host-visible memory that have changed since they were looked at last.
//!
//! Pages that were written are hashed, and those with another hash have changed. Memory of which the kernel does not report what was
//! written is hashed as a whole. Partial pages at the ends are hashed always: other memory may share them, and asking for writes
//! clears them.

use rpd_spool::capture::compared;

use super::content::Content;
use super::guard::{KernelFiles, page_size};
use super::ranges::Range;
use super::stage;

/// Number of whole pages below which memory is hashed: that takes no longer than asking.
const LEAST_PAGES: u64 = 4;
/// Number of unchanged pages between two changed ones that are taken with them.
const GAP: u64 = 8;
/// Greatest number of pieces that a look finds; more pages in between are taken with them until there are no more.
const MOST_RUNS: usize = 256;
/// Number of consecutive queries that found nearly all pages written and few of them changed, after which the memory
/// is hashed instead. Queries are useless when a driver touches all pages for the device.
const USELESS_LOOKS: u32 = 3;

/// State of the pages of one piece of memory.
pub(super) struct Pages {
    base: u64,
    size: u64,
    page: u64,
    /// Hashes of the pages; none where the device has written since. The first and the last page may be partial.
    hashes: Vec<Option<Content>>,
    /// The whole pages, while the kernel reports which were written.
    watched: Option<(u64, u64)>,
    useless: u32,
    /// Ranges of pages that the last query left out: first page, and end, exclusive.
    later: Vec<(u64, u64)>,
}

impl Pages {
    /// Begins to follow live memory of the host.
    ///
    /// # Safety
    /// The memory can be read as long as this is used.
    pub(super) unsafe fn new(base: u64, size: u64) -> Pages {
        let page = page_size();
        let mut pages = Pages {
            base,
            size,
            page,
            hashes: Vec::new(),
            watched: None,
            useless: 0,
            later: Vec::new(),
        };
        let first = base.next_multiple_of(page);
        let end = (base + size) / page * page;
        if end.saturating_sub(first) >= LEAST_PAGES * page {
            let protected = KernelFiles::get().and_then(|kernel| kernel.protect(first, end));
            match protected {
                Ok(()) => pages.watched = Some((first, end)),
                Err(why) => stage::count_compared(why),
            }
            stage::count_followed();
        }
        // After they are protected: a write from now on is found by the next look.
        let count = (base + size).div_ceil(page) - base / page;
        pages.hashes = (0..count).map(|index| Some(pages.hash(index))).collect();
        pages
    }

    /// Address and length of a page, as far as it is part of the memory.
    fn piece(&self, index: u64) -> (u64, u64) {
        let start = (self.base / self.page + index) * self.page;
        let from = start.max(self.base);
        let to = (start + self.page).min(self.base + self.size);
        (from, to - from)
    }

    fn hash(&self, index: u64) -> Content {
        let (start, len) = self.piece(index);
        // SAFETY: by the contract of `new`.
        unsafe { Content::from_address(start, len) }
    }

    /// The ranges that have changed since the last look. `all`: pages that the host has not written are looked at too,
    /// because the device may have written them. `busy`: ranges that are being written now, which are left for the next
    /// look.
    pub(super) fn changed_ranges(&mut self, all: bool, busy: &[Range]) -> Vec<Range> {
        let count = self.hashes.len() as u64;
        let before = self.base / self.page;
        let mut written = std::mem::take(&mut self.later);
        let is_known = match self.watched {
            None => false,
            Some((first, end)) => {
                // Before they are read: a write after that is found by the next look.
                let asked = KernelFiles::get().ok().and_then(|kernel| {
                    kernel.written(first, end, |from, to| {
                        written.push((from / self.page - before, to / self.page - before));
                    })
                });
                if asked.is_none() {
                    self.give_up(compared::REPLACED);
                }
                asked.is_some()
            }
        };
        let mut runs = Runs::default();
        if !is_known || all {
            self.compare(0..count, busy, &mut runs);
        } else {
            let (first, end) = self.watched.unwrap_or_default();
            // The partial pages at both ends are not watched, as other memory shares them: they are compared always.
            let (first, end) = (first / self.page - before, end / self.page - before);
            let whole: u64 = written.iter().map(|(from, to)| to - from).sum();
            written.extend([(0, first), (end, count)]);
            written.sort_unstable();
            // Ranges may overlap, as those left from the last look come on top. A page is compared once.
            let mut next = 0;
            for (from, to) in written {
                self.compare(from.max(next)..to, busy, &mut runs);
                next = next.max(to);
            }
            self.judge(whole, runs.pages);
        }
        runs.ranges(self)
    }

    /// Notes that the device writes a range: bytes that the host writes there afterwards count as changed even where
    /// they are as before.
    pub(super) fn forget(&mut self, range: &Range) {
        let before = self.base / self.page;
        let first = range.address.max(self.base) / self.page - before;
        let end = range
            .address
            .saturating_add(range.span())
            .div_ceil(self.page);
        let known = self.hashes.iter_mut().skip(first as usize);
        for hash in known.take(end.saturating_sub(before + first) as usize) {
            *hash = None;
        }
    }

    /// Adds the pages among `pages` that have changed to `runs`.
    fn compare(&mut self, pages: std::ops::Range<u64>, busy: &[Range], runs: &mut Runs) {
        for index in pages {
            let (start, len) = self.piece(index);
            if busy
                .iter()
                .any(|range| range.overlaps(&Range::flat(start, len)))
            {
                match self.later.last_mut() {
                    Some((_, end)) if *end == index => *end += 1,
                    _ => self.later.push((index, index + 1)),
                }
                continue;
            }
            let now = self.hash(index);
            if let Some(known) = self.hashes.get_mut(index as usize)
                && *known != Some(now)
            {
                *known = Some(now);
                runs.add(index);
            }
        }
    }

    /// Stops the queries where nearly all pages are always written and few change.
    fn judge(&mut self, written: u64, changed: u64) {
        let count = self.hashes.len() as u64;
        let is_useless = written >= count - count / 8 && changed <= count / 8 && count >= 16;
        self.useless = if is_useless { self.useless + 1 } else { 0 };
        if self.useless >= USELESS_LOOKS {
            self.give_up(compared::TOUCHED);
        }
    }

    fn give_up(&mut self, why: usize) {
        stage::count_compared(why);
        self.release();
    }

    fn release(&mut self) {
        if let Some((first, end)) = self.watched.take()
            && let Ok(kernel) = KernelFiles::get()
        {
            kernel.leave(first, end);
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.release();
    }
}

/// Changed pages that lie side by side: first, and the one behind the last.
#[derive(Default)]
struct Runs {
    found: Vec<(u64, u64)>,
    pages: u64,
}

impl Runs {
    /// Adds a page, whose index is greater than those that were added before.
    fn add(&mut self, index: u64) {
        self.pages += 1;
        match self.found.last_mut() {
            Some((_, end)) if index - *end <= GAP => *end = index + 1,
            _ => self.found.push((index, index + 1)),
        }
    }

    fn ranges(mut self, pages: &Pages) -> Vec<Range> {
        let mut gap = GAP;
        while self.found.len() > MOST_RUNS {
            gap *= 2;
            let found = std::mem::take(&mut self.found);
            for (first, end) in found {
                match self.found.last_mut() {
                    Some((_, last)) if first - *last <= gap => *last = end,
                    _ => self.found.push((first, end)),
                }
            }
        }
        let ranges = self.found.into_iter().map(|(first, end)| {
            let (start, _) = pages.piece(first);
            let (last, len) = pages.piece(end - 1);
            Range::flat(start, last + len - start)
        });
        ranges.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anonymous memory that the test removes.
    struct Mapped(u64, usize);

    impl Mapped {
        fn new(pages: usize, flags: libc::c_int) -> Mapped {
            let size = pages * page_size() as usize;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = flags | libc::MAP_ANONYMOUS;
            // SAFETY: a new mapping.
            let made = unsafe { libc::mmap(std::ptr::null_mut(), size, access, flags, -1, 0) };
            assert_ne!(made, libc::MAP_FAILED);
            Mapped(made as u64, size)
        }

        fn write(&self, at: usize, value: u8) {
            assert!(at < self.1);
            // SAFETY: memory of the test.
            unsafe { (self.0 as *mut u8).add(at).write_volatile(value) };
        }

        fn pages(&self, from: usize, to: usize) -> Pages {
            // SAFETY: the memory is there until it is dropped.
            unsafe { Pages::new(self.0 + from as u64, (to - from) as u64) }
        }
    }

    impl Drop for Mapped {
        fn drop(&mut self) {
            // SAFETY: a mapping of the test.
            unsafe { libc::munmap(self.0 as *mut libc::c_void, self.1) };
        }
    }

    fn found(pages: &mut Pages, memory: &Mapped) -> Vec<(u64, u64)> {
        let ranges = pages.changed_ranges(false, &[]);
        ranges
            .iter()
            .map(|range| (range.address - memory.0, range.bytes()))
            .collect()
    }

    #[test]
    fn changed_ranges_finds_written_pages() {
        let page = page_size() as usize;
        for flags in [libc::MAP_PRIVATE, libc::MAP_SHARED] {
            let memory = Mapped::new(64, flags);
            let mut pages = memory.pages(100, 64 * page - 100);
            if pages.watched.is_some() {
                assert_eq!(flags, libc::MAP_PRIVATE, "others may write shared memory");
            }
            assert!(found(&mut pages, &memory).is_empty());
            memory.write(5 * page, 1);
            memory.write(7 * page + 9, 1);
            memory.write(40 * page, 0);
            memory.write(200, 1);
            memory.write(64 * page - 101, 1);
            memory.write(50, 1);
            let expected = [
                (100, 8 * page as u64 - 100),
                (63 * page as u64, page as u64 - 100),
            ];
            assert_eq!(found(&mut pages, &memory), expected);
            assert!(found(&mut pages, &memory).is_empty());
            // By the operating system.
            let mut ends = [0; 2];
            // SAFETY: an array for two descriptors, and memory of the test.
            let got = unsafe {
                assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
                assert_eq!(libc::write(ends[1], b"new".as_ptr().cast(), 3), 3);
                let into = (memory.0 as *mut u8).add(30 * page).cast();
                libc::read(ends[0], into, 3)
            };
            assert_eq!(got, 3);
            let expected = [(30 * page as u64, page as u64)];
            assert_eq!(found(&mut pages, &memory), expected);
            // SAFETY: descriptors of the test.
            unsafe {
                libc::close(ends[0]);
                libc::close(ends[1]);
            }
        }
    }

    #[test]
    fn changed_ranges_compares_memory_that_was_mapped_anew() {
        let page = page_size() as usize;
        let memory = Mapped::new(16, libc::MAP_PRIVATE);
        memory.write(3 * page, 3);
        let mut pages = memory.pages(0, 16 * page);
        // SAFETY: the memory of the test is replaced by zeros.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let made = libc::mmap(memory.0 as *mut _, memory.1, access, flags, -1, 0);
            assert_eq!(made as u64, memory.0);
        }
        let expected = [(3 * page as u64, page as u64)];
        assert_eq!(found(&mut pages, &memory), expected);
        assert!(pages.watched.is_none());
        memory.write(4 * page, 1);
        let expected = [(4 * page as u64, page as u64)];
        assert_eq!(found(&mut pages, &memory), expected);
    }

    #[test]
    fn changed_ranges_finds_pages_whose_content_was_dropped() {
        let page = page_size() as usize;
        let memory = Mapped::new(4096, libc::MAP_PRIVATE);
        for index in 0..4096 {
            memory.write(index * page, 1);
        }
        let mut pages = memory.pages(0, memory.1);
        for _ in 0..2 {
            // SAFETY: memory of the test.
            let dropped =
                unsafe { libc::madvise(memory.0 as *mut _, memory.1, libc::MADV_DONTNEED) };
            assert_eq!(dropped, 0);
            assert_eq!(found(&mut pages, &memory), [(0, memory.1 as u64)]);
            assert!(found(&mut pages, &memory).is_empty());
            for index in 0..4096 {
                memory.write(index * page, 1);
            }
            assert_eq!(found(&mut pages, &memory), [(0, memory.1 as u64)]);
        }
    }

    #[test]
    fn changed_ranges_finds_bytes_put_back_after_the_device_wrote() {
        let page = page_size() as usize;
        let memory = Mapped::new(16, libc::MAP_PRIVATE);
        let mut pages = memory.pages(100, 16 * page);
        pages.forget(&Range::flat(memory.0 + 5 * page as u64 + 9, page as u64));
        memory.write(5 * page, 0);
        memory.write(6 * page, 0);
        memory.write(7 * page, 0);
        let expected = [(5 * page as u64, 2 * page as u64)];
        assert_eq!(found(&mut pages, &memory), expected);
        assert!(found(&mut pages, &memory).is_empty());
    }

    #[test]
    fn pages_are_compared_when_nearly_all_are_always_written() {
        let page = page_size() as usize;
        let memory = Mapped::new(32, libc::MAP_PRIVATE);
        let mut pages = memory.pages(0, 32 * page);
        for _ in 0..=USELESS_LOOKS {
            for index in 0..32 {
                memory.write(index * page, 0);
            }
            assert!(found(&mut pages, &memory).is_empty());
        }
        assert!(pages.watched.is_none());
        memory.write(9 * page, 1);
        let expected = [(9 * page as u64, page as u64)];
        assert_eq!(found(&mut pages, &memory), expected);
    }

    #[test]
    fn changed_ranges_joins_many_pieces_into_few() {
        let page = page_size() as usize;
        let memory = Mapped::new(16 * 1024, libc::MAP_PRIVATE);
        let mut pages = memory.pages(0, memory.1);
        for index in (0..16 * 1024).step_by(32) {
            memory.write(index * page, 1);
        }
        let found = found(&mut pages, &memory);
        assert!(
            !found.is_empty() && found.len() <= MOST_RUNS,
            "{}",
            found.len()
        );
    }
}
