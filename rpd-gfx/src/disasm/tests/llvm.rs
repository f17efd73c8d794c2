//! Round trip: what LLVM prints for random instructions and for all code objects in the tree.

use super::*;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// What LLVM prints for each line of dwords; `None` where it is not installed.
pub(super) fn ask(processor: &str, lines: &str) -> Option<Vec<String>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/data/list-instructions.py");
    let child = Command::new(script)
        .args([processor, "--texts"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            println!("skipped: {script} cannot be started: {error}");
            return None;
        }
    };
    let (mut input, lines) = (child.stdin.take().unwrap(), lines.to_owned());
    // It may end before it has read everything.
    let feeder = std::thread::spawn(move || drop(input.write_all(lines.as_bytes())));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("libLLVM") && said.contains("cannot open shared object file") {
        println!("skipped: LLVM's disassembler is not installed");
        return None;
    }
    assert!(
        output.status.success(),
        "{script}: {}: {said}",
        output.status
    );
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as u32
    }
}

/// A random instruction of a row: the bits that are not its opcode, most of them as in the sample.
fn random_instruction(row: &Row, random: &mut Random) -> Vec<u32> {
    let free: &[u32] = match row.encoding {
        Encoding::Sop1 => &[0x007f_00ff],
        Encoding::Sop2 => &[0x007f_ffff],
        Encoding::Sopk => &[0x007f_ffff],
        Encoding::Sopc => &[0x0000_ffff],
        Encoding::Sopp => &[0x0000_ffff],
        Encoding::Smem => &[0x0003_7fff, 0xfe1f_ffff],
        Encoding::Vop1 => &[0x01fe_01ff],
        Encoding::Vop2 => &[0x01ff_ffff],
        Encoding::Vopc => &[0x0001_ffff],
        Encoding::Vop3 => &[0x0000_ffff, u32::MAX],
        Encoding::Vop3p => &[0x0000_ffff, u32::MAX],
        Encoding::Ds => &[0x0201_ffff, u32::MAX],
        Encoding::Flat | Encoding::Scratch | Encoding::Global => &[0x0203_3fff, u32::MAX],
        Encoding::Mubuf => &[0x0003_ffff, 0xff9f_ffff],
        Encoding::Mtbuf => &[0x03f8_7fff, 0xff9f_ffff],
        Encoding::Mimg => &[0x0200_ff00, 0x03ff_ffff],
    };
    let mut words: Vec<u32> = row.sample[..row.dwords() as usize].to_vec();
    // Few bits change in most of them, so that most are valid.
    let few = !random.next().is_multiple_of(4);
    for (word, free) in words.iter_mut().zip(free) {
        let mask = if few {
            random.next() & random.next() & random.next()
        } else {
            random.next()
        };
        *word = *word & !(free & mask) | random.next() & free & mask;
    }
    let short = matches!(
        row.encoding,
        Encoding::Vop1 | Encoding::Vop2 | Encoding::Vopc
    );
    let scalar = matches!(
        row.encoding,
        Encoding::Sop1 | Encoding::Sop2 | Encoding::Sopc
    );
    let (first, bits) = if short { (0, 9) } else { (0, 8) };
    if short || scalar {
        // Constants, literals and control dwords are as frequent as registers.
        let special = [
            255,
            249,
            250,
            128 + random.next() % 121,
            random.next() % 128,
        ];
        let special = special[random.next() as usize % special.len()];
        if random.next().is_multiple_of(2) && !(scalar && matches!(special, 249 | 250)) {
            words[0] = words[0] & !((1 << bits) - 1) << first | special;
        }
    }
    let code = words[0] & ((1 << bits) - 1);
    let second = words[0] >> 8 & 0xff;
    if short && code == 249 {
        let part = |random: &mut Random| random.next() % 7;
        let control = random.next() & 0xb8b8_e0ff & !0x1000
            | part(random) << 8
            | (random.next() % 3) << 11
            | part(random) << 16
            | part(random) << 24;
        let control = if row.encoding == Encoding::Vop1 {
            control & 0x00ff_ffff
        } else {
            control
        };
        words.push(if row.encoding == Encoding::Vopc {
            control & 0xffff_00ff | random.next() & 0xff00
        } else {
            control
        });
    } else if short && code == 250 {
        let controls = [
            random.next() % 256,
            0x101 + random.next() % 15,
            0x111,
            0x12f,
            0x130,
            0x134,
            0x138,
            0x13c,
        ];
        let more = [0x140 + random.next() % 4, 0x150 + random.next() % 16];
        let control = controls
            .iter()
            .chain(&more)
            .nth(random.next() as usize % 10)
            .unwrap();
        words.push(random.next() & 0xfff8_00ff | control << 8);
    } else if row.sample.len() > words.len()
        || short && code == 255
        || scalar && (code == 255 || row.encoding != Encoding::Sop1 && second == 255)
    {
        let literals = [
            random.next(),
            random.next() % 80,
            random.next() | 0xffff_fff0,
            0x3f80_0000,
            0x3e22_f983,
            0x3118,
            0xbc00,
        ];
        words.push(literals[random.next() as usize % literals.len()]);
    }
    words
}

fn line(words: &[u32]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("{word:08x}")).collect();
    words.join(" ")
}

#[test]
fn random_instructions_are_printed_as_llvm_prints_them() {
    for processor in table::PROCESSORS {
        let disassembler = Disassembler::new(processor.name).unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut samples = Vec::new();
        for row in processor.rows {
            samples.extend((0..100).map(|_| (row, random_instruction(row, &mut random))));
        }
        let mut lines = String::new();
        samples
            .iter()
            .for_each(|(_, words)| writeln!(lines, "{}", line(words)).unwrap());
        let Some(texts) = ask(processor.name, &lines) else {
            return;
        };
        assert_eq!(texts.len(), samples.len());
        // One difference of each instruction.
        let mut wrong = std::collections::BTreeMap::new();
        let mut compared = std::collections::BTreeMap::new();
        for ((row, words), text) in samples.iter().zip(&texts) {
            let found = disassembler.instruction(&bytes(words), 0);
            let count = compared.entry((row.encoding, row.opcode)).or_insert(0);
            // What LLVM doubts is invalid: registers that cannot be there.
            if text.is_empty() || text.contains("/*") {
                continue;
            }
            *count += 1;
            if found.text != *text || found.bytes as usize != 4 * words.len() {
                let what = format!(
                    "{} {}: {} ({text})",
                    row.encoding.name(),
                    line(words),
                    found.text
                );
                wrong.insert((row.encoding, row.opcode), what);
            }
        }
        let never: Vec<_> = compared.iter().filter(|(_, count)| **count == 0).collect();
        let total: i32 = compared.values().sum();
        println!(
            "{}: {total} of {} compared, {} differ",
            processor.name,
            samples.len(),
            wrong.len()
        );
        let wrong: Vec<_> = wrong.into_values().collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(never.is_empty(), "{never:?}");
    }
}
