//! Captures of programs with graphs of nodes and with variables that the runtime sets.

use rpd_tests::run::Rpd;
use rpd_tests::workloads;

use crate::capture::captures::{capture_of, captured, database, replayed, round_trip};
use crate::capture::excerpts::{capsule_of, packed};

/// Checks capture-39 and capture-40, with nodes: host memory of copies that other parameters replace.
#[test]
fn replay_runs_graphs_made_of_nodes() {
    round_trip("capture-graphs", &["nodes"], false);
}

#[test]
fn replay_has_memory_that_graphs_allocate() {
    round_trip("capture-graphs", &["memory"], false);
    let run = captured(&[], "capture-graphs", &["memory"]).success();
    let database = database(&capture_of(&run));
    assert_eq!(
        database.rows("SELECT size FROM alloc JOIN call ON seq = created WHERE name = 'hipGraphAddMemAllocNode'"),
        [["16384"]]
    );
}

/// Kernels of graphs read pinned memory themselves.
#[test]
fn replay_has_pinned_memory_of_graph_kernels() {
    round_trip("capture-graphs", &["pinned"], false);
}

/// The calls of other threads are made in the thread in which a stream captures, and results are compared meanwhile.
#[test]
fn replay_runs_work_beside_a_stream_capture() {
    round_trip("capture-graphs", &["beside"], false);
}

/// Checks capture-44, for managed variables.
#[test]
fn replay_restores_managed_variables() {
    round_trip("capture-variables", &["managed"], false);
    let run = captured(&[], "capture-variables", &["managed"]).success();
    let shown = Rpd::plain(["capture", "show"])
        .option([capture_of(&run)])
        .option(["1"])
        .run()
        .success();
    assert!(
        shown.stdout.contains("hipMallocManaged") && shown.stdout.contains("managed_values"),
        "{}",
        shown.stdout
    );
}

/// A module whose managed variable the runtime makes, in the first call of all.
#[test]
fn replay_restores_managed_variables_of_modules() {
    round_trip("capture-variables", &["module"], false);
}

/// Checks capture-44: managed memory that only other managed memory points to.
#[test]
fn replay_restores_lists_in_managed_memory() {
    let run = captured(&[], "capture-variables", &["list"]).success();
    for options in [&["--va", "same"][..], &["--va", "remap", "--deep"]] {
        let replay = replayed(&capture_of(&run), options).success();
        assert!(
            replay.stderr.contains(" results are equal"),
            "{}",
            replay.stderr
        );
    }
}

/// Checks capture-43, where two code objects have variables of one name.
#[test]
fn replay_restores_equally_named_variables_of_two_modules() {
    round_trip("capture-variables", &["twins"], false);
}

/// Checks capture-42: functions of the library interface are in no dispatch table of the provider, and what they load and
/// launch is captured.
#[test]
fn replay_runs_kernels_of_hip_libraries() {
    round_trip("capture-variables", &["library"], false);
}

/// A kernel is replaced by another build of it, which has device variables of its own.
#[test]
fn replaced_kernels_find_the_device_variables() {
    let run = captured(&[], "capture-variables", &["twins"]).success();
    let bundle = workloads::path("kernels").join("varying.hipfb");
    let other = format!("counting_kernel={}", bundle.display());
    let replay = replayed(&capture_of(&run), &["--replace", &other]).success();
    assert!(
        replay.stderr.contains("3 of 3 results are equal"),
        "{}",
        replay.stderr
    );
}

/// Nodes that copy to and from device variables.
#[test]
fn replay_restores_variables_that_graphs_copy() {
    round_trip("capture-graphs", &["symbols"], false);
}

#[test]
fn replay_has_memory_at_reserved_addresses() {
    round_trip("capture-limits", &["mapped"], false);
    let run = captured(&[], "capture-limits", &["mapped"]).success();
    let database = database(&capture_of(&run));
    assert_eq!(
        database.rows("SELECT count(*), count(destroyed), sum(size) FROM alloc"),
        [["5", "5", "10485760"]]
    );
}

/// Physical memory that is mapped several times is one memory in a replay at other addresses, and cannot have those of the capture.
#[test]
fn replay_has_memory_that_is_mapped_twice() {
    let run = captured(&[], "capture-limits", &["aliased"]).success();
    let capture = capture_of(&run);
    let expected = "maps physical memory that was mapped at another address before";
    for options in [&[][..], &["--va", "remap"]] {
        let played = replayed(&capture, options).success();
        assert!(
            played
                .stderr
                .contains("at other addresses; 2 of 2 results are equal"),
            "{}",
            played.stderr
        );
        assert_eq!(played.stderr.contains(expected), options.is_empty());
    }
    let refused = replayed(&capture, &["--va", "same"]).expect_code(1);
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    // Memory at such addresses is in a capsule, too.
    let pack = packed(&capture, "increment_kernel#2").success();
    let played = replayed(&capsule_of(&pack), &[]).success();
    assert!(
        played.stderr.contains(" results are equal"),
        "{}",
        played.stderr
    );
}

/// Checks capture-39: nodes of every type from one function, those of the driver's functions, and operations on memory.
#[test]
fn replay_runs_graph_nodes_of_all_kinds() {
    for mode in ["any", "driver", "values", "into"] {
        round_trip("capture-nodes", &[mode], false);
    }
    // Parameters of nodes that were changed before the graph was made executable, in a part of the capture.
    let run = captured(&[], "capture-nodes", &["any"]).success();
    let capture = capture_of(&run);
    let last = database(&capture).number("SELECT max(seq) FROM call WHERE name = 'hipGraphLaunch'");
    let trimmed = Rpd::plain(["capture", "trim", "--backend", "sim", "-o", "part"])
        .option(["--from", &last.to_string()])
        .option([&capture])
        .run()
        .success();
    let played = replayed(&trimmed.directory.path().join("part"), &[]).success();
    assert!(
        played.stderr.contains("1 of 1 results are equal"),
        "{}",
        played.stderr
    );
}

/// A stream that waits for the host goes on in a replay, which has no such host.
#[test]
fn replay_has_values_that_the_host_writes() {
    round_trip("capture-nodes", &["released"], false);
    // In one stream nothing can wait for what comes later: other results, but an end.
    let run = captured(&[], "capture-nodes", &["released"]).success();
    let serial = replayed(&capture_of(&run), &["--streams", "serial"]).expect_code(4);
    assert!(
        serial.stderr.contains("of 3 results are equal"),
        "{}",
        serial.stderr
    );
}

/// Launches with a configuration and its attributes, and launches in parts.
#[test]
fn replay_runs_launches_of_every_form() {
    round_trip("capture-nodes", &["launches"], false);
    let run = captured(&[], "capture-nodes", &["launches"]).success();
    let capture = capture_of(&run);
    let launches = database(&capture).rows(
        "SELECT c.name, k.name, gx, bx, length(l.args) FROM launch l JOIN call c USING (seq) JOIN kernel k ON k.id = l.kernel
         ORDER BY l.seq",
    );
    let names: Vec<&str> = launches.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        names,
        [
            "hipLaunchKernelExC",
            "hipDrvLaunchKernelEx",
            "hipLaunchKernelExC",
            "hipDrvLaunchKernelEx",
            "hipLaunchByPtr"
        ]
    );
    for row in &launches {
        assert_eq!(row[1..], ["increment_kernel", "64", "64", "20"]);
    }
    // The last one is not cooperative, and can be run many times.
    let options = ["--kernel", "increment_kernel#5", "--iterations", "3"];
    let runs = replayed(&capture, &options).success();
    assert!(runs.stderr.contains("increment_kernel"), "{}", runs.stderr);
    let refused = replayed(
        &capture,
        &["--kernel", "increment_kernel#3", "--iterations", "3"],
    )
    .expect_code(1);
    assert!(
        refused
            .stderr
            .contains("cooperative launches cannot be run many times"),
        "{}",
        refused.stderr
    );
    let pack = packed(&capture, "increment_kernel#5").success();
    let _ = replayed(&capsule_of(&pack), &[]).success();
}

#[test]
fn replay_restores_arrays_textures_and_surfaces() {
    for mode in [
        "arrays",
        "textures",
        "reference",
        "references",
        "surfaces",
        "atomics",
    ] {
        round_trip("capture-images", &[mode], false);
    }
}

/// A launch that reads a texture has the array or the memory that it is about.
#[test]
fn pack_includes_textures_of_a_launch() {
    let run = captured(&[], "capture-images", &["textures"]).success();
    let capture = capture_of(&run);
    let bound = captured(&[], "capture-images", &["references"]).success();
    let bound = capture_of(&bound);
    for (capture, kernel, pieces) in [
        (&capture, "sample_2d", "3 pieces"),
        (&capture, "fetch", "3 pieces"),
        // What is bound to texture references: memory, arrays, memory again; then the same of one that is registered.
        (&bound, "sample_reference_2d#1", "3 pieces"),
        (&bound, "sample_reference_2d#2", "3 pieces"),
        (&bound, "fetch_reference#1", "3 pieces"),
        (&bound, "sample_reference_2d#3", "3 pieces"),
    ] {
        let pack = packed(capture, kernel).success();
        assert!(pack.stderr.contains(pieces), "{kernel}: {}", pack.stderr);
        for addresses in ["same", "remap"] {
            let played = replayed(&capsule_of(&pack), &["--va", addresses]).success();
            assert!(
                played.stderr.contains("; 1 of 1 results are equal"),
                "{}",
                played.stderr
            );
        }
    }
}
