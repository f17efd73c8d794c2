//! Executes a dispatch: several workgroups at a time, because workgroups may wait for each other.

use super::exec::Exec;
use super::group::{Group, Layout};
use super::helpers;
use super::memory::Cache;
use super::schedule::{Random, Schedule};
use super::trace::Trace;
use super::{Control, Dispatch, Executed, Fault, Memory, Probe, Stats};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Number of workgroups that a thread keeps in execution at a time: more than any device can hold, so that all
/// workgroups of a cooperative launch are in execution.
const RESIDENT: usize = 4096;

/// Executes a dispatch to its end on several threads.
///
/// After a fault the other workgroups are stopped, and the first fault is returned.
pub fn run_dispatch(
    dispatch: &Dispatch<'_>,
    memory: &dyn Memory,
    control: &Control<'_>,
) -> Result<Executed, Fault> {
    let shared = SharedDispatch::new(dispatch)?;
    let schedule = control.schedule(dispatch, Schedule::Turns);
    if control.seed.is_some() {
        shared.work(dispatch, memory, control.stop, schedule, None);
        return shared.result(1);
    }
    let threads = (control.threads.max(1) as u64)
        .min(shared.layout.groups)
        .max(1);
    let work = || shared.work(dispatch, memory, control.stop, schedule.clone(), None);
    helpers::with(threads as usize - 1, &work, work);
    shared.result(threads)
}

/// Executes a dispatch to its end on this thread, observed by `probe`.
///
/// Without a seed, workgroups are executed one after the other, and each wave runs until it waits for others.
pub fn watch_dispatch(
    dispatch: &Dispatch<'_>,
    memory: &dyn Memory,
    control: &Control<'_>,
    probe: &mut dyn Probe,
) -> Result<Executed, Fault> {
    let shared = SharedDispatch::new(dispatch)?;
    let schedule = control.schedule(dispatch, Schedule::Whole);
    let trace = Some(Trace::new(probe));
    shared.work(dispatch, memory, control.stop, schedule, trace);
    shared.result(1)
}

/// Executes a dispatch like [`run_dispatch`], with one probe for each thread. A dispatch with a seed runs on one
/// thread.
pub fn follow_dispatch<P: Probe + Send>(
    dispatch: &Dispatch<'_>,
    memory: &dyn Memory,
    control: &Control<'_>,
    probes: &mut [P],
) -> Result<Executed, Fault> {
    let shared = SharedDispatch::new(dispatch)?;
    let schedule = control.schedule(dispatch, Schedule::Turns);
    let threads = if control.seed.is_some() {
        1
    } else {
        (probes.len() as u64).min(shared.layout.groups).max(1)
    };
    let Some((own, others)) = probes.split_first_mut() else {
        shared.work(dispatch, memory, control.stop, schedule, None);
        return shared.result(1);
    };
    let work = |probe| {
        let trace = Some(Trace::new(probe));
        shared.work(dispatch, memory, control.stop, schedule.clone(), trace);
    };
    let others = Mutex::new(others.iter_mut());
    let help = || {
        let probe = others.lock().unwrap_or_else(|e| e.into_inner()).next();
        if let Some(probe) = probe {
            work(probe);
        }
    };
    helpers::with(threads as usize - 1, &help, || work(own));
    shared.result(threads)
}

impl Control<'_> {
    /// The order of execution: drawn from the seed if there is one, otherwise `other`.
    fn schedule(&self, dispatch: &Dispatch<'_>, other: Schedule) -> Schedule {
        self.seed.map_or(other, |seed| {
            Schedule::Drawn(Random::new(seed, dispatch.dispatch_id))
        })
    }
}

/// State that the threads of a dispatch share.
struct SharedDispatch {
    layout: Layout,
    next: AtomicU64,
    failed: AtomicBool,
    result: Mutex<Sums>,
}

/// Sums over the threads.
#[derive(Default)]
struct Sums {
    stats: Stats,
    fault: Option<Fault>,
    /// CPU time of all threads, each up to the point at which no workgroup was left to start.
    shared_time: Duration,
    /// Longest CPU time of a thread after that point.
    last_time: Duration,
}

impl SharedDispatch {
    fn new(dispatch: &Dispatch<'_>) -> Result<Self, Fault> {
        Ok(Self {
            layout: Layout::new(dispatch)?,
            next: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            result: Mutex::default(),
        })
    }

    /// The result for a dispatch on `threads` threads, even if the host started fewer in time.
    fn result(self, threads: u64) -> Result<Executed, Fault> {
        let sums = self.result.into_inner();
        let sums = sums.unwrap_or_else(|e| e.into_inner());
        match sums.fault {
            Some(fault) => Err(fault),
            None => Ok(Executed {
                stats: sums.stats,
                // Each thread takes the next workgroup when it is free. If all threads had had a CPU at all times,
                // they would have shared the first part evenly, and finished what was left at the same time.
                time: sums.shared_time / threads as u32 + sums.last_time,
            }),
        }
    }

    fn next_group(&self) -> Option<u64> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        (next < self.layout.groups).then_some(next)
    }

    fn work<'d>(
        &self,
        dispatch: &'d Dispatch<'d>,
        memory: &'d dyn Memory,
        stop: &AtomicBool,
        mut schedule: Schedule,
        trace: Option<Trace<'d>>,
    ) {
        // Time of the CPU, because a busy host would make elapsed time depend on other programs.
        let begin = thread_cpu_time();
        let mut exhausted_at = None;
        let mut x = Exec::new(dispatch, Cache::new(memory), self.layout.entry);
        x.trace = trace.map(Box::new);
        x.own_clock = matches!(schedule, Schedule::Drawn(_));
        let mut resident: VecDeque<Group> = VecDeque::new();
        // The memory of a workgroup is reused: clearing what a small kernel needs is faster than mapping it anew.
        let mut spare: Vec<Group> = Vec::new();
        let mut exhausted = false;
        let mut turns = 0;
        while x.fault.is_none() {
            if self.failed.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                x.fault = Some(Fault::Stopped {
                    kernel: dispatch.kernel.to_owned(),
                });
                break;
            }
            // A workgroup that did not end in its turn may wait for one that has not started.
            let starts = !exhausted && resident.len() < RESIDENT && schedule.starts(resident.len());
            let group = if starts { self.next_group() } else { None };
            let mut group = match group {
                Some(id) => {
                    let mut group = spare.pop().unwrap_or_else(Group::new);
                    group.start(&self.layout, dispatch, id, &mut x);
                    group
                }
                None => {
                    // From here on this thread works on what is left, while others may have nothing to do; the
                    // durations count separately.
                    if starts && !exhausted {
                        exhausted = true;
                        exhausted_at = Some(thread_cpu_time());
                    }
                    if resident.is_empty() {
                        break;
                    }
                    match resident.remove(schedule.group(resident.len())) {
                        Some(group) => group,
                        None => break,
                    }
                }
            };
            if group.run(&mut x, &mut schedule) {
                spare.push(group);
            } else if x.fault.is_none() {
                resident.push_back(group);
                turns += 1;
                // Yields once in a round of all workgroups: on a busy host each yield costs a time slice.
                if (resident.len() > 1 || exhausted)
                    && turns >= schedule.turns_of_round(resident.len())
                {
                    turns = 0;
                    std::thread::yield_now();
                }
            }
        }
        let end = thread_cpu_time();
        let exhausted_at = exhausted_at.unwrap_or(end);
        let mut sums = self.result.lock().unwrap_or_else(|e| e.into_inner());
        sums.stats.add(&x.stats);
        // Work until then can be shared by any number of threads; the rest has to be waited for.
        sums.shared_time += exhausted_at.saturating_sub(begin);
        sums.last_time = sums.last_time.max(end.saturating_sub(exhausted_at));
        if let Some(fault) = x.fault {
            self.failed.store(true, Ordering::Relaxed);
            // This thread was stopped because of the fault of another thread, which is the one to report.
            let stopped = |f: &Fault| matches!(f, Fault::Stopped { .. });
            if sums.fault.as_ref().is_none_or(stopped) {
                sums.fault = Some(fault);
            }
        }
    }
}

/// CPU time of the calling thread.
fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable; the clock exists on every kernel this runs on.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
