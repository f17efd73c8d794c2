//! What rpd and its short-lived child say to one another about a provider: one JSON document per line.

use serde::{Deserialize, Serialize};

/// A question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// Load the library and, first of all, the definitions; answered with [`Answer::Agents`].
    Open {
        /// The SDK's library.
        library: String,
        /// Counter definitions to add to the provider's own; empty is none.
        definitions: String,
    },
    /// The counters of the agent with this handle; answered with [`Answer::Counters`].
    Counters {
        /// [`Agent::handle`].
        agent: u64,
    },
    /// Which of these sets can be collected in one pass; answered with [`Answer::Verdicts`], one for each.
    Sets {
        /// [`Agent::handle`].
        agent: u64,
        /// Sets of [`Counter::id`].
        sets: Vec<Vec<u64>>,
    },
    /// What PC sampling an agent offers; answered with [`Answer::Sampling`].
    Sampling {
        /// [`Agent::handle`].
        agent: u64,
    },
}

impl Question {
    /// What is being done meanwhile, for messages.
    pub(super) fn doing(&self) -> &'static str {
        match self {
            Question::Open { definitions, .. } if definitions.is_empty() => {
                "loading it and looking for GPUs"
            }
            Question::Open { .. } => {
                "loading it, reading the counter definitions of --extra-counters and looking for GPUs"
            }
            Question::Counters { .. } => "listing its counters",
            Question::Sets { .. } => "trying which counters go together",
            Question::Sampling { .. } => "asking for PC sampling",
        }
    }
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The provider's agents, in its order.
    Agents {
        /// The provider's version.
        version: [u32; 3],
        /// All of them.
        agents: Vec<Agent>,
    },
    /// Counters in the provider's order.
    Counters(Vec<Counter>),
    /// One verdict for each set.
    Verdicts(Vec<Verdict>),
    /// PC sampling.
    Sampling {
        /// What the provider said; a refusal comes with no configurations.
        verdict: Verdict,
        /// What can be chosen from.
        configurations: Vec<Sampling>,
    },
    /// It could not be answered.
    Failed(String),
}

/// What a provider's function returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Verdict {
    /// 0 is success.
    pub(crate) status: u32,
    /// The provider's text for it; empty for success.
    pub(crate) text: String,
}

impl Verdict {
    /// The counter is known, but not on that agent.
    pub(crate) const NOT_ON_AGENT: u32 = 20;
    /// The set needs more hardware counters than there are.
    pub(crate) const TOO_MANY: u32 = 38;

    pub(crate) fn is_success(&self) -> bool {
        self.status == 0
    }

    /// Of a single counter: whether it can be counted, if only from parts in several passes.
    pub(crate) fn can_be_counted(&self) -> bool {
        self.is_success() || self.status == Verdict::TOO_MANY
    }
}

/// An agent, as far as people ask for it. Meanings and units are those of the driver's topology tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// Handle, good for this child only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) handle: u64,
    /// Whether it is a GPU.
    pub(crate) gpu: bool,
    pub(crate) cpu_cores_count: u32,
    pub(crate) simd_count: u32,
    pub(crate) max_waves_per_simd: u32,
    pub(crate) runtime_visibility: Visibility,
    pub(crate) wave_front_size: u32,
    pub(crate) num_xcc: u32,
    pub(crate) cu_count: u32,
    pub(crate) array_count: u32,
    pub(crate) num_shader_banks: u32,
    pub(crate) simd_arrays_per_engine: u32,
    pub(crate) cu_per_simd_array: u32,
    pub(crate) simd_per_cu: u32,
    pub(crate) gfx_target_version: u32,
    pub(crate) max_waves_per_cu: u32,
    pub(crate) gpu_id: u64,
    pub(crate) workgroup_max_dim: Extent,
    pub(crate) grid_max_dim: Extent,
    pub(crate) name: String,
    pub(crate) vendor_name: String,
    pub(crate) product_name: String,
    pub(crate) model_name: String,
    pub(crate) node_id: u32,
    pub(crate) logical_node_id: i32,
    pub(crate) logical_node_type_id: i32,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Agent {
    /// `GPU 0 (gfx90a)`.
    pub(crate) fn label(&self) -> String {
        let kind = if self.gpu { "GPU" } else { "CPU" };
        format!("{kind} {} ({})", self.logical_node_type_id, self.name)
    }

    /// Its number among the agents of its type, as `device=N` means it.
    pub(crate) fn number(&self) -> Option<u32> {
        u32::try_from(self.logical_node_type_id).ok()
    }
}

/// Runtimes that can use an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Visibility {
    pub(crate) hsa: u32,
    pub(crate) hip: u32,
    pub(crate) rccl: u32,
    pub(crate) rocdecode: u32,
}

/// Three extents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// A counter of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counter {
    /// Id, good for this child only.
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Hardware block; empty for what is not counted by hardware.
    pub(crate) block: String,
    /// How it is computed; empty for what the hardware counts.
    pub(crate) expression: String,
    /// A property of the agent.
    pub(crate) constant: bool,
    /// Computed from others.
    pub(crate) derived: bool,
    pub(crate) dimensions: Vec<Dimension>,
}

/// A dimension of a counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    /// Positions along it.
    pub(crate) size: u64,
}

/// A way to sample program counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sampling {
    /// `stochastic` or `host_trap`.
    pub(crate) method: String,
    /// `instructions`, `cycle` or `time`.
    pub(crate) unit: String,
    pub(crate) min_interval: u64,
    pub(crate) max_interval: u64,
    /// The interval must be a power of two.
    pub(crate) power_of_two: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_definitions_is_named() {
        let open = |definitions: &str| Question::Open {
            library: String::new(),
            definitions: definitions.to_owned(),
        };
        assert_eq!(open("").doing(), "loading it and looking for GPUs");
        assert!(
            open("rocprofiler-sdk: {}")
                .doing()
                .contains("--extra-counters")
        );
    }
}
