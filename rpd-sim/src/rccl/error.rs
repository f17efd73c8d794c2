//! Results of calls (`ncclResult_t`), and the text of the last failure.

use core::ffi::{CStr, c_char};
use std::cell::RefCell;
use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Declares the results with their texts.
macro_rules! results {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// Values of `ncclResult_t`.
        #[allow(dead_code)]
        pub(super) mod result {
            $(pub(crate) const $name: u32 = $number;)*
        }

        /// Describes an `ncclResult_t` in a sentence.
        pub(super) fn text_of(result: u32) -> &'static CStr {
            match result {
                $($number => $text,)*
                _ => c"unknown result code",
            }
        }
    };
}

results! {
    SUCCESS = 0, c"no error";
    UNHANDLED_HIP_ERROR = 1, c"a HIP call failed (NCCL_DEBUG=WARN prints which)";
    SYSTEM_ERROR = 2, c"a system call failed (NCCL_DEBUG=WARN prints which)";
    INTERNAL_ERROR = 3, c"internal error";
    INVALID_ARGUMENT = 4, c"invalid argument (NCCL_DEBUG=WARN prints which)";
    INVALID_USAGE = 5, c"invalid usage (NCCL_DEBUG=WARN prints why)";
    REMOTE_ERROR = 6, c"the process of another rank has ended";
    IN_PROGRESS = 7, c"operation in progress";
}

/// A failed call: its result, and a description of the fault.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) result: u32,
    text: String,
}

/// The result of internal functions.
pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(super) fn new(result: u32, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { result, text }
    }

    /// The failure of a call with an invalid argument.
    pub(super) fn argument(text: impl Into<String>) -> Self {
        Self::new(result::INVALID_ARGUMENT, text)
    }

    /// The failure of a system call; `what` names what was attempted.
    pub(super) fn system(what: &str, error: &std::io::Error) -> Self {
        Self::new(result::SYSTEM_ERROR, format!("{what}: {error}"))
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Text of the calling thread's last failure; it lives until the thread's next one.
pub(super) fn last() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// Runs the body of an API function: keeps panics from leaving it and notes a failure. With `NCCL_DEBUG` set failures
/// are printed, too.
pub(super) fn api(name: &str, body: impl FnOnce() -> Outcome) -> u32 {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return result::SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(result::INTERNAL_ERROR, "the simulator failed"),
    };
    let text = format!("{name}: {}", failure.text);
    if std::env::var_os("NCCL_DEBUG").is_some_and(|level| !level.is_empty()) {
        eprintln!("rpd-sim: {text}");
    }
    LAST.set(CString::new(text).unwrap_or_default());
    failure.result
}

/// Writes a result to a place of the caller's; fails if the place is null. `name` names the parameter in the error.
///
/// # Safety
/// `place` is null or can be written.
pub(super) unsafe fn put<T>(name: &str, place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Failure::argument(format!("{name} is null")));
    }
    // SAFETY: by contract.
    unsafe { place.write(value) };
    Ok(())
}
