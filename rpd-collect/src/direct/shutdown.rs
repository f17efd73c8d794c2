//! The program shuts the HSA runtime down.

use std::time::Duration;

use super::hooks::{Hook, hook};
use super::{hsa, poller};
use crate::recording::guard::Service;

static SERVICE: Service = Service::new("end of the HSA runtime");

hook! {
    SHUT_DOWN: HSA_CORE_API::hsa_shut_down,
    fn shut_down() -> u32,
    |next| {
        // The times of completed work are in signals, which end with the runtime.
        let polling = SERVICE.on_event(|| {
            poller::drain(Duration::ZERO);
            poller::suspend()
        });
        let status = next();
        if polling.is_some() {
            SERVICE.run(|| {
                // The runtime continues if others have initialised it as well.
                if hsa::clock_frequency() == 0 {
                    poller::forget_work();
                }
                poller::resume();
            });
        }
        status
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 1] = [&SHUT_DOWN];
