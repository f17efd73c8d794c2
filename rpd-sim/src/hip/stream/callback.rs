//! Host functions that streams call, on a thread of their own so that a slow one holds up only its stream.

use core::ffi::c_void;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use crate::hip::error::{HipResult, code};
use crate::hip::hsa;
use crate::hip::runtime::{Opaque, Runtime, lock};
use crate::hip::stream::signal::Signal;
use crate::hip::types::{HostFn, StreamCallback};

/// A host function of the program that a stream calls, with its data.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HostCall {
    /// `hipLaunchHostFunc`.
    Function(HostFn, Opaque),
    /// `hipStreamAddCallback`: callback, stream, data.
    Callback(StreamCallback, Opaque, Opaque),
}

impl HostCall {
    /// # Safety
    /// The program's function must accept the data that was registered with it.
    unsafe fn run(self) {
        match self {
            // SAFETY: by contract.
            HostCall::Function(Some(function), data) => unsafe { function(data.0) },
            HostCall::Callback(Some(function), stream, data) => {
                // SAFETY: by contract.
                unsafe { function(stream.0, code::SUCCESS, data.0) }
            }
            HostCall::Function(None, _) | HostCall::Callback(None, ..) => {}
        }
    }
}

/// A host function together with the signal that is set when it has returned.
#[derive(Debug)]
struct Job {
    call: HostCall,
    done: Arc<Signal>,
    worker: Sender<Message>,
}

#[derive(Debug)]
struct Message {
    call: HostCall,
    done: Arc<Signal>,
}

/// The thread that runs host functions in the order in which their streams get to them.
#[derive(Debug)]
pub(crate) struct Worker {
    sender: Mutex<Sender<Message>>,
}

impl Worker {
    fn start() -> Self {
        let (sender, receiver) = channel::<Message>();
        let body = move || {
            for message in receiver {
                // SAFETY: the program registered the function for this call.
                unsafe { message.call.run() };
                message.done.complete();
            }
        };
        // Without a thread the receiver is dropped and `enqueue` reports it.
        let _ = std::thread::Builder::new()
            .name("hip-callbacks".into())
            .spawn(body);
        Self {
            sender: Mutex::new(sender),
        }
    }
}

/// Called by HSA once the work before a host function has ended: passes the function to the worker.
unsafe extern "C" fn ready(_value: i64, data: *mut c_void) -> bool {
    // SAFETY: `enqueue` passed a box for exactly one call.
    let job = unsafe { Box::from_raw(data.cast::<Job>()) };
    let Job { call, done, worker } = *job;
    let _ = worker.send(Message { call, done });
    false
}

/// Runs `call` once `before` has fallen; `done` falls when the call has returned.
pub(crate) fn enqueue(
    runtime: &Runtime,
    before: Option<&Arc<Signal>>,
    call: HostCall,
    done: &Arc<Signal>,
) -> HipResult {
    let worker = lock(&runtime.worker.get_or_init(Worker::start).sender).clone();
    let done = Arc::clone(done);
    match before {
        None => worker
            .send(Message { call, done })
            .map_err(|_| code::OPERATING_SYSTEM),
        Some(signal) => {
            let job = Box::into_raw(Box::new(Job { call, done, worker }));
            hsa::signal_handler(signal.handle(), Some(ready), job.cast()).inspect_err(|_| {
                // SAFETY: HSA refused the handler, so the box is still ours.
                drop(unsafe { Box::from_raw(job) });
            })
        }
    }
}
