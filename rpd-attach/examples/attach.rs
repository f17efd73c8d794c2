//! Attaches a tool to a process, waits, and detaches it:
//! `attach PID TOOL [SECONDS [TIMES]]`. Variables whose names begin with `ROCP` travel to the process.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use rpd_attach::{Environment, Error, Session, inspect};

fn run(pid: i32, tool: &Path, time: Duration, times: u32) -> Result<(), Error> {
    let ready = inspect(pid)?.ready(tool)?;
    println!("{ready:?}");
    for _ in 0..times {
        let session = Session::attach(pid, tool, &Environment::inherited())?;
        println!("attached");
        if session.wait_for_end(time) {
            println!("the process ended");
            return Ok(());
        }
        session.detach()?;
        println!("detached");
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: f64| {
        let given = arguments.get(at).map(|text| text.parse());
        given.transpose().map(|it| it.unwrap_or(default))
    };
    let (Some(tool), Ok(pid), Ok(seconds), Ok(times)) = (
        arguments.get(1),
        number(0, 0.0),
        number(2, 1.0),
        number(3, 1.0),
    ) else {
        eprintln!("attach PID TOOL [SECONDS [TIMES]]");
        return ExitCode::from(2);
    };
    let time = Duration::from_secs_f64(seconds.clamp(0.0, 1e6));
    match run(pid as i32, Path::new(tool), time, times as u32) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error} ({})", error.status);
            ExitCode::FAILURE
        }
    }
}
