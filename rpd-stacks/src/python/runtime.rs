//! The interpreter of the process: its functions, its version, whether it can be read.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU8, Ordering};

use super::layout::{self, Layout, StateLists};
use super::memory::{Checked, Direct, Memory, plausible};
use super::trampoline::Trampoline;
use crate::native::exports::Exports;

/// A CPython runtime in a loaded object.
pub(crate) struct Runtime {
    /// Index of the module that holds it.
    pub(super) module: u32,
    /// Version of the interpreter, as in `PY_VERSION_HEX`.
    pub(crate) version: u32,
    /// `None` for a version whose structures are not known.
    pub(crate) layout: Option<Layout>,
    /// Address of `_PyRuntime`.
    runtime: usize,
    this_thread_state: unsafe extern "C" fn() -> usize,
    is_initialized: unsafe extern "C" fn() -> c_int,
    first_interpreter: unsafe extern "C" fn() -> usize,
    next_interpreter: unsafe extern "C" fn(usize) -> usize,
    /// Types by which an object is recognised.
    pub(crate) code_type: usize,
    pub(crate) text_type: usize,
    pub(crate) bytes_type: usize,
    /// First address and size of the evaluator.
    pub(crate) evaluator: (usize, usize),
    /// `None` in versions without perf trampolines.
    pub(super) trampoline: Option<Trampoline>,
    pub(crate) api: Option<Api>,
    trust: AtomicU8,
}

/// Functions of the public API for reading frames; only for versions whose structures are unknown.
pub(crate) struct Api {
    /// The thread state that runs on this thread, null if it is detached (3.13 on).
    pub(crate) attached: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) first_frame: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub(crate) back: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub(crate) code: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub(crate) line: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) attribute: unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
    pub(crate) utf8: unsafe extern "C" fn(*mut c_void, *mut isize) -> *const u8,
    pub(crate) integer: unsafe extern "C" fn(*mut c_void) -> i64,
    pub(crate) release: unsafe extern "C" fn(*mut c_void),
    pub(crate) error: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) clear_error: unsafe extern "C" fn(),
}

/// Whether the layout describes this interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Trust {
    /// No frame has been read yet.
    Unproven = 0,
    /// The layout has been verified on a real stack.
    Proven = 1,
    /// The description contradicts the content of memory; frames are not read any more.
    Refused = 2,
}

/// State of a thread's Python.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thread {
    /// The thread runs no Python, or Python has ended.
    None,
    /// Address of the thread's Python state.
    State(usize),
}

impl Runtime {
    /// The interpreter that a module contains, if it contains one.
    ///
    /// # Safety
    ///
    /// As for [`Exports::from_bias`]. The object must stay loaded while functions of the result are called.
    pub(super) unsafe fn find(module: u32, bias: usize, dynamic: usize) -> Option<Runtime> {
        // SAFETY: passed on to our caller.
        let exports = unsafe { Exports::from_bias(bias as u64, dynamic as u64)? };
        let address = |name| exports.find(name).map(|export| export.address);
        let function = |name| address(name).filter(|&address| address != 0);
        let runtime = address("_PyRuntime")?;
        let this_thread_state = function("PyGILState_GetThisThreadState")?;
        let is_initialized = function("Py_IsInitialized")?;
        let first_interpreter = function("PyInterpreterState_Head")?;
        let next_interpreter = function("PyInterpreterState_Next")?;
        // SAFETY: addresses in the loaded object's data.
        let memory = unsafe { Direct::new() };
        let version = match address("Py_Version") {
            Some(version) => memory.word(version)? as u32,
            // SAFETY: the function of this name has this type and returns a static text.
            None => unsafe {
                let text = std::mem::transmute::<usize, unsafe extern "C" fn() -> *const c_char>(
                    function("Py_GetVersion")?,
                );
                version_of_text(CStr::from_ptr(text()).to_bytes())?
            },
        };
        let evaluator = exports.find("_PyEval_EvalFrameDefault");
        // SAFETY: functions of these names have had these types since 3.8.
        unsafe {
            Some(Runtime {
                module,
                version,
                layout: layout::of_version(&memory, version, runtime),
                runtime,
                this_thread_state: std::mem::transmute::<usize, unsafe extern "C" fn() -> usize>(
                    this_thread_state,
                ),
                is_initialized: std::mem::transmute::<usize, unsafe extern "C" fn() -> c_int>(
                    is_initialized,
                ),
                first_interpreter: std::mem::transmute::<usize, unsafe extern "C" fn() -> usize>(
                    first_interpreter,
                ),
                next_interpreter: std::mem::transmute::<usize, unsafe extern "C" fn(usize) -> usize>(
                    next_interpreter,
                ),
                code_type: address("PyCode_Type")?,
                text_type: address("PyUnicode_Type")?,
                bytes_type: address("PyBytes_Type")?,
                evaluator: evaluator.map_or((0, 0), |export| (export.address, export.size)),
                trampoline: Trampoline::find(&exports),
                api: Api::find(&exports),
                trust: AtomicU8::new(Trust::Unproven as u8),
            })
        }
    }

    /// Whether an address is in the range of the evaluator's symbol.
    #[inline(always)]
    pub(crate) fn in_evaluator(&self, address: usize) -> bool {
        address.wrapping_sub(self.evaluator.0) < self.evaluator.1
    }

    /// Python state of the calling thread. Neither needs nor takes the GIL.
    #[inline]
    pub(crate) fn thread(&self, layout: &Layout) -> Thread {
        // SAFETY: reads a thread-local slot.
        let state = unsafe { (self.this_thread_state)() };
        if !plausible(state) {
            return Thread::None;
        }
        // SAFETY: reads a flag.
        let running = unsafe { (self.is_initialized)() } != 0 && self.finalizing(layout) == 0;
        if running || self.finalizing(layout) == state {
            Thread::State(state)
        } else {
            Thread::None
        }
    }

    /// Whether the state of `thread` may still be used. To be called after the first pointer was read from it: once
    /// finalization has begun, the states of all threads but the one that finalizes are freed.
    #[inline]
    pub(crate) fn still(&self, layout: &Layout, state: usize) -> bool {
        std::sync::atomic::fence(Ordering::Acquire);
        let finalizing = self.finalizing(layout);
        finalizing == 0 || finalizing == state
    }

    #[inline(always)]
    fn finalizing(&self, layout: &Layout) -> usize {
        // SAFETY: a word of the runtime, which is data of a loaded object.
        unsafe { ((self.runtime + layout.finalizing) as *const usize).read_volatile() }
    }

    /// Whether Python is initialised, by its public interface.
    pub(crate) fn is_running(&self) -> bool {
        // SAFETY: reads a flag.
        unsafe { (self.is_initialized)() != 0 }
    }

    /// Whether the calling thread has ever run Python.
    pub(crate) fn has_thread(&self) -> bool {
        // SAFETY: reads a thread-local slot.
        plausible(unsafe { (self.this_thread_state)() })
    }

    /// Whether more than one interpreter exists.
    pub(crate) fn has_sub_interpreters(&self) -> bool {
        // SAFETY: reads the list's head, and the link of an interpreter that exists while its head does.
        unsafe {
            let first = (self.first_interpreter)();
            first != 0 && (self.next_interpreter)(first) != 0
        }
    }

    /// The other states that the calling thread has, beside `state`: each interpreter has its own for a thread that runs
    /// it. `None` if there are more than [`STATES`], or if the lists cannot be followed.
    #[inline]
    pub(crate) fn other_states(&self, layout: &Layout, state: usize) -> Option<States> {
        let Some(lists) = &layout.states else {
            return Some(States::default());
        };
        let list = (self.runtime + lists.interpreters) as *const usize;
        // An interpreter or a thread that ends meanwhile breaks the list for a moment.
        (0..ATTEMPTS).find_map(|_| {
            // SAFETY: two words of the runtime, which is data of a loaded object.
            let (first, main) = unsafe { (list.read_volatile(), list.add(1).read_volatile()) };
            // New interpreters are put before the main one.
            if first == main {
                return Some(States::default());
            }
            states_of_this_thread(&Checked, lists, first, state)
        })
    }

    /// Whether the layout was confirmed.
    #[inline(always)]
    pub(crate) fn trust(&self) -> Trust {
        match self.trust.load(Ordering::Relaxed) {
            0 => Trust::Unproven,
            1 => Trust::Proven,
            _ => Trust::Refused,
        }
    }

    /// Sets whether the layout was confirmed. A refusal is final.
    pub(crate) fn set_trust(&self, trust: Trust) {
        self.trust.fetch_max(trust as u8, Ordering::Relaxed);
    }
}

/// Thread states that one thread can have in different interpreters.
pub(crate) const STATES: usize = 32;
/// Interpreters, and states of one interpreter, that are visited: more are a list that was changed while it was followed.
const LISTED: usize = 1 << 14;
/// How often the lists are followed before they are given up.
const ATTEMPTS: usize = 3;

/// Thread states of one thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct States {
    found: [usize; STATES],
    count: usize,
}

impl States {
    /// Addresses of the thread states.
    #[inline(always)]
    pub(crate) fn addresses(&self) -> &[usize] {
        &self.found[..self.count]
    }
}

/// The states of the calling thread other than `state`, from the list that begins with `interpreter`. States of other
/// threads come and go while the lists are followed, so each is read with checks. Those of this thread stay.
#[cold]
fn states_of_this_thread(
    memory: &impl Memory,
    lists: &StateLists,
    mut interpreter: usize,
    state: usize,
) -> Option<States> {
    // SAFETY: has no preconditions.
    let own = unsafe { libc::pthread_self() } as usize;
    let mut states = States::default();
    for _ in 0..LISTED {
        if interpreter == 0 {
            return Some(states);
        }
        let mut other = memory.word(interpreter + lists.interpreter_states)?;
        for _ in 0..LISTED {
            if other == 0 {
                break;
            }
            let is_own = memory.word(other + lists.state_thread)? == own
                && memory.word(other + lists.state_interpreter)? == interpreter;
            if is_own && other != state {
                *states.found.get_mut(states.count)? = other;
                states.count += 1;
            }
            other = memory.word(other + lists.state_next)?;
        }
        interpreter = memory.word(interpreter + lists.interpreter_next)?;
    }
    None
}

impl Api {
    fn find(exports: &Exports) -> Option<Api> {
        let function = |name| exports.find(name).map(|export| export.address);
        // SAFETY: functions of these names have these types; they are part of the stable or public interface.
        // All or none: with one function missing frames cannot be read, and half of them would not be noticed.
        unsafe {
            Some(Api {
                attached: std::mem::transmute::<usize, unsafe extern "C" fn() -> *mut c_void>(
                    function("PyThreadState_GetUnchecked")?,
                ),
                first_frame: std::mem::transmute::<
                    usize,
                    unsafe extern "C" fn(*mut c_void) -> *mut c_void,
                >(function("PyThreadState_GetFrame")?),
                back: std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(
                    function("PyFrame_GetBack")?,
                ),
                code: std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(
                    function("PyFrame_GetCode")?,
                ),
                line: std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> c_int>(
                    function("PyFrame_GetLineNumber")?,
                ),
                attribute: std::mem::transmute::<
                    usize,
                    unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
                >(function("PyObject_GetAttrString")?),
                utf8: std::mem::transmute::<
                    usize,
                    unsafe extern "C" fn(*mut c_void, *mut isize) -> *const u8,
                >(function("PyUnicode_AsUTF8AndSize")?),
                integer: std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void) -> i64>(
                    function("PyLong_AsLongLong")?,
                ),
                release: std::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(function(
                    "Py_DecRef",
                )?),
                error: std::mem::transmute::<usize, unsafe extern "C" fn() -> *mut c_void>(
                    function("PyErr_Occurred")?,
                ),
                clear_error: std::mem::transmute::<usize, unsafe extern "C" fn()>(function(
                    "PyErr_Clear",
                )?),
            })
        }
    }
}

/// The version (as `PY_VERSION_HEX`) of a text such as `3.8.18 (default, ...)`; only major, minor and micro.
fn version_of_text(text: &[u8]) -> Option<u32> {
    let number = text.split(|&byte| byte == b' ').next()?;
    let mut parts = number.split(|&byte| byte == b'.').map(|part| {
        std::str::from_utf8(part.split(|byte| !byte.is_ascii_digit()).next()?)
            .ok()?
            .parse()
            .ok()
    });
    let mut part = || parts.next().flatten().filter(|&part: &u32| part < 256);
    Some(part()? << 24 | part()? << 16 | part()? << 8 | 0xf0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_version_is_read_from_its_text() {
        assert_eq!(
            version_of_text(b"3.8.18 (default, May  9 2026) [GCC]"),
            Some(0x0308_12f0)
        );
        assert_eq!(version_of_text(b"3.10.13+ (main)"), Some(0x030a_0df0));
        assert_eq!(version_of_text(b"pypy"), None);
    }
}
