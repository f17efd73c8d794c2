//! `rpd completions`: words that a shell completes, and manual pages, made from the definitions of the commands' options.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Command, Parser};
use clap_complete::Shell;
use rpd_core::compat::Compat;

use super::{att, capture};
use crate::options::parse;
use crate::sub_commands::SubCommand;

/// Name of the sub-command.
const NAME: &str = "completions";

/// Print what a shell needs to complete rpd's commands and options, or write manual pages
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Shell to print completions for, such as: rpd completions bash > ~/.local/share/bash-completion/completions/rpd
    #[arg(value_enum, required_unless_present = "man_pages")]
    shell: Option<Shell>,
    /// Directory for manual pages of rpd and of each command, rpd.1 and rpd-COMMAND.1
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    man_pages: Option<PathBuf>,
}

thread_local! {
    /// Definitions that commands have handed to [`parse`](super::parse) since [`defined`] began; `None` outside of it.
    static DEFINITIONS: RefCell<Option<Vec<Command>>> = const { RefCell::new(None) };
}

/// Takes note of the definition of a command's options; false when no definitions are wanted.
pub(super) fn take_definition(command: &Command) -> bool {
    DEFINITIONS.with_borrow_mut(|definitions| {
        let is_wanted = definitions.is_some();
        if let Some(definitions) = definitions {
            definitions.push(command.clone());
        }
        is_wanted
    })
}

/// The definition that the command which `run` runs parses its words by; `None` if it parses them itself.
fn defined(run: impl FnOnce() -> Result<u8>) -> Option<Command> {
    DEFINITIONS.set(Some(Vec::new()));
    let ended = run();
    let definitions = DEFINITIONS.take().unwrap_or_default();
    ended.ok()?;
    definitions.into_iter().next()
}

/// Definitions of rpd's own options and of all sub-commands.
fn definition() -> Command {
    let mut whole = parse::command_line().name("rpd");
    for command in SubCommand::ALL {
        let name = command.name();
        // They read their words themselves and would print their help.
        let is_plain = matches!(
            command,
            SubCommand::Att
                | SubCommand::Estimate
                | SubCommand::Help
                | SubCommand::Recover
                | SubCommand::Version
        );
        let found = if is_plain {
            None
        } else {
            defined(|| crate::sub_command(*command, &["--help".into()], Compat::None))
        };
        let mut one = found.unwrap_or_else(|| Command::new(name)).name(name);
        let actions: Vec<&'static str> = match command {
            SubCommand::Att => att::actions().collect(),
            SubCommand::Capture => capture::ACTIONS.to_vec(),
            _ => Vec::new(),
        };
        for action in actions {
            let words = [action.into(), "--help".into()];
            let found = defined(|| crate::sub_command(*command, &words, Compat::None));
            one = one.subcommand(found.unwrap_or_else(|| Command::new(action)).name(action));
        }
        whole = whole.subcommand(one);
    }
    whole
}

/// Runs `rpd completions`; returns the exit status.
pub(crate) fn run(words: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, words)? else {
        return Ok(0);
    };
    match (given.shell, given.man_pages) {
        (_, Some(directory)) => write_pages(&directory),
        (Some(shell), None) => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut definition(), "rpd", &mut text);
            crate::print(&String::from_utf8_lossy(&text))
        }
        // clap demands one of them.
        (None, None) => Ok(0),
    }
}

/// Writes a manual page of rpd and of each sub-command.
fn write_pages(directory: &Path) -> Result<u8> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut whole = definition();
    // Gives sub-commands names such as rpd-summary.
    whole.build();
    for command in std::iter::once(&whole).chain(whole.get_subcommands()) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = directory.join(format!("{name}.1"));
        let destination = super::destination(NAME, Some(&path), [] as [&Path; 0])?;
        let page = clap_mangen::Man::new(command.clone());
        destination.write(|out| Ok::<_, anyhow::Error>(page.render(out)?))?;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_has_the_options_of_rpd_and_of_every_sub_command() {
        let whole = definition();
        let has = |command: &Command, long: &str| {
            command
                .get_arguments()
                .any(|argument| argument.get_long() == Some(long))
        };
        assert!(has(&whole, "sys-trace"));
        let without: Vec<&str> = whole
            .get_subcommands()
            .filter(|command| command.get_arguments().count() == 0)
            .map(Command::get_name)
            .collect();
        assert_eq!(without, ["estimate", "recover", "att", "help", "version"]);
        for (name, nested, long) in [
            ("summary", None, "region-categories"),
            ("capture", Some("trim"), "force"),
        ] {
            let command = whole.find_subcommand(name).expect(name);
            let command = nested.map_or(command, |nested| {
                command.find_subcommand(nested).expect(nested)
            });
            assert!(has(command, long), "{name} --{long}");
        }
    }

    #[test]
    fn definition_is_consistent() {
        definition().debug_assert();
    }
}
