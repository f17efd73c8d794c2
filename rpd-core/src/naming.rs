//! Names of output files: directory, prefix and placeholders.
//!
//! A file is `<directory>/<prefix>_<name>`. Directory and prefix are patterns that every recorded process
//! fills in with its own facts, after the run; [`Namer`] keeps the processes of one run apart.
//!
//! Patterns, values and prefixes are escaped text ([`crate::text::os_text`]), so that bytes that are no UTF-8 survive; paths are
//! made of the bytes themselves. A value fills in a part of one path component and cannot leave the directory that the
//! pattern names; the one exception is `%cwd%`, which is a path.

mod pattern;

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use pattern::{KEYS, Piece, argument_number, pieces};

use crate::options::Options;
use crate::session::Process;
use crate::text::os_text::{self, unescape_path};

/// Prefix when none is given.
pub const DEFAULT_PREFIX: &str = "%hostname%/%pid%";

/// Levels of values that name placeholders again; placeholders of the next level are left as they are written.
const MAX_LEVELS: usize = 8;
/// Bytes that all values together may have which stand for one placeholder of the pattern; placeholders in values whose own
/// would not fit are left as they are written.
const MAX_VALUE: usize = 4096;
/// The name of a component whose placeholders are all empty.
const NOTHING: &str = "_";

// The last one that is set wins, so the launcher closest to the process does.
const RANK_VARIABLES: [&str; 8] = [
    "MPI_RANK",
    "MPI_LOCALRANKID",
    "MPI_RANKID",
    "MV2_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "PBS_NODENUM",
];

const SIZE_VARIABLES: [&str; 8] = [
    "MPI_SIZE",
    "MPI_LOCALNRANKS",
    "MPI_NRANKS",
    "MV2_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "SLURM_NTASKS",
    "PBS_O_TASKNUM",
];

/// A pattern that cannot be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NamingError {
    /// A closed placeholder whose word means nothing.
    #[error("`{text}` is not a placeholder{}", match .near { Some(near) => format!("; did you mean `%{near}%`?"), None => String::new() })]
    Unknown {
        /// The argument as it was written.
        text: String,
        /// The key that looks most like it.
        near: Option<String>,
    },
}

/// Whether the front end's own value of the variable `name` may bear on names of files.
pub fn is_naming_variable(name: &str) -> bool {
    RANK_VARIABLES.contains(&name)
        || SIZE_VARIABLES.contains(&name)
        || matches!(
            name,
            "SLURM_JOB_ID"
                | "ROCPROF_DATE_FORMAT"
                | "ROCPROF_TIME_FORMAT"
                | "ROCPROF_MPI_RANK_VAR"
                | "ROCPROF_MPI_SIZE_VAR"
                | "TZ"
        )
}

/// Checks a pattern before anything starts.
///
/// # Errors
/// When it holds a closed `%word%` or `{word}` that is not a placeholder.
pub fn check(pattern: &str) -> Result<(), NamingError> {
    for piece in pieces(pattern) {
        if let Piece::Unknown(text) = piece {
            let word = text.trim_matches(['%', '{', '}']);
            return Err(NamingError::Unknown {
                text: text.to_owned(),
                near: crate::text::near::nearest(word, KEYS.iter().copied()).map(str::to_owned),
            });
        }
    }
    Ok(())
}

/// Whether the pattern begins with a placeholder, so that whether it is absolute is only known later.
pub fn starts_with_placeholder(pattern: &str) -> bool {
    matches!(
        pieces(pattern).first(),
        Some(Piece::Key(_) | Piece::Variable(_))
    )
}

/// The longest leading part of a directory pattern that holds no placeholder; empty when there is none.
pub fn literal_parent(pattern: &str) -> PathBuf {
    match pieces(pattern).as_slice() {
        [] => PathBuf::new(),
        [Piece::Text(text)] => unescape_path(text),
        [Piece::Text(text), ..] => match text.rfind('/') {
            Some(0) => PathBuf::from("/"),
            Some(at) => unescape_path(&text[..at]),
            None => PathBuf::new(),
        },
        _ => PathBuf::new(),
    }
}

/// Names of the variables that a pattern refers to.
pub fn variables(pattern: &str) -> Vec<&str> {
    pieces(pattern)
        .into_iter()
        .filter_map(|piece| match piece {
            Piece::Variable(name) => Some(name),
            _ => None,
        })
        .collect()
}

/// Whether a pattern, filled in by several ranks, is likely to give several names.
pub fn distinguishes_ranks(pattern: &str) -> bool {
    pieces(pattern).iter().any(|piece| match piece {
        Piece::Key(key) => ["pid", "rank", "nid", "hostname", "ppid", "pgid", "psid"].contains(key),
        Piece::Variable(_) => true,
        Piece::Text(_) | Piece::Unknown(_) => false,
    })
}

/// The values of placeholders in one process.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The process that the outputs describe.
    pub process: &'a Process,
    /// The run's options: launch time and the front end's variables, for what the process's environment lacks.
    pub options: &'a Options,
    /// Name of the machine.
    pub hostname: &'a str,
}

/// A Unix time in nanoseconds in the time zone of this machine.
fn local_time(nanoseconds: u64) -> chrono::DateTime<chrono::Local> {
    let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
    chrono::DateTime::from_timestamp_nanos(nanoseconds).with_timezone(&chrono::Local)
}

/// A Unix time in nanoseconds for people, such as `2025-03-01 17:05:09`.
pub fn clock_time(nanoseconds: u64) -> String {
    local_time(nanoseconds)
        .format("%Y-%m-%d %H:%M:%S")
        .to_string()
}

/// Name of this machine, `UNKNOWN_HOSTNAME` when it cannot be read.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub fn hostname() -> String {
    match std::fs::read_to_string("/proc/sys/kernel/hostname") {
        Ok(name) if !name.trim().is_empty() => name.trim().to_owned(),
        _ => "UNKNOWN_HOSTNAME".to_owned(),
    }
}

impl Facts<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.process
            .environment
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
            .or_else(|| {
                self.options
                    .launch_environment
                    .get(name)
                    .map(String::as_str)
            })
    }

    fn last_number(&self, chooser: &str, variables: &[&str]) -> Option<u64> {
        if let Some(value) = self
            .variable(chooser)
            .and_then(|name| self.variable(name))
            .and_then(|value| value.trim().parse().ok())
        {
            return Some(value);
        }
        variables
            .iter()
            .rev()
            .find_map(|name| self.variable(name)?.trim().parse().ok())
    }

    /// The MPI rank, from a variable of the MPI runtime.
    pub fn mpi_rank(&self) -> Option<u64> {
        self.last_number("ROCPROF_MPI_RANK_VAR", &RANK_VARIABLES)
    }

    /// The number of MPI ranks, from a variable of the MPI runtime.
    pub fn mpi_size(&self) -> Option<u64> {
        self.last_number("ROCPROF_MPI_SIZE_VAR", &SIZE_VARIABLES)
    }

    fn rank(&self) -> Option<u64> {
        let slurm = self.variable("SLURM_PROCID");
        slurm
            .and_then(|value| value.trim().parse().ok())
            .or_else(|| self.mpi_rank())
    }

    fn time(&self, chooser: &str, default: &str) -> String {
        let format = self.variable(chooser).unwrap_or(default);
        let nanoseconds = match self.options.launch_time {
            0 => self.process.real_time,
            time => time,
        };
        let time = local_time(nanoseconds);
        let mut text = String::new();
        // A format that chrono rejects is an error of `write!`; its text is then used unchanged.
        if write!(text, "{}", time.format(format)).is_err() {
            format.clone_into(&mut text);
        }
        text
    }

    fn arguments(&self) -> Vec<String> {
        let mut words: Vec<&String> = self.process.command.iter().collect();
        if words.get(1).is_some_and(|word| *word == "--") {
            words.remove(1);
        }
        words
            .into_iter()
            .map(|word| {
                word.replace('/', "_")
                    .trim_start_matches('.')
                    .trim_start_matches('_')
                    .to_owned()
            })
            .collect()
    }

    fn tag(&self) -> &str {
        self.process
            .command
            .first()
            .map_or("", |program| program.rsplit('/').next().unwrap_or_default())
    }

    /// The value of a key; `None` for an argument that there is not.
    fn value(&self, key: &str) -> Option<String> {
        let process = self.process;
        Some(match key {
            "argv" => self.arguments().join("_"),
            "args" => self.arguments().get(1..).unwrap_or_default().join("_"),
            "argt" => {
                self.tag().to_owned() + &self.arguments().get(1..).unwrap_or_default().join("_")
            }
            "tag" => self.tag().to_owned(),
            "hostname" => self.hostname.to_owned(),
            "pid" => process.pid.to_string(),
            "ppid" => process.ppid.to_string(),
            "pgid" => process.pgid.to_string(),
            "psid" => process.sid.to_string(),
            "psize" => process.psize.to_string(),
            "job" => self.variable("SLURM_JOB_ID").unwrap_or("0").to_owned(),
            "rank" => self.rank().unwrap_or(0).to_string(),
            "size" => self.mpi_size().unwrap_or(1).max(1).to_string(),
            "nid" => self
                .rank()
                .map_or_else(|| process.pid.to_string(), |rank| rank.to_string()),
            // Not cleaned: this is the one value that may add directories.
            "cwd" => process.cwd.clone(),
            "launch_date" => self.time("ROCPROF_DATE_FORMAT", "%F"),
            "launch_time" => self.time("ROCPROF_TIME_FORMAT", "%F_%H.%M"),
            other => return self.arguments().get(argument_number(other)?).cloned(),
        })
    }

    /// Fills the pattern in. Values may hold placeholders again. The result is escaped text.
    pub fn expand(&self, pattern: &str) -> String {
        self.fill(pattern, &mut BTreeSet::new())
    }

    /// As [`Facts::expand`]; `remarks` gets a sentence for each value that could not be used as it is.
    fn fill(&self, pattern: &str, remarks: &mut BTreeSet<String>) -> String {
        let mut path = Components::default();
        let mut swallow = false;
        for piece in pieces(pattern) {
            match piece {
                Piece::Text(text) if swallow => {
                    path.text(text.trim_start_matches(['-', '/', '_']), remarks);
                }
                Piece::Text(text) | Piece::Unknown(text) => path.text(text, remarks),
                Piece::Key("cwd") => path.text(&self.process.cwd, remarks),
                Piece::Key(_) | Piece::Variable(_) => {
                    let mut budget = MAX_VALUE;
                    let value = self.value_of(piece, MAX_LEVELS, &mut budget);
                    let written = piece.written();
                    swallow = value.is_none();
                    path.value(&written, value.as_deref().unwrap_or(""), remarks);
                    continue;
                }
            }
            swallow = false;
        }
        path.finish(remarks)
    }

    /// The value of a placeholder, with the placeholders in it filled in; `None` for an argument that does not exist.
    fn value_of(&self, piece: Piece<'_>, levels: usize, budget: &mut usize) -> Option<String> {
        let raw = match piece {
            Piece::Key(key) => self.value(key)?,
            Piece::Variable(name) => clean(self.variable(name).unwrap_or("")),
            Piece::Text(text) | Piece::Unknown(text) => text.to_owned(),
        };
        // At the last level, or over the limit, placeholders stay as they are: values that name themselves would not
        // end.
        if levels == 1 || raw.len() > *budget {
            return Some(raw);
        }
        *budget -= raw.len();
        let mut value = String::with_capacity(raw.len());
        for inner in pieces(&raw) {
            match inner {
                Piece::Text(text) | Piece::Unknown(text) => value.push_str(&os_text::sealed(text)),
                Piece::Key(_) | Piece::Variable(_) => {
                    // The inner value draws on a copy of the budget: where it does not fit it is not used, and has cost
                    // nothing.
                    let mut left = *budget;
                    match self.value_of(inner, levels - 1, &mut left) {
                        Some(text) if text.len() <= *budget => {
                            *budget = left.min(*budget - text.len());
                            value.push_str(&os_text::sealed(&text));
                        }
                        Some(_) => value.push_str(&inner.written()),
                        None => {}
                    }
                }
            }
        }
        Some(value)
    }

    /// Whether the filled-in prefix differs for each process.
    fn names_pid(&self, pattern: &str) -> bool {
        pieces(pattern).iter().any(|piece| match piece {
            Piece::Key("pid") => true,
            Piece::Key("nid") => self.rank().is_none(),
            Piece::Variable(name) => self
                .variable(name)
                .is_some_and(|value| value.contains("%pid%") || value.contains("{pid}")),
            _ => false,
        })
    }
}

/// A path as it is put together of a pattern's texts and of values.
#[derive(Default)]
struct Components {
    path: String,
    /// Offset of its last component.
    begin: usize,
    /// The placeholders that stand in the last component.
    filled: Vec<String>,
}

impl Components {
    /// Appends a text of the pattern, or a path.
    fn text(&mut self, text: &str, remarks: &mut BTreeSet<String>) {
        let mut parts = text.split('/');
        self.append(parts.next().unwrap_or_default());
        for part in parts {
            self.end_component(remarks);
            self.path.push('/');
            self.begin = self.path.len();
            self.append(part);
        }
    }

    /// Appends the value of a placeholder, which becomes a part of the last component.
    fn value(&mut self, placeholder: &str, value: &str, remarks: &mut BTreeSet<String>) {
        let foreign = |character: char| character == '/' || character.is_control();
        let value = if value.contains(foreign) {
            remarks.insert(format!(
                "the value of {placeholder} contains / or control characters: each is replaced by _"
            ));
            value.replace(foreign, "_")
        } else {
            value.to_owned()
        };
        self.append(&value);
        self.filled.push(placeholder.to_owned());
    }

    fn append(&mut self, text: &str) {
        self.path.push_str(&os_text::sealed(text));
    }

    /// Replaces a component that placeholders have made into nothing or into another directory.
    fn end_component(&mut self, remarks: &mut BTreeSet<String>) {
        let placeholders = std::mem::take(&mut self.filled).join("");
        if placeholders.is_empty() {
            return;
        }
        let (what, instead) = match &self.path[self.begin..] {
            "" => ("empty", NOTHING),
            "." => ("`.`", "_"),
            ".." => ("`..`", "__"),
            _ => return,
        };
        remarks.insert(format!(
            "{placeholders} makes a path component that is {what}: it is replaced by {instead}"
        ));
        self.path.truncate(self.begin);
        self.path.push_str(instead);
    }

    fn finish(mut self, remarks: &mut BTreeSet<String>) -> String {
        self.end_component(remarks);
        self.path
    }
}

/// Values of variables become one path component.
fn clean(value: &str) -> String {
    value
        .trim_start_matches(['\t', ' ', '/'])
        .replace(['\t', ' ', '/'], "_")
}

/// The destination of one process's files.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Directory of the output files.
    #[serde(with = "os_text::path")]
    pub directory: PathBuf,
    /// Prefix, as escaped text; may hold `/`.
    pub prefix: String,
}

impl Target {
    /// Path of the file `name`, for example `results.db`.
    pub fn file(&self, name: &str) -> PathBuf {
        let prefix = os_text::sealed(&self.prefix);
        self.directory
            .join(unescape_path(&format!("{prefix}_{name}")))
    }

    /// The directory that [`Target::file`] paths lie in; the prefix may add levels.
    pub fn parent(&self) -> PathBuf {
        let file = self.file("x");
        file.parent().unwrap_or(Path::new("/")).to_owned()
    }
}

/// Gives every process image of a run names of its own. It can be stored, so that a later report of the same
/// run goes on where the first ended.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Namer {
    /// Prefix of the file names, directory included, as escaped text.
    used: HashSet<String>,
    /// Remarks that [`Namer::take_remarks`] has returned already.
    reported: BTreeSet<String>,
    /// Remarks that it will return next.
    #[serde(skip)]
    remarks: BTreeSet<String>,
}

impl Namer {
    /// Names for the next process image. `descendant` is true for processes other than the one that rpd
    /// started: they get `_<pid>` appended unless the prefix has the pid already. An image whose names are taken,
    /// by an earlier image in the same pid for instance, gets `_2`, `_3` and so on.
    pub fn target(&mut self, facts: &Facts<'_>, descendant: bool) -> Target {
        self.free_target(facts, descendant, &mut |_| true)
    }

    /// As [`Namer::target`], of names that `is_free`. Where those of an image are not, because another run has them, it gets
    /// `_<pid>` appended as well.
    pub fn free_target(
        &mut self,
        facts: &Facts<'_>,
        descendant: bool,
        is_free: &mut dyn FnMut(&Target) -> bool,
    ) -> Target {
        let options = facts.options;
        let directory = facts.fill(&options.output_directory, &mut self.remarks);
        let cwd = unescape_path(&facts.process.cwd);
        let directory = match directory.as_str() {
            "" => cwd,
            text => cwd.join(unescape_path(text)),
        };
        let pattern = match options.output_file.as_str() {
            "" => DEFAULT_PREFIX,
            given => given,
        };
        let mut prefix = facts.fill(pattern, &mut self.remarks);
        // Descendants fill the same pattern in, and mostly get the same name as the process that rpd started.
        let mut names_pid = facts.names_pid(pattern);
        if descendant && !names_pid {
            let _ = write!(prefix, "_{}", facts.process.pid);
            names_pid = true;
        }
        let mut base = prefix.clone();
        let mut image = 1;
        // Compared as plain paths, because two spellings (`a/../b`, `b`) would be the same file.
        let key = |prefix: &str| {
            let path = plain(&directory.join(unescape_path(prefix)));
            os_text::escape(path.as_os_str())
        };
        loop {
            let is_new = self.used.insert(key(&prefix));
            let target = Target {
                directory: directory.clone(),
                prefix: prefix.clone(),
            };
            if is_new && is_free(&target) {
                return target;
            }
            if is_new && !names_pid {
                names_pid = true;
                let _ = write!(base, "_{}", facts.process.pid);
                prefix.clone_from(&base);
                continue;
            }
            image += 1;
            prefix = format!("{base}_{image}");
        }
    }

    /// Takes over the names that another `Namer` has given: those of earlier passes, whose directories do not make names distinct
    /// that begin with `/` or `..`.
    pub fn extend(&mut self, other: &Namer) {
        self.used.extend(other.used.iter().cloned());
        self.reported.extend(other.reported.iter().cloned());
    }

    /// Sentences about values of placeholders that were replaced since the last call; none is given twice.
    pub fn take_remarks(&mut self) -> Vec<String> {
        let new: Vec<String> = std::mem::take(&mut self.remarks)
            .into_iter()
            .filter(|remark| !self.reported.contains(remark))
            .collect();
        self.reported.extend(new.iter().cloned());
        new
    }
}

/// A path without `.` and `..`, without resolving symbolic links.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests;
