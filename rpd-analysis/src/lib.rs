//! Answers about a recording: when a GPU is idle and why, what its time goes to, which parts of a program take it, and what to
//! look at first.
//!
//! Records go in ([`records::Records`]), values come out ([`answer::Answer`]): nothing here prints, reads files or knows SQL. Times
//! are nanoseconds on the recording's clock, intervals are half-open, and wherever an answer splits a time, the parts are disjoint
//! and add up to the whole.

pub mod advise;
pub mod answer;
pub mod breakdown;
pub mod classes;
pub mod compare;
pub mod distribution;
pub mod explain;
pub mod gaps;
pub mod iterations;
pub mod kernel;
pub mod occupancy;
pub mod outliers;
pub mod records;
pub mod regions;
pub mod speed_of_light;
pub mod stats;
mod sweep;

pub use sweep::{Running, Sweep};

/// The forms of all answers.
pub const FORMS: &[answer::Form] = &[
    gaps::FORM,
    breakdown::FORM,
    regions::FORM,
    stats::FORM,
    advise::FORM,
    kernel::FORM,
    explain::FORM,
    compare::FORM,
];

#[cfg(test)]
mod examples;
