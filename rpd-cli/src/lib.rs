//! The rpd command.
//!
//! `options` turns the command line, and the jobs of an input file, into resolved options, `counters` asks the
//! provider what of that can be counted, `process` starts the target and waits for it, `launch` runs the passes, `report`
//! makes files and tables of what was recorded, `recover` does the same for a run whose front end is gone, `commands` work
//! on results and on the provider.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

// The macros of the standard library panic when standard error is a closed pipe (`rpd ... 2>&1 | head`). Messages may be lost
// then; passes and files may not.
// A message is one line: text from files or from the target cannot begin another line or move the cursor.
macro_rules! eprintln {
    ($($text:tt)*) => {{
        let line = format!($($text)*);
        let line = rpd_core::text::foreign::shown(&line);
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("{line}\n").as_bytes());
    }};
}

// A message that says what went as it should: see `notices`.
macro_rules! notice {
    ($($text:tt)*) => {
        if !crate::notices::are_silenced() {
            eprintln!($($text)*);
        }
    };
}

mod answers;
mod called;
mod commands;
mod counters;
mod echo;
mod exit_status;
mod failure;
mod help;
mod isolation;
mod launch;
mod limits;
mod long_run;
mod mcp;
mod notices;
mod options;
mod process;
mod recover;
mod report;
mod run_directory;
mod sub_commands;
mod terminal;
mod thread_trace;
pub mod untrusted;
mod version;
mod wording;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use rpd_core::compat::Compat;
use rpd_core::storage::memory;
use signal_hook::consts::SIGXFSZ;

use crate::called::{CalledAs, Program};
use crate::failure::Failure;
use crate::options::parse::{self, Parsed};
use crate::options::resolve::{Environment, resolve};
use crate::sub_commands::SubCommand;

/// Runs rpd with the words and the environment of this process; its exit status.
pub fn main() -> ExitCode {
    isolation::install();
    survive_size_limit();
    memory::return_large_buffers();
    let mut words = std::env::args_os();
    let name = words.next();
    let arguments: Vec<OsString> = words.collect();
    let called = CalledAs::by(name.as_deref(), &arguments);
    let done = match limits::check() {
        Ok(()) => run(called, &arguments),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            for line in called.error(&error).lines() {
                eprintln!("{line}");
            }
            ExitCode::from(failure::status(&error))
        }
    }
}

/// Makes a write beyond the limit of the size of files (`ulimit -f`) an error, as on a full disk, which does not end
/// rpd. Programs that rpd starts have the signal as rpd got it: a handler ends with `exec`, and where the signal is
/// ignored it stays so.
fn survive_size_limit() {
    let ignored = rpd_core::procfs::own_status("SigIgn");
    let ignored = ignored.and_then(|mask| u64::from_str_radix(&mask, 16).ok());
    if ignored.is_some_and(|mask| mask & (1 << (SIGXFSZ - 1)) == 0) {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

fn run(called: CalledAs, arguments: &[OsString]) -> Result<u8> {
    let word = arguments.first().and_then(|word| word.to_str());
    if word == Some(counters::query_process::CHILD) {
        return counters::child::run();
    }
    if word == Some(commands::doctor::SELF_TEST) {
        return commands::doctor::self_test();
    }
    if word == Some(commands::record_rpd_file::CALL) {
        return commands::record_rpd_file::run(&arguments[1..], |words| profile(called, words));
    }
    match called.program {
        Program::Rpd if arguments.is_empty() && called.compat == Compat::None => {
            return print(&help::screen());
        }
        Program::Rpd => {
            if let Some(word) = word.filter(|word| !word.starts_with('-')) {
                let command = SubCommand::from_name(word).ok_or_else(|| unknown(word))?;
                let run = || sub_command(command, &arguments[1..], Compat::None);
                return isolation::isolated(word, run);
            }
        }
        Program::Rocprofv3 => {}
        Program::Rocprofv3Doctor => return commands::doctor::run(arguments),
        Program::Rocprofv3Avail => return commands::avail::run(arguments, called.compat),
        Program::Hiptracer => return commands::capture::hiptracer(arguments),
        Program::RpdRemote => return commands::control::rpd_remote(arguments),
        Program::Rocpd => return commands::rocpd::run(arguments, called.compat, sub_command),
        Program::RocpdTool(tool) => return commands::rocpd::tool(tool, arguments, called.compat),
    }
    if let Some(words) = commands::doctor::forwarded(arguments) {
        return commands::doctor::run(&words);
    }
    profile(called, arguments)
}

/// Runs the profiler by a command line without sub-command. Returns the exit status.
fn profile(called: CalledAs, arguments: &[OsString]) -> Result<u8> {
    match parse::parse(arguments)? {
        Parsed::Help(text) => print(&text),
        Parsed::Version => print(&version::text()),
        Parsed::Run(given, command) => {
            let environment = Environment::current(called.compat)?;
            let mut plan = resolve(*given, command, &environment)?;
            if plan.list_avail && !plan.echo {
                commands::avail::list_avail(&plan)?;
                if plan
                    .passes
                    .iter()
                    .all(|pass| pass.options.command.is_empty())
                {
                    return Ok(0);
                }
            }
            if let Some(attach) = plan.attach.take()
                && !plan.echo
            {
                return commands::attach::record(&plan, &attach, &environment);
            }
            // `--echo` does not query the provider unless the passes depend on the answer.
            let computed = if plan.echo && !plan.passes.iter().any(|pass| pass.auto) {
                Vec::new()
            } else {
                counters::validate_and_pack(&mut plan)?
            };
            if !plan.echo {
                counters::validate_sampling(&mut plan)?;
                counters::validate_thread_trace(&mut plan)?;
            }
            plan.fold();
            plan.number();
            if plan.echo {
                for warning in &plan.warnings {
                    eprintln!("{}", called.compat.warning(warning));
                }
                let passes = plan.passes.iter().map(|pass| &pass.options);
                return print(&echo::lines(passes)?);
            }
            launch::run(&plan, &computed, &environment)
        }
    }
}

/// Prints to standard output; a closed pipe is not an error. A terminal gets nothing that moves its cursor.
pub(crate) fn print(text: &str) -> Result<u8> {
    use std::io::IsTerminal as _;
    let text = if std::io::stdout().is_terminal() {
        &rpd_core::text::foreign::shown_lines(text)
    } else {
        text
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(0),
    }
}

/// Prints lines to standard error, which may be closed. Nothing in them moves the cursor of a terminal.
pub(crate) fn print_message(text: &str) {
    let text = rpd_core::text::foreign::shown_lines(text);
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Runs a sub-command with the words after its name; the exit status.
///
/// # Errors
/// When the sub-command fails.
fn sub_command(command: SubCommand, words: &[OsString], compat: Compat) -> Result<u8> {
    match command {
        SubCommand::Live => commands::live::run(words),
        SubCommand::Attach => {
            commands::attach::run(words, |words| profile(CalledAs::by(None, words), words))
        }
        SubCommand::Idle => commands::idle::run(words),
        SubCommand::Top => commands::top::run(words),
        SubCommand::Estimate => commands::estimate::run(words),
        SubCommand::Control => commands::control::run(words),
        SubCommand::Recover => recover::run(words),
        SubCommand::Convert => commands::convert::run(words, compat),
        SubCommand::Query => commands::query::run(words, compat),
        SubCommand::Summary => commands::summary::run(words, compat),
        SubCommand::Merge => commands::merge::run(words, compat),
        SubCommand::Diff => commands::diff::run(words),
        SubCommand::Export => commands::stacks::export::run(words),
        SubCommand::Gaps => answers::gaps::run(words, compat),
        SubCommand::Breakdown => answers::breakdown::run(words, compat),
        SubCommand::Regions => answers::regions::run(words, compat),
        SubCommand::Stats => answers::stats::run(words, compat),
        SubCommand::Advise => answers::advise::run(words, compat),
        SubCommand::Kernel => answers::kernel::run(words, compat),
        SubCommand::View => answers::view::run(words, compat),
        SubCommand::Compare => answers::compare::run(words, compat),
        SubCommand::Explain => answers::explain::run(words, compat),
        SubCommand::Guide => answers::guide::run(words),
        SubCommand::Mcp => mcp::run(words),
        SubCommand::Schema => answers::schema::run(words),
        SubCommand::Stacks => commands::stacks::run(words),
        SubCommand::Flame => commands::stacks::flame::run(words),
        SubCommand::Symbolize => commands::stacks::symbolize::run(words),
        SubCommand::Hot => commands::hot::run(words),
        SubCommand::Annotate => commands::hot::annotate::run(words),
        SubCommand::Capture => commands::capture::run(words),
        SubCommand::Check => commands::check::run(words),
        SubCommand::Replay => commands::capture::replay::run(words),
        SubCommand::Avail => commands::avail::run(words, compat),
        SubCommand::Att => commands::att::run(words),
        SubCommand::Completions => commands::completions::run(words),
        SubCommand::Doctor => commands::doctor::run(words),
        SubCommand::Help => help::run(words, |command| {
            sub_command(command, &["--help".into()], compat)
        }),
        SubCommand::Version if words.is_empty() => print(&version::text()),
        SubCommand::Version => Err(Failure::usage("version: it takes no arguments").into()),
    }
}

/// The failure of a first word that is no sub-command.
fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = SubCommand::ALL
        .iter()
        .map(|command| command.name())
        .collect();
    let hint = match rpd_core::text::near::nearest(name, known.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None => format!("; the program to run goes after `--`: rpd [options] -- {name}"),
    };
    Failure::usage(format!(
        "unrecognized arguments: {name} is not a sub-command (known: {}){hint}",
        known.join(", ")
    ))
}
