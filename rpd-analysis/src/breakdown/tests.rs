//! Breakdowns of the worked examples.

use super::*;
use crate::examples::{Example, us};

fn answer(example: Example, options: &Options) -> Answer {
    let memory = example.done();
    measure(&memory, options)
        .expect("operations")
        .answer(&memory)
}

fn b1() -> Example {
    let mut example = Example::new();
    example.op("A", 0, 100);
    example.op("ncclDevKernel", 80, 180);
    example.op("B", 150, 250);
    example.op("MEMORY_COPY_DEVICE_TO_DEVICE", 170, 270);
    example
}

// answers-1
#[test]
fn breakdown_of_b1_is_that_of_the_example() {
    let options = Options {
        window: Some((0, us(300))),
        ..Options::default()
    };
    let answer = answer(b1(), &options);
    let get = |column| answer.sections[0].get(0, column).expect("a value").number();
    for (column, value) in [
        ("compute_ns", 200),
        ("comm_ns", 100),
        ("exposed_comm_ns", 50),
        ("copy_ns", 100),
        ("exposed_copy_ns", 20),
        ("exposed_fill_ns", 0),
        ("busy_ns", 270),
        ("idle_ns", 30),
        ("sum_ns", 400),
    ] {
        assert_eq!(get(column), Some(us(value) as f64), "{column}");
    }
    assert_eq!(get("comm_overlap"), Some(0.5));
    assert!((get("concurrency").expect("known") - 1.481).abs() < 0.001);
}

// answers-7
#[test]
fn processes_of_one_gpu_have_rows_of_their_own() {
    let mut example = Example::new();
    let other = example.process();
    example.op("P", 0, 100);
    example.op("Q", 90, 200).process = other;
    let answer = answer(example, &Options::default());
    assert_eq!(answer.sections[0].get(0, "busy_ns"), Some(&us(200).into()));
    let processes = answer.section("processes").expect("processes");
    assert_eq!(processes.get(0, "busy_ns"), Some(&us(100).into()));
    assert_eq!(processes.get(1, "busy_ns"), Some(&us(110).into()));
}

// answers-35
#[test]
fn imbalance_of_m1_is_that_of_the_example() {
    let (share, lost) = imbalance(&[90, 100, 110, 140]).expect("values");
    assert!((share - 0.2727).abs() < 0.0001);
    assert_eq!(lost, 120);
    assert_eq!((imbalance(&[5]), imbalance(&[0, 0])), (None, None));
}

// answers-8
#[test]
fn chunks_add_up_to_the_window() {
    let whole = answer(b1(), &Options::default());
    let options = Options {
        by: By::Chunks(7),
        ..Options::default()
    };
    let parts = answer(b1(), &options);
    let section = &parts.sections[0];
    assert_eq!(section.rows.len(), 7);
    for column in [
        "window_ns",
        "compute_ns",
        "exposed_comm_ns",
        "exposed_copy_ns",
        "idle_ns",
        "sum_ns",
        "busy_ns",
        "ops",
    ] {
        let number = |row| section.get(row, column).and_then(Value::number);
        let sum: f64 = (0..7).filter_map(number).sum();
        assert_eq!(
            Some(sum),
            whole.sections[0].get(0, column).and_then(Value::number),
            "{column}"
        );
    }
}
