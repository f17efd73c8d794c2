//! The files of PC samples: one row per sample.

use std::path::PathBuf;

use rpd_core::options::Options;
use rpd_core::session::code::InstructionIndex;
use rpd_core::session::samples::{self, CLASS_PREFIX, Issue, REASON_PREFIX, STALL_REASON};
use rpd_core::session::totals::Place;
use rpd_core::session::{KernelLabels, SampleTable, Session};
use rpd_core::spool::format::sample_flag;

use super::Records as _;
use super::combined::Shape;
use super::row::{Row, quote_free};
use crate::WriteError;
use crate::columns::{Columns as _, columns};
use crate::file::TextFile;

/// Comment of a sample whose code is unknown; the address follows.
const NO_CODE: &str = "Unrecognized code object id, physical virtual address of PC:";

/// Samples of either method, one of them selected.
struct Samples<'a> {
    table: &'a SampleTable,
    instructions: InstructionIndex<'a>,
    /// By instruction: its text and its comment, in quotes.
    texts: Vec<[Vec<u8>; 2]>,
    index: usize,
    /// Comment of a sample without instruction, in quotes.
    address: Vec<u8>,
}

impl Samples<'_> {
    fn texts(&mut self) -> [&[u8]; 2] {
        let object = self.table.object[self.index];
        let offset = self.table.offset[self.index];
        match self.instructions.find(object, offset) {
            Some(found) => {
                let [text, comment] = &self.texts[found as usize];
                [text, comment]
            }
            None if object.0 == 0 => {
                self.address.clear();
                let comment = format!("\"{NO_CODE}{offset}\"");
                self.address.extend_from_slice(comment.as_bytes());
                [b"\"\"", &self.address]
            }
            None => [b"\"\"", b"\"\""],
        }
    }
}

columns!(Samples<'_> => Row<'r>, |sample|
    "Sample_Timestamp": number(sample.table.start[sample.index].0),
    "Exec_Mask": number(sample.table.exec[sample.index]),
    "Dispatch_Id": number(sample.table.dispatch[sample.index].0),
    "Instruction": quoted(sample.texts()[0]),
    "Instruction_Comment": quoted(sample.texts()[1]),
    "Correlation_Id": number(sample.table.correlation[sample.index].0),
);

/// Additional columns of stochastic samples.
struct IssueState<'a> {
    table: &'a SampleTable,
    index: usize,
}

columns!(IssueState<'_> => Row<'r>, |sample|
    "Wave_Issued_Instruction": number(
        u8::from(sample.table.flags[sample.index] & sample_flag::ISSUED != 0)
    ),
    "Instruction_Type": text(
        &[CLASS_PREFIX, samples::class(sample.table.class[sample.index])].concat()
    ),
    "Stall_Reason": text(
        &[REASON_PREFIX, samples::reason(STALL_REASON.of(sample.table.snapshot[sample.index].into()) as u8)].concat()
    ),
    "Wave_Count": number(sample.table.waves[sample.index]),
);

/// Writes the file of one method; `None` without samples of it.
pub(super) fn write(
    session: &Session,
    stochastic: bool,
    options: &Options,
    path: PathBuf,
) -> Result<Option<PathBuf>, WriteError> {
    let table = &session.samples;
    let is_wanted =
        |index: &usize| (table.flags[*index] & sample_flag::STOCHASTIC != 0) == stochastic;
    if !table.indices().any(|index| is_wanted(&index)) {
        return Ok(None);
    }
    let mut file = TextFile::create(path)?;
    let shape = Shape::run(options.csv_safe);
    let quoted = |text: &str| {
        let mut quoted = Vec::new();
        quote_free(&mut quoted, text, options.csv_safe);
        quoted
    };
    let code = &session.code;
    let mut samples = Samples {
        table,
        instructions: InstructionIndex::new(code),
        texts: code
            .instructions
            .iter()
            .map(|instruction| {
                [
                    quoted(session.strings.get(instruction.text)),
                    quoted(&code.comment(&session.strings, instruction)),
                ]
            })
            .collect(),
        index: 0,
        address: Vec::new(),
    };
    let mut state = IssueState { table, index: 0 };
    let more = if stochastic { IssueState::COLUMNS } else { &[] };
    let names = Samples::COLUMNS.iter().chain(more);
    super::write_header(&mut file, &shape, names.copied());
    for index in table.indices().filter(is_wanted) {
        samples.index = index;
        let mut row = Row::new(&mut file.buffer, b"", &shape);
        samples.append_to(&mut row);
        if stochastic {
            state.index = index;
            state.append_to(&mut row);
        }
        row.end();
        file.flush_if_full()?;
    }
    file.finish().map(Some)
}

/// Samples that the provider has added up, at one instruction and in one state.
struct Counted<'a> {
    place: Place,
    kernel: &'a str,
    instruction: &'a str,
    comment: String,
    issue: Issue,
    samples: u64,
}

columns!(Counted<'_> => Row<'r>, |counted|
    "Kernel_Name": free_text(counted.kernel),
    "Code_Object_Id": number(counted.place.object.0),
    "Code_Object_Offset": number(counted.place.offset),
    "Instruction": free_text(counted.instruction),
    "Instruction_Comment": free_text(&counted.comment),
    "Wave_Issued_Instruction": number(u8::from(counted.issue == Issue::ISSUED)),
    "Stall_Reason": text(counted.issue.stall().unwrap_or_default()),
    "Samples": number(counted.samples),
);

/// Writes the file of the samples that the provider has added up; `None` without any.
pub(super) fn write_counts(
    session: &Session,
    options: &Options,
    path: PathBuf,
) -> Result<Option<PathBuf>, WriteError> {
    if session.sample_counts.is_empty() {
        return Ok(None);
    }
    let mut file = TextFile::create(path)?;
    let shape = Shape::run(options.csv_safe);
    super::write_header(&mut file, &shape, Counted::COLUMNS.iter().copied());
    let labels = KernelLabels::new(session, options.kernel_names);
    let code = &session.code;
    let mut index = InstructionIndex::new(code);
    for (place, issue, samples) in session.sample_counts.iter() {
        let found = index.find(place.object, place.offset);
        let instruction = found.map(|found| &code.instructions[found as usize]);
        let mut counted = Counted {
            place,
            kernel: labels.formatted(place.kernel),
            instruction: instruction.map_or("", |one| session.strings.get(one.text)),
            comment: instruction
                .map_or_else(String::new, |one| code.comment(&session.strings, one)),
            issue,
            samples,
        };
        let mut row = Row::new(&mut file.buffer, b"", &shape);
        counted.append_to(&mut row);
        row.end();
        file.flush_if_full()?;
    }
    file.finish().map(Some)
}
