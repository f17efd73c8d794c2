//! Plays a capture back over a HIP runtime.
//!
//! | module | subject |
//! |---|---|
//! | `player` | the calls of a capture, one after the other |
//! | `calls` | how each kind of call is made again |
//! | `addresses` | where captured memory lies in the replay |
//! | `host` | host memory of the program |
//! | `hip` | the runtime, loaded from a library |
//! | `verify` | comparison of results with those that were captured |
//! | `kernel` | one launch, many times |

mod addresses;
mod calls;
mod error;
mod hip;
mod host;
mod kernel;
mod player;
mod verify;

pub use error::{ReplayError, Status};
pub use kernel::{KernelChoice, KernelRuns};
pub use player::{Options, Player, Report, Step, replay};
pub use verify::{Mismatch, Verify};

/// Which addresses memory has in a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Those of the capture, or the replay is refused.
    Same,
    /// Others; arguments are translated.
    Remap,
    /// Those of the capture where they can be had, otherwise others.
    Auto,
}
