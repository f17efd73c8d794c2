//! Replay: the provider runs a dispatch once for each group of counters, on the same input, and puts memory back in between.
//!
//! A kernel that may write memory which is not put back runs once, as the program wants it, and is counted in the first group
//! alone; a note says so, once for each kernel and reason.

use std::cell::{Cell, UnsafeCell};
use std::collections::{HashMap, HashSet};

use rocprofiler_sdk_sys::{
    rocprofiler_callback_tracing_kernel_replay_data_t, rocprofiler_context_id_t,
    rocprofiler_counter_config_id_t, rocprofiler_kernel_dispatch_info_t, rocprofiler_user_data_t,
};
use rpd_spool::kernel_name::{KernelNames, formatted};

use super::Counting;
use crate::recording::capture::{Launch, current_launch};
use crate::recording::fork::ForkHook;
use crate::recording::guard::Service;
use crate::recording::kinds::KindNames;
use crate::recording::{device_work, meta, replays, switch};
use crate::sdk::setup::Setup;
use crate::sdk::trace::{Phase, Record, Tracer};

/// Name of the kind.
const KIND: &str = "KERNEL_REPLAY";
/// Subject of notes about failures.
pub(super) const PURPOSE: &str = "replays of kernels";
/// Most notes about kernels that run once.
const MOST_NOTES: usize = 200;

static SERVICE: Service = Service::new("replays of kernels");

thread_local! {
    /// The dispatch that this thread submits, if the provider asks whether it is to be replayed.
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy)]
struct Current {
    dispatch: u64,
    /// Whether it is counted.
    is_selected: bool,
    /// Whether it was to be replayed.
    is_requested: bool,
    /// Number of runs so far.
    runs: u32,
}

/// Names of kernels, and what was noted about them.
#[derive(Default)]
struct Known {
    names: HashMap<u64, String>,
    noted: HashSet<(u64, &'static str)>,
}

struct SharedKnown(UnsafeCell<Option<Known>>);

// SAFETY: the content is only touched with the lock of [`FORK`] held.
unsafe impl Sync for SharedKnown {}

static KNOWN: SharedKnown = SharedKnown(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();

/// `None` when this very thread holds the lock: a signal handler interrupted it.
fn with<T>(act: impl FnOnce(&mut Known) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *KNOWN.0.get() }.get_or_insert_default()))
}

/// Configures the service. `None` where the provider lacks it, which is noted.
pub(super) fn configure(setup: &Setup<'_>) -> Option<rocprofiler_context_id_t> {
    let Some(kind) = setup.names.callback(KIND) else {
        meta::note(
            "no kernel is replayed, and the groups of counters take turns: this provider cannot replay kernels; \
             ROCprofiler-SDK 1.4 (ROCm 10.1) and later can",
        );
        return None;
    };
    let (Some(config), Some(pass)) = (operation(kind, "CONFIG"), operation(kind, "PASS")) else {
        super::super::setup::note_missing(KIND);
        return None;
    };
    let context = setup.context(PURPOSE)?;
    let replays = Replays { config, pass };
    setup
        .trace(context, kind, &[config, pass], replays)
        .then_some(context)
}

/// The number of the operation whose name ends with a word.
fn operation(kind: &KindNames, word: &str) -> Option<i32> {
    let mut operations = kind.operations.iter();
    let found = operations.find(|(_, name)| name.rsplit('_').next() == Some(word));
    found.map(|(number, _)| *number)
}

/// Notes the name under which a kernel was registered.
pub(super) fn registered(id: u64, name: &[u8]) {
    let name = String::from_utf8_lossy(name);
    let name = formatted(&name, KernelNames::default()).into_owned();
    with(|known| known.names.insert(id, name));
}

/// The thread, and the run from 1, in the value that comes back with the counters of a dispatch.
pub(super) fn pack(thread: u32, pass: Option<u32>) -> u64 {
    u64::from(pass.map_or(0, |pass| pass.saturating_add(1))) << 32 | u64::from(thread)
}

/// The thread and the run, from 1, of a value of [`pack`]; run 0 for a dispatch that was not replayed.
pub(super) fn unpack(value: u64) -> (u32, u16) {
    let run = u16::try_from(value >> 32).unwrap_or(u16::MAX);
    (value as u32, run)
}

/// Counters of a dispatch, and which of its runs it is; `None` when it is not counted.
pub(super) fn choose(
    counting: &Counting,
    info: &rocprofiler_kernel_dispatch_info_t,
) -> Option<(rocprofiler_counter_config_id_t, Option<u32>)> {
    let (dispatch, agent) = (info.dispatch_id, info.agent_id.handle);
    let current = CURRENT.get().filter(|current| current.dispatch == dispatch);
    let pass = current.and_then(|_| replays::pass());
    if switch::is_paused() && pass.unwrap_or(0) == 0 {
        device_work::dispatch_paused();
    }
    let is_selected = match current {
        Some(current) => current.is_selected,
        None => switch::is_on() && counting.selection.selects(info.kernel_id),
    };
    if !is_selected {
        return None;
    }
    let configs = counting.configs.of_agent(counting.functions, agent);
    if current.is_none() && configs.len() > 1 {
        note(
            info.kernel_id,
            "it is part of a graph, or was submitted together with other work",
        );
    }
    let config = *configs.get(pass.unwrap_or(0) as usize)?;
    device_work::counting_submitted(dispatch);
    Some((config, pass))
}

/// Notes, once, why a kernel runs once.
fn note(kernel: u64, why: &'static str) {
    let name = with(|known| {
        let is_new = known.noted.len() <= MOST_NOTES && known.noted.insert((kernel, why));
        is_new.then(|| {
            let name = known.names.get(&kernel).cloned();
            (name.unwrap_or_default(), known.noted.len() > MOST_NOTES)
        })
    });
    match name.flatten() {
        None => {}
        Some((_, true)) => {
            meta::note("further kernels run once and are counted in the first group alone")
        }
        Some((name, false)) => meta::note(&format!(
            "kernel {name} runs once and is counted in the first group alone: {why}"
        )),
    }
}

/// Number of runs, which was decided when the provider asked.
unsafe extern "C" fn pass_count(
    _info: rocprofiler_kernel_dispatch_info_t,
    user_data: rocprofiler_user_data_t,
) -> u64 {
    user_data.as_u64()
}

/// Numbers of the provider's operations.
struct Replays {
    config: i32,
    pass: i32,
}

impl Tracer for Replays {
    const SERVICE: &'static Service = &SERVICE;

    /// The slot holds the number of runs.
    fn record(&self, record: &Record, slot: &mut u64) {
        type Payload = rocprofiler_callback_tracing_kernel_replay_data_t;
        // SAFETY: the payload of this kind, within its callback, when it has the size.
        let payload = unsafe { record.payload.cast::<Payload>().as_mut() };
        let Some(payload) = payload.filter(|payload| payload.size >= size_of::<Payload>() as u64)
        else {
            return;
        };
        if record.operation == self.config {
            match record.phase {
                Phase::ENTER => begin(payload, slot),
                Phase::EXIT => end(&payload.dispatch_info),
                _ => {}
            }
        } else if record.operation == self.pass {
            let Some(mut current) = CURRENT.get() else {
                return;
            };
            let is_begin = record.phase == Phase::ENTER;
            current.runs += u32::from(is_begin);
            CURRENT.set(Some(current));
            let pass = u32::try_from(payload.current_pass).ok();
            replays::set_pass(pass.filter(|_| is_begin));
        }
    }
}

/// Decides whether a dispatch is counted, and how often it runs.
fn begin(payload: &mut rocprofiler_callback_tracing_kernel_replay_data_t, slot: &mut u64) {
    let info = &payload.dispatch_info;
    CURRENT.set(None);
    let Some(counting) = super::COUNTING.get() else {
        return;
    };
    let mut current = Current {
        dispatch: info.dispatch_id,
        is_selected: switch::is_on() && counting.selection.selects(info.kernel_id),
        is_requested: false,
        runs: 0,
    };
    let groups = if current.is_selected {
        let agent = info.agent_id.handle;
        counting.configs.of_agent(counting.functions, agent).len()
    } else {
        0
    };
    // A GPU with one group has nothing to run again for.
    if groups > 1 {
        match current_launch() {
            Launch::Known(None) => {
                *slot = groups as u64;
                payload.replay_pass_count = Some(pass_count);
                current.is_requested = true;
            }
            Launch::Known(Some(hole)) => note(info.kernel_id, hole.text()),
            Launch::Unknown => note(info.kernel_id, "what it may write is not known"),
        }
    }
    CURRENT.set(Some(current));
}

/// The provider has done with a dispatch.
fn end(info: &rocprofiler_kernel_dispatch_info_t) {
    let current = CURRENT
        .get()
        .filter(|current| current.dispatch == info.dispatch_id);
    if current.is_some_and(|current| current.is_requested && current.runs == 0) {
        note(
            info.kernel_id,
            "the provider declined to replay it; messages of the SDK say why",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_and_run_travel_with_a_dispatch() {
        for (pass, run) in [(None, 0), (Some(0), 1), (Some(41), 42)] {
            assert_eq!(unpack(pack(u32::MAX, pass)), (u32::MAX, run));
        }
    }

    #[test]
    fn operations_are_found_by_the_end_of_their_names() {
        let kind = KindNames {
            number: 26,
            name: KIND.into(),
            operations: [
                "NONE",
                "KERNEL_REPLAY_CONFIG",
                "ROCPROFILER_KERNEL_REPLAY_PASS",
            ]
            .into_iter()
            .zip(0..)
            .map(|(name, number)| (number, name.into()))
            .collect(),
        };
        assert_eq!(operation(&kind, "CONFIG"), Some(1));
        assert_eq!(operation(&kind, "PASS"), Some(2));
        assert_eq!(operation(&kind, "SNAPSHOT"), None);
    }
}
