//! Assignment of hooks to the slots of a runtime's tables.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use rpd_spool::options::Traces;

use super::calls::{Api, ApiSlot, Operation};
use super::hooks::{self, Hook};
use super::wrappers::functions::Below;
use super::{
    agents, allocations, borrowed, clock, code_objects, copies, dispatch, doorbells, graphs,
    markers, shutdown, streams, submissions, wrappers,
};
use crate::captured;
use crate::names::Catalogue;
use crate::recording::arguments;
use crate::recording::stacks::Selection;
use crate::recording::{meta, process::Process};
use crate::tables::{Code, Slot, flat, versioned};

/// A table that this build has wrappers for.
struct WrappedTable {
    kind: &'static str,
    api: &'static ApiSlot,
    below: &'static [Below],
    wrappers: &'static [Code],
}

macro_rules! tables {
    ($($kind:ident),* $(,)?) => {
        [$(WrappedTable {
            kind: stringify!($kind),
            api: &wrappers::api::$kind,
            below: &wrappers::functions::$kind,
            wrappers: &wrappers::$kind,
        }),*]
    };
}

static TABLES: [WrappedTable; 12] = tables! {
    HIP_RUNTIME_API, HIP_COMPILER_API, HSA_CORE_API, HSA_AMD_EXT_API, HSA_IMAGE_EXT_API, HSA_FINALIZE_EXT_API,
    MARKER_CORE_API, MARKER_CONTROL_API, MARKER_NAME_API, RCCL_API, ROCDECODE_API, ROCJPEG_API,
};

/// Whether calls of a kind are recorded. ROCTx calls are, by [`markers`].
fn is_recorded(traces: &Traces, kind: &str) -> bool {
    match kind {
        "HIP_RUNTIME_API" => traces.hip_runtime,
        "HIP_COMPILER_API" => traces.hip_compiler,
        "HSA_CORE_API" => traces.hsa_core,
        "HSA_AMD_EXT_API" => traces.hsa_amd,
        "HSA_IMAGE_EXT_API" => traces.hsa_image,
        "HSA_FINALIZE_EXT_API" => traces.hsa_finalizer,
        "RCCL_API" => traces.rccl,
        "ROCDECODE_API" => traces.rocdecode,
        "ROCJPEG_API" => traces.rocjpeg,
        _ => false,
    }
}

/// Sets the actions of the wrappers of every table.
pub(super) fn configure(process: &Process, names: &Catalogue) {
    let options = &process.options;
    // Without device work nobody needs the stream of a call, and following streams costs time at each.
    let work = {
        let traces = &options.traces;
        traces.kernel || traces.memory_copy || traces.memory_allocation
    };
    // Registered before code is loaded, as handles of a parent's code objects must not reach its children.
    code_objects::FORK.register();
    for table in &TABLES {
        let Some(kind) = names.kind(table.kind) else {
            continue;
        };
        let recorded = is_recorded(&options.traces, table.kind);
        let with_arguments = recorded
            && match table.kind {
                "HIP_RUNTIME_API" | "HIP_COMPILER_API" => options.hip_args,
                _ => options.annotate_args,
            };
        let layouts = arguments::of_kind(table.kind);
        let follows_streams = options.streams && work && table.kind == "HIP_RUNTIME_API";
        let operations = kind.operations.iter().enumerate();
        let operations = operations.map(|(slot, (_, name))| Operation {
            recorded,
            arguments: if with_arguments {
                arguments::find(layouts, name)
                    .map(|layout| layout.with_results(options.argument_results))
            } else {
                None
            },
            stream: if follows_streams {
                streams::of_operation(slot)
            } else {
                None
            },
        });
        table.api.set(Api {
            kind: kind.number as u16,
            operations: operations.collect(),
            stacks: Selection::from_options(&options.stacks, &kind.operations),
        });
    }
    if let Some(kind) = names.kind("MEMORY_ALLOCATION") {
        allocations::configure(Selection::from_options(&options.stacks, &kind.operations));
    }
    markers::configure(options, names);
}

/// The sub-tables of an HSA table, by kind: their places in it, after its version of two words.
const HSA: [(&str, usize); 4] = [
    ("HSA_CORE_API", 2),
    ("HSA_AMD_EXT_API", 3),
    ("HSA_FINALIZE_EXT_API", 4),
    ("HSA_IMAGE_EXT_API", 5),
];

/// Major versions of the sub-tables of HSA that this build supports.
const HSA_MAJOR: u32 = 2;

/// Kinds of the tables that a runtime registers under a name.
fn kinds(name: &str) -> &'static [&'static str] {
    match name {
        "hip" => &["HIP_RUNTIME_API"],
        "hip_compiler" => &["HIP_COMPILER_API"],
        "roctx" => &["MARKER_CORE_API", "MARKER_CONTROL_API", "MARKER_NAME_API"],
        "rccl" => &["RCCL_API"],
        "rocdecode" => &["ROCDECODE_API"],
        "rocjpeg" => &["ROCJPEG_API"],
        _ => &[],
    }
}

/// Whether this build supports the tables that a runtime registers, also when they have more functions at their end.
///
/// # Safety
///
/// `tables` are those of a runtime that registers under `name`.
pub(super) unsafe fn are_known(name: &str, tables: &[*mut c_void]) -> bool {
    if name == "hsa" {
        // SAFETY: as this function demands.
        return unsafe { hsa_tables(tables) }.is_some();
    }
    let kinds = kinds(name);
    !kinds.is_empty() && tables.len() >= kinds.len()
}

/// Whether this build has wrappers for every function of the tables that a runtime registers.
///
/// # Safety
///
/// As for [`are_known`]; the tables live until the process ends.
pub(super) unsafe fn are_complete(name: &str, tables: &[*mut c_void]) -> bool {
    // SAFETY: as this function demands.
    if !unsafe { are_known(name, tables) } {
        return false;
    }
    if name == "hsa" {
        // SAFETY: as this function demands.
        let tables = unsafe { hsa_tables(tables) };
        return tables.is_some_and(|tables| {
            let mut tables = tables.iter();
            tables.all(|(kind, slots)| unknown(kind, slots) == 0)
        });
    }
    let mut tables = kinds(name).iter().zip(tables);
    // SAFETY: as this function demands.
    tables.all(|(kind, table)| unknown(kind, unsafe { flat(*table) }) == 0)
}

/// Number of functions at a table's end that this build has no wrappers for.
fn unknown(kind: &str, slots: &[Slot]) -> usize {
    let known = find(kind).map_or(0, |table| table.wrappers.len());
    let untraced = match kind {
        "HSA_IMAGE_EXT_API" => IMAGE_UNTRACED,
        _ => 0,
    };
    slots.len().saturating_sub(known + untraced)
}

/// The sub-tables of HSA.
///
/// # Safety
///
/// `tables` are those of an HSA runtime.
unsafe fn hsa_tables(tables: &[*mut c_void]) -> Option<[(&'static str, &'static [Slot]); 4]> {
    let container = tables.first().filter(|table| !table.is_null())?;
    let container = container.cast::<*mut c_void>();
    let major = |place: usize| {
        // SAFETY: as this function demands; sub-tables begin with their major version.
        unsafe {
            let table = *container.add(place);
            if table.is_null() {
                None
            } else {
                Some(table.cast::<u32>().read())
            }
        }
    };
    // The extensions may be absent: their tables are empty then.
    let known = |place: usize| major(place) == Some(HSA_MAJOR);
    if !known(2) || !known(3) {
        return None;
    }
    Some(HSA.map(|(kind, place)| {
        let slots = if known(place) {
            // SAFETY: as this function demands.
            unsafe { versioned(*container.add(place)) }
        } else {
            &[]
        };
        (kind, slots)
    }))
}

/// The tables of one kind each of a runtime, with the kinds: none where this build does not support them.
///
/// # Safety
///
/// `tables` are what [`are_known`] demands, and live until the process ends.
unsafe fn sub_tables(name: &str, tables: &[*mut c_void]) -> Vec<KnownTable> {
    if name == "hsa" {
        // SAFETY: as this function demands.
        let tables = unsafe { hsa_tables(tables) };
        return tables.into_iter().flatten().collect();
    }
    let kinds = kinds(name).iter().zip(tables);
    // SAFETY: as this function demands.
    kinds
        .map(|(kind, table)| (*kind, unsafe { flat(*table) }))
        .collect()
}

/// A table of a runtime: its kind and its slots.
pub(super) type KnownTable = (&'static str, &'static [Slot]);

/// A slot that has a function of ours.
#[derive(Debug)]
pub(super) struct Patched {
    slot: &'static Slot,
    /// What was there before.
    before: *mut c_void,
    ours: *mut c_void,
}

impl Patched {
    /// Puts back what was in the slot, unless another tool has put something there since.
    pub(super) fn undo(&self) {
        let order = (Ordering::AcqRel, Ordering::Relaxed);
        let _ = self
            .slot
            .compare_exchange(self.ours, self.before, order.0, order.1);
    }
}

/// Keeps the tables of a runtime of a process that waits to be attached to, with `hooks` in them, which are rarely
/// called. Nothing where this build does not support them.
///
/// # Safety
///
/// `tables` are what [`are_known`] demands, and live until the process ends.
pub(super) unsafe fn keep(name: &str, tables: &[*mut c_void], hooks: &[&Hook]) -> Vec<KnownTable> {
    // SAFETY: as this function demands.
    let tables = unsafe {
        if !are_known(name, tables) {
            return Vec::new();
        }
        sub_tables(name, tables)
    };
    for (kind, slots) in &tables {
        store_slots(kind, slots);
        hooks::install(kind, slots, hooks);
    }
    tables
}

/// Puts what records into a table that was kept, for a recording that begins while the program runs.
pub(super) fn patch(process: &Process, (kind, slots): KnownTable) -> Vec<Patched> {
    let traces = &process.options.traces;
    let mut hooks: Vec<&Hook> = Vec::new();
    if traces.kernel {
        hooks.extend(doorbells::HOOKS);
    } else if traces.memory_copy {
        hooks.extend(submissions::HOOKS);
    }
    if traces.memory_copy {
        hooks.extend(copies::HOOKS);
    }
    if traces.kernel || traces.memory_copy {
        hooks.extend(borrowed::HOOKS);
    }
    if traces.memory_allocation {
        hooks.extend(allocations::HOOKS);
    }
    if traces.hip_graph {
        hooks.extend(graphs::HOOKS);
    }
    hooks.extend(markers::HOOKS);
    let before: Vec<*mut c_void> = slots
        .iter()
        .map(|slot| slot.load(Ordering::Acquire))
        .collect();
    put(process, kind, slots, &hooks);
    slots
        .iter()
        .zip(before)
        .map(|(slot, before)| Patched {
            slot,
            before,
            ours: slot.load(Ordering::Acquire),
        })
        .filter(|patched| patched.ours != patched.before)
        .collect()
}

/// Runtimes whose tables were taken, a bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Puts wrappers and hooks into the tables of a runtime. False when they are not known, or belong to a second instance.
///
/// # Safety
///
/// As for [`are_known`]; the tables live until the process ends.
pub(super) unsafe fn take(process: &Process, name: &str, tables: &[*mut c_void]) -> bool {
    const NAMES: [&str; 7] = [
        "hip",
        "hip_compiler",
        "hsa",
        "roctx",
        "rccl",
        "rocdecode",
        "rocjpeg",
    ];
    // SAFETY: as this function demands.
    if !unsafe { are_known(name, tables) } {
        meta::note(&format!(
            "the calls of {name} are not recorded: this version of rpd does not support its tables; try --provider sdk"
        ));
        return false;
    }
    let bit = NAMES.iter().position(|known| *known == name).unwrap_or(31);
    if TAKEN.fetch_or(1 << bit, Ordering::AcqRel) >> bit & 1 != 0 {
        meta::note(&format!(
            "a second copy of {name} in the process is not recorded"
        ));
        return false;
    }
    let traces = &process.options.traces;
    // SAFETY: as this function demands.
    let tables = unsafe { sub_tables(name, tables) };
    for (kind, slots) in &tables {
        store_slots(kind, slots);
    }
    if name == "hsa" {
        clock::prepare();
        agents::prepare();
        let mut hooks: Vec<&Hook> = code_objects::HOOKS.to_vec();
        dispatch::set_recorded(traces.kernel);
        if traces.kernel || traces.hip_graph {
            hooks.extend(dispatch::HOOKS);
        }
        if traces.memory_copy {
            hooks.extend(copies::HOOKS);
            hooks.push(copies::TIMES_HOOK);
            copies::enable_times();
        }
        if traces.kernel || traces.memory_copy {
            hooks.extend(borrowed::HOOKS);
            hooks.extend(submissions::HOOKS);
            hooks.extend(shutdown::HOOKS);
        }
        if traces.memory_allocation {
            hooks.extend(allocations::HOOKS);
        }
        for (kind, slots) in &tables {
            put(process, kind, slots, &hooks);
        }
        return true;
    }
    for &(kind, slots) in &tables {
        let hooks: &[&Hook] = match kind {
            "HIP_COMPILER_API" => &code_objects::COMPILER_HOOKS,
            "HIP_RUNTIME_API" if traces.hip_graph => &graphs::HOOKS,
            "MARKER_CORE_API" | "MARKER_CONTROL_API" | "MARKER_NAME_API" => &markers::HOOKS,
            _ => &[],
        };
        put(process, kind, slots, hooks);
        match kind {
            "HIP_RUNTIME_API" if process.options.capture.calls => captured::wrap_runtime(slots),
            "HIP_COMPILER_API" if process.options.capture.calls => captured::wrap_compiler(slots),
            _ => {}
        }
    }
    true
}

/// Slots of the image table that no provider numbers: `hsa_amd_image_create`.
const IMAGE_UNTRACED: usize = 1;

fn find(kind: &str) -> Option<&'static WrappedTable> {
    TABLES.iter().find(|table| table.kind == kind)
}

/// Keeps the runtime's own functions, which are in its slots.
fn store_slots(kind: &str, slots: &[Slot]) {
    let Some(table) = find(kind) else { return };
    for (slot, below) in slots.iter().zip(table.below) {
        below
            .runtime
            .store(slot.load(Ordering::Acquire), Ordering::Release);
    }
}

/// Puts hooks, and wrappers of recorded operations above them, into the slots of a table.
fn put(process: &Process, kind: &str, slots: &[Slot], hooks: &[&Hook]) {
    let Some(table) = find(kind) else { return };
    hooks::install(kind, slots, hooks);
    for (slot, below) in slots.iter().zip(table.below) {
        below
            .next
            .store(slot.load(Ordering::Acquire), Ordering::Release);
    }
    let operations = table.api.get().map_or(&[][..], |api| &api.operations);
    for ((slot, wrapper), operation) in slots.iter().zip(table.wrappers).zip(operations) {
        if operation.is_wrapped() {
            slot.store(wrapper.0.cast_mut(), Ordering::Release);
        }
    }
    let unknown = unknown(kind, slots);
    if unknown > 0 && is_recorded(&process.options.traces, kind) {
        meta::note(&format!(
            "{unknown} functions of {kind} are newer than this version of rpd, and their calls are not recorded"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_with_newer_functions_is_known_but_not_complete() {
        let known = find("HIP_COMPILER_API")
            .expect("a known table")
            .wrappers
            .len();
        let mut table = vec![0_u64; 1 + known + 2];
        let mut complete = |slots: usize| {
            table[0] = 8 * (1 + slots as u64);
            let tables = [table.as_mut_ptr().cast::<c_void>()];
            // SAFETY: the table begins with its size, and outlives the calls.
            unsafe {
                assert!(are_known("hip_compiler", &tables));
                are_complete("hip_compiler", &tables)
            }
        };
        assert!(complete(known - 1) && complete(known));
        assert!(!complete(known + 1));
        // SAFETY: no table is looked at.
        assert!(!unsafe { are_complete("of the future", &[]) });
    }
}
