//! Call stacks of the calling thread: native frames, Python frames, or both merged, as one number per stack.
//!
//! [`Stacks::capture`] walks the stack of the thread that calls it, and returns the id of a node of a call tree that is
//! shared by the whole process. What the ids mean (modules, Python code objects, locations, nodes) is reported once to the
//! [`Sink`] that the caller supplies; nothing is looked up by name in the process. A capture takes no lock that another
//! thread could hold and, once a thread has made its first capture, allocates nothing.
//!
//! Layers, each uses only those above it:
//!
//! - `copy`: copies of memory that may go away;
//! - [`facts`]: what is reported to the sink;
//! - [`options`]: what is captured;
//! - [`flags`]: what a capture was like;
//! - `region`, `interner`: memory and numbers, shared without locks;
//! - `tree`, `path`, `cut`: locations, the call tree, a thread's path through it, and what is kept of a deep one;
//! - `native`: the native frames of a thread;
//! - [`python`]: the Python frames of a thread;
//! - `merge`: Python frames among native frames;
//! - `capture`: the entry, and the per-thread state.
//!
//! x86-64 Linux only.

mod capture;
mod copy;
mod cut;
pub mod facts;
pub mod flags;
mod interner;
mod merge;
mod native;
pub mod options;
mod path;
pub mod python;
mod region;
mod tree;

pub use capture::{Captured, Stacks, ThreadStacks};
pub use facts::{JitObject, Location, LocationKind, Module, Node, PythonCode, Sink};
pub use native::counts::Counts;
pub use options::{FrameClass, Mode, Options};
pub use python::Interpreter;
