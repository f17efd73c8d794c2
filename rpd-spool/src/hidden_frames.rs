//! Files whose frames stacks are shown without: GPU runtimes, the profiler, Python interpreters.

/// Beginnings of the file names of profilers. Their frames are hidden, because the program does not have them when it
/// is not profiled.
const PROFILERS: [&str; 3] = ["librpd_collect.", "librpd_register.", "librocprofiler-"];

/// Whether a file belongs to the profiler.
pub fn is_profiler(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    PROFILERS.iter().any(|profiler| name.starts_with(profiler))
}

/// Beginnings of the file names of libraries between a program and the record of its call.
const RUNTIMES: [&str; 11] = [
    "librpd_",
    "librocprofiler-",
    "libamdhip64.",
    "libcuda.so",
    "libcudart.so",
    "libcupti.so",
    "libhsa-runtime64.",
    "libroctx64.",
    "libroctracer64.",
    "libhsa-amd-aqlprofile64.",
    "libkokkosp_",
];

/// Whether a file belongs to the profiler, the GPU runtimes or what lies between them.
pub fn is_runtime(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    RUNTIMES.iter().any(|runtime| name.starts_with(runtime))
}

/// Beginnings of the file names of libraries by which Python programs call C functions.
const CALLERS_OF_C: [&str; 3] = ["_ctypes.", "_cffi_backend.", "libffi.so"];

/// Whether a file is a Python interpreter (`python3.11`, `libpython3.11.so.1.0`) or one of the libraries by which it calls C
/// functions for programs.
pub fn is_interpreter(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    if CALLERS_OF_C.iter().any(|caller| name.starts_with(caller)) {
        return true;
    }
    let name = name.strip_prefix("lib").unwrap_or(name);
    name.strip_prefix("python").is_some_and(|rest| {
        let version = rest.split(".so").next().unwrap_or_default();
        version
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b".tdm".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_frames_are_known_by_the_names_of_their_files() {
        for path in ["/opt/rocm/lib/libamdhip64.so.6", "librpd_collect.so"] {
            assert!(is_runtime(path), "{path}");
        }
        for path in [
            "/opt/x/librpd/app",
            "libamdhip64x.so",
            "/usr/lib/librccl.so.1",
        ] {
            assert!(!is_runtime(path), "{path}");
        }
        for path in [
            "/usr/bin/python3.11",
            "/usr/bin/python3",
            "libpython3.13t.so.1.0",
            "libpython3.8d.so",
            "/usr/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
            "/usr/lib/x86_64-linux-gnu/libffi.so.8",
        ] {
            assert!(is_interpreter(path), "{path}");
        }
        for path in [
            "/usr/bin/python-config",
            "libpythonic.so",
            "libtorch_python.so",
            "_ctypes_test.cpython-311-x86_64-linux-gnu.so",
        ] {
            assert!(!is_interpreter(path), "{path}");
        }
    }
}
