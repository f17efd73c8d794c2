//! A data set of many recordings: two tables in partitioned Parquet files, which engines read as wholes.
//!
//! ```text
//! DIR/records/host=HOST/rank=RANK/kind=KIND/GUID.parquet
//! DIR/processes/host=HOST/rank=RANK/GUID.parquet
//! ```
//!
//! All files of a table have the same columns. A file is named after its recording, so that a recording that is added again
//! replaces what was there of it, and several programs can add recordings at the same time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, Nanoseconds, OperationId};
use rpd_core::options::Options;
use rpd_core::session::{
    AllocationTable, CallTable, CopyTable, DispatchTable, ScratchTable, Session,
};

use super::Context;
use super::records::duration;
use super::table::{self, Rows};
use crate::WriteError;
use crate::file::PendingFile;

/// The value of a partition that is not known, as Hive and its successors write it; engines read it as NULL.
const UNKNOWN: &str = "__HIVE_DEFAULT_PARTITION__";

/// The table of records.
const RECORDS: &str = "records";
/// The table of processes.
const PROCESSES: &str = "processes";
/// Ending of the files.
const ENDING: &str = "parquet";
/// Levels of directories below that of a table.
const DEEPEST: usize = 3;

/// A data set that recordings are added to.
#[derive(Debug)]
pub struct Dataset {
    directory: PathBuf,
    /// The files that the data set had when it was opened, by the id of their recording.
    found: HashMap<String, Vec<PathBuf>>,
}

/// The result of adding a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Number of records that were written.
    pub records: usize,
    /// Whether the data set had the recording before.
    pub replaced: bool,
}

impl Dataset {
    /// Opens the data set in `directory`, which need not be there yet.
    ///
    /// # Errors
    /// When a directory in it cannot be read.
    pub fn open(directory: &Path) -> io::Result<Dataset> {
        let mut found = HashMap::new();
        for table in [RECORDS, PROCESSES] {
            find(&directory.join(table), DEEPEST, &mut found)?;
        }
        Ok(Dataset {
            directory: directory.to_owned(),
            found,
        })
    }

    /// Writes the files of a recording, and removes those that the data set had of it and that were not written again.
    ///
    /// # Errors
    /// When a file cannot be written or removed. Files that were written before that are complete; the recording is when it is
    /// added again.
    pub fn add(&self, session: &Session, options: &Options) -> Result<Added, WriteError> {
        let place = session.process.launched();
        let context = Context::new(session, options).map_err(|source| WriteError::Io {
            path: self.directory.clone(),
            source,
        })?;
        let guid = context
            .texts
            .get(rpd_core::ids::StringId(context.guid_text))
            .to_owned();
        let rank = place
            .rank
            .map_or_else(|| UNKNOWN.to_owned(), |rank| rank.to_string());
        let partition = PathBuf::from(format!("host={}", escaped(&context.node.hostname)))
            .join(format!("rank={rank}"));
        let file = format!("{guid}.{ENDING}");
        let mut written = Vec::new();
        let mut added = Added {
            records: 0,
            replaced: self.found.contains_key(&guid),
        };
        let counted = CountedValues::new(&context);
        let sources: [(&str, &dyn WriteSource); 6] = [
            ("regions", &Calls(&context, &session.calls)),
            (
                "kernels",
                &Dispatches(&context, session.kernel_dispatches()),
            ),
            ("memory_copies", &Copies(&context, &session.copies)),
            (
                "memory_allocations",
                &Allocations(&context, &session.allocations),
            ),
            ("scratch_memory", &Scratch(&context, &session.scratch)),
            ("counters", &counted),
        ];
        for (kind, source) in sources {
            if source.height() == 0 {
                continue;
            }
            let directory = self.directory.join(RECORDS).join(&partition);
            let path = directory.join(format!("kind={kind}")).join(&file);
            let pending = PendingFile::create(path)?;
            written.push(source.write(pending, &context)?);
            added.records += source.height();
        }
        let path = self.directory.join(PROCESSES).join(&partition).join(&file);
        let pending = PendingFile::create(path)?;
        written.push(table::write(pending, 1, &context.texts, |rows| {
            process(&context, added.records, rows);
        })?);
        for old in self.found.get(&guid).into_iter().flatten() {
            if !written.contains(old) {
                remove(old)?;
            }
        }
        Ok(added)
    }
}

/// Removes a file that is not one of its recording any more.
fn remove(path: &Path) -> Result<(), WriteError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WriteError::Io {
            path: path.to_owned(),
            source: error,
        }),
        _ => Ok(()),
    }
}

/// Adds the files below a directory to those that are known.
fn find(
    directory: &Path,
    levels: usize,
    found: &mut HashMap<String, Vec<PathBuf>>,
) -> io::Result<()> {
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            if levels > 0 {
                find(&path, levels - 1, found)?;
            }
        } else if path.extension() == Some(OsStr::new(ENDING))
            && let Some(guid) = path.file_stem().and_then(OsStr::to_str)
        {
            found.entry(guid.to_owned()).or_default().push(path);
        }
    }
    Ok(())
}

/// A value in the name of a directory, as Hive writes it: characters that could mean something else as `%` and two digits.
fn escaped(value: &str) -> String {
    if value.is_empty() {
        return UNKNOWN.to_owned();
    }
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => text.push(byte.into()),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// Records of a kind. Facts that the kind does not have are absent.
trait Source {
    fn len(&self) -> usize;
    fn category(&self, row: usize) -> u32;
    fn name(&self, row: usize) -> u32;
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds);
    fn correlation(&self, row: usize) -> u64;
    fn thread(&self, _row: usize) -> Option<i64> {
        None
    }
    fn parent(&self, _row: usize) -> Option<i64> {
        None
    }
    fn region(&self, _row: usize) -> Option<u32> {
        None
    }
    fn agent(&self, _row: usize) -> Option<AgentHandle> {
        None
    }
    fn source_agent(&self, _row: usize) -> Option<AgentHandle> {
        None
    }
    fn queue(&self, _row: usize) -> Option<i64> {
        None
    }
    fn stream(&self, _row: usize) -> Option<i64> {
        None
    }
    fn bytes(&self, _row: usize) -> Option<i64> {
        None
    }
    fn address(&self, _row: usize) -> Option<i64> {
        None
    }
    fn operation(&self, _row: usize) -> Option<OperationId> {
        None
    }
    fn grid(&self, _row: usize) -> Option<[u32; 3]> {
        None
    }
    fn workgroup(&self, _row: usize) -> Option<[u32; 3]> {
        None
    }
    fn counter(&self, _row: usize) -> Option<(u32, f64)> {
        None
    }
}

/// Writes the records of any kind.
trait WriteSource {
    fn height(&self) -> usize;
    fn write(&self, file: PendingFile, context: &Context<'_>) -> Result<PathBuf, WriteError>;
}

impl<S: Source> WriteSource for S {
    fn height(&self) -> usize {
        self.len()
    }

    fn write(&self, file: PendingFile, context: &Context<'_>) -> Result<PathBuf, WriteError> {
        table::write(file, self.len(), &context.texts, |rows| {
            context.release();
            append(self, context, rows);
        })
    }
}

/// The columns of the table of records.
fn append<S: Source>(source: &S, context: &Context<'_>, rows: &mut Rows<'_>) {
    let process = &context.session.process;
    let pid = u64::from(process.pid.0);
    let is_dated = process.real_time != 0;
    let index = |handle: Option<AgentHandle>| {
        let known = context.agent(handle?)?;
        Some(i64::from(known.agent.node_id))
    };
    let unsigned = |value: u64| value.cast_signed();
    rows.texts("guid", |_| Some(context.guid_text));
    rows.integers("pid", |_| pid);
    rows.optional_integers("tid", |row| source.thread(row));
    rows.integers("start_ns", |row| source.times(row).0.0);
    rows.integers("end_ns", |row| source.times(row).1.0);
    rows.integers("duration_ns", |row| {
        let (start, end) = source.times(row);
        duration(start, end)
    });
    rows.optional_integers("unix_ns", |row| {
        is_dated.then(|| unsigned(process.real_at(source.times(row).0)))
    });
    rows.texts("category", |row| Some(source.category(row)));
    rows.texts("name", |row| Some(source.name(row)));
    rows.texts("region", |row| source.region(row));
    rows.texts("operation", |row| context.memory(source.operation(row)?).0);
    rows.texts("level", |row| context.memory(source.operation(row)?).1);
    rows.optional_integers("agent", |row| index(source.agent(row)));
    rows.texts("agent_type", |row| {
        Some(context.agent(source.agent(row)?)?.kind)
    });
    rows.optional_integers("src_agent", |row| index(source.source_agent(row)));
    rows.optional_integers("queue", |row| source.queue(row));
    rows.optional_integers("stream", |row| source.stream(row));
    rows.optional_integers("bytes", |row| source.bytes(row));
    rows.optional_integers("address", |row| source.address(row));
    rows.integers("correlation", |row| source.correlation(row));
    rows.optional_integers("parent", |row| source.parent(row));
    for (axis, grid, workgroup) in [
        (0, "grid_x", "workgroup_x"),
        (1, "grid_y", "workgroup_y"),
        (2, "grid_z", "workgroup_z"),
    ] {
        rows.optional_integers(grid, |row| source.grid(row).map(|of| of[axis].into()));
        rows.optional_integers(workgroup, |row| {
            source.workgroup(row).map(|of| of[axis].into())
        });
    }
    rows.texts("counter", |row| {
        let (counter, _) = source.counter(row)?;
        context.counter_names.get(counter as usize).copied()
    });
    rows.optional_floats("value", |row| source.counter(row).map(|(_, value)| value));
}

/// The columns of the table of processes.
fn process(context: &Context<'_>, records: usize, rows: &mut Rows<'_>) {
    let process = &context.session.process;
    let place = process.launched();
    let known = |value: u64| {
        Some(value)
            .filter(|value| *value != 0)
            .map(u64::cast_signed)
    };
    rows.texts("guid", |_| Some(context.guid_text));
    rows.integers("pid", |_| process.pid.0.into());
    rows.integers("ppid", |_| process.ppid.0.into());
    rows.own_texts("command", |_| process.command.join(" "));
    rows.optional_texts("launcher", |_| {
        Some(place.launcher.clone()).filter(|name| !name.is_empty())
    });
    rows.optional_integers("ranks", |_| place.size.map(u64::cast_signed));
    rows.own_texts("machine_id", |_| context.node.machine_id.clone());
    rows.integers("init_ns", |_| process.init_time.0);
    rows.integers("fini_ns", |_| process.fini_time.0);
    rows.optional_integers("unix_init_ns", |_| known(process.real_time));
    rows.integers("ended", |_| context.session.ledger.ended.into());
    rows.integers("records", |_| records as u64);
}

/// Calls and markers; markers are named by their messages.
struct Calls<'c>(&'c Context<'c>, &'c CallTable);

impl Source for Calls<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn category(&self, row: usize) -> u32 {
        self.0.category(self.0.session.call(row).kind)
    }
    fn name(&self, row: usize) -> u32 {
        self.0.session.call_label(row).0
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        (self.1.start[row], self.1.end[row])
    }
    fn correlation(&self, row: usize) -> u64 {
        self.1.correlation[row].0
    }
    fn thread(&self, row: usize) -> Option<i64> {
        Some(self.1.thread[row].0.into())
    }
    fn parent(&self, row: usize) -> Option<i64> {
        Some(self.1.ancestor[row].0.cast_signed())
    }
}

/// Dispatches of kernels.
struct Dispatches<'c>(&'c Context<'c>, &'c DispatchTable);

impl Source for Dispatches<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn category(&self, _: usize) -> u32 {
        self.0.category(Kind::KernelDispatch)
    }
    fn name(&self, row: usize) -> u32 {
        self.0.kernel(self.1, row)
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        (self.1.start[row], self.1.end[row])
    }
    fn correlation(&self, row: usize) -> u64 {
        self.1.correlation[row].0
    }
    fn thread(&self, row: usize) -> Option<i64> {
        Some(self.1.thread[row].0.into())
    }
    fn region(&self, row: usize) -> Option<u32> {
        self.0.region(self.1.region[row])
    }
    fn agent(&self, row: usize) -> Option<AgentHandle> {
        Some(self.1.agent[row])
    }
    fn queue(&self, row: usize) -> Option<i64> {
        Some(self.1.queue[row].0.cast_signed())
    }
    fn stream(&self, row: usize) -> Option<i64> {
        Some(self.0.stream(self.1.stream[row]).cast_signed())
    }
    fn grid(&self, row: usize) -> Option<[u32; 3]> {
        Some(self.1.grid[row])
    }
    fn workgroup(&self, row: usize) -> Option<[u32; 3]> {
        Some(self.1.workgroup[row])
    }
}

/// Copies; their agent is the destination.
struct Copies<'c>(&'c Context<'c>, &'c CopyTable);

impl Source for Copies<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn category(&self, _: usize) -> u32 {
        self.0.category(Kind::MemoryCopy)
    }
    fn name(&self, row: usize) -> u32 {
        self.0.operation(self.1.operation[row])
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        (self.1.start[row], self.1.end[row])
    }
    fn correlation(&self, row: usize) -> u64 {
        self.1.correlation[row].0
    }
    fn thread(&self, row: usize) -> Option<i64> {
        Some(self.1.thread[row].0.into())
    }
    fn region(&self, row: usize) -> Option<u32> {
        self.0.region(self.1.region[row])
    }
    fn agent(&self, row: usize) -> Option<AgentHandle> {
        Some(self.1.dst_agent[row])
    }
    fn source_agent(&self, row: usize) -> Option<AgentHandle> {
        Some(self.1.src_agent[row])
    }
    fn stream(&self, row: usize) -> Option<i64> {
        Some(self.0.stream(self.1.stream[row]).cast_signed())
    }
    fn bytes(&self, row: usize) -> Option<i64> {
        Some(self.1.bytes[row].cast_signed())
    }
    fn address(&self, row: usize) -> Option<i64> {
        Some(self.1.dst_address[row].cast_signed())
    }
}

/// Allocations and frees.
struct Allocations<'c>(&'c Context<'c>, &'c AllocationTable);

impl Source for Allocations<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn category(&self, _: usize) -> u32 {
        self.0.category(Kind::MemoryAllocation)
    }
    fn name(&self, row: usize) -> u32 {
        self.0.operation(self.1.operation[row])
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        (self.1.start[row], self.1.end[row])
    }
    fn correlation(&self, row: usize) -> u64 {
        self.1.correlation[row].0
    }
    fn thread(&self, row: usize) -> Option<i64> {
        Some(self.1.thread[row].0.into())
    }
    fn parent(&self, row: usize) -> Option<i64> {
        Some(self.1.ancestor[row].0.cast_signed())
    }
    fn agent(&self, row: usize) -> Option<AgentHandle> {
        Some(self.1.agent[row])
    }
    fn stream(&self, row: usize) -> Option<i64> {
        Some(self.0.stream(self.1.stream[row]).cast_signed())
    }
    fn bytes(&self, row: usize) -> Option<i64> {
        Some(self.1.bytes[row].cast_signed())
    }
    fn address(&self, row: usize) -> Option<i64> {
        Some(self.1.address[row].cast_signed())
    }
    fn operation(&self, row: usize) -> Option<OperationId> {
        Some(self.1.operation[row])
    }
}

/// Operations on scratch memory.
struct Scratch<'c>(&'c Context<'c>, &'c ScratchTable);

impl Source for Scratch<'_> {
    fn len(&self) -> usize {
        self.1.len()
    }
    fn category(&self, _: usize) -> u32 {
        self.0.category(Kind::ScratchMemory)
    }
    fn name(&self, row: usize) -> u32 {
        self.0.operation(self.1.operation[row])
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        (self.1.start[row], self.1.end[row])
    }
    fn correlation(&self, row: usize) -> u64 {
        self.1.correlation[row].0
    }
    fn thread(&self, row: usize) -> Option<i64> {
        Some(self.1.thread[row].0.into())
    }
    fn parent(&self, row: usize) -> Option<i64> {
        Some(self.1.ancestor[row].0.cast_signed())
    }
    fn agent(&self, row: usize) -> Option<AgentHandle> {
        Some(self.1.agent[row])
    }
    fn queue(&self, row: usize) -> Option<i64> {
        Some(self.1.queue[row].0.cast_signed())
    }
    fn bytes(&self, row: usize) -> Option<i64> {
        Some(self.1.bytes[row].cast_signed())
    }
    fn operation(&self, row: usize) -> Option<OperationId> {
        Some(self.1.operation[row])
    }
}

/// Values of counters: one row for each counter of a dispatch, with the sum of its values.
struct CountedValues<'c> {
    dispatches: Dispatches<'c>,
    /// Dispatch, counter, value.
    rows: Vec<(u32, u32, f64)>,
}

impl<'c> CountedValues<'c> {
    fn new(context: &'c Context<'c>) -> CountedValues<'c> {
        let counted = &context.session.counted;
        let rows = counted.indices().flat_map(|index| {
            let sums = counted.sums(index);
            sums.map(move |(counter, value)| (index as u32, counter, value))
        });
        CountedValues {
            rows: rows.collect(),
            dispatches: Dispatches(context, &counted.dispatches),
        }
    }

    fn dispatch(&self, row: usize) -> usize {
        self.rows[row].0 as usize
    }
}

impl Source for CountedValues<'_> {
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn category(&self, _: usize) -> u32 {
        self.dispatches.category(0)
    }
    fn name(&self, row: usize) -> u32 {
        self.dispatches.name(self.dispatch(row))
    }
    fn times(&self, row: usize) -> (Nanoseconds, Nanoseconds) {
        self.dispatches.times(self.dispatch(row))
    }
    fn correlation(&self, row: usize) -> u64 {
        self.dispatches.correlation(self.dispatch(row))
    }
    fn thread(&self, row: usize) -> Option<i64> {
        self.dispatches.thread(self.dispatch(row))
    }
    fn region(&self, row: usize) -> Option<u32> {
        self.dispatches.region(self.dispatch(row))
    }
    fn agent(&self, row: usize) -> Option<AgentHandle> {
        self.dispatches.agent(self.dispatch(row))
    }
    fn queue(&self, row: usize) -> Option<i64> {
        self.dispatches.queue(self.dispatch(row))
    }
    fn stream(&self, row: usize) -> Option<i64> {
        self.dispatches.stream(self.dispatch(row))
    }
    fn counter(&self, row: usize) -> Option<(u32, f64)> {
        let (_, counter, value) = self.rows[row];
        Some((counter, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_values_have_no_character_of_a_path() {
        assert_eq!(escaped("node-1.site"), "node-1.site");
        assert_eq!(escaped("a/b=c %é"), "a%2Fb%3Dc%20%25%C3%A9");
        assert_eq!(escaped(""), UNKNOWN);
    }
}
