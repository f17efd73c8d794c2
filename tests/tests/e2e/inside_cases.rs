//! The conformance cases of PC sampling and thread traces, and the tests that check them.

use rpd_tests::cases::{Test, assert_tests};

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
