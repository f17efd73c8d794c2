//! Turns the argument tables into tables of the crate: the arguments of every call, and the enumerators of their types.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("layouts.rs"), layouts()?)?;
    std::fs::write(out.join("enumerators.rs"), enumerators()?)?;
    Ok(())
}

/// The table of argument layouts: by kind, then by operation, both ordered by name.
fn layouts() -> Result<String, Box<dyn Error>> {
    let layouts = rpd_data::layouts()?;
    let mut source = "static LAYOUTS: &[(&str, &[(&str, ArgLayout)])] = &[\n".to_owned();
    // The table is searched by kind, then by operation, in two binary searches: the groups nest in the same way.
    for group in layouts.chunk_by(|a, b| a.kind == b.kind) {
        writeln!(source, "({:?}, &[", group[0].kind)?;
        for layout in group {
            let (operation, size) = (layout.operation, layout.size);
            writeln!(
                source,
                "({operation:?}, ArgLayout {{ size: {size}, arguments: &["
            )?;
            for argument in &layout.arguments {
                writeln!(
                    source,
                    "Argument {{ name: {:?}, declared: {:?}, resolved: {:?}, mangled: {:?}, offset: {}, size: {}, form: Form::{:?}, output: {} }},",
                    argument.name,
                    argument.declared,
                    argument.resolved,
                    argument.mangled,
                    argument.offset,
                    argument.size,
                    argument.form,
                    match argument.output {
                        Some(output) => format!(
                            "Some(Pointee {{ declared: {:?}, resolved: {:?}, mangled: {:?}, size: {}, form: Form::{:?} }})",
                            output.declared,
                            output.resolved,
                            output.mangled,
                            output.size,
                            output.form,
                        ),
                        None => "None".to_owned(),
                    },
                )?;
            }
            writeln!(source, "] }}),")?;
        }
        writeln!(source, "]),")?;
    }
    writeln!(source, "];")?;
    Ok(source)
}

/// The table of enumerators: by type, each with its values and their texts.
fn enumerators() -> Result<String, Box<dyn Error>> {
    let enumerators = rpd_data::enumerators()?;
    let mut source = "static ENUMERATORS: &[(&str, &[(i32, &str)])] = &[\n".to_owned();
    for group in enumerators.chunk_by(|a, b| a.declared == b.declared) {
        writeln!(source, "({:?}, &[", group[0].declared)?;
        for enumerator in group {
            writeln!(source, "({}, {:?}),", enumerator.value, enumerator.text)?;
        }
        writeln!(source, "]),")?;
    }
    writeln!(source, "];")?;
    Ok(source)
}
