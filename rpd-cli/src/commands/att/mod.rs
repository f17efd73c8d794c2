//! `rpd att`: works on thread traces.

mod decode;
mod diff;

use std::ffi::OsString;

use anyhow::Result;

use crate::failure::Failure;

/// A sub-command: name, summary and function.
type Action = (&'static str, &'static str, fn(&[OsString]) -> Result<u8>);
const ACTIONS: &[Action] = &[
    (
        "decode",
        "Decode the trace files of a run: lines of code with their cycles, and the directory that the viewer opens",
        decode::run,
    ),
    (
        "diff",
        "Compare what rpd and another trace decoder library find in trace files",
        diff::run,
    ),
];

/// Names of the actions.
pub(crate) fn actions() -> impl Iterator<Item = &'static str> {
    ACTIONS.iter().map(|(name, _, _)| *name)
}

fn help() -> String {
    let mut text =
        String::from("Decode and compare thread traces\n\nUsage: rpd att <ACTION> ...\n\n");
    for (name, about, _) in ACTIONS {
        text.push_str(&format!("  {name:8} {about}\n"));
    }
    text.push_str("\nSee rpd att <ACTION> --help.\n");
    text
}

/// Runs the sub-command `rpd att`.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let first = arguments.first().and_then(|word| word.to_str());
    if let Some((_, _, run)) = ACTIONS.iter().find(|(name, _, _)| Some(*name) == first) {
        return run(&arguments[1..]);
    }
    match first {
        Some("--help" | "-h" | "help") => {
            crate::print(&help())?;
            Ok(0)
        }
        Some(other) => Err(Failure::usage(format!(
            "att: '{other}' is not an action (known: {}; see rpd att --help)",
            actions().collect::<Vec<_>>().join(", ")
        ))
        .into()),
        None => Err(Failure::usage("att: expected an action (see rpd att --help)").into()),
    }
}
