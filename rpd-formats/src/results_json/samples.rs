//! PC samples: their arrays, and the table of the instructions that they are at.

use std::collections::HashMap;

use rpd_core::session::Session;
use rpd_core::session::code::InstructionIndex;
use rpd_core::session::samples::{
    self, CLASS_PREFIX, DUAL_ISSUE, HARDWARE, ISSUE_SHIFT, Issue, PIPES, REASON_PREFIX,
    STALL_REASON, STALL_SHIFT,
};
use rpd_core::spool::format::sample_flag;

use super::records::Out;
use crate::WriteError;
use crate::file::TextFile;
use crate::json::quote_bytes;

/// Bits of [`HARDWARE`] whose key has a blank at its end in the original's files.
const WITH_BLANK: &str = "workgroup_id";

/// The instructions that samples are at, in the order in which samples first are.
pub(super) struct Instructions<'a> {
    index: InstructionIndex<'a>,
    /// Index into the code's instructions, in the order of the table.
    table: Vec<u32>,
    places: HashMap<u32, u32>,
}

impl<'a> Instructions<'a> {
    pub(super) fn from_session(session: &'a Session) -> Instructions<'a> {
        let mut instructions = Instructions {
            index: InstructionIndex::new(&session.code),
            table: Vec::new(),
            places: HashMap::new(),
        };
        let samples = &session.samples;
        let single = samples
            .indices()
            .map(|index| (samples.object[index], samples.offset[index]));
        let counted = session.sample_counts.iter();
        let counted = counted.map(|(place, _, _)| (place.object, place.offset));
        for (object, offset) in single.chain(counted) {
            if let Some(found) = instructions.index.find(object, offset) {
                let next = instructions.table.len() as u32;
                let place = *instructions.places.entry(found).or_insert(next);
                if place == next {
                    instructions.table.push(found);
                }
            }
        }
        instructions
    }

    /// The keys `pc_sample_instructions` and `pc_sample_comments` with their arrays.
    pub(super) fn write_texts(&self, out: &mut Vec<u8>, session: &Session) {
        let code = &session.code;
        let mut array = |key: &str, text: &dyn Fn(u32) -> String| {
            out.extend_from_slice(key.as_bytes());
            out.push(b'[');
            for (number, place) in self.table.iter().enumerate() {
                if number > 0 {
                    out.push(b',');
                }
                quote_bytes(out, &text(*place));
            }
            out.push(b']');
        };
        let instruction = |place: u32| &code.instructions[place as usize];
        array("\"pc_sample_instructions\":", &|place| {
            session.strings.get(instruction(place).text).to_owned()
        });
        array(",\"pc_sample_comments\":", &|place| {
            code.comment(&session.strings, instruction(place))
        });
    }

    /// The elements of the array of samples that the provider has added up.
    pub(super) fn write_counts(
        &mut self,
        file: &mut TextFile,
        session: &Session,
    ) -> Result<(), WriteError> {
        for (number, (place, issue, samples)) in session.sample_counts.iter().enumerate() {
            if number > 0 {
                file.buffer.push(b',');
            }
            // -1 stands for an instruction that is not in the list.
            let instruction = self
                .index
                .find(place.object, place.offset)
                .and_then(|found| self.places.get(&found))
                .map_or(-1, |place| i64::from(*place));
            let mut out = Out(&mut file.buffer)
                .text("{\"kernel_id\":")
                .number(place.kernel.0)
                .text(",\"pc\":{\"code_object_id\":")
                .number(place.object.0)
                .text(",\"code_object_offset\":")
                .number(place.offset)
                .text("},\"inst_index\":")
                .number(instruction)
                .text(",\"wave_issued\":")
                .number(u8::from(issue == Issue::ISSUED));
            if let Some(reason) = issue.stall() {
                out = out.text(",\"stall_reason\":\"").text(reason).text("\"");
            }
            out.text(",\"samples\":").number(samples).text("}");
            file.flush_if_full()?;
        }
        Ok(())
    }

    /// The elements of the array of one method.
    pub(super) fn write_samples(
        &mut self,
        file: &mut TextFile,
        session: &Session,
        stochastic: bool,
    ) -> Result<(), WriteError> {
        // Both methods have an array of their own, and are in one table here.
        let table = &session.samples;
        let mut is_first = true;
        for index in table.indices() {
            let flags = table.flags[index];
            if (flags & sample_flag::STOCHASTIC != 0) != stochastic {
                continue;
            }
            if !is_first {
                file.buffer.push(b',');
            }
            is_first = false;
            // -1 stands for an instruction that is not in the list.
            let place = self
                .index
                .find(table.object[index], table.offset[index])
                .and_then(|found| self.places.get(&found))
                .map_or(-1, |place| i64::from(*place));
            let region = table.region[index].checked_sub(1);
            let region = region.and_then(|region| session.regions.get(region as usize));
            let external = region.map_or(0, |region| region.correlation.0);
            let mut out = Out(&mut file.buffer).text("{\"record\":{");
            if stochastic {
                out = out
                    .text("\"flags\":{\"has_mem_cnt\":")
                    .number(u8::from(flags & sample_flag::MEMORY != 0))
                    .text("},");
            }
            out = out.text("\"hw_id\":{");
            // Names of fields are the original's, a slip of the pen included: readers look for them.
            for (number, field) in HARDWARE.iter().enumerate() {
                out = out
                    .text(if number > 0 { ",\"" } else { "\"" })
                    .text(field.name)
                    .text(if field.name == WITH_BLANK {
                        " \":"
                    } else {
                        "\":"
                    })
                    .number(field.of(table.hardware[index]));
            }
            out = out
                .text("},\"pc\":{\"code_object_id\":")
                .number(table.object[index].0)
                .text(",\"code_object_offset\":")
                .number(table.offset[index])
                .text("},\"exec_mask\":")
                .number(table.exec[index])
                .text(",\"timestamp\":")
                .number(table.start[index].0)
                .text(",\"dispatch_id\":")
                .number(table.dispatch[index].0)
                .text(",\"corr_id\":{\"internal\":")
                .number(table.correlation[index].0)
                .text(",\"external\":")
                .number(external)
                .text("},\"wrkgrp_id\":")
                .dim3(table.workgroup[index])
                .text(",\"wave_in_grp\":")
                .number(table.wave[index]);
            // Only the hardware of stochastic sampling gives the state of the issue logic.
            if stochastic {
                let snapshot = table.snapshot[index];
                let bit = |shift: u32| snapshot >> shift & 1;
                out = out
                    .text(",\"wave_issued\":")
                    .number(u8::from(flags & sample_flag::ISSUED != 0))
                    .text(",\"inst_type\":\"")
                    .text(CLASS_PREFIX)
                    .text(samples::class(table.class[index]))
                    .text("\",\"wave_cnt\":")
                    .number(table.waves[index])
                    .text(",\"snapshot\":{\"stall_reason\":\"")
                    .text(REASON_PREFIX)
                    .text(samples::reason(STALL_REASON.of(snapshot.into()) as u8))
                    .text("\",\"dual_issue_valu\":")
                    .number(DUAL_ISSUE.of(snapshot.into()));
                for (what, shift) in [("issue", ISSUE_SHIFT), ("stall", STALL_SHIFT)] {
                    for (pipe, name) in (0..).zip(PIPES) {
                        out = out
                            .text(",\"arb_state_")
                            .text(what)
                            .text("_")
                            .text(name)
                            .text("\":")
                            .number(bit(shift + pipe));
                    }
                }
                out = out.text("}");
            }
            out.text("},\"inst_index\":").number(place).text("}");
            file.flush_if_full()?;
        }
        Ok(())
    }
}
