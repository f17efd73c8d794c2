//! What a process is, and whether a tool can be attached to it: read from outside, before anything is stopped.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rpd_spool::image::{DONE_PREFIX, PROCESS_PREFIX};

use crate::loader::{Loaded, Loader};
use crate::process::{Mapping, Process, State, identity};
use crate::status::{Error, Status};
use crate::{LISTENER, PREPARE};

/// File name of the registration library, without its version.
const REGISTRATION: &str = "librocprofiler-register.so";
/// File name of the library with the listener, without its version.
const ATTACH_LIBRARY: &str = "librocprofiler-sdk-attach.so";
/// Entry points of the library with the listener: each generation has one, and so has a registration library that listens
/// itself.
const ATTACH_ENTRIES: [&str; 2] = [
    "rocprofiler_attach_set_api_table",
    "rocprofiler_attach_initialize",
];
/// File name of the SDK.
const SDK: &str = "librocprofiler-sdk.so";
/// The variable that names another SDK.
const SDK_VARIABLE: &str = "ROCPROFILER_REGISTER_LIBRARY";
/// File names of GPU runtimes, without their versions.
const RUNTIMES: [&str; 3] = ["libamdhip64.so", "libhsa-runtime64.so", "librpd_sim.so"];
/// Namespaces that make a difference to what a process sees.
const NAMESPACES: [&str; 3] = ["mnt", "pid", "user"];
/// Number of the capability to trace any process.
const CAP_SYS_PTRACE: u32 = 19;

/// Generation of what upstream has for attaching.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// ROCm 7.1 and 7.2: SDK 1.1 and 1.2, registration library 0.6.0.
    First,
    /// SDK 1.3: trees of processes, PC sampling.
    Second,
    /// Anytime attachment, SDK 1.4 and later: beside a tool that is active since the program's start.
    Third,
}

/// The registration library in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationLibrary {
    /// File of the library, as the process sees it.
    pub path: PathBuf,
    /// Version in the name of the file; absent when the name has none.
    pub version: Option<String>,
    /// Address of `rocprofiler_register_attach` in the process; absent before 0.6.0.
    pub attach: Option<u64>,
    /// Address of `rocprofiler_register_detach`.
    pub detach: Option<u64>,
    /// Whether a tool may be attached beside one that is active since the program's start.
    pub anytime: bool,
}

/// Facts about a process.
#[derive(Debug)]
pub struct Inspection {
    /// Number of the process.
    pub pid: i32,
    /// Effective user.
    pub user: u32,
    /// Letter of its state in `/proc/PID/status`.
    pub state: char,
    /// Process that traces it, or its listener.
    pub traced_by: Option<i32>,
    /// Thread that attachers stop.
    pub listener: Option<i32>,
    /// The registration library, if one is loaded.
    pub registration: Option<RegistrationLibrary>,
    /// The library with the listener, if one is loaded.
    pub attach_library: Option<PathBuf>,
    /// GPU runtimes that are loaded.
    pub runtimes: Vec<PathBuf>,
    /// The SDK that it would use, if there is one.
    pub sdk: Option<PathBuf>,
    /// Whether the program was started with the variable that prepares it.
    pub prepared: bool,
    /// Libraries that were loaded before the program.
    pub preloaded: Option<OsString>,
    /// Whether its root directory is another one, as in a container.
    pub other_root: bool,
    /// Namespaces that are others than those of this process.
    pub other_namespaces: Vec<&'static str>,
    /// Directory of the recording of this process that is under way or was, as it sees it.
    pub recording: Option<PathBuf>,
    process: Process,
    loader: Loader,
    /// Whether the SDK was named in the program's environment.
    sdk_is_named: bool,
    /// Whether the directory of the recording was removed.
    recording_removed: bool,
    /// Whether the file of the registration library has been replaced since it was loaded.
    replaced: bool,
}

/// A process that a tool can be attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// What upstream has there.
    pub generation: Generation,
    /// The SDK that the process will load or has.
    pub sdk: PathBuf,
    pub(crate) listener: i32,
    pub(crate) attach: u64,
    pub(crate) detach: u64,
    /// The SDK where the process has to be told which one it is.
    pub(crate) sdk_to_name: Option<PathBuf>,
}

/// Reads what a process is.
///
/// # Errors
/// There is no such process, or it may not be looked at.
pub fn inspect(pid: i32) -> Result<Inspection, Error> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        let text = "programs can be attached to on Linux on x86-64 only";
        return Err(Error::new(Status::NotSupported, text));
    }
    let process = Process::new(pid);
    let State {
        letter,
        user,
        tracer,
        ..
    } = process.state(None)?;
    // A thread of another process has a directory in `/proc` that is not listed.
    let threads = process.threads()?;
    if threads.is_empty() || matches!(letter, 'Z' | 'X') {
        let text = format!("process {pid} has ended");
        return Err(Error::new(Status::ProcessNotFound, text));
    }
    let listener = threads.iter().find(|(_, name)| name == LISTENER);
    let listener = listener.map(|(thread, _)| *thread);
    let of_listener = listener.and_then(|thread| process.state(Some(thread)).ok());
    let traced_by = [tracer, of_listener.map_or(0, |state| state.tracer)];
    let mappings = process.mappings()?;
    let loader = Loader::from_process(process, &mappings)?;
    let environment = process.environment()?;
    let variable = |name: &str| {
        let found = environment.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let library = loader.loaded.iter().find(|it| it.is_called(REGISTRATION));
    let replaced = library.is_none() && mappings.iter().any(|it| it.deleted && is_registration(it));
    let runtimes = loader
        .loaded
        .iter()
        .filter(|it| RUNTIMES.iter().any(|name| it.is_called(name)));
    let named = variable(SDK_VARIABLE).filter(|value| !value.is_empty());
    Ok(Inspection {
        pid,
        user,
        state: letter,
        traced_by: traced_by.into_iter().find(|pid| *pid != 0),
        listener,
        registration: library.map(registration),
        attach_library: loader
            .loaded
            .iter()
            .find(|it| listens(it))
            .map(|it| it.path.clone()),
        runtimes: runtimes.map(|it| it.path.clone()).collect(),
        sdk: sdk(&loader, named.as_deref(), library),
        prepared: variable(PREPARE).is_some_and(|value| is_true(&value)),
        preloaded: variable("LD_PRELOAD").filter(|value| !value.is_empty()),
        other_root: process.other_root().unwrap_or(false),
        other_namespaces: NAMESPACES
            .into_iter()
            .filter(|name| process.other_namespace(name).unwrap_or(false))
            .collect(),
        recording: mappings.iter().find_map(recording),
        recording_removed: mappings
            .iter()
            .any(|it| it.deleted && recording(it).is_some()),
        process,
        sdk_is_named: named.is_some(),
        replaced,
        loader,
    })
}

fn is_registration(mapping: &Mapping) -> bool {
    let name = mapping.path.file_name().map(OsStr::as_bytes);
    name.is_some_and(|name| name.starts_with(REGISTRATION.as_bytes()))
}

/// Whether a library has the listener.
fn listens(library: &Loaded) -> bool {
    let named = library.is_called(ATTACH_LIBRARY) || library.is_called(REGISTRATION);
    named
        && ATTACH_ENTRIES
            .iter()
            .any(|it| library.function(it).is_some())
}

fn registration(loaded: &Loaded) -> RegistrationLibrary {
    let name = loaded
        .path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let version = name.strip_prefix(REGISTRATION).unwrap_or_default();
    let version = version.trim_start_matches('.');
    RegistrationLibrary {
        path: loaded.path.clone(),
        version: (!version.is_empty()).then(|| version.to_owned()),
        attach: loaded.function("rocprofiler_register_attach"),
        detach: loaded.function("rocprofiler_register_detach"),
        anytime: loaded
            .function("rocprofiler_register_runtime_tool_activation_callback")
            .is_some(),
    }
}

/// The SDK that the registration library of a process would use: the one that is loaded, that the environment names, or
/// that the loader finds.
fn sdk(loader: &Loader, named: Option<&OsStr>, registration: Option<&Loaded>) -> Option<PathBuf> {
    if let Some(named) = named {
        return loader.find(named.to_str()?, &[]);
    }
    let takes_tables = |it: &&Loaded| it.function("rocprofiler_set_api_table").is_some();
    // The library that hands tables on to an SDK takes them as well.
    let others = || {
        loader
            .loaded
            .iter()
            .filter(|it| !it.is_called(REGISTRATION))
    };
    let loaded = others()
        .filter(takes_tables)
        .find(|it| it.is_called(SDK))
        .or_else(|| others().find(takes_tables));
    if let Some(loaded) = loaded {
        return Some(loaded.path.clone());
    }
    let near = registration.and_then(|it| it.path.parent());
    let near: Vec<PathBuf> = near.map(Path::to_owned).into_iter().collect();
    let names = [SDK.to_owned(), format!("{SDK}.1")];
    names.iter().find_map(|name| loader.find(name, &near))
}

/// The directory of a recording, if one of its files is mapped.
fn recording(mapping: &Mapping) -> Option<PathBuf> {
    let is_stream = mapping.path.extension().is_some_and(|it| it == "seg");
    let directory = mapping.path.parent()?;
    let name = directory.file_name()?.as_bytes();
    // It has another name once its outputs are complete.
    let is_recording = [PROCESS_PREFIX, DONE_PREFIX]
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()));
    (is_stream && is_recording).then(|| directory.to_owned())
}

/// Whether the value of a variable means yes, as the registration library reads it.
fn is_true(value: &OsStr) -> bool {
    let value = value.to_string_lossy().to_lowercase();
    matches!(value.as_str(), "1" | "on" | "yes" | "true" | "y" | "t")
}

impl Inspection {
    fn refused(&self, status: Status, reason: &str) -> Error {
        Error::new(status, format!("process {}: {reason}", self.pid))
    }

    /// Whether the tool in the library `tool`, named as the process sees it, can be attached.
    ///
    /// # Errors
    /// One line: what is missing, and what to start the program with.
    pub fn ready(&self, tool: &Path) -> Result<Ready, Error> {
        let (listener, registration) = self.prepared()?;
        self.may_be_traced(listener)?;
        let sdk = self.usable_sdk()?;
        self.usable_tool(tool)?;
        let (Some(attach), Some(detach)) = (registration.attach, registration.detach) else {
            return Err(self.refused(Status::Error, &too_old(registration)));
        };
        Ok(Ready {
            generation: self.generation(),
            sdk_to_name: (!self.sdk_is_named).then(|| sdk.clone()),
            sdk,
            listener,
            attach,
            detach,
        })
    }

    /// What upstream has in the process, as far as its libraries tell.
    pub fn generation(&self) -> Generation {
        if self.registration.as_ref().is_some_and(|it| it.anytime) {
            return Generation::Third;
        }
        // `librocprofiler-sdk.so.1.1.0`; a name without a version tells nothing.
        let minor = self.sdk.as_ref().and_then(|path| {
            let seen = self.process.seen(path).ok()?;
            let name = seen.file_name()?.to_str()?.strip_prefix(SDK)?;
            name.trim_start_matches('.')
                .split('.')
                .nth(1)?
                .parse::<u32>()
                .ok()
        });
        match minor {
            Some(0..3) => Generation::First,
            _ => Generation::Second,
        }
    }

    /// Checks that the process can be recorded in the directory of a run. The collector goes on in the directory in which it
    /// began, also when it is attached again.
    ///
    /// # Errors
    /// One line: where it is recorded.
    pub fn records_in(&self, run: &Path) -> Result<(), Error> {
        let Some(recording) = &self.recording else {
            return Ok(());
        };
        let shown = recording.display();
        if self.recording_removed {
            let reason = format!("its recording {shown} was removed; start the program again");
            return Err(self.refused(Status::InvalidArgument, &reason));
        }
        let seen = self
            .process
            .seen(run)
            .map(|seen| self.process.own_name(&seen));
        if seen.is_ok_and(|run| recording.parent() == Some(run.as_path())) {
            return Ok(());
        }
        let reason = format!(
            "it was attached before and is recorded in {shown}, not below {}; name that run",
            run.display()
        );
        Err(self.refused(Status::InvalidArgument, &reason))
    }

    /// The listener and the registration library, of a process that was prepared.
    fn prepared(&self) -> Result<(i32, &RegistrationLibrary), Error> {
        let start = format!("start the program with {PREPARE}=1");
        if self.replaced {
            let reason = "its registration library was replaced since the program was started; start it again";
            return Err(self.refused(Status::Error, reason));
        }
        if self.runtimes.is_empty() && self.registration.is_none() {
            let reason = if self.prepared {
                "it has not loaded a GPU runtime yet".to_owned()
            } else {
                format!("it uses no GPU runtime, and it was not prepared: {start}")
            };
            return Err(self.refused(Status::Error, &reason));
        }
        let Some(registration) = &self.registration else {
            let reason = format!(
                "its GPU runtime uses no registration library ({REGISTRATION}), so no tool can be attached; run it with rpd"
            );
            return Err(self.refused(Status::Error, &reason));
        };
        if registration.attach.is_none() || registration.detach.is_none() {
            return Err(self.refused(Status::Error, &too_old(registration)));
        }
        let Some(listener) = self.listener else {
            let reason = if self.prepared {
                format!(
                    "it was started with {PREPARE}=1 but has no thread {LISTENER}: its GPU runtime is not initialised yet, \
                     another tool is active since its start, or {ATTACH_LIBRARY} was not found"
                )
            } else {
                format!("it was not prepared: {start}")
            };
            return Err(self.refused(Status::Error, &reason));
        };
        // Registration library 0.6.0 reads beyond its registrations when that library is not among them.
        if self.attach_library.is_none() {
            let reason = format!("it has a thread {LISTENER} but not {ATTACH_LIBRARY}; {start}");
            return Err(self.refused(Status::Error, &reason));
        }
        Ok((listener, registration))
    }

    fn may_be_traced(&self, listener: i32) -> Result<(), Error> {
        if let Some(tracer) = self.traced_by {
            return Err(self.refused(Status::NotPermitted, &traced_by(tracer)));
        }
        if self.state == 'T' {
            let reason = "it is stopped (SIGSTOP); let it go on first: kill -CONT";
            return Err(self.refused(Status::PtraceError, reason));
        }
        if self.process.may_be_traced().is_err() {
            return Err(self.refused(Status::NotPermitted, &forbidden(self.process)));
        }
        if self.process.state(Some(listener))?.shadow_stack {
            let reason = "it runs with a shadow stack, in which no call can be added";
            return Err(self.refused(Status::NotSupported, reason));
        }
        Ok(())
    }

    /// The SDK, which the process is able to open and which knows of attaching.
    fn usable_sdk(&self) -> Result<PathBuf, Error> {
        let Some(sdk) = &self.sdk else {
            let reason = format!(
                "it finds no {SDK}, without which its registration library would end it; start it with the directory of \
                 ROCm's libraries in LD_LIBRARY_PATH"
            );
            return Err(self.refused(Status::Error, &reason));
        };
        let unusable = |why: String| {
            let reason = format!("it cannot use the SDK {}: {why}", sdk.display());
            self.refused(Status::Error, &reason)
        };
        let library = self.loader.read(sdk).map_err(unusable)?;
        for function in ["rocprofiler_set_api_table", "rocprofiler_attach"] {
            if library.export(function).is_none() {
                return Err(unusable(format!(
                    "it has no {function}; SDK 1.1 or later has"
                )));
            }
        }
        self.loader.check(sdk).map_err(unusable)?;
        Ok(sdk.clone())
    }

    /// Checks that the process sees the tool, and the same file as this process, and is able to open it.
    fn usable_tool(&self, tool: &Path) -> Result<(), Error> {
        let unusable = |why: &str| {
            let reason = format!("it cannot use the tool {}: {why}", tool.display());
            self.refused(Status::InvalidArgument, &reason)
        };
        if !tool.is_absolute() {
            return Err(unusable("its path does not begin with /"));
        }
        let elsewhere = "it does not see this file (it is in a container?); make it visible there under the same path";
        let seen = self.process.seen(tool).map_err(|_| unusable(elsewhere))?;
        let library = self.loader.read(tool).map_err(|why| unusable(&why))?;
        if library.export("rocprofiler_configure").is_none() {
            return Err(unusable("it is no tool: it has no rocprofiler_configure"));
        }
        // A copy in a container is the same library when it is the same build.
        if let Some(own) = identity(tool)
            && identity(&seen) != Some(own)
            && let Ok(own) =
                crate::elf::Library::read(&fs::canonicalize(tool).unwrap_or_default(), &[])
            && (own.build_id.is_none() || own.build_id != library.build_id)
        {
            return Err(unusable("it has another build of it under this path"));
        }
        self.loader.check(tool).map_err(|why| unusable(&why))
    }
}

fn too_old(registration: &RegistrationLibrary) -> String {
    let version = registration.version.as_deref().unwrap_or("unknown");
    format!(
        "its registration library {} (version {version}) knows nothing of attaching; ROCm 7.1 or later does",
        registration.path.display()
    )
}

/// The reason for a process that is traced.
pub(crate) fn traced_by(tracer: i32) -> String {
    let name = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default();
    format!(
        "process {tracer} ({}) traces it: a debugger, or another attacher; end that first",
        name.trim_end()
    )
}

/// The reason for a process that the kernel does not let this one trace.
pub(crate) fn forbidden(process: Process) -> String {
    let own = Process::new(std::process::id().cast_signed()).state(None);
    let (own, user) = (own.map(|it| it.user), process.state(None).map(|it| it.user));
    if let (Ok(own), Ok(user)) = (own, user)
        && own != user
        && own != 0
    {
        return format!("it belongs to user {user}; attach as that user, or as root");
    }
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    let scope: u32 = scope
        .ok()
        .and_then(|it| it.trim().parse().ok())
        .unwrap_or(0);
    if scope > 0 && !may_trace_all() {
        return format!(
            "kernel.yama.ptrace_scope is {scope}; set it to 0, give rpd the capability CAP_SYS_PTRACE, or start the program \
             with rpd idle, which needs none of these"
        );
    }
    "the kernel forbids it: its program changed its user or may not be read, or this container lacks CAP_SYS_PTRACE"
        .to_owned()
}

/// Whether this process may trace any other.
fn may_trace_all() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    effective.is_some_and(|it| it & 1 << CAP_SYS_PTRACE != 0)
}
