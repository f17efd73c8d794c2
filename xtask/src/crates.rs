//! The crates and their dependencies, as `docs/internals/architecture.md` lists and draws them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    crates.parent().expect("the workspace").to_owned()
}

fn manual() -> String {
    std::fs::read_to_string(root().join("docs/internals/architecture.md")).expect("the manual")
}

/// Names of the crates of the workspace that the manifest `text` lists as normal dependencies.
fn dependencies(text: &str) -> BTreeSet<String> {
    let section = text.split("[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next());
    names
        .filter(|name| {
            ["rocprofiler-sdk-sys", "cupti-sys"].contains(name) || name.starts_with("rpd-")
        })
        .map(str::to_owned)
        .collect()
}

/// The crates of the workspace, by name, with the crates that each uses.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let members = text.split("members = [").nth(1);
    let members = members.and_then(|rest| rest.split(']').next());
    let directories = members.expect("the members").split('"').skip(1).step_by(2);
    directories
        .map(|directory| {
            let manifest = root().join(directory).join("Cargo.toml");
            let text = std::fs::read_to_string(manifest).expect("a manifest");
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("name = \""))
                .expect("a name");
            (name.trim_end_matches('"').to_owned(), dependencies(&text))
        })
        .collect()
}

/// The words in backticks of `text` that are paths into the sources of a crate.
fn source_paths(text: &str) -> impl Iterator<Item = &str> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|word| word.starts_with("src/"))
}

#[test]
fn every_crate_has_a_readme_whose_paths_exist() {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).expect("the manifest");
    let members = text.split("members = [").nth(1);
    let members = members.and_then(|rest| rest.split(']').next());
    for directory in members.expect("the members").split('"').skip(1).step_by(2) {
        let directory = root().join(directory);
        let path = directory.join("README.md");
        let readme = std::fs::read_to_string(&path);
        let readme = readme.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for inside in source_paths(&readme) {
            let exists = directory.join(inside).exists();
            assert!(exists, "{}: there is no {inside}", path.display());
        }
    }
}

#[test]
fn docs_draw_every_crate_in_the_row_above_what_it_uses() {
    fn row(name: &str, crates: &BTreeMap<String, BTreeSet<String>>) -> usize {
        let below = crates[name].iter().map(|used| row(used, crates) + 1);
        below.max().unwrap_or(0)
    }
    let crates = crates();
    let drawn: BTreeSet<(usize, String)> = manual()
        .lines()
        .filter_map(|line| line.strip_prefix("    ")?.split_once("   "))
        .filter_map(|(number, names)| Some((number.parse().ok()?, names.to_owned())))
        .flat_map(|(number, names)| {
            let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
            names.into_iter().map(move |name| (number, name))
        })
        .collect();
    let right: BTreeSet<(usize, String)> = crates
        .keys()
        .map(|name| (row(name, &crates), name.clone()))
        .collect();
    assert_eq!(
        drawn, right,
        "left in docs/internals/architecture.md, right by the manifests"
    );
}

#[test]
fn docs_list_the_crates_that_each_crate_uses() {
    let (root, manual) = (root(), manual());
    let mut listed = 0;
    for row in manual.lines() {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [name, _, uses] = cells[..] else { continue };
        let manifest = root.join(name.trim_matches('`')).join("Cargo.toml");
        let Ok(manifest) = std::fs::read_to_string(manifest) else {
            continue;
        };
        if name == "`tests`" {
            continue;
        }
        listed += 1;
        let table: BTreeSet<String> = uses
            .split(", ")
            .filter(|name| *name != "–")
            .map(str::to_owned)
            .collect();
        let used: BTreeSet<String> = dependencies(&manifest)
            .iter()
            .map(|name| match name.as_str() {
                "rocprofiler-sdk-sys" => "sys".to_owned(),
                _ => name.trim_start_matches("rpd-").to_owned(),
            })
            .collect();
        assert_eq!(
            table, used,
            "{name}: left in docs/internals/architecture.md, right in its manifest"
        );
    }
    assert_eq!(
        listed + 1,
        crates().len(),
        "every crate but tests has a row with its uses"
    );
}
