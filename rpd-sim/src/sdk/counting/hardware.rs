//! Dimensions of the hardware blocks of a device that count.

use crate::gpu::agents;
use rpd_gfx::device::Block;
use rpd_metric::{Dimension, Position, Shape};

/// Dimensions of the counters of a block.
pub(crate) fn shape(block: &Block) -> Shape {
    let layout = &agents::device().layout;
    let engines = (
        Dimension::ShaderEngine,
        (layout.engines / layout.dies) as u8,
    );
    let dies = (Dimension::Xcc, layout.dies as u8);
    Shape::new(
        [(Dimension::Instance, block.instances)]
            .into_iter()
            .chain(block.per_engine.then_some(engines))
            .chain((layout.dies > 1).then_some(dies)),
    )
}

/// Index of the engine and the instance, both over all dies, that a position stands for.
pub(crate) fn place(block: &Block, position: Position) -> (u32, u32) {
    let layout = &agents::device().layout;
    let get = |dimension| u32::from(position.get(dimension));
    let (die, engine) = (get(Dimension::Xcc), get(Dimension::ShaderEngine));
    let instance = get(Dimension::Instance);
    if block.per_engine {
        (die * (layout.engines / layout.dies) + engine, instance)
    } else {
        (engine, die * u32::from(block.instances) + instance)
    }
}
