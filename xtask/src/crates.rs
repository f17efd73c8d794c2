//! The crates and what they use, as `docs/internals.md` lists them.

use std::collections::BTreeSet;
use std::path::Path;

/// Crates of the workspace that the manifest `text` lists as normal dependencies, as the table names them.
fn used(text: &str) -> BTreeSet<String> {
    let section = text.split("[dependencies]\n").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    let names = section
        .lines()
        .filter_map(|line| line.split(['.', ' ']).next());
    names
        .filter_map(|name| match name {
            "rocprofiler-sdk-sys" => Some("sys".to_owned()),
            _ => name.strip_prefix("rpd-").map(str::to_owned),
        })
        .collect()
}

#[test]
fn the_manual_lists_what_each_crate_uses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the workspace");
    let manual = std::fs::read_to_string(root.join("docs/internals.md")).expect("the manual");
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
        assert_eq!(
            table,
            used(&manifest),
            "{name}: left in docs/internals.md, right in its manifest"
        );
    }
    let members =
        std::fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    let members = members
        .split("members = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next());
    let members = members
        .expect("the members")
        .lines()
        .filter(|line| line.contains('"'))
        .count();
    assert_eq!(
        listed + 1,
        members,
        "every crate but tests has a row with its uses"
    );
}
