//! The `rpd` executable; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    rpd_cli::main()
}
