//! External correlation ids, which tools attach to calls: pushed on a stack by thread, or returned by a request
//! callback.

use core::{
    ffi::{c_char, c_void},
    sync::atomic::{AtomicU64, Ordering},
};
use std::{collections::HashMap, sync::Mutex};

use rocprofiler_sdk_sys::{
    rocprofiler_context_id_t as ContextId,
    rocprofiler_external_correlation_id_request_cb_t as RequestFn,
    rocprofiler_external_correlation_id_request_kind_t as RequestKind,
    rocprofiler_status_t as Status, rocprofiler_user_data_t as UserData,
};

use super::{
    context::{self, Callback, Context},
    names,
    status::store,
    version,
};

/// Mask of the contexts for which an id was ever pushed.
static PUSHED: AtomicU64 = AtomicU64::new(0);
/// Stacks of pushed ids by context and thread.
static STACKS: Mutex<Option<Stacks>> = Mutex::new(None);

type Stacks = HashMap<(usize, u64), Vec<u64>>;

/// The pushed id for a context and thread; threads without a stack have the main thread's latest.
#[inline]
pub(crate) fn pushed(context: &Context, thread: u64) -> u64 {
    if PUSHED.load(Ordering::Relaxed) & (1 << context.index) == 0 {
        return 0;
    }
    let stacks = STACKS.lock().unwrap_or_else(|e| e.into_inner());
    let top = |thread: u64| {
        stacks
            .as_ref()?
            .get(&(context.index, thread))?
            .last()
            .copied()
    };
    top(thread)
        .or_else(|| top(u64::from(std::process::id())))
        .unwrap_or(0)
}

/// Mask of the contexts of `mask` for which an id was ever pushed.
#[inline]
pub(crate) fn any_pushed(mask: u64) -> u64 {
    PUSHED.load(Ordering::Relaxed) & mask
}

/// The external id of work that begins: from the request callback, otherwise the id pushed last.
#[inline]
pub(crate) fn request(
    context: &Context,
    kind: u32,
    operation: i32,
    thread: u64,
    internal: u64,
) -> u64 {
    if context::want_requests(kind as usize) & (1 << context.index) != 0
        && let Some(callback) = context.request.get()
    {
        let mut value = UserData::from(pushed(context, thread));
        // SAFETY: the tool gave the function for this; `value` outlives the call.
        let result = unsafe {
            (callback.function)(
                thread,
                context.id(),
                RequestKind(kind),
                operation,
                internal,
                &mut value,
                callback.data,
            )
        };
        if result == 0 {
            return value.as_u64();
        }
    }
    pushed(context, thread)
}

/// Makes a value the external id of the thread's work for the context from now on.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_push_external_correlation_id(
    context: ContextId,
    tid: u64,
    external_correlation_id: UserData,
) -> Status {
    let Some(context) = context::find(context) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    if tid < u64::from(std::process::id()) {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let mut stacks = STACKS.lock().unwrap_or_else(|e| e.into_inner());
    stacks
        .get_or_insert_default()
        .entry((context.index, tid))
        .or_default()
        .push(external_correlation_id.as_u64());
    PUSHED.fetch_or(1 << context.index, Ordering::Relaxed);
    Status::SUCCESS
}

/// `rocprofiler_pop_external_correlation_id`.
///
/// # Safety
/// The pointer is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_pop_external_correlation_id(
    context: ContextId,
    tid: u64,
    external_correlation_id: *mut UserData,
) -> Status {
    let Some(context) = context::find(context) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    if tid < u64::from(std::process::id()) {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    let mut stacks = STACKS.lock().unwrap_or_else(|e| e.into_inner());
    let popped = stacks
        .as_mut()
        .and_then(|s| s.get_mut(&(context.index, tid))?.pop());
    store(external_correlation_id, UserData::from(popped.unwrap_or(0)));
    Status::SUCCESS
}

/// `rocprofiler_configure_external_correlation_id_request_service`.
///
/// # Safety
/// `kinds` is null or holds `kinds_count` values; the callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_configure_external_correlation_id_request_service(
    context_id: ContextId,
    kinds: *const RequestKind,
    kinds_count: usize,
    callback: RequestFn,
    callback_args: *mut c_void,
) -> Status {
    let Some(context) = context::find(context_id) else {
        return Status::ERROR_CONTEXT_NOT_FOUND;
    };
    let Some(function) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    let list: Vec<usize> = if kinds.is_null() || kinds_count == 0 {
        (1..context::REQUEST_KINDS).collect()
    } else {
        // SAFETY: not null, and that long by the contract.
        let given = unsafe { core::slice::from_raw_parts(kinds, kinds_count) };
        given.iter().map(|kind| kind.0 as usize).collect()
    };
    if list
        .iter()
        .any(|&kind| kind == 0 || kind >= version::current().request_kinds() as usize)
    {
        return Status::ERROR_KIND_NOT_FOUND;
    }
    if context.add_request(
        &list,
        Callback {
            function,
            data: callback_args,
        },
    ) {
        Status::SUCCESS
    } else {
        Status::ERROR_SERVICE_ALREADY_CONFIGURED
    }
}

/// `rocprofiler_query_external_correlation_id_request_kind_name`.
///
/// # Safety
/// Pointers are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_query_external_correlation_id_request_kind_name(
    kind: RequestKind,
    name: *mut *const c_char,
    name_len: *mut u64,
) -> Status {
    let known = (kind.0 < version::current().request_kinds())
        .then(|| kind.c_name())
        .flatten();
    names::answer(
        known.map(|n| names::suffix(n, "ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_")),
        name,
        name_len,
    )
}
