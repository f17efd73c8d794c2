//! Faults of the device, and how they are reported to the program.

use std::sync::PoisonError;

use rpd_demangle::demangle_any;
use rpd_gfx::check::Place;
use rpd_gfx::isa::{self, Site};
use rpd_gfx::source::{self, DebugInfo};

use super::agents::Agent;
use super::exec::Kernel;
use super::machine::machine;
use super::memory::{AccessError, GRANULE};
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

    /// A packet whose kernel object is not that of a loaded kernel.
    pub(crate) fn kernel_object(what: &str) -> Self {
        Self::new(status::INVALID_CODE_OBJECT, what.to_owned())
    }

    /// Describes the fault of a kernel that ran on the agent of `mask`.
    pub(crate) fn from_kernel(kernel: &Kernel, mask: u64, fault: &isa::Fault) -> Self {
        // Messages are for people; the mangled name would hide the arguments of templates.
        let name = demangle_any(&kernel.name);
        let (status, what, site) = match fault {
            isa::Fault::Instruction { instruction, site } => (
                status::ILLEGAL_INSTRUCTION,
                format!("illegal instruction in kernel {name}: {instruction}"),
                site,
            ),
            isa::Fault::Descriptor { what, site } => (
                status::EXCEPTION,
                format!(
                    "kernel {name} uses an image or buffer descriptor with {what}, which the simulator does not support"
                ),
                site,
            ),
            isa::Fault::Jump { site } => (
                status::ILLEGAL_INSTRUCTION,
                format!(
                    "kernel {name} jumped to {:#x}, outside of its code object's code",
                    site.pc
                ),
                site,
            ),
            // Compilers emit trap 2 for all of these, so that they cannot be told apart here.
            isa::Fault::Trap { id: 2, site } => (
                status::EXCEPTION,
                format!("kernel {name} ended itself (assert, abort or __builtin_trap)"),
                site,
            ),
            isa::Fault::Trap { id, site } => (
                status::EXCEPTION,
                format!("kernel {name} raised trap {id}"),
                site,
            ),
            &isa::Fault::Memory {
                address,
                bytes,
                access,
                aim,
                ref site,
            } => {
                // The interpreter knows only that its cached ranges do not allow the access. The registry knows whether
                // memory is missing or access to it.
                let reason = machine()
                    .memory
                    .check(address as usize, bytes as usize, mask);
                // Addresses in LDS and scratch are no memory of the registry: for them the interpreter's own bounds are
                // the reason.
                let missed = aim.describe();
                let why = missed.unwrap_or_else(|| explain(address, bytes, reason.err()));
                let message = format!(
                    "memory access fault in kernel {name}: {access} of {bytes} bytes at {address:#x}: {why}{}",
                    place(kernel, site)
                );
                return Self {
                    status: status::MEMORY_FAULT,
                    message,
                    memory: Some((address, reason.err().unwrap_or(AccessError::NotPresent))),
                };
            }
            isa::Fault::Launch { why, .. } => return Self::dimensions(&name, why),
            isa::Fault::Stopped { .. } => {
                return Self::new(status::EXCEPTION, format!("kernel {name} was stopped"));
            }
        };
        Self::new(status, what + &place(kernel, site))
    }

    /// An access of a copy engine to memory that it cannot reach.
    pub(crate) fn copy(whom: &str, address: u64, reason: AccessError) -> Self {
        Self {
            status: status::MEMORY_FAULT,
            message: format!(
                "memory access fault on address {address:#x} by {whom}: {}",
                explain(address, 1, Some(reason))
            ),
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
            && call_system_handlers(agent, address, reason)
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

/// Reason for which an access failed, in words: what is known of the address.
fn explain(address: u64, bytes: u32, reason: Option<AccessError>) -> String {
    let place = match machine().memory.place(address) {
        // The first byte is inside, so that the access runs over the end.
        Place::Inside { base, size, .. } if address + u64::from(bytes) > base + size => {
            Place::Outside {
                nearest: Some((base, size)),
            }
        }
        place => place,
    };
    let what = place.describe(address);
    match (reason, place) {
        (None, _) if !address.is_multiple_of(bytes.max(1).into()) => {
            format!("{what}; the address of an atomic is a multiple of its size")
        }
        (Some(AccessError::NotAllowed), _) => {
            format!("{what}, to which the agent has no access (hipDeviceEnablePeerAccess gives it)")
        }
        (_, Place::Outside { nearest: None }) if is_mapped(address) => "memory of the host that the device cannot access (hipHostMalloc and hipHostRegister make such memory accessible)".to_owned(),
        _ => what,
    }
}

/// Whether the process has memory at an address.
fn is_mapped(address: u64) -> bool {
    let page = address & !(GRANULE as u64 - 1);
    let mut resident = 0;
    // SAFETY: the system call returns whether the page is there, and writes one byte.
    unsafe { libc::mincore(page as *mut _, 1, &mut resident) == 0 }
}

/// The line of a message with the place in the kernel.
fn place(kernel: &Kernel, site: &Site) -> String {
    let lines = DebugInfo::parse(&kernel.file).map(|object| {
        let places = object.places(kernel.address_in_file(site.pc));
        places.iter().map(ToString::to_string).collect::<Vec<_>>()
    });
    match source::chain(&lines.unwrap_or_default()) {
        Some(chain) => format!("\n  at {chain}, {}", site.describe()),
        None => format!(
            "\n  at {} (compile with -g for source lines)",
            site.describe()
        ),
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

fn call_system_handlers(agent: &'static Agent, address: u64, reason: AccessError) -> bool {
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
