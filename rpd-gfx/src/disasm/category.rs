//! Categories of instructions in PC samples and thread traces.

/// Category of an instruction: the unit that executes it.
///
/// In the tokens of thread traces, [`Category::Message`], [`Category::Barrier`], [`Category::Wait`],
/// [`Category::Internal`] and [`Category::End`] are *immediate* instructions. [`Category::Branch`] has a token of its
/// own, and [`Category::Jump`] counts as scalar arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Vector arithmetic.
    Valu,
    /// Matrix arithmetic (MFMA, sparse MFMA, WMMA).
    Matrix,
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory, including cache control and clock reads through the scalar cache.
    Smem,
    /// Vector memory: buffer, global, scratch and image instructions.
    Vmem,
    /// Generic memory (flat): the address selects LDS, scratch or global memory.
    Flat,
    /// LDS, and exchanges between lanes through LDS hardware.
    Lds,
    /// Global data share.
    Gds,
    /// Intersections of rays with bounding boxes.
    Bvh,
    /// Exports of pixels, positions and parameters.
    Export,
    /// Branches to an address that the instruction contains.
    Branch,
    /// Branches and calls to an address in registers.
    Jump,
    /// Messages to the host or other units, and traps.
    Message,
    /// Barriers of a workgroup.
    Barrier,
    /// Waits for counters (`s_waitcnt`) and for time (`s_sleep`).
    Wait,
    /// Instructions that the sequencer executes itself: no-ops, priorities, modes, cache invalidation.
    Internal,
    /// Hints that are not issued and do not appear in traces (`s_delay_alu`).
    Hint,
    /// The end of a wave.
    End,
    /// Bytes that are not an instruction.
    Unknown,
}

impl Category {
    /// Every category.
    pub const ALL: [Self; 19] = [
        Self::Valu,
        Self::Matrix,
        Self::Salu,
        Self::Smem,
        Self::Vmem,
        Self::Flat,
        Self::Lds,
        Self::Gds,
        Self::Bvh,
        Self::Export,
        Self::Branch,
        Self::Jump,
        Self::Message,
        Self::Barrier,
        Self::Wait,
        Self::Internal,
        Self::Hint,
        Self::End,
        Self::Unknown,
    ];

    /// Name in lower case, for files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valu => "valu",
            Self::Matrix => "matrix",
            Self::Salu => "salu",
            Self::Smem => "smem",
            Self::Vmem => "vmem",
            Self::Flat => "flat",
            Self::Lds => "lds",
            Self::Gds => "gds",
            Self::Bvh => "bvh",
            Self::Export => "export",
            Self::Branch => "branch",
            Self::Jump => "jump",
            Self::Message => "message",
            Self::Barrier => "barrier",
            Self::Wait => "wait",
            Self::Internal => "internal",
            Self::Hint => "hint",
            Self::End => "end",
            Self::Unknown => "unknown",
        }
    }

    /// The category of an instruction of any generation, by its text as LLVM prints it.
    pub fn from_text(text: &str) -> Self {
        let name = text.split_whitespace().next().unwrap_or_default();
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if begins(&["v_mfma", "v_smfma", "v_wmma", "v_swmma"]) {
            Self::Matrix
        } else if begins(&["v_"]) {
            Self::Valu
        } else if begins(&["image_bvh", "ds_bvh"]) {
            Self::Bvh
        } else if begins(&["ds_gws", "ds_ordered"]) || begins(&["ds_"]) && text.contains(" gds") {
            Self::Gds
        } else if begins(&["ds_", "lds_"]) {
            Self::Lds
        } else if begins(&["flat_"]) {
            Self::Flat
        } else if name == "buffer_nop" {
            Self::Hint
        } else if begins(&["buffer_", "tbuffer_", "global_", "scratch_", "image_"]) {
            Self::Vmem
        } else if begins(&["exp", "export"]) {
            Self::Export
        } else if let Some(scalar) = name.strip_prefix("s_") {
            Self::from_scalar(scalar)
        } else {
            Self::Unknown
        }
    }

    /// The category of a scalar instruction, by its mnemonic without `s_`.
    fn from_scalar(name: &str) -> Self {
        let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if name.contains("branch") {
            Self::Branch
        } else if begins(&["setpc", "swappc", "call", "rfe"]) {
            Self::Jump
        } else if begins(&["endpgm"]) {
            Self::End
        } else if begins(&["barrier"]) {
            Self::Barrier
        } else if begins(&["sendmsg", "trap"]) {
            Self::Message
        } else if begins(&["wait_alu", "wait_dep", "delay", "set_vgpr"]) {
            Self::Hint
        } else if begins(&["wait", "sleep", "monitor"]) {
            Self::Wait
        } else if begins(&[
            "nop",
            "wakeup",
            "setprio",
            "set_inst",
            "inst_prefetch",
            "setkill",
            "version",
            "icache_inv",
            "dcache_inv",
            "incperflevel",
            "decperflevel",
            "sethalt",
            "setvskip",
            "ttrace",
            "clause",
            "code_end",
            "round_mode",
            "denorm_mode",
            "gl1_inv",
        ]) {
            Self::Internal
        } else if begins(&[
            "load",
            "buffer",
            "atomic",
            "atc",
            "scratch",
            "store",
            "dcache",
            "memtime",
            "memrealtime",
            "prefetch",
        ]) {
            Self::Smem
        } else {
            Self::Salu
        }
    }
}

/// The place where execution continues after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Execution continues at the next instruction.
    Next,
    /// Execution continues at this address, which the instruction contains.
    Branch(u64),
    /// Execution continues at this address or at the next instruction.
    Conditional(u64),
    /// Execution continues at an address in registers.
    Indirect,
    /// Execution ends: the wave has ended.
    End,
}

impl Flow {
    /// The flow of an instruction, from its text, address and length in bytes.
    pub(super) fn from_text(text: &str, pc: u64, bytes: u32) -> Self {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default();
        let target = || {
            let dwords: i64 = words.last()?.parse().ok()?;
            // The distance is a signed 16-bit field, which LLVM prints unsigned.
            let distance = 4 * i64::from(dwords as i16);
            Some(
                pc.wrapping_add(u64::from(bytes))
                    .wrapping_add_signed(distance),
            )
        };
        match name {
            "s_branch" | "s_call_b64" | "s_call_i64" => {
                target().map_or(Self::Indirect, Self::Branch)
            }
            "s_cbranch_g_fork" | "s_cbranch_join" => Self::Indirect,
            _ if name.starts_with("s_cbranch") => {
                target().map_or(Self::Indirect, Self::Conditional)
            }
            _ if name.starts_with("s_endpgm") => Self::End,
            _ if Category::from_text(name) == Category::Jump => Self::Indirect,
            _ => Self::Next,
        }
    }
}
