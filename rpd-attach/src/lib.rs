//! Attaching a tool to a process that runs already, by the protocol of ROCm's own attacher (`rocprof-attach`).
//!
//! A program that was started with `ROCP_TOOL_ATTACH=1` has a thread called [`LISTENER`], which sleeps and holds no lock.
//! The attacher traces that thread (`ptrace`), has it call `rocprofiler_register_attach` in the target's registration
//! library, and lets it sleep again. The library opens the SDK, and the SDK opens the tool.
//!
//! Registration library 0.6.0 ends the target where something is missing: by SIGABRT when the SDK cannot be loaded, by
//! SIGSEGV when nothing registered itself for attaching. So [`inspect()`] reads from outside, without stopping anything,
//! whether all of it is there, and [`Session::attach`] refuses where it is not.
//!
//! The target survives an attacher that is killed at any moment. Code that runs in the listener returns to where the
//! thread was by itself, as a signal handler does, and there is no breakpoint in it: see the module `remote`.
//!
//! | module | subject |
//! |---|---|
//! | `inspect` | what a process is, and whether a tool can be attached to it |
//! | `session` | attaching and detaching, for a process and for a tree of processes |
//! | `remote` | calls that the listener makes |
//! | `frame` | the frame from which it returns |
//! | `trace` | requests of `ptrace` |
//! | `loader` | whether the loader of the target would open a library |
//! | `elf` | symbols and needs of a library |
//! | `process` | facts about a process, from `/proc` |
//! | `environment` | the variables that travel to the target |
//! | `status` | statuses of attaching, and those of the registration library |
//!
//! Linux on x86-64 only, as the protocol is; elsewhere everything answers [`Status::NotSupported`].

mod elf;
mod environment;
mod inspect;
mod loader;
mod process;
mod session;
mod status;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod frame;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod remote;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[path = "remote_elsewhere.rs"]
mod remote;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod trace;

pub use environment::Environment;
pub use inspect::{Generation, Inspection, Ready, RegistrationLibrary, inspect};
pub use process::{children, descendants};
pub use session::{Session, Tree};
pub use status::{Error, Status, registration_code};

/// Name of the thread that attachers stop, in `/proc/PID/task/TID/comm`.
pub const LISTENER: &str = "rocp-bg-attach";

/// The variable with which a program has to be started so that a tool can be attached to it.
pub const PREPARE: &str = "ROCP_TOOL_ATTACH";
