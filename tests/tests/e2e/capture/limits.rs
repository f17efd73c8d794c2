//! Captures of programs whose data change under way, whose results vary, that use several GPUs, or that find their runtime in
//! another place.

use rpd_tests::install;
use rpd_tests::run::{self, Outcome, Rpd};
use rpd_tests::workloads;

use crate::capture::captures::{
    capture_of, captured, check_that_calls_waited, database, replayed, round_trip,
};

fn limits(mode: &str) -> Outcome {
    captured(&[], "capture-limits", &[mode]).success()
}

/// Checks capture-6.
#[test]
fn capture_keeps_sizes_beyond_32_bits() {
    let run = captured(&["--data", "none"], "capture-limits", &["large"]).success();
    let database = database(&capture_of(&run));
    assert_eq!(database.rows("SELECT size FROM alloc"), [["5368709120"]]);
    assert_eq!(database.rows("SELECT size FROM copy"), [["3221225472"]]);
}

/// Data that were staged before are not staged again, and the replay has them.
#[test]
fn capture_stages_and_stores_equal_data_once() {
    let run = captured(&["--staging", "20M"], "capture", &["upload", "512", "1"]).success();
    let capture = capture_of(&run);
    let database = database(&capture);
    assert_eq!(
        database.rows("SELECT count(*), count(DISTINCT blob) FROM copy"),
        [["32", "1"]]
    );
    assert_eq!(
        database.rows("SELECT sum(size) FROM blob WHERE size > 1000000"),
        [["16777216"]]
    );
    let manifest = std::fs::read(capture.join("capture.json")).expect("a description");
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
    assert!(manifest["data"].as_u64() >= Some(512 << 20), "{manifest}");
    assert!(manifest["stored"].as_u64() < Some(18 << 20), "{manifest}");
    let _ = replayed(&capture, &["--allow-no-results"]).success();
}

/// Data that compression does not make smaller stay in the file in which the program staged them, which becomes a pack.
#[test]
fn incompressible_data_stay_in_their_staging_file() {
    let run = captured(&["--staging", "20M"], "capture", &["upload", "128", "64"]).success();
    let capture = capture_of(&run);
    // Chunks that were copied have heads before them.
    let chunks = database(&capture).rows(
        "SELECT 'pack-0000' || pack || '.rpdp', count(*) FROM chunk
         WHERE size = 1048576 AND offset % 64 = 0 AND stored = size GROUP BY pack",
    );
    assert_eq!(chunks.len(), 1, "{chunks:?}");
    assert_eq!(chunks[0][1], "128");
    let pack = std::fs::metadata(capture.join("blobs").join(&chunks[0][0])).expect("a pack");
    assert!(pack.len() < 129 << 20, "{pack:?}");
    let checked = Rpd::plain(["capture", "check"]).option([&capture]).run();
    let _ = checked.success();
    let _ = replayed(&capture, &["--allow-no-results"]).success();
}

/// Checks capture-11.
#[test]
fn pinned_memory_changed_before_its_copy_is_reported_or_read_back() {
    let run = limits("late");
    let note = "2 copies from pinned memory: the host changed the source after the call and before it had waited for the copy; \
                the data are those of the call (--pinned exact takes what the device reads)";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let early = replayed(&capture_of(&run), &[]).expect_code(4);
    assert!(
        early.stderr.contains("0 of 2 results are equal"),
        "{}",
        early.stderr
    );
    let run = captured(&["--pinned", "exact"], "capture-limits", &["late"]).success();
    assert!(!run.stderr.contains("pinned memory"), "{}", run.stderr);
    for addresses in ["same", "remap"] {
        let exact = replayed(&capture_of(&run), &["--va", addresses]).success();
        assert!(
            exact.stderr.contains("2 of 2 results are equal"),
            "{}",
            exact.stderr
        );
    }
    // Streams, pools and events as well.
    let run = captured(&["--pinned", "exact"], "capture", &["streams", "5"]).success();
    let _ = replayed(&capture_of(&run), &[]).success();
}

/// Checks capture-11, for rectangles and boxes.
#[test]
fn pinned_exact_reads_rectangles_and_boxes_back() {
    let run = limits("boxes");
    assert!(
        run.stderr
            .contains("2 copies from pinned memory: the host changed"),
        "{}",
        run.stderr
    );
    let _ = replayed(&capture_of(&run), &[]).expect_code(4);
    let run = captured(&["--pinned", "exact"], "capture-limits", &["boxes"]).success();
    assert!(!run.stderr.contains("pinned memory"), "{}", run.stderr);
    for addresses in ["same", "remap"] {
        let exact = replayed(&capture_of(&run), &["--va", addresses]).success();
        assert!(
            exact.stderr.contains("2 of 2 results are equal"),
            "{}",
            exact.stderr
        );
    }
}

/// Copies from the device write pinned memory, which is not reported as a change by the host.
#[test]
fn copies_from_the_device_do_not_count_as_host_changes() {
    let run = limits("back");
    assert!(!run.stderr.contains("pinned memory"), "{}", run.stderr);
    round_trip("capture-limits", &["back"], false);
}

/// Parts of captures are the same when they are taken while memory has other addresses.
#[test]
fn trim_and_pack_give_equal_parts_at_other_addresses() {
    let run = captured(&[], "capture", &["pointers"]).success();
    let capture = capture_of(&run);
    let take = |action: &str, addresses: &str, part: &[&str]| {
        let taken = Rpd::plain(["capture", action, "--backend", "sim", "-o", "part"])
            .option(["--va", addresses])
            .option(part)
            .option([&capture])
            .run()
            .success();
        let expected = "words that look like addresses are changed to those of the capture";
        assert_eq!(taken.stderr.contains(expected), addresses == "remap");
        taken
    };
    for (action, part) in [
        ("pack", &["--kernel", "struct_kernel"][..]),
        ("pack", &["--kernel", "table_kernel"]),
        ("trim", &["--from", "4"]),
    ] {
        let [same, other] = ["same", "remap"].map(|addresses| take(action, addresses, part));
        let [same, other] = [&same, &other].map(|taken| taken.directory.path().join("part"));
        let _ = Rpd::plain(["capture", "diff"])
            .option([&same, &other])
            .run()
            .success();
        for options in [&["--va", "same"][..], &["--va", "remap", "--deep"]] {
            let replay = replayed(&other, options).success();
            assert!(
                replay.stderr.contains(" results are equal"),
                "{}",
                replay.stderr
            );
        }
    }
}

/// Checks capture-29.
#[test]
fn replay_names_addresses_that_the_runtime_does_not_grant() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let replay = |addresses: &str| {
        let rpd = Rpd::plain(["replay", "--backend", "rocm", "--va", addresses]);
        let libraries = rpd.directory().join("rocm/lib");
        std::fs::create_dir_all(&libraries).expect("a directory");
        // A replay loads the HIP runtime alone.
        std::fs::write(libraries.join("librocprofiler-sdk.so.1"), "").expect("written");
        let runtime = libraries.join("libamdhip64.so.7");
        std::fs::copy(workloads::path("other-addresses.so"), runtime).expect("copied");
        let root = rpd.directory().join("rocm");
        rpd.env("ROCM_PATH", root)
            .env("LD_LIBRARY_PATH", run::simulator_path())
            .option([&capture])
            .run()
    };
    let other = replay("auto").success();
    for text in [
        "memory has other addresses than in the capture: the runtime reserved 0x",
        "at other addresses; 2 of 2 results are equal",
    ] {
        assert!(other.stderr.contains(text), "{text}: {}", other.stderr);
    }
    let same = replay("same").expect_code(1);
    assert!(
        same.stderr
            .contains("memory cannot have the addresses of the capture: the runtime reserved 0x"),
        "{}",
        same.stderr
    );
}

/// Checks capture-45.
#[test]
fn replay_has_files_read_into_pinned_memory() {
    round_trip("capture-limits", &["file"], false);
}

fn round_trip_with(memory: &str, workload: &str, mode: &str) -> Outcome {
    let run = captured(&["--memory", memory], workload, &[mode]).success();
    let capture = capture_of(&run);
    let played = replayed(&capture, &["--va", "same", "--verify", "exact"]).success();
    assert!(
        !played.stderr.contains("no result was compared"),
        "{}",
        played.stderr
    );
    let _ = replayed(&capture, &["--va", "remap"]).success();
    run
}

/// Checks capture-44 and capture-45, with all host memory taken: as a whole, and by the pages that were written.
#[test]
fn replay_has_host_memory_that_changes_between_launches() {
    for memory in ["snapshot", "pageguard"] {
        let _ = round_trip_with(memory, "capture", "managed");
        let _ = round_trip_with(memory, "capture-limits", "file");
        let _ = round_trip_with(memory, "capture", "graph");
        for mode in ["written", "forked"] {
            let run = round_trip_with(memory, "capture-memory", mode);
            assert!(
                !run.stderr.contains("compared as a whole"),
                "{}",
                run.stderr
            );
        }
    }
}

/// Only the pages that have changed are taken.
#[test]
fn pageguard_takes_only_written_pages() {
    let taken = |memory: &str| {
        let run = captured(
            &["--memory", memory],
            "capture-memory",
            &["cost", "8", "10"],
        )
        .success();
        let manifest = std::fs::read(capture_of(&run).join("capture.json")).expect("a description");
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).expect("JSON");
        let _ = replayed(&capture_of(&run), &["--allow-no-results"]).success();
        manifest["data"].as_u64().expect("a number")
    };
    // The memory once, and ten pages; or the memory before and after each launch.
    let (pages, whole) = (taken("pageguard"), taken("snapshot"));
    assert!((8 << 20..9 << 20).contains(&pages), "{pages}");
    assert!(whole > 80 << 20, "{whole}");
}

/// Memory to which only memory of the device points is taken with all the rest.
#[test]
fn host_memory_behind_device_pointers_is_captured_on_request() {
    for memory in ["snapshot", "pageguard"] {
        let run = captured(&["--memory", memory], "capture-memory", &["table"]).success();
        let _ = replayed(&capture_of(&run), &["--va", "same"]).success();
    }
    let run = captured(&[], "capture-memory", &["table"]).success();
    let _ = replayed(&capture_of(&run), &["--va", "same"]).expect_code(4);
}

/// Checks capture-44: where memory is taken as arguments of launches point to it, launches that may read other memory are
/// reported.
#[test]
fn capture_reports_launches_with_host_memory_behind_device_pointers() {
    let expected = "4 launches: only memory of the device points to host-visible memory that the launch may read; \
                its content was not taken (--memory snapshot or pageguard takes it)";
    let run = captured(&[], "capture-memory", &["table"]).success();
    assert!(run.stderr.contains(expected), "{}", run.stderr);
    let notes = database(&capture_of(&run))
        .number("SELECT count(*) FROM note WHERE severity = 'warning' AND seq > 0");
    assert_eq!(notes, 4);
    for options in [&["--memory", "snapshot"], &["--memory", "pageguard"]] {
        let run = captured(options, "capture-memory", &["table"]).success();
        assert!(!run.stderr.contains("only memory"), "{}", run.stderr);
    }
    // Pointers among the arguments are followed.
    let run = captured(&[], "capture-memory", &["written"]).success();
    assert!(!run.stderr.contains("only memory"), "{}", run.stderr);
}

/// The host writes back what memory had before the device changed it: the content seems unchanged, and the replay needs
/// the write.
#[test]
fn replay_has_host_content_that_the_host_wrote_back() {
    for memory in ["assisted", "snapshot", "pageguard"] {
        let run = round_trip_with(memory, "capture-memory", "put-back");
        for launch in ["struct_kernel#3", "struct_kernel#9"] {
            let options = ["--kernel", launch, "--iterations", "5", "--until", "100000"];
            let runs = replayed(&capture_of(&run), &options).success();
            assert!(
                runs.stderr.contains(" results are equal"),
                "{launch}: {}",
                runs.stderr
            );
        }
    }
}

/// A call may read more than may wait: none of it is taken before the call has returned.
#[test]
fn calls_that_read_more_than_the_staging_space_are_captured() {
    let options = ["--memory", "snapshot", "--staging", "600K"];
    let run = captured(&options, "capture-memory", &["many"]).success();
    check_that_calls_waited(&run);
}

/// Where the kernel lacks the system call for written pages, memory is compared, and one line gives the reason.
#[test]
fn pageguard_says_why_the_kernel_cannot_protect_pages() {
    let old = "because the kernel cannot protect pages asynchronously (Linux 6.7 can)";
    let forbidden = "because userfaultfd or /proc/self/pagemap is forbidden here";
    let refused = "of a kind that the kernel does not protect";
    let tool = workloads::path("refuse");
    let (no_call, not_permitted, invalid) = (libc::ENOSYS, libc::EPERM, libc::EINVAL);
    for (what, error, why) in [
        ("userfaultfd", no_call, old),
        ("userfaultfd", not_permitted, forbidden),
        ("userfaultfd", invalid, old),
        ("api", invalid, old),
        ("api", not_permitted, forbidden),
        ("register", invalid, refused),
        ("protect", no_call, refused),
        ("scan", invalid, old),
        ("scan", not_permitted, forbidden),
    ] {
        let program = workloads::path("capture-memory");
        let error_number = error.to_string();
        let run = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
            .option(["--memory", "pageguard"])
            .target([
                tool.as_os_str(),
                what.as_ref(),
                error_number.as_ref(),
                program.as_os_str(),
                "written".as_ref(),
            ])
            .success();
        let reasons: Vec<&str> = run
            .stderr
            .lines()
            .filter(|line| line.contains("--memory pageguard"))
            .collect();
        assert!(
            matches!(reasons[..], [line] if line.ends_with(why)),
            "{what} {error}: {}",
            run.stderr
        );
        let played = replayed(&capture_of(&run), &["--va", "same"]).success();
        assert!(
            !played.stderr.contains("no result was compared"),
            "{}",
            played.stderr
        );
    }
}

/// Where written pages cannot be requested, memory is compared, and the capture reports that.
#[test]
fn pageguard_compares_memory_that_cannot_be_protected() {
    for (mode, why) in [
        ("shared", "1 shared with other processes or with a file"),
        ("removed", "1 replaced by the program with other memory"),
    ] {
        let run = round_trip_with("pageguard", "capture-memory", mode);
        let expected = format!(
            "--memory pageguard: of 1 pieces of host-visible memory these were compared as a whole: {why}\n"
        );
        assert!(run.stderr.contains(&expected), "{}", run.stderr);
        let info = Rpd::plain(["capture", "info"]).option([capture_of(&run)]);
        let info = info.run().success();
        assert!(info.stdout.contains(&expected), "{}", info.stdout);
    }
}

/// Checks capture-48.
#[test]
fn a_runtime_in_another_directory_is_captured() {
    if run::tool("python3").is_none() {
        run::skipped("a runtime in another directory", "python3 is not installed");
        return;
    }
    let rpd = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"]);
    let directory = rpd.directory().join("bundled/lib");
    std::fs::create_dir_all(&directory).expect("a directory");
    let library = directory.join("libamdhip64.so.6");
    let simulator = install::simulator_dir().join("libamdhip64.so.6");
    std::fs::copy(simulator, &library).expect("copied");
    let script = format!(
        "import ctypes\n\
         hip = ctypes.CDLL('{}')\n\
         device, data = ctypes.c_void_p(), ctypes.create_string_buffer(b'some bytes that are uploaded', 4096)\n\
         size = ctypes.c_size_t(4096)\n\
         assert hip.hipMalloc(ctypes.byref(device), size) == 0\n\
         assert hip.hipMemcpy(device, data, size, 1) == 0\n\
         assert hip.hipMemcpy(data, device, size, 2) == 0\n\
         assert hip.hipFree(device) == 0\n",
        library.display()
    );
    let run = rpd.target(["python3", "-c", &script]).success();
    let capture = capture_of(&run);
    let calls = database(&capture).rows("SELECT name FROM call ORDER BY seq");
    assert_eq!(
        calls,
        [["hipMalloc"], ["hipMemcpy"], ["hipMemcpy"], ["hipFree"]]
    );
    let replay = replayed(&capture, &[]).success();
    assert!(
        replay.stderr.contains("1 of 1 results are equal"),
        "{}",
        replay.stderr
    );
}

/// Checks capture-51, for device variables: every run finds the value that the program had.
#[test]
fn repeated_kernels_find_device_variables_restored() {
    let run = limits("counting");
    let options = [
        "--kernel",
        "counting_kernel#3",
        "--iterations",
        "10",
        "--until",
        "100000",
    ];
    let replay = replayed(&capture_of(&run), &options).success();
    assert!(
        replay.stderr.contains("1 of 1 results are equal"),
        "{}",
        replay.stderr
    );
}

/// Checks capture-53.
#[test]
fn replay_restores_all_memory_when_a_kernel_writes_other_memory_each_run() {
    let run = limits("moving");
    let options = ["--kernel", "moving_kernel", "--iterations", "100"];
    let replay = replayed(&capture_of(&run), &options).success();
    let note = "what the kernel writes changes from run to run; all memory is put back";
    assert!(replay.stderr.contains(note), "{}", replay.stderr);
    assert!(
        replay.stderr.contains(" put back before each"),
        "{}",
        replay.stderr
    );
}

/// Checks capture-55.
#[test]
fn an_exact_comparison_refuses_results_that_vary() {
    let run = limits("varying");
    let capture = capture_of(&run);
    let exact = replayed(&capture, &["--verify", "exact"]).expect_code(4);
    assert!(
        exact.stderr.contains("0 of 1 results are equal"),
        "{}",
        exact.stderr
    );
}

/// Checks capture-55.
#[test]
fn self_comparison_accepts_results_that_vary_from_replay_to_replay() {
    let run = limits("varying");
    let capture = capture_of(&run);
    let twice = replayed(&capture, &["--verify", "self", "--json", "report"]).success();
    for text in [
        "16384 bytes at ",
        " differ from replay to replay, as floats by at most ",
        ", varying_kernel",
        "0 of 1 results are equal, 1 are equal within the tolerance",
    ] {
        assert!(twice.stderr.contains(text), "{text}: {}", twice.stderr);
    }
    let report = std::fs::read(twice.directory.path().join("report")).expect("a report");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!(report["varying"][0]["launch"][1], "varying_kernel");
}

#[test]
fn self_comparison_without_tolerance_refuses_results_that_vary() {
    let run = limits("varying");
    let capture = capture_of(&run);
    let strict = replayed(&capture, &["--verify", "self:0,0"]).expect_code(4);
    assert!(
        strict
            .stderr
            .contains("differ from the capture and from replay to replay, first at byte "),
        "{}",
        strict.stderr
    );
}

#[test]
fn self_comparison_needs_no_tolerance_where_replays_agree() {
    let run = captured(&[], "capture", &["add"]).success();
    let steady = replayed(&capture_of(&run), &["--verify", "self:1e9,1e9"]).success();
    assert!(
        steady.stderr.ends_with("2 of 2 results are equal\n"),
        "{}",
        steady.stderr
    );
}

#[test]
fn self_comparison_refuses_an_incomplete_tolerance() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let refused = replayed(&capture, &["--verify", "self:1"]).expect_code(2);
    assert!(
        refused.stderr.contains("self:ABSOLUTE,RELATIVE"),
        "{}",
        refused.stderr
    );
}

/// A replay that compares with itself plays twice, and errors of the first time end it.
#[test]
fn self_comparison_reports_a_missing_kernel_once() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let lacks = replayed(
        &capture,
        &["--quiet", "--verify", "self", "--kernel", "none"],
    );
    let lacks = lacks.expect_code(1);
    assert_eq!(
        lacks.stderr.matches("launches no such kernel").count(),
        1,
        "{}",
        lacks.stderr
    );
}

#[test]
fn self_comparison_takes_the_options_of_one_replay() {
    let run = captured(&[], "capture", &["add"]).success();
    let capture = capture_of(&run);
    let part = replayed(
        &capture,
        &["--verify", "self", "--va", "remap", "--from", "9"],
    );
    let part = part.success();
    assert!(
        part.stderr.contains("1 of 1 results are equal"),
        "{}",
        part.stderr
    );
}

/// Checks capture-64.
#[test]
fn other_tools_receive_the_captured_calls() {
    let run = Rpd::plain(["capture", "--backend", "sim", "-o", "capture"])
        .env("ROCP_TOOL_LIBRARIES", workloads::path("event-log.so"))
        .env("RPD_EVENT_LOG", "events")
        .workload("capture", ["streams"])
        .success();
    let events =
        std::fs::read_to_string(run.directory.path().join("events")).expect("the tool's log");
    for call in ["hipLaunchKernel", "hipMemcpyAsync", "hipStreamDestroy"] {
        assert!(events.contains(call), "{events}");
    }
    let _ = replayed(&capture_of(&run), &["--verify", "exact"]).success();
}

/// Checks capture-65, of the whole and of a part that begins between the copies.
#[test]
fn replay_copies_between_gpus_with_exchanged_numbers() {
    let two_gpus = |command: &[&str]| Rpd::plain(command).env("RPD_SIM_GPUS", "2");
    for (mode, from) in [("peer", "9"), ("peers", "22")] {
        let run = two_gpus(&["capture", "--backend", "sim", "-o", "capture"])
            .workload("capture-limits", [mode])
            .success();
        let whole = capture_of(&run);
        let part = run.directory.path().join("part");
        let _ = two_gpus(&["capture", "trim", "--backend", "sim", "--from", from, "-o"])
            .option([&part, &whole])
            .run()
            .success();
        for capture in [whole, part] {
            for devices in [&[][..], &["--device", "0=1", "--device", "1=0"]] {
                for addresses in ["same", "remap"] {
                    let replay = two_gpus(&["replay", "--backend", "sim", "--va", addresses])
                        .option([&capture])
                        .option(devices)
                        .run()
                        .success();
                    assert!(
                        replay.stderr.contains("1 of 1 results are equal"),
                        "{mode} {devices:?}: {}",
                        replay.stderr
                    );
                }
            }
        }
    }
}

/// Checks capture-66.
#[test]
fn replay_runs_kernels_that_print_and_allocate() {
    round_trip("device-calls", &["memory"], false);
    let run = captured(&[], "device-calls", &["print"]).success();
    let replay = replayed(&capture_of(&run), &["--allow-no-results"]).success();
    let lines = |text: &str| {
        let of_program = |line: &&str| !matches!(*line, "before" | "after");
        let mut lines: Vec<String> = text.lines().filter(of_program).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(!lines(&replay.stdout).is_empty());
    assert_eq!(lines(&replay.stdout), lines(&run.stdout));
}
