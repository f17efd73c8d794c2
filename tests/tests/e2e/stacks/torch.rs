//! PyTorch under the profiler, where the `python3` on the path has it.

use std::process::Command;

use rpd_tests::install::{rpd, source_root};
use rpd_tests::skips::{lacks, skipped_by_script, tool_for};

/// Operators in C++ that call HIP: from forward and backward passes on threads of PyTorch's own, from workers that load data, and
/// from compiled code. `tests/torch/compare.py` describes what is compared.
#[test]
fn pytorch_operators_have_the_stacks_that_pytorch_reports() {
    let Some(python) = tool_for("stacks of PyTorch operators", "python3") else {
        return;
    };
    if lacks("c++") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let output = Command::new(python)
        .arg(source_root().join("tests/torch/compare.py"))
        .args([&*rpd(), directory.path()])
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    skipped_by_script(&text);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}
