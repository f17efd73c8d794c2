//! Rules about what operations wait for in other streams, in functions of the host, and in other ranks.

use super::{fired, judged};
use crate::answer::Value;
use crate::examples::{Example, us};
use crate::records::Memory;

/// Kernels of two streams with one of the null stream between them, all launched ahead. `waits` tells whether the null stream and the
/// others wait for one another.
fn with_null_stream(waits: bool) -> Memory {
    let mut example = Example::new();
    for number in 0..40_u64 {
        let (call, begin) = (number * 6, 300 + number * 150);
        for stream in [1, 2] {
            let at = call + u64::from(stream);
            let end = begin + 100;
            let op = example.launched("hipLaunchKernel", (at, at + 1), "A", begin, end);
            (op.stream, op.queue) = (stream, stream);
        }
        let begin = if waits {
            begin + 100
        } else {
            300 + number * 50
        };
        let at = call + 4;
        let op = example.launched("hipLaunchKernel", (at, at + 1), "N", begin, begin + 50);
        (op.stream, op.queue) = (0, 3);
    }
    example.done()
}

#[test]
fn null_stream_that_others_wait_for_is_found() {
    let found = fired(&with_null_stream(true));
    assert!(found.contains(&"null-stream".to_owned()), "{found:?}");
    let found = fired(&with_null_stream(false));
    assert!(!found.contains(&"null-stream".to_owned()), "{found:?}");
}

#[test]
fn streams_on_one_queue_wait_for_one_another() {
    let queues = |shared: bool| {
        let mut example = Example::new();
        for number in 0..40_u64 {
            for stream in [1, 2_u32] {
                let call = number * 4 + u64::from(stream);
                let slot = if shared {
                    2 * number + u64::from(stream)
                } else {
                    number
                };
                let begin = 200 + slot * 100;
                let op =
                    example.launched("hipLaunchKernel", (call, call + 1), "A", begin, begin + 100);
                (op.stream, op.queue) = (stream, if shared { 7 } else { stream });
            }
        }
        fired(&example.done())
    };
    assert!(queues(true).contains(&"queue-shared".to_owned()));
    assert!(!queues(false).contains(&"queue-shared".to_owned()));
}

#[test]
fn function_of_the_host_in_a_stream_holds_its_kernels_back() {
    let with = |function: &str| {
        let mut example = Example::new();
        for number in 0..40_u64 {
            let (call, begin) = (number * 4, 500 + number * 300);
            example.launched("hipLaunchKernel", (call, call + 1), "A", begin, begin + 100);
            example.last_fills_gpu();
            example.call(function, call + 2, call + 3);
        }
        fired(&example.done())
    };
    assert_eq!(with("hipLaunchHostFunc")[0], "host-func");
    assert!(!with("hipEventRecord").contains(&"host-func".to_owned()));
}

#[test]
fn time_for_which_an_interpreter_is_late_is_nobodys_fault() {
    let found = |is_simulated: bool| {
        let mut example = Example::new();
        for number in 0..60_u64 {
            let (call, begin) = (number * 4, 500 + number * 1_000);
            example.launched("hipLaunchKernel", (call, call + 1), "A", begin, begin + 200);
            example.last_fills_gpu();
        }
        example.memory().facts.gpus[0].is_simulated = is_simulated;
        fired(&example.done())
    };
    assert_eq!(found(false), ["low-utilisation"]);
    assert_eq!(found(true), Vec::<String>::new());
}

/// Collectives of four ranks, each a process with a GPU; durations in microseconds, one series for each rank. Clocks of the last two
/// ranks are `shift` microseconds ahead.
fn ranks(times: [&[u64]; 4], repeat: u64, shift: u64) -> Memory {
    let mut example = Example::new();
    for rank in 0..4_u32 {
        let (process, gpu) = if rank == 0 {
            (0, 0)
        } else {
            (example.process(), example.gpu())
        };
        let mut end = if rank >= 2 { shift } else { 0 };
        for step in 0..repeat {
            for time in times[rank as usize] {
                end += 100;
                let number = step % 3;
                let begin = end - 90;
                let op = example.op(&format!("A{number}"), begin, end - 60);
                (op.process, op.gpu) = (process, gpu);
                let op = example.op("ncclDevKernel_Generic_1", end - time, end);
                (op.process, op.gpu) = (process, gpu);
            }
        }
    }
    example.done()
}

const S1: [&[u64]; 4] = [
    &[30, 28, 32, 30],
    &[10, 11, 9, 10],
    &[31, 30, 30, 29],
    &[29, 31, 31, 30],
];

// answers-36 and answers-37
#[test]
fn rank_that_comes_last_to_collectives_is_found_without_comparing_clocks() {
    for shift in [0, 1_000_000] {
        let memory = ranks(S1, 4, shift);
        let answer = judged(&memory);
        let findings = answer.section("findings").expect("findings");
        let row = (0..findings.rows.len())
            .find(|row| findings.get(*row, "rule") == Some(&"straggler".into()));
        // In four collectives the others wait 20, 19, 21 and 20 us; the first ones are no part of the window.
        let lost = row.and_then(|row| findings.get(row, "gain_ns")?.number());
        let lost = lost.expect("a gain");
        let whole = us(4 * 80) as f64;
        assert!((whole / 2.0..=whole).contains(&lost), "{lost}");
        let evidence = answer.section("evidence").expect("evidence");
        let rows = 0..evidence.rows.len();
        let texts: Vec<&str> = rows
            .filter(|row| evidence.get(*row, "rule") == Some(&"straggler".into()))
            .filter_map(|row| evidence.get(row, "value").and_then(Value::text))
            .collect();
        assert!(
            texts
                .iter()
                .any(|text| text.starts_with("process 8, GPU 1: delays 1")
                    && text.ends_with(", waits 0 ns")),
            "{texts:?}"
        );
    }
    // Two few to tell, and none that is late.
    for memory in [
        ranks(S1, 2, 0),
        ranks([&[30, 29], &[29, 30], &[30, 30], &[29, 29]], 10, 0),
    ] {
        let found = fired(&memory);
        assert!(!found.contains(&"straggler".to_owned()), "{found:?}");
    }
}
