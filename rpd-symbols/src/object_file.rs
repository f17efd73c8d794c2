//! Facts that decide whether an ELF file is trusted: its build id, where its debug information lies, and which
//! addresses its symbol tables name.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::plt::{self, Stub};
use object::read::ReadCache;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ReadRef as _, SymbolKind};
use rpd_spool::regular_file::{self, Links};

/// Facts of an ELF file by which it is trusted and searched.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectFile {
    /// Build id in hexadecimal digits.
    pub(crate) build_id: Option<String>,
    /// File name and checksum of the file with the debug information, as `.gnu_debuglink` has them.
    pub(crate) debug_link: Option<(Vec<u8>, u32)>,
    /// Whether the file itself has debug information.
    pub(crate) has_dwarf: bool,
    /// Whether some debug information lies in other files (`-gsplit-dwarf`).
    pub(crate) is_split: bool,
    /// Start and size of the functions in `.symtab`, ascending.
    symtab: Vec<(u64, u64)>,
    /// Start and size of the functions in `.dynsym`, ascending.
    dynsym: Vec<(u64, u64)>,
    /// Stubs that jump to functions of other files, ascending.
    stubs: Vec<Stub>,
}

/// Table of symbols that names an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SymbolTable {
    Symtab,
    Dynsym,
}

impl ObjectFile {
    /// Reads the facts of a file.
    ///
    /// # Errors
    /// When it cannot be opened, is not a regular file, or not an ELF file.
    pub(crate) fn read(path: &Path) -> io::Result<ObjectFile> {
        let file = open(path)?;
        let cache = ReadCache::new(file);
        let object = object::File::parse(&cache).map_err(invalid)?;
        let mut found = ObjectFile {
            build_id: object.build_id().ok().flatten().map(hex),
            debug_link: object
                .gnu_debuglink()
                .ok()
                .flatten()
                .map(|(name, checksum)| (name.to_vec(), checksum)),
            has_dwarf: object
                .section_by_name(".debug_info")
                .is_some_and(|section| {
                    // A file whose debug information was moved out may keep the header of the section.
                    section.file_range().is_some_and(|(_, size)| size > 0)
                }),
            ..ObjectFile::default()
        };
        found.is_split = found.has_dwarf && is_split(&object);
        found.symtab = functions(object.symbols());
        // Distributions strip the table and keep a compressed one of the local functions.
        if found.symtab.is_empty() {
            found.symtab = embedded_symbols(&object).unwrap_or_default();
        }
        found.dynsym = functions(object.dynamic_symbols());
        found.stubs = plt::stubs(&object);
        Ok(found)
    }

    /// The function to which the stub at an address jumps.
    pub(crate) fn stub_at(&self, address: u64) -> Option<&str> {
        let next = self.stubs.partition_point(|stub| stub.start <= address);
        let stub = self.stubs[..next].last()?;
        (address < stub.end).then_some(&*stub.function)
    }

    /// The table with the symbol that has an address.
    pub(crate) fn table_of(&self, address: u64) -> Option<SymbolTable> {
        if covers(&self.symtab, address) {
            Some(SymbolTable::Symtab)
        } else if covers(&self.dynsym, address) {
            Some(SymbolTable::Dynsym)
        } else {
            None
        }
    }
}

/// Code `mov $SYS_rt_sigreturn, %rax; syscall`, to which a signal handler returns in every C library.
const SIGNAL_RETURN: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Whether the code behind the byte at each address is the return trampoline of signal handlers: such a frame's address
/// is the one before, as that of every return address. All are `false` where the file cannot be read.
pub(crate) fn are_signal_returns(path: &Path, addresses: &[u64]) -> Vec<bool> {
    let none = || vec![false; addresses.len()];
    let Ok(file) = open(path) else {
        return none();
    };
    let cache = ReadCache::new(file);
    let Ok(object) = object::File::parse(&cache) else {
        return none();
    };
    let is_return = |&address: &u64| {
        object.segments().any(|segment| {
            let code = segment.data_range(address.wrapping_add(1), SIGNAL_RETURN.len() as u64);
            code.is_ok_and(|code| code == Some(&SIGNAL_RETURN))
        })
    };
    addresses.iter().map(is_return).collect()
}

/// Whether some unit of the debug information is the skeleton of one in another file. Of DWARF 4 and before, a file with
/// the section that skeletons refer to has no other units; compressed sections are taken for split where it exists.
fn is_split<'data>(object: &impl object::Object<'data>) -> bool {
    const SKELETON: u8 = 4;
    let Some(info) = object.section_by_name(".debug_info") else {
        return false;
    };
    if object.section_by_name(".debug_addr").is_none() {
        return false;
    }
    let is_compressed = info
        .compressed_file_range()
        .is_ok_and(|range| range.format != object::CompressionFormat::None);
    if is_compressed {
        return true;
    }
    let (mut at, end) = (info.address(), info.address() + info.size());
    // A unit begins with its length, its version and, since DWARF 5, its type. 64-bit lengths are not written by compilers.
    while let Ok(Some(head)) = info.data_range(at, 7) {
        let [a, b, c, d, version, _, kind] = *head else {
            return false;
        };
        let length = u64::from(u32::from_le_bytes([a, b, c, d]));
        if version < 5 || kind == SKELETON {
            return true;
        }
        at += 4 + length;
        if length == 0 || at >= end {
            return false;
        }
    }
    false
}

/// The functions in the symbol table that `.gnu_debugdata` holds: a compressed ELF file, which distributions keep in
/// modules without `.symtab`. `None`: there is none, or it is damaged or larger than any such table is.
fn embedded_symbols<'data>(object: &impl object::Object<'data>) -> Option<Vec<(u64, u64)>> {
    const LARGEST: u64 = 256 << 20;
    let section = object.section_by_name(".gnu_debugdata")?;
    let mut bytes = Vec::new();
    let mut decoder = xz2::read::XzDecoder::new(section.data().ok()?).take(LARGEST + 1);
    decoder.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > LARGEST {
        return None;
    }
    let embedded = object::File::parse(&*bytes).ok()?;
    Some(functions(embedded.symbols()))
}

/// Opens a regular file without waiting for the other end of a pipe.
fn open(path: &Path) -> io::Result<File> {
    Ok(regular_file::open(path, Links::Follow)?.0)
}

fn invalid(error: object::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn functions<'data>(
    symbols: impl Iterator<Item = impl object::ObjectSymbol<'data>>,
) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && !symbol.is_undefined())
        .map(|symbol| (symbol.address(), symbol.size()))
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a function has the address; one without a size reaches to the next.
fn covers(functions: &[(u64, u64)], address: u64) -> bool {
    let next = functions.partition_point(|&(start, _)| start <= address);
    // Functions may lie within others.
    functions[..next]
        .iter()
        .rev()
        .take(8)
        .any(|&(start, size)| size == 0 || address - start < size)
}

/// The checksum of `.gnu_debuglink` over a file.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn checksum(path: &Path) -> io::Result<u32> {
    let file = open(path)?;
    let len = file.metadata()?.len();
    let cache = ReadCache::new(file);
    let mut crc = !0_u32;
    let mut at = 0;
    while at < len {
        let size = (len - at).min(1 << 20);
        let bytes = (&cache)
            .read_bytes_at(at, size)
            .map_err(|()| io::Error::other("it changed while it was read"))?;
        for &byte in bytes {
            crc = CRC_TABLE[usize::from((crc ^ u32::from(byte)) as u8)] ^ (crc >> 8);
        }
        at += size;
    }
    Ok(!crc)
}

/// CRC-32 as zlib has it.
const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ (0xedb8_8320 * (value & 1));
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
