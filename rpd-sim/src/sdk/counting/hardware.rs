//! The counting hardware of a gfx90a: blocks, how many of each there are, how many counters each has.

use rpd_metric::{Dimension, Shape};

/// A block of the GPU that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    /// Its name.
    pub(crate) name: &'static str,
    /// Counter registers of each instance: so many events can be counted together.
    pub(crate) registers: usize,
    /// Instances within a shader engine, or of the GPU.
    instances: u8,
    /// Shader engines it is in, 0 for blocks outside of them.
    engines: u8,
}

/// All blocks with events.
pub(crate) static BLOCKS: [Block; 10] = [
    block("SQ", 8, 1, 8),
    block("TA", 2, 14, 8),
    block("TD", 2, 14, 8),
    block("TCP", 4, 14, 8),
    block("TCC", 4, 32, 0),
    block("TCA", 2, 32, 0),
    block("CPC", 2, 1, 0),
    block("CPF", 2, 1, 0),
    block("SPI", 6, 1, 8),
    block("GRBM", 2, 1, 0),
];

const fn block(name: &'static str, registers: usize, instances: u8, engines: u8) -> Block {
    Block {
        name,
        registers,
        instances,
        engines,
    }
}

/// The block of a name.
pub(crate) fn find(name: &str) -> Option<&'static Block> {
    BLOCKS.iter().find(|block| block.name == name)
}

impl Block {
    /// Dimensions of its counters.
    pub(crate) fn shape(&self) -> Shape {
        let engines = (self.engines != 0).then_some((Dimension::ShaderEngine, self.engines));
        Shape::new(
            [(Dimension::Instance, self.instances)]
                .into_iter()
                .chain(engines),
        )
    }
}
