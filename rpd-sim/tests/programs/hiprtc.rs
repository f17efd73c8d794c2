//! The runtime compiler (hiprtc), from programs in C.

use crate::common;
use rpd_tests::skips::lacks;
use std::process::Command;

#[test]
fn hiprtc_compiles_programs_at_run_time() {
    let libraries = ["-lamdhip64", "-lhiprtc"];
    let (directory, program) = common::build("hiprtc", "hiprtc.c", &[], &libraries);

    // Without a compiler the result is an error and the log names the compiler.
    let (said, complaints) = common::run_loudly(&directory, &program, &[], &[("PATH", "/nowhere")]);
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

    if lacks("clang-19") {
        return;
    }
    let (said, complaints) = common::run_loudly(&directory, &program, &[], &[]);
    assert_eq!(complaints, "");
    let right = "_Z5scaleIfEvPT_S0_\nanother name: 10\ndestroyed twice: 4\nright\n\
                 HIPRTC_ERROR_COMPILATION\nwrong.hip:2:5: error: use of undeclared identifier 'missing'\n";
    assert!(said.starts_with(right), "{said}");
}

/// Programs have the headers and device libraries of ROCm where it is installed.
#[test]
fn hiprtc_finds_headers_and_device_libraries_of_an_installation() {
    if lacks("clang-19") {
        return;
    }
    let libraries = ["-lamdhip64", "-lhiprtc"];
    let (directory, program) =
        common::build("hiprtc-installed", "hiprtc_installed.c", &[], &libraries);
    let clang = |arguments: &[&str]| Command::new("clang-19").args(arguments).output();
    let rocm = directory.join("rocm");
    let write = |name: &str, text: &str| {
        let path = rocm.join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory is made");
        std::fs::write(&path, text).expect("a file is written");
        path.display().to_string()
    };
    for name in [
        "hip_common.h",
        "hip_vector_types.h",
        "hip_bfloat16.h",
        "amd_detail/host_defines.h",
    ] {
        write(&format!("include/hip/{name}"), "#pragma once\n");
    }
    write("include/hip/hip_fp16.h", "#define OFFSET 2.0f\n");
    write(
        "include/hip/hip_runtime.h",
        "#ifndef __HIPCC_RTC__\n#error not compiled at run time\n#endif\n\
         #define __global__ __attribute__((global))\n#define __device__ __attribute__((device))\n\
         extern \"C\" __device__ float from_library(float);\n",
    );
    write(
        "share/hip/version",
        "HIP_VERSION_MAJOR=7\nHIP_VERSION_MINOR=2\nHIP_VERSION_PATCH=4\n",
    );
    let environment = [("ROCM_PATH", rocm.to_str().expect("UTF-8"))];

    // Headers without device libraries do not help: those that are built in are taken.
    let (said, _) = common::run_loudly(&directory, &program, &[], &environment);
    assert!(
        said.contains("use of undeclared identifier 'OFFSET'"),
        "{said}"
    );

    let function = "target triple = \"amdgcn-amd-amdhsa\"\n\
                    define float @from_library(float %x) {\n%r = fadd float %x, 40.0\nret float %r\n}\n";
    for (name, text) in [
        ("ocml", function),
        ("ockl", ""),
        ("opencl", ""),
        ("asanrtl", ""),
        ("hip", ""),
        ("oclc_daz_opt_off", ""),
        ("oclc_daz_opt_on", ""),
        ("oclc_unsafe_math_off", ""),
        ("oclc_unsafe_math_on", ""),
        ("oclc_finite_only_off", ""),
        ("oclc_finite_only_on", ""),
        ("oclc_correctly_rounded_sqrt_off", ""),
        ("oclc_correctly_rounded_sqrt_on", ""),
        ("oclc_wavefrontsize64_off", ""),
        ("oclc_wavefrontsize64_on", ""),
        ("oclc_isa_version_90a", ""),
        ("oclc_abi_version_500", ""),
    ] {
        let listing = write(&format!("{name}.ll"), text);
        let library = write(&format!("amdgcn/bitcode/{name}.bc"), "");
        let target = "--target=amdgcn-amd-amdhsa";
        let arguments = ["-x", "ir", target, "-nogpulib", "-c", "-emit-llvm", "-o"];
        let output = clang(&[&arguments[..], &[&library, &listing]].concat());
        let output = output.expect("clang-19 runs");
        assert!(output.status.success(), "{output:?}");
    }
    let (said, complaints) = common::run_loudly(&directory, &program, &[], &environment);
    assert_eq!((said.as_str(), complaints.as_str()), ("42\n", ""));
}
