//! The library is loaded into the target, and the target exits.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::idle::IDLE_VARIABLE;

use super::{alone, signals};
use crate::recording::guard::{self, Service};
use crate::recording::{meta, process, switch, thread};

static EXIT: Service = Service::new("process");

/// Runs when the library is loaded, before the target's `main`.
extern "C" fn on_load() {
    if process::requested_directory().is_none() {
        if waits_for_attach() {
            install();
            process::wait_for_attach();
            // Nothing is recorded before somebody attaches.
            guard::set_finalized();
            return;
        }
        alone::start_again();
        process::switch_off();
        return;
    }
    spare_address_space();
    install();
    process::current();
}

/// Whether this process is to wait until somebody attaches to it.
fn waits_for_attach() -> bool {
    // SAFETY: the entry may be read at any time.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    !secure
        && std::env::var_os(IDLE_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Keeps the threads of this library from reserving 64 MiB of the address space each, where that is limited: the C
/// library reserves so much for a thread's memory where it may.
fn spare_address_space() {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the record is valid for the call; the other call takes numbers.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_AS, &mut limit) == 0
            && limit.rlim_cur != libc::RLIM_INFINITY
        {
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
    }
}

/// Runs when the process exits in good order.
extern "C" fn on_exit() {
    EXIT.run(|| {
        if let Some(process) = process::existing() {
            meta::end(process);
        }
    });
}

/// Installs the handlers of the process, once per process image: at load, or when a provider configures the collector
/// before the loader has run its constructors.
pub(crate) fn install() {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) {
        return;
    }
    guard::silence_panics();
    guard::report_to(meta::note);
    for hook in [&thread::FORK, &switch::FORK, &signals::FORK] {
        hook.register();
    }
    // SAFETY: the handlers are functions of this library, which is never unloaded once the target uses it. When there is
    // no memory for them, children of the target are not recorded correctly; nothing can be done about it here.
    let _ = unsafe {
        libc::pthread_atfork(
            Some(process::before_fork),
            Some(process::after_fork_in_parent),
            Some(process::after_fork_in_child),
        )
    };
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static ON_LOAD: extern "C" fn() = on_load;

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static ON_EXIT: extern "C" fn() = on_exit;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_hooks_have_the_signature_that_the_loader_calls() {
        let hooks: [extern "C" fn(); 2] = [on_load, on_exit];
        assert_ne!(hooks[0] as usize, hooks[1] as usize);
    }
}
