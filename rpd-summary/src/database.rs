//! Tables over recordings that were read from databases: one per kind of record, over all recordings or for each separately.

use std::collections::HashMap;

use polars::prelude::*;
use rpd_core::compat::{Compat, Difference};
use rpd_core::domain::Domain;
use rpd_core::options::KernelNames;
use rpd_core::session::{Operation, Session};

use crate::groups::integers;
use crate::{Statistics, SummaryError};

/// Durations of all records that share a name. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRow {
    /// Index of the recording; 0 in tables over all of them.
    pub rank: usize,
    /// Kernel, function, message or operation.
    pub name: String,
    /// Number of calls or operations.
    pub calls: u64,
    /// Sum of durations in nanoseconds.
    pub total: u64,
    /// Mean duration in nanoseconds.
    pub average: f64,
    /// Share of the table, or of the recording's part of it, 0 to 100.
    pub percentage: f64,
    /// Shortest duration in nanoseconds.
    pub min: u64,
    /// Longest duration in nanoseconds.
    pub max: u64,
    /// Sample standard deviation; `None` for one record.
    pub std_dev: Option<f64>,
}

/// A summary table.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryTable {
    /// `kernels_summary` and so on.
    pub name: String,
    /// Ordered by process id where recordings are kept apart, then by total duration descending, then by name.
    pub rows: Vec<SummaryRow>,
}

/// The sum over some records. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownSum {
    /// Name of its table without `_summary`. One that no table has stands for `other_calls`.
    pub table: String,
    /// Kernel, function, message or operation.
    pub name: String,
    /// Number of records.
    pub calls: u64,
    /// Sum of durations.
    pub total: u64,
    /// Shortest duration.
    pub min: u64,
    /// Longest duration.
    pub max: u64,
    /// Sum of squared distances from the mean.
    pub spread: f64,
}

/// A table's name and the domains in it.
type View = (&'static str, &'static [Domain]);

const VIEWS: [View; 11] = [
    ("kernels", &[Domain::KernelDispatch]),
    ("memory_copies", &[Domain::MemoryCopy]),
    (
        "memory_allocations",
        &[Domain::MemoryAllocation, Domain::ScratchMemory],
    ),
    ("scratch_memory", &[Domain::ScratchMemory]),
    ("hip", &[Domain::HipApi]),
    ("hsa", &[Domain::HsaApi]),
    ("rccl", &[Domain::RcclApi]),
    ("rocdecode", &[Domain::RocdecodeApi]),
    ("rocjpeg", &[Domain::RocjpegApi]),
    ("markers", &[Domain::MarkerApi]),
    (OTHER_CALLS, &[]),
];

/// Calls of interfaces that have no table of their own: those in files of RPD.
const OTHER_CALLS: &str = "other_calls";

/// The first word of the categories in a view; `None` for views that are no calls.
fn category(view: &str) -> Option<String> {
    match view {
        "kernels" | "memory_copies" | "memory_allocations" | "scratch_memory" => None,
        "markers" => Some("MARKER".to_owned()),
        other => Some(other.to_uppercase()),
    }
}

/// The sums of recordings.
#[derive(Debug, Default)]
pub struct DatabaseSummary {
    rank: Vec<u32>,
    view: Vec<u32>,
    name: Vec<String>,
    calls: Vec<u64>,
    total: Vec<u64>,
    min: Vec<u64>,
    max: Vec<u64>,
    /// Sum of squared distances from the mean.
    spread: Vec<f64>,
    /// Mean times total, for joining spreads.
    offset: Vec<f64>,
    /// Process ids of the recordings.
    pids: Vec<u64>,
}

impl DatabaseSummary {
    /// Adds the next recording.
    ///
    /// # Errors
    /// When polars cannot compute its sums.
    pub fn add(&mut self, session: &Session, names: KernelNames) -> Result<(), SummaryError> {
        let statistics = Statistics::of_database(session, names)?;
        let rank = self.next_rank();
        for (number, (view, domains)) in (0..).zip(VIEWS) {
            for domain in domains {
                for row in statistics.table("", &[*domain])?.rows {
                    let others = row.calls.saturating_sub(1) as f64;
                    let sum = KnownSum {
                        table: view.to_owned(),
                        name: match view {
                            "memory_allocations" | "scratch_memory" => {
                                action(session, *domain, row.name)
                            }
                            _ => row.name,
                        },
                        calls: row.calls,
                        total: row.total,
                        min: row.min,
                        max: row.max,
                        spread: row.std_dev * row.std_dev * others,
                    };
                    self.push(rank, number, sum);
                }
            }
        }
        self.pids.push(session.process.pid.0.into());
        Ok(())
    }

    /// Adds a process of which sums are known, and no records.
    pub fn add_sums(&mut self, pid: u64, sums: impl IntoIterator<Item = KnownSum>) {
        let rank = self.next_rank();
        let view = |wanted: &str| (0..).zip(VIEWS).find(|(_, (name, _))| *name == wanted);
        for sum in sums {
            let number = view(&sum.table).or_else(|| view(OTHER_CALLS));
            self.push(rank, number.map_or(0, |(number, _)| number), sum);
        }
        self.pids.push(pid);
    }

    fn next_rank(&self) -> u32 {
        u32::try_from(self.pids.len()).unwrap_or(u32::MAX)
    }

    fn push(&mut self, rank: u32, view: u32, sum: KnownSum) {
        let average = sum.total as f64 / sum.calls.max(1) as f64;
        self.rank.push(rank);
        self.view.push(view);
        self.name.push(sum.name);
        self.calls.push(sum.calls);
        self.total.push(sum.total);
        self.min.push(sum.min);
        self.max.push(sum.max);
        self.spread.push(sum.spread);
        self.offset.push(average * sum.total as f64);
    }

    /// The tables that have rows. `categories` are the first words of the categories of calls wanted (all when
    /// `None`); `by_rank` keeps recordings apart.
    ///
    /// # Errors
    /// When polars cannot compute them.
    pub fn tables(
        &self,
        by_rank: bool,
        categories: Option<&[String]>,
    ) -> Result<Vec<SummaryTable>, SummaryError> {
        let mut tables = self.grouped(by_rank)?;
        tables.retain(|(view, _)| match (category(view), categories) {
            (Some(word), Some(wanted)) => wanted.contains(&word),
            _ => true,
        });
        let suffix = if by_rank { "_by_rank" } else { "" };
        Ok(tables
            .into_iter()
            .map(|(view, rows)| SummaryTable {
                name: format!("{view}_summary{suffix}"),
                rows,
            })
            .collect())
    }

    /// One row per table of [`DatabaseSummary::tables`], with the figures over all its records, or with the sums of means and
    /// of deviations where `compat` asks for them. Of one process rows are ordered by name, else by total duration descending.
    pub fn domains(&self, tables: &[SummaryTable], by_rank: bool, compat: Compat) -> SummaryTable {
        let sums = compat.has(Difference::DomainSummary);
        let mut rows: Vec<SummaryRow> = Vec::new();
        for table in tables {
            let name = table.name.trim_end_matches("_by_rank");
            let name = name.trim_end_matches("_summary").to_uppercase();
            let mut parts: HashMap<usize, Vec<&SummaryRow>> = HashMap::new();
            for row in &table.rows {
                parts.entry(row.rank).or_default().push(row);
            }
            for (rank, parts) in parts {
                let calls: u64 = parts.iter().map(|row| row.calls).sum();
                let total: u64 = parts.iter().map(|row| row.total).sum();
                let average = total as f64 / calls.max(1) as f64;
                let spread: f64 = parts
                    .iter()
                    .map(|row| {
                        let own = row.std_dev.unwrap_or(0.0);
                        let offset = row.average - average;
                        own * own * (row.calls - 1) as f64 + offset * offset * row.calls as f64
                    })
                    .sum();
                let deviations: Vec<f64> = parts.iter().filter_map(|row| row.std_dev).collect();
                rows.push(SummaryRow {
                    rank,
                    name: name.clone(),
                    calls,
                    total,
                    average: match sums {
                        true => parts.iter().map(|row| row.average).sum(),
                        false => average,
                    },
                    percentage: 0.0,
                    min: parts.iter().map(|row| row.min).min().unwrap_or(0),
                    max: parts.iter().map(|row| row.max).max().unwrap_or(0),
                    std_dev: match sums {
                        true => (!deviations.is_empty()).then(|| deviations.iter().sum()),
                        false => (calls > 1).then(|| (spread / (calls - 1) as f64).sqrt()),
                    },
                });
            }
        }
        self.finish(&mut rows);
        if by_rank {
            rows.sort_by(|a, b| (self.pid(a).cmp(&self.pid(b))).then_with(|| a.name.cmp(&b.name)));
        }
        let suffix = if by_rank { "_by_rank" } else { "" };
        SummaryTable {
            name: format!("domain_summary{suffix}"),
            rows,
        }
    }

    fn grouped(&self, by_rank: bool) -> Result<Vec<(&'static str, Vec<SummaryRow>)>, SummaryError> {
        let rank = match by_rank {
            true => self.rank.clone(),
            false => vec![0; self.rank.len()],
        };
        let frame = DataFrame::new_infer_height(vec![
            Column::new("rank".into(), rank),
            Column::new("view".into(), &self.view),
            Column::new("name".into(), &self.name),
            Column::new("calls".into(), &self.calls),
            Column::new("total".into(), &self.total),
            Column::new("min".into(), &self.min),
            Column::new("max".into(), &self.max),
            Column::new("spread".into(), &self.spread),
            Column::new("offset".into(), &self.offset),
        ])?
        .lazy()
        .group_by([col("rank"), col("view"), col("name")])
        .agg([
            col("calls").sum(),
            col("total").sum(),
            col("min").min(),
            col("max").max(),
            col("spread").sum(),
            col("offset").sum(),
            len().alias("parts"),
        ])
        .collect()?;
        let integers = |name: &str| integers(&frame, name);
        let (ranks, views) = (integers("rank")?, integers("view")?);
        let (calls, totals) = (integers("calls")?, integers("total")?);
        let (mins, maxs) = (integers("min")?, integers("max")?);
        let parts = integers("parts")?;
        let names = frame.column("name")?.str()?.clone();
        let (spreads, offsets) = (
            frame.column("spread")?.f64()?.clone(),
            frame.column("offset")?.f64()?.clone(),
        );
        let mut tables: Vec<(&'static str, Vec<SummaryRow>)> =
            VIEWS.iter().map(|(view, _)| (*view, Vec::new())).collect();
        for index in 0..frame.height() {
            let (calls, total) = (calls[index], totals[index]);
            let average = total as f64 / calls.max(1) as f64;
            let mut spread = spreads.get(index).unwrap_or(0.0);
            if parts[index] > 1 {
                // Squared distances from the common mean: those from each part's own mean, plus those of these means.
                let offset = offsets.get(index).unwrap_or(0.0);
                spread += (offset - average * total as f64).max(0.0);
            }
            tables[views[index] as usize].1.push(SummaryRow {
                rank: ranks[index] as usize,
                name: names.get(index).unwrap_or_default().to_owned(),
                calls,
                total,
                average,
                percentage: 0.0,
                min: mins[index],
                max: maxs[index],
                std_dev: (calls > 1).then(|| (spread / (calls - 1) as f64).sqrt()),
            });
        }
        tables.retain(|(_, rows)| !rows.is_empty());
        for (_, rows) in &mut tables {
            self.finish(rows);
        }
        Ok(tables)
    }

    fn pid(&self, row: &SummaryRow) -> u64 {
        self.pids.get(row.rank).copied().unwrap_or(0)
    }

    /// Computes percentages and sorts the rows.
    fn finish(&self, rows: &mut [SummaryRow]) {
        let mut totals: HashMap<usize, u64> = HashMap::new();
        for row in rows.iter() {
            *totals.entry(row.rank).or_default() += row.total;
        }
        for row in rows.iter_mut() {
            let total = totals.get(&row.rank).copied().unwrap_or(0);
            row.percentage = match total {
                0 => 0.0,
                total => row.total as f64 * 100.0 / total as f64,
            };
        }
        rows.sort_by(|a, b| {
            (self.pid(a).cmp(&self.pid(b)))
                .then_with(|| b.total.cmp(&a.total))
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| a.rank.cmp(&b.rank))
        });
    }
}

/// What an operation on memory does, as databases call it, by its name; others keep their names.
fn action(session: &Session, domain: Domain, name: String) -> String {
    let is_it = |operation: &&Operation| {
        operation.domain() == domain && session.strings.get(operation.name) == name
    };
    let operation = session.operations.iter().find(is_it);
    match operation.and_then(|operation| operation.class.memory_action()) {
        Some(action) => action.label().to_owned(),
        None => name,
    }
}
