//! The listings as text, in the layout of rocprofv3-avail.

use std::fmt::Write as _;

use rpd_core::compat::Difference;

use super::{Common, Detail, Listed, ListingContent};
use crate::counters::protocol::{Agent, Counter, Extent, Sampling};
use crate::counters::{Gpu, ProviderCounters};
use crate::terminal;

/// Width of the listing when the output is not a terminal.
const WIDTH: usize = 120;

/// Appends a line with a padded label and a value. Writing to a string cannot fail.
fn line(text: &mut String, width: usize, label: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{label:width$}:\t{value}");
}

/// Appends the listing of one GPU.
pub(super) fn gpu(
    provider: &ProviderCounters,
    wanted: &ListingContent,
    of: &Listed,
    common: &Common,
    text: &mut String,
) {
    let known = &provider.gpus[of.gpu];
    let agent = &known.agent;
    if wanted.agents {
        let _ = writeln!(text, "GPU:{}\n", agent.logical_node_type_id);
        properties(agent, text);
        if !wanted.names {
            text.push_str("\n\n");
        }
    } else if wanted.names {
        line(text, 30, "GPU", agent.logical_node_type_id);
        line(text, 30, "Name", &agent.name);
    }
    if wanted.names {
        names(known, of, common, text);
    }
    if wanted.described {
        let _ = writeln!(
            text,
            "GPU:{}\nName:{}",
            agent.logical_node_type_id, agent.name
        );
        if of.counters.is_empty() && !common.compat.has(Difference::AvailUnknown) {
            none(known, common, text);
        }
        for (index, reason) in &of.counters {
            described(&known.counters[*index], reason.as_deref(), text);
            text.push_str("\n\n");
        }
    }
}

/// Appends the agents that are not GPUs.
pub(super) fn cpus(provider: &ProviderCounters, text: &mut String) {
    for agent in provider.agents.iter().filter(|agent| !agent.gpu) {
        let _ = writeln!(text, "CPU:{}\n", agent.logical_node_type_id);
        properties(agent, text);
        text.push_str("\n\n");
    }
}

fn none(known: &Gpu, common: &Common, text: &mut String) {
    let what = match (known.counters.is_empty(), &common.filter) {
        (false, Some(filter)) => format!("No counter with {filter:?} in its name or description"),
        _ => "No counter is supported".to_owned(),
    };
    let _ = writeln!(text, "{what}\n");
}

fn names(known: &Gpu, of: &Listed, common: &Common, text: &mut String) {
    let width = terminal::width(std::io::stdout()).unwrap_or(WIDTH);
    let of_kind = |available: bool| -> Vec<&str> {
        of.counters
            .iter()
            .filter(|(_, reason)| reason.is_none() == available)
            .map(|(index, _)| known.counters[*index].name.as_str())
            .collect()
    };
    let (available, not) = (of_kind(true), of_kind(false));
    let _ = writeln!(text, "{:30}:\n", "PMC");
    if available.is_empty() && not.is_empty() {
        none(known, common, text);
    }
    columns(&available, width, text);
    text.push_str("\n\n");
    if !not.is_empty() {
        let _ = writeln!(text, "{:30}:\n", "Not available");
        columns(&not, width, text);
        text.push_str("\n\n");
    }
}

/// Appends names padded to the longest, as many per line as fit.
fn columns(names: &[&str], width: usize, text: &mut String) {
    let longest = names.iter().map(|name| name.len()).max().unwrap_or(0);
    let count = (width / (longest + 1)).max(1);
    for names in names.chunks(count) {
        let padded: Vec<String> = names
            .iter()
            .map(|name| format!("{name:longest$}"))
            .collect();
        let _ = writeln!(text, "{}", padded.join(" "));
    }
}

fn properties(agent: &Agent, text: &mut String) {
    let seen = agent.runtime_visibility;
    // The original prints these as Python dictionaries.
    let extent = |extent: Extent| {
        format!(
            "{{'x': {}, 'y': {}, 'z': {}}}",
            extent.x, extent.y, extent.z
        )
    };
    let visibility = format!(
        "{{'hsa': {}, 'hip': {}, 'rccl': {}, 'rocdecode': {}}}",
        seen.hsa, seen.hip, seen.rccl, seen.rocdecode
    );
    let lines: [(&str, &dyn std::fmt::Display); 24] = [
        ("cpu_cores_count", &agent.cpu_cores_count),
        ("simd_count", &agent.simd_count),
        ("max_waves_per_simd", &agent.max_waves_per_simd),
        ("runtime_visibility", &visibility),
        ("wave_front_size", &agent.wave_front_size),
        ("num_xcc", &agent.num_xcc),
        ("cu_count", &agent.cu_count),
        ("array_count", &agent.array_count),
        ("num_shader_banks", &agent.num_shader_banks),
        ("simd_arrays_per_engine", &agent.simd_arrays_per_engine),
        ("cu_per_simd_array", &agent.cu_per_simd_array),
        ("simd_per_cu", &agent.simd_per_cu),
        ("gfx_target_version", &agent.gfx_target_version),
        ("max_waves_per_cu", &agent.max_waves_per_cu),
        ("gpu_id", &agent.gpu_id),
        ("workgroup_max_dim", &extent(agent.workgroup_max_dim)),
        ("grid_max_dim", &extent(agent.grid_max_dim)),
        ("name", &agent.name),
        ("vendor_name", &agent.vendor_name),
        ("product_name", &agent.product_name),
        ("model_name", &agent.model_name),
        ("node_id", &agent.node_id),
        ("logical_node_id", &agent.logical_node_id),
        ("logical_node_type_id", &agent.logical_node_type_id),
    ];
    for (label, value) in lines {
        line(text, 30, label, value);
    }
}

fn described(counter: &Counter, reason: Option<&str>, text: &mut String) {
    line(text, 20, "Counter_Name", &counter.name);
    line(text, 20, "Description", &counter.description);
    // Constants are facts about a GPU: they have no block and no dimensions.
    if !counter.constant {
        if counter.derived {
            line(text, 20, "Expression", &counter.expression)
        } else {
            line(text, 20, "Block", &counter.block)
        }
        let dimensions: Vec<String> = counter
            .dimensions
            .iter()
            .map(|dimension| format!("{}[0:{}]", dimension.name, dimension.size.saturating_sub(1)))
            .collect();
        line(text, 20, "Dimensions", dimensions.join(" "));
    }
    if let Some(reason) = reason {
        line(text, 20, "Not_Available", reason);
    }
}

/// Appends PC sampling of the GPUs that support it; `refused` is the provider's reason for a GPU without it, if shown.
pub(super) fn sampling(
    provider: &ProviderCounters,
    detail: Detail,
    offered: &[(usize, Vec<Sampling>)],
    refused: Option<&str>,
    text: &mut String,
) {
    if detail == Detail::Gpus {
        text.push_str("Agents supporting PC Sampling\n\n");
    }
    if let Some(refused) = refused
        && offered.is_empty()
    {
        let why = match refused {
            "" => String::new(),
            refused => format!(" ({refused})"),
        };
        let _ = writeln!(text, "No GPU supports PC sampling{why}\n");
    }
    for (gpu, configurations) in offered {
        let agent = &provider.gpus[*gpu].agent;
        line(text, 8, "GPU", agent.logical_node_type_id);
        line(text, 8, "Name", &agent.name);
        if detail == Detail::Configurations {
            let _ = writeln!(text, "{:8}:", "configs");
            for configuration in configurations {
                let flags = if configuration.power_of_two {
                    "interval pow2"
                } else {
                    "none"
                };
                let lines: [(&str, &dyn std::fmt::Display); 5] = [
                    ("Method", &configuration.method),
                    ("Unit", &configuration.unit),
                    ("Min_Interval", &configuration.min_interval),
                    ("Max_Interval", &configuration.max_interval),
                    ("Flags", &flags),
                ];
                for (label, value) in lines {
                    text.push_str("   ");
                    line(text, 20, label, value);
                }
                text.push_str("\n\n");
            }
        }
        text.push_str("\n\n");
    }
}
