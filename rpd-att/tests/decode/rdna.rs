//! Streams of GFX10, GFX11 and GFX12.

use rpd_att::{Category, EventKind, Info, OtherSimd, Pc, RdnaKind, Token, tokens};

use crate::collect::{Listing, all, all_with, short_code};
use crate::encoder::{BASE, Random, Rdna};

fn with_code(version: u64) -> Rdna {
    let mut stream = Rdna::new(version);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000)
        .kernel(BASE + 0x1000);
    stream
}

/// Form of a token: type, pattern, bits of the pattern, bits of the token, first bit of the time, bits of the time.
type Form = (RdnaKind, u64, u32, u32, u32, u32);

fn forms(version: u64) -> Vec<Form> {
    let (eleven, twelve) = (version >= 3, version >= 4);
    let pick = |is: bool, then: u32, other: u32| if is { then } else { other };
    let mut forms = vec![
        (RdnaKind::Inst, 0b010, 3, 20, pick(twelve, 3, 4), 3),
        (RdnaKind::ValuInst, 0b011, 3, 12, 3, 3),
        (RdnaKind::ImmOne, 0b1101, 4, 12, 4, 3),
        (RdnaKind::Immediate, 0b00100, 5, 24, 5, 3),
        (RdnaKind::NewPc, 0b0100001, 7, pick(twelve, 72, 64), 8, 3),
        (RdnaKind::WaveStart, 0b01100, 5, 32, 5, 2),
        (RdnaKind::WaveAlloc, 0b00101, 5, pick(twelve, 24, 20), 5, 3),
        (RdnaKind::WaveEnd, 0b10101, 5, 20, 5, 3),
        (
            RdnaKind::UtilCounter,
            0b0110001,
            7,
            pick(eleven, 48, 64),
            7,
            2,
        ),
        (RdnaKind::Misc, 0b1010001, 7, 24, 7, 9),
        (RdnaKind::Event, 0b01100001, 8, 24, 8, 3),
        (RdnaKind::EventSync, 0b11100001, 8, 32, 8, 3),
        (RdnaKind::Register, 0b1001, 4, 64, 4, 3),
        (RdnaKind::RegisterInit, 0b1110001, 7, 64, 7, 3),
        (RdnaKind::VmemExec, 0b1111, 4, 8, 4, 2),
        (RdnaKind::AluExec, 0b1110, 4, 8, 4, 2),
    ];
    if twelve {
        forms.extend([
            (RdnaKind::ShaderData, 0b0000110, 7, 56, 7, 3),
            (RdnaKind::ShaderDataShort, 0b1000110, 7, 32, 7, 3),
            (RdnaKind::ExecPopcount1, 0b1100110, 7, 24, 7, 3),
            (RdnaKind::ExecPopcount3, 0b010110, 6, 48, 6, 3),
        ]);
    } else {
        forms.extend([
            (RdnaKind::ShaderData, 0b00110, 5, 52, 5, 3),
            (RdnaKind::ShaderDataShort, 0b10110, 5, 28, 5, 3),
            (RdnaKind::WaveStartExt, 0b11100, 5, 48, 5, 2),
        ]);
    }
    forms
}

/// Checks thread-trace-28.
#[test]
fn random_rdna_sequences_decode_to_themselves() {
    for version in 1..=4 {
        let forms = forms(version);
        let mut random = Random::new(28 + version);
        for sequence in 0..10_000 {
            let mut stream = Rdna::new(version);
            let mut expected = vec![(0, 0, RdnaKind::Header, 0)];
            let mut time = 0i64;
            for _ in 0..1 + random.below(40) {
                match random.below(12) {
                    0 => {
                        let cycles = random.below(16);
                        time += cycles as i64 + 4;
                        stream.raw(0b1000 | cycles << 4, 8);
                        continue;
                    }
                    1 => {
                        stream.raw(0, 4);
                        continue;
                    }
                    2 => {
                        let cycles = random.below(1 << 30);
                        time += cycles as i64;
                        // A token that advances the time; GFX10 has it as type 1 of its time tokens.
                        match version {
                            1 | 2 => stream.raw(0b1 | 1 << 14 | cycles << 16, 64),
                            3 => stream.raw(0b1 | cycles << 12, 48),
                            _ => stream.raw(0b1 | cycles << 12, 64),
                        };
                        continue;
                    }
                    _ => {}
                }
                let (kind, pattern, plen, bits, from, count) =
                    forms[random.below(forms.len() as u64) as usize];
                let mut word = random.next();
                word &= !0 << plen;
                word |= pattern;
                if bits < 64 {
                    word &= (1 << bits) - 1;
                }
                time += (word >> from & ((1 << count) - 1)) as i64;
                let offset = (stream.at() / 8) as u64;
                if bits == 72 {
                    let top = random.next() & 0xFF;
                    stream.raw(word, 64).raw(top, 8);
                    expected.push((time, offset, kind, word >> 8 | top << 56));
                } else {
                    stream.raw(word, bits as usize);
                    expected.push((time, offset, kind, word));
                }
            }
            let mut got = Vec::new();
            tokens(&stream.bytes()[..], &mut |time, offset, token| {
                let Token::Rdna { kind, word } = token else {
                    panic!("{token:?}")
                };
                got.push((time, offset, kind, word));
            })
            .expect("a header");
            assert_eq!(
                got.len(),
                expected.len(),
                "version {version}, sequence {sequence}"
            );
            let length = |kind| {
                let of = forms.iter().find(|form| form.0 == kind);
                of.map_or(0, |form| form.3.min(64))
            };
            for (got, expected) in got.iter().zip(&expected) {
                assert_eq!((got.0, got.1, got.2), (expected.0, expected.1, expected.2));
                // Bits after a token are the next one's.
                let bits = length(got.2);
                if bits > 0 {
                    let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
                    assert_eq!(got.3 & mask, expected.3 & mask, "{:?}", got.2);
                }
            }
            all(&stream.bytes());
        }
    }
}

/// Checks thread-trace-29.
#[test]
fn a_cut_off_rdna_token_ends_the_decoding() {
    for version in 2..=4 {
        let mut stream = with_code(version);
        stream.wave_start(3, 1, 0, 2).inst(8, 2, 0);
        let whole = all(&stream.bytes());
        let length = stream.bytes().len();
        stream.raw(0, 4);
        stream.register(false, 0xC342, 0xFFFF_FFFF);
        for bytes in length + 1..length + 8 {
            let cut = all(&stream.bytes()[..bytes]);
            assert_eq!(cut.waves, whole.waves, "{version} {bytes}");
            assert!(cut.diagnosis.truncated.is_some());
        }
    }
}

/// Checks thread-trace-30.
#[test]
fn random_bytes_behind_an_rdna_header_are_decoded_without_a_panic() {
    let mut random = Random::new(31);
    for version in 1..=4 {
        for _ in 0..100 {
            let mut stream = with_code(version).bytes();
            for _ in 0..random.below(20_000) {
                stream.push(random.next() as u8);
            }
            for wave in all(&stream).waves {
                assert!(wave.end >= wave.begin);
            }
        }
    }
}

/// Checks thread-trace-31.
#[test]
fn an_rdna_wave_without_an_end_is_incomplete() {
    for version in 2..=4 {
        let mut stream = with_code(version);
        stream.wave_start(3, 1, 0, 2).inst(8, 2, 0);
        let got = all_with(&stream.bytes(), &mut short_code());
        assert_eq!(got.infos, [Info::WaveIncomplete]);
        assert_eq!(got.occupancy.len(), 1);
        assert_eq!(got.waves[0].instructions.len(), 1);
    }
}

/// Checks thread-trace-32.
#[test]
fn lost_rdna_packets_are_reported_once() {
    let mut ten = with_code(2);
    ten.misc(9, 1).misc(30, 1);
    // A time stamp with the flag.
    let mut eleven = with_code(3);
    eleven.raw(0b1 | 1 << 8 | 5 << 12, 48).misc(30, 0);
    let mut twelve = with_code(4);
    twelve.raw(0b1 | 1 << 8 | 5 << 12, 64).misc(30, 0);
    for stream in [ten, eleven, twelve] {
        let got = all(&stream.bytes());
        assert_eq!(got.infos, [Info::DataLost], "version {}", stream.version);
        let losses = got
            .events
            .iter()
            .filter(|e| e.kind == EventKind::PacketLoss);
        assert!(losses.count() >= 1);
    }
}

#[test]
fn real_time_stamps_are_reported_as_pairs_of_clocks() {
    let mut stream = with_code(4);
    stream.misc(100, 0).raw(0b1 | 1 << 7 | 0x1_2345 << 12, 64);
    stream.misc(200, 0).raw(0b1 | 1 << 7 | 0x1_2400 << 12, 64);
    let got = all(&stream.bytes());
    let pairs: Vec<_> = (got.realtime.iter())
        .map(|pair| (pair.shader_clock, pair.realtime_clock))
        .collect();
    assert_eq!(pairs, [(100, 0x1_2345), (200, 0x1_2400)]);
}

/// Checks thread-trace-59.
#[test]
fn instructions_of_other_simds_are_not_counted_for_the_wave() {
    // LDS with 3 cycles, FLAT with 4 and VMEM with 7.
    for (version, vmem) in [(3, 96), (4, 194)] {
        let mut stream = with_code(version);
        stream.wave_start(3, 1, 0, 2);
        stream
            .inst(5, 2, 82)
            .inst(9, 2, 87)
            .inst(12, 2, vmem)
            .inst(14, 2, 0);
        stream.wave_end(20, 1, 0, 2);
        let got = all(&stream.bytes());
        let other = |time, cycles, category| OtherSimd {
            time,
            cycles,
            wgp: 1,
            category,
        };
        assert_eq!(
            got.other,
            [
                other(5, 3, Category::Lds),
                other(9, 4, Category::Flat),
                other(12, 7, Category::Vmem),
            ],
            "version {version}"
        );
        let categories: Vec<_> = got.waves[0]
            .instructions
            .iter()
            .map(|i| i.category)
            .collect();
        assert_eq!(categories, [Category::Salu, Category::Message]);
    }
}

/// Checks thread-trace-60.
#[test]
fn extension_words_of_gfx12_are_skipped() {
    for words in 0..4 {
        let mut code = Listing::new(3, 0x1000, &["s_load_b32 s0, s[0:1], 0x0", "s_endpgm"]);
        let mut stream = with_code(4);
        stream
            .wave_start_ext(3, 1, 2, 21, words)
            .inst(8, 2, 1)
            .wave_end(20, 1, 0, 2);
        let got = all_with(&stream.bytes(), &mut code);
        assert_eq!(got.diagnosis.to_string(), "", "{words}");
        assert_eq!(got.waves[0].instructions[0].category, Category::Smem);
        assert_eq!((got.waves[0].begin, got.waves[0].end), (3, 20));
        assert!(got.occupancy[0].extended);
        assert_eq!(got.occupancy[0].workgroup, 21);
    }
}

#[test]
fn rdna_jumps_to_registers_go_on_at_the_address_in_the_trace() {
    for version in 2..=4 {
        let mut stream = with_code(version);
        stream
            .wave_start(3, 1, 0, 2)
            .inst(8, 2, 5)
            .new_pc(10, 2, BASE + 0x2000);
        stream.valu(12, 2).wave_end(20, 1, 0, 2);
        let mut code = Listing::new(3, 0x1000, &["s_setpc_b64 s[0:1]"]);
        code.add(3, 0x2000, &["v_mov_b32_e32 v0, v1", "s_endpgm"]);
        let got = all_with(&stream.bytes(), &mut code);
        let addresses: Vec<_> = (got.waves[0].instructions.iter())
            .map(|i| i.pc.address)
            .collect();
        assert_eq!(addresses, [0x1000, 0x2000, 0x2004], "version {version}");
    }
}

#[test]
fn an_instruction_is_stalled_since_its_wave_was_ready() {
    let mut stream = with_code(3);
    stream
        .wave_start(3, 1, 0, 2)
        .inst(8, 2, 0)
        .ready(20, 1 << 2)
        .valu(27, 2);
    stream.immediates(40, 1 << 2).wave_end(50, 1, 0, 2);
    let got = all(&stream.bytes());
    let list: Vec<_> = (got.waves[0].instructions.iter())
        .map(|i| (i.category, i.time, i.duration, i.stall))
        .collect();
    assert_eq!(
        list,
        [
            (Category::Salu, 8, 1, 0),
            (Category::Valu, 19, 9, 8),
            (Category::Immed, 28, 13, 12),
            (Category::Message, 41, 9, 0),
        ]
    );
    // The wave becomes ready in the cycle in which an instruction is issued. The token of the readiness comes after
    // that of the instruction.
    let mut stream = with_code(3);
    stream
        .wave_start(3, 1, 0, 2)
        .valu(20, 2)
        .ready(20, 1 << 2)
        .wave_end(50, 1, 0, 2);
    let got = all(&stream.bytes());
    let first = got.waves[0].instructions[0];
    assert_eq!((first.time, first.stall), (19, 1));
}

#[test]
fn barriers_before_gfx12_last_until_the_next_token() {
    let times = |version| {
        let mut stream = with_code(version);
        stream
            .wave_start(3, 1, 0, 2)
            .inst(8, 2, 0)
            .inst(10, 2, 19)
            .valu(60, 2);
        stream.wave_end(70, 1, 0, 2);
        let got = all(&stream.bytes());
        let wave = &got.waves[0];
        let sum: i64 = wave.timeline.iter().map(|s| i64::from(s.duration)).sum();
        assert_eq!(sum, wave.end - wave.begin);
        (wave.instructions[1].time, wave.instructions[1].duration)
    };
    assert_eq!(times(3), (9, 51));
    assert_eq!(times(4), (9, 2));
}

#[test]
fn waves_of_other_simds_have_an_entry_and_no_instructions() {
    for version in 2..=4 {
        let mut stream = with_code(version);
        stream
            .wave_start(3, 1, 1, 2)
            .wave_start(4, 2, 0, 2)
            .wave_end(9, 1, 1, 2);
        let got = all(&stream.bytes());
        assert!(got.waves.is_empty());
        let pc = Pc {
            address: 0x1000,
            code_object: 3,
        };
        assert!(got.occupancy.iter().all(|o| o.pc == pc));
        assert_eq!(got.occupancy.len(), 3);
    }
}

/// A reader that returns a few bytes at a time.
struct Pieces<'a> {
    left: &'a [u8],
    most: usize,
}

impl std::io::Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let count = self.most.min(self.left.len()).min(into.len());
        let (piece, left) = self.left.split_at(count);
        into[..count].copy_from_slice(piece);
        self.left = left;
        Ok(count)
    }
}

#[test]
fn streams_read_in_pieces_of_any_size_have_the_same_tokens() {
    for version in 2..=4 {
        let mut stream = with_code(version);
        stream.wave_start(3, 1, 0, 2);
        for time in 0..2000 {
            stream.valu(5 + 2 * time, 2);
            // The units of four bits are not those of the pieces.
            if time % 7 == 0 {
                stream.raw(0, 4);
            }
            if time % 100 == 0 {
                stream.new_pc(6 + 2 * time, 2, BASE + 0x2000);
            }
        }
        let bytes = stream.bytes();
        let list = |most| {
            let mut list = Vec::new();
            let pieces = Pieces { left: &bytes, most };
            let mut visit = |time, offset, token| list.push((time, offset, token));
            tokens(pieces, &mut visit).expect("a header");
            list
        };
        let whole = list(usize::MAX);
        assert!(whole.len() > 2000, "{}", whole.len());
        for most in 1..=40 {
            assert_eq!(list(most), whole, "version {version}, {most} bytes");
        }
    }
}

/// Wherever tokens are put together to be handled, WAVE_READY is handled before the instructions of its cycle.
#[test]
fn wave_ready_is_handled_before_the_instructions_of_its_cycle() {
    for before in 480..540 {
        let mut stream = with_code(3);
        stream.wave_start(3, 1, 0, 2);
        for time in 0..before {
            stream.valu(5 + time, 2);
        }
        stream.valu(2000, 2).ready(2000, 1 << 2).valu(2000, 3);
        stream.wave_end(3000, 1, 0, 2);
        let got = all(&stream.bytes());
        let list = &got.waves[0].instructions;
        let last = list[before as usize];
        assert_eq!((last.time, last.stall), (1999, 1), "{before}");
    }
}

#[test]
fn a_very_long_rdna_wave_is_reported_in_parts() {
    let mut stream = with_code(3);
    stream.wave_start(3, 1, 0, 2);
    let count = 2_500_000i64;
    for at in 0..count {
        stream.valu(20 + at * 3, 2);
    }
    stream.wave_end(20 + count * 3, 1, 0, 2);
    let got = all(&stream.bytes());
    assert!(got.waves.len() > 1);
    let total: usize = got.waves.iter().map(|wave| wave.instructions.len()).sum();
    // The end of the program has no token.
    assert_eq!(total as i64, count + 1);
    let mut begin = 3;
    for (part, wave) in got.waves.iter().enumerate() {
        assert_eq!((wave.part as usize, wave.begin), (part, begin));
        let sum: i64 = wave.timeline.iter().map(|s| i64::from(s.duration)).sum();
        assert_eq!(sum, wave.end - wave.begin, "part {part}");
        assert!(wave.instructions.last().is_some_and(|i| i.time <= wave.end));
        begin = wave.end;
    }
}
