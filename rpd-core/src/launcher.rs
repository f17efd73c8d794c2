//! Launchers of parallel programs, and the place that they give a process: its rank, and the number of ranks.

/// Place of a process among those that a launcher started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// Rank of the process, from 0; `None` for a process that no launcher numbered.
    pub rank: Option<u64>,
    /// Number of ranks; `None` where the launcher does not tell.
    pub size: Option<u64>,
    /// Name of the launcher or of its interface, such as `Slurm`; empty without a rank.
    pub launcher: String,
}

/// A launcher with its variables.
struct Launcher {
    name: &'static str,
    rank: &'static str,
    /// The number of ranks; may be empty.
    size: &'static str,
    /// A further variable that is set by this launcher; may be empty. It is asked for where `rank` is a common word.
    proof: &'static str,
}

/// Variables of the user's choice, set by `--mpi-world-rank-variable` and its companion.
const CHOSEN: [&str; 2] = ["ROCPROF_MPI_RANK_VAR", "ROCPROF_MPI_SIZE_VAR"];

/// The launchers, those first that are started by others: a batch system numbers the process that runs `mpirun`, and
/// the ranks inherit its variable.
const LAUNCHERS: [Launcher; 12] = [
    launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"),
    launcher(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "",
    ),
    launcher("MVAPICH2", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ""),
    launcher("PMI", "PMI_RANK", "PMI_SIZE", ""),
    launcher("PMIx", "PMIX_RANK", "", ""),
    launcher("PALS", "PALS_RANKID", "", ""),
    launcher("Flux", "FLUX_TASK_RANK", "FLUX_JOB_SIZE", ""),
    launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS", ""),
    launcher("PBS", "PBS_NODENUM", "PBS_O_TASKNUM", ""),
    launcher("MPI", "MPI_RANKID", "MPI_NRANKS", ""),
    launcher("MPI", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""),
    launcher("MPI", "MPI_RANK", "MPI_SIZE", ""),
];

const fn launcher(
    name: &'static str,
    rank: &'static str,
    size: &'static str,
    proof: &'static str,
) -> Launcher {
    Launcher {
        name,
        rank,
        size,
        proof,
    }
}

/// Names of all variables from which a place is read.
pub fn variables() -> impl Iterator<Item = &'static str> {
    let of_launchers = LAUNCHERS.iter().flat_map(|of| [of.rank, of.size, of.proof]);
    of_launchers.filter(|name| !name.is_empty())
}

/// Whether the variable names others, in which the user says that the place is.
pub fn is_choice(name: &str) -> bool {
    CHOSEN.contains(&name)
}

/// The place that `variable` tells, which gives the value of a variable.
pub fn place<'v>(variable: impl Fn(&str) -> Option<&'v str>) -> Place {
    let number = |name: &str| variable(name)?.trim().parse::<u64>().ok();
    // rpd also sets these where nobody chose: to what it found first, which may be the launcher that is farther away.
    let is_own = |name: &&str| !LAUNCHERS.iter().any(|of| [of.rank, of.size].contains(name));
    let chosen = |chooser: &str| number(variable(chooser).filter(is_own)?);
    let [rank, size] = CHOSEN;
    if let Some(rank) = chosen(rank) {
        return Place {
            rank: Some(rank),
            size: chosen(size),
            launcher: "MPI".to_owned(),
        };
    }
    let has = |name: &str| name.is_empty() || variable(name).is_some();
    let found = LAUNCHERS
        .iter()
        .find(|of| has(of.proof) && number(of.rank).is_some());
    let Some(found) = found else {
        return Place::default();
    };
    // PMIx tells no size, and those who start its processes mostly do.
    let size = number(found.size).or_else(|| {
        let of_others = LAUNCHERS.iter().filter(|_| found.size.is_empty());
        of_others
            .filter(|of| has(of.proof))
            .find_map(|of| number(of.size))
    });
    Place {
        rank: number(found.rank),
        size,
        launcher: found.name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Option<u64>, Option<u64>, String) {
        let place = place(|name| {
            let mut variables = variables.iter();
            variables
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        });
        (place.rank, place.size, place.launcher)
    }

    fn found(rank: u64, size: u64, name: &str) -> (Option<u64>, Option<u64>, String) {
        (Some(rank), Some(size), name.to_owned())
    }

    #[test]
    fn place_is_that_of_the_launcher_nearest_to_the_process() {
        let slurm = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "64")];
        assert_eq!(of(&slurm), found(0, 64, "Slurm"));
        let mpirun = [("OMPI_COMM_WORLD_RANK", "5"), ("OMPI_COMM_WORLD_SIZE", "8")];
        assert_eq!(of(&[slurm, mpirun].concat()), found(5, 8, "Open MPI"));
        let torchrun = [("RANK", "7"), ("WORLD_SIZE", "16"), ("LOCAL_RANK", "3")];
        assert_eq!(of(&torchrun), found(7, 16, "torchrun"));
    }

    #[test]
    fn place_without_numbers_is_unknown() {
        let unknown = (None, None, String::new());
        assert_eq!(of(&[]), unknown);
        assert_eq!(of(&[("SLURM_PROCID", "x"), ("SLURM_NTASKS", "4")]), unknown);
        assert_eq!(
            of(&[("RANK", "7"), ("WORLD_SIZE", "16")]),
            unknown,
            "two common words"
        );
    }

    #[test]
    fn place_of_pmix_has_the_size_that_another_launcher_tells() {
        let pmix = [("PMIX_RANK", "2")];
        assert_eq!(of(&pmix), (Some(2), None, "PMIx".to_owned()));
        let both = [("PMIX_RANK", "2"), ("SLURM_NTASKS", "4")];
        assert_eq!(of(&both), found(2, 4, "PMIx"));
    }

    #[test]
    fn place_is_read_from_variables_of_the_users_choice_first() {
        let variables = [
            ("OMPI_COMM_WORLD_RANK", "1"),
            ("ROCPROF_MPI_RANK_VAR", "MINE"),
            ("ROCPROF_MPI_SIZE_VAR", "MINE_OF"),
            ("MINE", "9"),
            ("MINE_OF", "10"),
        ];
        assert_eq!(of(&variables), found(9, 10, "MPI"));
    }
}
