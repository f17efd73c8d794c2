//! What the user asked for, resolved: one value per pass that the collector, the writers, `--output-config`,
//! `--echo` and the tests see.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The trace kinds that can be switched on one by one. All false means nothing is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Traces {
    /// Functions named `hip*`.
    pub hip_runtime: bool,
    /// Functions named `__hip*`.
    pub hip_compiler: bool,
    /// Functions named `hsa_*`.
    pub hsa_core: bool,
    /// Functions named `hsa_amd_*`.
    pub hsa_amd: bool,
    /// Functions named `hsa_ext_image_*`.
    pub hsa_image: bool,
    /// Functions named `hsa_ext_program_*`.
    pub hsa_finalizer: bool,
    /// ROCTx.
    pub marker: bool,
    /// Kernel dispatches.
    pub kernel: bool,
    /// Memory copies.
    pub memory_copy: bool,
    /// Allocations and frees.
    pub memory_allocation: bool,
    /// Scratch operations.
    pub scratch_memory: bool,
    /// RCCL calls.
    pub rccl: bool,
    /// rocDecode calls.
    pub rocdecode: bool,
    /// rocJPEG calls.
    pub rocjpeg: bool,
}

impl Traces {
    /// Whether anything is to be traced.
    pub fn any(&self) -> bool {
        *self != Traces::default()
    }
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Comma-separated values, one file per domain.
    Csv,
    /// One JSON document.
    Json,
    /// Perfetto protobuf trace.
    Pftrace,
    /// OTF2 archive.
    Otf2,
    /// SQLite database.
    Rocpd,
}

/// How agents are written in CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentIndex {
    /// `Agent N`, N the topology node.
    Absolute,
    /// `Agent N`, N counting the visible agents.
    #[default]
    Relative,
    /// `CPU N` or `GPU N`, counting per type.
    TypeRelative,
}

/// How kernel names are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelNames {
    /// As registered, `.kd` included.
    pub mangled: bool,
    /// The bare function name; wins over `mangled`.
    pub truncate: bool,
    /// The innermost open ROCTx push range of the submitting thread names the kernel.
    pub rename: bool,
}

/// Which provider the target runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The ROCm installation when there is a device and an SDK, the simulator otherwise.
    #[default]
    Auto,
    /// The ROCm installation.
    Rocm,
    /// The simulator.
    Sim,
}

/// What the collector in the target is told. Small and text-encodable: it travels in [`crate::spool::COLLECT_VARIABLE`]
/// as `key=value` pairs joined by `,`, so that the target needs no JSON reader.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CollectorOptions {
    /// What to trace.
    pub traces: Traces,
    /// Record arguments of HIP calls.
    pub hip_args: bool,
    /// Record arguments of HSA, marker, RCCL, rocDecode and rocJPEG calls too.
    pub annotate_args: bool,
    /// Track regions that rename kernels.
    pub kernel_rename: bool,
    /// Track HIP streams (off with `--group-by-queue`).
    pub streams: bool,
    /// Install no handlers in the target for signals that end it.
    pub disable_signal_handlers: bool,
    /// Offer the Kokkos tools entry points.
    pub kokkos: bool,
}

/// Everything that was asked for, for one pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// For the collector.
    pub collector: CollectorOptions,
    /// Formats, in the order given, without repeats.
    pub formats: Vec<Format>,
    /// Output directory with placeholders unresolved; absolute unless it starts with a placeholder.
    pub output_directory: String,
    /// Output prefix with placeholders unresolved.
    pub output_file: String,
    /// Write `<prefix>_config.json`.
    pub output_config: bool,
    /// Statistics files and tables.
    pub stats: bool,
    /// Kernel names.
    pub kernel_names: KernelNames,
    /// Agent names.
    pub agent_index: AgentIndex,
    /// Show dispatches and copies by queue, not by stream.
    pub group_by_queue: bool,
    /// Bytes of records below which outputs are not written; 0 writes always.
    pub minimum_output_bytes: u64,
    /// Provider.
    pub backend: Backend,
    /// Root of the ROCm installation, when given.
    pub rocm_root: Option<PathBuf>,
    /// Libraries to preload in front of what is inherited.
    pub preload: Vec<PathBuf>,
    /// Number of this pass, from 1; `None` for a single run without a pass directory.
    pub pass: Option<u32>,
    /// The target and its arguments.
    pub command: Vec<String>,
    /// Variables of the front end that bear on names of outputs (MPI, SLURM, date formats).
    pub launch_environment: BTreeMap<String, String>,
}
