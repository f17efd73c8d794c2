//! Environment variables that the real runtime reads, too.

use std::sync::OnceLock;

/// Waits of the host for operations of one kind (`AMD_SERIALIZE_KERNEL`, `AMD_SERIALIZE_COPY`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Serialize {
    /// Whether the host waits for all earlier work before it enqueues an operation.
    pub(crate) before: bool,
    /// Whether the host waits for an operation after it has enqueued it.
    pub(crate) after: bool,
}

/// Settings of the runtime, from the environment variables of the process.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) kernels: Serialize,
    pub(crate) copies: Serialize,
    /// Hardware queues of a device for the streams of one priority (`GPU_MAX_HW_QUEUES`).
    pub(crate) queues: usize,
}

fn number(name: &str) -> Option<u32> {
    std::env::var(name).ok()?.trim().parse().ok()
}

fn serialize(name: &str, blocking: bool) -> Serialize {
    const BEFORE: u32 = 1;
    const AFTER: u32 = 2;
    let bits = number(name).unwrap_or(0);
    Serialize {
        before: bits & BEFORE != 0,
        after: bits & AFTER != 0 || blocking,
    }
}

/// Settings of the process, read from the environment at the first call.
pub(crate) fn get() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let blocking = number("HIP_LAUNCH_BLOCKING").is_some_and(|n| n != 0);
        Settings {
            kernels: serialize("AMD_SERIALIZE_KERNEL", blocking),
            copies: serialize("AMD_SERIALIZE_COPY", false),
            queues: number("GPU_MAX_HW_QUEUES").map_or(4, |n| n.clamp(1, 8) as usize),
        }
    })
}
