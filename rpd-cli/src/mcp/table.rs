//! The table of tools: what each is, what it takes, and the command line that answers.

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A recording below a root.
    Path,
    /// A text.
    Text,
    /// A number up to a limit.
    Number(u64),
    /// One of some words.
    Word(&'static [&'static str]),
    /// A program with its arguments.
    Command,
}

/// Where an argument goes on the command line of rpd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A word of its own, in the order of the arguments.
    Alone,
    /// After an option.
    After(&'static str),
    /// Nowhere: the server itself needs it.
    Server,
}

/// An argument of a tool: name, what it is, where it goes, whether it is needed, and its meaning.
pub(super) type Argument = (&'static str, Kind, Place, bool, &'static str);

/// Greatest number of seconds that a program may run.
pub(super) const LONGEST: u64 = 86_400;

/// A tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The sub-command of rpd, with options that it always has.
    pub(super) command: &'static [&'static str],
    pub(super) about: &'static str,
    pub(super) arguments: &'static [Argument],
    /// Whether it runs a program.
    pub(super) runs: bool,
}

const PATH: Argument = (
    "path",
    Kind::Path,
    Place::Alone,
    true,
    "Database, or directory of recordings",
);
const KERNEL: Argument = (
    "name",
    Kind::Text,
    Place::Alone,
    true,
    "Regular expression of the kernel's name",
);
const START: Argument = (
    "start",
    Kind::Text,
    Place::After("--start"),
    false,
    "Begin of the window, as of rpd --start",
);
const END: Argument = (
    "end",
    Kind::Text,
    Place::After("--end"),
    false,
    "End of the window, as of rpd --end",
);
const ARGV: Argument = (
    "argv",
    Kind::Command,
    Place::Server,
    true,
    "Program below a root, and its arguments; no shell",
);
const CWD: Argument = (
    "cwd",
    Kind::Path,
    Place::Server,
    false,
    "Directory to run in [default: the first root]",
);
const TIMEOUT: Argument = (
    "timeout_s",
    Kind::Number(LONGEST),
    Place::Server,
    false,
    "Seconds after which the program is ended",
);
const KERNEL_SECTIONS: &[&str] = &[
    "figures", "geometry", "sol", "roofline", "caches", "stalls", "lines", "sites", "matches",
];
const REPORTS: &[&str] = &[
    "kern_sum",
    "kern_exec_sum",
    "copy_time_sum",
    "copy_size_sum",
    "api_sum",
    "sync_sum",
    "alloc_sum",
    "stream_sum",
    "queue_sum",
];

pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "rpd_overview",
        command: &["explain"],
        about: "What the time goes to, first findings, and the kernels with the most time. Call this first",
        arguments: &[
            PATH,
            (
                "section",
                Kind::Word(&["time", "findings", "kernels", "next"]),
                Place::After("--section"),
                false,
                "Part of the overview [default: kernels]",
            ),
            START,
            END,
        ],
        runs: false,
    },
    Tool {
        name: "rpd_gaps",
        command: &["gaps"],
        about: "When a GPU does not compute, and why",
        arguments: &[
            PATH,
            (
                "section",
                Kind::Word(&["summary", "causes", "gaps"]),
                Place::After("--section"),
                false,
                "Part of the answer [default: gaps]",
            ),
            START,
            END,
        ],
        runs: false,
    },
    Tool {
        name: "rpd_breakdown",
        command: &["breakdown"],
        about: "What the time of GPUs goes to",
        arguments: &[
            PATH,
            (
                "by",
                Kind::Word(&["iteration", "chunk"]),
                Place::After("--by"),
                false,
                "Parts with rows of their own",
            ),
            START,
            END,
        ],
        runs: false,
    },
    Tool {
        name: "rpd_regions",
        command: &["regions"],
        about: "Which parts of the program take the time, by its markers",
        arguments: &[PATH, START, END],
        runs: false,
    },
    Tool {
        name: "rpd_stats",
        command: &["stats"],
        about: "Sums by kernel, copy, call and so on",
        arguments: &[
            PATH,
            (
                "report",
                Kind::Word(REPORTS),
                Place::After("--report"),
                true,
                "Report",
            ),
            START,
            END,
        ],
        runs: false,
    },
    Tool {
        name: "rpd_advise",
        command: &["advise"],
        about: "Findings of rules, the most serious first",
        arguments: &[
            PATH,
            (
                "rule",
                Kind::Text,
                Place::After("--rule"),
                false,
                "Ids of the rules to judge, joined by commas",
            ),
            (
                "section",
                Kind::Word(&["findings", "evidence", "not_judged"]),
                Place::After("--section"),
                false,
                "Part of the answer [default: findings]",
            ),
        ],
        runs: false,
    },
    Tool {
        name: "rpd_kernel",
        command: &["kernel"],
        about: "Everything about one kernel; sections of counters are there when these are recorded",
        arguments: &[
            KERNEL,
            PATH,
            (
                "section",
                Kind::Word(KERNEL_SECTIONS),
                Place::After("--section"),
                false,
                "Part of the answer [default: figures, the verdict first]",
            ),
        ],
        runs: false,
    },
    Tool {
        name: "rpd_source",
        command: &["hot", "--by", "line"],
        about: "Hottest lines of code, by PC samples or a thread trace",
        arguments: &[
            PATH,
            (
                "kernel",
                Kind::Text,
                Place::After("--kernel"),
                true,
                "Regular expression of the kernel's name",
            ),
            (
                "lines",
                Kind::Number(1_000),
                Place::After("--lines"),
                false,
                "Lines at most",
            ),
        ],
        runs: false,
    },
    Tool {
        name: "rpd_compare",
        command: &["compare"],
        about: "Why kernels became faster or slower between two recordings",
        arguments: &[
            ("a", Kind::Path, Place::Alone, true, "Recording before"),
            ("b", Kind::Path, Place::Alone, true, "Recording after"),
            (
                "section",
                Kind::Word(&["kernels", "breakdown", "gaps"]),
                Place::After("--section"),
                false,
                "Part of the answer [default: kernels]",
            ),
        ],
        runs: false,
    },
    Tool {
        name: "rpd_query",
        command: &["query"],
        about: "SQL over a recording, which is opened for reading only",
        arguments: &[
            PATH,
            (
                "sql",
                Kind::Text,
                Place::After("--query"),
                true,
                "One SELECT",
            ),
            (
                "max_rows",
                Kind::Number(10_000),
                Place::After("--limit"),
                false,
                "Rows at most [default: 100]",
            ),
        ],
        runs: false,
    },
    Tool {
        name: "rpd_record",
        command: &[
            "--hip-trace",
            "--kernel-trace",
            "--memory-copy-trace",
            "--marker-trace",
            "--stacks",
            "merged",
        ],
        about: "Run a program once and record a trace; answers with the directory",
        arguments: &[ARGV, CWD, TIMEOUT],
        runs: true,
    },
    Tool {
        name: "rpd_explain",
        command: &["explain"],
        about: "Run a program several times, with trace, counters and PC samples; answers with the directory",
        arguments: &[
            ARGV,
            CWD,
            (
                "level",
                Kind::Word(&["quick", "standard", "full"]),
                Place::After("--level"),
                false,
                "How much is recorded",
            ),
            TIMEOUT,
        ],
        runs: true,
    },
];
