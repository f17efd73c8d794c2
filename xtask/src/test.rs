//! `cargo xtask test`: every test of the workspace.

use anyhow::Result;
use rpd_tests::workloads;

use crate::shell;

/// Tools that single tests need, and what is left out without them.
const OPTIONAL: [(&str, &str); 5] = [
    ("sqlite3", "reading a database with the sqlite3 program"),
    ("python3", "the ctypes workload and Python stacks"),
    ("readelf", "what the workloads link to"),
    (
        "otf2-print",
        "reading OTF2 archives with the original reader",
    ),
    ("chromedriver", "the page in a real browser"),
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let bin = shell::build(false)?;
    println!("workloads: {}", workloads::build().display());
    for (tool, check) in OPTIONAL {
        if shell::tool(tool).is_none() {
            println!("skipped: {check}: no {tool} on PATH");
        }
    }
    shell::run(
        shell::cargo()
            .args(["test", "--workspace"])
            .args(arguments)
            .env("RPD_BIN_DIR", bin),
    )
}
