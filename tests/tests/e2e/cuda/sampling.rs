//! PC samples of CUDA programs: the same tables and reports as those of AMD's GPUs.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rpd_tests::outputs::{Database, Table};
use rpd_tests::run::{Outcome, Rpd, skipped};

use super::{rpd, table};

const SAMPLING: [&str; 7] = [
    "--pc-sampling-beta-enabled",
    "--pc-sampling-method",
    "stochastic",
    "--pc-sampling-unit",
    "cycles",
    "--pc-sampling-interval",
    "1024",
];

/// What the disassembler says of a kernel: three instructions, one of them of an inlined call.
const DISASSEMBLY: &str = r#"#!/bin/sh
[ "$1 $2 $3" = "-c -gi -fun" ] || exit 3
head -c 4 "$5" | grep -q ELF || exit 4
case ",$4," in *,14,*) ;; *) exit 5 ;; esac
cat <<'END'
	.section	.text.scale,"ax",@progbits
.text.scale:
	//## File "/nowhere/scale.cu", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
	//## File "/nowhere/scale.h", line 8 inlined at "/nowhere/scale.cu", line 5
	//## File "/nowhere/scale.cu", line 5
        /*0010*/                   LDG.E R4, desc[UR4][R2.64] ;
	//## File "/nowhere/scale.cu", line 6
        /*0020*/                   FMUL R5, R4, R3 ;
        /*0030*/                   EXIT ;
END
"#;

/// A search path of programs with a disassembler, or without one.
fn path(directory: &Path, has_disassembler: bool) -> String {
    if has_disassembler {
        let file = directory.join("nvdisasm");
        std::fs::write(&file, DISASSEMBLY).expect("a script");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&file, executable).expect("its permissions");
    }
    format!("{}:/usr/bin:/bin", directory.display())
}

/// `rpd` that samples a program, with or without a disassembler.
fn sampled(options: &[&str], has_disassembler: bool) -> Rpd {
    let rpd = rpd(&SAMPLING).option(options);
    let path = path(rpd.directory(), has_disassembler);
    rpd.env("PATH", path).env("CUDA_HOME", "/nowhere")
}

fn database(outcome: &Outcome) -> String {
    outcome.file(".db").to_str().expect("text").to_owned()
}

/// Samples by kernel.
fn by_kernel(counts: &Table) -> BTreeMap<&str, u64> {
    let mut sums = BTreeMap::new();
    let kernels = counts.column("Kernel_Name");
    for (kernel, samples) in kernels.into_iter().zip(counts.numbers("Samples")) {
        *sums.entry(kernel).or_default() += samples;
    }
    sums
}

const ADD: &str = "void add<float>(float*, float const*, int)";

#[test]
fn samples_of_cuda_kernels_have_their_reasons_in_the_database_and_reports() {
    let outcome = sampled(
        &["--kernel-trace", "-f", "rocpd", "csv", "json", "html"],
        true,
    )
    .workload("cuda", ["runtime"])
    .success();
    let counts = table(&outcome, "pc_sampling_counts");
    assert_eq!(
        by_kernel(&counts),
        BTreeMap::from([("scale", 30), (ADD, 10)])
    );
    assert_eq!(counts.count("Stall_Reason", "LONG_SCOREBOARD"), 2);
    // Not a part of a reason that is counted already.
    assert_eq!(counts.rows.len(), 10);
    assert!(
        outcome
            .stderr
            .contains("are recorded as ANOTHER_REASON: moon_phase"),
        "{}",
        outcome.stderr
    );
    let path = database(&outcome);
    let data = Database::open(Path::new(&path));
    let issues = data.rows("SELECT issue, sum(samples) FROM rpd_pc_total GROUP BY 1 ORDER BY 1");
    let issues: Vec<(&str, &str)> = issues.iter().map(|row| (&*row[0], &*row[1])).collect();
    assert_eq!(
        issues,
        [
            ("ANOTHER_REASON", "4"),
            ("LONG_SCOREBOARD", "20"),
            ("WAIT", "8"),
            ("issued", "8")
        ]
    );
    // CUPTI says nothing of a sample by itself.
    assert_eq!(data.number("SELECT count(*) FROM rpd_pc_sample"), 0);
    assert_eq!(
        data.number("SELECT count(*) FROM pc_lines WHERE lanes IS NOT NULL"),
        0
    );
    let top =
        data.rows("SELECT kernel, instruction, file, line, samples FROM pc_instructions LIMIT 1");
    assert_eq!(
        top[0],
        [
            "scale",
            "LDG.E R4, desc[UR4][R2.64]",
            "/nowhere/scale.h",
            "8",
            "18"
        ]
    );
    let json = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    assert!(json.contains("\"pc_sample_count\":[{"), "no sums");
    let html = std::fs::read_to_string(outcome.file(".html")).expect("a file");
    assert!(html.contains("LDG.E R4"), "no listing");

    let hot = Rpd::plain(["hot", &path]).run().success().stdout;
    for expected in [
        "scale.h:8",
        "scale.cu:5",
        "LDG.E R4",
        "75.0",
        "LONG_SCOREBOARD",
    ] {
        assert!(
            hot.to_uppercase().contains(&expected.to_uppercase()),
            "{expected}: {hot}"
        );
    }
    let flame = Rpd::plain(["hot", &path, "-f", "folded"])
        .run()
        .success()
        .stdout;
    assert!(flame.contains("scale;"), "{flame}");
    let kernel = Rpd::plain(["kernel", "scale", &path])
        .run()
        .success()
        .stdout;
    assert!(kernel.contains("scale.h:8"), "{kernel}");
}

#[test]
fn samples_of_cuda_kernels_survive_the_way_through_a_database() {
    let outcome = sampled(&["--kernel-trace", "-f", "rocpd", "csv"], true)
        .workload("cuda", ["runtime"])
        .success();
    let first = table(&outcome, "pc_sampling_counts");
    let path = database(&outcome);
    let again = Rpd::plain(["convert", &path, "-f", "csv", "-d", "again", "-o", "p"])
        .run()
        .success();
    let files = rpd_tests::run::Outcome::files_ending(&again, "pc_sampling_counts.csv");
    let found = std::fs::read_dir(again.out().with_file_name("again"))
        .ok()
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .chain(files)
        .find(|path| path.to_string_lossy().ends_with("pc_sampling_counts.csv"));
    let second = Table::read(&found.expect("a file of sums"));
    assert_eq!((first.columns, first.rows), (second.columns, second.rows));
}

#[test]
fn instructions_without_a_disassembler_have_their_offsets() {
    if Path::new("/usr/local/cuda/bin/nvdisasm").exists() {
        skipped(
            "samples without a disassembler",
            "there is one in /usr/local/cuda",
        );
        return;
    }
    let outcome = sampled(&["-f", "rocpd", "csv"], false)
        .workload("cuda", ["runtime"])
        .success();
    assert!(
        outcome.stderr.contains("there is no nvdisasm"),
        "{}",
        outcome.stderr
    );
    // Without --kernel-trace as well.
    let counts = table(&outcome, "pc_sampling_counts");
    assert_eq!(
        by_kernel(&counts),
        BTreeMap::from([("scale", 30), (ADD, 10)])
    );
    let offsets: Vec<u64> = counts.numbers("Code_Object_Offset");
    assert!(offsets.contains(&(14 << 32 | 0x10)), "{offsets:?}");
    let hot = Rpd::plain(["hot", &database(&outcome)])
        .run()
        .success()
        .stdout;
    assert!(hot.contains("scale"), "{hot}");
}

#[test]
fn samples_are_complete_where_the_program_destroys_its_context_or_is_an_older_cupti() {
    for (version, steps) in [
        ("13.0", &["driver", "release"][..]),
        ("11.8", &["driver"]),
        ("12.3", &["driver", "release"]),
        ("12.4", &["driver"]),
    ] {
        let outcome = sampled(&["-f", "csv"], true)
            .env("RPD_CUDA_SIM_CUPTI", version)
            .workload("cuda", steps)
            .success();
        let counts = table(&outcome, "pc_sampling_counts");
        assert_eq!(
            by_kernel(&counts),
            BTreeMap::from([("scale", 40)]),
            "{version}"
        );
    }
}

#[test]
fn killed_cuda_program_keeps_the_samples_that_were_fetched() {
    let outcome = sampled(&["-f", "csv"], true).workload("cuda", ["runtime", "kill-later"]);
    assert_ne!(outcome.code(), 0);
    // CUPTI has kept those of the last kernel.
    let counts = table(&outcome, "pc_sampling_counts");
    assert_eq!(by_kernel(&counts), BTreeMap::from([("scale", 30)]));
}

#[test]
fn refused_sampling_is_one_line_with_what_to_do() {
    for (status, expected) in [
        ("35", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("26", "DCGM"),
        ("33", "the device is virtual"),
        ("40", "CAP_SYS_ADMIN"),
        ("41", "confidential computing"),
        ("43", "partitioned (MIG)"),
    ] {
        let outcome = sampled(&["--kernel-trace", "-f", "csv"], true)
            .env("RPD_CUDA_SIM_PC_SAMPLING", status)
            .workload("cuda", ["runtime"])
            .success();
        assert!(outcome.stdout.contains("runtime: 54"), "{}", outcome.stdout);
        let lines: Vec<&str> = outcome
            .stderr
            .lines()
            .filter(|line| line.contains("are not sampled"))
            .collect();
        assert_eq!(lines.len(), 1, "{}", outcome.stderr);
        assert!(
            lines[0].contains(expected) && lines[0].contains("cuptiPCSamplingEnable"),
            "{lines:?}"
        );
        // Kernels do not depend on it.
        assert_eq!(table(&outcome, "kernel_trace").rows.len(), 4);
        assert!(table(&outcome, "pc_sampling_counts").rows.is_empty());
    }
    let outcome = sampled(&["-f", "csv"], true)
        .env("RPD_CUDA_SIM_PC_BUFFER_FULL", "1")
        .workload("cuda", ["runtime"])
        .success();
    assert!(
        outcome.stderr.contains("the GPU's buffer was full"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn sampling_that_nvidia_gpus_lack_is_refused_before_the_program_starts() {
    for (method, unit, interval, expected) in [
        ("host_trap", "time", "100", "it has stochastic only"),
        ("stochastic", "cycles", "1000", "a power of two"),
        ("stochastic", "cycles", "16", "at least 32"),
    ] {
        let outcome = Rpd::plain([
            "-d",
            "out",
            "--backend",
            "cuda",
            "--pc-sampling-beta-enabled",
        ])
        .option(["--pc-sampling-method", method, "--pc-sampling-unit", unit])
        .option(["--pc-sampling-interval", interval])
        .target(["sh", "-c", "echo started"]);
        assert_ne!(outcome.code(), 0);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
        assert!(!outcome.stdout.contains("started"));
    }
}

#[test]
fn paused_time_has_no_samples() {
    let outcome = sampled(&["--selected-regions", "-f", "csv"], true)
        .workload("cuda", ["runtime"])
        .success();
    assert!(table(&outcome, "pc_sampling_counts").rows.is_empty());
}
