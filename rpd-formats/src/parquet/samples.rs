//! Parquet table of PC samples.

use rpd_core::ids::StringId;
use rpd_core::session::code::CodeLine;
use rpd_core::session::samples::{Issue, STALL_REASON};
use rpd_core::session::{DispatchKernels, ExtendedStrings, Session};
use rpd_core::spool::format::sample_flag;

use super::records::Result;
use super::table::Rows;
use super::{Context, Table};

pub(super) const TABLES: [Table; 1] = [("pc_samples", |session| session.samples.len(), samples)];

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
        let kernels = match session.samples.is_empty() {
            true => DispatchKernels::default(),
            false => DispatchKernels::new(session),
        };
        SampleTexts {
            classes: CLASSES.iter().map(|text| texts.intern(text).0).collect(),
            reasons: REASONS.iter().map(|text| texts.intern(text).0).collect(),
            methods: ["host_trap", "stochastic"].map(|text| texts.intern(text).0),
            kernels,
        }
    }
}

fn samples<'p>(context: &Context<'_>, rows: Rows<'p>) -> Result<'p> {
    let session = context.session;
    let table = &session.samples;
    let code = &session.code;
    let texts = &context.samples;
    let instruction = |row: usize| {
        code.find(table.object[row], table.offset[row])
            .map(|index| &code.instructions[index])
    };
    let line =
        |row: usize| -> Option<CodeLine> { code.lines_of(instruction(row)?).first().copied() };
    let known = |id: StringId| (id != StringId(0)).then_some(id.0);
    let is_stochastic = |row: usize| table.flags[row] & sample_flag::STOCHASTIC != 0;
    let issue = |row: usize| Issue::of(table.flags[row], table.snapshot[row]);
    let kernel = |row: usize| texts.kernels.get(table.dispatch[row]);
    let [x, y, z] = [0, 1, 2].map(|axis| move |row: usize| u64::from(table.workgroup[row][axis]));
    Ok(rows
        .texts("guid", |_| Some(context.guid_text))?
        .integers("timestamp", |row| table.start[row].0)
        .integers("dispatch_id", |row| table.dispatch[row].0)
        .integers("correlation_id", |row| table.correlation[row].0)
        .optional_integers("kernel_id", |row| {
            kernel(row).map(|kernel| kernel.0.cast_signed())
        })
        .integers("code_object_id", |row| table.object[row].0)
        .integers("code_object_offset", |row| table.offset[row])
        .texts("instruction", |row| known(instruction(row)?.text))?
        .texts("file", |row| known(line(row)?.file))?
        .optional_integers("line", |row| line(row).map(|line| line.line.into()))
        .integers("exec_mask", |row| table.exec[row])
        .integers("hardware", |row| table.hardware[row])
        .integers("workgroup_x", x)
        .integers("workgroup_y", y)
        .integers("workgroup_z", z)
        .integers("wave_in_group", |row| table.wave[row].into())
        .texts("method", |row| {
            Some(texts.methods[usize::from(is_stochastic(row))])
        })?
        .optional_integers("wave_issued", |row| {
            is_stochastic(row).then(|| i64::from(issue(row) == Issue::ISSUED))
        })
        .texts("instruction_type", |row| {
            let class = usize::from(table.class[row]);
            (issue(row) == Issue::ISSUED).then(|| texts.classes.get(class).copied())?
        })?
        .texts("stall_reason", |row| {
            issue(row).stall()?;
            let reason = STALL_REASON.of(table.snapshot[row].into()) as usize;
            texts.reasons.get(reason).copied()
        })?
        .optional_integers("wave_count", |row| {
            is_stochastic(row).then(|| table.waves[row].into())
        })
        .optional_integers("snapshot", |row| {
            is_stochastic(row).then(|| table.snapshot[row].into())
        }))
}
