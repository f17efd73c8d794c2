//! The simulated machine's state: one per process, made on first use, made anew in a forked child.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError, RwLock};

use super::agents;
use super::copy::Engine;
use super::exec::KernelTable;
use super::gate::Gate;
use super::handler::Handler;
use super::memory::Memory;
use super::processor::Processor;
use super::queue::Queue;
use super::replay::Submissions;
use super::signal::SignalPool;
use super::svm::ManagedMemory;
use super::wake::Event;

/// Number of copy engines of a GPU.
pub(crate) const ENGINES_PER_GPU: usize = 2;
/// Most device threads: each has a bit in the watcher mask of a signal.
const MAX_THREADS: usize = 64;
/// Number of the signal handler's thread.
pub(crate) const HANDLER_THREAD: usize = 0;

/// Number of hardware queues of a GPU, each a thread: as many as the watcher masks have bits for, up to eight.
pub(crate) fn processors_per_gpu() -> usize {
    ((MAX_THREADS - 1) / agents::gpus().len() - ENGINES_PER_GPU).min(8)
}

/// Handler of device-wide events: the event and the program's data; returns a status.
pub(crate) type SystemEventHandler =
    unsafe extern "C" fn(*const core::ffi::c_void, *mut core::ffi::c_void) -> u32;

/// State that the devices of this process share.
pub(crate) struct Machine {
    /// Memory that devices may access.
    pub(crate) memory: Memory,
    /// Places of managed memory.
    pub(crate) managed: ManagedMemory,
    /// Memory of the signals, free and in use.
    pub(crate) signals: SignalPool,
    /// Event that each device thread sleeps on.
    pub(crate) events: [Event; MAX_THREADS],
    /// The signal handler's thread and its work.
    pub(crate) handler: Handler,
    /// Queues that were created and not destroyed.
    pub(crate) queues: RwLock<Vec<&'static Queue>>,
    /// Addresses of destroyed queues whose memory can be used again.
    pub(crate) spare_queues: Mutex<Vec<usize>>,
    /// Id that the next queue gets.
    pub(crate) next_queue: AtomicU64,
    /// Kernels of loaded code objects.
    pub(crate) kernels: KernelTable,
    /// Callbacks for memory faults.
    pub(crate) system_handlers: Mutex<Vec<(SystemEventHandler, usize)>>,
    /// Number of calls of `hsa_init` without a later `hsa_shut_down`.
    pub(crate) runtime_users: AtomicU32,
    /// Whether copies record their times in their signals.
    pub(crate) copy_profiling: AtomicBool,
    /// For each GPU the gate that its kernels pass.
    pub(crate) gates: Vec<Gate>,
    /// For each GPU the submissions of packets to it.
    pub(crate) submissions: Vec<Submissions>,
    processors: Vec<OnceLock<&'static Processor>>,
    engines: Vec<OnceLock<&'static Engine>>,
}

impl Machine {
    fn new() -> Self {
        let gpus = agents::gpus().len();
        let memory = Memory::default();
        Self {
            signals: SignalPool::new(&memory),
            memory,
            managed: ManagedMemory::default(),
            events: std::array::from_fn(|_| Event::default()),
            handler: Handler::default(),
            queues: RwLock::default(),
            spare_queues: Mutex::default(),
            next_queue: AtomicU64::new(0),
            kernels: KernelTable::default(),
            system_handlers: Mutex::default(),
            runtime_users: AtomicU32::new(0),
            copy_profiling: AtomicBool::new(false),
            gates: (0..gpus).map(|_| Gate::default()).collect(),
            submissions: (0..gpus).map(|_| Submissions::default()).collect(),
            processors: (0..gpus * processors_per_gpu())
                .map(|_| OnceLock::new())
                .collect(),
            engines: (0..gpus * ENGINES_PER_GPU)
                .map(|_| OnceLock::new())
                .collect(),
        }
    }

    /// A hardware queue of a GPU, started on first use.
    pub(crate) fn processor(&'static self, gpu: usize, index: usize) -> &'static Processor {
        let slot = gpu * processors_per_gpu() + index;
        // Thread 0 is the handler's; the numbers are bits of the signals' watcher masks.
        self.processors[slot].get_or_init(|| Processor::start(gpu, index, 1 + slot))
    }

    /// A copy engine of a GPU, started on first use.
    pub(crate) fn engine(&'static self, gpu: usize, index: usize) -> &'static Engine {
        let slot = gpu * ENGINES_PER_GPU + index;
        let thread = 1 + self.processors.len() + slot;
        self.engines[slot].get_or_init(|| Engine::start(gpu, index, thread))
    }

    /// A live queue at this address.
    pub(crate) fn queue(&self, address: u64) -> Option<&'static Queue> {
        let queues = self.queues.read().unwrap_or_else(PoisonError::into_inner);
        queues
            .iter()
            .copied()
            .find(|queue| queue.address() == address)
    }
}

static MACHINE: AtomicPtr<Machine> = AtomicPtr::new(std::ptr::null_mut());
/// Number of forks between the process that loaded the simulator and this one, which [`generation`] returns.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The simulated machine of this process.
#[inline]
pub(crate) fn machine() -> &'static Machine {
    let machine = MACHINE.load(Ordering::Acquire);
    // SAFETY: only `make` stores non-null pointers, to machines that are never dropped.
    unsafe { machine.as_ref() }.unwrap_or_else(|| make())
}

/// Number of forks between the process that loaded the simulator and this one. State of upper layers that
/// was made under another number refers to a machine that does not exist in this process.
pub(crate) fn generation() -> u32 {
    FORKS.load(Ordering::Acquire)
}

#[cold]
fn make() -> &'static Machine {
    // Once for the process and all its children: handlers are inherited by a fork.
    static AT_FORK: Once = Once::new();
    AT_FORK.call_once(|| {
        // SAFETY: the handler is a plain function that lives as long as the library, which is never unloaded
        // while its threads run.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    });
    let fresh = Box::into_raw(Box::new(Machine::new()));
    let null = std::ptr::null_mut();
    // Two threads may make the machine at the same time; the loser's is dropped before it has any thread.
    match MACHINE.compare_exchange(null, fresh, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: published machines are never dropped.
        Ok(_) => unsafe { &*fresh },
        Err(winner) => {
            // SAFETY: `fresh` was made here and not published; `winner` is never dropped.
            unsafe {
                drop(Box::from_raw(fresh));
                &*winner
            }
        }
    }
}

/// A forked child has none of the threads, so it starts over.
unsafe extern "C" fn forget() {
    FORKS.fetch_add(1, Ordering::AcqRel);
    // The old machine is leaked: its locks may be held by threads that the child does not have.
    MACHINE.store(std::ptr::null_mut(), Ordering::Release);
    rpd_gfx::isa::forget_helpers();
}

/// Starts a thread of the device that lives as long as the process and never takes the program's signals.
pub(crate) fn start_thread(name: &str, body: impl FnOnce() + Send + 'static) {
    // A signal that the program handles must be delivered to one of its own threads.
    // SAFETY: both sets are local and initialised by the calls.
    let old = unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        let mut old = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body);
    // SAFETY: `old` was filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    // The program could wait for ever without the thread.
    if let Err(error) = started {
        eprintln!("rpd-sim: cannot start the device thread {name}: {error}");
        std::process::abort();
    }
}
