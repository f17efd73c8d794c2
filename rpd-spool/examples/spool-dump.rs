//! Prints the records of a spool as text: `spool-dump <run or process directory>...`

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rpd_spool::format::{self, api_flag, space, tag};
use rpd_spool::reader::{Counted, ProcessSpool, Record, processes};

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

/// `None` when the record is shorter than its tag demands.
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
    match record.header.tag {
        tag::PROCESS => {
            let (process, tail) = parse!(format::Process);
            write!(out, "PROCESS {process:?}")?;
            for text in Counted(tail).take(3).flatten() {
                write!(out, " {:?}", String::from_utf8_lossy(text))?;
            }
        }
        tag::KIND_NAME | tag::OPERATION_NAME => {
            let (fixed, text) = parse!(format::Name, text_len);
            write!(
                out,
                "NAME space {} kind {} operation {} {text}",
                fixed.space, fixed.kind, fixed.operation as i32
            )?;
            names.insert(
                (fixed.space, fixed.kind, fixed.operation),
                text.into_owned(),
            );
        }
        tag::AGENT => {
            let (fixed, tail) = parse!(format::AgentRecord);
            write!(out, "AGENT {:#x}", fixed.handle)?;
            for (index, part) in Counted(tail).take(8).flatten().enumerate() {
                match index {
                    0..4 => write!(out, " {} bytes", part.len())?,
                    _ => write!(out, " {:?}", String::from_utf8_lossy(part))?,
                }
            }
        }
        tag::CODE_OBJECT => {
            let (fixed, text) = parse!(format::CodeObject, uri_len);
            write!(out, "{fixed:?} {text}")?;
        }
        tag::KERNEL_SYMBOL => {
            let (fixed, text) = parse!(format::KernelSymbol, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        tag::HOST_FUNCTION => {
            let (fixed, text) = parse!(format::HostFunction, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        tag::RESOURCE_NAME => {
            let (fixed, text) = parse!(format::NamedResource, name_len);
            write!(out, "{fixed:?} {text}")?;
        }
        tag::REGION => {
            let (fixed, text) = parse!(format::Region, text_len);
            write!(out, "{fixed:?} {text}")?;
        }
        tag::RUNTIME_INIT => write!(out, "{:?}", parse!(format::RuntimeInit).0)?,
        tag::END => write!(out, "END {:?}", parse!(format::Moment).0)?,
        tag::NOTE => {
            let (_, text) = parse!(format::Moment, text_len);
            write!(out, "NOTE {text}")?;
        }
        tag::STREAM_LIFE => write!(out, "STREAM_LIFE {:?}", parse!(format::Moment).0)?,
        tag::CONTROL => write!(out, "CONTROL {:?}", parse!(format::Moment).0)?,
        tag::API => {
            let (call, tail) = parse!(format::ApiCall);
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
            if call.flags & api_flag::MESSAGE != 0 {
                for text in Counted(tail).take(1).flatten() {
                    write!(out, " message {:?}", String::from_utf8_lossy(text))?;
                }
            } else if call.flags != 0 {
                write!(out, " flags {:#x} {} bytes", call.flags, tail.len())?;
            }
        }
        tag::RANGE_BEGIN => {
            let (fixed, tail) = parse!(format::RangeBegin);
            write!(out, "{fixed:?}")?;
            for text in Counted(tail).take(1).flatten() {
                write!(out, " message {:?}", String::from_utf8_lossy(text))?;
            }
        }
        tag::RANGE_END => write!(out, "{:?}", parse!(format::RangeEnd).0)?,
        tag::DISPATCH => write!(out, "{:?}", parse!(format::Dispatch).0)?,
        tag::COPY => {
            let (copy, _) = parse!(format::Copy);
            write!(
                out,
                "{} {copy:?}",
                operation_of(names, "MEMORY_COPY", copy.operation)
            )?;
        }
        tag::ALLOCATION => {
            let (allocation, _) = parse!(format::Allocation);
            write!(
                out,
                "{} {allocation:?}",
                operation_of(names, "MEMORY_ALLOCATION", allocation.operation)
            )?;
        }
        tag::SCRATCH => {
            let (scratch, _) = parse!(format::Scratch);
            write!(
                out,
                "{} {scratch:?}",
                operation_of(names, "SCRATCH_MEMORY", scratch.operation)
            )?;
        }
        tag::COUNTER => {
            let (counter, tail) = parse!(format::Counter);
            write!(out, "{counter:?}")?;
            for text in Counted(tail).take(1).flatten() {
                write!(out, " {}", String::from_utf8_lossy(text))?;
            }
        }
        tag::COUNTER_INSTANCE => write!(out, "{:?}", parse!(format::CounterInstance).0)?,
        tag::COUNTED => write!(out, "{:?}", parse!(format::Counted).0)?,
        tag::SELECTED => write!(out, "{:?}", parse!(format::Selected).0)?,
        other => write!(out, "tag {other}, {} bytes", record.bytes.len())?,
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
