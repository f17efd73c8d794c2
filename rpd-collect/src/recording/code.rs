//! The bytes of code objects: what program counters and thread traces are read with after the run.
//!
//! Bytes are written when a code object is loaded, before anything can refer to it, and once for all code objects of the
//! process that have the same.

use std::cell::UnsafeCell;

use rpd_spool::format::{CodeBytes, CodeContent};
use rpd_spool::record::RecordKind;

use super::fork::ForkHook;
use super::meta;

/// Bytes of one record.
const PART: usize = 4 << 20;

/// The contents that are written.
struct WrittenContents(UnsafeCell<Vec<[u64; 2]>>);

// SAFETY: the content is only touched with the lock of [`FORK`] held.
unsafe impl Sync for WrittenContents {}

static WRITTEN: WrittenContents = WrittenContents(UnsafeCell::new(Vec::new()));
pub(super) static FORK: ForkHook = ForkHook::new();

/// Records the bytes of a code object that has just been loaded. False when they could not be stored.
pub(crate) fn loaded(code_object: u64, bytes: &[u8]) -> bool {
    let content = name(bytes);
    {
        let Some(_guard) = FORK.lock() else {
            return false;
        };
        // SAFETY: the lock is held.
        let written = unsafe { &mut *WRITTEN.0.get() };
        if !written.contains(&content) {
            if !write(content, bytes) {
                return false;
            }
            written.push(content);
        }
    }
    let record = CodeContent {
        header: RecordKind::CodeContent.head(0),
        code_object,
        content,
    };
    meta::write(&record, b"")
}

/// Begins anew, for another recording of a process that is attached to.
pub(super) fn forget() {
    if let Some(_guard) = FORK.lock() {
        // SAFETY: the lock is held.
        unsafe { &mut *WRITTEN.0.get() }.clear();
    }
}

fn write(content: [u64; 2], bytes: &[u8]) -> bool {
    let mut offset = 0;
    bytes.chunks(PART).all(|part| {
        let record = CodeBytes {
            header: RecordKind::CodeBytes.head(part.len()),
            content,
            size: bytes.len() as u64,
            offset,
            len: part.len() as u32,
            reserved: 0,
        };
        offset += part.len() as u64;
        meta::write(&record, part)
    })
}

/// A name for content: two sums over its words, mixed differently, and its length.
fn name(bytes: &[u8]) -> [u64; 2] {
    const FACTORS: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
    let mut sums = [bytes.len() as u64, !(bytes.len() as u64)];
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        let word = u64::from_le_bytes(*word);
        for ((sum, factor), turn) in sums.iter_mut().zip(FACTORS).zip([23, 41]) {
            *sum = (*sum ^ word).wrapping_mul(factor).rotate_left(turn);
        }
    }
    // So that the last words bear on all bits.
    sums.map(|sum| {
        let mixed = (sum ^ sum >> 29).wrapping_mul(FACTORS[1]);
        mixed ^ mixed >> 32
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_contents_that_differ_have_different_names() {
        let base = vec![7_u8; 1001];
        let mut names = vec![name(&base), name(&base[..1000]), name(&[]), name(&[0])];
        for place in [0, 8, 999, 1000] {
            let mut other = base.clone();
            other[place] ^= 1;
            names.push(name(&other));
        }
        names.push(name(&[&base[8..], &[1; 8]].concat()));
        let firsts: std::collections::HashSet<u64> = names.iter().map(|name| name[0]).collect();
        let seconds: std::collections::HashSet<u64> = names.iter().map(|name| name[1]).collect();
        assert_eq!((firsts.len(), seconds.len()), (names.len(), names.len()));
        assert_eq!(name(&base), name(&base.clone()));
    }
}
