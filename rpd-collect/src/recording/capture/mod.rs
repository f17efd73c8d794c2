//! Captures of GPU calls: each call of the HIP runtime with its arguments and the host data that it reads and writes.
//!
//! A provider calls [`begin`] before a call and [`end`] after it, on the calling thread. What lies between them is the
//! runtime's; calls that the runtime makes to itself are not captured. One lock guards what is known of the program's
//! memory, streams and kernels; it is not held while bytes are copied or the runtime is called.
//!
//! | module | subject |
//! |---|---|
//! | `state` | what is known of the program: memory, streams, events, graphs, kernels |
//! | `order` | which work a synchronisation has waited for |
//! | `inputs` | what a call reads behind its arguments |
//! | `ranges` | the host memory that a copy reads or writes |
//! | `allocations` | allocations and frees |
//! | `managed` | managed variables, which the runtime allocates itself |
//! | `graphs` | the host memory that graphs read and write |
//! | `nodes` | nodes of graphs |
//! | `images` | arrays, and the memory behind textures |
//! | `runtime` | functions of the runtime that a capture calls itself |
//! | `behind` | host-visible memory to which memory of the device points |
//! | `markers` | markers of the program between its calls |
//! | `launch` | kernels, their arguments, and the host-visible memory that they may read |
//! | `configured` | launches whose sizes and arguments are set by calls before |
//! | `guard` | pages that were written, by the kernel's report |
//! | `pages` | which pages of host-visible memory have changed |
//! | `content` | hashes by which data that were staged before are found again |
//! | `pinned` | copies from pinned memory, which the host may change before they are made |
//! | `values` | values that streams wait for |
//! | `watch` | what launches may write that a replay does not put back, where nothing is captured |
//! | `metadata` | the layout of kernel arguments, from code objects |
//! | `items` | the items of a record |
//! | `stage` | host data on the way to the front end |

mod allocations;
mod behind;
mod configured;
mod content;
mod graphs;
mod guard;
mod images;
mod inputs;
mod items;
mod launch;
mod managed;
mod markers;
mod metadata;
mod nodes;
mod order;
mod pages;
mod pinned;
mod ranges;
mod runtime;
mod stage;
mod state;
mod values;
mod watch;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rpd_spool::capture::{
    CaptureCall, CaptureCode, Group, Operation, Role, call_flag, data_use, ended, item, number,
    operation,
};
use rpd_spool::record::RecordKind;

use rpd_spool::options::CaptureOptions;
use rpd_spool::writer::{now, record_len};
use zerocopy::IntoBytes;

use self::items::Items;
use self::state::{CaptureState, STATE};
use super::{process, thread};

pub(crate) use self::managed::register_managed;
pub(crate) use self::markers::marker;
pub(crate) use self::runtime::set_functions;
pub(crate) use self::state::{register_function, register_variable};
pub(crate) use self::watch::{Launch, current_launch, watch};

/// Whether calls are captured.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Starts and ends of calls so far.
static SEQUENCE: AtomicU64 = AtomicU64::new(1);

thread_local! {
    /// Captured calls that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The current device of this thread.
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    /// Code objects that were loaded in the call that this thread is in.
    static LOADED: Cell<Loaded> = const { Cell::new(Loaded::NONE) };
}

/// Beginning of the names of HIP's own kernels.
const RUNTIMES_KERNELS: &[u8] = b"__amd_rocclr_";

/// Code objects of one call that are kept; a fat binary has one for each device.
const LOADED_IDS: usize = 16;

#[derive(Clone, Copy)]
struct Loaded {
    count: usize,
    ids: [u64; LOADED_IDS],
}

impl Loaded {
    const NONE: Loaded = Loaded {
        count: 0,
        ids: [0; LOADED_IDS],
    };

    fn ids(&self) -> &[u64] {
        &self.ids[..self.count.min(LOADED_IDS)]
    }
}

/// Starts the capture of this process. False when there is no room for its files.
pub(crate) fn start() -> bool {
    let Some(process) = process::current() else {
        return false;
    };
    if !stage::open(process.directory.path(), &process.options.capture) {
        return false;
    }
    state::FORK.register();
    ACTIVE.store(true, Ordering::Release);
    true
}

/// Whether the calls of this process are captured, or looked at.
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Acquire) || watch::is_on()
}

fn options() -> Option<&'static CaptureOptions> {
    process::existing().map(|process| &process.options.capture)
}

/// Ends the capture before the program; `why` is one of [`ended`].
fn stop(why: u32) {
    ACTIVE.store(false, Ordering::Relaxed);
    stage::set_ended(why);
}

/// A forked child is not part of its parent's capture.
fn forget_parent() {
    ACTIVE.store(false, Ordering::Relaxed);
    watch::stop();
    DEPTH.set(0);
    stage::forget_parent();
}

fn next() -> u64 {
    SEQUENCE.fetch_add(1, Ordering::Relaxed)
}

/// A call that has begun.
pub(crate) struct Begun {
    operation: &'static Operation,
    number: u32,
    entry: u64,
    start: u64,
    flags: u32,
    items: Items,
    /// The work that the call waits for, as it is when the call begins: other threads may add more meanwhile.
    waits_for: order::Covered,
    /// The allocation that the call frees.
    frees: u64,
    /// Elements for which the arrays have room that the call writes.
    room: u64,
    /// Whether the call becomes part of a capture; otherwise it is only looked at.
    is_captured: bool,
}

/// Leaves the call that this thread is in, also when a panic passes.
struct LeaveOnDrop;

impl Drop for LeaveOnDrop {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// Begins the capture of a call on this thread. `None` when it is not captured.
///
/// # Safety
/// The arguments are those of the call with this number, and the program's pointers in them are valid for it.
pub(crate) unsafe fn begin(number: u32, arguments: &[u8]) -> Option<Begun> {
    let is_active = ACTIVE.load(Ordering::Acquire);
    if !(is_active || watch::is_on()) || DEPTH.get() > 0 {
        return None;
    }
    let operation = operation(number)?;
    if !is_active && !watch::follows(operation) {
        return None;
    }
    DEPTH.set(1);
    let leave = LeaveOnDrop;
    LOADED.set(Loaded::NONE);
    stage::set_staged_by_call(0);
    let mut begun = Begun {
        operation,
        number,
        entry: next(),
        start: 0,
        flags: 0,
        items: Items::new(),
        waits_for: order::Covered::new(),
        frees: 0,
        room: 0,
        is_captured: is_active,
    };
    if !is_active {
        // SAFETY: by the contract of this function.
        unsafe { watch::begin(&mut begun, arguments) };
        std::mem::forget(leave);
        return Some(begun);
    }
    if operation.group != Group::Unsupported {
        // SAFETY: by the contract of this function.
        unsafe { inputs::take(&mut begun, arguments) };
    }
    begun.start = now();
    std::mem::forget(leave);
    Some(begun)
}

impl Begun {
    /// Notes that something which a replay needs could not be taken.
    fn missing(&mut self, what: &str) {
        self.flags |= call_flag::INCOMPLETE;
        self.items.add(
            item::MISSING,
            rpd_spool::capture::NO_ARGUMENT,
            what.as_bytes(),
        );
    }

    /// The value of the argument called `name`; 0 when there is none.
    fn argument(&self, arguments: &[u8], name: &str) -> u64 {
        let found = self.operation.argument(name);
        found.map_or(0, |found| found.value(arguments))
    }

    /// The address that the call is about; 0 when it is about none.
    fn address(&self, arguments: &[u8]) -> u64 {
        let found = self.operation.with_role(Role::Address);
        found.map_or(0, |found| found.value(arguments))
    }

    /// The stream that the call is about, as the program names it.
    fn raw_stream(&self, arguments: &[u8]) -> u64 {
        let handle = Role::Handle(rpd_spool::capture::HandleKind::Stream);
        let found = self.operation.with_role(handle);
        found.map_or(0, |argument| argument.value(arguments))
    }

    /// The stream that the call is about.
    fn stream(&self, arguments: &[u8]) -> u64 {
        let raw = self.raw_stream(arguments);
        order::stream(raw, self.operation.name().ends_with("_spt"))
    }
}

/// The call has returned `result`.
///
/// # Safety
/// As for [`begin`], with the same arguments.
pub(crate) unsafe fn end(mut begun: Begun, arguments: &[u8], result: i32) {
    let _leave = LeaveOnDrop;
    // A capture that ended meanwhile still has this call.
    if !begun.is_captured {
        // SAFETY: by the contract of this function.
        unsafe { watch::end(&mut begun, arguments, result) };
        return;
    }
    let end = now();
    let exit = next();
    // Programs query completion in loops: queries that replay as nothing are left out.
    let asks_in_vain = match begun.number {
        number::hipStreamQuery | number::hipStreamQuery_spt | number::hipEventQuery => result != 0,
        number::hipStreamGetCaptureInfo_v2 | number::hipStreamGetCaptureInfo_v2_spt => {
            let stream = begun.stream(arguments);
            let capture = STATE.with(|state| state.graphs.capturing(stream));
            capture.flatten().is_none()
        }
        _ => false,
    };
    if asks_in_vain {
        return;
    }
    match begun.operation.group {
        Group::Unsupported => {}
        // SAFETY: by the contract of this function.
        _ if result == 0 => unsafe { outputs(&mut begun, arguments) },
        // SAFETY: as above.
        Group::Launch => unsafe { launch::end(&mut begun, arguments, true) },
        _ => {}
    }
    stage::count_call();
    let room = arguments.len().next_multiple_of(8);
    let tail = room + begun.items.bytes().len();
    let len = record_len(size_of::<CaptureCall>(), tail);
    let call = CaptureCall {
        header: RecordKind::CaptureCall.head(tail),
        operation: begun.number,
        flags: begun.flags,
        entry: begun.entry,
        exit,
        start: begun.start,
        end,
        result,
        device: DEVICE.get(),
    };
    if begun.number == number::hipSetDevice && result == 0 {
        DEVICE.set(begun.argument(arguments, "deviceId") as i32);
    }
    let changes_context = matches!(
        begun.number,
        number::hipCtxCreate
            | number::hipCtxDestroy
            | number::hipCtxPopCurrent
            | number::hipCtxPushCurrent
            | number::hipCtxSetCurrent
    );
    if changes_context && let Some(device) = runtime::current_device() {
        DEVICE.set(device);
    }
    append(call.as_bytes(), arguments, room, begun.items.bytes(), len);
}

/// Writes a record to this thread's stream. A record that does not fit ends the capture: what follows would be of no use
/// without it.
fn append(fixed: &[u8], arguments: &[u8], room: usize, items: &[u8], len: usize) {
    let written = thread::with(|thread| {
        thread.records.append(len, |bytes| {
            let (head, tail) = bytes.split_at_mut(fixed.len());
            head.copy_from_slice(fixed);
            tail[..arguments.len()].copy_from_slice(arguments);
            tail[room..][..items.len()].copy_from_slice(items);
        })
    });
    if written == Some(false) {
        stop(ended::NO_SPACE);
    }
}

/// Takes the handles, memory and results that the call made and wrote.
///
/// # Safety
/// As for [`end`].
unsafe fn outputs(begun: &mut Begun, arguments: &[u8]) {
    let operation = begun.operation;
    for (position, argument) in operation.arguments().iter().enumerate() {
        let value = argument.value(arguments);
        let position = position as u16;
        let bytes = match argument.role {
            Role::HandleOut(_) | Role::AddressOut => 8,
            Role::StructOut(bytes) => bytes as usize,
            Role::Count => 8,
            // SAFETY: by the contract of this function.
            Role::NodesOut => unsafe { counted(begun, arguments).min(begun.room) as usize * 8 },
            Role::NodeListOut if value != 0 => {
                // SAFETY: the call has stored there where the runtime has the nodes.
                unsafe {
                    let list = (value as *const u64).read_unaligned();
                    let bytes = counted(begun, arguments) as usize * 8;
                    begun.items.add_memory(item::OUT, position, list, bytes);
                }
                0
            }
            _ => 0,
        };
        // SAFETY: the call succeeded, so it wrote there.
        unsafe { begun.items.add_memory(item::OUT, position, value, bytes) };
    }
    match operation.group {
        // SAFETY: by the contract of the caller.
        Group::Memory => unsafe { allocations::end(begun, arguments) },
        // SAFETY: as above.
        Group::Image => unsafe { images::end(begun, arguments) },
        Group::Transfer => ranges::end(begun, arguments),
        // SAFETY: as above.
        Group::Launch => unsafe { launch::end(begun, arguments, false) },
        // SAFETY: as above.
        Group::Order | Group::Graph => unsafe { order::end(begun, arguments) },
        // SAFETY: as above.
        Group::Code => unsafe { code(begun, arguments) },
        Group::Context => {
            match begun.number {
                number::hipDeviceReset => drop(STATE.with(CaptureState::forget_memory)),
                // SAFETY: as above.
                number::hipConfigureCall | number::hipSetupArgument => unsafe {
                    configured::end(begun, arguments);
                },
                _ => {}
            }
        }
        Group::Query | Group::Unsupported => {}
    }
    let loaded = LOADED.get();
    if loaded.count > 0 {
        begun.items.add(
            item::CODE,
            rpd_spool::capture::NO_ARGUMENT,
            loaded.ids().as_bytes(),
        );
    }
}

/// The number of elements that the call stored behind its count.
///
/// # Safety
/// The call succeeded.
unsafe fn counted(begun: &Begun, arguments: &[u8]) -> u64 {
    // SAFETY: by the contract of this function.
    unsafe { stored(begun, arguments, Role::Count) }
}

/// The eight bytes that the call stored behind the first argument with this role.
///
/// # Safety
/// The call succeeded.
unsafe fn stored(begun: &Begun, arguments: &[u8], role: Role) -> u64 {
    let pointer = begun
        .operation
        .with_role(role)
        .map_or(0, |argument| argument.value(arguments)) as *const u64;
    if pointer.is_null() {
        return 0;
    }
    // SAFETY: by the contract of this function.
    unsafe { pointer.read_unaligned() }
}

/// Functions of modules.
///
/// # Safety
/// The call succeeded.
unsafe fn code(begun: &mut Begun, arguments: &[u8]) {
    use rpd_spool::capture::HandleKind::{Function, Module};
    match begun.number {
        number::hipModuleLoad | number::hipModuleLoadData | number::hipModuleLoadDataEx => {
            // SAFETY: by the contract of this function.
            let module = unsafe { stored(begun, arguments, Role::HandleOut(Module)) };
            let loaded = LOADED.get();
            STATE.with(|state| state.module_loaded(module, loaded.ids()));
        }
        number::hipModuleGetFunction => {
            // SAFETY: as above.
            let function = unsafe { stored(begun, arguments, Role::HandleOut(Function)) };
            let name = begun.argument(arguments, "kname") as *const std::ffi::c_char;
            // SAFETY: the call has read the text.
            let name = unsafe { super::text::text(name) };
            let module = begun.argument(arguments, "module");
            STATE.with(|state| state.function_found(function, module, name));
        }
        number::hipGetFuncBySymbol => {
            // SAFETY: as above.
            let function = unsafe { stored(begun, arguments, Role::HandleOut(Function)) };
            let symbol = begun.argument(arguments, "symbolPtr");
            let found = STATE
                .with(|state| state.function_of_host(function, symbol))
                .flatten();
            match found {
                Some(found) => begun.items.add_kernel(found.code, &found.kernel.name),
                None => begun.missing("the kernel is in no code object that was captured"),
            }
        }
        _ => {}
    }
}

/// A code object was loaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeObjectLoad<'a> {
    /// Number that the provider gave the code object.
    pub(crate) id: u64,
    /// The provider's handle of the device.
    pub(crate) agent: u64,
    /// Load address, and size in bytes.
    pub(crate) load: (u64, u64),
    /// Content of the ELF file.
    pub(crate) bytes: &'a [u8],
}

/// Takes a code object that was loaded, on the thread that loads it.
pub(crate) fn code_loaded(load: &CodeObjectLoad<'_>) {
    if !is_active() {
        return;
    }
    let kernels = metadata::kernels(load.bytes);
    // HIP loads its own kernels within the program's first call that needs them.
    let is_runtimes = kernels
        .iter()
        .any(|kernel| kernel.name.starts_with(RUNTIMES_KERNELS));
    if DEPTH.get() > 0 && !is_runtimes {
        let mut loaded = LOADED.get();
        if let Some(slot) = loaded.ids.get_mut(loaded.count) {
            *slot = load.id;
            loaded.count += 1;
        }
        LOADED.set(loaded);
    }
    if !ACTIVE.load(Ordering::Acquire) {
        STATE.with(|state| state.code_loaded(load.id, load.load, kernels));
        return;
    }
    let mut items = Items::new();
    let staged = stage::staged_by_call();
    let bytes = load.bytes;
    let range = ranges::Range::flat(bytes.as_ptr() as u64, bytes.len() as u64);
    // A capture without host data has the code nevertheless.
    items.add_data(&range, data_use::CODE, 0, true);
    let len = record_len(size_of::<CaptureCode>(), items.bytes().len());
    let code = CaptureCode {
        header: RecordKind::CaptureCode.head(items.bytes().len()),
        id: load.id,
        agent: load.agent,
        load_base: load.load.0,
        load_size: load.load.1,
        entry: next(),
    };
    append(code.as_bytes(), &[], 0, items.bytes(), len);
    stage::set_staged_by_call(staged);
    // Last: a launch from this code object, on any thread, then comes after its record, which is kept even when the
    // program is killed.
    STATE.with(|state| state.code_loaded(load.id, load.load, kernels));
}

/// A code object was unloaded.
pub(crate) fn code_unloaded(id: u64) {
    if is_active() {
        STATE.with(|state| state.code_unloaded(id));
    }
}

/// The runtime's table has `count` functions that are not known here.
pub(crate) fn note_unknown_functions(count: u64) {
    stage::set_unknown_functions(count);
}
