//! `rpd summary --by`: the tables by rank or by host, and what ranks differ in.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use rpd_core::compat::Compat;
use rpd_core::session::{LoadOptions, Window};
use rpd_formats::rocpd::read::{Database, InputFile};
use rpd_formats::table::{Cell, Column, ColumnKind};
use rpd_ranks::{
    Alignment, By, GroupTotal, Groups, Imbalance, Member, Straggler, Waits, imbalances, stragglers,
    waits,
};
use rpd_summary::database::{DatabaseSummary, DatabaseSums, SummaryTable};

use super::super::{each_recording_of, note_left_out};
use super::ready::{Files, Table, write};
use super::{Arguments, columns, figures};
use crate::failure::Failure;

/// What the rows of tables are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GroupBy {
    /// A row for each rank
    Rank,
    /// A row for each host
    Host,
}

impl GroupBy {
    const fn by(self) -> By {
        match self {
            GroupBy::Rank => By::Rank,
            GroupBy::Host => By::Host,
        }
    }

    /// The name of a table with these rows.
    fn table(self, name: &str) -> String {
        match self {
            GroupBy::Rank => format!("{name}_by_rank"),
            GroupBy::Host => format!("{name}_by_host"),
        }
    }
}

/// Tables whose names are compared among groups: kernels and regions.
const COMPARED: [(&str, &str); 2] = [("kernels", "kernel"), ("markers", "region")];

/// Everything that the tables are made of.
struct Found {
    by: GroupBy,
    groups: Groups,
    summary: DatabaseSummary,
    waits: Vec<Waits>,
}

/// Prints or writes the tables.
pub(super) fn run(
    given: &Arguments,
    by: GroupBy,
    paths: &[PathBuf],
    window: Option<&Window>,
    files: &Files,
    compat: Compat,
) -> Result<()> {
    let (found, sentences) = read(given, by, paths, window, compat)?;
    let of_groups = found
        .summary
        .tables(true, given.region_categories.as_deref())?;
    let mut tables = vec![found.overview(&of_groups)];
    tables.extend(of_groups.iter().map(|table| found.by_group(table)));
    tables.extend(found.differences(&of_groups));
    tables.extend(found.waited());
    write(tables, given, files, paths, compat)?;
    // Last, where they are seen.
    for sentence in sentences {
        eprintln!("rpd: {sentence}");
    }
    Ok(())
}

fn open(path: &Path) -> Result<Database> {
    match InputFile::open(path)? {
        InputFile::Database(database) => Ok(database),
        InputFile::Rpd(_) => Err(Failure::usage(format!(
            "summary: --by is for databases of rpd, and {} is a file of RPD; --summary-by-rank reads it",
            path.display()
        ))
        .into()),
    }
}

/// Reads the recordings: first who they are, by which they are grouped, then their records.
fn read(
    given: &Arguments,
    by: GroupBy,
    paths: &[PathBuf],
    window: Option<&Window>,
    compat: Compat,
) -> Result<(Found, Vec<String>)> {
    let barriers = given.barriers();
    let mut members = Vec::new();
    for path in paths {
        let database = open(path)?;
        for recording in database.recordings() {
            let (session, _) = database.process(recording)?;
            members.push(Member::from_session(&session, &barriers));
        }
    }
    let of = Groups::new(&members, by.by()).of;
    let mut sums = DatabaseSums::new(compat);
    // Arguments tell the communicators of collective operations.
    let load = LoadOptions {
        args: true,
        ..LoadOptions::default()
    };
    let mut next = 0;
    for path in paths {
        each_recording_of(&open(path)?, load, window, |_, session, settings| {
            members[next] = Member::from_session(&session, &barriers);
            let names = given.naming.over(&settings);
            note_left_out(path, sums.add_to(of[next], &session, names)?);
            next += 1;
            Ok(())
        })?;
    }
    let alignment = Alignment::new(&members);
    let shifts = alignment.shifts();
    let of_members = waits(&members, &shifts);
    let mut sentences = Vec::new();
    if of_members.iter().any(|of| of.operations > 0) {
        // What is compared across hosts is as exact as their clocks.
        sentences.extend(alignment.sentences());
    }
    let groups = Groups::new(&members, by.by());
    Ok((
        Found {
            by,
            waits: of_groups(&groups, &of_members),
            groups,
            summary: sums.finish()?,
        },
        sentences,
    ))
}

/// The waits of the recordings of each group together.
fn of_groups(groups: &Groups, of_members: &[Waits]) -> Vec<Waits> {
    let mut sums = vec![Waits::default(); groups.list.len()];
    for (member, own) in of_members.iter().enumerate() {
        let sum = &mut sums[groups.of[member]];
        sum.operations += own.operations;
        sum.last += own.last;
        sum.total = sum.total.saturating_add(own.total);
        sum.longest = sum.longest.max(own.longest);
        let most = |of: &Waits| of.mostly_for.map_or(0, |(_, time)| time);
        if most(own) > most(sum) {
            sum.mostly_for = own.mostly_for.map(|(whom, time)| (groups.of[whom], time));
            sum.mostly_in = own.mostly_in;
        }
    }
    sums
}

impl Found {
    /// The columns that name a group.
    fn group_columns(&self) -> Vec<Column> {
        let host = Column::new(ColumnKind::Word, "Hostname");
        match self.by {
            GroupBy::Rank => vec![Column::new(ColumnKind::Number, "Rank"), host],
            GroupBy::Host => vec![host],
        }
    }

    fn group_cells(&self, group: usize) -> Vec<Cell> {
        let group = &self.groups.list[group];
        let host = Cell::from(&*group.host);
        match self.by {
            GroupBy::Rank => vec![group.rank.map_or(Cell::Null, Cell::from), host],
            GroupBy::Host => vec![host],
        }
    }

    /// A row for each group, and one for each rank of which there is no recording.
    fn overview(&self, tables: &[SummaryTable<'_>]) -> Table {
        use ColumnKind::{Number, Time, Word};
        let mut columns = self.group_columns();
        let of_table = [
            (Number, "Processes"),
            (Word, "State"),
            (Number, "Records"),
            (Number, "Kernels"),
            (Time, "KERNELS"),
            (Time, "COPIES"),
        ];
        columns.extend(of_table.map(|(kind, name)| Column::new(kind, name)));
        let sums = |wanted: &str| {
            let mut sums = vec![(0, 0); self.groups.list.len()];
            let table = tables.iter().find(|table| view_of(&table.name) == wanted);
            for row in table.into_iter().flat_map(SummaryTable::rows) {
                let (calls, total) = &mut sums[row.rank];
                *calls += row.calls;
                *total += row.total;
            }
            sums
        };
        let (kernels, copies) = (sums("kernels"), sums("memory_copies"));
        let groups = self.groups.list.iter().enumerate();
        let mut rows: Vec<Vec<Cell>> = groups
            .map(|(number, group)| {
                let state = if group.ended { "complete" } else { "killed" };
                let mut cells = self.group_cells(number);
                cells.extend([
                    Cell::from(group.members.len() as u64),
                    state.into(),
                    (group.records as u64).into(),
                    kernels[number].0.into(),
                    kernels[number].1.into(),
                    copies[number].1.into(),
                ]);
                cells
            })
            .collect();
        if self.by == GroupBy::Rank {
            rows.extend(self.groups.missing.iter().map(|rank| {
                let mut cells = vec![Cell::from(*rank), Cell::Null, Cell::from(0)];
                cells.push("no recording".into());
                cells.resize(columns.len(), Cell::Null);
                cells
            }));
        }
        let name = match self.by {
            GroupBy::Rank => "ranks",
            GroupBy::Host => "hosts",
        };
        Table {
            name: name.to_owned(),
            columns,
            rows,
        }
    }

    /// A table of the summary, with the columns of groups in the place of those of processes.
    fn by_group(&self, table: &SummaryTable<'_>) -> Table {
        let mut all = self.group_columns();
        all.extend(columns(false));
        let rows = table.rows().map(|row| {
            let mut cells = self.group_cells(row.rank);
            cells.extend(figures(&row));
            cells
        });
        Table {
            name: self.by.table(&format!("{}_summary", view_of(&table.name))),
            columns: all,
            rows: rows.collect(),
        }
    }

    /// What kernels and regions take in each group, and the groups that take longer than the others.
    fn differences(&self, tables: &[SummaryTable<'_>]) -> Vec<Table> {
        let compared = self.groups.compared();
        let mut made = Vec::new();
        let mut late: Vec<(&str, Straggler)> = Vec::new();
        for (view, word) in COMPARED {
            let Some(table) = tables.iter().find(|table| view_of(&table.name) == view) else {
                continue;
            };
            let rows = table.rows().filter(|row| compared[row.rank]);
            let unequal = imbalances(rows.map(|row| {
                let total = GroupTotal {
                    group: row.rank,
                    calls: row.calls,
                    total: row.total,
                };
                (row.name.into_owned(), total)
            }));
            late.extend(stragglers(&unequal).into_iter().map(|of| (word, of)));
            if !unequal.is_empty() {
                made.push(self.imbalance(view, &unequal));
            }
        }
        if !late.is_empty() {
            made.push(self.stragglers(&late));
        }
        made
    }

    fn imbalance(&self, view: &str, unequal: &[Imbalance]) -> Table {
        use ColumnKind::{Name, Number, Time};
        let groups = match self.by {
            GroupBy::Rank => "Ranks",
            GroupBy::Host => "Hosts",
        };
        let columns = [
            (Name, "Name", 0),
            (Number, groups, 0),
            (Time, "MIN", 1),
            (Time, "MEAN", 0),
            (Time, "MAX", 0),
            (Number, "MAX/MEAN", 0),
            (Name, "Slowest", 0),
        ];
        let rows = unequal.iter().map(|of| {
            let slowest = of.slowest();
            vec![
                Cell::from(&*of.name),
                (of.totals.len() as u64).into(),
                of.min().into(),
                of.mean.into(),
                slowest.map_or(0, |slowest| slowest.total).into(),
                of.ratio().into(),
                Cell::from(&*slowest.map_or_else(String::new, |slowest| self.label(slowest.group))),
            ]
        });
        Table {
            name: self.by.table(&format!("{view}_imbalance")),
            columns: columns
                .map(|(kind, name, level)| Column::new(kind, name).detail(level))
                .into(),
            rows: rows.collect(),
        }
    }

    fn stragglers(&self, late: &[(&str, Straggler)]) -> Table {
        use ColumnKind::{Name, Number, Time, Word};
        let mut columns = self.group_columns();
        let of_table = [
            (Word, "Kind"),
            (Name, "Name"),
            (Number, "Calls"),
            (Time, "DURATION"),
            (Time, "MEDIAN"),
            (Number, "DURATION/MEDIAN"),
        ];
        columns.extend(of_table.map(|(kind, name)| Column::new(kind, name)));
        let rows = late.iter().map(|(word, of)| {
            let mut cells = self.group_cells(of.own.group);
            // Of nothing no ratio can be given.
            let ratio = if of.median > 0.0 {
                of.own.total as f64 / of.median
            } else {
                f64::NAN
            };
            cells.extend([
                Cell::from(*word),
                Cell::from(&*of.name),
                of.own.calls.into(),
                of.own.total.into(),
                of.median.into(),
                ratio.into(),
            ]);
            cells
        });
        Table {
            name: self.by.table("stragglers"),
            columns,
            rows: rows.collect(),
        }
    }

    /// Who waits for whom; `None` without operations that are tied.
    fn waited(&self) -> Option<Table> {
        use ColumnKind::{Name, Number, Time, Word};
        if self.waits.iter().all(|of| of.operations == 0) {
            return None;
        }
        let mut columns = self.group_columns();
        let of_table = [
            (Number, "Collectives"),
            (Number, "Came last"),
            (Time, "WAITED"),
            (Time, "LONGEST"),
            (Name, "Mostly for"),
            (Word, "Mostly in"),
        ];
        columns.extend(of_table.map(|(kind, name)| Column::new(kind, name)));
        let groups = self.waits.iter().enumerate();
        let rows = groups.filter(|(_, of)| of.operations > 0);
        let rows = rows.map(|(number, of)| {
            let mut cells = self.group_cells(number);
            let whom = of.mostly_for.map(|(whom, _)| self.label(whom));
            cells.extend([
                Cell::from(of.operations),
                of.last.into(),
                of.total.into(),
                of.longest.into(),
                Cell::from(&*whom.unwrap_or_default()),
                of.mostly_in.into(),
            ]);
            cells
        });
        Some(Table {
            name: self.by.table("waits"),
            rows: rows.collect(),
            columns,
        })
    }

    fn label(&self, group: usize) -> String {
        self.groups.list[group].label(self.by.by())
    }
}

/// The view of a table of the summary: its name without what says what its rows are.
fn view_of(name: &str) -> &str {
    name.trim_end_matches("_by_rank")
        .trim_end_matches("_summary")
}
