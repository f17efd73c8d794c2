//! The probes of a real machine.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::{AccessFlags, Group, User as SystemUser, access, getgroups, getuid};
use rpd_core::storage::temporary::{TemporaryDirectory, TemporaryFile};

use super::SELF_TEST;
use super::machine::{Machine, Probes, Rocm, SelfTest, User};
use crate::process::libraries;

/// Longest time of a process that a check starts. A ROCm installation that is not in the page cache takes seconds to load.
const LIMIT: Duration = Duration::from_secs(60);

/// Where the installations of ROCm lie.
const INSTALLATIONS: &str = "/opt";

/// This machine. `rocm_root`: the value of the option that names an installation.
pub(super) fn this_machine(rocm_root: Option<&Path>, output: PathBuf) -> Machine {
    let variables = std::env::vars_os().collect();
    let id = getuid();
    let name = SystemUser::from_uid(id).ok().flatten();
    let mut machine = Machine {
        root: PathBuf::from("/"),
        variables,
        user: User {
            id: id.as_raw(),
            name: name.map(|user| user.name).unwrap_or_default(),
            groups: getgroups()
                .unwrap_or_default()
                .into_iter()
                .map(nix::unistd::Gid::as_raw)
                .collect(),
        },
        rocm: Rocm {
            root: None,
            source: String::new(),
        },
        output,
        probes: Probes {
            can_use: |path| access(path, AccessFlags::R_OK | AccessFlags::W_OK).is_ok(),
            group: |name| {
                let group = Group::from_name(name).ok()??;
                Some((group.gid.as_raw(), group.mem))
            },
            free_bytes,
            can_create,
            loads,
            in_loader_cache: libraries::in_loader_cache,
            otf2: || rpd_formats::otf2::check_library(None).map_err(|lack| lack.to_string()),
            own_library: |name| libraries::own(name).map_err(|failure| failure.to_string()),
            self_test,
        },
    };
    machine.rocm = installation(&machine, rocm_root);
    machine
}

/// The installation that a profiled program would use: the named one, that of a variable, else the newest in `/opt`.
fn installation(machine: &Machine, named: Option<&Path>) -> Rocm {
    if let Some(root) = named {
        return Rocm {
            root: Some(root.to_owned()),
            source: "--rocm-root".to_owned(),
        };
    }
    for variable in ["ROCM_PATH", "ROCM_HOME", "ROCM_DIR"] {
        if let Some(root) = machine.variable(variable) {
            return Rocm {
                root: Some(PathBuf::from(root)),
                source: variable.to_owned(),
            };
        }
    }
    let newest = newest(machine.names(INSTALLATIONS, "rocm"));
    let usual = Path::new(INSTALLATIONS).join("rocm");
    let root = if machine.below(&usual).is_dir() {
        Some(usual)
    } else {
        newest.map(|name| Path::new(INSTALLATIONS).join(name))
    };
    Rocm {
        root,
        source: INSTALLATIONS.to_owned(),
    }
}

/// The directory of the highest version among those of installations. Versions are compared as numbers: 10.0 is newer than
/// 7.0.
pub(super) fn newest(names: Vec<String>) -> Option<String> {
    let version = |name: &String| -> Vec<u32> {
        let parts = name.split(|letter: char| !letter.is_ascii_digit());
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    names.into_iter().max_by_key(version)
}

fn free_bytes(path: &Path) -> Option<u64> {
    let state = nix::sys::statvfs::statvfs(path).ok()?;
    Some(state.blocks_available() * state.fragment_size())
}

fn can_create(directory: &Path) -> Result<(), String> {
    let made = TemporaryFile::in_directory(directory);
    made.map(drop).map_err(|error| error.to_string())
}

/// The dynamic loader reports a preloaded library that it cannot open, with the reason, and with immediate binding every
/// symbol that is missing: no code of ours has to open it.
fn loads(library: &Path, directory: &Path) -> Result<(), String> {
    let mut path = OsString::from(directory);
    if let Some(inherited) = std::env::var_os("LD_LIBRARY_PATH").filter(|path| !path.is_empty()) {
        path.push(":");
        path.push(inherited);
    }
    let mut command = Command::new("/bin/true");
    command
        .env("LD_PRELOAD", library)
        .env("LD_BIND_NOW", "1")
        .env("LD_LIBRARY_PATH", path);
    let (succeeded, text) = finish(command)?;
    match text.lines().find(|line| !line.trim().is_empty()) {
        None if succeeded => Ok(()),
        None => Err("the process that loads it was ended by a signal".to_owned()),
        Some(line) => Err(line.trim().to_owned()),
    }
}

fn self_test(options: &[&str]) -> Result<SelfTest, String> {
    let directory = TemporaryDirectory::new().map_err(|error| error.to_string())?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(&program);
    command
        .args(options)
        .args(["-f", "csv", "-o", "self", "-d"])
        .arg(directory.path())
        .arg("--")
        .arg(&program)
        .arg(SELF_TEST);
    let (succeeded, text) = finish(command)?;
    if !succeeded {
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        return Err(last.unwrap_or("no message").trim().to_owned());
    }
    let rows = |name: &str| -> Vec<String> {
        let path = directory.path().join(name);
        let text = rpd_spool::regular_file::read_text(&path, 1 << 20).unwrap_or_default();
        text.lines().skip(1).map(str::to_owned).collect()
    };
    let counters = rows("self_counter_collection.csv");
    // The value stands before the two timestamps.
    let is_zero = |row: &&String| {
        let value = row.rsplit(',').nth(2).unwrap_or_default();
        value.trim_matches('"').parse::<f64>().unwrap_or(0.0) == 0.0
    };
    let zeros = counters.iter().filter(is_zero).count();
    Ok(SelfTest {
        calls: rows("self_hip_api_trace.csv").len(),
        counters: (counters.len(), counters.len() - zeros),
    })
}

/// Runs a command to its end, or for [`LIMIT`]: whether it succeeded, and what it wrote to standard error.
fn finish(mut command: Command) -> Result<(bool, String), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let errors = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(errors) = errors {
            let _ = errors.take(1 << 16).read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let end = Instant::now() + LIMIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                return Ok((status.success(), reader.join().unwrap_or_default()));
            }
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!(
                    "{program} has not ended after {} s",
                    LIMIT.as_secs()
                ));
            }
            Err(error) => return Err(format!("{program}: {error}")),
        }
    }
}
