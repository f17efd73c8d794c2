//! What a module is to a stack, told from its file name.

/// What a module is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Part of a profiler: what the program would not have without one.
    Profiler,
    /// A GPU runtime, whose functions are what is traced.
    Runtime,
    /// A Python interpreter.
    Interpreter,
    /// Anything else.
    Program,
}

const PROFILERS: [&str; 6] = [
    "librpd_collect.so",
    "librpd_register.so",
    "librocprofiler-sdk.so",
    "librocprofiler-register.so",
    "librocprofiler64.so",
    "libroctracer64.so",
];

const RUNTIMES: [&str; 14] = [
    "librpd_sim.so",
    "libamdhip64.so",
    "libhsa-runtime64.so",
    "libhiprtc.so",
    "libhiprtc-builtins.so",
    "libamd_comgr.so",
    "librocprofiler-sdk-roctx.so",
    "libroctx64.so",
    "libcuda.so",
    "libcudart.so",
    "libcupti.so",
    "libnvToolsExt.so",
    "libnvrtc.so",
    "libnvidia-ml.so",
];

/// What the module with this path is.
pub(crate) fn role(path: &str) -> Role {
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(" (deleted)").unwrap_or(name);
    // `libamdhip64.so.6.3.42`: what follows the name is a version.
    let is_one_of = |names: &[&str]| {
        names.iter().any(|known| {
            name.strip_prefix(known)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    if is_one_of(&PROFILERS) {
        Role::Profiler
    } else if is_one_of(&RUNTIMES) {
        Role::Runtime
    } else if is_python(name) {
        Role::Interpreter
    } else {
        Role::Program
    }
}

/// `python3.12`, `python`, `python3.8-dbg`, `libpython3.12.so.1.0`, `libpython3.13t.so.1.0`.
fn is_python(name: &str) -> bool {
    let (name, is_library) = match name.strip_prefix("lib") {
        Some(rest) => match rest.split_once(".so") {
            Some((stem, _)) => (stem, true),
            None => return false,
        },
        None => (name, false),
    };
    let Some(version) = name.strip_prefix("python") else {
        return false;
    };
    let rest = version.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    if version.len() == rest.len() && (is_library || !rest.is_empty()) {
        return false;
    }
    // ABI flags: debug, free-threaded.
    matches!(
        rest.trim_start_matches('-'),
        "" | "d" | "t" | "td" | "m" | "dm" | "dbg" | "exe"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_of_files() {
        for (path, expected) in [
            ("/opt/rocm/lib/libamdhip64.so.6", Role::Runtime),
            ("/x/librpd_sim.so", Role::Runtime),
            ("/x/librpd_sim.so (deleted)", Role::Runtime),
            ("/opt/rocm/lib/librocprofiler-sdk.so.1", Role::Profiler),
            ("/opt/rocm/lib/librocprofiler-sdk-roctx.so.1", Role::Runtime),
            ("/usr/bin/python3.11", Role::Interpreter),
            ("/usr/bin/python", Role::Interpreter),
            ("/usr/bin/python3.8-dbg", Role::Interpreter),
            ("/usr/lib/libpython3.13t.so.1.0", Role::Interpreter),
            ("/usr/lib/libpython3.so", Role::Interpreter),
            ("/usr/lib/libpython_helpers.so", Role::Program),
            ("/home/u/pythonic", Role::Program),
            ("/home/u/libcudawrapper.so", Role::Program),
            ("/home/u/app", Role::Program),
        ] {
            assert_eq!(role(path), expected, "{path}");
        }
    }
}
