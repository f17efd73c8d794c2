//! The built `rpd` on targets that need no GPU, and on results. One binary, so that the tests link once.

mod hostile;
mod launch;
mod memory;
mod passes;
mod results;
mod setup;
