//! Turns the tables of API facts into dispatch tables, exported symbols and tracing wrappers.
//!
//! Inputs: the tables of `rpd-data` (which call has which slot, its arguments and what it returns) and the sources below some directories
//! of `src`, which are searched for implementations by name. What has none becomes a
//! function that says so and returns the runtime's "not supported".

#[path = "build/emit.rs"]
mod emit;
#[path = "build/mangle.rs"]
mod mangle;
#[path = "build/scan.rs"]
mod scan;

use std::{env, error::Error, fs, path::PathBuf};

/// Tables of libraries that are not simulated.
const ABSENT: [&str; 2] = ["ROCDECODE_API", "ROCJPEG_API"];
/// Directories of `src` with implementations of calls.
const IMPLEMENTED_IN: [&str; 4] = ["hip", "hsa", "rccl", "roctx"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    for module in IMPLEMENTED_IN {
        println!("cargo::rerun-if-changed=src/{module}");
    }
    let mut domains = rpd_data::functions()?;
    domains.retain(|domain| !ABSENT.contains(&domain.name));
    let implemented = scan::find(&root, &IMPLEMENTED_IN, &domains)?;
    fs::write(out.join("api_counts.rs"), emit::counts(&domains)?)?;
    fs::write(out.join("api_fns.rs"), rpd_data::macro_calls(&domains))?;
    fs::write(
        out.join("api_impls.rs"),
        emit::implementations(&domains, &implemented)?,
    )?;
    fs::write(
        out.join("api_missing.rs"),
        emit::missing(&domains, &implemented)?,
    )?;
    fs::write(out.join("api_streams.rs"), emit::streams(&domains)?)?;
    fs::write(out.join("api_args.rs"), emit::arguments(&domains)?)?;
    let mut operations = rpd_data::operations()?;
    operations.retain(|operation| !rpd_data::CALLBACK_KINDS.contains(&operation.kind));
    fs::write(out.join("operations.rs"), emit::operations(&operations)?)?;
    fs::write(
        out.join("enums.rs"),
        emit::enums(&rpd_data::enumerators()?)?,
    )?;
    // Programs that were linked against the real libraries request versions of symbols. The definitions
    // alone satisfy the loader: it takes symbols without a version for any version requested. (A second
    // script beside rustc's own, which lld, rustc's linker on this target, takes as an addition.)
    let versions = out.join("versions.map");
    fs::write(&versions, emit::versions())?;
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,--version-script={}",
        versions.display()
    );
    Ok(())
}
