//! MPI: which rank this is, and whether it is profiled.

use super::given::Setting;
use super::resolve::Environment;
use super::table::Given;
use crate::failure::Failure;

/// Variables with rank and number of ranks, in the order in which they are looked for.
const PAIRS: [(&str, &str); 8] = [
    ("PBS_NODENUM", "PBS_O_TASKNUM"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("PMI_RANK", "PMI_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MPI_RANKID", "MPI_NRANKS"),
    ("MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("MPI_RANK", "MPI_SIZE"),
];

/// Facts about MPI ranks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ranks {
    /// Why this rank is not profiled, if it is not.
    pub(super) unprofiled: Option<String>,
    /// Variables in which placeholders of output names find rank and size.
    pub(super) naming: Vec<(String, String)>,
    /// Number of ranks that are profiled; set in the one rank that reports it.
    pub(super) reported_count: Option<i64>,
}

/// Reads the variables of the launcher. A process without a known rank is profiled.
pub(super) fn resolve(given: &Given, environment: &Environment) -> Result<Ranks, Failure> {
    let (rank_option, size_option) = (
        &given.mpi_world_rank_variable,
        &given.mpi_world_size_variable,
    );
    let chosen = match (rank_option.text(), size_option.text()) {
        (Some(rank), Some(size)) => Some((rank, size)),
        (None, None) => None,
        (rank, _) => {
            let one = if rank.is_some() {
                rank_option
            } else {
                size_option
            };
            return Err(one.refused(format_args!(
                "{} and {} are both needed",
                rank_option.flag(),
                size_option.flag()
            )));
        }
    };
    let has = |name: &str| environment.variables.contains_key(name);
    let Some((rank_variable, size_variable)) = chosen.or_else(|| {
        PAIRS
            .into_iter()
            .find(|(rank, size)| has(rank) && has(size))
    }) else {
        // Still, a list that cannot be read is not passed over.
        listed(&given.profile_mpi_ranks)?;
        return Ok(Ranks::default());
    };
    let number = |name: &str| -> Result<Option<i64>, Failure> {
        let Some(text) = environment.variables.get(name) else {
            return Ok(None);
        };
        let number = text.trim().parse().map_err(|_| {
            Failure::failed(format!(
                "{name}: '{text}' is not an integer (set in the environment)"
            ))
        })?;
        Ok(Some(number))
    };
    let (rank, size) = (number(rank_variable)?, number(size_variable)?);
    let out_of_range = |name: &str, value: i64, lowest: i64| {
        Failure::failed(format!(
            "{name}: {value} is out of range: it must be at least {lowest}"
        ))
    };
    if let Some(size) = size.filter(|size| *size < 1) {
        return Err(out_of_range(size_variable, size, 1));
    }
    if let Some(rank) = rank.filter(|rank| *rank < 0) {
        return Err(out_of_range(rank_variable, rank, 0));
    }
    let list = listed(&given.profile_mpi_ranks)?;
    if let (Some(size), Some(list)) = (size, &list)
        && let Some(highest) = list.iter().map(|range| range.1).find(|last| *last >= size)
    {
        return Err(given.profile_mpi_ranks.refused(format_args!(
            "rank {highest} is out of range: there are {size} ranks, 0 to {}",
            size - 1
        )));
    }
    let ranges = match (&list, size) {
        (Some(list), _) => list.clone(),
        (None, Some(size)) => vec![(0, size - 1)],
        (None, None) => Vec::new(),
    };
    let reported_count = ranges
        .iter()
        .map(|(first, _)| *first)
        .min()
        .filter(|first| rank == Some(*first))
        .map(|_| ranges.iter().map(|(first, last)| last - first + 1).sum());
    let unprofiled = match (rank, list) {
        (Some(rank), Some(list))
            if !list
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&rank)) =>
        {
            Some(format!(
                "rank {rank} is not in {}",
                given.profile_mpi_ranks.text().unwrap_or_default().trim()
            ))
        }
        _ => None,
    };
    Ok(Ranks {
        unprofiled,
        naming: naming(rank_variable, size_variable, environment),
        reported_count,
    })
}

fn naming(rank: &str, size: &str, environment: &Environment) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for (chooser, name) in [
        ("ROCPROF_MPI_RANK_VAR", rank),
        ("ROCPROF_MPI_SIZE_VAR", size),
    ] {
        variables.push((chooser.to_owned(), name.to_owned()));
        if let Some(value) = environment.variables.get(name) {
            variables.push((name.to_owned(), value.clone()));
        }
    }
    variables
}

/// The ranks to profile, as ranges with both ends; `None` is all.
fn listed(option: &Setting<String>) -> Result<Option<Vec<(i64, i64)>>, Failure> {
    let Some(text) = option.text().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let number = |text: &str| -> Option<i64> {
        let text = text.trim();
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    text.split(',')
        .map(|item| {
            let item = item.trim();
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            match (number(first), number(last)) {
                (Some(first), Some(last)) if first > last => {
                    Err(option.refused(format_args!("'{item}': start > end")))
                }
                (Some(first), Some(last)) => Ok((first, last)),
                _ => Err(option.refused(format_args!(
                    "'{item}' is neither a rank nor a range such as 0-3"
                ))),
            }
        })
        .collect::<Result<_, _>>()
        .map(Some)
}
