//! Which variables of a process are worth keeping with its results.

/// Beginnings of names that bear on a GPU run: runtimes, SDK, rpd, loader, MPI and job launchers.
const PREFIXES: [&str; 24] = [
    "ROC",
    "HIP_",
    "HSA_",
    "HSAKMT_",
    "AMD_",
    "GPU_",
    "RPD_",
    "LD_",
    "MPI",
    "OMPI_",
    "PMI",
    "PMIX_",
    "MV2_",
    "MPICH_",
    "I_MPI_",
    "SLURM_",
    "PBS_",
    "RCCL_",
    "NCCL_",
    "KOKKOS_",
    "OMP_",
    "UCX_",
    "CUDA_VISIBLE_",
    "FI_",
];

/// Whether a variable of this name is kept. The whole environment would carry secrets into files that are shared.
pub fn bears_on_run(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !["TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "_KEY"]
            .iter()
            .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::bears_on_run;

    #[test]
    fn runtime_variables_are_kept_and_secrets_are_not() {
        for kept in [
            "ROCPROF_STATS",
            "ROCR_VISIBLE_DEVICES",
            "LD_PRELOAD",
            "OMPI_COMM_WORLD_RANK",
            "SLURM_PROCID",
        ] {
            assert!(bears_on_run(kept), "{kept}");
        }
        for left_out in [
            "HOME",
            "AWS_SECRET_ACCESS_KEY",
            "SLURM_JWT_TOKEN",
            "PATH",
            "",
        ] {
            assert!(!bears_on_run(left_out), "{left_out}");
        }
    }
}
