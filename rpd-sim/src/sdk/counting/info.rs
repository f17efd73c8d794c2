//! Queries of tools about counters.

use core::{ffi::c_void, ptr, slice};

use rocprofiler_sdk_sys::{
    rocprofiler_agent_id_t as AgentId, rocprofiler_available_counters_cb_t as CountersFn,
    rocprofiler_available_dimensions_cb_t as DimensionsFn,
    rocprofiler_counter_dimension_info_t as PlaceInfo, rocprofiler_counter_flag_t as Flag,
    rocprofiler_counter_id_t as CounterId, rocprofiler_counter_info_v0_t as InfoV0,
    rocprofiler_counter_info_v1_t as InfoV1, rocprofiler_counter_info_version_id_t as InfoVersion,
    rocprofiler_counter_record_dimension_info_t as DimensionInfo,
    rocprofiler_counter_record_dimension_instance_info_t as InstanceInfo,
    rocprofiler_status_t as Status,
};
use rpd_metric::{Dimension, Expression, Position};

use super::catalogue::{self, Counter, CreateError, Refused, Source, forever};
use crate::sdk::{agents, status::store};

/// Number of bits below the counter's id in the id of a value.
const POSITION_BITS: u32 = 48;
/// Number of bits for the index along one dimension.
const INDEX_BITS: u32 = 6;

/// The id of one value of a counter.
pub(super) fn instance_id(counter: u64, position: Position) -> u64 {
    Dimension::ALL
        .iter()
        .fold(counter << POSITION_BITS, |id, &dimension| {
            let shift = INDEX_BITS * (u32::from(dimension.id()) - 1);
            id | u64::from(position.get(dimension)) << shift
        })
}

/// A counter's description in the ABI's layout, with everything it points to; never freed.
pub(crate) struct Info {
    full: InfoV1,
    dimensions: Vec<DimensionInfo>,
}

// SAFETY: immutable, and so is what its pointers lead to.
unsafe impl Sync for Info {}
// SAFETY: as above.
unsafe impl Send for Info {}

/// Pointers to the elements of a list, all of which live as long as the process.
fn pointers<T: 'static>(list: Vec<T>) -> *mut *const T {
    let list: &'static [T] = list.leak();
    let pointers: Vec<*const T> = list.iter().map(ptr::from_ref).collect();
    pointers.leak().as_mut_ptr()
}

impl Info {
    fn from_counter(counter: &Counter) -> Self {
        let extents = counter.shape.extents();
        let dimensions: Vec<DimensionInfo> = extents
            .iter()
            .map(|&(dimension, extent)| DimensionInfo {
                name: forever(dimension.name()),
                instance_size: usize::from(extent),
                id: u64::from(dimension.id()),
            })
            .collect();
        let place = |position: Position| {
            let places = extents.iter().zip(&dimensions);
            let places = places.map(|(&(dimension, _), info)| PlaceInfo {
                size: size_of::<PlaceInfo>() as u64,
                dimension_name: info.name,
                index: usize::from(position.get(dimension)),
            });
            InstanceInfo {
                size: size_of::<InstanceInfo>() as u64,
                instance_id: instance_id(counter.id, position),
                counter_id: counter.id,
                dimensions_count: extents.len() as u64,
                dimensions: pointers(places.collect()),
            }
        };
        let instances: Vec<InstanceInfo> = counter.shape.positions().map(place).collect();
        let (block, expression) = match &counter.source {
            Source::Event { block, .. } => (block.name, ""),
            Source::Derived(expression) => ("", expression.text()),
            Source::Constant(_) => ("", ""),
        };
        let full = InfoV1 {
            size: size_of::<InfoV1>() as u64,
            id: CounterId { handle: counter.id },
            name: forever(&counter.name),
            description: forever(&counter.description),
            block: forever(block),
            expression: forever(expression),
            dimensions_count: dimensions.len() as u64,
            dimensions_instances_count: instances.len() as u64,
            dimensions: pointers(dimensions.clone()),
            dimensions_instances: pointers(instances),
            ..InfoV1::default()
        }
        .with_is_constant(matches!(counter.source, Source::Constant(_)).into())
        .with_is_derived(matches!(counter.source, Source::Derived(_)).into());
        Self { full, dimensions }
    }
}

/// The counter of a handle and its description.
fn find(id: CounterId) -> Option<(&'static Counter, &'static Info)> {
    let counter = catalogue::current().get(id.handle)?;
    Some((
        counter,
        counter.info.get_or_init(|| Info::from_counter(counter)),
    ))
}

/// `rocprofiler_iterate_agent_supported_counters`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_agent_supported_counters(
    agent_id: AgentId,
    callback: CountersFn,
    user_data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let Some(index) = agents::index_of(agent_id) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    let catalogue = catalogue::current();
    let Some(agent) = catalogue
        .agent(index)
        .filter(|agent| !agent.list.is_empty())
    else {
        return Status::ERROR_AGENT_ARCH_NOT_SUPPORTED;
    };
    let ids = agent.list.iter().map(|c| CounterId { handle: c.id });
    let mut ids: Vec<CounterId> = ids.collect();
    // SAFETY: the caller gave the function for this; the array outlives the call.
    unsafe { callback(agent_id, ids.as_mut_ptr(), ids.len(), user_data) }
}

/// `rocprofiler_query_counter_info`.
///
/// # Safety
/// `info` can hold the struct that `version` names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_counter_info(
    counter_id: CounterId,
    version: InfoVersion,
    info: *mut c_void,
) -> Status {
    if version != InfoVersion::VERSION_0 && version != InfoVersion::VERSION_1 {
        return Status::ERROR_INCOMPATIBLE_ABI;
    }
    let Some((_, Info { full, .. })) = find(counter_id) else {
        return Status::ERROR_COUNTER_NOT_FOUND;
    };
    if version == InfoVersion::VERSION_1 {
        store(info.cast(), *full);
    } else {
        store(
            info.cast(),
            InfoV0 {
                id: full.id,
                name: full.name,
                description: full.description,
                block: full.block,
                expression: full.expression,
                ..InfoV0::default()
            }
            .with_is_constant(full.is_constant())
            .with_is_derived(full.is_derived()),
        );
    }
    Status::SUCCESS
}

/// `rocprofiler_iterate_counter_dimensions`.
///
/// # Safety
/// The callback can be called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_iterate_counter_dimensions(
    id: CounterId,
    callback: DimensionsFn,
    user_data: *mut c_void,
) -> Status {
    let Some(callback) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let Some((_, Info { dimensions, .. })) = find(id) else {
        return Status::ERROR_COUNTER_NOT_FOUND;
    };
    // SAFETY: the caller gave the function for this; the array is never freed.
    unsafe { callback(id, dimensions.as_ptr(), dimensions.len(), user_data) }
}

/// `rocprofiler_query_counter_instance_count`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_counter_instance_count(
    _agent_id: AgentId,
    counter_id: CounterId,
    instance_count: *mut usize,
) -> Status {
    let Some((counter, _)) = find(counter_id) else {
        store(instance_count, 0);
        return Status::ERROR_COUNTER_NOT_FOUND;
    };
    store(instance_count, counter.shape.instances());
    Status::SUCCESS
}

/// `rocprofiler_query_record_counter_id`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_record_counter_id(
    id: u64,
    counter_id: *mut CounterId,
) -> Status {
    store(
        counter_id,
        CounterId {
            handle: id >> POSITION_BITS,
        },
    );
    Status::SUCCESS
}

/// `rocprofiler_query_record_dimension_position`: dimension 0 stands for all dimensions as one number.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_record_dimension_position(
    id: u64,
    dimension: u64,
    position: *mut usize,
) -> Status {
    let index = match Dimension::from_id(dimension) {
        Some(dimension) => {
            let shift = INDEX_BITS * (u32::from(dimension.id()) - 1);
            id >> shift & ((1 << INDEX_BITS) - 1)
        }
        None if dimension == 0 => id & ((1 << POSITION_BITS) - 1),
        None => return Status::ERROR_DIM_NOT_FOUND,
    };
    store(position, index as usize);
    Status::SUCCESS
}

/// Text of a given length, which need not end with zero; empty for length 0, `None` for a null pointer otherwise.
///
/// # Safety
/// `text` is null or that long.
unsafe fn text(text: *const core::ffi::c_char, length: usize) -> Option<String> {
    if text.is_null() {
        return (length == 0).then(String::new);
    }
    // SAFETY: not null, and that long by the contract.
    let bytes = unsafe { slice::from_raw_parts(text.cast::<u8>(), length) };
    // Some count the zero at the end.
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(length);
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

/// `rocprofiler_load_counter_definition`.
///
/// # Safety
/// `yaml` is null or `size` bytes long.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_load_counter_definition(
    yaml: *const core::ffi::c_char,
    size: usize,
    flags: Flag,
) -> Status {
    // SAFETY: by the contract.
    let Some(yaml) = (unsafe { text(yaml, size) }) else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    match catalogue::define(&yaml, flags == Flag::APPEND_DEFINITION) {
        Ok(()) => Status::SUCCESS,
        Err(Refused::Late) => Status::ERROR,
        Err(Refused::Text(why)) => {
            eprintln!("rpd-sim: counter definitions: {why}");
            Status::ERROR_INVALID_ARGUMENT
        }
        Err(Refused::Counter(why)) => {
            eprintln!("rpd-sim: counter definitions: {why}");
            Status::ERROR_AST_GENERATION_FAILED
        }
    }
}

/// `rocprofiler_create_counter`: a derived counter for one agent.
///
/// # Safety
/// Texts are null or have the given length; the out pointer is null or writable.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments, reason = "the ABI has them")]
pub unsafe extern "C" fn rocprofiler_create_counter(
    name: *const core::ffi::c_char,
    name_len: usize,
    expr: *const core::ffi::c_char,
    expr_len: usize,
    description: *const core::ffi::c_char,
    description_len: usize,
    agent: AgentId,
    counter_id: *mut CounterId,
) -> Status {
    let Some(index) = agents::index_of(agent) else {
        return Status::ERROR_AGENT_NOT_FOUND;
    };
    // SAFETY: by the contract.
    let texts = unsafe {
        (
            text(name, name_len),
            text(expr, expr_len),
            text(description, description_len),
        )
    };
    let (Some(name), Some(formula), Some(description)) = texts else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if name.is_empty() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let refuse = |why: &dyn core::fmt::Display| {
        eprintln!("rpd-sim: counter {name}: {why}");
        Status::ERROR_AST_GENERATION_FAILED
    };
    let expression = match Expression::parse(&formula) {
        Ok(expression) => expression,
        Err(e) => return refuse(&e),
    };
    match catalogue::create(index, &name, expression, &description) {
        Ok(handle) => {
            store(counter_id, CounterId { handle });
            Status::SUCCESS
        }
        Err(CreateError::Agent) => Status::ERROR_AGENT_NOT_FOUND,
        Err(CreateError::Name) => Status::ERROR_INVALID_ARGUMENT,
        Err(CreateError::Expression(why)) => refuse(&why),
    }
}
