//! A provider's agents and counters, and queries for the sets of counters that fit into one pass.

use std::collections::HashMap;
use std::path::PathBuf;

use rpd_core::options::{Backend, CounterRequest, Options};
use rpd_core::storage::temporary::TemporaryDirectory;

use super::protocol::{Agent, Counter, ProviderStatus, Query, Reply, Sampling};
use super::query_process::QueryProcess;
use crate::failure::Failure;
use crate::process::{backend, environment};

/// Answers queries about a provider: the child process, or tables in tests.
pub(super) trait AnswerQueries {
    /// The reply to a query; an error when the provider failed.
    fn query(&mut self, query: &Query) -> Result<Reply, Failure>;
    /// The error for a reply of another kind than the query's.
    fn unexpected(&self, query: &Query) -> Failure;
}

impl AnswerQueries for QueryProcess {
    fn query(&mut self, query: &Query) -> Result<Reply, Failure> {
        QueryProcess::send(self, query)
    }

    fn unexpected(&self, query: &Query) -> Failure {
        QueryProcess::unexpected(self, query)
    }
}

/// A GPU and its counters.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) agent: Agent,
    /// Counters of the GPU, in the provider's order.
    pub(crate) counters: Vec<Counter>,
    names: HashMap<String, usize>,
}

impl Gpu {
    /// The counter of that name.
    pub(crate) fn counter(&self, name: &str) -> Option<&Counter> {
        self.names.get(name).map(|index| &self.counters[*index])
    }

    /// Whether a request names this GPU or no GPU.
    pub(super) fn is_selected_by(&self, request: &CounterRequest) -> bool {
        request.device.is_none() || request.device == self.agent.number()
    }
}

/// The agents and counters that a provider reported.
pub(crate) struct ProviderCounters {
    queries: Box<dyn AnswerQueries>,
    /// CPUs and GPUs, in the provider's order.
    pub(crate) agents: Vec<Agent>,
    /// GPUs by their number.
    pub(crate) gpus: Vec<Gpu>,
    /// Version of the provider: major, minor, patch.
    pub(crate) version: [u32; 3],
    /// Whether the provider can run a dispatch several times.
    pub(crate) replays: bool,
    /// Path of the provider's library.
    pub(crate) library: PathBuf,
    /// Reason why the simulator was chosen although `--backend` did not name it.
    pub(crate) fallback: Option<String>,
    // Holds the links to the simulator, if any; deleted on drop.
    _links: Option<TemporaryDirectory>,
}

impl ProviderCounters {
    /// Queries the provider that a target with these options would run on.
    ///
    /// # Errors
    /// No provider was found, or the child process failed.
    pub(crate) fn open(
        options: &Options,
        suffixes: &[String],
    ) -> Result<ProviderCounters, Failure> {
        let links =
            TemporaryDirectory::new().map_err(|error| Failure::failed(error.to_string()))?;
        let inherited = std::env::var_os("LD_LIBRARY_PATH");
        let provider = backend::choose(options, suffixes, inherited.as_deref(), links.path())?;
        let mut environment = vec![
            (
                "LD_LIBRARY_PATH",
                environment::library_path(&provider, inherited.as_deref()),
            ),
            // The preloaded library may be the one that provides the device.
            (
                "LD_PRELOAD",
                environment::preload(options, std::env::var_os("LD_PRELOAD")),
            ),
            // Without it the SDK does not list its PC sampling configurations.
            ("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "on".into()),
        ];
        if let Some(gpu) = &options.sim_gpu {
            environment.push((environment::SIM_GPU_VARIABLE, gpu.into()));
        }
        let process = QueryProcess::start(&provider.sdk, &environment)?;
        let mut counters = ProviderCounters::from_queries(
            Box::new(process),
            &provider.sdk,
            &options.extra_counters,
        )?;
        counters.fallback = provider.fallback;
        counters._links = Some(links);
        if options.backend == Backend::Rocm && counters.gpus.is_empty() {
            return Err(Failure::failed(format!(
                "--backend rocm: {} finds no GPU: the amdgpu driver must be loaded, /dev/kfd and /dev/dri/renderD* must \
                 exist (in a container: --device /dev/kfd --device /dev/dri), and the user must be in their groups \
                 (render, video); --backend sim needs no GPU",
                provider.sdk.display()
            )));
        }
        Ok(counters)
    }

    pub(super) fn from_queries(
        mut queries: Box<dyn AnswerQueries>,
        library: &std::path::Path,
        definitions: &str,
    ) -> Result<ProviderCounters, Failure> {
        let open = Query::Open {
            library: library.display().to_string(),
            definitions: definitions.to_owned(),
        };
        let Reply::Agents {
            agents,
            version,
            replays,
        } = queries.query(&open)?
        else {
            return Err(queries.unexpected(&open));
        };
        let mut gpus = Vec::new();
        for agent in agents.iter().filter(|agent| agent.gpu) {
            let query = Query::Counters {
                agent: agent.handle,
            };
            let Reply::Counters(counters) = queries.query(&query)? else {
                return Err(queries.unexpected(&query));
            };
            let names = counters
                .iter()
                .enumerate()
                .map(|(index, counter)| (counter.name.clone(), index))
                .collect();
            gpus.push(Gpu {
                agent: agent.clone(),
                counters,
                names,
            });
        }
        // Options name GPUs by this number.
        gpus.sort_by_key(|gpu| gpu.agent.logical_node_type_id);
        Ok(ProviderCounters {
            queries,
            agents,
            gpus,
            version,
            replays,
            library: library.to_owned(),
            fallback: None,
            _links: None,
        })
    }

    /// Whether each set of counter names can be collected in one pass on the GPU with index `gpu`. Names that the GPU
    /// does not have are left out; an empty set can be collected.
    pub(crate) fn check_sets<'a>(
        &mut self,
        gpu: usize,
        sets: impl IntoIterator<Item = Vec<&'a str>>,
    ) -> Result<Vec<ProviderStatus>, Failure> {
        let known = &self.gpus[gpu];
        let sets: Vec<Vec<u64>> = sets
            .into_iter()
            .map(|set| {
                set.iter()
                    .filter_map(|name| known.counter(name))
                    .map(|counter| counter.id)
                    .collect()
            })
            .collect();
        let query = Query::Sets {
            agent: known.agent.handle,
            sets: sets.iter().filter(|set| !set.is_empty()).cloned().collect(),
        };
        let Query::Sets { sets: asked, .. } = &query else {
            return Ok(Vec::new());
        };
        // Verdicts answer the sets by position: a reply with another number of them answers nothing.
        let answers = if asked.is_empty() {
            Vec::new()
        } else {
            match self.queries.query(&query)? {
                Reply::Verdicts(verdicts) if verdicts.len() == asked.len() => verdicts,
                _ => return Err(self.queries.unexpected(&query)),
            }
        };
        let mut answers = answers.into_iter();
        Ok(sets
            .iter()
            .map(|set| {
                if set.is_empty() {
                    ProviderStatus::default()
                } else {
                    answers.next().unwrap_or_default()
                }
            })
            .collect())
    }

    /// PC sampling on the GPU with index `gpu`: the provider's status, and the configurations.
    pub(crate) fn sampling(
        &mut self,
        gpu: usize,
    ) -> Result<(ProviderStatus, Vec<Sampling>), Failure> {
        let query = Query::Sampling {
            agent: self.gpus[gpu].agent.handle,
        };
        match self.queries.query(&query)? {
            Reply::Sampling {
                verdict,
                configurations,
            } => Ok((verdict, configurations)),
            _ => Err(self.queries.unexpected(&query)),
        }
    }

    /// Indices of the GPUs that a request selects.
    pub(super) fn gpus_of(&self, request: &CounterRequest) -> Vec<usize> {
        (0..self.gpus.len())
            .filter(|index| self.gpus[*index].is_selected_by(request))
            .collect()
    }

    /// Up to three counter names of the GPUs that are spelled like `word`, most similar first.
    pub(crate) fn similar_names(&self, gpus: &[usize], word: &str) -> Vec<&str> {
        let mut names: Vec<&str> = gpus
            .iter()
            .flat_map(|index| self.gpus[*index].counters.iter())
            .map(|counter| counter.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut found = Vec::new();
        while found.len() < 3
            && let Some(near) = rpd_core::text::near::nearest(word, names.iter().copied())
        {
            names.retain(|name| *name != near);
            found.push(near);
        }
        found
    }

    /// The GPUs with number and name, for messages: `GPU 0 (gfx90a), GPU 1 (gfx942)`.
    pub(crate) fn labels(&self, gpus: &[usize]) -> String {
        let labels: Vec<String> = gpus
            .iter()
            .map(|index| self.gpus[*index].agent.label())
            .collect();
        labels.join(", ")
    }
}
