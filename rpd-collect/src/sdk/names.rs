//! Kinds and operations by name, as the provider numbers them.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_buffer_tracing_kind_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_external_correlation_id_request_kind_t, rocprofiler_status_t,
};
use rpd_spool::format::space;

use super::query::{visit1, visit2};
use crate::recording::kinds::{self, KindNames};

/// Every kind of both services.
pub(super) struct Catalogue {
    callback: Vec<KindNames>,
    buffer: Vec<KindNames>,
}

/// The text that a name query yields; `None` when it fails.
fn name_of(
    query: impl FnOnce(*mut *const c_char, *mut u64) -> rocprofiler_status_t,
) -> Option<Cow<'static, str>> {
    let mut name: *const c_char = std::ptr::null();
    let mut len = 0;
    let status = query(&mut name, &mut len);
    if status != rocprofiler_status_t::SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: a successful name query gives static NUL-terminated text.
    let text: &'static CStr = unsafe { CStr::from_ptr(name) };
    Some(text.to_string_lossy())
}

impl Catalogue {
    /// Reads all names from the provider.
    pub(super) fn query(functions: &Functions) -> Catalogue {
        let mut callback = Vec::new();
        // SAFETY: callback and data belong together.
        visit1(
            |kind: rocprofiler_callback_tracing_kind_t| callback.push(kind),
            |visit, data| unsafe {
                (functions.rocprofiler_iterate_callback_tracing_kinds)(visit, data)
            },
        );
        let mut buffer = Vec::new();
        // SAFETY: as above.
        visit1(
            |kind: rocprofiler_buffer_tracing_kind_t| buffer.push(kind),
            |visit, data| unsafe {
                (functions.rocprofiler_iterate_buffer_tracing_kinds)(visit, data)
            },
        );
        Catalogue {
            callback: callback
                .into_iter()
                .filter_map(|kind| callback_kind(functions, kind))
                .collect(),
            buffer: buffer
                .into_iter()
                .filter_map(|kind| buffer_kind(functions, kind))
                .collect(),
        }
    }

    /// The operations of all callback kinds.
    pub(super) fn operations(&self) -> impl Iterator<Item = &str> + Clone {
        let operations = self.callback.iter().flat_map(|kind| &kind.operations);
        operations.map(|(_, name)| &**name)
    }

    /// The kind of the callback service called `name`.
    pub(super) fn callback(&self, name: &str) -> Option<&KindNames> {
        self.callback.iter().find(|kind| kind.name == name)
    }

    /// The kind of the buffer service called `name`.
    pub(super) fn buffer(&self, name: &str) -> Option<&KindNames> {
        self.buffer.iter().find(|kind| kind.name == name)
    }

    /// Writes all names to the meta stream.
    pub(super) fn record(&self) {
        kinds::record(space::CALLBACK, &self.callback);
        kinds::record(space::BUFFER, &self.buffer);
    }
}

fn callback_kind(
    functions: &Functions,
    kind: rocprofiler_callback_tracing_kind_t,
) -> Option<KindNames> {
    // SAFETY: both pointers are valid for the call.
    let name = name_of(|name, len| unsafe {
        (functions.rocprofiler_query_callback_tracing_kind_name)(kind, name, len)
    })?;
    let mut operations = Vec::new();
    // SAFETY: callback and data belong together.
    visit2(
        |_: rocprofiler_callback_tracing_kind_t, operation: i32| operations.push(operation),
        |visit, data| unsafe {
            (functions.rocprofiler_iterate_callback_tracing_kind_operations)(kind, visit, data)
        },
    );
    Some(KindNames {
        number: kind.0,
        name,
        operations: named(operations, |operation, name, len| {
            // SAFETY: both pointers are valid for the call.
            unsafe {
                (functions.rocprofiler_query_callback_tracing_kind_operation_name)(
                    kind, operation, name, len,
                )
            }
        }),
    })
}

fn buffer_kind(
    functions: &Functions,
    kind: rocprofiler_buffer_tracing_kind_t,
) -> Option<KindNames> {
    // SAFETY: both pointers are valid for the call.
    let name = name_of(|name, len| unsafe {
        (functions.rocprofiler_query_buffer_tracing_kind_name)(kind, name, len)
    })?;
    let mut operations = Vec::new();
    // SAFETY: callback and data belong together.
    visit2(
        |_: rocprofiler_buffer_tracing_kind_t, operation: i32| operations.push(operation),
        |visit, data| unsafe {
            (functions.rocprofiler_iterate_buffer_tracing_kind_operations)(kind, visit, data)
        },
    );
    Some(KindNames {
        number: kind.0,
        name,
        operations: named(operations, |operation, name, len| {
            // SAFETY: both pointers are valid for the call.
            unsafe {
                (functions.rocprofiler_query_buffer_tracing_kind_operation_name)(
                    kind, operation, name, len,
                )
            }
        }),
    })
}

/// Operations with their names; without those that have none.
fn named(
    operations: Vec<i32>,
    query: impl Fn(i32, *mut *const c_char, *mut u64) -> rocprofiler_status_t,
) -> Vec<(i32, Cow<'static, str>)> {
    operations
        .into_iter()
        .filter_map(|operation| {
            let name = name_of(|name, len| query(operation, name, len))?;
            Some((operation, name))
        })
        .collect()
}

/// The kinds of external correlation requests with these names. The SDK has no iteration for them.
pub(super) fn request_kinds(
    functions: &Functions,
    wanted: &[&str],
) -> Vec<rocprofiler_external_correlation_id_request_kind_t> {
    let Some(query) = functions.rocprofiler_query_external_correlation_id_request_kind_name else {
        return Vec::new();
    };
    (1..64)
        .map(rocprofiler_external_correlation_id_request_kind_t)
        .filter(|kind| {
            // SAFETY: both pointers are valid for the call.
            name_of(|name, len| unsafe { query(*kind, name, len) })
                .is_some_and(|name| wanted.contains(&&*name))
        })
        .collect()
}
