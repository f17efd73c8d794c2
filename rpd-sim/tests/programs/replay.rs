//! Kernel replay of the simulated provider, driven through the ABI as a tool does: `replay.c` is tool and program in one.

use std::path::Path;

use crate::common;

/// What the program prints, and what the provider warns of.
fn output_of(mode: &str) -> (String, String) {
    let libraries = ["-lrocprofiler-sdk", "-lamdhip64"];
    let name = format!("replay-{mode}");
    let (directory, program) = common::build(&name, "replay.c", &["-rdynamic"], &libraries);
    let module = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/workloads/kernels/prebuilt/varying.hipfb");
    let module = module.to_str().expect("a path");
    common::run_loudly(
        &directory,
        &program,
        &[module, mode],
        &[("RPD_SIM_SDK", "1.4"), ("RPD_SIM_GPUS", "1")],
    )
}

/// The lines that begin with a word.
fn lines<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| line.starts_with(word)).collect()
}

/// The results are those of one run, whatever the number of passes.
fn check_results(text: &str) {
    let results = lines(text, "incremented");
    assert!(
        results.len() == 1 && results[0].starts_with("incremented to 1 and 1,"),
        "{text}"
    );
    assert_eq!(lines(text, "counted"), ["counted to 1"], "{text}");
}

/// sdk-newer-54, sdk-newer-55 and sdk-newer-61
#[test]
fn replayed_dispatch_leaves_what_one_run_leaves() {
    let (text, complaints) = output_of("three");
    assert_eq!(complaints, "");
    check_results(&text);
    assert_eq!(
        lines(&text, "configured"),
        ["configured 0, again 15, by another 15"]
    );
    assert!(
        text.contains("3 records of 1 dispatches"),
        "one id for all passes: {text}"
    );
    let first: Vec<&str> = text.lines().skip(2).take(8).collect();
    assert_eq!(
        first,
        [
            "config begins size 184, pass 0 of 0, user 0, functions 0000",
            "  pass begins size 184, pass 0 of 3, user 7, functions 0011",
            "  pass ends size 184, pass 0 of 3, user 7, functions 0000",
            "  pass begins size 184, pass 1 of 3, user 7, functions 0011",
            "  pass ends size 184, pass 1 of 3, user 7, functions 0000",
            "  pass begins size 184, pass 2 of 3, user 7, functions 0011",
            "  pass ends size 184, pass 2 of 3, user 7, functions 0000",
            "config ends size 184, pass 0 of 0, user 7, functions 0000",
        ],
        "{text}"
    );
}

/// sdk-newer-57
#[test]
fn dispatch_of_one_pass_is_not_replayed() {
    for mode in ["none", "one"] {
        let (text, complaints) = output_of(mode);
        assert_eq!(complaints, "");
        check_results(&text);
        assert_eq!(lines(&text, "pass "), [""; 0], "{text}");
        assert!(text.contains("1 records of 1 dispatches"), "{text}");
    }
}

/// sdk-newer-62 and sdk-newer-63
#[test]
fn number_of_passes_follows_the_functions_of_the_tool() {
    let passes = |mode: &str| {
        let (text, complaints) = output_of(mode);
        check_results(&text);
        // Of two dispatches.
        (lines(&text, "pass begins").len(), complaints)
    };
    assert_eq!(passes("endless"), (10, String::new()));
    assert_eq!(passes("early"), (4, String::new()));
    let (count, complaints) = passes("loose");
    assert_eq!(count, 0);
    assert!(complaints.contains("endless loop"), "{complaints}");
}

/// sdk-newer-64
#[test]
fn value_of_the_tool_is_copied_for_each_pass() {
    let (text, _) = output_of("user");
    let of_passes: Vec<&str> = lines(&text, "pass ends")
        .into_iter()
        .filter_map(|line| line.split("user ").nth(1)?.split(',').next())
        .take(3)
        .collect();
    assert_eq!(of_passes, ["7", "8", "9"], "{text}");
    assert!(
        lines(&text, "proceed 1 of 3")[0].contains("user 8,"),
        "{text}"
    );
    assert!(lines(&text, "config ends")[0].contains("user 7,"), "{text}");
}

/// sdk-newer-65
#[test]
fn contexts_of_a_replay_are_changed_at_the_begin_of_a_pass_only() {
    let (text, _) = output_of("outside");
    let outside = lines(&text, "outside");
    assert!(outside.len() > 5, "{text}");
    assert!(
        outside.iter().all(|line| line.ends_with("refused")),
        "{text}"
    );
    assert!(text.contains("3 records of 1 dispatches"), "{text}");
}

/// sdk-newer-66
#[test]
fn context_that_is_stopped_in_a_pass_is_left_out_of_those_that_follow() {
    let (text, _) = output_of("stop");
    check_results(&text);
    assert_eq!(
        lines(&text, "stop: ")[0],
        "stop: 0, of none: refused",
        "{text}"
    );
    assert!(text.contains("1 records of 1 dispatches"), "{text}");
}

/// sdk-newer-60
#[test]
fn dispatch_runs_once_where_the_host_has_no_memory_for_a_copy() {
    let (text, complaints) = output_of("memory");
    check_results(&text);
    assert!(
        complaints.contains("runs once: there is no memory to keep"),
        "{complaints}"
    );
    assert!(text.contains("1 records of 1 dispatches"), "{text}");
}
