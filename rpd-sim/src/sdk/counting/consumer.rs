//! The thread that computes values and delivers them to tools.

use core::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard},
};

use super::dispatch::Finished;

/// Results that may wait; with more of them the submitting thread delivers its result itself.
const ROOM: usize = 128;

#[derive(Default)]
struct Consumer {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<Finished>>,
    /// Whether a measurement is being delivered.
    busy: bool,
}

static CONSUMER: AtomicPtr<Consumer> = AtomicPtr::new(ptr::null_mut());
/// Lock that is held while the thread is made.
static MAKE: Mutex<()> = Mutex::new(());

thread_local! {
    static IS_CONSUMER: Cell<bool> = const { Cell::new(false) };
}

impl Consumer {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn run(&self) {
        IS_CONSUMER.with(|c| c.set(true));
        loop {
            let mut queue = self.lock();
            let next = loop {
                match queue.waiting.pop_front() {
                    Some(next) => break next,
                    None => {
                        queue = self.changed.wait(queue).unwrap_or_else(|e| e.into_inner());
                    }
                }
            };
            queue.busy = true;
            drop(queue);
            next.deliver();
            self.lock().busy = false;
            self.changed.notify_all();
        }
    }
}

/// The consumer; its thread is made with the first result.
fn get() -> Option<&'static Consumer> {
    // SAFETY: a consumer is never freed.
    unsafe { CONSUMER.load(Ordering::Acquire).as_ref() }
}

fn make() -> Option<&'static Consumer> {
    let _guard = MAKE.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(consumer) = get() {
        return Some(consumer);
    }
    let consumer: &'static Consumer = Box::leak(Box::default());
    let made = std::thread::Builder::new()
        .name("rpd-sim-counter".to_owned())
        .spawn(|| consumer.run());
    if let Err(e) = made {
        eprintln!("rpd-sim: no thread for counter values: {e}");
        return None;
    }
    CONSUMER.store(ptr::from_ref(consumer).cast_mut(), Ordering::Release);
    Some(consumer)
}

/// Passes a result to the thread.
pub(super) fn submit(finished: Box<Finished>) {
    if let Some(consumer) = get().or_else(make) {
        let mut queue = consumer.lock();
        if queue.waiting.len() < ROOM {
            queue.waiting.push_back(finished);
            drop(queue);
            consumer.changed.notify_all();
            return;
        }
    }
    finished.deliver();
}

/// Waits until all results submitted so far are delivered; does nothing on the thread itself.
pub(crate) fn drain() {
    let Some(consumer) = get().filter(|_| !IS_CONSUMER.with(Cell::get)) else {
        return;
    };
    let mut queue = consumer.lock();
    while queue.busy || !queue.waiting.is_empty() {
        let waited = consumer.changed.wait(queue);
        queue = waited.unwrap_or_else(|e| e.into_inner());
    }
}

/// Drops the parent's thread and results, in a forked child.
pub(crate) fn forget() {
    CONSUMER.store(ptr::null_mut(), Ordering::Release);
}
