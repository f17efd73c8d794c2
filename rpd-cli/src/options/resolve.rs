//! From what was given to what will be done: one value of options per pass, all of them checked before any runs.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::SystemTime;

use rpd_core::compat::Compat;
use rpd_core::naming;
use rpd_core::text::os_text;

use super::attach;
use super::inherit::inherit;
use super::jobs::{self, Input};
use super::merge::{self, Draft};
use super::plan::{Pass, Plan};
use super::spec::{Form, Support};
use super::table::Given;
use super::traces;
use super::value::variable_truth;
use crate::failure::Failure;

/// The environment that options are resolved in: inherited variables, current directory, compatibility mode.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// Inherited variables that are text.
    pub(crate) variables: BTreeMap<String, String>,
    /// Current directory.
    pub(crate) cwd: PathBuf,
    /// The tool whose behaviour is requested, by `--compat` or by the name that rpd was called by.
    pub(crate) compat: Compat,
}

impl Environment {
    /// The variables of this process. Those that are not UTF-8 give no option a value and are left out.
    pub(crate) fn current(compat: Compat) -> Result<Environment, Failure> {
        Ok(Environment {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            cwd: current_directory()?,
            compat,
        })
    }

    /// A variable that is set to something.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// The current directory.
///
/// # Errors
/// The current directory was deleted, or may not be read; the error states which.
pub(crate) fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        let problem = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "the current directory has been deleted; change to one that exists".to_owned()
            }
            _ => format!("the current directory cannot be found out: {error}"),
        };
        Failure::failed(problem)
    })
}

/// Resolves the command line and the jobs of its input file.
///
/// # Errors
/// Anything that is wrong for any pass.
pub(crate) fn resolve(
    mut given: Given,
    command: Vec<String>,
    environment: &Environment,
) -> Result<Plan, Failure> {
    let input = match given.input.take() {
        Some(name) => Some(jobs::read(&name, &environment.cwd)?),
        None => None,
    };
    resolve_with(given, input, command, environment)
}

/// Resolves the command line without `--input`, and the jobs of an input file that was read already.
///
/// # Errors
/// Anything that is wrong for any pass.
pub(crate) fn resolve_with(
    mut given: Given,
    mut input: Option<Input>,
    command: Vec<String>,
    environment: &Environment,
) -> Result<Plan, Failure> {
    let mut resolver = Resolver::new(command, environment);
    if let Some(input) = &mut input {
        for warning in std::mem::take(&mut input.warnings) {
            resolver.warn(warning);
        }
        // Variables that a job must not contradict; the job overrides all others.
        inherit(&mut given.output_file, environment)?;
        inherit(&mut given.output_directory, environment)?;
        inherit(&mut given.profile_mpi_ranks, environment)?;
    }
    let mut drafts = merge::drafts(given, input)?;
    for draft in &mut drafts.list {
        resolver.complete(draft)?;
    }
    drafts.check_passes()?;
    for draft in &drafts.list {
        refuse_missing(&draft.given)?;
    }
    let any = |is_on: fn(&Given) -> bool| drafts.list.iter().any(|draft| is_on(&draft.given));
    let echo = any(|given| given.echo.is_on());
    let list_avail = any(|given| given.list_avail.is_on());
    let continue_on_error = any(|given| given.continue_on_error.is_on());
    let attaches = any(|given| given.pid.is_given());
    if resolver.command.is_empty() && !echo && !list_avail && !attaches {
        return Err(Failure::failed(
            "No application provided: rpd [options] -- application [arguments]",
        ));
    }
    let passes: Vec<Pass> = drafts
        .list
        .iter()
        .map(|draft| resolver.pass(draft, list_avail))
        .collect::<Result<_, _>>()?;
    let mut attach = None;
    for (draft, pass) in drafts.list.iter().zip(&passes) {
        attach = attach::resolve(&draft.given, &pass.options, passes.len())?;
    }
    Ok(Plan {
        passes,
        stem: drafts.stem,
        continue_on_error,
        list_avail,
        echo,
        attach,
        warnings: resolver.warnings,
    })
}

/// Inputs that all passes share, and cached results.
pub(super) struct Resolver<'a> {
    pub(super) environment: &'a Environment,
    pub(super) command: Vec<String>,
    pub(super) launch_time: u64,
    /// Variables that names of outputs are made of.
    pub(super) naming: BTreeMap<String, String>,
    /// Texts of files with counter definitions.
    pub(super) extra_counters: HashMap<String, String>,
    /// Patterns that are known to be good.
    pub(super) patterns: HashSet<String>,
    warnings: Vec<String>,
    /// The texts in `warnings`, by which each is given once.
    given_warnings: HashSet<String>,
}

impl<'a> Resolver<'a> {
    fn new(command: Vec<String>, environment: &'a Environment) -> Resolver<'a> {
        Resolver {
            environment,
            command,
            launch_time: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .ok()
                .and_then(|time| u64::try_from(time.as_nanos()).ok())
                .unwrap_or(0),
            naming: environment
                .variables
                .iter()
                .filter(|(name, _)| naming::is_naming_variable(name))
                .map(|(name, value)| (name.clone(), os_text::escape_str(value).into_owned()))
                .collect(),
            extra_counters: HashMap::new(),
            patterns: HashSet::new(),
            warnings: Vec::new(),
            given_warnings: HashSet::new(),
        }
    }

    /// Adds a warning.
    pub(super) fn warn(&mut self, warning: String) {
        if self.given_warnings.insert(warning.clone()) {
            self.warnings.push(warning);
        }
    }

    /// Adds warnings.
    pub(super) fn warn_all(&mut self, warnings: impl IntoIterator<Item = String>) {
        for warning in warnings {
            self.warn(warning);
        }
    }

    /// Fills in options that follow from those given, and values of inherited variables.
    fn complete(&self, draft: &mut Draft) -> Result<(), Failure> {
        let given = &mut draft.given;
        traces::include_members(given);
        // Counters in variables are used only when no option or job names counters.
        let counting = self
            .environment
            .get("ROCPROF_COUNTER_COLLECTION")
            .is_some_and(variable_truth)
            && draft.counters.counters.is_empty()
            && !given.pmc_groups.is_given();
        for option in given.all_mut() {
            if counting || option.named().spec.form != Form::Groups {
                inherit(option, self.environment)?;
            }
        }
        Ok(())
    }
}

/// Refuses options whose work this build does not do. Switching one off is fine.
fn refuse_missing(given: &Given) -> Result<(), Failure> {
    let requested = given
        .all()
        .into_iter()
        .filter(|option| option.is_requested());
    for option in requested {
        let message = match option.spec.support {
            Support::Works => continue,
            Support::Missing(what) => format!("this build of rpd lacks {what}"),
            Support::NewerKind => {
                "rpd does not record these events, which rocprofv3 does from SDK 1.3.5 (ROCm 10.0) on; leave it out".to_owned()
            }
        };
        return Err(option.refused(message));
    }
    Ok(())
}
