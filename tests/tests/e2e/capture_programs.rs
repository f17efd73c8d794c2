//! Captures of programs with graphs of nodes and with variables that the runtime sets. Numbers of cases are those of the list of
//! conformance cases for captures.

use rpd_tests::run::Rpd;
use rpd_tests::workloads;

use crate::capture_excerpts::{capsule_of, packed};
use crate::captures::{capture_of, captured, database, replayed, round_trip};

/// Cases 39 and 40, with nodes: host memory of copies that other parameters replace.
#[test]
fn graphs_of_nodes_come_back() {
    round_trip("capture-graphs", &["nodes"], false);
}

#[test]
fn memory_of_graphs_comes_back() {
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
fn pinned_memory_of_kernels_in_graphs_comes_back() {
    round_trip("capture-graphs", &["pinned"], false);
}

/// Case 44, for managed variables.
#[test]
fn managed_variables_come_back() {
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

/// Case 44: memory that only other such memory points to.
#[test]
fn lists_in_managed_memory_come_back() {
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

/// Case 43, where two code objects have variables of one name.
#[test]
fn variables_of_one_name_come_back() {
    round_trip("capture-variables", &["twins"], false);
}

/// Case 42: the functions of the library interface are in no dispatch table of the provider, what they load and launch is captured.
#[test]
fn kernels_of_libraries_come_back() {
    round_trip("capture-variables", &["library"], false);
}

/// Another build of a kernel has variables of its own.
#[test]
fn replaced_kernels_find_the_variables_as_they_are() {
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
fn variables_of_graphs_come_back() {
    round_trip("capture-graphs", &["symbols"], false);
}

#[test]
fn memory_at_reserved_addresses_comes_back() {
    round_trip("capture-limits", &["mapped"], false);
    let run = captured(&[], "capture-limits", &["mapped"]).success();
    let database = database(&capture_of(&run));
    assert_eq!(
        database.rows("SELECT count(*), count(destroyed), sum(size) FROM alloc"),
        [["5", "5", "10485760"]]
    );
}

#[test]
fn arrays_textures_and_surfaces_come_back() {
    for mode in ["arrays", "textures", "reference", "surfaces", "atomics"] {
        round_trip("capture-images", &[mode], false);
    }
}

/// A launch that reads a texture has the array or the memory that it is about.
#[test]
fn launches_with_textures_are_packed() {
    let run = captured(&[], "capture-images", &["textures"]).success();
    let capture = capture_of(&run);
    for (kernel, pieces) in [("sample_2d", "3 pieces"), ("fetch", "3 pieces")] {
        let pack = packed(&capture, kernel).success();
        assert!(pack.stderr.contains(pieces), "{}", pack.stderr);
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
