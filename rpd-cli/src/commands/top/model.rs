//! What the recordings of running programs add up to: read incrementally, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use anyhow::Result;
use rpd_core::agent::{Agent, AgentIndex, AgentType};
use rpd_core::ids::AgentHandle;
use rpd_core::options::KernelNames;
use rpd_spool::follow::Follower;
use rpd_spool::format::{self, RecordHeader, call_flag, space};
use rpd_spool::kernel_name::{formatted, without_symbol};
use rpd_spool::reader::split_stack;
use rpd_spool::record::{RecordKind, RecordRole};
use rpd_spool::writer::{now, real_now};
use serde::Serialize;
use zerocopy::FromBytes as _;

use super::stacks::CallTree;
use crate::run_directory::{Recording, RunDirectory};

/// Names of one sort that a process has; records of further names are added up together.
const MOST_NAMES: usize = 16_384;
/// Allocations of a process that are known; memory of further ones is left out, and said to be.
const MOST_ALLOCATIONS: usize = 1 << 20;
/// Dispatches and copies of a GPU in one interval whose overlap is found out; of more the GPU counts as busy.
const MOST_WORK: usize = 1 << 20;

/// Name of records without a name of their own.
const OTHERS: &str = "(others)";

/// What the records of one name add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    total: u64,
    max: u64,
    bytes: u64,
    /// Count and total when the snapshot before was made.
    before: (u64, u64),
}

impl Tally {
    fn add(&mut self, start: u64, end: u64, bytes: u64) {
        // A call without end has not returned; it counts, and has no duration yet.
        let duration = if end == 0 {
            0
        } else {
            end.saturating_sub(start)
        };
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.max = self.max.max(duration);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// A row of a snapshot. Times are nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Number since the begin.
    pub(super) count: u64,
    /// Number since the snapshot before.
    pub(super) new: u64,
    pub(super) total_ns: u64,
    pub(super) new_total_ns: u64,
    pub(super) max_ns: u64,
    pub(super) bytes: u64,
}

/// A GPU in a snapshot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Gpu {
    pub(super) name: String,
    /// Part of the interval in which a kernel or a copy ran, 0 to 1.
    pub(super) busy: f64,
    pub(super) memory_bytes: u64,
    pub(super) memory_peak_bytes: u64,
    /// Whether there were more allocations than are kept track of.
    pub(super) memory_is_partial: bool,
}

/// What was recorded up to a moment.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Snapshot {
    /// Time of the snapshot, in nanoseconds since 1970.
    pub(super) time_ns: u64,
    /// Time since the snapshot before, in nanoseconds.
    pub(super) interval_ns: u64,
    /// Numbers of the processes that run.
    pub(super) processes: Vec<u32>,
    pub(super) kernels: Vec<Row>,
    pub(super) calls: Vec<Row>,
    pub(super) copies: Vec<Row>,
    pub(super) gpus: Vec<Gpu>,
}

/// Work of a GPU since the snapshot before.
#[derive(Debug, Default)]
struct Busy {
    work: Vec<(u64, u64)>,
    is_full: bool,
    /// End of the work that earlier snapshots counted.
    counted: u64,
}

impl Busy {
    fn add(&mut self, start: u64, end: u64) {
        if self.work.len() < MOST_WORK {
            self.work.push((start, end));
        } else {
            self.is_full = true;
        }
    }

    /// Nanoseconds in which at least one piece of the work ran, that no earlier call counted.
    fn take(&mut self) -> Option<u64> {
        let mut work = std::mem::take(&mut self.work);
        if std::mem::take(&mut self.is_full) {
            return None;
        }
        work.sort_unstable();
        let mut sum = 0;
        for (start, end) in work {
            let start = start.max(self.counted);
            if end > start {
                sum += end - start;
                self.counted = end;
            }
        }
        Some(sum)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Memory {
    bytes: u64,
    peak: u64,
}

/// One process.
#[derive(Default)]
struct Process {
    follower: Follower,
    /// Names of kinds by number.
    kinds: HashMap<u16, String>,
    operations: HashMap<(u16, u32), String>,
    kernels: HashMap<u64, String>,
    /// Name of a GPU by handle.
    gpus: HashMap<u64, String>,
    calls: HashMap<(u16, u32), Tally>,
    dispatches: HashMap<u64, Tally>,
    copies: HashMap<u32, Tally>,
    allocations: HashMap<u64, (u64, u64)>,
    memory_is_partial: bool,
    memory: HashMap<u64, Memory>,
    tree: CallTree,
    /// Number of the process, if it ran at the last look.
    pid: Option<u32>,
}

/// The recordings of runs.
#[derive(Default)]
pub(super) struct Model {
    processes: BTreeMap<String, Process>,
    busy: BTreeMap<String, Busy>,
    /// Time of the snapshot before, on the clock of records.
    last: Option<u64>,
}

fn tally<K: std::hash::Hash + Eq + Copy>(
    of: &mut HashMap<K, Tally>,
    key: K,
    others: K,
) -> &mut Tally {
    let key = if of.len() < MOST_NAMES || of.contains_key(&key) {
        key
    } else {
        others
    };
    of.entry(key).or_default()
}

impl Process {
    fn take(&mut self, header: RecordHeader, bytes: &[u8], busy: &mut BTreeMap<String, Busy>) {
        // Records of a newer collector, and damaged ones, are left out here: outputs say what is wrong with them.
        let Some(kind) = RecordKind::from_tag(header.tag) else {
            return;
        };
        match kind {
            RecordKind::Call => {
                if let Ok((call, tail)) = format::CallRecord::read_from_prefix(bytes) {
                    let key = (header.aux, call.operation);
                    tally(&mut self.calls, key, (u16::MAX, u32::MAX)).add(call.start, call.end, 0);
                    if call.flags & call_flag::STACK != 0 {
                        let (stack, _) = split_stack(call.flags, tail);
                        let duration = call.end.saturating_sub(call.start);
                        self.tree.add_call(key, stack.stack, duration);
                    }
                }
            }
            RecordKind::Dispatch => {
                if let Ok((work, _)) = format::Dispatch::read_from_prefix(bytes) {
                    tally(&mut self.dispatches, work.kernel, u64::MAX).add(work.start, work.end, 0);
                    self.add_work(work.agent, work.start, work.end, busy);
                }
            }
            RecordKind::Copy => {
                if let Ok((copy, _)) = format::Copy::read_from_prefix(bytes) {
                    let tally = tally(&mut self.copies, copy.operation, u32::MAX);
                    tally.add(copy.start, copy.end, copy.bytes);
                    for agent in [copy.dst_agent, copy.src_agent] {
                        self.add_work(agent, copy.start, copy.end, busy);
                    }
                }
            }
            RecordKind::Allocation => {
                if let Ok((allocation, _)) = format::Allocation::read_from_prefix(bytes) {
                    self.add_allocation(&allocation);
                }
            }
            RecordKind::KindName | RecordKind::OperationName => self.take_names(kind, bytes),
            RecordKind::KernelSymbol => {
                if let Ok((symbol, tail)) = format::KernelSymbol::read_from_prefix(bytes)
                    && self.kernels.len() < MOST_NAMES
                {
                    let len = (symbol.name_len as usize).min(tail.len());
                    let name = String::from_utf8_lossy(&tail[..len]);
                    let shown = formatted(&name, KernelNames::default()).into_owned();
                    self.kernels.insert(symbol.id, shown);
                }
            }
            RecordKind::Agent => {
                if let Ok((record, tail)) = format::AgentRecord::read_from_prefix(bytes) {
                    let agent = Agent::parse(AgentHandle(record.handle), tail);
                    if agent.agent_type == AgentType::Gpu {
                        let (word, number) = agent.label(AgentIndex::TypeRelative);
                        self.gpus.insert(record.handle, format!("{word} {number}"));
                    }
                }
            }
            _ => match kind.role() {
                RecordRole::Fact => self.tree.take(kind, bytes),
                RecordRole::Row(_)
                | RecordRole::HalfRow(_)
                | RecordRole::Completeness
                | RecordRole::Capture(_) => {}
            },
        }
    }

    fn add_work(&self, agent: u64, start: u64, end: u64, busy: &mut BTreeMap<String, Busy>) {
        if let Some(gpu) = self.gpus.get(&agent) {
            busy.entry(gpu.clone()).or_default().add(start, end);
        }
    }

    fn add_allocation(&mut self, allocation: &format::Allocation) {
        // A free has the address alone.
        if allocation.bytes == 0 {
            if let Some((agent, bytes)) = self.allocations.remove(&allocation.address) {
                let memory = self.memory.entry(agent).or_default();
                memory.bytes = memory.bytes.saturating_sub(bytes);
            }
            return;
        }
        if self.allocations.len() >= MOST_ALLOCATIONS {
            self.memory_is_partial = true;
            return;
        }
        let (agent, bytes) = (allocation.agent, allocation.bytes);
        let before = self.allocations.insert(allocation.address, (agent, bytes));
        let memory = self.memory.entry(agent).or_default();
        memory.bytes = memory.bytes.saturating_add(bytes);
        memory.peak = memory.peak.max(memory.bytes);
        // Its free was not recorded.
        if let Some((agent, bytes)) = before {
            let memory = self.memory.entry(agent).or_default();
            memory.bytes = memory.bytes.saturating_sub(bytes);
        }
    }

    fn take_names(&mut self, kind: RecordKind, bytes: &[u8]) {
        let Ok((name, tail)) = format::Name::read_from_prefix(bytes) else {
            return;
        };
        if name.space != space::CALLBACK {
            return;
        }
        let len = (name.text_len as usize).min(tail.len());
        let text = String::from_utf8_lossy(&tail[..len]);
        let number = name.kind as u16;
        if kind == RecordKind::KindName {
            self.kinds.insert(number, text.into_owned());
        } else {
            for (operation, text) in (name.operation..).zip(text.split('\0')) {
                if self.operations.len() < MOST_NAMES {
                    self.operations.insert((number, operation), text.to_owned());
                }
            }
        }
    }

    fn call_name(&self, key: (u16, u32)) -> String {
        match self.operations.get(&key) {
            Some(name) => name.clone(),
            None if key == (u16::MAX, u32::MAX) => OTHERS.to_owned(),
            None => format!("operation {} of kind {}", key.1, key.0),
        }
    }

    fn kernel_name(&self, kernel: u64) -> String {
        match self.kernels.get(&kernel) {
            Some(name) => name.clone(),
            None if kernel == u64::MAX => OTHERS.to_owned(),
            None => without_symbol(kernel, KernelNames::default()),
        }
    }

    fn copy_name(&self, operation: u32) -> String {
        let kind = self.kinds.iter().find(|(_, name)| *name == "MEMORY_COPY");
        let name = kind.and_then(|(number, _)| self.operations.get(&(*number, operation)));
        match name {
            Some(name) => name.clone(),
            None if operation == u32::MAX => OTHERS.to_owned(),
            None => format!("copy {operation}"),
        }
    }
}

impl Model {
    /// Reads what is new in the recordings of runs. Those that are gone keep their sums.
    pub(super) fn read(&mut self, runs: &[RunDirectory]) {
        for process in self.processes.values_mut() {
            process.pid = None;
        }
        for run in runs {
            // When its rpd has made the outputs the run is gone.
            for recording in run.recordings().unwrap_or_default() {
                // What cannot be read now may be readable at the next look.
                let _ = self.read_one(run, &recording);
            }
        }
    }

    fn read_one(&mut self, run: &RunDirectory, recording: &Recording) -> Result<()> {
        let held = run.open_recording(recording)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let key = run.path_of(recording).display().to_string();
        let process = self.processes.entry(key).or_default();
        if !recording.has_ended() {
            process.pid = Some(recording.image.pid);
        }
        let mut follower = std::mem::take(&mut process.follower);
        let busy = &mut self.busy;
        let read = follower.read(&path, |header, bytes, _| process.take(header, bytes, busy));
        process.follower = follower;
        Ok(read?)
    }

    /// Whether a process runs that was there at the last look.
    pub(super) fn runs(&self) -> bool {
        self.processes.values().any(|process| process.pid.is_some())
    }

    /// What is there now. The next snapshot has what is new since this one.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let at = now();
        let interval = self.last.map_or(0, |before| at.saturating_sub(before));
        self.last = Some(at);
        let mut kernels = BTreeMap::new();
        let mut calls = BTreeMap::new();
        let mut copies = BTreeMap::new();
        let mut memory: BTreeMap<String, (Memory, bool)> = BTreeMap::new();
        for process in self.processes.values_mut() {
            for (kernel, row) in take_rows(&mut process.dispatches) {
                add(&mut kernels, process.kernel_name(kernel), row);
            }
            for (operation, row) in take_rows(&mut process.copies) {
                add(&mut copies, process.copy_name(operation), row);
            }
            for (key, row) in take_rows(&mut process.calls) {
                add(&mut calls, process.call_name(key), row);
            }
        }
        for process in self.processes.values() {
            for gpu in process.gpus.values() {
                memory.entry(gpu.clone()).or_default();
            }
            for (agent, of) in &process.memory {
                if let Some(gpu) = process.gpus.get(agent) {
                    let (sum, is_partial) = memory.entry(gpu.clone()).or_default();
                    sum.bytes += of.bytes;
                    sum.peak += of.peak;
                    *is_partial |= process.memory_is_partial;
                }
            }
        }
        let gpus = memory.into_iter().map(|(name, (memory, is_partial))| {
            let busy = self.busy.get_mut(&name);
            let part = match busy.map(Busy::take) {
                None => 0.0,
                Some(None) => 1.0,
                Some(Some(busy)) => (busy as f64 / interval.max(1) as f64).min(1.0),
            };
            Gpu {
                // Without a snapshot before, there is no interval.
                busy: if interval == 0 { 0.0 } else { part },
                memory_bytes: memory.bytes,
                memory_peak_bytes: memory.peak,
                memory_is_partial: is_partial,
                name,
            }
        });
        let gpus = gpus.collect();
        let processes = self.processes.values().filter_map(|process| process.pid);
        Snapshot {
            time_ns: real_now(),
            interval_ns: interval,
            processes: processes.collect(),
            kernels: sorted(kernels),
            calls: sorted(calls),
            copies: sorted(copies),
            gpus,
        }
    }

    /// The stack that takes most of the time of the calls of a name, innermost frame first. Empty when none has stacks.
    pub(super) fn hottest_stack(&self, name: &str) -> Vec<String> {
        let mut best = (0, Vec::new());
        for process in self.processes.values() {
            for key in process.calls.keys() {
                if process.call_name(*key) == name
                    && let Some((time, stack)) = process.tree.hottest(*key)
                    && (time > best.0 || best.1.is_empty())
                {
                    best = (time, process.tree.frames(stack));
                }
            }
        }
        best.1
    }
}

/// The rows of a table without their names. What is new in the next ones is what comes from now on.
fn take_rows<K: Copy>(of: &mut HashMap<K, Tally>) -> Vec<(K, Row)> {
    let rows = of.iter_mut().map(|(key, tally)| {
        let row = Row {
            name: String::new(),
            count: tally.count,
            new: tally.count - tally.before.0,
            total_ns: tally.total,
            new_total_ns: tally.total - tally.before.1,
            max_ns: tally.max,
            bytes: tally.bytes,
        };
        tally.before = (tally.count, tally.total);
        (*key, row)
    });
    rows.collect()
}

/// Adds a row to that of the same name: of another process, or of another kernel that is shown by this name.
fn add(rows: &mut BTreeMap<String, Row>, name: String, row: Row) {
    let sum = rows.entry(name).or_default();
    sum.count += row.count;
    sum.new += row.new;
    sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
    sum.new_total_ns = sum.new_total_ns.saturating_add(row.new_total_ns);
    sum.max_ns = sum.max_ns.max(row.max_ns);
    sum.bytes = sum.bytes.saturating_add(row.bytes);
}

/// The rows by total duration, the longest first.
fn sorted(rows: BTreeMap<String, Row>) -> Vec<Row> {
    let rows = rows.into_iter().map(|(name, row)| Row { name, ..row });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_time_counts_overlapping_work_once() {
        let mut busy = Busy::default();
        busy.add(100, 200);
        busy.add(150, 250);
        busy.add(400, 500);
        assert_eq!(busy.take(), Some(250));
        // What was reported late is counted as far as nothing else ran.
        busy.add(450, 600);
        assert_eq!(busy.take(), Some(100));
        assert_eq!(busy.take(), Some(0));
    }

    #[test]
    fn tally_adds_further_names_up_together() {
        let mut table = HashMap::new();
        for key in 0..MOST_NAMES as u64 + 10 {
            tally(&mut table, key, u64::MAX).add(1, 3, 0);
        }
        assert_eq!(table.len(), MOST_NAMES + 1);
        assert_eq!(table[&u64::MAX].count, 10);
    }
}
