//! The vocabulary of results: what the user requested (the options), and what was recorded (the session).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod agent;
pub mod compat;
pub mod domain;
pub mod ids;
pub mod naming;
pub mod options;
pub mod procfs;
pub mod session;
pub mod stats;
pub mod storage;
pub mod text;

pub use rpd_spool as spool;
pub use rpd_spool::{environment, kernel_name};
