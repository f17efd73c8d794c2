//! The dimensions of what the counting blocks of a device count.

use crate::gpu::agents;
use rpd_gfx::device::Block;
use rpd_metric::{Dimension, Shape};

/// Dimensions of the counters of a block.
pub(crate) fn shape(block: &Block) -> Shape {
    let engines = agents::device().layout.engines;
    let engines = (Dimension::ShaderEngine, engines as u8);
    Shape::new(
        [(Dimension::Instance, block.instances)]
            .into_iter()
            .chain(block.per_engine.then_some(engines)),
    )
}
