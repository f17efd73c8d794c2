//! Call stacks in databases: what was recorded, read table by table, and what symbol lookup writes.
//!
//! Only databases of rpd have them, so that the tables themselves are read, which are those of `stacks.sql` and
//! `schema.sql` with the recording's suffix.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::connection::Guarded;
use super::guard::Trust;
use super::read::{Problem, ReadError};
use super::sql::identifier;

/// Metadata tag: whether frames of GPU runtimes are shown.
const RUNTIME_FRAMES: &str = "stacks_runtime_frames";
/// Metadata tag: whether frames of interpreters are shown.
const INTERPRETER_FRAMES: &str = "stacks_interpreter_frames";

/// A database with call stacks.
#[derive(Debug)]
pub struct StackDatabase {
    path: PathBuf,
    connection: Guarded,
    recordings: Vec<StackRecording>,
}

/// One process in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackRecording {
    /// What ends the names of its tables.
    suffix: String,
    /// Process id.
    pub pid: i64,
    /// Command line, as far as it is known.
    pub command: String,
    /// Which of the usually hidden frames are shown.
    pub shown: ShownFrames,
}

/// Which frames are shown that are usually left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ShownFrames {
    /// Those of GPU runtimes, below the traced call.
    pub runtime: bool,
    /// Those of a Python interpreter, between Python functions.
    pub interpreter: bool,
}

/// A file that was mapped into the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackModule {
    /// Where it was loaded from.
    pub path: Arc<str>,
    /// In hexadecimal digits.
    pub build_id: Option<String>,
    /// What addresses in memory have more than those in the file.
    pub base: u64,
}

/// A Python code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCode {
    /// Its source file.
    pub file: Arc<str>,
    /// Its name, qualified where the interpreter knows that.
    pub name: Arc<str>,
    /// Line of its `def`.
    pub first_line: i32,
    /// `PY_VERSION_HEX` of the interpreter.
    pub version: u32,
    /// The interpreter's table of lines.
    pub line_table: Vec<u8>,
}

/// What a location is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlaceKind {
    /// Native code of a module.
    Native,
    /// Python code.
    Python,
    /// Native code that no file has.
    Jit,
    /// The traced call itself.
    Api,
    /// TorchScript.
    Script,
    /// Source that generated code was made from.
    Inductor,
    /// Before this, Python frames without a place among the native ones.
    Unplaced,
    /// The stack could not be followed further.
    Truncated,
    /// Frames were left out here.
    Gap,
}

impl PlaceKind {
    const NAMES: [(&'static str, PlaceKind); 9] = [
        ("native", PlaceKind::Native),
        ("python", PlaceKind::Python),
        ("jit", PlaceKind::Jit),
        ("api", PlaceKind::Api),
        ("script", PlaceKind::Script),
        ("inductor", PlaceKind::Inductor),
        ("unplaced-marker", PlaceKind::Unplaced),
        ("truncated-marker", PlaceKind::Truncated),
        ("gap-marker", PlaceKind::Gap),
    ];

    fn of(name: &str) -> Option<PlaceKind> {
        let found = PlaceKind::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, kind)| *kind)
    }

    /// As it is stored.
    pub fn name(self) -> &'static str {
        let found = PlaceKind::NAMES.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A place in code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// Id of its module.
    pub module: Option<i64>,
    /// Address in the module or, without one, in memory.
    pub address: Option<u64>,
    /// Id of its Python code object.
    pub code: Option<i64>,
    /// Offset in that.
    pub lasti: i64,
}

/// A node of the call tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackNode {
    /// The caller's; 0 for an outermost frame.
    pub parent: i64,
    /// Its place.
    pub place: i64,
}

/// What symbol lookup found at a place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackFrame {
    /// Id of the place.
    pub place: i64,
    /// 0 for the innermost of the functions that were inlined there; negative for what stands for the call itself.
    pub inline_depth: i64,
    /// Function.
    pub function: Option<Arc<str>>,
    /// Source file.
    pub file: Option<Arc<str>>,
    /// Line in it.
    pub line: Option<i64>,
    /// Column in that.
    pub column: Option<i64>,
    /// What all of this is from.
    pub evidence: Option<Arc<str>>,
}

/// The parts of stacks of one process.
#[derive(Debug, Default)]
pub struct StackTables {
    /// By their ids.
    pub modules: HashMap<i64, StackModule>,
    /// By their ids.
    pub codes: HashMap<i64, StackCode>,
    /// By their ids.
    pub places: HashMap<i64, Place>,
    /// By their ids.
    pub nodes: HashMap<i64, StackNode>,
    /// By their ids. Empty until symbols were looked up.
    pub frames: HashMap<i64, StackFrame>,
    /// The frames of each stack, innermost first, as ids. Empty until symbols were looked up.
    pub expanded: HashMap<i64, Vec<i64>>,
}

/// A call, marker or allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackCall {
    /// Id of its event.
    pub event: i64,
    /// Its stack; 0 without one.
    pub stack: i64,
    /// What is to be said about that.
    pub flags: i64,
    /// Name of the function.
    pub name: Arc<str>,
    /// Name of its interface.
    pub category: Arc<str>,
    /// Thread id.
    pub thread: i64,
    /// Nanoseconds.
    pub start: i64,
    /// Nanoseconds.
    pub end: i64,
    /// Correlation id.
    pub correlation: i64,
    /// That of the call that it was made in; 0 or its own without one.
    pub parent: i64,
}

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A kernel ran.
    Kernel,
    /// That many bytes were copied.
    Copy(u64),
}

/// Work of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackOperation {
    /// What it is.
    pub work: Work,
    /// Name of the kernel, or kind of copy.
    pub name: Arc<str>,
    /// Index of the agent.
    pub agent: i64,
    /// Queue.
    pub queue: i64,
    /// Stream.
    pub stream: i64,
    /// Nanoseconds.
    pub start: i64,
    /// Nanoseconds.
    pub end: i64,
    /// Correlation id of the call that asked for it.
    pub correlation: i64,
    /// Size of the grid in work-items and of a work-group, in each direction; zeros for copies.
    pub grid: [i64; 3],
    /// As `grid`.
    pub workgroup: [i64; 3],
    /// Bytes of LDS and of scratch memory.
    pub segments: [i64; 2],
}

/// Memory that was taken or given back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackAllocation {
    /// Id of its event.
    pub event: i64,
    /// Given back, not taken.
    pub is_free: bool,
    /// Where.
    pub address: u64,
    /// How much, as far as it is known.
    pub bytes: u64,
    /// Name of the device; empty when it is not known.
    pub device: Arc<str>,
    /// When the call returned, in nanoseconds.
    pub end: i64,
    /// Correlation id of the call.
    pub correlation: i64,
    /// That of the call that it was made in; 0 or its own without one.
    pub parent: i64,
}

/// What is written for one process.
#[derive(Debug, Default)]
pub struct Symbols {
    /// All frames. Their ids are their places in this list, from 1.
    pub frames: Vec<StackFrame>,
    /// Stacks with their frames, innermost first.
    pub stacks: Vec<(i64, Vec<i64>)>,
}

impl StackDatabase {
    /// Opens a database for reading.
    ///
    /// # Errors
    /// When it cannot be read, or has no call stacks.
    pub fn open(path: &Path) -> Result<StackDatabase, ReadError> {
        StackDatabase::new(path, Guarded::read(path))
    }

    /// Opens a database for [`StackDatabase::replace`].
    ///
    /// # Errors
    /// When it cannot be read or written, or has no call stacks.
    pub fn open_for_symbols(path: &Path) -> Result<StackDatabase, ReadError> {
        StackDatabase::new(path, Guarded::write_symbols(path))
    }

    fn new(path: &Path, opened: Result<Guarded, Problem>) -> Result<StackDatabase, ReadError> {
        let fail = |problem| ReadError::new(path, problem);
        let connection = opened.map_err(fail)?;
        let mut database = StackDatabase {
            path: path.to_owned(),
            connection,
            recordings: Vec::new(),
        };
        database.recordings = database.list().map_err(fail)?;
        match database.recordings.is_empty() {
            true => Err(fail(Problem::NoStacks)),
            false => Ok(database),
        }
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The processes in it that have call stacks.
    pub fn recordings(&self) -> &[StackRecording] {
        &self.recordings
    }

    fn list(&self) -> Result<Vec<StackRecording>, Problem> {
        let tables = self
            .connection
            .texts("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        if !tables.iter().any(|name| name.starts_with("rocpd_")) {
            return Err(Problem::NotRocpd);
        }
        let suffixes = tables
            .iter()
            .filter_map(|name| name.strip_prefix("rpd_api_stack"));
        let mut recordings = Vec::new();
        for suffix in suffixes {
            for base in NEEDED {
                if !tables.iter().any(|name| *name == format!("{base}{suffix}")) {
                    return Err(Problem::MissingView(base));
                }
            }
            let mut recording = StackRecording {
                suffix: suffix.to_owned(),
                pid: 0,
                command: String::new(),
                shown: ShownFrames::default(),
            };
            self.each_in(
                suffix,
                "SELECT pid, command FROM %rocpd_info_process%",
                |row| {
                    recording.pid = integer(row, 0);
                    recording.command = text(row, 1).unwrap_or_default().to_owned();
                },
            )?;
            self.each_in(suffix, "SELECT tag, value FROM %rocpd_metadata%", |row| {
                let is_set = text(row, 1) == Some("1");
                match text(row, 0) {
                    Some(RUNTIME_FRAMES) => recording.shown.runtime = is_set,
                    Some(INTERPRETER_FRAMES) => recording.shown.interpreter = is_set,
                    _ => {}
                }
            })?;
            recordings.push(recording);
        }
        Ok(recordings)
    }

    /// Calls `take` with each row. Words in percent signs are tables of the recording.
    fn each(
        &self,
        recording: &StackRecording,
        sql: &str,
        take: impl FnMut(&Row<'_>),
    ) -> Result<(), Problem> {
        self.each_in(&recording.suffix, sql, take)
    }

    fn each_in(
        &self,
        suffix: &str,
        sql: &str,
        mut take: impl FnMut(&Row<'_>),
    ) -> Result<(), Problem> {
        let sql = with_tables(sql, suffix);
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare(&sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                take(row);
            }
            Ok(())
        };
        read().map_err(|error| self.connection.meaning(&error))
    }

    fn failed(&self) -> impl Fn(Problem) -> ReadError {
        |problem| ReadError::new(&self.path, problem)
    }

    fn strings(&self, recording: &StackRecording) -> Result<Texts, Problem> {
        let mut texts = HashMap::new();
        self.each(recording, "SELECT id, string FROM %rocpd_string%", |row| {
            texts.insert(integer(row, 0), Arc::from(text(row, 1).unwrap_or_default()));
        })?;
        Ok(Texts(texts))
    }

    /// Everything that stacks refer to.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn tables(&self, recording: &StackRecording) -> Result<StackTables, ReadError> {
        self.connection.begin();
        self.read_tables(recording).map_err(self.failed())
    }

    fn read_tables(&self, recording: &StackRecording) -> Result<StackTables, Problem> {
        let texts = self.strings(recording)?;
        let mut tables = StackTables::default();
        let sql = "SELECT id, path_id, build_id, base FROM %rpd_module%";
        self.each(recording, sql, |row| {
            let module = StackModule {
                path: texts.get(integer(row, 1)),
                build_id: text(row, 2).filter(|id| !id.is_empty()).map(str::to_owned),
                base: integer(row, 3).cast_unsigned(),
            };
            tables.modules.insert(integer(row, 0), module);
        })?;
        let sql = "SELECT id, filename_id, coalesce(qualname_id, name_id), firstlineno, pyversion, linetable
            FROM %rpd_pycode%";
        self.each(recording, sql, |row| {
            let code = StackCode {
                file: texts.get(integer(row, 1)),
                name: texts.get(integer(row, 2)),
                first_line: i32::try_from(integer(row, 3)).unwrap_or(0),
                version: u32::try_from(integer(row, 4)).unwrap_or(0),
                line_table: match row.get_ref(5) {
                    Ok(ValueRef::Blob(bytes)) => bytes.to_vec(),
                    _ => Vec::new(),
                },
            };
            tables.codes.insert(integer(row, 0), code);
        })?;
        let sql = "SELECT id, kind, module_id, rel_pc, pycode_id, lasti FROM %rpd_location%";
        self.each(recording, sql, |row| {
            let Some(kind) = text(row, 1).and_then(PlaceKind::of) else {
                return;
            };
            let place = Place {
                kind,
                module: optional(row, 2),
                address: optional(row, 3).map(i64::cast_unsigned),
                code: optional(row, 4),
                lasti: optional(row, 5).unwrap_or(-1),
            };
            tables.places.insert(integer(row, 0), place);
        })?;
        let sql = "SELECT id, coalesce(parent_id, 0), location_id FROM %rpd_stack%";
        self.each(recording, sql, |row| {
            let node = StackNode {
                parent: integer(row, 1),
                place: integer(row, 2),
            };
            tables.nodes.insert(integer(row, 0), node);
        })?;
        let sql = "SELECT id, location_id, inline_depth, function_id, file_id, line, col, evidence FROM %rpd_frame%";
        let mut evidences: HashMap<String, Arc<str>> = HashMap::new();
        self.each(recording, sql, |row| {
            let evidence = text(row, 7).map(|text| match evidences.get(text) {
                Some(known) => Arc::clone(known),
                None => {
                    let new: Arc<str> = Arc::from(text);
                    evidences.insert(text.to_owned(), Arc::clone(&new));
                    new
                }
            });
            let frame = StackFrame {
                place: integer(row, 1),
                inline_depth: integer(row, 2),
                function: optional(row, 3).map(|id| texts.get(id)),
                file: optional(row, 4).map(|id| texts.get(id)),
                line: optional(row, 5),
                column: optional(row, 6),
                evidence,
            };
            tables.frames.insert(integer(row, 0), frame);
        })?;
        let sql = "SELECT stack_id, frame_id FROM %rpd_stack_frame% ORDER BY stack_id, depth";
        self.each(recording, sql, |row| {
            let stack = tables.expanded.entry(integer(row, 0)).or_default();
            stack.push(integer(row, 1));
        })?;
        Ok(tables)
    }

    /// The distinct stacks, each with the names of the functions that were called with it.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn stacks(
        &self,
        recording: &StackRecording,
    ) -> Result<HashMap<i64, Vec<Arc<str>>>, ReadError> {
        let mut stacks: HashMap<i64, Vec<Arc<str>>> = HashMap::new();
        for call in self.calls(recording)? {
            if call.stack != 0 {
                let names = stacks.entry(call.stack).or_default();
                if !names.contains(&call.name) {
                    names.push(call.name);
                }
            }
        }
        Ok(stacks)
    }

    /// All calls, in the order of their events, those without stacks too.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn calls(&self, recording: &StackRecording) -> Result<Vec<StackCall>, ReadError> {
        self.connection.begin();
        self.read_calls(recording).map_err(self.failed())
    }

    fn read_calls(&self, recording: &StackRecording) -> Result<Vec<StackCall>, Problem> {
        let texts = self.strings(recording)?;
        let events = self.events(recording)?;
        let mut stacks = HashMap::new();
        let sql = "SELECT api_id, stack_id, flags FROM %rpd_api_stack%";
        self.each(recording, sql, |row| {
            stacks.insert(integer(row, 0), (integer(row, 1), integer(row, 2)));
        })?;
        let mut threads = HashMap::new();
        self.each(
            recording,
            "SELECT id, tid FROM %rocpd_info_thread%",
            |row| {
                threads.insert(integer(row, 0), integer(row, 1));
            },
        )?;
        let mut calls = Vec::new();
        let mut add = |row: &Row<'_>| {
            let event = integer(row, 0);
            let (stack, flags) = stacks.get(&event).copied().unwrap_or_default();
            let about = events.get(&event).copied().unwrap_or_default();
            let thread = integer(row, 2);
            calls.push(StackCall {
                event,
                stack,
                flags,
                name: texts.get(integer(row, 1)),
                category: texts.get(about.category),
                thread: threads.get(&thread).copied().unwrap_or(thread),
                start: integer(row, 3),
                end: integer(row, 4),
                correlation: about.correlation,
                parent: about.parent,
            });
        };
        let sql = "SELECT event_id, name_id, tid, start, \"end\" FROM %rocpd_region%";
        self.each(recording, sql, &mut add)?;
        let sql =
            "SELECT m.event_id, k.name_id, k.tid, m.timestamp, m.timestamp FROM %rocpd_sample% m
            JOIN %rocpd_track% k ON k.id = m.track_id";
        self.each(recording, sql, &mut add)?;
        calls.sort_unstable_by_key(|call: &StackCall| call.event);
        Ok(calls)
    }

    fn events(&self, recording: &StackRecording) -> Result<HashMap<i64, Event>, Problem> {
        let mut events = HashMap::new();
        let sql = "SELECT id, category_id, stack_id, parent_stack_id FROM %rocpd_event%";
        self.each(recording, sql, |row| {
            let event = Event {
                category: integer(row, 1),
                correlation: integer(row, 2),
                parent: integer(row, 3),
            };
            events.insert(integer(row, 0), event);
        })?;
        Ok(events)
    }

    /// What GPUs did: kernels, then copies.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn operations(&self, recording: &StackRecording) -> Result<Vec<StackOperation>, ReadError> {
        self.connection.begin();
        self.read_operations(recording).map_err(self.failed())
    }

    fn read_operations(&self, recording: &StackRecording) -> Result<Vec<StackOperation>, Problem> {
        let texts = self.strings(recording)?;
        let agents = self.agents(recording)?;
        let mut kernels: HashMap<i64, Arc<str>> = HashMap::new();
        let sql = "SELECT id, display_name FROM %rocpd_info_kernel_symbol%";
        self.each(recording, sql, |row| {
            kernels.insert(integer(row, 0), Arc::from(text(row, 1).unwrap_or_default()));
        })?;
        let mut operations = Vec::new();
        let sql = "SELECT k.kernel_id, k.agent_id, k.queue_id, k.stream_id, k.start, k.\"end\", e.stack_id,
                k.grid_size_x, k.grid_size_y, k.grid_size_z, k.workgroup_size_x, k.workgroup_size_y,
                k.workgroup_size_z, k.group_segment_size, k.private_segment_size
            FROM %rocpd_kernel_dispatch% k JOIN %rocpd_event% e ON e.id = k.event_id";
        let agent_index = |id| agents.get(&id).map_or(0, |(index, _)| *index);
        self.each(recording, sql, |row| {
            let number = |column| integer(row, column);
            operations.push(StackOperation {
                work: Work::Kernel,
                name: kernels.get(&number(0)).cloned().unwrap_or_default(),
                agent: agent_index(number(1)),
                queue: number(2),
                stream: number(3),
                start: number(4),
                end: number(5),
                correlation: number(6),
                grid: [number(7), number(8), number(9)],
                workgroup: [number(10), number(11), number(12)],
                segments: [number(13), number(14)],
            });
        })?;
        let sql = "SELECT m.name_id, m.dst_agent_id, m.src_agent_id, m.stream_id, m.start, m.\"end\", e.stack_id, m.size
            FROM %rocpd_memory_copy% m JOIN %rocpd_event% e ON e.id = m.event_id";
        self.each(recording, sql, |row| {
            let number = |column| integer(row, column);
            operations.push(StackOperation {
                work: Work::Copy(number(7).cast_unsigned()),
                name: texts.get(number(0)),
                // A copy to the host is done by the GPU that it comes from.
                agent: agent_index(number(1)).max(agent_index(number(2))),
                queue: 0,
                stream: number(3),
                start: number(4),
                end: number(5),
                correlation: number(6),
                grid: [0; 3],
                workgroup: [0; 3],
                segments: [0; 2],
            });
        })?;
        Ok(operations)
    }

    /// Index and name of agents by their ids.
    fn agents(&self, recording: &StackRecording) -> Result<HashMap<i64, (i64, Arc<str>)>, Problem> {
        let mut agents = HashMap::new();
        let sql = "SELECT id, absolute_index, name FROM %rocpd_info_agent%";
        self.each(recording, sql, |row| {
            let name = Arc::from(text(row, 2).unwrap_or_default());
            agents.insert(integer(row, 0), (integer(row, 1), name));
        })?;
        Ok(agents)
    }

    /// Memory that was taken and given back, in the order in which that ended.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn allocations(
        &self,
        recording: &StackRecording,
    ) -> Result<Vec<StackAllocation>, ReadError> {
        self.connection.begin();
        self.read_allocations(recording).map_err(self.failed())
    }

    fn read_allocations(
        &self,
        recording: &StackRecording,
    ) -> Result<Vec<StackAllocation>, Problem> {
        let agents = self.agents(recording)?;
        let mut allocations = Vec::new();
        let sql = "SELECT m.event_id, m.type, m.address, m.size, m.agent_id, m.\"end\", e.stack_id, e.parent_stack_id
            FROM %rocpd_memory_allocate% m JOIN %rocpd_event% e ON e.id = m.event_id
            WHERE m.level = 'REAL' AND m.type IN ('ALLOC', 'FREE') ORDER BY m.\"end\", m.id";
        self.each(recording, sql, |row| {
            let agent = agents.get(&integer(row, 4));
            allocations.push(StackAllocation {
                event: integer(row, 0),
                is_free: text(row, 1) == Some("FREE"),
                address: integer(row, 2).cast_unsigned(),
                bytes: integer(row, 3).cast_unsigned(),
                device: agent.map_or_else(|| Arc::from(""), |(_, name)| Arc::clone(name)),
                end: integer(row, 5),
                correlation: integer(row, 6),
                parent: integer(row, 7),
            });
        })?;
        Ok(allocations)
    }

    /// The arguments of calls as RPD writes them, by event: `name=value | name=value`. Those of copies and launches are
    /// left out; they have tables of their own there.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn arguments(
        &self,
        recording: &StackRecording,
    ) -> Result<HashMap<i64, Vec<(String, String)>>, ReadError> {
        self.connection.begin();
        let mut arguments: HashMap<i64, Vec<(String, String)>> = HashMap::new();
        let sql = "SELECT a.event_id, p.name, a.value FROM %rocpd_arg% a
            JOIN %rpd_parameter% p ON p.id = a.parameter_id ORDER BY a.event_id, p.position";
        let read = self.each(recording, sql, |row| {
            let name = text(row, 1).unwrap_or_default().to_owned();
            let value = text(row, 2).unwrap_or_default().to_owned();
            arguments
                .entry(integer(row, 0))
                .or_default()
                .push((name, value));
        });
        read.map_err(self.failed())?;
        Ok(arguments)
    }

    /// Messages of markers by event.
    ///
    /// # Errors
    /// When SQLite finds the file damaged or locked.
    pub fn messages(&self, recording: &StackRecording) -> Result<HashMap<i64, String>, ReadError> {
        self.connection.begin();
        let mut messages = HashMap::new();
        let sql = "SELECT id, json_extract(extdata, '$.message') FROM %rocpd_event% WHERE extdata IS NOT NULL";
        let read = self.each(recording, sql, |row| {
            if let Some(message) = text(row, 1) {
                messages.insert(integer(row, 0), message.to_owned());
            }
        });
        read.map_err(self.failed())?;
        Ok(messages)
    }

    /// Puts symbols into the place of those that are there, for all recordings at once: all of it, or nothing.
    ///
    /// # Errors
    /// When the database cannot be written. It is as before then.
    pub fn replace(
        &mut self,
        symbols: &[(StackRecording, Symbols)],
        shown: ShownFrames,
    ) -> Result<(), ReadError> {
        self.connection.begin_within(None);
        self.connection.set_trust(Trust::Symbols);
        let written = self.write(symbols, shown);
        let done = written.map_err(|error| {
            let problem = self.connection.meaning(&error);
            // Without this the connection would keep the lock.
            let _ = self.connection.execute_batch("ROLLBACK");
            ReadError::new(&self.path, problem)
        });
        self.connection.set_trust(Trust::Views);
        done
    }

    fn write(
        &self,
        symbols: &[(StackRecording, Symbols)],
        shown: ShownFrames,
    ) -> rusqlite::Result<()> {
        let connection = &self.connection;
        connection.execute_batch("BEGIN IMMEDIATE")?;
        for (recording, symbols) in symbols {
            let sql = |sql: &str| with_tables(sql, &recording.suffix);
            connection.execute(&sql("DELETE FROM %rpd_stack_frame%"), [])?;
            connection.execute(&sql("DELETE FROM %rpd_frame%"), [])?;
            let mut texts = NewTexts::of(connection, &recording.suffix)?;
            let mut insert = connection.prepare(&sql(
                "INSERT INTO %rpd_frame% (id, location_id, inline_depth, function_id, file_id, line, col, evidence)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            ))?;
            for (id, frame) in (1_i64..).zip(&symbols.frames) {
                insert.execute(params![
                    id,
                    frame.place,
                    frame.inline_depth,
                    texts.id(frame.function.as_deref())?,
                    texts.id(frame.file.as_deref())?,
                    frame.line,
                    frame.column,
                    frame.evidence.as_deref(),
                ])?;
            }
            let mut insert = connection.prepare(&sql(
                "INSERT INTO %rpd_stack_frame% (stack_id, depth, frame_id) VALUES (?1, ?2, ?3)",
            ))?;
            for (stack, frames) in &symbols.stacks {
                for (depth, frame) in (0_i64..).zip(frames) {
                    insert.execute(params![stack, depth, frame])?;
                }
            }
            for (tag, is_set) in [
                (RUNTIME_FRAMES, shown.runtime),
                (INTERPRETER_FRAMES, shown.interpreter),
            ] {
                let value = if is_set { "1" } else { "0" };
                connection.execute(&sql("DELETE FROM %rocpd_metadata% WHERE tag = ?1"), [tag])?;
                connection.execute(
                    &sql("INSERT INTO %rocpd_metadata% (tag, value) VALUES (?1, ?2)"),
                    [tag, value],
                )?;
            }
        }
        connection.execute_batch("COMMIT")
    }
}

/// Tables without which nothing can be said.
const NEEDED: [&str; 17] = [
    "rpd_module",
    "rpd_pycode",
    "rpd_location",
    "rpd_frame",
    "rpd_stack",
    "rpd_stack_frame",
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_info_process",
    "rocpd_info_thread",
    "rocpd_info_agent",
    "rocpd_info_kernel_symbol",
    "rocpd_event",
    "rocpd_region",
    "rocpd_kernel_dispatch",
    "rocpd_memory_copy",
    "rocpd_memory_allocate",
];

/// What an event says about a record.
#[derive(Clone, Copy, Default)]
struct Event {
    category: i64,
    correlation: i64,
    parent: i64,
}

struct Texts(HashMap<i64, Arc<str>>);

impl Texts {
    fn get(&self, id: i64) -> Arc<str> {
        self.0.get(&id).cloned().unwrap_or_default()
    }
}

/// Texts that are added to those of a recording.
struct NewTexts<'a> {
    find: rusqlite::Statement<'a>,
    insert: rusqlite::Statement<'a>,
    known: HashMap<String, i64>,
    next: i64,
}

impl<'a> NewTexts<'a> {
    fn of(connection: &'a Guarded, suffix: &str) -> rusqlite::Result<NewTexts<'a>> {
        let sql = |sql: &str| with_tables(sql, suffix);
        let next = connection.query_row(
            &sql("SELECT coalesce(max(id), 0) + 1 FROM %rocpd_string%"),
            [],
            |row| row.get(0),
        )?;
        Ok(NewTexts {
            find: connection.prepare(&sql("SELECT id FROM %rocpd_string% WHERE string = ?1"))?,
            insert: connection.prepare(&sql(
                "INSERT INTO %rocpd_string% (id, string) VALUES (?1, ?2)",
            ))?,
            known: HashMap::new(),
            next,
        })
    }

    fn id(&mut self, text: Option<&str>) -> rusqlite::Result<Option<i64>> {
        let Some(text) = text else { return Ok(None) };
        if let Some(&known) = self.known.get(text) {
            return Ok(Some(known));
        }
        let mut rows = self.find.query([text])?;
        let found = match rows.next()? {
            Some(row) => Some(row.get(0)?),
            None => None,
        };
        drop(rows);
        let id = match found {
            Some(id) => id,
            None => {
                let id = self.next;
                self.insert.execute(params![id, text])?;
                self.next += 1;
                id
            }
        };
        self.known.insert(text.to_owned(), id);
        Ok(Some(id))
    }
}

/// A statement with the real names of tables for the words in percent signs.
fn with_tables(sql: &str, suffix: &str) -> String {
    let mut parts = sql.split('%');
    let mut filled = parts.next().unwrap_or_default().to_owned();
    while let (Some(base), Some(rest)) = (parts.next(), parts.next()) {
        filled += &identifier(&format!("{base}{suffix}"));
        filled += rest;
    }
    filled
}

fn integer(row: &Row<'_>, column: usize) -> i64 {
    optional(row, column).unwrap_or(0)
}

fn optional(row: &Row<'_>, column: usize) -> Option<i64> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(value)) => Some(value),
        _ => None,
    }
}

fn text<'row>(row: &'row Row<'_>, column: usize) -> Option<&'row str> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).ok(),
        _ => None,
    }
}
