//! Kernels whose time is known: PC samples of both methods and thread traces show the line it is spent at, and why.

use std::collections::BTreeMap;
use std::fs;

use rpd_tests::install::source_root;
use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

const SOURCE: &str = "tests/workloads/kernels/inside.hip";

/// What a kernel of [`SOURCE`] spends its time on.
struct Known {
    kernel: &'static str,
    /// Rounds for host trap samples, stochastic ones and traces: as many as give hundreds of samples, and small traces.
    rounds: [&'static str; 3],
    /// Text of the line, as it is in the source.
    line: &'static str,
    /// Beginning of the hottest instruction.
    hottest: &'static str,
    /// Beginning of an instruction of the line, and the first reason why it is not issued.
    stalled: (&'static str, &'static str),
    /// Lanes that are enabled there, on average.
    lanes: u32,
}

const KNOWN: [Known; 8] = [
    Known {
        kernel: "dependent_chain",
        rounds: ["4000", "100", "20"],
        line: "value = __builtin_fmaf(value, 0.5f, 1.0f);",
        hottest: "v_fma",
        stalled: ("v_fma", "ALU_DEPENDENCY"),
        lanes: 64,
    },
    Known {
        kernel: "bank_conflicts",
        rounds: ["1000", "50", "40"],
        line: "sum += words[at];",
        hottest: "s_waitcnt lgkmcnt",
        stalled: ("ds_read", "ARBITER_WIN_EX_STALL"),
        lanes: 64,
    },
    Known {
        kernel: "divergent_branch",
        rounds: ["200", "20", "10"],
        line: "value = __builtin_amdgcn_",
        hottest: "v_add",
        stalled: ("v_add", "ALU_DEPENDENCY"),
        lanes: 32,
    },
    Known {
        kernel: "memory_stream",
        rounds: ["20", "8", "4"],
        line: "out[at] = in[at] + 1.0f;",
        hottest: "s_waitcnt vmcnt",
        stalled: ("s_waitcnt vmcnt", "WAITCNT"),
        lanes: 64,
    },
    Known {
        kernel: "pointer_chase",
        rounds: ["100000", "2000", "200"],
        line: "at = (pointer)*at;",
        hottest: "s_waitcnt vmcnt",
        stalled: ("s_waitcnt vmcnt", "WAITCNT"),
        lanes: 1,
    },
    Known {
        kernel: "barrier_imbalance",
        rounds: ["200", "10", "10"],
        line: "__builtin_amdgcn_s_barrier();",
        hottest: "s_barrier",
        stalled: ("s_barrier", "BARRIER_WAIT"),
        lanes: 64,
    },
    Known {
        kernel: "matrix_chain",
        rounds: ["100", "20", "20"],
        line: "__builtin_amdgcn_mfma_f32_32x32x2f32(",
        hottest: "v_mfma",
        stalled: ("v_mfma", "ARBITER_WIN_EX_STALL"),
        lanes: 64,
    },
    Known {
        kernel: "sleeper",
        rounds: ["100000", "200", "20"],
        line: "__builtin_amdgcn_s_sleep(8);",
        hottest: "s_sleep",
        stalled: ("s_sleep", "INTERNAL_INSTRUCTION"),
        lanes: 64,
    },
];

/// A way to see the inside of kernels.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    HostTrap,
    Stochastic,
    Trace,
}

fn run(known: &Known, way: Way, gpu: &str) -> Outcome {
    let options: &[&str] = match way {
        Way::HostTrap => &[
            "--pc-sampling-beta-enabled",
            "--pc-sampling-method",
            "host_trap",
            "--pc-sampling-unit",
            "time",
            "--pc-sampling-interval",
            "10",
        ],
        Way::Stochastic => &[
            "--pc-sampling-beta-enabled",
            "--pc-sampling-method",
            "stochastic",
            "--pc-sampling-unit",
            "cycles",
            "--pc-sampling-interval",
            "1024",
        ],
        Way::Trace => &["--att", "--att-target-cu", "0"],
    };
    Rpd::new(["--sim-gpu", gpu])
        .option(options)
        .workload("inside", [known.kernel, known.rounds[way as usize]])
        .success()
}

/// What `rpd hot` or `rpd annotate` says of a kernel, as a table.
fn table(outcome: &Outcome, arguments: &[&str]) -> Table {
    let database = outcome.file("results.db");
    let file = outcome.out().join("said.csv");
    let [command, rest @ ..] = arguments else {
        panic!("no command");
    };
    let mut all = vec![*command, database.to_str().expect("text")];
    all.extend(rest);
    all.extend(["-f", "csv", "-o", file.to_str().expect("text")]);
    let _ = Rpd::plain(all).run().success();
    Table::read(&file)
}

/// The first reason of `A=9 B=2`.
fn first_reason(reasons: &str) -> &str {
    reasons.split('=').next().unwrap_or_default()
}

fn check(known: &Known, way: Way, gpu: &str) {
    let source = fs::read_to_string(source_root().join(SOURCE)).expect("the kernels' source");
    let outcome = run(known, way, gpu);
    let kernel = known.kernel;
    // The hottest line is the one that the kernel spends its time on.
    let lines = table(&outcome, &["hot", "--by", "line", "--kernel", kernel]);
    let file = lines.column("File")[0];
    assert!(file.ends_with(SOURCE), "{gpu}, {kernel}: {file}");
    let number = lines.numbers("Line")[0] as usize;
    let text = source.lines().nth(number - 1).unwrap_or_default();
    assert!(
        text.contains(known.line),
        "{gpu}, {kernel}: line {number}: {text}"
    );
    // The instruction on top, and why those of the line are not issued.
    let instructions = table(
        &outcome,
        &["hot", "--by", "instruction", "--kernel", kernel],
    );
    let texts = instructions.column("Instruction");
    assert!(
        texts[0].starts_with(known.hottest),
        "{gpu}, {kernel}: {}",
        texts[0]
    );
    let of_line = instructions.numbers("Line");
    let (start, reason) = known.stalled;
    let reasons = instructions.column("Stall_Reasons");
    // At the head of a loop instructions wait to be fetched as well: the second of a kind is looked at where there are two.
    let mut alike = (0..texts.len())
        .filter(|row| of_line[*row] as usize == number && texts[*row].starts_with(start));
    let row = alike.next().map(|row| alike.next().unwrap_or(row));
    let row = row.unwrap_or_else(|| panic!("{gpu}, {kernel}: no {start} at line {number}"));
    match way {
        Way::HostTrap => assert_eq!(reasons[row], "", "{gpu}, {kernel}"),
        Way::Stochastic | Way::Trace => {
            // To the sampling hardware, a vector instruction that waits for the result of another has won the arbitration.
            let reason = match (way, reason) {
                (Way::Stochastic, "ALU_DEPENDENCY") => "ARBITER_WIN_EX_STALL",
                (_, reason) => reason,
            };
            assert_eq!(
                first_reason(reasons[row]),
                reason,
                "{gpu}, {kernel}: {}",
                texts[row]
            );
        }
    }
    match (way, instructions.column("Lanes")[row]) {
        (Way::Trace, lanes) => assert_eq!(lanes, "", "{gpu}, {kernel}"),
        (_, lanes) => {
            let lanes: f64 = lanes.parse().expect("a number");
            assert!(
                (lanes - f64::from(known.lanes)).abs() < 1.5,
                "{gpu}, {kernel}: {lanes} lanes"
            );
        }
    }
    // `rpd annotate` shows these shares beside the code.
    let annotated = table(&outcome, &["annotate", kernel]);
    let counts = annotated.numbers(match way {
        Way::Trace => "Cycles",
        Way::HostTrap | Way::Stochastic => "Samples",
    });
    let of_line = annotated.column("Line");
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (line, count) in of_line.iter().zip(&counts) {
        *sums.entry(line).or_default() += count;
    }
    let hottest = sums.into_iter().max_by_key(|(_, count)| *count);
    let (line, _) = hottest.expect("lines");
    let text = source
        .lines()
        .nth(line.parse::<usize>().expect("a number") - 1);
    assert!(
        text.is_some_and(|text| text.contains(known.line)),
        "{gpu}, {kernel}: line {line}"
    );
    let most = (0..counts.len())
        .filter(|row| of_line[*row] == line)
        .max_by_key(|row| counts[*row]);
    let most = annotated.column("Instruction")[most.expect("instructions")];
    assert!(most.starts_with(known.hottest), "{gpu}, {kernel}: {most}");
}

#[test]
fn host_trap_samples_show_where_the_time_is() {
    for known in &KNOWN {
        check(known, Way::HostTrap, "gfx90a");
    }
    check(&KNOWN[1], Way::HostTrap, "gfx942");
    check(&KNOWN[6], Way::HostTrap, "gfx942");
}

/// Checks sampling-7.
#[test]
fn stochastic_samples_show_where_the_time_is_and_why() {
    for known in &KNOWN {
        check(known, Way::Stochastic, "gfx942");
    }
}

#[test]
fn thread_traces_show_where_the_time_is_and_why() {
    for known in &KNOWN {
        check(known, Way::Trace, "gfx90a");
        check(known, Way::Trace, "gfx942");
    }
}
