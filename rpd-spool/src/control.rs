//! The control page: memory that a recorded process shares with `rpd control`, through a file in the process's directory.
//!
//! The collector sleeps on the word `request` and stores the same word in `done` when it has carried a request out. A
//! request is a count in the upper 24 bits, which tells it from the request before, and a [`Request`] in the lower 8. Only
//! the user to whom the recording belongs can open the file; neither side keeps a descriptor, and the target has none that
//! it could close or pass on.

use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::mapping::Mapping;
use super::pages;
use super::regular_file::{self, FileError, Links};

/// Name of the file in the directory of a process image.
pub const CONTROL_FILE: &str = "control";

/// Bytes of the file.
const LEN: usize = 4096;

/// First word of the page once the collector serves it.
const MAGIC: u32 = u32::from_le_bytes(*b"rpdc");

/// Bits of a request that say what is requested.
const COMMAND_BITS: u32 = 8;

/// What `rpd control` can request of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Record again.
    Start = 1,
    /// Record nothing until the next start.
    Stop = 2,
    /// Write what the provider holds back to the recording.
    Flush = 3,
}

impl Request {
    /// The request in a word of the page; `None` for a number that has no meaning.
    fn from_word(word: u32) -> Option<Request> {
        let all = [Request::Start, Request::Stop, Request::Flush];
        let number = word & ((1 << COMMAND_BITS) - 1);
        all.into_iter().find(|request| *request as u32 == number)
    }
}

/// Whether a process records, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordingState {
    /// The program, a selected region or a collection period lets it record.
    pub requested: bool,
    /// `rpd control stop` was the last request of its kind.
    pub stopped: bool,
}

impl RecordingState {
    const REQUESTED: u32 = 1;
    const STOPPED: u32 = 2;

    /// Whether calls and work are recorded now.
    pub fn is_on(self) -> bool {
        self.requested && !self.stopped
    }

    fn to_word(self) -> u32 {
        let bit = |set: bool, bit: u32| if set { bit } else { 0 };
        bit(self.requested, Self::REQUESTED) | bit(self.stopped, Self::STOPPED)
    }

    fn from_word(word: u32) -> RecordingState {
        RecordingState {
            requested: word & Self::REQUESTED != 0,
            stopped: word & Self::STOPPED != 0,
        }
    }
}

/// The words of the page.
#[repr(C)]
struct Page {
    magic: AtomicU32,
    request: AtomicU32,
    done: AtomicU32,
    state: AtomicU32,
}

/// Sleeps while `word` is `value`, until another process wakes it, a signal comes or `time` is over.
fn wait(word: &AtomicU32, value: u32, time: Option<Duration>) {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word and the time live throughout the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            time,
        )
    };
}

/// Wakes the threads of all processes that sleep on `word`.
fn wake(word: &AtomicU32) {
    // SAFETY: the word lives throughout the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// The side of the recorded process.
#[derive(Debug)]
pub struct ControlServer {
    mapping: Mapping,
}

// SAFETY: all accesses to the page are atomic.
unsafe impl Sync for ControlServer {}

impl ControlServer {
    /// Makes the page in the directory of a process image.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn create(path: &CStr) -> io::Result<ControlServer> {
        let mapping = Mapping::create(path, LEN, false)?;
        let server = ControlServer { mapping };
        server.page().magic.store(MAGIC, Ordering::Release);
        Ok(server)
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping has LEN bytes, more than a page of words has, at an aligned address; a forked child has other
        // memory at the same address. All accesses are atomic.
        unsafe { self.mapping.base().cast::<Page>().as_ref() }
    }

    /// Shows the state to `rpd control`.
    pub fn show(&self, state: RecordingState) {
        self.page().state.store(state.to_word(), Ordering::Release);
    }

    /// Sleeps until there is a request, has `act` carry it out, and says so. Numbers without a meaning are answered, too:
    /// whoever wrote them would wait otherwise.
    pub fn serve_one(&self, act: impl FnOnce(Request)) {
        let page = self.page();
        let done = page.done.load(Ordering::Relaxed);
        let mut request = page.request.load(Ordering::Acquire);
        while request == done {
            wait(&page.request, request, None);
            request = page.request.load(Ordering::Acquire);
        }
        if let Some(request) = Request::from_word(request) {
            act(request);
        }
        page.done.store(request, Ordering::Release);
        wake(&page.done);
    }
}

/// The side of `rpd control`.
#[derive(Debug)]
pub struct Controller {
    page: NonNull<Page>,
}

impl Controller {
    /// Opens the page in the directory of a process image. `None` where the collector has not made one (yet): no GPU
    /// runtime is loaded, or nothing could be recorded.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped, or is not a control page.
    pub fn open(directory: &Path) -> io::Result<Option<Controller>> {
        let opened = regular_file::open_writable(&directory.join(CONTROL_FILE), Links::Refuse);
        let (file, metadata) = match opened {
            Ok(opened) => opened,
            Err(FileError::Missing) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // A store to a page behind the end of the file would raise SIGBUS.
        if metadata.len() < LEN as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let page = pages::map(file.as_raw_fd(), LEN)?.cast::<Page>();
        let controller = Controller { page };
        match controller.page().magic.load(Ordering::Acquire) {
            MAGIC => Ok(Some(controller)),
            0 => Ok(None),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped in `open`, until the value is dropped; all accesses are atomic.
        unsafe { self.page.as_ref() }
    }

    /// Whether the process records.
    pub fn state(&self) -> RecordingState {
        RecordingState::from_word(self.page().state.load(Ordering::Acquire))
    }

    /// Has the process carry out a request; false when it has not within `limit`. Requests of several callers are carried
    /// out one after the other. `runs` is asked now and then whether the process still runs.
    pub fn request(&self, request: Request, limit: Duration, runs: impl Fn() -> bool) -> bool {
        const STEP: Duration = Duration::from_millis(100);
        let page = self.page();
        let end = Instant::now() + limit;
        // False when the time is over, or the process has ended.
        let wait_for_done = |done: u32| {
            wait(&page.done, done, Some(STEP));
            Instant::now() < end && runs()
        };
        let mine = loop {
            let done = page.done.load(Ordering::Acquire);
            let before = page.request.load(Ordering::Acquire);
            let word = ((before >> COMMAND_BITS).wrapping_add(1) << COMMAND_BITS) | request as u32;
            if before == done {
                let order = (Ordering::AcqRel, Ordering::Relaxed);
                let placed = page
                    .request
                    .compare_exchange(before, word, order.0, order.1);
                if placed.is_ok() {
                    break word;
                }
            } else if !wait_for_done(done) {
                return false;
            }
        };
        wake(&page.request);
        loop {
            let done = page.done.load(Ordering::Acquire);
            // Another caller's request may have been carried out since: its count is greater.
            let behind = (mine >> COMMAND_BITS).wrapping_sub(done >> COMMAND_BITS) & 0xff_ffff;
            if behind == 0 || behind > 0x7f_ffff {
                return true;
            }
            if !wait_for_done(done) {
                return false;
            }
        }
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // SAFETY: mapped in `open`, and not used any more.
        unsafe { pages::unshare(self.page.cast(), LEN) };
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::writer::SpoolDirectory;

    fn pair() -> (tempfile::TempDir, ControlServer, Controller) {
        let run = tempfile::tempdir().expect("a directory");
        let directory = SpoolDirectory::create(run.path()).expect("a spool");
        let server = directory.make_control().expect("a control page");
        let controller = Controller::open(directory.path()).expect("opened");
        (run, server, controller.expect("a page that is served"))
    }

    #[test]
    fn controller_waits_until_each_request_is_carried_out() {
        let (_run, server, controller) = pair();
        let limit = Duration::from_secs(60);
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                let mut seen = Vec::new();
                for _ in 0..3 {
                    server.serve_one(|request| seen.push(request));
                }
                seen
            });
            let wanted = [Request::Stop, Request::Start, Request::Flush];
            for request in wanted {
                assert!(controller.request(request, limit, || true));
            }
            assert_eq!(served.join().expect("it ends"), wanted);
        });
    }

    #[test]
    fn controller_gives_up_when_the_process_has_ended() {
        let (_run, _server, controller) = pair();
        assert!(!controller.request(Request::Stop, Duration::from_secs(60), || false));
    }

    #[test]
    fn controllers_of_several_threads_are_all_answered() {
        const EACH: usize = 50;
        let (run, server, _) = pair();
        let path = run.path();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| (0..4 * EACH).for_each(|_| server.serve_one(|_| ())));
            for _ in 0..4 {
                scope.spawn(move || {
                    let image = crate::reader::processes(path).expect("listed").remove(0);
                    let controller = Controller::open(&image).expect("opened").expect("a page");
                    for _ in 0..EACH {
                        let limit = Duration::from_secs(60);
                        assert!(controller.request(Request::Flush, limit, || true));
                    }
                });
            }
            server.join().expect("it ends");
        });
    }

    #[test]
    fn state_is_shown_to_the_controller() {
        let (_run, server, controller) = pair();
        for (requested, stopped) in [(false, false), (true, false), (true, true)] {
            server.show(RecordingState { requested, stopped });
            let state = controller.state();
            assert_eq!((state.requested, state.stopped), (requested, stopped));
            assert_eq!(state.is_on(), requested && !stopped);
        }
    }

    #[test]
    fn files_that_are_no_control_pages_are_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(Controller::open(directory.path()).is_ok_and(|found| found.is_none()));
        let file = directory.path().join(CONTROL_FILE);
        for content in [vec![], vec![1; LEN - 1], vec![1; LEN]] {
            std::fs::write(&file, content).expect("written");
            assert!(Controller::open(directory.path()).is_err());
        }
    }
}
