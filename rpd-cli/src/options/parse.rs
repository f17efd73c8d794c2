//! From the command line to what was given, option by option.

use std::ffi::OsString;

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command, value_parser};

use rpd_core::text::os_text;

use super::spec::{Form, Spec};
use super::table::{self, Given, Group, OPTIONS};
use super::value::{choose_from, truth};
use crate::exit_status::{FAILED, USAGE};
use crate::failure::Failure;
use crate::notices;
use crate::sub_commands;

/// Result of parsing a command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Text to print instead of a run.
    Help(String),
    /// Print the version and stop.
    Version,
    /// Go on with the options and the words after the first `--`, as escaped text.
    Run(Box<Given>, Vec<String>),
}

/// Reads the arguments that follow the program's name.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Parsed, Failure> {
    if arguments.is_empty() {
        return Ok(Parsed::Help(help()));
    }
    // The cut is textual: it comes before any option is looked at.
    let (own, command) = match arguments.iter().position(|word| word == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (arguments, &[][..]),
    };
    let command = command.iter().map(|word| os_text::escape(word)).collect();
    let matches = match command_line().try_get_matches_from(own) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(Parsed::Help(help())),
        Err(error) => return Err(explain(&error, own)),
    };
    let mut given = Box::<Given>::default();
    for option in given.all_mut() {
        if !option.named().spec.key_only {
            option.read_matches(&matches)?;
        }
    }
    if given.version.is_on() {
        return Ok(Parsed::Version);
    }
    if given.quiet.is_on() {
        notices::silence();
    }
    Ok(Parsed::Run(given, command))
}

/// The help text.
pub(crate) fn help() -> String {
    command_line().render_help().to_string()
}

/// The help of the options for which `is_shown` holds, and of no others.
pub(crate) fn help_of(is_shown: impl Fn(&Spec) -> bool) -> String {
    let hidden = OPTIONS
        .iter()
        .filter(|spec| !spec.key_only && !is_shown(spec));
    let mut command = command_line()
        .override_usage("rpd [OPTIONS] -- PROGRAM [ARGUMENTS]")
        .after_help("See docs/command-line.md.")
        .mut_arg("help", |arg| arg.hide(true));
    for spec in hidden {
        command = command.mut_arg(spec.long, |arg| arg.hide(true));
    }
    command.render_help().to_string()
}

/// The clap command made from the table.
pub(crate) fn command_line() -> Command {
    let mut command = Command::new("rpd")
        .no_binary_name(true)
        .disable_version_flag(true)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .args_override_self(true)
        .max_term_width(120)
        .about("Profile programs that use AMD GPUs")
        .override_usage(sub_commands::usage())
        .after_help(
            "BOOL is one of y yes t true on 1, n no f false off 0, in any case; an option without it is on.\n\
             Placeholders in -d and -o: %pid% %ppid% %hostname% %tag% %argv% %args% %argt% %arg0%... %rank% %size% %nid% \
             %job% %cwd% %launch_date% %launch_time% %env{NAME}% and others; see docs/file-names.md.",
        );
    for spec in OPTIONS.iter().filter(|spec| !spec.key_only) {
        command = command.arg(argument(spec));
    }
    command.arg(
        Arg::new("help")
            .short('h')
            .long("help")
            .action(ArgAction::Help)
            .help("Print this help")
            .help_heading(Group::Advanced.heading()),
    )
}

fn argument(spec: &'static Spec) -> Arg {
    let mut arg = Arg::new(spec.long)
        .long(spec.long)
        .help(
            spec.help
                .replace("%formats%", &rpd_formats::registry::list()),
        )
        .help_heading(spec.group.heading())
        .hide(spec.hidden)
        .action(ArgAction::Set);
    if spec.form != Form::Flag {
        arg = arg
            .hide_possible_values(true)
            .value_name(spec.value_name)
            .allow_negative_numbers(true);
    }
    if let Some(short) = spec.short {
        arg = arg.short(short);
    }
    for alias in spec.aliases {
        arg = arg.visible_alias(alias);
    }
    let words = |words: &'static [&'static str]| PossibleValuesParser::new(words);
    match spec.form {
        Form::Flag => arg.action(ArgAction::SetTrue),
        Form::Bool => arg
            .num_args(0..=1)
            .default_missing_value("true")
            .value_parser(ValueParser::new(|word: &str| {
                truth(word).ok_or("invalid truth value")
            })),
        Form::Text => arg.num_args(1),
        Form::Path => arg.num_args(1).value_parser(value_parser!(OsString)),
        Form::Integer(low, high) => arg
            .num_args(1)
            .value_parser(value_parser!(i64).range(low..=high)),
        Form::Choice(known, ignore_case) => arg
            .num_args(1)
            .ignore_case(ignore_case)
            .value_parser(words(known)),
        Form::Choices(known) => arg
            .num_args(1..)
            .ignore_case(true)
            .value_parser(words(known)),
        Form::List { least, .. } => arg.num_args(least..),
        Form::Categories => arg.num_args(0..),
        Form::Groups => arg.num_args(0..).action(ArgAction::Append),
    }
}

fn bad_choice(spec: &Spec, word: &str, known: &[&str]) -> String {
    format!(
        "argument {}: invalid choice: '{word}' {}",
        spec.display(),
        choose_from(word, known)
    )
}

fn context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.first().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// The option that clap's context names: `--long <VALUE>`, `-s`, ...
fn named(argument: &str) -> Option<&'static Spec> {
    let word = argument.split([' ', '=']).next()?;
    if let Some(long) = word.strip_prefix("--") {
        return table::find(long);
    }
    let short = word.strip_prefix('-')?.chars().next()?;
    OPTIONS.iter().find(|spec| spec.short == Some(short))
}

/// One line for a mistake that clap found.
fn explain(error: &clap::Error, own: &[OsString]) -> Failure {
    if error.kind() == ErrorKind::InvalidUtf8
        && let Some(word) = own.iter().find(|word| word.to_str().is_none())
    {
        return Failure::usage(format!("{} is not valid UTF-8", os_text::escape(word)));
    }
    let own: &[String] = &own
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    let argument = context(error, ContextKind::InvalidArg);
    let value = context(error, ContextKind::InvalidValue);
    match (error.kind(), named(&argument)) {
        (ErrorKind::UnknownArgument, _) => {
            bad_truth(own, &argument).unwrap_or_else(|| Failure::usage(unknown(&argument, own)))
        }
        (ErrorKind::InvalidValue, Some(spec)) if value.is_empty() => {
            let amount = match spec.form {
                Form::List { .. } | Form::Choices(_) => "at least one argument",
                _ => "one argument",
            };
            Failure::usage(format!("argument {}: expected {amount}", spec.display()))
        }
        (ErrorKind::InvalidValue, Some(spec)) => {
            let known = match spec.form {
                Form::Choice(known, _) | Form::Choices(known) => known,
                _ => &[],
            };
            let mut message = bad_choice(spec, &value, known);
            if matches!(spec.form, Form::Choices(_)) && value.contains(',') {
                message = format!(
                    "argument {}: invalid choice: '{value}' (separate the words with spaces: {})",
                    spec.display(),
                    value.split(',').collect::<Vec<_>>().join(" ")
                );
            }
            Failure::usage(message)
        }
        (ErrorKind::ValueValidation, Some(spec)) if spec.form == Form::Bool => {
            not_a_truth_word(spec, &value)
        }
        (ErrorKind::ValueValidation, Some(spec)) => {
            let reason = match (spec.form, value.parse::<i64>()) {
                (Form::Integer(low, high), Ok(_)) if high < i64::MAX => {
                    format!("{value} is not in {low}..{high}")
                }
                (Form::Integer(low, _), Ok(_)) => format!("{value} is less than {low}"),
                _ => format!("invalid int value: '{value}'"),
            };
            Failure::usage(format!("argument {}: {reason}", spec.display()))
        }
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::new(USAGE, first.trim_start_matches("error: "))
        }
    }
}

fn not_a_truth_word(spec: &Spec, value: &str) -> Failure {
    Failure::new(
        FAILED,
        format!(
            "argument {}: invalid truth value {value}{}",
            spec.display(),
            forgotten_dashes(value)
        ),
    )
}

/// `rpd --hip-trace ./app --size 3`: the mistake is not `--size` but the missing `--` before `./app`.
fn bad_truth(own: &[String], unknown: &str) -> Option<Failure> {
    own.iter()
        .take_while(|word| *word != unknown)
        .zip(own.iter().skip(1))
        .find_map(|(word, next)| {
            let spec = named(word).filter(|spec| {
                spec.form == Form::Bool
                    && (word.starts_with("--") || word.len() == 2)
                    && !word.contains('=')
            })?;
            (!next.starts_with('-') && truth(next).is_none()).then(|| not_a_truth_word(spec, next))
        })
}

fn unknown(argument: &str, own: &[String]) -> String {
    let name = argument.split('=').next().unwrap_or_default();
    // clap names an unknown `--option`; `own` has it as written, with its value.
    let shown = own
        .iter()
        .find(|word| word.as_str() == argument)
        .map_or(argument, String::as_str);
    let mut message = format!("unrecognized arguments: {shown}");
    if name.starts_with("--") {
        if let Some(near) = rpd_core::text::near::nearest(name, table::long_names()) {
            message.push_str(&format!("; did you mean --{near}?"));
        }
    } else if !name.starts_with('-') {
        message.push_str(&format!(
            " (the program to run goes after `--`: rpd [options] -- {shown})"
        ));
    }
    message
}

/// A hint for `rpd --hip-trace ./app`.
fn forgotten_dashes(value: &str) -> String {
    let program = value.contains('/')
        || std::path::Path::new(value).exists()
        || crate::process::program::find(value.as_ref()).is_ok();
    if program {
        format!("; the program to run goes after `--`: rpd [options] -- {value}")
    } else {
        "; use y, yes, t, true, on, 1 or n, no, f, false, off, 0".to_owned()
    }
}
