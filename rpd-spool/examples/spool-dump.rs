//! Prints the records of a spool as text: `spool-dump <run or process directory>...`

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rpd_spool::format::{self, call_flag, space};
use rpd_spool::reader::{ByteStrings, ProcessSpool, Record, processes, split_stack};
use rpd_spool::record::RecordKind;

type Names = HashMap<(u32, u32, u32), String>;

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for argument in std::env::args_os().skip(1) {
        let path = PathBuf::from(argument);
        let mut directories = processes(&path)?;
        if directories.is_empty() {
            directories.push(path);
        }
        for directory in directories {
            dump(&mut out, &directory)?;
        }
    }
    out.flush()
}

fn dump(out: &mut impl Write, directory: &Path) -> io::Result<()> {
    let spool = ProcessSpool::open(directory)?;
    let mut names = Names::new();
    writeln!(out, "process {}", directory.display())?;
    for stream in &spool.streams {
        writeln!(
            out,
            " stream {} kind {} id {} tid {}",
            stream.name, stream.kind, stream.id, stream.tid
        )?;
        let mut records = stream.records();
        while let Some(record) = records.next() {
            write!(out, "  ")?;
            if print(out, &record, &mut names)?.is_none() {
                write!(out, "short record, tag {}", record.header.tag)?;
            }
            writeln!(out)?;
        }
        writeln!(
            out,
            "  {} bytes, {} dropped",
            records.bytes(),
            records.dropped()
        )?;
        for damage in records.damage() {
            writeln!(out, "  damage: {damage}")?;
        }
    }
    Ok(())
}

fn name(names: &Names, space: u32, kind: u32, operation: u32) -> &str {
    names
        .get(&(space, kind, operation))
        .map_or("?", String::as_str)
}

/// Prints a record as one line without its end. `None` when the record is shorter than its tag demands.
fn print(out: &mut impl Write, record: &Record<'_>, names: &mut Names) -> io::Result<Option<()>> {
    macro_rules! parse {
        ($type:ty) => {
            match record.parse::<$type>() {
                Some(parsed) => parsed,
                None => return Ok(None),
            }
        };
        ($type:ty, $len:ident) => {
            match record.parse_text::<$type>(|fixed| fixed.$len) {
                Some(parsed) => parsed,
                None => return Ok(None),
            }
        };
    }
    let aux = record.header.aux;
    let tag = record.header.tag;
    // Numbers of unknown tags are printed, so that a spool of a newer collector can still be looked into.
    let Some(kind) = RecordKind::from_tag(tag) else {
        write!(out, "tag {tag}, {} bytes", record.bytes.len())?;
        return Ok(Some(()));
    };
    match kind {
        // The arms are in the order of tags. A struct whose fields say all is printed by `Debug`; names stand in place
        // of numbers.
        RecordKind::Process => {
            let (process, tail) = parse!(format::Process);
            write!(out, "PROCESS {process:?}")?;
            for text in ByteStrings(tail).take(3).flatten() {
                write!(out, " {:?}", String::from_utf8_lossy(text))?;
            }
        }
        RecordKind::KindName | RecordKind::OperationName => {
            let (fixed, text) = parse!(format::Name, text_len);
            let (space, kind, first) = (fixed.space, fixed.kind, fixed.operation);
            write!(
                out,
                "NAME space {space} kind {kind} operation {}",
                first as i32
            )?;
            for (operation, name) in (first..=u32::MAX).zip(text.split('\0')) {
                write!(out, " {name}")?;
                names.insert((space, kind, operation), name.to_owned());
            }
        }
        // One record names consecutive operations. Later records hold numbers only, so names are kept.
        RecordKind::Agent => {
            let (fixed, tail) = parse!(format::AgentRecord);
            write!(out, "AGENT {:#x}", fixed.handle)?;
            for (index, part) in ByteStrings(tail).take(8).flatten().enumerate() {
                match index {
                    0..4 => write!(out, " {} bytes", part.len())?,
                    _ => write!(out, " {:?}", String::from_utf8_lossy(part))?,
                }
            }
        }
        RecordKind::CodeObject => {
            let (fixed, text) = parse!(format::CodeObject, uri_len);
            write!(out, "{fixed:?} {text}")?;
        }
        RecordKind::KernelSymbol => {
            let (fixed, text) = parse!(format::KernelSymbol, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        RecordKind::HostFunction => {
            let (fixed, text) = parse!(format::HostFunction, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        RecordKind::ResourceName => {
            let (fixed, text) = parse!(format::NamedResource, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        RecordKind::Region => {
            let (fixed, text) = parse!(format::Region, text_len);
            write!(out, "{fixed:?} {text}")?;
        }
        RecordKind::RuntimeInit => write!(out, "{:?}", parse!(format::RuntimeInit).0)?,
        RecordKind::End => write!(out, "END {:?}", parse!(format::TimedText).0)?,
        RecordKind::Note => {
            let (_, text) = parse!(format::TimedText, text_len);
            write!(out, "NOTE {text}")?;
        }
        RecordKind::ProcessTotals => write!(out, "{:?}", parse!(format::ProcessTotals).0)?,
        RecordKind::StackModule => {
            let (fixed, path) = parse!(format::StackModule, path_len);
            write!(out, "{fixed:?} {path}")?;
        }
        RecordKind::StackCode => {
            let (fixed, file) = parse!(format::StackCode, file_len);
            write!(out, "{fixed:?} {file}")?;
        }
        RecordKind::StackLocation => {
            write!(out, "kind {aux} {:?}", parse!(format::StackLocation).0)?;
        }
        RecordKind::StackNode => write!(out, "{:?}", parse!(format::StackNode).0)?,
        RecordKind::StackObject => {
            write!(out, "type {aux} {:?}", parse!(format::StackObject).0)?;
        }
        RecordKind::StackSource => {
            let (fixed, file) = parse!(format::StackSource, file_len);
            write!(out, "{fixed:?} {file}")?;
        }
        RecordKind::Call => {
            // A call that has not returned has the end 0, and a negative duration: that is printed as it is, to be
            // seen.
            let (call, tail) = parse!(format::CallRecord);
            let (stack, tail) = split_stack(call.flags, tail);
            write!(
                out,
                "API {}.{} correlation {} ancestor {} start {} duration {} retval {:#x}",
                name(names, space::CALLBACK, aux.into(), u32::MAX),
                name(names, space::CALLBACK, aux.into(), call.operation),
                call.correlation,
                call.ancestor,
                call.start,
                call.end as i64 - call.start as i64,
                call.retval,
            )?;
            if call.flags & call_flag::MESSAGE != 0 {
                for text in ByteStrings(tail).take(1).flatten() {
                    write!(out, " message {:?}", String::from_utf8_lossy(text))?;
                }
            } else if call.flags != 0 {
                write!(out, " flags {:#x} {} bytes", call.flags, tail.len())?;
            }
            if call.flags & call_flag::STACK != 0 {
                write!(out, " {stack:?}")?;
            }
        }
        RecordKind::RangeBegin => {
            let (fixed, tail) = parse!(format::RangeBegin);
            let (stack, tail) = split_stack(fixed.flags, tail);
            write!(out, "{fixed:?} {stack:?}")?;
            for text in ByteStrings(tail).take(1).flatten() {
                write!(out, " message {:?}", String::from_utf8_lossy(text))?;
            }
        }
        RecordKind::RangeEnd => write!(out, "{:?}", parse!(format::RangeEnd).0)?,
        RecordKind::Dispatch => write!(out, "{:?}", parse!(format::Dispatch).0)?,
        RecordKind::Copy => {
            let (copy, _) = parse!(format::Copy);
            write!(
                out,
                "{} {copy:?}",
                operation_of(names, "MEMORY_COPY", copy.operation)
            )?;
        }
        RecordKind::Allocation => {
            let (allocation, _) = parse!(format::Allocation);
            write!(
                out,
                "{} {allocation:?}",
                operation_of(names, "MEMORY_ALLOCATION", allocation.operation)
            )?;
        }
        RecordKind::Scratch => {
            let (scratch, _) = parse!(format::Scratch);
            write!(
                out,
                "{} {scratch:?}",
                operation_of(names, "SCRATCH_MEMORY", scratch.operation)
            )?;
        }
        RecordKind::Counter => {
            let (counter, tail) = parse!(format::Counter);
            write!(out, "{counter:?}")?;
            for text in ByteStrings(tail).take(1).flatten() {
                write!(out, " {}", String::from_utf8_lossy(text))?;
            }
        }
        RecordKind::CounterInstance => write!(out, "{:?}", parse!(format::CounterInstance).0)?,
        RecordKind::Counted => write!(out, "{:?}", parse!(format::CountedDispatch).0)?,
        RecordKind::Selected => write!(out, "{:?}", parse!(format::Selected).0)?,
        RecordKind::PcSampling => write!(out, "{:?}", parse!(format::PcSampling).0)?,
        RecordKind::ThreadTracing => write!(out, "{:?}", parse!(format::ThreadTracing).0)?,
        RecordKind::TracedDispatch => write!(out, "{:?}", parse!(format::TracedDispatch).0)?,
        RecordKind::TracePart => write!(out, "{:?}", parse!(format::TracePart).0)?,
        RecordKind::CodeBytes => write!(out, "{:?}", parse!(format::CodeBytes).0)?,
        RecordKind::CodeContent => write!(out, "{:?}", parse!(format::CodeContent).0)?,
        RecordKind::GraphLaunch => write!(out, "{:?}", parse!(format::GraphLaunch).0)?,
        RecordKind::HipEvent => {
            write!(
                out,
                "{} {:?}",
                record.header.aux,
                parse!(format::HipEvent).0
            )?;
        }
        RecordKind::KfdEvent => {
            write!(
                out,
                "{} {:?}",
                record.header.aux,
                parse!(format::KfdEvent).0
            )?;
        }
        RecordKind::PcCount => write!(out, "{:?}", parse!(format::PcCount).0)?,
        RecordKind::CapturedNode => write!(out, "{:?}", parse!(format::CapturedNode).0)?,
        RecordKind::PcSample => write!(out, "{:?}", parse!(format::PcSample).0)?,
        RecordKind::RemovedTotal => write!(out, "{:?}", parse!(format::RemovedTotal).0)?,
        RecordKind::DeviceTotal => {
            let (total, _) = parse!(format::DeviceTotal);
            write!(
                out,
                "device total of {} {}: {} in {} ns, {} to {} ns, {} bytes",
                record.header.aux,
                total.subject,
                total.count,
                total.total,
                total.min,
                total.max,
                total.bytes
            )?;
        }
        RecordKind::CaptureCall => write!(out, "{:?}", parse!(format::CaptureCall).0)?,
        RecordKind::CaptureCode => write!(out, "{:?}", parse!(format::CaptureCode).0)?,
        RecordKind::CaptureMarker => write!(out, "{:?}", parse!(format::CaptureMarker).0)?,
    }
    Ok(Some(()))
}

fn operation_of<'a>(names: &'a Names, kind: &str, operation: u32) -> &'a str {
    names
        .iter()
        .find(|((found, _, operation), text)| {
            *found == space::CALLBACK && *operation == u32::MAX && *text == kind
        })
        .map_or("?", |((_, number, _), _)| {
            name(names, space::CALLBACK, *number, operation)
        })
}
