//! Durations as frames, and the tables computed from them.

use std::collections::HashMap;

use polars::prelude::*;
use rpd_core::domain::Domain;
use rpd_core::ids::{Nanoseconds, OperationId};
use rpd_core::kernel_name;
use rpd_core::options::KernelNames;
use rpd_core::session::{DispatchTable, Session};
use rpd_core::stats::{SessionStats, StatRow, StatTable};

/// Statistics could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// polars refused.
    #[error("statistics: {0}")]
    Frame(#[from] PolarsError),
    /// Not a regular expression.
    #[error("{expression}: not a regular expression: {reason}")]
    Expression {
        /// As given.
        expression: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The durations of one session, summed by domain and name: what all tables are computed from.
#[derive(Debug)]
pub struct Statistics {
    /// One text per name id, unique.
    names: Vec<String>,
    /// Domains that have records, in summary order, with the sums over all their names.
    domains: Vec<(Domain, Sums)>,
    /// One row per domain (index into `domains`) and name: `calls`, `total`, `min`, `max`, `spread` (sum of squared
    /// distances from the mean) and `offset` (mean times total, for joining spreads).
    frame: DataFrame,
}

/// Gives each text one id, whatever table it comes from: strings of the session keep theirs.
struct Names<'a> {
    session: &'a Session,
    extra: Vec<String>,
    index: HashMap<String, u32>,
}

impl<'a> Names<'a> {
    fn new(session: &'a Session, kernels: bool) -> Names<'a> {
        // Only kernel names are not among the session's strings; without kernels nothing is looked up.
        let index = if kernels {
            (0..)
                .zip(session.strings.iter())
                .map(|(id, text)| (text.to_owned(), id))
                .collect()
        } else {
            HashMap::new()
        };
        Names {
            session,
            extra: Vec::new(),
            index,
        }
    }

    fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.index.get(text) {
            return id;
        }
        let id = u32::try_from(self.session.strings.len() + self.extra.len()).unwrap_or(u32::MAX);
        self.extra.push(text.to_owned());
        self.index.insert(text.to_owned(), id);
        id
    }

    fn into_texts(self) -> Vec<String> {
        let mut texts: Vec<String> = self.session.strings.iter().map(str::to_owned).collect();
        texts.extend(self.extra);
        texts
    }
}

/// Sums over the durations that share a name, exact for any duration.
#[derive(Debug, Clone, Copy)]
struct Sums {
    calls: u64,
    total: u64,
    squares: u128,
    min: u64,
    max: u64,
}

impl Sums {
    const NONE: Sums = Sums {
        calls: 0,
        total: 0,
        squares: 0,
        min: u64::MAX,
        max: 0,
    };

    /// Sum of the squared distances from the mean. The difference of two huge sums is taken while they are
    /// still integers.
    fn spread(&self) -> f64 {
        let calls = u128::from(self.calls.max(1));
        let square = u128::from(self.total) * u128::from(self.total);
        // squares - square / calls, with the division's remainder taken care of.
        let whole = self.squares.saturating_sub(square / calls) as f64;
        (whole - (square % calls) as f64 / calls as f64).max(0.0)
    }
}

/// Sums of one domain by name id. Ids are dense, so a name is an index.
#[derive(Default)]
struct Gathered(Vec<Sums>);

impl Gathered {
    fn add(&mut self, name: u32, start: Nanoseconds, end: Nanoseconds) {
        let name = name as usize;
        if name >= self.0.len() {
            self.0.resize(name + 1, Sums::NONE);
        }
        let duration = end.0.saturating_sub(start.0);
        let sums = &mut self.0[name];
        sums.calls += 1;
        sums.total = sums.total.saturating_add(duration);
        sums.squares = sums
            .squares
            .saturating_add(u128::from(duration) * u128::from(duration));
        sums.min = sums.min.min(duration);
        sums.max = sums.max.max(duration);
    }

    fn of_operations(
        session: &Session,
        operations: &[OperationId],
        start: &[Nanoseconds],
        end: &[Nanoseconds],
    ) -> Gathered {
        let mut gathered = Gathered::default();
        for ((operation, start), end) in operations.iter().zip(start).zip(end) {
            gathered.add(session.operations[*operation].name.0, *start, *end);
        }
        gathered
    }

    /// One row per name that occurs; `None` when none does.
    fn frame(&self, domain: u32) -> PolarsResult<Option<DataFrame>> {
        let rows: Vec<(u32, &Sums)> = (0..)
            .zip(&self.0)
            .filter(|(_, sums)| sums.calls > 0)
            .collect();
        if rows.is_empty() {
            return Ok(None);
        }
        fn column<T>(rows: &[(u32, &Sums)], get: impl Fn(u32, &Sums) -> T) -> Vec<T> {
            rows.iter().map(|(name, sums)| get(*name, sums)).collect()
        }
        let offset = |sums: &Sums| sums.total as f64 / sums.calls as f64 * sums.total as f64;
        DataFrame::new_infer_height(vec![
            Column::new("domain".into(), vec![domain; rows.len()]),
            Column::new("name".into(), column(&rows, |name, _| name)),
            Column::new("calls".into(), column(&rows, |_, sums| sums.calls)),
            Column::new("total".into(), column(&rows, |_, sums| sums.total)),
            Column::new("min".into(), column(&rows, |_, sums| sums.min)),
            Column::new("max".into(), column(&rows, |_, sums| sums.max)),
            Column::new("spread".into(), column(&rows, |_, sums| sums.spread())),
            Column::new("offset".into(), column(&rows, |_, sums| offset(sums))),
        ])
        .map(Some)
    }

    /// Sums over all names.
    fn whole(&self) -> Sums {
        self.0.iter().fold(Sums::NONE, |whole, sums| Sums {
            calls: whole.calls + sums.calls,
            total: whole.total.saturating_add(sums.total),
            squares: whole.squares.saturating_add(sums.squares),
            min: whole.min.min(sums.min),
            max: whole.max.max(sums.max),
        })
    }
}

impl Statistics {
    /// Takes the durations from a session. `kernels` says how kernels are named.
    ///
    /// # Errors
    /// When polars cannot build the frames.
    pub fn new(session: &Session, kernels: KernelNames) -> Result<Statistics, SummaryError> {
        Statistics::of(session, &session.dispatches, kernels)
    }

    /// The same as databases have it: dispatches that were counted and not traced are kernels all the same.
    pub(crate) fn of_database(
        session: &Session,
        kernels: KernelNames,
    ) -> Result<Statistics, SummaryError> {
        let dispatches = match session.dispatches.is_empty() {
            true => &session.counted.dispatches,
            false => &session.dispatches,
        };
        Statistics::of(session, dispatches, kernels)
    }

    fn of(
        session: &Session,
        dispatches: &DispatchTable,
        kernels: KernelNames,
    ) -> Result<Statistics, SummaryError> {
        let mut names = Names::new(session, !dispatches.is_empty());
        let mut gathered: [Gathered; Domain::ALL.len()] = Default::default();
        let slot = |domain: Domain| {
            Domain::ALL
                .iter()
                .position(|&other| other == domain)
                .unwrap_or_default()
        };

        let api = &session.api;
        for index in api.indices() {
            let name = session.api_label(index);
            gathered[slot(session.call(index).domain())].add(
                name.0,
                api.start[index],
                api.end[index],
            );
        }

        let mut shown: HashMap<(u64, u32), u32> = HashMap::new();
        let kernel_sums = &mut gathered[slot(Domain::KernelDispatch)];
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
                        names.id(&kernel_name::formatted(&symbol.name, kernels))
                    }
                    (None, None) => names.id(&kernel.to_string()),
                }
            });
            kernel_sums.add(name, dispatches.start[index], dispatches.end[index]);
        }

        let (copies, allocations, scratch) =
            (&session.copies, &session.allocations, &session.scratch);
        gathered[slot(Domain::MemoryCopy)] =
            Gathered::of_operations(session, &copies.operation, &copies.start, &copies.end);
        gathered[slot(Domain::MemoryAllocation)] = Gathered::of_operations(
            session,
            &allocations.operation,
            &allocations.start,
            &allocations.end,
        );
        gathered[slot(Domain::ScratchMemory)] =
            Gathered::of_operations(session, &scratch.operation, &scratch.start, &scratch.end);

        let mut domains = Vec::new();
        let mut frames = Vec::new();
        for (domain, sums) in Domain::ALL.into_iter().zip(&gathered) {
            let number = u32::try_from(domains.len()).unwrap_or(u32::MAX);
            if let Some(frame) = sums.frame(number)? {
                domains.push((domain, sums.whole()));
                frames.push(frame.lazy());
            }
        }
        let frame = match frames.is_empty() {
            true => DataFrame::empty(),
            false => concat(frames, UnionArgs::default())?.collect()?,
        };
        Ok(Statistics {
            names: names.into_texts(),
            domains,
            frame,
        })
    }

    /// The domains that have records, in summary order.
    pub fn domains(&self) -> impl Iterator<Item = Domain> {
        self.domains.iter().map(|(domain, _)| *domain)
    }

    /// One table over the records of some domains, taken together. A name that occurs in several of them is one
    /// row, and shows the first domain. Without records the table has no rows.
    ///
    /// # Errors
    /// When polars cannot compute it.
    pub fn table(&self, title: &str, domains: &[Domain]) -> Result<StatTable, SummaryError> {
        let mut chosen = lit(false);
        for (number, (domain, _)) in (0_u32..).zip(&self.domains) {
            if domains.contains(domain) {
                chosen = chosen.or(col("domain").eq(lit(number)));
            }
        }
        let mut rows = Vec::new();
        if !self.domains.is_empty() {
            let grouped = self
                .frame
                .clone()
                .lazy()
                .filter(chosen)
                .group_by([col("name")])
                .agg([
                    col("domain").min(),
                    col("calls").sum(),
                    col("total").sum(),
                    col("min").min(),
                    col("max").max(),
                    col("spread").sum(),
                    col("offset").sum(),
                    len().alias("parts"),
                ])
                .collect()?;
            rows = self.rows(&grouped)?;
        }
        Ok(StatTable {
            title: title.to_owned(),
            rows: finished(rows),
        })
    }

    /// What statistics files and `--stats` tables need.
    ///
    /// # Errors
    /// When polars cannot compute it.
    pub fn session_stats(&self) -> Result<SessionStats, SummaryError> {
        let mut stats = SessionStats::default();
        for (domain, whole) in &self.domains {
            let table = self.table(domain.label(), &[*domain])?;
            stats.domains.push((*domain, table));
            stats.overall.push(StatRow {
                name: domain.label().to_owned(),
                domain: *domain,
                calls: whole.calls,
                total: whole.total,
                average: whole.total as f64 / whole.calls.max(1) as f64,
                percentage: 0.0,
                min: whole.min,
                max: whole.max,
                std_dev: deviation(whole.spread(), whole.calls),
            });
        }
        stats.overall = finished(stats.overall);
        Ok(stats)
    }

    fn rows(&self, frame: &DataFrame) -> Result<Vec<StatRow>, SummaryError> {
        let integers = |name: &str| -> PolarsResult<Vec<u64>> {
            let column = frame.column(name)?.cast(&DataType::UInt64)?;
            let values = column.u64()?;
            Ok((0..frame.height())
                .map(|index| values.get(index).unwrap_or(0))
                .collect())
        };
        let spread = frame.column("spread")?.f64()?.clone();
        let offset = frame.column("offset")?.f64()?.clone();
        let (name, domain, parts) = (integers("name")?, integers("domain")?, integers("parts")?);
        let (calls, total) = (integers("calls")?, integers("total")?);
        let (min, max) = (integers("min")?, integers("max")?);
        let mut rows = Vec::with_capacity(frame.height());
        for index in 0..frame.height() {
            let (calls, total) = (calls[index], total[index]);
            let average = total as f64 / calls.max(1) as f64;
            let mut spread = spread.get(index).unwrap_or(0.0);
            if parts[index] > 1 {
                // Spread around the common mean: that around each domain's own, and that of those means.
                let offset = offset.get(index).unwrap_or(0.0);
                spread += (offset - average * total as f64).max(0.0);
            }
            let domain = usize::try_from(domain[index]).ok();
            let domain = domain.and_then(|domain| self.domains.get(domain));
            let text = usize::try_from(name[index]).ok();
            let text = text.and_then(|name| self.names.get(name));
            rows.push(StatRow {
                name: text.cloned().unwrap_or_default(),
                domain: domain.map_or(Domain::HsaApi, |(domain, _)| *domain),
                calls,
                total,
                average,
                percentage: 0.0,
                min: min[index],
                max: max[index],
                std_dev: deviation(spread, calls),
            });
        }
        Ok(rows)
    }
}

/// Sample standard deviation; 0 for fewer than two records.
fn deviation(spread: f64, calls: u64) -> f64 {
    match calls {
        0 | 1 => 0.0,
        calls => (spread / (calls - 1) as f64).sqrt(),
    }
}

/// Percentages and order.
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
