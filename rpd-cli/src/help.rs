//! `rpd help`, and the screen that rpd prints when it is called without a word.

use std::ffi::OsString;

use anyhow::Result;
use rpd_core::text::{foreign, near};

use crate::failure::Failure;
use crate::options::parse;
use crate::options::spec::Spec;
use crate::options::table::OPTIONS;
use crate::sub_commands::SubCommand;

/// Columns of the screen.
const COLUMNS: usize = 80;

/// What a new user needs first, and where the rest is.
const SCREEN: &str = "\
rpd records what a program does with its AMD GPU, and says where the time went.

Record:
  rpd --sys-trace --stats -- ./app        everything, and tables at the end
  rpd --kernel-trace -- ./app             kernels alone, which costs least
  rpd --hip-trace --stacks merged -- ./app   with the line of code of each call
  rpd --pmc SQ_WAVES -- ./app             hardware counters (rpd avail: which)
Ask:
  rpd summary DB           where the time went
  rpd stacks DB            which lines of code requested it
  rpd convert DB -f html   a page to look at; also csv, json, pftrace, parquet
  rpd diff A B             what got slower

";

/// What stands behind the lists of the screen.
const MORE: &str = "rpd help COMMAND|TOPIC|OPTION explains one; rpd --help lists all options.\n";

/// The screen: examples, and the names of commands and topics.
pub(crate) fn screen() -> String {
    let commands = SubCommand::ALL.iter().map(|command| command.name());
    let commands = wrapped("Commands:", commands);
    let topics = topics();
    let topics = wrapped("Topics:", topics.iter().map(String::as_str));
    format!("{SCREEN}{commands}{topics}{MORE}")
}

/// Words behind a title, in lines of at most [`COLUMNS`].
fn wrapped<'a>(title: &str, words: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut line = title.to_owned();
    for word in words {
        if line.len() + 1 + word.len() > COLUMNS {
            text.push_str(&line);
            text.push('\n');
            line = " ".to_owned();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
    text
}

/// The topic that an option belongs to: the heading of its group as one word, such as `call-stacks`.
fn topic(spec: &Spec) -> String {
    spec.group.heading().to_lowercase().replace(' ', "-")
}

/// Whether `name`, without dashes in front, names the option.
fn is_called(spec: &Spec, name: &str) -> bool {
    let short = spec.short.is_some_and(|short| short.to_string() == name);
    spec.long == name || short || spec.aliases.contains(&name)
}

/// Whether help shows the option.
fn is_shown(spec: &Spec) -> bool {
    !spec.hidden && !spec.key_only
}

/// All topics, in the order of the help.
fn topics() -> Vec<String> {
    let mut topics: Vec<String> = OPTIONS
        .iter()
        .filter(|spec| is_shown(spec))
        .map(topic)
        .collect();
    topics.dedup();
    topics
}

/// Explains the one word of `words`, or shows the screen; `explain` prints the help of a sub-command.
///
/// # Errors
/// When the word is no sub-command, topic or option, and when there are several.
pub(crate) fn run(
    words: &[OsString],
    explain: impl FnOnce(SubCommand) -> Result<u8>,
) -> Result<u8> {
    let word = match words {
        [] => return crate::print(&screen()),
        [word] => word.to_string_lossy(),
        [..] => return Err(Failure::usage("help: expected one command, topic or option").into()),
    };
    if let Some(command) = SubCommand::from_name(&word) {
        return match command {
            // They have no help of their own.
            SubCommand::Help | SubCommand::Version => crate::print(&screen()),
            command => explain(command),
        };
    }
    let name = word.trim_start_matches('-');
    let shown = || OPTIONS.iter().filter(|spec| is_shown(spec));
    if shown().any(|spec| topic(spec) == *word) {
        return crate::print(&parse::help_of(|spec| topic(spec) == *word));
    }
    if shown().any(|spec| is_called(spec, name)) {
        return crate::print(&parse::help_of(|spec| is_called(spec, name)));
    }
    let topics = topics();
    let known = SubCommand::ALL.iter().map(|command| command.name());
    let known = known.chain(topics.iter().map(String::as_str));
    let known = known.chain(shown().map(|spec| spec.long));
    let hint = near::nearest(&word, known)
        .map_or_else(String::new, |near| format!(" (did you mean {near}?)"));
    Err(Failure::usage(format!(
        "help: {} is no command, topic or option{hint}; rpd help lists commands and topics",
        foreign::shown(&word)
    ))
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_fits_a_terminal() {
        let screen = screen();
        assert!(screen.lines().count() <= 24, "{screen}");
        for line in screen.lines() {
            assert!(line.len() <= COLUMNS, "{line}");
        }
        for command in SubCommand::ALL {
            assert!(screen.contains(command.name()), "{}", command.name());
        }
    }

    #[test]
    fn help_of_every_topic_shows_its_options_alone() {
        for wanted in topics() {
            let help = parse::help_of(|spec| topic(spec) == wanted);
            for spec in OPTIONS.iter().filter(|spec| is_shown(spec)) {
                let has = help.lines().any(|line| {
                    let mut words = line.split([' ', ',']);
                    words.any(|word| word == format!("--{}", spec.long))
                });
                let belongs = topic(spec) == wanted;
                assert!(has || !belongs, "{wanted} lacks {}", spec.long);
            }
        }
    }
}
