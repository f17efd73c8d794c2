//! Reads the ELF file of a code object.

use super::bundle::slice;
use super::metadata::{self, Kernel, Metadata};
use super::{Error, Target, Toggle};
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{
    FileHeader, ProgramHeader, Rela as _, SectionHeader as _, SectionTable, Sym as _, SymbolTable,
};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

type Header = elf::FileHeader64<LE>;

/// `e_machine` of AMD GPUs.
const EM_AMDGPU: u16 = 224;
/// `EI_OSABI` of HSA code objects.
const OSABI_HSA: u8 = 64;
/// Type of the ELF note with the metadata.
const NT_AMDGPU_METADATA: u32 = 32;

/// Kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function, or the entry point of a kernel.
    Function,
    /// A variable or a kernel descriptor.
    Object,
    /// A symbol of any other kind.
    Other,
}

/// A symbol that the code object defines for others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Mangled name.
    pub name: String,
    /// Virtual address in the file. [`super::Image::delta`] plus this is the loaded address.
    pub value: u64,
    /// Size in bytes.
    pub size: u64,
    /// Kind of symbol.
    pub kind: SymbolKind,
}

/// A segment that is loaded (`PT_LOAD`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Virtual address of the first byte.
    pub address: u64,
    /// Size in memory in bytes. Bytes that the file does not contain are 0.
    pub memory_size: u64,
    /// Offset in the file in bytes.
    pub offset: u64,
    /// Size in the file in bytes.
    pub file_size: u64,
    /// Whether the segment has instructions.
    pub executable: bool,
    /// Whether the segment is writable.
    pub writable: bool,
}

/// The symbol that a relocation refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RelocationSymbol {
    /// No symbol, or one without a name: its value is 0.
    None,
    /// A symbol defined in this file, at this virtual address.
    Defined(u64),
    /// A symbol not defined in this file. A weak one may be undefined everywhere.
    Undefined { name: String, weak: bool },
}

/// A dynamic relocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relocation {
    pub(super) offset: u64,
    pub(super) kind: u32,
    pub(super) addend: i64,
    pub(super) symbol: RelocationSymbol,
}

/// A code object: an ELF file for AMD GPUs, checked as far as loading needs it.
#[derive(Debug, Clone)]
pub struct CodeObject {
    bytes: Arc<[u8]>,
    target: Target,
    #[cfg(test)]
    abi_version: u8,
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
    by_name: HashMap<String, usize>,
    metadata: Metadata,
    pub(super) relocations: Vec<Relocation>,
}

/// Size of the ELF file that begins with `header` in bytes, computed from the extents of its header tables.
pub(super) fn extent(header: &[u8]) -> Result<usize, Error> {
    let header =
        Header::parse(header).map_err(|e| Error::malformed("ELF header", e.to_string()))?;
    let table =
        |offset: u64, size: u16, count: u16| offset.checked_add(u64::from(size) * u64::from(count));
    let end = table(
        header.e_phoff(LE),
        header.e_phentsize(LE),
        header.e_phnum(LE),
    )
    .zip(table(
        header.e_shoff(LE),
        header.e_shentsize(LE),
        header.e_shnum(LE),
    ))
    .map(|(a, b)| a.max(b))
    .filter(|end| *end <= 1 << 40)
    .ok_or_else(|| Error::malformed("ELF header", "table offsets overflow"))?;
    // lld writes the section headers last.
    Ok(end as usize)
}

impl CodeObject {
    /// Parses the ELF file in `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let bad =
            |what: &'static str| move |e: object::Error| Error::malformed(what, e.to_string());
        if !bytes.starts_with(b"\x7fELF") {
            return Err(Error::Magic {
                what: "an ELF file",
                found: bytes.iter().take(8).copied().collect(),
            });
        }
        // The parser needs an alignment of 8 bytes, which `bytes` may not have.
        let aligned = Aligned::copy(bytes);
        let data = aligned.bytes();
        let header = Header::parse(data).map_err(bad("ELF header"))?;
        // Other machines' code would be decoded into nonsense.
        if header.e_machine(LE).0 != EM_AMDGPU {
            return Err(Error::Unsupported {
                what: "ELF machine",
                value: header.e_machine(LE).0.to_string(),
            });
        }
        if header.e_ident().os_abi.0 != OSABI_HSA {
            return Err(Error::Unsupported {
                what: "ELF OS ABI",
                value: header.e_ident().os_abi.0.to_string(),
            });
        }
        let abi_version = header.e_ident().abi_version;
        // Version 2 has another layout of metadata, and later ones are not known.
        if !(1..=4).contains(&abi_version) {
            return Err(Error::Unsupported {
                what: "code object ABI version",
                value: abi_version.to_string(),
            });
        }
        let target = target(header.e_flags(LE).0)?;

        let mut segments = Vec::new();
        let mut metadata = None;
        for program in header
            .program_headers(LE, data)
            .map_err(bad("program headers"))?
        {
            // Only what is loaded or read later is kept; all other kinds of segment do not matter on a device.
            if program.p_type(LE) == elf::PT_LOAD {
                let segment = Segment {
                    address: program.p_vaddr(LE),
                    memory_size: program.p_memsz(LE),
                    offset: program.p_offset(LE),
                    file_size: program.p_filesz(LE),
                    executable: program.p_flags(LE).0 & elf::PF_X.0 != 0,
                    writable: program.p_flags(LE).0 & elf::PF_W.0 != 0,
                };
                // Checked once, so that loading need not check again.
                slice(data, segment.offset, segment.file_size, "segment")?;
                // The rest of the segment is zeros in memory, so that there can be no more in the file.
                if segment.file_size > segment.memory_size
                    || segment.address.checked_add(segment.memory_size).is_none()
                {
                    return Err(Error::malformed(
                        "segment",
                        "its sizes contradict each other",
                    ));
                }
                segments.push(segment);
            } else if let Some(mut notes) = program.notes(LE, data).map_err(bad("note segment"))? {
                while let Some(note) = notes.next().map_err(bad("note"))? {
                    if note.name() == b"AMDGPU" && note.n_type(LE).0 == NT_AMDGPU_METADATA {
                        // If the linker did not merge notes, each object file's note is there.
                        let more = metadata::parse(note.desc())?;
                        match &mut metadata {
                            None => metadata = Some(more),
                            Some(metadata) => metadata.merge(more),
                        }
                    }
                }
            }
        }
        // Without a segment there is no code that a kernel could have.
        if segments.is_empty() {
            return Err(Error::malformed(
                "code object",
                "it has no loadable segment",
            ));
        }

        // Dynamic symbols only: others are the object's own, and stripped files lack them.
        let sections = header.sections(LE, data).map_err(bad("section headers"))?;
        let table = sections
            .symbols(LE, data, elf::SHT_DYNSYM)
            .map_err(bad("dynamic symbol table"))?;
        let mut symbols = Vec::new();
        let mut by_name = HashMap::new();
        for symbol in table.iter() {
            // Undefined symbols are found through the relocations that need them.
            if symbol.is_undefined(LE) {
                continue;
            }
            let name = symbol
                .name(LE, table.strings())
                .map_err(bad("symbol name"))?;
            let name = String::from_utf8_lossy(name).into_owned();
            // The first symbol with a name counts: address and size must be of the same symbol.
            let Entry::Vacant(new) = by_name.entry(name.clone()) else {
                continue;
            };
            new.insert(symbols.len());
            symbols.push(Symbol {
                name,
                value: symbol.st_value(LE),
                size: symbol.st_size(LE),
                kind: match symbol.st_type() {
                    elf::STT_FUNC => SymbolKind::Function,
                    elf::STT_OBJECT => SymbolKind::Object,
                    _ => SymbolKind::Other,
                },
            });
        }
        let relocations = relocations(data, &sections, &table)?;
        Ok(Self {
            bytes: bytes.into(),
            target,
            #[cfg(test)]
            abi_version,
            segments,
            by_name,
            symbols,
            metadata: metadata.unwrap_or_default(),
            relocations,
        })
    }

    /// The bytes of the ELF file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Processor and features that the code was compiled for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    #[cfg(test)]
    /// Version of the code object: 3 to 6.
    pub fn version(&self) -> u8 {
        self.abi_version + 2
    }

    /// Whether a symbol is in a writable segment.
    pub fn is_writable(&self, symbol: &Symbol) -> bool {
        self.segments.iter().any(|segment| {
            let offset = symbol.value.checked_sub(segment.address);
            segment.writable && offset.is_some_and(|offset| offset < segment.memory_size)
        })
    }

    /// Loadable segments.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    #[cfg(test)]
    /// Symbols that the code object defines for others: kernels, their descriptors and variables.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The defined symbol with this name.
    pub fn symbol(&self, name: &str) -> Option<&Symbol> {
        self.by_name.get(name).map(|&i| &self.symbols[i])
    }

    /// The kernels that the metadata describe.
    pub fn kernels(&self) -> &[Kernel] {
        &self.metadata.kernels
    }

    /// Formats of `printf` calls in kernels that write messages to a buffer: the number in the messages, and the
    /// text.
    pub fn printf_formats(&self) -> &[(u64, Vec<u8>)] {
        &self.metadata.formats
    }

    /// The kernel with this name, with or without the suffix `.kd`.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels()
            .iter()
            .find(|k| k.name == name || k.symbol == name)
    }

    /// Variables (`__device__`, `__constant__`): object symbols other than kernel descriptors.
    pub fn variables(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols
            .iter()
            .filter(|s| s.kind == SymbolKind::Object && !s.name.ends_with(".kd"))
    }

    #[cfg(test)]
    /// Metadata version, such as (1, 2) for V5.
    pub fn metadata_version(&self) -> (u32, u32) {
        self.metadata.version
    }
}

fn relocations<'data>(
    data: &'data [u8],
    sections: &SectionTable<'data, Header>,
    dynamic: &SymbolTable<'data, Header>,
) -> Result<Vec<Relocation>, Error> {
    let mut out = Vec::new();
    for section in sections.iter() {
        let Some((entries, link)) = section
            .rela(LE, data)
            .map_err(|e| Error::malformed("relocation section", e.to_string()))?
        else {
            continue;
        };
        // Other relocation sections are left over from linking, and concern sections that are not loaded.
        if link != dynamic.section() && link.0 != 0 {
            continue;
        }
        for entry in entries {
            let symbol = match entry.symbol(LE, false) {
                None => RelocationSymbol::None,
                Some(index) => {
                    let symbol = dynamic
                        .symbol(index)
                        .map_err(|e| Error::malformed("relocation", e.to_string()))?;
                    if symbol.is_undefined(LE) {
                        let name = symbol
                            .name(LE, dynamic.strings())
                            .map_err(|e| Error::malformed("symbol name", e.to_string()))?;
                        RelocationSymbol::Undefined {
                            name: String::from_utf8_lossy(name).into_owned(),
                            weak: symbol.st_bind() == elf::STB_WEAK,
                        }
                    } else {
                        RelocationSymbol::Defined(symbol.st_value(LE))
                    }
                }
            };
            out.push(Relocation {
                offset: entry.r_offset(LE),
                kind: entry.r_type(LE, false).0,
                addend: entry.r_addend(LE),
                symbol,
            });
        }
    }
    Ok(out)
}

/// Processor and features in `e_flags`.
fn target(flags: u32) -> Result<Target, Error> {
    let processor = match flags & 0xff {
        0x2c => "gfx900",
        0x2d => "gfx902",
        0x2e => "gfx904",
        0x2f => "gfx906",
        0x30 => "gfx908",
        0x31 => "gfx909",
        0x32 => "gfx90c",
        0x33 => "gfx1010",
        0x34 => "gfx1011",
        0x35 => "gfx1012",
        0x36 => "gfx1030",
        0x37 => "gfx1031",
        0x38 => "gfx1032",
        0x39 => "gfx1033",
        0x3d => "gfx1035",
        0x3e => "gfx1034",
        0x3f => "gfx90a",
        0x40 => "gfx940",
        0x41 => "gfx1100",
        0x42 => "gfx1013",
        0x43 => "gfx1150",
        0x44 => "gfx1103",
        0x45 => "gfx1036",
        0x46 => "gfx1101",
        0x47 => "gfx1102",
        0x48 => "gfx1200",
        0x4a => "gfx1151",
        0x4b => "gfx941",
        0x4c => "gfx942",
        0x4e => "gfx1201",
        0x4f => "gfx950",
        0x55 => "gfx1152",
        0x58 => "gfx1153",
        other => {
            return Err(Error::Unsupported {
                what: "processor number in e_flags",
                value: format!("{other:#x}"),
            });
        }
    };
    let toggle = |bits: u32| match bits {
        2 => Toggle::Off,
        3 => Toggle::On,
        _ => Toggle::Any,
    };
    Ok(Target {
        processor: processor.to_owned(),
        xnack: toggle((flags >> 8) & 3),
        sramecc: toggle((flags >> 10) & 3),
    })
}

/// A copy of bytes with an alignment of 8.
struct Aligned {
    words: Vec<u64>,
    len: usize,
}

impl Aligned {
    fn copy(bytes: &[u8]) -> Self {
        let words = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            })
            .collect();
        Self {
            words,
            len: bytes.len(),
        }
    }

    fn bytes(&self) -> &[u8] {
        &object::pod::bytes_of_slice(&self.words)[..self.len]
    }
}
