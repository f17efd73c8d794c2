//! Counter values of a dispatch.

use super::catalogue::{self, Event};
use super::numbering::Numbering;
use super::tally::{Channel, Device, Engine, Unit};

/// The counter values of one dispatch, by event and instance.
#[derive(Debug, Clone)]
pub struct Counts {
    pub(super) numbering: &'static Numbering,
    pub(super) units_per_engine: usize,
    pub(super) engines: Vec<Engine>,
    pub(super) units: Vec<Unit>,
    pub(super) channels: Vec<Channel>,
    pub(super) device: Device,
}

impl Counts {
    /// Value of an event in one instance of its block. `shader_engine` and `instance` are counted over all dies, and
    /// are 0 for counters without the dimension. Instances that the device does not have yield 0. `None` exactly
    /// where [`super::determined`] is false.
    pub fn value(&self, block: &str, event: u32, shader_engine: u32, instance: u32) -> Option<f64> {
        let (engine, instance) = (shader_engine as usize, instance as usize);
        let event = self.numbering.event(block, event)?;
        let value = match block {
            "SQ" => {
                let engine = self.engine(engine, instance);
                read(catalogue::SQ, event, engine)
                    .or_else(|| read(catalogue::SQ_LATER, event, engine))?
            }
            "SPI" => read(catalogue::SPI, event, self.engine(engine, instance))?,
            "TA" => read(catalogue::TA, event, self.unit(engine, instance))?,
            "TD" => read(catalogue::TD, event, self.unit(engine, instance))?,
            "TCP" => read(catalogue::TCP, event, self.unit(engine, instance))?,
            "TCC" => {
                let channel = self.channels.get(instance);
                read(catalogue::TCC, event, channel)
                    .or_else(|| read(catalogue::TCC_LATER, event, channel))?
            }
            "TCA" => {
                let arbiter = (instance < self.channels.len()).then_some(&self.device);
                read(catalogue::TCA, event, arbiter)?
            }
            "GRBM" => read(catalogue::GRBM, event, Some(&self.device))?,
            "CPC" => read(catalogue::CPC, event, Some(&self.device))?,
            "CPF" => read(catalogue::CPF, event, Some(&self.device))?,
            _ => return None,
        };
        Some(value as f64)
    }

    /// Level of an event, added up over all cycles of the dispatch: what `SQ_ACCUM_PREV_HIRES` reads after it.
    /// `SQ_ACCUM_PREV` samples every fourth cycle and reads a quarter of this. `None` exactly where
    /// [`super::accumulates`] is false.
    pub fn accumulated(
        &self,
        block: &str,
        event: u32,
        shader_engine: u32,
        instance: u32,
    ) -> Option<f64> {
        let engine = self.engine(shader_engine as usize, instance as usize);
        let event = self.numbering.event(block, event)?;
        match block {
            "SQ" => read(catalogue::SQ_LEVELS, event, engine).map(|value| value as f64),
            _ => None,
        }
    }

    fn engine(&self, engine: usize, instance: usize) -> Option<&Engine> {
        self.engines.get(engine).filter(|_| instance == 0)
    }

    fn unit(&self, engine: usize, instance: usize) -> Option<&Unit> {
        let there = engine < self.engines.len() && instance < self.units_per_engine;
        let unit = self.units.get(engine * self.units_per_engine + instance);
        unit.filter(|_| there)
    }
}

fn read<T>(events: &[Event<T>], number: u32, from: Option<&T>) -> Option<u64> {
    let event = events.iter().find(|event| event.number == number)?;
    Some(from.map_or(0, event.read))
}
