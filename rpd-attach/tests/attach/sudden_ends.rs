//! Attachers and targets that end while the other one is at work.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rpd_attach::{Environment, Status};

use crate::harness::{LONG, Target, attach, attacher, built};

#[test]
fn target_survives_an_attacher_that_is_killed_at_any_time() {
    let target = Target::prepared();
    // From before it begins to after it has detached.
    for step in 0..60 {
        let hold = Duration::from_millis(5);
        let mut command = attacher(target.pid(), &built().tool(), hold);
        let mut attacher = command.stdout(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(Duration::from_micros(step * 700));
        attacher.kill().expect("killed");
        attacher.wait().expect("it has ended");
        assert!(std::fs::exists(format!("/proc/{}/exe", target.pid())).expect("known"));
    }
    // And a session works after all that.
    let end = Instant::now() + LONG;
    let session = loop {
        match attach(&target, &Environment::new()) {
            Ok(session) => break session,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
    };
    session.detach().expect("detached");
    target.ends_unchanged(0);
}

#[test]
fn target_survives_an_attacher_that_is_killed_while_its_call_runs() {
    let target = Target::prepared();
    let mut command = attacher(target.pid(), &built().tool(), Duration::ZERO);
    command.env("ROCP_TEST_WAIT_MS", "200");
    let mut attacher = command.stdout(Stdio::null()).spawn().expect("it starts");
    target.wait_for("attach libtool.so -");
    attacher.kill().expect("killed");
    attacher.wait().expect("it has ended");
    // The call ends by itself.
    target.wait_for("attached");
    target.ends_unchanged(0);
}

#[test]
fn attacher_notices_the_end_of_the_target_during_the_call() {
    let target = Target::prepared();
    let environment = Environment::new().with("ROCP_TEST_WAIT_MS", "900");
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| attach(&target, &environment));
        target.wait_for("attach libtool.so -");
        target.signal(libc::SIGKILL);
        let error = attached
            .join()
            .expect("no panic")
            .expect_err("it has ended");
        assert_eq!(error.status, Status::PtraceError, "{error}");
        assert!(error.text.ends_with("has ended meanwhile"), "{error}");
    });
}

#[test]
fn attacher_notices_the_end_of_the_target_during_the_session() {
    let target = Target::prepared();
    let session = attach(&target, &Environment::new()).expect("attached");
    target.signal(libc::SIGKILL);
    assert!(session.wait_for_end(LONG));
    let error = session.detach().expect_err("it has ended");
    assert_eq!(error.status, Status::ProcessNotFound);

    let target = Target::prepared();
    let session = attach(&target, &Environment::new()).expect("attached");
    target.ends_unchanged(0);
    assert!(session.wait_for_end(LONG));
}

#[test]
fn attacher_in_a_process_of_its_own_ends_with_the_target() {
    let target = Target::prepared();
    let mut command = attacher(target.pid(), &built().tool(), LONG);
    let mut attacher = command.spawn().expect("it starts");
    let output = BufReader::new(attacher.stdout.take().expect("its output"));
    let mut lines = output.lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line.contains("attached")));
    let begin = Instant::now();
    target.signal(libc::SIGKILL);
    assert!(lines.any(|line| line.contains("detach Err")));
    assert!(attacher.wait().expect("it ends").success());
    assert!(begin.elapsed() < LONG / 2, "it did not wait for its time");
}
