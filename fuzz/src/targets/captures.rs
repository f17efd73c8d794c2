//! Damaged or dishonest captures: each is read in every way, or refused.
//!
//! The highest bit of the first byte decides what the rest is: a capsule, or changes to single values of the database of a good one
//! (nine bytes each), whose description then has no hash of the database.

use std::cell::RefCell;
use std::path::Path;

use rpd_capture::{Capture, CaptureError, DATABASE, Manifest};
use rusqlite::Connection;

use super::{assert_one_line, cells};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "captures",
    run,
    seeds,
    longest: 256 << 10,
    mutations: 300,
};

/// Bit of the input's first byte: the rest is a capsule.
const IS_CAPSULE: u8 = 0x80;
/// Pattern (SQL LIKE) of the names of the tables whose values are changed, which all tables match.
const TABLES: &str = "%";
/// Most bytes of a single piece of data that are read.
const LONGEST: u64 = 4 << 20;

/// Directory of the good capture.
const GOOD: &str = "good";
/// A launch of `counting_kernel` of the workload `capture-limits`, made by `rpd capture pack`.
const CAPSULE: &[u8] = include_bytes!("../../../rpd-capture/testdata/counting.rpdk");

/// Unpacks the valid capture into the directory [`GOOD`]. Its database gets smaller pages; its description then has no
/// hash of the database.
fn unpack_good() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let capsule = directory.path().join("capsule");
    let capture = directory.path().join(GOOD);
    std::fs::write(&capsule, CAPSULE).expect("written");
    std::fs::create_dir(&capture).expect("a directory");
    rpd_capture::unpack_capsule(&capsule, &capture).expect("unpacked");
    let database = Connection::open(capture.join(DATABASE)).expect("opened");
    database
        .execute_batch("PRAGMA journal_mode=DELETE; PRAGMA page_size=1024; VACUUM;")
        .expect("made smaller");
    let mut manifest = Manifest::read(&capture).expect("a description");
    manifest.database.clear();
    manifest.write(&capture).expect("written");
    directory
}

fn seeds() -> Vec<Vec<u8>> {
    let mut small = vec![IS_CAPSULE];
    DIRECTORY.with_borrow(|directory| {
        rpd_capture::pack_capsule(&directory.path().join(GOOD), &mut small).expect("packed");
    });
    let changes = |first: u8| {
        let values = (0..16u8).flat_map(move |n| {
            let row = n.wrapping_mul(29).wrapping_add(first);
            [row, n, n.wrapping_mul(3), 20 + n, 0xff, n, 0, 0, 0x80]
        });
        [0].into_iter().chain(values).collect::<Vec<u8>>()
    };
    vec![vec![0], changes(0), changes(7), changes(100), small]
}

thread_local! {
    static DIRECTORY: RefCell<tempfile::TempDir> = RefCell::new(unpack_good());
}

fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    DIRECTORY.with_borrow(|directory| {
        let capsule = directory.path().join("capsule");
        let capture = directory.path().join("capture");
        let good = directory.path().join(GOOD);
        let _ = std::fs::remove_dir_all(&capture);
        std::fs::create_dir(&capture).expect("a directory");
        let made = if kind & IS_CAPSULE != 0 {
            std::fs::write(&capsule, rest).expect("written");
            rpd_capture::unpack_capsule(&capsule, &capture)
        } else {
            copy(&good, &capture);
            let database = Connection::open(capture.join(DATABASE)).expect("opened");
            cells::change_all(&database, TABLES, rest);
            Ok(())
        };
        if let Err(error) = made.and_then(|()| read(&capture, &good)) {
            assert_one_line(&error.to_string());
        }
    });
}

/// Copies a directory with everything in it.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).expect("a directory");
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("copied");
        }
    }
}

/// Reads all of a capture, and compares it with `other`. An error of one part does not keep the others from being read.
fn read(path: &Path, other: &Path) -> Result<(), CaptureError> {
    let mut capture = Capture::open(path)?;
    for problem in rpd_capture::check(&capture)? {
        assert_one_line(&problem.text);
    }
    let mut blobs = Vec::new();
    let mut calls = 0;
    let read = capture.calls(1, u64::MAX, |call| -> Result<bool, CaptureError> {
        for details in [false, true] {
            let _ = rpd_capture::describe(&call, details);
        }
        if let Some(operation) = call.operation() {
            let _ = rpd_capture::geometry(operation, &call.arguments, &call.items);
        }
        let _ = (call.allocation(), rpd_capture::code_objects(&call).count());
        blobs.extend(call.data().map(|data| data.offset as i64));
        calls += 1;
        Ok(calls < 1000)
    });
    blobs.extend(capture.codes()?.iter().map(|code| code.blob));
    for blob in blobs {
        // A small file can declare long data if they are zeros, which take no room.
        if capture.data(blob).is_ok_and(|data| data.size <= LONGEST) {
            let _ = (
                capture.bytes(blob).is_ok(),
                rpd_capture::variables(&mut capture, blob),
            );
        }
    }
    let (memory, kernels, launches) = (capture.memory(), capture.kernels(), capture.launches());
    let (unsupported, notes) = (capture.unsupported(), capture.notes());
    let before = capture.launch_before(u64::MAX >> 1);
    let other = Capture::open(other)?;
    let _ = rpd_capture::diff(&other, &capture)?;
    rpd_capture::export(&capture, &mut std::io::sink())?;
    read?;
    let _ = (memory?, kernels?, launches?, unsupported?, notes?, before?);
    Ok(())
}
