//! What rpd says of itself: `rpd`, `rpd help` and `rpd version`.

use std::process::{Command, Output};

fn rpd(arguments: &[&str]) -> Output {
    let mut rpd = Command::new(env!("CARGO_BIN_EXE_rpd"));
    rpd.args(arguments).output().expect("rpd starts")
}

/// What rpd prints on standard output, with status 0.
fn printed(arguments: &[&str]) -> String {
    let output = rpd(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    assert!(output.stderr.is_empty(), "{arguments:?}");
    String::from_utf8(output.stdout).expect("a text")
}

#[test]
fn rpd_without_a_word_prints_the_screen_of_help() {
    let screen = printed(&[]);
    assert!(screen.contains("rpd summary DB"), "{screen}");
    assert_eq!(screen, printed(&["help"]));
    assert_ne!(screen, printed(&["--help"]));
}

#[test]
fn help_explains_a_command_a_topic_or_an_option() {
    for command in ["summary", "recover", "live", "capture", "avail", "att"] {
        assert_eq!(
            printed(&["help", command]),
            printed(&[command, "--help"]),
            "{command}"
        );
    }
    let topic = printed(&["help", "call-stacks"]);
    assert!(topic.contains("--stacks-depth"), "{topic}");
    assert!(!topic.contains("--pmc"), "{topic}");
    for option in ["--pmc", "pmc"] {
        let help = printed(&["help", option]);
        assert!(
            help.contains("--pmc") && !help.contains("--extra-counters"),
            "{help}"
        );
    }
    assert!(printed(&["help", "-d"]).contains("--output-directory"));
}

#[test]
fn help_refuses_a_word_that_it_does_not_know() {
    for (arguments, part) in [
        (&["help", "sumary"][..], "did you mean summary?"),
        (&["help", "summary", "diff"], "expected one command"),
        (&["version", "now"], "it takes no arguments"),
    ] {
        let output = rpd(arguments);
        let message = String::from_utf8(output.stderr).expect("a text");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(
            message.starts_with("rpd: ") && message.contains(part),
            "{message}"
        );
    }
}

#[test]
fn version_is_that_of_the_option() {
    assert_eq!(printed(&["version"]), printed(&["--version"]));
}
