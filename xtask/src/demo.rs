//! `cargo xtask demo`: profiles a workload on the simulator.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rpd_tests::{install, workloads};

use crate::shell;

/// Builds what the demo needs, profiles `vector-ops`, and prints where the page of the run is and what to try next. `--open` as the
/// only argument shows the page in the user's browser.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let is_opened = match arguments {
        [] => false,
        [option] if option == "--open" => true,
        [other, ..] => bail!("`{other}` is no option of the demo: it has --open alone"),
    };
    let bin = shell::build(false)?;
    let workload = workloads::path("vector-ops");
    let out = install::target_dir().join("demo");
    if out.exists() {
        fs::remove_dir_all(&out)
            .with_context(|| format!("removing the last demo's {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let mut rpd = Command::new(bin.join("rpd"));
    rpd.args([
        "--sys-trace",
        "--stats",
        "--stacks",
        "native",
        "-o",
        "demo",
        "-d",
    ])
    .arg(&out)
    .args(["-f", "rocpd", "csv", "html", "--"]);
    rpd.arg(workload).args(["4", "50"]);
    shell::run(&mut rpd)?;
    let page = out.join("demo_report.html");
    let database = shortest(&out.join("demo_results.db"));
    let rpd = shortest(&bin.join("rpd"));
    println!(
        "\nThe run as a page, with its timeline: {}\n\nTry next:\n  \
         {rpd} advise {database}    # what to look at first\n  \
         {rpd} view {database}    # the timeline in the browser\n  \
         {rpd} stacks {database}    # which lines launch the work\n  \
         {rpd} --pmc SQ_WAVES -- {} 2 20    # a hardware counter of each kernel",
        shortest(&page),
        shortest(&workloads::path("vector-ops")),
    );
    if is_opened {
        open(&page)?;
    }
    Ok(())
}

/// The path as it is written from the working directory, where the file is below it.
fn shortest(path: &Path) -> String {
    let directory = env::current_dir().ok();
    let relative = directory.and_then(|directory| path.strip_prefix(directory).ok());
    relative.unwrap_or(path).display().to_string()
}

/// Shows a page in the browser that the desktop has for pages.
fn open(page: &Path) -> Result<()> {
    const OPENER: &str = "xdg-open";
    let opener = shell::tool(OPENER).with_context(|| {
        format!(
            "{OPENER} is not on PATH: open {} in a browser",
            page.display()
        )
    })?;
    let status = Command::new(opener).arg(page).stdin(Stdio::null()).status();
    if !status.with_context(|| OPENER.to_string())?.success() {
        bail!("{OPENER} found no browser: open {} in one", page.display());
    }
    Ok(())
}
