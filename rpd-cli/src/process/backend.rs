//! Chooses between a ROCm installation, the simulator and no platform of AMD. Other modules do not distinguish them.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use rpd_core::options::{Backend, Options, ProviderChoice};

use super::libraries;
use crate::failure::Failure;

const SIMULATOR: &str = "librpd_sim.so";
const COLLECTOR: &str = "librpd_collect.so";
const REGISTER: &str = "librpd_register.so";
/// The registration library of the simulated runtimes, and its name in the directory of the simulator.
const SIM_REGISTRATION: &str = "librpd_sim_register.so";
const REGISTRATION: &str = "librocprofiler-register.so.0";
const DEVICE: &str = "/dev/kfd";
/// A device of NVIDIA's driver.
const NVIDIA_DEVICE: &str = "/dev/nvidiactl";
const SDK: &str = "librocprofiler-sdk.so";
const ROCTX: &str = "librocprofiler-sdk-roctx.so";

/// Sonames under which programs load libraries that the simulator replaces.
const SONAMES: &str = include_str!("../../../rpd-sim/sonames.txt");

/// Libraries of the runtimes, of which an installation without SDK has one.
const RUNTIMES: [&str; 5] = [
    "libamdhip64.so.7",
    "libamdhip64.so.6",
    "libamdhip64.so.5",
    "libamdhip64.so",
    "libhsa-runtime64.so.1",
];

/// Libraries of the chosen backend.
#[derive(Debug)]
pub(crate) struct Provider {
    /// Whether the provider is the simulator.
    pub(crate) simulated: bool,
    /// Path of the SDK's library.
    pub(crate) sdk: PathBuf,
    /// Directory to put in front of `LD_LIBRARY_PATH`.
    pub(crate) directory: PathBuf,
    /// The ROCTx library, if the backend has one.
    pub(crate) roctx: Option<PathBuf>,
    /// Path of the collector's library.
    pub(crate) collector: PathBuf,
    /// The library that passes the collector and the runtimes' tables to the SDK.
    pub(crate) register: PathBuf,
    /// Reason why `auto` fell back to the simulator; `None` when it did not.
    pub(crate) fallback: Option<String>,
}

impl Provider {
    /// Whether an SDK was found, not only a runtime.
    pub(crate) fn has_sdk(&self) -> bool {
        self.sdk.is_absolute()
    }
}

/// Whether the machine has NVIDIA GPUs and no AMD GPU.
pub(crate) fn has_nvidia_only() -> bool {
    !Path::new(DEVICE).exists() && Path::new(NVIDIA_DEVICE).exists()
}

/// Chooses the backend. `spare` is a writable directory for links; `suffixes` are the version suffixes of the SDK's `.so` to try.
pub(crate) fn choose(
    options: &Options,
    suffixes: &[String],
    library_path: Option<&OsStr>,
    spare: &Path,
) -> Result<Provider, Failure> {
    let collector = libraries::own(COLLECTOR)?;
    let register = libraries::own(REGISTER)?;
    // A wrong path would otherwise be passed over, and the system's installation be used.
    if let Some(root) = &options.rocm_root
        && options.backend != Backend::Sim
        && !root.is_dir()
    {
        return Err(Failure::failed(format!(
            "--rocm-root: {} is no directory; name the one that has the installation's lib",
            root.display()
        )));
    }
    let sdk = match options.backend {
        Backend::Cuda => return Ok(without_rocm(collector, register)),
        Backend::Sim => None,
        Backend::Rocm => Some(find(options, suffixes, library_path).map_err(|missing| {
            Failure::failed(format!(
                "--backend rocm: no {} found (looked in {}); --rocm-root names the installation, --backend sim needs none",
                missing.names, missing.tried
            ))
        })?),
        Backend::Auto => {
            // Without a device ROCm's runtime fails in the program, which has other reasons to exist on this machine.
            if has_nvidia_only() {
                return Ok(without_rocm(collector, register));
            }
            if !Path::new(DEVICE).exists() {
                let reason = format!("{DEVICE} does not exist");
                return simulator(collector, register, spare, Some(reason));
            }
            match find(options, suffixes, library_path) {
                Ok(found) => Some(found),
                Err(missing) => {
                    let reason = format!("no {} found", missing.names);
                    return simulator(collector, register, spare, Some(reason));
                }
            }
        }
    };
    match sdk {
        None => simulator(collector, register, spare, None),
        Some(found) => {
            let directory = found.parent().unwrap_or(Path::new("/")).to_owned();
            // Some installations have only the library for programs, which leads to the SDK.
            let is_sdk = |path: &Path| {
                let name = path.file_name().map(OsStr::as_encoded_bytes);
                name.is_some_and(|name| name.starts_with(SDK.as_bytes()))
            };
            let sdk = if is_sdk(&found) {
                found
            } else {
                // For a program that needs one itself.
                PathBuf::from(SDK)
            };
            // Development packages have the name without a version, and runtime packages the one with it.
            let roctx = ["1", ""].iter().find_map(|version| {
                let dot = if version.is_empty() { "" } else { "." };
                let path = directory.join(format!("{ROCTX}{dot}{version}"));
                path.is_file().then_some(path)
            });
            Ok(Provider {
                simulated: false,
                sdk,
                directory,
                roctx,
                collector,
                register,
                fallback: None,
            })
        }
    }
}

/// The HIP runtime of the backend.
pub(crate) fn hip(provider: &Provider) -> Result<PathBuf, Failure> {
    let names: Vec<String> = RUNTIMES
        .into_iter()
        .filter(|name| name.starts_with("libamdhip64"))
        .map(str::to_owned)
        .collect();
    libraries::first_with(std::slice::from_ref(&provider.directory), &names).ok_or_else(|| {
        Failure::failed(format!(
            "no {} found in {}",
            names.join(" or "),
            provider.directory.display()
        ))
    })
}

fn names(suffixes: &[String]) -> Vec<String> {
    suffixes
        .iter()
        .map(|suffix| format!("{SDK}{suffix}"))
        .collect()
}

/// Libraries that are nowhere.
struct Missing {
    names: String,
    tried: String,
}

/// The SDK library. Where nothing needs one, a runtime's library will do.
fn find(
    options: &Options,
    suffixes: &[String],
    library_path: Option<&OsStr>,
) -> Result<PathBuf, Missing> {
    let sdk = names(suffixes);
    let runtimes = RUNTIMES.map(str::to_owned);
    let needs_sdk = options.collector.provider != ProviderChoice::Direct;
    let mut names = sdk.clone();
    let found = match find_library(options, &sdk, library_path) {
        Err(_) if !needs_sdk => {
            names.extend_from_slice(&runtimes[..1]);
            find_library(options, &runtimes, library_path)
        }
        found => found,
    };
    found.map_err(|tried| Missing {
        names: names.join(" or "),
        tried,
    })
}

/// The first library of these names; the places that were searched when there is none.
fn find_library(
    options: &Options,
    names: &[String],
    library_path: Option<&OsStr>,
) -> Result<PathBuf, String> {
    let mut directories = Vec::new();
    if let Some(root) = &options.rocm_root {
        directories.push(root.join("lib"));
        directories.push(root.join("lib64"));
    } else {
        if let Some(root) = std::env::var_os("ROCM_PATH").filter(|root| !root.is_empty()) {
            directories.push(Path::new(&root).join("lib"));
        }
        directories.extend(libraries::directories(library_path));
        directories.push(PathBuf::from("/opt/rocm/lib"));
    }
    // A directory of the simulator on an inherited path is no ROCm installation.
    directories.retain(|directory| {
        names.iter().all(|name| {
            std::fs::canonicalize(directory.join(name))
                .is_ok_and(|path| path.file_name() == Some(OsStr::new(SIMULATOR)))
                .eq(&false)
        })
    });
    if let Some(found) = libraries::first_with(&directories, names) {
        return Ok(found);
    }
    if options.rocm_root.is_none()
        && let Some(found) = names
            .iter()
            .find_map(|name| libraries::in_loader_cache(name))
    {
        return Ok(found);
    }
    let mut tried = libraries::list(&directories);
    if options.rocm_root.is_none() {
        tried.push_str(", the loader's cache");
    }
    Err(tried)
}

/// Nothing of AMD's: programs have what the system has.
fn without_rocm(collector: PathBuf, register: PathBuf) -> Provider {
    let directory = collector.parent().unwrap_or(Path::new("/")).to_owned();
    Provider {
        simulated: false,
        sdk: PathBuf::from(SDK),
        directory,
        roctx: None,
        collector,
        register,
        fallback: None,
    }
}

fn simulator(
    collector: PathBuf,
    register: PathBuf,
    spare: &Path,
    reason: Option<String>,
) -> Result<Provider, Failure> {
    let library = libraries::own(SIMULATOR)?;
    let beside = library
        .parent()
        .unwrap_or(Path::new("/"))
        .join("rpd-sim-lib");
    let directory = match link(&library, &beside) {
        Ok(()) => beside,
        Err(_) => {
            let directory = spare.join("sim");
            link(&library, &directory).map_err(|error| {
                Failure::failed(format!("cannot link {}: {error}", directory.display()))
            })?;
            directory
        }
    };
    let roctx = Some(directory.join(format!("{ROCTX}.1"))).filter(|path| path.exists());
    Ok(Provider {
        simulated: true,
        sdk: directory.join(format!("{SDK}.1")),
        directory,
        roctx,
        collector,
        register,
        fallback: reason,
    })
}

/// Makes every soname in `directory` a link to the library. Safe when several runs do so at the same time.
fn link(library: &Path, directory: &Path) -> std::io::Result<()> {
    let library = &std::fs::canonicalize(library)?;
    std::fs::create_dir_all(directory)?;
    for name in SONAMES
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|name| !name.is_empty())
    {
        let path = directory.join(name);
        if std::fs::canonicalize(&path).is_ok_and(|target| target == *library) {
            continue;
        }
        // A link to another target is replaced by a rename, so that no concurrent run finds it missing.
        let fresh = directory.join(format!(".{name}.{}", std::process::id()));
        match std::fs::remove_file(&fresh) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        symlink(library, &fresh)?;
        std::fs::rename(&fresh, &path)?;
    }
    place_registration(library, directory)
}

/// Puts the registration library of the simulated runtimes, which lies beside the simulator, into `directory` under ROCm's
/// name: a file of its own, because attachers find it by its name in the memory map of a process, where links do not show.
#[expect(
    clippy::disallowed_methods,
    reason = "a library that is installed with rpd"
)]
fn place_registration(library: &Path, directory: &Path) -> std::io::Result<()> {
    let installed = library.with_file_name(SIM_REGISTRATION);
    let path = directory.join(REGISTRATION);
    let id = |path: &Path| {
        let found = std::fs::metadata(path).ok()?;
        Some((found.dev(), found.ino()))
    };
    if !installed.exists() || id(&installed) == id(&path) {
        return Ok(());
    }
    let fresh = directory.join(format!(".{REGISTRATION}.{}", std::process::id()));
    std::fs::hard_link(&installed, &fresh)
        .or_else(|_| std::fs::copy(&installed, &fresh).map(drop))?;
    std::fs::rename(&fresh, &path)
}
