//! Prints the demangled names of the lines of the standard input: as `c++filt` does, but whole lines. With `--bench` it
//! prints how many of these names are demangled in a second.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use rpd_demangle::demangle;

fn main() -> std::io::Result<()> {
    let names: Vec<String> = std::io::stdin().lock().lines().collect::<Result<_, _>>()?;
    if std::env::args().nth(1).as_deref() != Some("--bench") {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for name in &names {
            writeln!(out, "{}", demangle(name))?;
        }
        return out.flush();
    }
    let (mut count, mut bytes) = (0, 0);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(2) && !names.is_empty() {
        for name in &names {
            bytes += demangle(name).len();
        }
        count += names.len();
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{:.0} names/s, {:.1} MB/s of text",
        count as f64 / seconds,
        bytes as f64 / seconds / 1e6
    );
    Ok(())
}
