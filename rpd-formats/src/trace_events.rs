//! The time line of several recordings in the Trace Event Format: JSON that Perfetto, Chrome and many scripts read.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;

use rpd_core::ids::{AgentHandle, ThreadId};
use rpd_core::session::Session;

use crate::WriteError;
use crate::file::TextFile;
use crate::json::{Object, quote};
use crate::output::{Placed, Together};

/// Thread ids of this format from here on are those of tracks of devices: those of Linux are smaller.
const DEVICES: u64 = 1 << 30;

/// A file in the making.
pub(crate) struct TraceEvents {
    file: TextFile,
    origin: u64,
    separator: &'static str,
    notes: Vec<String>,
}

/// An event that lasts.
struct Slice<'s> {
    name: &'s str,
    category: &'s str,
    track: u64,
    start: u64,
    end: u64,
    /// Arguments that are JSON already; may be empty.
    args: String,
}

/// Tracks of devices; work that overlaps is put on several of the same name.
#[derive(Default)]
struct DeviceTracks {
    /// Tracks of each agent and queue: number, and end of the last slice.
    lanes: HashMap<(AgentHandle, u64), Vec<(u64, u64)>>,
    names: Vec<(u64, String)>,
}

impl DeviceTracks {
    /// The track for work from `start` to `end`; `name` makes the name of a new one.
    fn place(
        &mut self,
        key: (AgentHandle, u64),
        start: u64,
        end: u64,
        name: impl Fn() -> String,
    ) -> u64 {
        let lanes = self.lanes.entry(key).or_default();
        if let Some((track, until)) = lanes.iter_mut().find(|(_, until)| *until <= start) {
            *until = end;
            return *track;
        }
        let track = DEVICES + self.names.len() as u64;
        lanes.push((track, end));
        self.names.push((track, name()));
        track
    }
}

impl TraceEvents {
    /// Begins the file.
    pub(crate) fn create(path: PathBuf, together: &Together) -> Result<TraceEvents, WriteError> {
        let mut file = TextFile::create(path)?;
        file.buffer.extend_from_slice(b"{\"traceEvents\":[");
        Ok(TraceEvents {
            file,
            origin: together.first,
            separator: "\n",
            notes: together.notes.clone(),
        })
    }

    fn event(&mut self, json: &str) -> Result<(), WriteError> {
        self.file
            .buffer
            .extend_from_slice(self.separator.as_bytes());
        self.file.buffer.extend_from_slice(json.as_bytes());
        self.separator = ",\n";
        self.file.flush_if_full()
    }

    /// Names something of a process.
    fn describe(&mut self, what: &str, pid: u64, tid: u64, args: Object) -> Result<(), WriteError> {
        let event = Object::new()
            .text("ph", "M")
            .text("name", what)
            .number("pid", pid)
            .number("tid", tid)
            .json("args", &args.end());
        self.event(&event.end())
    }

    fn slice(&mut self, placed: &Placed<'_>, slice: &Slice<'_>) -> Result<(), WriteError> {
        let end = slice.end.max(slice.start);
        let start = slice.start.saturating_add_signed(placed.shift);
        let start = start.saturating_sub(self.origin);
        let mut text = String::with_capacity(160);
        text.push_str("{\"ph\":\"X\",\"name\":");
        quote(&mut text, slice.name);
        text.push_str(",\"cat\":");
        quote(&mut text, slice.category);
        let pid = placed.first_id + u64::from(placed.session.process.pid.0);
        let length = end - slice.start;
        // Times of the format are microseconds; writing to a `String` cannot fail.
        let _ = write!(
            text,
            ",\"pid\":{pid},\"tid\":{},\"ts\":{}.{:03},\"dur\":{}.{:03}",
            slice.track,
            start / 1000,
            start % 1000,
            length / 1000,
            length % 1000,
        );
        if !slice.args.is_empty() {
            let _ = write!(text, ",\"args\":{}", slice.args);
        }
        text.push('}');
        self.event(&text)
    }

    /// Adds a recording.
    pub(crate) fn add(&mut self, placed: &Placed<'_>) -> Result<(), WriteError> {
        let session = placed.session;
        let pid = placed.first_id + u64::from(session.process.pid.0);
        self.describe(
            "process_name",
            pid,
            0,
            Object::new().text("name", placed.label),
        )?;
        let order = Object::new().number("sort_index", placed.number);
        self.describe("process_sort_index", pid, 0, order)?;
        self.calls(placed)?;
        let mut tracks = DeviceTracks::default();
        self.dispatches(placed, &mut tracks)?;
        self.copies(placed, &mut tracks)?;
        for (track, name) in tracks.names {
            self.describe("thread_name", pid, track, Object::new().text("name", &name))?;
        }
        Ok(())
    }

    fn calls(&mut self, placed: &Placed<'_>) -> Result<(), WriteError> {
        let session = placed.session;
        let calls = &session.calls;
        let mut threads: BTreeSet<ThreadId> = BTreeSet::new();
        for index in calls.indices() {
            let thread = calls.thread[index];
            threads.insert(thread);
            let label = session.call_label(index);
            self.slice(
                placed,
                &Slice {
                    name: session.strings.get(label),
                    category: session.call(index).kind.file_name(),
                    track: placed.first_id + u64::from(thread.0),
                    start: calls.start[index].0,
                    end: calls.end[index].0,
                    args: String::new(),
                },
            )?;
        }
        let pid = placed.first_id + u64::from(session.process.pid.0);
        for thread in threads {
            let name = Object::new().text("name", &format!("thread {thread}"));
            self.describe(
                "thread_name",
                pid,
                placed.first_id + u64::from(thread.0),
                name,
            )?;
        }
        Ok(())
    }

    fn dispatches(
        &mut self,
        placed: &Placed<'_>,
        tracks: &mut DeviceTracks,
    ) -> Result<(), WriteError> {
        let session = placed.session;
        let kernels = session.kernels(placed.options.kernel_names);
        let table = kernels.dispatches;
        for index in table.indices() {
            let (agent, queue) = (table.agent[index], table.queue[index].0);
            let (start, end) = (table.start[index].0, table.end[index].0);
            let track = tracks.place((agent, queue), start, end, || {
                format!(
                    "{} kernels, queue {queue}",
                    agent_name(session, agent, placed)
                )
            });
            self.slice(
                placed,
                &Slice {
                    name: kernels.name(index),
                    category: "KERNEL_DISPATCH",
                    track,
                    start,
                    end,
                    args: Object::new()
                        .number("correlation", table.correlation[index].0)
                        .end(),
                },
            )?;
        }
        Ok(())
    }

    fn copies(&mut self, placed: &Placed<'_>, tracks: &mut DeviceTracks) -> Result<(), WriteError> {
        let session = placed.session;
        let table = &session.copies;
        for index in table.indices() {
            let (from, to) = (table.src_agent[index], table.dst_agent[index]);
            let (start, end) = (table.start[index].0, table.end[index].0);
            // Queues have numbers; the complement of the source keeps tracks of copies apart from theirs.
            let track = tracks.place((to, !from.0), start, end, || {
                let from = agent_name(session, from, placed);
                format!("copies {from} to {}", agent_name(session, to, placed))
            });
            self.slice(
                placed,
                &Slice {
                    name: session.operation_name(table.operation[index]),
                    category: "MEMORY_COPY",
                    track,
                    start,
                    end,
                    args: Object::new().number("bytes", table.bytes[index]).end(),
                },
            )?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(crate) fn finish(mut self) -> Result<PathBuf, WriteError> {
        let mut notes = String::new();
        quote(&mut notes, &self.notes.join(" "));
        let other = Object::new()
            .number("first_record_ns", self.origin)
            .json("notes", &notes)
            .end();
        let end = format!("\n],\"displayTimeUnit\":\"ns\",\"otherData\":{other}}}\n");
        self.file.buffer.extend_from_slice(end.as_bytes());
        self.file.finish()
    }
}

fn agent_name(session: &Session, handle: AgentHandle, placed: &Placed<'_>) -> String {
    match session.agent(handle) {
        Some(agent) => {
            let (label, number) = agent.label(placed.options.agent_index);
            format!("{label} {number}")
        }
        None => format!("agent {handle}"),
    }
}
