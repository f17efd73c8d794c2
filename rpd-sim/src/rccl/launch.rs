//! Launches of the kernel that carries operations out.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use super::communicator::Communicator;
use super::error::Outcome;
use super::hip::{self, Handle};
use super::work::{Arguments, MAX_WORKS, THREADS, Work};

/// Code objects for all devices, compiled by `device/build.sh`.
static BUNDLE: &[u8] = include_bytes!("device/collectives.hipfb");
/// Name of the kernel, which is the real library's.
const KERNEL: &core::ffi::CStr = c"_Z23ncclDevKernel_Generic_124ncclDevKernelArgsStorageILm4096EE";

/// The kernel for device `device`, which must be the current one; loaded at the first call.
pub(super) fn kernel(device: i32) -> Outcome<Handle> {
    // By process as well, because a forked child loads it anew.
    static LOADED: LazyLock<Mutex<HashMap<(u32, i32), Handle>>> = LazyLock::new(Mutex::default);
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (std::process::id(), device);
    if let Some(&known) = loaded.get(&key) {
        return Ok(known);
    }
    let function = hip::load(BUNDLE, KERNEL)?;
    loaded.insert(key, function);
    Ok(function)
}

/// Enqueues operations of a communicator on a stream. Launches do not wait for other ranks.
fn enqueue(communicator: &Communicator, works: &[Work], stream: Handle) -> Outcome {
    let segment = &communicator.segment;
    let function = kernel(communicator.device)?;
    for works in works.chunks(MAX_WORKS) {
        let mut arguments = Arguments {
            segment: segment.address(),
            rank: segment.rank,
            ranks: segment.ranks,
            works: works.len() as u32,
            unused: 0,
            work: [Work::default(); MAX_WORKS],
            rest: [0; 40],
        };
        arguments.work[..works.len()].copy_from_slice(works);
        // SAFETY: this is the argument that the kernel takes.
        unsafe { hip::launch(function, THREADS, &arguments, stream)? };
    }
    Ok(())
}

/// Enqueues the operations of a group: after the present work of their streams, and before later work of these.
pub(super) fn run(communicator: &Communicator, operations: &[(Work, Handle)]) -> Outcome {
    let Some(&(_, stream)) = operations.first() else {
        return Ok(());
    };
    let (ranks, rank) = (communicator.segment.ranks, communicator.segment.rank);
    let mut works: Vec<Work> = operations.iter().map(|&(work, _)| work).collect();
    // Messages last, in an order that is the same for sender and receiver, so that launches of some of them do not wait for each other.
    works.sort_by_key(|work| {
        if !work.is_message() {
            0
        } else if work.flags & super::work::flag::SEND != 0 {
            1 + (work.root + ranks - rank) % ranks
        } else {
            1 + (rank + ranks - work.root) % ranks
        }
    });
    let mut others: Vec<Handle> = operations.iter().map(|&(_, stream)| stream).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|&other| other != stream);
    hip::on_device(communicator.device, || {
        let mut state = communicator.state();
        // Operations of a communicator are carried out one after the other.
        if let Some(before) = state.stream.replace(stream)
            && before != stream
            && !others.contains(&before)
            && !hip::is_capturing(stream)?
            && hip::is_capturing(before).is_ok_and(|captures| !captures)
        {
            hip::order(stream, before)?;
        }
        for &other in &others {
            hip::order(stream, other)?;
        }
        enqueue(communicator, &works, stream)?;
        others
            .iter()
            .try_for_each(|&other| hip::order(other, stream))
    })
}

#[cfg(test)]
mod tests {
    use super::BUNDLE;
    use rpd_gfx::codeobj::bundle::pick;
    use rpd_gfx::device::{DEVICES, Device};

    #[test]
    fn the_rccl_bundle_has_code_for_every_device() {
        let simulated = Device::simulated_names();
        for device in DEVICES
            .iter()
            .filter(|device| simulated.contains(&device.name))
        {
            if let Err(error) = pick(BUNDLE, &device.target()) {
                panic!("{}: {error}", device.name);
            }
        }
    }
}
