//! What CUDA and NVTX tell beyond calls, kernels and messages: waits, names of streams, payloads, lines that captured graphs.

use rpd_tests::outputs::Database;
use rpd_tests::run::Rpd;

use super::{rpd, table};

#[test]
fn waits_of_the_host_have_their_kind_and_call() {
    let options = [
        "--cuda-trace",
        "--cuda-api",
        "all",
        "--kernel-trace",
        "-f",
        "rocpd",
        "json",
    ];
    let outcome = rpd(&options)
        .workload("cuda", ["runtime", "launches=3"])
        .success();
    let database = Database::open(&outcome.file(".db"));
    let waits = database.rows(
        "SELECT h.name, r.name FROM hip_events h JOIN regions r ON r.stack_id = h.stack_id \
         WHERE h.\"end\" > h.start GROUP BY 1, 2 ORDER BY 1",
    );
    assert_eq!(
        waits,
        [
            ["CUDA_CONTEXT_SYNCHRONIZE", "cudaDeviceSynchronize"],
            ["CUDA_STREAM_SYNCHRONIZE", "cudaStreamSynchronize"],
        ]
    );
    let json = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    assert!(json.contains("CUDA_STREAM_SYNCHRONIZE"), "no name");
    let path = outcome.file(".db").to_str().expect("text").to_owned();
    let back = Rpd::plain(["convert", &path, "-f", "rocpd", "-d", "out", "-o", "again"])
        .run()
        .success();
    let again = Database::open(&back.file("again_results.db"));
    assert_eq!(
        again.number("SELECT count(*) FROM hip_events WHERE name = 'CUDA_STREAM_SYNCHRONIZE'"),
        2
    );
}

#[test]
fn stream_has_the_name_that_the_program_gave_it() {
    let outcome = rpd(&[
        "--cuda-trace",
        "--kernel-trace",
        "--marker-trace",
        "-f",
        "rocpd",
        "pftrace",
    ])
    .workload("cuda", ["named"])
    .success();
    let database = Database::open(&outcome.file(".db"));
    let names = database.rows(
        "SELECT s.name FROM rocpd_kernel_dispatch k JOIN rocpd_info_stream s ON s.id = k.stream_id AND s.guid = k.guid",
    );
    assert_eq!(names, [["the copies"]]);
    let trace = std::fs::read(outcome.file(".pftrace")).expect("a file");
    let has = |text: &[u8]| trace.windows(text.len()).any(|part| part == text);
    assert!(has(b"STREAM [13] the copies"), "no track of the name");
}

#[test]
fn marks_and_ranges_have_their_payloads_categories_and_colors() {
    let outcome = rpd(&["--marker-trace", "-f", "rocpd", "json", "pftrace"])
        .workload("cuda", ["payloads"])
        .success();
    let database = Database::open(&outcome.file(".db"));
    let found: Vec<String> = database
        .rows(
            "SELECT json_extract(e.extdata, '$.message') || ' ' || a.name || '=' || a.value FROM rocpd_arg a \
             JOIN rocpd_event e ON e.id = a.event_id AND e.guid = a.guid ORDER BY 1",
        )
        .concat();
    assert_eq!(
        found,
        [
            "library:pushed category=of the library",
            "library:pushed payload=-1",
            "real payload=2.5",
            "signed category=8",
            "signed color=#ff00ff00",
            "signed payload=-1",
            "started payload=12",
            "unsigned category=loading",
            "unsigned payload=18446744073709551615",
        ]
    );
    let json = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    assert!(json.contains("18446744073709551615"), "no payload");
    let trace = std::fs::read(outcome.file(".pftrace")).expect("a file");
    let has = |text: &[u8]| trace.windows(text.len()).any(|part| part == text);
    assert!(has(b"of the library"), "no category");
}

#[test]
fn kernels_of_a_graph_belong_to_the_line_that_captured_them() {
    let outcome = rpd(&[
        "--cuda-trace",
        "--kernel-trace",
        "--stacks",
        "native",
        "-f",
        "rocpd",
        "csv",
    ])
    .workload("cuda", ["graph=5"])
    .success();
    assert_eq!(table(&outcome, "kernel_trace").rows.len(), 10);
    let path = outcome.file(".db").to_str().expect("text").to_owned();
    let database = Database::open(&outcome.file(".db"));
    // The nodes of the graph that was captured, and of the executable one.
    assert_eq!(
        database.number("SELECT count(*) FROM rpd_captured_node"),
        10
    );
    let functions = database.rows(
        "SELECT DISTINCT r.name FROM rocpd_kernel_dispatch k \
         JOIN rpd_captured_node n ON n.graph_exec_id = k.graph_exec_id AND n.graph_node_id = k.graph_node_id \
         JOIN regions r ON r.stack_id = n.stack_id",
    );
    assert_eq!(functions, [["cudaLaunchKernel"]]);
    let kernels = Rpd::plain(["stacks", &path, "--kernels", "-f", "csv"])
        .run()
        .success()
        .stdout;
    assert!(
        kernels.contains("cudaLaunchKernel") && !kernels.contains("cudaGraphLaunch"),
        "{kernels}"
    );
}
