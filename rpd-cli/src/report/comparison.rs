//! Compares the counter values of several passes.
//!
//! Every pass runs the target again, so only the order relates the dispatches of two passes: the
//! n-th counted dispatch of a kernel on a GPU in one pass is matched with the n-th in another. The order of two GPUs
//! may differ from pass to pass, so that those of the first GPU are numbered before those of the second. Where a pass
//! recorded several processes, their dispatches follow one another in the order in which the processes were loaded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::Result;
use rpd_core::agent::Agent;
use rpd_core::ids::DispatchId;
use rpd_core::naming::{DEFAULT_PREFIX, Facts};
use rpd_core::options::Options;
use rpd_core::session::{Counter, CounterInstance, KernelLabels, Session};
use rpd_core::text::os_text::unescape_path;
use rpd_formats::csv::{PassRow, write_passes};
use rpd_metric::evaluate::Sample;
use rpd_metric::{Dimension, Position};

use crate::counters::derived::{self, ComputedMetric, Parts};

/// Distinct texts, numbered in the order in which they were added.
#[derive(Debug, Default)]
struct Names {
    texts: Vec<Rc<str>>,
    index: HashMap<Rc<str>, u32>,
}

impl Names {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.index.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        let text: Rc<str> = text.into();
        self.texts.push(Rc::clone(&text));
        self.index.insert(text, id);
        id
    }

    fn text(&self, id: u32) -> &str {
        self.texts.get(id as usize).map_or("", |text| text)
    }
}

/// A counted dispatch, identified by kernel, GPU and number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct DispatchKey {
    kernel: u32,
    /// Number of the GPU.
    gpu: u32,
    /// Number among the dispatches of the kernel on the GPU, from 1.
    nth: u64,
}

/// Numbers of dispatches by kernel and GPU.
type Numbers = HashMap<(u32, u32), u64>;

/// Value of a counter in a dispatch of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    at: DispatchKey,
    /// Index into the list of texts for that column.
    pass: u32,
    counter: u32,
    value: f64,
}

/// Counter values of the metrics' parts in one dispatch.
#[derive(Debug, Default)]
struct Dispatch {
    samples: HashMap<String, Vec<Sample>>,
    /// Number of the pass by the part's name.
    passes: HashMap<String, u32>,
}

/// Counter values of all passes of a command.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    computed: &'a [ComputedMetric],
    kernels: Names,
    counters: Names,
    passes: Names,
    rows: Vec<Row>,
    /// The pass that is being added, and how many dispatches of a kernel it has had on a GPU.
    current: Option<(u32, Numbers)>,
    /// The largest number of dispatches in any pass.
    most: BTreeMap<(u32, u32), u64>,
    parts: HashMap<DispatchKey, Dispatch>,
    agents: HashMap<u32, Agent>,
    path: Option<PathBuf>,
    csv_safe: bool,
}

impl<'a> Comparison<'a> {
    /// Creates an empty comparison, with the metrics to compute at the end.
    pub(crate) fn new(computed: &'a [ComputedMetric]) -> Comparison<'a> {
        Comparison {
            computed,
            kernels: Names::default(),
            counters: Names::default(),
            passes: Names::default(),
            rows: Vec::new(),
            current: None,
            most: BTreeMap::new(),
            parts: HashMap::new(),
            agents: HashMap::new(),
            path: None,
            csv_safe: false,
        }
    }

    /// Adds the counter values of one process of one pass.
    pub(super) fn add(&mut self, session: &Session, options: &Options, hostname: &str) {
        // A run that replays its dispatches is one, whose groups are passes.
        let replays = options.collector.counters.replay;
        let Some(number) = options.pass.or(replays.then_some(1)) else {
            return;
        };
        if session.counted.is_empty() {
            return;
        }
        // One file has the rows of all passes: it is protected if a single pass requests it.
        self.csv_safe |= options.csv_safe;
        // The file is named after the first process with counters.
        if self.path.is_none() {
            let facts = Facts {
                process: &session.process,
                options,
                hostname,
            };
            self.path = Some(path(&facts));
        }
        let pass = self.passes.id(&number.to_string());
        // Processes of a pass go on with its count of dispatches; a new pass begins again.
        let mut seen = match self.current.take() {
            Some((current, seen)) if current == number => seen,
            _ => Numbers::new(),
        };
        let labels = KernelLabels::new(session, options.kernel_names);
        let dispatches = &session.counted.dispatches;
        // The number of a replayed dispatch, which its later runs share.
        let mut replayed: HashMap<DispatchId, u64> = HashMap::new();
        for index in session.counted.indices() {
            let kernel = self.kernels.id(labels.counted(index));
            let agent = session.agent(dispatches.agent[index]);
            let gpu = agent.map_or(u32::MAX, |agent| {
                u32::try_from(agent.logical_node_type_id).unwrap_or(u32::MAX)
            });
            let count = seen.entry((kernel, gpu)).or_insert(0);
            let run = dispatches.replay_pass(index);
            let mut next = || {
                *count += 1;
                *count
            };
            let nth = match run {
                None => next(),
                Some(_) => *replayed
                    .entry(dispatches.dispatch[index])
                    .or_insert_with(next),
            };
            let number = run.map_or(number, |run| run.saturating_add(1));
            let pass = run.map_or(pass, |_| self.passes.id(&number.to_string()));
            let most = self.most.entry((kernel, gpu)).or_insert(0);
            *most = (*most).max(nth);
            let at = DispatchKey { kernel, gpu, nth };
            for (counter, value) in session.counted.sums(index) {
                let Some(counter) = session.counters.get(counter as usize) else {
                    continue;
                };
                self.rows.push(Row {
                    at,
                    pass,
                    counter: self.counters.id(&counter.name),
                    value,
                });
            }
            if let (Some(agent), false) = (agent, self.computed.is_empty()) {
                self.agents.entry(gpu).or_insert_with(|| agent.clone());
                self.keep_parts(session, index, at, number);
            }
        }
        self.current = Some((number, seen));
    }

    fn keep_parts(&mut self, session: &Session, index: usize, at: DispatchKey, pass: u32) {
        let computed = self.computed;
        for values in session
            .counted
            .values_of(index)
            .chunk_by(|a, b| a.counter == b.counter)
        {
            let Some(counter) = session.counters.get(values[0].counter as usize) else {
                continue;
            };
            let is_part = computed
                .iter()
                .any(|metric| metric.parts.contains(&counter.name));
            if !is_part {
                continue;
            }
            let kept = self.parts.entry(at).or_default();
            if kept.samples.contains_key(&counter.name) {
                continue;
            }
            let samples = values
                .iter()
                .map(|value| Sample {
                    position: counter
                        .instances
                        .get(value.instance as usize)
                        .map_or(Position::ORIGIN, |instance| position(counter, instance)),
                    value: value.value,
                })
                .collect();
            kept.samples.insert(counter.name.clone(), samples);
            kept.passes.insert(counter.name.clone(), pass);
        }
    }

    /// Computes the metrics that have parts in several passes.
    fn compute(&mut self) {
        for (at, dispatch) in &self.parts {
            let Some(agent) = self.agents.get(&at.gpu) else {
                continue;
            };
            for metric in self.computed {
                let formulas = metric.formulas.iter().find(|(gpu, _)| *gpu == at.gpu);
                let Some((_, formulas)) = formulas else {
                    continue;
                };
                let parts = Parts {
                    formulas,
                    agent,
                    samples: &dispatch.samples,
                };
                // A dispatch that a pass did not have or did not count has no such value.
                let Ok(value) = derived::value(&metric.name, &parts) else {
                    continue;
                };
                let passes: BTreeSet<u32> = metric
                    .parts
                    .iter()
                    .filter_map(|part| dispatch.passes.get(part).copied())
                    .collect();
                let passes: Vec<String> = passes.iter().map(u32::to_string).collect();
                self.rows.push(Row {
                    at: *at,
                    pass: self.passes.id(&passes.join("+")),
                    counter: self.counters.id(&metric.name),
                    value,
                });
            }
        }
    }

    /// Writes the file and returns its path; `None` when nothing was counted.
    pub(crate) fn write(mut self) -> Result<Option<PathBuf>> {
        let Some(path) = self.path.take() else {
            return Ok(None);
        };
        self.compute();
        let counters = &self.counters;
        self.rows.sort_by(|a, b| {
            let key = |row: &Row| (row.at, row.pass);
            key(a)
                .cmp(&key(b))
                .then_with(|| counters.text(a.counter).cmp(counters.text(b.counter)))
        });
        // A GPU's dispatches come after all that GPUs of lower numbers had in any pass.
        let mut before = HashMap::new();
        let mut sum = (None, 0);
        for ((kernel, gpu), most) in &self.most {
            if sum.0 != Some(*kernel) {
                sum = (Some(*kernel), 0);
            }
            before.insert((*kernel, *gpu), sum.1);
            sum.1 += most;
        }
        let rows = self.rows.iter().map(|row| PassRow {
            kernel: self.kernels.text(row.at.kernel),
            dispatch: before.get(&(row.at.kernel, row.at.gpu)).unwrap_or(&0) + row.at.nth,
            counter: self.counters.text(row.counter),
            value: row.value,
            pass: self.passes.text(row.pass),
        });
        Ok(write_passes(path, rows, self.csv_safe)?)
    }
}

fn position(counter: &Counter, instance: &CounterInstance) -> Position {
    let mut position = Position::ORIGIN;
    for (id, index) in &instance.positions {
        let name = counter
            .dimensions
            .iter()
            .find(|dimension| dimension.id == *id)
            .map_or("", |dimension| dimension.name.as_str());
        let dimension = Dimension::from_name(name).or_else(|| Dimension::from_id(*id));
        if let (Some(dimension), Ok(index)) = (dimension, u8::try_from(*index)) {
            position = position.with(dimension, index);
        }
    }
    position
}

/// Beside the pass directories. Only the last part of the prefix counts: directories in it are within those of the passes.
fn path(facts: &Facts<'_>) -> PathBuf {
    let options = facts.options;
    let directory = Path::new(&options.output_directory)
        .parent()
        .and_then(Path::to_str)
        .unwrap_or_default();
    let directory = unescape_path(&facts.process.cwd).join(unescape_path(&facts.expand(directory)));
    let prefix = match options.output_file.as_str() {
        "" | DEFAULT_PREFIX => String::new(),
        given => facts.expand(given),
    };
    // Every MPI rank runs its own rpd, and all of them write into the directory.
    let ranks: u64 = facts.expand("%size%").parse().unwrap_or(1);
    let named = !prefix.is_empty() && prefix != options.output_file;
    let rank = if ranks > 1 && !named {
        facts.expand("_%rank%")
    } else {
        String::new()
    };
    match prefix.rsplit('/').next().unwrap_or_default() {
        "" => directory.join(format!("passes{rank}.csv")),
        last => directory.join(unescape_path(&format!("{last}_passes{rank}.csv"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::{counter, derived as metric, gpu};
    use rpd_core::ids::{AgentHandle, CounterId, KernelId, Nanoseconds};
    use rpd_core::session::{CounterDimension, CounterValue, Process, ValueRange};

    fn options(directory: &Path, prefix: &str, pass: u32) -> Options {
        Options {
            output_directory: format!("{}/pass_{pass}", directory.display()),
            output_file: prefix.to_owned(),
            pass: Some(pass),
            ..Options::default()
        }
    }

    /// A session in which dispatches of these kernels were counted: each has two instances, with this value and the
    /// next.
    fn session(name: &str, dispatches: &[(u64, f64)]) -> Session {
        let mut session = Session {
            process: Process {
                cwd: "/".to_owned(),
                ..Process::default()
            },
            ..Session::default()
        };
        session.agents.push(Agent {
            handle: AgentHandle(7),
            wave_front_size: 64,
            ..Agent::default()
        });
        session.counters.push(Counter {
            id: CounterId(1),
            agent: AgentHandle(7),
            name: name.to_owned(),
            description: String::new(),
            block: String::new(),
            expression: String::new(),
            is_constant: false,
            is_derived: false,
            dimensions: vec![CounterDimension {
                id: 7,
                size: 2,
                name: "DIMENSION_INSTANCE".to_owned(),
            }],
            instances: (0..2)
                .map(|index| CounterInstance {
                    id: index,
                    positions: vec![(7, index)],
                })
                .collect(),
        });
        let counted = &mut session.counted;
        for (index, (kernel, value)) in (0..).zip(dispatches) {
            let table = &mut counted.dispatches;
            table.start.push(Nanoseconds(index));
            table.end.push(Nanoseconds(index + 1));
            table.kernel.push(KernelId(*kernel));
            table.agent.push(AgentHandle(7));
            table.region.push(0);
            counted.ranges.push(ValueRange {
                first: 2 * index,
                count: 2,
            });
            for (instance, add) in [(0, 0.0), (1, 1.0)] {
                counted.values.push(CounterValue {
                    counter: 0,
                    instance,
                    value: value + add,
                });
            }
        }
        session
    }

    #[test]
    fn comparison_matches_dispatches_by_kernel_and_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let gpu = gpu(vec![
            counter("HIT", &[("DIMENSION_INSTANCE", 2)]),
            counter("MISS", &[("DIMENSION_INSTANCE", 2)]),
            metric(
                "Ratio",
                "reduce(HIT,sum)/(reduce(HIT,sum)+reduce(MISS,sum))",
            ),
        ]);
        let computed = [ComputedMetric {
            name: "Ratio".to_owned(),
            parts: vec!["HIT".to_owned(), "MISS".to_owned()],
            formulas: vec![(0, Rc::new(derived::Formulas::from_gpu(&gpu)))],
        }];
        let mut comparison = Comparison::new(&computed);
        let add = |comparison: &mut Comparison<'_>, pass, session: &Session| {
            comparison.add(session, &options(directory.path(), "sub/run", pass), "host");
        };
        // Pass 1 is two processes, the second with one dispatch more of kernel 2.
        add(&mut comparison, 1, &session("HIT", &[(1, 1.0), (2, 2.0)]));
        add(&mut comparison, 1, &session("HIT", &[(2, 4.0)]));
        add(
            &mut comparison,
            2,
            &session("MISS", &[(2, 7.0), (1, 4.0), (2, 0.0), (2, 5.0)]),
        );
        let path = comparison.write().expect("written").expect("rows");
        assert_eq!(path, directory.path().join("run_passes.csv"));
        let text = std::fs::read_to_string(path).expect("a file");
        let cells: Vec<Vec<String>> = text
            .lines()
            .skip(1)
            .map(|line| {
                line.split(',')
                    .map(|cell| cell.trim_matches('"').to_owned())
                    .collect()
            })
            .collect();
        let shown: Vec<String> = cells
            .iter()
            .map(|row| {
                let value: f64 = row[3].parse().expect("a number");
                format!("{} {} {value} {}", row[1], row[2], row[4])
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1 HIT 3 1",
                "1 MISS 9 2",
                "1 Ratio 0.25 1+2",
                "1 HIT 5 1",
                "1 MISS 15 2",
                "1 Ratio 0.25 1+2",
                "2 HIT 9 1",
                "2 MISS 1 2",
                "2 Ratio 0.9 1+2",
                "3 MISS 11 2",
            ]
        );
        assert!(
            cells[0][0] != cells[3][0] && cells[3][0] == cells[9][0],
            "{text}"
        );
    }

    #[test]
    fn comparison_matches_dispatches_gpu_by_gpu() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut comparison = Comparison::new(&[]);
        let mut add = |pass, agents: &[u64]| {
            let dispatches: Vec<_> = agents.iter().map(|agent| (1, *agent as f64)).collect();
            let mut session = session("HIT", &dispatches);
            session.agents.push(Agent {
                handle: AgentHandle(8),
                logical_node_type_id: 1,
                ..Agent::default()
            });
            session.counted.dispatches.agent = agents.iter().copied().map(AgentHandle).collect();
            comparison.add(&session, &options(directory.path(), "", pass), "host");
        };
        // The GPUs alternate, only the second is counted, and the second is faster.
        add(1, &[7, 8, 7, 8]);
        add(2, &[8, 8]);
        add(3, &[8, 8, 7]);
        let path = comparison.write().expect("written").expect("rows");
        let text = std::fs::read_to_string(path).expect("a file");
        let shown: Vec<String> = text
            .lines()
            .skip(1)
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let sum: f64 = cells[3].parse().expect("a number");
                format!("{} on {} in {}", cells[1], (sum - 1.0) / 2.0, cells[4])
            })
            .collect();
        assert_eq!(
            shown,
            [
                "1 on 7 in \"1\"",
                "1 on 7 in \"3\"",
                "2 on 7 in \"1\"",
                "3 on 8 in \"1\"",
                "3 on 8 in \"2\"",
                "3 on 8 in \"3\"",
                "4 on 8 in \"1\"",
                "4 on 8 in \"2\"",
                "4 on 8 in \"3\"",
            ]
        );
    }

    #[test]
    fn comparison_file_is_beside_the_pass_directories() {
        let process = Process {
            cwd: "/here".to_owned(),
            ..Process::default()
        };
        for (directory, prefix, ranks, expected) in [
            ("/out/pass_2", DEFAULT_PREFIX, "1", "/out/passes.csv"),
            ("/out/pmc_2", "x", "1", "/out/x_passes.csv"),
            (
                "/out/pass_2",
                "deep/%hostname%",
                "1",
                "/out/node_passes.csv",
            ),
            ("%hostname%/r/pass_1", "", "1", "/here/node/r/passes.csv"),
            ("/out/pass_2", DEFAULT_PREFIX, "4", "/out/passes_3.csv"),
            ("/out/pass_2", "x", "4", "/out/x_passes_3.csv"),
            ("/out/pass_2", "x%rank%", "4", "/out/x3_passes.csv"),
        ] {
            let options = Options {
                output_directory: directory.to_owned(),
                output_file: prefix.to_owned(),
                launch_environment: [("SLURM_PROCID", "3"), ("SLURM_NTASKS", ranks)]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                ..Options::default()
            };
            let facts = Facts {
                process: &process,
                options: &options,
                hostname: "node",
            };
            assert_eq!(path(&facts), Path::new(expected), "{directory} {prefix}");
        }
    }
}
