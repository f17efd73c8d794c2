//! Remarks of the ledger about counters: nothing counted, not everything counted, only zeros.

use std::collections::{BTreeMap, BTreeSet};

use rpd_core::options::Options;
use rpd_core::session::Session;

/// Remarks on the counted and missing dispatches of a process.
pub(super) fn remarks(session: &Session, options: &Options) -> Vec<String> {
    let mut remarks = Vec::new();
    if session.counted.is_empty() {
        remarks.push(nothing(session, options));
    } else {
        remarks.extend(late(session));
        remarks.extend(missing(session, options));
        remarks.extend(zeros(session));
    }
    remarks
}

/// Settings that keep dispatches from being counted.
fn selection(options: &Options) -> Vec<&'static str> {
    let collector = &options.collector;
    [
        (collector.counters.include, "--kernel-include-regex"),
        (collector.counters.exclude, "--kernel-exclude-regex"),
        (
            !collector.counters.iterations.is_empty(),
            "--kernel-iteration-range",
        ),
        (!collector.periods.is_empty(), "--collection-period"),
        (collector.selected_regions, "--selected-regions"),
    ]
    .into_iter()
    .filter_map(|(given, flag)| given.then_some(flag))
    .collect()
}

/// Whether every requested counter names a single GPU.
fn on_some_gpus(options: &Options) -> bool {
    let groups = &options.collector.counters.groups;
    groups
        .iter()
        .flatten()
        .all(|request| request.device.is_some())
}

/// Dispatches whose values had not arrived when the program ended.
fn late(session: &Session) -> Option<String> {
    match session.ledger.uncounted {
        0 => None,
        number => Some(format!(
            "WARNING: {number} more dispatches were to be counted, but the program ended before the provider handed their \
             values over"
        )),
    }
}

fn nothing(session: &Session, options: &Options) -> String {
    if let Some(late) = late(session) {
        return late;
    }
    let mut selection = selection(options);
    if on_some_gpus(options) {
        selection.push(":device=N");
    }
    let why = match (session.dispatches.is_empty(), selection.as_slice()) {
        (false, []) => format!(" of {}", session.dispatches.len()),
        (_, []) => String::new(),
        (_, flags) => format!(": none was selected by {}", flags.join(", ")),
    };
    format!("WARNING: counters were requested, but no dispatch was counted{why}")
}

/// Remark about dispatches that were recorded on a GPU with counters and not counted, although no setting excludes
/// them.
fn missing(session: &Session, options: &Options) -> Option<String> {
    if !selection(options).is_empty() || on_some_gpus(options) {
        return None;
    }
    let counted = session.counted.counted_once();
    let counting: BTreeSet<u64> = session
        .counters
        .iter()
        .map(|counter| counter.agent.0)
        .collect();
    let recorded = session
        .dispatches
        .agent
        .iter()
        .filter(|agent| counting.contains(&agent.0))
        .count();
    let late = usize::try_from(session.ledger.uncounted).unwrap_or(usize::MAX);
    let others = recorded.saturating_sub(counted).saturating_sub(late);
    (others > 0).then(|| format!("WARNING: {others} of {recorded} dispatches were not counted"))
}

/// Counters whose values are all zero.
fn zeros(session: &Session) -> Option<String> {
    let mut seen: BTreeMap<&str, bool> = BTreeMap::new();
    for value in &session.counted.values {
        if let Some(counter) = session.counters.get(value.counter as usize) {
            *seen.entry(counter.name.as_str()).or_default() |= value.value != 0.0;
        }
    }
    let zeros: Vec<&str> = seen
        .iter()
        .filter_map(|(name, any)| (!any).then_some(*name))
        .collect();
    if zeros.is_empty() {
        return None;
    }
    let dispatches = match session.counted.counted_once() {
        1 => "the only counted dispatch".to_owned(),
        number => format!("all {number} counted dispatches"),
    };
    Some(format!(
        "suspicious: 0 in {dispatches}: {}",
        zeros.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::ids::{AgentHandle, CounterId};
    use rpd_core::options::CounterRequest;
    use rpd_core::session::{Counter, CounterValue, ValueRange};

    fn options() -> Options {
        let mut options = Options::default();
        options.collector.counters.groups = vec![vec![CounterRequest {
            name: "A".to_owned(),
            device: None,
        }]];
        options
    }

    /// Counted dispatches with the values of counters A and B.
    fn session(values: &[[f64; 2]], recorded: usize) -> Session {
        let mut session = Session::default();
        for (id, name) in [(1, "A"), (2, "B")] {
            session.counters.push(Counter {
                id: CounterId(id),
                agent: AgentHandle(1),
                name: name.to_owned(),
                description: String::new(),
                block: String::new(),
                expression: String::new(),
                is_constant: false,
                is_derived: false,
                dimensions: Vec::new(),
                instances: Vec::new(),
            });
        }
        for (index, pair) in (0..).zip(values) {
            session.counted.ranges.push(ValueRange {
                first: 2 * index,
                count: 2,
            });
            for (counter, value) in (0..).zip(pair) {
                session.counted.values.push(CounterValue {
                    counter,
                    instance: 0,
                    value: *value,
                });
            }
        }
        session.dispatches.agent = vec![AgentHandle(1); recorded].into();
        session.dispatches.start = vec![rpd_core::ids::Nanoseconds(0); recorded].into();
        session
    }

    #[test]
    fn counted_remarks_report_zeros_and_gaps() {
        let plain = options();
        assert!(remarks(&session(&[[1.0, 0.0], [0.0, 2.0]], 2), &plain).is_empty());
        assert_eq!(
            remarks(&session(&[[1.0, 0.0], [0.0, 0.0]], 5), &plain),
            [
                "WARNING: 3 of 5 dispatches were not counted",
                "suspicious: 0 in all 2 counted dispatches: B"
            ]
        );
        assert_eq!(
            remarks(&session(&[], 0), &plain),
            ["WARNING: counters were requested, but no dispatch was counted"]
        );
        assert_eq!(
            remarks(&session(&[], 4), &plain),
            ["WARNING: counters were requested, but no dispatch was counted of 4"]
        );
        let mut filtered = options();
        filtered.collector.counters.include = true;
        assert_eq!(
            remarks(&session(&[], 4), &filtered),
            [
                "WARNING: counters were requested, but no dispatch was counted: none was selected by \
                 --kernel-include-regex"
            ]
        );
        assert!(remarks(&session(&[[1.0, 1.0]], 4), &filtered).is_empty());
        let mut ended = session(&[[1.0, 1.0]], 4);
        ended.ledger.uncounted = 2;
        assert_eq!(
            remarks(&ended, &plain),
            [
                "WARNING: 2 more dispatches were to be counted, but the program ended before the provider handed their \
                 values over",
                "WARNING: 1 of 4 dispatches were not counted"
            ]
        );
    }
}
