//! Turns the device descriptions in `data/` into constants of the type `Device` of `src/device.rs`, and the list of
//! instructions into the names of those that the interpreter refuses.
//!
//! The compiler checks the descriptions: a figure that is missing, has another type or that no field is named after
//! is an error in the generated file, which names the field.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};
use toml::{Table, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let data = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", data.display());
    let names = instructions(&fs::read_to_string(data.join("gfx90a-instructions.csv"))?)?;
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("instructions.rs"),
        names,
    )?;
    let mut files: Vec<_> = fs::read_dir(&data)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files.sort();
    let mut out = String::from("&[\n");
    for file in files {
        let name = file.display();
        let table: Table = fs::read_to_string(&file)?
            .parse()
            .map_err(|error| format!("{name}: {error}"))?;
        writeln!(out, "// {name}")?;
        structure(&mut out, "Device", &table, &data).map_err(|error| format!("{name}: {error}"))?;
        out.push_str(",\n");
    }
    out.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("devices.rs"), out)?;
    Ok(())
}

/// The names of the instructions that are refused, with encoding and opcode, in order.
fn instructions(listing: &str) -> Result<String, Box<dyn Error>> {
    let mut refused = Vec::new();
    for row in listing.lines().skip(1) {
        let mut fields = row.split(',');
        let mut field = || fields.next().ok_or_else(|| format!("not a row: {row}"));
        let (encoding, opcode, name, state) = (field()?, field()?, field()?, field()?);
        if state == "refused" {
            let opcode = u16::from_str_radix(opcode.trim_start_matches("0x"), 16)?;
            refused.push((encoding, opcode, name));
        }
    }
    refused.sort_unstable();
    Ok(format!("&{refused:?}"))
}

/// A value of a structure, its fields from a table.
fn structure(
    out: &mut String,
    name: &str,
    table: &Table,
    data: &Path,
) -> Result<(), Box<dyn Error>> {
    writeln!(out, "{name} {{")?;
    for (key, value) in table {
        write!(out, "{key}: ")?;
        match value {
            // The one field that names a file stands for its text.
            Value::String(file) if key == "counters" => {
                write!(out, "include_str!({:?})", data.join(file))?;
            }
            value => expression(out, key, value, data)?,
        }
        out.push_str(",\n");
    }
    out.push('}');
    Ok(())
}

fn expression(
    out: &mut String,
    key: &str,
    value: &Value,
    data: &Path,
) -> Result<(), Box<dyn Error>> {
    match value {
        Value::String(text) => write!(out, "{text:?}")?,
        Value::Integer(number) => write!(out, "{number}")?,
        Value::Boolean(truth) => write!(out, "{truth}")?,
        Value::Table(table) => structure(out, type_of(key)?, table, data)?,
        Value::Array(values) => {
            // Tables are of any number, numbers of a fixed one.
            out.push_str(if values.first().is_some_and(Value::is_table) {
                "&["
            } else {
                "["
            });
            for value in values {
                expression(out, key, value, data)?;
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Float(_) | Value::Datetime(_) => {
            return Err(format!("{key}: a field has no such value").into());
        }
    }
    Ok(())
}

/// The type of the field that a table stands for.
fn type_of(key: &str) -> Result<&'static str, String> {
    Ok(match key {
        "code" => "Code",
        "layout" => "Layout",
        "memory" => "Memory",
        "clocks" => "Clocks",
        "identity" => "Identity",
        "queues" => "Queues",
        "limits" => "Limits",
        "caches" => "Caches",
        "vector" | "scalar" | "instruction" | "second" => "CacheShape",
        "cycles" => "Cycles",
        "blocks" => "Block",
        _ => return Err(format!("there is no table `{key}`")),
    })
}
