//! Programs on the simulator that end without any clean-up: what ran is in the spool, all of it.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rpd_core::ids::CorrelationId;
use rpd_core::session::{LoadOptions, Session};
use rpd_spool::reader::processes;
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};
use rpd_tests::{install, workloads};

const EVERYTHING: &str =
    "hip_runtime=1,marker=1,kernel=1,memory_copy=1,memory_allocation=1,scratch_memory=1,streams=1";

/// Runs a workload. Returns its exit code, or the negative number of the signal that ended it, and its recording.
fn run(workload: &str, count: usize) -> (i32, Session) {
    let run = tempfile::tempdir().expect("temporary directory");
    let output = Command::new(workloads::path(workload))
        .arg(count.to_string())
        .env("LD_LIBRARY_PATH", install::simulator_dir())
        .env("LD_PRELOAD", install::collector())
        .env(SPOOL_VARIABLE, run.path())
        .env(COLLECT_VARIABLE, EVERYTHING)
        .output()
        .expect("runs");
    let status = output.status;
    assert_eq!(output.stdout, b"ending\n", "{workload}: {status}");
    let code = status.code().or(status.signal().map(|signal| -signal));
    let spools = processes(run.path()).expect("listed");
    let [spool] = &spools[..] else {
        panic!("{spools:?}");
    };
    let session = Session::open(spool, LoadOptions::default()).expect("readable");
    (code.expect("code or signal"), session)
}

#[test]
fn sudden_end_loses_no_completed_work() {
    const COUNT: usize = 300;
    for (workload, expected) in [
        ("abort-midway", -libc::SIGABRT),
        ("segv-midway", -libc::SIGSEGV),
        ("exit-midway", 3),
    ] {
        let (code, session) = run(workload, COUNT);
        assert_eq!(code, expected, "{workload}");
        assert!(!session.ledger.ended, "{workload}");
        assert_eq!(session.ledger.dropped, 0, "{workload}");
        let named = |name: &str| -> Vec<usize> {
            let operations = session.calls.operation.iter().enumerate();
            operations
                .filter(|(_, operation)| session.operation_name(**operation) == name)
                .map(|(index, _)| index)
                .collect()
        };
        let launches = named("hipLaunchKernel");
        assert_eq!(launches.len(), COUNT, "{workload}");

        // Each launch has its dispatch, which is on the thread that made the call.
        let dispatches = &session.dispatches;
        assert_eq!(dispatches.len(), COUNT, "{workload}");
        let mut of_calls: Vec<CorrelationId> = launches
            .iter()
            .map(|index| session.calls.correlation[*index])
            .collect();
        let mut of_dispatches = dispatches.correlation.to_vec();
        of_calls.sort_unstable();
        of_dispatches.sort_unstable();
        assert_eq!(of_calls, of_dispatches, "{workload}");
        for index in 0..COUNT {
            assert_eq!(dispatches.thread[index].0, session.process.pid.0);
            assert_ne!(dispatches.stream[index].0, 0, "the stream that was made");
            assert!(dispatches.start[index] < dispatches.end[index]);
        }

        let copies = &session.copies;
        assert_eq!(copies.len(), COUNT, "{workload}");
        for operation in &copies.operation {
            let name = session.operation_name(*operation);
            assert_eq!(name, "MEMORY_COPY_DEVICE_TO_HOST");
        }
        // What the program allocated itself, whatever else the runtime needs.
        let freed =
            session.allocations.operation.iter().filter(|operation| {
                session.operation_name(**operation) == "MEMORY_ALLOCATION_FREE"
            });
        assert!(freed.count() >= named("hipFree").len(), "{workload}");
        assert_eq!(named("hipFree").len(), 1, "{workload}");
    }
}
