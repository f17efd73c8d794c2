//! Rules of times, states and order, which AMD's decoder has as well; each test is about one where another choice would
//! have been possible.

use rpd_att::{Category, Pc, State};

use crate::collect::{All, Listing, all, all_with};
use crate::encoder::inst::{JUMP_TO_REGISTER, LDS, MESSAGE, SALU, SMEM, TRAP, VALU, VMEM};
use crate::encoder::{BASE, Gfx9, Rdna};

fn gfx12() -> Rdna {
    // Waits for barriers write no token.
    let mut stream = Rdna::with_header(4, 1 << 59);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000)
        .kernel(BASE + 0x1000);
    stream
}

/// Category, time, duration and stall of each instruction of the first wave.
fn list(got: &All) -> Vec<(Category, i64, i32, u32)> {
    (got.waves[0].instructions.iter())
        .map(|i| (i.category, i.time, i.duration, i.stall))
        .collect()
}

fn timeline(got: &All) -> Vec<(State, i32)> {
    (got.waves[0].timeline.iter())
        .map(|span| (span.state, span.duration))
        .collect()
}

#[test]
fn durations_on_gfx9_depend_on_the_phase_of_the_simd() {
    let durations = |simd: u64| {
        let mut stream = Gfx9::with_code();
        stream.wave_start(40, 1, simd, 0);
        for (n, kind) in [SMEM, SALU, LDS, VALU, VMEM].into_iter().enumerate() {
            let time = 60 + 40 * n as i64;
            stream.issue(time, simd, &[(0, 2)]);
            stream.inst(time + 8, simd, 0, kind);
        }
        stream.wave_end(400, 1, simd, 0);
        let got = all(&stream.bytes);
        list(&got).iter().map(|i| i.2).collect::<Vec<_>>()
    };
    assert_eq!(durations(0), [4, 4, 8, 8, 12]);
    assert_eq!(durations(1), [8, 8, 12, 12, 12]);
    assert_eq!(durations(2), [8, 8, 12, 12, 12]);
    assert_eq!(durations(3), [8, 8, 12, 8, 12]);
}

#[test]
fn an_instruction_has_the_last_of_several_stalls() {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0).run(60, SALU);
    stream
        .issue(72, 0, &[(0, 1)])
        .issue(88, 0, &[(0, 1)])
        .run(100, VALU)
        .wave_end(120, 1, 0, 0);
    let got = all(&stream.bytes);
    assert_eq!(
        list(&got),
        [(Category::Salu, 60, 4, 0), (Category::Valu, 88, 16, 12)]
    );
}

#[test]
fn consecutive_waits_have_a_span_each() {
    let mut stream = Gfx9::with_code();
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .issue(76, 0, &[(0, 3)])
        .issue(100, 0, &[(0, 3)])
        .wave_end(120, 1, 0, 0);
    let got = all(&stream.bytes);
    assert_eq!(
        timeline(&got),
        [
            (State::Idle, 20),
            (State::Exec, 4),
            (State::Wait, 16),
            (State::Wait, 24),
            (State::Idle, 16),
        ]
    );
}

#[test]
fn the_end_of_the_program_lasts_from_the_instruction_before_it() {
    let mut stream = Gfx9::with_code();
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .run(72, VMEM)
        .issue(160, 0, &[(0, 1)])
        .run(200, MESSAGE)
        .wave_end(204, 1, 0, 0);
    let got = all(&stream.bytes);
    assert_eq!(
        list(&got),
        [
            (Category::Salu, 60, 4, 0),
            (Category::Vmem, 72, 8, 0),
            (Category::Message, 80, 124, 0),
        ]
    );
    assert_eq!(
        timeline(&got),
        [(State::Idle, 20), (State::Exec, 20), (State::Wait, 124)]
    );
    assert_eq!((got.waves[0].begin, got.waves[0].end), (40, 204));
}

#[test]
fn an_instruction_that_does_not_complete_stays_without_a_category() {
    let mut stream = Gfx9::with_code();
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, SALU)
        .issue(72, 0, &[(0, 2)]);
    let mut code = Listing::new(3, 0x1000, &["s_mov_b32 s0, s1", "v_add_u32_e32 v0, v0, v0"]);
    let got = all_with(&stream.bytes, &mut code);
    assert_eq!(
        list(&got),
        [(Category::Salu, 60, 4, 0), (Category::None, 72, 0, 0)]
    );
    assert_eq!(got.waves[0].instructions[1].pc, Pc::default());
    // A wave that is cut off lasts four cycles longer than its instructions.
    assert_eq!(got.waves[0].end, 76);
    assert_eq!(got.diagnosis.unmatched, 0, "it is not a mismatch");
}

#[test]
fn an_address_due_at_a_trap_belongs_to_the_instruction_after_it() {
    let mut stream = Gfx9::with_code();
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, JUMP_TO_REGISTER)
        .run(72, TRAP);
    // The address of the jump, while the trap is handled, does not count; then the handler's end, and the address where it goes on.
    stream
        .inst(100, 0, 0, JUMP_TO_REGISTER)
        .inst_pc(104, 0, 0, BASE + 0x1100)
        .run(120, VALU)
        .wave_end(140, 1, 0, 0);
    let mut code = Listing::new(3, 0x1000, &["s_setpc_b64 s[0:1]"]);
    code.add(3, 0x1100, &["v_add_u32_e32 v0, v0, v0"]);
    let got = all_with(&stream.bytes, &mut code);
    let addresses: Vec<_> = (got.waves[0].instructions.iter())
        .map(|i| (i.category, i.pc.address))
        .collect();
    assert_eq!(
        addresses,
        [
            (Category::Salu, 0x1000),
            (Category::Context, 0),
            (Category::Valu, 0x1100),
        ]
    );
}

#[test]
fn scale_loads_are_merged_into_their_matrix_instruction() {
    let lines = [
        "ds_read_b128 v[0:3], v4",
        "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21",
        "s_mov_b32 s0, s1",
    ];
    let mut stream = Gfx9::with_code();
    stream
        .wave_start(40, 1, 0, 0)
        .run(60, LDS)
        .run(80, 28)
        .run(100, SALU)
        .wave_end(120, 1, 0, 0);
    let got = all_with(&stream.bytes, &mut Listing::new(3, 0x1000, &lines));
    assert_eq!(
        list(&got),
        [
            (Category::Lds, 60, 4, 0),
            (Category::Valu, 76, 12, 0),
            (Category::Salu, 100, 4, 0),
        ]
    );
}

#[test]
fn a_dispatch_has_the_registers_and_memory_that_were_written() {
    let mut stream = Gfx9::with_code();
    let time = stream.time;
    // 24 vector and 32 scalar registers, 4 user registers, 1,024 bytes of LDS.
    stream
        .compute(time, 0x12, 2 | 1 << 7)
        .compute(time, 0x13, 4 << 1 | 2 << 15)
        .compute(time, 0x00, 1);
    let got = all(&stream.bytes);
    let last = got.dispatches.last().expect("a dispatch");
    assert_eq!((last.vgprs, last.sgprs, last.lds), (24, 32, 1024));
    assert_eq!(last.user_sgprs, 4);
}

#[test]
fn a_barrier_of_gfx11_is_a_message_until_the_next_token() {
    let mut stream = Rdna::new(3);
    stream.start_words().kernel(BASE);
    stream
        .wave_start(3, 1, 0, 2)
        .valu(20, 2)
        .inst(30, 2, 19)
        .valu(60, 2);
    stream.wave_end(70, 1, 0, 2);
    let got = all(&stream.bytes());
    assert_eq!(
        list(&got),
        [
            (Category::Valu, 20, 1, 0),
            (Category::Message, 21, 39, 9),
            (Category::Valu, 60, 1, 0),
            (Category::Message, 61, 9, 0),
        ]
    );
}

#[test]
fn waits_for_barriers_of_gfx12_lie_between_the_instructions_around_them() {
    let lines = [
        "v_mov_b32_e32 v0, 0",
        "s_barrier_signal -1",
        "s_barrier_wait 0xffff",
        "v_mov_b32_e32 v1, 0",
        "s_barrier_signal -1",
        "s_barrier_wait 0xffff",
        "v_mov_b32_e32 v2, 0",
        "s_endpgm",
    ];
    let mut stream = gfx12();
    stream
        .wave_start(3, 1, 0, 2)
        .valu(20, 2)
        .inst(30, 2, 122)
        .valu(60, 2);
    // The wave that comes last goes on at once.
    stream.inst(62, 2, 122).valu(63, 2);
    stream.wave_end(70, 1, 0, 2);
    let got = all_with(&stream.bytes(), &mut Listing::new(3, 0x1000, &lines));
    assert!(got.infos.is_empty(), "{:?}", got.diagnosis);
    assert_eq!(
        list(&got),
        [
            (Category::Valu, 20, 1, 0),
            (Category::Message, 30, 1, 0),
            (Category::Immed, 31, 29, 0),
            (Category::Valu, 60, 1, 0),
            (Category::Message, 62, 1, 0),
            (Category::Immed, 63, 0, 0),
            (Category::Valu, 63, 1, 0),
            (Category::Message, 64, 6, 0),
        ]
    );
    let addresses: Vec<_> = (got.waves[0].instructions.iter())
        .map(|i| i.pc.address)
        .collect();
    assert_eq!(
        addresses,
        (0..8).map(|line| 0x1000 + 4 * line).collect::<Vec<_>>()
    );
    assert_eq!(
        timeline(&got),
        [
            (State::Idle, 17),
            (State::Exec, 11),
            (State::Wait, 29),
            (State::Exec, 3),
            (State::Wait, 0),
            (State::Exec, 7),
        ]
    );
}

#[test]
fn clock_readings_at_one_time_are_merged() {
    let mut stream = Rdna::new(4);
    stream.start_words().misc(100, 0);
    for clock in [0x2000u64, 0x2002] {
        stream.raw(0b1 | 1 << 7 | clock << 12, 64);
    }
    stream.misc(200, 0).raw(0b1 | 1 << 7 | 0x3000 << 12, 64);
    let got = all(&stream.bytes());
    let pairs: Vec<_> = (got.realtime.iter())
        .map(|pair| (pair.shader_clock, pair.realtime_clock))
        .collect();
    assert_eq!(pairs, [(100, 0x2001), (200, 0x3000)]);
}
