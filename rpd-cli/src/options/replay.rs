//! Options of kernel replay.

use super::choices::ReplayMode;
use super::given::Named;
use super::plan::Replay;
use super::resolve::Environment;
use super::table::Given;
use super::thread_trace;
use crate::failure::Failure;
use crate::process::environment::BETA_VARIABLE;

/// Whether dispatches have to be replayed.
pub(super) fn is_required(given: &Given) -> bool {
    given.replay_mode.value() == Some(ReplayMode::Kernel)
}

/// Resolves the options. `counts`: hardware counters are collected; `origin` is [`super::merge::Draft::origin`].
///
/// # Errors
/// The feature is not allowed, there is nothing to count, or what is requested besides cannot be done while dispatches are replayed.
pub(super) fn resolve(
    given: &Given,
    environment: &Environment,
    counts: bool,
    origin: usize,
) -> Result<Option<Replay>, Failure> {
    let mode = &given.replay_mode;
    let replay = |is_required| Replay {
        is_required,
        set: origin,
    };
    match mode.value() {
        None | Some(ReplayMode::Application) => return Ok(None),
        Some(ReplayMode::Auto) => {
            // Groups that are to take turns do.
            let is_alone = others(given, environment).is_empty()
                && !given.pid.is_given()
                && !given.pmc_groups.is_given();
            return Ok(is_alone.then(|| replay(false)));
        }
        Some(ReplayMode::Kernel) => {}
    }
    let beta = &given.kernel_replay_beta_enabled;
    if !beta.is_on() {
        return Err(mode.refused(format_args!(
            "--replay-mode kernel requires {}: it is a beta feature of the SDK",
            beta.flag()
        )));
    }
    let others = others(given, environment);
    if !others.is_empty() {
        return Err(mode.refused(format_args!(
            "--replay-mode kernel cannot be combined with {}",
            others.join(", ")
        )));
    }
    if given.pid.is_given() {
        return Err(mode.refused(
            "--replay-mode kernel cannot be combined with attach mode: memory that was allocated before is not put back",
        ));
    }
    if !counts {
        return Err(mode.refused(
            "--replay-mode kernel requires counters: add --pmc, or pmc or pmc_groups to a job",
        ));
    }
    Ok(Some(replay(true)))
}

/// What is requested that a replay excludes, in the order of the original.
fn others(given: &Given, environment: &Environment) -> Vec<String> {
    let mut found = Vec::new();
    if thread_trace::is_requested(given) {
        found.push("thread trace".to_owned());
    }
    // The variable counts with any value, as in the original.
    let samples: [&Named; 4] = [
        &given.pc_sampling_beta_enabled,
        &given.pc_sampling_unit,
        &given.pc_sampling_method,
        &given.pc_sampling_interval,
    ];
    if samples.iter().any(|option| option.is_requested())
        || environment.variables.contains_key(BETA_VARIABLE)
    {
        found.push("PC sampling".to_owned());
    }
    if given.spm_beta_enabled.is_requested() || given.spm.is_requested() {
        found.push("the streaming performance monitor".to_owned());
    }
    found
}
