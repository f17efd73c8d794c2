//! Addresses of native modules to functions, files and lines.

use std::collections::HashMap;
use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer as Blazesym};
use rpd_spool::demangle::demangle_any;

use crate::look_up::Symbols;
use crate::object_file::{SymbolTable, are_signal_returns};
use crate::search::{Files, Finder, Search};
use crate::split::SplitFiles;
use crate::{Evidence, Frame, Module, NoFile};

/// Longest name of a function, in bytes. Names of templates reach megabytes, and every frame of a stack
/// repeats them.
pub const LONGEST_FUNCTION: usize = 4096;

/// Name of the frame that a signal handler returns to, as debuggers have it.
const SIGNAL_FRAME: &str = "<signal handler called>";

/// Suffix of a truncated name.
const CUT: &str = "...";

/// Looks symbols up. Files are searched for once per module, and kept open.
pub struct Symbolizer {
    blazesym: Blazesym,
    finder: Finder,
    files: HashMap<Module, Files>,
    split: SplitFiles,
    /// Functions as they are shown, by their names in symbol tables.
    shown: HashMap<String, String>,
}

impl std::fmt::Debug for Symbolizer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Symbolizer")
            .field("finder", &self.finder)
            .finish_non_exhaustive()
    }
}

impl Symbolizer {
    /// A symbolizer that looks for files with `search`.
    pub fn new(search: Search) -> Symbolizer {
        Symbolizer {
            blazesym: Blazesym::builder()
                .enable_code_info(true)
                .enable_inlined_fns(true)
                // Names are demangled here, with a limit of their length.
                .enable_demangling(false)
                .enable_auto_reload(false)
                // For the files that several others share parts of (dwz).
                .set_debug_dirs(Some(&search.debug_dirs))
                .build(),
            finder: Finder::new(search),
            files: HashMap::new(),
            split: SplitFiles::default(),
            shown: HashMap::new(),
        }
    }

    /// The frames at addresses of a module, each innermost first; at least one for each address. Addresses are those
    /// of the ELF file: address in memory minus load bias. A return address points behind the call: pass the address
    /// minus 1.
    pub fn frames(&mut self, module: &Module, addresses: &[u64]) -> Vec<Vec<Frame>> {
        if !self.files.contains_key(module) {
            let files = self.finder.files(module);
            self.files.insert(module.clone(), files);
        }
        let files = &self.files[module];
        let mut found: Vec<Option<Vec<Frame>>> = match &files.module {
            // First, since a symbol without a size would seem to reach over the stubs that follow its function.
            Ok((_, object)) => (addresses.iter())
                .map(|&address| Some(vec![self.shown.stub(object.stub_at(address)?)]))
                .collect(),
            Err(_) => vec![None; addresses.len()],
        };
        // The file with the most information comes first; addresses that it does not cover are looked up in the next.
        let in_order = files.debug.iter().chain(&files.module);
        for (path, object) in in_order {
            // What blazesym makes of a skeleton is wrong: it gives the names alone.
            let with_dwarf = object.has_dwarf && !object.is_split;
            let before: Vec<bool> = found.iter().map(Option::is_some).collect();
            let table = |address| object.table_of(address);
            self.shown.look_up(
                &self.blazesym,
                path,
                with_dwarf,
                addresses,
                &mut found,
                table,
            );
            if object.is_split {
                let places = (0..addresses.len()).filter(|index| !before[*index]);
                for index in places {
                    let frames =
                        (self.split).frames(path, addresses[index], |name| self.shown.shown(name));
                    found[index] = with_symbol(frames, found[index].take());
                }
            }
        }
        if let Ok((path, _)) = &files.module {
            name_signal_returns(path, addresses, &mut found);
        }
        let none = match &files.module {
            Ok(_) => Evidence::None,
            // With the file of debug information the module's own file is not needed.
            Err(_) if files.debug.is_some() => Evidence::None,
            Err(problem) => Evidence::NoFile(*problem),
        };
        found
            .into_iter()
            .map(|frames| frames.unwrap_or_else(|| vec![Frame::unknown(none)]))
            .collect()
    }

    /// Reason why a module has no file that can be trusted; `None` when it has one, or its debug information was found.
    pub fn problem(&self, module: &Module) -> Option<NoFile> {
        let files = self.files.get(module)?;
        match files.debug {
            Some(_) => None,
            None => files.module.as_ref().err().copied(),
        }
    }

    /// Notes about files that could not be used, one line each.
    pub fn notes(&self) -> &[String] {
        &self.finder.notes
    }
}

impl Symbols for Symbolizer {
    fn frames(&mut self, module: &Module, addresses: &[u64]) -> Vec<Option<Vec<Frame>>> {
        let found = Symbolizer::frames(self, module, addresses);
        found.into_iter().map(Some).collect()
    }

    fn problem(&self, module: &Module) -> Option<NoFile> {
        Symbolizer::problem(self, module)
    }
}

/// Names the frames, among those without a name, that return from a signal handler: no table of symbols covers them.
fn name_signal_returns(path: &Path, addresses: &[u64], found: &mut [Option<Vec<Frame>>]) {
    let missing: Vec<usize> = (0..addresses.len())
        .filter(|&index| found[index].is_none())
        .collect();
    if missing.is_empty() {
        return;
    }
    let wanted: Vec<u64> = missing.iter().map(|&index| addresses[index]).collect();
    for (index, is_return) in missing.into_iter().zip(are_signal_returns(path, &wanted)) {
        if is_return {
            found[index] = Some(vec![Frame {
                function: Some(SIGNAL_FRAME.to_owned()),
                ..Frame::unknown(Evidence::Code)
            }]);
        }
    }
}

/// The frames from split debug information, whose outermost has the name of the symbol table where it has none. Without
/// such frames, those of the symbol table.
fn with_symbol(mut frames: Vec<Frame>, symbol: Option<Vec<Frame>>) -> Option<Vec<Frame>> {
    let Some(outermost) = frames.last_mut() else {
        return symbol;
    };
    if outermost.function.is_none()
        && let Some(symbol) = symbol.and_then(|mut frames| frames.pop())
    {
        outermost.function = symbol.function;
        outermost.evidence = symbol.evidence;
    }
    Some(frames)
}

trait Names {
    /// Fills the places in `found` that are still empty from one file.
    fn look_up(
        &mut self,
        blazesym: &Blazesym,
        path: &Path,
        with_dwarf: bool,
        addresses: &[u64],
        found: &mut [Option<Vec<Frame>>],
        table: impl Fn(u64) -> Option<SymbolTable>,
    );
    fn shown(&mut self, name: &str) -> String;
    /// The frame of a stub that jumps to a function of another file.
    fn stub(&mut self, function: &str) -> Frame;
}

impl Names for HashMap<String, String> {
    fn look_up(
        &mut self,
        blazesym: &Blazesym,
        path: &Path,
        with_dwarf: bool,
        addresses: &[u64],
        found: &mut [Option<Vec<Frame>>],
        table: impl Fn(u64) -> Option<SymbolTable>,
    ) {
        let missing: Vec<usize> = (0..addresses.len())
            .filter(|&index| found[index].is_none())
            .collect();
        if missing.is_empty() {
            return;
        }
        let wanted: Vec<u64> = missing.iter().map(|&index| addresses[index]).collect();
        let symbolize = |debug_syms| {
            let mut elf = Elf::new(path);
            elf.debug_syms = debug_syms;
            blazesym.symbolize(&Source::Elf(elf), Input::VirtOffset(&wanted))
        };
        // Damaged debug information leaves the symbol tables.
        let answers = match symbolize(with_dwarf) {
            Err(_) if with_dwarf => symbolize(false),
            other => other,
        };
        let Ok(answers) = answers else { return };
        for (&index, answer) in missing.iter().zip(answers) {
            if let Symbolized::Sym(symbol) = answer {
                let table = table(addresses[index]);
                found[index] = frames_of(&symbol, table, |name| self.shown(name));
            }
        }
    }

    fn shown(&mut self, name: &str) -> String {
        if let Some(shown) = self.get(name) {
            return shown.clone();
        }
        let shown = shorten(&readable(name));
        self.insert(name.to_owned(), shown.clone());
        shown
    }

    fn stub(&mut self, function: &str) -> Frame {
        frame(function, None, Evidence::Dynsym, &mut |name| {
            shorten(&format!("{}@plt", self.shown(name)))
        })
    }
}

/// The frames of one answer; `None` when it holds nothing that can be trusted.
fn frames_of(
    symbol: &Sym<'_>,
    table: Option<SymbolTable>,
    mut shown: impl FnMut(&str) -> String,
) -> Option<Vec<Frame>> {
    let evidence = match (&symbol.code_info, table) {
        (Some(_), _) => Evidence::Dwarf,
        (None, Some(SymbolTable::Symtab)) => Evidence::Symtab,
        (None, Some(SymbolTable::Dynsym)) => Evidence::Dynsym,
        // The nearest symbol before an address that no symbol has is not its function.
        (None, None) => return None,
    };
    let mut frames: Vec<Frame> = Vec::with_capacity(symbol.inlined.len() + 1);
    frames.push(frame(
        &symbol.name,
        symbol.code_info.as_deref(),
        evidence,
        &mut shown,
    ));
    for inlined in &symbol.inlined {
        frames.push(frame(
            &inlined.name,
            inlined.code_info.as_ref(),
            evidence,
            &mut shown,
        ));
    }
    // Outermost first so far.
    frames.reverse();
    Some(frames)
}

fn frame(
    name: &str,
    code: Option<&CodeInfo<'_>>,
    evidence: Evidence,
    shown: &mut impl FnMut(&str) -> String,
) -> Frame {
    Frame {
        function: (!name.is_empty()).then(|| shown(name)),
        file: code.map(|code| shorten(&code.to_path().to_string_lossy())),
        line: code.and_then(|code| code.line).filter(|&line| line > 0),
        column: code
            .and_then(|code| code.column)
            .map(u32::from)
            .filter(|&column| column > 0),
        evidence,
    }
}

/// A name as people write it: C++ and Rust.
pub(crate) fn readable(name: &str) -> String {
    if name.starts_with("_R") || name.starts_with("_ZN") {
        // Legacy names of Rust look like those of C++, with a hash at the end.
        if let Ok(rust) = rustc_demangle::try_demangle(name) {
            return format!("{rust:#}");
        }
    }
    demangle_any(name).into_owned()
}

/// Cuts a text off that is longer than names may be, and marks it.
pub(crate) fn shorten(text: &str) -> String {
    if text.len() <= LONGEST_FUNCTION {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST_FUNCTION - CUT.len());
    format!("{}{CUT}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_demangles_names_of_cpp_and_rust() {
        assert_eq!(readable("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("_RNvC7mycrate3foo"), "mycrate::foo");
        assert_eq!(readable("main"), "main");
    }

    /// Checks stacks-48.
    #[test]
    fn long_names_end_with_dots() {
        let long = "ä".repeat(LONGEST_FUNCTION);
        let cut = shorten(&long);
        assert!(cut.len() <= LONGEST_FUNCTION && cut.ends_with("ä..."));
        assert_eq!(shorten("short"), "short");
    }
}
