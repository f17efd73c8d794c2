//! Exported symbols of a loaded object, looked up in its own tables.
//!
//! `dlsym` takes the loader's lock, which a thread holds while it runs the constructors of what it loads; a capture must
//! not wait for that. It also does not find what was loaded for local use only.

use crate::copy::{self, Copied, Copier};

/// The dynamic section of a loaded object.
#[derive(Clone, Copy)]
pub(crate) struct Exports {
    copy: Copier,
    bias: u64,
    symbols: u64,
    names: u64,
    names_size: u64,
    hash: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

// SAFETY: integers without padding.
unsafe impl Copied for Symbol {}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Entry {
    tag: u64,
    value: u64,
}

// SAFETY: integers without padding.
unsafe impl Copied for Entry {}

const DT_NULL: u64 = 0;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
/// Symbols of assembler code that states no type.
const STT_NOTYPE: u8 = 0;
const STT_OBJECT: u8 = 1;
const STT_FUNC: u8 = 2;

/// Location of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    pub(crate) address: usize,
    pub(crate) size: usize,
}

/// Entries of a dynamic section that are looked at.
const MOST_ENTRIES: u64 = 128;
/// Symbols of a chain that are looked at.
const MOST_LINKS: u64 = 1 << 16;
/// Bytes of the longest name that is looked for.
const LONGEST_NAME: usize = 64;

impl Exports {
    /// The exports of the object with this load bias and dynamic section; `None` if it lacks the tables.
    ///
    /// # Safety
    ///
    /// `dynamic` is the dynamic section of an object that is loaded with that bias and stays so while the value is used.
    pub(crate) unsafe fn from_bias(bias: u64, dynamic: u64) -> Option<Exports> {
        Exports::read(bias, dynamic, |address, into| {
            // SAFETY: the tables of a loaded object are readable.
            unsafe { copy::unchecked(address, into) };
            true
        })
    }

    /// As [`Exports::from_bias`], of an object that may be unloaded at any time: each read is checked, with a system call.
    pub(crate) fn checked(bias: u64, dynamic: u64) -> Option<Exports> {
        Exports::read(bias, dynamic, copy::checked)
    }

    fn read(bias: u64, dynamic: u64, copy: Copier) -> Option<Exports> {
        if dynamic == 0 {
            return None;
        }
        let mut exports = Exports {
            copy,
            bias,
            symbols: 0,
            names: 0,
            names_size: 0,
            hash: 0,
        };
        for index in 0..MOST_ENTRIES {
            let entry: Entry = exports.value(dynamic, index)?;
            // glibc adds the bias in place, except in objects whose dynamic section is read-only.
            let address = if entry.value < bias {
                entry.value + bias
            } else {
                entry.value
            };
            match entry.tag {
                DT_NULL => break,
                DT_STRTAB => exports.names = address,
                DT_SYMTAB => exports.symbols = address,
                DT_STRSZ => exports.names_size = entry.value,
                DT_GNU_HASH => exports.hash = address,
                _ => {}
            }
        }
        (exports.symbols != 0 && exports.names != 0 && exports.hash != 0).then_some(exports)
    }

    /// A value of an array.
    fn value<T: Copied>(&self, array: u64, index: u64) -> Option<T> {
        let at = array.wrapping_add(index.wrapping_mul(size_of::<T>() as u64));
        copy::value(at, self.copy)
    }

    /// A function or variable by name.
    pub(crate) fn find(&self, name: &str) -> Option<Export> {
        let hash = name.bytes().fold(5381u32, |hash, byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        // Layout of DT_GNU_HASH: a header of four numbers, the Bloom filter, the buckets, the chains.
        let number = |index| self.value::<u32>(self.hash, index);
        let (buckets, first) = (number(0)?, number(1)?);
        let (filter_words, shift) = (number(2)?, number(3)?);
        if buckets == 0 || filter_words == 0 {
            return None;
        }
        let filter = self.hash + 16;
        let word: u64 = self.value(filter, u64::from(hash / 64 % filter_words))?;
        if word >> (hash % 64) & word >> (hash.checked_shr(shift)? % 64) & 1 == 0 {
            return None;
        }
        let bucket = filter + 8 * u64::from(filter_words);
        let chains = bucket + 4 * u64::from(buckets);
        let mut index: u32 = self.value(bucket, u64::from(hash % buckets))?;
        if index < first {
            return None;
        }
        for _ in 0..MOST_LINKS {
            // A chain ends with a value whose lowest bit is set.
            let link: u32 = self.value(chains, u64::from(index - first))?;
            if link | 1 == hash | 1 {
                let symbol: Symbol = self.value(self.symbols, index.into())?;
                if symbol.section != 0
                    && matches!(symbol.info & 15, STT_NOTYPE | STT_OBJECT | STT_FUNC)
                    && self.is_name(symbol.name.into(), name.as_bytes())
                {
                    return Some(Export {
                        address: self.bias.wrapping_add(symbol.value) as usize,
                        size: symbol.size as usize,
                    });
                }
            }
            if link & 1 == 1 {
                return None;
            }
            index = index.checked_add(1)?;
        }
        None
    }

    fn is_name(&self, offset: u64, name: &[u8]) -> bool {
        let mut buffer = [0; LONGEST_NAME + 1];
        let Some(found) = buffer.get_mut(..=name.len()) else {
            return false;
        };
        offset + (name.len() as u64) < self.names_size
            && (self.copy)(self.names + offset, found)
            && found[..name.len()] == *name
            && found[name.len()] == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::objects::Object;

    #[test]
    fn exports_find_finds_the_symbols_that_the_loader_finds() {
        let libc = Object::at(libc::malloc as *const () as u64).expect("libc is loaded");
        // SAFETY: libc stays loaded.
        let exports = unsafe { Exports::from_bias(libc.bias, libc.dynamic()) };
        let exports = exports.expect("libc has tables");
        let checked = Exports::checked(libc.bias, libc.dynamic()).expect("libc has tables");
        for name in [c"malloc", c"getpid", c"qsort", c"dl_iterate_phdr"] {
            // SAFETY: a lookup by name.
            let expected = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
            let found = exports.find(name.to_str().expect("ASCII"));
            assert_eq!(
                found.map(|export| export.address),
                Some(expected),
                "{name:?}"
            );
            assert_eq!(
                checked.find(name.to_str().expect("ASCII")),
                found,
                "{name:?}"
            );
        }
        assert_eq!(exports.find("no_such_function_in_libc"), None);
        assert!(Exports::checked(0, 8).is_none());
    }
}
