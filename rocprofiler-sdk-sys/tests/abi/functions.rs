//! Filling the table of functions.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::null_mut;

use rocprofiler_sdk_sys::*;

unsafe extern "C" fn is_initialized(status: *mut c_int) -> rocprofiler_status_t {
    // SAFETY: the test passes a valid pointer.
    unsafe { *status = -1 };
    rocprofiler_status_t::SUCCESS
}

unsafe extern "C" fn never_called() {}

fn address_of(name: &CStr) -> *mut c_void {
    if name == c"rocprofiler_is_initialized" {
        is_initialized as rocprofiler_is_initialized_fn as *mut c_void
    } else {
        never_called as unsafe extern "C" fn() as *mut c_void
    }
}

#[test]
fn load_fills_each_slot_with_the_function_of_its_name() {
    // SAFETY: only the one function with the right type is called below.
    let table = unsafe { Functions::load(address_of) }.expect("all names are present");
    let mut status = 0;
    // SAFETY: it is the function above.
    let result = unsafe { (table.rocprofiler_is_initialized)(&mut status) };
    assert_eq!((result, status), (rocprofiler_status_t::SUCCESS, -1));
    assert!(table.rocprofiler_create_counter.is_some());
}

#[test]
fn load_accepts_absent_optional_functions() {
    let lookup = |name: &CStr| {
        if Functions::OPTIONAL.contains(&name) {
            null_mut()
        } else {
            address_of(name)
        }
    };
    // SAFETY: nothing is called.
    let table = unsafe { Functions::load(lookup) }.expect("required names are present");
    assert!(table.rocprofiler_create_counter.is_none());
    assert!(table.rocprofiler_configure_pc_sampling_service.is_none());
}

#[test]
fn load_names_an_absent_required_function() {
    for missing in Functions::REQUIRED {
        let lookup = |name: &CStr| {
            if name == *missing {
                null_mut()
            } else {
                address_of(name)
            }
        };
        // SAFETY: nothing is called.
        let error = unsafe { Functions::load(lookup) }.expect_err("a required name is absent");
        assert_eq!(error, MissingSymbol(missing));
        assert!(error.to_string().contains(missing.to_str().expect("ASCII")));
    }
}
