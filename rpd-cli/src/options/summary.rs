//! Options of summary tables.

use rpd_core::domain::Domain;
use rpd_core::options::SummaryOptions;
use rpd_core::stats::Unit;
use rpd_summary::Group;

use super::given::OptionValues;
use crate::failure::Failure;

/// Separator of the expressions in a variable.
const SEPARATOR: &str = "##@@##";

/// Options that are of no use without a trace, in the order in which they are named.
const NEED_TRACES: [&str; 6] = [
    "stats",
    "summary",
    "summary-per-domain",
    "summary-groups",
    "summary-output-file",
    "summary-units",
];

/// The first given option that needs something to be traced.
pub(super) fn needs_traces(given: &OptionValues) -> Option<&'static str> {
    NEED_TRACES.into_iter().find(|long| given.requests(long))
}

/// Checks and collects them. `variable` is where the groups come from, when not from the command line.
pub(super) fn resolve(
    given: &OptionValues,
    variable: Option<&str>,
) -> Result<SummaryOptions, Failure> {
    let overall = given.bool("summary").unwrap_or(false);
    let list = given.list("summary-groups").unwrap_or_default();
    let groups: Vec<String> = match variable {
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
            let source = match given.origins.contains_key("summary-groups") {
                true => given.name("summary-groups"),
                false => "argument --summary-groups".to_owned(),
            };
            Failure::failed(format!("{source}: {error}"))
        })?;
    }
    let output = match given.text("summary-output-file") {
        None | Some("") => "stderr".to_owned(),
        Some(name) if overall => match name.to_ascii_lowercase() {
            stream if stream == "stdout" || stream == "stderr" => stream,
            _ => name.to_owned(),
        },
        Some(name) => name.to_owned(),
    };
    let unit = Unit::ALL
        .into_iter()
        .find(|unit| given.text("summary-units") == Some(unit.label()));
    Ok(SummaryOptions {
        overall,
        per_domain: given.bool("summary-per-domain").unwrap_or(false),
        groups,
        output,
        unit: unit.unwrap_or_default(),
    })
}

/// Warnings about expressions that match no domain.
pub(super) fn without_domains(given: &OptionValues, options: &SummaryOptions) -> Vec<String> {
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
                given.name("summary-groups")
            )
        })
        .collect()
}

/// A word about settings of tables where there are none.
pub(super) fn without_tables(
    given: &OptionValues,
    options: &SummaryOptions,
    stats: bool,
) -> Option<String> {
    if options.any() || stats {
        return None;
    }
    let given: Vec<String> = ["summary-output-file", "summary-units"]
        .into_iter()
        .filter(|long| given.values.contains_key(long))
        .map(|long| format!("--{long}"))
        .collect();
    (!given.is_empty()).then(|| {
        format!(
            "{}: no effect, since no table was requested (try --summary)",
            given.join(", ")
        )
    })
}
