//! The domain of joined marker ranges: a range is one event from push to pop, or from start to stop.

#![allow(non_snake_case)]

use core::{
    cell::RefCell,
    ffi::{c_char, c_void},
    mem::MaybeUninit,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};
use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    mem::ManuallyDrop,
    sync::Mutex,
};

use super::{
    register::replace,
    trace::{self, Call},
};
use crate::api::table::Slot;

const MARK: usize = 0;
const THREAD_RANGE: usize = 1;
const PROCESS_RANGE: usize = 2;
const GET_THREAD_ID: usize = 3;

/// Functions that the wrappers call, by slot of the core table.
static NEXT: [AtomicPtr<c_void>; 6] = [const { AtomicPtr::new(ptr::null_mut()) }; 6];

/// A range that is open and was traced.
struct Open {
    call: Box<MaybeUninit<Call>>,
    /// Message of the range for its end event, when the program's text may be gone.
    _message: Option<CString>,
}

// SAFETY: a call of a process range may end on another thread; it is touched by one at a time.
unsafe impl Send for Open {}

thread_local! {
    /// Ranges pushed by this thread, `None` for those that no context traced.
    ///
    /// Not dropped with the thread: calls in later destructors still look at what is open.
    static PUSHED: ManuallyDrop<RefCell<Vec<Option<Open>>>> =
        const { ManuallyDrop::new(RefCell::new(Vec::new())) };
}

/// Ranges that were started and not stopped, by id.
static STARTED: Mutex<Option<HashMap<u64, Open>>> = Mutex::new(None);

/// Puts the wrappers into the core table if a context traces ranges.
pub(crate) fn install(slots: &[Slot]) {
    let domain = &trace::MARKER_CORE_RANGE_API;
    let list: [(usize, usize, *const ()); 6] = [
        (0, MARK, roctxMarkA as *const ()),
        (1, THREAD_RANGE, roctxRangePushA as *const ()),
        (2, THREAD_RANGE, roctxRangePop as *const ()),
        (3, PROCESS_RANGE, roctxRangeStartA as *const ()),
        (4, PROCESS_RANGE, roctxRangeStop as *const ()),
        (5, GET_THREAD_ID, roctxGetThreadId as *const ()),
    ];
    for (slot, operation, wrapper) in list {
        if domain.wanted(operation) && slot < slots.len() {
            replace(&slots[slot], wrapper, &NEXT[slot]);
        }
    }
}

macro_rules! next {
    ($slot:literal, ($($t:ty),*) -> $r:ty, ($($a:expr),*)) => {{
        let slot = NEXT[$slot].load(Ordering::Relaxed);
        // SAFETY: it was in that slot and so is of this type; the arguments are the caller's.
        unsafe {
            core::mem::transmute::<*mut c_void, unsafe extern "C" fn($($t),*) -> $r>(slot)($($a),*)
        }
    }};
}

/// Begins a range; `None` if no context traces it.
fn open(operation: usize, message: *const c_char) -> Option<Open> {
    let domain = &trace::MARKER_CORE_RANGE_API;
    let selected = trace::select(domain, operation);
    if selected.is_empty() {
        return None;
    }
    let kept = (matches!(operation, THREAD_RANGE | PROCESS_RANGE) && !message.is_null())
        // SAFETY: not null, text by ROCTx's contract.
        .then(|| unsafe { CStr::from_ptr(message) }.to_owned());
    let shown = kept.as_ref().map_or(message, |kept| kept.as_ptr());
    let mut call = Box::new(Call::place());
    Call::begin(&mut call, domain, operation, selected, shown).enter();
    Some(Open {
        call,
        _message: kept,
    })
}

impl Open {
    fn call(&mut self) -> &mut Call {
        // SAFETY: `open` began it.
        unsafe { self.call.assume_init_mut() }
    }

    /// Ends the range.
    fn close(mut self, result: i64) {
        self.call().exit(result);
    }
}

unsafe extern "C" fn roctxMarkA(message: *const c_char) {
    let mark = open(MARK, message);
    next!(0, (*const c_char) -> (), (message));
    if let Some(mark) = mark {
        mark.close(0);
    }
}

unsafe extern "C" fn roctxRangePushA(message: *const c_char) -> i32 {
    let range = open(THREAD_RANGE, message);
    let level = next!(1, (*const c_char) -> i32, (message));
    PUSHED.with(|pushed| pushed.borrow_mut().push(range));
    level
}

unsafe extern "C" fn roctxRangePop() -> i32 {
    let level = next!(2, () -> i32, ());
    let range = PUSHED.with(|pushed| pushed.borrow_mut().pop());
    if let Some(Some(range)) = range {
        range.close(i64::from(level));
    }
    level
}

unsafe extern "C" fn roctxRangeStartA(message: *const c_char) -> u64 {
    let range = open(PROCESS_RANGE, message);
    let id = next!(3, (*const c_char) -> u64, (message));
    if let Some(mut range) = range {
        // The range ends independently of this thread's next calls: any thread may stop it.
        range.call().detach();
        STARTED
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .get_or_insert_default()
            .insert(id, range);
    }
    id
}

unsafe extern "C" fn roctxRangeStop(id: u64) {
    next!(4, (u64) -> (), (id));
    let range = STARTED
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .as_mut()
        .and_then(|s| s.remove(&id));
    if let Some(mut range) = range {
        range.call().adopt();
        range.close(id as i64);
    }
}

unsafe extern "C" fn roctxGetThreadId(tid: *mut u64) -> i32 {
    let call = open(GET_THREAD_ID, tid.cast());
    let result = next!(5, (*mut u64) -> i32, (tid));
    if let Some(call) = call {
        call.close(i64::from(result));
    }
    result
}
