//! Attaching, detaching, and again.

use std::time::Duration;

use rpd_attach::{Environment, Generation, Session, Status, Tree, children, inspect};

use crate::harness::{Target, attach, built};

#[test]
fn attach_hands_over_variables_and_tool_and_detach_ends_the_session() {
    let target = Target::prepared();
    let found = inspect(target.pid()).expect("it may be read");
    assert_eq!(
        found
            .registration
            .as_ref()
            .and_then(|it| it.version.as_deref()),
        Some("0.6.0")
    );
    assert_eq!(found.generation(), Generation::Second);
    assert!(found.prepared && found.listener.is_some() && found.attach_library.is_some());
    assert_eq!(found.runtimes.len(), 1, "{:?}", found.runtimes);
    let environment = Environment::new().with("ROCP_TEST", "a b");
    let session = attach(&target, &environment).expect("attached");
    assert_eq!(target.log(), ["attach libtool.so a b", "attached"]);
    assert!(!session.wait_for_end(Duration::from_millis(1)));
    session.detach().expect("detached");
    assert_eq!(target.log().last().map(String::as_str), Some("detached"));
    let found = inspect(target.pid()).expect("it may be read");
    assert_eq!(found.traced_by, None);
    target.ends_unchanged(0);
}

#[test]
fn attach_and_detach_many_times_disturb_nothing() {
    const TIMES: u32 = 100;
    const SIGNALS: u32 = 50;
    let target = Target::prepared();
    std::thread::scope(|scope| {
        let signals = scope.spawn(|| {
            for _ in 0..SIGNALS {
                // A signal is counted once while it is pending.
                target.signal(libc::SIGUSR1);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        for _ in 0..TIMES {
            let session = attach(&target, &Environment::new()).expect("attached");
            session.detach().expect("detached");
        }
        signals.join().expect("they are sent");
    });
    assert_eq!(target.log().len(), 3 * TIMES as usize);
    // Two of them are one where the first was still pending.
    let counted = target.ends_with_signals();
    assert!((1..=SIGNALS).contains(&counted), "{counted}");
}

#[test]
fn attach_survives_a_stop_of_the_process_meanwhile() {
    let target = Target::prepared();
    let environment = Environment::new().with("ROCP_TEST_WAIT_MS", "300");
    std::thread::scope(|scope| {
        let attached = scope.spawn(|| attach(&target, &environment));
        target.wait_for("attach libtool.so -");
        target.signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(500));
        assert!(!attached.is_finished(), "the process is stopped");
        target.signal(libc::SIGCONT);
        let session = attached.join().expect("no panic").expect("attached");
        // The session outlives a stop as well.
        target.signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(50));
        target.signal(libc::SIGCONT);
        session.detach().expect("detached");
    });
    target.ends_unchanged(0);
}

#[test]
fn dropped_session_lets_the_process_go() {
    let target = Target::prepared();
    drop(attach(&target, &Environment::new()).expect("attached"));
    let session = loop {
        // The thread that traces ends a moment later.
        match attach(&target, &Environment::new()) {
            Ok(session) => break session,
            Err(error) => assert_eq!(error.status, Status::InvalidArgument, "{error}"),
        }
    };
    session.detach().expect("detached");
    assert_eq!(
        target.log().iter().filter(|it| *it == "detached").count(),
        1
    );
    target.ends_unchanged(0);
}

#[test]
fn tree_attaches_the_child_of_a_program_without_gpu() {
    let program = built().path("program");
    let target = Target::start(&built().path("bare"), |command| {
        command.arg(&program).env("ROCP_TOOL_ATTACH", "1");
    });
    let mut target = target;
    assert_eq!(target.line(), "ready");
    let [child] = children(target.pid())[..] else {
        panic!("one child");
    };
    let error = Session::attach(target.pid(), &built().tool(), &Environment::new())
        .expect_err("the parent has no GPU runtime");
    assert_eq!(error.status, Status::Error, "{error}");
    let tree = Tree::attach(target.pid(), &built().tool(), &Environment::new()).expect("the child");
    let pids: Vec<i32> = tree.sessions.iter().map(Session::pid).collect();
    assert_eq!(pids, [child]);
    assert_eq!(tree.skipped.len(), 1);
    assert_eq!(tree.detach(), []);
    target.ends_unchanged(0);
}
