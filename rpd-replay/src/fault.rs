//! Ends the process with a status when the runtime aborts it, as it does after a fault of the GPU.

use std::fmt::Write as _;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use rpd_spool::capture::Operation;

/// Number of the call that is being played; 0: none.
static CALL: AtomicU64 = AtomicU64::new(0);
static OPERATION: AtomicPtr<Operation> = AtomicPtr::new(std::ptr::null_mut());
static STATUS: AtomicI32 = AtomicI32::new(0);

/// Makes an abort end the process with this status while a call of a capture is played, or work of such calls is under
/// way. A line says at which call.
pub fn exit_on_abort(status: u8) {
    static INSTALL: Once = Once::new();
    STATUS.store(i32::from(status), Ordering::Relaxed);
    INSTALL.call_once(|| {
        let handler: extern "C" fn(libc::c_int) = aborted;
        // SAFETY: the handler calls nothing but functions that signal handlers may call.
        unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
    });
}

/// Notes the call that is played from then on; `None` when the replay has ended.
pub(crate) fn playing(call: Option<(u64, &'static Operation)>) {
    let operation = call.map_or(std::ptr::null(), |(_, operation)| {
        std::ptr::from_ref(operation)
    });
    OPERATION.store(operation.cast_mut(), Ordering::Relaxed);
    CALL.store(call.map_or(0, |(seq, _)| seq), Ordering::Release);
}

/// Text in a buffer: a signal handler may not allocate.
struct Line {
    bytes: [u8; 200],
    len: usize,
}

impl std::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let room = self.bytes.get_mut(self.len..self.len + text.len());
        room.ok_or(std::fmt::Error)?
            .copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

extern "C" fn aborted(signal: libc::c_int) {
    let call = CALL.load(Ordering::Acquire);
    if call == 0 {
        // Not because of a replay: `abort` ends the process when this returns.
        // SAFETY: as where the handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    let mut line = Line {
        bytes: [0; 200],
        len: 0,
    };
    // SAFETY: null, or a static.
    let operation = unsafe { OPERATION.load(Ordering::Relaxed).as_ref() };
    let name = operation.map_or("", Operation::name);
    // A line that does not fit is cut.
    let _ = writeln!(
        line,
        "rpd: call {call} ({name}): the HIP runtime ended the replay here or in work under way: a fault of the GPU"
    );
    // SAFETY: both may be called in signal handlers; the bytes are initialised.
    unsafe {
        libc::write(2, line.bytes.as_ptr().cast(), line.len);
        libc::_exit(STATUS.load(Ordering::Relaxed));
    }
}
