//! The plan of a run: passes with their options, and settings of the whole run.

use rpd_core::options::{CounterRequest, Options};

use super::attach::Attach;

/// Begin of the names of pass directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectoryStem {
    /// `pass_1`, `pass_2`, ...
    Pass,
    /// `pmc_1`, `pmc_2`, ...: jobs of a text file, and nothing else.
    Pmc,
}

impl DirectoryStem {
    fn text(self) -> &'static str {
        match self {
            DirectoryStem::Pass => "pass_",
            DirectoryStem::Pmc => "pmc_",
        }
    }
}

/// Groups of counters for which dispatches are to be run again, in one execution of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replay {
    /// Without a provider that can do it the run is refused; otherwise the target is run once for each group.
    pub(crate) is_required: bool,
    /// Passes with the same number are one execution of the target.
    pub(crate) set: usize,
}

/// One execution of the target.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    /// Options of this pass. Before [`Plan::number`] they name no pass, and the output directory is that of all passes.
    pub(crate) options: Options,
    /// The only group of counters holds names that are yet to be spread over as few passes as possible:
    /// [`Plan::spread`].
    pub(crate) auto: bool,
    /// Whether dispatches may be run again in place of the target; see [`Plan::fold`].
    pub(crate) replay: Option<Replay>,
    /// Counters were requested by `pmc`, not as groups that take turns, nor by an inherited variable: with an
    /// input file such a pass has its own directory even when it is the only one.
    pub(crate) counted: bool,
    /// Why the target runs without the collector: its MPI rank is not profiled. `None` profiles it.
    pub(crate) unprofiled: Option<String>,
    /// Leave the ROCTx library out of `LD_PRELOAD`.
    pub(crate) suppress_marker_preload: bool,
    /// Versions of the SDK library to look for, as what follows `.so`; the first that is found is used.
    pub(crate) sdk_suffixes: Vec<String>,
}

/// The passes to run, and what comes after them.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// In the order in which they run.
    pub(crate) passes: Vec<Pass>,
    /// Of pass directories; `None` without an input file, where several passes of the command line make `pass_N`.
    pub(crate) stem: Option<DirectoryStem>,
    /// Go on with the next pass when one fails.
    pub(crate) continue_on_error: bool,
    /// List what can be collected; nothing is run, and there may be no target.
    pub(crate) list_avail: bool,
    /// Print the passes instead of running them.
    pub(crate) echo: bool,
    /// The process to attach to, in place of a program to start.
    pub(crate) attach: Option<Attach>,
    /// Warnings that do not stop the run.
    pub(crate) warnings: Vec<String>,
}

impl Plan {
    /// Replaces every pass whose counters are yet to be spread by one pass for each of the groups that `split` makes of
    /// them. Comes before [`Plan::number`].
    ///
    /// # Errors
    /// What `split` fails with.
    pub(crate) fn spread<E>(
        &mut self,
        mut split: impl FnMut(&Pass) -> Result<Vec<Vec<CounterRequest>>, E>,
    ) -> Result<(), E> {
        let mut passes = Vec::with_capacity(self.passes.len());
        for pass in std::mem::take(&mut self.passes) {
            if !pass.auto {
                passes.push(pass);
                continue;
            }
            for group in split(&pass)? {
                let mut part = pass.clone();
                part.auto = false;
                part.options.collector.counters.groups = vec![group];
                passes.push(part);
            }
        }
        self.passes = passes;
        Ok(())
    }

    /// Makes one pass of those that the same replay counts. Comes after [`Plan::spread`] and before [`Plan::number`].
    pub(crate) fn fold(&mut self) {
        let mut folded: Vec<Pass> = Vec::with_capacity(self.passes.len());
        for pass in std::mem::take(&mut self.passes) {
            match folded.last_mut() {
                Some(last) if pass.replay.is_some() && last.replay == pass.replay => {
                    let groups = pass.options.collector.counters.groups;
                    last.options.collector.counters.groups.extend(groups);
                }
                _ => folded.push(pass),
            }
        }
        for pass in &mut folded {
            let counters = &mut pass.options.collector.counters;
            // A single group needs no second run. A rank without the collector has no counters.
            counters.replay =
                pass.replay.is_some() && pass.unprofiled.is_none() && counters.groups.len() > 1;
        }
        self.passes = folded;
    }

    /// Numbers the passes and gives each its directory, where they have some. To be called once, when no pass is added
    /// any more.
    pub(crate) fn number(&mut self) {
        let several = self.passes.len() > 1;
        let counted = self.passes.iter().any(|pass| pass.counted);
        let with_directories = several || (counted && self.stem.is_some());
        if !with_directories {
            return;
        }
        let stem = self.stem.unwrap_or(DirectoryStem::Pass).text();
        for (pass, number) in self.passes.iter_mut().zip(1..) {
            let options = &mut pass.options;
            options.pass = Some(number);
            let directory = options.output_directory.trim_end_matches('/');
            options.output_directory = format!("{directory}/{stem}{number}");
        }
    }
}
