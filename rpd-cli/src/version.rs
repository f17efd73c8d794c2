//! The text that `--version` prints.

use rpd_spool::regular_file;

/// Text of `--version`: one line per fact, labels right-aligned.
pub(crate) fn text() -> String {
    let system = nix::sys::utsname::uname().ok();
    let of = |get: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        system
            .as_ref()
            .map(|system| get(system).to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    let rocm = std::env::var("ROCM_PATH").unwrap_or_else(|_| "/opt/rocm".to_owned());
    let rocm = regular_file::read_text(&std::path::Path::new(&rocm).join(".info/version"), 4096)
        .map(|text| text.trim().to_owned())
        .unwrap_or_else(|_| "none".to_owned());
    // Labels are those of rocprofv3, which scripts read.
    let facts = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        (
            "git_revision",
            option_env!("RPD_GIT_REVISION")
                .unwrap_or("unknown")
                .to_owned(),
        ),
        (
            "library_arch",
            format!("{}-linux-gnu", std::env::consts::ARCH),
        ),
        ("system_name", of(|system| system.sysname())),
        ("system_processor", of(|system| system.machine())),
        ("system_version", of(|system| system.release())),
        ("compiler_id", "rustc".to_owned()),
        (
            "compiler_version",
            env!("CARGO_PKG_RUST_VERSION").to_owned(),
        ),
        ("rocm_version", rocm),
    ];
    facts
        .iter()
        .map(|(label, value)| format!("    {label:>16}: {value}\n"))
        .collect()
}
