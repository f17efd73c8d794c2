//! Queues, packets, kernels and their errors.

use super::*;

#[test]
fn barrier_packets_wait_for_their_signals() {
    init();
    let queue = new_queue(None, std::ptr::null_mut());
    let (a, b, and_done, or_done) = (new_signal(1), new_signal(1), new_signal(1), new_signal(1));
    let barrier = |completion| BarrierPacket {
        dep_signal: [a, b, 0, 0, 0],
        completion_signal: completion,
        ..BarrierPacket::default()
    };
    submit(
        queue,
        &barrier(or_done),
        packet_type::BARRIER_OR | HEADER_BARRIER,
    );
    submit(
        queue,
        &barrier(and_done),
        packet_type::BARRIER_AND | HEADER_BARRIER,
    );
    std::thread::sleep(Duration::from_millis(3));
    // SAFETY: takes no pointers but the live queue.
    unsafe {
        assert_eq!(hsa_signal_load_relaxed(or_done), 1);
        hsa_signal_store_relaxed(b, 0);
        wait(or_done);
        std::thread::sleep(Duration::from_millis(3));
        assert_eq!(hsa_signal_load_relaxed(and_done), 1);
        hsa_signal_store_relaxed(a, 0);
        wait(and_done);
        assert_eq!(hsa_queue_load_read_index_relaxed(queue), 2);
        ok(hsa_queue_destroy(queue));
        assert_eq!(hsa_queue_destroy(queue), status::ERROR_INVALID_QUEUE);
    }
}

#[test]
fn a_waiting_queue_does_not_block_another() {
    init();
    let queues: Vec<_> = (0..20)
        .map(|_| new_queue(None, std::ptr::null_mut()))
        .collect();
    let done: Vec<_> = queues.iter().map(|_| new_signal(1)).collect();
    // Each queue waits for the next one, so the last must get through first.
    for (i, &queue) in queues.iter().enumerate() {
        let packet = BarrierPacket {
            dep_signal: [done.get(i + 1).copied().unwrap_or(0), 0, 0, 0, 0],
            completion_signal: done[i],
            ..BarrierPacket::default()
        };
        submit(queue, &packet, packet_type::BARRIER_AND);
    }
    wait(done[0]);
    for queue in queues {
        // SAFETY: the queue is alive.
        ok(unsafe { hsa_queue_destroy(queue) });
    }
}

#[test]
fn kernels_run_and_their_dispatches_are_timed() {
    init();
    let module = Module::load();
    let queue = new_queue(None, std::ptr::null_mut());
    let count = 64 * 256;
    let data = allocate(1, PoolKind::DeviceCoarse, count * 4);
    let argument = kernarg(data as u64);
    let kernel = module.kernel(c"add_one.kd");
    let last = new_signal(1);
    // SAFETY: the device's memory is the host's.
    unsafe {
        ok(hsa_amd_profiling_set_profiler_enabled(queue, 1));
        ok(hsa_amd_memory_fill(data, 41, count));
        for _ in 0..99 {
            submit(
                queue,
                &dispatch(kernel, 4, argument, 0),
                packet_type::KERNEL_DISPATCH,
            );
        }
        let packet = dispatch(kernel, 256, argument, last);
        submit(
            queue,
            &packet,
            packet_type::KERNEL_DISPATCH | HEADER_BARRIER,
        );
        wait(last);
        let data = std::slice::from_raw_parts(data.cast::<i32>(), count);
        assert!(
            data[..256].iter().all(|&value| value == 141),
            "{:?}",
            &data[..4]
        );
        assert!(
            data[256..].iter().all(|&value| value == 42),
            "{:?}",
            &data[256..260]
        );
        let mut time = ProfilingTime::default();
        ok(hsa_amd_profiling_get_dispatch_time(gpu(), last, &mut time));
        assert!(time.start < time.end && time.end <= clock::host_ns());
        ok(hsa_queue_destroy(queue));
        ok(hsa_executable_destroy(module.executable));
    }
}

#[test]
fn variables_of_an_executable_have_an_address() {
    init();
    let module = Module::load();
    let queue = new_queue(None, std::ptr::null_mut());
    let counter = module.address(c"counter", 21) as *const AtomicI64 as *const AtomicU32;
    let done = new_signal(1);
    let mut packet = dispatch(module.kernel(c"count.kd"), 1, std::ptr::null_mut(), done);
    (packet.workgroup_size_x, packet.grid_size_x) = (1, 1);
    submit(queue, &packet, packet_type::KERNEL_DISPATCH);
    wait(done);
    // SAFETY: the variable lies in the module, which is loaded.
    assert_eq!(unsafe { (*counter).load(Ordering::SeqCst) }, 8);
}

struct Failure {
    status: AtomicU32,
    queue: AtomicU64,
}

unsafe extern "C" fn failed(status: Status, queue: *mut HsaQueue, data: *mut c_void) {
    // SAFETY: the tests pass a `Failure` that lives as long as the process.
    let failure = unsafe { &*data.cast::<Failure>() };
    failure.queue.store(queue as u64, Ordering::SeqCst);
    failure.status.store(status, Ordering::SeqCst);
}

/// Runs a packet that must stop its queue; returns the status that the error callback got.
fn fail(packet: &KernelDispatchPacket, header: u16) -> Status {
    let failure: &'static Failure = Box::leak(Box::new(Failure {
        status: AtomicU32::new(0),
        queue: AtomicU64::new(0),
    }));
    let queue = new_queue(Some(failed), std::ptr::from_ref(failure).cast_mut().cast());
    submit(queue, packet, header);
    while failure.status.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(failure.queue.load(Ordering::SeqCst), queue as u64);
    // SAFETY: the queue is alive.
    ok(unsafe { hsa_queue_destroy(queue) });
    failure.status.load(Ordering::SeqCst)
}

#[test]
fn packet_errors_stop_the_queue_and_reach_its_callback() {
    init();
    let module = Module::load();
    let kernel = packet_type::KERNEL_DISPATCH;
    let unknown = dispatch(
        module.kernel(c"unknown_instruction.kd"),
        1,
        std::ptr::null_mut(),
        0,
    );
    assert_eq!(fail(&unknown, kernel), status::ERROR_ILLEGAL_INSTRUCTION);
    let store = dispatch(module.kernel(c"store_to.kd"), 1, kernarg(0x1000), 0);
    assert_eq!(fail(&store, kernel), status::ERROR_MEMORY_FAULT);
    let mut nothing = dispatch(module.kernel(c"nothing.kd"), 1, std::ptr::null_mut(), 0);
    assert_eq!(
        fail(&nothing, packet_type::AGENT_DISPATCH),
        status::ERROR_INVALID_PACKET_FORMAT
    );
    assert_eq!(fail(&nothing, 9), status::ERROR_INVALID_PACKET_FORMAT);
    nothing.workgroup_size_x = 2048;
    assert_eq!(fail(&nothing, kernel), status::ERROR_INVALID_ARGUMENT);
    let bad = dispatch(0x1234, 1, std::ptr::null_mut(), 0);
    assert_eq!(fail(&bad, kernel), status::ERROR_INVALID_CODE_OBJECT);
}

#[test]
fn a_packet_error_without_a_callback_ends_the_process() {
    if std::env::var_os("RPD_SIM_TEST_ABORT").is_some() {
        init();
        let queue = new_queue(None, std::ptr::null_mut());
        submit(
            queue,
            &dispatch(0x1234, 1, std::ptr::null_mut(), 0),
            packet_type::KERNEL_DISPATCH,
        );
        std::thread::sleep(Duration::from_secs(20));
        return;
    }
    use std::os::unix::process::ExitStatusExt;
    let test = "hsa::tests::queues::a_packet_error_without_a_callback_ends_the_process";
    let output = std::process::Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", test, "--nocapture"])
        .env("RPD_SIM_TEST_ABORT", "1")
        .output()
        .expect("runs");
    assert_eq!(output.status.signal(), Some(libc::SIGABRT));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("rpd-sim:") && text.contains("0x1234"),
        "{text}"
    );
}

#[test]
fn a_queue_is_destroyed_while_its_kernel_spins() {
    init();
    let module = Module::load();
    let flag = allocate(1, PoolKind::DeviceFine, 64);
    let queue = new_queue(None, std::ptr::null_mut());
    let packet = dispatch(module.kernel(c"wait_for.kd"), 1, kernarg(flag as u64), 0);
    submit(queue, &packet, packet_type::KERNEL_DISPATCH);
    std::thread::sleep(Duration::from_millis(5));
    // SAFETY: the queue is alive.
    ok(unsafe { hsa_queue_destroy(queue) });
}

/// Prints the time that a launch and its completion take; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_a_packet_is_printed() {
    init();
    let module = Module::load();
    let queue = new_queue(None, std::ptr::null_mut());
    let kernel = module.kernel(c"nothing.kd");
    let done = new_signal(0);
    let rounds = 20_000;
    let report = |what: &str, begin: std::time::Instant| {
        let each = begin.elapsed().as_nanos() / rounds;
        println!("{what}: {each} ns");
    };
    let packet = |completion| dispatch(kernel, 1, std::ptr::null_mut(), completion);
    let begin = std::time::Instant::now();
    for _ in 0..rounds {
        // SAFETY: takes no pointers.
        unsafe { hsa_signal_store_relaxed(done, 1) };
        submit(queue, &packet(done), packet_type::KERNEL_DISPATCH);
        wait(done);
    }
    report("launch and wait", begin);
    let begin = std::time::Instant::now();
    for _ in 0..rounds {
        submit(queue, &packet(0), packet_type::KERNEL_DISPATCH);
    }
    // SAFETY: takes no pointers.
    unsafe { hsa_signal_store_relaxed(done, 1) };
    submit(queue, &packet(done), packet_type::KERNEL_DISPATCH);
    wait(done);
    report("launch", begin);
    let begin = std::time::Instant::now();
    for _ in 0..rounds {
        // SAFETY: takes no pointers.
        unsafe { hsa_signal_store_relaxed(done, 1) };
        let barrier = BarrierPacket {
            completion_signal: done,
            ..BarrierPacket::default()
        };
        submit(queue, &barrier, packet_type::BARRIER_AND);
        wait(done);
    }
    report("barrier and wait", begin);
}
