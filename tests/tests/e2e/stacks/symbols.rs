//! When symbols of call stacks are looked up after a run, the messages about those that are not, and the views over them.

use std::process::Command;

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd, lacks};

/// Functions of native frames in a database, and addresses that were not looked up.
fn found(database: &Database) -> (i64, i64) {
    (
        database.number(
            "SELECT count(*) FROM rpd_frame f JOIN rocpd_string s ON s.id = f.function_id
                WHERE s.string IN ('make_tree', 'main') AND f.inline_depth >= 0",
        ),
        database.number("SELECT count(*) FROM rpd_frame WHERE evidence = 'none: not looked up'"),
    )
}

#[test]
fn symbols_beyond_the_time_limit_are_reported_and_looked_up_later() {
    let outcome = Rpd::new(["--hip-trace", "--stacks", "native", "-f", "rocpd"])
        .option(["--stacks-symbolize-limit", "0"])
        .workload("stacks", ["tree", "1", "1", "1"])
        .success();
    let database = outcome.database();
    let (functions, left_out) = found(&database);
    assert_eq!(functions, 0);
    assert!(left_out > 0);
    let said = format!(
        "{left_out} addresses of call stacks were not looked up within --stacks-symbolize-limit: they have no names and lines"
    );
    assert!(outcome.stderr.contains(&said), "{}", outcome.stderr);
    assert!(
        outcome
            .stderr
            .contains("names and lines of its call stacks: rpd symbolize "),
        "{}",
        outcome.stderr
    );
    let file = outcome.file("_results.db");
    let _ = Rpd::plain(["symbolize".as_ref(), file.as_os_str()])
        .run()
        .success();
    let (functions, left_out) = found(&Database::open(&file));
    assert!(functions >= 2 && left_out == 0, "{functions} {left_out}");
}

/// Calls HIP from code that it makes in memory, and names that in a map for perf if requested.
const JIT: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    /* push rbp; mov rbp, rsp; mov rax, rdi; xor edi, edi; call rax; nop; pop rbp; ret */
    unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0x31, 0xff, 0xff, 0xd0, 0x90, 0x5d, 0xc3};
    unsigned char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    if (argc > 1) {
        char name[64];
        snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
        /* The times of files are those of the last clock tick, which may be before this process began. */
        usleep(20000);
        FILE *map = fopen(name, "w");
        fprintf(map, "%lx %zx kernel of the evening\n", (unsigned long)page, sizeof code);
        fclose(map);
        puts(name);
    }
    void *hip = dlopen("libamdhip64.so.6", RTLD_NOW);
    ((void (*)(void *))page)(dlsym(hip, "hipGetLastError"));
    return 0;
}
"#;

/// Frames of `hipGetLastError` that are in no file, as the guide shows them, without numbers and addresses.
fn jit_frames(database: &Database) -> Vec<String> {
    let rows = database.rows(
        "SELECT substr(k.frame, instr(k.frame, '0x') + 18) FROM rocpd_stackstrings k
            JOIN rpd_api_stack a ON a.api_id = k.id / 1048576
            JOIN rpd_stack_frame s ON s.stack_id = a.stack_id AND s.depth = k.depth
            JOIN rpd_frame f ON f.id = s.frame_id JOIN rpd_location l ON l.id = f.location_id
            WHERE k.hip_api = 'hipGetLastError' AND l.kind = 'jit'",
    );
    rows.into_iter().flatten().collect()
}

/// Checks stacks-28.
#[test]
fn code_made_at_run_time_is_named_by_its_map_file() {
    if lacks("cc") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("jit.c"), directory.path().join("jit"));
    std::fs::write(&source, JIT).expect("written");
    let mut compiler = Command::new("cc");
    let built = compiler
        .args(["-O1", "-o"])
        .args([&program, &source])
        .arg("-ldl")
        .status();
    assert!(built.expect("cc runs").success());
    let run = |arguments: &[&str]| -> Outcome {
        let target =
            std::iter::once(program.to_str().expect("text")).chain(arguments.iter().copied());
        Rpd::new(["--hip-trace", "--stacks", "native", "-f", "rocpd"])
            .target(target)
            .success()
    };
    assert_eq!(jit_frames(&run(&[]).database()), [" at [anon]"]);
    let outcome = run(&["map"]);
    let named = [" in kernel of the evening at [anon]"];
    assert_eq!(jit_frames(&outcome.database()), named);
    // The map may be another process's later: the name stays.
    std::fs::remove_file(outcome.stdout.trim()).expect("removed");
    let file = outcome.file("_results.db");
    let _ = Rpd::plain(["symbolize".as_ref(), file.as_os_str()])
        .run()
        .success();
    let database = Database::open(&file);
    assert_eq!(jit_frames(&database), named);
    assert_eq!(
        database.rows("SELECT DISTINCT evidence FROM rpd_frame f JOIN rpd_location l ON l.id = f.location_id WHERE l.kind = 'jit'"),
        [["perf map"]]
    );
}

/// A run of the workload that makes this number of calls below a tree of functions.
fn tree_of(calls: &str) -> Outcome {
    Rpd::new([
        "--hip-trace",
        "--kernel-trace",
        "--stacks",
        "native",
        "-f",
        "rocpd",
    ])
    .workload("stacks", ["tree", calls, "3", "4"])
    .success()
}

#[test]
fn stack_views_add_up_calls_and_durations() {
    let outcome = tree_of("12");
    let database = outcome.database();
    let calls = "SELECT count(*) FROM rpd_api_stack a JOIN rocpd_region r ON r.event_id = a.api_id";
    assert_eq!(
        database.rows("SELECT sum(self_calls), max(total_calls) FROM stack_top"),
        database.rows(&format!("SELECT n, n FROM (SELECT ({calls}) AS n)"))
    );
    assert_eq!(
        database.rows("SELECT function, self_calls, total_calls FROM stack_top WHERE function IN ('innermost', 'make_tree') ORDER BY 1"),
        [["innermost", "12", "12"], ["make_tree", "0", "12"]]
    );
    assert_eq!(
        database
            .rows("SELECT calls, stacks, function FROM stack_site WHERE api = 'hipGetLastError'"),
        [["12", "4", "innermost"]]
    );
    assert_eq!(
        database.rows("SELECT sum(duration) FROM stack_site"),
        database.rows("SELECT sum(\"end\" - start) FROM rocpd_region WHERE event_id IN (SELECT api_id FROM rpd_api_stack)")
    );
    assert_eq!(database.number("SELECT count(*) FROM stack_diff"), 0);
}

#[test]
fn the_stack_diff_view_compares_two_recordings() {
    let (before, after) = (tree_of("12"), tree_of("20"));
    let files = [before.file("_results.db"), after.file("_results.db")];
    let merged = before.out().join("merged.db");
    let words = [
        "merge".as_ref(),
        files[0].as_os_str(),
        files[1].as_os_str(),
        "-o".as_ref(),
        merged.as_os_str(),
    ];
    let _ = Rpd::plain(words).run().success();
    let difference =
        "SELECT function, calls_before, calls_after FROM stack_diff WHERE api = 'hipGetLastError'";
    assert_eq!(
        Database::open(&merged).rows(difference),
        [["innermost", "12", "20"]]
    );
    let words = [
        "query".as_ref(),
        files[0].as_os_str(),
        files[1].as_os_str(),
        "--query".as_ref(),
        difference.as_ref(),
    ];
    let asked = Rpd::plain(words).run().success();
    assert!(asked.stdout.contains("innermost"), "{}", asked.stdout);
    assert!(asked.stdout.contains("20"), "{}", asked.stdout);
}
