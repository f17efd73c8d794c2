//! The vocabulary of results: what the user requested (the options), and what was recorded (the session).

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod agent;
pub mod args;
pub mod by_id;
pub mod column;
pub mod compat;
pub mod domain;
pub mod foreign;
pub mod growing;
pub mod ids;
pub mod lookup;
pub mod memory;
pub mod naming;
pub mod near;
pub mod number_map;
pub mod optional_column;
pub mod options;
pub mod os_text;
pub mod procfs;
pub mod session;
pub mod sorted;
pub mod stats;
pub mod temporary;

pub use rpd_spool as spool;
pub use rpd_spool::{environment, kernel_name};
