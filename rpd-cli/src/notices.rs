//! Messages that say what went as it should, which `--quiet` leaves out. Warnings, losses and errors are always printed.

use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Arg, ArgAction};

/// Name of the option in all commands.
pub(crate) const OPTION: &str = "quiet";

/// Letter of the option, in commands without another option of this letter.
pub(crate) const SHORT: char = 'q';

/// Whether notices are left out. One for the process: a command has one standard error.
static ARE_SILENCED: AtomicBool = AtomicBool::new(false);

/// Leaves out all notices from now on.
pub(crate) fn silence() {
    ARE_SILENCED.store(true, Ordering::Relaxed);
}

/// Whether notices are left out.
pub(crate) fn are_silenced() -> bool {
    ARE_SILENCED.load(Ordering::Relaxed)
}

/// The option of sub-commands, without its short form.
pub(crate) fn option() -> Arg {
    Arg::new(OPTION)
        .long(OPTION)
        .global(true)
        .action(ArgAction::SetTrue)
        .help("Print warnings and errors alone, and what was asked for")
}
