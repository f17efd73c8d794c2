//! Exported symbols of a loaded object, looked up in its own tables.
//!
//! `dlsym` takes the loader's lock, which a thread holds while it runs the constructors of what it loads; a capture must
//! not wait for that. It also does not find what was loaded for local use only.

/// The dynamic section of a loaded object.
#[derive(Clone, Copy)]
pub(crate) struct Exports {
    bias: usize,
    symbols: *const Symbol,
    names: *const u8,
    names_size: usize,
    hash: *const u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[repr(C)]
struct Entry {
    tag: u64,
    value: u64,
}

const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;

/// Location of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

impl Exports {
    /// The exports of the object with this load bias and dynamic section; `None` if it lacks the tables.
    ///
    /// # Safety
    ///
    /// `dynamic` is the dynamic section of an object that is loaded with that bias and stays so while the value is used.
    pub(crate) unsafe fn of(bias: usize, dynamic: usize) -> Option<Exports> {
        if dynamic == 0 {
            return None;
        }
        let (mut symbols, mut names, mut names_size, mut hash) = (0, 0, 0, 0);
        let mut at = dynamic as *const Entry;
        loop {
            // SAFETY: the section ends with a null entry, and `at` has not passed it.
            let entry = unsafe { &*at };
            // glibc adds the bias in place, except in objects whose dynamic section is read-only.
            let value = entry.value as usize;
            let address = if value < bias { value + bias } else { value };
            match entry.tag {
                DT_NULL => break,
                DT_STRTAB => names = address,
                DT_SYMTAB => symbols = address,
                DT_STRSZ => names_size = value,
                DT_GNU_HASH => hash = address,
                _ => {}
            }
            // SAFETY: as above.
            at = unsafe { at.add(1) };
        }
        (symbols != 0 && names != 0 && hash != 0).then_some(Exports {
            bias,
            symbols: symbols as *const Symbol,
            names: names as *const u8,
            names_size,
            hash: hash as *const u32,
        })
    }

    /// A function or variable by name.
    pub(crate) fn find(&self, name: &str) -> Option<Export> {
        let hash = name.bytes().fold(5381u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        // SAFETY: the layout of the table: four numbers, the filter, the buckets, the chains.
        let (buckets, first, filter_words, shift) = unsafe {
            (
                *self.hash,
                *self.hash.add(1),
                *self.hash.add(2),
                *self.hash.add(3),
            )
        };
        if buckets == 0 || filter_words == 0 {
            return None;
        }
        // SAFETY: as above.
        let filter = unsafe { self.hash.add(4).cast::<u64>() };
        // SAFETY: the index is below the number of words.
        let word = unsafe {
            filter
                .add((hash / 64 % filter_words) as usize)
                .read_unaligned()
        };
        if word >> (hash % 64) & word >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
            return None;
        }
        // SAFETY: the buckets follow the filter.
        let bucket = unsafe { filter.add(filter_words as usize).cast::<u32>() };
        // SAFETY: the chains follow the buckets.
        let chains = unsafe { bucket.add(buckets as usize) };
        // SAFETY: the index is below the number of buckets.
        let mut index = unsafe { *bucket.add((hash % buckets) as usize) };
        if index < first {
            return None;
        }
        loop {
            // SAFETY: a chain ends with a value whose lowest bit is set.
            let link = unsafe { *chains.add((index - first) as usize) };
            if link | 1 == hash | 1 {
                // SAFETY: symbols of a chain are in the table.
                let symbol = unsafe { *self.symbols.add(index as usize) };
                if symbol.section != 0
                    && matches!(symbol.info & 15, STT_OBJECT | STT_FUNC)
                    && self.is_name(symbol.name as usize, name.as_bytes())
                {
                    return Some(Export {
                        address: self.bias.wrapping_add(symbol.value as usize),
                        size: symbol.size as usize,
                    });
                }
            }
            if link & 1 == 1 {
                return None;
            }
            index += 1;
        }
    }

    fn is_name(&self, offset: usize, name: &[u8]) -> bool {
        if offset + name.len() >= self.names_size {
            return false;
        }
        // SAFETY: within the table of names, by the check above.
        let found = unsafe { std::slice::from_raw_parts(self.names.add(offset), name.len() + 1) };
        found[..name.len()] == *name && found[name.len()] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::objects::Object;

    #[test]
    fn finds_what_the_loader_finds() {
        let libc = Object::at(libc::malloc as *const () as u64).expect("libc is loaded");
        // SAFETY: libc stays loaded.
        let exports = unsafe { Exports::of(libc.bias as usize, libc.dynamic() as usize) };
        let exports = exports.expect("libc has tables");
        for name in [c"malloc", c"getpid", c"qsort", c"dl_iterate_phdr"] {
            // SAFETY: a lookup by name.
            let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
            let found = exports.find(name.to_str().expect("ASCII"));
            assert_eq!(
                found.map(|export| export.address),
                Some(expected),
                "{name:?}"
            );
        }
        assert_eq!(exports.find("no_such_function_in_libc"), None);
    }
}
