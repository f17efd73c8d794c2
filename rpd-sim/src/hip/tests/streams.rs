//! Streams, events and host functions.

use super::*;

#[test]
fn work_on_a_hip_stream_runs_in_order() {
    const N: u32 = 4096;
    let data = device_memory(4 * N as usize);
    let stream = new_stream(0);
    // fill, kernel, kernel, copy within the device, kernel, copy back: each needs the one before.
    let twin = device_memory(4 * N as usize);
    for round in 0..50u32 {
        ok!(hipMemsetD32Async(data, round as i32, N as usize, stream));
        affine(data, 3, 1, N, stream);
        affine(data, 2, 5, N, stream);
        ok!(hipMemcpyAsync(
            twin,
            data,
            4 * N as usize,
            kind::DEVICE_TO_DEVICE,
            stream
        ));
        affine(twin, 1, 1, N, stream);
        let mut out = vec![0u32; N as usize];
        ok!(hipMemcpyAsync(
            out.as_mut_ptr().cast(),
            twin,
            4 * N as usize,
            kind::DEFAULT,
            stream
        ));
        ok!(hipStreamSynchronize(stream));
        assert!(
            out.iter().all(|&v| v == (round * 3 + 1) * 2 + 6),
            "round {round}: {}",
            out[0]
        );
    }
    ok!(hipStreamDestroy(stream));
    ok!(hipFree(data));
    ok!(hipFree(twin));
}

#[test]
fn the_null_stream_waits_for_blocking_streams_and_they_for_it() {
    const N: u32 = 1 << 16;
    let data = device_memory(4 * N as usize);
    let streams: Vec<Handle> = (0..6).map(|_| new_stream(0)).collect();
    ok!(hipMemset(data, 0, 4 * N as usize));
    let mut expected = 0u32;
    for round in 0..4 {
        for &stream in &streams {
            affine(data, 1, 1, N, stream);
            affine(data, 5, round, N, null_mut());
            expected = (expected.wrapping_add(1))
                .wrapping_mul(5)
                .wrapping_add(round);
        }
    }
    assert!(download(data, N as usize).iter().all(|&v| v == expected));
    streams
        .into_iter()
        .for_each(|stream| ok!(hipStreamDestroy(stream)));
    ok!(hipFree(data));
}

#[test]
fn events_order_streams_and_measure() {
    const N: u32 = 1 << 14;
    let data = device_memory(4 * N as usize);
    let (one, two) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    let mut events = [null_mut(); 3];
    events
        .iter_mut()
        .for_each(|event| ok!(hipEventCreate(event)));
    ok!(hipMemsetAsync(data, 0, 4 * N as usize, one));
    ok!(hipEventRecord(events[0], one));
    let mut expected = 0u32;
    for round in 0..20u32 {
        affine(data, 3, round, N, one);
        ok!(hipEventRecord(events[1], one));
        ok!(hipStreamWaitEvent(two, events[1], 0));
        affine(data, 1, 7, N, two);
        ok!(hipEventRecord(events[2], two));
        ok!(hipStreamWaitEvent(one, events[2], 0));
        expected = expected.wrapping_mul(3).wrapping_add(round + 7);
    }
    ok!(hipEventSynchronize(events[2]));
    ok!(hipEventQuery(events[2]));
    let mut ms = -1.0;
    ok!(hipEventElapsedTime(&mut ms, events[0], events[2]));
    assert!(ms > 0.0 && ms < 60_000.0, "{ms}");
    ok!(hipDeviceSynchronize());
    assert!(download(data, N as usize).iter().all(|&v| v == expected));
    let mut fresh = null_mut();
    ok!(hipEventCreate(&mut fresh));
    fails!(
        hipEventElapsedTime(&mut ms, fresh, events[2]),
        INVALID_HANDLE
    );
    fails!(hipEventRecord(0x1234 as Handle, one), INVALID_HANDLE);
    for event in events.into_iter().chain([fresh]) {
        ok!(hipEventDestroy(event));
    }
    ok!(hipStreamDestroy(one));
    ok!(hipStreamDestroy(two));
    ok!(hipFree(data));
}

#[test]
fn host_functions_on_a_stream_run_in_order() {
    static SEEN: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn look(data: *mut c_void) {
        std::thread::sleep(std::time::Duration::from_millis(20));
        // SAFETY: pinned memory of the test.
        SEEN.store(unsafe { data.cast::<u32>().read() }, Ordering::SeqCst);
        // SAFETY: as above.
        unsafe { data.cast::<u32>().write(1000) };
    }
    let stream = new_stream(0);
    let mut host: *mut c_void = null_mut();
    ok!(hipHostMalloc(&mut host, 256, 0));
    ok!(hipMemsetD32Async(host, 5, 64, stream));
    affine(host, 4, 2, 64, stream);
    ok!(hipLaunchHostFunc(stream, Some(look), host));
    affine(host, 2, 1, 64, stream);
    ok!(hipStreamSynchronize(stream));
    assert_eq!(SEEN.load(Ordering::SeqCst), 22);
    // SAFETY: pinned memory of the test.
    let numbers = unsafe { std::slice::from_raw_parts(host.cast::<u32>(), 2) };
    assert_eq!(numbers, [2001, 45]);
    ok!(hipHostFree(host));
    ok!(hipStreamDestroy(stream));
}

#[test]
fn streams_write_and_await_values() {
    let mut host: *mut c_void = null_mut();
    ok!(hipHostMalloc(&mut host, 64, 0));
    let flag = (host as usize + 8) as *mut c_void;
    // SAFETY: pinned memory of the test.
    unsafe { host.cast::<u64>().write(0) };
    let (one, two) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    ok!(hipStreamWriteValue32(one, flag, 77, 0));
    ok!(hipStreamSynchronize(one));
    ok!(hipStreamWaitValue32(two, flag, 77, 1, u32::MAX));
    ok!(hipStreamWriteValue64(two, host, 9, 0));
    ok!(hipStreamSynchronize(two));
    // SAFETY: as above.
    assert_eq!(unsafe { host.cast::<u64>().read() }, 9);
    ok!(hipStreamDestroy(one));
    ok!(hipStreamDestroy(two));
    ok!(hipHostFree(host));
}

#[test]
fn threads_have_a_default_stream_of_their_own() {
    const PER_THREAD: usize = 2;
    let threads: Vec<_> = (0..8u32)
        .map(|t| {
            std::thread::spawn(move || {
                const N: u32 = 512;
                let data = device_memory(4 * N as usize);
                let stream = PER_THREAD as Handle;
                ok!(hipMemsetD32Async(data, t as i32, N as usize, stream));
                for _ in 0..20 {
                    affine(data, 1, 2, N, stream);
                }
                ok!(hipStreamSynchronize(stream));
                assert!(download(data, N as usize).iter().all(|&v| v == t + 40));
                ok!(hipFree(data));
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("the thread's checks hold"));
}

#[test]
fn captured_work_runs_when_its_graph_is_launched() {
    let _alone = Alone::new();
    const N: u32 = 256;
    let data = device_memory(4 * N as usize);
    let (stream, side) = (
        new_stream(STREAM_NON_BLOCKING),
        new_stream(STREAM_NON_BLOCKING),
    );
    ok!(hipMemset(data, 0, 4 * N as usize));
    let (mut fork, mut join) = (null_mut(), null_mut());
    ok!(hipEventCreate(&mut fork));
    ok!(hipEventCreate(&mut join));
    ok!(hipStreamBeginCapture(stream, 0));
    affine(data, 1, 1, N, stream);
    ok!(hipEventRecord(fork, stream));
    ok!(hipStreamWaitEvent(side, fork, 0));
    affine(data, 2, 0, N, side);
    ok!(hipEventRecord(join, side));
    ok!(hipStreamWaitEvent(stream, join, 0));
    affine(data, 1, 3, N, stream);
    let mut graph = null_mut();
    ok!(hipStreamEndCapture(stream, &mut graph));
    assert!(
        download(data, 4).iter().all(|&v| v == 0),
        "capturing must not run anything"
    );
    let mut count = 0;
    ok!(hipGraphGetNodes(graph, null_mut(), &mut count));
    assert_eq!(count, 3);
    let mut exec = null_mut();
    ok!(hipGraphInstantiate(
        &mut exec,
        graph,
        null_mut(),
        null_mut(),
        0
    ));
    ok!(hipGraphDestroy(graph));
    for _ in 0..3 {
        ok!(hipGraphLaunch(exec, stream));
    }
    ok!(hipStreamSynchronize(stream));
    // x -> 2(x+1)+3 from 0: 5, 15, 35.
    assert!(download(data, N as usize).iter().all(|&v| v == 35));
    ok!(hipGraphExecDestroy(exec));
    ok!(hipEventDestroy(fork));
    ok!(hipEventDestroy(join));
    ok!(hipStreamDestroy(stream));
    ok!(hipStreamDestroy(side));
    ok!(hipFree(data));
}
