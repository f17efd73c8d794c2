//! Kernel descriptors: the 64 bytes that the command processor reads to start a kernel.

use super::Error;

/// A kernel descriptor (`name.kd`), decoded for gfx90a.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelDescriptor {
    /// Static LDS of a workgroup in bytes.
    pub group_segment_size: u32,
    /// Scratch memory of a work-item in bytes.
    pub private_segment_size: u32,
    /// Size of the kernel argument block in bytes.
    pub kernarg_size: u32,
    /// Distance from the descriptor to the first instruction in bytes.
    pub entry_offset: i64,
    /// Value of the register `COMPUTE_PGM_RSRC1`.
    pub rsrc1: u32,
    /// Value of the register `COMPUTE_PGM_RSRC2`.
    pub rsrc2: u32,
    /// Value of the register `COMPUTE_PGM_RSRC3`.
    pub rsrc3: u32,
    /// Kernel code properties, a bit each: which values are in user SGPRs when a wave starts.
    pub properties: u16,
    /// Kernel arguments that are preloaded into SGPRs: length in dwords (bits 0-6), offset in dwords (bits 7-15).
    pub preload: u16,
}

impl KernelDescriptor {
    /// Decodes a descriptor from its 64 bytes.
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

    /// Number of VGPRs of a work-item, architected and accumulation ones together.
    pub fn vgprs(&self) -> u32 {
        ((self.rsrc1 & 0x3f) + 1) * 8
    }

    /// Index of the first accumulation VGPR in the unified register file.
    pub fn accum_offset(&self) -> u32 {
        ((self.rsrc3 & 0x3f) + 1) * 4
    }

    /// Number of SGPRs of a wave.
    pub fn sgprs(&self) -> u32 {
        (((self.rsrc1 >> 6) & 0xf) / 2 + 1) * 16
    }

    /// Number of user SGPRs, which are initialised before the wave starts.
    pub fn user_sgprs(&self) -> u32 {
        (self.rsrc2 >> 1) & 0x1f
    }

    /// Number of SGPRs that are initialised before a wave starts: the user SGPRs, the workgroup's coordinates and
    /// size, and the offset of the wave's scratch memory.
    pub fn initial_sgprs(&self) -> u32 {
        let system = self.rsrc2 & (1 | 0xf << 7);
        self.user_sgprs() + system.count_ones()
    }

    /// Whether waves have scratch memory.
    pub fn uses_scratch(&self) -> bool {
        self.rsrc2 & 1 != 0
    }

    /// `FLOAT_MODE`: rounding and denormal modes, in the format of the MODE register's low 8 bits.
    pub fn float_mode(&self) -> u32 {
        (self.rsrc1 >> 12) & 0xff
    }
}
