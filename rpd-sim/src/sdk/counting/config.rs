//! Configs: sets of counters that are collected together.

use core::slice;
use std::{
    collections::HashMap,
    sync::{
        Arc, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_counter_config_id_t as ConfigId,
    rocprofiler_counter_id_t as CounterId, rocprofiler_counter_record_t as Record,
    rocprofiler_status_t as Status,
};
use rpd_metric::{
    Expression, Metrics, Sample, Shape, Values,
    evaluate::{self, Leaf},
    expression::Resolution,
};

use super::{
    catalogue::{self, AgentCounters, Counter, Need, Source},
    hardware,
    info::instance_id,
};
use crate::sdk::{agents, status::store};
use rpd_gfx::perf::Counts;

/// A counter config: counters of one agent that are collected together.
pub(crate) struct Config {
    /// Index of the agent among all agents.
    pub(crate) agent: usize,
    counters: Vec<&'static Counter>,
    /// Hardware events that have to be counted for the counters.
    pub(super) needs: Vec<Need>,
    /// For each counter that adds up the level of another one, by handle: the event of that level.
    levels: HashMap<u64, Need>,
    names: Arc<AgentCounters>,
}

static CONFIGS: RwLock<Option<HashMap<u64, Arc<Config>>>> = RwLock::new(None);
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The config of a handle.
pub(super) fn find(id: ConfigId) -> Option<Arc<Config>> {
    let configs = CONFIGS.read().unwrap_or_else(|e| e.into_inner());
    configs.as_ref()?.get(&id.handle).cloned()
}

/// A source of the values of hardware events.
pub(super) trait EventValues {
    /// The value of an event in one instance of its block.
    fn value(&self, need: &Need, engine: u32, instance: u32) -> Option<f64>;
}

impl EventValues for Counts {
    fn value(&self, need: &Need, engine: u32, instance: u32) -> Option<f64> {
        let event = u32::try_from(need.event).ok()?;
        match need.resolution {
            Resolution::None => Counts::value(self, need.block.name, event, engine, instance),
            // A low-resolution count is the same level over every fourth cycle.
            Resolution::Low => {
                let all = self.accumulated(need.block.name, event, engine, instance)?;
                Some(all / 4.0)
            }
            Resolution::High => self.accumulated(need.block.name, event, engine, instance),
        }
    }
}

/// Access of an expression to the values of hardware events.
struct EventCounts<'a, C> {
    config: &'a Config,
    counted: &'a C,
}

impl<C> Metrics for EventCounts<'_, C> {
    fn expression(&self, name: &str) -> Option<&Expression> {
        self.config.names.expression(name)
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        self.config.names.shape(name)
    }
}

impl<C: EventValues> Values for EventCounts<'_, C> {
    fn values(&self, leaf: Leaf<'_>) -> Option<Vec<Sample>> {
        let counter = self.config.names.get(leaf.name)?;
        match &counter.source {
            Source::Constant(value) => Some(vec![Sample::single(*value)]),
            Source::Derived(_) => None,
            &Source::Event { block, event } => {
                let own = Need {
                    counter: counter.id,
                    block,
                    event,
                    resolution: leaf.resolution,
                };
                let need = *self.config.levels.get(&counter.id).unwrap_or(&own);
                let sample = |position: rpd_metric::Position| {
                    let (engine, instance) = hardware::place(block, position);
                    let value = self.counted.value(&need, engine, instance)?;
                    Some(Sample { position, value })
                };
                counter.shape.positions().map(sample).collect()
            }
        }
    }
}

impl Config {
    /// Records of all values, in the order of the counters and of their instances.
    pub(super) fn records(&self, counted: &impl EventValues, template: Record) -> Vec<Record> {
        let seen = EventCounts {
            config: self,
            counted,
        };
        let mut records = Vec::new();
        for counter in &self.counters {
            match evaluate::value(&counter.name, &seen) {
                Ok(values) => records.extend(values.into_iter().map(|sample| Record {
                    id: instance_id(counter.id, sample.position),
                    counter_value: sample.value,
                    ..template
                })),
                // Configs are only made of what is determined.
                Err(e) => eprintln!("rpd-sim: counter {}: {e}", counter.name),
            }
        }
        records
    }
}

/// The accumulation over time by which a counter adds up the level of another one; [`Resolution::None`] for all others.
fn accumulation(counter: &Counter) -> Resolution {
    match counter.name.as_str() {
        "SQ_ACCUM_PREV" => Resolution::Low,
        "SQ_ACCUM_PREV_HIRES" => Resolution::High,
        _ => Resolution::None,
    }
}

/// The level that the counter at a place of the list adds up: the nearest one before it, or else the first after it,
/// because tools put the counters of a set in order.
fn level_beside(counters: &[&'static Counter], place: usize) -> Option<Need> {
    let resolution = accumulation(counters[place]);
    let before = counters[..place].iter().rev();
    let mut beside = before.chain(&counters[place + 1..]);
    beside.find_map(|counter| match counter.source {
        Source::Event { block, event } => Some(Need {
            counter: counter.id,
            block,
            event,
            resolution,
        })
        .filter(Need::determined),
        Source::Constant(_) | Source::Derived(_) => None,
    })
}

/// Whether the registers of each instance of a block suffice for the events that it has to count.
fn fits(needs: &[Need]) -> bool {
    needs.iter().all(|need| {
        let same = needs.iter().filter(|other| other.block == need.block);
        same.count() <= need.block.registers
    })
}

/// `rocprofiler_create_counter_config`.
///
/// # Safety
/// `counters_list` is null or `counters_count` long; the out pointer is null or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_counter_config(
    agent_id: AgentId,
    counters_list: *mut CounterId,
    counters_count: usize,
    config_id: *mut ConfigId,
) -> Status {
    let Some(agent) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    // The SDK takes an empty list with a null pointer.
    if config_id.is_null() || (counters_list.is_null() && counters_count != 0) {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let asked: &[CounterId] = if counters_count == 0 {
        &[]
    } else {
        // SAFETY: not null, and that long by the contract.
        unsafe { slice::from_raw_parts(counters_list, counters_count) }
    };
    let catalogue = catalogue::current();
    let mut counters: Vec<&'static Counter> = Vec::new();
    // A counter that is named twice has one value.
    for id in asked {
        let Some(counter) = catalogue.get(id.handle) else {
            return Status::ERROR_COUNTER_NOT_FOUND;
        };
        if !counters.iter().any(|known| known.id == counter.id) {
            counters.push(counter);
        }
    }
    // A handle in the out parameter extends that config: tools add counters one by one this way.
    // SAFETY: not null, readable by the contract.
    if let Some(before) = find(unsafe { *config_id }) {
        for counter in &before.counters {
            if !counters.iter().any(|known| known.id == counter.id) {
                counters.push(counter);
            }
        }
    }
    // A CPU has no counters at all.
    let Some(names) = catalogue.agent(agent) else {
        return Status::ERROR_METRIC_NOT_VALID_FOR_AGENT;
    };
    let mut needs: Vec<Need> = Vec::new();
    let mut levels = HashMap::new();
    for (place, counter) in counters.iter().enumerate() {
        if counter.agent != agent {
            return Status::ERROR_METRIC_NOT_VALID_FOR_AGENT;
        }
        let list = if accumulation(counter) == Resolution::None {
            names.needs(counter).ok()
        } else {
            let level = level_beside(&counters, place);
            levels.extend(level.map(|level| (counter.id, level)));
            // Without a level there is nothing to add up.
            match level {
                Some(level) => Some(vec![level]),
                None => return Status::ERROR_METRIC_NOT_VALID_FOR_AGENT,
            }
        };
        let Some(list) = list else {
            return Status::ERROR_AST_GENERATION_FAILED;
        };
        for need in list {
            // Events that the simulator does not compute must not read as 0.
            if !need.determined() {
                return Status::ERROR_METRIC_NOT_VALID_FOR_AGENT;
            }
            if !needs.contains(&need) {
                needs.push(need);
            }
        }
    }
    // The hardware counts a set in one pass, so that a set that does not fit can never be collected.
    if !fits(&needs) {
        return Status::ERROR_EXCEEDS_HW_LIMIT;
    }
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    let config = Arc::new(Config {
        agent,
        counters,
        needs,
        levels,
        names: Arc::clone(names),
    });
    CONFIGS
        .write()
        .unwrap_or_else(|e| e.into_inner())
        .get_or_insert_default()
        .insert(handle, config);
    store(config_id, ConfigId { handle });
    Status::SUCCESS
}

/// `rocprofiler_destroy_counter_config`: a count under way with this config continues.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_destroy_counter_config(config_id: ConfigId) -> Status {
    let mut configs = CONFIGS.write().unwrap_or_else(|e| e.into_inner());
    if let Some(configs) = configs.as_mut() {
        configs.remove(&config_id.handle);
    }
    Status::SUCCESS
}
