//! Scripts that read outputs as others do.

use std::path::Path;
use std::process::Command;

use rpd_tests::skips::skipped;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// Output of a script; `None`, and the check is skipped, when Python or one of the modules is not installed.
pub(crate) fn python(modules: &str, script: &str, arguments: &[&Path]) -> Option<String> {
    let importable = Command::new("python3")
        .args(["-c", &format!("import {modules}")])
        .output();
    if !importable.is_ok_and(|output| output.status.success()) {
        skipped(script, &format!("no python3 with {modules}"));
        return None;
    }
    let output = Command::new("python3")
        .arg(format!("{TESTS}/{script}"))
        .args(arguments)
        .output()
        .expect("python3");
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8(output.stdout).expect("text"))
}
