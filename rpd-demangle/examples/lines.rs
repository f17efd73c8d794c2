//! Demangled names of the lines of the standard input.
use std::io::{BufRead, Write};
fn main() {
    let input: Vec<String> = std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .collect();
    if std::env::args().nth(1).as_deref() == Some("bench") {
        let t = std::time::Instant::now();
        let mut n = 0;
        let mut total = 0usize;
        while t.elapsed().as_secs_f64() < 2.0 {
            for line in &input {
                total += rpd_demangle::demangle(line).len();
                n += 1;
            }
        }
        println!(
            "{} names/s {}",
            n as f64 / t.elapsed().as_secs_f64(),
            total / n
        );
        return;
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in &input {
        writeln!(out, "{}", rpd_demangle::demangle(line)).unwrap();
    }
}
