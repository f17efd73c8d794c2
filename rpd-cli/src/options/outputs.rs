//! Options that select the files to write and their directory.

use std::path::PathBuf;

use rpd_core::options::Format;
use rpd_core::{naming, os_text};

use super::given::OptionValues;
use super::inherit::number;
use super::resolve::Environment;
use crate::failure::Failure;

/// Inherited formats, then those given, else the default.
pub(super) fn formats(
    given: &OptionValues,
    environment: &Environment,
) -> Result<Vec<Format>, Failure> {
    let mut words: Vec<(String, &str)> = Vec::new();
    if let Some(inherited) = environment.get("ROCPROF_OUTPUT_FORMAT") {
        for word in inherited.split([' ', '\t', ',', ';', ':']) {
            if !word.is_empty() {
                words.push((word.to_ascii_lowercase(), "ROCPROF_OUTPUT_FORMAT"));
            }
        }
    }
    match given.list("output-format") {
        Some(given) => words.extend(
            given
                .iter()
                .map(|word| (word.clone(), "argument -f/--output-format")),
        ),
        None => words.push(("rocpd".to_owned(), "")),
    }
    let mut formats = Vec::new();
    for (word, source) in words {
        let format = Format::from_word(&word).ok_or_else(|| {
            Failure::usage(format!(
                "{source}: invalid choice: '{word}' (choose from {})",
                Format::WORDS.join(", ")
            ))
        })?;
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Directory (absolute unless a placeholder leads) and prefix, as escaped text.
pub(super) fn names(
    given: &OptionValues,
    environment: &Environment,
) -> Result<(String, String), Failure> {
    let check = |long: &str, pattern: &str| {
        naming::check(pattern).map_err(|error| given.misused(long, error))
    };
    let directory = given.text("output-directory").unwrap_or_default();
    let prefix = given.text("output-file").unwrap_or_default();
    check("output-directory", directory)?;
    check("output-file", prefix)?;
    let directory = if naming::starts_with_placeholder(directory) {
        directory.to_owned()
    } else {
        let cwd = os_text::escape(environment.cwd.as_os_str());
        let absolute = match directory.starts_with('/') {
            true => directory.to_owned(),
            false => format!("{}/{directory}", cwd.trim_end_matches('/')),
        };
        match absolute.trim_end_matches('/') {
            "" => "/".to_owned(),
            trimmed => trimmed.to_owned(),
        }
    };
    let prefix = match prefix {
        "" => naming::DEFAULT_PREFIX,
        given => given,
    };
    Ok((directory, prefix.to_owned()))
}

pub(super) fn minimum_output(
    given: &OptionValues,
    environment: &Environment,
) -> Result<u64, Failure> {
    let bytes = match given.integer("minimum-output-data") {
        Some(kib) => kib.saturating_mul(1024),
        None => match environment.get("ROCPROF_MINIMUM_OUTPUT_BYTES") {
            Some(text) => number("ROCPROF_MINIMUM_OUTPUT_BYTES", text)?,
            None => 0,
        },
    };
    Ok(u64::try_from(bytes).unwrap_or(0))
}

pub(super) fn preload(given: &OptionValues, environment: &Environment) -> Vec<PathBuf> {
    let paths: Vec<&str> = match given.list("preload") {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => environment
            .get("ROCPROF_PRELOAD")
            .unwrap_or_default()
            .split(':')
            .collect(),
    };
    paths
        .into_iter()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect()
}

/// Warnings about options that name libraries which this run does not load.
pub(super) fn unused_libraries(given: &OptionValues, formats: &[Format]) -> Vec<String> {
    let mut warnings = Vec::new();
    let library = "otf2-library";
    if given.requests(library) && !formats.contains(&Format::Otf2) {
        warnings.push(format!(
            "{}: no effect without -f otf2",
            given.name(library)
        ));
    }
    let simulated = given.text("backend") == Some("sim") || given.requests("sim-gpu");
    let installation = ["rocm-root", "sdk-soversion", "sdk-version"].into_iter();
    for long in installation.filter(|long| simulated && given.requests(long)) {
        let name = given.name(long);
        warnings.push(format!(
            "{name}: no effect, since the simulated GPU needs no installation"
        ));
    }
    warnings
}

/// What follows `.so` in the names of the SDK library that are tried when no option gives it.
pub(crate) fn default_sdk_suffixes() -> Vec<String> {
    sdk_suffixes(&OptionValues::default())
}

pub(super) fn sdk_suffixes(given: &OptionValues) -> Vec<String> {
    let major = given.integer("sdk-soversion").unwrap_or(1);
    let mut suffixes = Vec::new();
    if let Some(version) = given.text("sdk-version") {
        suffixes.push(format!(".{version}"));
    }
    suffixes.push(format!(".{major}"));
    if given.integer("sdk-soversion").is_none() && given.text("sdk-version").is_none() {
        suffixes.push(String::new());
    }
    suffixes
}
