//! Descriptions of GPUs: numbers, sizes and speeds of their parts.
//!
//! They are data: the build script makes [`DEVICES`] of `data/<name>.toml`, with a table of counters beside each.

use crate::codeobj::{Target, Toggle};
use crate::instruction_set::InstructionSet;

/// All described devices, ordered by name.
pub static DEVICES: &[Device] = include!(concat!(env!("OUT_DIR"), "/devices.rs"));

/// The description of a GPU, from its file in `data`.
#[derive(Debug)]
pub struct Device {
    /// Name of the processor in compilers, such as `gfx90a`.
    pub name: &'static str,
    /// Marketing name that the simulated device reports.
    pub product: &'static str,
    /// Code name of the chip, such as `aldebaran`.
    pub model: &'static str,
    /// Counters of the device, one in a line: name;block;event;expression;description. Lines that begin with `#` are
    /// comments.
    pub counters: &'static str,
    /// Instruction set and its options.
    pub code: Code,
    /// Number and size of the units.
    pub layout: Layout,
    /// Size and speed of the memory.
    pub memory: Memory,
    /// Frequencies of the clocks.
    pub clocks: Clocks,
    /// Numbers by which software recognises the device.
    pub identity: Identity,
    /// Numbers of queues and copy engines.
    pub queues: Queues,
    /// Links to other processors.
    pub links: Links,
    /// Limits of a dispatch.
    pub limits: Limits,
    /// Sizes of the caches.
    pub caches: Caches,
    /// Durations of operations in cycles.
    pub cycles: Cycles,
    /// Hardware blocks that count events.
    pub blocks: &'static [Block],
}

/// Properties of the code that a device executes.
#[derive(Debug)]
pub struct Code {
    /// Whether error correction of on-chip memory is on (target feature `sramecc`).
    pub sramecc: bool,
    /// Whether memory accesses are retried after a page fault (target feature `xnack`).
    pub xnack: bool,
    /// Version of the instruction set: 10000 * major + 100 * minor + stepping.
    pub version: u32,
    /// Whether a wave starts with the base address of its scratch memory. Otherwise it starts with an offset that the
    /// kernel adds to a base.
    pub architected_scratch: bool,
    /// Whether there are image instructions, and thus textures and surfaces.
    pub images: bool,
    /// Whether floating-point atomics work in fine-grained memory. Where they do not, they leave the memory unchanged
    /// and return 0.
    pub fine_grained_float_atomics: bool,
    /// Number of lanes of a wave.
    pub wave_size: u32,
    /// Greatest number of work-items in a workgroup.
    pub max_work_items: u32,
}

/// Units of a device: how many there are, and how much each holds.
#[derive(Debug)]
pub struct Layout {
    /// Number of accelerator dies (XCDs).
    pub dies: u32,
    /// Number of shader engines of the device, over all dies.
    pub engines: u32,
    /// Number of shader arrays of a shader engine.
    pub arrays_per_engine: u32,
    /// Number of active compute units of a shader engine.
    pub units_per_engine: u32,
    /// Number of shader engines, counted from the first, that have one active compute unit less.
    pub short_engines: u32,
    /// Number of compute units of a shader array, active or not.
    pub unit_slots_per_array: u32,
    /// Number of SIMDs of a compute unit.
    pub simds_per_unit: u32,
    /// Greatest number of waves on a SIMD.
    pub waves_per_simd: u32,
    /// Number of vector registers of a SIMD for each lane.
    pub vector_registers: u32,
    /// Number of vector registers that are allocated together.
    pub vector_register_granule: u32,
    /// Size of the LDS of a compute unit, in bytes.
    pub lds_bytes: u32,
    /// Number of bytes of LDS that are allocated together.
    pub lds_granule: u32,
    /// Greatest number of workgroups with several waves on a compute unit: each needs a barrier.
    pub barriers_per_unit: u32,
    /// Greatest number of waves with scratch memory on a compute unit.
    pub scratch_waves_per_unit: u32,
    /// Number of resources of the global wave sync (GWS).
    pub global_wave_syncs: u32,
    /// Number of compute units that share a scalar cache and an instruction cache.
    pub units_per_scalar_cache: u32,
}

/// The memory of a device.
#[derive(Debug)]
pub struct Memory {
    /// Size that programs can allocate, in bytes.
    pub bytes: u64,
    /// Width of the bus in bits.
    pub bus_bits: u32,
    /// Highest clock rate in MHz.
    pub clock_mhz: u32,
}

/// Clock rates of a device.
#[derive(Debug)]
pub struct Clocks {
    /// Highest clock rate of the compute units in MHz.
    pub shader_mhz: u32,
    /// Clock rate of the host that the topology reports, in MHz.
    pub host_mhz: u32,
}

/// Numbers by which software recognises a device.
#[derive(Debug)]
pub struct Identity {
    /// PCI vendor id.
    pub vendor: u32,
    /// PCI device id.
    pub device: u32,
    /// Family number of the chip.
    pub family: u32,
    /// Capability bits of the KFD topology.
    pub capability: u32,
    /// Firmware version of the copy engines.
    pub copy_firmware: u32,
    /// Firmware version of the command processor.
    pub command_firmware: u32,
}

/// Links of a device to other processors.
#[derive(Debug)]
pub struct Links {
    /// Link to the host.
    pub host: Link,
    /// Link to another GPU.
    pub peer: Link,
}

/// A link between two processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Whether the link is xGMI; otherwise it is PCI Express.
    pub xgmi: bool,
    /// Relative cost of a transfer, as in the KFD topology; 10 for a processor's own memory.
    pub weight: u32,
    /// Bandwidth in each direction, in millions of bytes per second.
    pub megabytes_per_second: u32,
}

/// Queues and copy engines of a device.
#[derive(Debug)]
pub struct Queues {
    /// Number of copy engines.
    pub copy_engines: u32,
    /// Number of copy engines for links to other GPUs.
    pub link_copy_engines: u32,
    /// Number of queues of a copy engine.
    pub queues_per_copy_engine: u32,
    /// Number of compute queues of the command processor.
    pub command_queues: u32,
}

/// Limits of a dispatch.
#[derive(Debug)]
pub struct Limits {
    /// Greatest number of work-items of a grid.
    pub grid: u32,
    /// Greatest number of work-items of a grid in each dimension.
    pub grid_dimensions: [u32; 3],
}

/// Size and associativity of a cache.
#[derive(Debug)]
pub struct CacheShape {
    /// Size in bytes.
    pub bytes: u32,
    /// Number of ways: cache lines that can hold an address.
    pub ways: u32,
}

/// The caches of a device.
#[derive(Debug)]
pub struct Caches {
    /// First-level vector cache of a compute unit.
    pub vector: CacheShape,
    /// Scalar cache, shared by some compute units.
    pub scalar: CacheShape,
    /// Instruction cache, shared by some compute units.
    pub instruction: CacheShape,
    /// Second-level cache, all channels together.
    pub second: CacheShape,
    /// Number of channels of the second-level cache.
    pub channels: u32,
    /// Number of consecutive bytes of the address space that one channel caches.
    pub interleave: u32,
}

/// Durations of operations, in cycles of the compute units' clock.
#[derive(Debug)]
pub struct Cycles {
    /// Latency of an LDS instruction, without the cycles of the access itself.
    pub lds: u64,
    /// Latency of a scalar load that hits the scalar cache.
    pub scalar: u64,
    /// Latency of a vector load that hits the first-level cache.
    pub vector: u64,
    /// Additional latency of an access that is served by the second-level cache.
    pub second: u64,
    /// Latency that an access to memory adds to that of the second-level cache.
    pub memory: u64,
    /// Latency of an instruction fetch that hits the instruction cache.
    pub fetch: u64,
    /// Time from the begin of a dispatch to the start of its first wave.
    pub launch: u64,
    /// Time in which the addresses of a vector memory instruction are sent.
    pub send_address: u64,
}

/// A hardware block that counts events.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Name of the block in counter definitions, such as `SQ`.
    pub name: &'static str,
    /// Number of counter registers of an instance: so many events can be counted at the same time.
    pub registers: usize,
    /// Number of instances in a shader engine or in an accelerator die: see `per_engine`.
    pub instances: u8,
    /// Whether each shader engine has `instances` of the block; otherwise each die has.
    pub per_engine: bool,
}

impl Device {
    /// The device with this processor name; `None` if none is described.
    pub fn find(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name == name)
    }

    /// The device with this processor name, if the simulator can execute its code.
    pub fn simulated(name: &str) -> Option<&'static Self> {
        Self::find(name).filter(|device| InstructionSet::from_processor(device.name).is_some())
    }

    /// Processor names of all devices whose code the simulator can execute.
    pub fn simulated_names() -> Vec<&'static str> {
        let names = DEVICES.iter().map(|device| device.name);
        names
            .filter(|name| Self::simulated(name).is_some())
            .collect()
    }

    /// The compiler target of code for this device, with all features.
    pub fn target(&self) -> Target {
        let toggle = |on| if on { Toggle::On } else { Toggle::Off };
        Target {
            processor: self.name.to_owned(),
            sramecc: toggle(self.code.sramecc),
            xnack: toggle(self.code.xnack),
        }
    }

    /// The counting block with this name.
    pub fn block(&self, name: &str) -> Option<&'static Block> {
        self.blocks.iter().find(|block| block.name == name)
    }
}

impl Layout {
    /// Number of active compute units of the device.
    pub fn units(&self) -> u32 {
        self.unit_slots() - self.short_engines
    }

    /// Number of compute units of the device, those of short engines included that are not active.
    pub fn unit_slots(&self) -> u32 {
        self.engines * self.units_per_engine
    }

    /// Number of SIMDs of the device.
    pub fn simds(&self) -> u32 {
        self.units() * self.simds_per_unit
    }

    /// Greatest number of waves on a compute unit.
    pub fn waves_per_unit(&self) -> u32 {
        self.simds_per_unit * self.waves_per_simd
    }

    /// Greatest number of waves on a SIMD, for a kernel that uses this many vector registers.
    pub fn waves_by_registers(&self, registers: u32) -> u32 {
        let given = registers
            .max(1)
            .next_multiple_of(self.vector_register_granule);
        (self.vector_registers / given).clamp(1, self.waves_per_simd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the counters of gfx90a, whose names the end-to-end tests look for.
    #[test]
    fn gfx90a_has_the_counters_of_the_golden_list() {
        let listed = include_str!("../../tests/golden/gfx90a-counter-names.txt").lines();
        let device = Device::find("gfx90a").expect("a device");
        let counters = device.counters.lines();
        let counters = counters.filter(|line| !line.starts_with('#'));
        let names = counters.filter_map(|line| line.split(';').next());
        assert_eq!(names.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
    }

    #[test]
    fn device_descriptions_are_consistent() {
        for device in DEVICES {
            let (name, layout, caches) = (device.name, &device.layout, &device.caches);
            assert_eq!(Device::find(name).map(|found| found.name), Some(name));
            let slots = layout.arrays_per_engine * layout.unit_slots_per_array;
            assert!(layout.units_per_engine <= slots, "{name}");
            assert!(layout.short_engines <= layout.engines, "{name}");
            assert_eq!(layout.engines % layout.dies, 0, "{name}");
            assert_eq!(caches.channels % layout.dies, 0, "{name}");
            assert_eq!(caches.second.bytes % caches.channels, 0, "{name}");
            for block in device.blocks {
                assert!(
                    block.registers > 0 && block.instances > 0,
                    "{name} {}",
                    block.name
                );
            }
            for line in device
                .counters
                .lines()
                .filter(|line| !line.starts_with('#'))
            {
                assert_eq!(line.split(';').count(), 5, "{name}: {line}");
            }
        }
        assert!(Device::find("gfx000").is_none());
    }

    #[test]
    fn registers_are_given_out_in_granules() {
        let layout = &Device::find("gfx90a").expect("a device").layout;
        let waves = [0, 64, 65, 128, 512].map(|registers| layout.waves_by_registers(registers));
        assert_eq!(waves, [8, 8, 7, 4, 1]);
    }
}
