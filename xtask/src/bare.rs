//! A machine with Rust, a C compiler and the base system alone, as far as `PATH` makes one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use rpd_tests::install;

use crate::shell;

/// Names of the Debian packages of a C compiler. A name with a hyphen and more behind it counts, too.
const COMPILER: [&str; 3] = ["binutils", "cpp", "gcc"];

/// Has `command` find no programs but those of Rust, the C compiler and the base system, and no home directory.
///
/// # Errors
/// Where programs cannot be told apart by their packages, which takes `dpkg-query`.
pub(crate) fn confine(command: &mut Command) -> Result<()> {
    let directory = install::target_dir().join("bare");
    let programs = directory.join("bin");
    let home = directory.join("home");
    // A program that was removed since must not be found any more.
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .with_context(|| format!("removing {}", directory.display()))?;
    }
    for made in [&programs, &home] {
        fs::create_dir_all(made).with_context(|| format!("creating {}", made.display()))?;
    }
    for (name, program) in base_programs()? {
        let link = programs.join(name);
        symlink(&program, &link).with_context(|| format!("creating {}", link.display()))?;
    }
    let mut path = programs.into_os_string();
    path.push(":");
    path.push(rust_programs()?);
    let cargo_home = match (env::var_os("CARGO_HOME"), env::var_os("HOME")) {
        (Some(directory), _) => PathBuf::from(directory),
        (None, Some(home)) => Path::new(&home).join(".cargo"),
        (None, None) => bail!("neither CARGO_HOME nor HOME is set"),
    };
    command
        .env("PATH", path)
        .env("HOME", home)
        .env("CARGO_HOME", cargo_home)
        // Names interpreters outside of the base system.
        .env_remove("RPD_TEST_PYTHONS");
    Ok(())
}

/// The directory of the toolchain that runs this program, past rustup, which looks for its toolchains in the home directory.
fn rust_programs() -> Result<PathBuf> {
    let root = shell::output(Command::new("rustc").args(["--print", "sysroot"]))?;
    Ok(Path::new(root.trim()).join("bin"))
}

/// The programs of the base system and of the C compiler.
fn base_programs() -> Result<BTreeMap<OsString, PathBuf>> {
    let listed = shell::output(Command::new("dpkg-query").args([
        "--show",
        "--showformat",
        "${binary:Package} ${Essential} ${Priority}\\n",
    ]))
    .context("Debian's package manager alone knows which programs are those of the base system")?;
    let packages = listed.lines().filter_map(base_package);
    let files = shell::output(Command::new("dpkg-query").arg("--listfiles").args(packages))?;
    let directories = ["/bin", "/usr/bin", "/sbin", "/usr/sbin"].map(Path::new);
    let mut programs = BTreeMap::new();
    for path in files.lines().map(Path::new) {
        let is_program = path
            .parent()
            .is_some_and(|parent| directories.contains(&parent));
        // Directories and documentation are among the files as well.
        if let Some(name) = path.file_name().filter(|_| is_program && path.is_file()) {
            programs.insert(name.to_owned(), path.to_owned());
        }
    }
    // Alternatives, which belong to no package.
    for name in ["cc", "awk"] {
        let found = shell::tool(name).with_context(|| format!("there is no {name}"))?;
        programs.insert(name.into(), found);
    }
    Ok(programs)
}

/// The name of a package of the base system or of the C compiler, from a line with its name, whether it is essential, and
/// its priority.
fn base_package(line: &str) -> Option<&str> {
    let words: Vec<&str> = line.split(' ').collect();
    let [package, essential, priority] = words[..] else {
        return None;
    };
    let is_of_compiler = |name: &str| {
        let rest = package.strip_prefix(name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let is_base = essential == "yes" || priority == "required";
    (is_base || COMPILER.into_iter().any(is_of_compiler)).then_some(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_keeps_packages_of_the_base_system_and_compiler() {
        for (line, is_base) in [
            ("coreutils yes required", true),
            ("mount no required", true),
            ("gcc no optional", true),
            ("gcc-12 no optional", true),
            ("binutils-x86-64-linux-gnu no optional", true),
            ("g++-12 no optional", false),
            ("procps no important", false),
            ("sqlite3 no optional", false),
            ("gccgo no optional", false),
        ] {
            assert_eq!(base_package(line).is_some(), is_base, "{line}");
        }
    }
}
