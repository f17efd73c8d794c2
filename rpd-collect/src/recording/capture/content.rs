//! Hashes of host memory: whether it has changed, and whether the same bytes were staged before.

use std::collections::{HashMap, HashSet};

use twox_hash::XxHash3_128;

use super::ranges::Range;

/// Data that are remembered; beyond that all are forgotten, and staged again when they come back.
const MOST: usize = 1 << 16;

/// Bytes from which a range is sampled first, and how many pieces of how many bytes are taken.
const SAMPLED: u64 = 64 << 10;
const PIECES: u64 = 32;
const PIECE: u64 = 64;

/// The hash of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Content(u128);

impl Content {
    /// The content of `size` bytes at `address`.
    ///
    /// # Safety
    /// The bytes can be read. Other threads and the device may write meanwhile; the hash is then that of a mixture.
    pub(super) unsafe fn from_address(address: u64, size: u64) -> Content {
        // SAFETY: by the contract of this function.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, size as usize) };
        Content(XxHash3_128::oneshot(bytes))
    }

    /// The content of the pieces of a range whose address may be wrong; `None` when the bytes cannot be read, or the kernel cannot
    /// check the address.
    pub(super) fn from_range(range: &Range) -> Option<Content> {
        if !can_be_read(range.address, range.span()) {
            return None;
        }
        let mut hasher = Hasher::new();
        for (address, size) in range.pieces() {
            // SAFETY: all pages can be read.
            unsafe { hasher.add(address, size) };
        }
        Some(hasher.finish())
    }

    /// The content of some pieces of a range, which differs where the range's does, but not the other way round. Short ranges are
    /// taken as a whole.
    ///
    /// # Safety
    /// `size` bytes at `address` can be read, as [`Content::from_address`] demands.
    pub(super) unsafe fn from_sample(address: u64, size: u64) -> Content {
        if size < SAMPLED {
            // SAFETY: by the contract of this function.
            return unsafe { Content::from_address(address, size) };
        }
        let mut hasher = Hasher::new();
        for piece in 0..PIECES {
            let offset = (size - PIECE) / (PIECES - 1) * piece;
            // SAFETY: as above; the last piece ends in the range.
            unsafe { hasher.add(address + offset, PIECE) };
        }
        hasher.finish()
    }
}

/// Whether memory can be read. Where that is so its pages are mapped afterwards.
pub(super) fn can_be_read(address: u64, size: u64) -> bool {
    // SAFETY: sysconf has no effects.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let first = address - address % page;
    // Fails where a load would raise a signal.
    // SAFETY: the advice changes no content.
    let ready = unsafe {
        libc::madvise(
            first as *mut libc::c_void,
            (address - first + size) as usize,
            libc::MADV_POPULATE_READ,
        )
    };
    ready == 0
}

/// Makes the hash of memory that is read in parts.
pub(super) struct Hasher(XxHash3_128);

impl Hasher {
    pub(super) fn new() -> Hasher {
        Hasher(XxHash3_128::new())
    }

    /// Adds `size` bytes at `address`.
    ///
    /// # Safety
    /// `size` bytes at `address` can be read, as [`Content::from_address`] demands.
    pub(super) unsafe fn add(&mut self, address: u64, size: u64) {
        // SAFETY: by the contract of this function.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, size as usize) };
        self.0.write(bytes);
    }

    pub(super) fn finish(&self) -> Content {
        Content(self.0.finish_128())
    }
}

/// Location of data in the staging file.
#[derive(Default)]
pub(super) struct Staged {
    /// Places in the staging file by content, size, and whether the front end may keep the hash alone.
    places: HashMap<(Content, u64, bool), u64>,
    /// The samples of all data that were staged.
    samples: HashSet<Content>,
}

impl Staged {
    /// Whether no data with this sample were staged; from now on some were.
    pub(super) fn is_new(&mut self, sample: Content) -> bool {
        if self.samples.len() >= MOST {
            self.samples.clear();
        }
        self.samples.insert(sample)
    }

    pub(super) fn find(&self, content: Content, size: u64, is_output: bool) -> Option<u64> {
        self.places.get(&(content, size, is_output)).copied()
    }

    /// Notes the place of content. To be called when the bytes are in the file.
    pub(super) fn insert(&mut self, content: Content, size: u64, is_output: bool, place: u64) {
        if self.places.len() >= MOST {
            self.places.clear();
        }
        self.places.insert((content, size, is_output), place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_hash_changes_with_the_bytes() {
        let mut bytes = vec![0u8; 1000];
        // SAFETY: a slice.
        let of = |bytes: &[u8]| unsafe {
            Content::from_address(bytes.as_ptr() as u64, bytes.len() as u64)
        };
        let before = of(&bytes);
        for at in [0, 31, 32, 991, 999] {
            bytes[at] = 1;
            assert_ne!(of(&bytes), before, "{at}");
            bytes[at] = 0;
        }
        assert_eq!(of(&bytes), before);
    }

    #[test]
    fn content_of_unreadable_memory_is_none() {
        let bytes = [7u8; 5000];
        let address = bytes.as_ptr() as u64;
        // SAFETY: an array.
        let content = unsafe { Content::from_address(address, 5000) };
        assert_eq!(
            Content::from_range(&Range::flat(address, 5000)),
            Some(content)
        );
        // SAFETY: a new mapping, of which the second page is removed; both are used by this test alone.
        let start = unsafe {
            let start = libc::mmap(
                std::ptr::null_mut(),
                8192,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.add(4096), 4096, libc::PROT_NONE), 0);
            start as u64
        };
        assert!(Content::from_range(&Range::flat(start, 4096)).is_some());
        assert!(Content::from_range(&Range::flat(start, 4097)).is_none());
        assert!(Content::from_range(&Range::flat(start + 4000, 200)).is_none());
    }

    #[test]
    fn content_sample_covers_the_whole_range() {
        let mut bytes = vec![0u8; 1 << 20];
        // SAFETY: a slice.
        let of = |bytes: &[u8]| unsafe {
            Content::from_sample(bytes.as_ptr() as u64, bytes.len() as u64)
        };
        let before = of(&bytes);
        for at in [0, 63, bytes.len() - 40] {
            bytes[at] = 1;
            assert_ne!(of(&bytes), before, "{at}");
            bytes[at] = 0;
        }
        bytes[1000] = 1;
        assert_eq!(of(&bytes), before);
        assert_ne!(of(&bytes[..5000]), of(&vec![0; 5000]));
    }

    #[test]
    fn staged_data_are_found_by_content_size_and_purpose() {
        let mut staged = Staged::default();
        let content = Content(7);
        assert!(staged.is_new(content) && !staged.is_new(content));
        staged.insert(content, 100, false, 64);
        assert_eq!(staged.find(content, 100, false), Some(64));
        assert_eq!(staged.find(content, 99, false), None);
        assert_eq!(staged.find(content, 100, true), None);
        for other in 0..MOST as u128 {
            staged.insert(Content(other << 32), 1, false, 0);
            let _ = staged.is_new(Content(other));
        }
        assert!(staged.samples.len() <= MOST);
        assert!(staged.places.len() <= MOST);
    }
}
