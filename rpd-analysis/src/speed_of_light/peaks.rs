//! What GPUs can do at most, from `data/peaks.toml` and what an agent reports.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::records::Gpu;

/// What a GPU of an architecture does at most in a clock; the meaning of each field stands in `data/peaks.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peaks {
    /// FLOP of the vector units of a compute unit, by type.
    pub vector: BTreeMap<String, f64>,
    /// FLOP of the matrix units of a compute unit, by type.
    pub matrix: BTreeMap<String, f64>,
    /// Bytes of LDS of a compute unit.
    pub lds: f64,
    /// Bytes of the vector cache of a compute unit.
    pub l1: f64,
    /// Bytes of an access to the vector cache.
    pub l1_line: f64,
    /// Bytes of a channel of L2.
    pub l2: f64,
    /// Channels of L2 of a die.
    pub l2_channels: u32,
    /// Transfers of memory in a clock.
    pub memory_factor: f64,
    /// Bytes read behind L2, by counter.
    pub fabric_read: BTreeMap<String, f64>,
    /// Bytes written behind L2, by counter.
    pub fabric_write: BTreeMap<String, f64>,
    /// Counters of these that may be absent.
    pub assumed_zero: Vec<String>,
    /// Whether memory is next behind L2.
    pub is_memory: bool,
}

impl Peaks {
    /// Finds the peaks of an architecture, such as `gfx90a`; `None` for one that is not described.
    pub fn find(arch: &str) -> Option<&'static Peaks> {
        static ALL: LazyLock<BTreeMap<String, Peaks>> = LazyLock::new(|| {
            // The file is part of the program, and a test reads it.
            toml::from_str(include_str!("../../data/peaks.toml")).expect("the table of peaks")
        });
        ALL.get(arch.split(':').next().unwrap_or_default())
    }

    /// Names of the counters that the figures of a kernel are made of.
    pub fn counters(&self) -> Vec<String> {
        let mut names: Vec<String> = COUNTERS.iter().map(|name| (*name).to_owned()).collect();
        for kind in self.vector.keys() {
            let of = |operation: &str| format!("SQ_INSTS_VALU_{operation}_{kind}");
            names.extend(["ADD", "MUL", "TRANS", "FMA"].map(of));
        }
        let matrix = self.matrix.keys();
        names.extend(matrix.map(|kind| format!("SQ_INSTS_VALU_MFMA_MOPS_{kind}")));
        let fabric = self.fabric_read.keys().chain(self.fabric_write.keys());
        names.extend(
            fabric
                .filter(|name| !self.assumed_zero.contains(name))
                .cloned(),
        );
        names
    }
}

/// Counters that every described GPU has.
const COUNTERS: [&str; 31] = [
    "GRBM_GUI_ACTIVE",
    "SQ_INSTS_VMEM",
    "SQ_INSTS",
    "SQ_BUSY_CU_CYCLES",
    "SQ_WAVE_CYCLES",
    "SQ_WAIT_ANY",
    "SQ_WAIT_INST_ANY",
    "SQ_ACTIVE_INST_ANY",
    "SQ_ACTIVE_INST_VALU",
    "SQ_ACTIVE_INST_SCA",
    "SQ_ACTIVE_INST_FLAT",
    "SQ_ACTIVE_INST_VMEM",
    "SQ_VALU_MFMA_BUSY_CYCLES",
    "SQ_THREAD_CYCLES_VALU",
    "SQ_INSTS_VALU_INT32",
    "SQ_INSTS_VALU_INT64",
    "SQ_LDS_IDX_ACTIVE",
    "SQ_LDS_BANK_CONFLICT",
    "TCP_TOTAL_CACHE_ACCESSES_sum",
    "TCP_TCC_READ_REQ_sum",
    "TCP_TCC_WRITE_REQ_sum",
    "TCP_TCC_ATOMIC_WITH_RET_REQ_sum",
    "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum",
    "TCC_REQ_sum",
    "TCC_HIT_sum",
    "TCC_MISS_sum",
    "SQC_DCACHE_HITS",
    "SQC_DCACHE_MISSES",
    "SQC_ICACHE_HITS",
    "SQC_ICACHE_MISSES",
    "MeanOccupancyPerCU",
];

/// A GPU with what it can do in a second. What is not known is `None`.
#[derive(Debug, Clone, Copy)]
pub struct Device<'a> {
    /// The GPU.
    pub gpu: &'a Gpu,
    /// What its architecture does in a clock.
    pub peaks: Option<&'static Peaks>,
    /// Greatest shader clock in Hz.
    pub clock: Option<f64>,
    /// Bytes per second of its memory.
    pub memory: Option<f64>,
}

impl<'a> Device<'a> {
    /// The device that a GPU is.
    pub fn new(gpu: &'a Gpu) -> Device<'a> {
        let peaks = Peaks::find(&gpu.arch);
        let known = |value: u32| (value > 0).then(|| f64::from(value));
        let memory = || {
            let bus = known(gpu.memory_bits)? / 8.0;
            Some(bus * known(gpu.memory_mhz)? * 1e6 * peaks?.memory_factor)
        };
        Device {
            gpu,
            peaks,
            clock: known(gpu.shader_mhz).map(|mhz| mhz * 1e6),
            memory: memory(),
        }
    }

    /// Number of compute units; `None` when it is not known.
    pub fn units(&self) -> Option<f64> {
        (self.gpu.units > 0).then(|| self.gpu.units.into())
    }

    /// Number of channels of L2; `None` when it is not known.
    pub fn channels(&self) -> Option<f64> {
        let channels = self.peaks?.l2_channels * self.gpu.dies.max(1);
        (channels > 0).then(|| channels.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peaks_of_known_products_are_those_of_their_data_sheets() {
        // Architecture, units, MHz, type, TFLOP/s of the vector and of the matrix units.
        for (arch, units, mhz, kind, vector, matrix) in [
            ("gfx90a", 110.0, 1700.0, "F64", 23.9, 47.9),
            ("gfx90a", 110.0, 1700.0, "F16", 47.9, 191.5),
            ("gfx942", 304.0, 2100.0, "F64", 81.7, 163.4),
            ("gfx942", 304.0, 2100.0, "F16", 163.4, 1307.4),
            ("gfx950", 256.0, 2400.0, "F64", 78.6, 78.6),
        ] {
            let peaks = Peaks::find(arch).expect("described");
            let rate = |of: &BTreeMap<String, f64>| of[kind] * units * mhz * 1e6 / 1e12;
            assert!((rate(&peaks.vector) - vector).abs() < 0.06, "{arch} {kind}");
            assert!((rate(&peaks.matrix) - matrix).abs() < 0.06, "{arch} {kind}");
        }
        assert!(Peaks::find("gfx1234").is_none());
    }

    #[test]
    fn memory_is_as_fast_as_the_agent_says() {
        // answers-63: of two products of one architecture each has the peak of its own clock.
        for (mhz, bytes) in [(1300, 5_324.8e9), (1500, 6_144e9)] {
            let gpu = Gpu {
                arch: "gfx942".to_owned(),
                memory_mhz: mhz,
                memory_bits: 8192,
                ..Gpu::default()
            };
            let memory = Device::new(&gpu).memory.expect("known");
            assert!((memory - bytes).abs() < 1.0, "{memory}");
        }
    }
}
