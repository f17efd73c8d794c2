//! The control page: memory that a process shares with `rpd control` or `rpd attach`, through a file: of a process that is
//! recorded in the process's directory, of one that waits to be attached to in a directory of its user
//! ([`crate::idle`]).
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
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
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

/// Most bytes of a text in the page.
pub const LONGEST_TEXT: usize = LEN - 28;

/// What `rpd control` and `rpd attach` can request of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// Record again.
    Start = 1,
    /// Record nothing until the next start.
    Stop = 2,
    /// Write what the provider holds back to the recording.
    Flush = 3,
    /// Begin a recording in the directory that the text of the page names. Only of a process that can be attached to.
    Attach = 4,
    /// End that recording.
    Detach = 5,
}

impl Request {
    /// The request in a word of the page; `None` for a number that has no meaning.
    fn from_word(word: u32) -> Option<Request> {
        let all = [
            Request::Start,
            Request::Stop,
            Request::Flush,
            Request::Attach,
            Request::Detach,
        ];
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
    /// Process id of the rpd that is attached, as it knows it itself; 0 while there is none.
    holder: AtomicU32,
    /// Outcome of the last request: 0 when it failed, and the text says why.
    outcome: AtomicU32,
    /// Bytes of the text: what belongs to a request, and then to its outcome.
    text_len: AtomicU32,
    text: [AtomicU8; LONGEST_TEXT],
}

const _: () = assert!(size_of::<Page>() == LEN);

impl Page {
    fn set_text(&self, text: &[u8]) {
        let text = &text[..text.len().min(LONGEST_TEXT)];
        for (place, byte) in self.text.iter().zip(text) {
            place.store(*byte, Ordering::Relaxed);
        }
        self.text_len.store(text.len() as u32, Ordering::Release);
    }

    fn text(&self) -> Vec<u8> {
        let len = self.text_len.load(Ordering::Acquire) as usize;
        let text = self.text.iter().take(len);
        text.map(|byte| byte.load(Ordering::Relaxed)).collect()
    }
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
    base: NonNull<u8>,
    /// The mapping of a page that belongs to a recording, which ends with the recording. A page without one stays mapped.
    _mapping: Option<Mapping>,
}

// SAFETY: all accesses to the page are atomic, and it is mapped as long as the value lives.
unsafe impl Sync for ControlServer {}
// SAFETY: as above.
unsafe impl Send for ControlServer {}

impl ControlServer {
    /// Makes the page in the directory of a process image.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(super) fn create(path: &CStr) -> io::Result<ControlServer> {
        let mapping = Mapping::create(path, LEN, false)?;
        Ok(ControlServer::begin(mapping.base(), Some(mapping)))
    }

    /// Makes the page in an open and empty file. It stays mapped for the life of the process.
    ///
    /// # Errors
    /// When the file cannot be extended or mapped.
    pub(super) fn from_file(file: &std::fs::File) -> io::Result<ControlServer> {
        let base = pages::share(file.as_raw_fd(), LEN, false)?;
        Ok(ControlServer::begin(base, None))
    }

    fn begin(base: NonNull<u8>, mapping: Option<Mapping>) -> ControlServer {
        let server = ControlServer {
            base,
            _mapping: mapping,
        };
        server.page().magic.store(MAGIC, Ordering::Release);
        server
    }

    fn page(&self) -> &Page {
        // SAFETY: the mapping has LEN bytes, more than a page of words has, at an aligned address; a forked child has other
        // memory at the same address. All accesses are atomic.
        unsafe { self.base.cast::<Page>().as_ref() }
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
        self.carry_out(request, act);
    }

    /// As [`ControlServer::serve_one`]; false when there was no request within `limit`.
    pub fn serve_within(&self, limit: Duration, act: impl FnOnce(Request)) -> bool {
        let page = self.page();
        let done = page.done.load(Ordering::Relaxed);
        let mut request = page.request.load(Ordering::Acquire);
        if request == done {
            wait(&page.request, request, Some(limit));
            request = page.request.load(Ordering::Acquire);
        }
        if request == done {
            return false;
        }
        self.carry_out(request, act);
        true
    }

    fn carry_out(&self, request: u32, act: impl FnOnce(Request)) {
        let page = self.page();
        if let Some(request) = Request::from_word(request) {
            act(request);
        }
        page.done.store(request, Ordering::Release);
        wake(&page.done);
    }

    /// Lets a thread in [`ControlServer::serve_one`] return, as after a request without a meaning.
    pub fn release(&self) {
        let page = self.page();
        page.request.fetch_add(1 << COMMAND_BITS, Ordering::AcqRel);
        // Without the number of a request.
        page.request
            .fetch_and(!((1 << COMMAND_BITS) - 1), Ordering::AcqRel);
        wake(&page.request);
    }

    /// The text that belongs to the request.
    pub fn text(&self) -> Vec<u8> {
        self.page().text()
    }

    /// Sets the outcome of the request that is being carried out: an error is text for the user.
    pub fn answer(&self, outcome: Result<(), &str>) {
        let page = self.page();
        page.set_text(outcome.err().unwrap_or_default().as_bytes());
        page.outcome
            .store(outcome.is_ok().into(), Ordering::Release);
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
        Controller::from_file(&file, metadata.len())
    }

    /// As [`Controller::open`], for a file of `len` bytes that is open for reading and writing.
    ///
    /// # Errors
    /// When the file cannot be mapped, or is not a control page.
    pub(super) fn from_file(file: &std::fs::File, len: u64) -> io::Result<Option<Controller>> {
        // A store to a page behind the end of the file would raise SIGBUS.
        if len < LEN as u64 {
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

    /// Process id of the rpd that is attached to the process, as it knows it itself.
    pub fn holder(&self) -> Option<u32> {
        Some(self.page().holder.load(Ordering::Acquire)).filter(|pid| *pid != 0)
    }

    /// Sets what [`Controller::holder`] returns.
    pub fn set_holder(&self, pid: Option<u32>) {
        let holder = &self.page().holder;
        holder.store(pid.unwrap_or(0), Ordering::Release);
    }

    /// Sets the text that belongs to the next request. Only for the one caller that may make such a request.
    pub fn set_text(&self, text: &[u8]) {
        self.page().set_text(text);
    }

    /// The outcome of the last request: an error is text for the user.
    ///
    /// # Errors
    /// The process could not carry the request out.
    pub fn outcome(&self) -> Result<(), String> {
        let page = self.page();
        match page.outcome.load(Ordering::Acquire) {
            0 => Err(String::from_utf8_lossy(&page.text()).into_owned()),
            _ => Ok(()),
        }
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
