//! Two streams for which the records of AMD's decoder are known.

use rpd_att::{Category, Instruction, Pc, RdnaKind, Span, State, Token, tokens};

use crate::collect::{Listing, all, all_with};

const GFX9: &str = "\
    11a01f000000000000200100001000000000820042c300524f43820042c30102\
    0800820042c304020000820042c300000000820042c304030000820042c3007f\
    0000820042c304010000820042c300000100820042c304040000820042c30000\
    0000820042c304000000820042c30e0000008f18100000008f1a7f0000008f00\
    01000000a0005300000040001d0200001a0080011d0300001d01000010001d02\
    00001a2850005600";

const GFX11: &str = "\
    9181000000000000090242c300524f4309820c001000000009820d007f000000\
    6c448000682222d01594040033518f10";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn instruction(category: Category, time: i64, duration: i32, stall: u32, pc: Pc) -> Instruction {
    Instruction {
        time,
        pc,
        duration,
        stall,
        category,
    }
}

fn span(state: State, duration: i32) -> Span {
    Span { state, duration }
}

fn at(address: u64, code_object: u64) -> Pc {
    Pc {
        address,
        code_object,
    }
}

/// Checks thread-trace-25.
#[test]
fn the_golden_stream_of_gfx9_has_its_known_records() {
    let code = [
        "s_load_dwordx2 s[0:1], s[4:5], 0x0",
        "s_waitcnt lgkmcnt(0)",
        "v_mov_b32_e32 v0, s0",
        "s_endpgm",
    ];
    let stream = bytes(GFX9);
    assert_eq!(stream.len(), 168);
    let mut code = Listing::new(3, 0x1000, &code);
    let got = all_with(&stream, &mut code);
    assert_eq!(got.gfx, 9);
    assert_eq!(got.order.first(), Some(&"gfx"));
    let (wave, occupancy) = (
        got.order.iter().position(|kind| *kind == "wave"),
        got.order.iter().position(|kind| *kind == "occupancy"),
    );
    assert!(
        wave < occupancy,
        "waves are before occupancy: {:?}",
        got.order
    );

    let entry = at(0x1000, 3);
    let occupancy: Vec<_> = (got.occupancy.iter())
        .map(|o| (o.time, o.start, o.cu, o.simd, o.slot, o.pc))
        .collect();
    assert_eq!(
        occupancy,
        [(44, true, 1, 0, 0, entry), (208, false, 1, 0, 0, entry)]
    );
    assert_eq!(got.waves.len(), 1);
    let wave = &got.waves[0];
    assert_eq!((wave.begin, wave.end), (44, 208));
    assert_eq!(
        wave.instructions,
        [
            instruction(Category::Smem, 64, 4, 0, at(0x1000, 3)),
            instruction(Category::Immed, 68, 104, 104, at(0x1008, 3)),
            instruction(Category::Valu, 172, 12, 8, at(0x100c, 3)),
        ]
    );
    assert_eq!(
        wave.timeline,
        [
            span(State::Idle, 20),
            span(State::Exec, 4),
            span(State::Wait, 104),
            span(State::Stall, 8),
            span(State::Idle, 28),
        ]
    );
    assert!(got.infos.is_empty());
    assert_eq!(got.diagnosis.to_string(), "");
    assert_eq!(got.diagnosis.bytes, 168);
}

/// Checks thread-trace-26.
#[test]
fn the_golden_stream_of_gfx11_has_its_known_records() {
    let stream = bytes(GFX11);
    assert_eq!(stream.len(), 48);
    let mut found = Vec::new();
    let header = tokens(&stream[..], &mut |time, offset, token| match token {
        Token::Rdna { kind, .. } => found.push((kind, offset, time)),
        Token::Gfx9(_) => panic!("a token of GFX9"),
    });
    assert_eq!(header.map(|header| header.target), Ok(1));
    // Offsets in bytes; those that pass time alone are not handed over.
    assert_eq!(
        found,
        [
            (RdnaKind::Header, 0, 0),
            (RdnaKind::Register, 8, 0),
            (RdnaKind::Register, 16, 0),
            (RdnaKind::Register, 24, 0),
            (RdnaKind::WaveStart, 32, 3),
            (RdnaKind::Inst, 37, 15),
            (RdnaKind::ImmOne, 39, 20),
            (RdnaKind::WaveReady, 41, 24),
            (RdnaKind::ValuInst, 44, 30),
            (RdnaKind::WaveEnd, 45, 37),
        ]
    );
    let got = all(&stream);
    assert_eq!(got.gfx, 11);
    let entry = at(0x7F_0000_1000, 0);
    let occupancy: Vec<_> = (got.occupancy.iter())
        .map(|o| (o.time, o.start, o.cu, o.simd, o.slot))
        .collect();
    assert_eq!(occupancy, [(3, true, 1, 0, 2), (37, false, 1, 0, 2)]);
    assert!(
        got.occupancy.iter().all(|o| o.pc.code_object == 0),
        "{entry:?}"
    );
    let wave = &got.waves[0];
    let none = Pc::default();
    assert_eq!(
        wave.instructions,
        [
            instruction(Category::Smem, 15, 1, 0, none),
            instruction(Category::Immed, 16, 5, 4, none),
            instruction(Category::Valu, 23, 8, 7, none),
            instruction(Category::Message, 31, 6, 0, none),
        ]
    );
    assert_eq!(
        wave.timeline,
        [
            span(State::Idle, 12),
            span(State::Exec, 1),
            span(State::Wait, 5),
            span(State::Exec, 2),
            span(State::Stall, 7),
            span(State::Exec, 7),
        ]
    );
    assert_eq!((wave.begin, wave.end), (3, 37));
}
