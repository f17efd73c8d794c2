//! What counters are, and which value of a counter an instance id stands for: told to the spool once each.

use std::cell::UnsafeCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_counter_id_t, rocprofiler_counter_info_v0_t,
    rocprofiler_counter_info_v1_t, rocprofiler_counter_info_version_id_t,
    rocprofiler_counter_record_dimension_info_t, rocprofiler_counter_record_t,
    rocprofiler_status_t,
};
use rpd_spool::format::{Counter, CounterInstance, tag};
use rpd_spool::writer::ForkLock;
use zerocopy::IntoBytes;

use crate::recording::guard::Service;
use crate::recording::process::header;

/// No counter has more dimensions; a larger number is not believed.
const MOST_DIMENSIONS: usize = 64;

static SERVICE: Service = Service::new("dimensions of counters");

/// What has been told. Child processes inherit it, and the records with it.
#[derive(Default)]
struct Told {
    /// Ids of the dimensions of each counter, by agent and id: agents of one architecture may share ids.
    counters: HashMap<(u64, u64), Arc<[u64]>>,
    instances: HashSet<u64>,
}

struct Shared(UnsafeCell<Option<Told>>);

// SAFETY: the content is only touched with `LOCK` held.
unsafe impl Sync for Shared {}

static TOLD: Shared = Shared(UnsafeCell::new(None));
/// Guards [`TOLD`]; taken over a fork.
pub(crate) static LOCK: ForkLock = ForkLock::new();

/// `None` when this very thread holds the lock: a signal handler interrupted it.
fn with<T>(act: impl FnOnce(&mut Told) -> T) -> Option<T> {
    let _guard = LOCK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *TOLD.0.get() }.get_or_insert_default()))
}

/// A dimension as the provider describes it.
struct Dimension<'a> {
    id: u64,
    size: u64,
    name: &'a [u8],
}

/// The name of a counter; `None` when the provider does not know it.
pub(crate) fn name(functions: &Functions, id: u64) -> Option<&'static [u8]> {
    // SAFETY: the provider's texts last for the process.
    info(functions, id).map(|info| unsafe { crate::recording::text::text(info.name) })
}

fn info(functions: &Functions, id: u64) -> Option<rocprofiler_counter_info_v0_t> {
    let query = functions.rocprofiler_query_counter_info?;
    let mut info = rocprofiler_counter_info_v0_t::default();
    // SAFETY: the struct is that of the version asked for.
    let status = unsafe {
        query(
            rocprofiler_counter_id_t { handle: id },
            rocprofiler_counter_info_version_id_t::VERSION_0,
            (&raw mut info).cast(),
        )
    };
    (status == rocprofiler_status_t::SUCCESS).then_some(info)
}

/// The dimensions as version 1 of the description has them; `None` when the provider does not give one.
fn dimensions_of_info(functions: &Functions, id: u64) -> Option<Vec<Dimension<'static>>> {
    /// With room for what a later provider may add.
    #[repr(C)]
    #[derive(Default)]
    struct Room {
        info: rocprofiler_counter_info_v1_t,
        later: [u64; 32],
    }
    let query = functions.rocprofiler_query_counter_info?;
    let mut room = Room::default();
    // SAFETY: the struct begins with that of the version asked for.
    let status = unsafe {
        query(
            rocprofiler_counter_id_t { handle: id },
            rocprofiler_counter_info_version_id_t::VERSION_1,
            (&raw mut room).cast(),
        )
    };
    let info = &room.info;
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
        name: unsafe { crate::recording::text::text(info.name) },
    }
}

/// Ids, and the dimensions as the tail of the record has them.
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

    /// From whichever way the provider has to tell them.
    fn of(functions: &Functions, id: u64) -> Dimensions {
        let mut dimensions = Dimensions::default();
        if let Some(found) = dimensions_of_info(functions, id) {
            for dimension in &found {
                dimensions.add(dimension);
            }
        } else if let Some(iterate) = functions.rocprofiler_iterate_counter_dimensions {
            let counter = rocprofiler_counter_id_t { handle: id };
            // SAFETY: the callback matches, and its data outlives the call. A counter without dimensions is an error to
            // some providers; it has none here.
            unsafe { iterate(counter, Some(on_dimensions), (&raw mut dimensions).cast()) };
        }
        dimensions
    }
}

unsafe extern "C" fn on_dimensions(
    _counter: rocprofiler_counter_id_t,
    infos: *const rocprofiler_counter_record_dimension_info_t,
    count: usize,
    data: *mut c_void,
) -> rocprofiler_status_t {
    SERVICE.run(|| {
        if infos.is_null() || count > MOST_DIMENSIONS {
            return;
        }
        // SAFETY: `data` is what the iteration was given, the array that of the provider during this call.
        let (dimensions, infos) = unsafe {
            (
                &mut *data.cast::<Dimensions>(),
                std::slice::from_raw_parts(infos, count),
            )
        };
        for info in infos {
            // SAFETY: the name is valid during this call.
            dimensions.add(&unsafe { dimension(info) });
        }
    });
    rocprofiler_status_t::SUCCESS
}

fn put(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    tail.extend_from_slice(bytes);
}

/// Tells what a counter is, unless that has been told. The ids of its dimensions.
pub(crate) fn counter(functions: &Functions, id: u64, agent: u64) -> Arc<[u64]> {
    if let Some(Some(known)) = with(|told| told.counters.get(&(agent, id)).cloned()) {
        return known;
    }
    // The provider is asked without the lock. Who comes in between tells the same once more, which readers expect.
    let info = info(functions, id).unwrap_or_default();
    let dimensions = Dimensions::of(functions, id);
    let mut tail = Vec::new();
    let texts: [*const c_char; 4] = [info.name, info.description, info.block, info.expression];
    for text in texts {
        // SAFETY: the provider's texts last for the process.
        put(&mut tail, unsafe { crate::recording::text::text(text) });
    }
    tail.extend_from_slice(&dimensions.tail);
    let counter = Counter {
        header: header(0, 0),
        id,
        agent,
    };
    crate::recording::meta::write(tag::COUNTER, (info.flags & 3).into(), &counter, &tail);
    let ids: Arc<[u64]> = dimensions.ids.into();
    with(|told| told.counters.insert((agent, id), Arc::clone(&ids)));
    ids
}

/// Tells what the values of a dispatch are, as far as that has not been told.
pub(crate) fn instances(
    functions: &Functions,
    agent: u64,
    values: &[rocprofiler_counter_record_t],
) {
    let new: Vec<u64> = with(|told| {
        let ids = values.iter().map(|value| value.id);
        ids.filter(|id| told.instances.insert(*id)).collect()
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
        header: header(0, 0),
        id,
        counter: counter_id.handle,
        count: pairs.len() as u32,
        reserved: 0,
    };
    crate::recording::meta::write(tag::COUNTER_INSTANCE, 0, &instance, pairs.as_bytes());
}
