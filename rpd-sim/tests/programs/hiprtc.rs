//! The runtime compiler.

use crate::common;
use std::process::Command;

#[test]
fn programs_are_compiled_at_run_time() {
    let libraries = ["-lamdhip64", "-lhiprtc"];
    let (folder, program) = common::build("hiprtc", "hiprtc.c", &[], &libraries);

    // Without a compiler the result and the log say so.
    let (said, complaints) = common::run_loudly(&folder, &program, &[], &[("PATH", "/nowhere")]);
    let missing = "hiprtc needs clang with the AMDGPU target and lld: install clang-19 and lld-19";
    if !std::path::Path::new("/opt/rocm/llvm/bin/clang").exists() {
        assert_eq!(
            (said, complaints),
            (
                format!("HIPRTC_ERROR_COMPILATION\nrpd-sim: {missing}\n"),
                format!("rpd-sim: {missing}\n")
            )
        );
    }

    if Command::new("clang-19").arg("--version").output().is_err() {
        println!("skipped: clang-19 is not installed");
        return;
    }
    let (said, complaints) = common::run_loudly(&folder, &program, &[], &[]);
    assert_eq!(complaints, "");
    let right = "_Z5scaleIfEvPT_S0_\nanother name: 10\ndestroyed twice: 4\nright\n\
                 HIPRTC_ERROR_COMPILATION\nwrong.hip:2:5: error: use of undeclared identifier 'missing'\n";
    assert!(said.starts_with(right), "{said}");
}
