//! Decodes the thread traces of AMD GPUs.
//!
//! [`decode`] reads a stream and hands [`Record`]s to a [`Sink`]: when waves ran on which compute unit, and which instructions
//! the waves of the traced unit executed, when, and how long each of them was stalled. It gets the instructions at an
//! address from a [`Code`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod abi;
mod barrier;
mod code;
mod decoder;
mod diagnosis;
mod gfx9;
mod header;
mod line;
mod listing;
mod occupancy;
mod output;
mod pending;
mod plugin;
mod rdna;
mod record;
mod registers;
mod stalls;
mod stitch;
mod ui;
mod waits;
mod window;

pub use code::CodeObjects;
pub use decoder::{Error, Token, decode, tokens};
pub use diagnosis::Diagnosis;
pub use gfx9::{Gfx9Token, Misc, Place};
pub use header::{Generation, Header, HeaderError};
pub use listing::{CodeLine, Listing};
pub use occupancy::{OccupancySums, UnitWaves};
pub use plugin::{Library, PluginError, find_library};
pub use rdna::RdnaKind;
pub use record::{
    Category, Dispatch, Event, EventKind, Info, Instruction, Occupancy, OtherSimd, Pc, PerfEvent,
    Realtime, Record, ShaderData, Sink, Span, State, Wave,
};
pub use stalls::{StallReason, Stalls};
pub use stitch::{Code, NoCode};
pub use ui::{Directory, Source};
pub use waits::waits;
