//! Finds the implementations of API calls in the sources.

use std::{collections::HashMap, error::Error, fs, path::Path};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, Meta, ReturnType};

use rpd_data::Domain;

/// Rust path of each implemented call, by name of the call.
pub(crate) type Implemented = HashMap<String, String>;

struct Scan<'a> {
    /// Number of parameters, and whether something is returned, by name.
    known: HashMap<&'a str, (usize, bool)>,
    found: Implemented,
}

/// Looks through `src/<module>` of every module named.
pub(crate) fn find(
    root: &Path,
    modules: &[&str],
    domains: &[Domain],
) -> Result<Implemented, Box<dyn Error>> {
    let known = domains
        .iter()
        .flat_map(|d| &d.functions)
        .map(|f| (f.name.as_str(), (f.params.len(), f.ret.is_some())))
        .collect();
    let mut scan = Scan {
        known,
        found: HashMap::new(),
    };
    for module in modules {
        let directory = root.join("src").join(module);
        scan.file(
            &directory.join("mod.rs"),
            &directory,
            &format!("crate::{module}"),
        )?;
    }
    Ok(scan.found)
}

impl Scan<'_> {
    /// Reads one file; `children` is the directory of its sub-modules.
    fn file(&mut self, file: &Path, children: &Path, module: &str) -> Result<(), Box<dyn Error>> {
        let text = fs::read_to_string(file)?;
        // What does not parse is the compiler's to report, with a place and a reason.
        let Ok(parsed) = syn::parse_file(&text) else {
            return Ok(());
        };
        self.items(&parsed.items, children, module)
            .map_err(|e| format!("{}: {e}", file.display()).into())
    }

    fn items(
        &mut self,
        items: &[Item],
        directory: &Path,
        module: &str,
    ) -> Result<(), Box<dyn Error>> {
        for item in items {
            match item {
                Item::Fn(f) if !test_only(&f.attrs) => {
                    let name = f.sig.ident.to_string();
                    let Some(&(arity, returns)) = self.known.get(name.as_str()) else {
                        continue;
                    };
                    if f.sig.abi.is_none() {
                        continue;
                    }
                    if f.sig.inputs.len() != arity {
                        let n = f.sig.inputs.len();
                        return Err(format!("`{name}` takes {arity} parameters, not {n}").into());
                    }
                    if returns == matches!(f.sig.output, ReturnType::Default) {
                        return Err(
                            format!("`{name}`: one returns a value, the other does not").into()
                        );
                    }
                    self.add(&name, module)?;
                }
                Item::Mod(m) if !test_only(&m.attrs) => {
                    let name = m.ident.to_string();
                    let (inner, path) = (directory.join(&name), format!("{module}::{name}"));
                    if let Some((_, items)) = &m.content {
                        self.items(items, &inner, &path)?;
                        continue;
                    }
                    let file = [inner.with_extension("rs"), inner.join("mod.rs")];
                    if let Some(file) = file.iter().find(|f| f.exists()) {
                        self.file(file, &inner, &path)?;
                    }
                }
                // A macro call that names calls is taken to define them.
                Item::Macro(m) if !m.mac.path.is_ident("macro_rules") => {
                    let mut names = Vec::new();
                    idents(m.mac.tokens.clone(), &mut names);
                    names.sort();
                    names.dedup();
                    for name in &names {
                        if self.known.contains_key(name.as_str()) {
                            self.add(name, module)?;
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, name: &str, module: &str) -> Result<(), String> {
        match self
            .found
            .insert(name.to_owned(), format!("{module}::{name}"))
        {
            Some(other) => Err(format!("`{name}` is implemented here and as {other}")),
            None => Ok(()),
        }
    }
}

fn test_only(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|a| {
        matches!(&a.meta, Meta::List(l) if l.path.is_ident("cfg") && l.tokens.to_string() == "test")
    })
}

fn idents(tokens: TokenStream, out: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(i) => out.push(i.to_string()),
            TokenTree::Group(g) => idents(g.stream(), out),
            _ => {}
        }
    }
}
