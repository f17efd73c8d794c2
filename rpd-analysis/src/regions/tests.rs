//! Trees of small programs.

use super::*;
use crate::examples::{Example, us};
use crate::records::Memory;

/// Two steps, each with a forward and a backward part; three operations in all.
fn steps() -> Example {
    let mut example = Example::new();
    example.range("train", 0, 200);
    for (number, begin) in [(1, 10), (2, 110)] {
        example.range(&format!("step {number}"), begin, begin + 80);
        let forward = example.range("forward", begin + 5, begin + 30);
        let call = example.call("hipLaunchKernel", begin + 10, begin + 14);
        example.memory().calls[call as usize - 1].range = forward;
        let mut launch = example.launch(call);
        launch.range = forward;
        example.op("F", begin + 20, begin + 40).launch = Some(launch);
    }
    let step = 1;
    let call = example.call("hipLaunchKernel", 50, 52);
    let mut launch = example.launch(call);
    launch.range = step;
    // It overlaps the first one.
    example.op("G", 40, 70).launch = Some(launch);
    example
}

fn get(answer: &Answer, path: &str, column: &str) -> Value {
    let section = &answer.sections[0];
    let is_it = |row: &usize| section.get(*row, "path") == Some(&path.into());
    let row = (0..section.rows.len()).find(is_it).expect("a region");
    section.get(row, column).expect("a column").clone()
}

fn tree(memory: &Memory) -> Answer {
    answer(memory, &Options::default())
}

// answers-31
#[test]
fn time_of_the_gpu_is_not_counted_twice() {
    let answer = tree(&steps().done());
    let paths: Vec<_> = (0..3)
        .map(|row| answer.sections[0].get(row, "path").expect("a path").clone())
        .collect();
    assert_eq!(
        paths,
        [
            "train".into(),
            "train/step #".into(),
            "train/step #/forward".into()
        ]
    );
    for (path, column, value) in [
        ("train", "gpu_ns", us(60)),
        ("train", "gpu_sum_ns", us(70)),
        ("train", "gpu_self_ns", 0),
        ("train/step #", "gpu_self_ns", us(30)),
        ("train/step #/forward", "gpu_ns", us(40)),
        ("train/step #", "host_ns", us(160)),
        ("train/step #", "host_self_ns", us(110)),
        ("train", "host_self_ns", us(40)),
        ("train/step #/forward", "launch_ns", us(8)),
    ] {
        assert_eq!(get(&answer, path, column), value.into(), "{path} {column}");
    }
    assert_eq!(get(&answer, "train/step #", "instances"), 2_u64.into());
}

// answers-33
#[test]
fn projection_is_from_the_first_start_to_the_last_end_of_each_instance() {
    let answer = tree(&steps().done());
    // The first step's operations run from 30 to 70, the second's from 130 to 150.
    assert_eq!(get(&answer, "train/step #", "projected_ns"), us(60).into());
    assert_eq!(get(&answer, "train", "projected_ns"), us(120).into());
    assert_eq!(get(&answer, "train", "host_bound"), 0.5.into());
}

// answers-32
#[test]
fn ranges_between_threads_have_time_of_the_gpu_only_when_requested() {
    let mut example = Example::new();
    let id = example.range("across", 0, 100);
    example.memory().ranges[id as usize].style = Style::Across;
    example.launched("hipLaunchKernel", (10, 12), "K", 20, 30);
    let memory = example.done();
    assert_eq!(get(&tree(&memory), "across", "gpu_ns"), 0_u64.into());
    let options = Options {
        cross_threads: true,
        ..Options::default()
    };
    let answer = answer(&memory, &options);
    assert_eq!(get(&answer, "across", "gpu_ns"), us(10).into());
    assert_eq!(get(&answer, "across", "host_ns"), us(100).into());
}

#[test]
fn exact_messages_stay_apart() {
    let options = Options {
        exact: true,
        ..Options::default()
    };
    let answer = answer(&steps().done(), &options);
    assert_eq!(get(&answer, "train/step 2", "instances"), 1_u64.into());
}

#[test]
fn recording_without_markers_says_what_to_record() {
    let mut example = Example::new();
    example.op("K", 0, 10);
    let answer = tree(&example.done());
    assert!(answer.is_empty);
    assert_eq!(answer.missing[0].record, "--marker-trace");
}
