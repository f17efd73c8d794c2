//! Communicators: the handles that programs have, and the state of each rank of this process.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::error::{Failure, Outcome, result};
use super::hip::{self, Handle};
use super::segment::Segment;
use super::work::Factor;

/// An `ncclComm_t`: one rank of a communicator, with the memory that all ranks share.
pub(super) struct Communicator {
    pub(super) segment: Segment,
    /// Ordinal of the rank's GPU.
    pub(super) device: i32,
    /// Id of the process that made the communicator: a forked child has neither the GPU nor the mappings.
    process: u32,
    state: Mutex<CommunicatorState>,
}

/// State of a communicator that calls of the program change.
#[derive(Default)]
pub(super) struct CommunicatorState {
    /// Stream of the communicator's last operation.
    pub(super) stream: Option<Handle>,
    /// Factors of the reductions that the program has made; `None` for destroyed ones.
    pub(super) factors: Vec<Option<Factor>>,
    /// Number of times that the communicator was split.
    pub(super) splits: u32,
}

static ALL: LazyLock<Mutex<HashMap<usize, Arc<Communicator>>>> = LazyLock::new(Mutex::default);

fn all() -> MutexGuard<'static, HashMap<usize, Arc<Communicator>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The communicator of a handle; fails if another process made it.
pub(super) fn find(handle: usize) -> Outcome<Arc<Communicator>> {
    let known = all().get(&handle).cloned();
    let known = known.ok_or_else(|| Failure::argument("the communicator is none"))?;
    if known.process != std::process::id() {
        let text = "the communicator was made before the process forked";
        return Err(Failure::new(result::INVALID_USAGE, text));
    }
    Ok(known)
}

/// Makes the handle of a communicator invalid.
pub(super) fn remove(handle: usize) -> Outcome<Arc<Communicator>> {
    let known = find(handle)?;
    all().remove(&handle);
    Ok(known)
}

impl Communicator {
    /// Makes a communicator of a segment that all ranks have joined; returns its handle.
    pub(super) fn make(segment: Segment, device: i32) -> usize {
        let made = Arc::new(Self {
            segment,
            device,
            process: std::process::id(),
            state: Mutex::default(),
        });
        let handle = Arc::as_ptr(&made) as usize;
        all().insert(handle, made);
        handle
    }

    pub(super) fn state(&self) -> MutexGuard<'_, CommunicatorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the operations of the communicator.
    pub(super) fn finish(&self) -> Outcome {
        let stream = self.state().stream.take();
        // The program may have destroyed the stream.
        stream.map_or(Ok(()), |stream| {
            hip::on_device(self.device, || {
                hip::synchronize(stream).or_else(|_| hip::synchronize_device())
            })
        })
    }
}
