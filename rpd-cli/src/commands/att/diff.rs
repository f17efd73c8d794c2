//! `rpd att diff`: compares what two decoders find in one trace.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Parser;
use rpd_att::{Library, Occupancy, Pc, Record, find_library};

use super::super::parse;
use crate::exit_status;
use crate::failure::Failure;
use crate::thread_trace::decode::{code_objects, images};
use crate::thread_trace::files::{Traces, read_trace};

/// Compare rpd's decoder with another trace decoder library, wave by wave
#[derive(Debug, Parser)]
#[command(
    after_help = "The comparison covers occupancy, and start, end and instructions (kind, time, duration, stall, address) of each \
    wave. Exit status: 0, or 1 when something differs."
)]
struct Arguments {
    /// Directories, trace files and code objects
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Path of the other librocprof-trace-decoder.so: directories to search, or the file
    #[arg(long, required = true, num_args = 1.., value_name = "DIR")]
    att_library_path: Vec<PathBuf>,
}

/// A wave, as far as it is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Wave {
    simd: u8,
    slot: u8,
    begin: i64,
    end: i64,
    instructions: Vec<(u8, i64, i32, u32, Pc)>,
}

/// Results of one decoder.
#[derive(Debug, Default)]
struct DecodedTrace {
    waves: Vec<Wave>,
    occupancy: Vec<(i64, u8, u8, u8, bool, Pc)>,
}

impl DecodedTrace {
    fn take(&mut self, record: Record<'_>) {
        match record {
            Record::Wave(wave) => {
                let instructions = (wave.instructions.iter())
                    .map(|i| (i.category as u8, i.time, i.duration, i.stall, i.pc))
                    .collect();
                // A wave that comes in parts is one.
                if wave.part > 0
                    && let Some(whole) = (self.waves.iter_mut().rev())
                        .find(|whole| (whole.simd, whole.slot) == (wave.simd, wave.slot))
                {
                    whole.end = wave.end;
                    whole.instructions.extend::<Vec<_>>(instructions);
                    return;
                }
                self.waves.push(Wave {
                    simd: wave.simd,
                    slot: wave.slot,
                    begin: wave.begin,
                    end: wave.end,
                    instructions,
                });
            }
            Record::Occupancy(records) => {
                let row = |o: &Occupancy| (o.time, o.cu, o.simd, o.slot, o.start, o.pc);
                self.occupancy.extend(records.iter().map(row));
            }
            _ => {}
        }
    }

    fn sort(&mut self) {
        self.waves
            .sort_by_key(|wave| (wave.begin, wave.simd, wave.slot));
        self.occupancy.sort();
    }
}

/// Runs the action `rpd att diff`.
pub(super) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>("att diff", arguments)? else {
        return Ok(0);
    };
    let traces = Traces::find(&given.paths)?;
    let path = find_library(&given.att_library_path)
        .map_err(|error| Failure::failed(format!("att diff: --att-library-path: {error}")))?;
    let library = Library::open(&path)
        .map_err(|error| Failure::failed(format!("att diff: --att-library-path: {error}")))?;
    // rpd's own library has the decoder that it would be compared with.
    if let Some(version) = library.own_version() {
        return Err(Failure::failed(format!(
            "att diff: {} is the decoder of {version}: comparing it with itself shows nothing; name the directory of another one",
            library.path().display()
        ))
        .into());
    }
    let mut same = true;
    for (key, files) in &traces.traces {
        let mut notes = Vec::new();
        let code = code_objects(&images(&traces, key)?, &mut notes);
        for file in files {
            let mut stream = read_trace(&file.path)
                .with_context(|| format!("cannot read {}", file.path.display()))?;
            let (mut ours, mut theirs) = (DecodedTrace::default(), DecodedTrace::default());
            let mut sink = |record: Record<'_>| ours.take(record);
            rpd_att::decode(&stream[..], &mut &code, &mut sink)
                .with_context(|| format!("cannot decode {}", file.path.display()))?;
            let mut sink = |record: Record<'_>| theirs.take(record);
            library
                .decode(&mut stream, &code, &mut sink)
                .with_context(|| format!("cannot decode {}", file.path.display()))?;
            // Libraries deliver records in any order.
            ours.sort();
            theirs.sort();
            let differences = compare(&ours, &theirs);
            same &= differences.is_empty();
            let mut text = format!(
                "{}: {} waves, {} instructions, {} changes of occupancy\n",
                file.path.display(),
                ours.waves.len(),
                ours.waves
                    .iter()
                    .map(|wave| wave.instructions.len())
                    .sum::<usize>(),
                ours.occupancy.len()
            );
            if differences.is_empty() {
                text.push_str("  no difference\n")
            } else {
                differences
                    .iter()
                    .for_each(|line| text.push_str(&format!("  {line}\n")))
            }
            // Printed at once: a library may end the process at the next trace.
            crate::print(&text)?;
        }
        for note in notes {
            eprintln!("rpd: {note}");
        }
    }
    Ok(exit_status::from_complete(same))
}

/// Lines about the fields and record kinds that differ, each with the first place where it does.
fn compare(ours: &DecodedTrace, theirs: &DecodedTrace) -> Vec<String> {
    let mut lines = Vec::new();
    if ours.waves.len() != theirs.waves.len() {
        lines.push(format!(
            "waves: {} by rpd, {} by the library",
            ours.waves.len(),
            theirs.waves.len()
        ));
    }
    let pairs = || ours.waves.iter().zip(&theirs.waves);
    let differ = pairs().filter(|(a, b)| a != b).count();
    if let Some((a, b)) = pairs().find(|(a, b)| a != b) {
        let what = if (a.simd, a.slot, a.begin, a.end) != (b.simd, b.slot, b.begin, b.end) {
            format!(
                "SIMD {} slot {} cycles {} to {} by rpd, SIMD {} slot {} cycles {} to {} by the library",
                a.simd, a.slot, a.begin, a.end, b.simd, b.slot, b.begin, b.end
            )
        } else {
            // Of lists with different lengths the first difference may be the end of the shorter one.
            let at = (a.instructions.iter().zip(&b.instructions))
                .position(|(a, b)| a != b)
                .unwrap_or(a.instructions.len().min(b.instructions.len()));
            format!(
                "SIMD {} slot {} from cycle {}, instruction {at} of {}: {:?} by rpd, {:?} by the library",
                a.simd,
                a.slot,
                a.begin,
                a.instructions.len(),
                a.instructions.get(at),
                b.instructions.get(at)
            )
        };
        lines.push(format!("{differ} waves differ, first: {what}"));
    }
    if ours.occupancy != theirs.occupancy {
        let at = (ours.occupancy.iter().zip(&theirs.occupancy))
            .position(|(a, b)| a != b)
            .unwrap_or(ours.occupancy.len().min(theirs.occupancy.len()));
        lines.push(format!(
            "occupancy: {} changes by rpd, {} by the library, first difference at {at}: {:?} by rpd, {:?} by the library",
            ours.occupancy.len(),
            theirs.occupancy.len(),
            ours.occupancy.get(at),
            theirs.occupancy.get(at)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(duration: i32, end: i64) -> DecodedTrace {
        let pc = Pc {
            address: 0x1000,
            code_object: 3,
        };
        let wave = |slot, duration| Wave {
            simd: 0,
            slot,
            begin: 44,
            end: 208,
            instructions: vec![(1, 64, 4, 0, pc), (6, 172, duration, 8, pc)],
        };
        DecodedTrace {
            waves: vec![wave(0, 12), wave(1, duration)],
            occupancy: vec![(44, 1, 0, 0, true, pc), (end, 1, 0, 0, false, pc)],
        }
    }

    #[test]
    fn compare_names_the_first_difference() {
        assert!(compare(&found(12, 208), &found(12, 208)).is_empty());
        let pc = "Pc { address: 4096, code_object: 3 }";
        assert_eq!(
            compare(&found(12, 208), &found(16, 212)),
            [
                format!(
                    "1 waves differ, first: SIMD 0 slot 1 from cycle 44, instruction 1 of 2: \
                     Some((6, 172, 12, 8, {pc})) by rpd, Some((6, 172, 16, 8, {pc})) by the library"
                ),
                format!(
                    "occupancy: 2 changes by rpd, 2 by the library, first difference at 1: \
                     Some((208, 1, 0, 0, false, {pc})) by rpd, Some((212, 1, 0, 0, false, {pc})) by the library"
                ),
            ]
        );
        let mut fewer = found(12, 208);
        fewer.waves.pop();
        assert_eq!(
            compare(&found(12, 208), &fewer),
            ["waves: 2 by rpd, 1 by the library"]
        );
    }
}
