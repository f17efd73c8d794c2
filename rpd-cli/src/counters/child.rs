//! The child's side of provider queries: loads the SDK's library and answers queries until the end of its input.
//!
//! The SDK is not configured: its queries work before initialisation, and an initialised SDK would open the device.
//! Standard output carries replies only; the output of libraries goes to standard error.

use std::ffi::{CStr, c_char, c_void};
use std::io::{BufRead, Write};

use anyhow::{Context as _, Result};
use libloading::Library;
use nix::sys::signal::Signal;
use rocprofiler_sdk_sys::{
    Functions, rocprofiler_agent_id_t, rocprofiler_agent_type_t, rocprofiler_agent_v0_t,
    rocprofiler_agent_version_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_counter_config_id_t, rocprofiler_counter_flag_t, rocprofiler_counter_id_t,
    rocprofiler_counter_info_v0_t, rocprofiler_counter_info_v1_t,
    rocprofiler_counter_info_version_id_t, rocprofiler_counter_record_dimension_info_t,
    rocprofiler_dim3_t, rocprofiler_pc_sampling_configuration_flags_t,
    rocprofiler_pc_sampling_configuration_t, rocprofiler_pc_sampling_method_t,
    rocprofiler_pc_sampling_unit_t, rocprofiler_status_t,
};

use super::protocol::{
    Agent, Counter, Dimension, Extent, ProviderStatus, Query, Reply, Sampling, Visibility,
};

/// Kinds of a service that are looked at: more than any SDK has.
const MOST_KINDS: usize = 256;

/// Answers the queries on standard input.
pub(crate) fn run() -> Result<u8> {
    // The parent may be killed while a library call hangs here.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
    let out = nix::unistd::dup(std::io::stdout())?;
    nix::unistd::dup2_stdout(std::io::stderr())?;
    let mut out = std::fs::File::from(out);
    let mut provider = None;
    for line in std::io::stdin().lock().lines() {
        let query: Query = serde_json::from_str(&line?).context("cannot read a query")?;
        let answer = match (&query, &provider) {
            (
                Query::Open {
                    library,
                    definitions,
                },
                None,
            ) => match LoadedSdk::load(library, definitions) {
                Ok((loaded, answer)) => {
                    provider = Some(loaded);
                    answer
                }
                Err(text) => Reply::Failed(text),
            },
            (_, Some(provider)) => provider.answer(&query).unwrap_or_else(Reply::Failed),
            (_, None) => Reply::Failed("no library is loaded".to_owned()),
        };
        let mut text = serde_json::to_vec(&answer)?;
        text.push(b'\n');
        out.write_all(&text)?;
    }
    // The libraries' destructors are skipped: they could crash or hang.
    // SAFETY: ends the process; no data is left to write.
    unsafe { libc::_exit(0) }
}

/// A loaded SDK library and its functions.
struct LoadedSdk {
    functions: Functions,
    // Keeps the functions loaded.
    _library: Library,
}

type QueryResult<T> = Result<T, String>;

impl LoadedSdk {
    fn load(library: &str, definitions: &str) -> QueryResult<(LoadedSdk, Reply)> {
        // SAFETY: it is the library that the target is going to be run with.
        let loaded = unsafe { Library::new(library) }
            .map_err(|error| format!("it cannot be loaded: {error}"))?;
        let lookup = |name: &CStr| -> *mut c_void {
            // SAFETY: only its address is taken.
            match unsafe { loaded.get::<*mut c_void>(name.to_bytes_with_nul()) } {
                Ok(symbol) => *symbol,
                Err(_) => std::ptr::null_mut(),
            }
        };
        // SAFETY: the functions of an SDK library, which stays loaded.
        let functions =
            unsafe { Functions::load(lookup) }.map_err(|missing| missing.to_string())?;
        let provider = LoadedSdk {
            functions,
            _library: loaded,
        };
        if !definitions.is_empty() {
            provider.add(definitions)?;
        }
        let mut version = [0; 3];
        let [major, minor, patch] = &mut version;
        // SAFETY: three numbers to write to.
        unsafe { (functions.rocprofiler_get_version)(major, minor, patch) };
        let agents = provider.agents()?;
        let replays = provider.has_kind("KERNEL_REPLAY");
        let answer = Reply::Agents {
            version,
            agents,
            replays,
        };
        Ok((provider, answer))
    }

    /// Whether the callback tracing service has a kind of this name.
    fn has_kind(&self, wanted: &str) -> bool {
        let query = self.functions.rocprofiler_query_callback_tracing_kind_name;
        let names = (1..).map_while(|kind| {
            let (mut name, mut len) = (std::ptr::null(), 0);
            // SAFETY: two places to write to.
            let status = unsafe {
                query(
                    rocprofiler_callback_tracing_kind_t(kind),
                    &mut name,
                    &mut len,
                )
            };
            // SAFETY: static text or null.
            (status == rocprofiler_status_t::SUCCESS).then(|| unsafe { text(name) })
        });
        names.take(MOST_KINDS).any(|name| name == wanted)
    }

    /// Loads counter definitions. Must come before any query, since the SDK reads definitions at the first one.
    fn add(&self, definitions: &str) -> QueryResult<()> {
        let load = self
            .functions
            .rocprofiler_load_counter_definition
            .ok_or("it takes no counter definitions")?;
        // SAFETY: text with its length, which is copied.
        let status = unsafe {
            load(
                definitions.as_ptr().cast(),
                definitions.len(),
                rocprofiler_counter_flag_t::APPEND_DEFINITION,
            )
        };
        self.check(status, "the extra counter definitions")
    }

    fn verdict(&self, status: rocprofiler_status_t) -> ProviderStatus {
        if status == rocprofiler_status_t::SUCCESS {
            return ProviderStatus::default();
        }
        // SAFETY: static text or null.
        let text = unsafe { text((self.functions.rocprofiler_get_status_string)(status)) };
        ProviderStatus {
            status: status.0,
            text: if text.is_empty() {
                format!("{status:?}")
            } else {
                text
            },
        }
    }

    fn check(&self, status: rocprofiler_status_t, what: &str) -> QueryResult<()> {
        let verdict = self.verdict(status);
        if verdict.is_success() {
            Ok(())
        } else {
            Err(format!(
                "{what}: {} (status {})",
                verdict.text, verdict.status
            ))
        }
    }

    fn agents(&self) -> QueryResult<Vec<Agent>> {
        let mut agents: Vec<Agent> = Vec::new();
        let mut status = rocprofiler_status_t::ERROR;
        // This build's size, then that of the first releases that had the struct.
        for size in [size_of::<rocprofiler_agent_v0_t>(), 296] {
            // SAFETY: the callback matches the version, the data is the list it fills.
            status = unsafe {
                (self.functions.rocprofiler_query_available_agents)(
                    rocprofiler_agent_version_t::VERSION_0,
                    Some(take_agents),
                    size,
                    (&raw mut agents).cast(),
                )
            };
            if status != rocprofiler_status_t::ERROR_INCOMPATIBLE_ABI {
                break;
            }
        }
        self.check(status, "the agents")?;
        Ok(agents)
    }

    fn answer(&self, query: &Query) -> QueryResult<Reply> {
        match query {
            Query::Open { .. } => Err("a library is loaded already".to_owned()),
            Query::Counters { agent } => self.counters(*agent).map(Reply::Counters),
            Query::Sets { agent, sets } => {
                let verdicts: QueryResult<Vec<ProviderStatus>> =
                    sets.iter().map(|set| self.check_set(*agent, set)).collect();
                verdicts.map(Reply::Verdicts)
            }
            Query::Sampling { agent } => self.sampling(*agent),
        }
    }

    fn counters(&self, agent: u64) -> QueryResult<Vec<Counter>> {
        let iterate = self
            .functions
            .rocprofiler_iterate_agent_supported_counters
            .ok_or("it has no counters")?;
        let mut ids: Vec<u64> = Vec::new();
        // SAFETY: the data is the list that the callback fills.
        let status = unsafe {
            iterate(
                rocprofiler_agent_id_t { handle: agent },
                Some(take_counters),
                (&raw mut ids).cast(),
            )
        };
        if status == rocprofiler_status_t::ERROR_AGENT_ARCH_NOT_SUPPORTED {
            return Ok(Vec::new());
        }
        self.check(status, "the list of counters")?;
        ids.into_iter().map(|id| self.counter(id)).collect()
    }

    fn counter(&self, id: u64) -> QueryResult<Counter> {
        let query = self
            .functions
            .rocprofiler_query_counter_info
            .ok_or("it does not describe its counters")?;
        let handle = rocprofiler_counter_id_t { handle: id };
        let mut info = rocprofiler_counter_info_v1_t::default();
        // SAFETY: the struct of the version requested.
        let status = unsafe {
            query(
                handle,
                rocprofiler_counter_info_version_id_t::VERSION_1,
                (&raw mut info).cast(),
            )
        };
        if status == rocprofiler_status_t::SUCCESS {
            // SAFETY: texts and arrays that last for the process, or null.
            return Ok(unsafe {
                Counter {
                    id,
                    name: text(info.name),
                    description: text(info.description),
                    block: text(info.block),
                    expression: text(info.expression),
                    constant: info.is_constant() != 0,
                    derived: info.is_derived() != 0,
                    dimensions: pointed(info.dimensions, info.dimensions_count),
                }
            });
        }
        let mut info = rocprofiler_counter_info_v0_t::default();
        // SAFETY: the struct of the version requested.
        let status = unsafe {
            query(
                handle,
                rocprofiler_counter_info_version_id_t::VERSION_0,
                (&raw mut info).cast(),
            )
        };
        self.check(status, "a counter's description")?;
        let mut dimensions: Vec<Dimension> = Vec::new();
        if let Some(iterate) = self.functions.rocprofiler_iterate_counter_dimensions {
            // Constants have no dimensions, for which the SDK returns an error.
            // SAFETY: the data is the list that the callback fills.
            unsafe { iterate(handle, Some(take_dimensions), (&raw mut dimensions).cast()) };
        }
        // SAFETY: texts that last for the process, or null.
        Ok(unsafe {
            Counter {
                id,
                name: text(info.name),
                description: text(info.description),
                block: text(info.block),
                expression: text(info.expression),
                constant: info.is_constant() != 0,
                derived: info.is_derived() != 0,
                dimensions,
            }
        })
    }

    /// Whether the counters can be collected in one pass: creates a counter config and destroys it.
    fn check_set(&self, agent: u64, counters: &[u64]) -> QueryResult<ProviderStatus> {
        let (Some(create), Some(destroy)) = (
            self.functions.rocprofiler_create_counter_config,
            self.functions.rocprofiler_destroy_counter_config,
        ) else {
            return Err("it collects no counters".to_owned());
        };
        let mut ids: Vec<rocprofiler_counter_id_t> = counters
            .iter()
            .map(|id| rocprofiler_counter_id_t { handle: *id })
            .collect();
        let mut config = rocprofiler_counter_config_id_t { handle: 0 };
        // SAFETY: an array with its length, and a handle to write to that holds zero.
        let status = unsafe {
            create(
                rocprofiler_agent_id_t { handle: agent },
                ids.as_mut_ptr(),
                ids.len(),
                &raw mut config,
            )
        };
        if status == rocprofiler_status_t::SUCCESS {
            // SAFETY: the handle that was just made.
            unsafe { destroy(config) };
        }
        Ok(self.verdict(status))
    }

    fn sampling(&self, agent: u64) -> QueryResult<Reply> {
        let mut configurations: Vec<Sampling> = Vec::new();
        let status = match self
            .functions
            .rocprofiler_query_pc_sampling_agent_configurations
        {
            None => rocprofiler_status_t::ERROR_NOT_IMPLEMENTED,
            // SAFETY: the data is the list that the callback fills.
            Some(query) => unsafe {
                query(
                    rocprofiler_agent_id_t { handle: agent },
                    Some(take_sampling),
                    (&raw mut configurations).cast(),
                )
            },
        };
        let verdict = self.verdict(status);
        if !verdict.is_success() {
            configurations.clear();
        }
        Ok(Reply::Sampling {
            verdict,
            configurations,
        })
    }
}

/// # Safety
///
/// `text` is null or a NUL-terminated string.
unsafe fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: as this function demands.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// # Safety
///
/// `array` is null or holds `count` elements.
unsafe fn slice<'a, T>(array: *const T, count: usize) -> &'a [T] {
    if array.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: as this function demands.
    unsafe { std::slice::from_raw_parts(array, count) }
}

/// # Safety
///
/// `array` is null or holds `count` pointers, each null or to a dimension.
unsafe fn pointed(
    array: *mut *const rocprofiler_counter_record_dimension_info_t,
    count: u64,
) -> Vec<Dimension> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as this function demands.
    unsafe {
        slice(array.cast_const(), count)
            .iter()
            .filter_map(|pointer| pointer.as_ref())
            .map(|info| dimension(info))
            .collect()
    }
}

/// # Safety
///
/// The name is null or a NUL-terminated string.
unsafe fn dimension(info: &rocprofiler_counter_record_dimension_info_t) -> Dimension {
    Dimension {
        // SAFETY: as this function demands.
        name: unsafe { text(info.name) },
        size: info.instance_size as u64,
    }
}

unsafe extern "C" fn take_agents(
    _version: rocprofiler_agent_version_t,
    agents: *mut *const c_void,
    count: usize,
    data: *mut c_void,
) -> rocprofiler_status_t {
    // SAFETY: the provider's array of `count` pointers to agent structs, and the list that was passed along.
    unsafe {
        let list = &mut *data.cast::<Vec<Agent>>();
        list.extend(
            slice(agents.cast_const(), count)
                .iter()
                .filter_map(|agent| agent_of(*agent)),
        );
    }
    rocprofiler_status_t::SUCCESS
}

/// # Safety
///
/// `from` is null or points to an agent struct of version 0.
unsafe fn agent_of(from: *const c_void) -> Option<Agent> {
    if from.is_null() {
        return None;
    }
    let mut agent = rocprofiler_agent_v0_t::default();
    // SAFETY: the struct begins with its size; no more than that and no more than is known of it is copied. Texts
    // are valid like the struct, and null when the size does not cover them.
    unsafe {
        let size = from.cast::<u64>().read_unaligned() as usize;
        std::ptr::copy_nonoverlapping(
            from.cast::<u8>(),
            (&raw mut agent).cast::<u8>(),
            size.min(size_of::<rocprofiler_agent_v0_t>()),
        );
        let seen = agent.runtime_visibility;
        Some(Agent {
            handle: agent.id.handle,
            gpu: agent.r#type == rocprofiler_agent_type_t::GPU,
            cpu_cores_count: agent.cpu_cores_count,
            simd_count: agent.simd_count,
            max_waves_per_simd: agent.max_waves_per_simd,
            runtime_visibility: Visibility {
                hsa: seen.hsa(),
                hip: seen.hip(),
                rccl: seen.rccl(),
                rocdecode: seen.rocdecode(),
            },
            wave_front_size: agent.wave_front_size,
            num_xcc: agent.num_xcc,
            cu_count: agent.cu_count,
            array_count: agent.array_count,
            num_shader_banks: agent.num_shader_banks,
            simd_arrays_per_engine: agent.simd_arrays_per_engine,
            cu_per_simd_array: agent.cu_per_simd_array,
            simd_per_cu: agent.simd_per_cu,
            gfx_target_version: agent.gfx_target_version,
            max_waves_per_cu: agent.max_waves_per_cu,
            gpu_id: agent.gpu_id,
            workgroup_max_dim: extent(agent.workgroup_max_dim),
            grid_max_dim: extent(agent.grid_max_dim),
            name: text(agent.name),
            vendor_name: text(agent.vendor_name),
            product_name: text(agent.product_name),
            model_name: text(agent.model_name),
            node_id: agent.node_id,
            logical_node_id: agent.logical_node_id,
            logical_node_type_id: agent.logical_node_type_id,
        })
    }
}

fn extent(dimensions: rocprofiler_dim3_t) -> Extent {
    Extent {
        x: dimensions.x,
        y: dimensions.y,
        z: dimensions.z,
    }
}

unsafe extern "C" fn take_counters(
    _agent: rocprofiler_agent_id_t,
    counters: *mut rocprofiler_counter_id_t,
    count: usize,
    data: *mut c_void,
) -> rocprofiler_status_t {
    // SAFETY: the provider's array of `count` ids, and the list that was passed along.
    unsafe {
        let list = &mut *data.cast::<Vec<u64>>();
        list.extend(
            slice(counters.cast_const(), count)
                .iter()
                .map(|id| id.handle),
        );
    }
    rocprofiler_status_t::SUCCESS
}

unsafe extern "C" fn take_dimensions(
    _counter: rocprofiler_counter_id_t,
    dimensions: *const rocprofiler_counter_record_dimension_info_t,
    count: usize,
    data: *mut c_void,
) -> rocprofiler_status_t {
    // SAFETY: the provider's array of `count` dimensions, and the list that was passed along.
    unsafe {
        let list = &mut *data.cast::<Vec<Dimension>>();
        list.extend(slice(dimensions, count).iter().map(|info| dimension(info)));
    }
    rocprofiler_status_t::SUCCESS
}

unsafe extern "C" fn take_sampling(
    configurations: *const rocprofiler_pc_sampling_configuration_t,
    count: usize,
    data: *mut c_void,
) -> rocprofiler_status_t {
    // SAFETY: the provider's array of `count` configurations, and the list that was passed along.
    unsafe {
        let list = &mut *data.cast::<Vec<Sampling>>();
        list.extend(slice(configurations, count).iter().map(sampling_of));
    }
    rocprofiler_status_t::SUCCESS
}

fn sampling_of(configuration: &rocprofiler_pc_sampling_configuration_t) -> Sampling {
    let power_of_two = rocprofiler_pc_sampling_configuration_flags_t::INTERVAL_POW2;
    Sampling {
        method: match configuration.method {
            rocprofiler_pc_sampling_method_t::STOCHASTIC => "stochastic".to_owned(),
            rocprofiler_pc_sampling_method_t::HOST_TRAP => "host_trap".to_owned(),
            other => format!("method {}", other.0),
        },
        unit: match configuration.unit {
            rocprofiler_pc_sampling_unit_t::INSTRUCTIONS => "instructions".to_owned(),
            rocprofiler_pc_sampling_unit_t::CYCLES => "cycle".to_owned(),
            rocprofiler_pc_sampling_unit_t::TIME => "time".to_owned(),
            other => format!("unit {}", other.0),
        },
        min_interval: configuration.min_interval as u64,
        max_interval: configuration.max_interval as u64,
        power_of_two: configuration.flags & u64::from(power_of_two.0) != 0,
    }
}
