//! Calls that the runtime refuses while a stream captures, as the real one does.

use super::*;

const GLOBAL: u32 = 0;
const THREAD_LOCAL: u32 = 1;
const RELAXED: u32 = 2;
const BYTES: usize = 64;

/// Makes a call during a capture in a mode, in the thread that captures or in another one. Returns the status of the
/// call and that of the capture's end.
fn during(mode: u32, other_thread: bool, call: impl FnOnce() -> u32 + Send) -> (u32, u32) {
    let alone = Alone::new();
    let data = device_memory(BYTES);
    let stream = new_stream(STREAM_NON_BLOCKING);
    ok!(hipStreamBeginCapture(stream, mode));
    ok!(hipMemsetAsync(data, 1, BYTES, stream));
    let status = if other_thread {
        alone.elsewhere(call)
    } else {
        call()
    };
    let (mut state, mut graph) = (0, null_mut());
    ok!(hipStreamIsCapturing(stream, &mut state));
    // SAFETY: the arguments of the call above.
    let end = unsafe { hipStreamEndCapture(stream, &mut graph) };
    assert_eq!(state, if end == code::SUCCESS { 1 } else { 2 });
    assert_eq!(graph.is_null(), end != code::SUCCESS);
    // The stream is as it was before.
    ok!(hipMemsetAsync(data, 1, BYTES, stream));
    ok!(hipStreamSynchronize(stream));
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(data));
    (status, end)
}

const PERMITTED: (u32, u32) = (code::SUCCESS, code::SUCCESS);
const UNSUPPORTED: (u32, u32) = (
    code::STREAM_CAPTURE_UNSUPPORTED,
    code::STREAM_CAPTURE_INVALIDATED,
);
const IMPLICIT: (u32, u32) = (
    code::STREAM_CAPTURE_IMPLICIT,
    code::STREAM_CAPTURE_INVALIDATED,
);

#[test]
fn device_waits_and_synchronous_copies_end_captures() {
    for mode in [GLOBAL, THREAD_LOCAL, RELAXED] {
        for other in [false, true] {
            // SAFETY: no arguments.
            let wait = || unsafe { hipDeviceSynchronize() };
            assert_eq!(during(mode, other, wait), UNSUPPORTED);
            let copy = || {
                let mut number = 0u32;
                // SAFETY: both places have the size.
                unsafe { hipMemcpy(arg(&mut number), arg(&mut 1u32), 4, kind::DEFAULT) }
            };
            assert_eq!(during(mode, other, copy), IMPLICIT);
            let memory = device_memory(BYTES) as usize;
            // SAFETY: the memory has the size.
            let fill = || unsafe { hipMemset(memory as *mut c_void, 0, BYTES) };
            assert_eq!(during(mode, other, fill), IMPLICIT);
            ok!(hipFree(memory as *mut c_void));
        }
    }
}

#[test]
fn the_capture_mode_decides_whether_threads_may_allocate_and_wait() {
    for (mode, other, expected) in [
        (GLOBAL, false, UNSUPPORTED),
        (GLOBAL, true, UNSUPPORTED),
        (THREAD_LOCAL, false, UNSUPPORTED),
        (THREAD_LOCAL, true, PERMITTED),
        (RELAXED, false, PERMITTED),
        (RELAXED, true, PERMITTED),
    ] {
        let allocate = || {
            let mut made = null_mut();
            // SAFETY: the place is writable, and the memory is not used.
            unsafe {
                let status = hipMalloc(&mut made, BYTES);
                assert_eq!(hipFree(made), status);
                status
            }
        };
        assert_eq!(during(mode, other, allocate), expected);
        let another = new_stream(STREAM_NON_BLOCKING) as usize;
        // SAFETY: the stream exists.
        let wait = || unsafe { hipStreamSynchronize(another as Handle) };
        assert_eq!(during(mode, other, wait), expected);
        // SAFETY: the null stream exists.
        let null_stream = || unsafe { hipStreamSynchronize(null_mut()) };
        assert_eq!(during(mode, other, null_stream), PERMITTED);
        let memory = device_memory(BYTES) as usize;
        // SAFETY: the memory has the size.
        let fill = || unsafe { hipMemsetAsync(memory as *mut c_void, 0, BYTES, another as Handle) };
        assert_eq!(during(mode, other, fill), PERMITTED);
        ok!(hipStreamSynchronize(another as Handle));
        ok!(hipFree(memory as *mut c_void));
        ok!(hipStreamDestroy(another as Handle));
    }
}

#[test]
fn a_wait_for_the_captured_stream_ends_the_capture() {
    let _alone = Alone::new();
    let stream = new_stream(STREAM_NON_BLOCKING);
    ok!(hipStreamBeginCapture(stream, RELAXED));
    fails!(hipStreamSynchronize(stream), STREAM_CAPTURE_UNSUPPORTED);
    let mut graph = null_mut();
    fails!(
        hipStreamEndCapture(stream, &mut graph),
        STREAM_CAPTURE_INVALIDATED
    );
    ok!(hipStreamSynchronize(stream));
    ok!(hipStreamDestroy(stream));
}

/// A thread may change what is permitted to it.
#[test]
fn a_thread_may_exchange_its_own_capture_mode() {
    for (own, expected) in [
        (GLOBAL, UNSUPPORTED),
        (THREAD_LOCAL, PERMITTED),
        (RELAXED, PERMITTED),
    ] {
        let allocate = || {
            let (mut made, mut mode) = (null_mut(), own);
            ok!(hipThreadExchangeStreamCaptureMode(&mut mode));
            assert_eq!(mode, GLOBAL);
            // SAFETY: the place is writable, and the memory is not used.
            unsafe {
                let status = hipMalloc(&mut made, BYTES);
                assert_eq!(hipFree(made), status);
                status
            }
        };
        assert_eq!(during(GLOBAL, true, allocate), expected);
    }
}
