//! Parquet table of PC samples.

use rpd_core::ids::{KernelId, StringId};
use rpd_core::session::code::{Code, CodeLine, Instruction};
use rpd_core::session::samples::{Issue, STALL_REASON};
use rpd_core::session::{DispatchKernels, ExtendedStrings, SampleTable, Session};
use rpd_core::spool::format::sample_flag;

use super::table::Rows;
use super::{Context, Table};
use crate::columns::{StoredColumns as _, columns};

pub(super) const TABLES: [Table; 1] = [(
    "pc_samples",
    |session| session.samples.len(),
    |context, rows| Samples::new(context).append_to(rows),
)];

/// Dictionary id of a text of the code; `None` for a text that is not known.
pub(super) fn known(text: StringId) -> Option<u32> {
    (text != StringId(0)).then_some(text.0)
}

/// Dictionary ids that only samples need.
pub(super) struct SampleTexts {
    /// Classes of instructions, by number.
    classes: Vec<u32>,
    /// Reasons of stalls, by number.
    reasons: Vec<u32>,
    methods: [u32; 2],
    kernels: DispatchKernels,
}

impl SampleTexts {
    pub(super) fn new(session: &Session, texts: &mut ExtendedStrings<'_>) -> SampleTexts {
        use rpd_core::session::samples::{CLASSES, REASONS};
        let kernels = if session.samples.is_empty() {
            DispatchKernels::default()
        } else {
            DispatchKernels::new(session)
        };
        SampleTexts {
            classes: CLASSES.iter().map(|text| texts.intern(text).0).collect(),
            reasons: REASONS.iter().map(|text| texts.intern(text).0).collect(),
            methods: ["host_trap", "stochastic"].map(|text| texts.intern(text).0),
            kernels,
        }
    }
}

/// The samples of a session.
struct Samples<'c> {
    context: &'c Context<'c>,
    table: &'c SampleTable,
    code: &'c Code,
    texts: &'c SampleTexts,
}

impl<'c> Samples<'c> {
    fn new(context: &'c Context<'c>) -> Samples<'c> {
        Samples {
            context,
            table: &context.session.samples,
            code: &context.session.code,
            texts: &context.samples,
        }
    }

    fn kernel(&self, row: usize) -> Option<KernelId> {
        self.texts.kernels.get(self.table.dispatch[row])
    }

    fn instruction(&self, row: usize) -> Option<&Instruction> {
        let found = self
            .code
            .find(self.table.object[row], self.table.offset[row]);
        found.map(|index| &self.code.instructions[index])
    }

    /// The innermost source line of the instruction.
    fn line(&self, row: usize) -> Option<CodeLine> {
        let lines = self.code.lines_of(self.instruction(row)?);
        lines.first().copied()
    }

    fn is_stochastic(&self, row: usize) -> bool {
        self.table.flags[row] & sample_flag::STOCHASTIC != 0
    }

    fn method(&self, row: usize) -> u32 {
        self.texts.methods[usize::from(self.is_stochastic(row))]
    }

    fn issue(&self, row: usize) -> Issue {
        Issue::from_flags(self.table.flags[row], self.table.snapshot[row])
    }

    fn is_issued(&self, row: usize) -> bool {
        self.issue(row) == Issue::ISSUED
    }

    /// Class of the instruction that was issued; `None` where none was.
    fn instruction_type(&self, row: usize) -> Option<u32> {
        let class = usize::from(self.table.class[row]);
        let classes = &self.texts.classes;
        self.is_issued(row).then(|| classes.get(class).copied())?
    }

    fn stall_reason(&self, row: usize) -> Option<u32> {
        self.issue(row).stall()?;
        let reason = STALL_REASON.of(self.table.snapshot[row].into()) as usize;
        self.texts.reasons.get(reason).copied()
    }
}

columns!(Samples<'_> => Rows<'r> by column, |samples, row|
    "guid": texts(Some(samples.context.guid_text)),
    "timestamp": integers(samples.table.start[row].0),
    "dispatch_id": integers(samples.table.dispatch[row].0),
    "correlation_id": integers(samples.table.correlation[row].0),
    "kernel_id": optional_integers(samples.kernel(row).map(|kernel| kernel.0.cast_signed())),
    "code_object_id": integers(samples.table.object[row].0),
    "code_object_offset": integers(samples.table.offset[row]),
    "instruction": texts(known(samples.instruction(row)?.text)),
    "file": texts(known(samples.line(row)?.file)),
    "line": optional_integers(samples.line(row).map(|line| line.line.into())),
    "exec_mask": integers(samples.table.exec[row]),
    "hardware": integers(samples.table.hardware[row]),
    "workgroup_x": integers(samples.table.workgroup[row][0].into()),
    "workgroup_y": integers(samples.table.workgroup[row][1].into()),
    "workgroup_z": integers(samples.table.workgroup[row][2].into()),
    "wave_in_group": integers(samples.table.wave[row].into()),
    "method": texts(Some(samples.method(row))),
    "wave_issued": optional_integers(samples.is_stochastic(row).then(|| samples.is_issued(row).into())),
    "instruction_type": texts(samples.instruction_type(row)),
    "stall_reason": texts(samples.stall_reason(row)),
    "wave_count": optional_integers(samples.is_stochastic(row).then(|| samples.table.waves[row].into())),
    "snapshot": optional_integers(samples.is_stochastic(row).then(|| samples.table.snapshot[row].into())),
);
