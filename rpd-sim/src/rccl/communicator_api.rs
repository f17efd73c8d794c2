//! The functions of the API that make, query and destroy communicators.

use std::sync::atomic::AtomicU64;

use super::communicator::{self, Communicator};
use super::error::{Failure, Outcome, api, put, result};
use super::segment;
use super::setup::{self, HandlePlace, NewCommunicator, Source};
use super::{group, hip};
use crate::api::types::UniqueId;

/// First fields of an `ncclConfig_t`.
#[repr(C)]
pub(crate) struct Config {
    size: usize,
    magic: u32,
    version: u32,
}

/// Checks that a configuration is null or was initialised. Its requests (numbers of workgroups, the network, calls that
/// do not block) have no effect: calls return when they are complete.
///
/// # Safety
/// `config` is null or can be read.
unsafe fn check_config(config: *const Config) -> Outcome {
    const MAGIC: u32 = 0xcafe_beef;
    // SAFETY: by contract.
    match unsafe { config.as_ref() } {
        Some(config) if config.magic != MAGIC => Err(Failure::argument(
            "the configuration was not initialised with NCCL_CONFIG_INITIALIZER",
        )),
        _ => Ok(()),
    }
}

fn check_place(place: *mut usize) -> Outcome<HandlePlace> {
    if place.is_null() {
        return Err(Failure::argument("the place of the communicator is null"));
    }
    Ok(HandlePlace(place))
}

pub(crate) unsafe extern "C" fn ncclGetUniqueId(out: *mut UniqueId) -> u32 {
    api("ncclGetUniqueId", || {
        let id = segment::make_id()?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("out", out, id) }
    })
}

/// # Safety
/// `config` is null or can be read.
unsafe fn init_rank(
    place: *mut usize,
    ranks: i32,
    id: UniqueId,
    rank: i32,
    config: *const Config,
) -> Outcome {
    group::make(|| {
        let place = check_place(place)?;
        let (ranks, rank) = setup::check_rank(ranks, rank)?;
        // SAFETY: by contract.
        unsafe { check_config(config)? };
        Ok(vec![NewCommunicator {
            device: hip::device()?,
            place,
            source: Source::Id { id, ranks, rank },
        }])
    })
}

pub(crate) unsafe extern "C" fn ncclCommInitRank(
    newcomm: *mut usize,
    nranks: i32,
    id: UniqueId,
    rank: i32,
) -> u32 {
    let config = std::ptr::null();
    // SAFETY: null is allowed.
    api("ncclCommInitRank", || unsafe {
        init_rank(newcomm, nranks, id, rank, config)
    })
}

pub(crate) unsafe extern "C" fn ncclCommInitRankConfig(
    newcomm: *mut usize,
    nranks: i32,
    id: UniqueId,
    rank: i32,
    config: *const Config,
) -> u32 {
    // SAFETY: the caller's configuration.
    api("ncclCommInitRankConfig", || unsafe {
        init_rank(newcomm, nranks, id, rank, config)
    })
}

pub(crate) unsafe extern "C" fn ncclCommInitAll(
    comms: *mut usize,
    count: i32,
    devices: *const i32,
) -> u32 {
    api("ncclCommInitAll", || {
        group::make(|| {
            let place = check_place(comms)?;
            let (ranks, _) = setup::check_rank(count, 0)?;
            let id = segment::make_id()?;
            let there = hip::device_count()?;
            let mut wanted: Vec<NewCommunicator> = Vec::new();
            for rank in 0..ranks {
                let nth = rank as usize;
                let device = if devices.is_null() {
                    rank as i32
                } else {
                    // SAFETY: the caller's list has `count` numbers.
                    unsafe { devices.add(nth).read() }
                };
                if !(0..there).contains(&device) {
                    let text = format!("there is no GPU {device}, only {there}");
                    return Err(Failure::argument(text));
                }
                if wanted.iter().any(|other| other.device == device) {
                    let text = format!("GPU {device} is named twice");
                    return Err(Failure::new(result::INVALID_USAGE, text));
                }
                wanted.push(NewCommunicator {
                    device,
                    // SAFETY: the caller's array has `count` places.
                    place: HandlePlace(unsafe { place.0.add(nth) }),
                    source: Source::Id { id, ranks, rank },
                });
            }
            Ok(wanted)
        })
    })
}

pub(crate) unsafe extern "C" fn ncclCommSplit(
    comm: usize,
    color: i32,
    key: i32,
    newcomm: *mut usize,
    config: *const Config,
) -> u32 {
    const NO_COLOR: i32 = -1;
    api("ncclCommSplit", || {
        group::make(|| {
            let parent = communicator::find(comm)?;
            let place = check_place(newcomm)?;
            if color < NO_COLOR {
                return Err(Failure::argument(format!("{color} is not a color")));
            }
            // SAFETY: the caller's configuration.
            unsafe { check_config(config)? };
            Ok(vec![NewCommunicator {
                device: parent.device,
                place,
                source: Source::Split { parent, color, key },
            }])
        })
    })
}

pub(crate) unsafe extern "C" fn ncclCommFinalize(comm: usize) -> u32 {
    api("ncclCommFinalize", || communicator::find(comm)?.finish())
}

fn end(communicator: &Communicator) -> Outcome {
    let finished = communicator.finish();
    communicator.segment.leave();
    finished
}

pub(crate) unsafe extern "C" fn ncclCommDestroy(comm: usize) -> u32 {
    api("ncclCommDestroy", || end(&*communicator::remove(comm)?))
}

pub(crate) unsafe extern "C" fn ncclCommAbort(comm: usize) -> u32 {
    api("ncclCommAbort", || {
        let communicator = communicator::remove(comm)?;
        communicator.segment.abort();
        end(&communicator)
    })
}

pub(crate) unsafe extern "C" fn ncclCommGetAsyncError(comm: usize, error: *mut u32) -> u32 {
    api("ncclCommGetAsyncError", || {
        let peers = communicator::find(comm)?.segment.check_peers();
        let status = peers.map_or_else(|failure| failure.result, |()| result::SUCCESS);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("asyncError", error, status) }
    })
}

pub(crate) unsafe extern "C" fn ncclCommCount(comm: usize, count: *mut i32) -> u32 {
    api("ncclCommCount", || {
        let ranks = communicator::find(comm)?.segment.ranks;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("count", count, ranks as i32) }
    })
}

pub(crate) unsafe extern "C" fn ncclCommCuDevice(comm: usize, device: *mut i32) -> u32 {
    api("ncclCommCuDevice", || {
        let own = communicator::find(comm)?.device;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("devid", device, own) }
    })
}

pub(crate) unsafe extern "C" fn ncclCommUserRank(comm: usize, rank: *mut i32) -> u32 {
    api("ncclCommUserRank", || {
        let own = communicator::find(comm)?.segment.rank;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("rank", rank, own as i32) }
    })
}

pub(crate) unsafe extern "C" fn ncclCommRegister(
    comm: usize,
    buffer: *mut u8,
    size: usize,
    handle: *mut usize,
) -> u32 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    api("ncclCommRegister", || {
        communicator::find(comm)?;
        if buffer.is_null() || size == 0 {
            return Err(Failure::argument("there is no buffer to register"));
        }
        // Buffers need no preparation here, so the handle stands for nothing.
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("handle", handle, number as usize) }
    })
}

pub(crate) unsafe extern "C" fn ncclCommDeregister(comm: usize, _handle: usize) -> u32 {
    api("ncclCommDeregister", || {
        communicator::find(comm).map(|_| ())
    })
}
