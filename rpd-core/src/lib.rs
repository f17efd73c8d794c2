//! The vocabulary of results: what the user requested (the options), and what was recorded (the session).
//!
//! A [`session::Session`] is the recording of one process: a table for each sort of records, stored by column, and lists of
//! what records refer to (agents, kernels, texts). It is read from a database by `rpd-formats`, from what a target wrote
//! by [`session::Session::open`], or made in memory:
//!
//! ```
//! use rpd_core::ids::{KernelId, Nanoseconds};
//! use rpd_core::options::KernelNames;
//! use rpd_core::session::{DispatchRow, KernelSymbol, Session};
//!
//! let mut session = Session::new();
//! session.kernel_symbols.push(KernelSymbol {
//!     id: KernelId(1),
//!     name: "_Z3addPf".to_owned(),
//!     ..KernelSymbol::default()
//! });
//! session.dispatches.push(DispatchRow {
//!     start: Nanoseconds(1_000),
//!     end: Nanoseconds(4_500),
//!     kernel: KernelId(1),
//!     ..DispatchRow::default()
//! });
//! session.sort();
//!
//! // Index `i` of each column belongs to the same dispatch.
//! let kernels = session.kernels(KernelNames::default());
//! let times = kernels.dispatches;
//! for i in times.indices() {
//!     let duration = times.end[i].0 - times.start[i].0;
//!     println!("{}: {duration} ns", kernels.name(i));
//!     assert_eq!((kernels.name(i), duration), ("add(float*)", 3_500));
//! }
//! ```
//!
//! `docs/library.md` tells how other programs use this crate, and what of it is stable.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod agent;
pub mod compat;
pub mod domain;
pub mod ids;
pub mod launcher;
pub mod naming;
pub mod options;
pub mod procfs;
pub mod session;
pub mod stats;
pub mod storage;
pub mod text;

pub use rpd_spool as spool;
pub use rpd_spool::{environment, kernel_name};
