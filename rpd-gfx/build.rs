//! Turns the device descriptions in `data/` into constants of the type `Device` of `src/device.rs`, and the listings
//! of instructions into the tables of `src/disasm/table.rs`.
//!
//! The compiler checks the descriptions: a figure that is missing, has another type or that no field is named after
//! is an error in the generated file, which names the field.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};
use toml::{Table, Value};

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo runs build scripts in the directory of their package.
    let data = PathBuf::from("data");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=data");
    let mut paths: Vec<_> = fs::read_dir(&data)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    paths.sort();
    let named = |end: &str| -> Vec<PathBuf> {
        let with_end = |path: &&PathBuf| path.to_str().is_some_and(|path| path.ends_with(end));
        paths.iter().filter(with_end).cloned().collect()
    };
    fs::write(
        Path::new(&env::var("OUT_DIR")?).join("processors.rs"),
        instructions(&named("-instructions.csv"))?,
    )?;
    let files = named(".toml");
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

/// The tables of instructions: processors with their rows, in the order of encodings and opcodes.
fn instructions(listings: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut out = String::from("&[\n");
    for path in listings {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix("-instructions.csv"));
        let name = name.ok_or_else(|| format!("{}: not a listing", path.display()))?;
        let text = fs::read_to_string(path)?;
        let mut rows = Vec::new();
        for line in text.lines().skip(1) {
            let fields = fields(line);
            let row = instruction(&fields).map_err(|error| format!("{name}: {line}: {error}"))?;
            rows.push(row);
        }
        rows.sort_unstable();
        writeln!(out, "Processor {{ name: {name:?}, rows: &[")?;
        for (_, _, row) in rows {
            writeln!(out, "{row},")?;
        }
        out.push_str("] },\n");
    }
    out.push(']');
    Ok(out)
}

/// The fields of a line of a CSV file.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        let last = fields.len() - 1;
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            character => fields[last].push(character),
        }
    }
    fields
}

/// The encodings, in the order of `Encoding` in `src/disasm/table.rs`.
const ENCODINGS: [&str; 23] = [
    "SOP1", "SOP2", "SOPK", "SOPC", "SOPP", "SMEM", "VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "DS",
    "FLAT", "SCRATCH", "GLOBAL", "MUBUF", "MTBUF", "MIMG", "VOPDX", "VOPDY", "VINTERP", "LDSDIR",
    "EXP",
];

/// Encoding, opcode and the expression of an instruction.
fn instruction(fields: &[String]) -> Result<(usize, u16, String), Box<dyn Error>> {
    // The tables are text files, so that each field that is not understood has to be an error.
    let [encoding, opcode, _, state, sample, text, form] = fields else {
        return Err("not seven fields".into());
    };
    let at = ENCODINGS.iter().position(|known| known == encoding);
    let at = at.ok_or("the encoding is not known")?;
    let opcode = u16::from_str_radix(opcode.trim_start_matches("0x"), 16)?;
    let executed = match state.as_str() {
        "executed" => true,
        "refused" => false,
        _ => return Err("the state is neither executed nor refused".into()),
    };
    // The second part of a pair.
    let own = match text.split_once(" :: ") {
        Some((_, second)) if encoding == "VOPDY" => second,
        _ => text,
    };
    let mnemonic = own.split(' ').next().unwrap_or_default();
    // The dwords are for tests, which decode the sample and compare the text.
    let sample: Vec<_> = sample
        .split(' ')
        .map(|dword| format!("0x{dword}"))
        .collect();
    let (mut operands, mut modifiers) = (String::new(), String::from("Modifiers::NONE"));
    // The words of a form are, in this order: registers that are not encoded, fields with a number of registers and a
    // type, fields without, and names of modifiers.
    for word in form.split_whitespace() {
        let fixed = word
            .strip_prefix('\'')
            .and_then(|word| word.strip_suffix('\''));
        if let Some(fixed) = fixed {
            write!(operands, "op(Field::Fixed({fixed:?}), 1, Type::Word), ")?;
        } else if let Some((field, shape)) = word.split_once(':') {
            let width = shape.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let kind = match &shape[width.len()..] {
                "" => "Word",
                "q" => "Long",
                "d" => "Double",
                "h" => "Half",
                "p" => "Halves",
                "b" => "Bf16Pair",
                "i" => "Short",
                "r" => "Register",
                "s" => "Scalar",
                "a" => "Accumulation",
                "t" => "Part",
                letter => return Err(format!("unknown type {letter}").into()),
            };
            write!(
                operands,
                "op(Field::{}, {width}, Type::{kind}), ",
                camel(field)
            )?;
        } else if IMMEDIATES.contains(&word) {
            write!(operands, "op(Field::{}, 1, Type::Word), ", camel(word))?;
        } else {
            // An unknown word becomes a modifier that does not exist, which the compiler refuses.
            modifiers = format!("{modifiers}.and(Modifiers::{})", word.to_uppercase());
        }
    }
    let expression = format!(
        "row(Encoding::{}, {opcode:#x}, {mnemonic:?}, {executed}, (&[{}], {text:?}), &[{operands}], {modifiers})",
        camel(encoding),
        sample.join(", "),
    );
    Ok((at, opcode, expression))
}

/// Operands without a number of registers.
const IMMEDIATES: [&str; 16] = [
    "literal", "imm16", "hex16", "version", "label", "hwreg", "gpr_idx", "waitcnt", "depctr",
    "delay", "sendmsg", "rtnmsg", "soffset", "probe", "saddr", "attr",
];

/// The name of a variant for a word with underscores.
fn camel(word: &str) -> String {
    let mut out = String::new();
    for part in word.split('_') {
        let (first, rest) = part.split_at(part.len().min(1));
        out.push_str(&first.to_uppercase());
        out.push_str(&rest.to_lowercase());
    }
    out
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
                write!(out, "{:?}", fs::read_to_string(data.join(file))?)?;
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
        "links" => "Links",
        "host" | "peer" => "Link",
        "limits" => "Limits",
        "caches" => "Caches",
        "vector" | "scalar" | "instruction" | "second" => "CacheShape",
        "cycles" => "Cycles",
        "blocks" => "Block",
        _ => return Err(format!("there is no table `{key}`")),
    })
}
