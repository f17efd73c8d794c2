//! Measures the statistics: `statistics [RECORDS]` makes a session of that many calls and computes its tables.

use std::time::Instant;

use rpd_core::domain::Kind;
use rpd_core::ids::{CorrelationId, Nanoseconds, ThreadId};
use rpd_core::options::KernelNames;
use rpd_core::session::{ArgsRef, CallRow, Session, Strings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let records: u64 = std::env::args()
        .nth(1)
        .map_or(Ok(10_000_000), |text| text.parse())?;
    let mut session = Session {
        strings: Strings::new(),
        ..Session::default()
    };
    let names: Vec<_> = (0..200)
        .map(|number| session.add_operation(Kind::HipRuntime, &format!("hipCall{number}")))
        .collect();
    for index in 0..records {
        let calls = &mut session.calls;
        calls.push(CallRow {
            operation: names[(index % 200) as usize],
            message: Default::default(),
            start: Nanoseconds(1000 * index),
            end: Nanoseconds(1000 * index + index % 977),
            thread: ThreadId(1),
            correlation: CorrelationId(index + 1),
            ancestor: CorrelationId(0),
            args: ArgsRef::default(),
        });
        calls.retval.set_last(0);
    }
    let begin = Instant::now();
    let stats = rpd_summary::Statistics::new(&session, KernelNames::default())?.session_stats()?;
    let seconds = begin.elapsed().as_secs_f64();
    let rows: usize = stats
        .domains
        .iter()
        .map(|(_, table)| table.rows.len())
        .sum();
    println!("{records} records, {rows} rows in {seconds:.3} s");
    Ok(())
}
