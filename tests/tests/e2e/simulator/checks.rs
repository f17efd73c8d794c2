//! `rpd check` on kernels with an error each, and on those without.

use std::fs;
use std::process::{Command, Output};

use rpd_tests::{install, workloads};

fn check(kernel: &[&str]) -> Output {
    let mut command = Command::new(install::rpd());
    command
        .args(["check", "--error-exitcode", "9", "--"])
        .arg(workloads::path("errors"))
        .args(kernel);
    command.output().expect("rpd runs")
}

fn report(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

#[test]
fn check_reports_nothing_for_correct_kernels() {
    for kernel in [
        "sum_clean",
        "count_clean",
        "last_block_clean",
        "early_return_clean",
        "tiles_clean",
        "message_clean",
        "lock_clean",
        "wait_clean",
        "halo_clean",
        "histogram_clean",
    ] {
        let output = check(&[kernel]);
        let report = report(&output);
        let (errors, checked) = report.split_once('\n').expect("two lines");
        assert_eq!(errors, "rpd: no errors found", "{kernel}");
        let name = format!(": {kernel} (");
        assert!(
            checked.starts_with("rpd: checked ") && checked.contains(&name),
            "{checked}"
        );
        assert_eq!(output.status.code(), Some(0), "{kernel}");
        assert_eq!(output.stdout, b"ended\n", "{kernel}");
    }
}

#[test]
fn check_reports_each_error_at_its_source_line() {
    let cases: [(&[&str], &str, &str); 22] = [
        (
            &["sum_without_barrier"],
            "data race in LDS",
            "part[id] += part[id + half];",
        ),
        (&["count_race"], "data race in global memory", "*out += 1;"),
        (
            &["neighbours_race"],
            "data race in global memory",
            "out[id] = *(volatile unsigned *)&out[next];",
        ),
        (
            &["row_too_many"],
            "access outside of allocations",
            "out[id] = in[id + BLOCK];",
        ),
        (
            &["before_the_first"],
            "access outside of allocations",
            "out[id] = in[(int)id - 1];",
        ),
        (
            &["reads_out"],
            "read of uninitialised global memory",
            "out[id] += in[id];",
        ),
        (
            &["reads_local"],
            "read of uninitialised LDS",
            "((volatile unsigned *)table)[id + 1];",
        ),
        (
            &["half_barrier"],
            "barrier in divergent code",
            "__builtin_amdgcn_s_barrier();",
        ),
        (
            &["odd_atomic"],
            "misaligned atomic",
            "__atomic_fetch_add((unsigned *)((char *)out + 2)",
        ),
        (
            &["sum_clean", "freed"],
            "access to freed memory",
            "part[id] = in[block_x() * BLOCK + id];",
        ),
        (
            &["tiles_without_barrier"],
            "data race in LDS",
            "tile[id] = in[n * BLOCK + id];",
        ),
        (
            &["rows_with_one_more"],
            "access outside of allocations",
            "total += in[row * BLOCK + id];",
        ),
        (
            &["message_relaxed"],
            "data race in global memory",
            "out[8 + block_x()] = out[1];",
        ),
        (
            &["message_without_acquire"],
            "data race in global memory",
            "out[8 + block_x()] = out[1];",
        ),
        (
            &["lock_relaxed"],
            "data race in global memory",
            "out[1] += 1;",
        ),
        (
            &["reduction_tail"],
            "read of uninitialised LDS",
            "part[id] += part[id + half];",
        ),
        (&["same_value"], "data race in global memory", "out[0] = 1;"),
        (
            &["halo_too_small"],
            "access outside of LDS",
            "out[first + id] = tile[id] + tile[id + 2];",
        ),
        (
            &["odd_atomic_64"],
            "misaligned atomic",
            "__hip_atomic_fetch_add((unsigned long *)(out + 1)",
        ),
        (
            &["barrier_in_loop"],
            "barrier in divergent code",
            "__builtin_amdgcn_s_barrier();",
        ),
        (
            &["steps_without_grid_barrier"],
            "data race in global memory",
            "if (out[(id + BLOCK) % (4 * BLOCK)] > 4 * BLOCK)",
        ),
        (
            &["histogram_without_barrier"],
            "data race in LDS",
            "out[block_x() * BLOCK + id] = bins[id / 16];",
        ),
    ];
    let directory = install::source_root().join("tests/workloads/kernels");
    let source =
        std::fs::read_to_string(directory.join("errors.hip")).expect("the source is there");
    for (kernel, kind, code) in cases {
        let output = check(kernel);
        let report = report(&output);
        let heading = format!("rpd: {kind}: kernel {}\n", kernel[0]);
        assert!(report.contains(&heading), "{kernel:?}: {report}");
        assert_ne!(output.status.code(), Some(0), "{kernel:?}");
        // Each line of code that the report names, of which one is that of the error.
        let lines: Vec<&str> = report
            .split("kernels/errors.hip:")
            .skip(1)
            .filter_map(|rest| rest.split(':').next()?.parse::<usize>().ok())
            .filter_map(|line| source.lines().nth(line - 1))
            .collect();
        assert!(
            lines.iter().any(|line| line.contains(code)),
            "{kernel:?}: {lines:?}\n{report}"
        );
    }
}

#[test]
fn check_writes_findings_as_json() {
    let mut command = Command::new(install::rpd());
    command
        .args(["check", "--json", "-", "--"])
        .arg(workloads::path("errors"))
        .arg("row_too_many");
    let output = command.output().expect("rpd runs");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let json = text
        .strip_prefix("ended\n")
        .expect("the program's own output comes first");
    let findings: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let finding = &findings[0];
    assert_eq!(finding["kind"], "access outside of allocations");
    assert_eq!(finding["workgroup"], 3);
    assert_eq!(finding["lanes"], "0-63");
    let memory = finding["memory"].as_str().expect("a text");
    assert!(
        memory.starts_with("0 bytes behind the allocation of 2048 bytes"),
        "{memory}"
    );
}

#[test]
fn check_passes_the_chosen_simulated_gpu_on() {
    let output = Command::new(install::rpd())
        .args(["check", "--sim-gpu", "gfx942", "--"])
        .args(["sh", "-c", "echo $RPD_SIM_GPU"])
        .output()
        .expect("rpd runs");
    assert_eq!(output.stdout, b"gfx942\n");
}

#[test]
fn check_reports_programs_that_cannot_start() {
    let refused = |words: &[&str], status, message: &str| {
        let output = Command::new(install::rpd())
            .arg("check")
            .args(words)
            .output()
            .expect("rpd runs");
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert!(
            report(&output).contains(message),
            "{words:?}: {}",
            report(&output)
        );
    };
    refused(
        &[],
        2,
        "rpd: check: no program given (rpd check -- PROGRAM)",
    );
    refused(
        &["--", "/proc/nonexistent/app"],
        127,
        "/proc/nonexistent/app",
    );
    refused(
        &["--sim-gpu", "gfx000", "--", "true"],
        2,
        "[possible values: gfx90a, gfx942]",
    );
    // A program without a GPU has no errors, and its own status.
    let output = Command::new(install::rpd())
        .args(["check", "--", "sh", "-c", "exit 5"])
        .output();
    assert_eq!(output.expect("rpd runs").status.code(), Some(5));
}

#[test]
fn check_does_not_call_a_program_without_kernels_clean() {
    for (words, status) in [(&["true"][..], 1), (&["sh", "-c", "exit 5"], 5)] {
        let output = Command::new(install::rpd())
            .args(["check", "--"])
            .args(words)
            .output()
            .expect("rpd runs");
        assert_eq!(output.status.code(), Some(status), "{words:?}");
        assert_eq!(
            report(&output),
            "rpd: nothing was checked: the program launched no kernel\n",
            "{words:?}"
        );
    }
}

/// The collector finds the provider's function by its name, which a copy of the simulator lacks here.
#[test]
fn check_refuses_a_provider_that_cannot_check_kernels() {
    let directory = tempfile::tempdir_in(install::target_dir()).expect("a directory");
    let bin = install::bin_dir();
    for name in ["rpd", "librpd_collect.so", "librpd_register.so"] {
        fs::copy(bin.join(name), directory.path().join(name)).expect("a copy");
    }
    let mut library = fs::read(bin.join("librpd_sim.so")).expect("the simulator");
    let name = b"\0rpd_check_kernels\0";
    let places: Vec<usize> = (0..library.len() - name.len())
        .filter(|&at| library[at..].starts_with(name))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        library[at + 1] = b'x';
    }
    fs::write(directory.path().join("librpd_sim.so"), library).expect("the other simulator");
    let output = Command::new(directory.path().join("rpd"))
        .args(["check", "--"])
        .arg(workloads::path("errors"))
        .arg("sum_clean")
        .output()
        .expect("rpd runs");
    assert_eq!(
        report(&output),
        "rpd: check: the kernels of a process were not checked: its SDK has no function rpd_check_kernels, which only the \
         simulated GPU has\n"
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"ended\n");
}
