//! The host memory that graphs read and write: by their copies, and through the arguments of their kernels.

use std::collections::HashMap;

use super::ranges::Range;

/// Host memory that a node, or a call that was captured into a graph, uses.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct HostUse {
    /// Handle of the node; 0 for a captured call, whose node is not known.
    pub(super) node: u64,
    /// Memory that a copy reads.
    pub(super) source: Option<Range>,
    /// Memory that a copy writes.
    pub(super) destination: Option<Range>,
    /// Words of a kernel's arguments that point to host-visible memory.
    pub(super) words: Vec<u64>,
    /// Memory that the device writes by a fill, or by a copy within the device.
    pub(super) written: Option<Range>,
}

impl HostUse {
    /// The use of a node in which the device writes a range.
    pub(super) fn writing(written: Option<Range>) -> HostUse {
        HostUse {
            written,
            ..HostUse::default()
        }
    }

    fn uses_memory(&self) -> bool {
        self.source.is_some()
            || self.destination.is_some()
            || self.written.is_some()
            || !self.words.is_empty()
    }
}

/// The uses of a graph inside of another graph: its nodes are not those that calls about the outer graph name.
fn inner(uses: Vec<HostUse>) -> impl Iterator<Item = HostUse> {
    uses.into_iter().map(|one| HostUse { node: 0, ..one })
}

/// Graphs, executable graphs, and stream captures that become graphs.
#[derive(Default)]
pub(super) struct Graphs {
    /// Numbers of stream captures by stream and by event.
    capturing: HashMap<u64, u64>,
    capturing_events: HashMap<u64, u64>,
    captures: HashMap<u64, Vec<HostUse>>,
    last_capture: u64,
    /// Graphs that the program has while they are made by captures, by capture: it may add nodes itself.
    exposed: HashMap<u64, u64>,
    /// Uses by graph and by executable graph.
    uses: HashMap<u64, Vec<HostUse>>,
    /// The graphs of nodes.
    nodes: HashMap<u64, u64>,
}

impl Graphs {
    /// Begins a capture: work that is added to the stream becomes part of a graph from then on.
    pub(super) fn capture_begins(&mut self, stream: u64) {
        self.last_capture += 1;
        self.capturing.insert(stream, self.last_capture);
    }

    /// The number of the capture of a stream.
    pub(super) fn capturing(&self, stream: u64) -> Option<u64> {
        self.capturing.get(&stream).copied()
    }

    /// The capture of a stream adds to a graph that the program has.
    pub(super) fn exposes(&mut self, stream: u64, graph: u64) {
        if let Some(capture) = self.capturing(stream) {
            self.exposed.insert(capture, graph);
        }
    }

    /// The program has queried the graph that the capture of a stream makes; its handle may be that of an older one.
    pub(super) fn found_graph(&mut self, stream: u64, graph: u64) {
        let known = self.capturing(stream).map(|one| self.exposed.get(&one));
        if graph != 0 && known == Some(None) {
            self.uses.remove(&graph);
            self.exposes(stream, graph);
        }
    }

    pub(super) fn event_recorded(&mut self, event: u64, stream: u64) {
        match self.capturing(stream) {
            Some(capture) => self.capturing_events.insert(event, capture),
            None => self.capturing_events.remove(&event),
        };
    }

    pub(super) fn stream_waits(&mut self, stream: u64, event: u64) {
        if let Some(capture) = self.capturing_events.get(&event) {
            self.capturing.insert(stream, *capture);
        }
    }

    /// Adds the use of a captured call to a capture.
    pub(super) fn captured(&mut self, capture: u64, made: HostUse) {
        let uses = self.captures.entry(capture).or_default();
        if !uses.contains(&made) {
            uses.push(made);
        }
    }

    pub(super) fn capture_ends(&mut self, stream: u64, graph: u64) {
        let Some(capture) = self.capturing(stream) else {
            return;
        };
        self.capturing.retain(|_, known| *known != capture);
        self.capturing_events.retain(|_, known| *known != capture);
        let uses = self.captures.remove(&capture).unwrap_or_default();
        if self.exposed.remove(&capture) == Some(graph) {
            self.uses.entry(graph).or_default().extend(uses)
        } else {
            drop(self.uses.insert(graph, uses))
        }
    }

    /// Notes that a graph was made; its handle may be that of an older one.
    pub(super) fn new_graph(&mut self, graph: u64) {
        self.uses.remove(&graph);
    }

    /// Notes that a node was added to a graph.
    pub(super) fn new_node(&mut self, graph: u64, made: HostUse) {
        self.nodes.insert(made.node, graph);
        if made.uses_memory() {
            self.uses.entry(graph).or_default().push(made);
        }
    }

    /// Replaces the use of a node. `graph`: the executable graph in which the node changes; 0: the graph of the node.
    pub(super) fn set_node(&mut self, graph: u64, made: HostUse) {
        let graph = match graph {
            0 => self.nodes.get(&made.node).copied().unwrap_or(0),
            graph => graph,
        };
        let uses = self.uses.entry(graph).or_default();
        uses.retain(|known| known.node != made.node || known.node == 0);
        if made.uses_memory() {
            uses.push(made);
        }
    }

    /// Adds to a capture the uses of a graph whose launch was captured.
    pub(super) fn captured_graph(&mut self, capture: u64, uses: Vec<HostUse>) {
        for one in inner(uses) {
            self.captured(capture, one);
        }
    }

    /// Adds the uses of graph `from` to graph `to`.
    pub(super) fn add_graph(&mut self, from: u64, to: u64) {
        let uses = self.uses(from).to_vec();
        self.uses.entry(to).or_default().extend(inner(uses));
    }

    /// Adds the uses of graph `from` to the graph of a node.
    pub(super) fn add_graph_of_node(&mut self, from: u64, node: u64) {
        if let Some(graph) = self.nodes.get(&node).copied() {
            self.add_graph(from, graph);
        }
    }

    /// Makes the uses of graph `to` those of `from`, and no others.
    pub(super) fn copy_graph(&mut self, from: u64, to: u64) {
        let uses = self.uses(from).to_vec();
        self.uses.insert(to, uses);
    }

    /// The uses of a graph.
    pub(super) fn uses(&self, graph: u64) -> &[HostUse] {
        self.uses.get(&graph).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(node: u64, source: u64) -> HostUse {
        HostUse {
            node,
            source: Some(Range::flat(source, 16)),
            ..HostUse::default()
        }
    }

    fn sources(graphs: &Graphs, graph: u64) -> Vec<u64> {
        let sources = graphs.uses(graph).iter().filter_map(|one| one.source);
        sources.map(|range| range.address).collect()
    }

    #[test]
    fn graph_node_with_new_parameters_uses_their_memory() {
        let mut graphs = Graphs::default();
        graphs.new_graph(1);
        for (node, source) in [(10, 1000), (11, 2000)] {
            graphs.new_node(1, copy(node, source));
        }
        graphs.copy_graph(1, 2);
        graphs.set_node(2, copy(10, 3000));
        assert_eq!(sources(&graphs, 2), [2000, 3000]);
        // Without an executable graph it is the node's own.
        graphs.set_node(0, copy(11, 4000));
        assert_eq!(sources(&graphs, 1), [1000, 4000]);
    }

    #[test]
    fn stream_capture_adds_the_memory_of_its_calls_to_the_graph() {
        let mut graphs = Graphs::default();
        graphs.capture_begins(7);
        graphs.event_recorded(70, 7);
        graphs.stream_waits(8, 70);
        let capture = graphs.capturing(8).expect("a capture");
        for source in [100, 100, 200] {
            graphs.captured(capture, copy(0, source));
        }
        graphs.capture_ends(7, 1);
        assert_eq!(graphs.capturing(8), None);
        assert_eq!(sources(&graphs, 1), [100, 200]);
        graphs.add_graph(1, 2);
        graphs.add_graph(1, 2);
        assert_eq!(sources(&graphs, 2), [100, 200, 100, 200]);
    }

    #[test]
    fn stream_capture_adds_to_a_graph_that_the_program_has() {
        let mut graphs = Graphs::default();
        graphs.new_graph(1);
        graphs.new_node(1, copy(10, 1000));
        graphs.capture_begins(7);
        graphs.exposes(7, 1);
        let capture = graphs.capturing(7).expect("a capture");
        graphs.captured(capture, copy(0, 2000));
        graphs.capture_ends(7, 1);
        assert_eq!(sources(&graphs, 1), [1000, 2000]);
        // A graph that is queried is new, though its handle was another's.
        graphs.capture_begins(7);
        graphs.found_graph(7, 1);
        graphs.new_node(1, copy(11, 3000));
        graphs.found_graph(7, 1);
        graphs.capture_ends(7, 1);
        assert_eq!(sources(&graphs, 1), [3000]);
    }
}
