//! Start and stop of contexts, with their services of the device.

use rocprofiler_sdk_sys::{rocprofiler_context_id_t as ContextId, rocprofiler_status_t as Status};

use super::{context, counting, state, thread_trace};

/// Stops all contexts of a client; `remove` also removes them.
pub(super) fn stop_client(client: u32, remove: bool) {
    for context in context::deactivate_client(client, remove) {
        counting::stopped(context);
        thread_trace::stopped(context);
    }
}

/// Starts a context: its services deliver from now on. Fails with `CONTEXT_CONFLICT` when an active context excludes
/// it, and with `CONFIGURATION_LOCKED` once the SDK finalises.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_start_context(context_id: ContextId) -> Status {
    if state::finalized() != 0 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let may_start = |context: &_| counting::may_start(context) && thread_trace::may_start(context);
    match context::activate(context_id, may_start) {
        // This calls tools, so no lock may be held.
        Ok(Some(context)) => {
            thread_trace::started(context);
            counting::started(context)
        }
        Ok(None) => Status::SUCCESS,
        Err(status) => status,
    }
}

/// Stops a context. Fails with `CONTEXT_NOT_FOUND` when it is not active.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_stop_context(context_id: ContextId) -> Status {
    if state::finalized() == 1 {
        return Status::SUCCESS;
    }
    match context::deactivate(context_id) {
        Some(context) => {
            counting::stopped(context);
            thread_trace::stopped(context);
            Status::SUCCESS
        }
        None => Status::ERROR_CONTEXT_NOT_FOUND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_and_stopping_an_unknown_context_fails() {
        assert_eq!(
            rocprofiler_start_context(ContextId { handle: 0 }),
            Status::ERROR_CONTEXT_NOT_FOUND
        );
        assert_eq!(
            rocprofiler_stop_context(ContextId { handle: u64::MAX }),
            Status::ERROR_CONTEXT_NOT_FOUND
        );
    }
}
