//! Reads PC samples and code, which only databases of rpd have.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rpd_core::ids::{CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, StringId};
use rpd_core::options::{SamplingMethod, SamplingUnit};
use rpd_core::session::code::{CodeImage, CodeLine, Instruction, Sampling, SourceFile};
use rpd_core::session::samples::{Issue, reason_number};
use rpd_core::session::totals::{Count, InstructionTotals, Place, REPLICATES, Replicates};
use rpd_core::session::{Growth, SampleRow};
use rpd_core::spool::format::sample_flag;
use rpd_core::storage::column::Column;
use rusqlite::Result;

use super::super::samples::{ISSUED, SAMPLE};
use super::info::Info;
use super::scan::{Source, bits, bytes, integer, text, word};
use super::traces;

/// Places in code by the ids of their rows.
pub(super) type Places = HashMap<i64, (CodeObjectId, u64)>;

/// Reads code and the settings of samplers; returns the places that samples refer to.
fn code(source: &Source<'_>, info: &mut Info) -> Result<Places> {
    source.each(
        "id, agent_id, method, unit, \"interval\"",
        "rpd_pc_sampling",
        |row| {
            let agent = info.agent(integer(row, 1));
            let method = SamplingMethod::from_word(&text(row, 2));
            let unit = SamplingUnit::from_word(&text(row, 3));
            if let (Some(method), Some(unit)) = (method, unit) {
                info.session.sampling.push(Sampling {
                    agent,
                    method,
                    unit,
                    interval: bits(row, 4),
                });
            }
            Ok(())
        },
    )?;
    let mut images: Vec<(String, Vec<u8>)> = Vec::new();
    // Large images are stored in several rows, one after the other.
    source.each("id, content, bytes", "rpd_code_bytes", |row| {
        let content = text(row, 1);
        let part = bytes(row, 2);
        match images.last_mut() {
            Some((last, all)) if *last == content => all.extend_from_slice(part),
            _ => images.push((content, part.to_vec())),
        }
        Ok(())
    })?;
    let numbers: HashMap<String, u32> = images
        .iter()
        .map(|(content, _)| content.clone())
        .zip(0..)
        .collect();
    for (content, bytes) in images {
        // An image is known by a hash of 128 bits, written in hexadecimal.
        let part = |range| {
            let digits = content.get(range).unwrap_or_default();
            u64::from_str_radix(digits, 16).unwrap_or(0)
        };
        info.session.code.images.push(CodeImage {
            content: [part(0..16), part(16..32)],
            bytes: Arc::new(Column::from(bytes)),
        });
    }
    source.each("id, content", "rpd_code_object", |row| {
        if let Some(image) = numbers.get(&text(row, 1)) {
            let object = CodeObjectId(bits(row, 0));
            info.session.code.image_of.insert(object, *image);
        }
        Ok(())
    })?;
    let mut places = Places::new();
    let mut instructions: Vec<(i64, Instruction)> = Vec::new();
    let columns = "id, code_object_id, \"offset\", length, text_id, function_id";
    source.each(columns, "rpd_instruction", |row| {
        let place = (CodeObjectId(bits(row, 1)), bits(row, 2));
        places.insert(integer(row, 0), place);
        let length = word(row, 3);
        // Without a length it is a place that no instruction is known at.
        if length > 0 {
            let instruction = Instruction {
                object: place.0,
                offset: place.1,
                length,
                text: info.string(word(row, 4)),
                function: info.string(word(row, 5)),
                first_line: 0,
                lines: 0,
            };
            instructions.push((integer(row, 0), instruction));
        }
        Ok(())
    })?;
    let mut lines: HashMap<i64, Vec<CodeLine>> = HashMap::new();
    let columns = "instruction_id, function_id, file_id, line, col";
    source.each_by(
        "instruction_id, depth",
        columns,
        "rpd_instruction_line",
        |row| {
            let line = CodeLine {
                function: info.string(word(row, 1)),
                file: info.string(word(row, 2)),
                line: word(row, 3),
                column: word(row, 4),
            };
            lines.entry(integer(row, 0)).or_default().push(line);
            Ok(())
        },
    )?;
    // Code is searched by object and offset.
    instructions.sort_by_key(|(_, instruction)| (instruction.object, instruction.offset));
    for (id, mut instruction) in instructions {
        let code = &mut info.session.code;
        let own = lines.remove(&id).unwrap_or_default();
        instruction.first_line = code.lines.len() as u32;
        instruction.lines = own.len() as u32;
        code.lines.extend(own);
        code.instructions.push(instruction);
    }
    source.each("id, path_id, text", "rpd_source", |row| {
        let path = info.string(word(row, 1));
        let text = text(row, 2);
        info.session.code.sources.push(SourceFile { path, text });
        Ok(())
    })?;
    Ok(places)
}

/// The reason, by its text, why no instruction was issued.
pub(super) fn reason_of(text: &str) -> Issue {
    Issue(reason_number(text).unwrap_or(0))
}

/// Whether the database has PC samples or code.
pub(super) fn is_present(source: &Source<'_>) -> Result<bool> {
    source.has(SAMPLE)
}

/// Reads code and samples into `info.session`.
pub(super) fn read(source: &Source<'_>, info: &mut Info, growth: &mut Growth) -> Result<()> {
    if !is_present(source)? {
        return Ok(());
    }
    let places = code(source, info)?;
    traces::read(source, info, &places)?;
    // A sample names the text of its region, the session its number. Of regions with one text the first counts.
    let mut regions: HashMap<StringId, u32> = HashMap::new();
    for (number, region) in (1..).zip(&info.session.regions) {
        regions.entry(region.message).or_insert(number);
    }
    let columns = "\"timestamp\", instruction_id, dispatch_id, correlation_id, exec_mask, hardware, workgroup_x, \
        workgroup_y, workgroup_z, state, region_id, snapshot, memory";
    source.each(columns, SAMPLE, |row| {
        let (object, offset) = places.get(&integer(row, 1)).copied().unwrap_or_default();
        // The lowest byte has flags, the others class, wave and number of waves.
        let state = bits(row, 9);
        let region = match word(row, 10) {
            0 => 0,
            message => regions.get(&info.string(message)).copied().unwrap_or(0),
        };
        let samples = &mut info.session.samples;
        let time = Nanoseconds(bits(row, 0));
        samples.push(SampleRow {
            start: time,
            end: time,
            object,
            offset,
            exec: bits(row, 4),
            dispatch: DispatchId(bits(row, 2)),
            correlation: CorrelationId(bits(row, 3)),
            region,
            hardware: bits(row, 5),
            workgroup: [word(row, 6), word(row, 7), word(row, 8)],
            wave: (state >> 16) as u8,
            flags: state as u8
                & (sample_flag::STOCHASTIC | sample_flag::ISSUED | sample_flag::MEMORY),
            class: (state >> 8) as u8,
            waves: (state >> 24) as u32,
            snapshot: word(row, 11),
            memory: word(row, 12),
        });
        source.stored(growth.taken(&mut info.session))
    })?;
    counts(source, info, &places)
}

/// What `issue` of a row says.
fn issue_of(text: &str) -> Issue {
    match text {
        "" => Issue::HOST_TRAP,
        ISSUED => Issue::ISSUED,
        other => reason_of(other),
    }
}

/// Reads the sums of code objects that no single sample is in: those that the provider made.
fn counts(source: &Source<'_>, info: &mut Info, places: &Places) -> Result<()> {
    let samples = &info.session.samples;
    let single: HashSet<CodeObjectId> = samples
        .indices()
        .map(|index| samples.object[index])
        .collect();
    let columns = "kernel_id, instruction_id, issue, samples";
    source.each(columns, "rpd_pc_total", |row| {
        let (object, offset) = places.get(&integer(row, 1)).copied().unwrap_or_default();
        if !single.contains(&object) {
            let place = Place {
                kernel: KernelId(bits(row, 0)),
                object,
                offset,
            };
            let issue = issue_of(&text(row, 2));
            let counts = &mut info.session.sample_counts;
            counts.add(place, issue, bits(row, 3));
        }
        Ok(())
    })
}

/// Reads code and the findings of thread traces into `info.session`, and the sums of samples; not the samples.
pub(super) fn totals(source: &Source<'_>, info: &mut Info) -> Result<InstructionTotals> {
    let mut totals = InstructionTotals::default();
    if !is_present(source)? {
        return Ok(totals);
    }
    let places = code(source, info)?;
    traces::read(source, info, &places)?;
    let place = |kernel: u64, instruction: i64| {
        let (object, offset) = places.get(&instruction).copied().unwrap_or_default();
        Place {
            kernel: KernelId(kernel),
            object,
            offset,
        }
    };
    let columns = "kernel_id, instruction_id, issue, samples, lanes, waves";
    source.each(columns, "rpd_pc_total", |row| {
        let issue = issue_of(&text(row, 2));
        let count = Count {
            samples: bits(row, 3),
            lanes: bits(row, 4),
            waves: bits(row, 5),
        };
        let sum = totals
            .places
            .entry(place(bits(row, 0), integer(row, 1)))
            .or_default();
        sum.counts.push((issue, count));
        Ok(())
    })?;
    let columns = "kernel_id, instruction_id, counts";
    source.each(columns, "rpd_pc_replicate", |row| {
        let place = place(bits(row, 0), integer(row, 1));
        if let Some(sum) = totals.places.get_mut(&place) {
            let mut replicates = Replicates([0; REPLICATES]);
            let (counts, _) = bytes(row, 2).as_chunks::<4>();
            for (count, found) in replicates.0.iter_mut().zip(counts) {
                *count = u32::from_le_bytes(*found);
            }
            sum.replicates = replicates;
        }
        Ok(())
    })?;
    for sum in totals.places.values_mut() {
        sum.counts.sort_by_key(|(issue, _)| *issue);
    }
    Ok(totals)
}
