//! Replays one launch many times. Memory is restored between the runs.

use std::path::Path;

use rpd_capture::{Call, KernelLaunch};
use rpd_spool::capture::item;
use rpd_spool::regular_file::{self, LARGEST_CODE, Links};
use serde::Serialize;

use crate::arrays::SavedArray;
use crate::error::{ReplayError, Status};
use crate::graph_kernel::ChosenNode;
use crate::hip::word_of;
use crate::kernel_name::{KernelName, is_called};
use crate::player::Player;

/// Unit in which written memory is found, bytes.
const GRANULE: usize = 4096;
/// Bytes that are compared at once.
const PART: u64 = 16 << 20;
/// Number of runs after which the set of written memory is looked at again.
const RECHECK: u32 = 64;

/// Selection of a launch, and the number of its runs.
#[derive(Debug, Clone)]
pub struct KernelChoice {
    /// The kernel, or several.
    pub name: KernelName,
    /// Number of the launch among those of the kernels that match, from 1.
    pub launch: u64,
    /// Runs that are measured.
    pub iterations: u32,
    /// Runs before the measured ones.
    pub warmup: u32,
    /// The number of the call; found when the capture is opened.
    pub seq: Option<u64>,
}

/// Times of the runs of one launch.
#[derive(Debug, Clone, Default, Serialize)]
pub struct KernelRuns {
    /// Name of the kernel.
    pub name: String,
    /// Number of the launching call.
    pub seq: u64,
    /// Milliseconds of each run, in order.
    pub milliseconds: Vec<f64>,
    /// Bytes that the kernel writes and that are put back before each run.
    pub restored: u64,
    /// Bytes of memory that it could reach.
    pub reachable: u64,
    /// Whether the memory that the kernel writes differed from run to run, so that all of it is restored.
    pub unsteady: bool,
    /// Times of the kernel's other build, when one was given.
    pub replaced: bool,
}

impl KernelRuns {
    /// A share of the runs took at most this many milliseconds.
    pub fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let index = (share * last as f64).round() as usize;
        sorted.get(index.min(last)).copied().unwrap_or(0.0)
    }

    /// Mean and standard deviation, milliseconds.
    pub fn mean(&self) -> (f64, f64) {
        let count = self.milliseconds.len().max(1) as f64;
        let mean = self.milliseconds.iter().sum::<f64>() / count;
        let square = self
            .milliseconds
            .iter()
            .map(|one| (one - mean).powi(2))
            .sum::<f64>()
            / count;
        (mean, square.sqrt())
    }
}

/// A copy of some memory.
pub(crate) struct SavedMemory {
    /// Address of the memory in the capture; of a variable, its address now.
    pub(crate) base: u64,
    pub(crate) now: u64,
    pub(crate) size: u64,
    pub(crate) shadow: u64,
    /// Offset and length of the ranges that were written since the copy was made.
    pub(crate) written: Vec<(u64, u64)>,
}

impl Player {
    /// Finds the call of the launch that was chosen.
    pub(crate) fn prepare_kernel(&mut self) -> Result<(), ReplayError> {
        let Some(mut choice) = self.options.kernel.clone() else {
            return Ok(());
        };
        let launches = self.capture.kernel_launches(self.last)?;
        let named = choice.name.text().to_owned();
        let matches = choice
            .name
            .test(launches.iter().map(|launch| launch.name.as_str()));
        let found: Vec<&KernelLaunch> = launches
            .iter()
            .filter(|launch| matches(&launch.name))
            .collect();
        // Launches are numbered from 1, as reports show them.
        let index = usize::try_from(choice.launch.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(launch) = found.get(index) else {
            let mut names: Vec<String> = launches.iter().map(|one| one.name.clone()).collect();
            names.sort();
            names.dedup();
            return Err(ReplayError::failed(match found.len() {
                0 => format!(
                    "--kernel {named}: the capture launches no such kernel (it launches {}){}",
                    names.join(", "),
                    choice.name.remark()
                ),
                1 => format!(
                    "--kernel {named}#{}: the capture has 1 launch of this kernel",
                    choice.launch
                ),
                count => format!(
                    "--kernel {named}#{}: the capture has {count} launches of this kernel",
                    choice.launch
                ),
            }));
        };
        let seq = launch.seq;
        if let Some(node) = &launch.node {
            let chosen = ChosenNode::new(node.clone(), seq).map_err(|reason| {
                ReplayError::failed(format!("--kernel {named}#{}: {reason}", choice.launch))
            })?;
            self.chosen_node = Some(chosen);
        }
        drop(matches);
        choice.seq = Some(seq);
        // Calls after the launch are not played, unless the user requests them.
        if self.options.until.is_none() {
            self.last = seq;
        }
        self.options.kernel = Some(choice);
        Ok(())
    }

    /// Whether this is the launch that was chosen.
    pub(crate) fn is_chosen(&self, call: &Call) -> bool {
        let choice = self.options.kernel.as_ref();
        choice.is_some_and(|choice| choice.seq == Some(call.seq))
    }

    /// The module with another build of a kernel, when one was given.
    pub(crate) fn replaced(&mut self, name: &str, code: i64) -> Result<Option<u64>, ReplayError> {
        let found = self
            .options
            .replace
            .iter()
            .find(|(wanted, _)| is_called(name, wanted))
            .map(|(_, file)| file.clone());
        let Some(file) = found else { return Ok(None) };
        let bytes = self.replacement(&file, name, code)?;
        Ok(Some(self.load_module(&bytes, &file.display().to_string())?))
    }

    /// Refuses replacements of kernels that the capture does not have.
    pub(crate) fn check_replacements(&self) -> Result<(), ReplayError> {
        let names: Vec<String> = self
            .capture
            .kernels()?
            .into_iter()
            .map(|kernel| kernel.name)
            .collect();
        for (wanted, file) in &self.options.replace {
            if !names.iter().any(|name| is_called(name, wanted)) {
                return Err(ReplayError::failed(format!(
                    "--replace {wanted}={}: the capture has no such kernel",
                    file.display()
                )));
            }
        }
        Ok(())
    }

    /// The code object in `file`, whose kernel must take the arguments of the captured one.
    fn replacement(&mut self, file: &Path, name: &str, code: i64) -> Result<Vec<u8>, ReplayError> {
        use rpd_gfx::codeobj::CodeObject;
        let shown = file.display();
        let failed =
            |text: String| ReplayError::failed(format!("--replace {name}={shown}: {text}"));
        let bytes = regular_file::read(file, Links::Follow, LARGEST_CODE)
            .map_err(|error| failed(error.to_string()))?;
        let Some(row) = self.codes.iter().find(|row| row.id == code).cloned() else {
            return Err(failed("the capture lacks the code it replaces".to_owned()));
        };
        // The image that was captured tells the processor and the layout of the arguments.
        let original = self.capture.bytes(row.blob)?;
        let original = CodeObject::parse(&original).map_err(|error| failed(error.to_string()))?;
        let bytes = rpd_gfx::codeobj::bundle::pick(&bytes, original.target())
            .map_err(|error| ReplayError {
                status: match error {
                    rpd_gfx::codeobj::Error::NoMatch { .. } => Status::Incompatible,
                    _ => Status::Failed,
                },
                ..failed(error.to_string())
            })?
            .into_owned();
        let fresh = CodeObject::parse(&bytes).map_err(|error| failed(error.to_string()))?;
        let Some(new) = fresh.kernel(name) else {
            return Err(failed("it has no kernel of this name".to_owned()));
        };
        let layout = |kernel: &rpd_gfx::codeobj::Kernel| -> Vec<(u32, u32)> {
            kernel
                .explicit_args()
                .map(|one| (one.offset, one.size))
                .collect()
        };
        // Arguments are passed as bytes: a kernel with another layout would read nonsense.
        let old = original.kernel(name).map(layout).unwrap_or_default();
        let new = layout(new);
        if let Some(index) =
            (0..old.len().max(new.len())).find(|index| old.get(*index) != new.get(*index))
        {
            let text = |one: Option<&(u32, u32)>| match one {
                Some((offset, size)) => format!("{size} bytes at {offset}"),
                None => "absent".to_owned(),
            };
            return Err(failed(format!(
                "argument {index} is {} in the capture and {} there",
                text(old.get(index)),
                text(new.get(index))
            )));
        }
        Ok(bytes)
    }

    /// Runs the chosen launch as often as was requested; the memory is then as it was before.
    pub(crate) fn run_chosen(&mut self, call: &Call) -> Result<(), ReplayError> {
        let (Some(choice), Some(operation)) = (self.options.kernel.clone(), call.operation())
        else {
            return Ok(());
        };
        if rpd_capture::is_cooperative(operation, &call.items) {
            return Err(ReplayError::failed(
                "cooperative launches cannot be run many times",
            ));
        }
        self.wait_for_all()?;
        let mut saved = self.save()?;
        self.save_variables(&mut saved)?;
        let mut arrays = self.save_arrays()?;
        // Events of another stream would not wait for a launch in a stream that does not wait for it.
        let stream = self.launch_stream(call, operation)?;
        let (mut start, mut stop) = (0u64, 0u64);
        self.hip.check("hipEventCreate", &[word_of(&mut start)])?;
        self.hip.check("hipEventCreate", &[word_of(&mut stop)])?;
        let mut runs = KernelRuns {
            name: self.kernel_name(call),
            seq: call.seq,
            reachable: saved.iter().map(|one| one.size).sum::<u64>()
                + arrays.iter().map(SavedArray::size).sum::<u64>(),
            replaced: !self.options.replace.is_empty(),
            ..KernelRuns::default()
        };
        // The first run shows what is written.
        self.make(call, operation)?;
        self.wait_for_all()?;
        self.find_written(&mut saved)?;
        self.find_written_arrays(&mut arrays)?;
        self.restore(&saved, false)?;
        self.restore_arrays(&arrays, false)?;
        let count = choice.warmup.saturating_add(choice.iterations);
        for run in 0..count {
            self.hip.check("hipEventRecord", &[start, stream])?;
            self.make(call, operation)?;
            self.hip.check("hipEventRecord", &[stop, stream])?;
            self.wait_for_all()?;
            if run >= choice.warmup {
                let mut time = 0f32;
                self.hip
                    .check("hipEventElapsedTime", &[word_of(&mut time), start, stop])?;
                runs.milliseconds.push(f64::from(time));
            }
            // Also after the last run: what follows in the replay relies on what is put back.
            if run % RECHECK == RECHECK - 1 || run + 1 == count {
                let before = written(&saved, &arrays);
                self.find_written(&mut saved)?;
                self.find_written_arrays(&mut arrays)?;
                runs.unsteady |= written(&saved, &arrays) != before;
            }
            self.restore(&saved, runs.unsteady)?;
            self.restore_arrays(&arrays, runs.unsteady)?;
        }
        runs.restored = if runs.unsteady {
            runs.reachable
        } else {
            written(&saved, &arrays).iter().map(|(_, len)| len).sum()
        };
        if runs.unsteady {
            self.note(format!(
                "call {}: what the kernel writes changes from run to run; all memory is put back",
                call.seq
            ));
        }
        self.release(saved)?;
        self.hip.check("hipEventDestroy", &[start])?;
        self.hip.check("hipEventDestroy", &[stop])?;
        self.report.kernel = Some(runs);
        Ok(())
    }

    pub(crate) fn kernel_name(&self, call: &Call) -> String {
        let found = call.items().find(|item| item.kind == item::KERNEL);
        let name = found
            .and_then(|item| item.payload.get(8..))
            .unwrap_or_default();
        String::from_utf8_lossy(name).into_owned()
    }

    /// Reads memory; in it, words that are addresses of the replay become those of the capture.
    pub(crate) fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), ReplayError> {
        self.copy(bytes.as_mut_ptr() as u64, from, bytes.len() as u64)?;
        self.restore_images(bytes);
        self.restore_code(bytes);
        if self.options.deep {
            self.translation.restore_words(bytes);
        }
        Ok(())
    }

    /// Copies all live memory: what a kernel reaches through pointers in memory is not known.
    pub(crate) fn save(&mut self) -> Result<Vec<SavedMemory>, ReplayError> {
        let live: Vec<(u64, u64, u64)> = self
            .translation
            .all()
            .filter(|(_, size, _)| *size > 1)
            .collect();
        live.into_iter()
            .map(|(base, size, now)| self.save_one(base, size, now))
            .collect()
    }

    /// Copies the variables of all code objects that are loaded, as [`Player::save`] does with memory, unless `saved`
    /// has them.
    pub(crate) fn save_variables(
        &mut self,
        saved: &mut Vec<SavedMemory>,
    ) -> Result<(), ReplayError> {
        let device = self.device;
        let modules: Vec<(i64, i32)> = self.modules.keys().copied().collect();
        for (code, device) in modules {
            for variable in self.variables(code, device)? {
                let (now, size) = variable.place;
                if size > 0 && !saved.iter().any(|one| one.now == now) {
                    saved.push(self.save_one(now, size, now)?);
                }
            }
        }
        self.set_device(device)
    }

    fn save_one(&mut self, base: u64, size: u64, now: u64) -> Result<SavedMemory, ReplayError> {
        let mut shadow = 0u64;
        self.hip.check("hipMalloc", &[word_of(&mut shadow), size])?;
        self.copy(shadow, now, size)?;
        Ok(SavedMemory {
            base,
            now,
            size,
            shadow,
            written: Vec::new(),
        })
    }

    /// Frees the copies of memory.
    pub(crate) fn release(&mut self, saved: Vec<SavedMemory>) -> Result<(), ReplayError> {
        for one in saved {
            self.hip.check("hipFree", &[one.shadow])?;
        }
        Ok(())
    }

    /// Compares memory with the saved copies, and stores the ranges that differ.
    pub(crate) fn find_written(&mut self, saved: &mut [SavedMemory]) -> Result<(), ReplayError> {
        for one in saved {
            one.written.clear();
            let mut at = 0;
            while at < one.size {
                let len = PART.min(one.size - at);
                let mut old = vec![0u8; len as usize];
                let mut new = vec![0u8; len as usize];
                self.copy(old.as_mut_ptr() as u64, one.shadow + at, len)?;
                self.copy(new.as_mut_ptr() as u64, one.now + at, len)?;
                for (index, (a, b)) in old.chunks(GRANULE).zip(new.chunks(GRANULE)).enumerate() {
                    if a == b {
                        continue;
                    }
                    let offset = at + (index * GRANULE) as u64;
                    match one.written.last_mut() {
                        Some((start, len)) if *start + *len == offset => *len += a.len() as u64,
                        _ => one.written.push((offset, a.len() as u64)),
                    }
                }
                at += len;
            }
        }
        Ok(())
    }

    pub(crate) fn restore(&mut self, saved: &[SavedMemory], all: bool) -> Result<(), ReplayError> {
        for one in saved {
            if all {
                self.copy(one.now, one.shadow, one.size)?;
                continue;
            }
            for (offset, len) in &one.written {
                self.copy(one.now + offset, one.shadow + offset, *len)?;
            }
        }
        self.wait_for_all()
    }
}

/// Address or handle, and length, of the ranges that were written.
fn written(saved: &[SavedMemory], arrays: &[SavedArray]) -> Vec<(u64, u64)> {
    let of = |one: &SavedMemory| {
        let base = one.now;
        let place = move |(offset, len): &(u64, u64)| (base + offset, *len);
        one.written.iter().map(place).collect::<Vec<_>>()
    };
    let arrays = arrays.iter().filter(|one| one.written);
    let arrays = arrays.map(|one| (one.handle, one.size()));
    saved.iter().flat_map(of).chain(arrays).collect()
}
