//! Functions of the ELF objects by which programs describe code that they made at run time.

use rpd_core::session::stacks::JitObject;

/// [`StackFrame::evidence`] of such names.
///
/// [`StackFrame::evidence`]: rpd_core::session::stacks::StackFrame::evidence
pub(crate) const EVIDENCE: &str = "jit interface";

/// Bytes of a section header and of a symbol.
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// `e_type` of an object that was not linked: its symbols count from the start of their sections.
const ET_REL: u16 = 1;
const STT_NOTYPE: u8 = 0;
const STT_FUNC: u8 = 2;
/// Section indices from here on are no sections.
const SHN_LORESERVE: u16 = 0xff00;

/// The name of the function that has the code at `address`: the one with the last start before it, if it is not known to
/// end before it.
pub(crate) fn name_at(object: &JitObject, address: u64) -> Option<String> {
    let symbols = object.symbols.chunks_exact(SYMBOL);
    let functions = symbols.filter_map(|symbol| {
        let (start, size) = function(object, symbol)?;
        let distance = address.checked_sub(start)?;
        (size == 0 || distance < size).then_some((start, size != 0, symbol))
    });
    let (_, _, symbol) = functions.max_by_key(|(start, has_size, _)| (*start, *has_size))?;
    let name = object.names.get(number(symbol, 0, 4) as usize..)?;
    let end = name.iter().position(|byte| *byte == 0)?;
    (end > 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Address and size of the function that a symbol stands for; `None` if it is something else.
fn function(object: &JitObject, symbol: &[u8]) -> Option<(u64, u64)> {
    let (kind, section) = (symbol[4] & 15, number(symbol, 6, 2) as u16);
    let (value, size) = (number(symbol, 8, 8), number(symbol, 16, 8));
    // Symbols without a kind are labels, in code as in data; one with a size is a function.
    let is_function = kind == STT_FUNC || kind == STT_NOTYPE && size > 0;
    if !is_function || section == 0 {
        return None;
    }
    if object.kind != ET_REL || section >= SHN_LORESERVE {
        return Some((value, size));
    }
    let header = object.sections.chunks_exact(SECTION).nth(section.into())?;
    let (start, len) = (number(header, 16, 8), number(header, 32, 8));
    // Some compilers write addresses where offsets are expected.
    if value >= start && value - start < len {
        Some((value, size))
    } else {
        Some((start.checked_add(value)?, size))
    }
}

/// The little-endian number of `len` bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = bytes[at..at + len].iter().rev();
    bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: u32, kind: u8, section: u16, value: u64, size: u64) -> Vec<u8> {
        let mut bytes = name.to_le_bytes().to_vec();
        bytes.extend([kind, 0]);
        bytes.extend(section.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes
    }

    fn object(kind: u16, symbols: &[Vec<u8>]) -> JitObject {
        let mut code = vec![0; SECTION];
        code[16..24].copy_from_slice(&0x7000_u64.to_le_bytes());
        code[32..40].copy_from_slice(&0x100_u64.to_le_bytes());
        JitObject {
            id: 1,
            kind,
            sections: [vec![0; SECTION], code].concat(),
            symbols: symbols.concat(),
            names: b"\0one\0two\0data\0label\0".to_vec(),
        }
    }

    fn names(object: &JitObject, addresses: &[u64]) -> Vec<String> {
        let name = |address: &u64| name_at(object, *address).unwrap_or_default();
        addresses.iter().map(name).collect()
    }

    #[test]
    fn jit_symbols_count_from_their_section_or_are_addresses() {
        let symbols = [
            symbol(0, 0, 0, 0, 0),
            symbol(1, 2, 1, 0x10, 0x10),
            symbol(5, 2, 1, 0x20, 0),
            symbol(9, 1, 1, 0x24, 8),
            symbol(14, 0, 1, 0x28, 0),
        ];
        let addresses = [0x700f, 0x7010, 0x701f, 0x7020, 0x7030];
        let expected = ["", "one", "one", "two", "two"];
        assert_eq!(names(&object(ET_REL, &symbols), &addresses), expected);
        let shifted = [0xf, 0x10, 0x1f, 0x20, 0x30];
        assert_eq!(names(&object(3, &symbols), &shifted), expected);
        let absolute = [symbol(1, 2, 1, 0x7010, 0x10)];
        assert_eq!(names(&object(ET_REL, &absolute), &[0x7018]), ["one"]);
        let absolute = [symbol(1, 2, 0xfff1, 0x7010, 0x10)];
        assert_eq!(names(&object(ET_REL, &absolute), &[0x7018]), ["one"]);
    }

    #[test]
    fn jit_objects_that_are_broken_have_no_names() {
        let nowhere = [symbol(1, 2, 9, 0, 16), symbol(400, 2, 1, 0, 16), vec![2; 7]];
        assert_eq!(names(&object(ET_REL, &nowhere), &[0x7000, 0]), ["", ""]);
        let mut cut = object(ET_REL, &[symbol(14, 2, 1, 0, 16)]);
        cut.names.truncate(17);
        assert_eq!(names(&cut, &[0x7000]), [""]);
        cut.sections.truncate(70);
        assert_eq!(names(&cut, &[0x7000]), [""]);
    }
}
