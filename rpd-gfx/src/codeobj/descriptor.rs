//! The 64-byte kernel descriptor that the packet processor reads.

use super::Error;

/// A kernel descriptor (`name.kd`), decoded for gfx90a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// Bytes of LDS a workgroup needs besides the dynamic ones.
    pub group_segment_size: u32,
    /// Bytes of scratch a work-item needs.
    pub private_segment_size: u32,
    /// Bytes of the kernel arguments.
    pub kernarg_size: u32,
    /// First instruction, relative to the descriptor.
    pub entry_offset: i64,
    /// `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Kernel code properties: which user SGPRs are set up.
    pub properties: u16,
    /// Kernel argument preload: length in dwords (bits 0-6), offset in dwords (bits 7-15).
    pub preload: u16,
}

impl KernelDescriptor {
    /// Reads a descriptor from its bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let bytes: &[u8; 64] = bytes.first_chunk().ok_or(Error::Truncated {
            what: "kernel descriptor",
            needed: 64,
            available: bytes.len() as u64,
        })?;
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Ok(Self {
            group_segment_size: word(0),
            private_segment_size: word(4),
            kernarg_size: word(8),
            entry_offset: (u64::from(word(16)) | u64::from(word(20)) << 32) as i64,
            rsrc3: word(44),
            rsrc1: word(48),
            rsrc2: word(52),
            properties: half(56),
            preload: half(58),
        })
    }

    /// VGPRs a work-item has, architectural and accumulation ones together.
    pub fn vgprs(&self) -> u32 {
        ((self.rsrc1 & 0x3f) + 1) * 8
    }

    /// Index in the unified register file where the accumulation VGPRs begin.
    pub fn accum_offset(&self) -> u32 {
        ((self.rsrc3 & 0x3f) + 1) * 4
    }

    /// SGPRs a wave has.
    pub fn sgprs(&self) -> u32 {
        (((self.rsrc1 >> 6) & 0xf) / 2 + 1) * 16
    }

    /// User SGPRs set up before the wave starts.
    pub fn user_sgprs(&self) -> u32 {
        (self.rsrc2 >> 1) & 0x1f
    }

    /// Whether waves get scratch memory.
    pub fn uses_scratch(&self) -> bool {
        self.rsrc2 & 1 != 0
    }

    /// `FLOAT_MODE`: rounding and denormal handling, as the MODE register's low 8 bits.
    pub fn float_mode(&self) -> u32 {
        (self.rsrc1 >> 12) & 0xff
    }
}
