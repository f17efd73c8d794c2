//! Instructions by the tokens that they write, and the place where execution continues after them.

use rpd_gfx::disasm::{self, Flow};

/// Tokens that an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// Vector arithmetic.
    Valu,
    /// A branch with an encoded target: one token when it is taken, another when not.
    Branch,
    /// An instruction that the sequencer handles.
    Immed,
    /// A barrier: on GFX9 one token when the wave comes to it and one when it goes on.
    Barrier,
    /// A wait for a barrier, which GFX12 can leave out.
    BarrierWait,
    /// Scalar memory.
    Smem,
    /// A clock that is read through scalar memory: it has the token of scalar memory, or that of scalar arithmetic.
    Clock,
    /// An instruction that writes no token.
    Skip,
    /// Vector memory.
    Vmem,
    /// Memory through flat addresses.
    Flat,
    /// Local data share.
    Lds,
    /// Ray intersection.
    Bvh,
    /// Scalar arithmetic.
    Salu,
}

/// One instruction of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    /// Length of the instruction in bytes.
    pub(crate) size: u32,
    /// Kind of the tokens that the instruction writes.
    pub(crate) class: Class,
    /// The place where the wave continues after the instruction.
    pub(crate) flow: Flow,
    /// Whether matching must not step over the instruction: it waits for memory, or reads it.
    pub(crate) anchor: bool,
    /// Whether the instruction is a matrix instruction with scales.
    pub(crate) scales: bool,
}

impl Line {
    pub(crate) fn from_instruction(instruction: &disasm::Instruction) -> Self {
        use disasm::Category;
        let text = instruction.text.as_str();
        let mnemonic = text.split(' ').next().unwrap_or_default();
        let class = match instruction.category {
            // Tokens are those of the unit that an instruction is sent to.
            Category::Smem if mnemonic == "s_memtime" => Class::Clock,
            Category::Internal if mnemonic.starts_with("s_dcache_") => Class::Smem,
            Category::Internal if is_scalar_arithmetic(mnemonic) => Class::Salu,
            Category::Bvh if mnemonic == "ds_bvh_stack_rtn_b32" => Class::Lds,
            Category::Valu | Category::Matrix => Class::Valu,
            Category::Salu | Category::Jump => Class::Salu,
            Category::Smem => Class::Smem,
            Category::Vmem => Class::Vmem,
            Category::Flat => Class::Flat,
            Category::Lds | Category::Gds => Class::Lds,
            Category::Bvh => Class::Bvh,
            Category::Branch => Class::Branch,
            Category::Barrier if text.starts_with("s_barrier_wait") => Class::BarrierWait,
            Category::Barrier if text.starts_with("s_barrier_") => Class::Immed,
            Category::Barrier => Class::Barrier,
            Category::Message | Category::Wait | Category::Internal | Category::End => Class::Immed,
            Category::Hint | Category::Export | Category::Unknown => Class::Skip,
        };
        let load = mnemonic.contains("_load_") && !mnemonic.starts_with("scratch_");
        Self {
            size: instruction.bytes,
            class,
            flow: instruction.flow,
            anchor: load || mnemonic.starts_with("s_waitcnt"),
            scales: mnemonic.starts_with("v_mfma_scale_"),
        }
    }
}

/// Whether an instruction that the sequencer handles has the token of scalar arithmetic.
fn is_scalar_arithmetic(mnemonic: &str) -> bool {
    matches!(
        mnemonic,
        "s_round_mode" | "s_denorm_mode" | "s_gl1_inv" | "s_code_end"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_the_class_of_their_tokens() {
        for (text, class) in [
            (
                "v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]",
                Class::Valu,
            ),
            ("s_cbranch_scc1 4", Class::Branch),
            ("s_waitcnt vmcnt(0)", Class::Immed),
            ("s_waitcnt_vscnt null, 0x0", Class::Immed),
            ("s_wait_loadcnt 0x0", Class::Immed),
            ("s_wait_alu 0xfffe", Class::Skip),
            ("s_delay_alu instid0(VALU_DEP_1)", Class::Skip),
            ("s_barrier", Class::Barrier),
            ("s_barrier_signal -1", Class::Immed),
            ("s_barrier_wait 0xffff", Class::BarrierWait),
            ("s_icache_inv", Class::Immed),
            ("s_dcache_inv", Class::Smem),
            ("s_denorm_mode 0", Class::Salu),
            ("s_dcache_wb", Class::Smem),
            ("s_load_dwordx4 s[0:3], s[4:5], 0x0", Class::Smem),
            ("s_memtime s[0:1]", Class::Clock),
            ("s_memrealtime s[0:1]", Class::Smem),
            ("buffer_wbinvl1", Class::Vmem),
            ("ds_bvh_stack_rtn_b32 v0, v1, v2, v[4:7]", Class::Lds),
            ("buffer_load_dword v0, off, s[0:3], 0", Class::Vmem),
            ("buffer_nop", Class::Skip),
            ("global_load_dwordx4 v[0:3], v4, s[0:1]", Class::Vmem),
            (
                "image_bvh_intersect_ray v[0:3], v[4:14], s[0:3]",
                Class::Bvh,
            ),
            ("flat_load_dword v0, v[2:3]", Class::Flat),
            ("ds_read_b32 v0, v1", Class::Lds),
            ("s_setpc_b64 s[30:31]", Class::Salu),
            ("s_set_gpr_idx_on s0, gpr_idx(SRC0)", Class::Salu),
            ("s_setprio 1", Class::Immed),
            (".long 0x12345678", Class::Skip),
        ] {
            let instruction = disasm::Instruction::from_text(text, 4, 0);
            assert_eq!(Line::from_instruction(&instruction).class, class, "{text}");
        }
    }
}
