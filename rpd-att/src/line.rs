//! What a line of code is for the trace: which tokens it writes, and where execution goes behind it.

/// What tokens an instruction writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Vector arithmetic.
    Valu,
    /// A branch with an encoded target: one token when it is taken, another when not.
    Branch,
    /// Handled in the sequencer.
    Immed,
    /// A barrier: on GFX9 one token when the wave comes to it and one when it goes on.
    Barrier,
    /// A wait for a barrier, which GFX12 can leave out.
    BarrierWait,
    /// Scalar memory.
    Smem,
    /// Writes no token.
    Skip,
    /// Vector memory.
    Vmem,
    /// Flat memory.
    Flat,
    /// Local data share.
    Lds,
    /// Ray intersection.
    Bvh,
    /// Scalar arithmetic.
    Salu,
    /// Not known.
    Unknown,
}

/// Where execution goes behind an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// There, if the branch is taken: an address in the same code object.
    Branch(u64),
    /// Where a register says; the trace says where that is.
    Indirect,
    /// Nowhere: the program ends.
    End,
}

/// One instruction of a code object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Bytes.
    pub size: u32,
    /// What tokens it writes.
    pub class: Class,
    /// Where execution goes.
    pub flow: Flow,
    /// Whether matching does not step over it: it waits for memory, or reads it.
    pub anchor: bool,
}

/// Mnemonics without a token; they begin so.
const SKIPPED: &[&str] = &[
    "s_wait_alu",
    "s_wait_dep",
    "s_delay",
    "s_set_vgpr",
    "buffer_nop",
];

/// Mnemonics that the sequencer handles; they begin so.
const IMMEDIATE: &[&str] = &[
    "s_waitcnt",
    "s_wait_idle",
    "s_wait_event",
    "s_nop",
    "s_sleep",
    "s_wakeup",
    "s_sendmsg",
    "s_setprio",
    "s_set_inst",
    "s_inst_prefetch",
    "s_setkill",
    "s_version",
    "s_trap",
    "s_endpgm",
    "s_icache_inv",
    "s_dcache_inv",
    "s_incperflevel",
    "s_decperflevel",
    "s_sethalt",
    "s_setvskip",
    "s_ttrace",
    "s_clause",
    "s_monitor",
];

/// Mnemonics of scalar memory; they begin so.
const SCALAR_MEMORY: &[&str] = &[
    "s_load",
    "s_buffer",
    "s_atomic",
    "s_atc",
    "s_scratch",
    "s_store",
    "s_dcache",
    "s_memrealtime",
    "s_memtime",
    "s_prefetch",
];

/// Mnemonics of vector memory; they begin so.
const VECTOR_MEMORY: &[&str] = &[
    "buffer_", "tbuffer_", "global_", "scratch_", "cluster_", "tensor_", "dds_", "image_",
];

fn begins(mnemonic: &str, with: &[&str]) -> bool {
    with.iter().any(|start| mnemonic.starts_with(start))
}

/// The class of an instruction with this mnemonic.
pub fn class_of(mnemonic: &str) -> Class {
    let m = mnemonic;
    if m.starts_with("v_") {
        Class::Valu
    } else if m.contains("branch") {
        Class::Branch
    } else if begins(m, SKIPPED) {
        Class::Skip
    } else if m.starts_with("s_barrier_wait") {
        Class::BarrierWait
    } else if m == "s_barrier" {
        Class::Barrier
    } else if m.starts_with("s_barrier")
        || begins(m, IMMEDIATE)
        || m.starts_with("s_wait_") && m.ends_with("cnt")
    {
        Class::Immed
    } else if begins(m, SCALAR_MEMORY) {
        Class::Smem
    } else if m.starts_with("image_bvh") || m.starts_with("ds_bvh") {
        Class::Bvh
    } else if m.starts_with("flat_") {
        Class::Flat
    } else if m.starts_with("ds_") || m.starts_with("lds_") {
        Class::Lds
    } else if begins(m, VECTOR_MEMORY) {
        Class::Vmem
    } else if m.starts_with("s_") {
        Class::Salu
    } else {
        Class::Unknown
    }
}

/// The number that an operand is, decimal or hexadecimal.
fn number(text: &str) -> Option<i64> {
    let (text, sign) = match text.strip_prefix('-') {
        Some(rest) => (rest, -1),
        None => (text, 1),
    };
    let value = match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    Some(value * sign)
}

impl Line {
    /// Reads the text of the instruction of `size` bytes at `address`.
    ///
    /// A branch's operand is its distance in words from the next instruction, as LLVM prints it.
    pub fn parse(text: &str, address: u64, size: u32) -> Self {
        let text = text.trim_start();
        let mnemonic = text.split_ascii_whitespace().next().unwrap_or_default();
        let class = class_of(mnemonic);
        let flow = if class == Class::Branch {
            let operand = text
                .split_ascii_whitespace()
                .nth(1)
                .map(|operand| operand.trim_end_matches(','));
            match operand.and_then(number) {
                // The distance is a signed 16-bit number, which some versions print without the sign.
                Some(words) => Flow::Branch(
                    address
                        .wrapping_add(u64::from(size))
                        .wrapping_add_signed(i64::from(words as i16) * 4),
                ),
                None => Flow::Indirect,
            }
        } else if ["s_setpc", "s_swappc", "s_call", "s_rfe", "s_cbranch_join"]
            .iter()
            .any(|start| mnemonic.starts_with(start))
        {
            Flow::Indirect
        } else if mnemonic.starts_with("s_endpgm") {
            Flow::End
        } else {
            Flow::Next
        };
        let load = mnemonic.contains("_load_") && !mnemonic.starts_with("scratch_");
        Self {
            size,
            class,
            flow,
            anchor: load || mnemonic.starts_with("s_waitcnt"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_mnemonics() {
        for (mnemonic, class) in [
            ("v_mfma_f32_32x32x8_f16", Class::Valu),
            ("s_cbranch_scc1", Class::Branch),
            ("s_waitcnt", Class::Immed),
            ("s_waitcnt_vscnt", Class::Immed),
            ("s_wait_loadcnt", Class::Immed),
            ("s_wait_alu", Class::Skip),
            ("s_delay_alu", Class::Skip),
            ("s_barrier", Class::Barrier),
            ("s_barrier_signal", Class::Immed),
            ("s_barrier_wait", Class::BarrierWait),
            ("s_dcache_inv", Class::Immed),
            ("s_dcache_wb", Class::Smem),
            ("s_load_dwordx4", Class::Smem),
            ("s_memtime", Class::Smem),
            ("s_buffer_load_dword", Class::Smem),
            ("buffer_load_dword", Class::Vmem),
            ("buffer_nop", Class::Skip),
            ("global_load_dwordx4", Class::Vmem),
            ("image_bvh_intersect_ray", Class::Bvh),
            ("image_sample", Class::Vmem),
            ("flat_load_dword", Class::Flat),
            ("ds_read_b32", Class::Lds),
            ("s_setpc_b64", Class::Salu),
            ("s_set_gpr_idx_on", Class::Salu),
            ("s_setprio", Class::Immed),
            (".long", Class::Unknown),
        ] {
            assert_eq!(class_of(mnemonic), class, "{mnemonic}");
        }
    }

    #[test]
    fn targets_of_branches() {
        let flow = |text| Line::parse(text, 0x1000, 4).flow;
        assert_eq!(flow("s_cbranch_scc0 12"), Flow::Branch(0x1034));
        assert_eq!(flow("s_cbranch_scc1 65535"), Flow::Branch(0x1000));
        assert_eq!(flow("\ts_branch -2"), Flow::Branch(0xFFC));
        assert_eq!(flow("s_branch 0xfffe"), Flow::Branch(0xFFC));
        assert_eq!(flow("s_branch label"), Flow::Indirect);
        assert_eq!(flow("s_setpc_b64 s[30:31]"), Flow::Indirect);
        assert_eq!(flow("s_endpgm"), Flow::End);
        assert_eq!(flow("s_nop 0"), Flow::Next);
    }
}
