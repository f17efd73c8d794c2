//! Queues whose packets pass through handlers.

use super::*;
use crate::gpu::intercept::{Handler, Writer};
use crate::hsa::intercept::*;

/// The packets that a handler received, and the packets that the handler adds behind each.
#[derive(Default)]
struct Seen {
    packets: AtomicU64,
    last_index: AtomicU64,
    behind: usize,
    markers: AtomicU64,
}

unsafe extern "C" fn pass(
    packets: *const c_void,
    count: u64,
    index: u64,
    data: *mut c_void,
    writer: Writer,
) {
    // SAFETY: the tests register this function with a `Seen`.
    let seen = unsafe { &*data.cast::<Seen>() };
    seen.packets.fetch_add(count, Ordering::SeqCst);
    seen.last_index.store(index, Ordering::SeqCst);
    if seen.behind == 0 {
        // SAFETY: the same packets.
        unsafe { writer(packets, count) };
        return;
    }
    // SAFETY: a packet; one at a time is what queues hand over.
    let mut out = vec![unsafe { *packets.cast::<[u64; 8]>() }];
    // A call in the stream of packets: vendor packet of format 0xFE, function, data.
    let function: unsafe extern "C" fn(*const c_void, *mut c_void, u64) = marker;
    out.push([
        0xFE << 16,
        function as usize as u64,
        data as u64,
        0,
        0,
        0,
        0,
        0,
    ]);
    let barrier = u64::from(packet_type::BARRIER_AND | HEADER_BARRIER);
    out.resize(out.len() + seen.behind, [barrier, 0, 0, 0, 0, 0, 0, 0]);
    // SAFETY: that many packets.
    unsafe { writer(out.as_ptr().cast(), out.len() as u64) };
}

unsafe extern "C" fn marker(packet: *const c_void, _queue: *mut c_void, _index: u64) {
    // SAFETY: `pass` made the packet, with a `Seen` in its third word.
    let seen = unsafe { &*(*packet.cast::<[u64; 8]>().cast::<u64>().add(2) as *const Seen) };
    seen.markers.fetch_add(1, Ordering::SeqCst);
}

fn intercepted(handlers: &[&Seen]) -> *mut HsaQueue {
    let mut queue = std::ptr::null_mut();
    let none = std::ptr::null_mut();
    // SAFETY: all pointers are valid.
    ok(unsafe { hsa_amd_queue_intercept_create(gpu(), 64, 0, None, none, 0, 0, &mut queue) });
    for &seen in handlers {
        let data = std::ptr::from_ref(seen).cast_mut().cast();
        // SAFETY: the tests keep the data until the queue is gone.
        ok(unsafe { hsa_amd_queue_intercept_register(queue, Some(pass as Handler), data) });
    }
    queue
}

#[test]
fn intercept_handlers_see_every_packet_and_add_more_than_the_ring_holds() {
    init();
    let module = Module::load();
    let inner = Seen::default();
    let outer = Seen {
        behind: 5,
        ..Seen::default()
    };
    let queue = intercepted(&[&inner, &outer]);
    let kernel = module.kernel(c"count.kd");
    let counter = module.address(c"counter", 21) as *const AtomicI64 as *const AtomicU32;
    // SAFETY: a variable of the module, which is loaded.
    let before = unsafe { (*counter).load(Ordering::SeqCst) };
    let mut packet = dispatch(kernel, 1, std::ptr::null_mut(), 0);
    (packet.workgroup_size_x, packet.grid_size_x) = (1, 1);
    for _ in 0..299 {
        submit(queue, &packet, packet_type::KERNEL_DISPATCH);
    }
    packet.completion_signal = new_signal(1);
    submit(queue, &packet, packet_type::KERNEL_DISPATCH);
    wait(packet.completion_signal);
    // SAFETY: as above.
    assert_eq!(unsafe { (*counter).load(Ordering::SeqCst) }, before + 300);
    assert_eq!(outer.packets.load(Ordering::SeqCst), 300);
    assert_eq!(outer.last_index.load(Ordering::SeqCst), 299);
    assert_eq!(outer.markers.load(Ordering::SeqCst), 300);
    // The packet, the outer handler's marker and its five barriers, at once.
    assert_eq!(inner.packets.load(Ordering::SeqCst), 300 * 7);
    // SAFETY: the queue is alive.
    unsafe {
        assert_eq!(hsa_queue_load_read_index_relaxed(queue), 300);
        ok(hsa_amd_profiling_set_profiler_enabled(queue, 1));
        ok(hsa_queue_destroy(queue));
        assert_eq!(hsa_queue_destroy(queue), status::ERROR_INVALID_QUEUE);
    }
}

#[test]
fn plain_queues_refuse_intercept_handlers() {
    init();
    let queue = new_queue(None, std::ptr::null_mut());
    let none = std::ptr::null_mut();
    // SAFETY: the queue is alive.
    unsafe {
        let refused = hsa_amd_queue_intercept_register(queue, Some(pass as Handler), none);
        assert_eq!(refused, status::ERROR_INVALID_QUEUE);
        ok(hsa_queue_destroy(queue));
    }
}
