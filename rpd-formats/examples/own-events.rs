//! Writes a database of events that were measured elsewhere: `own-events DIRECTORY` makes `DIRECTORY/own_results.db`, which
//! `rpd query`, `rpd summary`, `rpd convert` and all that reads rocpd take. A real program has its own list in place of [`EVENTS`].

use std::error::Error;
use std::path::{Path, PathBuf};

use rpd_core::agent::{Agent, AgentType};
use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId, ThreadId,
};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{CallRow, DispatchRow, KernelSymbol, Session};
use rpd_formats::Output;

/// A kernel and the call that launched it. Times are in nanoseconds on one clock.
pub(crate) struct Event {
    /// Name of the kernel, mangled or not.
    pub(crate) kernel: &'static str,
    /// Begin and end of the launch on the host.
    pub(crate) call: [u64; 2],
    /// Begin and end of the kernel on the GPU.
    pub(crate) run: [u64; 2],
}

/// The events that are written.
pub(crate) const EVENTS: [Event; 3] = [
    Event {
        kernel: "_Z6reducePfi",
        call: [1_000, 1_200],
        run: [1_500, 9_500],
    },
    Event {
        kernel: "scale",
        call: [1_300, 1_400],
        run: [9_600, 9_900],
    },
    Event {
        kernel: "_Z6reducePfi",
        call: [1_500, 1_650],
        run: [10_000, 17_000],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).ok_or("expected a directory")?;
    println!("{}", write(Path::new(&directory))?.display());
    Ok(())
}

/// Writes the database into a directory, which is made if it is not there, and returns its path.
pub(crate) fn write(directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = Target {
        directory: directory.to_owned(),
        prefix: "own".to_owned(),
    };
    let output = Output {
        session: &session(&EVENTS),
        // Of the formats, HTML alone needs statistics.
        stats: None,
        options: &Options::default(),
        target: &target,
    };
    let files = rpd_formats::write(Format::Rocpd, &output)?;
    Ok(files.into_iter().next().ok_or("there are no events")?)
}

/// The events as a session of one process that has one GPU.
fn session(events: &[Event]) -> Session {
    const GPU: AgentHandle = AgentHandle(1);
    let mut session = Session::new();
    let process = std::process::id();
    session.process.pid = ProcessId(process);
    session.process.command = std::env::args().collect();
    session.process.fini_time = Nanoseconds(20_000);
    session.agents.push(Agent {
        handle: GPU,
        agent_type: AgentType::Gpu,
        name: "gfx942".to_owned(),
        ..Agent::default()
    });
    let launch = session.add_operation(Kind::HipRuntime, "hipLaunchKernel");
    for (number, event) in (1..).zip(events) {
        let correlation = CorrelationId(number);
        session.calls.push(CallRow {
            operation: launch,
            start: Nanoseconds(event.call[0]),
            end: Nanoseconds(event.call[1]),
            thread: ThreadId(process),
            correlation,
            ..CallRow::default()
        });
        let kernel = kernel(&mut session, event.kernel);
        session.dispatches.push(DispatchRow {
            start: Nanoseconds(event.run[0]),
            end: Nanoseconds(event.run[1]),
            thread: ThreadId(process),
            // The id of the call: readers find the launch of a kernel by it.
            correlation,
            agent: GPU,
            kernel,
            dispatch: DispatchId(number),
            workgroup: [64, 1, 1],
            grid: [4096, 1, 1],
            ..DispatchRow::default()
        });
    }
    // Writers rely on the order of records, and events may come in any.
    session.sort();
    session
}

/// The id of the kernel with this name, which the session gets with its first event.
fn kernel(session: &mut Session, name: &str) -> KernelId {
    let symbols = &mut session.kernel_symbols;
    if let Some(symbol) = symbols.iter().find(|symbol| symbol.name == name) {
        return symbol.id;
    }
    let id = KernelId(symbols.len() as u64 + 1);
    symbols.push(KernelSymbol {
        id,
        name: name.to_owned(),
        ..KernelSymbol::default()
    });
    id
}
