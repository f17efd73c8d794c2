//! Turns the argument tables into tables of the collector: for every call the size of its argument struct and the
//! places in it of texts and of pointers to outputs; and a description of every function of the runtimes' dispatch
//! tables, as calls of macros.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Text arguments of a call that the collector has room for.
const TEXTS: usize = 4;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    // Functions of the collector are in tables of the runtimes and in a type of the Python interpreter for good.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    let layouts = rpd_data::layouts()?;
    // One text for all names, and places in it: a table of references would have to be relocated at every start.
    let (mut names, mut rows, mut kinds) = (String::new(), String::new(), String::new());
    let (mut outputs, mut most_results) = (String::new(), 0);
    for group in layouts.chunk_by(|a, b| a.kind == b.kind) {
        let first = rows.lines().count();
        for layout in group {
            let texts: Vec<u32> = layout.texts().collect();
            // Four places in every row, so that a layout has a fixed size and needs no further allocation in the
            // target.
            let mut slots = [0; TEXTS];
            slots
                .get_mut(..texts.len())
                .ok_or_else(|| format!("{} has more than {TEXTS} texts", layout.operation))?
                .copy_from_slice(&texts);
            let first_output = outputs.lines().count();
            for (pointer, size) in layout.outputs() {
                writeln!(outputs, "Output {{ pointer: {pointer}, size: {size} }},")?;
            }
            let output_count = outputs.lines().count() - first_output;
            let results: u32 = layout.outputs().map(|(_, size)| size).sum();
            // The collector reserves this many bytes on the stack for results.
            most_results = most_results.max(results);
            writeln!(
                rows,
                "Layout {{ name: {}, name_len: {}, size: {}, texts: {slots:?}, count: {}, first_output: {first_output}, \
                 outputs: {output_count}, results: {results} }},",
                names.len(),
                layout.operation.len(),
                layout.size,
                texts.len(),
            )?;
            names.push_str(layout.operation);
        }
        // Layouts are found by kind first: names of operations of different runtimes may be equal.
        writeln!(
            kinds,
            "(\"{}\", {first}..{}),",
            group[0].kind,
            first + group.len()
        )?;
    }
    let source = format!(
        "const TEXTS: usize = {TEXTS};\n\
         const MOST_RESULTS: usize = {most_results};\n\
         static OUTPUTS: [Output; {}] = [\n{outputs}];\n\
         static NAMES: &str = \"{names}\";\n\
         static LAYOUTS: [Layout; {}] = [\n{rows}];\n\
         static KINDS: [(&str, Range<usize>); {}] = [\n{kinds}];\n",
        outputs.lines().count(),
        layouts.len(),
        kinds.lines().count(),
    );
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("layouts.rs"), source)?;
    std::fs::write(out.join("capture_wrappers.rs"), capture_wrappers()?)?;
    std::fs::write(out.join("operations.rs"), operations()?)?;
    let tables = rpd_data::functions()?;
    std::fs::write(out.join("functions.rs"), rpd_data::macro_calls(&tables))?;
    std::fs::write(out.join("streams.rs"), streams(&tables, &layouts)?)?;
    Ok(())
}

/// The operations of every kind: one text for each kind, a line for each operation from number 0.
fn operations() -> Result<String, Box<dyn Error>> {
    let operations = rpd_data::operations()?;
    let kinds: Vec<&[rpd_data::Operation]> = operations.chunk_by(|a, b| a.kind == b.kind).collect();
    let mut source = format!("static KINDS: [(&str, &str); {}] = [\n", kinds.len());
    for kind in kinds {
        let names: Vec<&str> = kind.iter().map(|operation| operation.name).collect();
        writeln!(source, "(\"{}\", \"{}\"),", kind[0].kind, names.join("\\n"))?;
    }
    source.push_str("];\n");
    Ok(source)
}

/// The effect of functions of the HIP runtime on a stream, and the place of the stream in their arguments, by slot.
fn streams(
    tables: &[rpd_data::Domain],
    layouts: &[rpd_data::Layout],
) -> Result<String, Box<dyn Error>> {
    let mut rows = String::new();
    let hip = tables
        .iter()
        .filter(|table| table.name == "HIP_RUNTIME_API");
    for (table, (slot, function)) in
        hip.flat_map(|table| std::iter::repeat(table).zip(table.functions.iter().enumerate()))
    {
        // Their null stream is the thread's own.
        let is_own = function.name.ends_with("_spt");
        let (role, position) = match function.stream() {
            Some(rpd_data::StreamRole::Create(position)) => ("Create", position),
            Some(rpd_data::StreamRole::Destroy(position)) => ("Destroy", position),
            Some(rpd_data::StreamRole::Set(position)) if is_own => ("SetOwn", position),
            Some(rpd_data::StreamRole::Set(position)) => ("Set", position),
            None if is_own => {
                writeln!(rows, "({slot}, Stream::Own),")?;
                continue;
            }
            None => continue,
        };
        let layout = layouts
            .iter()
            .find(|layout| (layout.kind, layout.operation) == (table.name, function.name.as_str()))
            .ok_or_else(|| format!("{} has no layout", function.name))?;
        let offset = layout.arguments[position].offset;
        writeln!(rows, "({slot}, Stream::{role}({offset})),")?;
    }
    let count = rows.lines().count();
    Ok(format!(
        "static STREAMS: [(u16, Stream); {count}] = [\n{rows}];\n"
    ))
}

/// `captured!` for every call of the HIP runtime that a capture records, then the table of these wrappers.
fn capture_wrappers() -> Result<String, Box<dyn Error>> {
    let domains = rpd_data::functions()?;
    let functions = domains
        .iter()
        .find(|domain| domain.name == "HIP_RUNTIME_API")
        .map_or(&[][..], |domain| &domain.functions);
    let layouts = rpd_data::layouts()?;
    let calls = rpd_data::capture_calls()?;
    let (mut source, mut table) = (String::new(), String::new());
    for (number, (function, call)) in functions.iter().zip(&calls).enumerate() {
        // Queries, and functions that return something other than a status.
        if call.group == "query" || function.ret != Some(rpd_data::abi::Abi::U32) {
            writeln!(table, "None,")?;
            continue;
        }
        let size = layouts
            .iter()
            .find(|one| one.kind == "HIP_RUNTIME_API" && one.operation == function.name)
            .map_or(0, |layout| layout.size);
        write!(source, "captured!({number}, {}, {size}, [", function.name)?;
        for ((argument, _), param) in call.arguments.iter().zip(&function.params) {
            let name = match param.name.as_str() {
                name @ ("fn" | "type") => format!("r#{name}"),
                name => name.to_owned(),
            };
            write!(source, "{} {name}: {}, ", argument.offset, param.abi.rust())?;
        }
        writeln!(source, "]);")?;
        writeln!(table, "Some({} as *const ()),", function.name)?;
    }
    writeln!(
        source,
        "pub(super) const COUNT: usize = {};\n\
         pub(super) struct Code(pub(super) [Option<*const ()>; COUNT]);\n\
         pub(super) static WRAPPERS: Code = Code([\n{table}]);",
        functions.len(),
    )?;
    Ok(source)
}
