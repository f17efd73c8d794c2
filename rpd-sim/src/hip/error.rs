//! Error codes (`hipError_t`): values, names, texts, and the last error of each thread.

use core::ffi::{CStr, c_char};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A `hipError_t` other than success: the error of a [`Result`].
pub(crate) type HipError = u32;
/// The result of internal functions.
pub(crate) type HipResult<T = ()> = Result<T, HipError>;

macro_rules! errors {
    ($(($value:literal, $name:ident, $api:literal, $text:literal),)*) => {
        /// Values of `hipError_t`.
        #[allow(dead_code)]
        pub(crate) mod code {
            $(pub(crate) const $name: u32 = $value;)*
        }

        /// Value, API name and text of every error.
        static ERRORS: &[(u32, &CStr, &CStr)] = &[$(($value, $api, $text)),*];
    };
}

errors! {
(0, SUCCESS, c"hipSuccess", c"no error"),
(1, INVALID_VALUE, c"hipErrorInvalidValue", c"invalid argument"),
(2, OUT_OF_MEMORY, c"hipErrorOutOfMemory", c"out of memory"),
(3, NOT_INITIALIZED, c"hipErrorNotInitialized", c"initialization error"),
(4, DEINITIALIZED, c"hipErrorDeinitialized", c"driver shutting down"),
(5, PROFILER_DISABLED, c"hipErrorProfilerDisabled", c"profiler disabled while using external profiling tool"),
(6, PROFILER_NOT_INITIALIZED, c"hipErrorProfilerNotInitialized", c"profiler is not initialized"),
(7, PROFILER_ALREADY_STARTED, c"hipErrorProfilerAlreadyStarted", c"profiler already started"),
(8, PROFILER_ALREADY_STOPPED, c"hipErrorProfilerAlreadyStopped", c"profiler already stopped"),
(9, INVALID_CONFIGURATION, c"hipErrorInvalidConfiguration", c"invalid configuration argument"),
(12, INVALID_PITCH_VALUE, c"hipErrorInvalidPitchValue", c"invalid pitch argument"),
(13, INVALID_SYMBOL, c"hipErrorInvalidSymbol", c"invalid device symbol"),
(17, INVALID_DEVICE_POINTER, c"hipErrorInvalidDevicePointer", c"invalid device pointer"),
(21, INVALID_MEMCPY_DIRECTION, c"hipErrorInvalidMemcpyDirection", c"invalid copy direction for memcpy"),
(35, INSUFFICIENT_DRIVER, c"hipErrorInsufficientDriver", c"driver version is insufficient for runtime version"),
(52, MISSING_CONFIGURATION, c"hipErrorMissingConfiguration", c"__global__ function call is not configured"),
(53, PRIOR_LAUNCH_FAILURE, c"hipErrorPriorLaunchFailure", c"unspecified launch failure in prior launch"),
(98, INVALID_DEVICE_FUNCTION, c"hipErrorInvalidDeviceFunction", c"invalid device function"),
(100, NO_DEVICE, c"hipErrorNoDevice", c"no ROCm-capable device is detected"),
(101, INVALID_DEVICE, c"hipErrorInvalidDevice", c"invalid device ordinal"),
(200, INVALID_IMAGE, c"hipErrorInvalidImage", c"device kernel image is invalid"),
(201, INVALID_CONTEXT, c"hipErrorInvalidContext", c"invalid device context"),
(202, CONTEXT_ALREADY_CURRENT, c"hipErrorContextAlreadyCurrent", c"context is already current context"),
(205, MAP_FAILED, c"hipErrorMapFailed", c"mapping of buffer object failed"),
(206, UNMAP_FAILED, c"hipErrorUnmapFailed", c"unmapping of buffer object failed"),
(207, ARRAY_IS_MAPPED, c"hipErrorArrayIsMapped", c"array is mapped"),
(208, ALREADY_MAPPED, c"hipErrorAlreadyMapped", c"resource already mapped"),
(209, NO_BINARY_FOR_GPU, c"hipErrorNoBinaryForGpu", c"no kernel image is available for execution on the device"),
(210, ALREADY_ACQUIRED, c"hipErrorAlreadyAcquired", c"resource already acquired"),
(211, NOT_MAPPED, c"hipErrorNotMapped", c"resource not mapped"),
(212, NOT_MAPPED_AS_ARRAY, c"hipErrorNotMappedAsArray", c"resource not mapped as array"),
(213, NOT_MAPPED_AS_POINTER, c"hipErrorNotMappedAsPointer", c"resource not mapped as pointer"),
(214, ECC_NOT_CORRECTABLE, c"hipErrorECCNotCorrectable", c"uncorrectable ECC error encountered"),
(215, UNSUPPORTED_LIMIT, c"hipErrorUnsupportedLimit", c"limit is not supported on this architecture"),
(216, CONTEXT_ALREADY_IN_USE, c"hipErrorContextAlreadyInUse", c"exclusive-thread device already in use by a different thread"),
(217, PEER_ACCESS_UNSUPPORTED, c"hipErrorPeerAccessUnsupported", c"peer access is not supported between these two devices"),
(218, INVALID_KERNEL_FILE, c"hipErrorInvalidKernelFile", c"invalid kernel file"),
(219, INVALID_GRAPHICS_CONTEXT, c"hipErrorInvalidGraphicsContext", c"invalid OpenGL or DirectX context"),
(300, INVALID_SOURCE, c"hipErrorInvalidSource", c"device kernel image is invalid"),
(301, FILE_NOT_FOUND, c"hipErrorFileNotFound", c"file not found"),
(302, SHARED_OBJECT_SYMBOL_NOT_FOUND, c"hipErrorSharedObjectSymbolNotFound", c"shared object symbol not found"),
(303, SHARED_OBJECT_INIT_FAILED, c"hipErrorSharedObjectInitFailed", c"shared object initialization failed"),
(304, OPERATING_SYSTEM, c"hipErrorOperatingSystem", c"OS call failed or operation not supported on this OS"),
(400, INVALID_HANDLE, c"hipErrorInvalidHandle", c"invalid resource handle"),
(401, ILLEGAL_STATE, c"hipErrorIllegalState", c"the operation cannot be performed in the present state"),
(500, NOT_FOUND, c"hipErrorNotFound", c"named symbol not found"),
(600, NOT_READY, c"hipErrorNotReady", c"device not ready"),
(700, ILLEGAL_ADDRESS, c"hipErrorIllegalAddress", c"an illegal memory access was encountered"),
(701, LAUNCH_OUT_OF_RESOURCES, c"hipErrorLaunchOutOfResources", c"too many resources requested for launch"),
(702, LAUNCH_TIME_OUT, c"hipErrorLaunchTimeOut", c"the launch timed out and was terminated"),
(704, PEER_ACCESS_ALREADY_ENABLED, c"hipErrorPeerAccessAlreadyEnabled", c"peer access is already enabled"),
(705, PEER_ACCESS_NOT_ENABLED, c"hipErrorPeerAccessNotEnabled", c"peer access has not been enabled"),
(708, SET_ON_ACTIVE_PROCESS, c"hipErrorSetOnActiveProcess", c"cannot set while device is active in this process"),
(709, CONTEXT_IS_DESTROYED, c"hipErrorContextIsDestroyed", c"context is destroyed"),
(710, ASSERT, c"hipErrorAssert", c"device-side assert triggered"),
(712, HOST_MEMORY_ALREADY_REGISTERED, c"hipErrorHostMemoryAlreadyRegistered", c"part or all of the requested memory range is already mapped"),
(713, HOST_MEMORY_NOT_REGISTERED, c"hipErrorHostMemoryNotRegistered", c"pointer does not correspond to a registered memory region"),
(719, LAUNCH_FAILURE, c"hipErrorLaunchFailure", c"unspecified launch failure"),
(720, COOPERATIVE_LAUNCH_TOO_LARGE, c"hipErrorCooperativeLaunchTooLarge", c"too many blocks in cooperative launch"),
(801, NOT_SUPPORTED, c"hipErrorNotSupported", c"operation not supported"),
(900, STREAM_CAPTURE_UNSUPPORTED, c"hipErrorStreamCaptureUnsupported", c"operation not permitted when stream is capturing"),
(901, STREAM_CAPTURE_INVALIDATED, c"hipErrorStreamCaptureInvalidated", c"operation failed due to a previous error during capture"),
(902, STREAM_CAPTURE_MERGE, c"hipErrorStreamCaptureMerge", c"operation would result in a merge of separate capture sequences"),
(903, STREAM_CAPTURE_UNMATCHED, c"hipErrorStreamCaptureUnmatched", c"capture was not ended in the same stream as it began"),
(904, STREAM_CAPTURE_UNJOINED, c"hipErrorStreamCaptureUnjoined", c"capturing stream has unjoined work"),
(905, STREAM_CAPTURE_ISOLATION, c"hipErrorStreamCaptureIsolation", c"dependency created on uncaptured work in another stream"),
(906, STREAM_CAPTURE_IMPLICIT, c"hipErrorStreamCaptureImplicit", c"operation would make the legacy stream depend on a capturing blocking stream"),
(907, CAPTURED_EVENT, c"hipErrorCapturedEvent", c"operation not permitted on an event last recorded in a capturing stream"),
(908, STREAM_CAPTURE_WRONG_THREAD, c"hipErrorStreamCaptureWrongThread", c"attempt to terminate a thread-local capture sequence from another thread"),
(910, GRAPH_EXEC_UPDATE_FAILURE, c"hipErrorGraphExecUpdateFailure", c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"),
(911, INVALID_CHANNEL_DESCRIPTOR, c"hipErrorInvalidChannelDescriptor", c"unknown error"),
(912, INVALID_TEXTURE, c"hipErrorInvalidTexture", c"unknown error"),
(999, UNKNOWN, c"hipErrorUnknown", c"unknown error"),
(1052, RUNTIME_MEMORY, c"hipErrorRuntimeMemory", c"runtime memory call returned error"),
(1053, RUNTIME_OTHER, c"hipErrorRuntimeOther", c"runtime call other than memory returned error"),}

const UNKNOWN_NAME: &CStr = c"hipErrorUnknown";
const UNKNOWN_TEXT: &CStr = c"unknown error";

fn lookup(error: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    ERRORS.iter().find(|entry| entry.0 == error)
}

thread_local! {
    /// The last failure, kept until it is read with `hipGetLastError`.
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
    /// The result of the last call, success included.
    static LAST_RESULT: Cell<u32> = const { Cell::new(0) };
}

/// Notes the result of a call for this thread. "Not ready" is an answer and does not count as a failure.
#[inline]
fn note(result: u32) {
    LAST_RESULT.set(result);
    if result != code::SUCCESS && result != code::NOT_READY {
        LAST_ERROR.set(result);
    }
}

/// Runs the body of an API function: keeps panics from leaving it and notes the result for this thread.
#[inline]
pub(crate) fn api(body: impl FnOnce() -> HipResult) -> u32 {
    let result = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => code::SUCCESS,
        Ok(Err(error)) => error,
        Err(_) => code::UNKNOWN,
    };
    note(result);
    result
}

/// Writes through an output pointer; fails with "invalid value" when the pointer is null.
///
/// # Safety
/// A non-null `out` must be valid for writing a `T`.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: not null, and the caller of the API vouches for the rest.
    unsafe { out.write_unaligned(value) };
    Ok(())
}

/// Reads a struct of the program's; fails with "invalid value" when the pointer is null.
///
/// # Safety
/// `pointer` is null or valid.
pub(crate) unsafe fn argument<T: Copy>(pointer: *const T) -> HipResult<T> {
    if pointer.is_null() {
        return Err(code::INVALID_VALUE);
    }
    // SAFETY: by contract, not null.
    Ok(unsafe { pointer.read_unaligned() })
}

pub(crate) unsafe extern "C" fn hipGetLastError() -> u32 {
    LAST_RESULT.set(code::SUCCESS);
    LAST_ERROR.replace(code::SUCCESS)
}

pub(crate) unsafe extern "C" fn hipPeekAtLastError() -> u32 {
    LAST_ERROR.get()
}

pub(crate) unsafe extern "C" fn hipExtGetLastError() -> u32 {
    LAST_RESULT.replace(code::SUCCESS)
}

pub(crate) unsafe extern "C" fn hipGetErrorName(error: u32) -> *const c_char {
    lookup(error).map_or(UNKNOWN_NAME, |entry| entry.1).as_ptr()
}

pub(crate) unsafe extern "C" fn hipGetErrorString(error: u32) -> *const c_char {
    lookup(error).map_or(UNKNOWN_TEXT, |entry| entry.2).as_ptr()
}

pub(crate) unsafe extern "C" fn hipDrvGetErrorName(error: u32, text: *mut *const c_char) -> u32 {
    api(|| {
        let entry = lookup(error);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(text, entry.map_or(UNKNOWN_NAME, |e| e.1).as_ptr())? };
        entry.map(|_| ()).ok_or(code::INVALID_VALUE)
    })
}

pub(crate) unsafe extern "C" fn hipDrvGetErrorString(error: u32, text: *mut *const c_char) -> u32 {
    api(|| {
        let entry = lookup(error);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(text, entry.map_or(UNKNOWN_TEXT, |e| e.2).as_ptr())? };
        entry.map(|_| ()).ok_or(code::INVALID_VALUE)
    })
}

/// Name of the API function with an operation id.
pub(crate) unsafe extern "C" fn hipApiName(id: u32) -> *const c_char {
    super::names::api_name(id).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hip_error_is_kept_until_it_is_read() {
        assert_eq!(api(|| Err(code::INVALID_VALUE)), code::INVALID_VALUE);
        assert_eq!(api(|| Ok(())), code::SUCCESS);
        assert_eq!(api(|| Err(code::NOT_READY)), code::NOT_READY);
        // SAFETY: no arguments.
        unsafe {
            assert_eq!(hipPeekAtLastError(), code::INVALID_VALUE);
            assert_eq!(hipGetLastError(), code::INVALID_VALUE);
            assert_eq!(hipGetLastError(), code::SUCCESS);
        }
    }

    #[test]
    fn a_panic_in_a_hip_call_becomes_an_error() {
        assert_eq!(api(|| panic!("inside")), code::UNKNOWN);
        // SAFETY: no arguments.
        unsafe { hipGetLastError() };
    }

    #[test]
    fn hip_errors_have_names_and_texts() {
        // SAFETY: both answer static C strings.
        unsafe {
            assert_eq!(CStr::from_ptr(hipGetErrorName(600)), c"hipErrorNotReady");
            assert_eq!(CStr::from_ptr(hipGetErrorString(1)), c"invalid argument");
            assert_eq!(CStr::from_ptr(hipGetErrorName(424_242)), c"hipErrorUnknown");
        }
    }
}
