//! What is recorded of a program, and how files show it.

use std::collections::BTreeMap;

use rpd_tests::outputs::Database;

use super::{counts, rpd, table};

#[test]
fn program_of_the_cuda_runtime_has_its_calls_kernels_copies_and_marks() {
    let outcome = rpd(&["--runtime-trace", "-f", "csv"])
        .workload("cuda", ["runtime", "nvtx"])
        .success();
    assert!(
        outcome.stdout.contains("runtime: 54, refused with 21"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stderr.contains("provider cuda"),
        "{}",
        outcome.stderr
    );
    let kernels = table(&outcome, "kernel_trace");
    assert_eq!(
        counts(&kernels, "Kernel_Name"),
        BTreeMap::from([
            ("scale", 3),
            ("void add<float>(float*, float const*, int)", 1)
        ])
    );
    // Threads of the grid and of a block, and bytes of shared memory.
    assert_eq!(kernels.numbers("Grid_Size_X"), [4096; 4]);
    assert_eq!(kernels.numbers("Workgroup_Size_X"), [256; 4]);
    assert_eq!(kernels.numbers("VGPR_Count"), [16; 4]);
    let streams = counts(&kernels, "Stream_Id").len();
    assert_eq!(streams, 2);
    let copies = table(&outcome, "memory_copy_trace");
    assert_eq!(
        counts(&copies, "Direction"),
        BTreeMap::from([
            ("MEMORY_COPY_DEVICE_TO_HOST", 1),
            ("MEMORY_COPY_HOST_TO_DEVICE", 1),
            ("MEMORY_SET", 1),
        ])
    );
    let calls = table(&outcome, "cuda_api_trace");
    let by_name = counts(&calls, "Function");
    assert_eq!(by_name["cudaLaunchKernel"], 4);
    assert_eq!(by_name["cudaMemcpyAsync"], 3);
    // Those that only ask for something.
    assert!(!by_name.contains_key("cudaGetDevice") && !by_name.contains_key("cudaGetLastError"));
    // Those of the driver are inside those of the runtime.
    assert!(table(&outcome, "cuda_driver_api_trace").rows.is_empty());
    let marks = counts(&table(&outcome, "marker_api_trace"), "Function").len();
    assert_eq!(marks, 6);
    // Each kernel has the id of the call that launched it.
    let ids = calls.numbers("Correlation_Id");
    let launches: Vec<u64> = (calls.column("Function").iter().zip(ids))
        .filter(|(name, _)| **name == "cudaLaunchKernel")
        .map(|(_, id)| id)
        .collect();
    let mut of_kernels = kernels.numbers("Correlation_Id");
    of_kernels.sort_unstable();
    let mut expected = launches;
    expected.sort_unstable();
    assert_eq!(of_kernels, expected);
}

#[test]
fn marks_of_nvtx_have_their_texts_and_domains_without_cuda() {
    let outcome = rpd(&["--marker-trace", "-f", "csv"])
        .workload("cuda", ["nvtx"])
        .success();
    let marks = table(&outcome, "marker_api_trace");
    let names = counts(&marks, "Function");
    let expected = [
        "a mark",
        "any thread",
        "inner",
        "library:registered",
        "outer",
        "wä中",
    ];
    assert_eq!(names.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn program_of_the_cuda_driver_has_its_calls() {
    let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "csv"])
        .workload("cuda", ["driver"])
        .success();
    let calls = table(&outcome, "cuda_driver_api_trace");
    let by_name = counts(&calls, "Function");
    assert_eq!(
        (by_name["cuLaunchKernel"], by_name["cuMemAlloc_v2"]),
        (4, 1)
    );
    assert!(table(&outcome, "cuda_api_trace").rows.is_empty());
    assert_eq!(table(&outcome, "kernel_trace").rows.len(), 4);
}

#[test]
fn all_cuda_calls_are_recorded_on_request_and_those_of_the_driver_inside_the_runtime() {
    let outcome = rpd(&[
        "--cuda-trace",
        "--cuda-driver-trace",
        "--cuda-api",
        "all",
        "-f",
        "csv",
    ])
    .workload("cuda", ["runtime", "future"])
    .success();
    let calls = table(&outcome, "cuda_api_trace");
    let by_name = counts(&calls, "Function");
    assert_eq!(
        (by_name["cudaGetDevice"], by_name["cudaGetLastError"]),
        (1, 3)
    );
    // Newer than the tables: CUPTI names it.
    assert_eq!(by_name["cudaFromTheFuture_v99000"], 1);
    let driver = counts(&table(&outcome, "cuda_driver_api_trace"), "Function").len();
    assert!(driver >= 5, "{driver}");
}

#[test]
fn arguments_of_cuda_calls_are_in_the_database() {
    let outcome = rpd(&["--cuda-trace", "--kernel-trace", "-f", "rocpd"])
        .workload("cuda", ["runtime"])
        .success();
    let database = Database::open(&outcome.file(".db"));
    let of_launch: Vec<String> = database
        .rows(
            "SELECT DISTINCT a.name || '=' || a.value FROM region_args a JOIN regions r ON r.id = a.id \
             WHERE r.name = 'cudaLaunchKernel' ORDER BY 1",
        )
        .concat();
    assert!(
        of_launch.iter().any(|text| text == "sharedMem=1024"),
        "{of_launch:?}"
    );
    assert!(
        of_launch.iter().any(|text| text.contains("x=16")),
        "{of_launch:?}"
    );
}

#[test]
fn kernels_of_a_graph_are_recorded_one_by_one_or_as_a_whole() {
    let recorded = |options: &[&str], step: &str| {
        let mut all = vec!["--kernel-trace", "--cuda-trace", "-f", "csv"];
        all.extend_from_slice(options);
        let outcome = rpd(&all).workload("cuda", [step]).success();
        let kernels = table(&outcome, "kernel_trace");
        let names: BTreeMap<String, usize> = (counts(&kernels, "Kernel_Name").into_iter())
            .map(|(name, count)| (name.to_owned(), count))
            .collect();
        (names, outcome.stderr)
    };
    let one = |name: &str, count| BTreeMap::from([(name.to_owned(), count)]);
    assert_eq!(recorded(&[], "graph=10").0, one("empty", 20));
    let whole = ["--cuda-graph-trace", "graph"];
    assert_eq!(recorded(&whole, "graph=10").0, one("(graph 1)", 2));
    let (names, stderr) = recorded(&[], "graph=1100");
    assert_eq!(names, one("(graph 1)", 2));
    assert!(stderr.contains("--cuda-graph-trace node"), "{stderr}");
    let nodes = ["--cuda-graph-trace", "node"];
    assert_eq!(recorded(&nodes, "graph=1100").0, one("empty", 2200));
}

#[test]
fn cuda_calls_have_stacks() {
    let outcome = rpd(&[
        "--cuda-trace",
        "--kernel-trace",
        "--stacks",
        "native",
        "-f",
        "json",
    ])
    .workload("cuda", ["runtime"])
    .success();
    let json = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    assert!(json.contains("cuda.c"), "no frame of the program");
}

#[test]
fn every_format_has_a_cuda_program() {
    let outcome = rpd(&[
        "--sys-trace",
        "-S",
        "-f",
        "csv",
        "json",
        "pftrace",
        "rocpd",
        "html",
    ])
    .workload("cuda", ["runtime", "driver", "nvtx"])
    .success();
    for suffix in [".json", ".pftrace", ".db", ".html"] {
        assert!(
            !outcome.files_ending(suffix).is_empty(),
            "{suffix}: {:?}",
            outcome.files()
        );
    }
    for label in [
        "CUDA_API",
        "CUDA_DRIVER_API",
        "KERNEL_DISPATCH",
        "MARKER_API",
    ] {
        assert!(
            outcome.stderr.contains(label) || outcome.stdout.contains(label),
            "{label}"
        );
    }
}
