//! Which environment variables go into outputs: those that bear on the run, and never what looks like a secret.

/// Begins of names that are kept.
const PREFIXES: [&str; 30] = [
    "AMD_",
    "CUDA_",
    "DEBUG_CLR",
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
    "PMIX_",
    "PMI_",
    "PRTE_",
    "RCCL_",
    "ROC",
    "RPD_",
    "SLURM_",
    "TENSILE_",
    "UCX_",
    "ZES_",
];

/// Parts of names that are never kept, whatever they begin with.
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

/// Whether the variable `name` is kept.
pub(crate) fn is_kept(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !SECRETS.iter().any(|part| name.contains(part))
        && !name.ends_with("_KEY")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_bears_on_the_run_is_kept_and_secrets_are_not() {
        for name in [
            "ROCR_VISIBLE_DEVICES",
            "HIP_VISIBLE_DEVICES",
            "HSA_XNACK",
            "ROCPROF_STATS",
            "LD_PRELOAD",
            "SLURM_PROCID",
            "OMPI_COMM_WORLD_RANK",
            "GPU_MAX_HW_QUEUES",
        ] {
            assert!(is_kept(name), "{name}");
        }
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "HOME",
            "SLURM_JWT",
            "HIP_API_TOKEN",
            "RPD_KEY",
            "OMPI_MCA_TRANSPORTS_KEY",
            "DATABASE_PASSWORD",
            "",
        ] {
            assert!(!is_kept(name), "{name}");
        }
    }
}
