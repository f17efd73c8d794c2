//! The formats of flame graphs, which several commands write.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use rpd_formats::flame::Format;

use crate::failure::Failure;

/// Format of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FlameFormat {
    /// A flame graph as a page for a browser, without further files
    #[value(alias = "flame")]
    Html,
    /// One line per stack, for flamegraph.pl and the like
    #[value(alias = "collapsed")]
    Folded,
    /// For speedscope.app
    Speedscope,
    /// For go tool pprof
    Pprof,
    /// For profiler.firefox.com
    Firefox,
}

impl From<FlameFormat> for Format {
    fn from(format: FlameFormat) -> Format {
        match format {
            FlameFormat::Html => Format::Html,
            FlameFormat::Folded => Format::Folded,
            FlameFormat::Speedscope => Format::Speedscope,
            FlameFormat::Pprof => Format::Pprof,
            FlameFormat::Firefox => Format::Firefox,
        }
    }
}

impl FlameFormat {
    /// Refuses a format that has no differences where there is a `--diff`, and one that is not for terminals where it would go to
    /// one because no file is given.
    pub(super) fn refuse_unusable(
        self,
        command: &str,
        has_difference: bool,
        has_file: bool,
    ) -> Result<(), Failure> {
        let format = Format::from(self);
        if has_difference && !format.has_differences() {
            return Err(Failure::usage(format!(
                "{command}: --diff can be written as html and as folded: the other formats of flame graphs have no differences"
            )));
        }
        if !has_file && format.is_for_files() && std::io::stdout().is_terminal() {
            return Err(Failure::usage(format!(
                "{command}: give a file to write to: -o FILE"
            )));
        }
        Ok(())
    }
}
