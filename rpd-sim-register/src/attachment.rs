//! Attaching a tool to this process, and detaching it.

use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::code::Code;
use crate::listener;
use crate::registrations;
use crate::sdk;

/// The tool that was attached first; no other can be.
static TOOL: Mutex<Option<CString>> = Mutex::new(None);
/// Thread that attaches or detaches now; 0 when there is none.
static AT_WORK: AtomicI32 = AtomicI32::new(0);

fn first_tool() -> Option<CString> {
    TOOL.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn this_thread() -> i32 {
    // SAFETY: the call takes nothing.
    unsafe { libc::gettid() }
}

/// Runs `act` while no other thread attaches or detaches; code 2 when this thread does.
fn alone(act: impl FnOnce() -> Code) -> Code {
    let this = this_thread();
    loop {
        let order = Ordering::AcqRel;
        match AT_WORK.compare_exchange(0, this, order, Ordering::Acquire) {
            Ok(_) => break,
            Err(other) if other == this => return Code::Deadlock,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
        }
    }
    struct End;
    impl Drop for End {
        fn drop(&mut self) {
            AT_WORK.store(0, Ordering::Release);
        }
    }
    let _end = End;
    act()
}

fn set(name: &OsStr, value: &OsStr) {
    if std::env::var_os(name).as_deref() != Some(value) {
        // SAFETY: a thread that reads the environment at this moment may read a list that was replaced. ROCm's library does
        // the same, and the tool reads its options there; the C library keeps the old texts.
        unsafe { std::env::set_var(name, value) };
    }
}

/// Sets the variables of a block: the number of pairs in 32 bits, the lowest byte first, then names and values.
///
/// # Safety
///
/// `block` is such a block.
unsafe fn set_variables(block: *const u8) {
    // SAFETY: by the contract of this function.
    let count = unsafe { block.cast::<[u8; 4]>().read() };
    let mut at = block.wrapping_add(4);
    let mut text = || {
        // SAFETY: by the contract of this function a text begins here.
        let text = unsafe { CStr::from_ptr(at.cast()) };
        at = at.wrapping_add(text.count_bytes() + 1);
        OsStr::from_bytes(text.to_bytes())
    };
    for _ in 0..u32::from_le_bytes(count) {
        let (name, value) = (text(), text());
        let is_name = !name.is_empty() && !name.as_bytes().contains(&b'=');
        if is_name {
            set(name, value);
        }
    }
}

/// Attaches the tool.
///
/// # Safety
///
/// `environment` is null or a block of variables.
pub(crate) unsafe fn attach(environment: *const u8, tool: &CStr) -> Code {
    if !listener::is_there() {
        return Code::AttachmentNotAvailable;
    }
    alone(|| {
        let first = first_tool();
        if first.as_deref().is_some_and(|first| first != tool) {
            return Code::InvalidArgument;
        }
        if !environment.is_null() {
            // SAFETY: by the contract of this function.
            unsafe { set_variables(environment) };
        }
        set("ROCPROFILER_REGISTER_TOOL_ATTACHED".as_ref(), "1".as_ref());
        if first.is_none() {
            set(
                "ROCP_TOOL_LIBRARIES".as_ref(),
                OsStr::from_bytes(tool.to_bytes()),
            );
            let code = registrations::hand_over(true);
            if code != Code::Success {
                return code;
            }
            *TOOL.lock().unwrap_or_else(PoisonError::into_inner) = Some(tool.to_owned());
        }
        call(c"rocprofiler_attach")
    })
}

/// Detaches the tool.
pub(crate) fn detach() -> Code {
    if !listener::is_there() || first_tool().is_none() {
        return Code::AttachmentNotAvailable;
    }
    alone(|| call(c"rocprofiler_detach"))
}

/// Calls a function of the SDK.
fn call(name: &CStr) -> Code {
    match sdk::find().and_then(|sdk| sdk.call(name)) {
        None => Code::NoTools,
        Some(0) => Code::Success,
        Some(_) => Code::RocprofilerError,
    }
}
