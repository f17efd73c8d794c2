//! Plays a capture back over a HIP runtime.
//!
//! | module | subject |
//! |---|---|
//! | `player` | the calls of a capture, one after the other |
//! | `checks` | what is checked before a replay begins |
//! | `calls` | how each kind of call is made again |
//! | `arguments` | handles and addresses of the capture become those of the replay |
//! | `launch` | launches of kernels |
//! | `stream_capture` | captures of streams as graphs |
//! | `code` | modules and device variables |
//! | `memory` | allocations and frees |
//! | `virtual_memory` | addresses that the program reserves, and what it maps there |
//! | `images` | arrays, textures and surfaces |
//! | `references` | texture references |
//! | `nodes` | parameters of graph nodes |
//! | `addresses` | where captured memory lies in the replay |
//! | `host` | host memory of the program |
//! | `host_use` | work under way that may access that memory |
//! | `hip` | the runtime, loaded from a library |
//! | `code_places` | addresses in code objects that lie in memory |
//! | `arrays` | the content of arrays |
//! | `verify` | comparison of results with those that were captured |
//! | `repeat` | results of another replay |
//! | `kernel` | one launch, many times |
//! | `graph_kernel` | one kernel of a graph |
//! | `kernel_name` | kernels by the names that users give |
//! | `fault` | the status when the runtime aborts the process |
//! | `excerpt` | captures of some calls, with the memory that they find |
//! | `self_test` | a few calls that show whether a runtime works |

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod addresses;
mod arguments;
mod arrays;
mod calls;
mod checks;
mod code;
mod code_places;
mod error;
mod excerpt;
mod fault;
mod graph_kernel;
mod hip;
mod host;
mod host_use;
mod images;
mod kernel;
mod kernel_name;
mod launch;
mod memory;
mod nodes;
mod player;
mod references;
mod repeat;
mod self_test;
mod stream_capture;
mod verify;
mod virtual_memory;

pub use error::{ReplayError, Status};
pub use excerpt::{Excerpt, Part, excerpt};
pub use fault::exit_on_abort;
pub use kernel::{KernelChoice, KernelRuns};
pub use kernel_name::KernelName;
pub use player::{Options, Player, Report, Step, replay};
pub use repeat::Repeat;
pub use self_test::self_test;
pub use verify::{Mismatch, Varying, Verify};

/// Addresses of memory in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The addresses of the capture, or the replay is refused.
    Same,
    /// Other addresses; arguments are translated.
    Remap,
    /// The addresses of the capture where they can be had, otherwise others.
    Auto,
}
