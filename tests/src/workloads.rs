//! Building the workloads of `tests/workloads/`.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, io};

use crate::install;

/// The directory of the built workloads (`<target>/workloads`). They are built at the first call, unless
/// an earlier build of the same sources is there; test processes that run at the same time wait
/// for one another.
///
/// # Panics
/// When the C compiler is missing or fails: no test means anything then.
#[must_use]
pub fn build() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(|| {
        let dir = install::target_dir().join("workloads");
        build_into(&dir).unwrap_or_else(|error| panic!("the workloads cannot be built: {error}"));
        dir
    })
}

/// The built workload `name`.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    build().join(name)
}

fn build_into(dir: &Path) -> io::Result<()> {
    let sources = install::source_root().join("tests/workloads");
    fs::create_dir_all(dir)?;
    let lock = File::create(dir.with_extension("lock"))?;
    lock.lock()?;
    let stamp = dir.join(".built");
    let wanted = format!("{:016x}\n", fingerprint(&sources)?);
    if fs::read_to_string(&stamp).is_ok_and(|built| built == wanted) {
        return Ok(());
    }
    let output = Command::new(sources.join("build.sh")).arg(dir).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!(
            "build.sh: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    fs::write(&stamp, wanted)
}

/// Hash of everything that the build depends on: names and contents of the sources, and its environment.
fn fingerprint(sources: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for variable in ["CC", "RPD_HIP_SONAME"] {
        env::var_os(variable).hash(&mut hasher);
    }
    let mut directories = vec![sources.to_owned()];
    let mut files = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                directories.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }
    files.sort();
    for file in files {
        file.hash(&mut hasher);
        fs::read(&file)?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}
