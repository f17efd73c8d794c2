//! The file of `--extra-counters`.

use std::path::Path;

use rpd_spool::regular_file::{self, FileError};

use super::resolve::Resolver;
use super::table::Given;
use crate::failure::Failure;

/// Largest size of a file of definitions, in bytes. ROCm's own definitions for all GPUs take half a megabyte.
const LARGEST: u64 = 4 << 20;

/// The text of a file of counter definitions.
///
/// # Errors
/// When it is no regular file, too large, or cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    regular_file::read_text(path, LARGEST)
}

impl Resolver<'_> {
    /// Text of the definitions of further counters; empty without some.
    ///
    /// # Errors
    /// There is no such file, or its text defines no counters.
    pub(super) fn extra_counters(&mut self, given: &Given) -> Result<String, Failure> {
        let option = &given.extra_counters;
        let file = match option.text() {
            None => return Ok(String::new()),
            Some("") if !option.is_on_command_line() => return Ok(String::new()),
            Some("") => {
                return Err(option.misused("no file is named: give a YAML file, or leave it out"));
            }
            Some(file) => file,
        };
        // The variable holds the definitions themselves.
        if option.variable().is_some() {
            return Ok(file.to_owned());
        }
        if let Some(text) = self.extra_counters.get(file) {
            return Ok(text.clone());
        }
        let text = read(&self.environment.cwd.join(file))
            .map_err(|error| option.refused(format_args!("{file}: {error}")))?;
        if text.trim().is_empty() {
            self.warn(format!(
                "{}: {file} is empty: it defines no counters",
                option.name()
            ));
        } else if let Err(error) = rpd_metric::Definitions::parse(&text) {
            return Err(option.refused(format_args!("{file}: {error}")));
        }
        self.extra_counters.insert(file.to_owned(), text.clone());
        Ok(text)
    }
}
