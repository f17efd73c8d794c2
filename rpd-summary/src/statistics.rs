//! Durations of a session by domain and name, and the tables computed from them.

#![deny(clippy::wildcard_enum_match_arm)]

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use rpd_core::domain::Domain;
use rpd_core::ids::{KernelId, Nanoseconds, StringId};
use rpd_core::options::KernelNames;
use rpd_core::session::{
    DispatchTable, ExtendedStrings, KernelLabels, PlausibleTimes, Session, Table,
};
use rpd_core::stats::{SessionStats, StatNames, StatRow, StatTable};
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::Storage;
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use crate::groups::{GroupRow, GroupTable, Groups};

/// Statistics could not be computed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SummaryError {
    /// Rows could not be kept in a file.
    #[error("statistics: cannot write temporary files: {0}")]
    Files(#[from] std::io::Error),
    /// The text is not a regular expression.
    #[error("`{expression}` is not a regular expression: {reason}")]
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
    names: StatNames<'a>,
    /// Places of the names that have records among those in alphabetical order, by id.
    places: ById<u32>,
    /// Domains that have records, in summary order.
    domains: Vec<Domain>,
    /// The groups, by [`key`].
    groups: GroupTable,
    /// Number of records whose times cannot be.
    left_out: u64,
    storage: Option<Storage>,
}

/// Number of the lowest bits of a key that are the domain; the others are the name.
const DOMAIN_BITS: u32 = 8;

/// The key of the records of a domain that have a name.
fn key(domain: Domain, name: StringId) -> u64 {
    u64::from(name.0) << DOMAIN_BITS | domain as u64
}

/// The name in a [`key`].
pub(crate) fn name_of(key: u64) -> StringId {
    StringId((key >> DOMAIN_BITS) as u32)
}

/// The domain in a [`key`].
pub(crate) fn domain_of(key: u64) -> Domain {
    Domain::ALL[(key & ((1 << DOMAIN_BITS) - 1)) as usize]
}

/// Groups the durations of a session by domain and name.
struct Records {
    groups: Groups,
    times: PlausibleTimes,
    /// Number of records whose times cannot be.
    left_out: u64,
}

impl Records {
    fn new(session: &Session) -> Records {
        let mut groups = Groups::default();
        if let Some(storage) = &session.storage {
            groups.spill_to(storage);
        }
        Records {
            groups,
            times: PlausibleTimes::from_session(session),
            left_out: 0,
        }
    }

    #[inline]
    fn push(
        &mut self,
        domain: Domain,
        name: StringId,
        start: Nanoseconds,
        end: Nanoseconds,
    ) -> Result<(), SummaryError> {
        match self.times.duration(start, end) {
            Some(duration) => self.groups.push(key(domain, name), duration),
            None => {
                self.left_out += 1;
                Ok(())
            }
        }
    }

    fn push_calls(&mut self, session: &Session) -> Result<(), SummaryError> {
        let calls = &session.calls;
        for index in calls.indices() {
            let domain = session.call(index).domain();
            let name = session.call_label(index);
            self.push(domain, name, calls.start[index], calls.end[index])?;
        }
        Ok(())
    }

    fn push_dispatches(
        &mut self,
        session: &Session,
        dispatches: &DispatchTable,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> Result<(), SummaryError> {
        let labels = KernelLabels::new(session, kernels);
        // Most dispatches have a name that an earlier one has: it is looked up once.
        let mut shown: HashMap<(KernelId, u32), StringId> = HashMap::new();
        for index in dispatches.indices() {
            // The program runs a dispatch once, however often it is replayed.
            if dispatches.is_repeated(index) {
                continue;
            }
            let name = *shown
                .entry(labels.key(dispatches, index))
                .or_insert_with(|| names.intern(labels.of(dispatches, index)));
            let (start, end) = (dispatches.start[index], dispatches.end[index]);
            self.push(Domain::KernelDispatch, name, start, end)?;
        }
        Ok(())
    }

    /// Pushes the sums over all device work, of which the tables hold the latest only.
    fn push_totals(
        &mut self,
        session: &Session,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> Result<(), SummaryError> {
        self.groups
            .push_groups(session.device_totals.iter().map(|total| {
                let name = session.total_name(total, kernels, names);
                GroupRow {
                    key: key(total.domain(), name),
                    calls: total.count,
                    total: total.total,
                    min: total.min,
                    max: total.max,
                    spread: total.spread,
                }
            }))
    }

    /// Pushes the sums over records that were removed: the tables do not hold them.
    fn push_removed(
        &mut self,
        session: &Session,
        kernels: KernelNames,
        names: &mut ExtendedStrings<'_>,
    ) -> Result<(), SummaryError> {
        let with_durations = |table| {
            !matches!(
                table,
                Table::Samples | Table::Counted | Table::GraphLaunches | Table::HipEvents
            )
        };
        let removed = session.removed.iter();
        let removed = removed.filter(|total| with_durations(total.table));
        self.groups.push_groups(removed.map(|total| {
            let name = session.removed_name(total, kernels, names);
            GroupRow {
                key: key(total.domain, name),
                calls: total.count,
                total: total.total,
                min: total.min,
                max: total.max,
                spread: total.spread,
            }
        }))
    }
}

/// Pushes the records of a table whose records are named after their operations.
macro_rules! push_operations {
    ($records:expr, $session:expr, $table:expr) => {
        for index in $table.indices() {
            let operation = &$session.operations[$table.operation[index]];
            let (start, end) = ($table.start[index], $table.end[index]);
            $records.push(operation.domain(), operation.name, start, end)?;
        }
    };
}

impl<'a> Statistics<'a> {
    /// Copies the durations from a session. `kernels` selects the form of kernel names.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn new(session: &'a Session, kernels: KernelNames) -> Result<Self, SummaryError> {
        Statistics::from_session(session, &session.dispatches, kernels)
    }

    /// As [`Statistics::new`], for a session from a database, where dispatches that were counted and not traced count as kernels.
    pub(crate) fn from_database(
        session: &'a Session,
        kernels: KernelNames,
    ) -> Result<Self, SummaryError> {
        Statistics::from_session(session, session.kernel_dispatches(), kernels)
    }

    fn from_session(
        session: &'a Session,
        dispatches: &DispatchTable,
        kernels: KernelNames,
    ) -> Result<Self, SummaryError> {
        let mut names = ExtendedStrings::new(&session.strings);
        let mut records = Records::new(session);
        records.push_totals(session, kernels, &mut names)?;
        records.push_removed(session, kernels, &mut names)?;
        for table in Table::ALL {
            match table {
                // The totals of the device have these.
                Table::Dispatches | Table::Copies if !session.device_totals.is_empty() => {}
                Table::Calls => records.push_calls(session)?,
                Table::Dispatches => {
                    records.push_dispatches(session, dispatches, kernels, &mut names)?;
                }
                Table::Copies => push_operations!(records, session, session.copies),
                Table::Allocations => push_operations!(records, session, session.allocations),
                Table::Scratch => push_operations!(records, session, session.scratch),
                Table::KfdEvents => push_operations!(records, session, session.kfd_events),
                // These statistics are about durations, which those that were traced have as well.
                Table::Counted => {}
                // Samples have no durations.
                Table::Samples => {}
                // Their times are those of calls, or of barriers; `rpd summary --graphs` adds launches up.
                Table::GraphLaunches | Table::HipEvents => {}
            }
        }

        let groups = records.groups.finish(DOMAIN_BITS)?;
        let mut has_records = [false; Domain::ALL.len()];
        let storage = session.storage.as_ref();
        let mut named = rpd_core::storage::column::Column::new();
        let mut last = None;
        for GroupRow { key, .. } in groups.iter() {
            has_records[domain_of(key) as usize] = true;
            let name = name_of(key);
            if last.replace(name) != Some(name) {
                named.append(storage, name)?;
            }
        }
        if let Some(storage) = storage {
            named.seal(storage)?;
        }
        let places = names.places(named.iter().copied())?;
        let domains = Domain::ALL.into_iter();
        let domains: Vec<Domain> = domains
            .filter(|domain| has_records[*domain as usize])
            .collect();
        for domain in &domains {
            names.intern(domain.label());
        }
        Ok(Statistics {
            names: Arc::new(names),
            places,
            domains,
            groups,
            left_out: records.left_out,
            storage: session.storage.clone(),
        })
    }

    /// Number of records that are in no table, because their times cannot be.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The names of rows.
    pub fn names(&self) -> &StatNames<'a> {
        &self.names
    }

    /// Calls `take` with the groups: [`key`] and figures.
    ///
    /// # Errors
    /// Errors of `take`.
    pub(crate) fn each_group(
        &self,
        take: impl FnMut(GroupRow) -> Result<(), SummaryError>,
    ) -> Result<(), SummaryError> {
        self.groups.iter().try_for_each(take)
    }

    /// The domains that have records, in summary order.
    pub fn domains(&self) -> impl Iterator<Item = Domain> {
        self.domains.iter().copied()
    }

    /// One table over the records of some domains, taken together. A name that occurs in several of them is one
    /// row, and shows the first domain. Without records the table has no rows.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn table(&self, title: &str, domains: &[Domain]) -> Result<StatTable, SummaryError> {
        let storage = self.storage.as_ref();
        let mut sorter = Sorter::new(storage);
        let mut sum = 0;
        self.groups.each_name(|groups| {
            // In the order of their domains, so that the key of the sums is that of the first domain.
            let mut chosen = groups
                .iter()
                .filter(|group| domains.contains(&domain_of(group.key)));
            let Some(mut figures) = chosen.next().copied() else {
                return Ok(());
            };
            chosen.for_each(|group| figures.add(group));
            sum += u128::from(figures.total);
            let place = self.places.get(name_of(figures.key).0).into();
            Ok(sorter.push(PlacedRow { place, figures })?)
        })?;
        let mut rows = rpd_core::storage::column::Column::new();
        for PlacedRow { figures, .. } in sorter.finish()? {
            rows.append(storage, row(&figures, name_of(figures.key), sum))?;
        }
        if let Some(storage) = storage {
            rows.seal(storage)?;
        }
        Ok(StatTable {
            title: title.to_owned(),
            rows,
        })
    }

    /// The tables for statistics files and `--stats`.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn session_stats(&self) -> Result<SessionStats<'a>, SummaryError> {
        let mut stats = SessionStats {
            names: Arc::clone(&self.names),
            left_out: self.left_out,
            ..SessionStats::default()
        };
        for domain in self.domains() {
            let table = self.table(domain.label(), &[domain])?;
            stats.domains.push((domain, table));
        }
        let mut of_domains = [None::<GroupRow>; Domain::ALL.len()];
        for group in self.groups.iter() {
            of_domains[domain_of(group.key) as usize]
                .get_or_insert(GroupRow::empty(group.key))
                .add(&group);
        }
        let mut rows: Vec<GroupRow> = of_domains.into_iter().flatten().collect();
        rows.sort_by_key(|row| (Reverse(row.total), domain_of(row.key).label()));
        let sum = rows.iter().map(|row| u128::from(row.total)).sum();
        let name = |domain: Domain| self.names.find(domain.label()).unwrap_or_default();
        stats.overall = rows
            .iter()
            .map(|figures| row(figures, name(domain_of(figures.key)), sum))
            .collect();
        Ok(stats)
    }
}

/// Figures of a name in the order of a table: by total descending, then alphabetically.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct PlacedRow {
    /// Place of the name in alphabetical order.
    place: u64,
    figures: GroupRow,
}

impl Keyed for PlacedRow {
    type Key = (Reverse<u64>, u64);

    fn key(&self) -> Self::Key {
        (Reverse(self.figures.total), self.place)
    }
}

/// A row of a table whose durations have this sum. The domain is that of the key.
fn row(figures: &GroupRow, name: StringId, sum: u128) -> StatRow {
    StatRow {
        name,
        domain: domain_of(figures.key),
        calls: figures.calls,
        total: figures.total,
        average: figures.total as f64 / figures.calls.max(1) as f64,
        percentage: match sum {
            0 => 0.0,
            sum => 100.0 * figures.total as f64 / sum as f64,
        },
        min: figures.min,
        max: figures.max,
        std_dev: deviation(figures.spread, figures.calls),
    }
}

/// Sample standard deviation; 0 for fewer than two records.
fn deviation(spread: f64, calls: u64) -> f64 {
    match calls {
        0 | 1 => 0.0,
        calls => (spread / (calls - 1) as f64).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Kind;

    #[test]
    fn statistics_name_marks_without_a_message_as_traces_do() {
        let mut session = Session::default();
        session.strings.intern("");
        for (operation, message) in [
            ("roctxMarkA", ""),
            ("roctxMarkA", "mark"),
            ("roctxGetThreadId", ""),
        ] {
            let operation = session.add_operation(Kind::MarkerCoreRange, operation);
            let message = session.strings.intern(message);
            let calls = &mut session.calls;
            calls.operation.push(operation);
            calls.message.push(message);
            calls.start.push(Nanoseconds(1));
            calls.end.push(Nanoseconds(2));
        }
        let statistics = Statistics::new(&session, KernelNames::default()).expect("statistics");
        let stats = statistics.session_stats().expect("tables");
        let [(Domain::MarkerApi, table)] = stats.domains.as_slice() else {
            panic!("{stats:?}");
        };
        let names = table.rows.iter().map(|row| stats.names.get(row.name));
        let names: Vec<&str> = names.collect();
        assert_eq!(names, ["", "mark", "roctxGetThreadId"]);
    }
}
