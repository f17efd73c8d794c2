//! Which variables of a process are kept with its results.

use serde::{Deserialize, Serialize};

/// Beginnings of names that bear on a GPU run: runtimes, SDK, rpd, loader, MPI and job launchers.
const PREFIXES: [&str; 31] = [
    "AMD_",
    "CUDA_",
    "DEBUG_CLR",
    "FI_",
    "GOMP_",
    "GPU_",
    "HCC_",
    "HIP",
    "HSA",
    "I_MPI_",
    "KMP_",
    "KOKKOS_",
    "LD_",
    "MIOPEN_",
    "MPI",
    "MSCCL",
    "MV2_",
    "NCCL_",
    "OMPI_",
    "OMP_",
    "PALS_",
    "PBS_",
    "PMI",
    "PRTE_",
    "RCCL_",
    "ROC",
    "RPD_",
    "SLURM_",
    "TENSILE_",
    "UCX_",
    "ZES_",
];

/// Parts of names that are never relevant, whatever they begin with.
const SECRETS: [&str; 9] = [
    "AUTH",
    "COOKIE",
    "CREDENTIAL",
    "JWT",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "TOKEN",
    "TRANSPORTS",
];

/// Which variables of the target go into outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kept {
    /// Those that [bear on the run](bears_on_run).
    #[default]
    Relevant,
    /// All, secrets included.
    All,
    /// None.
    None,
}

impl Kept {
    /// Whether a variable of this name is kept.
    pub fn keeps(self, name: &str) -> bool {
        match self {
            Kept::Relevant => bears_on_run(name),
            Kept::All => true,
            Kept::None => false,
        }
    }
}

/// Whether a variable of this name bears on the run and does not look like a secret. The whole environment would carry
/// secrets into files that are shared.
pub fn bears_on_run(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !SECRETS.iter().any(|part| name.contains(part))
        && !name.ends_with("_KEY")
}

#[cfg(test)]
mod tests {
    use super::{Kept, bears_on_run};

    #[test]
    fn what_bears_on_the_run_is_kept_and_secrets_are_not() {
        for name in [
            "ROCPROF_STATS",
            "ROCR_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "HSA_XNACK",
            "LD_PRELOAD",
            "OMPI_COMM_WORLD_RANK",
            "SLURM_PROCID",
            "GPU_MAX_HW_QUEUES",
        ] {
            assert!(bears_on_run(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "HOME",
            "PATH",
            "SLURM_JWT",
            "SLURM_JWT_TOKEN",
            "HIP_API_TOKEN",
            "RPD_KEY",
            "OMPI_MCA_TRANSPORTS_KEY",
            "DATABASE_PASSWORD",
            "",
        ] {
            assert!(!bears_on_run(name), "{name}");
        }
    }

    #[test]
    fn all_and_none_mean_what_they_say() {
        assert!(Kept::All.keeps("GITHUB_TOKEN"));
        assert!(!Kept::None.keeps("ROCR_VISIBLE_DEVICES"));
        assert!(Kept::Relevant.keeps("ROCR_VISIBLE_DEVICES"));
        assert!(!Kept::Relevant.keeps("GITHUB_TOKEN"));
    }
}
