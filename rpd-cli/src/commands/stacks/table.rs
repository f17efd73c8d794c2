//! `rpd stacks`: which lines of code made the calls, and what they cost.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::Compat;
use rpd_formats::destination::Destination;
use rpd_formats::rocpd::read::RpdStacks;
use rpd_formats::table::{Cell, Column, ColumnKind};
use rpd_symbols::analysis::{
    Cost, HeldMemory, Launches, MemoryChange, StackedFunction, Texts, Weight, costs, site, stack,
};
use rpd_symbols::each_rpd_stack;

use super::super::tables::{TableOptions, TimeOptions, note, printer};
use super::super::window::WindowOptions;
use super::super::{Form, Inputs, Naming, destination, parse, write_output};
use super::sources::Sources;
use super::{FrameOptions, each_stacked, glob, matches_globs};
use crate::failure::Failure;

const NAME: &str = "stacks";
/// Rows of a table on a terminal.
const ROWS: u64 = 30;
/// Placeholder for an unknown stack.
const UNKNOWN: &str = "(not known)";

/// Show which lines of code made the calls, and what they cost
#[derive(Debug, Parser)]
#[command(
    after_help = "GPU time is the time of the kernels and copies that a call requested. The call site is the innermost frame of the \
    program; --whole shows all frames, innermost first. Files of RPD (ROCm/rocmProfileData) with stack frames are read as well."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    /// Show for each kernel the places that launched it
    #[arg(long, group = "what")]
    kernels: bool,
    /// Show memory that was allocated and not freed, by the place that allocated it
    #[arg(long, group = "what")]
    leaks: bool,
    /// Show memory in use over time, by the place that allocated it
    #[arg(long, group = "what")]
    memory: bool,
    /// Number of points in time that --memory shows
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    points: u32,
    /// Show whole stacks instead of call sites
    #[arg(long)]
    whole: bool,
    /// Functions whose calls are shown: names with * and ?; !NAME leaves a function out [default: all]
    #[arg(long, value_name = "GLOB", value_delimiter = ',', value_parser = glob)]
    api: Vec<String>,
    /// Output format of the result
    #[arg(short = 'f', long, value_enum, default_value = "table")]
    format: Form,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    frames: FrameOptions,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    window: WindowOptions,
    #[command(flatten)]
    tables: TableOptions,
    #[command(flatten)]
    times: TimeOptions,
}

/// Function and place.
type Key = (String, String);

/// Totals over all recordings, by texts, because ids differ between recordings.
#[derive(Default)]
struct StackTotals {
    uses: HashMap<Key, Cost>,
    kernels: HashMap<(String, Key), Launches>,
    held: HashMap<(String, Key), HeldMemory>,
    changes: Vec<(u64, Key, i64)>,
    calls_without: u64,
    gpu_without: u64,
    allocations: usize,
}

/// A table.
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    let paths = given.inputs.paths(NAME)?;
    let output = destination(NAME, given.output_file.as_deref(), &paths)?;
    let sources = Sources::open(NAME, paths, Some(&given.window))?;
    let mut found = StackTotals::default();
    for file in &sources.rpd_files {
        given.add_rpd_file(file, &mut found)?;
    }
    each_stacked(
        NAME,
        &sources,
        &given.frames,
        !given.whole,
        |path, session, settings, expanded| {
            let names = given.naming.over(settings);
            let costs = costs(session, names, |name| matches_globs(&given.api, name));
            crate::commands::note_left_out(path, costs.without_time);
            let texts = Texts::new(session, expanded);
            let mut keys: HashMap<StackedFunction, Key> = HashMap::new();
            let mut key = |used: StackedFunction| {
                let known = keys.entry(used).or_insert_with(|| match used.stack {
                    0 => (UNKNOWN.to_owned(), UNKNOWN.to_owned()),
                    _ => {
                        let place = if given.whole {
                            texts.stack(used)
                        } else {
                            texts.site(used)
                        };
                        (texts.function(used).to_owned(), place)
                    }
                });
                known.clone()
            };
            for (used, cost) in costs.uses {
                found.uses.entry(key(used)).or_default().add(cost);
            }
            for ((kernel, used), launches) in costs.kernels {
                let sum = found.kernels.entry((kernel, key(used))).or_default();
                sum.count += launches.count;
                sum.time += launches.time;
            }
            for ((device, used), held) in costs.held {
                let sum = found.held.entry((device, key(used))).or_default();
                sum.count += held.count;
                sum.bytes += held.bytes;
            }
            for MemoryChange {
                time,
                taken_by,
                bytes,
            } in costs.changes
            {
                let unknown = || (UNKNOWN.to_owned(), UNKNOWN.to_owned());
                let by = taken_by.map_or_else(unknown, &mut key);
                found.changes.push((time, by, bytes));
            }
            found.calls_without += costs.calls_without;
            found.gpu_without += costs.gpu_without;
            found.allocations += session.allocations.len();
            Ok(())
        },
    )?;
    if (given.leaks || given.memory) && found.allocations == 0 {
        return Err(Failure::failed(
            "stacks: no allocations were recorded; record with --memory-allocation-trace and --stacks",
        )
        .into());
    }
    let table = given.table(&mut found);
    if table.rows.is_empty() && !given.api.is_empty() {
        return Err(Failure::failed(format!(
            "stacks: --api {}: no call of such a name has a stack; without --api all calls are shown",
            given.api.join(",")
        ))
        .into());
    }
    given.show(table, output)?;
    if found.calls_without > 0 && !given.leaks && !given.memory {
        eprintln!(
            "rpd: stacks: {} calls have no stack and are left out",
            found.calls_without
        );
    }
    if found.gpu_without > 0 && !given.leaks && !given.memory {
        eprintln!(
            "rpd: stacks: {} nsec of GPU time belong to calls without a stack and are left out",
            found.gpu_without
        );
    }
    Ok(0)
}

impl Arguments {
    /// Adds the calls of a file of RPD.
    fn add_rpd_file(&self, file: &RpdStacks, found: &mut StackTotals) -> Result<()> {
        if self.kernels || self.leaks || self.memory {
            return Err(Failure::usage(format!(
                "stacks: --kernels, --leaks and --memory need databases of rpd, and {} is a file of RPD",
                file.path().display()
            ))
            .into());
        }
        each_rpd_stack(file, |function, cost, frames| {
            if !matches_globs(&self.api, function) {
                return;
            }
            let Some(frames) = frames else {
                found.calls_without += cost.calls;
                found.gpu_without += cost.gpu;
                return;
            };
            let place = if self.whole {
                stack(frames)
            } else {
                site(frames, function)
            };
            let key = (function.to_owned(), place);
            found.uses.entry(key).or_default().add(cost);
        })?;
        Ok(())
    }

    fn table(&self, found: &mut StackTotals) -> Table {
        match (self.kernels, self.leaks, self.memory) {
            (true, ..) => self.kernels(found),
            (_, true, _) => self.leaks(found),
            (.., true) => self.memory(found),
            _ => self.calls(found),
        }
    }

    fn place(&self) -> Column {
        Column::new(
            ColumnKind::Name,
            if self.whole { "Stack" } else { "Call site" },
        )
    }

    fn calls(&self, found: &StackTotals) -> Table {
        let has_gpu = found.uses.values().any(|cost| cost.gpu > 0);
        let weight = if has_gpu { Weight::Gpu } else { Weight::Cpu };
        let mut rows: Vec<(&Key, &Cost)> = found.uses.iter().collect();
        rows.sort_unstable_by(|a, b| b.1.of(weight).cmp(&a.1.of(weight)).then(a.0.cmp(b.0)));
        let row = |((function, place), cost): (&Key, &Cost)| {
            vec![
                Cell::from(&**function),
                cost.calls.into(),
                cost.cpu.into(),
                cost.gpu.into(),
                cost.bytes.into(),
                Cell::from(&**place),
            ]
        };
        Table {
            columns: vec![
                Column::new(ColumnKind::Name, "Function"),
                Column::new(ColumnKind::Number, "Calls"),
                Column::new(ColumnKind::Time, "CPU time").detail(1),
                Column::new(ColumnKind::Time, "GPU time"),
                Column::new(ColumnKind::Number, "Bytes").detail(1),
                self.place(),
            ],
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn kernels(&self, found: &StackTotals) -> Table {
        let mut totals: HashMap<&str, u64> = HashMap::new();
        for ((kernel, _), launches) in &found.kernels {
            *totals.entry(kernel).or_default() += launches.time;
        }
        let mut rows: Vec<_> = found.kernels.iter().collect();
        // Kernels by their time, and the places of one together.
        rows.sort_unstable_by(|((kernel_a, a), left), ((kernel_b, b), right)| {
            totals[&**kernel_b]
                .cmp(&totals[&**kernel_a])
                .then_with(|| kernel_a.cmp(kernel_b))
                .then(right.time.cmp(&left.time))
                .then_with(|| a.cmp(b))
        });
        let row = |((kernel, (function, place)), launches): (&(String, Key), &Launches)| {
            let share = 100.0 * launches.time as f64 / totals[&**kernel].max(1) as f64;
            vec![
                Cell::from(&**kernel),
                launches.count.into(),
                launches.time.into(),
                Cell::Float((share * 10.0).round() / 10.0),
                Cell::from(&**function),
                Cell::from(&**place),
            ]
        };
        Table {
            columns: vec![
                Column::new(ColumnKind::Name, "Kernel"),
                Column::new(ColumnKind::Number, "Launches"),
                Column::new(ColumnKind::Time, "GPU time"),
                Column::new(ColumnKind::Percent, "Share").detail(1),
                Column::new(ColumnKind::Name, "Function").detail(2),
                self.place(),
            ],
            rows: rows.into_iter().map(row).collect(),
        }
    }

    fn leaks(&self, found: &StackTotals) -> Table {
        let mut rows: Vec<_> = found.held.iter().collect();
        rows.sort_unstable_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.0.cmp(b.0)));
        let row = |((device, (function, place)), held): (&(String, Key), &HeldMemory)| {
            vec![
                held.bytes.into(),
                held.count.into(),
                Cell::from(&**device),
                Cell::from(&**function),
                Cell::from(&**place),
            ]
        };
        Table {
            columns: vec![
                Column::new(ColumnKind::Number, "Bytes"),
                Column::new(ColumnKind::Number, "Allocations"),
                Column::new(ColumnKind::Word, "Device").detail(1),
                Column::new(ColumnKind::Name, "Function"),
                self.place(),
            ],
            rows: rows.into_iter().map(row).collect(),
        }
    }

    /// Makes the table of memory in use at each moment, with the greatest amount since the moment before.
    fn memory(&self, found: &mut StackTotals) -> Table {
        found.changes.sort_by_key(|(time, ..)| *time);
        let mut rows = Vec::new();
        let (Some(first), Some(last)) = (found.changes.first(), found.changes.last()) else {
            return Table {
                columns: self.memory_columns(),
                rows,
            };
        };
        let (first, span) = (first.0, last.0 - first.0);
        let mut in_use: BTreeMap<&Key, (i64, i64)> = BTreeMap::new();
        let mut changes = found.changes.iter().peekable();
        for point in 1..=u64::from(self.points) {
            let part = u128::from(span) * u128::from(point) / u128::from(self.points);
            let time = first + part as u64;
            for (now, peak) in in_use.values_mut() {
                *peak = *now;
            }
            while let Some((_, key, bytes)) = changes.next_if(|change| change.0 <= time) {
                let (now, peak) = in_use.entry(key).or_default();
                *now += bytes;
                *peak = (*peak).max(*now);
            }
            let mut at_this: Vec<_> = in_use.iter().filter(|(_, (_, peak))| *peak > 0).collect();
            at_this.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
            for (key, (now, peak)) in at_this {
                rows.push(vec![
                    Cell::from(time),
                    Cell::Integer(*now),
                    Cell::Integer(*peak),
                    Cell::from(&*key.0),
                    Cell::from(&*key.1),
                ]);
            }
        }
        Table {
            columns: self.memory_columns(),
            rows,
        }
    }

    fn memory_columns(&self) -> Vec<Column> {
        vec![
            Column::new(ColumnKind::Time, "Time"),
            Column::new(ColumnKind::Bytes, "In use"),
            Column::new(ColumnKind::Bytes, "Peak"),
            Column::new(ColumnKind::Name, "Function").detail(1),
            self.place(),
        ]
    }

    fn show(&self, table: Table, output: Destination) -> Result<()> {
        let look = self.format.table_format();
        // The points in time are a limit already.
        let usual = Some(ROWS).filter(|_| !self.memory);
        let units = self.times.units;
        let view = (self.tables).view(look, units, Compat::None, &output, usual);
        write_output(output, Compat::None, |out| {
            let mut printer = printer(NAME, &view, table.columns, out)?;
            for row in table.rows {
                printer.row(row)?;
            }
            note(NAME, look, &printer.finish()?);
            Ok(())
        })
    }
}
