//! `rpd summary --graphs`: what graphs add up to, each and by node.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use rpd_core::compat::Compat;
use rpd_core::ids::{Nanoseconds, StringId};
use rpd_core::options::KernelNames;
use rpd_core::session::{KernelLabels, LoadOptions, Session, Window};
use rpd_formats::rocpd::read::InputFile;
use rpd_formats::table::{Cell, Column, ColumnKind};

use super::super::each_recording_of;
use super::Arguments;
use super::ready::{Files, Table, write};
use crate::failure::Failure;

/// An executable graph of a process.
type GraphKey = (u64, u32);

/// Sums of an executable graph.
#[derive(Debug, Default)]
struct GraphSums {
    launches: u64,
    /// Time of the launching calls, on the host.
    launching: u64,
    dispatches: u64,
    copies: u64,
    /// Time of dispatches and copies, on the device.
    device: u64,
}

/// Sums of a node: of dispatches or copies of one name at one place in launches of a graph.
#[derive(Debug)]
struct NodeSums {
    calls: u64,
    total: u64,
    min: u64,
    max: u64,
}

/// Sums of all graphs that were read.
#[derive(Debug, Default)]
struct Sums {
    graphs: BTreeMap<GraphKey, GraphSums>,
    nodes: BTreeMap<(GraphKey, u32, String), NodeSums>,
}

impl Sums {
    fn add(&mut self, session: &Session, names: KernelNames) {
        let pid = u64::from(session.process.pid.0);
        let launches = &session.graph_launches;
        for index in launches.indices() {
            let sums = self.graphs.entry((pid, launches.exec[index])).or_default();
            sums.launches += 1;
            sums.launching += duration(launches.start[index], launches.end[index]);
        }
        let labels = KernelLabels::new(session, names);
        let dispatches = &session.dispatches;
        if !dispatches.graph.is_empty() {
            for index in dispatches.indices() {
                let graph = dispatches.graph_of(index);
                if graph.exec != 0 {
                    let time = duration(dispatches.start[index], dispatches.end[index]);
                    let key = (pid, graph.exec);
                    self.graphs.entry(key).or_default().dispatches += 1;
                    self.add_node(key, graph.node, labels.dispatch(index), time);
                }
            }
        }
        let copies = &session.copies;
        if !copies.graph.is_empty() {
            for index in copies.indices() {
                let graph = copies.graph_of(index);
                if graph.exec != 0 {
                    let name: StringId = session.operations[copies.operation[index]].name;
                    let time = duration(copies.start[index], copies.end[index]);
                    let key = (pid, graph.exec);
                    self.graphs.entry(key).or_default().copies += 1;
                    self.add_node(key, graph.node, session.strings.get(name), time);
                }
            }
        }
    }

    fn add_node(&mut self, key: GraphKey, node: u32, name: &str, time: u64) {
        self.graphs.entry(key).or_default().device += time;
        let sums = self
            .nodes
            .entry((key, node, name.to_owned()))
            .or_insert(NodeSums {
                calls: 0,
                total: 0,
                min: u64::MAX,
                max: 0,
            });
        sums.calls += 1;
        sums.total += time;
        sums.min = sums.min.min(time);
        sums.max = sums.max.max(time);
    }

    fn tables(&self) -> [Table; 2] {
        use ColumnKind::{Name, Number, Time};
        let column = |(kind, name): (ColumnKind, &str)| Column::new(kind, name);
        let graphs = self.graphs.iter().map(|((pid, exec), sums)| {
            vec![
                (*pid).into(),
                u64::from(*exec).into(),
                sums.launches.into(),
                sums.dispatches.into(),
                sums.copies.into(),
                sums.device.into(),
                sums.launching.into(),
            ]
        });
        let nodes = self.nodes.iter().map(|(((pid, exec), node, name), sums)| {
            vec![
                (*pid).into(),
                u64::from(*exec).into(),
                u64::from(*node).into(),
                Cell::from(&**name),
                sums.calls.into(),
                sums.total.into(),
                (sums.total as f64 / sums.calls.max(1) as f64).into(),
                sums.min.into(),
                sums.max.into(),
            ]
        });
        [
            Table {
                name: "graphs".to_owned(),
                columns: [
                    (Number, "ProcessID"),
                    (Number, "Graph"),
                    (Number, "Launches"),
                    (Number, "Kernels"),
                    (Number, "Copies"),
                    (Time, "DURATION"),
                    (Time, "LAUNCHING"),
                ]
                .map(column)
                .to_vec(),
                rows: graphs.collect(),
            },
            Table {
                name: "graph_nodes".to_owned(),
                columns: [
                    (Number, "ProcessID"),
                    (Number, "Graph"),
                    (Number, "Node"),
                    (Name, "Name"),
                    (Number, "Calls"),
                    (Time, "DURATION"),
                    (Time, "AVERAGE"),
                    (Time, "MIN"),
                    (Time, "MAX"),
                ]
                .map(column)
                .to_vec(),
                rows: nodes.collect(),
            },
        ]
    }
}

/// A clock may step: a negative duration is none.
fn duration(start: Nanoseconds, end: Nanoseconds) -> u64 {
    end.0.saturating_sub(start.0)
}

/// Prints or writes the tables.
pub(super) fn run(
    given: &Arguments,
    paths: &[PathBuf],
    window: Option<&Window>,
    files: &Files,
    compat: Compat,
) -> Result<()> {
    let mut sums = Sums::default();
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    for path in paths {
        let InputFile::Database(database) = InputFile::open(path)? else {
            return Err(Failure::usage(format!(
                "summary: --graphs is for databases of rpd and ROCm, and {} is a file of RPD, which has no graphs",
                path.display()
            ))
            .into());
        };
        each_recording_of(&database, load, window, |_, session, settings| {
            sums.add(&session, given.naming.over(&settings));
            Ok(())
        })?;
    }
    if sums.graphs.is_empty() {
        return Err(Failure::failed(
            "summary: --graphs: no record belongs to a graph; record with --hip-graph-trace --kernel-trace",
        )
        .into());
    }
    write(sums.tables().into(), given, files, paths, compat)
}
