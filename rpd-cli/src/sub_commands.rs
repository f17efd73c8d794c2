//! The one table of sub-commands. The usage in the help, the list in messages and the commands of `rocpd` are made from
//! it, and [`crate::sub_command`], which runs them, does not compile without each.

/// Declares the sub-commands by line of the usage: what follows their names there, then the name of each and, if `rocpd`
/// has it, what the help of that says.
macro_rules! sub_commands {
    ($($arguments:literal { $($command:ident = $name:literal $(, rocpd: $help:literal)?;)* })*) => {
        /// A sub-command of rpd.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum SubCommand {
            $($($command,)*)*
        }

        impl SubCommand {
            /// Every sub-command, in the order of the help.
            pub(crate) const ALL: &'static [SubCommand] = &[$($(SubCommand::$command,)*)*];

            /// The word that selects it.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $($(SubCommand::$command => $name,)*)*
                }
            }
        }

        /// Sub-commands of each line of the usage, and what follows their names.
        const LINES: &[(&[SubCommand], &str)] = &[$((&[$(SubCommand::$command,)*], $arguments),)*];

        /// The commands of `rocpd`, each with its help.
        pub(crate) const ROCPD: &[(SubCommand, &str)] = &[
            $($($((SubCommand::$command, $help),)?)*)*
        ];
    };
}

sub_commands! {
    "[DIR]..." {
        Live = "live";
    }
    "PID [OPTIONS] | --find" {
        Attach = "attach";
    }
    "[OPTIONS] [RUN|PID | -- PROGRAM [ARGUMENTS]]" {
        Top = "top";
    }
    "[OPTIONS] -- PROGRAM [ARGUMENTS]" {
        Estimate = "estimate";
        Idle = "idle";
    }
    "RUN|PID start|stop|flush|status|snapshot" {
        Control = "control";
    }
    "DIR..." {
        Recover = "recover";
    }
    "[OPTIONS] DB..." {
        Convert = "convert", rocpd: "Write databases in other formats";
        Query = "query", rocpd: "Run SQL over databases";
        Summary = "summary", rocpd: "Sum up durations";
        Merge = "merge", rocpd: "Put databases into one";
        Diff = "diff";
        Export = "export";
    }
    "[OPTIONS] DB..." {
        Gaps = "gaps";
        Breakdown = "breakdown";
        Regions = "regions";
        Stats = "stats";
        Advise = "advise";
        View = "view";
    }
    "[OPTIONS] NAME DB..." {
        Kernel = "kernel";
    }
    "[OPTIONS] DIR | -- PROGRAM [ARGUMENTS]" {
        Explain = "explain";
    }
    "[OPTIONS] A B" {
        Compare = "compare";
    }
    "[ANSWER]" {
        Schema = "schema";
    }
    "[OPTIONS]" {
        Guide = "guide";
        Mcp = "mcp";
    }
    "[OPTIONS] DB..." {
        Stacks = "stacks";
        Flame = "flame";
        Symbolize = "symbolize";
        Hot = "hot";
        Annotate = "annotate";
    }
    "[OPTIONS] -- PROGRAM [ARGUMENTS]" {
        Capture = "capture";
        Check = "check";
    }
    "[OPTIONS] CAPTURE" {
        Replay = "replay";
    }
    "--help" {
        Avail = "avail";
        Att = "att";
        Doctor = "doctor";
    }
    "[COMMAND|TOPIC|OPTION]" {
        Help = "help";
    }
    "SHELL|--man-pages DIR" {
        Completions = "completions";
    }
    "" {
        Version = "version";
    }
}

impl SubCommand {
    /// The sub-command of this name.
    pub(crate) fn from_name(name: &str) -> Option<SubCommand> {
        let mut all = SubCommand::ALL.iter().copied();
        all.find(|command| command.name() == name)
    }
}

fn joined(commands: impl Iterator<Item = SubCommand>, separator: &str) -> String {
    let names: Vec<&str> = commands.map(SubCommand::name).collect();
    names.join(separator)
}

/// The usage of rpd: a line without sub-command and those of sub-commands.
pub(crate) fn usage() -> String {
    let mut usage = "rpd [OPTIONS] -- PROGRAM [ARGUMENTS]".to_owned();
    for (commands, arguments) in LINES {
        let names = joined(commands.iter().copied(), "|");
        usage.push_str(format!("\n       rpd {names} {arguments}").trim_end());
    }
    usage
}

/// The names of the commands of `rocpd`.
pub(crate) fn rocpd_names(separator: &str) -> String {
    joined(ROCPD.iter().map(|(command, _)| *command), separator)
}

/// What follows the name of `rocpd` in its usage.
pub(crate) fn rocpd_usage() -> String {
    format!("[-h] [-v] {{{}}} ...", rocpd_names(","))
}

#[cfg(test)]
mod tests {
    use super::SubCommand;

    #[test]
    fn manual_begins_with_every_sub_command() {
        let manual = include_str!("../../docs/command-line.md");
        let synopsis: Vec<&str> = manual
            .lines()
            .filter(|line| line.starts_with("    rpd "))
            .flat_map(str::split_whitespace)
            .collect();
        for command in SubCommand::ALL {
            assert!(
                synopsis.contains(&command.name()),
                "`rpd {}` is not among the lines at the beginning of docs/command-line.md",
                command.name()
            );
        }
    }
}
