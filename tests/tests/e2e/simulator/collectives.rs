//! RCCL between ranks on the simulator. The workload compares every result with a model.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use rpd_tests::run::{Rpd, simulated_with};

/// The workload with this many GPUs, without `rpd`; what it prints.
fn simulated(gpus: &str, variables: &[(&str, &str)], arguments: &[&str]) -> String {
    let gpus = ("RPD_SIM_GPUS", gpus);
    let variables = variables.iter().chain([&gpus]);
    let variables = variables.map(|&(name, value)| (name, OsStr::new(value)));
    let outcome = simulated_with(variables, "collectives", arguments).success();
    assert_eq!(outcome.stderr, "", "{arguments:?}");
    outcome.stdout
}

#[test]
fn collectives_are_right_between_ranks_of_one_thread() {
    assert_eq!(simulated("1", &[], &["one", "1", "7"]), "ok\n");
    assert_eq!(simulated("2", &[], &["one", "2"]), "ok\n");
    assert_eq!(simulated("4", &[], &["one", "4", "500"]), "ok\n");
}

/// Several steps of each operation, on the other device, and with a number of ranks that is no power of two.
#[test]
fn collectives_are_right_for_many_elements_and_three_ranks() {
    let gfx942 = [("RPD_SIM_GPU", "gfx942")];
    assert_eq!(simulated("3", &gfx942, &["one", "3", "40001"]), "ok\n");
}

/// Each number of 8 bits with each: rounding, numbers that are too large, and those that are none.
#[test]
fn collectives_reduce_8_bit_floats_right_for_all_pairs() {
    for gpu in ["gfx90a", "gfx942"] {
        let variables = [("RPD_SIM_GPU", gpu)];
        assert_eq!(simulated("2", &variables, &["bytes", "2", "65536"]), "ok\n");
    }
}

#[test]
fn collectives_are_right_between_threads() {
    assert_eq!(simulated("3", &[], &["threads", "3"]), "ok\n");
    let seeded = [("RPD_SIM_SEED", "7")];
    assert_eq!(simulated("2", &seeded, &["threads", "2", "300"]), "ok\n");
}

/// Processes have simulated GPUs of their own, also where only one is visible to each.
#[test]
fn collectives_are_right_between_processes() {
    assert_eq!(simulated("4", &[], &["processes", "4", "500"]), "ok\n");
    assert_eq!(simulated("1", &[], &["processes", "2"]), "ok\n");
}

#[test]
fn graphs_with_collectives_can_be_launched_again() {
    assert_eq!(simulated("2", &[], &["graph", "2"]), "ok\n");
}

#[test]
fn waiting_ranks_of_collectives_can_be_aborted() {
    assert_eq!(simulated("2", &[], &["abort", "2"]), "ok\n");
    let said = simulated("1", &[], &["lost", "2"]);
    let text = "the process of another rank has ended\nok\n";
    assert_eq!(said, text);
}

#[test]
fn collective_errors_name_the_wrong_argument() {
    let said = simulated("2", &[], &["errors", "2"]);
    let argument = "invalid argument (NCCL_DEBUG=WARN prints which)";
    let usage = "invalid usage (NCCL_DEBUG=WARN prints why)";
    let expected = [
        (
            "no id",
            argument,
            "ncclCommInitRank: the unique id is not one of this library's",
        ),
        ("rank 2 of 2", argument, "ncclCommInitRank: rank 2 of 2"),
        (
            "too many GPUs",
            argument,
            "ncclCommInitAll: there is no GPU 2, only 2",
        ),
        (
            "one GPU twice",
            usage,
            "ncclCommInitAll: GPU 0 is named twice",
        ),
        (
            "no communicator",
            argument,
            "ncclAllReduce: the communicator is none",
        ),
        (
            "no such type",
            argument,
            "ncclAllReduce: 12 is not a type of elements",
        ),
        (
            "no such reduction",
            argument,
            "ncclAllReduce: 7 is not a reduction",
        ),
        (
            "no such root",
            argument,
            "ncclBroadcast: root is 2, there are 2 ranks",
        ),
        ("no buffer", argument, "ncclSend: sendbuff is null"),
        ("no elements", "no error", ""),
        (
            "no group",
            usage,
            "ncclGroupEnd: there is no group that could end",
        ),
        (
            "group with an error",
            argument,
            "ncclGroupEnd: peer is -1, there are 2 ranks",
        ),
        (
            "destroyed twice",
            argument,
            "ncclCommDestroy: the communicator is none",
        ),
    ];
    let expected = expected.map(|(what, result, text)| match text {
        "" => format!("{what}: {result}\n"),
        _ => format!("{what}: {result}\n  {text}\n"),
    });
    assert_eq!(said, expected.concat() + "ok\n");
}

/// A step of training under `rpd`: what the calls are, in which order, with which arguments, and the dispatches that they make.
fn traced(provider: &str) {
    let outcome = Rpd::new(["--rccl-trace", "--hip-runtime-trace", "--kernel-trace"])
        .option(["--annotate-args", "--provider", provider])
        .option(["-f", "csv", "rocpd"])
        .env("RPD_SIM_GPUS", "2")
        .workload("collectives", ["step", "2"])
        .success();
    let calls = outcome.csv("rccl_api_trace");
    let names: Vec<&str> = calls.column("Function");
    let mut expected = vec!["ncclCommInitAll", "ncclMemAlloc", "ncclMemAlloc"];
    for _ in 0..3 {
        let sums = [
            "ncclGroupStart",
            "ncclAllReduce",
            "ncclAllReduce",
            "ncclGroupEnd",
        ];
        expected.extend(sums);
    }
    for _ in 0..2 {
        expected.extend(["ncclCommDestroy", "ncclMemFree"]);
    }
    assert_eq!(names, expected, "{provider}");
    assert!(
        calls
            .column("Domain")
            .iter()
            .all(|&domain| domain == "RCCL_API")
    );

    let dispatches = outcome.csv("kernel_trace");
    let sums = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)";
    assert_eq!(dispatches.count("Kernel_Name", sums), 6, "{provider}");
    assert_eq!(dispatches.count("Kernel_Name", "empty_kernel"), 6);

    let database = outcome.database();
    let arguments = database.rows(
        "SELECT DISTINCT r.name, a.arg_name, a.arg_type, a.arg_value FROM regions r JOIN events_args a ON a.event_id = r.event_id
         WHERE r.name IN ('ncclAllReduce', 'ncclCommInitAll') AND a.arg_name IN ('count', 'datatype', 'op', 'ndev') ORDER BY 1, 2",
    );
    let arguments: Vec<String> = arguments.iter().map(|row| row.join(" ")).collect();
    let expected = [
        "ncclAllReduce count unsigned long 1000",
        "ncclAllReduce datatype ncclDataType_t 7",
        "ncclAllReduce op ncclRedOp_t 0",
        "ncclCommInitAll ndev int 2",
    ];
    assert_eq!(arguments, expected, "{provider}");
    // Launches belong to the end of the group.
    let parents = database.rows(
        "SELECT p.name, count(*) FROM kernels k JOIN regions l ON l.stack_id = k.stack_id JOIN regions p ON p.stack_id = l.parent_stack_id
         WHERE k.name LIKE 'nccl%' GROUP BY 1",
    );
    let parents: BTreeMap<_, _> = parents.iter().map(|row| (&*row[0], &*row[1])).collect();
    assert_eq!(
        parents,
        BTreeMap::from([("ncclGroupEnd", "6")]),
        "{provider}"
    );
}

#[test]
fn traces_of_collectives_have_calls_and_dispatches() {
    traced("sdk");
    traced("direct");
}
