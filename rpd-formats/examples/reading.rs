//! Measures the reader: `reading DATABASE [args]` reads every recording in it and prints records per second and the peak
//! of memory per record.

use std::path::Path;
use std::time::Instant;

use rpd_core::session::LoadOptions;
use rpd_formats::rocpd::read::Database;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected a database")?;
    let args = arguments.next().is_some();
    let before = rpd_tests::memory::peak();
    let begin = Instant::now();
    let database = Database::open(Path::new(&path))?;
    for recording in database.recordings() {
        let (session, _) = database.session(
            recording,
            LoadOptions {
                args,
                ..LoadOptions::default()
            },
        )?;
        let seconds = begin.elapsed().as_secs_f64();
        let records = session.len() as f64;
        println!(
            "{} records, {:.2} M records/s, peak {:.0} bytes a record",
            session.len(),
            records / seconds / 1e6,
            (rpd_tests::memory::peak() - before) as f64 * 1024.0 / records
        );
    }
    Ok(())
}
