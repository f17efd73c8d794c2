//! Options of summary tables.

use rpd_core::domain::Domain;
use rpd_core::options::SummaryOptions;
use rpd_summary::Group;

use super::given::Named;
use super::table::Given;
use crate::failure::Failure;

/// Separator of the expressions in a variable.
const SEPARATOR: &str = "##@@##";

/// The first given option that needs something to be traced.
pub(super) fn needs_traces(given: &Given) -> Option<&Named> {
    let options: [&Named; 6] = [
        &given.stats,
        &given.summary,
        &given.summary_per_domain,
        &given.summary_groups,
        &given.summary_output_file,
        &given.summary_units,
    ];
    options.into_iter().find(|option| option.is_requested())
}

/// Checks and collects the options of tables.
///
/// # Errors
/// What names domains is no regular expression.
pub(super) fn resolve(given: &Given) -> Result<SummaryOptions, Failure> {
    let overall = given.summary.is_on();
    let list = given.summary_groups.list();
    let groups: Vec<String> = match given.summary_groups.variable() {
        Some(_) => list
            .iter()
            .flat_map(|text| text.split(SEPARATOR))
            .filter(|group| !group.is_empty())
            .map(str::to_owned)
            .collect(),
        None => list.to_vec(),
    };
    for group in &groups {
        Group::parse(group).map_err(|error| {
            let option = &given.summary_groups;
            let source = if option.is_on_command_line() {
                format!("argument {}", option.flag())
            } else {
                option.name()
            };
            Failure::failed(format!("{source}: {error}"))
        })?;
    }
    let output = match given.summary_output_file.text() {
        None | Some("") => "stderr".to_owned(),
        Some(name) if overall => match name.to_ascii_lowercase() {
            stream if stream == "stdout" || stream == "stderr" => stream,
            _ => name.to_owned(),
        },
        Some(name) => name.to_owned(),
    };
    Ok(SummaryOptions {
        overall,
        per_domain: given.summary_per_domain.is_on(),
        groups,
        output,
        unit: given.summary_units.value().unwrap_or_default(),
        wide: given.wide.is_on(),
    })
}

/// Warnings about expressions that match no domain.
pub(super) fn without_domains(given: &Given, options: &SummaryOptions) -> Vec<String> {
    let matches_none = |expression: &&String| {
        let group = Group::parse(expression);
        group.is_ok_and(|group| !Domain::ALL.into_iter().any(|domain| group.has(domain)))
    };
    let labels = Domain::ALL.map(Domain::label).join(", ");
    let unused = options.groups.iter().filter(matches_none);
    unused
        .map(|expression| {
            format!(
                "{}: no domain has a name that '{expression}' matches as a whole, so it has no table; domains are {labels}",
                given.summary_groups.name()
            )
        })
        .collect()
}

/// A warning about settings of tables where there are none.
pub(super) fn without_tables(given: &Given, options: &SummaryOptions) -> Option<String> {
    if options.any() || given.stats.is_on() {
        return None;
    }
    let settings: [&Named; 3] = [
        &given.summary_output_file,
        &given.summary_units,
        &given.wide,
    ];
    let names: Vec<String> = settings
        .into_iter()
        .filter(|option| option.is_given())
        .map(Named::flag)
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "{}: no effect, since no table was requested (try --summary)",
            names.join(", ")
        )
    })
}
