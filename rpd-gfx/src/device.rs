//! Descriptions of GPUs: how many there are of what, how large and how fast.
//!
//! They are data: `data/<name>.toml`, from which `build.rs` makes [`DEVICES`], and a table of counters beside it.

use crate::codeobj::{Target, Toggle};
use crate::instruction_set::InstructionSet;

/// All devices that are described, by name.
pub static DEVICES: &[Device] = include!(concat!(env!("OUT_DIR"), "/devices.rs"));

/// The description of a GPU, from its file in `data`.
#[derive(Debug)]
pub struct Device {
    /// Processor, as compilers name it: `gfx90a`.
    pub name: &'static str,
    /// Marketing name.
    pub product: &'static str,
    /// Code name of the chip.
    pub model: &'static str,
    /// Its counters, one a line: name;block;event;expression;description. Lines that begin with `#` are comments.
    pub counters: &'static str,
    /// Instruction set that it executes.
    pub code: Code,
    /// Kind of its memory.
    pub layout: Layout,
    /// Size and type of the memory.
    pub memory: Memory,
    /// Frequencies of the clocks.
    pub clocks: Clocks,
    /// Ids by which software recognises the device.
    pub identity: Identity,
    /// Numbers of queues and copy engines.
    pub queues: Queues,
    /// Links to other processors.
    pub links: Links,
    /// Limits of what a dispatch may use.
    pub limits: Limits,
    /// Sizes of the caches.
    pub caches: Caches,
    /// Durations of operations.
    pub cycles: Cycles,
    /// Blocks that count events.
    pub blocks: &'static [Block],
}

/// Instruction set and limits of a device's code.
#[derive(Debug)]
pub struct Code {
    /// Whether error correction of on-chip memory is on.
    pub sramecc: bool,
    /// Whether memory accesses are retried after a page fault.
    pub xnack: bool,
    /// 10000 * major + 100 * minor + stepping.
    pub version: u32,
    /// Whether waves begin with the base of their scratch memory, and not with an offset for kernels to add to it.
    pub architected_scratch: bool,
    /// Whether there are instructions for images, and so textures and surfaces.
    pub images: bool,
    /// Whether atomic operations on floating-point numbers work in fine-grained memory; where not, they leave the memory as
    /// it is and return 0.
    pub fine_grained_float_atomics: bool,
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Work-items that a workgroup can have.
    pub max_work_items: u32,
}

/// Hardware layout of a device: its units and their sizes.
#[derive(Debug)]
pub struct Layout {
    /// Accelerator dies.
    pub dies: u32,
    /// Shader engines.
    pub engines: u32,
    /// Shader arrays of an engine.
    pub arrays_per_engine: u32,
    /// Compute units of an engine that are in use.
    pub units_per_engine: u32,
    /// Engines, the first ones, in which one compute unit less is in use.
    pub short_engines: u32,
    /// Places for compute units in an array, in use or not.
    pub unit_slots_per_array: u32,
    /// SIMDs of a compute unit.
    pub simds_per_unit: u32,
    /// Waves that a SIMD holds.
    pub waves_per_simd: u32,
    /// Vector registers that a SIMD has for each lane.
    pub vector_registers: u32,
    /// Vector registers are given out in multiples of this.
    pub vector_register_granule: u32,
    /// Bytes of LDS of a compute unit.
    pub lds_bytes: u32,
    /// LDS is given out in multiples of this many bytes.
    pub lds_granule: u32,
    /// Workgroups of more than one wave that a compute unit can hold.
    pub barriers_per_unit: u32,
    /// Waves with scratch memory that a compute unit can hold.
    pub scratch_waves_per_unit: u32,
    /// Resources of the global wave synchronisation.
    pub global_wave_syncs: u32,
    /// Compute units that share a scalar and an instruction cache.
    pub units_per_scalar_cache: u32,
}

/// The memory of a device.
#[derive(Debug)]
pub struct Memory {
    /// Bytes that programs can allocate.
    pub bytes: u64,
    /// Width of the bus in bits.
    pub bus_bits: u32,
    /// Highest clock in MHz.
    pub clock_mhz: u32,
}

/// The clocks of a device.
#[derive(Debug)]
pub struct Clocks {
    /// Highest clock of the compute units in MHz.
    pub shader_mhz: u32,
    /// Host clock that the topology reports, in MHz.
    pub host_mhz: u32,
}

/// Identity of a device: names and numbers.
#[derive(Debug)]
pub struct Identity {
    /// PCI vendor.
    pub vendor: u32,
    /// PCI device.
    pub device: u32,
    /// Chip family.
    pub family: u32,
    /// Capability bits of the topology.
    pub capability: u32,
    /// Version of the copy engines' firmware.
    pub copy_firmware: u32,
    /// Version of the command processor's firmware.
    pub command_firmware: u32,
}

/// Links of a device.
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
    /// Whether it is xGMI, the link between AMD processors, and not PCI Express.
    pub xgmi: bool,
    /// Relative cost of a transfer; 10 for memory of the processor's own.
    pub weight: u32,
}

/// Queues and copy engines of a device.
#[derive(Debug)]
pub struct Queues {
    /// Number of copy engines.
    pub copy_engines: u32,
    /// Copy engines for links to other GPUs.
    pub link_copy_engines: u32,
    /// Number of queues of each copy engine.
    pub queues_per_copy_engine: u32,
    /// Compute queues of the command processor.
    pub command_queues: u32,
}

/// Limits of what a dispatch may use.
#[derive(Debug)]
pub struct Limits {
    /// Work-items of a grid.
    pub grid: u32,
    /// Work-items of a grid in each dimension.
    pub grid_dimensions: [u32; 3],
}

/// Size of a cache.
#[derive(Debug)]
pub struct CacheShape {
    /// Size in bytes.
    pub bytes: u32,
    /// Lines in which an address can be.
    pub ways: u32,
}

/// The caches of a device.
#[derive(Debug)]
pub struct Caches {
    /// The first-level cache of each compute unit.
    pub vector: CacheShape,
    /// The scalar cache that some compute units share.
    pub scalar: CacheShape,
    /// The instruction cache that some compute units share.
    pub instruction: CacheShape,
    /// The second-level cache, all channels together.
    pub second: CacheShape,
    /// Channels of the second-level cache.
    pub channels: u32,
    /// Successive bytes of addresses that go to one channel.
    pub interleave: u32,
}

/// Durations of operations, in cycles of the compute units.
#[derive(Debug)]
pub struct Cycles {
    /// From an LDS instruction to its result, without what the access itself takes.
    pub lds: u64,
    /// From a scalar load to its result in the scalar cache.
    pub scalar: u64,
    /// From a vector load to its result in the first-level cache.
    pub vector: u64,
    /// Further, to the second-level cache and back.
    pub second: u64,
    /// Further, to memory and back.
    pub memory: u64,
    /// Of an instruction fetch that hits.
    pub fetch: u64,
    /// From the beginning of a dispatch to its first wave.
    pub launch: u64,
    /// For sending the addresses of a vector memory instruction.
    pub send_address: u64,
}

/// A block that counts events.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name: `SQ`.
    pub name: &'static str,
    /// Counter registers of each instance: this many events can be counted together.
    pub registers: usize,
    /// Instances in a shader engine, or in an accelerator die.
    pub instances: u8,
    /// Whether each shader engine has the instances.
    pub per_engine: bool,
}

impl Device {
    /// The device of a processor name; `None` where none is described.
    pub fn find(name: &str) -> Option<&'static Self> {
        DEVICES.iter().find(|device| device.name == name)
    }

    /// The device of a processor name, if its code is executed.
    pub fn simulated(name: &str) -> Option<&'static Self> {
        Self::find(name).filter(|device| InstructionSet::of(device.name).is_some())
    }

    /// The names of all devices whose code is executed.
    pub fn simulated_names() -> Vec<&'static str> {
        let names = DEVICES.iter().map(|device| device.name);
        names
            .filter(|name| Self::simulated(name).is_some())
            .collect()
    }

    /// The target of code that runs on it, with all features.
    pub fn target(&self) -> Target {
        let toggle = |on| if on { Toggle::On } else { Toggle::Off };
        Target {
            processor: self.name.to_owned(),
            sramecc: toggle(self.code.sramecc),
            xnack: toggle(self.code.xnack),
        }
    }

    /// The counting block of a name.
    pub fn block(&self, name: &str) -> Option<&'static Block> {
        self.blocks.iter().find(|block| block.name == name)
    }
}

impl Layout {
    /// Compute units of the device.
    pub fn units(&self) -> u32 {
        self.unit_slots() - self.short_engines
    }

    /// Places for compute units, with those of short engines that are not in use.
    pub fn unit_slots(&self) -> u32 {
        self.engines * self.units_per_engine
    }

    /// SIMDs of the device.
    pub fn simds(&self) -> u32 {
        self.units() * self.simds_per_unit
    }

    /// Waves that a compute unit holds.
    pub fn waves_per_unit(&self) -> u32 {
        self.simds_per_unit * self.waves_per_simd
    }

    /// Waves of a kernel that a SIMD holds, whose lanes use this many vector registers.
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

    /// The list is what a gfx90a lists, and the end-to-end tests look for its names.
    #[test]
    fn counters_of_gfx90a_are_those_of_the_list() {
        let listed = include_str!("../../tests/golden/gfx90a-counter-names.txt").lines();
        let device = Device::find("gfx90a").expect("a device");
        let counters = device.counters.lines();
        let counters = counters.filter(|line| !line.starts_with('#'));
        let names = counters.filter_map(|line| line.split(';').next());
        assert_eq!(names.collect::<Vec<_>>(), listed.collect::<Vec<_>>());
    }

    #[test]
    fn descriptions_are_consistent() {
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
