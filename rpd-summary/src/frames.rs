//! Durations as frames, and the tables computed from them.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use polars::prelude::*;
use rpd_core::domain::Domain;
use rpd_core::ids::{Nanoseconds, StringId};
use rpd_core::kernel_name;
use rpd_core::options::KernelNames;
use rpd_core::session::{DispatchTable, ExtendedStrings, Session, Table};
use rpd_core::stats::{SessionStats, StatRow, StatTable};

use crate::groups::{Groups, merged_figures};

/// Statistics could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// An error of polars.
    #[error("statistics: {0}")]
    Frame(#[from] PolarsError),
    /// The text is not a regular expression.
    #[error("{expression}: not a regular expression: {reason}")]
    Expression {
        /// The expression as the user wrote it.
        expression: String,
        /// Description of the error.
        reason: String,
    },
}

/// The durations of one session, grouped by domain and name: what all tables are computed from.
#[derive(Debug)]
pub struct Statistics<'a> {
    /// The names: strings of the session keep their ids, whatever table a name comes from.
    names: ExtendedStrings<'a>,
    /// Domains that have records, in summary order.
    domains: Vec<Domain>,
    /// One row per `domain` (index into [`Domain::ALL`]) and `name` (index into `names`), with the [`figures`] of its
    /// records.
    frame: DataFrame,
}

/// The number of a domain takes the lowest bits of a key, the name the others.
const DOMAIN_BITS: u32 = 8;

/// Groups the durations of a session by domain and name.
#[derive(Default)]
struct Records(Groups);

impl Records {
    #[inline]
    fn push(
        &mut self,
        domain: Domain,
        name: u32,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> PolarsResult<()> {
        let key = u64::from(name) << DOMAIN_BITS | domain as u64;
        self.0.push(key, start, end)
    }

    fn push_calls(&mut self, session: &Session) -> PolarsResult<()> {
        let api = &session.api;
        for index in api.indices() {
            let domain = session.call(index).domain();
            let name = session.api_label(index);
            self.push(domain, name.0, api.start[index], api.end[index])?;
        }
        Ok(())
    }

    fn push_dispatches(
        &mut self,
        session: &Session,
        dispatches: &DispatchTable,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> PolarsResult<()> {
        let mut shown: HashMap<(u64, u32), u32> = HashMap::new();
        for index in dispatches.indices() {
            let region = if kernels.rename {
                dispatches.region[index]
            } else {
                0
            };
            let kernel = dispatches.kernel[index];
            let name = *shown.entry((kernel.0, region)).or_insert_with(|| {
                let renamed = region
                    .checked_sub(1)
                    .and_then(|region| session.regions.get(region as usize));
                match (renamed, session.kernel_symbol(kernel)) {
                    (Some(region), _) => region.message.0,
                    (None, Some(symbol)) => {
                        let name = kernel_name::formatted(&symbol.name, kernels);
                        names.intern(&name).0
                    }
                    (None, None) => names.intern(&kernel.to_string()).0,
                }
            });
            let (start, end) = (dispatches.start[index], dispatches.end[index]);
            self.push(Domain::KernelDispatch, name, start, end)?;
        }
        Ok(())
    }

    /// Pushes what all device work adds up to, of which the tables hold the latest only.
    fn push_totals(
        &mut self,
        session: &Session,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> PolarsResult<()> {
        let rows = session.device_totals.iter().map(|total| {
            let name = session.total_name(total, kernels, names);
            let key = u64::from(name.0) << DOMAIN_BITS | total.domain() as u64;
            let figures = [total.count, total.total, total.min, total.max];
            (key, figures, total.spread)
        });
        self.0.push_figures(rows)
    }

    /// One row per domain and name that has records, as [`Statistics`] has them, and these domains.
    fn finish(self) -> PolarsResult<(DataFrame, Vec<Domain>)> {
        let mut frame = self.0.finish()?;
        if frame.height() == 0 {
            return Ok((frame, Vec::new()));
        }
        let keys = frame.column("key")?.u64()?.clone();
        let numbers = |of: fn(u64) -> u64| -> Vec<u32> {
            let keys = keys.iter().map(Option::unwrap_or_default);
            keys.map(|key| of(key) as u32).collect()
        };
        let domains = numbers(|key| key & ((1 << DOMAIN_BITS) - 1));
        let occurs = |domain: &Domain| domains.contains(&(*domain as u32));
        let occurring = Domain::ALL.into_iter().filter(occurs).collect();
        frame.with_column(Column::new(
            "name".into(),
            numbers(|key| key >> DOMAIN_BITS),
        ))?;
        frame.with_column(Column::new("domain".into(), domains))?;
        Ok((frame.drop("key")?, occurring))
    }
}

/// Pushes the records of a table whose records are named after their operations.
macro_rules! push_operations {
    ($records:expr, $session:expr, $table:expr) => {
        for index in $table.indices() {
            let operation = &$session.operations[$table.operation[index]];
            let (start, end) = ($table.start[index], $table.end[index]);
            $records.push(operation.domain(), operation.name.0, start, end)?;
        }
    };
}

impl<'a> Statistics<'a> {
    /// Copies the durations from a session. `kernels` selects the form of kernel names.
    ///
    /// # Errors
    /// When polars cannot build the frames.
    pub fn new(session: &'a Session, kernels: KernelNames) -> Result<Self, SummaryError> {
        Statistics::of(session, &session.dispatches, kernels)
    }

    /// As [`Statistics::new`], for a session from a database, where dispatches that were counted and not traced count as kernels.
    pub(crate) fn of_database(
        session: &'a Session,
        kernels: KernelNames,
    ) -> Result<Self, SummaryError> {
        let dispatches = match session.dispatches.is_empty() {
            true => &session.counted.dispatches,
            false => &session.dispatches,
        };
        Statistics::of(session, dispatches, kernels)
    }

    fn of(
        session: &'a Session,
        dispatches: &DispatchTable,
        kernels: KernelNames,
    ) -> Result<Self, SummaryError> {
        let mut names = ExtendedStrings::new(&session.strings);
        let mut records = Records::default();
        records.push_totals(session, kernels, &mut names)?;
        for table in Table::ALL {
            match table {
                // The sums have these.
                Table::Dispatches | Table::Copies if !session.device_totals.is_empty() => {}
                Table::Calls => records.push_calls(session)?,
                Table::Dispatches => {
                    records.push_dispatches(session, dispatches, kernels, &mut names)?;
                }
                Table::Copies => push_operations!(records, session, session.copies),
                Table::Allocations => push_operations!(records, session, session.allocations),
                Table::Scratch => push_operations!(records, session, session.scratch),
                // These statistics are about durations, which those that were traced have as well.
                Table::Counted => {}
                // Samples have no durations.
                Table::Samples => {}
            }
        }

        let (frame, domains) = records.finish()?;
        Ok(Statistics {
            names,
            domains,
            frame,
        })
    }

    /// The domains that have records, in summary order.
    pub fn domains(&self) -> impl Iterator<Item = Domain> {
        self.domains.iter().copied()
    }

    /// One table over the records of some domains, taken together. A name that occurs in several of them is one
    /// row, and shows the first domain. Without records the table has no rows.
    ///
    /// # Errors
    /// When polars cannot compute it.
    pub fn table(&self, title: &str, domains: &[Domain]) -> Result<StatTable, SummaryError> {
        let name = |row: &Grouped| {
            let id = u32::try_from(row.key).ok()?;
            Some(self.names.get(StringId(id)).to_owned())
        };
        let rows = self.grouped("name", domains)?;
        let rows = rows.iter().map(|row| row.stats(name(row)));
        Ok(StatTable {
            title: title.to_owned(),
            rows: finished(rows.collect()),
        })
    }

    /// The tables for statistics files and `--stats`.
    ///
    /// # Errors
    /// When polars cannot compute it.
    pub fn session_stats(&self) -> Result<SessionStats, SummaryError> {
        let mut stats = SessionStats::default();
        for domain in self.domains() {
            let table = self.table(domain.label(), &[domain])?;
            stats.domains.push((domain, table));
        }
        let rows = self.grouped("domain", &Domain::ALL)?;
        let rows = rows.iter().map(|row| {
            let name = row.domain.label().to_owned();
            row.stats(Some(name))
        });
        stats.overall = finished(rows.collect());
        Ok(stats)
    }

    /// The figures over the records of some domains by one column of the frame.
    fn grouped(&self, by: &str, domains: &[Domain]) -> Result<Vec<Grouped>, SummaryError> {
        if self.domains.is_empty() {
            return Ok(Vec::new());
        }
        let is_chosen = domains.iter().fold(lit(false), |chosen, domain| {
            chosen.or(col("domain").eq(lit(*domain as u32)))
        });
        // `by` may be the domain itself.
        let mut figures = vec![col("domain").min().alias("first_domain")];
        figures.extend(merged_figures());
        let frame = self
            .frame
            .clone()
            .lazy()
            .filter(is_chosen)
            .group_by([col(by)])
            .agg(figures)
            .collect()?;
        let integers = |name: &str| -> PolarsResult<Vec<u64>> {
            let column = frame.column(name)?.cast(&DataType::UInt64)?;
            let values = column.u64()?.iter();
            Ok(values.map(Option::unwrap_or_default).collect())
        };
        let spread = frame.column("spread")?.f64()?.clone();
        let (key, domain) = (integers(by)?, integers("first_domain")?);
        let [calls, total, min, max] = ["calls", "total", "min", "max"].map(integers);
        let (calls, total, min, max) = (calls?, total?, min?, max?);
        let rows = (0..frame.height()).map(|index| Grouped {
            key: key[index],
            domain: Domain::ALL[domain[index] as usize],
            calls: calls[index],
            total: total[index],
            min: min[index],
            max: max[index],
            spread: spread.get(index).unwrap_or(0.0),
        });
        Ok(rows.collect())
    }
}

/// A row of a grouped frame.
struct Grouped {
    key: u64,
    /// The first of the domains that the records are of.
    domain: Domain,
    calls: u64,
    total: u64,
    min: u64,
    max: u64,
    spread: f64,
}

impl Grouped {
    fn stats(&self, name: Option<String>) -> StatRow {
        StatRow {
            name: name.unwrap_or_default(),
            domain: self.domain,
            calls: self.calls,
            total: self.total,
            average: self.total as f64 / self.calls.max(1) as f64,
            percentage: 0.0,
            min: self.min,
            max: self.max,
            std_dev: deviation(self.spread, self.calls),
        }
    }
}

/// Sample standard deviation; 0 for fewer than two records.
fn deviation(spread: f64, calls: u64) -> f64 {
    match calls {
        0 | 1 => 0.0,
        calls => (spread / (calls - 1) as f64).sqrt(),
    }
}

/// Adds percentages and sorts the rows.
fn finished(mut rows: Vec<StatRow>) -> Vec<StatRow> {
    let total: u128 = rows.iter().map(|row| u128::from(row.total)).sum();
    for row in &mut rows {
        row.percentage = if total == 0 {
            0.0
        } else {
            100.0 * row.total as f64 / total as f64
        };
    }
    rows.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.name.cmp(&b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Kind;

    #[test]
    fn marks_without_a_message_go_by_the_name_that_traces_show() {
        let mut session = Session::default();
        session.strings.intern("");
        for (operation, message) in [
            ("roctxMarkA", ""),
            ("roctxMarkA", "mark"),
            ("roctxGetThreadId", ""),
        ] {
            let operation = session.add_operation(Kind::MarkerCoreRange, operation);
            let message = session.strings.intern(message);
            let api = &mut session.api;
            api.operation.push(operation);
            api.message.push(message);
            api.start.push(Nanoseconds(1));
            api.end.push(Nanoseconds(2));
        }
        let statistics = Statistics::new(&session, KernelNames::default()).expect("frames");
        let stats = statistics.session_stats().expect("tables");
        let [(Domain::MarkerApi, table)] = stats.domains.as_slice() else {
            panic!("{stats:?}");
        };
        let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["", "mark", "roctxGetThreadId"]);
    }
}
