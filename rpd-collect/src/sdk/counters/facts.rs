//! Descriptions of counters and of their instances; each is recorded once.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_char;
use std::sync::Arc;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_counter_id_t, rocprofiler_counter_info_v0_t,
    rocprofiler_counter_info_v1_t, rocprofiler_counter_info_version_id_t,
    rocprofiler_counter_record_dimension_info_t, rocprofiler_counter_record_t,
    rocprofiler_status_t,
};
use rpd_spool::format::{Counter, CounterInstance};
use rpd_spool::record::RecordKind;
use zerocopy::IntoBytes;

use crate::recording::fork::ForkHook;
use crate::recording::meta;
use crate::recording::text::text;
use crate::sdk::query::visit3;

/// No counter has more dimensions; with a larger number the description is not used.
const MOST_DIMENSIONS: usize = 64;

/// Descriptions recorded so far. Forked children inherit them, and repeat the records.
#[derive(Default)]
struct Recorded {
    /// Ids of the dimensions of each counter, by agent and id: agents of one architecture may share ids.
    counters: HashMap<(u64, u64), Arc<[u64]>>,
    instances: HashSet<u64>,
}

struct SharedFacts(UnsafeCell<Option<Recorded>>);

// SAFETY: the content is only touched with the lock of [`FORK`] held.
unsafe impl Sync for SharedFacts {}

static RECORDED: SharedFacts = SharedFacts(UnsafeCell::new(None));
static FORK: ForkHook = ForkHook::new();

/// `None` when this very thread holds the lock: a signal handler interrupted it.
fn with<T>(act: impl FnOnce(&mut Recorded) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(
        unsafe { &mut *RECORDED.0.get() }.get_or_insert_default()
    ))
}

/// A dimension as the provider describes it.
struct Dimension<'a> {
    id: u64,
    size: u64,
    name: &'a [u8],
}

/// The name of a counter; `None` when the provider has no counter of this id.
pub(super) fn name(functions: &Functions, id: u64) -> Option<&'static [u8]> {
    // SAFETY: the provider's texts last for the process.
    info(functions, id).map(|info| unsafe { text(info.name) })
}

fn info(functions: &Functions, id: u64) -> Option<rocprofiler_counter_info_v0_t> {
    let query = functions.rocprofiler_query_counter_info?;
    let mut info = rocprofiler_counter_info_v0_t::default();
    // SAFETY: the struct is that of the version requested.
    let status = unsafe {
        query(
            rocprofiler_counter_id_t { handle: id },
            rocprofiler_counter_info_version_id_t::VERSION_0,
            (&raw mut info).cast(),
        )
    };
    (status == rocprofiler_status_t::SUCCESS).then_some(info)
}

/// The dimensions of a counter from version 1 of its description; `None` when the provider does not give one.
fn dimensions_of_info(functions: &Functions, id: u64) -> Option<Vec<Dimension<'static>>> {
    /// Version 1 of the description, with space for fields that a later provider may add.
    #[repr(C)]
    #[derive(Default)]
    struct Description {
        info: rocprofiler_counter_info_v1_t,
        later: [u64; 32],
    }
    let query = functions.rocprofiler_query_counter_info?;
    let mut description = Description::default();
    // SAFETY: the struct begins with that of the version requested.
    let status = unsafe {
        query(
            rocprofiler_counter_id_t { handle: id },
            rocprofiler_counter_info_version_id_t::VERSION_1,
            (&raw mut description).cast(),
        )
    };
    let info = &description.info;
    let needed = std::mem::offset_of!(rocprofiler_counter_info_v1_t, dimensions) + 8;
    // SDK 1.0 leaves the size of a counter without instances at zero.
    if status != rocprofiler_status_t::SUCCESS || (info.size != 0 && info.size < needed as u64) {
        return None;
    }
    let count = usize::try_from(info.dimensions_count).ok()?;
    if info.dimensions.is_null() || count > MOST_DIMENSIONS {
        return Some(Vec::new());
    }
    // SAFETY: the provider's array of `count` pointers, which lasts for the process.
    let dimensions = unsafe { std::slice::from_raw_parts(info.dimensions, count) };
    let dimensions = dimensions.iter().filter(|pointer| !pointer.is_null());
    // SAFETY: each points to a description, which lasts for the process.
    Some(unsafe { dimensions.map(|pointer| dimension(&**pointer)).collect() })
}

/// # Safety
///
/// The name of `info` is null or text that lives as long as the result.
unsafe fn dimension<'a>(info: &rocprofiler_counter_record_dimension_info_t) -> Dimension<'a> {
    Dimension {
        id: info.id,
        size: info.instance_size as u64,
        // SAFETY: as this function demands.
        name: unsafe { text(info.name) },
    }
}

/// Ids of dimensions, and the dimensions as the tail of the record has them.
#[derive(Default)]
struct Dimensions {
    ids: Vec<u64>,
    tail: Vec<u8>,
}

impl Dimensions {
    fn add(&mut self, dimension: &Dimension<'_>) {
        self.ids.push(dimension.id);
        put(&mut self.tail, [dimension.id, dimension.size].as_bytes());
        put(&mut self.tail, dimension.name);
    }

    /// The dimensions of a counter: from version 1 of its description, or by iteration where the provider lacks that version.
    fn from_functions(functions: &Functions, id: u64) -> Dimensions {
        let mut dimensions = Dimensions::default();
        if let Some(found) = dimensions_of_info(functions, id) {
            for dimension in &found {
                dimensions.add(dimension);
            }
        } else if let Some(iterate) = functions.rocprofiler_iterate_counter_dimensions {
            let counter = rocprofiler_counter_id_t { handle: id };
            // A counter without dimensions is an error to some providers; it has none here.
            visit3(
                |_: rocprofiler_counter_id_t,
                 infos: *const rocprofiler_counter_record_dimension_info_t,
                 count: usize| {
                    if infos.is_null() || count > MOST_DIMENSIONS {
                        return;
                    }
                    // SAFETY: the provider's array during this call.
                    for info in unsafe { std::slice::from_raw_parts(infos, count) } {
                        // SAFETY: the name is valid during this call.
                        dimensions.add(&unsafe { dimension(info) });
                    }
                },
                // SAFETY: callback and data belong together.
                |visit, data| unsafe { iterate(counter, visit, data) },
            );
        }
        dimensions
    }
}

fn put(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    tail.extend_from_slice(bytes);
}

/// Records the description of a counter, unless it is recorded. Returns the ids of its dimensions.
pub(super) fn counter(functions: &Functions, id: u64, agent: u64) -> Arc<[u64]> {
    if let Some(Some(known)) = with(|recorded| recorded.counters.get(&(agent, id)).cloned()) {
        return known;
    }
    // The provider is queried without the lock. Another thread may record the same meanwhile, which readers expect.
    let info = info(functions, id).unwrap_or_default();
    let dimensions = Dimensions::from_functions(functions, id);
    let mut tail = Vec::new();
    let strings: [*const c_char; 4] = [info.name, info.description, info.block, info.expression];
    for string in strings {
        // SAFETY: the provider's texts last for the process.
        put(&mut tail, unsafe { text(string) });
    }
    tail.extend_from_slice(&dimensions.tail);
    let counter = Counter {
        header: RecordKind::Counter
            .head(tail.len())
            .with_aux((info.flags & 3).into()),
        id,
        agent,
    };
    meta::write(&counter, &tail);
    let ids: Arc<[u64]> = dimensions.ids.into();
    with(|recorded| recorded.counters.insert((agent, id), Arc::clone(&ids)));
    ids
}

/// Records which counters and positions the values of a dispatch belong to, as far as that is not recorded.
pub(super) fn instances(
    functions: &Functions,
    agent: u64,
    values: &[rocprofiler_counter_record_t],
) {
    let new: Vec<u64> = with(|recorded| {
        let ids = values.iter().map(|value| value.id);
        ids.filter(|id| recorded.instances.insert(*id)).collect()
    })
    .unwrap_or_default();
    for id in new {
        instance(functions, agent, id);
    }
}

fn instance(functions: &Functions, agent: u64, id: u64) {
    let mut counter_id = rocprofiler_counter_id_t::default();
    let status = match functions.rocprofiler_query_record_counter_id {
        // SAFETY: the pointer is valid for the call.
        Some(query) => unsafe { query(id, &mut counter_id) },
        None => rocprofiler_status_t::ERROR,
    };
    if status != rocprofiler_status_t::SUCCESS {
        return;
    }
    let dimensions = counter(functions, counter_id.handle, agent);
    let mut pairs: Vec<[u64; 2]> = Vec::with_capacity(dimensions.len());
    if let Some(query) = functions.rocprofiler_query_record_dimension_position {
        for &dimension in dimensions.iter() {
            let mut position = 0usize;
            // SAFETY: the pointer is valid for the call.
            let status = unsafe { query(id, dimension, &mut position) };
            if status == rocprofiler_status_t::SUCCESS {
                pairs.push([dimension, position as u64]);
            }
        }
    }
    let instance = CounterInstance {
        header: RecordKind::CounterInstance.head(pairs.as_bytes().len()),
        id,
        counter: counter_id.handle,
        count: pairs.len() as u32,
        reserved: 0,
    };
    meta::write(&instance, pairs.as_bytes());
}
