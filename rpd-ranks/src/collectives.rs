//! Collective operations of RCCL in a recording, with what ties them to those of other recordings: the communicator and the
//! number of the operation in it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{CorrelationId, ThreadId};
use rpd_core::options::KernelNames;
use rpd_core::session::Session;
use rpd_core::text::args::{for_each_argument, layout};

/// A collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Collective {
    /// Id of the communicator, the same in all ranks.
    pub communicator: u64,
    /// Number of the operation among those of the communicator, from 0.
    pub ordinal: u32,
    /// Place of the operation in the table of operations.
    pub(crate) operation: u8,
    /// Whether the times are those of the kernel, which ends when all ranks have come. Otherwise they are those of the call.
    pub on_device: bool,
    /// Time at which this rank came, in nanoseconds.
    pub start: u64,
    /// Time at which it ended in this rank, in nanoseconds.
    pub end: u64,
}

/// Operations, and whether each rank waits in them for all others.
const OPERATIONS: [(&str, bool); 12] = [
    ("ncclAllReduce", true),
    ("ncclAllGather", true),
    ("ncclReduceScatter", true),
    ("ncclAllToAll", true),
    ("ncclAllToAllv", true),
    ("ncclAllReduceWithBias", true),
    ("ncclBroadcast", false),
    ("ncclBcast", false),
    ("ncclReduce", false),
    ("ncclGather", false),
    ("ncclScatter", false),
    ("barrier range", true),
];

/// Place of ROCTx ranges in which all ranks wait for one another.
const BARRIER: u8 = OPERATIONS.len() as u8 - 1;

pub(crate) fn operation_name(operation: u8) -> &'static str {
    OPERATIONS
        .get(usize::from(operation))
        .map_or("", |(name, _)| name)
}

impl Collective {
    /// The name of the operation.
    pub fn name(&self) -> &'static str {
        operation_name(self.operation)
    }

    /// Whether each rank waits in it for all others.
    pub(crate) fn synchronises(&self) -> bool {
        let operation = OPERATIONS.get(usize::from(self.operation));
        operation.is_some_and(|(_, synchronises)| *synchronises)
    }
}

/// A communicator of a process, by the text of its handle.
struct Communicator {
    id: u64,
    operations: u32,
    splits: u32,
}

/// Calls of a group that has not ended.
#[derive(Default)]
struct OpenGroup {
    depth: u32,
    collectives: Vec<usize>,
}

/// Collective operations while they are collected.
#[derive(Default)]
struct Collector {
    found: Vec<Collective>,
    communicators: HashMap<String, Communicator>,
    groups: HashMap<ThreadId, OpenGroup>,
    /// Operations whose kernels a call launches, by its correlation id.
    launched: HashMap<CorrelationId, usize>,
    /// Lists of operations to which `launched` refers.
    lists: Vec<Vec<usize>>,
    /// Number of ranges with each message that is a barrier.
    barriers: HashMap<u64, u32>,
}

/// What the arguments of a call say of communicators.
#[derive(Default)]
struct Arguments {
    communicator: Option<String>,
    made: Option<String>,
    unique_id: Option<String>,
    color: Option<String>,
}

/// The collective operations of a session whose communicators are known: those of RCCL need the arguments of its calls
/// (`--annotate-args`). `barriers` are messages of ROCTx ranges.
pub(crate) fn of_session(session: &Session, barriers: &[String]) -> Vec<Collective> {
    let interesting = session
        .operations
        .select(|operation| matches!(operation.domain(), Domain::RcclApi | Domain::MarkerApi));
    let any = interesting.iter().any(|is_interesting| *is_interesting);
    if !any {
        return Vec::new();
    }
    let mut collector = Collector::default();
    let calls = &session.calls;
    for index in calls.indices() {
        if interesting[calls.operation[index].0 as usize] {
            let operation = session.call(index);
            match operation.kind {
                Kind::Rccl => collector.call(session, index),
                _ => collector.range(session, index, barriers),
            }
        } else if let Some(list) = collector.launched.get(&calls.ancestor[index]) {
            // What a call of RCCL calls itself launches its kernel.
            let list = *list;
            collector.launched.insert(calls.correlation[index], list);
        }
    }
    collector.kernels(session);
    collector.found
}

impl Collector {
    fn call(&mut self, session: &Session, index: usize) {
        let calls = &session.calls;
        let name = session.operation_name(calls.operation[index]);
        let thread = calls.thread[index];
        let correlation = calls.correlation[index];
        match name {
            "ncclGroupStart" => self.groups.entry(thread).or_default().depth += 1,
            "ncclGroupEnd" => {
                let group = self.groups.entry(thread).or_default();
                group.depth = group.depth.saturating_sub(1);
                if group.depth == 0 {
                    let list = std::mem::take(&mut group.collectives);
                    self.launches(correlation, list);
                }
            }
            "ncclCommInitRank" | "ncclCommInitRankConfig" => {
                let given = arguments(session, index, name);
                if let (Some(made), Some(id)) = (given.made, given.unique_id) {
                    self.made(made, hash(&("id", id)));
                }
            }
            "ncclCommSplit" => {
                let given = arguments(session, index, name);
                let parent = given.communicator;
                let parent = parent.and_then(|of| self.communicators.get_mut(&of));
                if let (Some(made), Some(parent)) = (given.made, parent) {
                    let id = hash(&(parent.id, "split", parent.splits, given.color));
                    parent.splits += 1;
                    self.made(made, id);
                }
            }
            _ => {
                let place = OPERATIONS.iter().position(|(known, _)| *known == name);
                if let Some(place) = place {
                    self.collective(session, index, name, place as u8);
                }
            }
        }
    }

    fn made(&mut self, handle: String, id: u64) {
        let communicator = Communicator {
            id,
            operations: 0,
            splits: 0,
        };
        // An address that is used again is another communicator.
        self.communicators.insert(handle, communicator);
    }

    fn collective(&mut self, session: &Session, index: usize, name: &str, operation: u8) {
        let handle = arguments(session, index, name).communicator;
        let communicator = handle.and_then(|of| self.communicators.get_mut(&of));
        let Some(communicator) = communicator else {
            return;
        };
        let calls = &session.calls;
        let number = self.found.len();
        self.found.push(Collective {
            communicator: communicator.id,
            ordinal: communicator.operations,
            operation,
            on_device: false,
            start: calls.start[index].0,
            end: calls.end[index].0,
        });
        communicator.operations += 1;
        let group = self.groups.get_mut(&calls.thread[index]);
        match group.filter(|group| group.depth > 0) {
            Some(group) => group.collectives.push(number),
            None => self.launches(calls.correlation[index], vec![number]),
        }
    }

    /// Notes that a call launches the kernels of operations.
    fn launches(&mut self, call: CorrelationId, operations: Vec<usize>) {
        if call.0 != 0 && !operations.is_empty() {
            self.launched.insert(call, self.lists.len());
            self.lists.push(operations);
        }
    }

    fn range(&mut self, session: &Session, index: usize, barriers: &[String]) {
        let calls = &session.calls;
        let message = session.strings.get(session.call_label(index));
        let (start, end) = (calls.start[index].0, calls.end[index].0);
        // A mark has the message as well, and no length.
        if start == end || !barriers.iter().any(|of| of == message) {
            return;
        }
        let communicator = hash(&("range", message));
        let ordinal = self.barriers.entry(communicator).or_default();
        self.found.push(Collective {
            communicator,
            ordinal: *ordinal,
            operation: BARRIER,
            on_device: true,
            start,
            end,
        });
        *ordinal += 1;
    }

    /// Gives operations the times of their kernels.
    fn kernels(&mut self, session: &Session) {
        if self.lists.is_empty() {
            return;
        }
        let kernels = session.kernels(KernelNames::default());
        let table = kernels.dispatches;
        for index in table.indices() {
            let Some(list) = self.launched.get(&table.correlation[index]) else {
                continue;
            };
            // Beside the operation RCCL launches kernels that set memory up.
            if !kernels.name(index).contains("nccl") {
                continue;
            }
            let (start, end) = (table.start[index].0, table.end[index].0);
            for number in &self.lists[*list] {
                let collective = &mut self.found[*number];
                if collective.on_device {
                    collective.start = collective.start.min(start);
                    collective.end = collective.end.max(end);
                } else {
                    *collective = Collective {
                        on_device: true,
                        start,
                        end,
                        ..*collective
                    };
                }
            }
        }
    }
}

fn arguments(session: &Session, index: usize, name: &str) -> Arguments {
    let calls = &session.calls;
    let args = calls.args[index];
    let from = usize::try_from(args.offset).unwrap_or(usize::MAX);
    let raw = calls
        .arena
        .get(from..from.saturating_add(args.len as usize));
    let mut found = Arguments::default();
    let makes_of_id = name.starts_with("ncclCommInitRank");
    for_each_argument(
        layout(Kind::Rccl, name),
        args.flags,
        raw.unwrap_or_default(),
        |_, _, argument, value| {
            let place = match argument {
                "newcomm" => &mut found.made,
                // The configured form of the call names its result so.
                "comm" if makes_of_id => &mut found.made,
                "comm" => &mut found.communicator,
                "commId" => &mut found.unique_id,
                "color" => &mut found.color,
                _ => return,
            };
            *place = Some(value.to_owned());
        },
    );
    found
}

/// A number that is equal for equal values in every run of this program.
fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rpd_core::ids::{KernelId, Nanoseconds};
    use rpd_core::session::{ArgsRef, CallRow, DispatchRow, KernelSymbol};
    use rpd_core::spool::format::call_flag;

    pub(crate) fn all_reduce(
        communicator: u64,
        ordinal: u32,
        start: u64,
        length: u64,
    ) -> Collective {
        Collective {
            communicator,
            ordinal,
            operation: 0,
            on_device: true,
            start,
            end: start + length,
        }
    }

    /// Adds a call of RCCL at `start`, of 10 ns, with arguments as texts.
    fn call(session: &mut Session, name: &str, start: u64, id: u64, given: &[(&str, &str)]) {
        let operation = session.add_operation(Kind::Rccl, name);
        let mut raw = Vec::new();
        for text in given.iter().flat_map(|(name, value)| ["t", name, value]) {
            raw.extend_from_slice(&(text.len() as u32).to_le_bytes());
            raw.extend_from_slice(text.as_bytes());
        }
        let args = ArgsRef {
            offset: session.calls.arena.len() as u64,
            len: raw.len() as u32,
            flags: call_flag::ARGUMENT_TEXTS,
        };
        for byte in raw {
            session.calls.arena.push(byte);
        }
        session.calls.push(CallRow {
            operation,
            start: Nanoseconds(start),
            end: Nanoseconds(start + 10),
            correlation: CorrelationId(id),
            args,
            ..CallRow::default()
        });
    }

    fn kernel(session: &mut Session, start: u64, end: u64, id: u64) {
        if session.kernel_symbols.is_empty() {
            session.kernel_symbols.push(KernelSymbol {
                id: KernelId(1),
                name: "ncclDevKernel_Generic".to_owned(),
                ..KernelSymbol::default()
            });
        }
        session.dispatches.push(DispatchRow {
            start: Nanoseconds(start),
            end: Nanoseconds(end),
            kernel: KernelId(1),
            correlation: CorrelationId(id),
            ..DispatchRow::default()
        });
    }

    const INIT: &str = "ncclCommInitRank";

    #[test]
    fn collectives_of_a_group_have_the_times_of_the_kernel_that_its_end_launches() {
        let mut session = Session::new();
        call(
            &mut session,
            INIT,
            10,
            1,
            &[("newcomm", "0x5"), ("commId", "0xab")],
        );
        call(&mut session, "ncclGroupStart", 30, 2, &[]);
        call(&mut session, "ncclAllReduce", 40, 3, &[("comm", "0x5")]);
        call(&mut session, "ncclBroadcast", 60, 4, &[("comm", "0x5")]);
        call(&mut session, "ncclGroupEnd", 80, 5, &[]);
        let launch = session.add_operation(Kind::HipRuntime, "hipLaunchKernel");
        session.calls.push(CallRow {
            operation: launch,
            start: Nanoseconds(82),
            end: Nanoseconds(85),
            correlation: CorrelationId(6),
            ancestor: CorrelationId(5),
            ..CallRow::default()
        });
        kernel(&mut session, 100, 200, 6);
        kernel(&mut session, 500, 600, 77);
        let found = of_session(&session, &[]);
        let times: Vec<_> = found
            .iter()
            .map(|of| (of.name(), of.ordinal, of.start, of.end))
            .collect();
        assert_eq!(
            times,
            [
                ("ncclAllReduce", 0, 100, 200),
                ("ncclBroadcast", 1, 100, 200)
            ]
        );
        assert!(found.iter().all(|of| of.on_device));
        assert!(found[0].synchronises() && !found[1].synchronises());
    }

    #[test]
    fn communicators_are_the_same_in_all_ranks_that_made_them_of_one_id() {
        let of_rank = |handle: &str, id: &str| {
            let mut session = Session::new();
            call(
                &mut session,
                INIT,
                10,
                1,
                &[("newcomm", handle), ("commId", id)],
            );
            call(
                &mut session,
                "ncclCommSplit",
                30,
                2,
                &[("comm", handle), ("color", "1"), ("newcomm", "0x9")],
            );
            call(&mut session, "ncclAllGather", 50, 3, &[("comm", handle)]);
            call(&mut session, "ncclAllGather", 70, 4, &[("comm", "0x9")]);
            call(&mut session, "ncclAllGather", 90, 5, &[("comm", "0x777")]);
            let found = of_session(&session, &[]);
            found.iter().map(|of| of.communicator).collect::<Vec<_>>()
        };
        let first = of_rank("0x5", "0xab");
        assert_eq!(first.len(), 2, "the third one is of no known communicator");
        assert_ne!(first[0], first[1]);
        assert_eq!(of_rank("0x1234", "0xab"), first);
        assert_ne!(of_rank("0x5", "0xcd")[0], first[0]);
    }

    #[test]
    fn collectives_without_kernels_have_the_times_of_their_calls() {
        let mut session = Session::new();
        call(
            &mut session,
            INIT,
            10,
            1,
            &[("newcomm", "0x5"), ("commId", "0xab")],
        );
        call(&mut session, "ncclAllReduce", 40, 3, &[("comm", "0x5")]);
        let found = of_session(&session, &[]);
        assert_eq!(
            (found[0].on_device, found[0].start, found[0].end),
            (false, 40, 50)
        );
    }

    #[test]
    fn ranges_that_are_barriers_are_numbered_by_message() {
        let mut session = Session::new();
        let push = session.add_operation(Kind::MarkerCoreRange, "roctxThreadRangeA");
        for (message, start, end) in [
            ("MPI_Barrier", 1, 5),
            ("step", 6, 9),
            ("MPI_Barrier", 10, 12),
        ] {
            let message = session.strings.intern(message);
            session.calls.push(CallRow {
                operation: push,
                message,
                start: Nanoseconds(start),
                end: Nanoseconds(end),
                ..CallRow::default()
            });
        }
        let found = of_session(&session, &["MPI_Barrier".to_owned()]);
        let times: Vec<_> = found
            .iter()
            .map(|of| (of.ordinal, of.start, of.end))
            .collect();
        assert_eq!(times, [(0, 1, 5), (1, 10, 12)]);
        assert!(of_session(&session, &[]).is_empty());
    }
}
