//! Signals that end the target while the GPU works for it.
//!
//! A signal whose default is to end the process does so at once, and what the GPU had not finished is lost to the
//! recording. So, once there is a GPU runtime, INT, TERM, QUIT, ABRT and the signals of faults have a handler of ours wherever
//! the target has the default. At the first of them it wakes a thread of ours, which waits until the work that was submitted by then
//! is complete, at most [`LONGEST`], and has the provider deliver the events that it holds; then the signal ends the process
//! as it would have done. The thread that took the signal is held meanwhile, since by default it would not run any further.
//! Another signal ends the process at once, unless it comes within [`REPEATED_WITHIN`] of the first: job managers often
//! signal both the processes and their process group.
//!
//! The handler is hidden from the target: `sigaction` and its relatives return the default instead, and what it installs
//! replaces ours. A forked child has the default until it records something itself; `exec` resets handlers.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rpd_spool::writer::now;

use crate::recording::background::{InChild, spawn};
use crate::recording::fork::ForkHook;
use crate::recording::futex;
use crate::recording::guard::Service;
use crate::recording::process;

/// Longest time that a signal waits for work of the GPU.
const LONGEST: Duration = Duration::from_secs(1);
/// Interval between checks for completion.
const INTERVAL: Duration = Duration::from_millis(1);
/// Time after the first signal within which further signals count as its repetitions.
const REPEATED_WITHIN: Duration = Duration::from_millis(50);
/// Longest time that a held thread waits, in case the waiting thread cannot release it.
const HELD: Duration = Duration::from_millis(1200);
/// Longest time that a held thread waits while the provider delivers: the stream of a thread trace may have gigabytes.
const HELD_FOR_DELIVERY: Duration = Duration::from_secs(10);

/// The signals that are handled.
const SIGNALS: [c_int; 8] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGQUIT,
    libc::SIGABRT,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
];

/// Signals that an instruction of the program causes.
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];

/// The action of a signal, as `sigaction` takes it.
pub(crate) type Action = libc::sigaction;
type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
type SigactionFn = unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int;
type SignalFn = unsafe extern "C" fn(c_int, libc::sighandler_t) -> libc::sighandler_t;

/// A forked child has the default, and handlers of its own when it records something.
pub(super) static FORK: ForkHook =
    ForkHook::new()
        .in_child(forget_parent)
        .when_child_records(|| {
            if REQUESTED.load(Ordering::Relaxed) {
                prepare();
            }
        });

/// For each of [`SIGNALS`]: the action that the target has set, while our handler is installed instead.
struct Places(UnsafeCell<[Option<Action>; SIGNALS.len()]>);

// SAFETY: the content is only touched with the lock of [`FORK`] held, or by the one thread of a forked child.
unsafe impl Sync for Places {}

static PLACES: Places = Places(UnsafeCell::new([None; SIGNALS.len()]));
static SERVICE: Service = Service::new("signals");
static DELIVERIES: Service = Service::new("deliveries before a signal ends the process");
/// Whether our handler is installed, and replaces the default whenever the target sets that.
static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether [`prepare`] was called in this process or before it was forked.
static REQUESTED: AtomicBool = AtomicBool::new(false);
/// Id of the process that has the thread that waits.
static OWNER: AtomicI32 = AtomicI32::new(0);
/// Time of the first signal; 0 before.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// Number of the first signal; 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// 1 once the thread has work to wait for.
static CALLED: AtomicU32 = AtomicU32::new(0);
/// 1 once the process may end.
static DONE: AtomicU32 = AtomicU32::new(0);
/// Whether the provider is delivering events that it holds.
static DELIVERING: AtomicBool = AtomicBool::new(false);
static DELIVERY: OnceLock<Delivery> = OnceLock::new();

/// Delivery of the events that the provider holds.
pub(crate) struct Delivery {
    /// Whether there may be events to deliver. Called in signal handlers.
    pub(crate) is_needed: fn() -> bool,
    /// Makes the provider deliver its events.
    pub(crate) deliver: fn(),
}

/// Sets the delivery that is made before a signal ends the process. Only the first call has an effect.
pub(crate) fn deliver_first(delivery: Delivery) {
    DELIVERY.get_or_init(|| delivery);
}

fn needed_delivery() -> Option<&'static Delivery> {
    DELIVERY.get().filter(|delivery| (delivery.is_needed)())
}

/// The next definition of a function after ours, usually the C library's. Null when there is none.
fn next(name: &CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let mut found = known.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: the name is text.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
        known.store(found, Ordering::Relaxed);
    }
    found
}

fn real_sigaction(number: c_int, action: *const Action, before: *mut Action) -> c_int {
    static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
    let function = next(c"sigaction", &KNOWN);
    // SAFETY: null becomes `None`; otherwise the symbol has this type.
    let function = unsafe { std::mem::transmute::<*mut c_void, Option<SigactionFn>>(function) };
    match function {
        // SAFETY: the pointers are the caller's: null, or valid for the call.
        Some(function) => unsafe { function(number, action, before) },
        None => {
            // SAFETY: the calling thread's own errno.
            unsafe { *libc::__errno_location() = libc::ENOSYS };
            -1
        }
    }
}

/// The current action of a signal.
fn current(number: c_int) -> Option<Action> {
    exchange(number, std::ptr::null())
}

/// Sets the action of a signal, past our `sigaction`, and returns the action before.
pub(crate) fn replace_action(number: c_int, action: &Action) -> Option<Action> {
    exchange(number, action)
}

/// The action that was in place before. A null `action` changes nothing.
fn exchange(number: c_int, action: *const Action) -> Option<Action> {
    // SAFETY: the struct is plain memory for which zeros are valid.
    let mut before: Action = unsafe { std::mem::zeroed() };
    (real_sigaction(number, action, &mut before) == 0).then_some(before)
}

fn is_ours(action: &Action) -> bool {
    action.sa_sigaction == on_signal as *const () as usize
}

fn ours() -> Action {
    action_with(on_signal, libc::SA_ONSTACK | libc::SA_RESTART)
}

/// A handler that blocks no signal: its own is not deferred either, since it does not return to what it interrupted.
pub(crate) fn action_with(handler: Handler, flags: c_int) -> Action {
    // SAFETY: the struct is plain memory for which zeros are valid: no signal is blocked meanwhile.
    let mut action: Action = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | flags;
    action
}

fn place_of(number: c_int) -> Option<usize> {
    SIGNALS.iter().position(|signal| *signal == number)
}

/// Gets ready to handle signals. To be called when there is a GPU runtime, and before it has work.
pub(crate) fn prepare() {
    let Some(process) = process::existing() else {
        return;
    };
    if process.options.disable_signal_handlers {
        return;
    }
    REQUESTED.store(true, Ordering::Relaxed);
    let pid = std::process::id().cast_signed();
    if OWNER.swap(pid, Ordering::AcqRel) == pid {
        return;
    }
    // Without the thread signals end the process at once, as they would without us.
    let waits = spawn("rpd-signals", InChild::Hook(&FORK), || {
        SERVICE.run(wait);
    });
    if !waits {
        return;
    }
    let Some(_guard) = FORK.lock() else { return };
    // SAFETY: the lock is held.
    let places = unsafe { &mut *PLACES.0.get() };
    for (number, place) in SIGNALS.into_iter().zip(places) {
        if let Some(action) = current(number)
            && action.sa_sigaction == libc::SIG_DFL
            && real_sigaction(number, &ours(), std::ptr::null_mut()) == 0
        {
            *place = Some(action);
        }
    }
    ACTIVE.store(true, Ordering::Release);
}

/// Restores the actions of the target: recording has ended.
pub(crate) fn withdraw() {
    if ACTIVE.swap(false, Ordering::AcqRel)
        && let Some(_guard) = FORK.lock()
    {
        put_back();
    }
}

/// Restores the actions that the target has set. To be called with the lock held, or by the one thread of a process.
fn put_back() {
    // SAFETY: as this function demands.
    let places = unsafe { &mut *PLACES.0.get() };
    for (number, place) in SIGNALS.into_iter().zip(places) {
        if let Some(action) = place.take()
            && current(number).is_some_and(|action| is_ours(&action))
        {
            real_sigaction(number, &action, std::ptr::null_mut());
        }
    }
}

/// Removes the handlers in a forked child, which does not have the thread that waits.
fn forget_parent() {
    if ACTIVE.swap(false, Ordering::Relaxed) {
        put_back();
    }
    OWNER.store(0, Ordering::Relaxed);
    FIRST.store(0, Ordering::Relaxed);
    CALLED.store(0, Ordering::Relaxed);
    DONE.store(0, Ordering::Relaxed);
    DELIVERING.store(false, Ordering::Relaxed);
}

/// Sleeps until `word` is no longer 0, someone wakes it, or the time is over. Interruptions wake it, too.
fn sleep(word: &AtomicU32, most: Option<Duration>) {
    futex::wait(word, 0, most);
}

fn set(word: &AtomicU32) {
    word.store(1, Ordering::Release);
    futex::wake(word);
}

/// Waits for work when a signal has come: the body of the waiting thread.
fn wait() {
    while CALLED.load(Ordering::Acquire) == 0 {
        sleep(&CALLED, None);
    }
    if let Some(process) = process::existing() {
        let begun = process.totals.begun();
        let first = FIRST.load(Ordering::Acquire);
        let end = first.saturating_add(LONGEST.as_nanos() as u64);
        while now() < end && !process.totals.have_ended(begun) {
            std::thread::sleep(INTERVAL);
        }
    }
    if let Some(delivery) = needed_delivery() {
        DELIVERING.store(true, Ordering::Release);
        DELIVERIES.run(|| (delivery.deliver)());
    }
    set(&DONE);
    // The thread that took the signal ends the process, unless it cannot any more.
    std::thread::sleep(Duration::from_millis(100));
    let number = SIGNAL.load(Ordering::Acquire);
    restore_default(number);
    // SAFETY: takes no pointers.
    unsafe { libc::kill(libc::getpid(), number) };
}

fn restore_default(number: c_int) {
    // SAFETY: the struct is plain memory for which zeros are valid: the default.
    let action: Action = unsafe { std::mem::zeroed() };
    real_sigaction(number, &action, std::ptr::null_mut());
}

/// Ends the process by a signal that this very thread takes, as it would have done. `fault`: the instruction that the handler
/// returns to causes it again, with its own address and cause for debuggers and core dumps.
fn end_by(number: c_int, fault: bool) {
    restore_default(number);
    if fault {
        return;
    }
    // SAFETY: takes no pointers. The signal is not blocked: it has just been taken.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), number) };
}

/// Handles a signal. Uses only atomics and system calls, since it may interrupt any code.
unsafe extern "C" fn on_signal(number: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: takes no arguments. The C library's cached id may be wrong: between vfork and exec, a child shares this memory.
    let pid = unsafe { libc::syscall(libc::SYS_getpid) };
    // Faults have a positive code; a signal that a process sent is not repeated by an instruction.
    // SAFETY: the kernel passes a valid record to a handler with SA_SIGINFO.
    let fault = FAULTS.contains(&number) && unsafe { (*info).si_code } > 0;
    let process = process::existing();
    let idle = process.is_none_or(|process| process.totals.have_ended(process.totals.begun()))
        && needed_delivery().is_none();
    if pid != i64::from(OWNER.load(Ordering::Acquire)) {
        return end_by(number, fault);
    }
    let time = now();
    let first = match FIRST.compare_exchange(0, time, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            SIGNAL.store(number, Ordering::Release);
            if idle {
                return end_by(number, fault);
            }
            set(&CALLED);
            time
        }
        Err(first) if time.saturating_sub(first) > REPEATED_WITHIN.as_nanos() as u64 => {
            return end_by(number, fault);
        }
        Err(first) => first,
    };
    let limit = || {
        let held = if DELIVERING.load(Ordering::Acquire) {
            HELD_FOR_DELIVERY
        } else {
            HELD
        };
        first.saturating_add(held.as_nanos() as u64)
    };
    while DONE.load(Ordering::Acquire) == 0 && now() < limit() {
        sleep(&DONE, Some(INTERVAL * 100));
    }
    match SIGNAL.load(Ordering::Acquire) {
        first if first == number => end_by(number, fault),
        first => end_by(first, false),
    }
}

/// Calls `change`, which changes or reads the action in place for a signal, and hides our handler from its answer.
/// `change` passes the action that was in place before to its argument, where the caller gets it. `None` when the
/// signal is none of ours.
fn hidden<T>(number: c_int, change: impl FnOnce(&mut dyn FnMut(&mut Action)) -> T) -> T {
    let place = place_of(number).filter(|_| ACTIVE.load(Ordering::Acquire));
    let Some((place, _guard)) = place.and_then(|place| Some((place, FORK.lock()?))) else {
        return change(&mut |_| {});
    };
    // SAFETY: the lock is held.
    let place = unsafe { &mut (&mut *PLACES.0.get())[place] };
    let targets = *place;
    let answer = change(&mut |before| {
        if let Some(action) = targets
            && is_ours(before)
        {
            *before = action;
        }
    });
    // Ours goes where the default is, and is gone where the target has put something else.
    match current(number) {
        Some(action) if is_ours(&action) => {}
        Some(action) if action.sa_sigaction == libc::SIG_DFL => {
            let installed = real_sigaction(number, &ours(), std::ptr::null_mut()) == 0;
            *place = installed.then_some(action);
        }
        _ => *place = None,
    }
    answer
}

/// `sigaction` of the C library, as if our handler were not there.
///
/// # Safety
///
/// As for the C library's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C" fn sigaction(
    number: c_int,
    action: *const Action,
    before: *mut Action,
) -> c_int {
    hidden(number, |hide| {
        let status = real_sigaction(number, action, before);
        if status == 0 {
            // SAFETY: null, or the caller's, which has just been filled.
            let before = unsafe { before.as_mut() };
            before.into_iter().for_each(hide);
        }
        status
    })
}

macro_rules! relatives {
    ($($name:ident $text:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the C library, as if our handler were not there.")]
        ///
        /// # Safety
        ///
        /// As for the C library's.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[cfg_attr(test, allow(dead_code))]
        pub(crate) unsafe extern "C" fn $name(
            number: c_int,
            handler: libc::sighandler_t,
        ) -> libc::sighandler_t {
            static KNOWN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            let function = next($text, &KNOWN);
            // SAFETY: null becomes `None`; otherwise the symbol has this type.
            let function = unsafe { std::mem::transmute::<*mut c_void, Option<SignalFn>>(function) };
            let Some(function) = function else {
                return libc::SIG_ERR;
            };
            hidden(number, |hide| {
                // SAFETY: the caller's arguments.
                let handler = unsafe { function(number, handler) };
                let mut before = ours();
                before.sa_sigaction = handler;
                hide(&mut before);
                before.sa_sigaction
            })
        }
    )*};
}

relatives! {
    signal c"signal";
    bsd_signal c"bsd_signal";
    ssignal c"ssignal";
    sysv_signal c"sysv_signal";
    __sysv_signal c"__sysv_signal";
    sigset c"sigset";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigaction_returns_the_handler_that_the_target_installed() {
        extern "C" fn own(_: c_int) {}
        let number = libc::SIGQUIT;
        let place = place_of(number).expect("handled");
        let ask = || {
            // SAFETY: the struct is plain memory; the pointer is valid for the call.
            unsafe {
                let mut action: Action = std::mem::zeroed();
                assert_eq!(sigaction(number, std::ptr::null(), &mut action), 0);
                action
            }
        };
        // A shell starts programs in the background with this signal ignored.
        // SAFETY: plain memory; zero is the default.
        let initial: Action = unsafe { std::mem::zeroed() };
        assert_eq!(real_sigaction(number, &initial, std::ptr::null_mut()), 0);
        // As `prepare` does, without the thread.
        let default = current(number).expect("known");
        assert_eq!(default.sa_sigaction, libc::SIG_DFL);
        // SAFETY: no other test of this program touches the places.
        unsafe { (&mut *PLACES.0.get())[place] = Some(default) };
        assert_eq!(real_sigaction(number, &ours(), std::ptr::null_mut()), 0);
        ACTIVE.store(true, Ordering::Release);

        assert_eq!(ask().sa_sigaction, libc::SIG_DFL);
        let own = own as *const () as libc::sighandler_t;
        // SAFETY: a handler that does nothing.
        unsafe {
            assert_eq!(signal(number, own), libc::SIG_DFL);
            assert_eq!(current(number).expect("known").sa_sigaction, own);
            assert_eq!(signal(number, libc::SIG_IGN), own);
            assert_eq!(sysv_signal(number, libc::SIG_DFL), libc::SIG_IGN);
        }
        assert!(is_ours(&current(number).expect("known")));
        assert_eq!(ask().sa_sigaction, libc::SIG_DFL);
        // The target reads back the flags that it set with the default action.
        assert_eq!(ask().sa_flags & libc::SA_RESETHAND, libc::SA_RESETHAND);
        withdraw();
        assert_eq!(current(number).expect("known").sa_sigaction, libc::SIG_DFL);
        // A child that is forked while the provider delivers holds its own signals no longer than others.
        DELIVERING.store(true, Ordering::Release);
        forget_parent();
        assert!(!DELIVERING.load(Ordering::Acquire));
        // Another signal is none of ours.
        // SAFETY: a handler that does nothing, and the default again.
        unsafe {
            assert_eq!(signal(libc::SIGUSR1, own), libc::SIG_DFL);
            assert_eq!(signal(libc::SIGUSR1, libc::SIG_DFL), own);
        }
    }
}
