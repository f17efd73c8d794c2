//! Reads the directory of a process whose segments hold arbitrary bytes, and loads a session from it. Reading must
//! end, with no more records than there are bytes for.
//!
//! The input is split into segments, alternately of a meta stream and of a thread's stream. Each begins with a `u16`
//! length. A segment starts with a valid header, to which the input's bytes are applied by xor, so that most inputs
//! pass the check of the magic.

use std::cell::RefCell;

use rpd_core::session::{LoadOptions, Session};
use rpd_spool::format::{MAGIC, SegmentHeader, VERSION, tag};
use rpd_spool::reader::ProcessSpool;

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "spool",
    run,
    seeds,
    longest: 16 << 10,
    mutations: 500,
};

thread_local! {
    static DIRECTORY: RefCell<tempfile::TempDir> =
        RefCell::new(tempfile::tempdir().expect("a temporary directory"));
}

const HEADER: usize = size_of::<SegmentHeader>();
/// Names of the segment files, each with the kind of its stream.
const SEGMENTS: [(&str, u8); 4] = [
    ("meta-0.seg", 1),
    ("t1-0.seg", 2),
    ("meta-1.seg", 1),
    ("t1-1.seg", 2),
];

fn segment(number: usize, overlay: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0u8; overlay.len().max(HEADER)];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12] = SEGMENTS[number].1;
    bytes[24] = (number / 2) as u8;
    let committed = (bytes.len() - HEADER) as u64;
    bytes[32..40].copy_from_slice(&committed.to_le_bytes());
    for (byte, overlay) in bytes.iter_mut().zip(overlay) {
        *byte ^= overlay;
    }
    bytes
}

fn run(data: &[u8]) {
    DIRECTORY.with_borrow(|directory| {
        let mut rest = data;
        let mut total = 0;
        for (number, (name, _)) in SEGMENTS.iter().enumerate() {
            let path = directory.path().join(name);
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
        match Session::open(
            directory.path(),
            LoadOptions {
                args: true,
                ..LoadOptions::default()
            },
        ) {
            Ok(session) => assert!(session.len() as u64 <= total),
            Err(error) => assert_one_line(&error.to_string()),
        }
    });
}

/// A segment with one record of each tag below 64, known or not. The words after a record's head count up in steps of
/// `step`, so that lengths and ids in it are small.
fn every_tag(bytes_each: u32, step: u8) -> Vec<u8> {
    let mut segment = vec![0; HEADER];
    for tag in 0..64u16 {
        segment.extend(bytes_each.to_le_bytes());
        segment.extend(tag.to_le_bytes());
        segment.extend(u16::from(step).to_le_bytes());
        let payload = (0..bytes_each - 8).map(|at| match at % 4 {
            0 => (at / 4) as u8 * step,
            _ => 0,
        });
        segment.extend(payload);
    }
    segment
}

/// A record with these words behind its head.
fn record(tag: u16, words: [u64; 9]) -> Vec<u8> {
    let head = [80, u32::from(tag)].into_iter().flat_map(u32::to_le_bytes);
    head.chain(words.into_iter().flat_map(u64::to_le_bytes))
        .collect()
}

/// A segment of a process whose calls have stacks. The description of the process comes after some of its records,
/// which are not in the order of their times.
fn process_behind_records() -> Vec<u8> {
    let allocation = |start: u64| record(tag::ALLOCATION, [1, 1, 0, start, start, 0, 0, 0, 1]);
    let process = record(tag::PROCESS, [7, 7, 1, 1, 1, 0, 1 << 32, 0, 0]);
    let records = [allocation(9), allocation(3), process, allocation(2)];
    [vec![0; HEADER], records.concat()].concat()
}

fn seeds() -> Vec<Vec<u8>> {
    let input = |segments: &[Vec<u8>]| {
        let parts = segments.iter().flat_map(|segment| {
            let len = (segment.len() as u16).to_le_bytes();
            len.into_iter().chain(segment.iter().copied())
        });
        parts.collect::<Vec<u8>>()
    };
    vec![
        input(&[]),
        input(&[vec![0; HEADER], vec![0; HEADER]]),
        input(&[every_tag(56, 0), every_tag(56, 0)]),
        input(&[every_tag(64, 1), every_tag(56, 1)]),
        input(&[every_tag(120, 0), every_tag(56, 1)]),
        input(&[
            every_tag(48, 1),
            every_tag(48, 0),
            every_tag(56, 0),
            every_tag(40, 1),
        ]),
        input(&[process_behind_records()]),
    ]
}
