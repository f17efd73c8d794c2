//! The conformance cases of PC sampling and thread traces, the tests that check them, and cases that no other module has.

use std::collections::BTreeSet;
use std::fs;

use rpd_tests::cases::{Test, assert_tests};
use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

use super::thread_trace_runs::traced;

/// Where the tests are.
const E2E: &str = "tests/tests/e2e";
const OPTIONS: &str = "rpd-cli/src/options/tests/thread_trace.rs";
const SAMPLING_OPTIONS: &str = "rpd-cli/src/options/tests/sampling.rs";
const DECODE: &str = "rpd-att/tests/decode";
const LIBRARY: &str = "rpd-att/tests/decode/library.rs";
const HEADER: &str = "rpd-att/src/header.rs";
const PROVIDER: &str = "rpd-sim/tests/programs/inside.rs";
const SAMPLES: &str = "rpd-gfx/src/perf/sample_tests.rs";
const HISTOGRAMS: &str = "rpd-gfx/src/perf/histogram_tests.rs";
const FIELDS: &str = "rpd-core/src/session/samples.rs";

/// A case, its tests, and why a part of it is not run: empty when all is.
type Case = (&'static str, &'static [Test], &'static str);

/// Thread traces, by number.
const THREAD_TRACES: &[Case] = &[
    (
        "1",
        &[(E2E, "case_1_a_decoder_library_that_is_nowhere")],
        "",
    ),
    (
        "2",
        &[
            (
                OPTIONS,
                "a_decoder_library_is_looked_for_in_the_given_folder",
            ),
            (LIBRARY, "cases_2_to_5_libraries_are_found_below_folders"),
        ],
        "",
    ),
    (
        "3",
        &[(
            OPTIONS,
            "a_decoder_library_is_looked_for_in_the_given_folder",
        )],
        "",
    ),
    (
        "4",
        &[
            (
                OPTIONS,
                "a_decoder_library_is_looked_for_in_the_given_folder",
            ),
            (E2E, "decoder_libraries_of_others"),
        ],
        "",
    ),
    (
        "5",
        &[
            (LIBRARY, "cases_2_to_5_libraries_are_found_below_folders"),
            (
                PROVIDER,
                "traces_are_decoded_by_the_library_that_the_tool_names",
            ),
        ],
        "",
    ),
    (
        "6",
        &[(
            LIBRARY,
            "cases_6_40_and_41_a_library_with_the_first_interface",
        )],
        "",
    ),
    (
        "7",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            (OPTIONS, "values_that_are_accepted"),
        ],
        "",
    ),
    (
        "8",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            ("rpd-cli/src/options/tests/input/keys.rs", "values"),
        ],
        "",
    ),
    (
        "9",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            (E2E, "shader_engines_are_those_of_the_mask"),
        ],
        "",
    ),
    (
        "10",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            (OPTIONS, "values_that_are_accepted"),
        ],
        "",
    ),
    ("11", &[(OPTIONS, "what_cannot_be_traced_is_refused")], ""),
    ("12", &[(E2E, "counters_are_in_the_trace")], ""),
    ("13", &[(OPTIONS, "what_cannot_be_traced_is_refused")], ""),
    (
        "14",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            (OPTIONS, "values_that_are_accepted"),
        ],
        "",
    ),
    ("15", &[(OPTIONS, "what_cannot_be_traced_is_refused")], ""),
    (
        "16",
        &[
            (OPTIONS, "what_cannot_be_traced_is_refused"),
            (OPTIONS, "values_that_are_accepted"),
            (E2E, "counters_are_in_the_trace"),
        ],
        "",
    ),
    (
        "17",
        &[(E2E, "iterations_and_filters_choose_dispatches")],
        "",
    ),
    (
        "18",
        &[(E2E, "iterations_and_filters_choose_dispatches")],
        "",
    ),
    (
        "19",
        &[(E2E, "iterations_and_filters_choose_dispatches")],
        "",
    ),
    (
        "20",
        &[
            (PROVIDER, "chosen_dispatches_are_traced"),
            (PROVIDER, "a_device_is_traced_from_start_to_stop"),
        ],
        "",
    ),
    ("21", &[(PROVIDER, "chosen_dispatches_are_traced")], ""),
    // The decoder.
    ("22", &[(HEADER, "case_22_the_software_header_of_gfx9")], ""),
    (
        "23",
        &[
            (HEADER, "case_23_what_is_no_header"),
            (DECODE, "case_23_data_that_is_no_trace"),
            (E2E, "what_is_wrong_with_trace_files"),
        ],
        "",
    ),
    (
        "24",
        &[(HEADER, "case_24_versions_of_hardware_headers")],
        "",
    ),
    ("25", &[(DECODE, "case_25_the_golden_stream_of_gfx9")], ""),
    ("26", &[(DECODE, "case_26_the_golden_stream_of_gfx11")], ""),
    ("27", &[(DECODE, "case_27_random_sequences_come_back")], ""),
    ("28", &[(DECODE, "case_28_random_sequences_come_back")], ""),
    ("29", &[(DECODE, "case_29_a_token_that_is_cut_off")], ""),
    (
        "30",
        &[(DECODE, "case_30_random_bytes_behind_the_header")],
        "",
    ),
    ("31", &[(DECODE, "case_31_a_wave_without_an_end")], ""),
    (
        "32",
        &[(DECODE, "case_32_lost_packets_are_reported_once")],
        "",
    ),
    (
        "33",
        &[(DECODE, "case_33_the_clock_is_set_by_time_stamps")],
        "",
    ),
    ("34", &[(DECODE, "case_34_ids_of_code_objects")], ""),
    (
        "35",
        &[(DECODE, "case_35_an_entry_outside_every_code_object")],
        "",
    ),
    (
        "36",
        &[(
            DECODE,
            "case_36_code_objects_that_follow_one_another_at_an_address",
        )],
        "",
    ),
    (
        "37",
        &[
            (DECODE, "case_37_a_loop_of_100_rounds"),
            (E2E, "sums_of_a_trace_agree"),
        ],
        "",
    ),
    ("38", &[(DECODE, "case_38_lines_without_tokens")], ""),
    (
        "39",
        &[(DECODE, "case_39_code_that_is_not_the_traced_one")],
        "",
    ),
    (
        "40",
        &[
            (DECODE, "case_40_a_text_that_is_longer_than_the_buffer"),
            (
                LIBRARY,
                "cases_6_40_and_41_a_library_with_the_first_interface",
            ),
        ],
        "",
    ),
    (
        "41",
        &[(
            LIBRARY,
            "cases_6_40_and_41_a_library_with_the_first_interface",
        )],
        "",
    ),
    // Files.
    (
        "42",
        &[
            (E2E, "sums_of_a_trace_agree"),
            (DECODE, "cases_42_43_51_and_52_lines_and_files"),
            (
                "rpd-formats/src/csv/thread_trace.rs",
                "case_42_and_47_rows_of_lines",
            ),
        ],
        "",
    ),
    (
        "43",
        &[
            (E2E, "sums_of_a_trace_agree"),
            (DECODE, "cases_42_43_51_and_52_lines_and_files"),
        ],
        "",
    ),
    (
        "44",
        &[
            (E2E, "sums_of_a_trace_agree"),
            (
                DECODE,
                "case_44_timelines_add_up_and_instructions_do_not_overlap",
            ),
        ],
        "",
    ),
    ("45", &[(E2E, "case_45_a_kernel_without_line_tables")], ""),
    ("46", &[(E2E, "case_46_calls_that_were_inlined")], ""),
    (
        "47",
        &[
            (
                "rpd-formats/src/csv/thread_trace.rs",
                "case_42_and_47_rows_of_lines",
            ),
            (DECODE, "cases_42_43_51_and_52_lines_and_files"),
        ],
        "",
    ),
    (
        "48",
        &[
            (E2E, "a_target_without_waves_has_occupancy_and_a_warning"),
            (DECODE, "case_48_a_trace_without_waves_of_the_target"),
        ],
        "",
    ),
    ("49", &[(E2E, "sums_of_a_trace_agree")], ""),
    ("50", &[(E2E, "sums_of_a_trace_agree")], ""),
    (
        "51",
        &[
            (E2E, "sums_of_a_trace_agree"),
            (DECODE, "cases_42_43_51_and_52_lines_and_files"),
        ],
        "the viewer itself is a program for a desktop; the three files that it requires are checked",
    ),
    (
        "52",
        &[
            (E2E, "sums_of_a_trace_agree"),
            (DECODE, "cases_42_43_51_and_52_lines_and_files"),
        ],
        "",
    ),
    (
        "53",
        &[
            (E2E, "case_53_trace_files_are_decoded_without_a_gpu"),
            (E2E, "files_of_a_run_are_decoded_again"),
        ],
        "",
    ),
    (
        "54",
        &[
            (
                "rpd-collect/src/sdk/code_bytes.rs",
                "the_bytes_of_a_file_and_of_memory_are_read",
            ),
            (E2E, "files_of_a_run_are_decoded_again"),
        ],
        "",
    ),
    ("55", &[(E2E, "two_gpus_have_traces_of_their_own")], ""),
    (
        "56",
        &[
            (E2E, "a_full_buffer_is_reported_and_the_rest_is_decoded"),
            (PROVIDER, "a_full_buffer_is_reported"),
        ],
        "",
    ),
    (
        "57",
        &[(
            "rpd-core/src/session/load/tests/traces.rs",
            "parts_of_a_stream_are_put_together",
        )],
        "",
    ),
    (
        "58",
        &[
            (E2E, "a_trace_of_consecutive_kernels"),
            (
                "rpd-collect/src/sdk/thread_trace.rs",
                "a_trace_of_consecutive_kernels_ends_behind_the_last_selected_one",
            ),
        ],
        "",
    ),
    ("59", &[(DECODE, "case_59_instructions_of_other_simds")], ""),
    ("60", &[(DECODE, "case_60_extension_words_of_gfx12")], ""),
    (
        "61",
        &[
            (DECODE, "case_61_counters_in_the_stream"),
            (PROVIDER, "counters_are_in_the_trace"),
            (E2E, "counters_are_in_the_trace"),
        ],
        "",
    ),
    (
        "62",
        &[
            (E2E, "traces_under_way_are_complete_after_a_signal"),
            (E2E, "traces_of_whole_gpus_are_delivered_after_a_signal"),
        ],
        "",
    ),
];

/// Raw words of a sample, and what they mean.
const WORDS: &[Case] = &[
    (
        "hardware id 0x41844713",
        &[
            (FIELDS, "vectors_of_packed_words"),
            ("rpd-sim/src/sdk/pc_records.rs", "vectors_of_packed_words"),
        ],
        "the register's own word comes from the trap handler of an MI200 or MI300, and the SDK alone reads it",
    ),
    (
        "snapshots 0x00020383, 0x00020101, 0x01010301",
        &[
            (FIELDS, "vectors_of_packed_words"),
            ("rpd-sim/src/sdk/pc_records.rs", "vectors_of_packed_words"),
        ],
        "the registers' own words come from the trap handler of an MI300, and the SDK alone reads them",
    ),
    (
        "snapshot 0x04000001",
        &[(
            "rpd-collect/tests/collector/sampling.rs",
            "what_is_not_recorded_is_counted",
        )],
        "an MI300 sets the error bit; the record that the SDK makes of it is counted",
    ),
    (
        "correlation 0x0000000500000011, word 0x1c = 0x00000203",
        &[(PROVIDER, "samples_are_of_what_was_executed")],
        "the words come from the trap handler of an MI200 or MI300; the fields that they become are checked",
    ),
];

/// Kernels whose histogram of samples is known, and what holds for all.
const KNOWN_HISTOGRAMS: &[Case] = &[
    (
        "lanes of 64 kernels, and of both sides of a branch",
        &[
            (HISTOGRAMS, "samples_have_the_mask_of_their_kernel"),
            (E2E, "samples_have_the_lanes_that_are_active"),
        ],
        "",
    ),
    (
        "samples on every GPU, with their lines",
        &[(E2E, "every_gpu_that_is_used_has_samples")],
        "",
    ),
    (
        "pointer chase",
        &[
            (SAMPLES, "a_pointer_chase_waits_at_one_instruction"),
            (E2E, "stochastic_samples_show_where_the_time_is_and_why"),
        ],
        "",
    ),
    (
        "barrier with one slow wave",
        &[(SAMPLES, "waves_wait_for_a_slow_one_at_the_barrier")],
        "",
    ),
    (
        "sleep",
        &[
            (SAMPLES, "sleeping_waves_execute_an_internal_instruction"),
            (E2E, "a_sleep_takes_64_cycles_for_each_unit"),
        ],
        "",
    ),
    (
        "independent multiply-adds, eight waves on a SIMD",
        &[(
            SAMPLES,
            "independent_chains_of_many_waves_wait_for_the_arbiter",
        )],
        "",
    ),
    (
        "dependent multiply-adds, one wave",
        &[(SAMPLES, "a_dependent_chain_waits_for_results_alone")],
        "",
    ),
    (
        "matrix instructions back to back",
        &[(SAMPLES, "matrix_instructions_wait_for_their_unit")],
        "",
    ),
    (
        "straight code of equal cost",
        &[(HISTOGRAMS, "straight_code_of_equal_cost_has_equal_shares")],
        "",
    ),
    (
        "two phases",
        &[(SAMPLES, "phases_have_the_samples_of_their_cycles")],
        "",
    ),
    (
        "no kernel",
        &[(E2E, "a_program_without_kernels_has_no_file_of_samples")],
        "",
    ),
    (
        "sums, timestamps and waves",
        &[(E2E, "samples_add_up_and_lie_in_their_dispatches")],
        "",
    ),
    (
        "the same seed",
        &[
            (SAMPLES, "a_seed_determines_samples"),
            (PROVIDER, "samples_are_of_what_was_executed"),
            (E2E, "the_same_seed_takes_the_same_samples"),
        ],
        "",
    ),
    (
        "number of samples",
        &[(E2E, "samples_are_as_many_as_the_time_says")],
        "",
    ),
    (
        "half the interval",
        &[
            (SAMPLES, "half_the_interval_takes_twice_the_samples"),
            (HISTOGRAMS, "shares_do_not_depend_on_the_interval"),
        ],
        "",
    ),
];

/// The command line, by number.
const COMMAND_LINE: &[Case] = &[
    (
        "106",
        &[(SAMPLING_OPTIONS, "what_is_incomplete_is_refused")],
        "",
    ),
    (
        "107",
        &[(
            SAMPLING_OPTIONS,
            "the_variable_stands_for_the_switch_whatever_its_value",
        )],
        "",
    ),
    (
        "108",
        &[(SAMPLING_OPTIONS, "what_is_incomplete_is_refused")],
        "",
    ),
    (
        "109",
        &[(SAMPLING_OPTIONS, "what_is_incomplete_is_refused")],
        "",
    ),
    (
        "110",
        &[(SAMPLING_OPTIONS, "what_is_incomplete_is_refused")],
        "",
    ),
    (
        "111",
        &[(SAMPLING_OPTIONS, "what_is_incomplete_is_refused")],
        "",
    ),
    (
        "112",
        &[(
            SAMPLING_OPTIONS,
            "a_whole_configuration_reaches_the_collector",
        )],
        "",
    ),
    (
        "113",
        &[
            (SAMPLING_OPTIONS, "unknown_words_are_refused"),
            (
                "rpd-cli/src/options/tests/input/keys.rs",
                "values_that_a_key_cannot_have",
            ),
        ],
        "",
    ),
];

/// Files with samples.
const FILES: &[Case] = &[
    (
        "correlation ids",
        &[(E2E, "files_are_as_the_originals")],
        "",
    ),
    ("comments", &[(E2E, "files_are_as_the_originals")], ""),
    (
        "lanes",
        &[(E2E, "samples_have_the_lanes_that_are_active")],
        "",
    ),
    (
        "hardware ids and workgroups",
        &[
            (E2E, "files_are_as_the_originals"),
            (E2E, "samples_add_up_and_lie_in_their_dispatches"),
        ],
        "",
    ),
    (
        "wave counts, rules by mnemonic, arbiter bits",
        &[(E2E, "every_sample_is_what_its_instruction_can_be")],
        "",
    ),
];

#[test]
fn every_case_has_a_test() {
    let numbers = THREAD_TRACES.iter().map(|case| case.0.to_owned());
    assert!(numbers.eq((1..=62).map(|number| number.to_string())));
    let numbers = COMMAND_LINE.iter().map(|case| case.0.to_owned());
    assert!(numbers.eq((106..=113).map(|number| number.to_string())));
    for list in [THREAD_TRACES, WORDS, KNOWN_HISTOGRAMS, COMMAND_LINE, FILES] {
        for (case, tests, not_run) in list {
            assert!(!tests.is_empty(), "{case}");
            assert_tests(case, tests);
            // What is not run needs hardware, or a screen.
            let needs = ["MI200", "MI300", "desktop"];
            let is_reason = not_run.is_empty() || needs.iter().any(|word| not_run.contains(word));
            assert!(is_reason, "{case}: {not_run}");
        }
    }
}

#[test]
fn case_1_a_decoder_library_that_is_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    for path in [&first, &second] {
        fs::create_dir(path).expect("made");
    }
    let outcome = Rpd::new(["--att", "--att-library-path"])
        .option([&first, &second])
        .workload("inside", ["sleeper"])
        .expect_code(1);
    assert_eq!(outcome.stdout, "", "the program did not run");
    for path in [first, second] {
        let path = path.display().to_string();
        assert!(outcome.stderr.contains(&path), "{}", outcome.stderr);
    }
}

/// The lines of a trace's `stats_*.csv`, without the names of kernels.
fn stats(outcome: &Outcome) -> (Table, Vec<usize>) {
    let table = Table::read(&outcome.file("_dispatch_1.csv"));
    let lines = (0..table.rows.len()).filter(|row| !table.rows[*row][2].starts_with(';'));
    let lines = lines.collect();
    (table, lines)
}

#[test]
fn case_45_a_kernel_without_line_tables() {
    let outcome = Rpd::new([
        "--att",
        "--att-target-cu",
        "0",
        "-f",
        "csv",
        "json",
        "rocpd",
    ])
    .workload("transpose", ["1"])
    .success();
    let (table, lines) = stats(&outcome);
    let sources = table.column("Source");
    assert!(lines.iter().all(|line| sources[*line].is_empty()));
    let hits = table.numbers("Hitcount");
    assert!(lines.iter().any(|line| hits[*line] > 0));
    let latency: u64 = table.numbers("Latency").iter().sum();
    assert!(latency > 0);
    assert!(!outcome.files_ending("code.json").is_empty());
    let database = outcome.file("results.db");
    let hot = Rpd::plain(["hot", database.to_str().expect("text")]).run();
    assert!(hot.success().stdout.contains("(no line)"));
}

#[test]
fn case_46_calls_that_were_inlined() {
    let outcome = traced(&["-f", "csv"], &["two_phases", "2"]);
    let (table, lines) = stats(&outcome);
    let sources = table.column("Source");
    let inlined: BTreeSet<&str> = lines
        .iter()
        .map(|line| sources[*line])
        .filter(|source| source.contains(" -> "))
        .collect();
    let kernels = "tests/workloads/kernels";
    // Innermost first.
    let phase = format!("{kernels}/inside.hip:146 -> {kernels}/inside.hip:155");
    let item = format!("{kernels}/device.h:14 -> {kernels}/inside.hip:153");
    for source in [phase, item] {
        assert!(inlined.contains(source.as_str()), "{source}: {inlined:?}");
    }
    // Code that the compiler gives no line belongs to the line before it.
    assert!(
        !sources.iter().any(|source| source.ends_with(":0")),
        "{sources:?}"
    );
}

const STOCHASTIC: [&str; 9] = [
    "--sim-gpu",
    "gfx942",
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "stochastic",
    "--pc-sampling-unit",
    "cycles",
    "--pc-sampling-interval",
    "1024",
];

#[test]
fn every_gpu_that_is_used_has_samples() {
    let outcome = Rpd::new(STOCHASTIC)
        .env("RPD_SIM_GPUS", "2")
        .option(["-f", "rocpd", "html"])
        .workload("inside", ["two_phases", "50", "8", "2"])
        .success();
    let database = outcome.database();
    // Each GPU has a code object of its own.
    let objects = database.rows("SELECT code_object_id, count(*) FROM pc_samples GROUP BY 1");
    assert_eq!(objects.len(), 2, "{objects:?}");
    let lines = database.rows("SELECT DISTINCT line FROM pc_lines WHERE line IN (137, 146)");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let page = fs::read_to_string(outcome.file("report.html")).expect("readable");
    assert_eq!(page.matches("{\"agent\":").count(), 2);
}

#[test]
fn samples_add_up_and_lie_in_their_dispatches() {
    let outcome = Rpd::new(STOCHASTIC)
        .option(["--kernel-trace", "-f", "rocpd"])
        .workload("inside", ["all", "10"])
        .success();
    let database = outcome.database();
    let number = |query: &str| database.number(query);
    let all = number("SELECT count(*) FROM pc_samples");
    assert!(all > 500, "{all} samples");
    let outside = "SELECT count(*) FROM pc_samples s LEFT JOIN kernels k ON k.dispatch_id = s.dispatch_id \
        WHERE k.start IS NULL OR s.timestamp NOT BETWEEN k.start AND k.end";
    assert_eq!(number(outside), 0);
    let odd = "SELECT count(*) FROM pc_samples WHERE wave_count NOT BETWEEN 1 AND 32 OR chiplet >= 8 OR simd >= 4 \
        OR wave_slot >= 8";
    assert_eq!(number(odd), 0);
    // By instruction, by line, and by whether an instruction was issued.
    for sums in [
        "SELECT sum(samples) FROM pc_instructions",
        "SELECT sum(samples) FROM pc_lines",
        "SELECT sum(samples) FROM rpd_pc_total",
        "SELECT (SELECT count(*) FROM pc_samples WHERE wave_issued = 1) + \
         (SELECT count(*) FROM pc_samples WHERE wave_issued = 0 AND stall_reason IS NOT NULL)",
    ] {
        assert_eq!(number(sums), all, "{sums}");
    }
    let path = outcome.file("results.db");
    let hot = |by: &str| {
        let file = outcome.out().join("hot.csv");
        let hot = ["hot", path.to_str().expect("text"), "--by", by, "-f", "csv"];
        let limits = [
            "--kernels",
            "0",
            "--lines",
            "0",
            "--instructions",
            "0",
            "-o",
        ];
        let _ = Rpd::plain(hot)
            .option(limits)
            .option([&file])
            .run()
            .success();
        let table = Table::read(&file);
        let sum = |column: &str| table.numbers(column).iter().sum::<u64>() as i64;
        assert_eq!(sum("Issued") + sum("Stalled"), sum("Samples"), "{by}");
        sum("Samples")
    };
    for by in ["kernel", "line", "instruction"] {
        assert_eq!(hot(by), all, "{by}");
    }
    // A run compared with itself has the same shares, in functions that kernels call, too.
    let file = outcome.out().join("annotated.csv");
    let path = path.to_str().expect("text");
    let _ = Rpd::plain([
        "annotate",
        path,
        "two_phases",
        "--diff",
        path,
        "-f",
        "csv",
        "-o",
    ])
    .option([&file])
    .run()
    .success();
    let table = Table::read(&file);
    assert_eq!(
        table.column("Line_Percent_Before"),
        table.column("Line_Percent")
    );
    let functions: BTreeSet<&str> = table.column("Function").into_iter().collect();
    assert_eq!(functions.len(), 2, "{functions:?}");
    let shares = table.column("Percent").into_iter();
    let shares: f64 = shares.filter_map(|share| share.parse::<f64>().ok()).sum();
    assert!((shares - 100.0).abs() < 0.5, "{shares}");
}

/// Sleeping waves on all compute units: how many samples there are follows from the time of the dispatch alone.
#[test]
fn samples_are_as_many_as_the_time_says() {
    let sampled = |gpu: &str, method: &str, unit: &str, interval: &str, blocks: &str| {
        let outcome = Rpd::new(["--sim-gpu", gpu, "--kernel-trace", "-f", "csv", "rocpd"])
            .option(["--pc-sampling-beta-enabled", "--pc-sampling-method", method])
            .option([
                "--pc-sampling-unit",
                unit,
                "--pc-sampling-interval",
                interval,
            ])
            .workload("inside", ["sleeper", "5000", blocks])
            .success();
        let agents = outcome.csv("agent_info");
        let most = |column: &str| agents.numbers(column).into_iter().max().unwrap_or(0) as f64;
        let (units, mhz) = (most("Cu_Count"), most("Max_Engine_Clk_Fcompute"));
        let database = outcome.database();
        let number = |query: &str| database.number(query) as f64;
        let nanoseconds = number("SELECT sum(end - start) FROM kernels");
        let used =
            "SELECT count(*) FROM (SELECT DISTINCT chiplet, shader_engine, cu FROM pc_samples)";
        (
            number("SELECT count(*) FROM pc_samples"),
            nanoseconds,
            units,
            mhz,
            number(used),
        )
    };
    // Two workgroups of one wave on each of 104 units, a wave slot of 32 at each tick.
    let (samples, nanoseconds, units, ..) = sampled("gfx90a", "host_trap", "time", "50", "208");
    let expected = 2.0 * units * nanoseconds / 50_000.0 / 32.0;
    assert!(
        (samples - expected).abs() < 0.05 * expected + 3.0 * expected.sqrt(),
        "{samples}, {expected}"
    );
    // One sample of each busy unit for each interval, whether it has one wave or two.
    let (samples, nanoseconds, _, mhz, used) =
        sampled("gfx942", "stochastic", "cycles", "65536", "304");
    let expected = used * nanoseconds / 1000.0 * mhz / 65536.0;
    assert!(
        (samples - expected).abs() < 0.05 * expected + used,
        "{samples}, {expected}"
    );
}

#[test]
fn the_same_seed_takes_the_same_samples() {
    let samples = |seed: &str| {
        let outcome = Rpd::new(STOCHASTIC)
            .env("RPD_SIM_SEED", seed)
            .workload("inside", ["divergent_branch", "20"])
            .success();
        let query = "SELECT code_object_offset, exec_mask, shader_engine, cu, simd, wave_slot, workgroup_x, wave_issued, \
            stall_reason, wave_count FROM pc_samples ORDER BY timestamp, id";
        outcome.database().rows(query)
    };
    let first = samples("5");
    assert!(first.len() > 50, "{} samples", first.len());
    assert_eq!(first, samples("5"));
    assert_ne!(first, samples("6"));
}

/// A sleep of 8 units, in the trace of a wave that is alone.
#[test]
fn a_sleep_takes_64_cycles_for_each_unit() {
    let outcome = traced(&["-f", "csv"], &["sleeper", "20", "1"]);
    let (table, lines) = stats(&outcome);
    let texts = table.column("Instruction");
    let sleep = lines
        .iter()
        .find(|line| texts[**line].starts_with("s_sleep"));
    let sleep = *sleep.expect("a sleep");
    let cycles = table.numbers("Latency")[sleep] / table.numbers("Hitcount")[sleep];
    assert!((512..=528).contains(&cycles), "{cycles} cycles");
}
