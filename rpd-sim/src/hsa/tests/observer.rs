//! Events of an observer: their order and thread, and the state of a forked child. Each test runs in a process of its
//! own, because an observer cannot be removed and a fork affects all threads.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Mutex;
use std::thread::ThreadId;

use super::*;
use crate::gpu::machine::machine;
use crate::gpu::observe::{
    self, CodeObjectInfo, CopyDirection, CopyInfo, DispatchInfo, Interval, Observer, QueueInfo,
    Token,
};
use crate::gpu::signal::Signal;

/// Runs a test again in a child process, where `body` does the work.
fn alone(test: &str, body: impl FnOnce()) {
    const VARIABLE: &str = "RPD_SIM_TEST_ALONE";
    if std::env::var_os(VARIABLE).is_some() {
        return body();
    }
    let name = format!("hsa::tests::observer::{test}");
    let output = Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", &name, "--nocapture"])
        .env(VARIABLE, "1")
        .output()
        .expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "signal {:?}: {text}",
        output.status.signal()
    );
}

#[derive(Debug, PartialEq)]
enum Seen {
    Queue(u64),
    QueueGone(u64),
    Enqueued(u64),
    Dispatched(Token, i64),
    Copy(CopyDirection, u64),
    Copied(Token, i64),
    Loaded(Vec<String>),
    Unloaded,
}

/// An observer that writes down events, and the value of a signal at each.
#[derive(Default)]
struct Notes {
    seen: Mutex<Vec<(ThreadId, Seen)>>,
    signal: AtomicU64,
}

impl Notes {
    fn note(&self, seen: Seen) {
        let entry = (std::thread::current().id(), seen);
        self.seen.lock().expect("lock").push(entry);
    }

    fn signal(&self) -> i64 {
        Signal::from_handle(self.signal.load(Ordering::SeqCst)).map_or(-99, Signal::load)
    }
}

impl Observer for Notes {
    fn queue_created(&self, queue: &QueueInfo) {
        self.note(Seen::Queue(queue.handle));
    }
    fn queue_destroyed(&self, queue: &QueueInfo) {
        self.note(Seen::QueueGone(queue.handle));
    }
    fn dispatch_enqueued(&self, dispatch: &DispatchInfo<'_>) -> Token {
        self.note(Seen::Enqueued(dispatch.packet_id));
        dispatch.packet_id + 10
    }
    fn dispatch_completed(&self, token: Token, time: Interval) {
        assert!(time.start <= time.end);
        // Long enough for a waiter to run away if it were let go too early.
        std::thread::sleep(Duration::from_millis(2));
        self.note(Seen::Dispatched(token, self.signal()));
    }
    fn copy_submitted(&self, copy: &CopyInfo) -> Token {
        self.note(Seen::Copy(copy.direction, copy.bytes));
        77
    }
    fn copy_completed(&self, token: Token, time: Interval) {
        assert!(time.start <= time.end);
        self.note(Seen::Copied(token, self.signal()));
    }
    fn code_object_loaded(&self, object: &CodeObjectInfo) {
        self.note(Seen::Loaded(
            object
                .kernels
                .iter()
                .map(|kernel| kernel.name.clone())
                .collect(),
        ));
    }
    fn code_object_unloaded(&self, _object: &CodeObjectInfo) {
        self.note(Seen::Unloaded);
    }
}

#[test]
fn signal_waits_return_after_the_observer_was_called() {
    alone("signal_waits_return_after_the_observer_was_called", || {
        init();
        let notes: &'static Notes = Box::leak(Box::default());
        assert!(observe::set(notes));
        let module = Module::load();
        let queue = new_queue(None, std::ptr::null_mut());
        let done = new_signal(1);
        notes.signal.store(done, Ordering::SeqCst);
        let packet = dispatch(module.kernel(c"nothing.kd"), 1, std::ptr::null_mut(), 0);
        submit(queue, &packet, packet_type::KERNEL_DISPATCH);
        // The barrier is complete long before the observer is called for the kernel; its end is reported after the kernel's.
        let barrier = BarrierPacket {
            completion_signal: done,
            ..BarrierPacket::default()
        };
        submit(queue, &barrier, packet_type::BARRIER_AND | HEADER_BARRIER);
        wait(done);
        let (host, device) = (
            allocate(0, PoolKind::SystemFine, 64),
            allocate(1, PoolKind::DeviceCoarse, 64),
        );
        // SAFETY: both blocks have 64 bytes; the queue and the executable are alive.
        unsafe {
            hsa_signal_store_relaxed(done, 1);
            let none = std::ptr::null();
            ok(hsa_amd_memory_async_copy(
                device,
                gpu(),
                host,
                cpu(),
                64,
                0,
                none,
                done,
            ));
            wait(done);
            ok(hsa_queue_destroy(queue));
            ok(hsa_executable_destroy(module.executable));
        }
        let seen = std::mem::take(&mut *notes.seen.lock().expect("lock"));
        let here = std::thread::current().id();
        let threads: Vec<bool> = seen.iter().map(|(thread, _)| *thread == here).collect();
        let kinds: Vec<Seen> = seen.into_iter().map(|(_, kind)| kind).collect();
        assert!(
            matches!(&kinds[0], Seen::Loaded(names) if names.contains(&"add_one.kd".to_owned()))
        );
        let queue = queue as u64;
        let rest = [
            Seen::Queue(queue),
            Seen::Enqueued(0),
            Seen::Dispatched(10, 1),
            Seen::Copy(CopyDirection::HostToDevice, 64),
            Seen::Copied(77, 1),
            Seen::QueueGone(queue),
            Seen::Unloaded,
        ];
        assert_eq!(kinds[1..], rest);
        assert_eq!(threads, [true, true, true, false, true, false, true, true]);
    });
}

#[test]
fn a_forked_child_has_to_initialise_hsa_again() {
    alone("a_forked_child_has_to_initialise_hsa_again", || {
        init();
        let queue = new_queue(None, std::ptr::null_mut());
        let done = new_signal(1);
        let barrier = |completion| BarrierPacket {
            completion_signal: completion,
            ..BarrierPacket::default()
        };
        submit(queue, &barrier(done), packet_type::BARRIER_AND);
        wait(done);
        // SAFETY: the child uses what the simulator promises to work there, then leaves at once.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut signal = 0;
            // SAFETY: all pointers are valid.
            let refused = unsafe { hsa_signal_create(1, 0, std::ptr::null(), &mut signal) };
            let mut right = refused == status::ERROR_NOT_INITIALIZED;
            init();
            right &= machine().queue(queue as u64).is_none();
            let queue = new_queue(None, std::ptr::null_mut());
            let done = new_signal(1);
            submit(queue, &barrier(done), packet_type::BARRIER_AND);
            wait(done);
            // SAFETY: takes no pointers.
            unsafe { libc::_exit(i32::from(!right)) };
        }
        let mut state = -1;
        // SAFETY: the child is this process's own.
        unsafe { libc::waitpid(child, &mut state, 0) };
        assert_eq!(state, 0);
        // SAFETY: the queue is alive in the parent.
        ok(unsafe { hsa_queue_destroy(queue) });
    });
}
