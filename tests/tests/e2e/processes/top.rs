//! `rpd top`: figures of programs while they run.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rpd_tests::install;
use rpd_tests::outputs::Database;
use rpd_tests::run::{Rpd, command};
use serde_json::Value;

use super::control::Steps;

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn row<'a>(look: &'a Value, table: &str, name: &str) -> Option<&'a Value> {
    look[table]
        .as_array()?
        .iter()
        .find(|row| row["name"] == name)
}

#[test]
fn top_shows_a_running_program_and_leaves_its_recording_whole() {
    let mut steps = Steps::start(Rpd::new(["--sys-trace", "-o", "x"]));
    steps.take("launch launch launch");
    let out = steps.running.directory().join("out").display().to_string();
    let top = |words: &[&str]| {
        let mut all = vec!["top", out.as_str(), "--json", "--interval", "0.05"];
        all.extend(words);
        command(&install::rpd(), all).success()
    };
    let looks = lines(&top(&["--count", "2"]).stdout);
    assert_eq!(looks.len(), 2);
    let kernel = row(&looks[0], "kernels", "empty_kernel").expect("the kernel");
    assert_eq!((&kernel["count"], &kernel["new"]), (&3.into(), &3.into()));
    let kernel = row(&looks[1], "kernels", "empty_kernel").expect("the kernel");
    assert_eq!((&kernel["count"], &kernel["new"]), (&3.into(), &0.into()));
    let call = row(&looks[1], "calls", "hipLaunchKernel").expect("the call");
    assert_eq!(call["count"], 3);
    assert!(call["total_ns"].as_u64() > Some(0));
    assert_eq!(looks[1]["processes"].as_array().map(Vec::len), Some(1));
    let gpus = looks[1]["gpus"].as_array().expect("GPUs");
    assert!(gpus.iter().any(|gpu| gpu["name"] == "GPU 0"), "{gpus:?}");
    let pid = steps.running.child.id().to_string();
    let by_pid = command(&install::rpd(), ["top", &pid, "--json", "--count", "1"]).success();
    assert!(row(&lines(&by_pid.stdout)[0], "kernels", "empty_kernel").is_some());
    let outcome = steps.finish();
    let database = Database::open(&outcome.file("x_results.db"));
    assert_eq!(database.number("SELECT count(*) FROM kernels"), 3);
}

#[test]
fn top_starts_a_program_and_ends_with_its_status() {
    let words = ["top", "--json", "--interval", "0.05", "--stacks", "native"];
    let outcome = Rpd::plain(words)
        .workload("vector-ops", ["2", "3"])
        .success();
    let (texts, printed): (Vec<&str>, Vec<&str>) = outcome
        .stdout
        .lines()
        .partition(|line| line.starts_with('{'));
    assert_eq!(printed, ["ok"], "what the program prints");
    let looks = lines(&texts.join("\n"));
    let last = looks.last().expect("a look");
    let kernels = last["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty(), "{last}");
    assert!(row(last, "calls", "hipLaunchKernel").is_some(), "{last}");
    assert!(
        last["copies"]
            .as_array()
            .is_some_and(|copies| !copies.is_empty())
    );
    assert!(!outcome.directory.path().join("out").exists(), "no outputs");
    let outcome = Rpd::plain(["top", "--json"])
        .target(["false"])
        .expect_code(1);
    let other = |line: &&str| !line.ends_with("the target runs on the simulated GPU");
    assert_eq!(outcome.stderr.lines().find(other), None);
}

#[test]
fn top_serves_figures_to_prometheus() {
    let mut steps = Steps::start(Rpd::new(["--kernel-trace", "-o", "x"]));
    steps.take("launch launch");
    let out = steps.running.directory().join("out").display().to_string();
    // A free port, which nobody else takes so soon.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a port");
    let port = address.port().to_string();
    let words = [
        "top",
        out.as_str(),
        "--metrics",
        &port,
        "--interval",
        "0.05",
    ];
    let serving = Rpd::plain(words).start();
    let end = Instant::now() + Duration::from_secs(60);
    let get = || {
        let mut connection = loop {
            match TcpStream::connect(address) {
                Ok(connection) => break connection,
                Err(error) => assert!(Instant::now() < end, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
        connection.write_all(request.as_bytes()).expect("written");
        let mut text = String::new();
        connection.read_to_string(&mut text).expect("read");
        text
    };
    let wanted = "rpd_kernel_count_total{kernel=\"empty_kernel\"} 2\n";
    while !get().contains(wanted) {
        assert!(Instant::now() < end, "{}", get());
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = get();
    assert!(
        text.contains("Content-Type: text/plain; version=0.0.4"),
        "{text}"
    );
    assert!(text.contains("# TYPE rpd_gpu_busy_ratio gauge\n"), "{text}");
    let _ = steps.finish();
    // Without a process there is nothing more to serve.
    let served = serving.finish().success();
    let line = format!("rpd: top: http://{address}/metrics");
    assert_eq!(served.stderr.trim(), line);
}

#[test]
fn top_without_a_terminal_says_what_needs_none() {
    let outcome = command(&install::rpd(), ["top", "."]).expect_code(2);
    assert!(outcome.stderr.contains("--json"), "{}", outcome.stderr);
    let outcome = command(&install::rpd(), ["top", ".", "--json", "--metrics", "x"]).expect_code(2);
    assert!(
        outcome.stderr.contains("expected a port"),
        "{}",
        outcome.stderr
    );
    let outcome = command(&install::rpd(), ["top", "/nowhere", "--json"]).expect_code(1);
    assert!(
        outcome.stderr.contains("No such directory"),
        "{}",
        outcome.stderr
    );
}
