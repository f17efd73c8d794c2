//! The services of this provider: what each does when the collector is set up, when recording begins and when it ends.

use super::setup::Setup;
use super::{
    access_trace, api, capture_markers, code_object, counters, dispatch, graphs, hip_events,
    intercept, kernel_check, kfd, marker, memory, pc_sampling, rename, runtime, runtime_end,
    stream, thread_trace,
};
use crate::recording::stacks;

/// Steps of a service. There are no defaults, so that a new service states what it does at each step; `None` is nothing.
struct Steps {
    /// Makes the provider report the events that the options request. Contexts are made here and not started.
    configure: fn(&mut Setup<'_>),
    /// Starts services beside the client context, once everything is configured and when anything is recorded. A
    /// service with `hsa_initialised` leaves it to that if [`Setup::announces_hsa`].
    begin: Option<fn(&Setup<'_>)>,
    /// Called when the HSA runtime is initialised and has no queue yet.
    hsa_initialised: Option<fn()>,
    /// Events that the provider may hold back, for a service that has such.
    held: Option<Held>,
}

/// Events that the provider holds back.
struct Held {
    /// Whether there may be events that the provider holds back.
    any: fn() -> bool,
    /// Makes the provider deliver the events, when recording is about to end. May be called twice.
    deliver: fn(),
}

/// Every service, in the order in which they are configured.
const SERVICES: &[Steps] = &[
    // First: later services read the provider's counters or make it register kernels.
    Steps {
        configure: |setup| {
            counters::define(setup);
            setup.counting = counters::configure(setup);
        },
        begin: Some(counters::begin),
        hsa_initialised: Some(counters::hsa_initialised),
        held: None,
    },
    Steps {
        configure: |setup| thread_trace::configure(setup),
        begin: Some(thread_trace::begin),
        hsa_initialised: Some(thread_trace::hsa_initialised),
        held: Some(Held {
            any: thread_trace::holds_streams,
            deliver: thread_trace::end,
        }),
    },
    // Before all other contexts, and never stopped: the provider does not repeat what was loaded before.
    only_configured(|setup| code_object::configure(setup)),
    only_configured(|setup| intercept::configure(setup)),
    only_configured(|setup| capture_markers::configure(setup)),
    only_configured(|setup| access_trace::configure(setup)),
    only_configured(|setup| kernel_check::configure(setup)),
    only_configured(|setup| setup.announces_hsa = runtime::configure(setup)),
    only_configured(|setup| runtime_end::configure(setup)),
    // Determines which operations have stacks. Must come before the first of them is traced.
    only_configured(|setup| {
        stacks::prepare(setup.options);
        stacks::note_useless_globs(&setup.options.stacks, setup.names.operations());
    }),
    only_configured(|setup| api::configure(setup)),
    only_configured(|setup| {
        if setup.options.traces.marker {
            marker::configure(setup);
        }
        if setup.records_anything() {
            marker::configure_control(setup);
        }
    }),
    only_configured(|setup| {
        if setup.options.kernel_rename {
            rename::configure(setup);
        }
    }),
    only_configured(|setup| {
        if setup.options.traces.kernel {
            dispatch::configure(setup);
        }
    }),
    only_configured(|setup| memory::configure(setup)),
    Steps {
        configure: |setup| graphs::configure(setup),
        begin: None,
        hsa_initialised: None,
        held: Some(Held {
            any: graphs::holds_launches,
            deliver: graphs::deliver,
        }),
    },
    only_configured(|setup| hip_events::configure(setup)),
    Steps {
        configure: |setup| kfd::configure(setup),
        begin: None,
        hsa_initialised: None,
        held: Some(Held {
            any: kfd::holds_events,
            deliver: kfd::deliver,
        }),
    },
    only_configured(|setup| stream::configure(setup)),
    Steps {
        configure: |setup| pc_sampling::configure(setup),
        begin: None,
        hsa_initialised: None,
        held: Some(Held {
            any: pc_sampling::is_on,
            deliver: pc_sampling::end,
        }),
    },
];

/// Steps of a service whose events are all on the client context or on one that is never stopped, and delivered at once.
const fn only_configured(configure: fn(&mut Setup<'_>)) -> Steps {
    Steps {
        configure,
        begin: None,
        hsa_initialised: None,
        held: None,
    }
}

/// Configures every service.
pub(super) fn configure(setup: &mut Setup<'_>) {
    for service in SERVICES {
        (service.configure)(setup);
    }
}

/// Starts every service.
pub(super) fn begin(setup: &Setup<'_>) {
    for begin in SERVICES.iter().filter_map(|service| service.begin) {
        begin(setup);
    }
}

/// Tells every service that the HSA runtime is initialised and has no queue yet.
pub(super) fn hsa_initialised() {
    for act in SERVICES
        .iter()
        .filter_map(|service| service.hsa_initialised)
    {
        act();
    }
}

/// Whether the provider may hold events back.
pub(super) fn hold_events() -> bool {
    held().any(|events| (events.any)())
}

/// Makes the provider deliver the events that it holds, for the service that was configured last first.
pub(super) fn end() {
    for events in held() {
        (events.deliver)();
    }
}

fn held() -> impl Iterator<Item = &'static Held> {
    SERVICES
        .iter()
        .rev()
        .filter_map(|service| service.held.as_ref())
}
