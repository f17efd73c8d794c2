//! Result codes.

use crate::macros::c_enum;

c_enum! {
    /// Result of an SDK function. Later releases append values.
    rocprofiler_status_t: u32 {
        /// The function did what it was asked to.
        SUCCESS = 0 => c"ROCPROFILER_STATUS_SUCCESS",
        /// Unspecified failure.
        ERROR = 1 => c"ROCPROFILER_STATUS_ERROR",
        /// No such context, or context not active when stopping.
        ERROR_CONTEXT_NOT_FOUND = 2 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_FOUND",
        /// No such buffer.
        ERROR_BUFFER_NOT_FOUND = 3 => c"ROCPROFILER_STATUS_ERROR_BUFFER_NOT_FOUND",
        /// No such kind.
        ERROR_KIND_NOT_FOUND = 4 => c"ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND",
        /// No such operation in that kind.
        ERROR_OPERATION_NOT_FOUND = 5 => c"ROCPROFILER_STATUS_ERROR_OPERATION_NOT_FOUND",
        /// No such callback thread.
        ERROR_THREAD_NOT_FOUND = 6 => c"ROCPROFILER_STATUS_ERROR_THREAD_NOT_FOUND",
        /// No such agent.
        ERROR_AGENT_NOT_FOUND = 7 => c"ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND",
        /// No such counter.
        ERROR_COUNTER_NOT_FOUND = 8 => c"ROCPROFILER_STATUS_ERROR_COUNTER_NOT_FOUND",
        /// Context in a state that forbids the request, or busy.
        ERROR_CONTEXT_ERROR = 9 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_ERROR",
        /// Context lacks what the call needs or combines services wrongly.
        ERROR_CONTEXT_INVALID = 10 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_INVALID",
        /// The call needs a context that is running.
        ERROR_CONTEXT_NOT_STARTED = 11 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_NOT_STARTED",
        /// Another running context or service excludes this one.
        ERROR_CONTEXT_CONFLICT = 12 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_CONFLICT",
        /// Out parameter was not zero on entry.
        ERROR_CONTEXT_ID_NOT_ZERO = 13 => c"ROCPROFILER_STATUS_ERROR_CONTEXT_ID_NOT_ZERO",
        /// The buffer is being filled or flushed; try again.
        ERROR_BUFFER_BUSY = 14 => c"ROCPROFILER_STATUS_ERROR_BUFFER_BUSY",
        /// The context has this service, or the handle has a value, already.
        ERROR_SERVICE_ALREADY_CONFIGURED = 15 => c"ROCPROFILER_STATUS_ERROR_SERVICE_ALREADY_CONFIGURED",
        /// Services are configured in `rocprofiler_configure` and `initialize` only.
        ERROR_CONFIGURATION_LOCKED = 16 => c"ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED",
        /// This version of the SDK lacks the function or option.
        ERROR_NOT_IMPLEMENTED = 17 => c"ROCPROFILER_STATUS_ERROR_NOT_IMPLEMENTED",
        /// Struct size or library interface mismatch.
        ERROR_INCOMPATIBLE_ABI = 18 => c"ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_ABI",
        /// An argument is null or out of range.
        ERROR_INVALID_ARGUMENT = 19 => c"ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT",
        /// Counter does not exist on that agent.
        ERROR_METRIC_NOT_VALID_FOR_AGENT = 20 => c"ROCPROFILER_STATUS_ERROR_METRIC_NOT_VALID_FOR_AGENT",
        /// The SDK has finalised; it takes no further calls.
        ERROR_FINALIZED = 21 => c"ROCPROFILER_STATUS_ERROR_FINALIZED",
        /// The call needs the HSA runtime, which is not initialised yet.
        ERROR_HSA_NOT_LOADED = 22 => c"ROCPROFILER_STATUS_ERROR_HSA_NOT_LOADED",
        /// The SDK has no dimensions of this counter.
        ERROR_DIM_NOT_FOUND = 23 => c"ROCPROFILER_STATUS_ERROR_DIM_NOT_FOUND",
        /// A counter config names a counter that the agent lacks.
        ERROR_PROFILE_COUNTER_NOT_FOUND = 24 => c"ROCPROFILER_STATUS_ERROR_PROFILE_COUNTER_NOT_FOUND",
        /// The expression of a derived counter could not be parsed.
        ERROR_AST_GENERATION_FAILED = 25 => c"ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED",
        /// The SDK has no expression for a derived counter.
        ERROR_AST_NOT_FOUND = 26 => c"ROCPROFILER_STATUS_ERROR_AST_NOT_FOUND",
        /// No coordinate for a hardware event.
        ERROR_AQL_NO_EVENT_COORD = 27 => c"ROCPROFILER_STATUS_ERROR_AQL_NO_EVENT_COORD",
        /// Kernel driver too old.
        ERROR_INCOMPATIBLE_KERNEL = 28 => c"ROCPROFILER_STATUS_ERROR_INCOMPATIBLE_KERNEL",
        /// Caller array too small or resources exhausted.
        ERROR_OUT_OF_RESOURCES = 29 => c"ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES",
        /// No such counter config.
        ERROR_PROFILE_NOT_FOUND = 30 => c"ROCPROFILER_STATUS_ERROR_PROFILE_NOT_FOUND",
        /// Device counting and dispatch counting exclude each other.
        ERROR_AGENT_DISPATCH_CONFLICT = 31 => c"ROCPROFILER_STATUS_ERROR_AGENT_DISPATCH_CONFLICT",
        /// For the SDK's own use: no context counts on the agent.
        INTERNAL_NO_AGENT_CONTEXT = 32 => c"ROCPROFILER_STATUS_INTERNAL_NO_AGENT_CONTEXT",
        /// Samples are requested faster than the hardware takes them.
        ERROR_SAMPLE_RATE_EXCEEDED = 33 => c"ROCPROFILER_STATUS_ERROR_SAMPLE_RATE_EXCEEDED",
        /// The agent has no queue through which counters could be read.
        ERROR_NO_PROFILE_QUEUE = 34 => c"ROCPROFILER_STATUS_ERROR_NO_PROFILE_QUEUE",
        /// A counter config needs no hardware counter, so there is nothing to collect.
        ERROR_NO_HARDWARE_COUNTERS = 35 => c"ROCPROFILER_STATUS_ERROR_NO_HARDWARE_COUNTERS",
        /// The counter config was made for another agent.
        ERROR_AGENT_MISMATCH = 36 => c"ROCPROFILER_STATUS_ERROR_AGENT_MISMATCH",
        /// The hardware, the driver or the process's state excludes the service.
        ERROR_NOT_AVAILABLE = 37 => c"ROCPROFILER_STATUS_ERROR_NOT_AVAILABLE",
        /// More counters than hardware slots.
        ERROR_EXCEEDS_HW_LIMIT = 38 => c"ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT",
        /// The service does not support the architecture of the agent.
        ERROR_AGENT_ARCH_NOT_SUPPORTED = 39 => c"ROCPROFILER_STATUS_ERROR_AGENT_ARCH_NOT_SUPPORTED",
        /// The driver refused access to the counters.
        ERROR_PERMISSION_DENIED = 40 => c"ROCPROFILER_STATUS_ERROR_PERMISSION_DENIED",
        /// Number of codes known to this version.
        LAST = 41 => c"ROCPROFILER_STATUS_LAST",
    }
}
