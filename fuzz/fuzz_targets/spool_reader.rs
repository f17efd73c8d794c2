//! Whatever the segments of a process hold: reading ends, with no more records than there are bytes for.
//!
//! The input is cut into segments of one stream: each begins with a `u16` length. Every segment starts with a valid head
//! whose bytes the input then overlays (xor), so that most inputs get past the magic.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;
use rpd_spool::format::{MAGIC, VERSION};
use rpd_spool::reader::ProcessSpool;

thread_local! {
    static DIRECTORY: RefCell<tempfile::TempDir> =
        RefCell::new(tempfile::tempdir().expect("a temporary directory"));
}

const MOST_SEGMENTS: usize = 4;

fn segment(number: usize, overlay: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; overlay.len().max(64)];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[24] = number as u8;
    let committed = bytes.len() as u64 - 64;
    bytes[32..40].copy_from_slice(&committed.to_le_bytes());
    for (byte, overlay) in bytes.iter_mut().zip(overlay) {
        *byte ^= overlay;
    }
    bytes
}

fuzz_target!(|data: &[u8]| {
    DIRECTORY.with_borrow(|directory| {
        let mut rest = data;
        let mut total = 0;
        for number in 0..MOST_SEGMENTS {
            let path = directory.path().join(format!("t1-{number}.seg"));
            let Some((len, tail)) = rest.split_first_chunk::<2>() else {
                let _ = std::fs::remove_file(path);
                continue;
            };
            let len = usize::from(u16::from_le_bytes(*len)).min(tail.len());
            let bytes = segment(number, &tail[..len]);
            total += bytes.len() as u64;
            std::fs::write(path, bytes).expect("written");
            rest = &tail[len..];
        }
        let spool = ProcessSpool::open(directory.path()).expect("listed");
        for stream in &spool.streams {
            let mut records = stream.records();
            while let Some(record) = records.next() {
                assert_eq!(record.bytes.len(), record.header.len as usize);
            }
            assert!(records.bytes() <= total);
            for damage in records.damage() {
                assert!(!damage.to_string().is_empty());
            }
        }
    });
});
