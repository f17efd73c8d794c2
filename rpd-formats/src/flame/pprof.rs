//! The protocol buffer of pprof, compressed by gzip as the format demands:
//! <https://github.com/google/pprof/blob/main/proto/profile.proto>. Samples have a value for each kind of weight.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{Frame, Profile, Unit};
use crate::perfetto::protobuf::{nested, text, uint};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Numbers of the fields of the message Profile, and of the messages in it.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;

    pub(super) mod value_type {
        pub(in super::super) const TYPE: u32 = 1;
        pub(in super::super) const UNIT: u32 = 2;
    }

    pub(super) mod sample {
        pub(in super::super) const LOCATION: u32 = 1;
        pub(in super::super) const VALUE: u32 = 2;
    }

    pub(super) mod location {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const LINE: u32 = 4;
    }

    pub(super) mod line {
        pub(in super::super) const FUNCTION: u32 = 1;
        pub(in super::super) const LINE: u32 = 2;
    }

    pub(super) mod function {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const SYSTEM_NAME: u32 = 3;
        pub(in super::super) const FILE: u32 = 4;
    }
}

/// Numbers of texts; 0 is the empty one.
struct Strings<'a> {
    numbers: HashMap<&'a str, u64>,
    all: Vec<&'a str>,
}

impl<'a> Strings<'a> {
    fn number(&mut self, text: &'a str) -> u64 {
        let all = &mut self.all;
        *self.numbers.entry(text).or_insert_with(|| {
            all.push(text);
            all.len() as u64 - 1
        })
    }
}

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let ordered = profile.ordered();
    let mut strings = Strings {
        numbers: HashMap::from([("", 0)]),
        all: vec![""],
    };
    let mut buffer = Vec::new();
    let kinds = profile.kinds_in_use(None);
    for (_, weight) in &kinds {
        let unit = match weight.unit {
            Unit::Count => "count",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
        };
        let (kind, unit) = (strings.number(&weight.name), strings.number(unit));
        nested(&mut buffer, field::SAMPLE_TYPE, |out| {
            uint(out, field::value_type::TYPE, kind);
            uint(out, field::value_type::UNIT, unit);
        });
    }
    if let [(_, first), _, ..] = &kinds[..] {
        // Without it readers show the last.
        let first = strings.number(&first.name);
        uint(&mut buffer, field::DEFAULT_SAMPLE_TYPE, first);
    }
    let mut locations: HashMap<&Frame, u64> = HashMap::new();
    let mut functions: HashMap<(&str, &str), u64> = HashMap::new();
    // Functions and locations are found while samples are written, and follow them: the order of fields is free.
    let mut definitions = Vec::new();
    for (stack, weights) in &ordered {
        // Innermost first, and every number by itself: old readers cannot read packed fields.
        let numbers: Vec<u64> = stack
            .iter()
            .rev()
            .map(|&frame| {
                if let Some(&known) = locations.get(frame) {
                    return known;
                }
                let id = locations.len() as u64 + 1;
                locations.insert(frame, id);
                let next = functions.len() as u64 + 1;
                let function = *functions
                    .entry((&frame.name, &frame.file))
                    .or_insert_with(|| {
                        let (name, file) =
                            (strings.number(&frame.name), strings.number(&frame.file));
                        nested(&mut definitions, field::FUNCTION, |out| {
                            uint(out, field::function::ID, next);
                            uint(out, field::function::NAME, name);
                            uint(out, field::function::SYSTEM_NAME, name);
                            uint(out, field::function::FILE, file);
                        });
                        next
                    });
                nested(&mut definitions, field::LOCATION, |out| {
                    uint(out, field::location::ID, id);
                    nested(out, field::location::LINE, |out| {
                        uint(out, field::line::FUNCTION, function);
                        uint(out, field::line::LINE, frame.line.into());
                    });
                });
                id
            })
            .collect();
        nested(&mut buffer, field::SAMPLE, |out| {
            for number in numbers {
                uint(out, field::sample::LOCATION, number);
            }
            for (kind, _) in &kinds {
                uint(out, field::sample::VALUE, weights[*kind]);
            }
        });
    }
    buffer.append(&mut definitions);
    for string in &strings.all {
        text(&mut buffer, field::STRING_TABLE, string);
    }
    let mut compressed = GzEncoder::new(out, Compression::default());
    compressed.write_all(&buffer)?;
    compressed.finish()?;
    Ok(())
}
