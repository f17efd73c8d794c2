//! Writes the generated sources; they are lists of macro calls, the macros are in `src/api`.

use std::fmt::{Error, Write};

use rpd_data::{Domain, StreamRole};

use crate::{mangle, scan::Implemented};

type Text = Result<String, Error>;

/// `api_impls!` for every domain: its implementations by slot; and checks of their parameter sizes.
pub(crate) fn implementations(domains: &[Domain], implemented: &Implemented) -> Text {
    let mut out = String::new();
    for d in domains {
        writeln!(out, "api_impls!({}, {}, [", d.name, d.functions.len())?;
        for f in &d.functions {
            match implemented.get(&f.name) {
                Some(path) => writeln!(out, "    {path},")?,
                None => writeln!(out, "    super::missing::{},", f.name)?,
            }
        }
        writeln!(out, "]);")?;
        for f in &d.functions {
            let Some(path) = implemented.get(&f.name) else {
                continue;
            };
            let sizes: Vec<usize> = f.params.iter().map(|p| p.abi.layout().0).collect();
            let ret = f.ret.map_or(0, |r| r.layout().0);
            let n = sizes.len();
            writeln!(
                out,
                "api_check!({path}, \"{}\", arity{n}, {sizes:?}, {ret});",
                f.name
            )?;
        }
    }
    Ok(out)
}

/// The number of slots of each table, as a constant of the table's name.
pub(crate) fn counts(domains: &[Domain]) -> Text {
    let mut out = String::new();
    for d in domains {
        writeln!(
            out,
            "pub(crate) const {}: usize = {};",
            d.name,
            d.functions.len()
        )?;
    }
    Ok(out)
}

/// `api_missing!` for every call without an implementation.
pub(crate) fn missing(domains: &[Domain], implemented: &Implemented) -> Text {
    let mut out = String::new();
    for d in domains {
        for f in d
            .functions
            .iter()
            .filter(|f| !implemented.contains_key(&f.name))
        {
            writeln!(
                out,
                "api_missing!({}, {}, {});",
                d.name,
                f.name,
                f.signature()
            )?;
        }
    }
    Ok(out)
}

/// `api_stream!` for every HIP runtime call that concerns exactly one stream, then `api_streams!`.
pub(crate) fn streams(domains: &[Domain]) -> Text {
    let mut out = String::new();
    let mut names = Vec::new();
    let hip = domains.iter().filter(|d| d.name == "HIP_RUNTIME_API");
    for (n, f) in hip.flat_map(|d| d.functions.iter().enumerate()) {
        let (role, param) = match f.stream() {
            Some(StreamRole::Create(param)) => ("create", param),
            Some(StreamRole::Destroy(param)) => ("destroy", param),
            Some(StreamRole::Set(param)) => ("set", param),
            None => continue,
        };
        let param = f.params[param].ident();
        writeln!(
            out,
            "api_stream!({role}, {param}, {n}, {}, {});",
            f.name,
            f.signature()
        )?;
        names.push(format!("{n} {}", f.name));
    }
    writeln!(out, "api_streams!([{}]);", names.join(", "))?;
    Ok(out)
}

/// A table by domain and operation of what the argument iterators report.
pub(crate) fn arguments(domains: &[Domain]) -> Text {
    let mut out = String::new();
    for d in domains {
        writeln!(
            out,
            "pub(crate) static {}: [&[Arg]; {}] = [",
            d.name,
            d.functions.len()
        )?;
        for f in &d.functions {
            writeln!(out, "    // {}\n    &[", f.name)?;
            let mut offset = 0;
            for p in &f.params {
                let (size, align) = p.abi.layout();
                offset = usize::next_multiple_of(offset, align);
                let (symbol, kind) = mangle::describe(&p.c_type, p.abi);
                writeln!(
                    out,
                    "        Arg {{ name: c\"{}\", mangled: c\"{symbol}\", offset: {offset}, pointers: {}, kind: {kind} }},",
                    p.name,
                    mangle::pointers(&p.c_type),
                )?;
                offset += size;
            }
            writeln!(out, "    ],")?;
        }
        writeln!(out, "];")?;
    }
    Ok(out)
}

/// Names of operations of all domains, by id from the first row's.
pub(crate) fn operations(operations: &[rpd_data::Operation]) -> Text {
    let mut out = String::new();
    let domains: Vec<(&str, u32, Vec<&str>)> = operations
        .chunk_by(|a, b| a.kind == b.kind)
        .map(|group| {
            let names = group.iter().map(|operation| operation.name).collect();
            (group[0].kind, group[0].number, names)
        })
        .collect();
    for (domain, first, names) in &domains {
        writeln!(out, "/// Operations of {domain}, from id {first}.")?;
        writeln!(
            out,
            "pub(crate) static {domain}: [&CStr; {}] = [",
            names.len()
        )?;
        for name in names {
            writeln!(out, "    c\"{name}\",")?;
        }
        writeln!(out, "];")?;
    }
    writeln!(
        out,
        "/// Every domain: name, first id, names of operations."
    )?;
    writeln!(
        out,
        "pub(crate) static ALL: [(&str, i32, &[&CStr]); {}] = [",
        domains.len()
    )?;
    for (domain, first, _) in &domains {
        writeln!(out, "    (\"{domain}\", {first}, &{domain}),")?;
    }
    writeln!(out, "];")?;
    Ok(out)
}

/// Enumerators as the argument iterators show them.
pub(crate) fn enums(enumerators: &[rpd_data::Enumerator]) -> Text {
    let mut out = String::new();
    writeln!(out, "static NAMES: &[(&CStr, i32, &str)] = &[")?;
    for found in enumerators {
        writeln!(
            out,
            "    (c\"{}\", {}, \"{}\"),",
            found.declared, found.value, found.text
        )?;
    }
    writeln!(out, "];")?;
    Ok(out)
}

/// Symbol versions of the HIP, HSA and ROCTx libraries, as empty nodes of a version script.
pub(crate) fn versions() -> String {
    let minors = [(4, 2..=5), (5, 0..=9), (6, 0..=9), (7, 0..=9)];
    let hip = minors
        .into_iter()
        .flat_map(|(major, minors)| minors.map(move |minor| format!("hip_{major}.{minor}")));
    let names = hip.chain(["ROCR_1".to_owned(), "ROCTX_4.1".to_owned()]);
    names.map(|name| format!("{name} {{ }};\n")).collect()
}
