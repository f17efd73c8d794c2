//! Tables over recordings that were read from databases: one per kind of record, over all recordings or for each separately.

#![deny(clippy::wildcard_enum_match_arm)]

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use rpd_core::compat::{Compat, Difference};
use rpd_core::domain::Domain;
use rpd_core::ids::StringId;
use rpd_core::options::KernelNames;
use rpd_core::session::{ExtendedStrings, Operation, Session, Table};
use rpd_core::stats::NamedSum;
use rpd_core::storage::by_id::ById;
use rpd_core::storage::column::{Column as Rows, Storage};
use rpd_core::storage::sorted::{Keyed, Sorter};
use zerocopy::{Immutable, IntoBytes};

use crate::groups::{GroupRow, GroupTable, MergedGroups};
use crate::statistics::{domain_of, name_of};
use crate::{Statistics, SummaryError};

/// Durations of all records that share a name. Times in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryRow<'a> {
    /// Index of the recording; 0 in tables over all of them.
    pub rank: usize,
    /// Kernel, function, message or operation.
    pub name: Cow<'a, str>,
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

/// A table of a summary of databases.
#[derive(Debug)]
pub struct SummaryTable<'a> {
    /// `kernels_summary` and so on.
    pub name: String,
    rows: TableRows<'a>,
}

/// The rows of a table.
#[derive(Debug)]
enum TableRows<'a> {
    /// Few rows, kept in memory.
    Listed(Vec<SummaryRow<'a>>),
    /// Sums by name, from which rows are made when they are read.
    Summed {
        names: &'a ExtendedStrings<'static>,
        sums: Rows<NameSums>,
        /// Sums of durations by rank.
        totals: HashMap<u64, u64>,
    },
}

/// The sums of a name, over all recordings or in one.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct NameSums {
    /// Index of the recording; 0 over all of them.
    rank: u64,
    /// Id of the name.
    name: u64,
    calls: u64,
    total: u64,
    min: u64,
    max: u64,
    /// Sum of squared distances from the mean.
    spread: f64,
}

impl SummaryTable<'_> {
    /// The rows, ordered by process id where recordings are kept apart, then by total duration descending, then by name.
    pub fn rows(&self) -> Box<dyn Iterator<Item = SummaryRow<'_>> + '_> {
        match &self.rows {
            TableRows::Listed(rows) => Box::new(rows.iter().cloned()),
            TableRows::Summed {
                names,
                sums,
                totals,
            } => Box::new(sums.iter().map(|sums| {
                let (calls, total) = (sums.calls, sums.total);
                SummaryRow {
                    rank: sums.rank as usize,
                    name: names.get(StringId(sums.name as u32)).into(),
                    calls,
                    total,
                    average: total as f64 / calls.max(1) as f64,
                    percentage: percentage(total, totals.get(&sums.rank).copied()),
                    min: sums.min,
                    max: sums.max,
                    std_dev: (calls > 1).then(|| (sums.spread / (calls - 1) as f64).sqrt()),
                }
            })),
        }
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        match &self.rows {
            TableRows::Listed(rows) => rows.is_empty(),
            TableRows::Summed { sums, .. } => sums.is_empty(),
        }
    }
}

/// The part of a sum, 0 to 100.
fn percentage(part: u64, sum: Option<u64>) -> f64 {
    match sum {
        None | Some(0) => 0.0,
        Some(sum) => part as f64 * 100.0 / sum as f64,
    }
}

macro_rules! views {
    ($($(#[$doc:meta])* $view:ident = $name:literal, $category:expr;)*) => {
        /// A table of a summary: one kind of records.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        enum View {
            $($(#[$doc])* $view,)*
        }

        impl View {
            /// Every view, in the order of the tables. The number of a view is its place.
            const ALL: [View; [$($name),*].len()] = [$(View::$view,)*];

            const fn name(self) -> &'static str {
                match self {
                    $(View::$view => $name,)*
                }
            }

            /// The first word of the categories in the view; `None` for views that are not calls.
            const fn category(self) -> Option<&'static str> {
                match self {
                    $(View::$view => $category,)*
                }
            }
        }
    };
}

// View = name, category.
views! {
    /// Dispatches of kernels.
    Kernels = "kernels", None;
    /// Copies of memory.
    MemoryCopies = "memory_copies", None;
    /// Allocations and frees of memory.
    MemoryAllocations = "memory_allocations", None;
    /// Operations on scratch memory.
    ScratchMemory = "scratch_memory", None;
    /// Calls of HIP functions.
    Hip = "hip", Some("HIP");
    /// Calls of HSA functions.
    Hsa = "hsa", Some("HSA");
    /// Calls of RCCL functions.
    Rccl = "rccl", Some("RCCL");
    /// Calls of rocDecode functions.
    Rocdecode = "rocdecode", Some("ROCDECODE");
    /// Calls of rocJPEG functions.
    Rocjpeg = "rocjpeg", Some("ROCJPEG");
    /// Calls of the CUDA runtime and the CUDA driver.
    Cuda = "cuda", Some("CUDA");
    /// Calls of rocSHMEM functions.
    Rocshmem = "rocshmem", Some("ROCSHMEM");
    /// Calls of hipFile functions.
    Hipfile = "hipfile", Some("HIPFILE");
    /// Events of OpenMP.
    Ompt = "ompt", Some("OMPT");
    /// Events of the kernel driver.
    Kfd = "kfd", None;
    /// ROCTx marks and ranges.
    Markers = "markers", Some("MARKER");
    /// Calls of interfaces that have no table of their own: those in files of RPD.
    OtherCalls = "other_calls", Some("OTHER_CALLS");
}

/// The views that have the records of a domain. No record is in two, unless as `compat` requests.
const fn views_of(domain: Domain, compat: Compat) -> &'static [View] {
    match domain {
        Domain::KernelDispatch => &[View::Kernels],
        Domain::MemoryCopy => &[View::MemoryCopies],
        Domain::MemoryAllocation => &[View::MemoryAllocations],
        Domain::ScratchMemory if compat.has(Difference::ScratchSummary) => {
            &[View::MemoryAllocations, View::ScratchMemory]
        }
        Domain::ScratchMemory => &[View::ScratchMemory],
        Domain::HipApi => &[View::Hip],
        Domain::HsaApi => &[View::Hsa],
        Domain::RcclApi => &[View::Rccl],
        Domain::RocdecodeApi => &[View::Rocdecode],
        Domain::RocjpegApi => &[View::Rocjpeg],
        Domain::CudaApi | Domain::CudaDriverApi => &[View::Cuda],
        Domain::MarkerApi => &[View::Markers],
        Domain::RocshmemApi => &[View::Rocshmem],
        Domain::HipfileApi => &[View::Hipfile],
        Domain::Ompt => &[View::Ompt],
        Domain::Kfd => &[View::Kfd],
        // Counter values have no durations.
        Domain::CounterCollection => &[],
    }
}

/// Number of the lowest bits of a key that are the view; the rank has the bits above, the name the upper half.
const VIEW_BITS: u32 = 5;

const _: () = assert!(View::ALL.len() <= 1 << VIEW_BITS);

/// Bits of a key below the name.
const NAME_SHIFT: u32 = 32;

/// Sums over recordings, to which further ones are added.
#[derive(Default)]
pub struct DatabaseSums {
    names: ExtendedStrings<'static>,
    groups: MergedGroups,
    storage: Option<Storage>,
    /// Process ids of the recordings.
    pids: Vec<u64>,
    compat: Compat,
}

impl DatabaseSums {
    /// Sums of no recording, in the tables that `compat` requests.
    pub fn new(compat: Compat) -> DatabaseSums {
        DatabaseSums {
            compat,
            ..DatabaseSums::default()
        }
    }

    /// Adds the next recording. Returns the number of its records that are left out because their times cannot be.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn add(&mut self, session: &Session, names: KernelNames) -> Result<u64, SummaryError> {
        let rank = self.pids.len();
        let left_out = self.add_to(rank, session, names)?;
        self.pids[rank] = session.process.pid.0.into();
        Ok(left_out)
    }

    /// Adds a recording to those that are one rank in tables by rank. Rows of such tables are ordered by the number of the rank.
    /// Returns the number of records that are left out.
    ///
    /// # Errors
    /// As [`DatabaseSums::add`].
    pub fn add_to(
        &mut self,
        rank: usize,
        session: &Session,
        names: KernelNames,
    ) -> Result<u64, SummaryError> {
        // A session in files may have more names and groups than fit into memory.
        if let (None, Some(storage)) = (&self.storage, &session.storage) {
            self.names.spill_to(storage);
            self.groups.spill_to(storage);
            self.storage = Some(storage.clone());
        }
        let statistics = Statistics::from_database(session, names)?;
        while self.pids.len() <= rank {
            self.pids.push(self.pids.len() as u64);
        }
        let rank = rank as u64;
        statistics.each_group(|group| {
            let domain = domain_of(group.key);
            let name = statistics.names().get(name_of(group.key));
            for view in views_of(domain, self.compat) {
                let name = match domain.table() {
                    Table::Allocations | Table::Scratch => action(session, domain, name),
                    Table::Calls
                    | Table::Dispatches
                    | Table::Copies
                    | Table::Counted
                    | Table::Samples
                    | Table::GraphLaunches
                    | Table::HipEvents
                    | Table::KfdEvents => name,
                };
                let key = self.key(name, rank, *view);
                self.groups.add(GroupRow { key, ..group })?;
            }
            Ok(())
        })?;
        Ok(statistics.left_out())
    }

    /// Adds a process of which sums are known, and no records.
    ///
    /// # Errors
    /// As [`DatabaseSums::add`].
    pub fn add_sums(
        &mut self,
        pid: u64,
        sums: impl IntoIterator<Item = NamedSum>,
    ) -> Result<(), SummaryError> {
        let rank = self.pids.len() as u64;
        let view = |wanted: &str| View::ALL.into_iter().find(|view| view.name() == wanted);
        for sum in sums {
            let view = view(&sum.table).unwrap_or(View::OtherCalls);
            let key = self.key(&sum.name, rank, view);
            self.groups.add(GroupRow {
                key,
                calls: sum.calls,
                total: sum.total,
                min: sum.min,
                max: sum.max,
                spread: sum.spread,
            })?;
        }
        self.pids.push(pid);
        Ok(())
    }

    /// The key of a name in a view.
    fn key(&mut self, name: &str, rank: u64, view: View) -> u64 {
        u64::from(self.names.intern(name).0) << NAME_SHIFT | rank << VIEW_BITS | view as u64
    }

    /// Ends the sums.
    ///
    /// # Errors
    /// As [`DatabaseSums::add`].
    pub fn finish(self) -> Result<DatabaseSummary, SummaryError> {
        let all = (0..self.names.len() as u32).map(StringId);
        Ok(DatabaseSummary {
            places: self.names.places(all)?,
            names: self.names,
            groups: self.groups.finish(NAME_SHIFT)?,
            storage: self.storage,
            pids: self.pids,
        })
    }
}

/// The sums of recordings.
#[derive(Debug)]
pub struct DatabaseSummary {
    names: ExtendedStrings<'static>,
    /// Places of names in alphabetical order, by id.
    places: ById<u32>,
    groups: GroupTable,
    storage: Option<Storage>,
    /// Process ids of the recordings.
    pids: Vec<u64>,
}

/// Sums of a name in the order of a table: by process id, total descending, then alphabetically.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct PlacedSums {
    pid: u64,
    /// Place of the name in alphabetical order.
    place: u64,
    sums: NameSums,
}

impl Keyed for PlacedSums {
    type Key = (u64, Reverse<u64>, u64, u64);

    fn key(&self) -> Self::Key {
        let sums = &self.sums;
        (self.pid, Reverse(sums.total), self.place, sums.rank)
    }
}

/// A view whose rows are being collected.
struct CollectedView {
    rows: Sorter<PlacedSums>,
    /// Sums of durations by rank.
    totals: HashMap<u64, u64>,
}

impl DatabaseSummary {
    /// The tables that have rows. `categories` are the first words of the categories of calls wanted (all when
    /// `None`); `by_rank` keeps recordings apart.
    ///
    /// # Errors
    /// When temporary files cannot be written.
    pub fn tables(
        &self,
        by_rank: bool,
        categories: Option<&[String]>,
    ) -> Result<Vec<SummaryTable<'_>>, SummaryError> {
        let storage = self.storage.as_ref();
        let mut views: Vec<CollectedView> = View::ALL
            .iter()
            .map(|_| CollectedView {
                rows: Sorter::new(storage),
                totals: HashMap::new(),
            })
            .collect();
        self.groups
            .each_name(|groups| self.collect(groups, by_rank, &mut views))?;
        let suffix = if by_rank { "_by_rank" } else { "" };
        let mut tables = Vec::new();
        for (view, collected) in View::ALL.into_iter().zip(views) {
            let is_wanted = match (view.category(), categories) {
                (Some(word), Some(wanted)) => wanted.iter().any(|wanted| wanted == word),
                _ => true,
            };
            if !is_wanted || collected.totals.is_empty() {
                continue;
            }
            let mut sums = Rows::new();
            for row in collected.rows.finish()? {
                sums.append(storage, row.sums)?;
            }
            if let Some(storage) = storage {
                sums.seal(storage)?;
            }
            tables.push(SummaryTable {
                name: format!("{}_summary{suffix}", view.name()),
                rows: TableRows::Summed {
                    names: &self.names,
                    sums,
                    totals: collected.totals,
                },
            });
        }
        Ok(tables)
    }

    /// Adds the groups of a name to their views.
    fn collect(
        &self,
        groups: &[GroupRow],
        by_rank: bool,
        views: &mut [CollectedView],
    ) -> Result<(), SummaryError> {
        let mut merged: BTreeMap<(u64, u64), GroupRow> = BTreeMap::new();
        for group in groups {
            let rank = if by_rank {
                (group.key % (1 << NAME_SHIFT)) >> VIEW_BITS
            } else {
                0
            };
            merged
                .entry((rank, group.key % (1 << VIEW_BITS)))
                .and_modify(|known| known.add(group))
                .or_insert(*group);
        }
        // Rows go to their views, as each view has an order and a sum of its own.
        for ((rank, view), group) in merged {
            let view = &mut views[view as usize];
            let name = group.key >> NAME_SHIFT;
            *view.totals.entry(rank).or_default() += group.total;
            view.rows.push(PlacedSums {
                pid: self.pid(rank as usize),
                place: self.places.get(name as u32).into(),
                sums: NameSums {
                    rank,
                    name,
                    calls: group.calls,
                    total: group.total,
                    min: group.min,
                    max: group.max,
                    spread: group.spread,
                },
            })?;
        }
        Ok(())
    }

    /// One row per table of [`DatabaseSummary::tables`], with the figures over all its records, or with the sums of means and
    /// of deviations where `compat` requests them. Of one process rows are ordered by name, else by total duration descending.
    pub fn domains(
        &self,
        tables: &[SummaryTable<'_>],
        by_rank: bool,
        compat: Compat,
    ) -> SummaryTable<'static> {
        let sums = compat.has(Difference::DomainSummary);
        let mut rows: Vec<SummaryRow<'static>> = Vec::new();
        for table in tables {
            // Names of views are those of databases, with these endings.
            let name = table.name.trim_end_matches("_by_rank");
            let name = name.trim_end_matches("_summary");
            let mut parts: HashMap<usize, DomainFigures> = HashMap::new();
            for row in table.rows() {
                parts.entry(row.rank).or_default().add(&row);
            }
            // In a second pass, since the mean is known only when all rows have been added.
            for row in table.rows() {
                if let Some(part) = parts.get_mut(&row.rank) {
                    part.add_spread(&row);
                }
            }
            rows.extend(
                parts
                    .into_iter()
                    .map(|(rank, part)| part.row(rank, name, sums)),
            );
        }
        let mut totals: HashMap<usize, u64> = HashMap::new();
        for row in &rows {
            *totals.entry(row.rank).or_default() += row.total;
        }
        for row in &mut rows {
            row.percentage = percentage(row.total, totals.get(&row.rank).copied());
        }
        let pid = |row: &SummaryRow<'_>| self.pid(row.rank);
        rows.sort_by(|a, b| {
            let ranks = pid(a).cmp(&pid(b));
            let names = a.name.cmp(&b.name);
            if by_rank {
                ranks.then(names).then(b.total.cmp(&a.total))
            } else {
                ranks.then(b.total.cmp(&a.total)).then(names)
            }
            // The rank makes the order the same in every run.
            .then(a.rank.cmp(&b.rank))
        });
        let suffix = if by_rank { "_by_rank" } else { "" };
        SummaryTable {
            name: format!("domain_summary{suffix}"),
            rows: TableRows::Listed(rows),
        }
    }

    fn pid(&self, rank: usize) -> u64 {
        self.pids.get(rank).copied().unwrap_or(0)
    }
}

/// The figures of all rows of a table.
#[derive(Default)]
struct DomainFigures {
    calls: u64,
    total: u64,
    min: Option<u64>,
    max: u64,
    /// Sum of squared distances from the common mean.
    spread: f64,
    averages: f64,
    deviations: Option<f64>,
}

impl DomainFigures {
    fn add(&mut self, row: &SummaryRow<'_>) {
        self.calls += row.calls;
        self.total += row.total;
        self.min = Some(self.min.map_or(row.min, |min| min.min(row.min)));
        self.max = self.max.max(row.max);
        self.averages += row.average;
        if let Some(own) = row.std_dev {
            self.deviations = Some(self.deviations.unwrap_or(0.0) + own);
        }
    }

    fn average(&self) -> f64 {
        self.total as f64 / self.calls.max(1) as f64
    }

    /// Adds the squared distances of a row. To be called for each row when all have been added: the spread is about the
    /// common mean.
    fn add_spread(&mut self, row: &SummaryRow<'_>) {
        let own = row.std_dev.unwrap_or(0.0);
        let offset = row.average - self.average();
        self.spread += own * own * (row.calls - 1) as f64 + offset * offset * row.calls as f64;
    }

    /// The row of a domain; with `sums` its sums of means and of deviations.
    fn row(&self, rank: usize, view: &str, sums: bool) -> SummaryRow<'static> {
        SummaryRow {
            rank,
            name: view.to_uppercase().into(),
            calls: self.calls,
            total: self.total,
            average: if sums { self.averages } else { self.average() },
            percentage: 0.0,
            min: self.min.unwrap_or(0),
            max: self.max,
            std_dev: if sums {
                self.deviations
            } else {
                (self.calls > 1).then(|| (self.spread / (self.calls - 1) as f64).sqrt())
            },
        }
    }
}

/// Name of a memory operation's action in databases; other operations keep their names.
fn action<'a>(session: &Session, domain: Domain, name: &'a str) -> &'a str {
    let is_it = |operation: &&Operation| {
        operation.domain() == domain && session.strings.get(operation.name) == name
    };
    let operation = session.operations.iter().find(is_it);
    match operation.and_then(|operation| operation.class.memory_action()) {
        Some(action) => action.label(),
        None => name,
    }
}
