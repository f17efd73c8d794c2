//! The contexts that are started and stopped while the target runs.
//!
//! Traces are on the client context. A context that counts stays on, because SDK 1.0 loses kernels forever when such a
//! one is stopped while they are queued.

use std::sync::atomic::{AtomicU64, Ordering};

use rocprofiler_sdk_sys::{Functions, rocprofiler_context_id_t};

use super::setup::Setup;
use super::{dispatch, pc_sampling, provider, thread_trace};
use crate::recording::switch::{self, Switched};

/// Handles of the contexts that are started and stopped, for comparison; 0 for none.
static SWITCHED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

struct Contexts {
    functions: &'static Functions,
    /// The traces, if anything is traced.
    client: Option<rocprofiler_context_id_t>,
    /// Context that is on while the program pauses recording, if there is one.
    paused: Option<rocprofiler_context_id_t>,
}

impl Contexts {
    fn switch(&self, context: Option<rocprofiler_context_id_t>, on: bool) {
        let Some(context) = context else { return };
        // SAFETY: a context of this provider. Starting it twice has no effect, and that it is stopped already is not an error
        // here: pauses may be doubled.
        unsafe {
            if on {
                (self.functions.rocprofiler_start_context)(context)
            } else {
                (self.functions.rocprofiler_stop_context)(context)
            }
        };
    }
}

impl Switched for Contexts {
    fn trace(&self, on: bool) {
        self.switch(self.client, on);
        thread_trace::switched(on);
    }

    fn count_paused(&self, on: bool) {
        self.switch(self.paused, on);
    }

    fn flush(&self) {
        pc_sampling::flush_on_request();
    }
}

/// Starts recording, unless it waits for the program or a period. Everything is configured by now.
pub(super) fn begin(setup: &Setup<'_>) {
    let options = setup.options;
    let client = options.traces_anything().then_some(setup.client);
    let paused = if switch::by_regions(options) {
        None
    } else {
        dispatch::configure_paused(setup)
    };
    for (place, context) in SWITCHED.iter().zip([client, paused]) {
        place.store(
            context.map_or(0, |context| context.handle),
            Ordering::Relaxed,
        );
    }
    let contexts = Contexts {
        functions: setup.functions,
        client,
        paused,
    };
    switch::configure(options, Box::new(contexts));
    if let Some(client) = client
        && switch::is_on()
    {
        setup.start(client, "anything");
    }
    switch::begin();
}

/// Starts the contexts that are always on, of those that the provider had stopped when an attacher left.
pub(super) fn start_again(all: &[rocprofiler_context_id_t]) {
    let Some(functions) = provider::functions() else {
        return;
    };
    let is_switched = |context: &rocprofiler_context_id_t| {
        let mut handles = SWITCHED.iter().map(|place| place.load(Ordering::Relaxed));
        handles.any(|handle| handle == context.handle)
    };
    for context in all.iter().filter(|context| !is_switched(context)) {
        // SAFETY: a context of this provider. Starting one that is on has no effect.
        unsafe { (functions.rocprofiler_start_context)(*context) };
    }
}
