//! Reports of the worked examples.

use super::*;
use crate::answer::Value;
use crate::examples::{Example, g1, us};
use crate::records::Memory;

fn section(memory: &Memory, name: &str) -> Section {
    let report = report(name).expect("a report");
    answer(memory, &[report], &Options::default())
        .sections
        .remove(0)
}

fn row_of(section: &Section, column: &str, value: &str) -> usize {
    let is_it = |row: &usize| section.get(*row, column) == Some(&value.into());
    (0..section.rows.len()).find(is_it).expect("a row")
}

// answers-42
#[test]
fn reports_have_the_names_and_the_titles_of_other_tools() {
    for (alias, name, titles) in [
        (
            "cuda_gpu_kern_sum",
            "kern_sum",
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
        ),
        (
            "cuda_gpu_kern_gb_sum:base",
            "kern_gb_sum",
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),GridXYZ,BlockXYZ,Name",
        ),
        (
            "cuda_kern_exec_trace",
            "kern_exec_trace",
            "API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),PID,TID,DevId,\
             API Function,GridXYZ,BlockXYZ,Kernel Name",
        ),
        (
            "cuda_gpu_mem_time_sum",
            "copy_time_sum",
            "Time (%),Total Time (ns),Count,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Operation",
        ),
        (
            "cuda_api_sum",
            "api_sum",
            "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name",
        ),
        (
            "cuda_gpu_sum",
            "gpu_sum",
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Category,Operation",
        ),
        (
            "nvtx_sum",
            "marker_sum",
            "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Style,Range",
        ),
        (
            "nvtx_gpu_proj_sum",
            "marker_gpu_proj_sum",
            "Range,Style,Total Proj Time (ns),Total Range Time (ns),Range Instances,Proj Avg (ns),Proj Med (ns),Proj Min (ns),\
             Proj Max (ns),Proj StdDev (ns),Total GPU Ops,Avg GPU Ops,Avg Range Lvl,Avg Num Child",
        ),
        (
            "hip_api_trace",
            "api_trace",
            "Start (ns),Duration (ns),Name,Result,CorrID,Pid,Tid",
        ),
    ] {
        let found = report(alias).expect(alias);
        assert_eq!(found.name, name);
        let labels: Vec<&str> = found.columns.iter().map(|column| column.label).collect();
        assert!(labels.join(",").starts_with(titles), "{alias}: {labels:?}");
    }
    assert!(report("cuda_gpu_everything").is_none());
}

// answers-43
#[test]
fn queue_times_of_g1_are_those_of_the_example() {
    let section = section(&g1().done(), "kern_exec_sum");
    let mut sums = [0.0; 3];
    for row in 0..section.rows.len() {
        let number = |column| {
            section
                .get(row, column)
                .and_then(Value::number)
                .expect("a number")
        };
        sums[0] += number("qcount");
        sums[1] += number("qavg_ns") * number("qcount");
        sums[2] += number("aavg_ns");
    }
    assert_eq!(sums, [4.0, 180_000.0, 40_000.0]);
}

// answers-44
#[test]
fn kernel_that_starts_inside_its_call_has_no_queue_time() {
    let mut example = Example::new();
    example.launched("hipLaunchKernel", (0, 30), "K", 20, 50);
    let memory = example.done();
    let sums = section(&memory, "kern_exec_sum");
    assert_eq!(sums.get(0, "qcount"), Some(&0_u64.into()));
    assert_eq!(sums.get(0, "qavg_ns"), Some(&Value::Null));
    let trace = section(&memory, "kern_exec_trace");
    assert_eq!(trace.get(0, "queue_dur_ns"), Some(&Value::Null));
    assert_eq!(trace.get(0, "total_dur_ns"), Some(&us(50).into()));
}

// answers-45
#[test]
fn one_instance_has_no_deviation() {
    let section = section(&g1().done(), "kern_sum");
    let row = row_of(&section, "name", "K1");
    assert_eq!(section.get(row, "stddev_ns"), Some(&Value::Null));
    assert_eq!(section.get(row, "time_share"), Some(&0.25.into()));
}

#[test]
fn time_under_waiting_calls_is_that_of_the_gpu() {
    let section = section(&g1().done(), "sync_sum");
    // The call lasts from 30 to 230, K1 and K2 run until 120 and from 125 to 225.
    assert_eq!(section.get(0, "total_ns"), Some(&us(200).into()));
    assert_eq!(section.get(0, "busy_ns"), Some(&us(190).into()));
}

#[test]
fn streams_share_the_time_in_which_both_run() {
    let mut example = Example::new();
    example.op("A", 0, 50);
    example.op("B", 20, 120).stream = 1;
    example.op("C", 100, 150);
    let section = section(&example.done(), "stream_sum");
    for row in 0..2 {
        assert_eq!(section.get(row, "busy_ns"), Some(&us(100).into()));
    }
    // Each of both has what it starts under the other.
    let shared = |row| section.get(row, "overlap_ns").and_then(Value::number);
    assert_eq!(
        (shared(0), shared(1)),
        (Some(us(50) as f64), Some(us(50) as f64))
    );
}

#[test]
fn sequences_have_the_gap_before_their_last_kernel() {
    let mut example = Example::new();
    for number in 0..4 {
        example.op("A", number * 100, number * 100 + 10);
        example.op("B", number * 100 + 15, number * 100 + 30 + number);
    }
    let section = section(&example.done(), "seq_sum");
    let row = row_of(&section, "sequence", "A > B");
    assert_eq!(section.get(row, "calls"), Some(&4_u64.into()));
    assert_eq!(section.get(row, "gap_ns"), Some(&us(20).into()));
    assert_eq!(section.get(row, "varsum_ns"), Some(&us(6).into()));
}

#[test]
fn every_report_is_made_of_any_recording() {
    for memory in [g1().done(), Example::new().done()] {
        for report in REPORTS {
            let made = section(&memory, report.name);
            let lengths = made.rows.iter().map(Vec::len);
            assert!(
                lengths
                    .into_iter()
                    .all(|length| length == report.columns.len()),
                "{}",
                report.name
            );
        }
    }
}
