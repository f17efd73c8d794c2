//! Frames of an interpreter whose structures are not known, through its public interface.
//!
//! Only on a thread that holds the GIL already, and while no Python exception is pending. This counts references and
//! creates frame objects, which reading the structures does not.

use std::ffi::{CStr, c_void};

use super::Outcome;
use super::chain::Chain;
use super::code::Content;
use super::runtime::{Api, Runtime};

/// A reference that is given back when it goes out of scope.
struct Owned<'a> {
    api: &'a Api,
    object: *mut c_void,
}

impl<'a> Owned<'a> {
    fn new(api: &'a Api, object: *mut c_void) -> Option<Owned<'a>> {
        (!object.is_null()).then_some(Owned { api, object })
    }
}

impl Drop for Owned<'_> {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and the thread holds the GIL.
        unsafe { (self.api.release)(self.object) };
    }
}

/// Reads the frames of the calling thread: code objects and lines. They are all in one group without an anchor.
#[cold]
pub(super) fn read(runtime: &Runtime, chain: &mut Chain) -> Outcome {
    let Some(api) = &runtime.api else {
        return Outcome::Unreadable;
    };
    if !runtime.is_running() {
        return Outcome::None;
    }
    // SAFETY: reads a thread-local slot.
    let state = unsafe { (api.attached)() };
    if state.is_null() {
        return if runtime.has_thread() {
            Outcome::Unreadable
        } else {
            Outcome::None
        };
    }
    // SAFETY: the thread holds the GIL.
    if !unsafe { (api.error)() }.is_null() {
        return Outcome::Unreadable;
    }
    // SAFETY: the state is that of this thread, which holds the GIL.
    let mut frame = Owned::new(api, unsafe { (api.first_frame)(state) });
    while let Some(current) = frame {
        // SAFETY: `current` is a frame object that we hold.
        let (code, line) = unsafe { ((api.code)(current.object), (api.line)(current.object)) };
        // The frame holds its code object, and the thread its frame.
        let Some(code) = Owned::new(api, code) else {
            chain.clear();
            return Outcome::Unreadable;
        };
        if chain.push(code.object as usize, i64::from(line)).is_err() {
            chain.clear();
            return Outcome::Unreadable;
        }
        // SAFETY: as above.
        frame = Owned::new(api, unsafe { (api.back)(current.object) });
    }
    if chain.frames().is_empty() || chain.close(0).is_err() {
        return Outcome::None;
    }
    Outcome::Frames
}

/// Calls `use_it` with the fields of a code object of the calling thread.
#[cold]
pub(super) fn with_content<T>(
    runtime: &Runtime,
    code: usize,
    use_it: impl FnOnce(Content<'_>) -> T,
) -> Option<T> {
    let api = runtime.api.as_ref()?;
    let attribute = |name: &CStr| {
        // SAFETY: the thread holds the GIL, and a frame of it holds the code object.
        let value = unsafe { (api.attribute)(code as *mut c_void, name.as_ptr()) };
        Owned::new(api, value)
    };
    let content = (|| {
        let (file, name, qualname) = (
            attribute(c"co_filename")?,
            attribute(c"co_name")?,
            attribute(c"co_qualname")?,
        );
        let first_line = attribute(c"co_firstlineno")?;
        // SAFETY: an object that we hold.
        let first_line = unsafe { (api.integer)(first_line.object) };
        Some(use_it(Content::from_texts(
            utf8(api, &file)?,
            utf8(api, &name)?,
            utf8(api, &qualname)?,
            i32::try_from(first_line).unwrap_or(0),
        )))
    })();
    if content.is_none() {
        // SAFETY: no exception was pending before, so what is pending now is ours.
        unsafe { (api.clear_error)() };
    }
    content
}

fn utf8<'a>(api: &Api, text: &'a Owned<'_>) -> Option<&'a [u8]> {
    let mut size = 0;
    // SAFETY: an object that we hold; the bytes live as long as it.
    let data = unsafe { (api.utf8)(text.object, &mut size) };
    if data.is_null() {
        return None;
    }
    // SAFETY: as above.
    Some(unsafe { std::slice::from_raw_parts(data, usize::try_from(size).ok()?) })
}
