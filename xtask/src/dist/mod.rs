//! `cargo xtask dist`: a release build in one archive, and as packages. The release build of everything takes many
//! minutes on a small machine; everyday work never needs it.
//!
//! The archive unpacks anywhere: `rpd` finds its libraries in `../lib/rpd`, and the simulator's
//! sonames are relative links.

mod glibc;
mod packages;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use rpd_tests::install;

use crate::{links, shell};

pub(crate) fn run() -> Result<()> {
    eprintln!("A release build takes many minutes where nothing is built yet.");
    let built = glibc::build()?;
    let root = install::source_root();
    let name = format!(
        "rpd-{}-{}-linux",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    );
    let dist = install::target_dir().join("dist");
    let tree = dist.join(&name);
    // A file that is no longer shipped must not come from an earlier run.
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    let libraries = tree.join("lib/rpd");
    let documents = tree.join("share/doc/rpd");
    for directory in [
        &tree.join("bin"),
        &libraries.join("rpd-sim-lib"),
        &documents,
    ] {
        fs::create_dir_all(directory)?;
    }

    copy(&built.join("rpd"), &tree.join("bin/rpd"))?;
    for library in ["librpd_collect.so", "librpd_register.so", "librpd_sim.so"] {
        copy(&built.join(library), &libraries.join(library))?;
    }
    // Tools load a decoder of thread traces by this name.
    copy(
        &built.join("librpd_att.so"),
        &libraries.join(links::DECODER),
    )?;
    // Programs ask for the runtimes by their own names, all of which the simulator stands for.
    for soname in install::sonames().context("rpd-sim/sonames.txt")? {
        symlink(
            "../librpd_sim.so",
            libraries.join("rpd-sim-lib").join(soname),
        )?;
    }
    // A file of its own: attachers find it by its name in the memory of a process, where links do not show.
    copy(
        &built.join(install::REGISTRATION),
        &libraries
            .join("rpd-sim-lib")
            .join(install::REGISTRATION_SONAME),
    )?;
    links::compat(&tree.join("share/rpd/compat/bin"), "../../../../bin/rpd")?;
    for document in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root.join(document), &documents.join(document))?;
    }
    let mut binaries = vec![tree.join("bin/rpd")];
    for entry in fs::read_dir(&libraries)? {
        let path = entry?.path();
        if path.is_file() {
            binaries.push(path);
        }
    }
    let needed = glibc::needed(&binaries)?;
    completions(&tree)?;
    copy_tree(&root.join("docs"), &documents.join("docs"))?;
    copy_tree(&root.join("python"), &tree.join("share/rpd/python"))?;
    fs::write(documents.join("THIRD-PARTY.txt"), third_party()?)?;

    let archive = dist.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    // The archive tells neither who made it nor in which order a directory lists its files.
    tar.arg("-C")
        .arg(&dist)
        .args(["--owner=0", "--group=0", "--sort=name", "-czf"])
        .arg(&archive)
        .arg(&name);
    shell::run(&mut tar)?;
    let packages = packages::make(&tree, &dist, needed)?;
    for file in std::iter::once(archive).chain(packages) {
        println!("{}: {} bytes", file.display(), fs::metadata(&file)?.len());
    }
    Ok(())
}

/// Has the built rpd write its manual pages and the completions of shells, each where the system looks for it.
fn completions(tree: &Path) -> Result<()> {
    let rpd = tree.join("bin/rpd");
    for (shell, path) in [
        ("bash", "share/bash-completion/completions/rpd"),
        ("zsh", "share/zsh/site-functions/_rpd"),
        ("fish", "share/fish/vendor_completions.d/rpd.fish"),
    ] {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().context("a file has a directory")?)?;
        let text = shell::output(Command::new(&rpd).args(["completions", shell]))?;
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    let mut pages = Command::new(&rpd);
    pages
        .args(["completions", "--man-pages"])
        .arg(tree.join("share/man/man1"));
    shell::run(&mut pages)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        // Compiled Python files are not shipped.
        if entry.file_name() == "__pycache__" {
            continue;
        }
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else {
            copy(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// The crates that are linked into what is shipped, with their licences.
fn third_party() -> Result<String> {
    let mut tree = shell::cargo();
    tree.args([
        "tree",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--no-dedupe",
        "--format",
        "{p}: {l}",
    ]);
    for package in install::PACKAGES {
        tree.args(["--package", package]);
    }
    let listed = shell::output(&mut tree)?;
    // Our own packages show their path.
    let mut lines: Vec<_> = listed
        .lines()
        .filter(|line| !line.is_empty() && !line.contains(" (/"))
        .collect();
    lines.sort_unstable();
    lines.dedup();
    Ok(format!(
        "Crates linked into rpd and its libraries, and the terms they are offered under:\n\n{}\n",
        lines.join("\n")
    ))
}
