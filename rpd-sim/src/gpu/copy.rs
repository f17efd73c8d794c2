//! Copy engines: threads that move memory once the signals they depend on allow it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::agents::{self, Agent};
use super::check;
use super::clock;
use super::fault::Fault;
use super::handler::Work;
use super::machine::{ENGINES_PER_GPU, machine, start_thread};
use super::memory::AccessError;
use super::observe::{self, CopyDirection, CopyInfo, Token};
use super::signal::{Condition, Signal, Term};

/// Interval at which an engine that waits for a signal looks at it again: a kernel may change a signal's memory without
/// waking anyone.
const RECHECK: Duration = Duration::from_millis(1);

/// Rows and slices of a rectangular copy on one side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plane {
    /// Address of the first byte moved.
    pub(crate) first: usize,
    /// Bytes between rows.
    pub(crate) pitch: usize,
    /// Bytes between slices.
    pub(crate) slice: usize,
}

impl Plane {
    /// Address of the first byte of a row of a slice.
    pub(crate) fn row(&self, y: usize, z: usize) -> usize {
        self.first + z * self.slice + y * self.pitch
    }
}

/// Shape of a copy: `rows` × `slices` runs of `width` bytes; a plain copy is one run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Plane that is written.
    pub(crate) dst: Plane,
    /// Plane that is read.
    pub(crate) src: Plane,
    /// Width of a row in bytes.
    pub(crate) width: usize,
    /// Number of rows of a slice.
    pub(crate) rows: usize,
    /// Number of slices.
    pub(crate) slices: usize,
}

impl Shape {
    /// A plain copy.
    pub(crate) fn linear(dst: usize, src: usize, bytes: usize) -> Self {
        let plane = |first| Plane {
            first,
            pitch: 0,
            slice: 0,
        };
        Self {
            dst: plane(dst),
            src: plane(src),
            width: bytes,
            rows: 1,
            slices: 1,
        }
    }

    /// Number of bytes that the copy moves.
    pub(crate) fn bytes(&self) -> usize {
        self.width * self.rows * self.slices
    }

    /// Bytes from the first to the last one touched on a side; `None` if no memory is that large.
    pub(crate) fn span(&self, plane: &Plane) -> Option<usize> {
        let rows = self.rows.saturating_sub(1).checked_mul(plane.pitch)?;
        let slices = self.slices.saturating_sub(1).checked_mul(plane.slice)?;
        let span = rows.checked_add(slices)?.checked_add(self.width)?;
        plane.first.checked_add(span)?;
        Some(span)
    }
}

/// A copy in the form in which a copy engine takes it: bytes to move, signals to wait for, and a signal to complete.
pub(crate) struct Copy {
    /// Addresses and extents of the bytes to move.
    pub(crate) shape: Shape,
    /// Agent that owns the destination.
    pub(crate) dst_agent: &'static Agent,
    /// Agent that owns the source.
    pub(crate) src_agent: &'static Agent,
    /// Signals that all must be zero before the copy starts.
    pub(crate) dependencies: Vec<Signal>,
    /// Signal that is decremented when the copy has ended; `None` if nobody waits for the copy.
    pub(crate) completion: Option<Signal>,
    /// Index of the copy engine that the program selected, on the GPU of the copy; `None` leaves the choice to the
    /// runtime.
    pub(crate) engine: Option<usize>,
}

struct Job {
    copy: Copy,
    token: Token,
}

/// A copy engine (SDMA): a thread that carries out copies one after the other.
pub(crate) struct Engine {
    thread: usize,
    agent: &'static Agent,
    jobs: Mutex<VecDeque<Job>>,
}

/// Direction of a copy between two agents.
pub(crate) fn direction(dst: &Agent, src: &Agent) -> CopyDirection {
    match (src.is_gpu(), dst.is_gpu()) {
        (false, false) => CopyDirection::HostToHost,
        (false, true) => CopyDirection::HostToDevice,
        (true, false) => CopyDirection::DeviceToHost,
        (true, true) => CopyDirection::DeviceToDevice,
    }
}

/// Submits a copy to an engine, after reporting it to the observer.
pub(crate) fn submit(copy: Copy) {
    let direction = direction(copy.dst_agent, copy.src_agent);
    let token = observe::get().map_or(0, |observer| {
        observer.copy_submitted(&CopyInfo {
            dst_agent: copy.dst_agent.handle(),
            src_agent: copy.src_agent.handle(),
            dst: copy.shape.dst.first as u64,
            src: copy.shape.src.first as u64,
            bytes: copy.shape.bytes() as u64,
            direction,
        })
    });
    // The copy engines of the GPU that has the data to read serve a copy: with two GPUs, those of the source.
    let owner = if copy.src_agent.is_gpu() {
        copy.src_agent
    } else {
        copy.dst_agent
    };
    let gpu = owner.index.saturating_sub(1);
    // One engine for each direction, so that uploads and downloads of a program overlap.
    let engine = copy.engine.unwrap_or(match direction {
        CopyDirection::HostToDevice | CopyDirection::HostToHost => 0,
        CopyDirection::DeviceToHost | CopyDirection::DeviceToDevice => 1,
    });
    machine()
        .engine(gpu, engine % ENGINES_PER_GPU)
        .push(Job { copy, token });
}

/// Mask of the idle copy engines of the GPU that carries out copies between two agents, bit n for engine n.
pub(crate) fn idle_engines(dst: &'static Agent, src: &'static Agent) -> u32 {
    let owner = if src.is_gpu() { src } else { dst };
    let gpu = owner.index.saturating_sub(1);
    (0..ENGINES_PER_GPU)
        .filter(|&index| machine().engine(gpu, index).jobs().is_empty())
        .fold(0, |mask, index| mask | 1 << index)
}

impl Engine {
    /// Starts engine `index` of a GPU as device thread number `thread`.
    pub(crate) fn start(gpu: usize, index: usize, thread: usize) -> &'static Self {
        let engine: &'static Self = Box::leak(Box::new(Self {
            thread,
            agent: &agents::gpus()[gpu],
            jobs: Mutex::default(),
        }));
        start_thread(&format!("rpd-sim gpu{gpu} sdma{index}"), move || {
            engine.run()
        });
        engine
    }

    fn jobs(&self) -> std::sync::MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, job: Job) {
        self.jobs().push_back(job);
        machine().events[self.thread].notify();
    }

    fn run(&self) {
        let event = &machine().events[self.thread];
        loop {
            // Read before the search: a signal that changes afterwards ends the wait below at once.
            let seen = event.count();
            match self.take_ready() {
                Ok(job) => self.perform(job),
                Err(waiting) => event.wait(seen, waiting.then_some(RECHECK)),
            }
        }
    }

    /// Removes the first copy whose dependencies are met. Without such a copy, the error says whether any copies wait.
    fn take_ready(&self) -> Result<Job, bool> {
        let mut jobs = self.jobs();
        // A copy whose dependencies are met overtakes those that wait: streams share engines, and must not wait for
        // each other.
        let ready = jobs.iter().position(|job| {
            let open = || job.copy.dependencies.iter().all(|&signal| met(signal));
            if open() {
                return true;
            }
            // Watched first and looked at again: a change in between would not wake this thread.
            job.copy
                .dependencies
                .iter()
                .for_each(|signal| signal.watch(self.thread));
            open()
        });
        match ready.and_then(|index| jobs.remove(index)) {
            Some(job) => Ok(job),
            None => Err(!jobs.is_empty()),
        }
    }

    fn perform(&self, Job { copy, token }: Job) {
        copy.dependencies
            .iter()
            .for_each(|signal| signal.unwatch(self.thread));
        let start = clock::ticks();
        if let Err(fault) = move_bytes(&copy.shape, self.agent) {
            machine().handler.submit(Work::Fault {
                queue: None,
                agent: self.agent,
                fault,
            });
            return;
        }
        let ticks = (start, clock::ticks());
        if let Some(signal) = copy.completion {
            signal.set_times(ticks.0, ticks.1);
        }
        // An observer hears of the end before the program does, on the handler's thread.
        if token != 0 {
            machine().handler.submit(Work::Copied {
                signal: copy.completion,
                token,
                ticks,
            });
        } else if let Some(signal) = copy.completion {
            signal.decrement();
        }
    }
}

fn met(signal: Signal) -> bool {
    let term = Term {
        signal,
        condition: Condition::Eq,
        reference: 0,
    };
    term.met().is_some()
}

/// Moves the bytes after checking that the device may access source and destination.
fn move_bytes(shape: &Shape, agent: &Agent) -> Result<(), Fault> {
    if shape.bytes() == 0 {
        return Ok(());
    }
    let memory = &machine().memory;
    for (what, plane) in [("reading", &shape.src), ("writing", &shape.dst)] {
        // An engine of one GPU serves copies between others too, so only presence counts here.
        let span = shape.span(plane).ok_or(AccessError::NotPresent);
        let known = span.and_then(|span| memory.check(plane.first, span, 0));
        if let Err(reason) = known {
            let whom = format!("a copy engine of GPU node {} {what}", agent.index);
            return Err(Fault::copy(&whom, plane.first as u64, reason));
        }
    }
    // SAFETY: both sides were just found to be allocated over their whole span.
    unsafe { transfer(shape) };
    Ok(())
}

/// Moves the bytes of a shape.
///
/// # Safety
/// Both sides must be accessible over their whole span.
pub(crate) unsafe fn transfer(shape: &Shape) {
    for z in 0..shape.slices {
        for y in 0..shape.rows {
            let (dst, src) = (shape.dst.row(y, z), shape.src.row(y, z));
            // SAFETY: promised by the caller; `copy` allows overlap.
            unsafe { std::ptr::copy(src as *const u8, dst as *mut u8, shape.width) };
            if let Some(session) = check::session() {
                session.wrote_range(dst as u64, shape.width as u64);
            }
        }
    }
}
