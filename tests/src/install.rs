//! Paths of the built `rpd`, its libraries and the simulator's sonames.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, io};

/// The packages that make up what is installed.
pub const PACKAGES: [&str; 6] = [
    "rpd-cli",
    "rpd-collect",
    "rpd-register",
    "rpd-sim",
    "rpd-sim-register",
    // Its C library, which nothing links.
    "rpd-att",
];

/// Selects what to build so that dependencies get the features that `cargo test --workspace` gives them. With another
/// selection some features differ, and everything that depends on them, SQLite included, is built a second time.
pub const SAME_DEPENDENCIES: &str = "--workspace";

/// The root of the source tree.
#[must_use]
pub fn source_root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package is a directory of the workspace")
}

/// The profile's directory in Cargo's target directory (`target/debug`), found from the running program.
#[must_use]
pub fn profile_dir() -> PathBuf {
    let exe = env::current_exe().expect("a program knows its own path");
    let dir = exe.parent().expect("a file is in a directory");
    if dir.ends_with("deps") {
        dir.parent().unwrap_or(dir).to_owned()
    } else {
        dir.to_owned()
    }
}

/// Cargo's target directory.
#[must_use]
pub fn target_dir() -> PathBuf {
    let profile = profile_dir();
    profile.parent().unwrap_or(&profile).to_owned()
}

/// The directory with `rpd` and its libraries: `RPD_BIN_DIR`, or the profile's
/// directory after a `cargo build` of them, made once per process.
///
/// # Panics
/// When the build fails: without the programs there is nothing to test.
#[must_use]
pub fn bin_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        if let Some(dir) = env::var_os("RPD_BIN_DIR") {
            return dir.into();
        }
        let profile = profile_dir();
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .arg("build")
            .current_dir(source_root())
            .env("CARGO_TARGET_DIR", target_dir());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        cargo.arg(SAME_DEPENDENCIES);
        let status = cargo.status().expect("cargo starts");
        assert!(status.success(), "{cargo:?} failed: {status}");
        profile
    })
}

/// The `rpd` program.
#[must_use]
pub fn rpd() -> PathBuf {
    bin_dir().join("rpd")
}

/// The collector's library.
#[must_use]
pub fn collector() -> PathBuf {
    bin_dir().join("librpd_collect.so")
}

/// The library that gives the SDK the collector and the runtimes' tables.
#[must_use]
pub fn register() -> PathBuf {
    bin_dir().join("librpd_register.so")
}

/// A directory in which the simulator has the sonames that programs request, as links to the built
/// library; to be put on `LD_LIBRARY_PATH`.
///
/// # Panics
/// When the directory cannot be made.
#[must_use]
pub fn simulator_dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = bin_dir().join("rpd-sim-lib");
        link_sonames(&dir, &bin_dir().join("librpd_sim.so")).expect("links to the simulator");
        dir
    })
}

/// The names under which programs request the simulator's library, from its own list.
///
/// # Errors
/// When the list cannot be read.
pub fn sonames() -> io::Result<Vec<String>> {
    let list = fs::read_to_string(source_root().join("rpd-sim/sonames.txt"))?;
    Ok(list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

/// The simulator's registration library, as it is built.
pub const REGISTRATION: &str = "librpd_sim_register.so";

/// Name of the registration library where the simulator and attachers look for it.
pub const REGISTRATION_SONAME: &str = "librocprofiler-register.so.0";

/// Fills `dir` with one link to `library` for each soname, and with the simulator's registration library, which lies beside
/// `library`. Processes may do this at the same time.
///
/// # Errors
/// When the directory or a link cannot be made.
pub fn link_sonames(dir: &Path, library: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    for name in sonames()? {
        let link = dir.join(&name);
        if fs::read_link(&link).is_ok_and(|to| to == library) {
            continue;
        }
        // Renamed into place, so that a process that is starting never misses it.
        let temporary = dir.join(format!(".{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(library, &temporary)?;
        fs::rename(&temporary, &link)?;
    }
    // A file of its own: attachers find it by its name in the memory of a process, where links do not show.
    let file = dir.join(REGISTRATION_SONAME);
    let registration = library.with_file_name(REGISTRATION);
    let id = |path: &Path| fs::metadata(path).ok().map(|at| (at.dev(), at.ino()));
    if !registration.exists() || id(&registration) == id(&file) {
        return Ok(());
    }
    let temporary = dir.join(format!(".{REGISTRATION_SONAME}.{}", std::process::id()));
    fs::hard_link(&registration, &temporary)
        .or_else(|_| fs::copy(&registration, &temporary).map(drop))?;
    fs::rename(&temporary, &file)
}
