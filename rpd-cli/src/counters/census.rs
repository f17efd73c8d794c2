//! What a provider has: its agents, their counters, and which of them go together.

use std::collections::HashMap;
use std::path::PathBuf;

use rpd_core::options::{Backend, CounterRequest, Options};

use super::inquiry::Inquiry;
use super::wire::{Agent, Answer, Counter, Question, Sampling, Verdict};
use crate::failure::Failure;
use crate::launch::{backend, environment};

/// Somebody who answers questions: the child, or a test.
pub(super) trait Ask {
    fn ask(&mut self, question: &Question) -> Result<Answer, Failure>;
    /// For an answer that has nothing to do with the question.
    fn unexpected(&self, question: &Question) -> Failure;
}

impl Ask for Inquiry {
    fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        Inquiry::ask(self, question)
    }

    fn unexpected(&self, question: &Question) -> Failure {
        Inquiry::unexpected(self, question)
    }
}

/// A GPU and its counters.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) agent: Agent,
    /// In the provider's order.
    pub(crate) counters: Vec<Counter>,
    names: HashMap<String, usize>,
}

impl Gpu {
    /// The counter of that name.
    pub(crate) fn counter(&self, name: &str) -> Option<&Counter> {
        self.names.get(name).map(|index| &self.counters[*index])
    }

    /// Whether a request is meant for this GPU.
    pub(super) fn is_meant(&self, request: &CounterRequest) -> bool {
        request.device.is_none() || request.device == self.agent.number()
    }
}

/// A provider, asked.
pub(crate) struct Census {
    ask: Box<dyn Ask>,
    /// CPUs and GPUs, in the provider's order.
    pub(crate) agents: Vec<Agent>,
    /// GPUs by their number.
    pub(crate) gpus: Vec<Gpu>,
    /// The provider's library.
    pub(crate) library: PathBuf,
    /// Why it is the simulator although nobody asked for that.
    pub(crate) fallback: Option<String>,
    // Links to the simulator may lie there.
    _spare: Option<tempfile::TempDir>,
}

impl Census {
    /// Starts asking the provider that a target with these options would run on.
    ///
    /// # Errors
    /// When there is none, or the child fails.
    pub(crate) fn open(options: &Options, suffixes: &[String]) -> Result<Census, Failure> {
        let spare = tempfile::tempdir().map_err(|error| {
            Failure::failed(format!("cannot make a temporary directory: {error}"))
        })?;
        let inherited = std::env::var_os("LD_LIBRARY_PATH");
        let provider = backend::choose(options, suffixes, inherited.as_deref(), spare.path())?;
        let environment = [
            (
                "LD_LIBRARY_PATH",
                environment::library_path(&provider, inherited.as_deref()),
            ),
            // It may be what makes the device.
            (
                "LD_PRELOAD",
                environment::preload(options, std::env::var_os("LD_PRELOAD")),
            ),
            // Without it the SDK does not even list what it could do.
            ("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "on".into()),
        ];
        let inquiry = Inquiry::start(&provider.sdk, &environment)?;
        let mut census = Census::of(Box::new(inquiry), &provider.sdk, &options.extra_counters)?;
        census.fallback = provider.fallback;
        census._spare = Some(spare);
        if options.backend == Backend::Rocm && census.gpus.is_empty() {
            return Err(Failure::failed(format!(
                "--backend rocm: {} finds no GPU: the amdgpu driver must be loaded, /dev/kfd and /dev/dri/renderD* must \
                 exist (in a container: --device /dev/kfd --device /dev/dri), and the user must be in their groups \
                 (render, video); --backend sim needs no GPU",
                provider.sdk.display()
            )));
        }
        Ok(census)
    }

    pub(super) fn of(
        mut ask: Box<dyn Ask>,
        library: &std::path::Path,
        definitions: &str,
    ) -> Result<Census, Failure> {
        let open = Question::Open {
            library: library.display().to_string(),
            definitions: definitions.to_owned(),
        };
        let Answer::Agents { agents, .. } = ask.ask(&open)? else {
            return Err(ask.unexpected(&open));
        };
        let mut gpus = Vec::new();
        for agent in agents.iter().filter(|agent| agent.gpu) {
            let question = Question::Counters {
                agent: agent.handle,
            };
            let Answer::Counters(counters) = ask.ask(&question)? else {
                return Err(ask.unexpected(&question));
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
        gpus.sort_by_key(|gpu| gpu.agent.logical_node_type_id);
        Ok(Census {
            ask,
            agents,
            gpus,
            library: library.to_owned(),
            fallback: None,
            _spare: None,
        })
    }

    /// Which sets of names GPU `gpu` (an index) can collect in one pass. Names that it does not have are left out; a
    /// set that is empty then can be collected.
    pub(crate) fn together<'a>(
        &mut self,
        gpu: usize,
        sets: impl IntoIterator<Item = Vec<&'a str>>,
    ) -> Result<Vec<Verdict>, Failure> {
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
        let question = Question::Sets {
            agent: known.agent.handle,
            sets: sets.iter().filter(|set| !set.is_empty()).cloned().collect(),
        };
        let Question::Sets { sets: asked, .. } = &question else {
            return Ok(Vec::new());
        };
        let answers = match asked.is_empty() {
            true => Vec::new(),
            false => match self.ask.ask(&question)? {
                Answer::Verdicts(verdicts) if verdicts.len() == asked.len() => verdicts,
                _ => return Err(self.ask.unexpected(&question)),
            },
        };
        let mut answers = answers.into_iter();
        Ok(sets
            .iter()
            .map(|set| match set.is_empty() {
                true => Verdict::default(),
                false => answers.next().unwrap_or_default(),
            })
            .collect())
    }

    /// PC sampling of GPU `gpu` (an index): what the provider says, and the configurations.
    pub(crate) fn sampling(&mut self, gpu: usize) -> Result<(Verdict, Vec<Sampling>), Failure> {
        let question = Question::Sampling {
            agent: self.gpus[gpu].agent.handle,
        };
        match self.ask.ask(&question)? {
            Answer::Sampling {
                verdict,
                configurations,
            } => Ok((verdict, configurations)),
            _ => Err(self.ask.unexpected(&question)),
        }
    }

    /// The GPUs of a request, as indices.
    pub(super) fn meant(&self, request: &CounterRequest) -> Vec<usize> {
        (0..self.gpus.len())
            .filter(|index| self.gpus[*index].is_meant(request))
            .collect()
    }

    /// Up to three names that look like `word`, nearest first, among the counters of some GPUs.
    pub(crate) fn near(&self, gpus: &[usize], word: &str) -> Vec<&str> {
        let mut names: Vec<&str> = gpus
            .iter()
            .flat_map(|index| self.gpus[*index].counters.iter())
            .map(|counter| counter.name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut found = Vec::new();
        while found.len() < 3
            && let Some(near) = rpd_core::near::nearest(word, names.iter().copied())
        {
            names.retain(|name| *name != near);
            found.push(near);
        }
        found
    }

    /// `GPU 0 (gfx90a), GPU 1 (gfx942)`.
    pub(crate) fn labels(&self, gpus: &[usize]) -> String {
        let labels: Vec<String> = gpus
            .iter()
            .map(|index| self.gpus[*index].agent.label())
            .collect();
        labels.join(", ")
    }
}
