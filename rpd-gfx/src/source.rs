//! Looks up the content of a code object by address: functions, code bytes, and source lines with inlined calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use gimli::{AttributeValue, EndianSlice, LittleEndian, Unit, UnitOffset};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};
use rpd_demangle::demangle_any;

/// A function in the symbol table of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Mangled name.
    pub name: String,
    /// Virtual address in the ELF file.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Function {
    /// The functions of a code object, ordered by address. Stripped files lack all functions that are not kernels.
    ///
    /// # Errors
    /// When `bytes` is not an ELF file. The text says why.
    pub fn all(bytes: &[u8]) -> Result<Vec<Function>, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        Ok(functions(&file, &code_of(&file)))
    }

    /// The function that contains an address. `functions` are ordered by address.
    pub fn at(functions: &[Function], address: u64) -> Option<&Function> {
        let behind = functions.partition_point(|function| function.address <= address);
        let found = &functions[behind.checked_sub(1)?];
        (address - found.address < found.size).then_some(found)
    }
}

/// Address and bytes of each section with code, ordered by address.
fn code_of<'data>(file: &object::File<'data>) -> Vec<(u64, &'data [u8])> {
    let sections = file.sections();
    let mut code: Vec<(u64, &[u8])> = sections
        .filter(|section| section.kind() == SectionKind::Text)
        .filter_map(|section| Some((section.address(), section.data().ok()?)))
        .collect();
    code.sort_by_key(|(address, _)| *address);
    code
}

/// Functions in the sections of `code`, ordered by address.
fn functions(file: &object::File<'_>, code: &[(u64, &[u8])]) -> Vec<Function> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let mut functions: Vec<Function> = symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
        .filter_map(|symbol| {
            Some(Function {
                name: symbol.name().ok()?.to_owned(),
                address: symbol.address(),
                size: symbol.size(),
            })
        })
        .collect();
    functions.sort_by(|a, b| (a.address, &a.name).cmp(&(b.address, &b.name)));
    functions.dedup_by(|a, b| a.address == b.address);
    // A symbol without a size is taken to end where the next one begins.
    for index in 0..functions.len() {
        if functions[index].size == 0 {
            let address = functions[index].address;
            let next = functions.get(index + 1).map(|next| next.address);
            let section = code
                .iter()
                .map(|(start, bytes)| start.saturating_add(bytes.len() as u64))
                .find(|end| *end > address);
            let end = next.into_iter().chain(section).min().unwrap_or(address);
            functions[index].size = end - address;
        }
    }
    functions
}

/// A source line with the function that contains it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourcePlace {
    /// Demangled name of the function; `None` when it is not known.
    pub function: Option<String>,
    /// Path of the source file in the debug information.
    pub file: Rc<str>,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Column number from 1; 0 when it is not known.
    pub column: u32,
}

impl std::fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Text for a report: the line of an instruction and the calls that were inlined around it. `None` without lines.
pub fn chain(lines: &[String]) -> Option<String> {
    Some(match lines.split_first()? {
        (line, []) => line.clone(),
        (line, callers) => format!("{line} (inlined in {})", callers.join(", ")),
    })
}

type Reader<'data> = EndianSlice<'data, LittleEndian>;

/// Functions, code and debug information of a code object.
pub struct DebugInfo<'data> {
    functions: Vec<Function>,
    /// Address and bytes of each section with code.
    code: Vec<(u64, &'data [u8])>,
    dwarf: gimli::Dwarf<Reader<'data>>,
    units: Vec<UnitRanges<'data>>,
    /// Line tables that were read so far, by compilation unit.
    lines: RefCell<HashMap<usize, Rc<UnitLines>>>,
    problem: Option<String>,
}

struct UnitRanges<'data> {
    unit: Unit<Reader<'data>>,
    ranges: Vec<Range<u64>>,
}

/// Line table and functions of a compilation unit.
struct UnitLines {
    files: Vec<Rc<str>>,
    rows: Vec<Row>,
    /// Functions, including inlined ones. A callee comes after its caller.
    scopes: Vec<Scope>,
}

/// A range of addresses with one source line.
struct Row {
    addresses: Range<u64>,
    file: usize,
    line: u32,
    column: u32,
}

/// A function, or an inlined instance of one, at a range of addresses.
struct Scope {
    ranges: Vec<Range<u64>>,
    depth: isize,
    name: Option<String>,
    /// File, line and column of the call, for an inlined instance.
    call: Option<(usize, u32, u32)>,
}

/// Greatest number of references from an instance to the declaration with its name. Damaged files have more.
const DEEPEST_ORIGIN: usize = 16;

impl<'data> DebugInfo<'data> {
    /// Reads the symbols of a code object. Debug information is read when it is needed.
    ///
    /// # Errors
    /// When `bytes` is not an ELF file. The text says why.
    pub fn parse(bytes: &'data [u8]) -> Result<DebugInfo<'data>, String> {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let code = code_of(&file);
        let functions = functions(&file, &code);
        let mut problem = None;
        let load = |id: gimli::SectionId| -> Result<Reader<'data>, gimli::Error> {
            let section = file.section_by_name(id.name());
            let bytes = section.and_then(|section| {
                let is_plain = section
                    .compressed_file_range()
                    .is_ok_and(|range| range.format == object::CompressionFormat::None);
                if !is_plain {
                    problem.get_or_insert_with(|| {
                        "its debug information is compressed; compile without -gz to see lines"
                            .to_owned()
                    });
                    return None;
                }
                section.data().ok()
            });
            Ok(EndianSlice::new(bytes.unwrap_or_default(), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).map_err(|error: gimli::Error| error.to_string())?;
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        loop {
            let header = match headers.next() {
                Ok(Some(header)) => header,
                Ok(None) => break,
                Err(error) => {
                    problem.get_or_insert_with(|| {
                        format!("its debug information is damaged: {error}")
                    });
                    break;
                }
            };
            match dwarf.unit(header) {
                Ok(unit) => {
                    let ranges = collect(dwarf.unit_ranges(&unit).ok());
                    units.push(UnitRanges { unit, ranges });
                }
                Err(error) => {
                    problem.get_or_insert_with(|| {
                        format!("its debug information is damaged: {error}")
                    });
                }
            }
        }
        Ok(DebugInfo {
            functions,
            code,
            dwarf,
            units,
            lines: RefCell::default(),
            problem,
        })
    }

    /// Functions, ordered by address.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The function that contains an address.
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        Function::at(&self.functions, address)
    }

    /// The code bytes from `address` on: at most `size`, fewer at the end of a section.
    pub fn code_at(&self, address: u64, size: u64) -> &'data [u8] {
        for (start, bytes) in &self.code {
            let Some(offset) = address.checked_sub(*start) else {
                continue;
            };
            if let Some(rest) = usize::try_from(offset)
                .ok()
                .and_then(|offset| bytes.get(offset..))
            {
                let size = usize::try_from(size).unwrap_or(rest.len()).min(rest.len());
                return &rest[..size];
            }
        }
        &[]
    }

    /// Whether there is debug information.
    pub fn has_lines(&self) -> bool {
        !self.units.is_empty()
    }

    /// Fault for which the debug information cannot be read; `None` when it can, or when there is none.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The source lines of the instruction at `address`: its own, then those of the calls that were inlined around it,
    /// innermost first. Empty without debug information for that address.
    pub fn places(&self, address: u64) -> Vec<SourcePlace> {
        let has = |unit: &UnitRanges<'_>| unit.ranges.iter().any(|range| range.contains(&address));
        let Some(number) = self.units.iter().position(has) else {
            return Vec::new();
        };
        let known = self.lines.borrow().get(&number).cloned();
        let lines = known.unwrap_or_else(|| {
            let lines = Rc::new(UnitLines::read(&self.dwarf, &self.units[number].unit));
            self.lines.borrow_mut().insert(number, Rc::clone(&lines));
            lines
        });
        lines.places(address)
    }
}

fn collect(ranges: Option<gimli::RangeIter<Reader<'_>>>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    if let Some(mut ranges) = ranges {
        while let Ok(Some(range)) = ranges.next() {
            if range.begin < range.end {
                found.push(range.begin..range.end);
            }
        }
    }
    found
}

impl UnitLines {
    fn read(dwarf: &gimli::Dwarf<Reader<'_>>, unit: &Unit<Reader<'_>>) -> UnitLines {
        let mut lines = UnitLines {
            files: Vec::new(),
            rows: Vec::new(),
            scopes: Vec::new(),
        };
        // Rows before a damaged part are kept.
        let _ = lines.read_rows(dwarf, unit);
        let _ = lines.read_scopes(dwarf, unit);
        lines
    }

    fn read_rows(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'_>>,
        unit: &Unit<Reader<'_>>,
    ) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let header = program.header();
        let first = u64::from(header.version() <= 4);
        let count = header.file_names().len() as u64 + first;
        for number in 0..count {
            self.files.push(match header.file(number) {
                Some(file) => path(dwarf, unit, header, file).into(),
                None => "".into(),
            });
        }
        let mut rows = program.rows();
        let mut open: Option<(u64, usize, u32, u32)> = None;
        while let Some((_, row)) = rows.next_row()? {
            if let Some((start, file, line, column)) = open.take()
                && start < row.address()
            {
                self.rows.push(Row {
                    addresses: start..row.address(),
                    file,
                    line,
                    column,
                });
            }
            if !row.end_sequence() {
                let column = match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(column) => u32::try_from(column.get()).unwrap_or(0),
                };
                let line = row
                    .line()
                    .map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
                let file = usize::try_from(row.file_index()).unwrap_or(usize::MAX);
                open = Some((row.address(), file, line, column));
            }
        }
        self.rows.sort_by_key(|row| row.addresses.start);
        Ok(())
    }

    fn read_scopes(
        &mut self,
        dwarf: &gimli::Dwarf<Reader<'_>>,
        unit: &Unit<Reader<'_>>,
    ) -> gimli::Result<()> {
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let is_inlined = entry.tag() == gimli::DW_TAG_inlined_subroutine;
            if !is_inlined && entry.tag() != gimli::DW_TAG_subprogram {
                continue;
            }
            let ranges = collect(dwarf.die_ranges(unit, entry).ok());
            if ranges.is_empty() {
                continue;
            }
            let number = |name| {
                let value: Option<AttributeValue<Reader<'_>>> = entry.attr_value(name);
                value.and_then(|value| match value {
                    AttributeValue::FileIndex(file) => Some(file),
                    other => other.udata_value(),
                })
            };
            let small = |name| {
                number(name)
                    .and_then(|value| u32::try_from(value).ok())
                    .unwrap_or(0)
            };
            let call = is_inlined.then(|| {
                let file = number(gimli::DW_AT_call_file).unwrap_or(u64::MAX);
                (
                    usize::try_from(file).unwrap_or(usize::MAX),
                    small(gimli::DW_AT_call_line),
                    small(gimli::DW_AT_call_column),
                )
            });
            self.scopes.push(Scope {
                ranges,
                depth: entry.depth(),
                name: name_of(dwarf, unit, entry.attrs()),
                call,
            });
        }
        Ok(())
    }

    fn file(&self, number: usize) -> Rc<str> {
        self.files.get(number).cloned().unwrap_or_else(|| "".into())
    }

    /// The row itself, if it has a line. Compilers give line 0 to code that belongs to no line; such a row yields the
    /// last row before it that has a line of the same function.
    fn with_line<'a>(&'a self, row: &'a Row, scope: Option<&Scope>) -> &'a Row {
        if row.line != 0 {
            return row;
        }
        let start = row.addresses.start;
        let innermost = |address: u64| {
            let all = self.scopes.iter();
            let here =
                all.filter(|scope| scope.ranges.iter().any(|range| range.contains(&address)));
            here.max_by_key(|scope| scope.depth)
        };
        let behind = self
            .rows
            .partition_point(|other| other.addresses.start < start);
        let before = self.rows[..behind].iter().rev();
        let mut next = start;
        let mut without_gap = before.take_while(|other| {
            let adjoins = other.addresses.end >= next;
            next = other.addresses.start;
            adjoins
        });
        let is_own = |other: &&Row| match (scope, innermost(other.addresses.start)) {
            (Some(scope), Some(found)) => std::ptr::eq(scope, found),
            (None, None) => true,
            _ => false,
        };
        let known = without_gap.find(|other| other.line != 0 && is_own(other));
        known.unwrap_or(row)
    }

    fn places(&self, address: u64) -> Vec<SourcePlace> {
        let mut scopes: Vec<&Scope> = self
            .scopes
            .iter()
            .filter(|scope| scope.ranges.iter().any(|range| range.contains(&address)))
            .collect();
        scopes.sort_by_key(|scope| scope.depth);
        let behind = self
            .rows
            .partition_point(|row| row.addresses.start <= address);
        let row = self.rows[..behind]
            .iter()
            .rev()
            .find(|row| row.addresses.contains(&address));
        let Some(row) = row else {
            return Vec::new();
        };
        let row = self.with_line(row, scopes.last().copied());
        let mut at = (row.file, row.line, row.column);
        let mut places = Vec::new();
        for scope in scopes.iter().rev() {
            places.push(SourcePlace {
                function: scope.name.clone(),
                file: self.file(at.0),
                line: at.1,
                column: at.2,
            });
            match scope.call {
                Some(call) => at = call,
                None => return places,
            }
        }
        if places.is_empty() {
            places.push(SourcePlace {
                function: None,
                file: self.file(at.0),
                line: at.1,
                column: at.2,
            });
        }
        places
    }
}

/// Path of a file of the line table.
fn path(
    dwarf: &gimli::Dwarf<Reader<'_>>,
    unit: &Unit<Reader<'_>>,
    header: &gimli::LineProgramHeader<Reader<'_>>,
    file: &gimli::FileEntry<Reader<'_>>,
) -> String {
    let text = |value| -> String {
        let found = dwarf.attr_string(unit, value);
        found.map_or_else(
            |_| String::new(),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    let mut path = std::path::PathBuf::new();
    if let Some(directory) = &unit.comp_dir {
        path.push(&*directory.to_string_lossy());
    }
    if let Some(directory) = file.directory(header) {
        path.push(text(directory));
    }
    path.push(text(file.path_name()));
    // A compilation directory `.` (a compiler option sets it) means that paths are relative to the source tree.
    let parts = path.components();
    let path: std::path::PathBuf = parts
        .filter(|part| *part != std::path::Component::CurDir)
        .collect();
    path.to_string_lossy().into_owned()
}

/// Name of a function: its own, or that of the function it is an instance of.
fn name_of<'a>(
    dwarf: &gimli::Dwarf<Reader<'a>>,
    unit: &Unit<Reader<'a>>,
    attributes: &[gimli::Attribute<Reader<'a>>],
) -> Option<String> {
    let mut attributes = attributes.to_vec();
    for _ in 0..DEEPEST_ORIGIN {
        let find = |name| attributes.iter().find(|attribute| attribute.name() == name);
        let text = |name| -> Option<String> {
            let text = dwarf.attr_string(unit, find(name)?.value()).ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        if let Some(mangled) = text(gimli::DW_AT_linkage_name) {
            return Some(demangle_any(&mangled).into_owned());
        }
        if let Some(plain) = text(gimli::DW_AT_name) {
            return Some(plain);
        }
        let origin =
            find(gimli::DW_AT_abstract_origin).or_else(|| find(gimli::DW_AT_specification))?;
        let AttributeValue::UnitRef(offset) = origin.value() else {
            return None;
        };
        attributes = entry_attributes(unit, offset)?;
    }
    None
}

fn entry_attributes<'a>(
    unit: &Unit<Reader<'a>>,
    offset: UnitOffset,
) -> Option<Vec<gimli::Attribute<Reader<'a>>>> {
    Some(unit.entry(offset).ok()?.attrs().to_vec())
}
