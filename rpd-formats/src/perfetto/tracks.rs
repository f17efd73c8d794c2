//! Tracks, and the lanes that keep slices of one track from crossing.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rpd_core::agent::AgentType;
use rpd_core::compat::Difference;
use rpd_core::domain::Kind;
use rpd_core::ids::{AgentHandle, QueueId, ThreadId};
use rpd_core::options::Options;
use rpd_core::session::{ResourceKind, Session, Table};

use super::proto::{field, nested, text, uint};
use super::trace::Trace;

/// Value `UNIT_SIZE_BYTES`.
const UNIT_SIZE_BYTES: u64 = 3;

/// Permitted overlap of slices of a track.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Overlap {
    /// Slices may be nested: calls on a thread.
    Nested,
    /// Slices must not overlap: work of a device has no callee.
    None,
}

struct Lane {
    track: u64,
    /// Ends of the slices that are open, outermost first.
    open: Vec<u64>,
}

/// A track, and the tracks of the same name beside it for slices that overlap.
pub(super) struct Lanes {
    name: String,
    overlap: Overlap,
    lanes: Vec<Lane>,
}

impl Lanes {
    fn new(name: String, overlap: Overlap) -> Lanes {
        Lanes {
            name,
            overlap,
            lanes: Vec::new(),
        }
    }

    /// The track on which a slice crosses none before it. Slices come in the order of their starts, longer first.
    #[inline]
    pub(super) fn place(&mut self, trace: &mut Trace, parent: u64, start: u64, end: u64) -> u64 {
        for lane in &mut self.lanes {
            while lane.open.last().is_some_and(|&open| open <= start) {
                lane.open.pop();
            }
            let fits = match lane.open.last() {
                None => true,
                Some(&open) => self.overlap == Overlap::Nested && end <= open,
            };
            if fits {
                lane.open.push(end);
                return lane.track;
            }
        }
        let track = trace.new_track();
        describe(trace, track, Some(parent), &self.name, |_| ());
        self.lanes.push(Lane {
            track,
            open: vec![end],
        });
        track
    }
}

/// Writes the descriptor of a track; `fill` adds what is special.
fn describe(
    trace: &mut Trace,
    track: u64,
    parent: Option<u64>,
    name: &str,
    fill: impl FnOnce(&mut Vec<u8>),
) {
    trace.without_time(|out| {
        nested(out, field::packet::TRACK_DESCRIPTOR, |out| {
            uint(out, field::track::UUID, track);
            if let Some(parent) = parent {
                uint(out, field::track::PARENT, parent);
            }
            if !name.is_empty() {
                text(out, field::track::NAME, name);
            }
            fill(out);
        });
    });
}

/// The kind of work on a device track.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Device {
    Stream(u32),
    Queue(AgentHandle, QueueId),
    /// Copies to an agent that a thread submitted.
    Copies(AgentHandle, ThreadId),
    /// Events of the kernel driver of a kind.
    Driver(Kind),
}

/// Names of an agent.
pub(super) struct AgentNames {
    /// Name in annotations, such as `Agent-1`.
    pub(super) short: String,
    /// Name in names of tracks, such as `Agent [1]`.
    bracketed: String,
    /// Type of the agent, such as `GPU`.
    pub(super) agent_type: &'static str,
    logical: String,
}

/// The tracks of a process.
pub(super) struct Tracks {
    pub(super) process: u64,
    threads: HashMap<ThreadId, (usize, Lanes)>,
    devices: HashMap<Device, Lanes>,
    pub(super) agents: HashMap<AgentHandle, AgentNames>,
    queues: HashMap<AgentHandle, BTreeSet<QueueId>>,
    /// Names that the program gave to streams.
    streams: HashMap<u32, String>,
    /// Whether names and units are those of the original tools.
    is_original: bool,
}

impl Tracks {
    /// Describes process and threads.
    pub(super) fn new(trace: &mut Trace, session: &Session, options: &Options) -> Tracks {
        let process = trace.new_track();
        let facts = &session.process;
        let pid = trace.first_id + u64::from(facts.pid.0);
        let label = trace.label.take();
        let start = facts.init_time.0.saturating_add_signed(trace.shift);
        describe(trace, process, None, "", |out| {
            nested(out, field::track::PROCESS, |out| {
                uint(out, field::process::PID, pid);
                for word in &facts.command {
                    text(out, field::process::COMMAND, word);
                }
                if let Some(label) = &label {
                    text(out, field::process::NAME, label);
                } else if let Some(program) = facts.command.first() {
                    text(out, field::process::NAME, program);
                }
                uint(out, field::process::START, start);
            });
        });
        let mut tracks = Tracks {
            process,
            threads: HashMap::new(),
            devices: HashMap::new(),
            agents: agents(session, options),
            queues: HashMap::new(),
            streams: session
                .stream_names()
                .into_iter()
                .map(|(id, name)| (id, name.to_owned()))
                .collect(),
            is_original: options.compat.has(Difference::PerfettoNames),
        };
        tracks.describe_threads(trace, session);
        let table = &session.dispatches;
        // Most dispatches follow one of the same queue, which saves looking it up.
        let mut last = None;
        for queue in table.agent.iter().copied().zip(table.queue.iter().copied()) {
            if last != Some(queue) {
                tracks.queues.entry(queue.0).or_default().insert(queue.1);
                last = Some(queue);
            }
        }
        tracks
    }

    fn describe_threads(&mut self, trace: &mut Trace, session: &Session) {
        let process = &session.process;
        let given: BTreeMap<u64, &str> = session
            .resource_names
            .iter()
            .filter(|resource| resource.kind == ResourceKind::Thread)
            .map(|resource| (resource.resource, &*resource.name))
            .collect();
        let first_id = trace.first_id;
        let main = ThreadId(process.pid.0);
        let program = process.command.first().map_or("", String::as_str);
        let program = program.rsplit('/').next().unwrap_or_default();
        let mut others = threads(session);
        others.remove(&main);
        for (number, thread) in [main].into_iter().chain(others).enumerate() {
            let name = match number {
                0 => String::new(),
                _ => format!("THREAD {number} ({thread})"),
            };
            let mut lanes = Lanes::new(name, Overlap::Nested);
            let shown = match given.get(&u64::from(thread.0)) {
                Some(name) => name,
                None if number == 0 => program,
                None => &lanes.name,
            };
            let track = trace.new_track();
            describe(trace, track, Some(self.process), &lanes.name, |out| {
                nested(out, field::track::THREAD, |out| {
                    uint(out, field::thread::PID, first_id + u64::from(process.pid.0));
                    uint(out, field::thread::TID, first_id + u64::from(thread.0));
                    text(out, field::thread::NAME, shown);
                });
            });
            lanes.lanes.push(Lane {
                track,
                open: Vec::new(),
            });
            if number == 0 {
                // Siblings are not threads, whose name would be shown.
                program.clone_into(&mut lanes.name);
            }
            self.threads.insert(thread, (number, lanes));
        }
    }

    /// The track for a slice of a thread.
    #[inline]
    pub(super) fn thread(
        &mut self,
        trace: &mut Trace,
        thread: ThreadId,
        start: u64,
        end: u64,
    ) -> u64 {
        match self.threads.get_mut(&thread) {
            Some((_, lanes)) => lanes.place(trace, self.process, start, end),
            // All threads of all records have one.
            None => self.process,
        }
    }

    /// The track for a slice of a device.
    #[inline]
    pub(super) fn device(
        &mut self,
        trace: &mut Trace,
        device: Device,
        start: u64,
        end: u64,
    ) -> u64 {
        if !self.devices.contains_key(&device) {
            let lanes = Lanes::new(self.device_name(device), Overlap::None);
            self.devices.insert(device, lanes);
        }
        match self.devices.get_mut(&device) {
            Some(lanes) => lanes.place(trace, self.process, start, end),
            // The entry was inserted above.
            None => self.process,
        }
    }

    fn device_name(&mut self, device: Device) -> String {
        match device {
            Device::Stream(id) if self.is_original => format!("STREAM [\" {id} \"] "),
            Device::Stream(id) => match self.streams.get(&id) {
                Some(name) => format!("STREAM [{id}] {name}"),
                None => format!("STREAM [{id}]"),
            },
            Device::Queue(agent, queue) => {
                let queues = self.queues.get(&agent);
                let position = queues.map_or(0, |queues| queues.range(..queue).count());
                let agent = self.agent(agent);
                format!(
                    "COMPUTE {} QUEUE [{position}] {}",
                    agent.bracketed, agent.agent_type
                )
            }
            Device::Driver(kind) => kind.file_name().to_owned(),
            Device::Copies(agent, thread) => {
                let number = self.threads.get(&thread).map_or(0, |(number, _)| *number);
                let agent = self.agent(agent);
                format!(
                    "COPY to AGENT [{}] THREAD [{number}] ({})",
                    agent.logical, agent.agent_type
                )
            }
        }
    }

    /// The names of an agent; an agent without a record is named after its handle.
    pub(super) fn agent(&mut self, handle: AgentHandle) -> &AgentNames {
        self.agents.entry(handle).or_insert_with(|| {
            let agent_type = AgentType::Unknown.label();
            AgentNames {
                short: format!("{agent_type}-{handle}"),
                bracketed: format!("{agent_type} [{handle}]"),
                agent_type,
                logical: handle.to_string(),
            }
        })
    }

    /// Bytes that a value of 1 on tracks of bytes stands for.
    pub(super) fn bytes_of_one(&self) -> u64 {
        if self.is_original { 1024 } else { 1 }
    }

    /// Describes a track of bytes, in units of [`Tracks::bytes_of_one`]; `what` comes before the agent in its name.
    pub(super) fn counter(&mut self, trace: &mut Trace, what: &str, agent: AgentHandle) -> u64 {
        let track = trace.new_track();
        let (process, unit) = (self.process, self.bytes_of_one());
        let agent = self.agent(agent);
        let name = format!("{what} {} ({})", agent.bracketed, agent.agent_type);
        describe(trace, track, Some(process), &name, |out| {
            nested(out, field::track::COUNTER, |out| {
                uint(out, field::counter::UNIT, UNIT_SIZE_BYTES);
                uint(out, field::counter::MULTIPLIER, unit);
            });
        });
        track
    }

    /// Describes the track of a hardware counter of an agent.
    pub(super) fn hardware_counter(
        &mut self,
        trace: &mut Trace,
        agent: AgentHandle,
        name: &str,
    ) -> u64 {
        let track = trace.new_track();
        let process = self.process;
        let name = format!("{} PMC {name}", self.agent(agent).bracketed);
        describe(trace, track, Some(process), &name, |out| {
            nested(out, field::track::COUNTER, |_| {});
        });
        track
    }
}

fn agents(session: &Session, options: &Options) -> HashMap<AgentHandle, AgentNames> {
    let names = session.agents.iter().map(|agent| {
        let (label, number) = agent.label(options.agent_index);
        let names = AgentNames {
            short: format!("{label}-{number}"),
            bracketed: format!("{label} [{number}]"),
            agent_type: agent.agent_type.label(),
            logical: agent.logical_node_id.to_string(),
        };
        (agent.handle, names)
    });
    names.collect()
}

/// The threads of all records that are shown by thread.
fn threads(session: &Session) -> BTreeSet<ThreadId> {
    let mut threads = BTreeSet::new();
    let shown = Table::ALL.iter().filter(|table| match table {
        Table::Calls | Table::Dispatches | Table::Copies => true,
        // Counter tracks and samples are those of agents.
        Table::Allocations
        | Table::Scratch
        | Table::Counted
        | Table::Samples
        | Table::GraphLaunches
        | Table::HipEvents
        | Table::KfdEvents => false,
    });
    for column in shown.filter_map(|table| session.references(*table).threads) {
        let mut last = None;
        for &thread in column {
            if last != Some(thread) {
                threads.insert(thread);
                last = Some(thread);
            }
        }
    }
    threads
}
