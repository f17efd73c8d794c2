//! Counters, from the options to the values that a reader of the spool gets.

use std::path::PathBuf;

use rpd_core::session::{DispatchTable, LoadOptions, Session};
use rpd_spool::kernel_filter;
use rpd_spool::reader::processes;
use rpd_spool::{EXCLUDE_FILE, EXTRA_COUNTERS_FILE, INCLUDE_FILE};

use crate::harness::{launch, provider, provider_without_counting};

/// Runs a script with these files. Returns the provider's output, and the sessions of all processes, oldest first.
fn script_with(options: &str, words: &str, files: &[(&str, Vec<u8>)]) -> (String, Vec<Session>) {
    let arguments: Vec<&str> = std::iter::once("script").chain(words.split(' ')).collect();
    let (status, printed, run) = launch(provider(), options, &arguments, files);
    assert!(status.success(), "{status}: {printed}");
    let sessions = processes(run.path()).expect("listed");
    let open = |path: &PathBuf| Session::open(path, LoadOptions::default()).expect("readable");
    (printed, sessions.iter().map(open).collect())
}

/// Runs a script without files, as [`script_with`] does. Returns the provider's output and the session of the one
/// process.
fn script(options: &str, words: &str) -> (String, Session) {
    let (printed, mut sessions) = script_with(options, words, &[]);
    assert_eq!(sessions.len(), 1);
    (printed, sessions.remove(0))
}

/// Number, counters and sums of every counted dispatch.
fn counted(session: &Session) -> Vec<(u64, String)> {
    let table = &session.counted;
    let mut counted: Vec<(u64, String)> = (0..table.len())
        .map(|index| {
            let texts: Vec<String> = table
                .sums(index)
                .map(|(counter, sum)| format!("{}={sum}", session.counters[counter as usize].name))
                .collect();
            (table.dispatches.dispatch[index].0, texts.join(" "))
        })
        .collect();
    counted.sort();
    counted
}

fn numbers(session: &Session) -> Vec<u64> {
    counted(session).iter().map(|(number, _)| *number).collect()
}

#[test]
fn counting_gives_each_dispatch_the_values_of_its_group() {
    let (printed, session) = script("counters=WAVES+HITS+WAVES", "run:3:0:3");
    // Once, in the order of names.
    assert_eq!(printed, "config 0 HITS WAVES\nconfig 1 WAVES\n");
    // HITS has two values: 2000 + n and 2100 + n.
    let expected = [1, 2, 3].map(|n| (n, format!("WAVES={} HITS={}", 1000 + n, 4100 + 2 * n)));
    assert_eq!(counted(&session), expected);
    let [waves, hits, _] = &session.counters[..] else {
        panic!("{:?}", session.counters);
    };
    assert_eq!((waves.agent.0, waves.is_derived), (77, false));
    assert_eq!((hits.name.as_str(), hits.is_derived), ("HITS", true));
    let dimensions: Vec<_> = hits
        .dimensions
        .iter()
        .map(|found| (found.id, found.size, found.name.as_str()))
        .collect();
    assert_eq!(
        dimensions,
        [(1, 1, "DIMENSION_XCC"), (7, 2, "DIMENSION_INSTANCE")]
    );
    let positions: Vec<_> = hits
        .instances
        .iter()
        .map(|found| &found.positions[..])
        .collect();
    assert_eq!(positions, [[(1, 0), (7, 0)], [(1, 0), (7, 1)]]);
    assert!(session.ledger.notes.is_empty() && session.ledger.damage.is_empty());
}

#[test]
fn counting_finds_dimensions_where_descriptions_are_of_version_0() {
    let (_, session) = script("counters=OLD", "run:3:0:1");
    let old = &session.counters[0];
    assert_eq!(
        (old.name.as_str(), old.description.as_str()),
        ("OLD", "what it counts")
    );
    assert_eq!(old.dimensions.len(), 1);
    let positions: Vec<_> = old
        .instances
        .iter()
        .map(|found| &found.positions[..])
        .collect();
    assert_eq!(positions, [[(7, 0)], [(7, 1)]]);
}

#[test]
fn counting_and_tracing_record_the_same_of_a_dispatch() {
    const WORDS: &str = "push:region stream run:3:0:2 unstream pop run:3:1:1";
    let identity = |table: &DispatchTable| -> Vec<String> {
        let mut rows: Vec<String> = (0..table.len())
            .map(|i| {
                format!(
                    "{:?}",
                    (
                        table.dispatch[i],
                        table.thread[i],
                        table.correlation[i],
                        (table.start[i], table.end[i]),
                        (table.agent[i], table.queue[i], table.kernel[i]),
                        (table.stream[i], table.region[i], table.grid[i]),
                    )
                )
            })
            .collect();
        rows.sort();
        rows
    };
    let (_, session) = script("kernel=1,kernel_rename=1,streams=1,counters=WAVES", WORDS);
    assert_eq!(session.dispatches.len(), 3);
    assert_eq!(
        identity(&session.dispatches),
        identity(&session.counted.dispatches)
    );
    assert_eq!(session.dispatches.thread[0].0, session.process.pid.0);
    // And without a trace of kernels.
    let (_, session) = script("kernel_rename=1,streams=1,counters=WAVES", WORDS);
    assert!(session.dispatches.is_empty());
    let table = &session.counted.dispatches;
    let of_first = table
        .dispatch
        .iter()
        .position(|number| number.0 == 1)
        .expect("counted");
    assert_eq!((table.stream[of_first].0, table.region[of_first]), (1, 1));
}

#[test]
fn counting_uses_the_counters_that_each_gpu_has() {
    let (printed, session) = script(
        "counters=WAVES+ONLY1+HITS:0+OLD:1+NOPE",
        "run:3:0:1 run:3:1:1",
    );
    assert_eq!(printed, "config 0 HITS WAVES\nconfig 1 ONLY1 WAVES\n");
    assert_eq!(
        counted(&session),
        [
            (1, "WAVES=1001 HITS=4102".to_owned()),
            (2, "WAVES=11002 ONLY1=12002".to_owned())
        ]
    );
    assert!(
        session
            .counters
            .iter()
            .any(|found| found.name == "ONLY1" && found.is_constant)
    );
    assert_eq!(
        session.ledger.notes,
        ["NOPE is not counted: no GPU here has a counter of that name"]
    );
    // A device that is not there is no counter that is missing.
    let (printed, session) = script("counters=WAVES:7", "run:3:0:1");
    assert_eq!((printed.as_str(), session.counted.len()), ("", 0));
    assert!(session.ledger.notes.is_empty());
}

#[test]
fn counter_groups_take_turns_at_the_interval() {
    let (printed, session) = script(
        "counters=WAVES/BUSY/HITS:0,group_interval=2",
        "run:3:0:3 run:3:1:2 run:3:0:5",
    );
    assert_eq!(
        printed,
        "config 0 WAVES\nconfig 0 BUSY\nconfig 0 HITS\nconfig 1 WAVES\n"
    );
    let names: Vec<String> = counted(&session)
        .iter()
        .map(|(number, text)| format!("{number}{}", &text[..1]))
        .collect();
    // Numbers 4 and 5 ran on the other GPU, which has one group only.
    assert_eq!(
        names,
        ["1W", "2W", "3B", "4W", "5W", "6B", "7H", "8H", "9W", "10W"]
    );
}

#[test]
fn counter_group_that_cannot_be_collected_is_noted() {
    let (printed, session) = script("counters=BROKEN+WAVES:0/BUSY", "run:3:0:4");
    assert_eq!(printed, "config 0 BROKEN WAVES\nconfig 0 BUSY\n");
    assert_eq!(numbers(&session), [1, 2, 3, 4]);
    assert_eq!(
        session.ledger.notes,
        ["BROKEN WAVES is not counted on GPU 0: the provider reports: some error"]
    );
}

#[test]
fn counting_selects_dispatches_by_filters_and_iterations() {
    let include = || {
        (
            INCLUDE_FILE,
            kernel_filter::compile("^void .*<float>").expect("a pattern"),
        )
    };
    let exclude = || {
        (
            EXCLUDE_FILE,
            kernel_filter::compile("subtract").expect("a pattern"),
        )
    };
    const WORDS: &str = "kernel:3:_Z8additionIfEvPT_.kd kernel:4:_Z8subtractIfEvPT_.kd kernel:5:plain.kd \
                         run:3:0:2 run:4:0:2 run:5:0:2 run:0:0:1 run:3:0:1";
    let count = |options: &str, files: &[(&str, Vec<u8>)]| {
        let (_, sessions) = script_with(&format!("kernel=1,{options}"), WORDS, files);
        // Traces stay whole.
        assert_eq!(sessions[0].dispatches.len(), 8);
        assert!(sessions[0].ledger.notes.is_empty());
        numbers(&sessions[0])
    };
    assert_eq!(count("counters=WAVES", &[]), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        count("counters=WAVES,kernel_include=1", &[include()]),
        [1, 2, 3, 4, 8]
    );
    assert_eq!(
        count("counters=WAVES,kernel_exclude=1", &[exclude()]),
        [1, 2, 5, 6, 7, 8]
    );
    assert_eq!(
        count(
            "counters=WAVES,kernel_include=1,kernel_exclude=1,iterations=2:3",
            &[include(), exclude()]
        ),
        [2, 8]
    );
    assert_eq!(
        count("counters=WAVES,iterations=1:1+3:9", &[]),
        [1, 3, 5, 7, 8]
    );
    // The name that is matched is the one that is shown; unknown kernels are called 0.
    let pattern = |text: &str| {
        (
            INCLUDE_FILE,
            kernel_filter::compile(text).expect("a pattern"),
        )
    };
    assert_eq!(
        count(
            "counters=WAVES,kernel_include=1,match_mangled=1",
            &[pattern("IfEv.*\\.kd$")]
        ),
        [1, 2, 3, 4, 8]
    );
    assert_eq!(
        count(
            "counters=WAVES,kernel_include=1,match_truncated=1",
            &[pattern("^addition$")]
        ),
        [1, 2, 8]
    );
    assert_eq!(
        count("counters=WAVES,kernel_include=1", &[pattern("^0$")]),
        [7]
    );
}

#[test]
fn counting_is_off_with_a_filter_that_is_no_table() {
    let files = [(INCLUDE_FILE, b"kernel".to_vec())];
    let (_, sessions) = script_with(
        "kernel=1,counters=WAVES,kernel_include=1",
        "run:3:0:2",
        &files,
    );
    assert_eq!(
        (sessions[0].dispatches.len(), sessions[0].counted.len()),
        (2, 0)
    );
    assert_eq!(
        sessions[0].ledger.notes,
        ["nothing is counted: the kernel filter kernel-include cannot be used"]
    );
}

#[test]
fn counting_has_one_thread_make_the_configurations() {
    // Two threads submit their first kernels at once; the SDK's hardware tables would not survive both asking.
    let (printed, session) = script("counters=WAVES:0", "meet run:3:0:1");
    assert_eq!(printed, "config 0 WAVES\n");
    assert_eq!(session.counted.len(), 3);
    assert_eq!(session.counters.len(), 1);
}

#[test]
fn counting_starts_when_the_runtime_is_initialised() {
    // A process that forks before that must not have started: the child lacks the SDK's own thread.
    let (_, session) = script("counters=WAVES", "run:3:0:1 hsa run:3:0:1 hsa run:3:0:1");
    assert_eq!(numbers(&session), [2, 3]);
}

#[test]
fn pause_and_resume_are_obeyed_without_markers() {
    const OPTIONS: &str = "kernel=1,hip_runtime=1,counters=WAVES";
    let (_, session) = script(
        OPTIONS,
        "run:3:0:1 call pause pause run:3:0:1 call resume run:3:0:1 call",
    );
    assert_eq!(numbers(&session), [1, 3]);
    assert_eq!(session.dispatches.len(), 2);
    // Only the calls of the program: pause and resume are not records without markers.
    assert_eq!(session.calls.len(), 2);
}

#[test]
fn counting_of_selected_regions_begins_with_a_resume() {
    const WORDS: &str = "kernel:3:a.kd run:3:0:1 resume run:3:0:1 resume run:3:0:1 pause run:3:0:1 pause run:3:0:1 \
                         resume run:3:0:1 pause pause run:3:0:1 resume run:3:0:1";
    let (_, session) = script("kernel=1,counters=WAVES,selected_regions=1", WORDS);
    assert_eq!(numbers(&session), [2, 3, 6, 8]);
    assert_eq!(session.dispatches.len(), 4);
    assert_eq!(session.kernel_symbols.len(), 1);
    let options = "kernel=1,counters=WAVES,selected_regions=1,selected_regions_ref_count=1";
    let (_, session) = script(options, WORDS);
    assert_eq!(numbers(&session), [2, 3, 4, 6, 8]);
    assert_eq!(session.dispatches.len(), 5);
}

#[test]
fn collection_periods_switch_counters_and_traces() {
    // Half a second without, half a second with, twice; then nothing more. Looked at right after each change.
    let (_, session) = script(
        "kernel=1,counters=WAVES,periods=500000000:500000000:2",
        "kernel:3:a.kd run:3:0:1 on run:3:0:1 off run:3:0:1 on run:3:0:1 off run:3:0:1 sleep:600 run:3:0:1",
    );
    assert_eq!(numbers(&session), [2, 4]);
    assert_eq!(session.dispatches.len(), 2);
    assert_eq!(session.kernel_symbols.len(), 1);
}

#[test]
fn collection_periods_repeat_without_end() {
    // Each waits for the next change.
    let (_, session) = script(
        "kernel=1,counters=WAVES,periods=5000000:5000000:0",
        "on off on off on off",
    );
    assert!(session.ledger.ended);
    // A process that ends during a collection period does not wait for the end of the period.
    let options = "kernel=1,counters=WAVES,periods=0:1:1+0:3600000000000:0";
    let (_, session) = script(options, "on sleep:10 on run:3:0:1");
    assert_eq!(numbers(&session), [1]);
    assert!(session.ledger.ended);
}

#[test]
fn collector_threads_take_no_signals() {
    let (printed, _) = script("counters=WAVES,periods=3600000000000:1:1", "masked");
    // Lines: signal mask of the program; of the threads for rpd control, for collection periods and for the time after a
    // signal.
    let masks: Vec<&str> = printed.lines().collect();
    let (program, threads) = masks.split_first().expect("the mask of the program");
    assert_eq!(*program, "0000000000000000");
    assert_eq!(threads.len(), 3, "{printed}");
    // All but those that cannot be blocked, and what the C library keeps for itself.
    assert!(
        threads.iter().all(|mask| mask.starts_with("ffff")),
        "{printed}"
    );
}

#[test]
fn forked_child_counts_its_own_dispatches() {
    let (printed, sessions) = script_with(
        "kernel=1,counters=WAVES+HITS",
        "run:3:0:2 fork run:3:0:1",
        &[],
    );
    let [parent, child] = &sessions[..] else {
        panic!("{} processes", sessions.len());
    };
    assert_eq!(numbers(parent), [1, 2]);
    // The facts that its records refer to are there, though the provider reported them to the parent. Number 99 was the parent's.
    assert_eq!(counted(child), [(3, "WAVES=1003 HITS=4106".to_owned())]);
    assert!(child.ledger.damage.is_empty());
    assert_eq!(printed, "config 0 HITS WAVES\nconfig 1 WAVES\n");
}

#[test]
fn forked_child_ends_though_its_provider_is_stuck() {
    let (status, printed, _) = launch(provider(), "counters=WAVES", &["stuck"], &[]);
    assert!(status.success());
    assert_eq!(printed, "kept and last 7\n");
}

#[test]
fn forked_child_ends_with_its_status_though_its_provider_faults() {
    // Traces of dispatches, and of what a program that has not resumed yet would have recorded.
    for options in [
        "counters=WAVES",
        "thread_trace=2:3:16:1048576:0:0:0:0:0:0/0/",
        "thread_trace=2:3:16:1048576:0:1:3:0:0:0/0/",
    ] {
        let (status, printed, _) = launch(provider(), options, &["faulting"], &[]);
        assert!(status.success());
        assert!(printed.contains("kept and last "), "{options}: {printed}");
        assert!(printed.ends_with("7\n"), "{options}: {printed}");
    }
}

#[test]
fn collection_periods_go_on_in_a_forked_child() {
    let words = "on run:3:0:1 fork run:3:0:1 off run:3:0:1";
    let (_, sessions) = script_with("kernel=1,counters=WAVES,periods=0:1500000000:1", words, &[]);
    let [parent, child] = &sessions[..] else {
        panic!("{} processes", sessions.len());
    };
    assert_eq!((numbers(parent), numbers(child)), (vec![1], vec![2]));
}

#[test]
fn counter_definitions_reach_the_provider_before_counters_are_queried() {
    let files = |text: &str| [(EXTRA_COUNTERS_FILE, text.as_bytes().to_vec())];
    const OPTIONS: &str = "counters=WAVES:0,extra_counters=1";
    let (printed, sessions) = script_with(OPTIONS, "run:3:0:1", &files("fine"));
    // 2: in addition to the provider's own.
    assert_eq!(printed, "definitions 2 fine\nconfig 0 WAVES\n");
    assert!(sessions[0].ledger.notes.is_empty());
    let (_, sessions) = script_with(OPTIONS, "run:3:0:1", &files("unreadable"));
    assert_eq!(
        sessions[0].ledger.notes,
        ["the extra counters are not defined: the provider reports: some error"]
    );
    assert_eq!(numbers(&sessions[0]), [1]);
}

#[test]
fn provider_that_cannot_count_is_noted_once() {
    let program = provider_without_counting();
    let (status, _, run) = launch(
        program,
        "kernel=1,counters=WAVES",
        &["dispatches", "3"],
        &[],
    );
    assert!(status.success());
    let spool = processes(run.path()).expect("listed").remove(0);
    let session = Session::open(&spool, LoadOptions::default()).expect("readable");
    assert_eq!(session.dispatches.len(), 4);
    assert_eq!(
        session.ledger.notes,
        ["nothing is counted: this provider does not have dispatch counting"]
    );
}
