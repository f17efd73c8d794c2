//! The codes that functions of the registration library return.

use std::ffi::{CStr, c_int};

/// A code, with its number in the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Success = 0,
    /// No tool is there; the tables are kept.
    NoTools = 1,
    Deadlock = 2,
    BadApiTableLength = 3,
    UnsupportedApi = 4,
    RocprofilerError = 6,
    ExcessApiInstances = 7,
    InvalidArgument = 8,
    AttachmentNotAvailable = 9,
}

impl Code {
    /// Text of a number that a function returned.
    pub(crate) fn text(code: c_int) -> &'static CStr {
        match code {
            0 => c"rocprofiler_register_success",
            1 => c"rocprofiler_register_no_tools",
            2 => c"rocprofiler_register_deadlock",
            3 => c"rocprofiler_register_bad_api_table_length",
            4 => c"rocprofiler_register_unsupported_api",
            5 => c"rocprofiler_register_invalid_api_address",
            6 => c"rocprofiler_register_rocprofiler_error",
            7 => c"rocprofiler_register_excess_api_instances",
            8 => c"rocprofiler_register_invalid_argument",
            9 => c"rocprofiler_register_attachment_not_available",
            _ => c"rocprofiler_register_unknown_error",
        }
    }
}
