//! `<prefix>_config.json`: the resolved options in the structure of rocprofv3's file.

use std::path::PathBuf;

use anyhow::Result;
use rpd_core::environment::EnvironmentSelection;
use rpd_core::naming::{self, Target};
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_formats::settings::{self, Settings};
use serde_json::{Value, json};

use super::place;

/// Writes the file and returns its path.
pub(super) fn write(session: &Session, options: &Options, target: &Target) -> Result<PathBuf> {
    let path = target.file("config.json");
    let mut text = serde_json::to_vec_pretty(&document(session, options, target))?;
    text.push(b'\n');
    place::file(&path, &text)?;
    Ok(path)
}

fn document(session: &Session, options: &Options, target: &Target) -> Settings {
    let process = &session.process;
    let kept = options.output_environment;
    let mut shown = options.clone();
    shown.launch_environment.retain(|name, _| {
        kept.keeps(name)
            || (kept == EnvironmentSelection::Relevant && naming::is_naming_variable(name))
    });
    let environment: serde_json::Map<String, Value> = process
        .environment
        .iter()
        .filter(|(name, _)| kept.keeps(name))
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let metadata = Settings::default()
        .with("pid", process.pid.0)
        .with("init_time", process.init_time.0)
        .with("fini_time", process.fini_time.0)
        .with_object("config", settings::of_run(session, options, target))
        .with("command", process.command.clone())
        .with_object("build_spec", build())
        .with_object("profile", profile())
        .with("environment", environment)
        // In addition, every resolved option under rpd's own name.
        .with("rpd_options", json!(shown));
    Settings::default().with_objects(
        "rocprofiler-sdk-tool",
        vec![Settings::default().with_object("metadata", metadata)],
    )
}

/// Settings of `--benchmark-mode execution-profile`, which the original counts and rpd refuses.
fn profile() -> Settings {
    Settings::default().with("threads", 0).with("contexts", 0)
}

fn build() -> Settings {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let system = nix::sys::utsname::uname().ok();
    let of = |get: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        system
            .as_ref()
            .map(|system| get(system).to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    Settings::default()
        .with("version_major", number(env!("CARGO_PKG_VERSION_MAJOR")))
        .with("version_minor", number(env!("CARGO_PKG_VERSION_MINOR")))
        .with("version_patch", number(env!("CARGO_PKG_VERSION_PATCH")))
        .with("soversion", 1)
        .with("compiler_id", "rustc")
        .with("compiler_version", env!("CARGO_PKG_RUST_VERSION"))
        .with("git_describe", concat!("v", env!("CARGO_PKG_VERSION")))
        .with(
            "git_revision",
            option_env!("RPD_GIT_REVISION").unwrap_or(""),
        )
        .with(
            "library_arch",
            format!("{}-linux-gnu", std::env::consts::ARCH),
        )
        .with("system_name", of(|system| system.sysname()))
        .with("system_processor", of(|system| system.machine()))
        .with("system_version", of(|system| system.release()))
}
