//! The device: memory of the host, and a thread that executes work in the order in which it is submitted.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cupti_sys::activity::kind;
use cupti_sys::callback::{GraphData, ResourceData, domain, resource};

use crate::records::Record;
use crate::{calls, cupti, sampling};

/// Number of the null stream of the only context.
pub(crate) const NULL_STREAM: u32 = 7;
/// Number of the first stream of the program.
const FIRST_STREAM: u32 = 13;
/// Number of the graph that captures the stream with number 0; executable graphs have those before it.
const FIRST_GRAPH: u32 = 500;

/// A stream; its address is the program's handle.
pub(crate) struct Stream {
    /// Number of the stream in records.
    pub(crate) number: u32,
    /// The graph that captures its work.
    pub(crate) captures: Mutex<Option<Vec<Work>>>,
}

/// The number of a stream by its handle.
pub(crate) fn stream_number(stream: *const Stream) -> u32 {
    // SAFETY: null, or a handle that `new_stream` made, which stays valid.
    unsafe { stream.as_ref() }.map_or(NULL_STREAM, |stream| stream.number)
}

/// Makes a stream.
pub(crate) fn new_stream() -> *const Stream {
    static NEXT: AtomicU32 = AtomicU32::new(FIRST_STREAM);
    Box::leak(Box::new(Stream {
        number: NEXT.fetch_add(1, Ordering::Relaxed),
        captures: Mutex::new(None),
    }))
}

/// A kernel that the device knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    /// Multiplies floats by a factor: pointer, factor, count.
    Scale,
    /// Adds floats to others: pointer, pointer, count.
    Add,
    /// Takes a number of microseconds.
    Spin,
    /// Does nothing.
    Empty,
}

impl Kernel {
    /// The kernel of a name, and the name as records have it: at one address.
    pub(crate) fn from_name(name: &CStr) -> Option<Kernel> {
        match name.to_bytes() {
            b"scale" => Some(Kernel::Scale),
            b"_Z3addIfEvPT_PKS0_i" => Some(Kernel::Add),
            b"spin" => Some(Kernel::Spin),
            b"empty" => Some(Kernel::Empty),
            _ => None,
        }
    }

    /// The kernel with this number.
    pub(crate) fn from_number(number: u32) -> Kernel {
        [Kernel::Scale, Kernel::Add, Kernel::Spin]
            .into_iter()
            .find(|kernel| *kernel as u32 == number)
            .unwrap_or(Kernel::Empty)
    }

    pub(crate) fn name(self) -> &'static CStr {
        match self {
            Kernel::Scale => c"scale",
            Kernel::Add => c"_Z3addIfEvPT_PKS0_i",
            Kernel::Spin => c"spin",
            Kernel::Empty => c"empty",
        }
    }

    /// Executes it.
    ///
    /// # Safety
    ///
    /// The arguments are those of the kernel.
    unsafe fn execute(self, arguments: &[u64; 3]) {
        let [first, second, third] = *arguments;
        // SAFETY: by the contract of this function.
        unsafe {
            match self {
                Kernel::Scale => {
                    let floats = std::slice::from_raw_parts_mut(first as *mut f32, third as usize);
                    floats
                        .iter_mut()
                        .for_each(|float| *float *= f32::from_bits(second as u32));
                }
                Kernel::Add => {
                    let count = third as usize;
                    let others = std::slice::from_raw_parts(second as *const f32, count);
                    let floats = std::slice::from_raw_parts_mut(first as *mut f32, count);
                    floats
                        .iter_mut()
                        .zip(others)
                        .for_each(|(float, other)| *float += other);
                }
                Kernel::Spin => std::thread::sleep(Duration::from_micros(first)),
                Kernel::Empty => {}
            }
        }
    }
}

/// What the device does.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    Kernel {
        kernel: Kernel,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        arguments: [u64; 3],
    },
    /// A copy of bytes: direction, destination, source, count.
    Copy(u8, usize, usize, usize),
    /// A fill: address, byte, count.
    Fill(usize, u8, usize),
}

/// Work that is submitted.
#[derive(Debug, Clone)]
pub(crate) struct Work {
    pub(crate) action: Action,
    pub(crate) stream: u32,
    /// Id of the node of a graph; 0 for none.
    pub(crate) node: u64,
    /// The program's handle of the node: the address of its id; 0 for none.
    pub(crate) handle: usize,
}

/// A handle of a node, whose id CUPTI tells: its address.
pub(crate) fn node_handle(id: u64) -> usize {
    std::ptr::from_ref(Box::leak(Box::new(id))) as usize
}

/// Waits as a call of the program does; `wait` as in records, and the stream that is waited for.
pub(crate) fn wait(wait: u32, stream: u32) {
    let start = cupti::now();
    synchronize();
    if !cupti::records(kind::SYNCHRONIZATION) {
        return;
    }
    let record = Record::new(kind::SYNCHRONIZATION)
        .with(4, wait)
        .with(8, start)
        .with(16, cupti::now().max(start + 1))
        .with(24, calls::id())
        .with(28, 1_u32)
        .with(32, stream)
        .with(36, u32::MAX);
    if let Some(place) = cupti::append(&record) {
        cupti::complete(place, None);
    }
}

/// Work with the place of its record.
struct Submitted {
    work: Work,
    place: Option<cupti::Place>,
    /// The last of a graph that is recorded as a whole, and the place of its record.
    graph: Option<(cupti::Place, u64)>,
}

static UNDER_WAY: (Mutex<u64>, Condvar) = (Mutex::new(0), Condvar::new());

fn submit(submitted: Submitted) {
    static THREAD: OnceLock<Mutex<Sender<Submitted>>> = OnceLock::new();
    let sender = THREAD.get_or_init(|| {
        let (sender, receiver) = channel::<Submitted>();
        std::thread::spawn(move || {
            let mut graph_start = 0;
            for submitted in receiver {
                execute(&submitted, &mut graph_start);
                *UNDER_WAY.0.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
                UNDER_WAY.1.notify_all();
            }
        });
        Mutex::new(sender)
    });
    *UNDER_WAY.0.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    let sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    // The thread never ends.
    let _ = sender.send(submitted);
}

/// Waits until all work is complete.
pub(crate) fn synchronize() {
    let mut under_way = UNDER_WAY.0.lock().unwrap_or_else(PoisonError::into_inner);
    while *under_way > 0 {
        under_way = UNDER_WAY
            .1
            .wait(under_way)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

fn execute(submitted: &Submitted, graph_start: &mut u64) {
    let start = cupti::now();
    // SAFETY: the program's own addresses and arguments, as a device would take them.
    unsafe {
        match &submitted.work.action {
            Action::Kernel {
                kernel, arguments, ..
            } => kernel.execute(arguments),
            Action::Copy(_, to, from, count) => {
                std::ptr::copy(*from as *const u8, *to as *mut u8, *count);
            }
            Action::Fill(address, byte, count) => {
                std::ptr::write_bytes(*address as *mut u8, *byte, *count);
            }
        }
    }
    if let Action::Kernel { kernel, .. } = &submitted.work.action {
        sampling::executed(*kernel);
    }
    // The shortest work takes a tick of the clock.
    let end = cupti::now().max(start + 32);
    if let Some(place) = submitted.place {
        cupti::complete(place, Some((16, start, end)));
    }
    if submitted.work.node != 0 && *graph_start == 0 {
        *graph_start = start;
    }
    if let Some((place, _)) = submitted.graph {
        cupti::complete(place, Some((8, *graph_start, end)));
        *graph_start = 0;
    }
}

fn record(work: &Work, id: u32) -> Option<Record> {
    let (number, record) = match &work.action {
        Action::Kernel {
            kernel,
            grid,
            block,
            shared,
            ..
        } => {
            let record = Record::new(kind::CONCURRENT_KERNEL)
                .with(6, 16_u16)
                .with(44, 1_u32)
                .with(48, work.stream)
                .with(80, *shared)
                .with(92, id)
                .with(104, kernel.name().as_ptr() as u64)
                .with(144, work.node)
                .with(156, (work.node >> 32) as u32);
            let record = (0..3).fold(record, |record, axis| {
                record
                    .with(52 + 4 * axis, grid[axis])
                    .with(64 + 4 * axis, block[axis])
            });
            (kind::CONCURRENT_KERNEL, record)
        }
        Action::Copy(direction, _, _, count) => (
            kind::MEMCPY,
            Record::new(kind::MEMCPY)
                .with(4, *direction)
                .with(8, *count as u64)
                .with(36, 1_u32)
                .with(40, work.stream)
                .with(44, id)
                .with(64, work.node)
                .with(72, (work.node >> 32) as u32),
        ),
        Action::Fill(_, byte, count) => (
            kind::MEMSET,
            Record::new(kind::MEMSET)
                .with(4, u32::from(*byte))
                .with(8, *count as u64)
                .with(36, 1_u32)
                .with(40, work.stream)
                .with(44, id)
                .with(50, 3_u16)
                .with(64, work.node)
                .with(72, (work.node >> 32) as u32),
        ),
    };
    cupti::records(number).then_some(record)
}

/// Submits work, or adds it to the graph that captures the stream.
pub(crate) fn launch(stream: *const Stream, action: Action) {
    let work = Work {
        action,
        stream: stream_number(stream),
        node: 0,
        handle: 0,
    };
    // SAFETY: null, or a handle that `new_stream` made, which stays valid.
    if let Some(stream) = unsafe { stream.as_ref() } {
        let mut captures = stream
            .captures
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(nodes) = captures.as_mut() {
            let number = u64::from(FIRST_GRAPH + stream.number);
            let handle = node_handle(number << 32 | (nodes.len() as u64 + 1));
            nodes.push(Work { handle, ..work });
            graph_callback(
                resource::GRAPH_NODE_CREATED,
                std::ptr::from_ref(stream) as usize,
                handle,
                0,
            );
            return;
        }
    }
    let place = record(&work, calls::id()).and_then(|record| cupti::append(&record));
    submit(Submitted {
        work,
        place,
        graph: None,
    });
}

/// Tells the tool about a graph, and about a node of it and the one that this is a copy of.
pub(crate) fn graph_callback(id: u32, graph: usize, node: usize, original: usize) {
    if !cupti::wants(domain::RESOURCE, id) {
        return;
    }
    let none = std::ptr::null_mut();
    let about = GraphData {
        graph: graph as *mut c_void,
        original_graph: none,
        node: node as *mut c_void,
        original_node: original as *mut c_void,
        node_type: 0,
        dependency: none,
        exec: none,
    };
    let data = ResourceData {
        context: none,
        stream: none,
        descriptor: (&raw const about).cast(),
    };
    cupti::call(domain::RESOURCE, id, (&raw const data).cast());
}

/// Submits the work of a graph with this number.
pub(crate) fn launch_graph(number: u32, nodes: &[Work], stream: *const Stream) {
    let stream = stream_number(stream);
    let whole = cupti::records(kind::GRAPH_TRACE).then(|| {
        Record::new(kind::GRAPH_TRACE)
            .with(4, calls::id())
            .with(28, number)
            .with(32, 1_u32)
            .with(36, stream)
    });
    let mut whole = whole.and_then(|record| cupti::append(&record));
    let last = nodes.len().saturating_sub(1);
    for (index, node) in nodes.iter().enumerate() {
        let work = Work {
            node: u64::from(number) << 32 | (index as u64 + 1),
            stream,
            ..node.clone()
        };
        let place = match whole {
            None => record(&work, calls::id()).and_then(|record| cupti::append(&record)),
            Some(_) => None,
        };
        let graph = if index == last { whole.take() } else { None };
        submit(Submitted {
            work,
            place,
            graph: graph.map(|place| (place, 0)),
        });
    }
}

/// Allocates memory of the device, filled with zeros; 0 when there is none.
pub(crate) fn allocate(bytes: usize) -> usize {
    // SAFETY: the call takes numbers.
    let address = unsafe { libc::calloc(bytes.max(1), 1) } as usize;
    sizes(|sizes| sizes.insert(address, bytes));
    memory_record(1, address, bytes);
    address
}

/// Frees memory of the device; false when it is none.
pub(crate) fn free(address: usize) -> bool {
    let Some(bytes) = sizes(|sizes| sizes.remove(&address)) else {
        return false;
    };
    memory_record(2, address, bytes);
    // SAFETY: it was allocated by `allocate`, and the program has given it back.
    unsafe { libc::free(address as *mut c_void) };
    true
}

fn sizes<T>(act: impl FnOnce(&mut HashMap<usize, usize>) -> T) -> T {
    static SIZES: Mutex<Option<HashMap<usize, usize>>> = Mutex::new(None);
    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
    act(sizes.get_or_insert_default())
}

fn memory_record(operation: u32, address: usize, bytes: usize) {
    if !cupti::records(kind::MEMORY2) {
        return;
    }
    let record = Record::new(kind::MEMORY2)
        .with(4, operation)
        .with(8, 3_u32)
        .with(12, calls::id())
        .with(16, address as u64)
        .with(24, bytes as u64)
        .with(32, cupti::now())
        .with(56, 1_u32)
        .with(60, u32::MAX);
    if let Some(place) = cupti::append(&record) {
        cupti::complete(place, None);
    }
}

/// Tells the tool about the device and its context, once.
pub(crate) fn describe() {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        const NAME: &CStr = c"NVIDIA Stand-in";
        let name: *const c_char = NAME.as_ptr();
        let device = Record::new(kind::DEVICE)
            .with(8, 4_814_304_000_u64)
            .with(16, 8_u64 << 30)
            .with(28, 60_u32 << 20)
            .with(32, 32_u32)
            .with(36, 1_980_000_u32)
            .with(44, 132_u32)
            .with(76, 1024_u32)
            .with(104, 9_u32)
            .with(108, 0_u32)
            .with(136, name as u64);
        let context = Record::new(kind::CONTEXT)
            .with(4, 1_u32)
            .with(14, NULL_STREAM as u16);
        for (number, record) in [(kind::DEVICE, device), (kind::CONTEXT, context)] {
            if cupti::records(number)
                && let Some(place) = cupti::append(&record)
            {
                cupti::complete(place, None);
            }
        }
    });
}

/// Waits as a program would that polls.
pub(crate) fn settle(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::thread::yield_now();
    }
}

/// Status of calls.
pub(crate) mod status {
    /// The call has succeeded.
    pub(crate) const SUCCESS: u32 = 0;
    /// An argument is wrong.
    pub(crate) const INVALID_VALUE: u32 = 1;
    /// There is no memory.
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    /// The driver is not initialised, or was in a process that this one was forked from.
    pub(crate) const NOT_INITIALIZED: u32 = 3;
    /// There is no function of this name.
    pub(crate) const NOT_FOUND: u32 = 500;
}

/// A count of devices.
pub(crate) const DEVICES: c_int = 1;
