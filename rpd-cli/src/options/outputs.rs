//! Files to write: their formats, directory and prefix.

use std::collections::{BTreeMap, BTreeSet};

use rpd_core::compat::Difference;
use rpd_core::environment::EnvironmentSelection;
use rpd_core::launcher;
use rpd_core::naming;
use rpd_core::options::{Format, KernelNames, Layout};
use rpd_core::text::os_text;

use super::choices::{PerfettoBackend, PerfettoFillPolicy};
use super::given::{Named, Setting};
use super::platform;
use super::provider;
use super::ranks;
use super::resolve::{Environment, Resolver};
use super::table::Given;
use super::value::{EscapedPath, OptionValue, variable_number};
use crate::failure::Failure;

/// The files to write.
pub(super) struct Files {
    /// Formats to write, each once.
    pub(super) formats: Vec<Format>,
    /// Directory as escaped text with placeholders, absolute unless one leads.
    pub(super) directory: String,
    /// Prefix of their names, as escaped text with placeholders.
    pub(super) prefix: String,
    /// Variables of the target that they hold.
    pub(super) environment: EnvironmentSelection,
    /// Variables of rpd that their names are made of.
    pub(super) naming_variables: BTreeMap<String, String>,
    /// Variables of the target to record for their names, besides those that they hold.
    pub(super) recorded_variables: Vec<String>,
    /// Why this rank has none, if it has none.
    pub(super) unprofiled: Option<String>,
}

impl Resolver<'_> {
    /// The files to write.
    ///
    /// # Errors
    /// A format or a placeholder does not exist, or ranks of MPI are given that cannot be.
    pub(super) fn files(&mut self, given: &Given) -> Result<Files, Failure> {
        self.warn_all(unused_perfetto_settings(given));
        let formats = formats(given, self.environment)?;
        self.warn_all(unused_library(given, &formats));
        self.warn_all(without_events(given, &formats));
        self.warn_all(unused_schema(given, &formats));
        self.warn_all(platform::unused_installation(given));
        let (directory, prefix) = names(given, self.environment)?;
        let ranks = ranks::resolve(given, self.environment)?;
        let patterns = [directory.as_str(), prefix.as_str()];
        if let Some(number) = ranks.reported_count.filter(|number| *number > 1)
            && !patterns.into_iter().any(naming::distinguishes_ranks)
        {
            self.warn(format!(
                "{}: if {number} ranks run rpd, files of all but one get their process id appended: add %rank% or %pid%",
                given.output_file.name()
            ));
        }
        let mut naming_variables = self.naming_variables(&patterns);
        naming_variables.extend(ranks.naming);
        let environment = given.output_environment.value().unwrap_or_default();
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let mut recorded_variables: BTreeSet<&str> = patterns
            .into_iter()
            .flat_map(naming::variables)
            .chain(naming_variables.keys().map(String::as_str))
            .filter(|name| name.bytes().all(is_word) && !environment.keeps(name))
            .collect();
        // Whatever else is stored: without its place a recording cannot be told from those of other ranks.
        for name in launcher::variables() {
            if !environment.keeps(name) {
                recorded_variables.insert(name);
            }
        }
        Ok(Files {
            recorded_variables: recorded_variables.into_iter().map(str::to_owned).collect(),
            formats,
            environment,
            naming_variables,
            unprofiled: ranks.unprofiled,
            directory,
            prefix,
        })
    }

    /// Variables of rpd that these patterns of names refer to, and those that names of the original's outputs are made of.
    fn naming_variables(&self, patterns: &[&str]) -> BTreeMap<String, String> {
        let mut variables = self.naming.clone();
        let mut patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        // Values may name further variables.
        while let Some(pattern) = patterns.pop() {
            for name in naming::variables(&pattern) {
                if !variables.contains_key(name)
                    && let Some(value) = self.environment.variables.get(name)
                {
                    let value = os_text::escape_str(value).into_owned();
                    variables.insert(name.to_owned(), value.clone());
                    patterns.push(value);
                }
            }
        }
        variables
    }
}

/// Inherited formats, then those given, else the default.
///
/// # Errors
/// The variable names a format that does not exist.
fn formats(given: &Given, environment: &Environment) -> Result<Vec<Format>, Failure> {
    const VARIABLE: &str = "ROCPROF_OUTPUT_FORMAT";
    let mut words = match environment.get(VARIABLE) {
        Some(text) => Vec::from_variable(given.output_format.spec, VARIABLE, text)?,
        None => Vec::new(),
    };
    match given.output_format.get() {
        Some(given) => words.extend(given),
        None => words.push(Format::Rocpd),
    }
    let mut formats = Vec::new();
    for format in words {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Layout of databases.
pub(super) fn layout(given: &Given, environment: &Environment) -> Layout {
    let original = environment.compat.has(Difference::DatabaseLayout);
    let usual = if original {
        Layout::Original
    } else {
        Layout::Rpd
    };
    given.layout.value().unwrap_or(usual)
}

/// How kernels are named.
pub(super) fn kernel_names(given: &Given, environment: &Environment) -> KernelNames {
    KernelNames {
        mangled: given.mangled_kernels.is_on(),
        truncate: given.truncate_kernels.is_on(),
        rename: given.kernel_rename.is_on(),
        original: environment.compat.has(Difference::KernelNames),
    }
}

/// Directory and prefix of the files, as escaped text.
///
/// # Errors
/// A placeholder does not exist.
fn names(given: &Given, environment: &Environment) -> Result<(String, String), Failure> {
    let pattern = |option: &Setting<EscapedPath>| -> Result<String, Failure> {
        let pattern = option.get().map(|path| path.0.clone()).unwrap_or_default();
        naming::check(&pattern).map_err(|error| option.misused(error))?;
        Ok(pattern)
    };
    let directory = pattern(&given.output_directory)?;
    let mut prefix = pattern(&given.output_file)?;
    if prefix.is_empty() {
        prefix.push_str(naming::DEFAULT_PREFIX);
    }
    if naming::starts_with_placeholder(&directory) {
        return Ok((directory, prefix));
    }
    let absolute = if directory.starts_with('/') {
        directory
    } else {
        let cwd = os_text::escape(environment.cwd.as_os_str());
        format!("{}/{directory}", cwd.trim_end_matches('/'))
    };
    let directory = match absolute.trim_end_matches('/') {
        "" => "/".to_owned(),
        trimmed => trimmed.to_owned(),
    };
    Ok((directory, prefix))
}

/// Bytes of records below which a process has no files.
///
/// # Errors
/// The inherited variable is no number.
pub(super) fn minimum_bytes(given: &Given, environment: &Environment) -> Result<u64, Failure> {
    const VARIABLE: &str = "ROCPROF_MINIMUM_OUTPUT_BYTES";
    let bytes = match (given.minimum_output_data.value(), environment.get(VARIABLE)) {
        (Some(kib), _) => kib.saturating_mul(1024),
        (None, Some(text)) => variable_number(VARIABLE, text)?,
        (None, None) => 0,
    };
    Ok(u64::try_from(bytes).unwrap_or(0))
}

/// A warning about a library that no format needs.
fn unused_library(given: &Given, formats: &[Format]) -> Option<String> {
    let library = &given.otf2_library;
    (library.is_requested() && !formats.contains(&Format::Otf2))
        .then(|| format!("{}: no effect without -f otf2", library.name()))
}

/// A warning about a schema that no format has.
fn unused_schema(given: &Given, formats: &[Format]) -> Option<String> {
    let schema = &given.rocpd_schema;
    (schema.is_requested() && !formats.contains(&Format::Rocpd))
        .then(|| format!("{}: no effect without -f rocpd", schema.name()))
}

/// A warning when HIP events, launches of graphs or events of the kernel driver are requested by name, and no format of the run
/// has them.
fn without_events(given: &Given, formats: &[Format]) -> Option<String> {
    let lacks = |option: &Named, format: &Format| match format {
        Format::Rocpd | Format::Parquet => false,
        Format::Json => option.key().starts_with("kfd_"),
        Format::Csv | Format::Pftrace => option.key().starts_with("hip_"),
        Format::Otf2 | Format::Html => true,
    };
    let option = provider::newer_requested(given)
        .filter(|option| {
            let key = option.key();
            key.starts_with("hip_") || key.starts_with("kfd_")
        })
        .find(|option| formats.iter().all(|format| lacks(option, format)))?;
    Some(format!(
        "{}: {} has none of its records: add -f rocpd, which `rpd convert` makes CSV of",
        option.flag(),
        formats.first().map_or("no format", |format| format.word())
    ))
}

/// A warning about settings of a tracing service that rpd does without. What describes rpd anyway needs no warning.
fn unused_perfetto_settings(given: &Given) -> Option<String> {
    let settings: [(&Named, bool); 4] = [
        (
            &given.perfetto_backend,
            given.perfetto_backend.value() != Some(PerfettoBackend::InProcess),
        ),
        (&given.perfetto_buffer_size, true),
        (
            &given.perfetto_buffer_fill_policy,
            given.perfetto_buffer_fill_policy.value() != Some(PerfettoFillPolicy::Discard),
        ),
        (&given.perfetto_shmem_size_hint, true),
    ];
    let names: Vec<String> = settings
        .into_iter()
        .filter(|(option, is_unused)| option.is_given() && *is_unused)
        .map(|(option, _)| option.flag())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: no effect, since rpd writes traces straight to their files and never discards",
            names.join(", ")
        )
    })
}
