//! Whether rpd itself works here, for which it needs no GPU.

use crate::commands::doctor::check::{Check, Finding, Severity};
use crate::commands::doctor::machine::Machine;

const LIBRARIES: [&str; 3] = ["librpd_collect.so", "librpd_register.so", "librpd_sim.so"];

pub(super) const CHECKS: &[Check] = &[
    Check::new(
        "rpd.libraries",
        "rpd's own libraries",
        Severity::Error,
        libraries,
    ),
    Check::new(
        "rpd.simulator",
        "a recording on the simulated GPU",
        Severity::Error,
        simulator,
    )
    .after(&["rpd.libraries"]),
];

fn libraries(machine: &Machine) -> Finding {
    let missing: Vec<String> = LIBRARIES
        .iter()
        .filter_map(|name| (machine.probes.own_library)(name).err())
        .collect();
    match missing.first() {
        None => Finding::pass(LIBRARIES.join(", ")),
        Some(reason) => Finding::fail(
            reason,
            "install them beside rpd or in ../lib/rpd, as the archive has them",
        ),
    }
}

fn simulator(machine: &Machine) -> Finding {
    match (machine.probes.self_test)(&["--backend", "sim", "--hip-trace"]) {
        Ok(recorded) if recorded.calls > 0 => Finding::pass(format!(
            "{} calls of a small program were recorded",
            recorded.calls
        )),
        Ok(_) => Finding::fail(
            "the program ran, and none of its calls was recorded",
            "report this with the output of `rpd doctor -v`",
        ),
        Err(reason) => Finding::fail(reason, "report this with the output of `rpd doctor -v`"),
    }
}
