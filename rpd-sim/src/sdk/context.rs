//! Contexts: services are configured in a context, which tools start and stop.
//!
//! All state that a traced call reads is a few atomics: which contexts are active, and for every kind and
//! operation which contexts trace it. Contexts are made while tools configure and never freed.

use core::{
    ffi::{c_int, c_void},
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering},
};
use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::{Mutex, OnceLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord, rocprofiler_context_id_t as ContextId,
    rocprofiler_external_correlation_id_request_cb_t as RequestFn,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_status_t as Status, rocprofiler_user_data_t as UserData,
};

use super::{buffer::Buffer, state, status::store};

/// Most contexts of a process: each has a bit in masks.
pub(crate) const MAX: usize = 64;
/// Operation ids a kind may have.
pub(crate) const MAX_OPERATIONS: usize = 512;
pub(crate) const CALLBACK_KINDS: usize = CallbackKind::LAST.0 as usize;
pub(crate) const BUFFER_KINDS: usize = BufferKind::LAST.0 as usize;
pub(crate) const REQUEST_KINDS: usize = RequestKind::LAST.0 as usize;

/// A callback of a tool and its data pointer.
#[derive(Clone, Copy)]
pub(crate) struct Callback<F> {
    pub(crate) function: F,
    pub(crate) data: *mut c_void,
}

// SAFETY: the pointer is only handed back to the tool, whose callbacks are thread-safe by the ABI's contract.
unsafe impl<F> Send for Callback<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for Callback<F> {}

/// Callback of a tool for callback tracing, not null.
pub(crate) type TraceFn = unsafe extern "C" fn(CallbackRecord, *mut UserData, *mut c_void);

/// A context: the callbacks, buffers and services that a tool starts and stops together.
pub(crate) struct Context {
    /// Number of the context from 0, which is its bit in masks.
    pub(crate) index: usize,
    /// Number of the tool that created it.
    pub(crate) client: u32,
    removed: AtomicBool,
    pub(crate) callbacks: [OnceLock<Callback<TraceFn>>; CALLBACK_KINDS],
    pub(crate) buffers: [OnceLock<&'static Buffer>; BUFFER_KINDS],
    pub(crate) request: OnceLock<Callback<NonNullRequest>>,
}

/// Callback of a tool for external correlation ids, not null.
pub(crate) type NonNullRequest = <RequestFn as IntoIterator>::Item;

static CONTEXTS: [AtomicPtr<Context>; MAX] = [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX];
static COUNT: AtomicU32 = AtomicU32::new(0);
/// Lock for changes: making, configuring, starting and stopping contexts.
static CHANGE: Mutex<()> = Mutex::new(());
/// Mask of the contexts that are active.
static ACTIVE: AtomicU64 = AtomicU64::new(0);
/// Masks of the contexts that have callbacks, by kind and operation.
static CALLBACKS: [[AtomicU64; MAX_OPERATIONS]; CALLBACK_KINDS] =
    [const { [const { AtomicU64::new(0) }; MAX_OPERATIONS] }; CALLBACK_KINDS];
/// Masks of the contexts that have buffer records, by kind and operation.
static BUFFERS: [[AtomicU64; MAX_OPERATIONS]; BUFFER_KINDS] =
    [const { [const { AtomicU64::new(0) }; MAX_OPERATIONS] }; BUFFER_KINDS];
/// Masks of the contexts with a request callback for external ids, by request kind.
static REQUESTS: [AtomicU64; REQUEST_KINDS] = [const { AtomicU64::new(0) }; REQUEST_KINDS];

/// Set of the contexts that have one of the services, active or not.
pub(crate) struct ContextSet(AtomicU64);

/// Contexts with dispatch counting.
pub(crate) static DISPATCH_COUNTING: ContextSet = ContextSet(AtomicU64::new(0));
/// Contexts with counting of whole agents.
pub(crate) static DEVICE_COUNTING: ContextSet = ContextSet(AtomicU64::new(0));
/// The context with PC sampling, of which there is at most one.
pub(crate) static PC_SAMPLING: ContextSet = ContextSet(AtomicU64::new(0));
/// Contexts with thread trace.
pub(crate) static THREAD_TRACE: ContextSet = ContextSet(AtomicU64::new(0));

impl ContextSet {
    /// Notes that a context has the service.
    pub(crate) fn add(&self, context: &Context) {
        self.0.fetch_or(1 << context.index, Ordering::AcqRel);
    }

    /// Whether a context has the service.
    pub(crate) fn has(&self, context: &Context) -> bool {
        self.0.load(Ordering::Acquire) & 1 << context.index != 0
    }

    /// Whether no context has the service.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }

    /// Mask of the active contexts that have the service.
    #[inline]
    pub(crate) fn active(&self) -> u64 {
        match self.0.load(Ordering::Acquire) {
            0 => 0,
            all => all & active(),
        }
    }
}

/// Handle of the first context, different in every process.
fn offset() -> u64 {
    static OFFSET: OnceLock<u64> = OnceLock::new();
    *OFFSET.get_or_init(|| random_offset(1))
}

/// A number from 1 to about 2^16, different in every process, for handles that are not to look like indices.
pub(crate) fn random_offset(salt: u64) -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(salt);
    1 + hasher.finish() % 0xFFFF
}

/// Mask of the contexts that are active.
#[inline]
pub(crate) fn active() -> u64 {
    ACTIVE.load(Ordering::Acquire)
}

/// Mask of the contexts, active or not, with callbacks for an operation.
#[inline]
pub(crate) fn want_callbacks(kind: usize, operation: usize) -> u64 {
    CALLBACKS[kind][operation].load(Ordering::Relaxed)
}

/// Mask of the contexts, active or not, with buffer records for an operation.
#[inline]
pub(crate) fn want_records(kind: usize, operation: usize) -> u64 {
    BUFFERS[kind][operation].load(Ordering::Relaxed)
}

/// Mask of the contexts with a request callback for external ids of a kind.
#[inline]
pub(crate) fn want_requests(kind: usize) -> u64 {
    REQUESTS[kind].load(Ordering::Relaxed)
}

/// Whether any context has configured a callback kind or a buffer kind.
pub(crate) fn any(callback: CallbackKind, record: BufferKind) -> bool {
    CALLBACKS[callback.0 as usize]
        .iter()
        .any(|m| m.load(Ordering::Relaxed) != 0)
        || BUFFERS[record.0 as usize]
            .iter()
            .any(|m| m.load(Ordering::Relaxed) != 0)
}

/// Numbers of the bits that are set in a mask.
pub(crate) fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(bit)
    })
}

/// The context of a bit that is set in a mask of this module.
#[inline]
pub(crate) fn get(index: usize) -> &'static Context {
    // SAFETY: a bit is set only after the context was stored; contexts are never freed.
    unsafe { &*CONTEXTS[index].load(Ordering::Acquire) }
}

/// The context of a handle, unless it was removed.
pub(crate) fn find(id: ContextId) -> Option<&'static Context> {
    let index = id.handle.checked_sub(offset())?;
    if index >= u64::from(COUNT.load(Ordering::Acquire)) {
        return None;
    }
    let context = get(index as usize);
    (!context.removed.load(Ordering::Relaxed)).then_some(context)
}

impl Context {
    /// Handle of the context for the tool.
    pub(crate) fn id(&self) -> ContextId {
        ContextId {
            handle: offset() + self.index as u64,
        }
    }

    /// Calls the callback that the tool set for the kind of `record`, if there is one.
    #[inline]
    pub(crate) fn call(&self, mut record: CallbackRecord, user: *mut UserData) {
        if let Some(callback) = self.callbacks[record.kind.0 as usize].get() {
            record.context_id = self.id();
            // SAFETY: the tool gave the function for records of this kind; `user` outlives the call.
            unsafe { (callback.function)(record, user, callback.data) };
        }
    }

    /// Sets the callback of a kind; `false` when the kind has one already.
    pub(crate) fn add_callback(
        &self,
        kind: CallbackKind,
        operations: &[usize],
        callback: Callback<TraceFn>,
    ) -> bool {
        let kind = kind.0 as usize;
        if self.callbacks[kind].set(callback).is_err() {
            return false;
        }
        for &operation in operations {
            CALLBACKS[kind][operation].fetch_or(1 << self.index, Ordering::Release);
        }
        true
    }

    /// Sets the buffer of a kind; `false` when the kind has one already.
    pub(crate) fn add_buffer(
        &self,
        kind: BufferKind,
        operations: &[usize],
        buffer: &'static Buffer,
    ) -> bool {
        let kind = kind.0 as usize;
        if self.buffers[kind].set(buffer).is_err() {
            return false;
        }
        // Records arrive only in a buffer of the same context.
        if buffer.context == self.id() {
            for &operation in operations {
                BUFFERS[kind][operation].fetch_or(1 << self.index, Ordering::Release);
            }
        }
        true
    }

    /// Sets the request callback for external ids; `false` when there is one already.
    pub(crate) fn add_request(&self, kinds: &[usize], callback: Callback<NonNullRequest>) -> bool {
        if self.request.set(callback).is_err() {
            return false;
        }
        for &kind in kinds {
            REQUESTS[kind].fetch_or(1 << self.index, Ordering::Release);
        }
        true
    }
}

/// Activates a context if `allowed` returns that it may be active beside the others. `None` when it is active already.
///
/// # Errors
/// There is no such context, or it is not allowed.
pub(super) fn activate(
    id: ContextId,
    allowed: impl FnOnce(&Context) -> bool,
) -> Result<Option<&'static Context>, Status> {
    let _guard = CHANGE.lock().unwrap_or_else(|e| e.into_inner());
    let context = find(id).ok_or(Status::ERROR_CONTEXT_NOT_FOUND)?;
    if !allowed(context) {
        return Err(Status::ERROR_CONTEXT_CONFLICT);
    }
    let bit = 1 << context.index;
    let before = ACTIVE.fetch_or(bit, Ordering::AcqRel);
    Ok((before & bit == 0).then_some(context))
}

/// Deactivates a context; `None` when there is no such context or it is not active.
pub(super) fn deactivate(id: ContextId) -> Option<&'static Context> {
    let _guard = CHANGE.lock().unwrap_or_else(|e| e.into_inner());
    let context = find(id)?;
    let bit = 1 << context.index;
    (ACTIVE.fetch_and(!bit, Ordering::AcqRel) & bit != 0).then_some(context)
}

/// Deactivates all contexts of a client; `remove` also removes them. Returns those that were active.
pub(super) fn deactivate_client(
    client: u32,
    remove: bool,
) -> impl Iterator<Item = &'static Context> {
    let _guard = CHANGE.lock().unwrap_or_else(|e| e.into_inner());
    let mut stopped = 0;
    for index in 0..COUNT.load(Ordering::Acquire) as usize {
        let context = get(index);
        if context.client == client {
            let bit = 1 << index;
            stopped |= ACTIVE.fetch_and(!bit, Ordering::AcqRel) & bit;
            if remove {
                context.removed.store(true, Ordering::Relaxed);
            }
        }
    }
    bits(stopped).map(get)
}

/// Handles of a client's contexts.
pub(super) fn ids_of_client(client: u32) -> Vec<ContextId> {
    let all = 0..COUNT.load(Ordering::Acquire) as usize;
    all.map(get)
        .filter(|context| context.client == client && !context.removed.load(Ordering::Relaxed))
        .map(Context::id)
        .collect()
}

/// `rocprofiler_create_context`.
///
/// # Safety
/// The pointer is null or readable and writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_context(context_id: *mut ContextId) -> Status {
    if context_id.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    // SAFETY: not null, and readable by the contract.
    if unsafe { (*context_id).handle } != 0 {
        return Status::ERROR_CONTEXT_ID_NOT_ZERO;
    }
    let _guard = CHANGE.lock().unwrap_or_else(|e| e.into_inner());
    let index = COUNT.load(Ordering::Acquire) as usize;
    if index == MAX {
        return Status::ERROR_CONTEXT_ERROR;
    }
    let context = Box::leak(Box::new(Context {
        index,
        client: state::current_client(),
        removed: AtomicBool::new(false),
        callbacks: [const { OnceLock::new() }; CALLBACK_KINDS],
        buffers: [const { OnceLock::new() }; BUFFER_KINDS],
        request: OnceLock::new(),
    }));
    store(context_id, context.id());
    CONTEXTS[index].store(context, Ordering::Release);
    COUNT.store(index as u32 + 1, Ordering::Release);
    Status::SUCCESS
}

/// `rocprofiler_context_is_active`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_context_is_active(
    context_id: ContextId,
    status: *mut c_int,
) -> Status {
    let Some(context) = find(context_id) else {
        store(status, 0);
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    store(status, c_int::from(active() & (1 << context.index) != 0));
    Status::SUCCESS
}

/// `rocprofiler_context_is_valid`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_context_is_valid(
    context_id: ContextId,
    status: *mut c_int,
) -> Status {
    let found = find(context_id).is_some();
    store(status, c_int::from(found));
    if found {
        Status::SUCCESS
    } else {
        Status::ERROR_CONTEXT_NOT_FOUND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_lists_set_bits_in_order() {
        assert_eq!(bits(0b1010_0001).collect::<Vec<_>>(), [0, 5, 7]);
        assert_eq!(bits(1 << 63).collect::<Vec<_>>(), [63]);
        assert_eq!(bits(0).count(), 0);
    }
}
