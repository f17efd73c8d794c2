//! The built `rpd` on targets that need no GPU, and on results. One binary, so that the tests link once.

mod destinations;
mod help;
mod hostile;
mod inputs;
mod launch;
mod memory;
mod passes;
mod results;
mod setup;
mod tables;
mod temporaries;
