//! The collector, loaded into a small program that is its own provider (`provider.c`), and the spool that it writes.

mod counting;
mod harness;
mod newer_sdks;
mod sampling;
mod sudden_end;
mod tracing;

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use rpd_spool::SPOOL_VARIABLE;
use rpd_spool::format::{CallRecord, Name, call_flag, space, tag};
use rpd_spool::reader::ByteStrings;
use rpd_spool::record::RecordKind;
use rpd_tests::sources::files_below;

use harness::{Call, Recorded, collector, each_record, launch, provider, run, run_one};

#[test]
fn program_without_gpu_leaves_one_small_stream() {
    let found = run_one("hip_runtime=1,kernel=1", &["unused"]);
    // The note is the place of one that a forked child may leave.
    assert_eq!(found.tags, [tag::PROCESS, tag::TOTALS, tag::NOTE, tag::END]);
    let process = found.process.expect("described");
    assert_eq!((process.forked, process.provider_version), (0, 0));
}

/// A kind of record that the collector never writes has a reader and is in no recording.
#[test]
fn every_kind_of_record_is_written() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // Sums of removed records are made where their sorts are.
    let removed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpd-spool/src/removed.rs");
    let sources = files_below(&directory, &["rs"])
        .into_iter()
        .chain([removed]);
    let collector: String = sources
        .map(|path| std::fs::read_to_string(path).expect("a source file"))
        .collect();
    let words = collector
        .split(|character: char| !character.is_ascii_alphanumeric() && !"_:".contains(character));
    let named: HashSet<&str> = words
        .filter_map(|word| Some(word.rsplit_once("RecordKind::")?.1))
        .collect();
    for kind in RecordKind::ALL {
        let name = format!("{kind:?}");
        assert!(
            named.contains(name.as_str()),
            "nothing in the collector names RecordKind::{name}"
        );
    }
}

/// All names are written at the start of a program that uses the GPU.
#[test]
fn operation_names_with_consecutive_numbers_are_one_record() {
    let (status, _, run) = launch(provider(), "hip_runtime=1", &["calls", "1"], &[]);
    assert!(status.success(), "{status}");
    let mut found = Vec::new();
    each_record(run.path(), |record| {
        if record.header.tag == tag::OPERATION_NAME {
            let name = record.parse_text::<Name>(|name| name.text_len);
            let (name, text) = name.expect("whole");
            found.push((name.space, name.kind, name.operation, text.into_owned()));
        }
    });
    let of = |space, kind| {
        let found = found
            .iter()
            .filter(|name| (name.0, name.1) == (space, kind));
        found
            .map(|(_, _, first, text)| (*first, text.as_str()))
            .collect::<Vec<_>>()
    };
    let hip = "hipGetDeviceCount\0hipModuleGetFunction\0hipFromTheFuture";
    assert_eq!(of(space::CALLBACK, 5), [(0, hip)]);
    let allocations = [
        (1, "MEMORY_ALLOCATION_ALLOCATE"),
        (3, "MEMORY_ALLOCATION_FREE"),
    ];
    assert_eq!(of(space::CALLBACK, 16), allocations);
    assert_eq!(of(space::BUFFER, 11), [(2, "KERNEL_DISPATCH_COMPLETE")]);
}

#[test]
fn calls_nest_and_carry_results_and_arguments() {
    let found = run_one("hip_runtime=1,hip_args=1", &["calls", "5000"]);
    assert_eq!(found.calls.len(), 5002);
    let outer = &found.calls[0];
    assert_eq!((outer.retval, outer.ancestor), (7, 0));
    for (number, call) in found.calls[1..5001].iter().enumerate() {
        assert_eq!(call.retval, number as u64);
        assert_eq!(call.ancestor, outer.correlation);
        assert!(outer.start <= call.start && call.start <= call.end && call.end <= outer.end);
    }
    // hipModuleGetFunction: two pointers and a text.
    let named = &found.calls[2];
    assert_eq!((named.operation, named.flags), (1, call_flag::ARGUMENTS));
    let texts: Vec<_> = ByteStrings(&named.tail[24..]).take(1).collect();
    assert_eq!(texts, [Some(&b"a name"[..])]);
    // Without layout and without the provider's help there are no arguments.
    assert_eq!((found.calls[3].operation, found.calls[3].flags), (2, 0));
    // A payload of unknown size is not searched for a result.
    assert_eq!(found.calls[5001].retval, 0);
    assert!(found.calls[5001].end != 0);
    assert_eq!(found.process.expect("described").provider_version, 10_000);
}

#[test]
fn call_without_arguments_takes_at_most_64_bytes() {
    let found = run_one("hip_runtime=1", &["calls", "100"]);
    assert!(
        found
            .calls
            .iter()
            .all(|call| call.tail.is_empty() && call.flags == 0)
    );
    assert!(size_of::<CallRecord>() <= 64);
}

#[test]
fn pause_and_resume_may_be_doubled() {
    let found = run_one("marker=1,hip_runtime=1", &["pause"]);
    let texts: Vec<String> = found
        .calls
        .iter()
        .filter(|call| call.flags & call_flag::MESSAGE != 0)
        .flat_map(|call| ByteStrings(&call.tail).next().flatten().map(<[u8]>::to_vec))
        .map(|text| String::from_utf8(text).expect("ASCII"))
        .collect();
    assert_eq!(texts, ["before", "after"]);
    // Four control calls and two marks, but not the call made in between.
    assert_eq!(found.calls.len(), 6);
    assert!(found.calls.iter().all(|call| call.end != 0));
}

#[test]
fn pauses_are_obeyed_and_what_they_leave_out_is_counted() {
    let script = [
        "script",
        "run:1:0:2",
        "pause",
        "run:1:0:3",
        "resume",
        "run:1:0:1",
    ];
    // Whether recording is paused, and whether anyone listens meanwhile; the original only looks where markers are traced
    // or regions selected.
    for (options, recorded, paused) in [
        ("kernel=1", 3, 3),
        ("kernel=1,marker=1", 3, 3),
        ("kernel=1,original_semantics=1", 6, 0),
        ("kernel=1,marker=1,original_semantics=1", 3, 0),
        ("kernel=1,selected_regions=1,original_semantics=1", 1, 0),
    ] {
        let found = run_one(options, &script);
        let totals = found.totals.expect("written");
        assert_eq!(found.dispatches.len(), recorded, "{options}");
        assert_eq!(totals.dispatches_begun, recorded as u64, "{options}");
        assert_eq!(totals.dispatches_ended, recorded as u64, "{options}");
        assert_eq!(totals.dispatches_paused, paused, "{options}");
    }
}

#[test]
fn marks_rename_kernels_only_with_the_originals_semantics() {
    // ROCTx itself does not report it for the second pop, since nothing is pushed.
    let script = [
        "script",
        "push:outer",
        "run:1:0",
        "mark:mark",
        "run:1:0",
        "pop",
        "run:1:0",
        "pop",
        "run:1:0",
        "mark:later",
        "run:1:0",
    ];
    for (options, expected) in [
        ("kernel=1,kernel_rename=1", ["outer", "outer", "", "", ""]),
        (
            "kernel=1,kernel_rename=1,original_semantics=1",
            ["outer", "mark", "outer", "outer", "later"],
        ),
    ] {
        let found = run_one(options, &script);
        let name = |region: u32| match region {
            0 => "",
            region => &found.regions[region as usize - 1],
        };
        let names: Vec<&str> = found.dispatches.iter().map(|d| name(d.region)).collect();
        assert_eq!(names, expected, "{options}");
    }
}

#[test]
fn dispatch_records_have_their_region_and_stream() {
    let found = run_one("kernel=1,kernel_rename=1,streams=1", &["dispatches", "100"]);
    assert_eq!(found.dispatches.len(), 101);
    assert_eq!(found.regions, ["region"]);
    for dispatch in &found.dispatches[..100] {
        assert_eq!((dispatch.region, dispatch.stream), (1, 1));
        assert_eq!((dispatch.kernel, dispatch.grid[0]), (3, 64));
    }
    assert_eq!(
        (found.dispatches[100].region, found.dispatches[100].stream),
        (0, 0)
    );
    assert_eq!(found.dropped, 0);
}

#[test]
fn killed_process_loses_no_reported_record() {
    let (status, _, recorded) = run("kernel=1", &["dispatches", "100", "kill"]);
    assert_eq!(status.signal(), Some(9));
    assert_eq!(recorded[0].dispatches.len(), 101);
    assert!(!recorded[0].tags.contains(&tag::END));

    let everything = "memory_copy=1,memory_allocation=1,scratch_memory=1";
    let (status, _, recorded) = run(everything, &["memory", "kill"]);
    assert_eq!(status.signal(), Some(9));
    let found = &recorded[0];
    assert_eq!(
        [
            found.copies.len(),
            found.allocations.len(),
            found.scratch.len()
        ],
        [1, 3, 2]
    );
}

#[test]
fn copies_allocations_and_scratch_are_recorded_once_with_their_times() {
    let found = run_one(
        "memory_copy=1,memory_allocation=1,scratch_memory=1",
        &["memory"],
    );
    let pid = found.process.expect("described").pid;
    let [copy] = &found.copies[..] else {
        panic!("{:?}", found.copies);
    };
    // On the thread that submitted it, though another one reported it.
    assert_eq!(
        (copy.thread, copy.operation, copy.bytes),
        (pid.into(), 2, 4096)
    );
    assert_eq!(copy.end, copy.start + 500);
    assert_eq!((copy.dst_agent, copy.src_agent, copy.stream), (1, 2, 7));
    let [timed, untimed, free] = &found.allocations[..] else {
        panic!("{:?}", found.allocations);
    };
    assert_eq!(timed.end, timed.start + 20);
    assert_eq!((timed.agent, timed.bytes, timed.operation), (77, 100, 1));
    assert!(untimed.end >= untimed.start + 1_000_000 && untimed.start >= timed.end);
    assert_eq!((free.agent, free.bytes, free.operation), (0, 0, 3));
    let [grown, freed] = &found.scratch[..] else {
        panic!("{:?}", found.scratch);
    };
    assert!(grown.end >= grown.start + 1_000_000);
    assert_eq!((grown.bytes, grown.queue, grown.flags), (65536, 1, 2));
    assert_eq!((freed.bytes, freed.operation), (0, 2));
}

#[test]
fn aborted_process_shows_the_call_that_it_was_in() {
    let (status, _, recorded) = run("hip_runtime=1", &["abort", "3000"]);
    assert_eq!(status.signal(), Some(6));
    let open: Vec<&Call> = recorded[0]
        .calls
        .iter()
        .filter(|call| call.end == 0)
        .collect();
    assert_eq!(recorded[0].calls.len(), 3001);
    assert_eq!(open.len(), 1);
    assert_eq!(open[0].operation, 1);
}

#[test]
fn calls_from_thread_local_destructors_are_recorded() {
    let found = run_one("hip_runtime=1", &["late"]);
    // One call of the thread, then one per round of destructors, of which there are a few.
    assert!(found.calls.len() >= 4, "{}", found.calls.len());
    assert!(found.calls.iter().all(|call| call.end != 0));
    assert_eq!(found.dropped, 0);
}

#[test]
fn calls_from_signal_handlers_are_recorded() {
    let (status, printed, recorded) = run("hip_runtime=1", &["signals", "300000"]);
    assert!(status.success());
    let interrupted: u64 = printed.trim().parse().expect("a number");
    assert!(interrupted > 10);
    let found = &recorded[0];
    assert_eq!(found.dropped, 0);
    assert_eq!(found.calls.len() as u64, 300_000 + interrupted);
    assert!(found.calls.iter().all(|call| call.end != 0));
    // Some interrupted a writer of their thread: those are in a stream of their own.
    assert!(found.streams > 2, "{}", found.streams);
}

#[test]
fn forked_child_writes_its_own_spool() {
    let (status, _, recorded) = run("hip_runtime=1,kernel=1", &["fork"]);
    assert!(status.success());
    let [parent, child] = &recorded[..] else {
        panic!("{} processes", recorded.len());
    };
    let (of_parent, of_child) = (
        parent.process.expect("described"),
        child.process.expect("described"),
    );
    assert_eq!((of_parent.forked, of_child.forked), (0, 1));
    assert_eq!(of_child.ppid, of_parent.pid);
    assert_eq!(of_child.provider_version, 10_000);
    // The call that was open over the fork is the parent's alone.
    assert_eq!(parent.calls.len(), 1);
    assert_eq!(
        (parent.calls[0].retval, parent.calls[0].end != 0),
        (3, true)
    );
    assert_eq!(child.calls.len(), 1);
    assert_eq!(child.calls[0].retval, 55);
    // So is the work that began before.
    assert_eq!(
        parent
            .dispatches
            .iter()
            .map(|d| d.dispatch)
            .collect::<Vec<_>>(),
        [1]
    );
    assert_eq!(
        child
            .dispatches
            .iter()
            .map(|d| d.dispatch)
            .collect::<Vec<_>>(),
        [2]
    );
    // Names are repeated, so that the child's records can be understood alone.
    let names = |found: &Recorded| {
        let tags = found.tags.iter();
        tags.filter(|found| **found == tag::OPERATION_NAME).count()
    };
    assert_eq!(names(parent), names(child));
    assert!(child.tags.contains(&tag::END));
}

#[test]
fn forking_while_threads_record_loses_no_call() {
    let (status, _, recorded) = run("hip_runtime=1", &["forks", "200000"]);
    assert!(status.success(), "{status}");
    assert_eq!(recorded.len(), 41);
    assert_eq!(recorded[0].calls.len(), 400_000);
    assert!(recorded[1..].iter().all(|child| child.calls.len() == 1));
}

#[test]
fn file_size_limit_drops_records_without_killing_the_program() {
    let found = run_one("hip_runtime=1", &["limit", "20000"]);
    assert!(found.dropped > 0);
    assert_eq!(found.calls.len() as u64 + found.dropped, 20_001);
}

#[test]
fn provider_of_another_major_version_is_declined_with_a_note() {
    let (status, _, recorded) = run("hip_runtime=1", &["old"]);
    assert_eq!(status.code(), Some(91));
    assert!(
        recorded[0].notes[0].contains("version 0.6"),
        "{:?}",
        recorded[0].notes
    );
}

#[test]
fn kinds_that_the_provider_lacks_are_noted() {
    let found = run_one("rccl=1,hip_compiler=1", &["calls", "1"]);
    let noted = |kind: &str| found.notes.iter().any(|note| note.starts_with(kind));
    assert!(noted("HIP_COMPILER_API"), "{:?}", found.notes);
    // There are no notes about libraries that most programs do not use.
    assert!(!noted("RCCL_API"), "{:?}", found.notes);
    assert!(found.calls.is_empty());
}

#[test]
fn kokkos_events_become_markers_on_request() {
    let found = run_one("marker=1,kokkos=1", &["kokkos"]);
    let texts: Vec<String> = found
        .calls
        .iter()
        .flat_map(|call| ByteStrings(&call.tail).next().flatten())
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect();
    assert_eq!(
        texts,
        [
            "Kokkos::Initialization Complete",
            "for",
            "Kokkos::allocate Host view 16",
            "Kokkos::deep_copy HIP to <- Host from 8",
            "Kokkos::Finalization Complete",
        ]
    );
    let count = |wanted| found.tags.iter().filter(|tag| **tag == wanted).count();
    assert_eq!((count(tag::RANGE_BEGIN), count(tag::RANGE_END)), (2, 2));
    assert!(run_one("marker=1", &["kokkos"]).calls.is_empty());
}

#[test]
fn recording_ends_when_main_returns() {
    let found = run_one("hip_runtime=1", &["main-returns"]);
    assert_eq!(found.calls.len(), 1);
    let ends = found.tags.iter().filter(|tag| **tag == tag::END).count();
    assert_eq!(ends, 1);
    // A call of exit() never returns; the provider ends recording then.
    let found = run_one("hip_runtime=1", &["main-exits"]);
    assert_eq!(found.calls.len(), 2);
    assert!(found.tags.contains(&tag::END));
}

#[test]
fn program_without_a_spool_is_not_recorded() {
    let status = Command::new(provider())
        .args(["calls", "3"])
        .env_remove(SPOOL_VARIABLE)
        .env("LD_PRELOAD", collector())
        .status()
        .expect("runs");
    // The status with which the program shows that its tool declined.
    assert_eq!(status.code(), Some(91));
}
