//! The time from a thread trace to its HTML page.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::measure::{Bench, Mode, files_below};
use super::{Row, Target};
use crate::shell;

/// Measures the time to make the page of a database with about 30 MB of traces. Seconds are those for 100 MB.
pub(super) fn page(bench: &Bench) -> Result<Vec<Row>> {
    let options = [
        "--att",
        "--att-target-cu",
        "0",
        "--att-shader-engine-mask",
        "0xff",
    ];
    let kernel = ["independent_chains", "1000", "512"];
    let measured = bench.run(Mode::Rpd(&options), "inside", &kernel)?;
    let directory = measured.directory.path();
    let mut files = Vec::new();
    files_below(&directory.join("out"), &mut files)?;
    let ending = |suffix: &str| -> Vec<&PathBuf> {
        let text = |path: &&PathBuf| path.to_string_lossy().ends_with(suffix);
        files.iter().filter(text).collect()
    };
    let mut bytes = 0;
    for file in ending(".att") {
        bytes += file.metadata()?.len();
    }
    ensure!(bytes > 20_000_000, "the trace has {bytes} bytes");
    let scale = 1e8 / bytes as f64;
    let database = *ending(".db").first().context("no database")?;
    let begin = Instant::now();
    let mut decode = bench.rpd(directory);
    shell::run(decode.args(["att", "decode", "out", "-f", "csv", "-d", "decoded"]))?;
    let decoded = begin.elapsed().as_secs_f64() * scale;
    let begin = Instant::now();
    let mut convert = bench.rpd(directory);
    shell::run(
        convert
            .arg("convert")
            .arg(database)
            .args(["-f", "html", "-d", "page"]),
    )?;
    let written = begin.elapsed().as_secs_f64();
    Ok(vec![
        Row::new(
            "thread trace of 100 MB: decoded",
            decoded,
            "s",
            Target::None,
        ),
        Row::new(
            "thread trace of 100 MB: page written",
            written,
            "s",
            Target::None,
        ),
        Row::new(
            "thread trace of 100 MB: from the trace to the page",
            decoded + written,
            "s",
            Target::AtMost(5.0),
        ),
    ])
}
