//! What the recordings of several processes say together: who is which rank of which host, how the clocks of hosts are to
//! be shifted so that they show the same time, which ranks take longer than the others, and who waits for whom in
//! collective operations.
//!
//! A [`Member`] is what is kept of each recording: recordings are read one after the other, and never all at once.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod clocks;
mod collectives;
mod groups;
mod imbalance;
mod member;
mod waits;

pub use clocks::{AlignedClock, Alignment, Basis};
pub use collectives::Collective;
pub use groups::{By, Group, Groups};
pub use imbalance::{GroupTotal, Imbalance, Straggler, imbalances, stragglers};
pub use member::{ClockOffsets, Member};
pub use waits::{Waits, waits};
