//! A call of the program: its callbacks, and its id.

use std::cell::Cell;
use std::ffi::{c_int, c_void};

use cupti_sys::callback::{CallbackData, domain};

use crate::cupti;

thread_local! {
    /// Id of the outermost call that this thread is in; 0 for none.
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Id of the call that this thread is in.
pub(crate) fn id() -> u32 {
    ID.get()
}

/// Makes a call of a function with this number: `parameters` are its arguments in a struct.
fn call<P>(number: c_int, function: u32, parameters: &P, act: impl FnOnce() -> u32) -> u32 {
    let outer = ID.get();
    // A call of the driver in one of the runtime has the same id.
    let id = match outer {
        0 => cupti::next_id(),
        outer => outer,
    };
    ID.set(id);
    let mut of_tool = 0;
    let mut status = 0;
    let wanted = cupti::wants(number, function);
    let mut data = CallbackData {
        site: 0,
        function: c"".as_ptr(),
        parameters: std::ptr::from_ref(parameters).cast::<c_void>(),
        return_value: &raw const status,
        symbol: std::ptr::null(),
        context: std::ptr::null_mut(),
        context_id: 1,
        correlation_data: &raw mut of_tool,
        correlation_id: id,
    };
    if wanted {
        cupti::call(number, function, (&raw const data).cast());
    }
    let returned = act();
    if wanted {
        status = returned;
        data.site = 1;
        data.return_value = &raw const status;
        cupti::call(number, function, (&raw const data).cast());
    }
    ID.set(outer);
    returned
}

/// Two arguments in a struct, as C lays it out.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Two<A, B>(pub(crate) A, pub(crate) B);

/// A call of the driver.
pub(crate) fn driver<P>(function: u32, parameters: &P, act: impl FnOnce() -> u32) -> u32 {
    call(domain::DRIVER, function, parameters, act)
}

/// A call of the runtime.
pub(crate) fn runtime<P>(function: u32, parameters: &P, act: impl FnOnce() -> u32) -> u32 {
    call(domain::RUNTIME, function, parameters, act)
}
