//! A provider made of tables, and validation and packing with it.

use std::collections::BTreeSet;

use rpd_core::options::{Backend, CounterRequest, Options};

use super::protocol::{Agent, Counter, Dimension, ProviderStatus, Query, Reply, Sampling};
use super::provider_counters::{AnswerQueries, Gpu, ProviderCounters};
use super::validate::validate_and_pack_with;
use crate::failure::Failure;
use crate::options::plan::{Pass, Plan};

pub(crate) fn counter(name: &str, dimensions: &[(&str, u64)]) -> Counter {
    let constant = dimensions.is_empty();
    Counter {
        name: name.to_owned(),
        description: format!("Counts {name}"),
        block: if constant {
            String::new()
        } else {
            name.split('_').next().unwrap_or_default().to_owned()
        },
        constant,
        dimensions: dimensions
            .iter()
            .map(|(name, size)| Dimension {
                name: (*name).to_owned(),
                size: *size,
            })
            .collect(),
        ..Counter::default()
    }
}

pub(crate) fn derived(name: &str, expression: &str) -> Counter {
    Counter {
        block: String::new(),
        expression: expression.to_owned(),
        derived: true,
        ..counter(name, &[("DIMENSION_INSTANCE", 1)])
    }
}

/// GPUs: their names, their counters, and those that they cannot count. Two counters of a block fit into a pass.
pub(crate) struct Tables(Vec<(&'static str, Vec<Counter>, &'static [&'static str])>);

const PER_BLOCK: usize = 2;

impl Tables {
    pub(crate) fn new(gpus: Vec<(&'static str, Vec<Counter>, &'static [&'static str])>) -> Tables {
        Tables(gpus)
    }

    fn leaves(&self, gpu: usize, name: &str, into: &mut BTreeSet<String>) {
        let known = self.0[gpu].1.iter().find(|counter| counter.name == name);
        match known {
            Some(counter) if counter.derived => {
                let expression = rpd_metric::Expression::parse(&counter.expression);
                for name in expression.expect("a formula").names() {
                    self.leaves(gpu, name, into);
                }
            }
            Some(counter) if !counter.constant => {
                into.insert(name.to_owned());
            }
            _ => {}
        }
    }

    fn verdict(&self, gpu: usize, set: &[u64]) -> ProviderStatus {
        let (_, counters, unavailable) = &self.0[gpu];
        let mut leaves = BTreeSet::new();
        for id in set {
            let name = &counters[*id as usize].name;
            if unavailable.contains(&name.as_str()) {
                return ProviderStatus {
                    status: ProviderStatus::NOT_ON_AGENT,
                    text: "not valid for the agent".to_owned(),
                };
            }
            self.leaves(gpu, name, &mut leaves);
        }
        let blocks: BTreeSet<&str> = leaves
            .iter()
            .filter_map(|name| name.split('_').next())
            .collect();
        let fits = blocks.iter().all(|block| {
            let of = |name: &&String| name.split('_').next() == Some(block);
            leaves.iter().filter(of).count() <= PER_BLOCK
        });
        if fits {
            ProviderStatus::default()
        } else {
            ProviderStatus {
                status: ProviderStatus::TOO_MANY,
                text: "exceeds the hardware".to_owned(),
            }
        }
    }
}

impl AnswerQueries for Tables {
    fn query(&mut self, query: &Query) -> Result<Reply, Failure> {
        Ok(match query {
            Query::Open { .. } => Reply::Agents {
                replays: false,
                version: [1, 0, 0],
                agents: (0..)
                    .zip(&self.0)
                    .map(|(number, gpu)| agent(number, gpu.0))
                    .collect(),
            },
            Query::Counters { agent } => {
                let mut counters = self.0[*agent as usize].1.clone();
                for (id, counter) in (0..).zip(&mut counters) {
                    counter.id = id;
                }
                Reply::Counters(counters)
            }
            Query::Sets { agent, sets } => Reply::Verdicts(
                sets.iter()
                    .map(|set| self.verdict(*agent as usize, set))
                    .collect(),
            ),
            Query::Sampling { agent: 0 } => Reply::Sampling {
                verdict: ProviderStatus::default(),
                configurations: vec![
                    Sampling {
                        method: "stochastic".to_owned(),
                        unit: "cycle".to_owned(),
                        min_interval: 256,
                        max_interval: 1 << 31,
                        power_of_two: true,
                    },
                    Sampling {
                        method: "host_trap".to_owned(),
                        unit: "time".to_owned(),
                        min_interval: 1,
                        max_interval: 1000,
                        power_of_two: false,
                    },
                ],
            },
            Query::Sampling { .. } => Reply::Sampling {
                verdict: ProviderStatus {
                    status: 17,
                    text: "not implemented".to_owned(),
                },
                configurations: Vec::new(),
            },
        })
    }

    fn unexpected(&self, _question: &Query) -> Failure {
        Failure::failed("unexpected")
    }
}

fn agent(number: u64, name: &str) -> Agent {
    Agent {
        handle: number,
        gpu: true,
        name: name.to_owned(),
        logical_node_type_id: number as i32,
        ..Agent::default()
    }
}

pub(crate) fn provider_counters(tables: Tables) -> ProviderCounters {
    ProviderCounters::from_queries(Box::new(tables), std::path::Path::new("sdk.so"), "")
        .expect("answers")
}

pub(crate) fn gpu(counters: Vec<Counter>) -> Gpu {
    provider_counters(Tables(vec![("gfx90a", counters, &[])]))
        .gpus
        .pop()
        .expect("one GPU")
}

fn usual() -> Vec<Counter> {
    let mut counters: Vec<Counter> = [
        "SQ_WAVES",
        "SQ_BUSY_CYCLES",
        "SQ_INSTS_VALU",
        "SQ_INSTS_SALU",
        "SQ_INSTS_LDS",
        "SQ_HIDDEN",
        "TCC_HIT",
        "TCC_MISS",
        "GRBM_COUNT",
    ]
    .iter()
    .map(|name| counter(name, &[("DIMENSION_INSTANCE", 4)]))
    .collect();
    counters.push(counter("cu_count", &[]));
    counters.push(derived(
        "HitRate",
        "100*reduce(TCC_HIT,sum)/(reduce(TCC_HIT,sum)+reduce(TCC_MISS,sum))",
    ));
    counters.push(derived(
        "SQ_ALL",
        "(reduce(SQ_WAVES,sum)+reduce(SQ_INSTS_VALU,sum)+reduce(SQ_INSTS_SALU,sum))/cu_count",
    ));
    counters.push(derived("SQ_LEVEL", "accumulate(SQ_WAVES,HIGH_RES)"));
    counters
}

fn one_gpu() -> Tables {
    Tables(vec![("gfx90a", usual(), &["SQ_HIDDEN"])])
}

fn two_gpus() -> Tables {
    let other = vec![
        counter("SQ_WAVES", &[("DIMENSION_INSTANCE", 4)]),
        counter("GL2C_HIT", &[("DIMENSION_INSTANCE", 4)]),
    ];
    Tables(vec![
        ("gfx90a", usual(), &["SQ_HIDDEN"]),
        ("gfx1100", other, &[]),
    ])
}

fn request(word: &str) -> CounterRequest {
    let (name, device) = word.split_once(':').unwrap_or((word, ""));
    CounterRequest {
        name: name.to_owned(),
        device: device.parse().ok(),
    }
}

/// A plan with a pass for each text: counter names; after `auto `, to be packed into passes.
fn plan(passes: &[&str]) -> Plan {
    let pass = |text: &&str| {
        let names = text.strip_prefix("auto ").unwrap_or(text);
        let mut options = Options {
            backend: Backend::Sim,
            ..Options::default()
        };
        let group: Vec<CounterRequest> = names.split_whitespace().map(request).collect();
        if !group.is_empty() {
            options.collector.counters.groups = vec![group];
        }
        Pass {
            options,
            auto: text.starts_with("auto "),
            counted: true,
            unprofiled: None,
            suppress_marker_preload: false,
            sdk_suffixes: Vec::new(),
            replay: None,
        }
    };
    Plan {
        passes: passes.iter().map(pass).collect(),
        stem: None,
        continue_on_error: false,
        list_avail: false,
        attach: None,
        echo: false,
        warnings: Vec::new(),
    }
}

/// The groups of all passes after packing, and the warnings and computed metrics.
fn packed(tables: fn() -> Tables, passes: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
    let mut plan = plan(passes);
    let open = |_: &Pass| Ok(provider_counters(tables()));
    let found = validate_and_pack_with(&mut plan, &open).map_err(|failure| failure.message)?;
    let groups = plan
        .passes
        .iter()
        .map(|pass| {
            let groups = &pass.options.collector.counters.groups;
            let names: Vec<String> = groups.iter().flatten().map(ToString::to_string).collect();
            names.join(" ")
        })
        .collect();
    let mut notes = plan.warnings;
    notes.extend(
        found
            .iter()
            .map(|metric| format!("{} of {}", metric.name, metric.parts.join(" "))),
    );
    Ok((groups, notes))
}

#[test]
fn packing_leaves_groups_alone_that_fit() {
    let (groups, notes) = packed(
        one_gpu,
        &["GRBM_COUNT SQ_INSTS_VALU SQ_WAVES HitRate", "cu_count", ""],
    )
    .expect("it fits");
    assert_eq!(
        groups,
        ["GRBM_COUNT SQ_INSTS_VALU SQ_WAVES HitRate", "cu_count", ""]
    );
    assert!(notes.is_empty(), "{notes:?}");
}

#[test]
fn validation_of_a_plan_without_counters_starts_no_query() {
    let open = |_: &Pass| Err(Failure::failed("queried"));
    let mut none = plan(&["", ""]);
    validate_and_pack_with(&mut none, &open).expect("no query");
    let mut bare = plan(&["SQ_WAVES"]);
    bare.passes[0].unprofiled = Some("rank 3".to_owned());
    validate_and_pack_with(&mut bare, &open).expect("no query");
}

#[test]
fn counter_refusals_name_the_remedy() {
    for (passes, expected) in [
        (
            &["SQ_WAVE SQ_WAVES"][..],
            "SQ_WAVE is not a counter of GPU 0 (gfx90a) (did you mean SQ_WAVES?); rpd avail lists all",
        ),
        (
            &["SQ_WAVES", "ZZZ_TOP tcc_hit"],
            "pass 2: ZZZ_TOP is not a counter of GPU 0 (gfx90a); tcc_hit is not a counter of GPU 0 (gfx90a) (did you mean \
             TCC_HIT?); rpd avail lists all",
        ),
        (
            &["SQ_HIDDEN SQ_WAVES"],
            "GPU 0 (gfx90a) has SQ_HIDDEN, but cannot count it (the provider's error: not valid for the agent); rpd avail lists what can be \
             counted",
        ),
        (
            &["GRBM_COUNT SQ_BUSY_CYCLES SQ_INSTS_VALU SQ_WAVES"],
            "GRBM_COUNT SQ_BUSY_CYCLES SQ_INSTS_VALU SQ_WAVES cannot be counted in one pass on GPU 0 (gfx90a): exceeds \
             the hardware; these passes can: --pmc GRBM_COUNT SQ_BUSY_CYCLES SQ_INSTS_VALU --pmc SQ_WAVES (or --pmc \
             auto:GRBM_COUNT,SQ_BUSY_CYCLES,SQ_INSTS_VALU,SQ_WAVES)",
        ),
        (
            &["SQ_ALL"],
            "SQ_ALL cannot be counted in one pass on GPU 0 (gfx90a) even alone: exceeds the hardware; --pmc auto:SQ_ALL \
             counts the parts in several passes",
        ),
    ] {
        let message = packed(one_gpu, passes).expect_err("refused");
        assert_eq!(message, expected);
    }
}

#[test]
fn counter_name_must_exist_on_one_of_the_selected_gpus() {
    let all = packed(two_gpus, &["GL2C_HIT SQ_INSTS_VALU SQ_WAVES"]).expect("each on one GPU");
    assert!(all.1.is_empty());
    packed(two_gpus, &["GL2C_HIT:1"]).expect("it is there");
    let message = packed(two_gpus, &["GL2C_HIT:0"]).expect_err("not there");
    assert!(
        message.starts_with("GL2C_HIT is not a counter of GPU 0 (gfx90a)"),
        "{message}"
    );
    let (groups, notes) = packed(two_gpus, &["SQ_WAVES SQ_CYCLES:7"]).expect("a warning");
    assert_eq!(groups, ["SQ_WAVES SQ_CYCLES:device=7"]);
    assert_eq!(
        notes,
        [
            "SQ_CYCLES:device=7 counts nothing: there is no such GPU, only GPU 0 (gfx90a), GPU 1 (gfx1100)"
        ]
    );
    let message = packed(
        || {
            Tables(vec![
                ("gfx90a", usual(), &["SQ_WAVES"]),
                ("gfx90a", usual(), &[]),
            ])
        },
        &["SQ_WAVES"],
    )
    .expect_err("one of them cannot");
    assert!(
        message.contains("(SQ_WAVES:device=1 can be counted)"),
        "{message}"
    );
    // A request with a device number does not take space on other GPUs.
    packed(two_gpus, &["SQ_BUSY_CYCLES:0 SQ_INSTS_VALU:0 SQ_WAVES:1"]).expect("it fits");
}

#[test]
fn auto_passes_are_few_and_take_metrics_apart() {
    let (groups, notes) = packed(
        one_gpu,
        &[
            "auto GRBM_COUNT SQ_BUSY_CYCLES SQ_INSTS_LDS SQ_INSTS_VALU SQ_WAVES TCC_HIT",
            "TCC_HIT",
        ],
    )
    .expect("it can be packed");
    assert_eq!(
        groups,
        [
            "GRBM_COUNT SQ_BUSY_CYCLES SQ_INSTS_LDS TCC_HIT",
            "SQ_INSTS_VALU SQ_WAVES",
            "TCC_HIT"
        ]
    );
    assert!(notes.is_empty());
    let (groups, notes) = packed(one_gpu, &["auto HitRate SQ_ALL"]).expect("it can be split");
    assert_eq!(groups, ["HitRate SQ_INSTS_SALU SQ_INSTS_VALU", "SQ_WAVES"]);
    assert_eq!(notes, ["SQ_ALL of SQ_WAVES SQ_INSTS_VALU SQ_INSTS_SALU"]);
    let message = packed(one_gpu, &["auto SQ_HIDDEN"]).expect_err("never");
    assert!(message.contains("cannot count it"), "{message}");
}

#[test]
fn counter_definitions_are_read_before_anything_starts() {
    let mut wrong = plan(&[""]);
    wrong.passes[0].options.extra_counters = "rocprofiler-sdk:\n  counters: 7\n".to_owned();
    let open = |_: &Pass| Err(Failure::failed("queried"));
    let failure = validate_and_pack_with(&mut wrong, &open).expect_err("no definitions");
    assert!(
        failure.message.starts_with("--extra-counters: line "),
        "{}",
        failure.message
    );
    let mut old = plan(&[""]);
    old.passes[0].options.extra_counters =
        "MINE:\n  architectures:\n    gfx90a:\n      expression: SQ_WAVES*2\n  description: x\n"
            .to_owned();
    validate_and_pack_with(&mut old, &open).expect("the old form");
    assert!(
        old.passes[0]
            .options
            .extra_counters
            .starts_with("rocprofiler-sdk:")
    );
}

#[test]
fn counter_definitions_that_no_provider_takes_are_explained() {
    let define = |definitions: &[(&str, &str)]| {
        let mut plan = plan(&["SQ_WAVES"]);
        for (name, expression) in definitions {
            plan.passes[0].options.extra_counters += &format!(
                "{name}:\n  architectures:\n    gfx90a:\n      expression: \"{expression}\"\n  description: x\n"
            );
        }
        let open = |pass: &Pass| {
            if pass.options.extra_counters.is_empty() {
                Ok(provider_counters(one_gpu()))
            } else {
                Err(Failure::failed("the provider's words"))
            }
        };
        validate_and_pack_with(&mut plan, &open)
            .expect_err("the provider refuses")
            .message
    };
    assert_eq!(
        define(&[
            ("A", "SQ_WAVES+D"),
            ("D", "C"),
            ("B", "SQ_WAVES"),
            ("C", "2*B-D")
        ]),
        "--extra-counters: D is defined by itself: D uses C uses D"
    );
    assert_eq!(
        define(&[("A", "A+1")]),
        "--extra-counters: A is defined by itself: A uses A"
    );
    assert_eq!(
        define(&[("A", "2"), ("B", "A*SQ_WAVE")]),
        "--extra-counters: B: SQ_WAVE is not a counter of GPU 0 (gfx90a) (did you mean SQ_WAVES?)"
    );
    assert_eq!(define(&[("A", "SQ_WAVES+TCC_HIT")]), "the provider's words");
}

#[test]
fn counter_definitions_that_would_end_the_program_are_refused() {
    let define = |name: &str, expression: &str| {
        let mut plan = plan(&["SQ_WAVES"]);
        plan.passes[0].options.extra_counters = format!(
            "{name}:\n  architectures:\n    gfx90a:\n      expression: \"{expression}\"\n  description: x\n"
        );
        let result = validate_and_pack_with(&mut plan, &|_| Ok(provider_counters(one_gpu())));
        result
            .map(|_| plan.warnings)
            .map_err(|failure| failure.message)
    };
    let warnings = define("Half", "reduce(SQ_WAVES,sum)*0.5").expect("it can be counted");
    assert!(
        warnings[0].contains("Half: SDK 1.0 reads numbers up to the point"),
        "{warnings:?}"
    );
    for (name, expression, message) in [
        (
            "Few",
            "reduce(select(SQ_WAVES,[DIMENSION_INSTANCE=[0:2]]),sum)",
            "Few selects a range",
        ),
        (
            "HitRate",
            "reduce(TCC_HIT,sum)",
            "HitRate is a counter of GPU 0 (gfx90a) already",
        ),
    ] {
        let failure = define(name, expression).expect_err(name);
        assert!(failure.contains(message), "{failure}");
    }
    // What the provider would take, since it has the same already.
    let same = "100 * reduce(TCC_HIT,sum)/(reduce(TCC_HIT,sum) + reduce(TCC_MISS,sum))";
    assert_eq!(define("HitRate", same), Ok(vec![]));
}
