//! The commands in code blocks of README.md and docs: each is run, page by page in the order in which it stands, in a directory with
//! the programs and files that a reader would have.
//!
//! A command is a line that begins with `$ ` or, in a block without such lines, with one of [`BEGINNINGS`]. It goes on in the next
//! line after a backslash, and where quotes are open.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use rpd_tests::run::{self, skipped, tool};
use rpd_tests::sources::files_below;
use rpd_tests::{install, workloads};

/// How commands begin in blocks that show no prompt.
const BEGINNINGS: [&str; 5] = ["rpd ", "cargo ", "sqlite3 ", "LD_LIBRARY_PATH=", "for "];

/// Pages whose first block has the forms of commands, with placeholders.
const FORMS_FIRST: [&str; 2] = ["docs/command-line.md", "docs/results.md"];

/// Commands that are not run, by their beginning, and why.
const NOT_RUN: [(&str, &str); 10] = [
    (
        "rpd view out/run_results.db",
        "it serves until the reader ends it",
    ),
    ("rpd idle", "it waits for the reader"),
    ("rpd attach", "the process is the reader's"),
    ("rpd estimate [", "a form"),
    ("rpd top [", "a form"),
    ("rpd doctor", "its status is that of the machine"),
    (
        "cargo xtask demo",
        "builds everything: a step of cargo xtask ci",
    ),
    ("cargo xtask test", "it is what runs this test"),
    (
        "LD_LIBRARY_PATH=target/debug/rpd-sim-lib:/opt/rocm/lib",
        "it needs the tool library of ROCm",
    ),
    ("rpd (front end)", "it is the head of a picture"),
];

/// Commands that end with another status than 0, by their beginning.
const STATUSES: [(&str, i32); 5] = [
    // A counter that does not exist.
    ("rpd --pmc SQ_WAVE -- ", 1),
    // The program has the status of the signal that ends it.
    (
        "rpd --hip-trace --kernel-trace -d out -o run -- ./segv-midway",
        128 + libc::SIGSEGV,
    ),
    ("rpd check -- ./errors sum_clean", 0),
    // The program `errors` has the error that its argument names.
    ("rpd check -- ./errors", 1),
    // `capture diff` of a part and the whole finds calls missing.
    ("rpd capture diff run part", 4),
];

/// The reader's programs, and the workloads that stand for them. All workloads are there under their own names, too.
const PROGRAMS: [(&str, &str); 2] = [("app", "vector-ops"), ("server", "spin")];

/// The reader's files, and how they are made before the first command that names them, unless they are there. `$DATA` is the directory
/// of recordings of the original.
const FILES: [(&str, &str); 7] = [
    (
        "out/",
        "rpd --hip-trace --kernel-trace --memory-copy-trace --stacks merged -d out -o run -- ./app",
    ),
    ("old.db", "cp out/run_results.db old.db"),
    (
        "before.db",
        "cp out/run_results.db before.db; cp before.db after.db",
    ),
    (
        "trace_results.db",
        "cp \"$DATA/trace_results.db\" trace_results.db",
    ),
    (
        "a1.db",
        "for run in a1 a2 a3 b1 b2 b3; do cp \"$DATA/trace_results.db\" $run.db; done",
    ),
    ("symbols", "mkdir symbols"),
    ("trace.rpd", "rpd export out/run_results.db --rpd trace.rpd"),
];

/// Commands that go on in the background, by their end, and what holds once they are under way.
const UNDER_WAY: [(&str, &str); 2] = [
    ("-d out -- ./server &", "rpd live out"),
    (
        "-d out -o run -- ./server &",
        "rpd control out status | grep -q 'recording '",
    ),
];

/// Long enough for all commands of a page on a busy machine.
const LIMIT: Duration = Duration::from_secs(900);

/// The commands of a page.
fn commands(page: &str, text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut blocks: Vec<Vec<&str>> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        match line.strip_prefix("    ") {
            Some(line) if is_inside => blocks.last_mut().expect("a block").push(line),
            Some(line) => blocks.push(vec![line]),
            None if line.is_empty() => continue,
            None => {}
        }
        is_inside = line.starts_with("    ");
    }
    let forms = usize::from(FORMS_FIRST.contains(&page));
    for block in blocks.into_iter().skip(forms) {
        let has_prompts = block.iter().any(|line| line.starts_with("$ "));
        let mut open: Option<String> = None;
        for line in block {
            let begun = match &mut open {
                Some(command) => {
                    *command += "\n";
                    *command += line;
                    command
                }
                None => {
                    let begin = if has_prompts {
                        line.strip_prefix("$ ")
                    } else {
                        Some(line)
                            .filter(|line| BEGINNINGS.iter().any(|begin| line.starts_with(begin)))
                    };
                    let Some(begin) = begin else { continue };
                    open.insert(begin.to_owned())
                }
            };
            if !begun.ends_with('\\') && begun.matches('"').count().is_multiple_of(2) {
                commands.extend(open.take());
            }
        }
        assert_eq!(open, None, "{page}: a command without an end");
    }
    commands
}

/// A script that runs commands one after another, and ends with 99 at the first whose status is not as it should be.
fn script(commands: &[String]) -> String {
    let mut script =
        "cd \"$1\" && PATH=\"$2:$PATH\" && RPD=\"$1/release\" && DATA=\"$3\" || exit 98
background=
trap '[ -z \"$background\" ] || kill $background; wait' EXIT
"
        .to_owned();
    for command in commands {
        for (file, how) in FILES {
            if command.contains(file) {
                writeln!(script, "[ -e {file} ] || {{ {how}; }} || exit 97").expect("a text");
            }
        }
        let expected = STATUSES
            .iter()
            .find(|(begin, _)| command.starts_with(begin))
            .map_or(0, |(_, status)| *status);
        let quoted = command.replace('\'', "'\\''");
        // Not in a shell of its own: what it exports is for the commands after it.
        writeln!(
            script,
            "echo 'documented: {quoted}' >&2
if
{command}
then status=0; else status=$?; fi
[ $status -eq {expected} ] || {{ echo \"status $status instead of {expected}: \" '{quoted}' >&2; exit 99; }}"
        )
        .expect("a text");
        let words = command.split(" #").next().unwrap_or_default().trim_end();
        for (end, holds) in UNDER_WAY {
            if words.ends_with(end) {
                writeln!(
                    script,
                    "background=\"$background $!\"
until {holds} >/dev/null 2>&1; do sleep 0.1; done"
                )
                .expect("a text");
            }
        }
    }
    script
}

fn is_run(page: &str, command: &str) -> bool {
    if let Some((_, why)) = NOT_RUN.iter().find(|(begin, _)| command.starts_with(begin)) {
        println!("{page}: not run, {why}: {command}");
        return false;
    }
    if command.starts_with("sqlite3 ") && tool("sqlite3").is_none() {
        skipped(&format!("{page}: {command}"), "no sqlite3");
        return false;
    }
    if command.contains(" python3 ") && tool("python3").is_none() {
        skipped(&format!("{page}: {command}"), "no python3");
        return false;
    }
    true
}

/// Runs the commands of a page.
fn run_page(page: &str) {
    let text = fs::read_to_string(install::source_root().join(page)).expect("a page");
    let mut commands = commands(page, &text);
    assert!(!commands.is_empty(), "{page} has no commands");
    commands.retain(|command| is_run(page, command));

    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    // A reader is where the programs are, or goes there from the source tree.
    fs::create_dir_all(path("target/workloads")).expect("a directory");
    for place in [directory.path(), &path("target/workloads")] {
        for entry in fs::read_dir(workloads::build()).expect("the workloads") {
            let entry = entry.expect("an entry");
            // What pages call by such a name is the reader's program.
            if !PROGRAMS.iter().any(|(name, _)| entry.file_name() == *name) {
                symlink(entry.path(), place.join(entry.file_name())).expect("a link");
            }
        }
        for (name, workload) in PROGRAMS {
            symlink(workloads::path(workload), place.join(name)).expect("a link");
        }
    }
    fs::create_dir_all(path("release/share/rpd/compat/bin")).expect("a directory");
    let original = path("release/share/rpd/compat/bin/rocprofv3");
    symlink(install::rpd(), original).expect("a link");
    fs::create_dir_all(path("target/debug")).expect("a directory");
    symlink(install::simulator_dir(), path("target/debug/rpd-sim-lib")).expect("a link");

    let script = script(&commands);
    let data = install::source_root().join("rpd-formats/testdata");
    let outcome = run::command_within(
        LIMIT,
        Path::new("/bin/sh"),
        [
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            directory.path().as_os_str(),
            install::bin_dir().as_os_str(),
            data.as_os_str(),
        ],
    )
    .success();
    for line in outcome.stdout.lines().chain(outcome.stderr.lines()) {
        let is_command = line.starts_with("documented: ");
        let wrong = ["internal error", "fails with seed", "error while loading"];
        assert!(
            is_command || !wrong.iter().any(|wrong| line.contains(wrong)),
            "{line}\n{}",
            outcome.stderr
        );
    }
}

macro_rules! pages {
    ($($name:ident $page:literal;)*) => {
        /// The pages that have commands.
        const PAGES: &[&str] = &[$($page),*];

        $(
            #[test]
            fn $name() {
                run_page($page);
            }
        )*
    };
}

pages! {
    commands_of_the_readme_run "README.md";
    commands_about_advice_run "docs/advise.md";
    commands_for_agents_run "docs/agents.md";
    commands_about_answers_run "docs/answers.md";
    commands_about_captures_run "docs/capture.md";
    commands_about_errors_of_kernels_run "docs/check.md";
    commands_about_clusters_run "docs/cluster.md";
    commands_about_comparisons_run "docs/compare.md";
    commands_about_counters_run "docs/counters.md";
    commands_about_deployment_run "docs/deploy.md";
    commands_in_place_of_rocprofv3_run "docs/drop-in.md";
    commands_about_explanations_run "docs/explain.md";
    commands_about_formats_run "docs/formats.md";
    commands_about_passes_run "docs/passes.md";
    commands_about_samples_run "docs/pc-sampling.md";
    commands_about_providers_run "docs/providers.md";
    commands_about_results_run "docs/results.md";
    commands_about_the_simulator_run "docs/simulator.md";
    commands_about_stacks_run "docs/stacks.md";
    commands_about_thread_traces_run "docs/thread-trace.md";
    commands_about_the_timeline_run "docs/view.md";
    commands_of_the_guide_run "docs/guide.md";
    commands_of_the_tutorial_run "docs/tutorial.md";
    the_recipe_about_child_processes_runs "docs/recipes/child-processes.md";
    the_recipe_about_comparing_runs_runs "docs/recipes/compare-runs.md";
    the_recipe_about_counters_runs "docs/recipes/counters.md";
    the_recipe_about_crashes_runs "docs/recipes/crash.md";
    the_recipe_about_every_instruction_runs "docs/recipes/every-instruction.md";
    the_recipe_about_flame_graphs_runs "docs/recipes/flame-graph.md";
    the_recipe_about_hot_lines_runs "docs/recipes/hot-line.md";
    the_recipe_about_an_idle_gpu_runs "docs/recipes/idle-gpu.md";
    the_recipe_about_builds_of_a_kernel_runs "docs/recipes/kernel-builds.md";
    the_recipe_about_launching_lines_runs "docs/recipes/launching-line.md";
    the_recipe_about_memory_accesses_runs "docs/recipes/memory-accesses.md";
    the_recipe_about_memory_use_runs "docs/recipes/memory-use.md";
    the_recipe_about_working_without_a_gpu_runs "docs/recipes/no-gpu.md";
    the_recipe_about_one_kernel_runs "docs/recipes/one-kernel.md";
    the_recipe_about_overhead_runs "docs/recipes/overhead.md";
    the_recipe_about_parts_of_runs_runs "docs/recipes/part-of-a-run.md";
    the_recipe_about_phases_runs "docs/recipes/phases.md";
    the_recipe_about_lines_of_python_runs "docs/recipes/python-line.md";
    the_recipe_about_races_runs "docs/recipes/races.md";
    the_recipe_about_ranks_runs "docs/recipes/ranks.md";
    the_recipe_about_scripts_for_rocprofv3_runs "docs/recipes/rocprofv3.md";
    the_recipe_about_running_programs_runs "docs/recipes/running-program.md";
    the_recipe_about_servers_runs "docs/recipes/server.md";
    the_recipe_about_sharing_runs "docs/recipes/share.md";
    the_recipe_about_spreadsheets_runs "docs/recipes/spreadsheets.md";
    the_recipe_about_sql_runs "docs/recipes/sql.md";
    the_recipe_about_timelines_runs "docs/recipes/timeline.md";
    the_recipe_about_kernels_that_take_time_runs "docs/recipes/where-time-goes.md";
}

#[test]
fn every_documentation_page_with_commands_has_a_test() {
    let root = install::source_root();
    let pages = files_below(&root.join("docs"), &["md"]);
    for page in pages.into_iter().chain([root.join("README.md")]) {
        let page = page.strip_prefix(root).expect("a file of the tree");
        let page = page.to_str().expect("a name");
        let text = fs::read_to_string(root.join(page)).expect("a page");
        let has_commands = commands(page, &text)
            .iter()
            .any(|command| !NOT_RUN.iter().any(|(begin, _)| command.starts_with(begin)));
        assert_eq!(has_commands, PAGES.contains(&page), "{page}");
    }
}

#[test]
fn commands_in_documentation_are_distinguished_from_output() {
    let text = "\
Text
    rpd one   # a remark
    rpd: a message
    rpd two \\
        --long

More
    $ rpd three \"a
        b\"
    rpd four

    what it prints
    $ sqlite3 five
rpd six
";
    assert_eq!(
        commands("docs/guide.md", text),
        [
            "rpd one   # a remark",
            "rpd two \\\n    --long",
            "rpd three \"a\n    b\"",
            "sqlite3 five"
        ]
    );
}
