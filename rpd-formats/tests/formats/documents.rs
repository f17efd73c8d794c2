//! Names in the manual are those that the writers make: tables and views of databases, files, and the formats that show
//! stacks, samples and thread traces.

use std::collections::BTreeSet;

use rpd_core::domain::Domain;
use rpd_core::options::{Format, Options};
use rpd_core::session::Table;
use rpd_formats::rocpd::read::Database;
use rusqlite::Connection;

use crate::facts::{self, Fact};
use crate::support::write::{lacks_library, write};
use crate::tables::{self, add_row, target};

macro_rules! pages {
    ($($name:literal)*) => {
        /// The pages of the manual for users.
        const PAGES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../../docs/", $name, ".md")))),*];
    };
}

pages! {
    "capture" "capture-contents" "check" "cluster" "command-line" "compare" "control" "counters" "deploy" "drop-in" "end-of-run"
    "environment" "file-names" "formats" "library" "passes" "pc-sampling" "providers" "results" "security" "simulator"
    "simulator-counters" "simulator-functions" "simulator-timing" "stacks" "thread-trace"
}

/// Names that the manual has and a database does not have as tables or views: a key of `extdata` and one of a configuration.
const NO_TABLES: [&str; 2] = ["rpd_counter", "rpd_options"];

/// The words between backticks in a text of the manual.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
}

fn is_name(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Words of the manual that can be names.
fn words() -> BTreeSet<&'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    PAGES
        .iter()
        .flat_map(|(_, text)| text.split(move |c| !is_part(c)))
        .collect()
}

/// The rows of the table of a page whose head begins so.
fn rows(page: &str, head: &str) -> Vec<&'static str> {
    let (_, text) = PAGES
        .iter()
        .find(|(name, _)| *name == page)
        .expect("a page");
    let rows = text.lines().skip_while(|line| !line.starts_with(head));
    let rows: Vec<&str> = rows
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(
        !rows.is_empty(),
        "{page} has no table that begins with {head}"
    );
    rows
}

/// Tables and views of a database of a session with every fact, without the recording's id.
fn database_names() -> BTreeSet<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let session = facts::session(None);
    let files = write(Format::Rocpd, &session, None, &Options::default(), &target);
    let file = &files.expect("written")[0];
    let database = Database::open(file).expect("a database");
    let suffix = format!("_{}", database.recordings()[0].guid.replace('-', "_"));
    let connection = Connection::open(file).expect("a database");
    let sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'";
    let mut statement = connection.prepare(sql).expect("SQL");
    let names = statement
        .query_map([], |row| row.get::<_, String>(0))
        .expect("rows");
    names
        .map(|name| name.expect("a name").trim_end_matches(&suffix).to_owned())
        .collect()
}

#[test]
fn manual_lists_the_tables_and_views_of_databases() {
    let names = database_names();
    let originals = concat!(
        include_str!("../../src/rocpd/schema.sql"),
        include_str!("../../src/rocpd/views.sql")
    );
    let is_originals = |name: &str| {
        !name.starts_with("rpd_")
            && (originals.contains(&format!("TABLE {name}%suffix%"))
                || originals.contains(&format!("VIEW {name} ")))
    };
    let words = words();
    for name in names.iter().filter(|name| !is_originals(name)) {
        assert!(
            words.contains(name.as_str()),
            "the manual does not name {name}"
        );
    }
    for (page, text) in PAGES {
        for word in quoted(text).filter(|word| word.starts_with("rpd_") && is_name(word)) {
            assert!(
                names.contains(word) || NO_TABLES.contains(&word),
                "{page}: no database has {word}"
            );
        }
    }
    for page in ["pc-sampling", "thread-trace"] {
        let rows = rows(page, "| Output | Content |");
        let row = rows
            .iter()
            .find(|row| row.starts_with("| database |"))
            .expect("a row");
        for word in quoted(row).filter(|word| is_name(word)) {
            assert!(names.contains(word), "{page}: no database has {word}");
        }
    }
}

#[test]
fn manual_lists_the_formats_that_show_stacks_samples_and_traces() {
    let check = |page, head, word: fn(Format) -> &'static str, shows: fn(Format) -> bool| {
        let rows = rows(page, head);
        for &format in Format::ALL {
            let begin = format!("| {} |", word(format));
            let has_row = rows.iter().any(|row| row.starts_with(&begin));
            assert_eq!(has_row, shows(format), "{page}: a row of {format:?}");
        }
    };
    let code = |format| match format {
        Format::Csv => "`csv`",
        Format::Json => "`json`",
        Format::Pftrace => "`pftrace`",
        Format::Otf2 => "`otf2`",
        Format::Rocpd => "`rocpd`",
        Format::Parquet => "`parquet`",
        Format::Html => "`html`",
    };
    check("formats", "| Format | Where |", code, |format| {
        !facts::leaves_out(format, Fact::Stacks)
    });
    let name = |format| match format {
        Format::Csv => "CSV",
        Format::Json => "JSON",
        Format::Pftrace => "Perfetto",
        Format::Otf2 => "OTF2",
        Format::Rocpd => "database",
        Format::Parquet => "parquet",
        Format::Html => "HTML",
    };
    check("pc-sampling", "| Output | Content |", name, |format| {
        !tables::leaves_out(format, Table::Samples) || !facts::leaves_out(format, Fact::Sampling)
    });
    let option = |format| match format {
        Format::Csv => "`-f csv`",
        Format::Json => "`-f json`",
        Format::Pftrace => "`-f pftrace`",
        Format::Otf2 => "`-f otf2`",
        Format::Rocpd => "database",
        Format::Parquet => "`-f parquet`",
        Format::Html => "`-f html`",
    };
    check(
        "thread-trace",
        "| Output | Content |",
        option,
        |format| match format {
            // Files of each trace, which are not made from a session.
            Format::Csv | Format::Json | Format::Pftrace => true,
            _ => !facts::leaves_out(format, Fact::ThreadTraces),
        },
    );
}

#[test]
fn manual_lists_the_files_of_every_format() {
    if lacks_library(Format::Parquet) {
        return;
    }
    let mut session = facts::session(None);
    for &table in Table::ALL {
        add_row(&mut session, table, 400);
    }
    // The other sample is a stochastic one.
    session.samples.flags[0] = 0;
    session.sort();
    let directory = tempfile::tempdir().expect("a directory");
    let mut written = BTreeSet::new();
    for format in [Format::Csv, Format::Parquet] {
        let target = target(directory.path());
        let files = write(format, &session, None, &Options::default(), &target);
        for file in files.expect("written") {
            let name = file.file_name().expect("a name").to_string_lossy();
            written.insert(name.trim_start_matches("p_").to_owned());
        }
    }
    let mut named = BTreeSet::new();
    for (page, text) in PAGES {
        let words = quoted(text).map(|word| word.trim_start_matches("<prefix>_"));
        for word in words.filter(|word| word.ends_with(".csv") || word.ends_with(".parquet")) {
            // Of statistics, of several passes, of decoded traces; sources.
            let is_other = ["stats", "passes", "/"]
                .iter()
                .any(|part| word.contains(part))
                // A command, not a file.
                || word.contains(' ');
            let is_written = written.iter().any(|name| word.ends_with(name.as_str()));
            assert!(is_other || is_written, "{page}: no writer makes {word}");
            named.insert(word);
        }
    }
    let domains = Domain::ALL.map(|domain| format!("{}.csv", domain.trace_file()));
    // Tables of Parquet files that are called as the views of a database, and have no page of their own.
    let is_listed_in_general = |name: &str| {
        domains.iter().any(|of| of == name)
            || name.ends_with(".parquet")
                && !name.starts_with("pc_")
                && !name.starts_with("thread_")
    };
    for name in written.iter().filter(|name| !is_listed_in_general(name)) {
        assert!(
            named.contains(name.as_str()),
            "the manual does not name {name}"
        );
    }
}
