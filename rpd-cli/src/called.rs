//! The name that rpd was called by, which selects the program and its behaviour.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use rpd_core::compat::{Compat, Difference};

use crate::exit_status::USAGE;
use crate::failure;
use crate::sub_commands;

/// Programs that this binary implements, selected by its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// The program `rpd`, and every name that is not one of the others.
    Rpd,
    /// `rocprofv3`: the profiler without sub-commands.
    Rocprofv3,
    /// The program `rocprofv3-avail`: `rpd avail`.
    Rocprofv3Avail,
    /// The program `rocprofv3-doctor`: `rpd doctor`.
    Rocprofv3Doctor,
    /// `rpd convert`, `query`, `summary` and `merge`.
    Rocpd,
    /// A tool of rocpd, as a program of its own.
    RocpdTool(RocpdTool),
    /// `hiptracer`: `rpd capture` with the switches of that program.
    Hiptracer,
    /// `rpdRemote` of rocmProfileData: `rpd control PID start` and `stop`.
    RpdRemote,
}

/// Programs that do one thing with databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RocpdTool {
    /// `rpd convert -f` with this format.
    Convert(&'static str),
    /// The command `rpd summary`.
    Summary,
}

/// The programs of ROCm, HIPTracer and RPD that rpd replaces, by name.
const PROGRAMS: [(&str, Program); 10] = [
    ("rocprofv3", Program::Rocprofv3),
    ("rocprofv3-avail", Program::Rocprofv3Avail),
    ("rocprofv3-doctor", Program::Rocprofv3Doctor),
    ("rocpd", Program::Rocpd),
    ("rocpd2csv", Program::RocpdTool(RocpdTool::Convert("csv"))),
    ("rocpd2otf2", Program::RocpdTool(RocpdTool::Convert("otf2"))),
    (
        "rocpd2pftrace",
        Program::RocpdTool(RocpdTool::Convert("pftrace")),
    ),
    ("rocpd2summary", Program::RocpdTool(RocpdTool::Summary)),
    ("hiptracer", Program::Hiptracer),
    ("rpdRemote", Program::RpdRemote),
];

impl Program {
    /// What follows the name of the program in its usage.
    fn usage(self) -> String {
        match self {
            Program::Rpd | Program::Rocprofv3 | Program::Hiptracer => {
                "[options] -- <application> [application options]".to_owned()
            }
            Program::Rocprofv3Avail | Program::Rocprofv3Doctor => "[options]".to_owned(),
            Program::Rocpd => sub_commands::rocpd_usage(),
            Program::RocpdTool(_) => "-i INPUT [INPUT ...] [options]".to_owned(),
            Program::RpdRemote => "start|stop PID".to_owned(),
        }
    }
}

/// The program and the behaviour that were selected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CalledAs {
    pub(crate) program: Program,
    pub(crate) compat: Compat,
}

impl CalledAs {
    /// The program and mode of a command line: `name` is the program's own name, possibly with a path, `words` are
    /// those after it. `--compat` wins over the name.
    pub(crate) fn by(name: Option<&OsStr>, words: &[OsString]) -> CalledAs {
        let file = name.and_then(|name| Path::new(name).file_name());
        let program = PROGRAMS
            .iter()
            .find(|(known, _)| file == Some(OsStr::new(known)))
            .map_or(Program::Rpd, |(_, program)| *program);
        let by_name = match program {
            Program::Rpd | Program::Hiptracer | Program::RpdRemote => Compat::None,
            Program::Rocprofv3
            | Program::Rocprofv3Avail
            | Program::Rocprofv3Doctor
            | Program::Rocpd
            | Program::RocpdTool(_) => Compat::Rocprofv3,
        };
        let has_option = matches!(program, Program::Rpd | Program::Rocprofv3);
        CalledAs {
            program,
            compat: given(words).filter(|_| has_option).unwrap_or(by_name),
        }
    }

    /// The message for an error that ends rpd.
    pub(crate) fn error(&self, error: &anyhow::Error) -> String {
        let line = failure::line(error);
        if !self.compat.has(Difference::Diagnostics) {
            return format!("rpd: {line}\n");
        }
        if failure::status(error) != USAGE {
            return format!("Fatal error: {line}\n");
        }
        let by_name = PROGRAMS
            .into_iter()
            .find(|(_, program)| *program == self.program);
        // `rpd --compat rocprofv3` is called as what it stands for.
        let (name, program) = by_name.unwrap_or(("rocprofv3", Program::Rocprofv3));
        let usage = program.usage();
        format!("usage: {name} {usage}\n{name}: error: {line}\n")
    }
}

/// The value of the last `--compat` before the program to run. The parser reports errors in it.
fn given(words: &[OsString]) -> Option<Compat> {
    let own: Vec<&str> = words
        .iter()
        .take_while(|word| *word != "--")
        .map(|word| word.to_str().unwrap_or_default())
        .collect();
    (own.iter().enumerate())
        .filter_map(|(index, word)| match word.strip_prefix("--compat")? {
            "" => Compat::from_label(own.get(index + 1)?),
            value => Compat::from_label(value.strip_prefix('=')?),
        })
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn called(words: &[&str]) -> CalledAs {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        CalledAs::by(words.first().map(OsString::as_os_str), &words[1..])
    }

    #[test]
    fn program_name_and_option_select_program_and_mode() {
        for (words, program, compat) in [
            (&["rpd"][..], Program::Rpd, Compat::None),
            (
                &["/opt/rocm/bin/rocprofv3"],
                Program::Rocprofv3,
                Compat::Rocprofv3,
            ),
            (
                &["rocprofv3-avail"],
                Program::Rocprofv3Avail,
                Compat::Rocprofv3,
            ),
            (&["./rocpd"], Program::Rocpd, Compat::Rocprofv3),
            (
                &["rocpd2summary"],
                Program::RocpdTool(RocpdTool::Summary),
                Compat::Rocprofv3,
            ),
            (&["rocprofv3.old"], Program::Rpd, Compat::None),
            (
                &["rpd", "-s", "--compat", "rocprofv3"],
                Program::Rpd,
                Compat::Rocprofv3,
            ),
            (
                &["rocprofv3", "--compat=none"],
                Program::Rocprofv3,
                Compat::None,
            ),
            (
                &["rpd", "--", "app", "--compat=rocprofv3"],
                Program::Rpd,
                Compat::None,
            ),
            (
                &["rpd", "--compat=rocprofv3", "--compat", "none"],
                Program::Rpd,
                Compat::None,
            ),
        ] {
            let called = called(words);
            assert_eq!(
                (called.program, called.compat),
                (program, compat),
                "{words:?}"
            );
        }
    }

    #[test]
    fn error_has_the_form_of_the_selected_tool() {
        let usage = || Failure::usage("unrecognized arguments: --x").into();
        let failed = || Failure::failed("No application provided").into();
        assert_eq!(
            called(&["rpd"]).error(&usage()),
            "rpd: unrecognized arguments: --x\n"
        );
        let original = called(&["rocprofv3"]);
        assert_eq!(
            original.error(&usage()),
            "usage: rocprofv3 [options] -- <application> [application options]\n\
             rocprofv3: error: unrecognized arguments: --x\n"
        );
        assert_eq!(
            original.error(&failed()),
            "Fatal error: No application provided\n"
        );
    }
}
