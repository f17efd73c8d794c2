//! Gaps of the worked examples and of random programs.

use proptest::prelude::*;

use super::*;
use crate::answer::Value;
use crate::examples::{Example, g1, g2, g3, us};
use crate::records::Memory;

fn every() -> Options {
    Options {
        min: 0,
        limit: None,
        ..Options::default()
    }
}

fn found(memory: &Memory, options: &Options) -> Gaps {
    let gaps = find(memory, options);
    for gap in &gaps.listed {
        assert_eq!(gap.parts.total(), gap.length(), "{gap:?}");
    }
    gaps
}

/// Start, end, copy, host, launch, turnaround, graph, wait and unrecorded of the gaps in their order, in microseconds.
fn table(gaps: &Gaps) -> Vec<[u64; 9]> {
    let mut listed = gaps.listed.clone();
    listed.sort_by_key(|gap| gap.start);
    let row = |gap: &Gap| {
        let mut row = [gap.start, gap.end, 0, 0, 0, 0, 0, 0, 0];
        for (to, part) in row[2..].iter_mut().zip(gap.parts.each()) {
            *to = part.1;
        }
        row.map(|time| time / 1_000)
    };
    listed.iter().map(row).collect()
}

// answers-11
#[test]
fn gaps_of_g1_are_split_as_in_the_example() {
    let gaps = found(&g1().done(), &every());
    assert_eq!(
        table(&gaps),
        [
            [120, 125, 0, 0, 0, 5, 0, 0, 0],
            [225, 290, 0, 35, 10, 0, 0, 20, 0],
            [390, 460, 50, 5, 0, 0, 0, 15, 0],
        ]
    );
    let sums = gaps.scopes[0];
    assert_eq!(sums.parts.host, [us(5), 0, 0, 0, 0, us(35)]);
    assert_eq!((sums.busy, sums.parts.total()), (us(400), us(140)));
    let answer = gaps.answer(&g1().done());
    let summary = answer.section("summary").expect("a summary");
    assert_eq!(summary.get(0, "verdict"), Some(&Value::from("mixed")));
    assert_eq!(summary.get(0, "window_ns"), Some(&Value::from(us(540))));
    let longest = gaps.listed[0].call;
    assert_eq!(
        longest, None,
        "the host part of the longest gap is the program's own"
    );
    assert_eq!(gaps.listed[1].call.expect("a call").length, us(5));
}

// answers-12
#[test]
fn gaps_of_any_operation_end_at_copies_too() {
    let options = Options {
        of: Of::Any,
        ..every()
    };
    let gaps = found(&g1().done(), &options);
    let lengths: Vec<u64> = table(&gaps).iter().map(|row| row[1] - row[0]).collect();
    assert_eq!(lengths, [5, 65, 5, 15]);
    assert_eq!(gaps.scopes[0].busy, us(450));
}

// answers-13
#[test]
fn gaps_between_launches_that_follow_at_once_are_all_launch() {
    let memory = g2().done();
    let gaps = found(&memory, &every());
    let sums = gaps.scopes[0];
    assert_eq!(sums.gaps, 999);
    assert_eq!(
        (sums.parts.launch, sums.parts.total()),
        (us(999 * 5), us(999 * 5))
    );
    assert_eq!((sums.busy, sums.window), (us(3_000), (us(10), us(8_005))));
    let answer = gaps.answer(&memory);
    let verdict = answer.sections[0].get(0, "verdict");
    assert_eq!(verdict, Some(&Value::from("host-bound")));
}

// answers-14
#[test]
fn gaps_inside_a_graph_launch_are_the_graphs() {
    let gaps = found(&g3().done(), &every());
    let parts = gaps.scopes[0].parts;
    assert_eq!(
        (parts.graph, parts.host_time(), parts.total()),
        (us(20), 0, us(20))
    );
}

// answers-15
#[test]
fn gaps_without_calls_are_unrecorded_but_for_copies() {
    let mut example = g1();
    example.forget_calls();
    let memory = example.done();
    let gaps = found(&memory, &every());
    let parts = gaps.scopes[0].parts;
    assert_eq!(
        (parts.unrecorded, parts.copy, parts.total()),
        (us(90), us(50), us(140))
    );
    let answer = gaps.answer(&memory);
    let lacks = |what| answer.missing.iter().find(|missing| missing.what == what);
    assert_eq!(lacks("hip_calls").expect("missing").record, "--hip-trace");
    assert_eq!(
        answer.sections[0].get(0, "verdict"),
        Some(&Value::from("unknown"))
    );
}

// answers-16
#[test]
fn gaps_below_the_least_length_are_one_row() {
    let options = Options {
        min: us(10),
        ..every()
    };
    let memory = g1().done();
    let gaps = found(&memory, &options);
    assert_eq!((gaps.listed.len(), gaps.scopes[0].short_gaps), (2, 1));
    let answer = gaps.answer(&memory);
    let rows = answer.section("gaps").expect("gaps");
    assert_eq!(rows.get(2, "cause"), Some(&Value::from("short")));
    assert_eq!(rows.get(2, "gap_ns"), Some(&Value::from(us(5))));
    assert_eq!(rows.get(2, "turnaround_ns"), Some(&Value::from(us(5))));
}

// answers-17
#[test]
fn gap_before_another_process_is_due_to_that_process() {
    let mut example = Example::new();
    example.launched("hipLaunchKernel", (0, 5), "K1", 10, 20);
    let other = example.process();
    let mut launch = {
        let call = example.call("hipLaunchKernel", 50, 55);
        example.launch(call)
    };
    launch.thread = other;
    example.memory().calls.last_mut().expect("a call").thread = other;
    let call = example.call("hipMalloc", 15, 30);
    example.memory().calls[call as usize - 1].thread = other;
    // The first thread's call does not count.
    example.call("hipStreamSynchronize", 11, 45);
    let op = example.op("K2", 62, 70);
    (op.launch, op.process) = (Some(launch), other);
    let gaps = found(&example.done(), &every());
    let parts = gaps.listed[0].parts;
    assert_eq!(parts.host, [0, us(10), 0, 0, 0, us(20)]);
    assert_eq!((parts.launch, parts.wait), (us(10), us(2)));
}

// answers-18
#[test]
fn edges_of_a_given_window_are_gaps_only_when_requested() {
    let given = Options {
        window: Some((us(10), us(600))),
        ..every()
    };
    let with_edges = Options {
        edges: true,
        ..given
    };
    let memory = g1().done();
    let gaps = found(&memory, &given);
    assert_eq!(gaps.scopes[0].parts.total(), us(140));
    let gaps = found(&memory, &with_edges);
    let table = table(&gaps);
    assert_eq!(
        (table[0][..2].to_vec(), table[4][..2].to_vec()),
        (vec![10, 20], vec![560, 600])
    );
    let sums = gaps.scopes[0];
    assert_eq!(sums.busy + sums.parts.total(), us(590));
}

// answers-5
#[test]
fn window_cuts_operations_and_gaps() {
    let options = Options {
        window: Some((us(100), us(240))),
        ..every()
    };
    let gaps = found(&g1().done(), &options);
    assert_eq!(
        (gaps.scopes[0].busy, gaps.scopes[0].parts.total()),
        (us(120), us(5))
    );
}

// answers-6
#[test]
fn queue_has_a_gap_that_its_gpu_does_not_have() {
    let mut example = Example::new();
    example.op("A", 0, 50);
    example.op("B", 20, 120).queue = 1;
    example.op("C", 100, 150);
    let memory = example.done();
    assert_eq!(found(&memory, &every()).listed, []);
    let options = Options {
        scope: Scope::Queue,
        ..every()
    };
    let gaps = found(&memory, &options);
    assert_eq!(table(&gaps).len(), 1);
    assert_eq!(table(&gaps)[0][..2], [50, 100]);
    assert_eq!(gaps.scopes[gaps.listed[0].scope].part, 0);
}

// answers-20
#[test]
fn operation_before_its_call_has_no_latency_and_is_skew() {
    let mut example = Example::new();
    example.launched("hipLaunchKernel", (15, 20), "K", 10, 30);
    let gaps = found(&example.done(), &every());
    assert_eq!(gaps.skew, us(5));
}

// answers-22
#[test]
fn floor_is_measured_from_twenty_operations_on() {
    for (count, is_measured, floor) in [(19, false, 10_000), (20, true, 2_000)] {
        let mut example = Example::new();
        for number in 0..count {
            let call = 100 * number;
            example.launched(
                "hipLaunchKernel",
                (call, call + 1),
                "K",
                call + 2,
                call + 20,
            );
        }
        let gaps = found(&example.done(), &every());
        assert_eq!(
            (gaps.floors.is_launch_measured, gaps.floors.launch),
            (is_measured, floor)
        );
    }
}

// answers-10
#[test]
fn recording_without_operations_is_empty_and_says_what_to_record() {
    let memory = Example::new().done();
    let answer = found(&memory, &every()).answer(&memory);
    assert!(answer.is_empty);
    assert_eq!(
        answer.missing[0].record,
        "--kernel-trace --memory-copy-trace"
    );
}

// answers-4
#[test]
fn operation_that_ends_before_its_start_has_no_length() {
    let mut example = g1();
    example.op("K5", 600, 590);
    let memory = example.done();
    let gaps = found(&memory, &every());
    assert_eq!(
        (gaps.scopes[0].parts.total(), gaps.without_length),
        (us(140), 1)
    );
    let answer = gaps.answer(&memory);
    assert!(
        answer
            .warnings
            .iter()
            .any(|warning| warning.code == "zero-length")
    );
}

#[test]
fn copies_before_the_first_and_behind_the_last_kernel_are_gaps_of_the_span() {
    let mut example = Example::new();
    example.launched(
        "hipMemcpyAsync",
        (0, 5),
        "MEMORY_COPY_HOST_TO_DEVICE",
        10,
        20,
    );
    example.launched("hipLaunchKernel", (5, 10), "K", 30, 50);
    example.launched(
        "hipMemcpyAsync",
        (60, 65),
        "MEMORY_COPY_DEVICE_TO_HOST",
        75,
        80,
    );
    let gaps = found(&example.done(), &every());
    assert_eq!(
        table(&gaps),
        [
            // copy, host, launch, turnaround, graph, wait
            [10, 30, 10, 0, 0, 0, 0, 10, 0],
            [50, 80, 5, 10, 10, 0, 0, 5, 0],
        ]
    );
}

proptest! {
    #[test]
    fn gaps_and_busy_time_add_up_to_the_span(
        ops in prop::collection::vec((0_u64..300, 1_u64..40, 0_u64..60, 0_u8..4), 1..40),
        of_any: bool,
    ) {
        let mut example = Example::new();
        for (start, length, before, kind) in ops {
            let name = ["A", "MEMORY_COPY_HOST_TO_DEVICE", "B", "__amd_rocclr_fillBuffer"][usize::from(kind)];
            let begin = start.saturating_sub(before);
            if kind == 2 {
                example.op(name, start, start + length);
            } else {
                example.launched("hipLaunchKernel", (begin, begin + 3), name, start, start + length);
            }
        }
        let of = if of_any { Of::Any } else { Of::Kernels };
        let gaps = found(&example.done(), &Options { of, ..every() });
        let sums = gaps.scopes[0];
        prop_assert_eq!(sums.busy + sums.parts.total(), sums.window.1 - sums.window.0);
        let listed: u64 = gaps.listed.iter().map(Gap::length).sum();
        prop_assert_eq!(listed, sums.parts.total());
    }
}
