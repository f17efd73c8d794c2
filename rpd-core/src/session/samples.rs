//! Meaning of the packed fields and numbers of PC samples. They are those of the SDK.

use crate::spool::format::{FIRST_WARP_REASON, WARP_ISSUED, WARP_REASONS, sample_flag};

/// A bit field in a packed word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitField {
    /// Name of the field in results files.
    pub name: &'static str,
    /// Lowest bit, from 0.
    pub shift: u32,
    /// Width of the field in bits.
    pub bits: u32,
}

impl BitField {
    /// The value of the field in `word`, shifted to bit 0.
    #[inline]
    pub const fn of(self, word: u64) -> u64 {
        (word >> self.shift) & ((1 << self.bits) - 1)
    }
}

const fn field(name: &'static str, shift: u32, bits: u32) -> BitField {
    BitField { name, shift, bits }
}

/// Fields of [`super::SampleTable::hardware`], which say where the wave ran (`rocprofiler_pc_sampling_hw_id_v0_t`),
/// in the order of results files.
pub const HARDWARE: [BitField; 11] = [
    field("chiplet", 0, 6),
    field("wave_id", 6, 7),
    field("simd_id", 13, 2),
    field("pipe_id", 15, 4),
    field("cu_or_wgp_id", 19, 4),
    field("shader_array_id", 23, 1),
    field("shader_engine_id", 24, 5),
    field("workgroup_id", 29, 7),
    field("vm_id", 36, 6),
    field("queue_id", 42, 4),
    field("microengine_id", 46, 2),
];

/// The fields of [`HARDWARE`] that identify a compute unit: die, shader engine, shader array, number in the array.
pub const UNIT: [BitField; 4] = [HARDWARE[0], HARDWARE[6], HARDWARE[5], HARDWARE[4]];

/// Field of [`super::SampleTable::snapshot`]: number of the reason, in [`REASONS`], why the wave did not issue an
/// instruction.
pub const STALL_REASON: BitField = field("stall_reason", 0, 4);
/// Field of [`super::SampleTable::snapshot`]: 1 when two vector instructions were issued in the same cycle.
pub const DUAL_ISSUE: BitField = field("dual_issue_valu", 27, 1);

/// Pipes that the arbiter of a SIMD issues instructions to, in the order of their bits in
/// [`super::SampleTable::snapshot`].
pub const PIPES: [&str; 10] = [
    "valu",
    "matrix",
    "lds",
    "lds_direct",
    "scalar",
    "vmem_tex",
    "flat",
    "exp",
    "misc",
    "brmsg",
];

/// Bit of the first of [`PIPES`] in the field that says for which pipes a wave was chosen.
pub const ISSUE_SHIFT: u32 = 5;
/// Bit of the first of [`PIPES`] in the field that says which pipes could not accept the chosen wave.
pub const STALL_SHIFT: u32 = 16;

/// Classes of instructions, in the order of the SDK's numbers, without [`CLASS_PREFIX`].
pub const CLASSES: [&str; 17] = [
    "NONE",
    "VALU",
    "MATRIX",
    "SCALAR",
    "TEX",
    "LDS",
    "LDS_DIRECT",
    "FLAT",
    "EXPORT",
    "MESSAGE",
    "BARRIER",
    "BRANCH_NOT_TAKEN",
    "BRANCH_TAKEN",
    "JUMP",
    "OTHER",
    "NO_INST",
    "DUAL_VALU",
];

/// Prefix of the SDK's enumerator for each of [`CLASSES`].
pub const CLASS_PREFIX: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_TYPE_";

/// Reasons why no instruction was issued, in the order of the SDK's numbers, without [`REASON_PREFIX`].
pub const REASONS: [&str; 10] = [
    "NONE",
    "NO_INSTRUCTION_AVAILABLE",
    "ALU_DEPENDENCY",
    "WAITCNT",
    "INTERNAL_INSTRUCTION",
    "BARRIER_WAIT",
    "ARBITER_NOT_WIN",
    "ARBITER_WIN_EX_STALL",
    "OTHER_WAIT",
    "SLEEP_WAIT",
];

/// Prefix of the SDK's enumerator for each of [`REASONS`].
pub const REASON_PREFIX: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_";

/// Name of the instruction class with this number; `NONE` for a number outside [`CLASSES`].
pub fn class(number: u8) -> &'static str {
    CLASSES.get(usize::from(number)).unwrap_or(&CLASSES[0])
}

/// Numbers that reasons have, those of warps included: one more than the greatest.
pub const REASON_NUMBERS: usize = FIRST_WARP_REASON as usize + WARP_REASONS.len();

/// Name of the reason with this number: one of [`REASONS`], or of [`WARP_REASONS`] from [`FIRST_WARP_REASON`] on; `NONE`
/// for another number.
pub fn reason(number: u8) -> &'static str {
    let number = usize::from(number);
    let of_warp = |number: usize| WARP_REASONS.get(number.checked_sub(FIRST_WARP_REASON as usize)?);
    REASONS
        .get(number)
        .or_else(|| of_warp(number))
        .unwrap_or(&REASONS[0])
}

/// Number of the reason with this name; `None` for a name that no reason has.
pub fn reason_number(name: &str) -> Option<u8> {
    (0..REASON_NUMBERS as u8).find(|number| reason(*number) == name)
}

/// State of the issue logic for the sampled wave: [`Issue::HOST_TRAP`], [`Issue::ISSUED`], or the number of the reason,
/// in [`REASONS`], why no instruction was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Issue(pub u8);

impl Issue {
    /// Unknown state, because the sample was taken with the host trap method.
    pub const HOST_TRAP: Issue = Issue(254);
    /// The wave issued an instruction.
    pub const ISSUED: Issue = Issue(255);

    /// The state of a sample, from its flags ([`sample_flag`]) and its `snapshot`.
    #[inline]
    pub const fn from_flags(flags: u8, snapshot: u32) -> Issue {
        if flags & sample_flag::STOCHASTIC == 0 {
            Issue::HOST_TRAP
        } else if flags & sample_flag::ISSUED != 0 {
            Issue::ISSUED
        } else {
            Issue(STALL_REASON.of(snapshot as u64) as u8)
        }
    }

    /// The state of samples that the provider has added up ([`crate::spool::format::PcCount::issue`]); `None` for a number
    /// that has no meaning.
    pub const fn from_count(issue: u32) -> Option<Issue> {
        match issue {
            WARP_ISSUED => Some(Issue::ISSUED),
            FIRST_WARP_REASON.. if issue < REASON_NUMBERS as u32 => Some(Issue(issue as u8)),
            _ => None,
        }
    }

    /// Name of the reason why the wave did not issue; `None` when it issued, or for host trap samples.
    pub fn stall(self) -> Option<&'static str> {
        match self {
            Issue::HOST_TRAP | Issue::ISSUED => None,
            Issue(number) => Some(reason(number)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks sampling-1 and sampling-2.
    #[test]
    fn vectors_of_packed_words() {
        // Hardware id 0x41844713 on chiplet 2.
        let word = 0x0000_4480_8238_20c2;
        let values: Vec<u64> = HARDWARE.iter().map(|field| field.of(word)).collect();
        assert_eq!(values, [2, 3, 1, 0, 7, 0, 2, 4, 8, 1, 1]);
        // Snapshots 0x00020383 (issued), 0x00020101 and 0x01010301 of a gfx9.
        for (snapshot, issued, stalled, stall) in [
            (0x28_u32, vec!["valu"], vec![], 8),
            (0x23, vec!["valu"], vec![], 3),
            (0x0002_0047, vec!["matrix"], vec!["matrix"], 7),
        ] {
            let set = |shift: u32| -> Vec<&str> {
                (0..)
                    .zip(PIPES)
                    .filter(|(pipe, _)| snapshot >> (shift + pipe) & 1 != 0)
                    .map(|(_, name)| name)
                    .collect()
            };
            assert_eq!((set(ISSUE_SHIFT), set(STALL_SHIFT)), (issued, stalled));
            assert_eq!(STALL_REASON.of(snapshot.into()), stall);
        }
    }

    #[test]
    fn issue_state_follows_from_flags_and_snapshot() {
        assert_eq!(Issue::from_flags(0, 7), Issue::HOST_TRAP);
        let stochastic = sample_flag::STOCHASTIC;
        assert_eq!(
            Issue::from_flags(stochastic | sample_flag::ISSUED, 7),
            Issue::ISSUED
        );
        assert_eq!(Issue::from_flags(stochastic, 0x23).stall(), Some("WAITCNT"));
        assert_eq!(
            (class(2), class(40), reason(12)),
            ("MATRIX", "NONE", "NONE")
        );
    }

    #[test]
    fn reasons_of_warps_have_numbers_of_their_own() {
        assert_eq!((reason(23), reason(200)), ("LONG_SCOREBOARD", "NONE"));
        for number in (0..REASONS.len()).chain(FIRST_WARP_REASON as usize..REASON_NUMBERS) {
            assert_eq!(reason_number(reason(number as u8)), Some(number as u8));
        }
        assert_eq!(reason_number("MOON_PHASE"), None);
        assert_eq!(Issue::from_count(WARP_ISSUED), Some(Issue::ISSUED));
        assert_eq!(
            Issue::from_count(23).and_then(Issue::stall),
            Some("LONG_SCOREBOARD")
        );
        assert_eq!((Issue::from_count(15), Issue::from_count(36)), (None, None));
    }
}
