//! Every static of this crate, and its treatment in a forked child. A test finds those that are not listed.

use std::collections::BTreeSet;
use std::path::Path;

use rpd_tests::sources::files_below;

/// Types whose statics a child keeps, and why that is right.
const KEPT_TYPES: &[(&str, &[&str])] = &[
    ("what failed stays off", &["Service"]),
    ("`forget_parent` opens its lock", &["ForkHook"]),
    (
        "never written",
        &[
            "$crate::direct::hooks::Hook",
            "&Hook",
            "[&Hook",
            "&[&Hook]",
            "[WrappedTable",
            "[Code",
            "[Function",
            "Result",
            "extern \"C\" fn()",
        ],
    ),
    (
        "functions of the runtime, which the child has at the same addresses",
        &["Function", "[Below", "[AtomicPtr<c_void>"],
    ),
    (
        "what the options request of each operation, which is the same in the child",
        &["ApiSlot"],
    ),
];

/// Statics that a child keeps, and why that is right.
const KEPT: &[(&str, &[&str])] = &[
    (
        "set once from the options, which are those of the child",
        &[
            "direct/allocations.rs STACKS",
            "cuda/callbacks.rs CONFIG",
            "cuda/nvtx.rs CONFIG",
            "cuda/shared.rs SHARED",
            "direct/markers.rs CONFIG",
            "recording/guard.rs REPORT",
            "recording/stacks.rs HAS",
            "recording/stacks.rs MIN_DURATION",
            "recording/switch.rs RECORDING",
            "lifecycle/signals.rs DELIVERY",
        ],
    ),
    (
        "about libraries and functions, which the child has at the same addresses",
        &[
            "roctx.rs ROCTX",
            "cuda/cupti.rs LIBRARY",
            "cuda/cupti.rs OWN_CLOCK",
            "cuda/cupti.rs SUBSCRIBED",
            "cuda/cupti.rs VERSION",
            "cuda/cupti.rs REFUSED",
            "cuda/buffers.rs OFFSET",
            "direct/tables.rs TAKEN",
            "direct/attach.rs COPIES_TIMED",
            "lifecycle/signals.rs KNOWN",
            "recording/capture/mod.rs DEVICE",
            "captured.rs DONE",
            "captured.rs NEXT_REGISTER_FUNCTION",
            "captured.rs NEXT_REGISTER_TEXTURE",
            "captured.rs NEXT_REGISTER_VAR",
            "captured.rs NEXT_REGISTER_MANAGED_VAR",
            "sdk/contexts.rs SWITCHED",
            "sdk/entry.rs CLIENT",
            "sdk/entry.rs FINALIZE",
            "sdk/provider.rs FUNCTIONS",
            "sdk/provider.rs LIBRARY",
        ],
    ),
    (
        "about devices, which are the same for the child",
        &[
            "direct/agents.rs AGENTS",
            "direct/clock.rs FREQUENCY",
            "sdk/agents.rs GPUS",
        ],
    ),
    (
        "the child's records go on with numbers that its parent has not used",
        &[
            "cuda/work.rs NEXT_DISPATCH",
            "cuda/kernels.rs NEXT",
            "cuda/nvtx.rs NEXT_RANGE",
            "direct/dispatch.rs NEXT_DISPATCH",
            "direct/dispatch.rs NEXT_QUEUE",
            "recording/frames.rs NEXT_BLOCK",
            "recording/graphs.rs NUMBERS",
            "recording/graphs.rs NEXT",
            "recording/streams.rs NUMBERS",
            "recording/streams.rs NEXT",
            "recording/streams.rs AGE",
            "recording/streams.rs local",
        ],
    ),
    (
        "the records that these are about are repeated in the child's recording",
        &[
            "recording/code.rs WRITTEN",
            "recording/regions.rs REGIONS",
            "sdk/counters/facts.rs RECORDED",
        ],
    ),
    (
        "names of kernels, which the child has, too, and the dispatch that its thread submits",
        &[
            "recording/replays.rs PASS",
            "sdk/counters/replay.rs CURRENT",
            "sdk/counters/replay.rs KNOWN",
        ],
    ),
    (
        "ranges and sections of the program, which are open in the child as well",
        &[
            "kokkos.rs SECTIONS",
            "cuda/nvtx.rs RANGES",
            "cuda/nvtx.rs STARTED",
            "cuda/details.rs NAMES",
            "direct/markers.rs STARTED",
            "direct/markers.rs PUSHED",
        ],
    ),
    (
        "whether recording is on, configured or over, which the child continues",
        &[
            "cuda/entry.rs STARTED",
            "cuda/entry.rs ENDED",
            "cuda/entry.rs DONE",
            "direct/calls.rs ON",
            "direct/dispatch.rs COUNT_PAUSED",
            "direct/dispatch.rs RECORDED",
            "direct/entry.rs CONFIGURED",
            "direct/entry.rs ENDED",
            "lifecycle/load.rs DONE",
            "lifecycle/signals.rs REQUESTED",
            "recording/guard.rs FINALIZED",
            "recording/process.rs WAITS",
            "recording/thread.rs ENDED",
            "recording/switch.rs RESUMED",
            "recording/switch.rs IN_PERIOD",
            "recording/switch.rs STOPPED",
            "recording/switch.rs STEP",
            "recording/switch.rs DUE",
            "sdk/attachment.rs NOTED",
        ],
    ),
    (
        "of a process that is ending",
        &[
            "sdk/forked_end.rs THREAD",
            "sdk/forked_end.rs STATUS",
            "sdk/forked_end.rs LEFT",
            "sdk/forked_end.rs BEFORE",
        ],
    ),
    (
        "services of the provider: `forked_end::applies` says that their threads and work are the parent's",
        &[
            "sdk/counters/mod.rs COUNTING",
            "sdk/forked_end.rs COUNTING",
            "sdk/graphs.rs HELD",
            "sdk/graphs.rs LAUNCHED",
            "sdk/kfd.rs HELD",
            "sdk/kfd.rs DELIVERED",
            "sdk/pc_sampling.rs SAMPLED",
            "sdk/pc_sampling.rs STATE",
            "sdk/thread_trace.rs TRACED",
            "sdk/thread_trace.rs BEGUN",
            "sdk/thread_trace.rs RUNNING",
            "sdk/runtime_end.rs REFERENCES",
            "sdk/runtime_end.rs WAITING",
        ],
    ),
    (
        "about what CUPTI delivers, which it does not do in a child: `cuda/cupti.rs functions` is empty there",
        &[
            "cuda/buffers.rs FREE",
            "cuda/buffers.rs DELIVERED",
            "cuda/buffers.rs DROPPED",
            "cuda/callbacks.rs HEARD",
            "cuda/callbacks.rs LAUNCHES",
            "cuda/callbacks.rs WHOLE_GRAPHS",
            "cuda/flusher.rs MARKED",
            "cuda/flusher.rs FLUSHING",
            "cuda/origins.rs RING",
            "cuda/work.rs COUNTS",
            "cuda/sampling.rs SETTINGS",
            "cuda/sampling.rs IS_REFUSED",
            "cuda/sampling.rs IS_FULL",
            "cuda/sampling.rs OTHERS",
            "cuda/sampling.rs TOTAL",
            "cuda/sampling.rs CONFIGURED",
            "cuda/sampling.rs STATE",
        ],
    ),
    (
        "only looked at while a capture is active, which it is not in a child",
        &[
            "recording/capture/configured.rs CONFIGURED",
            "recording/capture/mod.rs LOADED",
            "recording/capture/mod.rs SEQUENCE",
            "recording/capture/stage.rs FILE",
            "recording/capture/stage.rs LIMIT",
            "recording/capture/stage.rs MOST",
            "recording/capture/stage.rs OWN",
            "recording/capture/stage.rs STAGED_BY_WAITING_CALLS",
            "recording/capture/state.rs STATE",
            "recording/capture/watch.rs LAUNCH",
        ],
    ),
    (
        "it has the id of the process that opened it, and is not used in another",
        &["recording/capture/guard.rs KERNEL"],
    ),
    (
        "of the thread that forks, whose call goes on in the child",
        &["direct/submissions.rs first_packet"],
    ),
    (
        "written again before it is read",
        &[
            "direct/doorbells.rs NOT_FOLLOWED",
            "direct/poller.rs ASLEEP",
            "lifecycle/signals.rs SIGNAL",
            "recording/process.rs HELD",
            "recording/spares.rs REQUESTS",
        ],
    ),
    (
        "needed to find the hooks, and the key of threads",
        &["recording/fork.rs LAST", "recording/thread.rs KEY"],
    ),
];

/// Statics that are set in a child, and where: by the code in their file that begins with this text, which a hook calls, or which
/// looks at what a hook has set.
const SET: &[(&str, &str)] = &[
    ("direct/attach.rs PAGE", "fn forget_parent()"),
    ("direct/attach.rs ATTACHED", "fn forget_parent()"),
    ("direct/attach.rs CHANGING", "fn forget_parent()"),
    ("direct/attach.rs AT_END", "fn forget_parent()"),
    ("direct/attach.rs STATE", "fn forget_parent()"),
    ("cuda/callbacks.rs NODES", "pub(super) static FORK"),
    ("cuda/callbacks.rs local", "pub(super) static FORK"),
    ("cuda/cupti.rs IS_CHILD", "pub(super) static FORK"),
    ("cuda/devices.rs DESCRIBED", "pub(super) static FORK"),
    ("cuda/devices.rs HOST_DESCRIBED", "pub(super) static FORK"),
    ("cuda/kernels.rs KNOWN", "pub(super) static FORK"),
    ("cuda/graphs.rs CALLS", "pub(super) static FORK"),
    ("direct/borrowed.rs TABLE", "pub(super) fn forget()"),
    ("direct/borrowed.rs BORROWED", "pub(super) fn forget()"),
    ("direct/code_objects.rs STATE", "fn with<T>("),
    ("direct/code_objects.rs TABLE", "fn insert(&mut self"),
    ("direct/code_objects.rs FORKED", "pub(super) static FORK"),
    ("direct/copies.rs LANES", "pub(super) fn forget()"),
    ("direct/dispatch.rs QUEUES", "pub(super) fn forget()"),
    ("direct/poller.rs RUNNING", "static FORK"),
    ("lifecycle/signals.rs PLACES", "fn put_back()"),
    ("lifecycle/signals.rs ACTIVE", "fn forget_parent()"),
    ("lifecycle/signals.rs OWNER", "fn forget_parent()"),
    ("lifecycle/signals.rs FIRST", "fn forget_parent()"),
    ("lifecycle/signals.rs CALLED", "fn forget_parent()"),
    ("lifecycle/signals.rs DONE", "fn forget_parent()"),
    ("lifecycle/signals.rs DELIVERING", "fn forget_parent()"),
    ("recording/control.rs PAGE", "static FORK"),
    ("recording/bounded.rs INHERITED", "static FORK"),
    ("recording/bounded.rs STATE", "pub(super) fn take<"),
    ("recording/removed.rs INHERITED", "static FORK"),
    ("recording/removed.rs STATE", "pub(super) fn count("),
    ("recording/capture/mod.rs ACTIVE", "fn forget_parent()"),
    ("recording/capture/mod.rs DEPTH", "fn forget_parent()"),
    (
        "recording/capture/watch.rs WATCHING",
        "pub(super) fn stop()",
    ),
    (
        "recording/capture/stage.rs CONTROL",
        "pub(super) fn forget_parent()",
    ),
    (
        "recording/process.rs CURRENT",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    (
        "recording/process.rs FORK_TIME",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    (
        "recording/process.rs LOST",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    (
        "recording/process.rs MAKING",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    (
        "recording/process.rs OFF",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    (
        "recording/process.rs PARENT",
        "pub(crate) extern \"C\" fn after_fork_in_child()",
    ),
    ("recording/python_files.rs LOG", "pub(super) fn forked()"),
    ("recording/spares.rs RUNNING", "static FORK"),
    ("recording/stacks.rs RECORDER", "fn forked()"),
    ("recording/thread.rs local", "fn forget_parent()"),
    ("sdk/counters/config.rs MAKING", "static FORK"),
];

/// The part of a file before its tests.
fn without_tests(source: &str) -> &str {
    source.split("\n#[cfg(test)]\n").next().unwrap_or_default()
}

/// Name and type of the static that a line declares: also one of a thread.
fn declared(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    if let Some((before, rest)) = line.split_once("static ")
        && (before.is_empty() || before.starts_with("pub"))
    {
        let (name, rest) = rest.split_once(": ")?;
        let kind = rest.split([';', '=']).next().unwrap_or_default();
        return Some((name.trim_start_matches("mut "), kind.trim_end()));
    }
    // As `zeroed_thread_local!` has it.
    let (function, _) = line.split_once(", \"rpd_collect_")?;
    function.split_once("fn ")?.1.split_once("() -> &")
}

/// Calls `act` with the path below `src`, and the text without tests, of each source but this one.
fn for_each_source(mut act: impl FnMut(&str, &str)) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for path in files_below(&directory, &["rs"]) {
        let name = path.strip_prefix(&directory).expect("a path below src");
        if !name.ends_with("fork/statics.rs") {
            let source = std::fs::read_to_string(&path).expect("a source");
            act(&name.to_string_lossy(), without_tests(&source));
        }
    }
}

/// A static without an entry may be one that a child has of its parent by mistake.
#[test]
fn statics_are_all_listed_with_their_treatment_in_a_forked_child() {
    let kept_types: BTreeSet<&str> = KEPT_TYPES
        .iter()
        .flat_map(|group| group.1)
        .copied()
        .collect();
    let kept = KEPT.iter().flat_map(|group| group.1).copied();
    let listed: Vec<&str> = kept.chain(SET.iter().map(|row| row.0)).collect();
    let mut used = BTreeSet::new();
    let mut missing = Vec::new();
    for_each_source(|file, source| {
        for (name, kind) in source.lines().filter_map(declared) {
            let full = format!("{file} {name}");
            if let Some(kind) = kept_types.get(kind) {
                used.insert((*kind).to_owned());
            } else if listed.contains(&full.as_str()) {
                used.insert(full);
            } else {
                missing.push(full);
            }
        }
        for (full, begin) in SET {
            let Some(name) = full
                .strip_prefix(file)
                .and_then(|rest| rest.strip_prefix(' '))
            else {
                continue;
            };
            let code = source.split_once(begin).map(|(_, code)| code);
            let code = code.and_then(|code| code.split("\n\n").next());
            assert!(
                code.is_some_and(|code| code.contains(name)),
                "{full}: not used in `{begin}`"
            );
        }
    });
    assert!(
        missing.is_empty(),
        "what does a forked child do with {missing:?}?"
    );
    let stale: Vec<&&str> = listed
        .iter()
        .chain(&kept_types)
        .filter(|name| !used.contains(**name))
        .collect();
    assert!(
        stale.is_empty(),
        "no static has this name or type: {stale:?}"
    );
    let count = listed.iter().collect::<BTreeSet<_>>().len();
    assert_eq!(count, listed.len(), "a static is listed twice");
}

/// Every hook takes effect: its lock registers it, or a thread of the collector that names it. The others are
/// registered explicitly.
#[test]
fn fork_hooks_are_all_registered() {
    let (mut hooks, mut all) = (Vec::new(), String::new());
    for_each_source(|file, source| {
        all.push_str(source);
        for (name, _) in source
            .lines()
            .filter_map(declared)
            .filter(|it| it.1 == "ForkHook")
        {
            let ways = ["{}.lock()", "{}.register()", "InChild::Hook(&{})"];
            let used = ways
                .iter()
                .any(|way| source.contains(&way.replace("{}", name)));
            hooks.push((file.to_owned(), name.to_owned(), used));
        }
    });
    assert!(hooks.len() > 10, "the hooks were not found");
    for (file, name, used) in hooks {
        let module = file
            .trim_end_matches(".rs")
            .rsplit('/')
            .next()
            .unwrap_or_default();
        // `lifecycle::load` registers some of other modules.
        let elsewhere = all.contains(&format!("&{module}::{name}"));
        assert!(used || elsewhere, "{file}: nothing registers {name}");
    }
}
