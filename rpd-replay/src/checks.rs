//! Checks that are made before a replay begins.

use rpd_capture::Capture;
use rpd_spool::capture::call_flag;

use crate::error::{ReplayError, Status};
use crate::player::{Options, broken};

/// Checks everything that can be known before a device is touched.
pub(crate) fn capture(capture: &Capture, options: &Options) -> Result<(), ReplayError> {
    let shown = capture.path().display().to_string();
    let unsupported = capture.unsupported()?;
    // Before anything is played: a replay that stops half way has cost the time of the first half.
    if let Some((name, count)) = unsupported.first()
        && !options.force
    {
        let others = match unsupported.len() {
            1 => String::new(),
            more => format!(" and {} other functions", more - 1),
        };
        return Err(ReplayError::new(
            Status::Unsupported,
            format!(
                "{shown}: {name} (called {count} times){others} cannot be replayed (--force leaves such calls out)"
            ),
        ));
    }
    // Every copy to the device would lack its data.
    if capture.manifest().options.get("data").map(String::as_str) == Some("none") {
        return Err(ReplayError::damaged(format!(
            "{shown} was captured without host data (--data none) and cannot be replayed"
        )));
    }
    // Calls that are not played may be incomplete.
    let last = options.until.unwrap_or(u64::MAX);
    let mut incomplete = None;
    capture.calls(1, last, |call| -> Result<bool, ReplayError> {
        if call.flags & call_flag::INCOMPLETE != 0 {
            incomplete = Some(call);
        }
        Ok(incomplete.is_none())
    })?;
    if let Some(call) = incomplete
        && !options.force
    {
        let name = call.operation().map_or("", |operation| operation.name());
        let why = capture
            .notes()?
            .into_iter()
            .find(|(seq, severity, _)| *seq == call.seq && severity == "error")
            .map_or_else(|| "part of it is lost".to_owned(), |(_, _, text)| text);
        return Err(ReplayError::damaged(format!(
            "{shown}: call {} ({name}) is incomplete: {why} (--force plays without it)",
            call.seq
        )));
    }
    // Last, because all data are read.
    let problems = rpd_capture::check(capture)?;
    if let Some(problem) = problems.first() {
        return Err(ReplayError::damaged(problem.text.clone()));
    }
    Ok(())
}

/// Refuses a capture that uses more devices than the `count` of this machine.
pub(crate) fn devices(
    capture: &Capture,
    count: i32,
    place: impl Fn(i32) -> i32,
) -> Result<(), ReplayError> {
    let used: Vec<i32> = {
        let database = capture.database();
        let mut statement = database
            .prepare("SELECT DISTINCT dev FROM call ORDER BY dev")
            .map_err(broken)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(broken)?;
        rows.collect::<Result<_, _>>().map_err(broken)?
    };
    let missing = used
        .into_iter()
        .find(|device| !(0..count).contains(&place(*device)));
    match missing {
        None => Ok(()),
        Some(device) => Err(ReplayError::failed(format!(
            "GPU {device} of the capture is GPU {} of the replay, and there are {count} here: --device {device}=NUMBER chooses another",
            place(device)
        ))),
    }
}
