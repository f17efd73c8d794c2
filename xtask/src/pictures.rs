//! `cargo xtask pictures`: the pictures of the documentation, drawn from real runs.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use rpd_tests::{install, workloads};

use crate::shell;

/// Size of a picture in bytes that the repository should not exceed.
const MOST_BYTES: u64 = 150 << 10;

/// Profiles the workload of the demo, and draws the page, the flame graph and the timeline that rpd makes of it.
pub(crate) fn run() -> Result<()> {
    let Some(browser) = shell::tool("chromium") else {
        bail!(
            "no chromium on PATH (Debian: chromium), which draws the pages; docs/images stays as it is"
        );
    };
    let rpd = shell::build(false)?.join("rpd");
    let out = install::target_dir().join("pictures");
    if out.exists() {
        fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
    }
    fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    // From the directory of the program, so that the page shows no path of this machine.
    let workload = workloads::path("vector-ops");
    let directory = workload.parent().context("a workload has a directory")?;
    let mut profile = Command::new(&rpd);
    profile.current_dir(directory);
    profile.args(["--sys-trace", "--stacks", "native", "-f", "rocpd", "html"]);
    profile.args(["-o", "demo", "-d"]).arg(&out);
    profile.args(["--backend", "sim", "--", "./vector-ops", "4", "50"]);
    shell::run(&mut profile)?;
    let graph = out.join("graph.html");
    let mut flame = Command::new(&rpd);
    flame.arg("flame").arg(out.join("demo_results.db"));
    flame.args(["--weight", "gpu", "-o"]).arg(&graph);
    shell::run(&mut flame)?;

    let timeline = out.join("view.html");
    let mut view = Command::new(&rpd);
    view.arg("view").arg(out.join("demo_results.db"));
    view.arg("--export").arg(&timeline);
    shell::run(&mut view)?;

    let images = install::source_root().join("docs/images");
    fs::create_dir_all(&images).with_context(|| format!("creating {}", images.display()))?;
    draw(
        &browser,
        &out.join("demo_report.html"),
        (1200, 640),
        &images.join("page.png"),
    )?;
    draw(&browser, &graph, (1200, 240), &images.join("flame.png"))?;
    // A kernel in the middle of the run, with what is around it.
    let mut place = timeline.into_os_string();
    place.push("#record=1.0.100");
    draw(
        &browser,
        Path::new(&place),
        (1200, 560),
        &images.join("view.png"),
    )
}

/// Draws the upper left part of a page, of `size` pixels, into the file `image`.
fn draw(browser: &Path, page: &Path, size: (u32, u32), image: &Path) -> Result<()> {
    let mut command = Command::new(browser);
    // Without a sandbox, which a container or root does not have.
    command.args(["--headless", "--no-sandbox", "--disable-gpu"]);
    command.arg("--hide-scrollbars");
    // A page may read its data after it was loaded.
    command.arg("--virtual-time-budget=5000");
    command.arg(format!("--window-size={},{}", size.0, size.1));
    command.arg(format!("--screenshot={}", image.display()));
    command.arg(format!("file://{}", page.display()));
    // What the browser says about the desktop that it misses is of no interest.
    shell::output(&mut command)?;
    let bytes = fs::metadata(image)
        .with_context(|| format!("the browser has not drawn {}", image.display()))?
        .len();
    if bytes > MOST_BYTES {
        bail!(
            "{} has {bytes} bytes, more than {MOST_BYTES}",
            image.display()
        );
    }
    println!("{bytes:>12} bytes  {}", image.display());
    Ok(())
}
