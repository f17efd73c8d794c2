//! Faults of the device, and how they are reported to the program.

use std::sync::PoisonError;

use super::agents::Agent;
use super::machine::machine;
use super::memory::AccessError;
use super::queue::Queue;

/// Statuses for a queue's error callback, as in `hsa.h` and `hsa_ext_amd.h`.
mod status {
    pub(super) const INVALID_PACKET_FORMAT: u32 = 0x1009;
    pub(super) const INVALID_ARGUMENT: u32 = 0x1001;
    pub(super) const INVALID_ALLOCATION: u32 = 0x1003;
    pub(super) const INVALID_CODE_OBJECT: u32 = 0x1010;
    pub(super) const OUT_OF_RESOURCES: u32 = 0x1008;
    pub(super) const EXCEPTION: u32 = 0x1016;
    pub(super) const ILLEGAL_INSTRUCTION: u32 = 42;
    pub(super) const MEMORY_FAULT: u32 = 43;
}

/// An error that stops a queue.
#[derive(Debug)]
pub(crate) struct Fault {
    status: u32,
    message: String,
    memory: Option<(u64, AccessError)>,
}

impl Fault {
    fn new(status: u32, message: String) -> Self {
        Self {
            status,
            message,
            memory: None,
        }
    }

    /// A packet that the processor cannot process.
    pub(crate) fn packet(index: u64, what: &str) -> Self {
        Self::new(
            status::INVALID_PACKET_FORMAT,
            format!("packet {index}: {what}"),
        )
    }

    /// A dispatch with impossible dimensions.
    pub(crate) fn dimensions(kernel: &str, what: &str) -> Self {
        Self::new(
            status::INVALID_ARGUMENT,
            format!("dispatch of {kernel}: {what}"),
        )
    }

    /// A dispatch that needs more LDS than there is.
    pub(crate) fn group_memory(kernel: &str, what: &str) -> Self {
        Self::new(
            status::INVALID_ALLOCATION,
            format!("dispatch of {kernel}: {what}"),
        )
    }

    /// A dispatch that needs more scratch than there is.
    pub(crate) fn scratch(kernel: &str, what: &str) -> Self {
        Self::new(
            status::OUT_OF_RESOURCES,
            format!("dispatch of {kernel}: {what}"),
        )
    }

    /// An address that is not a kernel object.
    pub(crate) fn kernel_object(what: &str) -> Self {
        Self::new(status::INVALID_CODE_OBJECT, what.to_owned())
    }

    /// An instruction the device does not execute.
    pub(crate) fn instruction(kernel: &str, what: &str) -> Self {
        Self::new(
            status::ILLEGAL_INSTRUCTION,
            format!("illegal instruction in kernel {kernel}: {what}"),
        )
    }

    /// A trap or an exception that a wave raised.
    pub(crate) fn exception(kernel: &str, what: &str) -> Self {
        Self::new(
            status::EXCEPTION,
            format!("exception in kernel {kernel}: {what}"),
        )
    }

    /// An access to memory the agent cannot reach.
    pub(crate) fn memory(whom: &str, address: u64, reason: AccessError) -> Self {
        let why = match reason {
            AccessError::NotPresent => "nothing is mapped for the device there",
            AccessError::NotAllowed => "the agent has no access to this allocation",
        };
        Self {
            status: status::MEMORY_FAULT,
            message: format!("memory access fault on address {address:#x} by {whom}: {why}"),
            memory: Some((address, reason)),
        }
    }

    /// Reports the fault to the program: on stderr, then the handler of system events, then the queue's error callback.
    /// Without either the process ends, as it does on the real runtime.
    pub(crate) fn report(&self, queue: Option<&'static Queue>, agent: &'static Agent) {
        let node = agent.index;
        match queue {
            Some(queue) => eprintln!(
                "rpd-sim: GPU node {node}, queue {}: {}",
                queue.amd.hsa_queue.id, self.message
            ),
            None => eprintln!("rpd-sim: GPU node {node}: {}", self.message),
        }
        if let Some((address, reason)) = self.memory
            && tell_system_handlers(agent, address, reason)
        {
            return;
        }
        match queue.and_then(Queue::callback).zip(queue) {
            Some(((callback, data), queue)) => {
                // SAFETY: the program registered this function with this data for this call.
                unsafe { callback(self.status, queue.public_queue(), data as *mut _) };
            }
            None => std::process::abort(),
        }
    }
}

/// `hsa_amd_event_t` with its memory fault member.
#[repr(C)]
struct MemoryFaultEvent {
    event_type: u32,
    agent: u64,
    virtual_address: u64,
    fault_reason_mask: u32,
}

fn tell_system_handlers(agent: &'static Agent, address: u64, reason: AccessError) -> bool {
    let handlers = machine()
        .system_handlers
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let event = MemoryFaultEvent {
        event_type: 0,
        agent: agent.handle(),
        virtual_address: address & !0xfff,
        fault_reason_mask: match reason {
            AccessError::NotPresent => 1,
            AccessError::NotAllowed => 1 << 3,
        },
    };
    handlers.iter().any(|&(handler, data)| {
        // SAFETY: the program registered this function with this data; the event lives through the call.
        unsafe { handler(std::ptr::from_ref(&event).cast(), data as *mut _) == 0 }
    })
}
