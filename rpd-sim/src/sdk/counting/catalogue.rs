//! The counters of each agent: constants of the agent, events that its hardware counts, and derived counters.

use std::{
    collections::{HashMap, HashSet},
    ffi::CString,
    sync::{Arc, Mutex, OnceLock, RwLock},
};

use rpd_metric::{
    Definitions, Expression, Metrics, Shape,
    definitions::Source as Defined,
    evaluate::{self, EvaluateError, Leaf},
    expression::Resolution,
};

use super::{hardware, info::Info};
use crate::{gpu::agents as device, sdk::agents};
use rpd_gfx::{
    device::{Block, Device},
    perf,
};

/// Number of bits that counter ids have.
const ID_BITS: u32 = 16;

/// Origin of a counter's values.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A property of the agent.
    Constant(f64),
    /// An event of a hardware block.
    Event {
        /// Hardware block that has the event.
        block: &'static Block,
        /// Number of the event in the block.
        event: u64,
    },
    /// A formula over other counters.
    Derived(Expression),
}

/// A counter as one agent has it.
pub(crate) struct Counter {
    /// Handle: unique over all agents, from 1.
    pub(crate) id: u64,
    /// Index of the agent it belongs to.
    pub(crate) agent: usize,
    /// Name by which users select it.
    pub(crate) name: String,
    /// Description for people, in a sentence.
    pub(crate) description: String,
    /// Origin of the counter's values.
    pub(crate) source: Source,
    /// Dimensions of the counter and their extents.
    pub(crate) shape: Shape,
    /// The counter's description in the layout of the ABI, made at the first query.
    pub(super) info: OnceLock<Info>,
}

/// Counters that one agent has, by name and in order.
#[derive(Clone)]
pub(crate) struct AgentCounters {
    /// Index of the agent among all agents.
    pub(crate) index: usize,
    /// Counters in the order in which they are listed.
    pub(crate) list: Vec<&'static Counter>,
    names: HashMap<&'static str, &'static Counter>,
}

/// The counters of all agents that have any.
#[derive(Clone)]
pub(crate) struct Catalogue {
    agents: Vec<Arc<AgentCounters>>,
    by_id: Vec<&'static Counter>,
}

/// Name, description and source of a counter that is to be made.
struct Entry {
    name: String,
    description: String,
    source: Source,
}

impl Metrics for AgentCounters {
    fn expression(&self, name: &str) -> Option<&Expression> {
        match &self.names.get(name)?.source {
            Source::Derived(expression) => Some(expression),
            _ => None,
        }
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        self.get(name).map(|counter| counter.shape.clone())
    }
}

impl AgentCounters {
    /// The counter of a name.
    pub(crate) fn get(&self, name: &str) -> Option<&'static Counter> {
        self.names.get(name).copied()
    }

    /// Hardware events that have to be counted for a counter; constants are left out.
    pub(crate) fn needs(&self, counter: &'static Counter) -> Result<Vec<Need>, EvaluateError> {
        let leaves = evaluate::leaves(&counter.name, self)?;
        let need = |leaf: Leaf<'_>| {
            let counter = self.get(leaf.name)?;
            let Source::Event { block, event } = counter.source else {
                return None;
            };
            Some(Need {
                counter: counter.id,
                block,
                event,
                resolution: leaf.resolution,
            })
        };
        Ok(leaves.into_iter().filter_map(need).collect())
    }
}

/// A counter of the hardware that has to be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// Handle of the hardware counter.
    pub(crate) counter: u64,
    /// Hardware block that has the event.
    pub(crate) block: &'static Block,
    /// Number of the event in the block.
    pub(crate) event: u64,
    /// Accumulation of the event over time.
    pub(crate) resolution: Resolution,
}

impl Need {
    /// Whether the device determines the values of the event.
    pub(crate) fn determined(&self) -> bool {
        let Ok(event) = u32::try_from(self.event) else {
            return false;
        };
        let device = device::device();
        match self.resolution {
            Resolution::None => perf::determined(device, self.block.name, event),
            _ => perf::accumulates(device, self.block.name, event),
        }
    }
}

impl Catalogue {
    /// The counter of a handle.
    pub(crate) fn get(&self, id: u64) -> Option<&'static Counter> {
        let index = usize::try_from(id.checked_sub(1)?).ok()?;
        self.by_id.get(index).copied()
    }

    /// The counters of an agent; `None` when it has none.
    pub(crate) fn agent(&self, index: usize) -> Option<&Arc<AgentCounters>> {
        self.agents.iter().find(|agent| agent.index == index)
    }

    fn build(custom: Option<&Custom>) -> Result<Self, String> {
        let mut all = Self {
            agents: Vec::new(),
            by_id: Vec::new(),
        };
        for gpu in device::gpus() {
            let mut agent = AgentCounters {
                index: gpu.index,
                list: Vec::new(),
                names: HashMap::new(),
            };
            let mut entries = constants(gpu.index);
            if custom.is_none_or(|custom| custom.append) {
                entries.extend(built_in(device::device()));
            }
            let definitions = custom.map(|custom| &custom.definitions);
            let taken: HashSet<String> = entries.iter().map(|e| e.name.clone()).collect();
            for (counter, definition) in definitions.iter().flat_map(|d| d.on(&gpu.name)) {
                let name = counter.name.clone();
                // As with the SDK, built-in counters cannot be replaced.
                if taken.contains(&name) {
                    continue;
                }
                let source = match &definition.source {
                    Defined::Expression(expression) => Source::Derived(expression.clone()),
                    Defined::Event { block, event } => Source::Event {
                        block: device::device()
                            .block(block)
                            .ok_or_else(|| format!("{name}: {} has no block {block}", gpu.name))?,
                        event: *event,
                    },
                };
                let description = definition.description.as_ref();
                entries.push(Entry {
                    name,
                    description: description.unwrap_or(&counter.description).clone(),
                    source,
                });
            }
            let sketch = Sketch::new(entries.iter().map(|e| (e.name.as_str(), &e.source)));
            let shapes: Vec<Shape> = entries
                .iter()
                .map(|entry| sketch.check(&entry.name))
                .collect::<Result<_, String>>()?;
            for (entry, shape) in entries.into_iter().zip(shapes) {
                all.add(&mut agent, entry, shape)?;
            }
            all.agents.push(Arc::new(agent));
        }
        Ok(all)
    }

    /// Adds a counter to the list of an agent that is not part of the catalogue at present.
    fn add(
        &mut self,
        agent: &mut AgentCounters,
        entry: Entry,
        shape: Shape,
    ) -> Result<&'static Counter, String> {
        let id = self.by_id.len() as u64 + 1;
        if id >> ID_BITS != 0 {
            return Err("there are too many counters".to_owned());
        }
        let counter: &'static Counter = Box::leak(Box::new(Counter {
            id,
            agent: agent.index,
            name: entry.name,
            description: entry.description,
            source: entry.source,
            shape,
            info: OnceLock::new(),
        }));
        agent.names.insert(&counter.name, counter);
        agent.list.push(counter);
        self.by_id.push(counter);
        Ok(counter)
    }
}

/// Dimensions of a counter that is not derived.
fn shape_of(source: &Source) -> Shape {
    match source {
        Source::Event { block, .. } => hardware::shape(block),
        _ => Shape::single(),
    }
}

/// Sources of counters by name, while their definitions are checked.
struct Sketch<'a>(HashMap<&'a str, &'a Source>);

impl<'a> Sketch<'a> {
    fn new(entries: impl Iterator<Item = (&'a str, &'a Source)>) -> Self {
        Self(entries.collect())
    }

    /// Dimensions of a counter; fails if it cannot be computed from the others.
    fn check(&self, name: &str) -> Result<Shape, String> {
        let leaves = evaluate::leaves(name, self).map_err(|e| format!("{name}: {e}"))?;
        // Only the sequencers can accumulate a level.
        let wrong = leaves.iter().find(|leaf| {
            leaf.resolution != Resolution::None
                && !matches!(self.0.get(leaf.name), Some(Source::Event { block, .. }) if block.name == "SQ")
        });
        if let Some(leaf) = wrong {
            return Err(format!(
                "{name}: {} is not a counter of the block SQ, so it cannot be accumulated",
                leaf.name
            ));
        }
        evaluate::shape(name, self).map_err(|e| format!("{name}: {e}"))
    }
}

impl Metrics for Sketch<'_> {
    fn expression(&self, name: &str) -> Option<&Expression> {
        match self.0.get(name)? {
            Source::Derived(expression) => Some(expression),
            _ => None,
        }
    }

    fn shape(&self, name: &str) -> Option<Shape> {
        self.0.get(name).copied().map(shape_of)
    }
}

/// The counters that the simulator has for a device.
fn built_in(device: &'static Device) -> impl Iterator<Item = Entry> {
    device
        .counters
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(move |line| {
            let mut fields = line.split(';');
            let mut field = || fields.next().unwrap_or_default();
            let (name, block, event, formula, description) =
                (field(), field(), field(), field(), field());
            let source = match (device.block(block), event.parse()) {
                (Some(block), Ok(event)) => Source::Event { block, event },
                _ => match Expression::parse(formula) {
                    Ok(expression) => Source::Derived(expression),
                    Err(e) => unreachable!("{name} in our own table: {e}"),
                },
            };
            Entry {
                name: name.to_owned(),
                description: description.to_owned(),
                source,
            }
        })
}

/// Properties of an agent that expressions can use, as counters.
fn constants(index: usize) -> Vec<Entry> {
    let Some(agent) = agents::description(index) else {
        return Vec::new();
    };
    macro_rules! properties {
        ($($name:ident: $text:literal,)*) => {
            [$((stringify!($name), agent.$name as f64, $text),)*]
        };
    }
    properties! {
        cpu_cores_count: "CPU cores",
        simd_count: "SIMD units",
        mem_banks_count: "Memory banks",
        caches_count: "Caches",
        io_links_count: "Links to other agents",
        cpu_core_id_base: "First id of a CPU core",
        simd_id_base: "First id of a SIMD unit",
        max_waves_per_simd: "Waves that a SIMD unit holds",
        lds_size_in_kb: "KiB of LDS of a compute unit",
        gds_size_in_kb: "KiB of GDS",
        num_gws: "Global wave synchronisation resources",
        wave_front_size: "Lanes of a wave",
        array_count: "Shader arrays",
        simd_arrays_per_engine: "Shader arrays of an engine",
        cu_per_simd_array: "Compute units of a shader array",
        simd_per_cu: "SIMD units of a compute unit",
        max_slots_scratch_cu: "Waves of a compute unit that can have scratch memory",
        gfx_target_version: "Architecture, as 10000 major + 100 minor + stepping",
        vendor_id: "PCI vendor",
        device_id: "PCI device",
        location_id: "PCI bus, device and function",
        domain: "PCI domain",
        drm_render_minor: "Number of the render node",
        hive_id: "Group of GPUs with direct links",
        num_sdma_engines: "Copy engines",
        num_sdma_xgmi_engines: "Copy engines for links between GPUs",
        num_sdma_queues_per_engine: "Queues of a copy engine",
        num_cp_queues: "Queues of the command processor",
        max_engine_clk_ccompute: "Highest clock of the CPU in MHz",
    }
    .into_iter()
    .map(|(name, value, text)| Entry {
        name: name.to_owned(),
        description: format!("{text}; a constant of the agent"),
        source: Source::Constant(value),
    })
    .collect()
}

/// Definitions that a tool loaded.
struct Custom {
    definitions: Definitions,
    /// Whether the definitions are added to the built-in ones or replace them.
    append: bool,
}

static CUSTOM: Mutex<Option<Custom>> = Mutex::new(None);
static CURRENT: RwLock<Option<Arc<Catalogue>>> = RwLock::new(None);

/// The catalogue of this process. From the first call on definitions cannot be changed.
pub(crate) fn current() -> Arc<Catalogue> {
    if let Some(catalogue) = &*CURRENT.read().unwrap_or_else(|e| e.into_inner()) {
        return Arc::clone(catalogue);
    }
    let custom = CUSTOM.lock().unwrap_or_else(|e| e.into_inner());
    let mut current = CURRENT.write().unwrap_or_else(|e| e.into_inner());
    let catalogue = current.get_or_insert_with(|| match Catalogue::build(custom.as_ref()) {
        Ok(catalogue) => Arc::new(catalogue),
        Err(e) => unreachable!("definitions were checked when they came: {e}"),
    });
    Arc::clone(catalogue)
}

/// Reason for which definitions are refused.
pub(crate) enum Refused {
    /// Counters are in use already.
    Late,
    /// The text is no definition file.
    Text(String),
    /// A definition cannot be used.
    Counter(String),
}

/// Takes definitions in, beside the built-in ones (`append`) or in their place.
pub(crate) fn define(text: &str, append: bool) -> Result<(), Refused> {
    let mut custom = CUSTOM.lock().unwrap_or_else(|e| e.into_inner());
    if CURRENT.read().unwrap_or_else(|e| e.into_inner()).is_some() {
        return Err(Refused::Late);
    }
    let definitions = Definitions::parse(text).map_err(|e| Refused::Text(e.to_string()))?;
    let new = Custom {
        // Without any text the built-in ones stay.
        append: append || text.is_empty(),
        definitions,
    };
    Catalogue::build(Some(&new)).map_err(Refused::Counter)?;
    *custom = Some(new);
    Ok(())
}

/// Adds a derived counter to an agent that has counters.
pub(crate) fn create(
    index: usize,
    name: &str,
    expression: Expression,
    description: &str,
) -> Result<u64, CreateError> {
    let before = current();
    let mut current = CURRENT.write().unwrap_or_else(|e| e.into_inner());
    let mut all = Catalogue::clone(current.as_ref().unwrap_or(&before));
    let Some(place) = all.agents.iter().position(|agent| agent.index == index) else {
        return Err(CreateError::Agent);
    };
    let mut agent = AgentCounters::clone(&all.agents[place]);
    if agent.get(name).is_some() {
        return Err(CreateError::Name);
    }
    let entry = Entry {
        name: name.to_owned(),
        description: description.to_owned(),
        source: Source::Derived(expression),
    };
    let counters = agent.list.iter().map(|c| (c.name.as_str(), &c.source));
    let sketch = Sketch::new(counters.chain([(name, &entry.source)]));
    let shape = sketch.check(name).map_err(CreateError::Expression)?;
    let counter = all
        .add(&mut agent, entry, shape)
        .map_err(CreateError::Expression)?;
    all.agents[place] = Arc::new(agent);
    *current = Some(Arc::new(all));
    Ok(counter.id)
}

/// Reason for which a counter cannot be made.
pub(crate) enum CreateError {
    /// The agent has no counters, or there is no such agent.
    Agent,
    /// A counter of this name exists.
    Name,
    /// The expression uses counters that do not exist.
    Expression(String),
}

/// Makes a C string that lives as long as the process.
pub(super) fn forever(text: &str) -> *const core::ffi::c_char {
    let owned = CString::new(text).unwrap_or_default();
    Box::leak(owned.into_boxed_c_str()).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(text: &str, append: bool) -> Result<Catalogue, String> {
        let definitions = Definitions::parse(text).expect("definitions");
        Catalogue::build(Some(&Custom {
            definitions,
            append,
        }))
    }

    fn list(body: &str) -> String {
        format!(
            "rocprofiler-sdk:\n  counters:\n  - name: MINE\n    description: mine\n    definitions:\n    \
             - architectures: [gfx90a]\n      {body}\n"
        )
    }

    #[test]
    fn built_in_counters_have_ids_and_can_be_computed() {
        let all = Catalogue::build(None).expect("a catalogue");
        let agent = all.agent(1).expect("a GPU");
        assert_eq!(agent.list.len(), agent.names.len(), "each name once");
        assert!(all.agent(0).is_none(), "nothing counts on the CPU");
        for (n, counter) in agent.list.iter().enumerate() {
            assert_eq!(counter.id, n as u64 + 1);
            assert!(!counter.description.is_empty(), "{}", counter.name);
            assert!(agent.needs(counter).is_ok(), "{}", counter.name);
        }
        // Both tables have the number of each event.
        for (block, number, name) in perf::determined_events() {
            let counter = agent.get(name).unwrap_or_else(|| panic!("no {name}"));
            assert!(
                matches!(counter.source, Source::Event { block: b, event } if b.name == block && event == number.into()),
                "{name}"
            );
        }
    }

    /// Checks the tables of all devices, because a process simulates only one.
    #[test]
    fn counters_of_every_device_are_computed_from_others_that_it_has() {
        for device in rpd_gfx::device::DEVICES {
            let entries: Vec<Entry> = constants(1).into_iter().chain(built_in(device)).collect();
            let sources = entries.iter().map(|entry| (&*entry.name, &entry.source));
            let sketch = Sketch::new(sources);
            assert_eq!(
                sketch.0.len(),
                entries.len(),
                "{}: each name once",
                device.name
            );
            for entry in &entries {
                let checked = sketch.check(&entry.name);
                assert!(checked.is_ok(), "{}: {checked:?}", device.name);
            }
        }
    }

    #[test]
    fn needs_lists_the_hardware_counters_of_a_metric() {
        let all = Catalogue::build(None).expect("a catalogue");
        let agent = all.agent(1).expect("a GPU");
        let needs = |name: &str| {
            let list = agent.needs(agent.get(name).expect("a counter"));
            let list = list.expect("needs");
            let named = |n: &Need| all.get(n.counter).expect("a counter").name.clone();
            list.iter().map(named).collect::<Vec<_>>()
        };
        assert_eq!(
            needs("FetchSize"),
            ["TCC_EA_RDREQ_32B", "TCC_EA_RDREQ"],
            "each once"
        );
        assert_eq!(needs("CU_NUM"), [""; 0]);
        assert_eq!(needs("AggSysCycles"), ["GRBM_GUI_ACTIVE"]);
    }

    #[test]
    fn definitions_are_added_to_built_in_counters_or_replace_them() {
        let text = list("expression: reduce(SQ_WAVES,sum)*2");
        let both = build(&text, true).expect("a catalogue");
        let alone = Catalogue::build(None).expect("a catalogue");
        let counters = |all: &Catalogue| all.agent(1).expect("a GPU").list.len();
        assert_eq!(counters(&both), counters(&alone) + 1);
        assert_eq!(
            build(&text, false).err().as_deref(),
            Some("MINE: there is no counter `SQ_WAVES`")
        );
        let own = build(&list("block: SQ\n      event: 4"), false).expect("a catalogue");
        let agent = own.agent(1).expect("a GPU");
        assert_eq!(agent.list.len(), 1 + constants(1).len());
        assert_eq!(agent.get("MINE").expect("it").shape.instances(), 8);
        // Built-in counters are not replaced.
        let again = build(&text.replace("MINE", "SQ_WAVES"), true).expect("a catalogue");
        let waves = again.agent(1).expect("a GPU").get("SQ_WAVES").expect("it");
        assert!(matches!(waves.source, Source::Event { .. }));
    }

    #[test]
    fn counter_definitions_that_cannot_be_computed_are_refused() {
        let refused = |body: &str| build(&list(body), true).err().expect("refused");
        assert_eq!(
            refused("block: XYZ\n      event: 1"),
            "MINE: gfx90a has no block XYZ"
        );
        assert!(refused("expression: MINE+1").contains("refers to itself"));
        assert!(refused("expression: TCC_HIT+SQ_WAVES").contains("different instances"));
        assert!(
            refused("expression: accumulate(TCC_HIT,HIGH_RES)")
                .contains("is not a counter of the block SQ")
        );
    }
}
