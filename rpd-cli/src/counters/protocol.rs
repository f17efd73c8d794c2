//! Messages between rpd and the child process that loads the provider: one JSON document per line.

use serde::{Deserialize, Serialize};

/// A query, from rpd to the child.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Query {
    /// Load the library, then the counter definitions; the reply is [`Reply::Agents`].
    Open {
        /// Path of the SDK's library.
        library: String,
        /// Counter definitions to add to the provider's own; empty is none.
        definitions: String,
    },
    /// List the counters of the agent with this handle; the reply is [`Reply::Counters`].
    Counters {
        /// Handle of the agent: [`Agent::handle`].
        agent: u64,
    },
    /// Check which of these sets can be collected in one pass; the reply is [`Reply::Verdicts`], one for each.
    Sets {
        /// Handle of the agent: [`Agent::handle`].
        agent: u64,
        /// Sets of counters, by [`Counter::id`].
        sets: Vec<Vec<u64>>,
    },
    /// List the PC sampling configurations of an agent; the reply is [`Reply::Sampling`].
    Sampling {
        /// Handle of the agent: [`Agent::handle`].
        agent: u64,
    },
}

impl Query {
    /// Activity of the child for this query, for messages.
    pub(super) fn activity(&self) -> &'static str {
        match self {
            Query::Open { definitions, .. } if definitions.is_empty() => {
                "loading it and looking for GPUs"
            }
            Query::Open { .. } => {
                "loading it, reading the counter definitions of --extra-counters and looking for GPUs"
            }
            Query::Counters { .. } => "listing its counters",
            Query::Sets { .. } => "trying which counters go together",
            Query::Sampling { .. } => "asking for PC sampling",
        }
    }
}

/// A reply, from the child to rpd.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The provider's agents, in its order.
    Agents {
        /// Version of the provider: major, minor, patch.
        version: [u32; 3],
        /// CPUs and GPUs that the provider lists.
        agents: Vec<Agent>,
        /// Whether the provider can run a dispatch several times.
        replays: bool,
    },
    /// Counters in the provider's order.
    Counters(Vec<Counter>),
    /// One verdict per set of [`Query::Sets`], in its order.
    Verdicts(Vec<ProviderStatus>),
    /// PC sampling of an agent.
    Sampling {
        /// The provider's status. After an error there are no configurations.
        verdict: ProviderStatus,
        /// The configurations that the agent supports.
        configurations: Vec<Sampling>,
    },
    /// The query failed, with the reason.
    Failed(String),
}

/// The status that a function of the provider returned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProviderStatus {
    /// The `rocprofiler_status_t` value; 0 is success.
    pub(crate) status: u32,
    /// The provider's text for it; empty for success.
    pub(crate) text: String,
}

impl ProviderStatus {
    /// Status of any other error: of PC sampling, one of the kernel driver that has no status of its own.
    pub(crate) const FAILED: u32 = 1;
    /// The counter exists, but not on that agent.
    pub(crate) const NOT_ON_AGENT: u32 = 20;
    /// The set needs more hardware counters than there are.
    pub(crate) const TOO_MANY: u32 = 38;

    pub(crate) fn is_success(&self) -> bool {
        self.status == 0
    }

    /// Whether a single counter can be collected in one pass, or computed from parts in several.
    pub(crate) fn can_be_counted(&self) -> bool {
        self.is_success() || self.status == ProviderStatus::TOO_MANY
    }
}

/// Properties of an agent that `rpd avail` shows. Meanings and units are those of the driver's topology tree.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// The SDK's handle; valid only in the child that reported it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) handle: u64,
    /// Whether the agent is a GPU.
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
    /// Type, number and name, for messages: `GPU 0 (gfx90a)`.
    pub(crate) fn label(&self) -> String {
        let kind = if self.gpu { "GPU" } else { "CPU" };
        format!("{kind} {} ({})", self.logical_node_type_id, self.name)
    }

    /// Number among the agents of its type: the N of `device=N`.
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

/// Sizes of a grid or workgroup in three dimensions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) z: u32,
}

/// A counter of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counter {
    /// The SDK's id; valid only in the child that reported it.
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Hardware block; empty for constants and derived counters.
    pub(crate) block: String,
    /// Formula of a derived counter; empty for hardware counters.
    pub(crate) expression: String,
    /// Whether the counter is a property of the agent.
    pub(crate) constant: bool,
    /// Whether the counter is computed from others.
    pub(crate) derived: bool,
    pub(crate) dimensions: Vec<Dimension>,
}

/// A dimension of a counter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    /// Number of positions along the dimension.
    pub(crate) size: u64,
}

/// A configuration for PC sampling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sampling {
    /// Word for the method: `stochastic` or `host_trap`.
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
    fn query_activity_names_extra_counters() {
        let open = |definitions: &str| Query::Open {
            library: String::new(),
            definitions: definitions.to_owned(),
        };
        assert_eq!(open("").activity(), "loading it and looking for GPUs");
        assert!(
            open("rocprofiler-sdk: {}")
                .activity()
                .contains("--extra-counters")
        );
    }
}
