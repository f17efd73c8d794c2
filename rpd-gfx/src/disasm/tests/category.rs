//! Categories of instructions, and the flow of execution after them.

use super::*;

#[test]
fn disassembled_instructions_have_a_category() {
    for (text, category) in [
        ("v_add_f32_e32 v4, v2, v6", Category::Valu),
        (
            "v_mfma_f32_32x32x1f32 a[0:31], v0, v1, a[0:31]",
            Category::Matrix,
        ),
        ("s_mov_b32 s0, s1", Category::Salu),
        ("s_getreg_b32 s0, hwreg(HW_REG_MODE)", Category::Salu),
        ("s_load_dwordx4 s[0:3], s[4:5], 0x0", Category::Smem),
        ("s_memtime s[0:1]", Category::Smem),
        ("s_dcache_wb", Category::Smem),
        ("s_dcache_inv", Category::Internal),
        ("global_load_dword v0, v[2:3], off", Category::Vmem),
        ("buffer_store_dword v0, off, s[0:3], 0", Category::Vmem),
        ("flat_load_dword v0, v[2:3]", Category::Flat),
        ("ds_read_b32 v0, v1", Category::Lds),
        ("ds_read_b32 v0, v1 gds", Category::Gds),
        ("ds_gws_barrier v0 gds", Category::Gds),
        ("s_cbranch_scc1 65530", Category::Branch),
        ("s_setpc_b64 s[30:31]", Category::Jump),
        ("s_swappc_b64 s[30:31], s[0:1]", Category::Jump),
        ("s_sendmsg sendmsg(MSG_INTERRUPT)", Category::Message),
        ("s_trap 2", Category::Message),
        ("s_barrier", Category::Barrier),
        ("s_waitcnt vmcnt(0)", Category::Wait),
        ("s_waitcnt_depctr 0xfff", Category::Wait),
        ("s_sleep 1", Category::Wait),
        ("s_nop 0", Category::Internal),
        ("s_delay_alu instid0(VALU_DEP_1)", Category::Hint),
        ("s_wait_alu 0xfffd", Category::Hint),
        ("s_endpgm", Category::End),
        (
            "image_bvh_intersect_ray v[0:3], v[0:10], s[0:3]",
            Category::Bvh,
        ),
        (
            "image_sample v4, v2, s[8:15], s[8:11] dmask:0x1",
            Category::Vmem,
        ),
        ("exp mrt0 v0, v0, v0, v0", Category::Export),
        (".long 0xffffffff", Category::Unknown),
    ] {
        assert_eq!(Category::from_text(text), category, "{text}");
    }
    let names: std::collections::HashSet<_> = Category::ALL
        .iter()
        .map(|category| category.name())
        .collect();
    assert_eq!(names.len(), Category::ALL.len());
}

#[test]
fn disassembled_branches_have_targets() {
    let disassembler = Disassembler::new("gfx90a").unwrap();
    let flow = |dword: u32| disassembler.instruction(&bytes(&[dword]), 0x1000).flow;
    assert_eq!(flow(0xbf82_0001), Flow::Branch(0x1008));
    assert_eq!(flow(0xbf85_fffa), Flow::Conditional(0xfec));
    assert_eq!(flow(0xba84_0002), Flow::Branch(0x100c));
    assert_eq!(flow(0xbe80_1d02), Flow::Indirect);
    assert_eq!(flow(0xbf81_0000), Flow::End);
    assert_eq!(flow(0xbf80_0000), Flow::Next);
}
