//! The page's timelines of traced waves.

use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::Options;
use rpd_core::session::Session;

use crate::json::Object;

/// Traces that are shown.
const TRACES: usize = 8;
/// Waves of a trace that are shown.
const WAVES: usize = 4000;

/// A JSON object for each trace: its waves by slot, in cycles.
pub(super) fn all(session: &Session, options: &Options) -> Vec<String> {
    let traces = &session.thread_traces;
    let labels = KernelLabels::new(session, options.kernel_names);
    let numbers = traces.numbers().into_iter().take(TRACES);
    numbers
        .map(|(agent, trace)| {
            let is_own = |stream: u32| {
                let found = traces.summaries.get(stream as usize);
                found.is_some_and(|found| (found.agent, found.trace) == (agent, trace))
            };
            let kernel = traces
                .summaries
                .iter()
                .find(|found| (found.agent, found.trace) == (agent, trace) && found.kernel.0 != 0);
            let name = match kernel {
                Some(found) => labels.formatted(found.kernel).to_owned(),
                None => "several kernels".to_owned(),
            };
            let own = traces.waves.iter().filter(|wave| is_own(wave.stream));
            let total = own.clone().count();
            let waves = own.take(WAVES).map(|wave| {
                let engine = traces.summaries[wave.stream as usize].engine;
                format!(
                    "[{engine},{},{},{},{},{},{},{}]",
                    wave.cu, wave.simd, wave.slot, wave.begin, wave.end, wave.latency, wave.stall
                )
            });
            Object::new()
                .number("trace", trace)
                .text("kernel", &name)
                .number("total", total)
                .array("waves", waves)
                .end()
        })
        .collect()
}
