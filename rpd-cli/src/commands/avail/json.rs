//! The listings as one JSON document, with the provider's names of properties.

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::{Listed, ListingContent};
use crate::counters::ProviderCounters;
use crate::counters::protocol::{Agent, Sampling};

pub(super) fn text(
    provider: &ProviderCounters,
    wanted: &ListingContent,
    listed: &[Listed],
    sampling: &[(usize, Vec<Sampling>)],
) -> Result<String> {
    let mut gpus = Vec::new();
    for of in listed {
        let known = &provider.gpus[of.gpu];
        let mut gpu = Map::new();
        gpu.insert("gpu".into(), known.agent.logical_node_type_id.into());
        gpu.insert("name".into(), known.agent.name.as_str().into());
        if wanted.agents {
            // Handles are valid in one process only.
            let agent = Agent {
                handle: 0,
                ..known.agent.clone()
            };
            gpu.insert("agent".into(), serde_json::to_value(agent)?);
        }
        if wanted.names || wanted.described {
            let counters: Vec<Value> = of
                .counters
                .iter()
                .map(|(index, reason)| {
                    let counter = &known.counters[*index];
                    let mut value = json!({
                        "name": counter.name,
                        "available": reason.is_none(),
                    });
                    if let Some(reason) = reason {
                        value["reason"] = reason.as_str().into();
                    }
                    if wanted.described {
                        value["description"] = counter.description.as_str().into();
                        value["block"] = counter.block.as_str().into();
                        value["expression"] = counter.expression.as_str().into();
                        value["constant"] = counter.constant.into();
                        value["derived"] = counter.derived.into();
                        value["dimensions"] = json!(counter.dimensions);
                    }
                    value
                })
                .collect();
            gpu.insert("counters".into(), counters.into());
        }
        if wanted.sampling.is_some() {
            let configurations = sampling
                .iter()
                .find(|(gpu, _)| *gpu == of.gpu)
                .map(|(_, configurations)| configurations.as_slice())
                .unwrap_or_default();
            gpu.insert("pc_sampling".into(), json!(configurations));
        }
        if wanted.spm {
            // SDK 1.0 has no such service.
            gpu.insert("spm".into(), json!([]));
        }
        gpus.push(Value::Object(gpu));
    }
    let mut document = json!({ "library": provider.library.display().to_string(), "gpus": gpus });
    if wanted.agents && !wanted.names {
        let cpus: Vec<Agent> = provider
            .agents
            .iter()
            .filter(|agent| !agent.gpu)
            .map(|agent| Agent {
                handle: 0,
                ..agent.clone()
            })
            .collect();
        document["cpus"] = json!(cpus);
    }
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
