//! Kinds and operations by name, as the provider numbers them.

use std::ffi::{CStr, c_char, c_int, c_void};

use rocprofiler_sdk_sys::{
    Functions, rocprofiler_buffer_tracing_kind_t, rocprofiler_callback_tracing_kind_t,
    rocprofiler_external_correlation_id_request_kind_t, rocprofiler_status_t,
    rocprofiler_tracing_operation_t,
};
use rpd_spool::format::{Name, space, tag};

use crate::recording::process::header;

/// A kind and its operations.
pub(crate) struct KindNames {
    /// The provider's number.
    pub(crate) number: u32,
    /// Its name.
    pub(crate) name: String,
    /// Number and name of each operation.
    pub(crate) operations: Vec<(i32, String)>,
}

impl KindNames {
    /// The number of the operation `name`.
    pub(crate) fn operation(&self, name: &str) -> Option<i32> {
        self.operations
            .iter()
            .find(|(_, found)| found == name)
            .map(|(number, _)| *number)
    }
}

/// Every kind of both services.
pub(crate) struct Catalogue {
    callback: Vec<KindNames>,
    buffer: Vec<KindNames>,
}

type QueryName<'a> = &'a dyn Fn(*mut *const c_char, *mut u64) -> rocprofiler_status_t;

/// The text that a name query yields; `None` when it fails.
fn ask(query: QueryName<'_>) -> Option<String> {
    let mut name: *const c_char = std::ptr::null();
    let mut len = 0;
    let status = query(&mut name, &mut len);
    if status != rocprofiler_status_t::SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: a successful name query gives static NUL-terminated text.
    let text = unsafe { CStr::from_ptr(name) };
    Some(text.to_string_lossy().into_owned())
}

unsafe extern "C" fn collect_callback_kind(
    kind: rocprofiler_callback_tracing_kind_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the vector handed to the iteration.
    unsafe { &mut *data.cast::<Vec<u32>>() }.push(kind.0);
    0
}

unsafe extern "C" fn collect_buffer_kind(
    kind: rocprofiler_buffer_tracing_kind_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the vector handed to the iteration.
    unsafe { &mut *data.cast::<Vec<u32>>() }.push(kind.0);
    0
}

unsafe extern "C" fn collect_callback_operation(
    _kind: rocprofiler_callback_tracing_kind_t,
    operation: rocprofiler_tracing_operation_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the vector handed to the iteration.
    unsafe { &mut *data.cast::<Vec<i32>>() }.push(operation);
    0
}

unsafe extern "C" fn collect_buffer_operation(
    _kind: rocprofiler_buffer_tracing_kind_t,
    operation: rocprofiler_tracing_operation_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the vector handed to the iteration.
    unsafe { &mut *data.cast::<Vec<i32>>() }.push(operation);
    0
}

impl Catalogue {
    /// Asks the provider for everything it knows.
    pub(crate) fn query(functions: &Functions) -> Catalogue {
        let mut numbers: Vec<u32> = Vec::new();
        // SAFETY: the callback matches, and the vector outlives the call.
        unsafe {
            (functions.rocprofiler_iterate_callback_tracing_kinds)(
                Some(collect_callback_kind),
                (&raw mut numbers).cast(),
            );
        }
        let callback = numbers
            .drain(..)
            .filter_map(|number| callback_kind(functions, number))
            .collect();
        // SAFETY: as above.
        unsafe {
            (functions.rocprofiler_iterate_buffer_tracing_kinds)(
                Some(collect_buffer_kind),
                (&raw mut numbers).cast(),
            );
        }
        let buffer = numbers
            .drain(..)
            .filter_map(|number| buffer_kind(functions, number))
            .collect();
        Catalogue { callback, buffer }
    }

    /// The operations of all callback kinds.
    pub(crate) fn operations(&self) -> impl Iterator<Item = &str> + Clone {
        let operations = self.callback.iter().flat_map(|kind| &kind.operations);
        operations.map(|(_, name)| name.as_str())
    }

    /// The kind of the callback service called `name`.
    pub(crate) fn callback(&self, name: &str) -> Option<&KindNames> {
        self.callback.iter().find(|kind| kind.name == name)
    }

    /// Writes all names to the meta stream.
    pub(crate) fn record(&self) {
        for (space, kinds) in [
            (space::CALLBACK, &self.callback),
            (space::BUFFER, &self.buffer),
        ] {
            for kind in kinds {
                write(tag::KIND_NAME, space, kind.number, u32::MAX, &kind.name);
                for (operation, name) in &kind.operations {
                    let operation = operation.cast_unsigned();
                    write(tag::OPERATION_NAME, space, kind.number, operation, name);
                }
            }
        }
    }
}

fn write(tag: u16, space: u32, kind: u32, operation: u32, text: &str) {
    let name = Name {
        header: header(0, 0),
        space,
        kind,
        operation,
        text_len: text.len() as u32,
    };
    crate::recording::meta::write(tag, 0, &name, text.as_bytes());
}

fn callback_kind(functions: &Functions, number: u32) -> Option<KindNames> {
    let kind = rocprofiler_callback_tracing_kind_t(number);
    // SAFETY: both pointers are valid for the call.
    let name = ask(&|name, len| unsafe {
        (functions.rocprofiler_query_callback_tracing_kind_name)(kind, name, len)
    })?;
    let mut numbers: Vec<i32> = Vec::new();
    // SAFETY: the callback matches, and the vector outlives the call.
    unsafe {
        (functions.rocprofiler_iterate_callback_tracing_kind_operations)(
            kind,
            Some(collect_callback_operation),
            (&raw mut numbers).cast(),
        );
    }
    let operations = numbers
        .into_iter()
        .filter_map(|operation| {
            // SAFETY: both pointers are valid for the call.
            let name = ask(&|name, len| unsafe {
                (functions.rocprofiler_query_callback_tracing_kind_operation_name)(
                    kind, operation, name, len,
                )
            })?;
            Some((operation, name))
        })
        .collect();
    Some(KindNames {
        number,
        name,
        operations,
    })
}

fn buffer_kind(functions: &Functions, number: u32) -> Option<KindNames> {
    let kind = rocprofiler_buffer_tracing_kind_t(number);
    // SAFETY: both pointers are valid for the call.
    let name = ask(&|name, len| unsafe {
        (functions.rocprofiler_query_buffer_tracing_kind_name)(kind, name, len)
    })?;
    let mut numbers: Vec<i32> = Vec::new();
    // SAFETY: the callback matches, and the vector outlives the call.
    unsafe {
        (functions.rocprofiler_iterate_buffer_tracing_kind_operations)(
            kind,
            Some(collect_buffer_operation),
            (&raw mut numbers).cast(),
        );
    }
    let operations = numbers
        .into_iter()
        .filter_map(|operation| {
            // SAFETY: both pointers are valid for the call.
            let name = ask(&|name, len| unsafe {
                (functions.rocprofiler_query_buffer_tracing_kind_operation_name)(
                    kind, operation, name, len,
                )
            })?;
            Some((operation, name))
        })
        .collect();
    Some(KindNames {
        number,
        name,
        operations,
    })
}

/// The kinds of external correlation requests with these names. There is no iteration for them.
pub(crate) fn request_kinds(
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
            ask(&|name, len| unsafe { query(*kind, name, len) })
                .is_some_and(|name| wanted.contains(&name.as_str()))
        })
        .collect()
}
