//! Captures stacks on request and returns them as text, for programs that load this library through a C interface.
//!
//! The tests of Python frames load it into real interpreters. A stack is one line per frame, outermost first, after a
//! line with the flags: `P file line end_line column end_column name qualname`, `N address symbol module` for native
//! frames, or the kind of a marker; fields are separated by tabs.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

use rpd_stacks::python::line_table;
use rpd_stacks::{
    JitObject, Location, LocationKind, Mode, Module, Node, Options, PythonCode, Sink, Stacks,
    ThreadStacks,
};

/// Facts to which the stacks of the process refer.
#[derive(Default)]
struct Facts {
    modules: HashMap<u32, (String, u64)>,
    codes: HashMap<u32, Code>,
    locations: HashMap<u32, Location>,
    nodes: HashMap<u32, Node>,
}

struct Code {
    file: String,
    name: String,
    qualname: String,
    first_line: i32,
    version: u32,
    line_table: Vec<u8>,
}

static STACKS: OnceLock<Stacks> = OnceLock::new();
/// Null before the first fact; a forked child starts over, because another thread of its parent may have held the lock.
static FACTS: AtomicPtr<Mutex<Facts>> = AtomicPtr::new(std::ptr::null_mut());

fn facts() -> &'static Mutex<Facts> {
    let mut known = FACTS.load(Ordering::Acquire);
    if known.is_null() {
        let new = Box::into_raw(Box::<Mutex<Facts>>::default());
        let null = std::ptr::null_mut();
        known = match FACTS.compare_exchange(null, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => other,
        };
    }
    // SAFETY: made above and never freed.
    unsafe { &*known }
}

thread_local! {
    static THREAD: RefCell<ThreadStacks> = RefCell::new(ThreadStacks::new());
}

struct Store;

impl Store {
    fn with(&self, store: impl FnOnce(&mut Facts)) -> bool {
        let Ok(mut facts) = facts().lock() else {
            return false;
        };
        store(&mut facts);
        true
    }
}

impl Sink for Store {
    fn module(&mut self, module: &Module<'_>) -> bool {
        let path = String::from_utf8_lossy(module.path).into_owned();
        self.with(|facts| drop(facts.modules.insert(module.id, (path, module.bias))))
    }

    fn code(&mut self, code: &PythonCode<'_>) -> bool {
        let text = |bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| "<not UTF-8>".to_owned())
        };
        let owned = Code {
            file: text(code.file),
            name: text(code.name),
            qualname: text(code.qualname),
            first_line: code.first_line,
            version: code.version,
            line_table: code.line_table.to_vec(),
        };
        self.with(|facts| drop(facts.codes.insert(code.id, owned)))
    }

    fn object(&mut self, _: &JitObject) -> bool {
        true
    }

    fn location(&mut self, location: &Location) -> bool {
        self.with(|facts| {
            facts.locations.insert(location.id, *location);
        })
    }

    fn node(&mut self, node: &Node) -> bool {
        self.with(|facts| {
            facts.nodes.insert(node.id, *node);
        })
    }
}

/// Sets the frames that captures have: 0 native, 1 Python, 2 merged; and the depth. Only the first call of a process
/// counts.
#[unsafe(no_mangle)]
pub extern "C" fn probe_open(mode: u32, depth: u32) {
    let mode = match mode {
        0 => Mode::Native,
        1 => Mode::Python,
        _ => Mode::Merged,
    };
    STACKS.get_or_init(|| Stacks::new(Options { mode, depth }));
}

/// Captures the stack of the calling thread. Returns the id of the stack and, through `flags`, its flags.
#[unsafe(no_mangle)]
pub extern "C" fn probe_capture(flags: Option<&mut u32>) -> u32 {
    let Some(stacks) = STACKS.get() else {
        return 0;
    };
    let captured = THREAD.with_borrow_mut(|thread| stacks.capture(thread, &mut Store));
    if let Some(flags) = flags {
        *flags = captured.flags;
    }
    captured.stack
}

/// Captures below `depth` native frames of its own. Returns the id of the stack.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn probe_below(depth: u32, flags: &mut u32) -> u32 {
    match depth {
        0 => probe_capture(Some(flags)),
        _ => std::hint::black_box(probe_below(depth - 1, flags)),
    }
}

/// Captures once for each entry of `depths`, below as many native frames, and stores the ids of the stacks in the entries.
/// Returns the flags of all.
///
/// # Safety
///
/// There are `count` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_depths(depths: *mut u32, count: usize) -> u32 {
    let mut all = 0;
    // SAFETY: the caller says so.
    for depth in unsafe { std::slice::from_raw_parts_mut(depths, count) } {
        let mut flags = 0;
        *depth = probe_below(*depth, &mut flags);
        all |= flags;
    }
    all
}

/// Captures `count` times. Returns the nanoseconds of the lower decile of 1000 equal parts, per capture: what the machine
/// does beside this only adds.
#[unsafe(no_mangle)]
pub extern "C" fn probe_bench(count: u32) -> f64 {
    let Some(stacks) = STACKS.get() else {
        return 0.0;
    };
    THREAD.with_borrow_mut(|thread| {
        let part = (count / 1000).max(1);
        let mut times: Vec<f64> = (0..1000)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..part {
                    std::hint::black_box(stacks.capture(thread, &mut Store));
                }
                start.elapsed().as_secs_f64() * 1e9 / f64::from(part)
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times[100]
    })
}

/// Starts over in the child of a fork. To be called before the child's first capture.
#[unsafe(no_mangle)]
pub extern "C" fn probe_forked() {
    if let Some(stacks) = STACKS.get() {
        stacks.forked();
    }
    FACTS.store(std::ptr::null_mut(), Ordering::Release);
}

/// Calls a function, so that its Python caller and callee have a native frame between them.
#[unsafe(no_mangle)]
pub extern "C" fn probe_call(function: extern "C" fn(usize) -> u32, argument: usize) -> u32 {
    std::hint::black_box(function(argument))
}

/// Sets a Python exception with `PyErr_SetString`, whose address `set` is, and captures while it is pending.
///
/// # Safety
///
/// The arguments are right, and the caller holds the GIL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_pending(set: usize, kind: usize, text: *const c_char) -> u32 {
    // SAFETY: passed on to our caller.
    let set = unsafe { std::mem::transmute::<usize, extern "C" fn(usize, *const c_char)>(set) };
    set(kind, text);
    probe_capture(None)
}

type Evaluate = unsafe extern "C" fn(usize, usize, i32) -> usize;

static EVALUATOR: AtomicUsize = AtomicUsize::new(0);

/// Sets the evaluator that [`probe_evaluate`] hands frames to.
#[unsafe(no_mangle)]
pub extern "C" fn probe_set_evaluator(address: usize) {
    EVALUATOR.store(address, Ordering::Relaxed);
}

/// An evaluator of frames as PEP 523 has them, which hands all frames to the interpreter's own.
///
/// # Safety
///
/// Only the interpreter calls it, after [`probe_set_evaluator`] was called with an evaluator's address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_evaluate(thread: usize, frame: usize, throw: i32) -> usize {
    // SAFETY: passed on to our caller.
    let evaluate =
        unsafe { std::mem::transmute::<usize, Evaluate>(EVALUATOR.load(Ordering::Relaxed)) };
    // SAFETY: as above.
    std::hint::black_box(unsafe { evaluate(thread, frame, throw) })
}

/// Writes the state of the interpreter as text.
///
/// # Safety
///
/// `text` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_interpreter(text: *mut c_char, size: usize) -> usize {
    let interpreter = STACKS.get().map(Stacks::interpreter);
    // SAFETY: passed on to our caller.
    unsafe { write_text(&format!("{interpreter:x?}"), text, size) }
}

/// Writes a stack as text, at most `size` bytes with the null byte. Returns the length it would have.
///
/// # Safety
///
/// `text` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_text(
    stack: u32,
    flags: u32,
    text: *mut c_char,
    size: usize,
) -> usize {
    let written = match facts().lock() {
        Ok(facts) => facts.text(stack, flags),
        Err(_) => format!("{flags}\n"),
    };
    // SAFETY: passed on to our caller.
    unsafe { write_text(&written, text, size) }
}

unsafe fn write_text(written: &str, text: *mut c_char, size: usize) -> usize {
    if size > 0 {
        let length = written.len().min(size - 1);
        // SAFETY: the caller has room for `size` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(written.as_ptr(), text.cast(), length);
            *text.add(length) = 0;
        }
    }
    written.len()
}

impl Facts {
    fn text(&self, mut stack: u32, flags: u32) -> String {
        let mut lines = Vec::new();
        while stack != 0 {
            let Some(node) = self.nodes.get(&stack) else {
                lines.push("missing node".to_owned());
                break;
            };
            lines.push(self.line(node));
            stack = node.parent;
        }
        lines.push(flags.to_string());
        lines.reverse();
        lines.join("\n")
    }

    fn line(&self, node: &Node) -> String {
        let Some(location) = self.locations.get(&node.location) else {
            return "missing location".to_owned();
        };
        let mut line = String::new();
        let written = match location.kind {
            LocationKind::Python => match self.codes.get(&location.code) {
                None => write!(line, "missing code"),
                Some(code) => {
                    let at = line_table::position(
                        code.version,
                        &code.line_table,
                        code.first_line,
                        location.offset as i64,
                    );
                    let number = |value: Option<u32>| {
                        value.map_or("-".to_owned(), |value| value.to_string())
                    };
                    write!(
                        line,
                        "P\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
                        code.file,
                        number(at.line),
                        number(at.end_line),
                        number(at.column),
                        number(at.end_column),
                        code.name,
                        code.qualname
                    )
                }
            },
            LocationKind::Native => match self.modules.get(&location.module) {
                None => write!(line, "missing module"),
                Some((path, bias)) => {
                    let address = location.offset.wrapping_add(*bias);
                    write!(
                        line,
                        "N\t{:x}\t{}\t{path}",
                        location.offset,
                        symbol(address)
                    )
                }
            },
            kind => write!(line, "{kind:?}"),
        };
        debug_assert!(written.is_ok());
        line
    }
}

/// The exported symbol before an address.
fn symbol(address: u64) -> String {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: fills the structure if the address is in a loaded object.
    let known = unsafe { libc::dladdr(address as *const _, info.as_mut_ptr()) } != 0;
    // SAFETY: zeroed, so valid in any case.
    let name = unsafe { info.assume_init() }.dli_sname;
    if !known || name.is_null() {
        return "?".to_owned();
    }
    // SAFETY: a string of the loader.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}
