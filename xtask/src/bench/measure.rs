//! Running a workload bare, with an empty tool, with an idle collector, or under `rpd`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};
use rpd_tests::{install, workloads};
use tempfile::TempDir;

/// Runs of a program, of which the best counts, unless a row sets another number.
pub(super) const RUNS: u32 = 3;

/// Way of running a workload.
#[derive(Clone, Copy)]
pub(super) enum Mode<'a> {
    /// Without a profiler.
    Bare,
    /// With an SDK tool that subscribes to these callback kinds and does nothing in its callbacks.
    EmptyTool(&'a str),
    /// With the collector in the process, but without anything to record.
    Idle,
    /// Prepared as `rpd idle` does, and not attached to.
    Waiting,
    /// Under `rpd` with these options.
    Rpd(&'a [&'a str]),
}

/// Measurements of a run.
pub(super) struct Measured {
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Seconds since 1970 at which the whole command had ended.
    pub(super) ended: f64,
    /// Working directory of the run; `rpd` wrote to `out` in it.
    pub(super) directory: TempDir,
}

/// The built programs and the runtimes that they run on.
pub(super) struct Bench {
    bin: PathBuf,
    /// The directory with the libraries of the runtimes and the SDK.
    libraries: PathBuf,
    /// The installation of ROCm that the libraries belong to; `None` for the simulator.
    rocm: Option<PathBuf>,
}

impl Bench {
    pub(super) fn new(bin: PathBuf) -> Result<Self> {
        let simulator = bin.join("rpd-sim-lib");
        install::link_sonames(&simulator, &bin.join("librpd_sim.so"))
            .context("links to the simulator")?;
        Ok(Self {
            bin,
            libraries: simulator,
            rocm: None,
        })
    }

    /// The measured programs on the installation of ROCm in `ROCM_PATH` or `/opt/rocm`, where there is one whose HIP library
    /// they request (`RPD_HIP_SONAME`).
    pub(super) fn on_rocm(&self) -> Option<Self> {
        let root = env::var_os("ROCM_PATH").filter(|root| !root.is_empty());
        let root = root.map_or_else(|| PathBuf::from("/opt/rocm"), PathBuf::from);
        let libraries = root.join("lib");
        let hip = env::var("RPD_HIP_SONAME").unwrap_or_else(|_| "libamdhip64.so.6".to_owned());
        let present = |name: &str| libraries.join(name).is_file();
        (present(&hip) && present("librocprofiler-sdk.so.1")).then(|| Self {
            bin: self.bin.clone(),
            libraries: libraries.clone(),
            rocm: Some(root),
        })
    }

    /// `rpd` in a directory, without options.
    pub(super) fn rpd(&self, directory: &Path) -> Command {
        let mut rpd = Command::new(self.bin.join("rpd"));
        rpd.current_dir(directory).stdin(Stdio::null());
        rpd
    }

    /// Runs `program` (a workload, or anything on `PATH`) to a successful end.
    pub(super) fn run(
        &self,
        mode: Mode<'_>,
        program: &str,
        arguments: &[&str],
    ) -> Result<Measured> {
        // Files of other runs would count as written by this one.
        let directory = TempDir::with_prefix("rpd-bench-")?;
        let workload = workloads::path(program);
        let program = if workload.exists() {
            workload.into_os_string()
        } else {
            OsString::from(program)
        };
        let mut command = match mode {
            Mode::Rpd(options) => {
                let mut rpd = Command::new(self.bin.join("rpd"));
                match &self.rocm {
                    Some(root) => rpd.args(["--backend", "rocm", "--rocm-root"]).arg(root),
                    None => rpd.args(["--backend", "sim"]),
                };
                rpd.args(["-d", "out"])
                    .args(options)
                    .arg("--")
                    .arg(&program);
                rpd
            }
            _ => Command::new(&program),
        };
        command
            .args(arguments)
            .current_dir(directory.path())
            .stdin(Stdio::null());
        // Settings of the developer's shell would change what is measured.
        for name in [
            "ROCP_TOOL_LIBRARIES",
            "ROCPROFILER_REGISTER_LIBRARY",
            "RPD_SDK",
            "RPD_EMPTY_TOOL",
            "RPD_COLLECT",
            "RPD_SPOOL",
            "RPD_IDLE",
        ] {
            command.env_remove(name);
        }
        // On ROCm the preloaded library may be the emulated driver.
        if self.rocm.is_none() {
            command.env_remove("LD_PRELOAD");
        }
        match mode {
            Mode::Bare => {}
            Mode::EmptyTool(kinds) => {
                let tool = workloads::path("empty-tool.so");
                command
                    .env("RPD_EMPTY_TOOL", kinds)
                    .env("ROCP_TOOL_LIBRARIES", tool);
            }
            Mode::Idle | Mode::Waiting => {
                if matches!(mode, Mode::Waiting) {
                    command.env("RPD_IDLE", "1");
                }
                let register = self.bin.join("librpd_register.so");
                command
                    .env("LD_PRELOAD", &register)
                    .env("ROCPROFILER_REGISTER_LIBRARY", &register)
                    .env("RPD_SDK", self.libraries.join("librocprofiler-sdk.so.1"));
            }
            Mode::Rpd(_) => {}
        }
        // `rpd` sets the path itself, by its backend.
        if !matches!(mode, Mode::Rpd(_)) {
            command.env("LD_LIBRARY_PATH", &self.libraries);
        }
        let output = command
            .output()
            .with_context(|| format!("cannot start {command:?}"))?;
        let ended = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            bail!("{command:?} ended with {}\n{stdout}{stderr}", output.status);
        }
        Ok(Measured {
            stdout,
            stderr,
            ended,
            directory,
        })
    }

    /// The workload's own "ns per call", the smallest of several runs: the one least disturbed.
    pub(super) fn per_call(&self, mode: Mode<'_>, program: &str, count: u64) -> Result<f64> {
        self.per_call_of(mode, program, &[&count.to_string()])
    }

    /// The workload's own "ns per call" with these arguments, the smallest of several runs.
    pub(super) fn per_call_of(
        &self,
        mode: Mode<'_>,
        program: &str,
        arguments: &[&str],
    ) -> Result<f64> {
        self.best_of(RUNS, mode, program, arguments)
    }

    /// The workload's own "ns per call" with these arguments, the smallest of `runs` runs.
    pub(super) fn best_of(
        &self,
        runs: u32,
        mode: Mode<'_>,
        program: &str,
        arguments: &[&str],
    ) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..runs {
            let measured = self.run(mode, program, arguments)?;
            best = best.min(number_before(&measured.stdout, " ns per call")?);
        }
        Ok(best)
    }
}

impl Measured {
    /// The number after `label` in the output of exec-timer.
    pub(super) fn timer(&self, label: &str) -> Result<f64> {
        let line = self
            .stderr
            .lines()
            .find(|line| line.starts_with("exec-timer: "));
        let after = line
            .and_then(|line| line.split_once(label))
            .map(|(_, rest)| rest.trim_start());
        let number = after.and_then(|rest| rest.split([' ', ',']).next());
        number
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| anyhow!("exec-timer said: {}", self.stderr))
    }

    /// The number in a file that the workload wrote.
    pub(super) fn number_in(&self, file: &str) -> Result<f64> {
        let path = self.directory.path().join(file);
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        text.split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| anyhow!("{file}: `{text}`"))
    }

    /// The size of the only output whose name ends with `suffix`, in bytes.
    pub(super) fn output_size(&self, suffix: &str) -> Result<u64> {
        let mut found = Vec::new();
        files_below(&self.directory.path().join("out"), &mut found)?;
        found.retain(|path| path.to_string_lossy().ends_with(suffix));
        match found.as_slice() {
            [file] => Ok(fs::metadata(file)?.len()),
            files => bail!("{} outputs end with {suffix}", files.len()),
        }
    }
}

pub(super) fn files_below(directory: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, files)?
        } else {
            files.push(path)
        }
    }
    Ok(())
}

pub(super) fn number_before(text: &str, label: &str) -> Result<f64> {
    let before = text.split_once(label).map(|(before, _)| before);
    let word = before.and_then(|before| before.split_whitespace().next_back());
    word.and_then(|word| word.parse().ok())
        .ok_or_else(|| anyhow!("no number before `{label}` in: {text}"))
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn bench_reads_numbers_before_their_label() {
        assert_eq!(
            number_before("warm\n17.5 ns per call, 9 calls\n", " ns per call").ok(),
            Some(17.5)
        );
        assert!(number_before("no such thing", " ns per call").is_err());
    }
}
