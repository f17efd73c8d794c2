//! Turns panics into errors of one line, so that one failing part does not end the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};

/// Number of calls of [`isolated`] in progress.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// The first panic of a worker thread that another thread waits for.
static ELSEWHERE: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// Message of the last panic of this thread.
    static HERE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook: a panic is described in one line, by [`isolated`] if one is in progress, else at once on standard error.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        if !is_kept(info) {
            eprintln!("rpd: {}", describe(info));
        }
    }));
}

/// Keeps the description of a panic for [`isolated`]; `false` if none is in progress.
fn is_kept(info: &PanicHookInfo<'_>) -> bool {
    if DEPTH.load(Ordering::SeqCst) == 0 {
        return false;
    }
    let text = describe(info);
    let mut elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
    elsewhere.get_or_insert_with(|| text.clone());
    drop(elsewhere);
    HERE.with(|here| here.replace(Some(text)));
    true
}

/// Runs `work`. A panic in it becomes an error that names `what`.
///
/// # Errors
/// The errors of `work`, and its panics.
pub(crate) fn isolated<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    DEPTH.fetch_add(1, Ordering::SeqCst);
    // Data that `work` left half changed is not used after an error: results are separate from shared data.
    let result = catch_unwind(AssertUnwindSafe(work));
    DEPTH.fetch_sub(1, Ordering::SeqCst);
    result.unwrap_or_else(|_| {
        let mut elsewhere = ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner);
        let elsewhere = elsewhere.take();
        let text = HERE.with(RefCell::take).or(elsewhere);
        let text = text.unwrap_or_else(|| "internal error".to_owned());
        Err(anyhow!("{what}: {text}"))
    })
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    /// Longest message in bytes, since it may hold a name of any length.
    const LONGEST: usize = 200;
    let payload = info.payload();
    let text = match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (_, Some(text)) => text.as_str(),
        _ => "a panic",
    };
    let text: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .take(LONGEST)
        .collect();
    if crate::limits::is_refusal(&text) {
        return format!(
            "the system refuses rpd memory, threads or descriptors (ulimit -a shows the limits): {text}"
        );
    }
    let place = info
        .location()
        .map(|place| format!(" at {}:{}", place.file(), place.line()));
    format!(
        "internal error{}: {text}; please report this",
        place.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolated_turns_a_panic_into_one_line_that_names_the_part() {
        // In front of the hook that is there, by which other tests of this process report their failures.
        let reporting = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            is_kept(info);
            reporting(info);
        }));
        let error = isolated("table \"x\"", || -> Result<()> { panic!("two\nlines") });
        let line = crate::failure::line(&error.expect_err("a panic"));
        assert!(
            line.starts_with("table \"x\": internal error at ")
                && line.ends_with(": two lines; please report this"),
            "{line}"
        );
        // A panic in a worker thread is reported like one in the calling thread.
        let error = isolated("reading", || {
            let worker = std::thread::spawn(|| panic!("in a thread"));
            match worker.join() {
                Ok(()) => Ok(()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let line = crate::failure::line(&error.expect_err("a panic"));
        assert!(line.contains("in a thread"), "{line}");
        assert_eq!(isolated("fine", || Ok(1)).expect("fine"), 1);
    }
}
