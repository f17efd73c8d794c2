//! The table of options, the help, the manual and the code that reads options agree.

use std::path::Path;

use rpd_core::options::Format;
use rpd_gfx::device::Device;

use super::super::light;
use super::super::parse::{Parsed, parse};
use super::super::resolve::AGGREGATES;
use super::super::table::{Group, OPTIONS, SIMULATED_GPUS, Support, find};
use super::words;

#[test]
fn the_help_names_every_option_that_works_and_no_other() {
    let Ok(Parsed::Help(help)) = parse(&words("--help")) else {
        panic!("help");
    };
    for spec in OPTIONS {
        let named = help
            .split_whitespace()
            .any(|word| word.trim_end_matches(',') == format!("--{}", spec.long));
        assert_eq!(named, !spec.hidden, "--{}", spec.long);
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

#[test]
fn the_manual_lists_the_same_options() {
    let manual = include_str!("../../../../docs/command-line.md");
    for spec in OPTIONS.iter().filter(|spec| !spec.hidden) {
        assert!(
            manual.contains(&format!("`--{}`", spec.long)),
            "--{} is not in the manual",
            spec.long
        );
    }
    let row = manual
        .lines()
        .find(|line| line.contains("`--output-format`"));
    for format in Format::WORDS {
        let word = format!("`{format}`");
        assert!(
            row.is_some_and(|row| row.contains(&word)),
            "{format} is not in the manual"
        );
    }
    for word in manual.split('`').skip(1).step_by(2) {
        if let Some(long) = word.strip_prefix("--")
            && long
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            && !matches!(long, "" | "help")
        {
            assert!(
                find(long).is_some_and(|spec| spec.support == Support::Works),
                "the manual knows --{long}"
            );
        }
    }
}

#[test]
fn the_simulated_gpus_are_those_of_the_simulator() {
    assert_eq!(SIMULATED_GPUS, Device::simulated_names());
    let manual = include_str!("../../../../docs/command-line.md");
    let row = manual.lines().find(|line| line.contains("`--sim-gpu`"));
    for name in SIMULATED_GPUS {
        assert!(
            row.is_some_and(|row| row.contains(&format!("`{name}`"))),
            "{name} is not in the row of --sim-gpu"
        );
    }
}

/// An option that is in the table, and that nothing looks at, would be accepted and have no effect.
#[test]
fn every_option_that_works_is_read() {
    fn sources(folder: &Path, texts: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.ends_with("options/table.rs")
                || path.file_stem().is_some_and(|stem| stem == "tests")
            {
                continue;
            }
            match path.is_dir() {
                true => sources(&path, texts),
                false => texts.push(std::fs::read_to_string(&path).expect("a source file")),
            }
        }
    }
    let mut texts = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut texts,
    );
    for spec in OPTIONS.iter().filter(|spec| spec.support == Support::Works) {
        let name = format!("\"{}\"", spec.long);
        assert!(
            texts.iter().any(|text| text.contains(&name)),
            "--{}",
            spec.long
        );
    }
}

/// Options for single traces. A new one belongs to the aggregates, and a light recording has it or refuses it.
#[test]
fn every_trace_is_in_an_aggregate_and_answered_by_light_recordings() {
    let traces = OPTIONS.iter().filter(|spec| {
        matches!(spec.group, Group::Basic | Group::Granular)
            && spec.support == Support::Works
            && spec.long.ends_with("-trace")
            && spec.long != "kokkos-trace"
    });
    let recorded = AGGREGATES.iter().find(|(name, _)| *name == "light");
    for spec in traces {
        let of = |members: &[&str]| members.contains(&spec.long);
        assert!(
            AGGREGATES.iter().any(|(_, members)| of(members)),
            "--{} is in no aggregate",
            spec.long
        );
        assert!(
            of(&light::REFUSED) || recorded.is_some_and(|(_, members)| of(members)),
            "--light neither records nor refuses --{}",
            spec.long
        );
    }
}
