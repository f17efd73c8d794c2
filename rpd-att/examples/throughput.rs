//! Measures how fast thread traces are decoded: `throughput [MEGABYTES [STREAM]]`, where STREAM is the name of one of the streams.
//!
//! The stream is made while it is read, by repeating a part in which waves execute a loop: it needs no memory of its own.

use std::io::{self, Read};
use std::time::Instant;

use rpd_att::{Code, CodeObjects, Listing, NoCode, Pc, Record, decode};
use rpd_gfx::disasm::Instruction;

/// A stream of a header and register writes, followed by a part that is repeated.
struct Repeated {
    head: Vec<u8>,
    part: Vec<u8>,
    at: usize,
    in_head: bool,
    left: u64,
}

impl Read for Repeated {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() && self.left > 0 {
            let from = if self.in_head { &self.head } else { &self.part };
            let count = (from.len() - self.at)
                .min(into.len() - done)
                .min(self.left as usize);
            into[done..done + count].copy_from_slice(&from[self.at..self.at + count]);
            self.at += count;
            done += count;
            self.left -= count as u64;
            if self.at == from.len() {
                self.at = 0;
                self.in_head = false;
            }
        }
        Ok(done)
    }
}

fn gfx9(bytes: u64) -> Repeated {
    let mut head = (0x11u64 | 5 << 13 | 0xF << 16 | 1 << 20)
        .to_le_bytes()
        .to_vec();
    let mut write = |data: u64| head.extend((2u64 | 0xC342 << 16 | data << 32).to_le_bytes());
    write(0x434F_5200);
    for (kind, data) in [
        (2u64, 0u64),
        (3, 0x7F00),
        (1, 0x10000),
        (4, 0),
        (0, 3 << 2 | 2),
    ] {
        write(4 | kind << 8);
        write(data);
    }
    for (register, data) in [(0x0Cu64, 0x10u64), (0x0D, 0x7F)] {
        head.extend(&(15u64 | register << 9 | data << 16).to_le_bytes()[..6]);
    }
    let mut part = Vec::new();
    let mut put = |word: u64, bytes: usize| part.extend(&word.to_le_bytes()[..bytes]);
    let waves = 8u64;
    for slot in 0..waves {
        put(3 | 1 << 4 | 1 << 6 | slot << 10 | 1 << 18, 4);
    }
    for round in 0..100u64 {
        // The loop: scalar read, wait, two vector operations, a branch back.
        for (state, kind) in [
            (2u64, 0u64),
            (3, 0),
            (2, 5),
            (2, 5),
            (2, if round < 99 { 12 } else { 13 }),
        ] {
            for slot in 0..waves {
                put(13 | 1 << 4 | state << (8 + 2 * slot), 4);
                if state == 2 {
                    put(10 | 1 << 4 | slot << 5 | kind << 11, 2);
                }
            }
        }
    }
    for slot in 0..waves {
        put(6 | 1 << 4 | 1 << 6 | slot << 10, 2);
    }
    Repeated {
        head,
        part,
        at: 0,
        in_head: true,
        left: bytes,
    }
}

fn gfx11(bytes: u64) -> Repeated {
    let mut head = (0x11u64 | 3 << 7 | 1 << 15).to_le_bytes().to_vec();
    let mut write = |cs: u64, register: u64, data: u64| {
        head.extend((9u64 | cs << 15 | register << 16 | data << 32).to_le_bytes());
    };
    write(0, 0xC342, 0x434F_5200);
    for (kind, data) in [
        (2u64, 0u64),
        (3, 0x7F00),
        (1, 0x10000),
        (4, 0),
        (0, 3 << 2 | 2),
    ] {
        write(0, 0xC342, 4 | kind << 8);
        write(0, 0xC342, data);
    }
    write(1, 0x0C, 0x10);
    write(1, 0x0D, 0x7F);
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |word: u64, count: u32| bits.extend((0..count).map(|at| word >> at & 1 == 1));
    let waves = 8u64;
    for slot in 0..waves {
        put(0b0_1100 | 1 << 5 | 1 << 10 | slot << 13, 32);
    }
    for round in 0..100u64 {
        for slot in 0..waves {
            put(0b010 | 1 << 4 | slot << 8 | 1 << 13, 20);
            put(0b1101 | 1 << 4 | slot << 7, 12);
            put(0b011 | 1 << 3 | slot << 7, 12);
            put(0b011 | 1 << 3 | slot << 7, 12);
            let branch = if round < 99 { 3 } else { 4 };
            put(0b010 | 1 << 4 | slot << 8 | branch << 13, 20);
        }
    }
    for slot in 0..waves {
        put(0b1_0101 | 1 << 5 | 1 << 11 | slot << 15, 20);
    }
    // Whole bytes, so that the part can be repeated.
    put(0, 4 * (waves as u32 % 2));
    let part = bits
        .chunks(8)
        .map(|bits| {
            bits.iter()
                .rev()
                .fold(0, |byte, bit| byte << 1 | u8::from(*bit))
        })
        .collect();
    Repeated {
        head,
        part,
        at: 0,
        in_head: true,
        left: bytes,
    }
}

/// Code of the loop that the waves of the stream execute.
struct Loop;

impl Code for Loop {
    fn instruction(&mut self, pc: Pc) -> Option<Instruction> {
        let (text, bytes) = match pc.address {
            0x1000 => ("s_load_dword s0, s[0:1], 0x0", 8),
            0x1008 => ("s_waitcnt lgkmcnt(0)", 4),
            0x100c => ("v_add_u32_e32 v0, v0, v1", 4),
            0x1010 => ("v_add_u32_e32 v1, v0, v1", 4),
            0x1014 => ("s_cbranch_scc1 65530", 4),
            0x1018 => ("s_endpgm", 4),
            _ => return None,
        };
        Some(Instruction::from_text(text, bytes, pc.address))
    }
}

/// Processor time of this thread in seconds, which other programs on the machine do not affect.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanoseconds.unwrap_or(0.0) / 1e9
}

fn measure(name: &str, stream: Repeated, bytes: u64, code: &mut dyn Code) {
    let mut listing = Listing::default();
    let objects = CodeObjects::default();
    let (mut waves, mut instructions, mut matched) = (0u64, 0u64, 0u64);
    let (begin, wall) = (processor_seconds(), Instant::now());
    let mut sink = |record: Record<'_>| {
        if let Record::Wave(wave) = record {
            waves += 1;
            instructions += wave.instructions.len() as u64;
            matched += u64::from(wave.instructions.last().is_some_and(|i| i.pc.is_known()));
            listing.add(&wave, &objects);
        }
    };
    let diagnosis = decode(stream, code, &mut sink).expect("a thread trace");
    let seconds = match processor_seconds() - begin {
        seconds if seconds > 0.0 => seconds,
        _ => wall.elapsed().as_secs_f64(),
    };
    assert!(waves > 0 && diagnosis.invalid == 0, "{diagnosis:?}");
    let megabytes = bytes as f64 / 1e6;
    println!(
        "{name}: {:.0} MB/s, {:.1} M instructions/s, {matched} of {waves} waves matched, {:.0} MiB",
        megabytes / seconds,
        instructions as f64 / seconds / 1e6,
        rpd_tests::memory::peak() as f64 / 1024.0
    );
}

fn main() {
    let megabytes: u64 = std::env::args()
        .nth(1)
        .map_or(200, |word| word.parse().expect("a number of megabytes"));
    let bytes = megabytes * 1_000_000;
    let only = std::env::args().nth(2);
    let measure = |name: &str, stream: fn(u64) -> Repeated, code: &mut dyn Code| {
        if only.as_deref().is_none_or(|only| only == name) {
            measure(name, stream(bytes), bytes, code);
        }
    };
    measure("gfx9", gfx9, &mut NoCode);
    measure("gfx9 stitched", gfx9, &mut Loop);
    measure("gfx11", gfx11, &mut NoCode);
    measure("gfx11 stitched", gfx11, &mut Loop);
}
