//! A traced call allocates nothing from the target's heap.

use std::fs;

use rpd_tests::run::{Rpd, simulated_with};
use rpd_tests::workloads;

/// The two numbers in "X of Y calls allocated".
fn counted(text: &str) -> (u64, u64) {
    let numbers: Vec<u64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [allocating, calls] => (allocating, calls),
        _ => panic!("{text}"),
    }
}

#[test]
fn recording_allocates_memory_only_for_new_spool_segments() {
    const ROUNDS: u64 = 20_000;
    let program = workloads::path("allocations");
    // Looked at when the program has ended and the front end has not yet turned the spool into files.
    let script = format!(
        "'{}' {ROUNDS} && find \"$RPD_SPOOL\" -name '*.seg' | wc -l > segments",
        program.display()
    );
    // Callback kinds of SDK 1.0: HIP runtime, and joined marker ranges, for which the simulator allocates.
    for (options, kinds) in [
        (["--hip-runtime-trace", "-f", "csv"].as_slice(), "5"),
        (
            &["--hip-runtime-trace", "--marker-trace", "-f", "csv"],
            "5,21",
        ),
        (&["--sys-trace", "-f", "csv"], "5,21"),
    ] {
        let tool = workloads::path("empty-tool.so");
        let variables = [
            ("ROCP_TOOL_LIBRARIES", tool.as_os_str()),
            ("RPD_EMPTY_TOOL", kinds.as_ref()),
        ];
        let rounds = ROUNDS.to_string();
        let empty = simulated_with(variables, "allocations", [&rounds]).success();
        let (floor, _) = counted(&empty.stdout);

        let outcome = Rpd::new(options)
            .target(["/bin/sh", "-c", &script])
            .success();
        let (allocating, calls) = counted(&outcome.stdout);
        let segments = fs::read_to_string(outcome.directory.path().join("segments"));
        let segments: u64 = segments
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .expect("the number of segments");
        assert_eq!(calls, 7 * ROUNDS);
        assert!(
            allocating <= floor + segments && segments < calls / 1000,
            "{options:?}: {allocating} of {calls} calls allocated, {floor} with an empty tool, {segments} segments"
        );
    }
}
