//! The ranks of a parallel program, each with an rpd of its own: one directory, one summary, one time line.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd, lacks, skipped, tool_for};
use rpd_tests::{install, workloads};

/// Ranks that run at the same time, where not all have to.
const AT_ONCE: usize = 8;

/// A rank with an rpd of its own, as `mpirun -n RANKS rpd ... -- ranks ...` starts it.
fn rank(
    directory: &Path,
    number: usize,
    ranks: usize,
    options: &[&str],
    arguments: &[&str],
) -> Command {
    let mut command = Command::new(install::rpd());
    command
        .args([
            "--backend",
            "sim",
            "--kernel-trace",
            "--memory-copy-trace",
            "--marker-trace",
        ])
        .args(options)
        .arg("--")
        .arg(workloads::path("ranks"))
        .args(arguments)
        .env("OMPI_COMM_WORLD_RANK", number.to_string())
        .env("OMPI_COMM_WORLD_SIZE", ranks.to_string())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Runs commands, so many at a time; the end and the messages of each, in their order.
fn run_all(commands: Vec<Command>, at_once: usize) -> Vec<(ExitStatus, String)> {
    let mut ends = Vec::new();
    let mut commands = commands.into_iter().peekable();
    while commands.peek().is_some() {
        let started: Vec<_> = commands
            .by_ref()
            .take(at_once)
            .map(|mut command| command.spawn().expect("started"))
            .collect();
        ends.extend(started.into_iter().map(|child| {
            let output = child.wait_with_output().expect("ended");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status, said)
        }));
    }
    ends
}

/// `rpd <arguments>` in a directory.
fn rpd(directory: &Path, arguments: &[&str]) -> Outcome {
    let mut command = Command::new(install::rpd());
    command.args(arguments).current_dir(directory);
    let output = command.output().expect("rpd runs");
    Outcome {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        directory: tempfile::tempdir().expect("a directory"),
    }
}

fn databases(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|end| end == "db") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Labels of the processes of a time line in JSON, and its events that last.
fn events(path: &Path) -> (BTreeSet<String>, Vec<serde_json::Value>) {
    let text = fs::read_to_string(path).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let all = json["traceEvents"].as_array().expect("events").clone();
    let of_phase = |phase: &str| {
        let all = all.iter().filter(|event| event["ph"] == phase);
        all.cloned().collect::<Vec<_>>()
    };
    let names = of_phase("M")
        .into_iter()
        .filter(|event| event["name"] == "process_name");
    let labels = names.map(|event| event["args"]["name"].as_str().expect("a name").to_owned());
    (labels.collect(), of_phase("X"))
}

#[test]
fn summary_of_64_ranks_accounts_for_killed_and_late_ones() {
    const RANKS: usize = 64;
    const STEPS: usize = 4;
    let killed = [3, 17, 40, 63];
    let late = [5, 42];
    let list = |ranks: &[usize]| {
        let texts: Vec<String> = ranks.iter().map(usize::to_string).collect();
        texts.join(",")
    };
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let steps = STEPS.to_string();
    // One more is said to exist, and never starts.
    let commands = (0..RANKS).map(|number| {
        let arguments = [&*steps, &list(&late), &list(&killed)];
        rank(directory, number, RANKS + 1, &["-d", "run"], &arguments)
    });
    for (number, (status, said)) in run_all(commands.collect(), AT_ONCE).into_iter().enumerate() {
        let expected = if killed.contains(&number) { 128 + 9 } else { 0 };
        let code = status.code().or(status.signal().map(|signal| 128 + signal));
        assert_eq!(code, Some(expected), "rank {number}: {said}");
    }
    assert_eq!(
        databases(&directory.join("run")).len(),
        RANKS,
        "one for each rank"
    );

    let _ = rpd(
        directory,
        &[
            "summary", "run", "--by", "rank", "-f", "csv", "-d", "tables",
        ],
    )
    .success();
    let table = |name: &str| Table::read(&directory.join("tables").join(format!("{name}.csv")));
    let ranks = table("ranks");
    let numbers: Vec<u64> = (0..=RANKS as u64).collect();
    assert_eq!(ranks.numbers("Rank"), numbers);
    let states = ranks.column("State");
    let kernels = ranks.column("Kernels");
    for (number, state) in states.iter().enumerate() {
        let (expected, launches) = if number == RANKS {
            ("no recording", String::new())
        } else if killed.contains(&number) {
            ("killed", (4 * (STEPS / 2 + 1)).to_string())
        } else if late.contains(&number) {
            ("complete", (80 * STEPS).to_string())
        } else {
            ("complete", (4 * STEPS).to_string())
        };
        assert_eq!(
            (*state, kernels[number]),
            (expected, &*launches),
            "rank {number}"
        );
    }

    let stragglers = table("stragglers_by_rank");
    let of_kind = |kind: &str| -> Vec<u64> {
        let ranks = stragglers.numbers("Rank");
        let kinds = stragglers.column("Kind");
        let of_kind = ranks.into_iter().zip(kinds).filter(|(_, of)| *of == kind);
        of_kind.map(|(rank, _)| rank).collect()
    };
    // On a busy machine others may be slow as well; those that do more come first.
    for kind in ["kernel", "region"] {
        let mut first: Vec<u64> = of_kind(kind).into_iter().take(late.len()).collect();
        first.sort_unstable();
        assert_eq!(
            first,
            late.map(|rank| rank as u64),
            "{kind}: {:?}",
            of_kind(kind)
        );
    }

    let imbalance = table("kernels_imbalance_by_rank");
    assert_eq!(
        imbalance.numbers("Ranks"),
        [60],
        "killed ranks are not compared"
    );
    let slowest = imbalance.column("Slowest")[0];
    assert!(
        late.iter()
            .any(|rank| slowest.starts_with(&format!("rank {rank} on "))),
        "{slowest}"
    );

    let said = rpd(directory, &["summary", "run", "--by", "host"])
        .success()
        .stdout;
    assert!(
        said.contains("\nHOSTS:\n") && said.contains(" killed "),
        "{said}"
    );

    let made = rpd(
        directory,
        &[
            "convert",
            "run",
            "-f",
            "json",
            "pftrace",
            "html",
            "--one-timeline",
            "-d",
            "all",
        ],
    );
    let made = made.success();
    assert!(
        made.stderr.contains("rpd: no recording of rank 64"),
        "{}",
        made.stderr
    );
    assert!(
        made.stderr
            .contains("rpd: killed before the end of recording: rank 3 on "),
        "{}",
        made.stderr
    );
    let (labels, slices) = events(&directory.join("all/timeline.json"));
    assert_eq!(labels.len(), RANKS);
    let pids: BTreeSet<u64> = slices
        .iter()
        .filter_map(|slice| slice["pid"].as_u64())
        .collect();
    assert_eq!(pids.len(), RANKS);
    let of_kernels = slices
        .iter()
        .filter(|slice| slice["cat"] == "KERNEL_DISPATCH");
    let sum: u64 = kernels
        .iter()
        .filter_map(|text| text.parse::<u64>().ok())
        .sum();
    assert_eq!(of_kernels.count() as u64, sum);
    for file in ["all/timeline.pftrace", "all/timeline.html"] {
        let bytes = fs::read(directory.join(file)).expect("a file");
        for label in &labels {
            let label = label.as_bytes();
            assert!(
                bytes.windows(label.len()).any(|window| window == label),
                "{file}"
            );
        }
    }
}

#[test]
fn ranks_with_one_output_name_get_their_pids_appended() {
    const RANKS: usize = 4;
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    // They wait for one another, so that all write their outputs at the same time.
    let barrier = directory.join("barrier");
    fs::write(&barrier, [0; 4096]).expect("written");
    let barrier = barrier.to_str().expect("text");
    let run = || {
        let commands = (0..RANKS).map(|number| {
            let arguments = ["3", "", "", barrier, "4"];
            rank(
                directory,
                number,
                RANKS,
                &["-d", "run", "-o", "job"],
                &arguments,
            )
        });
        let said: Vec<String> = run_all(commands.collect(), RANKS)
            .into_iter()
            .map(|(status, said)| {
                assert!(status.success(), "{said}");
                said
            })
            .collect();
        said
    };
    let said = run();
    let files = databases(&directory.join("run"));
    assert_eq!(files.len(), RANKS, "{files:?}\n{}", said.join("\n"));
    let renamed = said
        .iter()
        .filter(|said| said.contains("another rpd of the same time writes run/job_*"));
    assert_eq!(renamed.count(), RANKS - 1, "{}", said.join("\n"));
    let ranks: BTreeSet<String> = files
        .iter()
        .map(|file| {
            let sql = "SELECT json_extract(extdata, '$.mpi_rank') FROM rocpd_info_process";
            Database::open(file).rows(sql)[0][0].clone()
        })
        .collect();
    assert_eq!(ranks.len(), RANKS, "each has another rank's records");
    let hidden = fs::read_dir(directory.join("run")).expect("a directory");
    let hidden = hidden
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(".job"));
    assert_eq!(hidden.count(), 0, "claims are removed");

    // A repetition replaces the file of that name, as a command that is repeated does.
    fs::write(directory.join("barrier"), [0; 4096]).expect("written");
    run();
    let again = databases(&directory.join("run"));
    assert_eq!(again.len(), 2 * RANKS - 1, "{again:?}");
}

#[test]
fn launcher_inside_rpd_gives_one_run_of_all_ranks() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let script = "for rank in 0 1 2; do OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=3 \"$@\" & done; wait";
    let mut command = Command::new(install::rpd());
    command
        .args([
            "--backend",
            "sim",
            "--kernel-trace",
            "-d",
            "run",
            "-o",
            "job",
            "--",
            "sh",
            "-c",
            script,
            "sh",
        ])
        .arg(workloads::path("ranks"))
        .args(["2", "", ""])
        .current_dir(directory);
    let output = command.output().expect("rpd runs");
    assert!(output.status.success(), "{output:?}");
    let _ = rpd(
        directory,
        &[
            "summary", "run", "--by", "rank", "-f", "csv", "-d", "tables",
        ],
    )
    .success();
    let ranks = Table::read(&directory.join("tables/ranks.csv"));
    assert_eq!(ranks.numbers("Rank"), [0, 1, 2]);
    assert_eq!(ranks.column("Kernels"), ["8"; 3]);
}

/// Two hosts whose clocks differ by a known time: namespaces of this machine.
#[test]
fn clocks_of_two_hosts_are_aligned_by_barriers_within_the_stated_error() {
    const AHEAD: u64 = 100_000;
    if lacks("unshare") {
        return;
    }
    let ahead = AHEAD.to_string();
    let other_host = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare
            .args([
                "--time",
                "--boottime",
                &ahead,
                "--uts",
                "--fork",
                "sh",
                "-c",
            ])
            .arg(format!(
                "echo other > /proc/sys/kernel/hostname && {command}"
            ));
        unshare
    };
    let tried = other_host("true").stderr(Stdio::null()).status();
    if !tried.is_ok_and(|status| status.success()) {
        let test = "clocks_of_two_hosts_are_aligned_by_barriers_within_the_stated_error";
        skipped(test, "no time namespace with another host name");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let barrier = directory.join("barrier");
    fs::write(&barrier, [0; 4096]).expect("written");
    let barrier = barrier.to_str().expect("text");
    let arguments = ["20", "", "", barrier, "4"];
    let commands = (0..4).map(|number| {
        let own = rank(directory, number, 4, &["-d", "run"], &arguments);
        if number < 3 {
            return own;
        }
        let mut elsewhere = other_host("exec \"$0\" \"$@\"");
        elsewhere.arg(own.get_program()).args(own.get_args());
        for (name, value) in own.get_envs() {
            elsewhere.env(name, value.expect("set"));
        }
        elsewhere
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        elsewhere
    });
    for (status, said) in run_all(commands.collect(), 4) {
        assert!(status.success(), "{said}");
    }
    let made = rpd(
        directory,
        &["convert", "run", "-f", "json", "--one-timeline"],
    )
    .success();
    let line = made
        .stderr
        .lines()
        .find(|line| line.contains("clock of other aligned by"));
    let line = line.unwrap_or_else(|| panic!("{}", made.stderr));
    assert!(
        line.contains("20 collective operations: remaining error at most"),
        "{line}"
    );
    // Each barrier ends nowhere before all have come: true in the time line, and not in the recordings.
    let (_, slices) = events(&directory.join("timeline.json"));
    let mut barriers: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice["name"] == "MPI_Barrier") {
        let number = |key: &str| slice[key].as_f64().expect("a number");
        let of_process = barriers
            .entry(slice["pid"].as_u64().expect("a process"))
            .or_default();
        of_process.push((number("ts"), number("ts") + number("dur")));
    }
    assert_eq!(barriers.len(), 4);
    for step in 0..20 {
        let parts = barriers.values().map(|of_process| of_process[step]);
        let last_start = parts
            .clone()
            .map(|(start, _)| start)
            .fold(f64::MIN, f64::max);
        let first_end = parts.map(|(_, end)| end).fold(f64::MAX, f64::min);
        assert!(
            last_start <= first_end,
            "barrier {step}: {last_start} {first_end}"
        );
    }
    // Without barriers the time of day, which both namespaces share, aligns the clocks with an error that nobody knows.
    let coarse = rpd(
        directory,
        &[
            "convert",
            "run",
            "-f",
            "json",
            "--one-timeline",
            "--barrier",
            "none",
            "-o",
            "coarse",
        ],
    );
    let coarse = coarse.success();
    assert!(
        coarse.stderr.contains(
            "clock of other aligned by the time of day of both hosts: remaining error unknown"
        ),
        "{}",
        coarse.stderr
    );
}

#[test]
fn collectives_of_a_communicator_are_tied_across_processes() {
    let outcome = Rpd::new([
        "--rccl-trace",
        "--hip-runtime-trace",
        "--kernel-trace",
        "--annotate-args",
    ])
    .env("RPD_SIM_GPUS", "3")
    .workload("collectives", ["processes", "3", "200"])
    .success();
    let out = outcome.out();
    let _ = rpd(
        &out,
        &["summary", ".", "--by", "rank", "-f", "csv", "-d", "tables"],
    )
    .success();
    let waits = Table::read(&out.join("tables/waits_by_rank.csv"));
    let operations = waits.numbers("Collectives");
    assert_eq!(operations.len(), 3, "{operations:?}");
    assert!(
        operations[0] > 50 && operations.iter().all(|of| *of == operations[0]),
        "{operations:?}"
    );
    let last: u64 = waits.numbers("Came last").iter().sum();
    assert_eq!(last, operations[0], "one rank comes last in each");
    let waited: u64 = waits.numbers("WAITED (nsec)").iter().sum();
    assert!(waited > 0);
}

/// The launchers of MPI libraries that are installed here; each starts programs that know nothing of MPI.
#[test]
fn launchers_of_mpi_libraries_number_the_ranks() {
    let check = "launchers_of_mpi_libraries_number_the_ranks";
    let launchers: [(&str, &[&str], &str); 2] = [
        (
            "mpirun.openmpi",
            &["--allow-run-as-root", "--oversubscribe", "-n", "3"],
            "Open MPI",
        ),
        ("mpirun.mpich", &["-n", "3"], "PMI"),
    ];
    for (program, options, launcher) in launchers {
        let Some(program) = tool_for(check, program) else {
            continue;
        };
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        let mut command = Command::new(program);
        command
            .args(options)
            .arg(install::rpd())
            .args(["--backend", "sim", "--kernel-trace", "-d", "run", "--"])
            .arg(workloads::path("ranks"))
            .args(["2", "", ""])
            .current_dir(directory)
            .stdin(Stdio::null());
        let output = command.output().expect("started");
        assert!(output.status.success(), "{output:?}");
        let _ = rpd(
            directory,
            &[
                "summary", "run", "--by", "rank", "-f", "csv", "-d", "tables",
            ],
        )
        .success();
        let ranks = Table::read(&directory.join("tables/ranks.csv"));
        assert_eq!(ranks.numbers("Rank"), [0, 1, 2], "{launcher}");
        assert_eq!(ranks.column("Kernels"), ["8"; 3], "{launcher}");
        let sql = "SELECT json_extract(extdata, '$.launcher'), json_extract(extdata, '$.mpi_size') FROM rocpd_info_process";
        for database in databases(&directory.join("run")) {
            assert_eq!(Database::open(&database).rows(sql), [[launcher, "3"]]);
        }
    }
}
