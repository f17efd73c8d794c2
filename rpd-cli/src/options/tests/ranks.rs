//! MPI: command-line-233 to command-line-246.

use super::{Got, plan_with, run_with};

const OPEN_MPI: [(&str, &str); 2] = [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")];
const CUSTOM: &str = "--mpi-world-rank-variable MY_RANK --mpi-world-size-variable MY_SIZE";

fn custom<'a>(rank: &'a str, size: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut all = OPEN_MPI.to_vec();
    all.extend([("MY_RANK", rank), ("MY_SIZE", size)]);
    all
}

#[test]
fn rank_variables_are_looked_for_in_their_order() {
    // The original exports the names it found; here they go with the options, for names of outputs.
    let found = |environment: &[(&str, &str)]| {
        let options = plan_with("-s -- a", environment).passes.remove(0).options;
        options
            .launch_environment
            .get("ROCPROF_MPI_RANK_VAR")
            .cloned()
    };
    let slurm = [("SLURM_PROCID", "1"), ("SLURM_NTASKS", "2")];
    assert_eq!(
        found(&OPEN_MPI).as_deref(),
        Some("OMPI_COMM_WORLD_RANK"),
        "command-line-233"
    );
    let both = [OPEN_MPI[0], OPEN_MPI[1], slurm[0], slurm[1]];
    assert_eq!(
        found(&both).as_deref(),
        Some("SLURM_PROCID"),
        "command-line-234"
    );
    assert_eq!(
        found(&both[..3]).as_deref(),
        Some("OMPI_COMM_WORLD_RANK"),
        "half a pair is none"
    );
    assert_eq!(found(&[]), None, "command-line-235");
}

#[test]
fn only_listed_ranks_are_profiled() {
    let own = custom("2", "4");
    let of_four = |rank| {
        [
            ("OMPI_COMM_WORLD_RANK", rank),
            ("OMPI_COMM_WORLD_SIZE", "4"),
        ]
    };
    for (case, line, environment, profiled) in [
        (
            "command-line-236",
            format!("{CUSTOM} --profile-mpi-ranks 2"),
            own.clone(),
            true,
        ),
        (
            "command-line-237",
            format!("{CUSTOM} --profile-mpi-ranks 3"),
            own.clone(),
            false,
        ),
        (
            "command-line-238",
            format!("{CUSTOM} --profile-mpi-ranks 0"),
            OPEN_MPI.to_vec(),
            true,
        ),
        (
            "command-line-239",
            "--profile-mpi-ranks 0-1".to_owned(),
            of_four("0").to_vec(),
            true,
        ),
        (
            "command-line-240",
            "--profile-mpi-ranks 0-1".to_owned(),
            of_four("2").to_vec(),
            false,
        ),
        (
            "unnumbered",
            "--profile-mpi-ranks ' 0 , 2-3 '".to_owned(),
            of_four("2").to_vec(),
            true,
        ),
        (
            "unnumbered",
            "--profile-mpi-ranks 7".to_owned(),
            Vec::new(),
            true,
        ),
        ("unnumbered", String::new(), of_four("2").to_vec(), true),
    ] {
        let plan = plan_with(&format!("-s {line} -- a"), &environment);
        assert_eq!(
            plan.passes[0].unprofiled.is_none(),
            profiled,
            "{case}: {line}"
        );
    }
    let inherited = [OPEN_MPI[0], OPEN_MPI[1], ("ROCPROF_MPI_RANKS", "0-1")];
    let bare = plan_with("-s -- a", &inherited).passes.remove(0).unprofiled;
    assert_eq!(bare.as_deref(), Some("rank 3 is not in 0-1"));
    assert!(
        plan_with("-s --profile-mpi-ranks 3 -- a", &inherited).passes[0]
            .unprofiled
            .is_none()
    );
}

#[test]
fn malformed_ranks_and_rank_variables_are_refused() {
    let both = custom("2", "4");
    for (case, line, environment, fragment) in [
        (
            "command-line-241",
            "--mpi-world-rank-variable R".to_owned(),
            Vec::new(),
            "both needed",
        ),
        (
            "command-line-241",
            "--mpi-world-size-variable S".to_owned(),
            Vec::new(),
            "both needed",
        ),
        (
            "command-line-242",
            format!("{CUSTOM} --profile-mpi-ranks 7"),
            both.clone(),
            "rank 7 is out of range",
        ),
        (
            "command-line-242",
            format!("{CUSTOM} --profile-mpi-ranks 1-4"),
            both.clone(),
            "0 to 3",
        ),
        (
            "command-line-243",
            format!("{CUSTOM} --profile-mpi-ranks 3-1"),
            both.clone(),
            "start > end",
        ),
        (
            "command-line-244",
            format!("{CUSTOM} --profile-mpi-ranks 0,abc"),
            both.clone(),
            "'abc'",
        ),
        (
            "command-line-244",
            "--profile-mpi-ranks 0,abc".to_owned(),
            Vec::new(),
            "'abc'",
        ),
        (
            "command-line-244",
            "--profile-mpi-ranks 0,,1".to_owned(),
            Vec::new(),
            "''",
        ),
        (
            "command-line-245",
            CUSTOM.to_owned(),
            custom("2", "abc"),
            "MY_SIZE: 'abc' is not an integer",
        ),
        (
            "command-line-245",
            CUSTOM.to_owned(),
            custom("2", "0"),
            "MY_SIZE: 0 is out of range",
        ),
        (
            "command-line-245",
            CUSTOM.to_owned(),
            custom("2", "-1"),
            "MY_SIZE: -1 is out of range",
        ),
        (
            "command-line-246",
            CUSTOM.to_owned(),
            custom("abc", "4"),
            "MY_RANK: 'abc' is not an integer",
        ),
        (
            "command-line-246",
            CUSTOM.to_owned(),
            custom("-1", "4"),
            "MY_RANK: -1 is out of range",
        ),
    ] {
        match run_with(&format!("-s {line} -- a"), &environment) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, 1, "{case}: {failure}");
                assert!(failure.message.contains(fragment), "{case}: {failure}");
            }
            _ => panic!("{case}: {line} is accepted"),
        }
    }
}

/// Every rank has an rpd of its own, which does not have the names of the other ranks.
#[test]
fn shared_output_name_of_ranks_gives_a_warning() {
    let warned = |line: &str, rank: &str| {
        let inherited = [("SLURM_PROCID", rank), ("SLURM_NTASKS", "4")];
        let warnings = plan_with(&format!("-s {line} -- a"), &inherited).warnings;
        warnings
            .iter()
            .any(|warning| warning.contains("get their process id appended"))
    };
    assert!(warned("-o x", "0"));
    assert!(!warned("-o x", "1"), "once is enough");
    assert!(warned("-o x --profile-mpi-ranks 2-3", "2"));
    assert!(!warned("-o x --profile-mpi-ranks 2", "2"));
    assert!(!warned("-o x_%rank% -d out", "0"));
    assert!(!warned("-o x -d out/%rank%", "0"));
    assert!(!warned("-d out", "0"));
}
