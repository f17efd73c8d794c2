//! Which runs `rpd explain` makes, from what the GPUs of the platform can count and sample.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use rpd_analysis::speed_of_light::Peaks;
use rpd_core::options::Backend;
use serde_json::Value;

use super::Level;
use crate::process::environment::Changes;
use crate::wording::count;

/// Options of the first run.
const TRACES: [&str; 5] = [
    "--hip-trace",
    "--kernel-trace",
    "--memory-copy-trace",
    "--marker-trace",
    "--memory-allocation-trace",
];
/// Time between PC samples of hardware in microseconds, and in cycles.
const INTERVALS: (u64, u64) = (100, 65_536);

/// The platform that all runs are on.
#[derive(Debug, Clone)]
pub(super) struct Platform {
    pub(super) backend: Backend,
    pub(super) gpu: Option<String>,
}

impl Platform {
    /// The value of `--backend`; `None` where rpd finds out.
    fn backend_word(&self) -> Option<&'static str> {
        match self.backend {
            Backend::Auto => None,
            Backend::Rocm => Some("rocm"),
            Backend::Sim => Some("sim"),
            Backend::Cuda => Some("cuda"),
        }
    }

    /// Options of rpd that select it.
    fn options(&self) -> Vec<String> {
        let backend = self.backend_word().into_iter();
        let mut options: Vec<String> = backend
            .flat_map(|word| ["--backend".to_owned(), word.to_owned()])
            .collect();
        if let Some(gpu) = &self.gpu {
            options.extend(["--sim-gpu".to_owned(), gpu.clone()]);
        }
        options
    }

    /// What a query of rpd prints.
    ///
    /// # Errors
    /// The last line that it wrote to standard error, when it fails.
    fn query<'a>(&self, words: impl IntoIterator<Item = &'a OsStr>) -> Result<String, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(words).stdin(Stdio::null());
        if let Some(gpu) = &self.gpu {
            command.env("RPD_SIM_GPU", gpu);
        }
        let output = command.output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = text.lines().last().unwrap_or("rpd failed");
        Err(last.trim_start_matches("rpd: ").to_owned())
    }
}

/// A way to take PC samples.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Sampling {
    method: String,
    unit: String,
    least: u64,
    is_power_of_two: bool,
}

impl Sampling {
    fn from_json(value: &Value) -> Option<Sampling> {
        let text = |name: &str| Some(value.get(name)?.as_str()?.to_owned());
        // The option has the plural.
        let unit = match text("unit")?.as_str() {
            "cycle" => "cycles".to_owned(),
            unit => unit.to_owned(),
        };
        Some(Sampling {
            method: text("method")?,
            unit,
            least: value.get("min_interval")?.as_u64()?,
            is_power_of_two: value.get("power_of_two")?.as_bool()?,
        })
    }

    /// The interval. Where time is simulated kernels are short, and a sample is taken of each wave: the interval is as short as can be
    /// for a few waves, and longer for many, so that there are about as many samples.
    fn interval(&self, simulated_waves: Option<u64>) -> u64 {
        /// Waves that are enough for samples as dense as can be: each has some hundred then.
        const WAVES: u64 = 1024;
        let usual = match self.unit.as_str() {
            "time" => INTERVALS.0,
            _ => INTERVALS.1,
        };
        let usual = self.least.max(usual);
        let interval = match simulated_waves {
            Some(waves) => self.least.saturating_mul((waves / WAVES).max(1)).min(usual),
            None => usual,
        };
        if self.is_power_of_two {
            interval.next_power_of_two()
        } else {
            interval
        }
    }
}

/// The runs to make.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    level: Level,
    platform: Platform,
    /// Counters to count, and the number of passes that they take.
    counters: Option<(Vec<String>, usize)>,
    sampling: Option<Sampling>,
    /// Why something is not recorded.
    pub(super) notes: Vec<String>,
}

/// A run of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlannedRun {
    /// Name, which is that of its directory.
    pub(super) name: &'static str,
    /// What is recorded.
    pub(super) what: String,
    /// Sub-command of rpd, or nothing, and options, without the directory.
    pub(super) options: Vec<String>,
    /// Whether it is a capture, which has one directory and no names of files.
    pub(super) is_capture: bool,
    /// How many times the program runs.
    pub(super) times: usize,
}

impl Plan {
    /// The plan for a platform: asks what its GPUs can count and sample.
    pub(super) fn new(level: Level, command: &[OsString], platform: &Platform) -> Plan {
        let mut plan = Plan {
            level,
            platform: platform.clone(),
            counters: None,
            sampling: None,
            notes: Vec::new(),
        };
        if level == Level::Quick {
            return plan;
        }
        let mut words: Vec<OsString> = ["avail", "list", "--pc-sampling", "--json"]
            .map(OsString::from)
            .to_vec();
        // A GPU to simulate is a variable there.
        let simulated = platform.gpu.as_ref().map(|_| "sim");
        let backend = simulated.or(platform.backend_word());
        words.extend(
            backend
                .into_iter()
                .flat_map(|name| ["--backend".into(), name.into()]),
        );
        let listed = platform.query(words.iter().map(OsString::as_os_str));
        let listed = listed.and_then(|text| {
            serde_json::from_str::<Value>(&text).map_err(|error| error.to_string())
        });
        match listed {
            Ok(listed) => plan.choose(&listed, command),
            Err(error) => plan.notes.push(format!(
                "only the trace is made: the GPUs cannot be queried: {error}"
            )),
        }
        plan
    }

    /// Chooses counters and samples by the first GPU of a list.
    fn choose(&mut self, listed: &Value, command: &[OsString]) {
        let Some(gpu) = listed.get("gpus").and_then(|gpus| gpus.get(0)) else {
            let note = "only the trace is made: the platform has no GPU";
            self.notes.push(note.to_owned());
            return;
        };
        let name = gpu.get("name").and_then(Value::as_str).unwrap_or_default();
        match Peaks::find(name) {
            Some(peaks) => match self.passes(&peaks.counters(), command) {
                Ok(passes) => self.counters = Some((peaks.counters(), passes)),
                Err(error) => self.notes.push(format!("nothing is counted: {error}")),
            },
            None => self.notes.push(format!(
                "nothing is counted: the counters of {name} are not described"
            )),
        }
        let methods = gpu.get("pc_sampling").and_then(Value::as_array);
        let methods = methods.into_iter().flatten();
        let methods: Vec<Sampling> = methods.filter_map(Sampling::from_json).collect();
        // Stochastic samples say why a wave waits.
        let best = methods.iter().find(|one| one.method == "stochastic");
        self.sampling = best.or(methods.first()).cloned();
        if self.sampling.is_none() {
            self.notes
                .push(format!("nothing is sampled: {name} has no PC sampling"));
        }
    }

    /// In how many passes counters can be counted.
    fn passes(&self, counters: &[String], command: &[OsString]) -> Result<usize, String> {
        let mut words: Vec<OsString> = self
            .platform
            .options()
            .into_iter()
            .map(Into::into)
            .collect();
        words.extend([
            "--pmc".into(),
            auto(counters).into(),
            "--echo".into(),
            "--".into(),
        ]);
        words.extend(command.iter().cloned());
        let echo = self.platform.query(words.iter().map(OsString::as_os_str))?;
        Ok(echo.lines().count())
    }

    /// Changes of the environment for captures, which have no option for the GPU to simulate.
    pub(super) fn changes(&self) -> Changes {
        let gpu = self.platform.gpu.iter();
        gpu.map(|gpu| ("RPD_SIM_GPU", Some(gpu.into()))).collect()
    }

    /// The first run.
    pub(super) fn trace(&self) -> PlannedRun {
        let mut options = self.platform.options();
        options.extend(TRACES.map(str::to_owned));
        if self.level > Level::Quick {
            options.extend(["--stacks", "merged"].map(str::to_owned));
        }
        PlannedRun {
            name: "trace",
            what: "trace".to_owned(),
            options,
            is_capture: false,
            times: 1,
        }
    }

    /// The runs after the first. `kernels` is an expression of the kernels to look at, `hottest` of one of them, `dispatches` the first
    /// and the last to count of each, and `simulated_waves` how many waves they had on a simulated GPU.
    pub(super) fn others(
        &self,
        kernels: &str,
        hottest: &str,
        dispatches: (u64, u64),
        simulated_waves: Option<u64>,
    ) -> Vec<PlannedRun> {
        let platform = self.platform.options();
        let words = |words: &[&str]| -> Vec<String> {
            let words = words.iter().map(|word| (*word).to_owned());
            platform.iter().cloned().chain(words).collect()
        };
        let mut runs = Vec::new();
        if let Some((counters, passes)) = &self.counters {
            let range = format!("{}-{}", dispatches.0, dispatches.1);
            runs.push(PlannedRun {
                name: "counters",
                what: format!("{passes} counter passes"),
                options: words(&[
                    "--pmc",
                    &auto(counters),
                    "--kernel-include-regex",
                    kernels,
                    "--kernel-iteration-range",
                    &range,
                ]),
                is_capture: false,
                times: *passes,
            });
        }
        if let Some(sampling) = &self.sampling {
            let interval = sampling.interval(simulated_waves).to_string();
            runs.push(PlannedRun {
                name: "samples",
                what: "PC samples".to_owned(),
                options: words(&[
                    "--pc-sampling-beta-enabled",
                    "--pc-sampling-method",
                    &sampling.method,
                    "--pc-sampling-unit",
                    &sampling.unit,
                    "--pc-sampling-interval",
                    &interval,
                    "--kernel-trace",
                ]),
                is_capture: false,
                times: 1,
            });
        }
        if self.level == Level::Full {
            runs.push(PlannedRun {
                name: "thread-trace",
                what: "thread trace".to_owned(),
                options: words(&["--att", "--kernel-include-regex", hottest]),
                is_capture: false,
                times: 1,
            });
            runs.extend(simulated_waves.and_then(|_| accesses(hottest)));
        }
        runs
    }

    /// The line that says how many times the program will run.
    pub(super) fn announcement(&self, program: &OsString) -> String {
        let others = self.others("", "", (1, 8), None);
        let times: usize = others.iter().map(|run| run.times).sum();
        let mut parts = vec!["1 trace".to_owned()];
        parts.extend(others.iter().map(|run| match run.name {
            "counters" => run.what.clone(),
            "samples" => "1 with PC samples".to_owned(),
            _ => format!("1 {}", run.what),
        }));
        let times = times + 1;
        format!(
            "rpd: explain runs {} {}: {}; about {times} x the time of the first run; --plan only prints this",
            program.to_string_lossy(),
            count(times, "time"),
            parts.join(", ")
        )
    }

    /// The command lines of all runs.
    pub(super) fn text(&self, directory: &Path, command: &[OsString]) -> String {
        let program = command.first().cloned().unwrap_or_default();
        let mut text = format!("{}\n", self.announcement(&program));
        for note in &self.notes {
            text.push_str(&format!("rpd: {note}\n"));
        }
        let shown: Vec<String> = command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        let others = self.others("KERNELS", "KERNEL", (1, 8), None);
        for run in std::iter::once(self.trace()).chain(others) {
            let place = directory.join(run.name).display().to_string();
            text.push_str(&format!(
                "rpd {} {} -- {}\n",
                run.options.join(" "),
                run.destination(place).join(" "),
                shown.join(" ")
            ));
        }
        text
    }
}

impl PlannedRun {
    /// The options that name the directory.
    pub(super) fn destination(&self, place: String) -> Vec<String> {
        let mut words = Vec::new();
        if self.is_capture {
            words.push("-o".to_owned());
            words.push(place);
        } else {
            words.push("-d".to_owned());
            words.push(place);
            words.extend(["-o", "run"].map(str::to_owned));
        }
        words
    }
}

/// The run that records which memory a kernel accesses; `None` for one whose name cannot be told in an option.
fn accesses(expression: &str) -> Option<PlannedRun> {
    // The identifier: without the return type, parameters and arguments of templates.
    let begin = expression.trim_start_matches('^');
    let end = begin
        .find(['(', '<', '\\', '$', '|'])
        .unwrap_or(begin.len());
    let name = begin[..end].split_whitespace().last()?;
    Some(PlannedRun {
        name: "accesses",
        what: "accesses to memory".to_owned(),
        options: [
            "capture",
            "--trace",
            "mem",
            "--kernel",
            name,
            "--backend",
            "sim",
        ]
        .map(str::to_owned)
        .to_vec(),
        is_capture: true,
        times: 1,
    })
}

/// Counters as an option that packs them into passes.
fn auto(counters: &[String]) -> String {
    format!("auto:{}", counters.join(","))
}

/// A regular expression that finds these names: each from its begin, as far as names are told apart.
pub(super) fn expression(names: &[String]) -> String {
    /// Letters of a name that count; longer expressions are refused.
    const LETTERS: usize = 200;
    let escaped = names.iter().map(|name| {
        let begin: String = name.chars().take(LETTERS).collect();
        let end = if begin.len() == name.len() { "$" } else { "" };
        format!("^{}{end}", regex::escape(&begin))
    });
    escaped.collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_finds_the_names_alone() {
        let names = ["void f<int>(int*)".to_owned(), "g".to_owned()];
        let found = regex::Regex::new(&expression(&names)).expect("an expression");
        for (name, is_found) in [
            ("void f<int>(int*)", true),
            ("g", true),
            ("gg", false),
            ("void f<int>(int*, int)", false),
        ] {
            assert_eq!(found.is_match(name), is_found, "{name}");
        }
    }

    #[test]
    fn accesses_are_those_of_the_kernel_by_its_identifier() {
        for (name, option) in [
            ("void f<int>(int*)", "f"),
            ("g", "g"),
            ("ns::h(float)", "ns::h"),
        ] {
            let run = accesses(&expression(&[name.to_owned()])).expect("a run");
            assert_eq!(run.options[4], option);
        }
        assert_eq!(accesses("^\\(anonymous\\)$"), None);
    }

    #[test]
    fn samples_are_as_dense_as_the_device_allows_where_time_is_simulated() {
        let sampling = |unit: &str, least, is_power_of_two| Sampling {
            method: "stochastic".to_owned(),
            unit: unit.to_owned(),
            least,
            is_power_of_two,
        };
        assert_eq!(sampling("time", 1, false).interval(Some(1)), 1);
        assert_eq!(sampling("time", 1, false).interval(None), 100);
        assert_eq!(sampling("time", 1, false).interval(Some(10 << 10)), 10);
        assert_eq!(sampling("time", 1, false).interval(Some(1 << 40)), 100);
        assert_eq!(sampling("cycle", 256, true).interval(Some(1)), 256);
        assert_eq!(sampling("cycle", 70_000, true).interval(None), 131_072);
    }
}
