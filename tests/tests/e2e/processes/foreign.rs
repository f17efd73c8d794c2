//! What comes from elsewhere: texts in messages, bytes that are no UTF-8, values of placeholders, secrets, runtimes that are
//! particular about what is loaded.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use rpd_tests::run::{Outcome, Rpd, skipped, tool};

fn sim<const N: usize>(options: [&str; N]) -> Rpd {
    let mut words = vec!["--backend", "sim"];
    words.extend(options);
    Rpd::plain(words)
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

/// No line that rpd writes was begun by somebody else, and nothing moves the cursor.
fn nothing_forged(outcome: &Outcome, what: &str) {
    let text = &outcome.stderr;
    assert!(!text.is_empty(), "{what}");
    assert!(
        text.lines().all(|line| !line.starts_with("rpd: forged")),
        "{what}: {text}"
    );
    assert!(!text.contains(['\x1b', '\r', '\u{202e}']), "{what}: {text}");
    assert!(text.contains("forged"), "{what} says nothing: {text}");
}

#[test]
fn foreign_text_cannot_forge_message_lines() {
    const EVIL: &str = "x\nrpd: forged\x1b[2J\r\u{202e}";
    let option = format!("--{EVIL}");
    nothing_forged(&sim(["-s", &option]).target(["/bin/true"]), "an option");
    nothing_forged(&sim(["-s", "-f", EVIL]).target(["/bin/true"]), "a value");
    nothing_forged(&sim(["-s", "-i", EVIL]).target(["/bin/true"]), "a file");
    nothing_forged(&sim(["-s"]).target([EVIL]), "a missing program");
    nothing_forged(&Rpd::plain([EVIL]).run(), "a sub-command");
    nothing_forged(&Rpd::plain(["query", EVIL, "SELECT 1"]).run(), "a database");
    nothing_forged(&Rpd::plain(["recover", EVIL]).run(), "a directory");

    let rpd = sim(["-s", "-i", "job.json"]);
    let job = r#"{"jobs": [{"x\nrpd: forged\u001b": 1, "pmc": ["a\nrpd: forged\u001b"]}]}"#;
    fs::write(rpd.directory().join("job.json"), job).expect("a job");
    nothing_forged(&rpd.target(["/bin/true"]), "a job");

    let rpd = sim(["-s"]);
    let program = rpd.directory().join("p\nrpd: forged\x1b");
    fs::copy("/bin/true", &program).expect("a copy");
    nothing_forged(&rpd.target([program]), "a program's name");
}

#[test]
fn arguments_that_are_not_utf8_reach_the_program_unchanged() {
    let rpd = sim(["-s", "--output-config", "-f", "json"]);
    let directory = rpd.directory().to_owned();
    let script = directory.join(os(b"s\xfe.sh"));
    fs::write(
        &script,
        "#!/bin/sh\nprintf %s \"$1\" | od -An -tx1\nprintf %s \"$0\" | od -An -c\n",
    )
    .expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
    let mut words: Vec<OsString> = ["--backend", "sim", "-s", "--output-config", "-d"]
        .map(OsString::from)
        .to_vec();
    words.push(os(b"out\xff"));
    words.extend([OsString::from("-o"), os(b"p\xfd-%arg1%")]);
    let outcome = Rpd::plain(words)
        .target([script.as_os_str(), &os(b"a\xffb\\x41")])
        .success();
    assert!(
        outcome.stdout.contains("61 ff 62 5c 78 34 31"),
        "{}",
        outcome.stdout
    );
    let directory = outcome.directory.path().join(os(b"out\xff"));
    let names: Vec<OsString> = fs::read_dir(&directory)
        .expect("the output directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    let config = names
        .iter()
        .find(|name| name.as_bytes().ends_with(b"_config.json"))
        .unwrap_or_else(|| panic!("{names:?}: {}", outcome.stderr));
    assert!(config.as_bytes().starts_with(b"p\xfd-"), "{config:?}");
    let text = fs::read_to_string(directory.join(config)).expect("UTF-8");
    assert!(text.contains(r"a\\xffb\\x5cx41"), "{text}");
    assert!(text.contains(r"out\\xff"), "{text}");

    let refused = Rpd::plain([os(b"--kernel-include-regex"), os(b"\xff")])
        .target(["/bin/true"])
        .expect_code(2);
    assert_eq!(refused.stderr, "rpd: \\xff is not valid UTF-8\n");
}

#[test]
fn placeholder_values_cannot_leave_the_output_directory() {
    let outcome = sim([
        "--kernel-trace",
        "-d",
        "out",
        "-o",
        "%env{NOT_SET}%/%env{UP}%/x",
    ])
    .env("UP", "..")
    .workload("vector-ops", ["1", "1"])
    .success();
    let file = outcome.directory.path().join("out/_/__/x_results.db");
    assert!(file.is_file(), "{}", outcome.stderr);
    for remark in [
        "rpd: names of outputs: %env{NOT_SET}% makes a path component that is empty: it is replaced by _\n",
        "rpd: names of outputs: %env{UP}% makes a path component that is `..`: it is replaced by __\n",
    ] {
        assert_eq!(
            outcome.stderr.matches(remark).count(),
            1,
            "{}",
            outcome.stderr
        );
    }
}

#[test]
fn a_too_long_output_name_is_refused_before_the_program_starts() {
    let name = "n".repeat(300);
    let outcome = sim(["--kernel-trace", "-o", &name])
        .target(["/bin/echo", "started"])
        .expect_code(1);
    assert!(!outcome.stdout.contains("started"));
    assert!(
        outcome.stderr.contains("255 are possible"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn secret_variables_are_in_no_output() {
    let names = [
        "ROCM_APIKEY",
        "HSA_PASSPHRASE",
        "RPD_PRIVATE_KEY_PEM",
        "HIP_API_KEY_2",
        "ROC_PASS",
        "HIP_Token",
        "ROCM_PWD",
        "RPD_BEARER",
        "OMPI_KEYFILE",
        "SLURM_SPANK_KRB5CCNAME",
        "MPI_SIGNATURE",
    ];
    let run = |which: &str| {
        let mut rpd = sim([
            "--kernel-trace",
            "--output-config",
            "--output-environment",
            which,
            "-o",
            "x",
        ]);
        for name in names {
            rpd = rpd.env(name, "deep-secret");
        }
        rpd.env("HSA_ENABLE_SDMA", "1")
            .env("OMP_NUM_THREADS", "7")
            .workload("vector-ops", ["1", "1"])
            .success()
    };
    let holds = |outcome: &Outcome, file: &str, text: &str| {
        let bytes = fs::read(outcome.directory.path().join(file)).expect(file);
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    let relevant = run("relevant");
    let all = run("all");
    for file in ["x_config.json", "x_results.db"] {
        assert!(!holds(&relevant, file, "deep-secret"), "{file}");
        for name in names {
            assert!(!holds(&relevant, file, name), "{file}: {name}");
            assert!(holds(&all, file, name), "{file}: {name}");
        }
        for name in ["HSA_ENABLE_SDMA", "OMP_NUM_THREADS"] {
            assert!(holds(&relevant, file, name), "{file}: {name}");
        }
        assert!(holds(&all, file, "deep-secret"), "{file}");
    }
}

#[test]
fn sanitized_programs_end_as_without_rpd() {
    let Some(compiler) = tool("gcc") else {
        return skipped("sanitized programs", "no gcc");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("a.c");
    fs::write(
        &source,
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
         int main(int c, char **v) {\n\
           char *p = malloc(10); p[0] = (char)c;\n\
           if (c > 1 && !strcmp(v[1], \"use\")) { free(p); return p[0]; }\n\
           free(p); puts(\"ok\"); return 7;\n}\n",
    )
    .expect("a source");
    for (kind, library) in [
        ("address", &[][..]),
        ("address", &["-static-libasan"]),
        ("thread", &[]),
        ("leak", &[]),
    ] {
        let program = directory.path().join("program");
        let made = Command::new(&compiler)
            .arg(format!("-fsanitize={kind}"))
            .args(library)
            .arg("-o")
            .args([&program, &source])
            .output()
            .expect("gcc runs");
        if !made.status.success() {
            skipped(kind, "its runtime is not installed");
            continue;
        }
        for argument in ["run", "use"] {
            let bare = Command::new(&program)
                .arg(argument)
                .output()
                .expect("it runs");
            let outcome = sim(["-s"]).target([program.as_os_str(), argument.as_ref()]);
            // What a freed block holds is a matter of chance where nothing looks.
            if kind == "leak" && argument == "use" {
                continue;
            }
            assert_eq!(
                Some(outcome.code()),
                bare.status.code(),
                "{kind} {library:?} {argument}: {}",
                outcome.stderr
            );
            assert!(
                !outcome.stderr.contains("nothing was recorded"),
                "{kind} {argument}: {}",
                outcome.stderr
            );
        }
    }
}

#[test]
fn a_static_program_is_reported_as_static() {
    let Some(compiler) = tool("gcc") else {
        return skipped("statically linked programs", "no gcc");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (
        directory.path().join("a.c"),
        directory.path().join("static"),
    );
    fs::write(&source, "int main(void) { return 3; }\n").expect("a source");
    let made = Command::new(compiler)
        .args(["-static", "-o"])
        .args([&program, &source])
        .output()
        .expect("gcc runs");
    if !made.status.success() {
        return skipped("statically linked programs", "no static C library");
    }
    let outcome = sim(["-s"]).target([&program]).expect_code(3);
    assert!(
        outcome.stderr.ends_with(
            "static: nothing was recorded: the collector cannot be loaded into it: it is statically linked\n"
        ),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_deleted_working_directory_is_reported() {
    let Some(directory) = std::env::var_os("RPD_BIN_DIR") else {
        return skipped("a deleted directory", "RPD_BIN_DIR is not set");
    };
    let script = "d=$(mktemp -d); cd \"$d\"; rmdir \"$d\"; exec \"$0\" -s -- /bin/true";
    let output = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(std::path::Path::new(&directory).join("rpd"))
        .output()
        .expect("a shell");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "rpd: the current directory has been deleted; change to one that exists\n"
    );
}

/// Rows of a CSV file as Python's own reader has them.
fn csv_rows(python: &std::path::Path, file: &std::path::Path) -> String {
    let script = "import csv, sys; [print('|'.join(row)) for row in csv.reader(open(sys.argv[1], newline=''))]";
    let output = Command::new(python)
        .args(["-c", script])
        .arg(file)
        .output()
        .expect("python3 starts");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn csv_cells_that_look_like_formulas_are_marked_on_request() {
    let Some(python) = tool("python3") else {
        return skipped("CSV files in the eyes of Python", "no python3");
    };
    const MESSAGES: [&str; 5] = ["=1+1", "+1", "-1", "@SUM(A1)", "a=b"];
    let record = |options: &[&str]| {
        let mut words = vec!["--backend", "sim", "--marker-trace"];
        words.extend(["--stats", "-f", "csv", "rocpd", "-d", "out", "-o", "x"]);
        words.extend(options);
        let rpd = Rpd::plain(words);
        rpd.workload("odd", [&["messages"][..], &MESSAGES].concat())
            .success()
    };
    let plain = record(&[]);
    let safe = record(&["--csv-safe"]);
    let convert = |options: &[&str]| {
        let mut words: Vec<OsString> = vec!["convert".into()];
        words.push(plain.directory.path().join("out/x_results.db").into());
        words.extend(["-f", "csv", "--stats", "-d", "out", "-o", "x"].map(OsString::from));
        words.extend(options.iter().map(OsString::from));
        Rpd::plain(words).run().success()
    };
    let (plain_again, safe_again) = (convert(&[]), convert(&["--csv-safe"]));
    for (outcome, is_safe) in [
        (&plain, false),
        (&safe, true),
        (&plain_again, false),
        (&safe_again, true),
    ] {
        for file in ["x_marker_api_trace.csv", "x_marker_api_stats.csv"] {
            let text = csv_rows(&python, &outcome.out().join(file));
            for message in MESSAGES {
                let is_formula = message.starts_with(['=', '+', '-', '@']);
                let cell = if is_safe && is_formula {
                    format!("'{message}")
                } else {
                    message.to_owned()
                };
                let mut cells = text.lines().flat_map(|line| line.split('|'));
                assert!(cells.any(|found| found == cell), "{file} {cell}: {text}");
            }
        }
    }
}

#[test]
fn sub_commands_accept_paths_that_are_not_utf8() {
    let run = sim(["--kernel-trace", "-d", "out", "-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let database = run.directory.path().join(os(b"in\xff_results.db"));
    fs::rename(run.directory.path().join("out/x_results.db"), &database).expect("renamed");
    let (d, o) = (os(b"d\xfe"), os(b"p\xfd"));
    for (command, options, files) in [
        (
            "convert",
            &["-f", "csv"][..],
            &[
                &b"d\xfe/p\xfd_agent_info.csv"[..],
                b"d\xfe/p\xfd_kernel_trace.csv",
            ][..],
        ),
        (
            "convert",
            &["-f", "csv", "--layout", "original"],
            &[b"d\xfe/p\xfd_kernel_trace.csv"],
        ),
        (
            "summary",
            &["-f", "csv"],
            &[b"d\xfe/p\xfd_kernels_summary.csv"],
        ),
        ("summary", &[], &[b"d\xfe/p\xfd.txt"]),
        (
            "query",
            &["--query", "SELECT 1", "-f", "csv"],
            &[b"d\xfe/p\xfd.csv"],
        ),
        ("merge", &[], &[b"d\xfe/p\xfd.db"]),
        ("diff", &["-f", "csv"], &[b"p\xfd"]),
    ] {
        let mut words: Vec<OsString> = vec![command.into(), database.clone().into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["-o".into(), o.clone()]);
        match command {
            "diff" => words.push(database.clone().into()),
            _ => words.extend(["-d".into(), d.clone()]),
        }
        let outcome = Rpd::plain(words).run().success();
        for file in files {
            let path = outcome.directory.path().join(os(file));
            assert!(path.is_file(), "{command} {options:?}: {}", outcome.stderr);
        }
    }
    // Without -o, files are called like the database.
    let words = ["convert", "-f", "csv"].map(OsString::from);
    let outcome = Rpd::plain([&words[..], &[database.into()]].concat())
        .run()
        .success();
    let file = outcome
        .directory
        .path()
        .join(os(b"in\xff_kernel_trace.csv"));
    assert!(file.is_file(), "{}", outcome.stderr);
}
