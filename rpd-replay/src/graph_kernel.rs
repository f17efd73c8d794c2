//! One kernel of a graph that is launched, by itself: the memory is as it is at the kernel when a launch of the graph has run
//! what comes before it and nothing else.
//!
//! Nodes that do not come before the kernel are disabled for that launch. HIP disables kernels, copies and fills; host functions,
//! allocations and frees are empty nodes in a replay.

use std::collections::HashSet;

use rpd_capture::{Call, GraphKernel, launch_alone};
use rpd_spool::capture::structs::node_type;
use rpd_spool::capture::{Group, HandleKind, Operation};

use crate::arguments::out_word;
use crate::error::{ReplayError, Status};
use crate::hip::word_of;
use crate::player::Player;

/// The kernel of a graph that was chosen, and what the replay has of it so far.
#[derive(Debug)]
pub(crate) struct ChosenNode {
    pub(crate) kernel: GraphKernel,
    /// Node of the kernel in the graph to which it was added.
    node: u64,
    /// The graph of which the launched one is an executable copy. It stays until the end: it has the nodes' handles.
    graph: u64,
    /// The nodes that do not come before the kernel, with the kernel.
    disabled: Vec<u64>,
}

impl ChosenNode {
    /// A kernel that the replay has not come to.
    ///
    /// # Errors
    /// A description when it cannot be run by itself.
    pub(crate) fn new(kernel: GraphKernel, launch: u64) -> Result<ChosenNode, String> {
        let refused = |reason: String| {
            Err(format!(
                "{reason}; `rpd capture trim --from {launch} --until {launch}` makes a capture of the launch of the whole graph"
            ))
        };
        if let Some(seq) = kernel.unclear {
            return refused(format!(
                "call {launch} launches it with a graph, of which call {seq} changes a kernel whose place in the graph is not known"
            ));
        }
        if kernel.nested {
            return refused(format!(
                "call {launch} launches it with a graph, in which it belongs to another graph, which call {} made a node; \
                 only kernels of the launched graph itself can be run alone",
                kernel.added
            ));
        }
        Ok(ChosenNode {
            kernel,
            node: 0,
            graph: 0,
            disabled: Vec::new(),
        })
    }
}

impl Player {
    /// Whether a graph of the replay has to stay although the program destroys it.
    pub(crate) fn keeps_graph(&self, graph: u64) -> bool {
        let chosen = self.chosen_node.as_ref();
        graph != 0 && chosen.is_some_and(|chosen| chosen.graph == graph)
    }

    /// A launch was added to a stream: if it is that of the chosen kernel of a graph, it is the node after which the next one comes.
    pub(crate) fn note_captured_kernel(
        &mut self,
        call: &Call,
        stream: u64,
    ) -> Result<(), ReplayError> {
        let chosen = self.chosen_node.as_ref();
        if chosen.is_none_or(|chosen| chosen.kernel.added != call.seq) {
            return Ok(());
        }
        let (mut status, mut id, mut graph, mut nodes, mut count) = (0u32, 0u64, 0u64, 0u64, 0u64);
        self.hip.check(
            "hipStreamGetCaptureInfo_v2",
            &[
                stream,
                word_of(&mut status),
                word_of(&mut id),
                word_of(&mut graph),
                word_of(&mut nodes),
                word_of(&mut count),
            ],
        )?;
        if count != 1 || nodes == 0 {
            return Err(ReplayError::new(
                Status::Api,
                format!("the runtime lists {count} last nodes of the captured stream, not 1"),
            ));
        }
        // SAFETY: the runtime's list has one node.
        let node = unsafe { (nodes as *const u64).read_volatile() };
        if let Some(chosen) = &mut self.chosen_node {
            chosen.node = node;
        }
        Ok(())
    }

    /// A call was made: it may have added the chosen kernel as a node, or made its graph executable.
    pub(crate) fn follow_graph_kernel(
        &mut self,
        call: &Call,
        operation: &Operation,
    ) -> Result<(), ReplayError> {
        let Some(chosen) = &self.chosen_node else {
            return Ok(());
        };
        if chosen.kernel.added == call.seq && operation.group == Group::Graph {
            let node = out_word(call, 0).unwrap_or(0);
            let node = self.handle(HandleKind::Node, node)?;
            if let Some(chosen) = &mut self.chosen_node {
                chosen.node = node;
            }
        } else if chosen.kernel.instantiated == call.seq {
            let graph = self.handle(HandleKind::Graph, call.argument("graph"))?;
            let (node, disabled) = self.not_before(chosen.node, graph)?;
            if let Some(chosen) = &mut self.chosen_node {
                (chosen.node, chosen.graph, chosen.disabled) = (node, graph, disabled);
            }
        }
        Ok(())
    }

    /// The node of a kernel in a graph, or in what it is a copy of; and the nodes of the graph that do not come before it.
    fn not_before(&mut self, node: u64, graph: u64) -> Result<(u64, Vec<u64>), ReplayError> {
        let all = self.list("hipGraphGetNodes", graph)?;
        let mut found = node;
        if !all.contains(&node) {
            self.hip.check(
                "hipGraphNodeFindInClone",
                &[word_of(&mut found), node, graph],
            )?;
        }
        let mut before = HashSet::new();
        let mut left = vec![found];
        while let Some(one) = left.pop() {
            let earlier = self.list("hipGraphNodeGetDependencies", one)?;
            left.extend(earlier.into_iter().filter(|one| before.insert(*one)));
        }
        let mut disabled = Vec::new();
        for one in all.into_iter().filter(|one| !before.contains(one)) {
            let mut kind = 0u32;
            self.hip
                .check("hipGraphNodeGetType", &[one, word_of(&mut kind)])?;
            match kind {
                node_type::KERNEL | node_type::COPY | node_type::FILL => disabled.push(one),
                // They change no memory.
                node_type::EMPTY
                | node_type::HOST
                | node_type::WAIT_EVENT
                | node_type::RECORD_EVENT => {}
                kind => {
                    let what = match kind {
                        node_type::GRAPH => "another graph".to_owned(),
                        node_type::ALLOCATE | node_type::FREE => {
                            "an allocation or a free, as its memory has other addresses here"
                                .to_owned()
                        }
                        kind => format!("of type {kind}"),
                    };
                    return Err(ReplayError::failed(format!(
                        "the chosen kernel cannot be run alone: a node of this graph that does not come before it is {what}, \
                         and HIP can leave out only kernels, copies and fills"
                    )));
                }
            }
        }
        Ok((found, disabled))
    }

    /// What a function of the runtime lists for a graph or node.
    fn list(&mut self, name: &'static str, of: u64) -> Result<Vec<u64>, ReplayError> {
        let mut count = 0u64;
        self.hip.check(name, &[of, 0, word_of(&mut count)])?;
        let mut all = vec![0u64; usize::try_from(count).unwrap_or(0)];
        if !all.is_empty() {
            self.hip
                .check(name, &[of, all.as_mut_ptr() as u64, word_of(&mut count)])?;
        }
        all.truncate(usize::try_from(count).unwrap_or(0));
        Ok(all)
    }

    /// The launch of the chosen kernel of a graph as a call of its own, in place of the launch of the graph.
    pub(crate) fn alone(&self, launch: &Call) -> Result<Option<Call>, ReplayError> {
        let Some(chosen) = &self.chosen_node else {
            return Ok(None);
        };
        let set = self.capture.call(chosen.kernel.set)?;
        Ok(Some(launch_alone(launch, &set, &chosen.kernel)))
    }

    /// Runs what comes before the chosen kernel in the graph that `launch` launches, with the data of that call, and waits.
    pub(crate) fn play_before_kernel(&mut self, launch: &Call) -> Result<(), ReplayError> {
        let Some(operation) = launch.operation() else {
            return Ok(());
        };
        self.set_device(launch.device)?;
        self.prepare_data(launch)?;
        self.run_before_kernel(launch, operation)
    }

    fn run_before_kernel(
        &mut self,
        launch: &Call,
        operation: &Operation,
    ) -> Result<(), ReplayError> {
        let exec = self.handle(HandleKind::GraphExec, launch.argument("graphExec"))?;
        let stream = self.stream(launch, operation);
        let nodes = match &self.chosen_node {
            Some(chosen) => chosen.disabled.clone(),
            None => Vec::new(),
        };
        let mut disabled = Vec::new();
        for node in nodes {
            // The program may have disabled it.
            let mut enabled = 0u32;
            let words = [exec, node, word_of(&mut enabled)];
            self.hip.check("hipGraphNodeGetEnabled", &words)?;
            if enabled != 0 {
                self.hip.check("hipGraphNodeSetEnabled", &[exec, node, 0])?;
                disabled.push(node);
            }
        }
        self.hip.check("hipGraphLaunch", &[exec, stream])?;
        self.wait_for_all()?;
        for node in disabled {
            self.hip.check("hipGraphNodeSetEnabled", &[exec, node, 1])?;
        }
        Ok(())
    }

    /// Runs the chosen kernel of the graph that `launch` launches as often as was requested; the memory is then as it was before.
    pub(crate) fn run_chosen_node(
        &mut self,
        launch: &Call,
        operation: &Operation,
    ) -> Result<(), ReplayError> {
        let Some(alone) = self.alone(launch)? else {
            return Ok(());
        };
        self.wait_for_all()?;
        let mut saved = self.save()?;
        self.save_variables(&mut saved)?;
        let mut arrays = self.save_arrays()?;
        self.run_before_kernel(launch, operation)?;
        self.set_device(alone.device)?;
        self.run_chosen(&alone)?;
        self.set_device(launch.device)?;
        self.find_written(&mut saved)?;
        self.find_written_arrays(&mut arrays)?;
        self.restore(&saved, false)?;
        self.restore_arrays(&arrays, false)?;
        self.release(saved)
    }
}
