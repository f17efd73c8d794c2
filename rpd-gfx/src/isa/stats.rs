//! Counts of a dispatch's executed instructions.

/// Class of an instruction, as hardware counters distinguish them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Vector arithmetic (`SQ_INSTS_VALU`).
    Valu,
    /// Matrix arithmetic (`SQ_INSTS_MFMA`, also counted as VALU by the hardware).
    Mfma,
    /// Scalar arithmetic.
    Salu,
    /// Scalar memory.
    Smem,
    /// Loads through buffer and global instructions.
    VmemRead,
    /// Stores and atomics through buffer and global instructions.
    VmemWrite,
    /// Flat instructions, whose address decides between LDS, scratch and global memory.
    Flat,
    /// LDS instructions.
    Lds,
    /// Branch instructions.
    Branch,
    /// Message instructions (`s_sendmsg`).
    SendMessage,
    /// Waits, barriers, no-ops and the end of the program.
    Other,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = Self::Other as usize + 1;
}

/// Counts of a dispatch's executed instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of workgroups that were executed.
    pub workgroups: u64,
    /// Number of waves that were executed.
    pub waves: u64,
    /// Number of work-items that were executed.
    pub work_items: u64,
    /// Number of instructions that waves executed, by [`Class`].
    pub instructions: [u64; Class::COUNT],
    /// Number of active lanes in vector arithmetic, added up over the instructions.
    pub valu_lanes: u64,
    /// Number of bytes that were loaded from global memory.
    pub bytes_loaded: u64,
    /// Number of bytes that were stored to global memory.
    pub bytes_stored: u64,
    /// Number of atomic operations on global memory, each lane counted.
    pub atomics: u64,
    /// Number of bytes that were read and written in LDS.
    pub lds_bytes: u64,
}

impl Stats {
    #[cfg(test)]
    /// Number of instructions of a class.
    pub fn count(&self, class: Class) -> u64 {
        self.instructions[class as usize]
    }

    #[cfg(test)]
    /// Number of instructions of all classes.
    pub fn total(&self) -> u64 {
        self.instructions.iter().sum()
    }

    /// Duration by the clock that kernels of a seeded dispatch read: four core cycles for each instruction.
    pub fn own_time(&self, device: &crate::device::Device) -> std::time::Duration {
        let executed: u64 = self.instructions.iter().sum();
        let cycles = u128::from(executed) * 4;
        let nanoseconds = cycles * 1000 / u128::from(device.clocks.shader_mhz);
        std::time::Duration::from_nanos(nanoseconds as u64)
    }

    /// Adds the counts of another part of the dispatch.
    pub fn add(&mut self, other: &Stats) {
        self.workgroups += other.workgroups;
        self.waves += other.waves;
        self.work_items += other.work_items;
        for (sum, part) in self.instructions.iter_mut().zip(other.instructions) {
            *sum += part;
        }
        self.valu_lanes += other.valu_lanes;
        self.bytes_loaded += other.bytes_loaded;
        self.bytes_stored += other.bytes_stored;
        self.atomics += other.atomics;
        self.lds_bytes += other.lds_bytes;
    }
}
