//! Statuses of attaching, with the numbers and names that ROCm's attach library has for them.

use std::fmt;

/// Why attaching or detaching failed. The numbers are those of `rocattach_status_t`; 0 is success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// The target is not prepared, or it refused.
    Error = 1,
    /// The caller's mistake: the tool is missing, or the process is attached already.
    InvalidArgument = 2,
    /// This machine, or the target, is none that the protocol exists for.
    NotSupported = 3,
    /// The target could not be traced, or has ended meanwhile.
    PtraceError = 4,
    /// The kernel forbids tracing the target.
    NotPermitted = 5,
    /// There is no such process.
    ProcessNotFound = 6,
}

impl Status {
    /// Every status.
    pub const ALL: [Status; 6] = [
        Status::Error,
        Status::InvalidArgument,
        Status::NotSupported,
        Status::PtraceError,
        Status::NotPermitted,
        Status::ProcessNotFound,
    ];

    /// Number of the status.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Name of the status in ROCm's attach library.
    pub fn name(self) -> &'static str {
        match self {
            Status::Error => "ROCATTACH_STATUS_ERROR",
            Status::InvalidArgument => "ROCATTACH_STATUS_ERROR_INVALID_ARGUMENT",
            Status::NotSupported => "ROCATTACH_STATUS_ERROR_NOT_SUPPORTED",
            Status::PtraceError => "ROCATTACH_STATUS_ERROR_PTRACE_ERROR",
            Status::NotPermitted => "ROCATTACH_STATUS_ERROR_PTRACE_OPERATION_NOT_PERMITTED",
            Status::ProcessNotFound => "ROCATTACH_STATUS_ERROR_PTRACE_PROCESS_NOT_FOUND",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure: its status, and one line that names the process and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// Class of the failure.
    pub status: Status,
    /// The line.
    pub text: String,
}

impl Error {
    /// A failure of this class.
    pub(crate) fn new(status: Status, text: impl Into<String>) -> Error {
        let text = text.into();
        Error { status, text }
    }
}

/// Meaning of a code that `rocprofiler_register_attach` or `rocprofiler_register_detach` returned.
pub fn registration_code(code: i32) -> &'static str {
    match code {
        0 => "success",
        1 => "the SDK in the target has no function for attaching",
        2 => "another attach or registration is under way",
        3 => "a registration without tables",
        4 => "a registration of an unknown library",
        5 => "a registration by another library than it says",
        6 => "the SDK or the tool reported an error",
        7 => "too many registrations of a library",
        8 => "another tool was attached before, and a process keeps its first",
        9 => "nothing in the target is ready for attaching",
        _ => "a code without a known meaning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_numbers_of_the_attach_library() {
        let codes = Status::ALL.map(Status::code);
        assert_eq!(codes, [1, 2, 3, 4, 5, 6]);
        let names = Status::ALL.map(Status::name);
        assert!(
            names
                .iter()
                .all(|name| name.starts_with("ROCATTACH_STATUS_ERROR"))
        );
    }
}
