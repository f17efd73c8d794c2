//! Lists the slowest kernels of a database: `slowest-kernels DATABASE [COUNT]` prints the kernels with the longest total time,
//! 10 unless COUNT says how many. Times are in nanoseconds.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use rpd_core::session::{LoadOptions, PlausibleTimes};
use rpd_formats::rocpd::read::Database;

/// Sums over the dispatches of one kernel.
#[derive(Default)]
struct Sums {
    calls: u64,
    total: u64,
    longest: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = arguments.next().ok_or("expected a database")?;
    let count = match arguments.next() {
        Some(count) => count.to_string_lossy().parse()?,
        None => 10,
    };
    print(Path::new(&path), count, &mut io::stdout().lock())
}

/// Prints the table to `out`: the kernels of all processes in the database, by total time.
pub(crate) fn print(path: &Path, count: usize, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let mut sums: HashMap<String, Sums> = HashMap::new();
    let database = Database::open(path)?;
    for recording in database.recordings() {
        let (session, settings) = database.session(recording, LoadOptions::default())?;
        let times = PlausibleTimes::from_session(&session);
        // Named as in the database: a run may have chosen mangled or truncated names.
        let kernels = session.kernels(settings.kernel_names);
        let dispatches = kernels.dispatches;
        for index in dispatches.indices() {
            // Broken clocks report ends before beginnings; such a dispatch has no duration to add.
            let times = times.duration(dispatches.start[index], dispatches.end[index]);
            let Some(duration) = times else { continue };
            // Only a name that is new is copied: there may be millions of dispatches.
            let name = kernels.name(index);
            if !sums.contains_key(name) {
                sums.insert(name.to_owned(), Sums::default());
            }
            if let Some(sums) = sums.get_mut(name) {
                sums.calls += 1;
                sums.total += duration;
                sums.longest = sums.longest.max(duration);
            }
        }
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by(|(a_name, a), (b_name, b)| b.total.cmp(&a.total).then(a_name.cmp(b_name)));
    writeln!(
        out,
        "{:>14} {:>8} {:>12} {:>12}  kernel",
        "total", "calls", "mean", "longest"
    )?;
    for (name, sums) in rows.iter().take(count) {
        let mean = sums.total / sums.calls;
        writeln!(
            out,
            "{:>14} {:>8} {mean:>12} {:>12}  {name}",
            sums.total, sums.calls, sums.longest
        )?;
    }
    Ok(())
}
