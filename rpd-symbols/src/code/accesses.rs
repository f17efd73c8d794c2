//! Recorded memory accesses of kernels, summed up by line of source code.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufReader};
use std::path::Path;

use rpd_gfx::access::{AccessTotals, Dispatch, DispatchEnd, FILE, Item, Problem, Reader, Step};
use rpd_gfx::isa::{Operation, Space};
use rpd_gfx::source::DebugInfo;
use rpd_spool::regular_file::{self, LARGEST_CODE, Links};

/// Accesses of one kind by the instructions of a line.
#[derive(Debug, Clone)]
pub struct LineAccesses {
    /// Name of the kernel, as compiled.
    pub kernel: String,
    /// Source file, or the address of the instruction where there is no line.
    pub file: String,
    /// Line in the source file, from 1; 0 when it is not known.
    pub line: u32,
    /// The memory: `global`, `scratch`, `lds`; `scalar` for loads through the scalar cache; empty for instructions that access
    /// none.
    pub space: &'static str,
    /// Kind of access: `load`, `store`, `atomic`; empty for instructions that access no memory.
    pub access: &'static str,
    /// Number of the line's instructions with this kind of access.
    pub instructions: usize,
    /// Sums of the line's accesses.
    pub totals: AccessTotals,
}

/// A recording, summed up.
#[derive(Debug, Default)]
pub struct AccessReport {
    /// Lines of kernels, by kernel, file and line.
    pub lines: Vec<LineAccesses>,
    /// Dispatches of each kernel that are summed up, by name.
    pub dispatches: BTreeMap<String, u64>,
    /// Notes about missing files and tables, one sentence each.
    pub notes: Vec<String>,
}

/// Key of a row.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kernel: usize,
    place: usize,
    space: &'static str,
    access: &'static str,
}

/// A code object and the places of its instructions that have been looked up.
#[derive(Default)]
struct Places {
    bytes: Vec<u8>,
    known: HashMap<u64, usize>,
}

#[derive(Default)]
struct Sums {
    kernels: Vec<String>,
    /// Places in source code: file and line.
    places: Vec<(String, u32)>,
    rows: BTreeMap<Key, (BTreeSet<u64>, AccessTotals)>,
}

/// Sums up the recording in a directory; of dispatches that `chosen` takes.
///
/// # Errors
/// When there is none, or it cannot be read or is damaged.
pub fn access_report(
    directory: &Path,
    chosen: impl Fn(&Dispatch) -> bool,
) -> Result<AccessReport, Problem> {
    let opened =
        regular_file::open(&directory.join(FILE), Links::Follow).map_err(io::Error::from)?;
    let mut reader = Reader::new(BufReader::new(opened.0))?;
    let mut report = AccessReport::default();
    let mut sums = Sums::default();
    let mut objects: HashMap<String, Places> = HashMap::new();
    let mut open: BTreeMap<u32, Dispatch> = BTreeMap::new();
    let mut step = Step::default();
    while let Some(item) = reader.next_item()? {
        match item {
            Item::Dispatch(dispatch) => {
                // A dispatch that was not chosen never opens, so that its steps are passed over below.
                if chosen(&dispatch) {
                    *report
                        .dispatches
                        .entry(dispatch.kernel.clone())
                        .or_default() += 1;
                    // Code objects are large and shared by dispatches.
                    if !objects.contains_key(&dispatch.object) {
                        let bytes = object(directory, &dispatch.object)?;
                        let places = Places {
                            bytes,
                            ..Places::default()
                        };
                        objects.insert(dispatch.object.clone(), places);
                    }
                    open.insert(dispatch.number, dispatch);
                }
            }
            Item::Steps(mut steps) => {
                let Some(dispatch) = open.get(&steps.dispatch) else {
                    continue;
                };
                let Some(places) = objects.get_mut(&dispatch.object) else {
                    continue;
                };
                let kernel = sums.kernel(&dispatch.kernel);
                let Places { bytes, known } = places;
                // A program without debug information, or one that has damaged its code object, has no lines.
                let code = LazyCell::new(|| DebugInfo::parse(bytes).ok());
                while steps.next_step(&mut step)? {
                    let address = dispatch.first.wrapping_add(step.offset);
                    // Loops execute the same instructions again and again; debug information is searched once for each.
                    let place = match known.get(&address) {
                        Some(place) => *place,
                        None => {
                            let place = sums.place((*code).as_ref(), address);
                            known.insert(address, place);
                            place
                        }
                    };
                    sums.add(kernel, place, address, &step);
                }
            }
            Item::End { dispatch, ending } => {
                if let Some(ended) = open.remove(&dispatch) {
                    report.notes.extend(ended_early(&ended, ending));
                }
            }
        }
    }
    // The recording ends with an item for each dispatch, unless the process was killed.
    for dispatch in open.values() {
        report.notes.push(format!(
            "{} was cut off: the program was killed while it ran",
            named(dispatch)
        ));
    }
    report.lines = sums.lines();
    Ok(report)
}

/// The bytes of a code object beside the recording; the name comes from the recording and must be that of a file in the directory.
fn object(directory: &Path, name: &str) -> io::Result<Vec<u8>> {
    let plain = Path::new(name).file_name().is_some_and(|own| own == name);
    if plain {
        let path = directory.join(name);
        Ok(regular_file::read(&path, Links::Follow, LARGEST_CODE).unwrap_or_default())
    } else {
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{name}: not a name of a file in the recording"),
        ))
    }
}

fn named(dispatch: &Dispatch) -> String {
    let kernel = rpd_spool::demangle::demangle_any(&dispatch.kernel);
    format!("dispatch {} of {kernel}", dispatch.nth)
}

fn ended_early(dispatch: &Dispatch, ending: DispatchEnd) -> Option<String> {
    let what = match ending {
        DispatchEnd::Complete => return None,
        DispatchEnd::Fault => "was stopped by an error of the kernel",
        DispatchEnd::Full => "is not recorded to its end: there was no more room",
    };
    Some(format!("{} {what}", named(dispatch)))
}

impl Sums {
    fn kernel(&mut self, name: &str) -> usize {
        let found = self.kernels.iter().position(|known| known == name);
        found.unwrap_or_else(|| {
            self.kernels.push(name.to_owned());
            self.kernels.len() - 1
        })
    }

    /// Number of the line of an instruction.
    fn place(&mut self, code: Option<&DebugInfo<'_>>, address: u64) -> usize {
        let places = code.map(|code| code.places(address)).unwrap_or_default();
        let place = match places.first() {
            Some(place) => (place.file.to_string(), place.line),
            None => (format!("{address:#x}"), 0),
        };
        let found = self.places.iter().position(|known| *known == place);
        found.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// The sums of an instruction in a row.
    fn row(&mut self, key: Key, address: u64) -> &mut AccessTotals {
        let (instructions, totals) = self.rows.entry(key).or_default();
        instructions.insert(address);
        totals
    }

    fn add(&mut self, kernel: usize, place: usize, address: u64, step: &Step) {
        let key = |space, access| Key {
            kernel,
            place,
            space,
            access,
        };
        // Instructions that access no memory have rows, too: a report of a kernel counts all of them.
        if step.transfers.is_empty() && step.scalar.is_empty() {
            self.row(key("", ""), address).executed(step.exec);
        }
        if !step.scalar.is_empty() {
            let totals = self.row(key("scalar", "load"), address);
            totals.executed(1);
            totals.add_scalar(&step.scalar);
        }
        // An instruction may have several parts in one memory, which are one execution.
        let mut counted = [0; 3];
        for transfer in &step.transfers {
            let (number, space) = match transfer.space {
                Space::Global => (0, "global"),
                Space::Scratch => (1, "scratch"),
                Space::Lds => (2, "lds"),
            };
            let access = match transfer.operation {
                Operation::Load => "load",
                Operation::Store => "store",
                Operation::Atomic(_) => "atomic",
            };
            let totals = self.row(key(space, access), address);
            let others = transfer.lanes & !counted[number];
            if counted[number] == 0 {
                totals.executed(transfer.lanes);
            } else {
                totals.lanes += u64::from(others.count_ones());
            }
            counted[number] |= transfer.lanes;
            totals.add(transfer);
        }
    }

    fn lines(self) -> Vec<LineAccesses> {
        let mut lines: Vec<LineAccesses> = self
            .rows
            .into_iter()
            .map(|(key, (instructions, totals))| LineAccesses {
                kernel: self.kernels[key.kernel].clone(),
                file: self.places[key.place].0.clone(),
                line: self.places[key.place].1,
                space: key.space,
                access: key.access,
                instructions: instructions.len(),
                totals,
            })
            .collect();
        let order = |a: &LineAccesses, b: &LineAccesses| {
            let key = |line: &LineAccesses| (line.line, line.space, line.access);
            (&a.kernel, &a.file, key(a)).cmp(&(&b.kernel, &b.file, key(b)))
        };
        lines.sort_by(order);
        lines
    }
}
