use super::*;
use crate::examples::Example;
use crate::records::{Memory, Resources};

/// A run with launches of a kernel that uses some registers, each as long as given, in microseconds.
fn run_of(vgprs: u32, lengths: &[u64]) -> Memory {
    let mut example = Example::new();
    example.memory().facts.kernels.push(Resources {
        vgprs,
        sgprs: 16,
        ..Resources::default()
    });
    for (number, length) in (0..).zip(lengths) {
        let at = number * 1_000;
        let op = example.launched(
            "hipLaunchKernel",
            (at, at + 5),
            "gemm",
            at + 10,
            at + 10 + length,
        );
        (op.grid, op.group, op.kernel) = ([25_600, 1, 1], [256, 1, 1], 0);
    }
    example.done()
}

fn side(records: &[Memory]) -> Vec<Run> {
    let all = records.iter();
    all.map(|records| Run::new(records, None, str::to_owned))
        .collect()
}

fn number(answer: &Answer, row: usize, column: &str) -> i64 {
    let section = answer.section("kernels").expect("a section");
    match section.get(row, column) {
        Some(Value::Integer(number)) => *number,
        other => panic!("{column}: {other:?}"),
    }
}

fn text(answer: &Answer, row: usize, column: &str) -> String {
    let section = answer.section("kernels").expect("a section");
    let cell = section.get(row, column).and_then(Value::text);
    cell.unwrap_or_default().to_owned()
}

// answers-73
#[test]
fn more_registers_are_shown_with_the_waves_that_they_cost() {
    let (a, b) = (
        side(&[run_of(64, &[100; 4])]),
        side(&[run_of(72, &[120; 4])]),
    );
    let answer = answer(&a, &b, false);
    assert_eq!(text(&answer, 0, "why"), "vgpr 64 -> 72: 8 -> 7 waves");
    let section = answer.section("kernels").expect("a section");
    assert_eq!(section.get(0, "change"), Some(&Value::Number(0.2)));
    assert_eq!(section.get(0, "beyond_chance"), Some(&Value::Null));
}

// answers-74
#[test]
fn total_change_splits_into_calls_and_speed() {
    for (old, new) in [
        (vec![100, 103, 99], vec![120, 121, 119, 118, 122]),
        (vec![7, 8, 9], vec![5]),
    ] {
        let (a, b) = (side(&[run_of(64, &old)]), side(&[run_of(64, &new)]));
        let answer = answer(&a, &b, false);
        let total = number(&answer, 0, "total_change_ns");
        let change = new.iter().sum::<u64>() as i64 - old.iter().sum::<u64>() as i64;
        assert_eq!(total, change * 1_000);
        let parts = number(&answer, 0, "by_calls_ns") + number(&answer, 0, "by_speed_ns");
        assert_eq!(parts, total);
        let mean = old.iter().sum::<u64>() as f64 * 1e3 / old.len() as f64;
        let calls = (new.len() as f64 - old.len() as f64) * mean;
        assert_eq!(number(&answer, 0, "by_calls_ns"), calls.round() as i64);
    }
}

// answers-75
#[test]
fn kernels_of_one_side_are_added_or_removed_unless_they_are_renamed() {
    let old = run_of(64, &[100; 4]);
    let mut new = run_of(64, &[100; 4]);
    for name in &mut new.facts.names {
        *name = name.replace("gemm", "gemm_v2");
    }
    let (a, b) = (
        side(std::slice::from_ref(&old)),
        side(std::slice::from_ref(&new)),
    );
    let apart = answer(&a, &b, false);
    let mut statuses = [text(&apart, 0, "status"), text(&apart, 1, "status")];
    statuses.sort();
    assert_eq!(statuses, ["added", "removed"]);
    assert_eq!(number(&apart, 0, "total_change_ns").abs(), 400_000);
    let renamed = Run::new(&new, None, |name| name.replace("_v2", ""));
    let joined = answer(&a, &[renamed], false);
    assert_eq!(text(&joined, 0, "status"), "both");
    assert_eq!(joined.section("kernels").expect("a section").rows.len(), 1);
}

// answers-76
#[test]
fn times_of_different_hardware_are_compared_only_when_forced() {
    let old = run_of(64, &[100; 4]);
    let mut new = run_of(64, &[150; 4]);
    new.facts.gpus[0].arch = "gfx942".to_owned();
    let (a, b) = (side(&[old]), side(&[new]));
    let refused = answer(&a, &b, false);
    assert_eq!(refused.warnings[0].code, "mixed-hardware");
    let section = refused.section("kernels").expect("a section");
    assert_eq!(section.get(0, "typical_a_ns"), Some(&Value::Null));
    assert_eq!(section.get(0, "total_change_ns"), Some(&Value::Null));
    let forced = answer(&a, &b, true);
    assert_eq!(number(&forced, 0, "total_change_ns"), 200_000);
}

#[test]
fn change_is_beyond_chance_when_runs_of_a_side_differ_less() {
    let quiet = side(&[
        run_of(64, &[100; 4]),
        run_of(64, &[101; 4]),
        run_of(64, &[100; 4]),
    ]);
    let slower = side(&[
        run_of(64, &[120; 4]),
        run_of(64, &[121; 4]),
        run_of(64, &[120; 4]),
    ]);
    let noisy = side(&[
        run_of(64, &[90; 4]),
        run_of(64, &[150; 4]),
        run_of(64, &[120; 4]),
    ]);
    let found = answer(&quiet, &slower, false);
    assert_eq!(text(&found, 0, "beyond_chance"), "yes");
    let section = found.section("kernels").expect("a section");
    assert_eq!(section.get(0, "slower"), Some(&Value::Number(0.2)));
    let found = answer(&quiet, &noisy, false);
    assert_eq!(text(&found, 0, "beyond_chance"), "no");
    let section = found.section("kernels").expect("a section");
    assert_eq!(section.get(0, "slower"), Some(&Value::Null));
}

#[test]
fn other_geometry_of_a_kernel_is_a_reason_and_not_another_kernel() {
    let old = run_of(64, &[100; 4]);
    let mut new = run_of(64, &[100; 4]);
    for op in &mut new.ops {
        op.grid = [51_200, 1, 1];
    }
    let answer = answer(&side(&[old]), &side(&[new]), false);
    assert_eq!(
        text(&answer, 0, "why"),
        "geometry 100x1x1 of 256x1x1 -> 200x1x1 of 256x1x1"
    );
}
