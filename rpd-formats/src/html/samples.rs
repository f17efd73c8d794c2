//! PC samples on the page: how many were taken on each compute unit.

use std::collections::{BTreeMap, HashMap};

use rpd_core::ids::{AgentHandle, CodeObjectId};
use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::session::samples::UNIT;

use super::timeline::agent_name;
use super::traces::engine_name;
use crate::json::Object;

/// Added to the number of a compute unit of the second shader array, as thread traces have it.
const SECOND_ARRAY: u64 = 128;

/// Die and shader engine.
type Engine = (u64, u64);

/// A JSON object for each sampled GPU.
pub(super) fn all(session: &Session, options: &Options) -> Vec<String> {
    let gpus = units(session).into_iter();
    gpus.map(|(agent, engines)| {
        let engines = engines.iter().map(|(&(die, engine), units)| {
            let per_die = session
                .agent(agent)
                .map_or(0, |agent| agent.num_shader_banks / agent.num_xcc.max(1));
            let number = die as u32 * per_die + engine as u32;
            let units = units
                .iter()
                .map(|(unit, samples)| format!("[{unit},{samples},{samples}]"));
            Object::new()
                .text("name", &engine_name(session, agent, number))
                .array("units", units)
                .end()
        });
        Object::new()
            .text("agent", &agent_name(session, agent, options))
            .array("engines", engines)
            .end()
    })
    .collect()
}

/// Samples by compute unit, by engine, by GPU.
fn units(session: &Session) -> BTreeMap<AgentHandle, BTreeMap<Engine, BTreeMap<u64, u64>>> {
    let samples = &session.samples;
    let objects = session.code_objects.iter();
    let agents: HashMap<CodeObjectId, AgentHandle> =
        objects.map(|object| (object.id, object.agent)).collect();
    // Addresses outside of all code objects are in the runtime's own copy kernels. Their GPU is known only if a
    // single one was sampled.
    let only = match session.sampling.as_slice() {
        [one] => Some(one.agent),
        _ => None,
    };
    let mut counts: HashMap<(CodeObjectId, [u64; UNIT.len()]), u64> = HashMap::new();
    for sample in samples.indices() {
        let place = UNIT.map(|field| field.of(samples.hardware[sample]));
        *counts.entry((samples.object[sample], place)).or_default() += 1;
    }
    let mut units: BTreeMap<AgentHandle, BTreeMap<Engine, BTreeMap<u64, u64>>> = BTreeMap::new();
    for ((object, [die, engine, array, unit]), count) in counts {
        if let Some(agent) = agents.get(&object).copied().or(only) {
            let engines = units.entry(agent).or_default();
            let of_engine = engines.entry((die, engine)).or_default();
            *of_engine.entry(unit + SECOND_ARRAY * array).or_default() += count;
        }
    }
    units
}
