//! Requests that are refused before anything runs, and requests that cause a warning only.

use std::fs;

use rpd_tests::run::{Outcome, Rpd};

use super::{counters_in, pmc, with_input};

/// Runs `rpd <options> -- sh -c 'touch started'` and expects status 1, nothing started, nothing written.
fn refused(options: &[&str]) -> Outcome {
    nothing_happened(Rpd::new(options), options, &[])
}

/// The refusal of an input file of this name and content; nothing runs and nothing is written.
fn file_refused(name: &str, contents: &str, options: &[&str]) -> Outcome {
    let rpd = with_input(name, contents, options.iter().copied());
    nothing_happened(rpd, options, &[name])
}

fn nothing_happened(rpd: Rpd, what: &[&str], may_be_there: &[&str]) -> Outcome {
    let outcome = rpd
        .target(["/bin/sh", "-c", "touch started"])
        .expect_code(1);
    assert!(
        outcome.stderr.starts_with("rpd: ") && !outcome.stderr.contains("panicked"),
        "{what:?}: {}",
        outcome.stderr
    );
    assert_eq!(outcome.stdout, "", "{what:?}");
    let left: Vec<String> = fs::read_dir(outcome.directory.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .filter_map(|name| name.into_string().ok())
        .filter(|name| !may_be_there.contains(&name.as_str()))
        .collect();
    assert!(left.is_empty(), "{what:?}: {left:?}\n{}", outcome.stderr);
    outcome
}

fn has_words(outcome: &Outcome, words: &[&str]) {
    for word in words {
        assert!(
            outcome.stderr.contains(word),
            "no `{word}` in\n{}",
            outcome.stderr
        );
    }
}

#[test]
fn unknown_counters_are_refused_with_the_nearest_names() {
    has_words(&refused(&["--pmc", "SQ_WAVE"]), &["SQ_WAVE", "SQ_WAVES"]);
    has_words(
        &refused(&["--pmc", "sq_waves", "GRBM_COUNT"]),
        &["sq_waves", "SQ_WAVES"],
    );
    has_words(
        &refused(&["--pmc", "NO_SUCH_COUNTER"]),
        &["NO_SUCH_COUNTER", "rpd avail"],
    );
    has_words(
        &refused(&["--pmc", "SQ_WAVES", "--pmc", "TCC_HITS"]),
        &["TCC_HITS", "TCC_HIT"],
    );
    has_words(
        &refused(&["--pmc", "auto:SQ_WAVES,TCC_HITS"]),
        &["TCC_HITS", "TCC_HIT"],
    );
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [FETCHSIZE]\n";
    has_words(
        &file_refused("job.yaml", job, &[]),
        &["FETCHSIZE", "FETCH_SIZE"],
    );
    let job = "jobs:\n  - pmc_groups: [[SQ_WAVES], [GRBM_COUNTS]]\n";
    has_words(
        &file_refused("job.yaml", job, &[]),
        &["GRBM_COUNTS", "GRBM_COUNT"],
    );
}

#[test]
fn counters_that_the_device_cannot_count_are_refused() {
    // `SQ_ACCUM_PREV_HIRES` adds up the level of another counter, and the number of waves is no level.
    let outcome = refused(&["--pmc", "SQ_WAVES", "SQ_ACCUM_PREV_HIRES"]);
    has_words(&outcome, &["SQ_ACCUM_PREV_HIRES", "gfx90a"]);
    // Spread over passes it could not be counted either.
    assert!(!outcome.stderr.contains("auto:"), "{}", outcome.stderr);
}

#[test]
fn counters_that_do_not_fit_are_refused_with_a_split_that_fits() {
    let nine = [
        "SQ_WAVES",
        "SQ_INSTS_VALU",
        "SQ_INSTS_SALU",
        "SQ_INSTS_SMEM",
        "SQ_INSTS_LDS",
        "SQ_INSTS_VMEM_RD",
        "SQ_INSTS_VMEM_WR",
        "SQ_INSTS_BRANCH",
        "SQ_ITEMS",
    ];
    let outcome = refused(&[&["--pmc"][..], &nine[..]].concat());
    // The proposal can be copied as it is.
    let proposal = outcome
        .stderr
        .lines()
        .find_map(|line| line.find("--pmc ").map(|at| line[at..].trim()))
        .unwrap_or_else(|| panic!("no proposal\n{}", outcome.stderr));
    let mut flags: Vec<&str> = proposal.split_whitespace().collect();
    let last = flags
        .iter()
        .rposition(|word| nine.contains(&word.trim_end_matches(['`', '\'', '"', ')'])))
        .expect("names of counters");
    flags.truncate(last + 1);
    let flags: Vec<&str> = flags
        .into_iter()
        .map(|word| word.trim_matches(['`', '\'', '"', ')']))
        .collect();
    assert_eq!(
        flags.iter().filter(|word| **word == "--pmc").count(),
        2,
        "{proposal}"
    );
    let outcome = Rpd::new(flags.iter().chain(&["-f", "csv"]))
        .workload("vector-ops", ["1", "1"])
        .success();
    let mut counted: Vec<String> = outcome
        .files_ending("counter_collection.csv")
        .iter()
        .flat_map(|path| counters_in(path))
        .collect();
    counted.sort();
    let mut wanted = nine.map(str::to_owned).to_vec();
    wanted.sort();
    assert_eq!(counted, wanted);
}

#[test]
fn counters_are_refused_when_one_block_is_full() {
    let tcc = ["TCC_HIT", "TCC_MISS", "TCC_REQ", "TCC_READ", "TCC_WRITE"];
    refused(&[&["--pmc"][..], &tcc[..]].concat());
    refused(&["--pmc", "GRBM_COUNT", "GRBM_GUI_ACTIVE", "GRBM_CP_BUSY"]);
    // Parts of a derived counter take room as well: two of them and three more are five.
    refused(&["--pmc", "L2CacheHit", "TCC_REQ", "TCC_READ", "TCC_WRITE"]);
    // One group of several that take turns.
    let job = r#"{"jobs": [{"pmc_groups": [["SQ_WAVES"], ["GRBM_COUNT", "GRBM_GUI_ACTIVE", "GRBM_CP_BUSY"]]}]}"#;
    has_words(&file_refused("job.json", job, &[]), &["GRBM"]);
    // Different blocks do not compete, and a shared part is counted once.
    let outcome = pmc([
        "GRBM_COUNT",
        "GRBM_GUI_ACTIVE",
        "TCC_HIT",
        "TCC_MISS",
        "L2CacheHit",
        "SQ_WAVES",
    ])
    .workload("vector-ops", ["1", "1"])
    .success();
    assert_eq!(super::rows(&outcome).len(), 4 * 6);
}

/// Checks command-line-103.
#[test]
fn an_empty_pmc_group_among_several_is_refused() {
    has_words(&refused(&["--pmc", "SQ_WAVES", "--pmc"]), &["--pmc"]);
}

#[test]
fn invalid_kernel_patterns_are_refused() {
    let with = |more: &[&str]| refused(&[&["--pmc", "SQ_WAVES"][..], more].concat());
    has_words(
        &with(&["--kernel-include-regex", "(unclosed"]),
        &["--kernel-include-regex"],
    );
    has_words(
        &with(&["--kernel-exclude-regex", "[z-a]"]),
        &["--kernel-exclude-regex"],
    );
    has_words(
        &with(&["--kernel-include-regex", "(?=ahead)"]),
        &["--kernel-include-regex"],
    );
    has_words(
        &with(&["--kernel-include-regex", r"(a)\1"]),
        &["--kernel-include-regex"],
    );
}

/// Checks command-line-277.
#[test]
fn malformed_iteration_ranges_are_refused() {
    let with = |more: &[&str]| refused(&[&["--pmc", "SQ_WAVES"][..], more].concat());
    for range in ["a", "1-2-3", "[1-]", "[x-y]"] {
        has_words(
            &with(&["--kernel-iteration-range", range]),
            &["--kernel-iteration-range"],
        );
    }
}

#[test]
fn malformed_collection_periods_are_refused() {
    let with = |more: &[&str]| refused(&[&["--pmc", "SQ_WAVES"][..], more].concat());
    for period in ["1:1", "1:1:1:1", "a:1:1", "1:1:x", "-1:1:1"] {
        let period = format!("--collection-period={period}");
        has_words(&with(&[&period]), &["--collection-period"]);
    }
}

#[test]
fn selected_regions_with_a_collection_period_are_refused() {
    let with = |more: &[&str]| refused(&[&["--pmc", "SQ_WAVES"][..], more].concat());
    has_words(
        &with(&["--selected-regions", "-P", "1:1:1"]),
        &["--selected-regions", "--collection-period"],
    );
}

#[test]
fn a_rank_list_that_runs_backwards_is_refused() {
    let with = |more: &[&str]| refused(&[&["--pmc", "SQ_WAVES"][..], more].concat());
    has_words(&with(&["--profile-mpi-ranks", "3-1"]), &["3-1"]);
}

#[test]
fn malformed_counter_devices_are_refused() {
    refused(&["--pmc", "SQ_WAVES:device=x"]);
    refused(&["--pmc", "SQ_WAVES:gpu=1"]);
}

#[test]
fn faulty_job_files_are_refused_with_the_place() {
    let words =
        |name: &str, text: &str, words: &[&str]| has_words(&file_refused(name, text, &[]), words);
    words("job.yaml", "jobs: [a", &["job.yaml:"]);
    words("job.yaml", "job: []\n", &["jobs"]);
    words("job.yaml", "", &["job.yaml"]);
    words("job.yaml", "jobs:\n", &["job.yaml"]);
    words("job.yaml", "jobs: []\n", &["job.yaml"]);
    words("job.json", "{\"jobs\":[", &["job.json:"]);
    words("job.json", "{\"jobs\":[\"x\"]}", &["job.json:1:"]);
    words("job.json", "{\"jobs\":{\"a\":{}}}", &["job.json"]);
    words("job.txt", "no marker\n", &["job.txt"]);
    words("job.toml", "", &["job.toml"]);
    words("job.TXT", "pmc: SQ_WAVES\n", &["job.TXT"]);
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n    hip_trace: perhaps\n";
    words("job.yaml", job, &["job.yaml:3:", "hip_trace", "perhaps"]);
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n    output_format: [cvs]\n";
    words("job.yaml", job, &["job.yaml:3:", "cvs"]);
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n    kernel_include_regex: (unclosed\n";
    words("job.yaml", job, &["kernel_include_regex"]);
    let job = "jobs:\n  - hip_trace: yes\n    collection_period: [10:10:1]\n";
    words("job.yaml", job, &["job.yaml:3:", "quote"]);
    let job = "jobs:\n  - pmc: [SQ_WAVES]\n    pmc_groups: [[GRBM_COUNT]]\n";
    words("job.yaml", job, &["pmc_groups"]);
    has_words(&refused(&["-i", "missing.yaml"]), &["missing.yaml"]);
}

/// Checks command-line-D4.
#[test]
fn conflicts_of_a_later_job_are_refused_before_the_first_pass() {
    let second = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n    output_format: [csv]\n";
    let outcome = file_refused("job.yaml", second, &["-f", "json"]);
    has_words(&outcome, &["output_format", "job.yaml:4:"]);
    let second = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n    hip_trace: true\n";
    has_words(
        &file_refused("job.yaml", second, &["--hip-trace=no"]),
        &["hip_trace"],
    );
}

/// Checks command-line-213 and command-line-214.
#[test]
fn several_passes_with_a_collection_period_are_refused() {
    let two = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n";
    let outcome = file_refused("job.yaml", two, &["--collection-period", "0:100:1"]);
    has_words(&outcome, &["--collection-period"]);
    let second =
        "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n    collection_period: [\"0:100:1\"]\n";
    has_words(&file_refused("job.yaml", second, &[]), &["collection"]);
}

/// The guide has this example; the original ends it after its first pass.
#[test]
fn two_jobs_and_a_format_on_the_command_line_run_two_passes() {
    let two = "jobs:\n  - pmc: [SQ_WAVES]\n  - pmc: [GRBM_COUNT]\n";
    let rpd = with_input("job.yaml", two, ["-f", "csv"]);
    let outcome = rpd.workload("vector-ops", ["1", "1"]).success();
    assert_eq!(outcome.files_ending("counter_collection.csv").len(), 2);
}

#[test]
fn faulty_counter_definitions_are_refused_with_the_place() {
    let refused = |definitions: &str, words: &[&str]| {
        let rpd = Rpd::new(["--pmc", "MINE", "-E", "mine.yaml"]);
        fs::write(rpd.directory().join("mine.yaml"), definitions).expect("a file");
        let outcome = nothing_happened(rpd, &["-E"], &["mine.yaml"]);
        has_words(&outcome, words);
    };
    refused("rocprofiler-sdk: [", &["mine.yaml: line 2, column 1"]);
    let with = |expression: &str| {
        format!(
            "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n    - name: MINE\n      \
             description: mine\n      definitions:\n        - architectures: [gfx90a]\n          \
             expression: {expression}\n"
        )
    };
    refused(
        &with("reduce(SQ_WAVES,"),
        &["mine.yaml: line 8", "reduce(SQ_WAVES,"],
    );
    refused(&with("SQ_WAVES_NOT+1"), &["SQ_WAVES_NOT"]);
    has_words(
        &self::refused(&["--pmc", "MINE", "-E", "missing.yaml"]),
        &["missing.yaml"],
    );
}

/// Checks command-line-94.
#[test]
fn user_defined_counters_are_counted() {
    let rpd = Rpd::new([
        "--pmc",
        "WAVES_TWICE",
        "SQ_WAVES",
        "-E",
        "mine.yaml",
        "-f",
        "csv",
    ]);
    let definitions = "rocprofiler-sdk:
  counters-schema-version: 1
  counters:
    - name: WAVES_TWICE
      description: Twice the number of waves
      definitions:
        - architectures: [gfx90a]
          expression: 2*reduce(SQ_WAVES,sum)
";
    fs::write(rpd.directory().join("mine.yaml"), definitions).expect("a file");
    let outcome = rpd.workload("vector-ops", ["1", "1"]).success();
    let rows = super::rows(&outcome);
    assert_eq!(super::values(&rows, "WAVES_TWICE"), [2048.0; 4]);
    assert_eq!(super::values(&rows, "SQ_WAVES"), [1024.0; 4]);
}

#[test]
fn a_counter_that_is_always_zero_is_reported() {
    let outcome = pmc(["SQ_INSTS_LDS", "SQ_WAVES"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let line = outcome
        .stderr
        .lines()
        .find(|line| line.contains("SQ_INSTS_LDS"))
        .unwrap_or_else(|| panic!("not mentioned\n{}", outcome.stderr));
    assert!(line.contains('0') || line.contains("zero"), "{line}");
    assert!(!line.contains("SQ_WAVES"), "{line}");
    let outcome = pmc(["SQ_INSTS_LDS"])
        .workload("transpose", [""; 0])
        .success();
    assert!(!outcome.stderr.contains("zero"), "{}", outcome.stderr);
}
