//! MPI ranks that are not profiled run without the collector.

use rpd_tests::run::Rpd;

use super::rows;

fn rank(list: &str) -> Rpd {
    let options = [
        "--pmc",
        "SQ_WAVES",
        "-f",
        "csv",
        "--profile-mpi-ranks",
        list,
    ];
    Rpd::new(options)
        .env("OMPI_COMM_WORLD_RANK", "2")
        .env("OMPI_COMM_WORLD_SIZE", "4")
}

#[test]
fn ranks_in_the_list_are_counted() {
    for list in ["2", "0, 2-3", "1-2"] {
        let outcome = rank(list).workload("vector-ops", ["1", "1"]).success();
        assert_eq!(rows(&outcome).len(), 4, "{list}");
    }
}

/// Checks command-line-239 and command-line-240.
#[test]
fn ranks_outside_the_list_run_without_the_profiler() {
    let script =
        "echo \"${LD_PRELOAD-none} ${ROCP_TOOL_LIBRARIES-none} ${RPD_SPOOL-none}\"; exit 7";
    let outcome = rank("0-1").target(["/bin/sh", "-c", script]).expect_code(7);
    assert_eq!(outcome.stdout, "none none none\n", "{}", outcome.stderr);
    assert_eq!(outcome.files(), [""; 0], "nothing is written");
    let outcome = rank("0-1").workload("vector-ops", ["1", "1"]).success();
    assert_eq!(outcome.stdout, "ok\n", "it still finds its libraries");
    assert_eq!(outcome.files(), [""; 0]);
}

/// Checks command-line-236 to command-line-238.
#[test]
fn named_rank_variables_replace_those_of_mpi() {
    let own = |list: &str, names: [&str; 2]| {
        let options = [
            "--pmc",
            "SQ_WAVES",
            "-f",
            "csv",
            "--profile-mpi-ranks",
            list,
            "--mpi-world-rank-variable",
            names[0],
            "--mpi-world-size-variable",
            names[1],
        ];
        let outcome = Rpd::new(options)
            .env("OMPI_COMM_WORLD_RANK", "3")
            .env("OMPI_COMM_WORLD_SIZE", "4")
            .env("MY_RANK", "2")
            .env("MY_SIZE", "4")
            .workload("vector-ops", ["1", "1"])
            .success();
        outcome.files_ending("counter_collection.csv").len()
    };
    assert_eq!(own("2", ["MY_RANK", "MY_SIZE"]), 1);
    assert_eq!(own("3", ["MY_RANK", "MY_SIZE"]), 0);
    assert_eq!(own("0", ["NO_RANK", "NO_SIZE"]), 1, "no rank is known");
}

/// Checks command-line-266.
#[test]
fn rank_placeholders_name_counter_files() {
    let options = ["--pmc", "SQ_WAVES", "-f", "csv", "-o", "r%rank%of%size%"];
    let outcome = Rpd::new(options)
        .env("OMPI_COMM_WORLD_RANK", "2")
        .env("OMPI_COMM_WORLD_SIZE", "4")
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(
        outcome
            .files()
            .contains(&"r2of4_counter_collection.csv".to_owned()),
        "{:?}",
        outcome.files()
    );
}
