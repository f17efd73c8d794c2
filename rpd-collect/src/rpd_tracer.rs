//! The C functions of RPD's tracer, by which programs and scripts control it and mark what they do.
//!
//! `librpd_register.so`, which is in the global scope of the target, has functions of the same names that lead here. Marks
//! and ranges go to ROCTx, so that they are recorded where markers are traced.

use std::ffi::{CString, c_char};

use crate::recording::guard::Service;
use crate::recording::switch;
use crate::recording::text::text;
use crate::roctx::Roctx;

static SERVICE: Service = Service::new("functions of RPD");

/// Records again. Starts and stops are counted: recording is on after as many starts as stops.
#[unsafe(no_mangle)]
pub extern "C" fn rpdstart() {
    SERVICE.run(switch::start_counted);
}

/// Undoes one [`rpdstart`], or the start of the program. A stop while recording is off has no effect.
#[unsafe(no_mangle)]
pub extern "C" fn rpdstop() {
    SERVICE.run(switch::stop_counted);
}

/// Records what is complete and held back so far.
#[unsafe(no_mangle)]
pub extern "C" fn rpdflush() {
    SERVICE.run(switch::flush);
}

/// Begins a range of the calling thread.
///
/// # Safety
///
/// Each argument is null or a NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_rangePush(
    domain: *const c_char,
    name: *const c_char,
    arguments: *const c_char,
) {
    // SAFETY: as this function demands; ROCTx copies the text.
    unsafe {
        with_message([domain, name, arguments], |roctx, message| {
            (roctx.push)(message);
        });
    }
}

/// Ends the innermost range of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_rangePop() {
    SERVICE.run(|| {
        if let Some(roctx) = Roctx::loaded() {
            // SAFETY: no arguments.
            unsafe { (roctx.pop)() };
        }
    });
}

/// Marks a moment.
///
/// # Safety
///
/// Each argument is null or a NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_mark(
    domain: *const c_char,
    name: *const c_char,
    arguments: *const c_char,
) {
    // SAFETY: as this function demands; ROCTx copies the text.
    unsafe {
        with_message([domain, name, arguments], |roctx, message| {
            (roctx.mark)(message);
        });
    }
}

/// Calls `act` with the text of a mark, if there is a ROCTx library.
///
/// # Safety
///
/// Each part is null or a NUL-terminated text.
unsafe fn with_message(parts: [*const c_char; 3], act: impl FnOnce(&Roctx, *const c_char)) {
    SERVICE.run(|| {
        let Some(roctx) = Roctx::loaded() else { return };
        // SAFETY: as this function demands.
        let [domain, name, arguments] = parts.map(|part| unsafe { text(part) });
        if let Ok(message) = CString::new(message(domain, name, arguments)) {
            act(roctx, message.as_ptr());
        }
    });
}

/// The text of a mark: `domain: name(arguments)`, without the parts that are empty.
fn message(domain: &[u8], name: &[u8], arguments: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    if !domain.is_empty() {
        message.extend_from_slice(domain);
        message.extend_from_slice(b": ");
    }
    message.extend_from_slice(name);
    if !arguments.is_empty() {
        message.push(b'(');
        message.extend_from_slice(arguments);
        message.push(b')');
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_leaves_out_empty_parts() {
        assert_eq!(
            message(b"python", b"train", b"a.py:3"),
            b"python: train(a.py:3)"
        );
        assert_eq!(message(b"", b"step", b""), b"step");
    }
}
