//! The one table of sub-commands. Dispatch, the usage in the help, the list in messages and the commands of `rocpd` are made
//! from it.

use std::ffi::OsString;

use anyhow::Result;
use rpd_core::compat::Compat;

use super::{att, avail, capture, check, convert, diff, hot, live, merge, query, stacks, summary};
use crate::failure::Failure;
use crate::isolation;

/// Runs a sub-command with the words after its name; the exit status.
type Run = fn(&[OsString], Compat) -> Result<u8>;

/// A sub-command.
#[derive(Clone, Copy)]
pub(crate) struct SubCommand {
    pub(crate) name: &'static str,
    pub(crate) run: Run,
    /// What the help of `rocpd` says about it; `None` when `rocpd` does not have it.
    pub(crate) rocpd: Option<&'static str>,
}

impl SubCommand {
    const fn new(name: &'static str, run: Run) -> SubCommand {
        SubCommand {
            name,
            run,
            rocpd: None,
        }
    }

    const fn of_rocpd(mut self, help: &'static str) -> SubCommand {
        self.rocpd = Some(help);
        self
    }
}

/// Sub-commands that stand on one line of the usage, and what follows their names there.
struct Line(&'static [SubCommand], &'static str);

/// Every sub-command, in the order of the help.
const LINES: &[Line] = &[
    Line(
        &[SubCommand::new("live", |words, _| live::run(words))],
        "[DIR]...",
    ),
    Line(
        &[SubCommand::new("recover", |words, _| {
            crate::recover::run(words)
        })],
        "DIR...",
    ),
    Line(
        &[
            SubCommand::new("convert", convert::run).of_rocpd("Write databases in other formats"),
            SubCommand::new("query", query::run).of_rocpd("Run SQL over databases"),
            SubCommand::new("summary", summary::run).of_rocpd("Sum up durations"),
            SubCommand::new("merge", merge::run).of_rocpd("Put databases into one"),
            SubCommand::new("diff", |words, _| diff::run(words)),
            SubCommand::new("export", |words, _| stacks::export::run(words)),
        ],
        "[OPTIONS] DB...",
    ),
    Line(
        &[
            SubCommand::new("stacks", |words, _| stacks::run(words)),
            SubCommand::new("flame", |words, _| stacks::flame::run(words)),
            SubCommand::new("symbolize", |words, _| stacks::symbolize::run(words)),
            SubCommand::new("hot", |words, _| hot::run(words)),
            SubCommand::new("annotate", |words, _| hot::annotate::run(words)),
        ],
        "[OPTIONS] DB...",
    ),
    Line(
        &[
            SubCommand::new("capture", |words, _| capture::run(words)),
            SubCommand::new("check", |words, _| check::run(words)),
        ],
        "[OPTIONS] -- APPLICATION [ARGUMENTS]",
    ),
    Line(
        &[SubCommand::new("replay", |words, _| {
            capture::replay::run(words)
        })],
        "[OPTIONS] CAPTURE",
    ),
    Line(
        &[
            SubCommand::new("avail", avail::run),
            SubCommand::new("att", |words, _| att::run(words)),
        ],
        "--help",
    ),
];

/// Every sub-command.
pub(crate) fn all() -> impl Iterator<Item = &'static SubCommand> {
    LINES.iter().flat_map(|line| line.0)
}

/// The usage of rpd: a line without sub-command and those of sub-commands.
pub(crate) fn usage() -> String {
    let mut lines = vec!["rpd [OPTIONS] -- APPLICATION [ARGUMENTS]".to_owned()];
    for Line(commands, arguments) in LINES {
        let names: Vec<&str> = commands.iter().map(|command| command.name).collect();
        lines.push(format!("rpd {} {arguments}", names.join("|")));
    }
    lines.join("\n       ")
}

/// Runs a sub-command of rpd; the exit status.
///
/// # Errors
/// There is none of this name, or it fails.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> Result<u8> {
    if let Some(command) = all().find(|command| command.name == name) {
        return isolation::isolated(name, || (command.run)(arguments, Compat::None));
    }
    let known: Vec<&str> = all().map(|command| command.name).collect();
    let hint = match rpd_core::near::nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; the program to run goes after `--`: rpd [options] -- {name}"),
    };
    Err(Failure::usage(format!(
        "unrecognized arguments: {name} is not a sub-command (known: {}){hint}",
        known.join(", ")
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use super::all;

    #[test]
    fn manual_begins_with_every_sub_command() {
        let manual = include_str!("../../../docs/command-line.md");
        let synopsis: Vec<&str> = manual
            .lines()
            .filter(|line| line.starts_with("    rpd "))
            .flat_map(|line| line.split([' ', '|']))
            .collect();
        for command in all() {
            assert!(
                synopsis.contains(&command.name),
                "`rpd {}` is not among the lines at the beginning of docs/command-line.md",
                command.name
            );
        }
    }
}
