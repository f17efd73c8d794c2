//! PyTorch under the profiler, where the `python3` on the path has it.

use std::process::Command;

use rpd_tests::install::{rpd, source_root};
use rpd_tests::run::{lacks, skipped, tool};

/// Operators in C++ that call HIP: from forward and backward passes on threads of PyTorch's own, from workers that load data, and
/// from compiled code. `tests/torch/compare.py` describes what is compared.
#[test]
fn operators_have_the_stacks_that_pytorch_has_itself() {
    let Some(python) = tool("python3") else {
        return skipped("stacks of PyTorch operators", "no python3");
    };
    if lacks("c++") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(python)
        .arg(source_root().join("tests/torch/compare.py"))
        .args([&*rpd(), folder.path()])
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
}
