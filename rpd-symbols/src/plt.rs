//! Names of the stubs in the procedure linkage table (PLT), which have no symbols of their own.

use std::collections::HashMap;

use object::read::ReadRef;
use object::{
    Architecture, File, Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _,
    RelocationTarget,
};

/// Names of sections of stubs.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];
/// Bytes of a stub.
const LONG: u64 = 16;
/// Bytes of a stub in `.plt.got` that is nothing but a jump.
const SHORT: u64 = 8;
/// Opcode of `jmp *offset(%rip)`, an indirect jump through a word.
const JUMP: [u8; 2] = [0xff, 0x25];
/// Bytes of such a jump.
const JUMP_LENGTH: usize = 6;

/// A stub of an x86-64 file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stub {
    /// Address of the stub's first byte.
    pub(crate) start: u64,
    /// The address after its last.
    pub(crate) end: u64,
    /// The function that it jumps to, as the symbol table names it.
    pub(crate) function: String,
}

/// The stubs of a file, ascending. Each jumps through a word that the loader fills in, and the relocation of that word has
/// the name.
pub(crate) fn stubs<'data, R: ReadRef<'data>>(file: &File<'data, R>) -> Vec<Stub> {
    if file.architecture() != Architecture::X86_64 {
        return Vec::new();
    }
    let functions = functions_by_word(file);
    let mut found = Vec::new();
    for name in SECTIONS {
        let Some(section) = file.section_by_name(name) else {
            continue;
        };
        // A file with debug information alone has the section's header and no bytes.
        let Ok(code) = section.data() else { continue };
        let size = if name == ".plt.got" && code.starts_with(&JUMP) {
            SHORT
        } else {
            LONG
        };
        let starts = (section.address()..).step_by(size as usize);
        for (start, stub) in starts.zip(code.chunks(size as usize)) {
            let word = word_of(stub, start);
            if let Some(function) = word.and_then(|word| functions.get(&word)) {
                found.push(Stub {
                    start,
                    end: start + stub.len() as u64,
                    function: function.clone(),
                });
            }
        }
    }
    found.sort_by_key(|stub| stub.start);
    found
}

/// The address of the word that a stub at `start` jumps through.
fn word_of(stub: &[u8], start: u64) -> Option<u64> {
    stub.windows(JUMP_LENGTH)
        .zip(start..)
        .find_map(|(bytes, at)| {
            let distance = bytes.strip_prefix(&JUMP)?.try_into().ok()?;
            let next = at.checked_add(JUMP_LENGTH as u64)?;
            Some(next.wrapping_add_signed(i32::from_le_bytes(distance).into()))
        })
}

/// Names of the functions whose addresses the loader writes, by the address where it does.
fn functions_by_word<'data, R: ReadRef<'data>>(file: &File<'data, R>) -> HashMap<u64, String> {
    let (Some(relocations), Some(symbols)) =
        (file.dynamic_relocations(), file.dynamic_symbol_table())
    else {
        return HashMap::new();
    };
    relocations
        .filter_map(|(word, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            let symbol = symbols.symbol_by_index(index).ok()?;
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some((word, name.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plt_stub_names_the_word_behind_its_jump() {
        let plain = [0xff, 0x25, 0x10, 0, 0, 0, 0x66, 0x90];
        assert_eq!(word_of(&plain, 0x1000), Some(0x1016));
        let protected = [
            0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf0, 0xff, 0xff, 0xff,
        ];
        assert_eq!(word_of(&protected, 0x1000), Some(0xffb));
        assert_eq!(word_of(&[0x90; 16], 0x1000), None);
    }
}
