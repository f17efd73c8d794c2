//! Thread traces.

use std::path::Path;
use std::process::Command;

use rpd_spool::format::{ThreadTracing, TracePart, TracedDispatch, tag, trace_flag};
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};

use super::harness::{collector, each_record, note_text, provider, provider_without_tracing};

/// Records of a run about traces.
#[derive(Default)]
struct Traced {
    printed: String,
    tracing: Vec<(ThreadTracing, String)>,
    dispatches: Vec<TracedDispatch>,
    parts: Vec<(TracePart, Vec<u8>)>,
    notes: Vec<String>,
}

fn run_as(provider: &Path, version: &str, options: &str, words: &[&str]) -> Traced {
    let run = tempfile::tempdir().expect("temporary directory");
    let output = Command::new(provider)
        .arg("script")
        .args(words)
        .env("PROVIDER_VERSION", version)
        .env(SPOOL_VARIABLE, run.path())
        .env(COLLECT_VARIABLE, format!("thread_trace={options}"))
        .env("LD_PRELOAD", collector())
        .output()
        .expect("runs");
    assert!(output.status.success(), "{output:?}");
    let mut found = Traced {
        printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        ..Traced::default()
    };
    each_record(run.path(), |record| match record.header.tag {
        tag::THREAD_TRACING => {
            let (fixed, tail) = record.parse::<ThreadTracing>().expect("whole");
            let names = String::from_utf8_lossy(&tail[..fixed.len as usize]);
            found.tracing.push((fixed, names.into_owned()));
        }
        tag::TRACED_DISPATCH => {
            found.dispatches.push(record.parse().expect("whole").0);
        }
        tag::TRACE_PART => {
            let (part, tail) = record.parse::<TracePart>().expect("whole");
            found.parts.push((part, tail[..part.len as usize].to_vec()));
        }
        tag::NOTE => found.notes.extend(note_text(record)),
        _ => {}
    });
    found
}

fn run(options: &str, words: &[&str]) -> Traced {
    run_as(provider(), "10000", options, words)
}

/// Options of a trace of each selected dispatch: target 2, SIMDs 0x3, shader engine 4, 1 MiB, the first GPU alone.
const OPTIONS: &str = "2:3:16:1048576:0:0:0:0:0:0/0/";

/// Options of one trace of the whole run, otherwise as [`OPTIONS`].
const WHOLE: &str = "2:3:16:1048576:0:0:0:0:0:1/0/";
/// Output of the provider for [`WHOLE`], when the trace was stopped in time.
const DELIVERED: &str = "device 77: 0=2 1=16 2=1048576 3=3\nthe trace is delivered\n";

fn expected(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn thread_trace_is_made_of_the_first_dispatch_of_each_kernel() {
    let words = [
        "traced:5:1:100",
        "traced:6:1:100",
        "pause",
        "traced:7:2:100",
        "resume",
        "traced:8:2:7",
    ];
    let found = run(OPTIONS, &words);
    assert_eq!(
        found.printed,
        "dispatches 77: 0=2 1=16 2=1048576 3=3\ndispatch 5 traced\ndispatch 6 not traced\ndispatch 7 not traced\n\
         dispatch 8 traced\n"
    );
    let [(tracing, counters)] = &found.tracing[..] else {
        panic!("{} GPUs", found.tracing.len());
    };
    assert_eq!((tracing.agent, tracing.whole_agent), (77, 0));
    assert_eq!(
        (tracing.capacity, counters.as_str()),
        (1_048_576 - 63 * 4096, "")
    );
    let dispatches: Vec<(u64, u64)> = (found.dispatches.iter())
        .map(|dispatch| (dispatch.dispatch, dispatch.kernel))
        .collect();
    assert_eq!(dispatches, [(5, 1), (8, 2)]);
    let [(first, bytes), (second, _)] = &found.parts[..] else {
        panic!("{} parts", found.parts.len());
    };
    assert_eq!((first.agent, first.trace, first.engine), (77, 5, 4));
    assert_eq!((first.size, first.flags), (100, trace_flag::END));
    assert_eq!(bytes, &expected(100));
    assert_eq!((second.trace, second.size), (8, 7));
    assert!(found.notes.is_empty(), "{:?}", found.notes);
}

#[test]
fn thread_trace_stream_is_written_in_parts_when_it_is_long() {
    const LENGTH: usize = (5 << 19) + 3;
    let found = run(OPTIONS, &[&format!("traced:1:1:{LENGTH}")]);
    let offsets: Vec<u64> = found.parts.iter().map(|(part, _)| part.offset).collect();
    assert_eq!(offsets, [0, 1 << 20, 2 << 20]);
    let flags: Vec<u32> = found.parts.iter().map(|(part, _)| part.flags).collect();
    assert_eq!(flags, [0, 0, trace_flag::END]);
    let bytes: Vec<u8> = found
        .parts
        .iter()
        .flat_map(|(_, bytes)| bytes.clone())
        .collect();
    assert!(bytes == expected(LENGTH));
}

#[test]
fn thread_trace_parts_of_later_providers_are_taken_in_any_order() {
    let found = run_as(provider(), "10300", OPTIONS, &["traced:1:1:11"]);
    let parts: Vec<_> = (found.parts.iter())
        .map(|(part, bytes)| (part.chunk, part.size, part.flags, bytes.as_slice()))
        .collect();
    let all = expected(11);
    assert_eq!(
        parts,
        [
            (1, 6, trace_flag::END | trace_flag::FULL, &all[5..]),
            (0, 5, 0, &all[..5])
        ]
    );
}

#[test]
fn thread_trace_notes_devices_and_options_that_the_provider_refuses() {
    // All GPUs: the second one refuses.
    let found = run("2:3:16:1048576:0:0:0:0:0:0//", &["traced:1:1:1"]);
    assert_eq!(found.parts.len(), 1);
    assert!(
        found.notes[0].starts_with("GPU 1 is not traced: the provider reports: "),
        "{:?}",
        found.notes
    );
    let found = run_as(
        provider_without_tracing(),
        "10000",
        OPTIONS,
        &["traced:1:1:1"],
    );
    assert!(found.parts.is_empty());
    assert_eq!(
        found.notes,
        [
            "no thread trace is recorded: this provider does not have the thread trace service (SDK 1.0 and later have it)"
        ]
    );
    let found = run("2:3:16:1048576:0:0:0:1:0:0/0/", &["traced:1:1:1"]);
    assert_eq!(
        found.notes,
        ["no thread trace is recorded: --att-no-detail needs a provider of version 1.1 or later"]
    );
    let found = run("2:3:16:1048576:0:0:0:0:1:0/0/", &["traced:1:1:1"]);
    assert_eq!(
        found.notes,
        [
            "no thread trace is recorded: --att-perfcounter-target-only needs a provider of version 1.1 or later"
        ]
    );
    let found = run_as(provider(), "10100", "2:3:16:1048576:0:0:0:1:0:0/0/", &[]);
    assert_eq!(found.printed, "dispatches 77: 0=2 1=16 2=1048576 3=3 8=1\n");
}

#[test]
fn thread_trace_of_the_whole_run_uses_the_service_of_devices() {
    let found = run(WHOLE, &[]);
    assert_eq!(found.printed, DELIVERED);
    assert_eq!(found.tracing[0].0.whole_agent, 1);
}

#[test]
fn thread_trace_is_delivered_when_the_program_calls_exit() {
    assert_eq!(run(WHOLE, &["exit"]).printed, DELIVERED);
}

/// The provider faults when it is to stop a trace after the runtime's end.
#[test]
fn thread_trace_is_delivered_before_the_runtime_ends() {
    for words in [
        &["shut-down"][..],
        &["hsa-again", "shut-down", "shut-down"],
        &["shut-down", "shut-down", "exit"],
    ] {
        assert_eq!(run(WHOLE, words).printed, DELIVERED, "{words:?}");
    }
}

#[test]
fn thread_trace_of_consecutive_kernels_uses_the_service_of_devices() {
    let found = run("2:3:16:1048576:0:1:3:0:0:0/0/", &[]);
    assert_eq!(found.printed, "device 77: 0=2 1=16 2=1048576 3=3\n");
    assert_eq!(found.tracing[0].0.whole_agent, 1);
}

/// The packets that end such a trace would go to a queue that the child does not have.
#[test]
fn thread_trace_of_a_parent_is_not_ended_by_its_forked_child() {
    let found = run(WHOLE, &["fork", "pause"]);
    assert_eq!(found.printed, DELIVERED);
}
