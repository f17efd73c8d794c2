//! Stitching: the instruction of the code for each traced instruction.

use rpd_att::{Category, Info};

use crate::collect::{All, Listing, all_with};
use crate::encoder::inst::{JUMP, MESSAGE, NEXT, SALU, SMEM, VALU, VMEM};
use crate::encoder::{BASE, Gfx9, Rdna};

/// A stream of one wave that writes these tokens: a type of INST, or `None` for an immediate.
fn gfx9(tokens: &[Option<u64>]) -> Gfx9 {
    let mut stream = Gfx9::with_code();
    stream.wave_start(40, 1, 0, 0);
    let mut time = 60;
    for token in tokens {
        match token {
            Some(kind) => stream.run(time, *kind),
            None => stream.issue(time, 0, &[(0, 3)]),
        };
        time += 12;
    }
    stream.wave_end(time, 1, 0, 0);
    stream
}

fn addresses(got: &All) -> Vec<u64> {
    (got.waves[0].instructions.iter())
        .map(|instruction| instruction.pc.address)
        .collect()
}

fn hits(got: &All, address: u64) -> usize {
    addresses(got).iter().filter(|at| **at == address).count()
}

/// Checks thread-trace-37.
#[test]
fn lines_of_a_loop_of_100_rounds_have_100_hits() {
    let code = [
        "s_mov_b32 s0, 100",        // 1000
        "v_add_u32_e32 v0, v0, v1", // 1004
        "s_sub_u32 s0, s0, 1",      // 1008
        "s_cbranch_scc1 65533",     // 100c, to 1004
        "s_endpgm",                 // 1010
    ];
    let mut tokens = vec![Some(SALU)];
    for round in 0..100 {
        tokens.extend([
            Some(VALU),
            Some(SALU),
            Some(if round < 99 { JUMP } else { NEXT }),
        ]);
    }
    let got = all_with(&gfx9(&tokens).bytes, &mut Listing::new(3, 0x1000, &code));
    assert!(got.infos.is_empty());
    assert_eq!(hits(&got, 0x1004), 100);
    assert_eq!(hits(&got, 0x1008), 100);
    let branch = got.waves[0]
        .instructions
        .iter()
        .filter(|i| i.pc.address == 0x100c);
    let categories: Vec<_> = branch.map(|i| i.category).collect();
    assert_eq!(categories.len(), 100);
    assert!(categories[..99].iter().all(|c| *c == Category::Jump));
    assert_eq!(categories[99], Category::Next);
}

/// Checks thread-trace-38.
#[test]
fn lines_without_tokens_are_stepped_over() {
    let mut stream = Rdna::new(3);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000)
        .kernel(BASE + 0x1000);
    stream
        .wave_start(3, 1, 0, 2)
        .valu(8, 2)
        .valu(12, 2)
        .wave_end(20, 1, 0, 2);
    let code = [
        "v_mov_b32_e32 v0, 0",
        "s_delay_alu instid0(VALU_DEP_1)",
        "s_wait_alu 0xfffe",
        "v_add_f32_e32 v0, v0, v0",
        "s_endpgm",
    ];
    let got = all_with(&stream.bytes(), &mut Listing::new(3, 0x1000, &code));
    assert!(got.infos.is_empty());
    assert_eq!(addresses(&got), [0x1000, 0x100c, 0x1010]);
}

/// Checks thread-trace-39.
#[test]
fn code_that_is_not_the_traced_one_is_reported_once() {
    let code = ["s_branch 3", "s_waitcnt vmcnt(0)", "s_endpgm"];
    let tokens = [Some(VALU), Some(SMEM), None, Some(VMEM), Some(VALU)];
    let mut stream = gfx9(&tokens);
    // A second wave that does not match either. The note is reported once.
    let time = stream.time + 40;
    stream
        .wave_start(time, 1, 0, 0)
        .run(time + 20, VALU)
        .wave_end(time + 40, 1, 0, 0);
    let got = all_with(&stream.bytes, &mut Listing::new(3, 0x1000, &code));
    assert_eq!(got.infos, [Info::StitchIncomplete]);
    assert_eq!(addresses(&got), [0; 5]);
    let categories: Vec<_> = got.waves[0]
        .instructions
        .iter()
        .map(|i| i.category)
        .collect();
    assert_eq!(
        categories,
        [
            Category::Valu,
            Category::Smem,
            Category::Immed,
            Category::Vmem,
            Category::Valu
        ]
    );
    assert_eq!(
        got.diagnosis.to_string(),
        "instructions that do not match the code objects: 6 of 6\n"
    );
}

#[test]
fn gfx9_instructions_reported_in_each_others_place_are_swapped() {
    let code = ["v_add_u32_e32 v0, v0, v1", "s_mov_b32 s0, s1", "s_endpgm"];
    let got = all_with(
        &gfx9(&[Some(SALU), Some(VALU)]).bytes,
        &mut Listing::new(3, 0x1000, &code),
    );
    assert!(got.infos.is_empty());
    assert_eq!(addresses(&got), [0x1000, 0x1004]);
    // They are in the order of the program, with the times of their tokens.
    let times: Vec<_> = got.waves[0].instructions.iter().map(|i| i.time).collect();
    assert!(times[0] > times[1]);
}

#[test]
fn a_gfx9_barrier_matches_a_message_and_an_immediate() {
    let code = [
        "v_mov_b32_e32 v0, 0",
        "s_barrier",
        "s_waitcnt vmcnt(0)",
        "s_nop 0",
    ];
    let tokens = [Some(VALU), Some(MESSAGE), None, None];
    let got = all_with(&gfx9(&tokens).bytes, &mut Listing::new(3, 0x1000, &code));
    assert_eq!(addresses(&got), [0x1000, 0x1004, 0x1004, 0x1008]);
}

#[test]
fn gfx9_jumps_to_registers_go_on_at_the_address_in_the_trace() {
    let mut stream = gfx9(&[]);
    let time = stream.time + 40;
    stream.wave_start(time, 1, 0, 0).run(time + 20, 7);
    stream
        .inst_pc(time + 28, 0, 0, BASE + 0x2000)
        .run(time + 40, VALU)
        .wave_end(time + 80, 1, 0, 0);
    let mut code = Listing::new(3, 0x1000, &["s_swappc_b64 s[30:31], s[0:1]"]);
    code.add(3, 0x2000, &["v_mov_b32_e32 v0, 0"]);
    let got = all_with(&stream.bytes, &mut code);
    let addresses: Vec<_> = got.waves[1]
        .instructions
        .iter()
        .map(|i| i.pc.address)
        .collect();
    assert_eq!(addresses, [0x1000, 0x2000]);
}

#[test]
fn matching_continues_behind_the_next_branch_after_a_failure() {
    // The code has a wait that the trace does not.
    let code = [
        "v_mov_b32_e32 v0, 0",          // 1000
        "s_waitcnt vmcnt(0)",           // 1004
        "v_add_u32_e32 v0, v0, v1",     // 1008
        "s_cbranch_scc1 1",             // 100c
        "s_mov_b32 s0, s1",             // 1010
        "s_load_dword s0, s[0:1], 0x0", // 1014
    ];
    let tokens = [Some(VALU), Some(SALU), Some(NEXT), Some(SALU), Some(SMEM)];
    let got = all_with(&gfx9(&tokens).bytes, &mut Listing::new(3, 0x1000, &code));
    assert_eq!(addresses(&got), [0x1000, 0, 0, 0x1010, 0x1014]);
    assert_eq!(got.infos, [Info::StitchIncomplete]);
}

#[test]
fn stitching_requests_each_line_once() {
    let code = ["s_mov_b32 s0, s1", "s_branch 65534"];
    let mut tokens = Vec::new();
    for _ in 0..1000 {
        tokens.extend([Some(SALU), Some(JUMP)]);
    }
    let mut listing = Listing::new(3, 0x1000, &code);
    let got = all_with(&gfx9(&tokens).bytes, &mut listing);
    assert_eq!(hits(&got, 0x1000), 1000);
    assert_eq!(listing.asked.len(), 2);
}

#[test]
fn rdna_memory_lines_without_active_lanes_match_an_immediate() {
    let mut stream = Rdna::new(3);
    stream
        .start_words()
        .code_object(3, BASE, 0x10000)
        .kernel(BASE + 0x1000);
    stream
        .wave_start(3, 1, 0, 2)
        .immediate(8, 2)
        .valu(12, 2)
        .wave_end(20, 1, 0, 2);
    let code = [
        "global_load_b32 v0, v1, s[0:1]",
        "v_add_f32_e32 v0, v0, v0",
        "s_endpgm",
    ];
    let got = all_with(&stream.bytes(), &mut Listing::new(3, 0x1000, &code));
    assert_eq!(addresses(&got), [0x1000, 0x1008, 0x100c]);
}
