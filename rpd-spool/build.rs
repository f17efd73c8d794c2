//! Turns the table of calls that a capture keeps into Rust source.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use rpd_data::Role;

fn role(role: &Role) -> String {
    match role {
        Role::Handle(kind) => format!("Role::Handle(HandleKind::{kind:?})"),
        Role::HandleOut(kind) => format!("Role::HandleOut(HandleKind::{kind:?})"),
        other => format!("Role::{other:?}"),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let calls = rpd_data::capture_calls()?;
    // One text for all names, and places in it: a table of references would have to be relocated at every start.
    let (mut names, mut arguments, mut rows) = (String::new(), String::new(), String::new());
    let (mut first, mut count) = (0, 0);
    let layouts = rpd_data::layouts()?;
    for call in &calls {
        for (argument, of) in &call.arguments {
            writeln!(
                arguments,
                "Argument {{ name: {}, name_len: {}, offset: {}, size: {}, role: {} }},",
                names.len(),
                argument.name.len(),
                argument.offset,
                argument.size,
                role(of),
            )?;
            names.push_str(argument.name);
            count += 1;
        }
        // The Rust enum has the group's word with a capital letter.
        let mut letters = call.group.chars();
        let group: String = letters
            .next()
            .map(|letter| letter.to_ascii_uppercase())
            .into_iter()
            .chain(letters)
            .collect();
        let size = layouts
            .iter()
            .find(|one| one.kind == "HIP_RUNTIME_API" && one.operation == call.operation)
            .map_or(0, |layout| layout.size);
        writeln!(
            rows,
            "Operation {{ name: {}, name_len: {}, group: Group::{group}, size: {size}, first: {first}, count: {} }},",
            names.len(),
            call.operation.len(),
            call.arguments.len(),
        )?;
        names.push_str(call.operation);
        first = count;
    }
    let mut source = format!(
        "static NAMES: &str = \"{names}\";\n\
         static ARGUMENTS: [Argument; {count}] = [\n{arguments}];\n\
         static OPERATIONS: [Operation; {}] = [\n{rows}];\n",
        calls.len(),
    );
    for (number, call) in calls.iter().enumerate() {
        writeln!(source, "pub const {}: u32 = {number};", call.operation)?;
    }
    // Two files, because the constants are in a module of their own.
    let (table, constants) = source.split_at(source.find("pub const").unwrap_or(source.len()));
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("capture_calls.rs"), table)?;
    std::fs::write(out.join("capture_numbers.rs"), constants)?;
    Ok(())
}
