//! Hardware counters as text: definition files, and the expressions that derive metrics from counters.
//!
//! [`definitions`] reads counter definition files, [`expression`] parses what stands in them, [`evaluate`]
//! computes values, and lists a metric's leaves and instances. Nothing in here depends on a
//! device: counters and their values come in through the traits of [`evaluate`], for which [`Table`] is the simplest
//! implementation.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod definitions;
pub mod dimension;
pub mod evaluate;
pub mod expression;
pub mod table;

pub use definitions::Definitions;
pub use dimension::{Dimension, Position, Shape};
pub use evaluate::{Metrics, Sample, Values};
pub use expression::Expression;
pub use table::Table;
