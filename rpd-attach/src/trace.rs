//! Requests of `ptrace`, for one thread. All of them must come from the thread of this process that seized it, except
//! [`wait`].

use std::io;

/// Registers of a thread.
pub(crate) type Registers = libc::user_regs_struct;

/// Number of the register set with the vector registers (`NT_X86_XSTATE`).
const XSTATE: usize = 0x202;
/// Most bytes of that set: all known vector registers have 11 KiB.
const MOST_XSTATE: usize = 64 << 10;

/// What happened to a traced thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The thread stopped before a system call, or after it.
    SystemCall,
    /// The thread stopped because it was interrupted, or because its process goes on after a stop.
    Interrupted,
    /// The process was stopped (SIGSTOP and the like).
    GroupStop,
    /// The thread stopped before it takes this signal.
    Signal(i32),
    /// The thread stopped for another reason, after which it just goes on.
    Other,
    /// The thread has ended.
    Ended,
}

/// Makes a request that answers success or failure.
fn request(kind: libc::c_uint, thread: i32, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the callers pass numbers, or places that live through the call and have the size of the request.
    match unsafe { libc::ptrace(kind, thread, address, data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Begins to trace a thread, which goes on. It is let go when the calling thread ends.
pub(crate) fn seize(thread: i32) -> io::Result<()> {
    // Stops at system calls are told from others by their signal.
    let options = libc::PTRACE_O_TRACESYSGOOD as usize;
    request(libc::PTRACE_SEIZE, thread, 0, options)
}

/// Has the thread stop, soon.
pub(crate) fn interrupt(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, thread, 0, 0)
}

/// Lets a thread that is stopped go on, with a signal if that is not 0.
pub(crate) fn go_on(thread: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, thread, 0, signal as usize)
}

/// Lets a thread that is stopped go on to the begin or end of its next system call.
pub(crate) fn to_system_call(thread: i32, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, thread, 0, signal as usize)
}

/// Lets a thread whose process is stopped stay so; it is not run.
pub(crate) fn stay_stopped(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, thread, 0, 0)
}

/// Lets a stopped thread go, for good.
pub(crate) fn detach(thread: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, thread, 0, 0)
}

/// Registers of a stopped thread.
pub(crate) fn registers(thread: i32) -> io::Result<Registers> {
    // SAFETY: zeros are registers.
    let mut registers: Registers = unsafe { std::mem::zeroed() };
    request(libc::PTRACE_GETREGS, thread, 0, &raw mut registers as usize)?;
    Ok(registers)
}

/// Sets the registers of a stopped thread.
pub(crate) fn set_registers(thread: i32, registers: &Registers) -> io::Result<()> {
    request(
        libc::PTRACE_SETREGS,
        thread,
        0,
        std::ptr::from_ref(registers) as usize,
    )
}

/// Vector registers of a stopped thread, as `xsave` writes them.
pub(crate) fn vector_registers(thread: i32) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0u8; MOST_XSTATE];
    let mut place = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    request(
        libc::PTRACE_GETREGSET,
        thread,
        XSTATE,
        &raw mut place as usize,
    )?;
    bytes.truncate(place.iov_len);
    Ok(bytes)
}

/// Signals that a stopped thread blocks, a bit each.
pub(crate) fn blocked_signals(thread: i32) -> io::Result<u64> {
    let mut mask = 0u64;
    request(
        libc::PTRACE_GETSIGMASK,
        thread,
        size_of::<u64>(),
        &raw mut mask as usize,
    )?;
    Ok(mask)
}

/// Waits until something happens to a thread that some thread of this process traces.
pub(crate) fn wait(thread: i32) -> Event {
    loop {
        if let Some(event) = look(thread, 0) {
            return event;
        }
    }
}

/// What has happened to a thread; `None` when nothing has.
pub(crate) fn poll(thread: i32) -> Option<Event> {
    look(thread, libc::WNOHANG)
}

fn look(thread: i32, options: i32) -> Option<Event> {
    /// Signal of stops at system calls.
    const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;
    let mut status = 0;
    loop {
        // SAFETY: the place is valid for the call.
        let answer = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | options) };
        if answer == thread {
            break;
        }
        if answer == 0 {
            return None;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            // It is no thread of ours any more.
            return Some(Event::Ended);
        }
    }
    if !libc::WIFSTOPPED(status) {
        return Some(Event::Ended);
    }
    let signal = libc::WSTOPSIG(status);
    let event = match (status >> 16, signal) {
        (libc::PTRACE_EVENT_STOP, libc::SIGTRAP) => Event::Interrupted,
        (libc::PTRACE_EVENT_STOP, _) => Event::GroupStop,
        (0, SYSTEM_CALL) => Event::SystemCall,
        (0, signal) => Event::Signal(signal),
        _ => Event::Other,
    };
    Some(event)
}
