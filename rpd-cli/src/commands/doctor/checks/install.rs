//! The ROCm installation: which libraries of it rpd finds.

use std::path::PathBuf;

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

const ROOT: &[&str] = &["install.rocm-root"];

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "install.rocm-root",
        "ROCm installation",
        Severity::Error,
        root,
    ),
    Check::new(
        "install.sdk-library",
        "rocprofiler-sdk",
        Severity::Error,
        sdk,
    )
    .after(ROOT),
    Check::new("install.hip-runtime", "HIP runtime", Severity::Error, hip).after(ROOT),
    Check::new(
        "install.registration-library",
        "registration of runtimes with profilers",
        Severity::Error,
        registration,
    )
    .after(ROOT),
    Check::new("install.roctx-library", "ROCTx", Severity::Warning, roctx).after(ROOT),
    Check::new(
        "install.attach-library",
        "attaching",
        Severity::Warning,
        attach,
    )
    .after(ROOT),
    Check::new(
        "install.comgr-library",
        "code object manager",
        Severity::Warning,
        comgr,
    )
    .after(ROOT),
    Check::new(
        "install.decoder-library",
        "AMD's decoder of thread traces",
        Severity::Info,
        decoder,
    )
    .after(ROOT),
    Check::new(
        "install.metrics-path",
        "definitions of counters",
        Severity::Warning,
        metrics,
    )
    .after(ROOT),
    Check::new(
        "install.no-mixed-rocm",
        "a single installation in use",
        Severity::Warning,
        no_mixed,
    )
    .after(ROOT),
    Check::new(
        "install.otf2-library",
        "libotf2, for -f otf2",
        Severity::Info,
        otf2,
    ),
];

fn root(machine: &Machine) -> Finding {
    let source = &machine.rocm.source;
    match &machine.rocm.root {
        // A machine without an AMD GPU lacks nothing.
        None if machine.has_nvidia() => Finding::skip("no ROCm, and the GPU here is NVIDIA's"),
        None => Finding::fail(
            format!("no ROCm in {source}"),
            "install ROCm or name it with --rocm-root; `--backend sim` records without it",
        ),
        Some(root) if machine.below(root).is_dir() => {
            let version = machine.text(&format!("{}/.info/version", root.display()));
            Finding::pass(format!(
                "{} (by {source}), version {}",
                root.display(),
                version.as_deref().unwrap_or("unknown")
            ))
        }
        Some(root) => Finding::fail(
            format!("{} (by {source}) is no directory", root.display()),
            "correct the variable or option, or remove it",
        ),
    }
}

/// Directories of the installation that hold libraries.
fn library_directories(machine: &Machine) -> Vec<PathBuf> {
    let roots = machine.rocm.root.iter();
    roots
        .flat_map(|root| [root.join("lib"), root.join("lib64")])
        .collect()
}

/// Where in the installation a library lies that has one of these names. Names are tried in order.
fn find(machine: &Machine, names: &[&str]) -> Option<PathBuf> {
    let directories = library_directories(machine);
    names.iter().find_map(|name| {
        let paths = directories.iter().map(|directory| directory.join(name));
        paths.into_iter().find(|path| machine.below(path).exists())
    })
}

/// What is found of a library, with what its lack means.
fn library(
    machine: &Machine,
    names: &[&str],
    lacks: fn(String, &str) -> Finding,
    remedy: &str,
) -> Finding {
    if let Some(path) = find(machine, names) {
        return Finding::pass(path.display().to_string());
    }
    // Another version of it explains most cases.
    let stem = names[0].split_inclusive(".so").next().unwrap_or(names[0]);
    let others: Vec<String> = library_directories(machine)
        .iter()
        .flat_map(|directory| machine.names(&directory.to_string_lossy(), stem))
        .collect();
    let beside = if others.is_empty() {
        String::new()
    } else {
        format!(", only {}", others.join(", "))
    };
    lacks(format!("no {}{beside}", names.join(" or ")), remedy)
}

fn failed(detail: String, remedy: &str) -> Finding {
    Finding::fail(detail, remedy)
}

fn warned(detail: String, remedy: &str) -> Finding {
    Finding::warn(detail, remedy)
}

fn sdk(machine: &Machine) -> Finding {
    let names = ["librocprofiler-sdk.so.1", "librocprofiler-sdk.so.0"];
    let remedy = "install the package rocprofiler-sdk; `--provider direct` traces without it";
    library(machine, &names, failed, remedy)
}

fn hip(machine: &Machine) -> Finding {
    let names = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];
    library(
        machine,
        &names,
        failed,
        "install the package hip-runtime-amd",
    )
}

fn registration(machine: &Machine) -> Finding {
    let remedy = "install the package rocprofiler-register";
    library(machine, &["librocprofiler-register.so.0"], failed, remedy)
}

fn roctx(machine: &Machine) -> Finding {
    let remedy =
        "install the package rocprofiler-sdk-roctx, or ranges of programs are not recorded";
    let names = [
        "librocprofiler-sdk-roctx.so.1",
        "librocprofiler-sdk-roctx.so",
    ];
    library(machine, &names, warned, remedy)
}

fn attach(machine: &Machine) -> Finding {
    let remedy = "ROCm 7.1 brings it; `rpd attach` reaches programs that were started with `rpd idle` without it";
    let names = [
        "librocprofiler-sdk-attach.so.1",
        "librocprofiler-sdk-attach.so",
    ];
    library(machine, &names, warned, remedy)
}

fn comgr(machine: &Machine) -> Finding {
    let names = ["libamd_comgr.so.3", "libamd_comgr.so.2"];
    library(
        machine,
        &names,
        warned,
        "install the package comgr, which the HIP runtime needs",
    )
}

fn decoder(machine: &Machine) -> Finding {
    match find(machine, &["librocprof-trace-decoder.so"]) {
        Some(path) => Finding::pass(path.display().to_string()),
        None => Finding::pass("not there; rpd has a decoder of its own"),
    }
}

fn metrics(machine: &Machine) -> Finding {
    const VARIABLE: &str = "ROCPROFILER_METRICS_PATH";
    const FILE: &str = "counter_defs.yaml";
    let named = machine.variable(VARIABLE).map(PathBuf::from);
    let by = if named.is_some() { VARIABLE } else { "ROCm" };
    let usual = || Some(machine.rocm.root.as_ref()?.join("share/rocprofiler-sdk"));
    let Some(directory) = named.or_else(usual) else {
        return Finding::skip("no installation");
    };
    let file = directory.join(FILE);
    if machine.below(&file).is_file() {
        return Finding::pass(file.display().to_string());
    }
    Finding::warn(
        format!("no {} (by {by})", file.display()),
        format!(
            "install the package rocprofiler-sdk, or correct {VARIABLE}; without it there are no counters"
        ),
    )
}

fn no_mixed(machine: &Machine) -> Finding {
    let Some(root) = &machine.rocm.root else {
        return Finding::skip("no installation");
    };
    let real = |path: &std::path::Path| {
        let path = machine.below(path);
        std::fs::canonicalize(&path).unwrap_or(path)
    };
    let own = real(root);
    for variable in ["LD_LIBRARY_PATH", "ROCM_PATH", "ROCM_HOME", "ROCM_DIR"] {
        let Some(value) = machine.variable(variable) else {
            continue;
        };
        for path in std::env::split_paths(value) {
            let named = path
                .components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with("rocm"));
            if named && !real(&path).starts_with(&own) {
                return Finding::warn(
                    format!(
                        "{variable} names {}, and {} is inspected",
                        path.display(),
                        root.display()
                    ),
                    format!(
                        "take {} out of {variable}: libraries of two versions do not work together",
                        path.display()
                    ),
                );
            }
        }
    }
    Finding::pass("no variable names another one")
}

fn otf2(machine: &Machine) -> Finding {
    match (machine.probes.otf2)() {
        Ok(()) => Finding::pass("opened"),
        Err(reason) => Finding::warn(
            reason,
            "install libopen-trace-format2-10 (Debian 13: -10u), or name the file with --otf2-library",
        ),
    }
}
