//! Packages of the unpacked archive: for Debian and Ubuntu, for Red Hat and SUSE, and for pip.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rpd_tests::install;

use super::copy_tree;
use super::glibc::Version;
use crate::shell;

/// A line about the programs, for lists of packages.
const SUMMARY: &str = "profiler for programs that use AMD and NVIDIA GPUs";

/// What packages say about it.
const DESCRIPTION: &str = "Records calls, kernels, copies and counters of a program, with the lines of code that asked for them.";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Makes a package of a tree in a directory; the programs need a C library of this version.
type Maker = fn(tree: &Path, dist: &Path, needed: Version) -> Result<PathBuf>;

/// Makes all packages of the tree for which there are tools, beside it, and returns their files.
pub(super) fn make(tree: &Path, dist: &Path, needed: Version) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let kinds: [(&str, Maker); 3] = [
        ("dpkg-deb", debian),
        ("rpmbuild", red_hat),
        ("python3", wheel),
    ];
    for (tool, make) in kinds {
        if shell::tool(tool).is_none() {
            println!("skipped: the package that {tool} makes: it is not installed");
            continue;
        }
        made.push(make(tree, dist, needed)?);
    }
    Ok(made)
}

/// An empty directory in `dist` that a package is made from.
fn staging(dist: &Path, name: &str) -> Result<PathBuf> {
    let directory = dist.join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Makes a package for `dpkg`.
fn debian(tree: &Path, dist: &Path, needed: Version) -> Result<PathBuf> {
    let architecture = match env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let root = staging(dist, "deb")?;
    copy_tree(tree, &root.join("usr"))?;
    let control = root.join("DEBIAN/control");
    fs::create_dir_all(root.join("DEBIAN"))?;
    let text = format!(
        "Package: rpd\nVersion: {VERSION}\nArchitecture: {architecture}\nSection: devel\nPriority: optional\n\
         Depends: libc6 (>= {needed})\nMaintainer: the authors of rpd <rpd@localhost>\nDescription: {SUMMARY}\n {DESCRIPTION}\n",
    );
    fs::write(&control, text).with_context(|| control.display().to_string())?;
    let file = dist.join(format!("rpd_{VERSION}_{architecture}.deb"));
    let mut build = Command::new("dpkg-deb");
    build
        .args(["--root-owner-group", "--build"])
        .args([&root, &file]);
    shell::run(&mut build)?;
    Ok(file)
}

/// Makes a package for `rpm`.
fn red_hat(tree: &Path, dist: &Path, needed: Version) -> Result<PathBuf> {
    let top = staging(dist, "rpm")?;
    let spec = top.join("rpd.spec");
    // The files are built and stripped: nothing is to be compiled, searched for debug information or checked.
    let text = format!(
        "%global debug_package %{{nil}}\n%global __os_install_post %{{nil}}\n%global _build_id_links none\n\
         Name: rpd\nVersion: {VERSION}\nRelease: 1\nSummary: {SUMMARY}\nLicense: MIT OR Apache-2.0\nAutoReqProv: no\n\
         Requires: glibc >= {needed}\n%description\n{DESCRIPTION}\n%install\nmkdir -p %{{buildroot}}/usr\n\
         cp -a {}/. %{{buildroot}}/usr/\n%files\n/usr/bin/rpd\n/usr/lib/rpd\n/usr/share/bash-completion/completions/rpd\n\
         /usr/share/doc/rpd\n/usr/share/fish/vendor_completions.d/rpd.fish\n/usr/share/man/man1/rpd*\n/usr/share/rpd\n\
         /usr/share/zsh/site-functions/_rpd\n",
        tree.display()
    );
    fs::write(&spec, text).with_context(|| spec.display().to_string())?;
    let mut build = Command::new("rpmbuild");
    build
        .args(["-bb", "--quiet", "--define"])
        .arg(format!("_topdir {}", top.display()))
        .arg("--define")
        .arg(format!("_rpmdir {}", dist.display()))
        .args([
            "--define",
            "_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm",
        ])
        .arg(&spec);
    shell::run(&mut build)?;
    Ok(dist.join(format!("rpd-{VERSION}-1.{}.rpm", env::consts::ARCH)))
}

/// Makes a package for `pip`: the Python package, with the programs in front of it.
fn wheel(tree: &Path, dist: &Path, needed: Version) -> Result<PathBuf> {
    let name = format!(
        "rpd-{VERSION}-py3-none-manylinux_{}_{}.whl",
        needed.to_string().replace('.', "_"),
        env::consts::ARCH
    );
    let mut build = Command::new("python3");
    build
        .current_dir(install::source_root().join("python"))
        .args(["build_backend.py", "--programs"])
        .args([tree, &dist.join(&name)]);
    shell::run(&mut build)?;
    Ok(dist.join(name))
}
