//! Summary tables: which are shown, and their destination.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::Result;
use rpd_core::compat::Difference;
use rpd_core::naming::Target;
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::stats::{SessionStats, StatTable};
use rpd_formats::table::statistics::{StatView, render_to};
use rpd_summary::Statistics;

use super::one_piece::{OnePiece, Stream};
use super::place;
use crate::isolation::isolated;
use crate::terminal;

/// Indentation of tables on a terminal.
const INDENT: usize = 4;

/// The destination of the summary tables.
#[derive(Debug, PartialEq, Eq)]
enum Destination<'a> {
    Stderr,
    Stdout,
    /// The file with this in its name.
    File(&'a str),
}

fn destination(options: &Options) -> Destination<'_> {
    match options.summary.output.as_str() {
        "" | "stderr" | "STDERR" => {
            if options.compat.has(Difference::SummaryStream) {
                Destination::Stdout
            } else {
                Destination::Stderr
            }
        }
        "stdout" | "STDOUT" => Destination::Stdout,
        name => Destination::File(name),
    }
}

/// The file for the tables, if they are written to one.
pub(super) fn file(options: &Options, target: &Target) -> Option<PathBuf> {
    match destination(options) {
        Destination::File(name) => Some(target.file(&format!("{name}.txt"))),
        Destination::Stderr | Destination::Stdout => None,
    }
}

/// Statistics and tables of a session.
pub(super) struct Tables<'a> {
    /// For statistics files and documents; set with `--stats` or a table option.
    pub(super) stats: Option<SessionStats<'a>>,
    shown: ShownTables,
    /// Reasons why tables are missing.
    pub(super) errors: Vec<anyhow::Error>,
}

/// The summary tables that are shown.
enum ShownTables {
    Nothing,
    /// The tables of [`SessionStats::domains`].
    Domains,
    /// The tables that the options name.
    Selected(Vec<StatTable>),
}

/// What is said of records that are in no statistics, because their times cannot be; `None` of none.
pub(crate) fn times_left_out(count: u64) -> Option<String> {
    match count {
        0 => None,
        _ => Some(format!(
            "{}: left out of statistics, since they end before they begin or last longer than their process",
            crate::wording::count(count, "record")
        )),
    }
}

impl<'a> Tables<'a> {
    /// Computes the tables that `options` select.
    pub(super) fn from_session(session: &'a Session, options: &Options) -> Tables<'a> {
        let mut tables = Tables {
            stats: None,
            shown: ShownTables::Nothing,
            errors: Vec::new(),
        };
        if options.stats || options.summary.any() {
            let computed = isolated("statistics", || tables.compute(session, options));
            tables.errors.extend(computed.err());
        }
        tables
    }

    fn compute(&mut self, session: &'a Session, options: &Options) -> Result<()> {
        let summary = &options.summary;
        let statistics = Statistics::new(session, options.kernel_names)?;
        self.stats = Some(statistics.session_stats()?);
        if session.record_bytes() < options.minimum_output_bytes {
            return Ok(());
        }
        if summary.any() {
            self.shown = ShownTables::Selected(statistics.summaries(summary)?);
        } else if !options.compat.has(Difference::StatsTables) {
            self.shown = ShownTables::Domains;
        }
        Ok(())
    }

    fn shown(&self) -> Vec<&StatTable> {
        match (&self.shown, &self.stats) {
            (ShownTables::Selected(tables), Some(_)) => tables.iter().collect(),
            (ShownTables::Domains, Some(stats)) => {
                stats.domains.iter().map(|(_, table)| table).collect()
            }
            (ShownTables::Nothing, _) | (_, None) => Vec::new(),
        }
    }

    /// Hands out the text of the tables in pieces of whole lines, and returns the titles of the columns for which there is no room.
    /// An error in one table does not affect the others; the first is returned.
    fn each_piece(
        &self,
        view: StatView<'_>,
        mut take: impl FnMut(&str) -> io::Result<()>,
    ) -> Result<Vec<String>> {
        let names = self.stats.as_ref().map(|stats| &stats.names);
        let mut left_out = Vec::new();
        let mut outcome = Ok(());
        for (table, names) in self.shown().into_iter().zip(names.into_iter().cycle()) {
            let written = isolated(&format!("table {}", table.title), || {
                Ok(render_to(table, names, view, &mut take)?)
            });
            match written {
                Ok(lacks) => left_out.extend(lacks),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
        left_out.sort_unstable();
        left_out.dedup();
        outcome.map(|()| left_out)
    }

    /// Writes the text to its destination; returns the file, if it is one. `process` says in titles whose tables these are, where
    /// others may stand beside them.
    pub(super) fn deliver(
        &self,
        options: &Options,
        target: &Target,
        process: Option<&str>,
    ) -> Result<Option<PathBuf>> {
        if self.shown().is_empty() {
            return Ok(None);
        }
        let is_whole = options.compat.has(Difference::SummaryStream);
        let mut view = StatView {
            unit: options.summary.unit,
            indent: INDENT,
            width: None,
            process: process.filter(|_| !is_whole).unwrap_or_default(),
            compat: options.compat,
        };
        let stream = match destination(options) {
            Destination::Stderr => Stream::Stderr,
            Destination::Stdout => Stream::Stdout,
            Destination::File(_) => {
                let Some(path) = file(options, target) else {
                    return Ok(None);
                };
                (view.indent, view.process) = (0, "");
                place::file_of(&path, |file| {
                    let write = |text: &str| file.write_all(text.as_bytes());
                    self.each_piece(view, write).map(drop)
                })?;
                return Ok(Some(path));
            }
        };
        if !is_whole && !options.summary.wide {
            view.width = match stream {
                Stream::Stdout => terminal::width(io::stdout()),
                Stream::Stderr => terminal::width(io::stderr()),
            };
        }
        let mut text = OnePiece::new(stream);
        let left_out = self.each_piece(view, |piece| text.add(piece).map_err(io::Error::other));
        if let Ok(columns @ [_, ..]) = left_out.as_deref() {
            let columns = columns.join(", ");
            text.add(&format!(
                "{:INDENT$}The terminal has no room for {columns}; --wide prints all\n\n",
                ""
            ))?;
        }
        text.finish()?;
        left_out.map(|_| None)
    }
}

#[cfg(test)]
mod tests {
    use rpd_core::compat::Compat;
    use rpd_core::domain::Kind;
    use rpd_core::ids::{CorrelationId, Nanoseconds, StringId, ThreadId};
    use rpd_core::session::ArgsRef;

    use super::*;
    use rpd_core::session::CallRow;

    fn session() -> Session {
        let mut session = Session::default();
        for (kind, name, duration) in [
            (Kind::HipRuntime, "hipFree", 1500),
            (Kind::HsaCore, "hsa_init", 10),
        ] {
            let operation = session.add_operation(kind, name);
            let calls = &mut session.calls;
            calls.push(CallRow {
                operation,
                message: StringId(0),
                start: Nanoseconds(0),
                end: Nanoseconds(duration),
                thread: ThreadId(1),
                correlation: CorrelationId(0),
                ancestor: CorrelationId(0),
                args: ArgsRef::default(),
            });
        }
        session
    }

    fn titles(options: &Options) -> Vec<String> {
        let session = session();
        let tables = Tables::from_session(&session, options);
        let mut text = String::new();
        let view = StatView {
            unit: options.summary.unit,
            indent: 0,
            width: None,
            process: "",
            compat: options.compat,
        };
        let shown = tables.each_piece(view, |piece| {
            text.push_str(piece);
            Ok(())
        });
        shown.expect("in memory");
        let lines = text.lines();
        lines
            .filter(|line| line.ends_with("SUMMARY:"))
            .map(str::to_owned)
            .collect()
    }

    #[test]
    fn stats_are_silent_beside_a_summary() {
        let mut options = Options {
            stats: true,
            ..Options::default()
        };
        let per_domain = ["RPD HSA_API SUMMARY:", "RPD HIP_API SUMMARY:"];
        assert_eq!(titles(&options), per_domain);
        options.summary.overall = true;
        assert_eq!(titles(&options), ["RPD SUMMARY:"]);
        options.summary.output = "x".to_owned();
        options.summary.per_domain = true;
        let all = [
            "RPD HSA_API SUMMARY:",
            "RPD HIP_API SUMMARY:",
            "RPD SUMMARY:",
        ];
        assert_eq!(titles(&options), all);
        options.compat = Compat::Rocprofv3;
        assert_eq!(titles(&options)[2], "ROCPROFV3 SUMMARY:");
        options.minimum_output_bytes = 1 << 20;
        assert!(titles(&options).is_empty());
        let silent = Options {
            stats: true,
            compat: Compat::Rocprofv3,
            ..Options::default()
        };
        assert!(titles(&silent).is_empty());
        assert!(titles(&Options::default()).is_empty());
    }

    #[test]
    fn names_of_streams_and_files() {
        for (output, expected) in [
            ("", Destination::Stderr),
            ("stderr", Destination::Stderr),
            ("STDOUT", Destination::Stdout),
            ("StdOut", Destination::File("StdOut")),
            ("summary", Destination::File("summary")),
        ] {
            let mut options = Options::default();
            options.summary.output = output.to_owned();
            assert_eq!(destination(&options), expected, "{output}");
            options.compat = Compat::Rocprofv3;
            let expected = match expected {
                Destination::Stderr => Destination::Stdout,
                other => other,
            };
            assert_eq!(destination(&options), expected, "{output}");
        }
    }

    #[test]
    fn a_file_holds_the_tables_without_indentation() {
        let directory = tempfile::tempdir().expect("a directory");
        let target = Target {
            directory: directory.path().to_owned(),
            prefix: "deep/run".to_owned(),
        };
        let mut options = Options::default();
        options.summary.overall = true;
        options.summary.output = "summary".to_owned();
        options.summary.unit = rpd_core::stats::Unit::Usec;
        let session = session();
        let tables = Tables::from_session(&session, &options);
        let file = tables
            .deliver(&options, &target, Some("a[1]"))
            .expect("delivered")
            .expect("a file");
        assert_eq!(file, directory.path().join("deep/run_summary.txt"));
        let text = std::fs::read_to_string(file).expect("readable");
        assert!(text.starts_with("\nRPD SUMMARY:\n\n|"), "{text}");
        assert!(
            text.contains("|             1.5 |       1.500e+00 |"),
            "{text}"
        );
    }
}
