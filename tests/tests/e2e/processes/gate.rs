//! How `rpd diff --fail-above` does as a gate: identical programs must pass, a slower kernel must be found.
//!
//! This is an experiment on the machine it runs on, so it is not part of the tests:
//!
//!     cargo xtask test --test e2e gate -- --ignored --nocapture
//!
//! It records a pool of runs, draws the runs of both sides from it without putting any back, and compares them with the
//! built `rpd`. A slower kernel is made by multiplying the durations of one kernel in copies of the recordings; the
//! recordings themselves keep all the noise of the machine.
//!
//! RPD_GATE_POOL (runs, 40), RPD_GATE_COMPARISONS (100), RPD_GATE_LIMIT (percent, 5), RPD_GATE_SLOWER (percent, 10) and
//! RPD_GATE_WORKLOAD (`vector-ops 2 20`) change it. RPD_GATE_ORDER=recorded takes each six runs as they were recorded,
//! one after the other, instead of drawing them: then the noise of a machine whose load changes counts in full.

use std::env;
use std::path::{Path, PathBuf};

use rpd_tests::run::Rpd;
use rusqlite::Connection;

const A_SIDE: usize = 3;

fn setting<T: std::str::FromStr>(name: &str, default: T) -> T {
    let value = env::var(name).ok();
    value.and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Numbers that are the same at every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    /// `count` different runs of a pool.
    fn draw(&mut self, pool: usize, count: usize) -> Vec<usize> {
        let mut all: Vec<usize> = (0..pool).collect();
        (0..count)
            .map(|_| all.swap_remove(self.below(all.len())))
            .collect()
    }
}

/// A copy of a recording with one kernel's durations times `factor`.
fn slow_down(database: &Path, copy: &Path, kernel: &str, factor: f64) {
    std::fs::copy(database, copy).expect("copied");
    let connection = Connection::open(copy).expect("a database");
    let suffix: String = connection
        .query_row(
            "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'",
            [],
            |row| row.get(0),
        )
        .expect("a suffix");
    let changed = connection.execute(
        &format!(
            "UPDATE rocpd_kernel_dispatch{suffix} SET \"end\" = start + CAST((\"end\" - start) * ?1 AS INTEGER)
            WHERE kernel_id IN (SELECT id FROM rocpd_info_kernel_symbol WHERE display_name = ?2)"
        ),
        rusqlite::params![factor, kernel],
    );
    assert!(changed.expect("changed") > 0, "{kernel}");
}

/// Status and messages of a comparison.
fn compare(before: &[PathBuf], after: &[PathBuf], limit: f64) -> (i32, String) {
    let mut words = vec!["diff".into(), "--before".into()];
    words.extend(before.iter().map(|path| path.clone().into_os_string()));
    words.push("--after".into());
    words.extend(after.iter().map(|path| path.clone().into_os_string()));
    words.extend(["--fail-above".into(), limit.to_string().into()]);
    let outcome = Rpd::plain(words).run();
    (outcome.code(), outcome.stderr)
}

#[test]
#[ignore = "an experiment of some minutes, whose figures are those of the machine"]
fn gate_of_the_noise_of_this_machine() {
    let pool = setting("RPD_GATE_POOL", 40).max(2 * A_SIDE);
    let comparisons = setting("RPD_GATE_COMPARISONS", 100);
    let limit = setting("RPD_GATE_LIMIT", 5.0);
    let slower = setting("RPD_GATE_SLOWER", 10.0);
    let workload: String = setting("RPD_GATE_WORKLOAD", "vector-ops 2 20".to_owned());
    let in_order = setting("RPD_GATE_ORDER", String::new()) == "recorded";
    let words: Vec<&str> = workload.split(' ').collect();
    let outcomes: Vec<_> = (0..pool)
        .map(|_| {
            Rpd::new(["--sys-trace"])
                .workload(words[0], &words[1..])
                .success()
        })
        .collect();
    let databases: Vec<PathBuf> = outcomes.iter().map(|run| run.file("_results.db")).collect();
    let kernels: Vec<String> = Connection::open(&databases[0])
        .expect("a database")
        .prepare("SELECT name FROM top_kernels ORDER BY name")
        .expect("a view")
        .query_map([], |row| row.get(0))
        .expect("kernels")
        .collect::<rusqlite::Result<_>>()
        .expect("kernels");
    let directory = tempfile::tempdir().expect("a directory");
    let mut random = Random(1);
    let (mut alarms, mut found) = (0, 0);
    for round in 0..comparisons {
        let drawn = if in_order {
            (0..2 * A_SIDE)
                .map(|index| (round + index) % pool)
                .collect()
        } else {
            random.draw(pool, 2 * A_SIDE)
        };
        let runs: Vec<PathBuf> = drawn.iter().map(|&run| databases[run].clone()).collect();
        let (before, after) = runs.split_at(A_SIDE);
        let (status, stderr) = compare(before, after, limit);
        if status != 0 {
            alarms += 1;
            println!("false alarm: {}", stderr.trim());
        }
        let kernel = &kernels[round % kernels.len()];
        let slowed: Vec<PathBuf> = after
            .iter()
            .enumerate()
            .map(|(index, database)| {
                let copy = directory.path().join(format!("{index}_results.db"));
                slow_down(database, &copy, kernel, 1.0 + slower / 100.0);
                copy
            })
            .collect();
        let (status, stderr) = compare(before, &slowed, limit);
        let is_named = stderr.contains(&format!("slower: kernel {kernel}:"));
        found += usize::from(status == 3 && is_named);
    }
    println!(
        "{workload}, {pool} runs, {A_SIDE} a side, limit {limit} %: {alarms} alarms in {comparisons} comparisons of the \
        same program; a kernel {slower} % slower found in {found} of {comparisons}"
    );
}
