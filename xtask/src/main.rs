//! Project tasks: demo, test, bless, ci, fuzz, bench, kernels, pictures, dist.

mod bare;
mod bench;
mod bless;
#[cfg(test)]
mod cases;
mod ci;
#[cfg(test)]
mod comments;
#[cfg(test)]
mod crates;
mod demo;
mod dist;
mod fuzz;
mod kernels;
#[cfg(test)]
mod layers;
mod links;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod pages;
mod pictures;
mod shell;
mod test;
#[cfg(test)]
mod words;

use std::env;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask TASK [ARGUMENTS]

  demo [--open]     build everything needed and profile the vector-ops workload on the simulator; --open: show the page
  test [--bare] [ARGUMENTS]
                    build, then run the tests of the whole workspace (arguments go to `cargo test`), and print which
                    checks were skipped, and why; --bare: with no programs but those of Rust, the C compiler and the
                    base system (on Debian)
  bless             rewrite the golden files of rpd's own output with what the tests get now
  ci [--long]       formatting, lints, tests and documentation, as continuous integration runs them;
                    --long: then tests that take minutes, and each fuzz target for a minute
  fuzz [TARGET ...] [--seconds N]
                    run fuzz targets (all of them), each for N seconds [60]; needs a C++ compiler
  bench [ROW ...]   measure; print each figure with its target (`bench --help`)
  kernels           rebuild the workloads' code objects from their sources
  pictures          draw the pictures of the documentation again, from real runs; needs chromium
  dist              a release build packed into one archive (takes many minutes)
";

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let task = arguments.next().unwrap_or_default();
    let rest: Vec<String> = arguments.collect();
    let result = match task.as_str() {
        "demo" => demo::run(&rest),
        "test" => test::run(&rest),
        "bless" => bless::run(&rest),
        "ci" => ci::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "bench" => bench::run(&rest),
        "kernels" => kernels::run(),
        "pictures" => pictures::run(),
        "dist" => dist::run(),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask {task}: {error:#}");
            ExitCode::FAILURE
        }
    }
}
