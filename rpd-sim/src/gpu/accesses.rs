//! Records the memory accesses of dispatches into a directory: `accesses.bin`, and the code objects of the kernels.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rpd_gfx::access::{self, Block, DispatchEnd, FILE, KernelChoice, Level, MAGIC, Recorder, Sink};
use rpd_gfx::isa;

use super::exec::Kernel;

/// Prefix of the names of the runtime's own kernels, for copies and fills. Such kernels are recorded only when the
/// selection names them.
const OWN_KERNELS: &str = "__amd_rocclr_";

/// The recording of this process.
struct AccessSession {
    directory: PathBuf,
    level: Level,
    kernels: Vec<KernelChoice>,
    /// Id of the process that records: a forked child has no recording.
    process: u32,
    output: Mutex<Output>,
    full: AtomicBool,
}

struct Output {
    file: File,
    /// Bytes that may still be written to the recording before it is full.
    left: u64,
    /// Number of dispatches that have begun, by kernel name.
    begun: HashMap<String, u64>,
    /// Number of dispatches that have been recorded.
    count: u32,
    /// File names of the code objects that have been saved.
    saved: HashSet<String>,
}

static SESSION: OnceLock<AccessSession> = OnceLock::new();

/// Begins a recording of this process in a directory, which is made; false if a recording has begun already.
pub(crate) fn start(
    directory: &Path,
    level: Level,
    kernels: Vec<KernelChoice>,
    limit: u64,
) -> io::Result<bool> {
    if SESSION.get().is_some() {
        return Ok(false);
    }
    std::fs::create_dir_all(directory)?;
    // Never over another recording: its blocks would have no head.
    let mut file = File::create_new(directory.join(FILE))?;
    file.write_all(&MAGIC)?;
    let session = AccessSession {
        directory: directory.to_owned(),
        level,
        kernels,
        process: std::process::id(),
        output: Mutex::new(Output {
            file,
            left: limit,
            begun: HashMap::new(),
            count: 0,
            saved: HashSet::new(),
        }),
        full: AtomicBool::new(false),
    };
    Ok(SESSION.set(session).is_ok())
}

/// Memory accesses of a dispatch, while they are recorded.
pub(crate) struct AccessRecording {
    session: &'static AccessSession,
    number: u32,
}

/// Begins the recording of a dispatch; `None` if the selection of kernels does not include the dispatch.
pub(crate) fn begin(kernel: &Kernel, dispatch: &isa::Dispatch<'_>) -> Option<AccessRecording> {
    let session = SESSION.get()?;
    // A forked child would write into the file of its parent.
    if session.process != std::process::id() || session.full.load(Ordering::Relaxed) {
        return None;
    }
    let mut output = session
        .output
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    // Counted for every kernel, because a selection may name the number of the dispatch.
    let begun = output.begun.entry(kernel.name.clone()).or_default();
    *begun += 1;
    let nth = *begun;
    let is_chosen = if session.kernels.is_empty() {
        // Copies and fills of the runtime are not the program's kernels, and would fill the recording.
        !kernel.name.starts_with(OWN_KERNELS)
    } else {
        let takes = |choice: &KernelChoice| choice.takes(&kernel.name, nth);
        session.kernels.iter().any(takes)
    };
    if !is_chosen {
        return None;
    }
    output.count += 1;
    let number = output.count;
    let object = format!("object-{:x}.co", kernel.image.base());
    if output.saved.insert(object.clone())
        && let Err(error) = std::fs::write(session.directory.join(&object), &*kernel.file)
    {
        eprintln!(
            "rpd-sim: {}/{object}: {error}; its instructions have no source lines",
            session.directory.display()
        );
    }
    let described = access::Dispatch {
        number,
        kernel: kernel.name.clone(),
        nth,
        object,
        first: kernel.address_in_file(kernel.program.base()),
        grid: dispatch.grid,
        workgroup: dispatch.workgroup.map(u32::from),
        level: session.level,
        device: dispatch.device.name.to_owned(),
    };
    drop(output);
    // The description comes before any block with steps, which are decoded with it.
    session
        .write(described.block().finish())
        .then_some(AccessRecording { session, number })
}

impl AccessRecording {
    /// Probes that record accesses, one for each of `threads` threads of the interpreter.
    pub(crate) fn recorders(&self, threads: usize) -> Vec<Recorder<'static>> {
        (0..threads)
            .map(|_| Recorder::new(self.session, self.number, self.session.level))
            .collect()
    }

    /// Writes the blocks that the probes still hold, and the end of the dispatch with its fault, if any.
    pub(crate) fn finish(self, recorders: Vec<Recorder<'_>>, faulted: bool) {
        // Each has something to store, even if others failed.
        let stored: Vec<bool> = recorders.into_iter().map(Recorder::finish).collect();
        let ending = if stored.contains(&false) {
            DispatchEnd::Full
        } else if faulted {
            DispatchEnd::Fault
        } else {
            DispatchEnd::Complete
        };
        let mut end = Block::end(self.number, ending);
        self.session.append(end.finish(), true);
    }
}

impl AccessSession {
    /// Appends a block to the recording; a block that is `needed` is written even when the size limit is reached.
    fn append(&self, block: &[u8], needed: bool) -> bool {
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let length = block.len() as u64;
        if !needed {
            // The end of a dispatch is stored in any case, so that readers know that it is incomplete.
            if self.full.load(Ordering::Relaxed) {
                return false;
            }
            if length > output.left {
                self.full.store(true, Ordering::Relaxed);
                return false;
            }
            output.left -= length;
        }
        if let Err(error) = output.file.write_all(block) {
            // Each block would report the same fault.
            if !self.full.swap(true, Ordering::Relaxed) {
                eprintln!(
                    "rpd-sim: {}/{FILE}: {error}; the recording of memory accesses ends here",
                    self.directory.display()
                );
            }
            return false;
        }
        true
    }
}

impl Sink for AccessSession {
    fn write(&self, block: &[u8]) -> bool {
        self.append(block, false)
    }
}
