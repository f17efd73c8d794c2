//! The environment of the target.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rpd_core::options::{Backend, LogLevel, Options};
use rpd_core::text::os_text;
use rpd_spool::regular_file::{self, Links};
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};

use super::backend::Provider;
use super::libraries;
use crate::failure::Failure;

/// Variables that differ from the inherited ones; `None` removes a variable.
pub(crate) type Changes = BTreeMap<&'static str, Option<OsString>>;

/// The SDK for `librpd_register.so` to open.
const SDK_VARIABLE: &str = "RPD_SDK";

/// The library to which the registration library passes the runtimes' tables.
const REGISTER_VARIABLE: &str = "ROCPROFILER_REGISTER_LIBRARY";

/// The variable that names the GPU to simulate.
pub(crate) const SIM_GPU_VARIABLE: &str = "RPD_SIM_GPU";

/// The switch of the SDK, without which it samples nothing. Its presence stands for `--pc-sampling-beta-enabled`.
pub(crate) const BETA_VARIABLE: &str = "ROCPROFILER_PC_SAMPLING_BETA_ENABLED";

/// The variable that names the library for CUDA to open when a program initialises it.
const CUDA_VARIABLE: &str = "CUDA_INJECTION64_PATH";

/// The variable that names the library for NVTX to pass marks and ranges to.
const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// The changes for one pass.
pub(crate) fn changes(
    options: &Options,
    provider: &Provider,
    run_directory: &Path,
    suppress_marker_preload: bool,
    inherited: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Changes, Failure> {
    let collector = provider.collector.as_os_str();
    let register = provider.register.as_os_str();
    let mut changes = Changes::new();
    let mut set = |name, value| changes.insert(name, Some(value));
    set(SPOOL_VARIABLE, run_directory.into());
    set(COLLECT_VARIABLE, options.collector.to_text().into());
    if let Some(gpu) = &options.sim_gpu {
        set(SIM_GPU_VARIABLE, gpu.into());
    }
    if options.collector.sampling.is_some() {
        set(BETA_VARIABLE, "1".into());
    }

    // If the library is missing, the loader warns once per process and continues.
    for library in &options.preload {
        if library.components().count() > 1 && !library.is_file() {
            return Err(Failure::failed(format!(
                "--preload: {} does not exist",
                library.display()
            )));
        }
    }
    let mut preload = preloaded(options, inherited("LD_PRELOAD"));
    push_unique(&mut preload, register);
    // The collector receives pause and resume through it as well.
    let collector_options = &options.collector;
    let obeys_markers = collector_options.traces.marker
        || collector_options.selected_regions
        || collector_options.capture.markers;
    if obeys_markers
        && !suppress_marker_preload
        && let Some(roctx) = &provider.roctx
    {
        push_unique(&mut preload, roctx.as_os_str());
    }
    set("LD_PRELOAD", join(&preload, ":"));

    let path = directories(provider, inherited("LD_LIBRARY_PATH").as_deref());
    let mut tools = words(inherited("ROCP_TOOL_LIBRARIES"), &[':']);
    for tool in tools.iter().filter(|tool| *tool != collector) {
        check_tool(tool, &path)?;
    }
    if tools.is_empty() {
        // The SDK must not initialise before `librpd_register.so` has passed it the collector.
        const EARLY: &str = "ROCPROFILER_LIBRARY_CTOR";
        for name in [EARLY, "ROCP_TOOL_LIBRARIES"] {
            if inherited(name).is_some() {
                changes.insert(name, None);
            }
        }
    } else {
        // The collector is added to the tools that the SDK opens. SDK 1.0 ignores the text after the last colon.
        push_unique(&mut tools, collector);
        let mut tools = join(&tools, ":");
        tools.push(":");
        changes.insert("ROCP_TOOL_LIBRARIES", Some(tools));
    }
    let sdk = inherited(REGISTER_VARIABLE)
        .filter(|library| !library.is_empty() && library != register)
        .unwrap_or_else(|| provider.sdk.clone().into_os_string());
    let mut set = |name, value| changes.insert(name, Some(value));
    set(SDK_VARIABLE, sdk);
    set(REGISTER_VARIABLE, register.to_owned());
    set("LD_LIBRARY_PATH", joined(path));

    // The runtime of AddressSanitizer ends a program in which a library is loaded before it. The collector may be: it
    // replaces no function that the runtime replaces. Programs without that runtime do not read the variable.
    let mut sanitizer = inherited("ASAN_OPTIONS").unwrap_or_default();
    if !sanitizer.is_empty() {
        sanitizer.push(":");
    }
    sanitizer.push("verify_asan_link_order=0");
    changes.insert("ASAN_OPTIONS", Some(sanitizer));

    changes.extend(cuda_variables(options, collector, inherited)?);
    changes.extend(rank_variables(options));
    if options.collector.kokkos {
        let mut libraries = words(inherited("KOKKOS_TOOLS_LIBS"), &[';']);
        push_unique(&mut libraries, collector);
        changes.insert("KOKKOS_TOOLS_LIBS", Some(join(&libraries, ";")));
    }
    let level = match options.log_level {
        Some(LogLevel::Fatal) => "fatal",
        Some(LogLevel::Error) => "error",
        Some(LogLevel::Warning) => "warning",
        Some(LogLevel::Info) => "info",
        Some(LogLevel::Trace) => "trace",
        Some(LogLevel::Env | LogLevel::Config) | None => "",
    };
    if !level.is_empty() {
        for variable in [
            "ROCPROF_LOG_LEVEL",
            "ROCPROFILER_LOG_LEVEL",
            "ROCTX_LOG_LEVEL",
        ] {
            changes.insert(variable, Some(level.into()));
        }
    }
    Ok(changes)
}

/// The variables by which CUDA and NVTX find the collector. CUDA ignores a list of libraries, so the place of another tool is
/// left to it where the target is to run on AMD's platform, and is an error otherwise.
fn cuda_variables(
    options: &Options,
    collector: &OsStr,
    inherited: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Changes, Failure> {
    let mut names = vec![CUDA_VARIABLE];
    if options.collector.traces.marker {
        names.push(NVTX_VARIABLE);
    }
    let mut changes = Changes::new();
    for name in names {
        let other = inherited(name).filter(|value| !value.is_empty() && value != collector);
        match (other, options.backend) {
            (None, _) => {
                changes.insert(name, Some(collector.to_owned()));
            }
            (Some(_), Backend::Rocm | Backend::Sim) => {}
            (Some(other), Backend::Auto | Backend::Cuda) => {
                return Err(Failure::failed(format!(
                    "{name} (set in the environment) names {}, the library of another tool, and CUDA opens one only: unset \
                     it to record with rpd",
                    Path::new(&other).display()
                )));
            }
        }
    }
    Ok(changes)
}

/// The variables that name the variables with the rank and the number of ranks.
pub(crate) fn rank_variables(options: &Options) -> Changes {
    ["ROCPROF_MPI_RANK_VAR", "ROCPROF_MPI_SIZE_VAR"]
        .into_iter()
        .filter_map(|name| {
            let value = options.launch_environment.get(name)?;
            Some((name, Some(os_text::unescape(value))))
        })
        .collect()
}

/// Libraries to preload for the user: those of `--preload`, then the inherited ones.
fn preloaded(options: &Options, inherited: Option<OsString>) -> Vec<OsString> {
    let own = options.preload.iter();
    own.map(|path| path.clone().into_os_string())
        .chain(words(inherited, &[':', ' ']))
        .collect()
}

/// `LD_PRELOAD` of a process that is not recorded.
pub(crate) fn preload(options: &Options, inherited: Option<OsString>) -> OsString {
    join(&preloaded(options, inherited), ":")
}

/// `LD_LIBRARY_PATH` with the provider's directory.
pub(crate) fn library_path(provider: &Provider, inherited: Option<&OsStr>) -> OsString {
    joined(directories(provider, inherited))
}

fn directories(provider: &Provider, inherited: Option<&OsStr>) -> Vec<PathBuf> {
    let mut path = libraries::directories(inherited);
    path.retain(|directory| *directory != provider.directory);
    if provider.simulated {
        path.insert(0, provider.directory.clone());
    } else {
        path.push(provider.directory.clone());
    }
    path
}

fn joined(path: Vec<PathBuf>) -> OsString {
    let path: Vec<OsString> = path.into_iter().map(PathBuf::into_os_string).collect();
    join(&path, ":")
}

fn words(value: Option<OsString>, separators: &[char]) -> Vec<OsString> {
    // Paths that are not UTF-8 keep their bytes: only the ASCII separators are parsed.
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    value
        .unwrap_or_default()
        .as_bytes()
        .split(|byte| separators.contains(&char::from(*byte)))
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect()
}

fn push_unique(list: &mut Vec<OsString>, item: &OsStr) {
    if !list.iter().any(|present| present == item) {
        list.push(item.to_owned());
    }
}

fn join(words: &[OsString], separator: &str) -> OsString {
    words.join(OsStr::new(separator))
}

/// The SDK aborts the target when it cannot open a library of the list, so each is checked before.
fn check_tool(tool: &OsStr, path: &[PathBuf]) -> Result<(), Failure> {
    let file = Path::new(tool);
    let found = if file.components().count() > 1 || file.is_absolute() {
        file.is_file().then(|| file.to_owned())
    } else {
        let name = tool.to_string_lossy().into_owned();
        let mut directories = path.to_vec();
        for standard in ["/lib64", "/usr/lib64", "/lib", "/usr/lib"] {
            directories.push(PathBuf::from(standard));
        }
        libraries::first_with(&directories, std::slice::from_ref(&name))
            .or_else(|| libraries::in_loader_cache(&name))
    };
    let readable = found.as_ref().is_some_and(|file| {
        use std::io::Read;
        let mut magic = [0; 4];
        regular_file::open(file, Links::Follow)
            .is_ok_and(|(mut file, _)| file.read_exact(&mut magic).is_ok())
            && magic == *b"\x7fELF"
    });
    if readable {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "ROCP_TOOL_LIBRARIES (set in the environment) names {}, which {}: the SDK would abort the target; \
         remove it from the list",
        file.display(),
        if found.is_some() {
            "is not a shared library that can be read"
        } else {
            "does not exist"
        }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(simulated: bool) -> Provider {
        Provider {
            simulated,
            sdk: PathBuf::from("/sdk/sdk"),
            directory: PathBuf::from("/sdk"),
            roctx: Some(PathBuf::from("/sdk/roctx")),
            collector: PathBuf::from("/rpd/collect"),
            register: PathBuf::from("/rpd/register"),
            fallback: None,
        }
    }

    fn value(
        options: &Options,
        simulated: bool,
        environment: &[(&str, &str)],
        name: &str,
    ) -> String {
        changes(
            options,
            &provider(simulated),
            Path::new("/run"),
            false,
            &|name| {
                environment
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| OsString::from(value))
            },
        )
        .expect("no inherited tools that are missing")
        .get(name)
        .map_or_else(String::new, |value| match value {
            Some(value) => value.to_string_lossy().into_owned(),
            None => "(removed)".to_owned(),
        })
    }

    /// Checks command-line-224 to command-line-230; the SDK core stays out of the list by design.
    #[test]
    fn preload_puts_the_users_libraries_in_order() {
        let with = |preload: &[&str], marker: bool| {
            let mut options = Options {
                preload: preload.iter().map(PathBuf::from).collect(),
                ..Options::default()
            };
            options.collector.traces.marker = marker;
            options
        };
        let mut regions = with(&[], false);
        regions.collector.selected_regions = true;
        for (case, options, inherited, expected) in [
            (
                "command-line-224",
                with(&["A", "B"], false),
                "",
                "A:B:/rpd/register",
            ),
            (
                "command-line-225",
                with(&["A"], false),
                "X",
                "A:X:/rpd/register",
            ),
            (
                "command-line-228",
                with(&[], true),
                "",
                "/rpd/register:/sdk/roctx",
            ),
            (
                "command-line-230",
                with(&["A"], true),
                "X Y",
                "A:X:Y:/rpd/register:/sdk/roctx",
            ),
            (
                "unnumbered",
                with(&[], false),
                ":/rpd/register:",
                "/rpd/register",
            ),
            ("unnumbered", regions, "", "/rpd/register:/sdk/roctx"),
        ] {
            let environment = [("LD_PRELOAD", inherited)];
            assert_eq!(
                value(&options, true, &environment, "LD_PRELOAD"),
                expected,
                "{case}"
            );
        }
        let hidden = changes(
            &with(&[], true),
            &provider(true),
            Path::new("/run"),
            true,
            &|_| None,
        )
        .expect("no inherited tools");
        assert_eq!(
            hidden["LD_PRELOAD"].as_deref(),
            Some(OsStr::new("/rpd/register")),
            "command-line-229"
        );
        let query = preload(&with(&["A"], true), Some("X:Y".into()));
        assert_eq!(query, "A:X:Y", "the query process loads no library of rpd");
    }

    #[test]
    fn library_path_gets_the_sdk_and_keeps_inherited_entries() {
        let options = Options::default();
        let environment = [("LD_LIBRARY_PATH", "/a::/sdk:/b")];
        assert_eq!(
            value(&options, true, &environment, "LD_LIBRARY_PATH"),
            "/sdk:/a:/b"
        );
        assert_eq!(
            value(&options, false, &environment, "LD_LIBRARY_PATH"),
            "/a:/b:/sdk"
        );
        assert_eq!(value(&options, false, &[], "RPD_SPOOL"), "/run");
    }

    #[test]
    fn environment_names_the_simulated_gpu() {
        let mut options = Options::default();
        let name = |options: &Options| {
            let none = |_: &str| None;
            let changes = changes(options, &provider(true), Path::new("/run"), true, &none);
            changes
                .expect("no inherited tools")
                .get("RPD_SIM_GPU")
                .cloned()
                .flatten()
        };
        assert_eq!(name(&options), None, "what is inherited stays");
        options.sim_gpu = Some("gfx942".to_owned());
        assert_eq!(name(&options).as_deref(), Some(OsStr::new("gfx942")));
    }

    #[test]
    fn environment_sends_tables_through_the_register_library() {
        let value = |environment: &[(&str, &str)], name: &str| {
            value(&Options::default(), false, environment, name)
        };
        let sdk = |environment: &[(&str, &str)]| value(environment, "RPD_SDK");
        let library = |path| [("ROCPROFILER_REGISTER_LIBRARY", path)];
        assert_eq!(
            value(&library("/other"), "ROCPROFILER_REGISTER_LIBRARY"),
            "/rpd/register"
        );
        assert_eq!(sdk(&[]), "/sdk/sdk");
        assert_eq!(sdk(&library("/other")), "/other");
        assert_eq!(sdk(&library("")), "/sdk/sdk");
        assert_eq!(sdk(&library("/rpd/register")), "/sdk/sdk", "rpd under rpd");
        assert!(
            include_str!("../../../rpd-register/src/sdk.rs")
                .contains(&format!("VARIABLE: &str = \"{SDK_VARIABLE}\"")),
            "the library that reads it calls it otherwise"
        );
    }

    #[test]
    fn environment_lists_the_collector_only_beside_other_tools() {
        let value = |environment: &[(&str, &str)], name: &str| {
            value(&Options::default(), false, environment, name)
        };
        let early = ("ROCPROFILER_LIBRARY_CTOR", "1");
        for (list, expected, constructor) in [
            (None, "", "(removed)"),
            (Some(""), "(removed)", "(removed)"),
            (Some(":"), "(removed)", "(removed)"),
            (Some("libc.so.6"), "libc.so.6:/rpd/collect:", ""),
            (
                Some("libc.so.6:libm.so.6"),
                "libc.so.6:libm.so.6:/rpd/collect:",
                "",
            ),
            (
                Some("/rpd/collect:libc.so.6"),
                "/rpd/collect:libc.so.6:",
                "",
            ),
            (Some("/rpd/collect"), "/rpd/collect:", ""),
        ] {
            let mut environment = vec![early];
            environment.extend(list.map(|list| ("ROCP_TOOL_LIBRARIES", list)));
            assert_eq!(
                value(&environment, "ROCP_TOOL_LIBRARIES"),
                expected,
                "{list:?}"
            );
            assert_eq!(value(&environment, early.0), constructor, "{list:?}");
        }
        assert_eq!(value(&[], early.0), "");
    }

    #[test]
    fn environment_appends_the_collector_to_kokkos_tools() {
        let mut options = Options::default();
        options.collector.kokkos = true;
        let environment = [("KOKKOS_TOOLS_LIBS", "other.so")];
        assert_eq!(
            value(&options, true, &environment, "KOKKOS_TOOLS_LIBS"),
            "other.so;/rpd/collect"
        );
        assert_eq!(
            value(&Options::default(), true, &environment, "KOKKOS_TOOLS_LIBS"),
            ""
        );
    }

    #[test]
    fn environment_check_finds_inherited_tools_that_cannot_be_opened() {
        for (list, fails) in [
            ("/proc/nonexistent/tool.so", true),
            ("libno-such-tool-anywhere.so.9", true),
            ("/etc/hostname", true),
            ("libc.so.6:", false),
        ] {
            let result = changes(
                &Options::default(),
                &provider(false),
                Path::new("/run"),
                false,
                &|name| (name == "ROCP_TOOL_LIBRARIES").then(|| list.into()),
            );
            assert_eq!(result.is_err(), fails, "{list}");
        }
    }
}
