//! What recording through the runtimes' own dispatch tables costs, over the bare program.

use anyhow::Result;

use super::measure::{Bench, Mode};
use super::{Row, Settings, Target};

/// One kind of call or work: bare, and recorded through both providers.
struct Cost {
    what: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
    options: &'static [&'static str],
    /// Most that the direct provider may add, in ns.
    target: f64,
}

const COSTS: [Cost; 3] = [
    Cost {
        what: "API call",
        program: "api-loop",
        arguments: &["2000000"],
        options: &["--hip-runtime-trace", "-f", "csv"],
        target: 60.0,
    },
    Cost {
        what: "dispatch",
        program: "hsa-queues",
        arguments: &["batch", "64000"],
        options: &["--kernel-trace", "-f", "csv"],
        target: 800.0,
    },
    Cost {
        what: "copy",
        program: "hsa-queues",
        arguments: &["copies", "2000"],
        options: &["--memory-copy-trace", "-f", "csv"],
        target: 1000.0,
    },
];

pub(super) fn direct(bench: &Bench, _: &Settings) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for cost in COSTS {
        let through = |provider| {
            let options = [&["--provider", provider], cost.options].concat();
            bench.per_call_of(Mode::Rpd(&options), cost.program, cost.arguments)
        };
        let bare = bench.per_call_of(Mode::Bare, cost.program, cost.arguments)?;
        let (sdk, direct) = (through("sdk")?, through("direct")?);
        let what = cost.what;
        rows.extend([
            Row::new(format!("{what}, bare"), bare, "ns", Target::None),
            Row::new(
                format!("{what}, recorded through the SDK: added"),
                sdk - bare,
                "ns",
                Target::None,
            ),
            Row::new(
                format!("{what}, recorded without it: added"),
                direct - bare,
                "ns",
                Target::AtMost(cost.target),
            ),
        ]);
    }
    let bare = bench.per_call(Mode::Bare, "api-loop", 20_000_000)?;
    // A kind that the program has none of: the provider is in the process, and no function is replaced.
    let nothing = ["--provider", "direct", "--rccl-trace", "-f", "csv"];
    let loaded = bench.per_call(Mode::Rpd(&nothing), "api-loop", 20_000_000)?;
    rows.push(Row::new(
        "API call, provider loaded and nothing selected, over bare",
        loaded / bare,
        "times",
        Target::AtMost(1.01),
    ));
    Ok(rows)
}
