//! Options about a running process to attach to.

use std::time::Duration;

use rpd_core::options::Options;

use super::given::Named;
use super::provider::needs_sdk;
use super::table::Given;
use crate::failure::Failure;

/// A process to attach to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attach {
    pub(crate) pid: u32,
    /// Time to record for; `None` until the user ends it, or the process does.
    pub(crate) duration: Option<Duration>,
    /// Whether descendants of the process are recorded, too.
    pub(crate) children: bool,
    /// Option that asks for what the collector has from the SDK alone, and what that is.
    pub(crate) needs_sdk: Option<(String, &'static str)>,
    /// Scratch memory is traced because an aggregate includes it.
    pub(crate) scratch_is_included: bool,
}

/// The process to attach to, if any. `options` are those of a pass, of which there are `passes`.
///
/// # Errors
/// Other options need a program that rpd starts.
pub(super) fn resolve(
    given: &Given,
    options: &Options,
    passes: usize,
) -> Result<Option<Attach>, Failure> {
    let Some(pid) = given.pid.value() else {
        let alone: [&Named; 3] = [
            &given.attach_duration_msec,
            &given.attach_children,
            &given.attach_sync_output,
        ];
        return match alone.into_iter().find(|option| option.is_on_command_line()) {
            Some(option) => Err(option.misused("needs a process to attach to: --attach PID")),
            None => Ok(None),
        };
    };
    if !options.command.is_empty() {
        return Err(given
            .pid
            .refused("a program cannot be started as well: leave out what follows --, or this"));
    }
    if passes > 1 {
        return Err(given.pid.refused(
            "a running program has one pass: give one group of counters, or attach again for each",
        ));
    }
    let from_the_start: [(&Named, &str); 3] = [
        (&given.kokkos_trace, "is set up when a program starts"),
        (&given.preload, "is done when a program starts"),
        (&given.sim_gpu, "is chosen when a program starts"),
    ];
    if let Some((option, why)) = from_the_start
        .into_iter()
        .find(|(option, _)| option.is_requested() && option.is_on_command_line())
    {
        return Err(option.refused(format!("{why}, and --attach starts none")));
    }
    let mut without = options.collector.clone();
    let scratch_is_included =
        without.traces.scratch_memory && given.scratch_memory_trace.is_included();
    if scratch_is_included {
        without.traces.scratch_memory = false;
    }
    Ok(Some(Attach {
        pid: u32::try_from(pid).unwrap_or(0),
        duration: given
            .attach_duration_msec
            .value()
            .and_then(|msec| u64::try_from(msec).ok())
            .map(Duration::from_millis),
        children: given.attach_children.value().unwrap_or(true),
        needs_sdk: needs_sdk(given, &without).map(|(option, what)| (option.name(), what)),
        scratch_is_included,
    }))
}
