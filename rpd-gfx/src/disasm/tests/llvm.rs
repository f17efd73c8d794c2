//! Compares the disassembly of random instructions and of all code objects in the tree with that of LLVM.

use super::*;
use crate::disasm::table::Modifiers;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use rpd_tests::skips::{skipped, tool_for};

/// Texts of LLVM for each line of dwords; `None`, with a note that the check is skipped, where LLVM is not installed.
pub(super) fn disassemble(processor: &str, lines: &str) -> Option<Vec<String>> {
    const CHECK: &str = "the disassembler beside LLVM's";
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/data/list-instructions.py");
    let python = tool_for(CHECK, "python3")?;
    let child = Command::new(python)
        .arg(script)
        .args([processor, "--texts"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.unwrap();
    let (mut input, lines) = (child.stdin.take().unwrap(), lines.to_owned());
    // llvm-mc may end before it has read everything.
    let feeder = std::thread::spawn(move || drop(input.write_all(lines.as_bytes())));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("libLLVM") && said.contains("cannot open shared object file") {
        skipped(CHECK, "no libLLVM");
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

/// A random instruction of a row: random values for the bits other than the opcode, most of them as in the sample.
fn random_instruction(generation: Generation, row: &Row, random: &mut Random) -> Vec<u32> {
    let gfx11 = generation == Generation::Gfx11;
    let free: &[u32] = match row.encoding {
        Encoding::Smem if gfx11 => &[0x0000_7fff, 0xfe1f_ffff],
        Encoding::Ds if gfx11 => &[0x0000_ffff, u32::MAX],
        Encoding::Flat | Encoding::Scratch | Encoding::Global if gfx11 => &[0x0000_ffff, u32::MAX],
        Encoding::Mubuf if gfx11 => &[0x0000_7fff, 0xffff_ffff],
        Encoding::Mtbuf if gfx11 => &[0x03f8_7fff, 0xffff_ffff],
        Encoding::Mimg if gfx11 => &[0x0003_ff9d, 0x7fff_ffff],
        Encoding::Vop3p if gfx11 => &[0x0000_ffff, u32::MAX],
        Encoding::Vopdx => &[0x0001_ffff, 0xfffe_0000 | 0xffff],
        Encoding::Vopdy => &[0x0001_ffff, 0xffff_ffff],
        Encoding::Vinterp => &[0x0000_ffff, u32::MAX],
        Encoding::Ldsdir => &[0x000f_ffff],
        Encoding::Exp => &[0x0000_2bff, u32::MAX],
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
        Encoding::Mimg => &[0x0203_ff80, 0x83ff_ffff],
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
            if gfx11 { 233 + random.next() % 2 } else { 255 },
        ];
        let special = special[random.next() as usize % special.len()];
        if random.next().is_multiple_of(2) && !(scalar && matches!(special, 233 | 234 | 249 | 250))
        {
            words[0] = words[0] & !((1 << bits) - 1) << first | special;
        }
    }
    let mut code = words[0] & ((1 << bits) - 1);
    let mut short = short;
    if gfx11 && matches!(row.encoding, Encoding::Vop3 | Encoding::Vop3p) {
        // The long encodings also allow literals and sources from other lanes.
        short = true;
        if random.next().is_multiple_of(2) {
            let special = [255, 250, 233, 234][random.next() as usize % 4];
            words[1] = words[1] & !0x1ff | special;
        }
        code = words[1] & 0x1ff;
        if !row.has(Modifiers::NEG0) && matches!(code, 233 | 234 | 250) {
            // LLVM prints sign modifiers for integers there.
            words[1] &= 0x1fff_ffff;
        }
    }
    if matches!(row.encoding, Encoding::Vopdx | Encoding::Vopdy) && words[0] & 0x1ff == 255 {
        words.truncate(2);
        words.push(random.next());
        return words;
    }
    if !gfx11 && row.encoding == Encoding::Mimg && row.mnemonic.contains("atomic") {
        // LLVM prints elements of four dwords as five.
        words[0] = words[0] & !0xf00 | row.sample[0] & 0xf00;
    }
    if gfx11 && row.encoding == Encoding::Mimg {
        // LLVM prints some invalid combinations as if they were others: status with 16-bit data or atomics, and
        // atomics of other sizes.
        if words[0] >> 17 & 1 != 0
            || row.mnemonic.contains("atomic")
            || row.mnemonic.ends_with("resinfo")
        {
            words[1] &= !(1 << 21);
        }
        if row.mnemonic.contains("atomic") {
            words[0] = words[0] & !0xf00 | row.sample[0] & 0xf00;
        }
        // The samples of a texture cannot be read separately.
        if words[0] >> 2 & 7 >= 6 && row.text.contains("s[8:11]") {
            words[0] &= !0x18;
        }
        if words[0] & 1 != 0 {
            words.push(random.next());
        }
    }
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
    } else if short && gfx11 && matches!(code, 233 | 234) {
        words.push(random.next());
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
        let more = [0x140 + random.next() % 4, 0x150 + random.next() % 32];
        let control = controls
            .iter()
            .chain(&more)
            .nth(random.next() as usize % 10)
            .unwrap();
        // LLVM prints sign modifiers for halves of registers there.
        let signs = if row.text.contains(".l") {
            !0x30_0000
        } else {
            u32::MAX
        };
        words.push(random.next() & signs & 0xfff8_00ff | control << 8);
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

pub(super) fn line(words: &[u32]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("{word:08x}")).collect();
    words.join(" ")
}

/// Whether the text is an image instruction with a list of one register, for which LLVM prints a longer list.
fn is_list_of_one(text: &str) -> bool {
    let list = text
        .split_once(" [")
        .and_then(|(_, rest)| rest.split_once(']'));
    text.starts_with("image_") && list.is_some_and(|(list, _)| !list.contains(','))
}

#[test]
fn random_instructions_are_disassembled_as_llvm_does() {
    for processor in table::PROCESSORS {
        let disassembler = Disassembler::new(processor.name).unwrap();
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut samples = Vec::new();
        for row in processor.rows {
            samples.extend((0..100).map(|_| {
                (
                    row,
                    random_instruction(processor.generation(), row, &mut random),
                )
            }));
        }
        let mut lines = String::new();
        samples
            .iter()
            .for_each(|(_, words)| writeln!(lines, "{}", line(words)).unwrap());
        let Some(texts) = disassemble(processor.name, &lines) else {
            return;
        };
        assert_eq!(texts.len(), samples.len());
        // One difference for each instruction.
        let mut wrong = std::collections::BTreeMap::new();
        let mut compared = std::collections::BTreeMap::new();
        for ((row, words), text) in samples.iter().zip(&texts) {
            let found = disassembler.instruction(&bytes(words), 0);
            let count = compared.entry((row.encoding, row.opcode)).or_insert(0);
            // LLVM marks invalid registers with a comment.
            if text.is_empty() || text.contains("/*") || is_list_of_one(&found.text) {
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
