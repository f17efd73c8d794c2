//! The functions of the ROCTx library in the process. What the collector itself turns into marks and ranges (events of
//! Kokkos, calls of RPD's functions) goes through them, and is recorded as the program's own marks are.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

type Message = unsafe extern "C" fn(*const c_char);
type Push = unsafe extern "C" fn(*const c_char) -> c_int;
type Pop = unsafe extern "C" fn() -> c_int;
type Start = unsafe extern "C" fn(*const c_char) -> u64;
type Stop = unsafe extern "C" fn(u64);

/// Functions of ROCTx.
pub(crate) struct Roctx {
    pub(crate) mark: Message,
    pub(crate) push: Push,
    pub(crate) pop: Pop,
    pub(crate) start: Start,
    pub(crate) stop: Stop,
}

static ROCTX: OnceLock<Option<Roctx>> = OnceLock::new();

fn look_up(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is NUL-terminated.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Roctx {
    /// The library in the global scope of the process; `None` if there was none at the first call.
    pub(crate) fn loaded() -> Option<&'static Roctx> {
        ROCTX.get_or_init(Roctx::find).as_ref()
    }

    fn find() -> Option<Roctx> {
        let (mark, push, pop, start, stop) = (
            look_up(c"roctxMarkA")?,
            look_up(c"roctxRangePushA")?,
            look_up(c"roctxRangePop")?,
            look_up(c"roctxRangeStartA")?,
            look_up(c"roctxRangeStop")?,
        );
        // SAFETY: functions of these names have these types in every ROCTx library.
        Some(unsafe {
            Roctx {
                mark: std::mem::transmute::<*mut c_void, Message>(mark),
                push: std::mem::transmute::<*mut c_void, Push>(push),
                pop: std::mem::transmute::<*mut c_void, Pop>(pop),
                start: std::mem::transmute::<*mut c_void, Start>(start),
                stop: std::mem::transmute::<*mut c_void, Stop>(stop),
            }
        })
    }
}
