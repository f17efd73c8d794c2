//! Metrics that need more counters than fit into one pass: rpd computes them from parts of several passes.

use std::collections::HashMap;
use std::rc::Rc;

use rpd_core::agent::Agent;
use rpd_core::options::CounterRequest;
use rpd_metric::evaluate::{self, EvaluateError, Leaf, Metrics, Sample, Values};
use rpd_metric::expression::Resolution;
use rpd_metric::{Dimension, Expression, Shape};

use super::provider_counters::{Gpu, ProviderCounters};
use crate::failure::Failure;

/// A metric to compute after all passes.
#[derive(Debug, Clone)]
pub(crate) struct ComputedMetric {
    /// Name of the metric.
    pub(crate) name: String,
    /// Names of the counters that the metric is computed from.
    pub(crate) parts: Vec<String>,
    /// The formulas of each GPU, with its number among the GPUs.
    pub(crate) formulas: Vec<(u32, Rc<Formulas>)>,
}

/// Formulas of a GPU's derived counters, and shapes of its other counters.
#[derive(Debug, Default)]
pub(crate) struct Formulas {
    derived: HashMap<String, Expression>,
    shapes: HashMap<String, Shape>,
}

impl Formulas {
    /// The formulas of a GPU as the provider reports them. A derived counter whose formula cannot be parsed is treated as
    /// a hardware counter.
    pub(crate) fn from_gpu(gpu: &Gpu) -> Formulas {
        let mut formulas = Formulas::default();
        for counter in &gpu.counters {
            if let (true, Ok(expression)) =
                (counter.derived, Expression::parse(&counter.expression))
            {
                formulas.derived.insert(counter.name.clone(), expression);
                continue;
            }
            let extents = counter.dimensions.iter().filter_map(|dimension| {
                let size = u8::try_from(dimension.size).ok()?;
                Some((Dimension::from_name(&dimension.name)?, size))
            });
            let shape = if counter.constant {
                Shape::single()
            } else {
                Shape::new(extents)
            };
            formulas.shapes.insert(counter.name.clone(), shape);
        }
        formulas
    }
}

impl Metrics for Formulas {
    fn expression(&self, name: &str) -> Option<&Expression> {
        self.derived.get(name)
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        self.shapes.get(name).cloned()
    }
}

/// Number of counters in a counter's formula: an estimate of the hardware counters that it takes.
pub(super) fn size(provider: &ProviderCounters, name: &str) -> usize {
    let counter = provider.gpus.iter().find_map(|gpu| gpu.counter(name));
    counter
        .filter(|counter| counter.derived)
        .and_then(|counter| Expression::parse(&counter.expression).ok())
        .map_or(1, |expression| expression.names().len())
}

/// Splits a metric that does not fit into one pass into its parts.
///
/// # Errors
/// The metric is a hardware counter, or accumulates a part within itself.
pub(super) fn split(
    provider: &ProviderCounters,
    request: &CounterRequest,
) -> Result<ComputedMetric, Failure> {
    let name = &request.name;
    let fail = |why: String| {
        Failure::failed(format!(
            "{name} does not fit into one pass, and cannot be computed from several: {why}"
        ))
    };
    let mut metric = ComputedMetric {
        name: name.clone(),
        parts: Vec::new(),
        formulas: Vec::new(),
    };
    for index in provider.gpus_of(request) {
        let gpu = &provider.gpus[index];
        let Some(counter) = gpu.counter(name) else {
            continue;
        };
        if !counter.derived {
            return Err(fail("it is a counter of the hardware".to_owned()));
        }
        let formulas = Formulas::from_gpu(gpu);
        let leaves = evaluate::leaves(name, &formulas).map_err(|error| fail(error.to_string()))?;
        for leaf in leaves {
            if leaf.resolution != Resolution::None {
                return Err(fail(format!("{} is accumulated within it", leaf.name)));
            }
            // Constants take no place in a pass.
            let is_constant = gpu.counter(leaf.name).is_some_and(|part| part.constant);
            if !is_constant && !metric.parts.iter().any(|part| part == leaf.name) {
                metric.parts.push(leaf.name.to_owned());
            }
        }
        metric
            .formulas
            .push((gpu.agent.number().unwrap_or_default(), Rc::new(formulas)));
    }
    Ok(metric)
}

/// Counter values of a metric's parts in one dispatch.
pub(crate) struct Parts<'a> {
    pub(crate) formulas: &'a Formulas,
    pub(crate) agent: &'a Agent,
    pub(crate) samples: &'a HashMap<String, Vec<Sample>>,
}

impl Metrics for Parts<'_> {
    fn expression(&self, name: &str) -> Option<&Expression> {
        self.formulas.expression(name)
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        self.formulas.shape(name)
    }
}

impl Values for Parts<'_> {
    fn values(&self, leaf: Leaf<'_>) -> Option<Vec<Sample>> {
        if let Some(samples) = self.samples.get(leaf.name) {
            return Some(samples.clone());
        }
        property(self.agent, leaf.name).map(|value| vec![Sample::single(value)])
    }
}

/// The sum over the instances of a metric.
///
/// # Errors
/// A part was not counted.
pub(crate) fn value(name: &str, parts: &Parts<'_>) -> Result<f64, EvaluateError> {
    let samples = evaluate::value(name, parts)?;
    Ok(samples.iter().fold(0.0, |sum, sample| sum + sample.value))
}

/// The value of the agent property with this name, which expressions use as a constant.
fn property(agent: &Agent, name: &str) -> Option<f64> {
    macro_rules! properties {
        ($($field:ident)*) => {
            match name {
                $(stringify!($field) => agent.$field as f64,)*
                _ => return None,
            }
        };
    }
    Some(properties! {
        node_id cpu_cores_count simd_count mem_banks_count caches_count io_links_count cpu_core_id_base simd_id_base
        max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size num_xcc cu_count array_count
        num_shader_banks simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version
        vendor_id device_id location_id domain drm_render_minor num_sdma_engines num_sdma_xgmi_engines
        num_sdma_queues_per_engine num_cp_queues max_engine_clk_ccompute max_engine_clk_fcompute sdma_fw_version
        fw_version capability cu_per_engine max_waves_per_cu family_id workgroup_max_size grid_max_size local_mem_size
        hive_id gpu_id
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::tests::{counter, derived, gpu};

    #[test]
    fn derived_metric_is_computed_from_parts_and_constants() {
        let gpu = gpu(vec![
            counter("TCC_HIT", &[("DIMENSION_INSTANCE", 2)]),
            counter("TCC_MISS", &[("DIMENSION_INSTANCE", 2)]),
            counter("wave_front_size", &[]),
            derived("Total", "reduce(TCC_HIT,sum)+reduce(TCC_MISS,sum)"),
            derived("Ratio", "wave_front_size*reduce(TCC_HIT,sum)/Total"),
        ]);
        let formulas = Formulas::from_gpu(&gpu);
        let agent = Agent {
            wave_front_size: 64,
            ..Agent::default()
        };
        let sample = |instance, value| Sample {
            position: rpd_metric::Position::ORIGIN.with(Dimension::Instance, instance),
            value,
        };
        let mut samples =
            HashMap::from([("TCC_HIT".to_owned(), vec![sample(0, 1.0), sample(1, 2.0)])]);
        let of = |samples: &HashMap<String, Vec<Sample>>| {
            let parts = Parts {
                formulas: &formulas,
                agent: &agent,
                samples,
            };
            value("Ratio", &parts)
        };
        assert_eq!(
            of(&samples),
            Err(EvaluateError::NotCounted("TCC_MISS".to_owned()))
        );
        samples.insert("TCC_MISS".to_owned(), vec![sample(0, 3.0), sample(1, 6.0)]);
        assert_eq!(of(&samples), Ok(64.0 * 3.0 / 12.0));
    }
}
