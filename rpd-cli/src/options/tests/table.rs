//! The table of options, the help, the manual and the code that reads options agree.

use std::collections::HashSet;
use std::path::Path;

use rpd_core::domain::Domain;
use rpd_core::options::Format;
use rpd_gfx::device::Device;
use rpd_tests::install::source_root;
use rpd_tests::sources::{files_below, is_test};

use super::super::choices::{Choice as _, SimulatedGpu};
use super::super::light;
use super::super::parse::{Parsed, parse};
use super::super::spec::{Inherit, Spec, Support};
use super::super::table::{Given, Group, OPTIONS, find};
use super::super::traces::AGGREGATES;
use super::words;
use crate::commands::convert;

#[test]
fn the_help_names_every_option_that_works_and_no_other() {
    let Ok(Parsed::Help(help)) = parse(&words("--help")) else {
        panic!("help");
    };
    for spec in &OPTIONS {
        let named = help
            .split_whitespace()
            .any(|word| word.trim_end_matches(',') == format!("--{}", spec.long));
        assert_eq!(named, !spec.hidden, "--{}", spec.long);
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

/// The page with the tables of all options.
const TABLES: &str = include_str!("../../../../docs/command-line.md");

/// The other texts about options: pages, and a section of one.
fn more() -> [&'static str; 5] {
    let stacks = include_str!("../../../../docs/stacks.md");
    let (_, recorded) = stacks
        .split_once("## How stacks are recorded\n")
        .expect("a section");
    [
        include_str!("../../../../docs/control.md"),
        include_str!("../../../../docs/end-of-run.md"),
        include_str!("../../../../docs/file-names.md"),
        include_str!("../../../../docs/passes.md"),
        recorded.split("\n## ").next().unwrap_or_default(),
    ]
}

#[test]
fn the_manual_lists_the_same_options() {
    let manual = TABLES;
    let environment = include_str!("../../../../docs/environment.md");
    let traces = include_str!("../../../../docs/thread-trace.md");
    for spec in OPTIONS.iter().filter(|spec| !spec.hidden) {
        assert!(
            manual.contains(&format!("`--{}`", spec.long)),
            "--{} is not in the manual",
            spec.long
        );
        if let Inherit::Value(variable) | Inherit::Opposite(variable) = spec.inherit {
            let word = format!("`{variable}`");
            assert!(
                more()
                    .into_iter()
                    .chain([manual, environment, traces])
                    .any(|page| page.contains(&word)),
                "{word}, a variable of --{}, is not in the manual",
                spec.long
            );
        }
    }
    let row = manual
        .lines()
        .find(|line| line.contains("`--output-format`"));
    let formats = include_str!("../../../../docs/formats.md");
    let counters = formats.split_once("## Counters in each format");
    for format in Format::WORDS {
        let word = format!("`{format}`");
        assert!(
            row.is_some_and(|row| row.contains(&word)),
            "{format} is not in the manual"
        );
        assert!(
            counters.is_some_and(|(_, section)| section.contains(&format!("\n| {word} |"))),
            "{format} has no row in \"Counters in each format\""
        );
    }
    let pages = more().into_iter().chain([manual]);
    for word in pages.flat_map(|page| page.split('`').skip(1).step_by(2)) {
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
    let gpus = SimulatedGpu::WORDS;
    assert_eq!(gpus, Device::simulated_names());
    for (manual, key) in [
        (TABLES, "`--sim-gpu`"),
        (
            include_str!("../../../../docs/simulator.md"),
            "| `RPD_SIM_GPU` |",
        ),
    ] {
        let row = manual.lines().find(|line| line.contains(key));
        for name in gpus {
            assert!(
                row.is_some_and(|row| row.contains(&format!("`{name}`"))),
                "{name} is not in the row of {key}"
            );
        }
    }
    let simulator = include_str!("../../../../docs/simulator-functions.md");
    let names = gpus.join(" and ");
    let sentence = format!("Code for other processors than {names} is not executed");
    assert!(simulator.contains(&sentence), "{sentence}");
    let help = find("sim-gpu").map_or("", |spec| spec.help);
    let names = gpus.join(" or ");
    assert!(help.contains(&format!(": {names};")), "{names}: {help}");
}

/// Counters have no durations, and so no statistics.
#[test]
fn the_manual_lists_the_domains_of_statistics() {
    let list = TABLES.split_once("Domains are ").expect("a list").1;
    let list = list.split_once('.').expect("a sentence").0;
    let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    let domains = Domain::ALL.into_iter();
    let domains = domains.filter(|domain| *domain != Domain::CounterCollection);
    assert_eq!(named, domains.map(Domain::label).collect::<Vec<_>>());
}

/// The sources below a directory of the workspace whose path from there `take` accepts, one after the other.
fn sources(directory: &str, take: impl Fn(&Path) -> bool) -> String {
    let root = source_root();
    files_below(&root.join(directory), &["rs"])
        .iter()
        .filter(|path| take(path.strip_prefix(root).expect("below the root")))
        .map(|path| std::fs::read_to_string(path).expect("a source file"))
        .collect()
}

/// An option that is in the table and that no code reads would be accepted and have no effect. Code reads it from a
/// `given`, or an aggregate includes it.
#[test]
fn every_option_that_works_is_read() {
    // `called.rs` looks for it before options are parsed.
    const READ_EARLY: &str = "compat";
    let text = sources("rpd-cli/src/options", |path| !is_test(path));
    let text: String = text.split_whitespace().collect();
    let read: HashSet<&str> = text
        .split("given.")
        .skip(1)
        .filter_map(|text| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
        })
        .collect();
    let mut given = Given::default();
    let mut included = HashSet::new();
    for (aggregate, members) in AGGREGATES {
        for switch in std::iter::once(aggregate).chain(*members) {
            included.insert(switch(&mut given).spec.key);
        }
    }
    for spec in OPTIONS.iter().filter(|spec| spec.support == Support::Works) {
        assert!(
            read.contains(spec.key) || included.contains(spec.key) || spec.key == READ_EARLY,
            "no code reads --{}",
            spec.long
        );
    }
}

/// As options are written in lines and in job files, with a dash or an underscore between their words.
#[test]
fn every_option_that_works_has_a_test() {
    let in_cli = sources("rpd-cli", |path| {
        is_test(path) && !path.ends_with("tests/table.rs")
    });
    let tests = in_cli + &sources("tests/tests", |_| true);
    let words: HashSet<&str> = tests
        .split(|character: char| !character.is_ascii_alphanumeric() && !"-_".contains(character))
        .collect();
    for spec in OPTIONS.iter().filter(|spec| spec.support == Support::Works) {
        let option = format!("--{}", spec.long);
        let key = spec.long.replace('-', "_");
        assert!(
            words.contains(option.as_str()) || words.contains(key.as_str()),
            "no test gives {option}"
        );
    }
}

/// A field that the resolution of options sets and that no other code reads would have no effect.
#[test]
fn every_field_of_the_options_is_read() {
    const DEFINITIONS: [&str; 5] = [
        "rpd-core/src/options.rs",
        "rpd-spool/src/options.rs",
        "rpd-spool/src/sampling.rs",
        "rpd-spool/src/stacks.rs",
        "rpd-spool/src/thread_trace.rs",
    ];
    let is_reader = |path: &Path| {
        let defines = DEFINITIONS
            .iter()
            .any(|definition| path.ends_with(definition));
        let resolves = path.starts_with("rpd-cli/src/options");
        !defines && !resolves && !is_test(path)
    };
    let directories = [
        "rpd-cli/src",
        "rpd-core/src",
        "rpd-spool/src",
        "rpd-collect/src",
        "rpd-formats/src",
        "rpd-summary/src",
        "rpd-symbols/src",
    ];
    let readers: String = directories
        .iter()
        .map(|directory| sources(directory, is_reader))
        .collect();
    let read: HashSet<&str> = readers
        .split('.')
        .skip(1)
        .filter_map(|text| {
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
        })
        .collect();
    for definition in DEFINITIONS {
        let (directory, _) = definition.rsplit_once('/').expect("a path");
        let text = sources(directory, |path| path.ends_with(definition));
        let fields = text.lines().filter_map(|line| {
            let (field, _) = line.strip_prefix("    pub ")?.split_once(": ")?;
            (!field.contains(' ')).then_some(field)
        });
        let mut count = 0;
        for field in fields {
            assert!(
                read.contains(field),
                "{definition}: nothing reads `{field}`"
            );
            count += 1;
        }
        assert!(count > 1, "{definition}: no fields");
    }
}

/// Options about files that `rpd convert` writes as well; the others are about the run.
#[test]
fn options_about_files_are_options_of_convert() {
    const OF_THE_RUN: [&str; 5] = [
        "list-avail",
        "output-config",
        "output-environment",
        "log-level",
        "extra-counters",
    ];
    let convert = convert::command();
    let has = |long: &str| {
        convert.get_arguments().any(|argument| {
            let aliases = argument.get_all_aliases().unwrap_or_default();
            argument.get_long() == Some(long) || aliases.contains(&long)
        })
    };
    let about_files = |spec: &&Spec| {
        matches!(
            spec.group,
            Group::Output | Group::Naming | Group::Display | Group::Perfetto
        ) && spec.support == Support::Works
            && !spec.key_only
    };
    for spec in OPTIONS.iter().filter(about_files) {
        assert_ne!(
            has(spec.long),
            OF_THE_RUN.contains(&spec.long),
            "--{} is either an option of `rpd convert` or in OF_THE_RUN",
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
            && !["kokkos-trace", "cuda-graph-trace"].contains(&spec.long)
    });
    let mut given = Given::default();
    let refused: HashSet<&str> = light::without_place(&given)
        .iter()
        .map(|option| option.spec.key)
        .collect();
    let (mut included, mut recorded) = (HashSet::new(), HashSet::new());
    for (aggregate, members) in AGGREGATES {
        let is_light = aggregate(&mut given).spec.key == "light";
        for member in *members {
            let key = member(&mut given).spec.key;
            included.insert(key);
            if is_light {
                recorded.insert(key);
            }
        }
    }
    for spec in traces {
        assert!(
            included.contains(spec.key),
            "--{} is in no aggregate",
            spec.long
        );
        assert!(
            refused.contains(spec.key) || recorded.contains(spec.key),
            "--light neither records nor refuses --{}",
            spec.long
        );
    }
}
