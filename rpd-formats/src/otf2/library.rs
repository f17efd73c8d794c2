//! The system's libotf2, loaded at run time, behind safe types.
//!
//! All unsafe code of this crate is in this file. What it relies on is the interface of libotf2's major version 10
//! (OTF2 3.x), which is part of the library's name: another version is not loaded.

use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use rpd_core::spool::regular_file::{self, Links};

use super::versions::{NAMES, later_versions};

/// Bytes of a buffer of events, and of definitions.
const EVENT_CHUNK: u64 = 2 << 20;
const DEFINITION_CHUNK: u64 = 8 << 20;

/// Values of the library's enumerations.
mod value {
    pub(super) const SUCCESS: i32 = 0;
    pub(super) const MODE_WRITE: u8 = 0;
    pub(super) const SUBSTRATE_POSIX: u8 = 1;
    pub(super) const COMPRESSION_NONE: u8 = 1;
    pub(super) const FLUSH: u8 = 1;
    pub(super) const TYPE_STRING: u8 = 11;
    pub(super) const UNDEFINED: u32 = u32::MAX;
    pub(super) const SEVERITY_NONE: u8 = 0;
    pub(super) const SCOPE_LOCATION: u8 = 1;
}

/// Number of the attribute of events, the only one.
const CATEGORY: u32 = 0;
/// Number of the sort of markers, the only one.
const MARK: u32 = 0;

/// Reason why there is no archive.
#[derive(Debug)]
pub(super) enum Failure {
    /// The library cannot be loaded; the loader's message.
    Missing(String),
    /// A function of it failed; its name and the library's text.
    Refused(&'static str, String),
}

/// OTF2's types of locations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum LocationType {
    CpuThread = 1,
    AcceleratorStream = 2,
}

/// OTF2's types of location groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum GroupType {
    Process = 1,
    Accelerator = 2,
}

/// OTF2's roles of regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Role {
    Function = 1,
    DataTransfer = 30,
    Allocate = 35,
}

/// OTF2's paradigms of regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Paradigm {
    User = 1,
    Cuda = 5,
    Hip = 23,
}

type PreFlush = extern "C" fn(*mut c_void, u8, u64, *mut c_void, bool) -> u8;
type PostFlush = extern "C" fn(*mut c_void, u8, u64) -> u64;
// The last argument is a `va_list`, a pointer in the calling conventions of x86-64 and AArch64; it is not looked at.
type ErrorHandler = extern "C" fn(
    *mut c_void,
    *const c_char,
    u64,
    *const c_char,
    i32,
    *const c_char,
    *mut c_void,
) -> i32;

#[repr(C)]
struct FlushCallbacks {
    pre: Option<PreFlush>,
    post: Option<PostFlush>,
}

/// Full buffers are written out, and nothing is recorded about that.
static FLUSH_CALLBACKS: FlushCallbacks = FlushCallbacks {
    pre: Some(always_flush),
    post: None,
};

extern "C" fn always_flush(_: *mut c_void, _: u8, _: u64, _: *mut c_void, _: bool) -> u8 {
    value::FLUSH
}

/// Keeps the library from printing: what failed is in the code it returns.
extern "C" fn keep_quiet(
    _: *mut c_void,
    _: *const c_char,
    _: u64,
    _: *const c_char,
    code: i32,
    _: *const c_char,
    _: *mut c_void,
) -> i32 {
    code
}

type Handle = *mut c_void;

macro_rules! functions {
    ($($name:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// Addresses of the functions in use.
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            fn find(library: &libloading::Library) -> Result<Functions, libloading::Error> {
                Ok(Functions {
                    $(
                        // SAFETY: the library's name carries the version of its interface, whose headers declare the
                        // function so. The address is used while the library is loaded.
                        $name: *unsafe {
                            library.get::<unsafe extern "C" fn($($argument),*) -> $result>(concat!($symbol, "\0"))?
                        },
                    )*
                })
            }
        }
    };
}

functions! {
    error_handler = "OTF2_Error_RegisterCallback"(Option<ErrorHandler>, *mut c_void) -> Option<ErrorHandler>;
    describe = "OTF2_Error_GetDescription"(i32) -> *const c_char;
    open = "OTF2_Archive_Open"(*const c_char, *const c_char, u8, u64, u64, u8, u8) -> Handle;
    close = "OTF2_Archive_Close"(Handle) -> i32;
    set_flush_callbacks = "OTF2_Archive_SetFlushCallbacks"(Handle, *const FlushCallbacks, *mut c_void) -> i32;
    set_serial = "OTF2_Archive_SetSerialCollectiveCallbacks"(Handle) -> i32;
    open_events = "OTF2_Archive_OpenEvtFiles"(Handle) -> i32;
    close_events = "OTF2_Archive_CloseEvtFiles"(Handle) -> i32;
    event_writer = "OTF2_Archive_GetEvtWriter"(Handle, u64) -> Handle;
    close_event_writer = "OTF2_Archive_CloseEvtWriter"(Handle, Handle) -> i32;
    open_local = "OTF2_Archive_OpenDefFiles"(Handle) -> i32;
    close_local = "OTF2_Archive_CloseDefFiles"(Handle) -> i32;
    local_writer = "OTF2_Archive_GetDefWriter"(Handle, u64) -> Handle;
    close_local_writer = "OTF2_Archive_CloseDefWriter"(Handle, Handle) -> i32;
    global_writer = "OTF2_Archive_GetGlobalDefWriter"(Handle) -> Handle;
    new_attributes = "OTF2_AttributeList_New"() -> Handle;
    delete_attributes = "OTF2_AttributeList_Delete"(Handle) -> i32;
    add_string = "OTF2_AttributeList_AddStringRef"(Handle, u32, u32) -> i32;
    enter = "OTF2_EvtWriter_Enter"(Handle, Handle, u64, u32) -> i32;
    leave = "OTF2_EvtWriter_Leave"(Handle, Handle, u64, u32) -> i32;
    marker_writer = "OTF2_Archive_GetMarkerWriter"(Handle) -> Handle;
    close_marker_writer = "OTF2_Archive_CloseMarkerWriter"(Handle, Handle) -> i32;
    define_marker = "OTF2_MarkerWriter_WriteDefMarker"(Handle, u32, *const c_char, *const c_char, u8) -> i32;
    mark = "OTF2_MarkerWriter_WriteMarker"(Handle, u64, u64, u32, u8, u64, *const c_char) -> i32;
    define_clock = "OTF2_GlobalDefWriter_WriteClockProperties"(Handle, u64, u64, u64, u64) -> i32;
    define_string = "OTF2_GlobalDefWriter_WriteString"(Handle, u32, *const c_char) -> i32;
    define_attribute = "OTF2_GlobalDefWriter_WriteAttribute"(Handle, u32, u32, u32, u8) -> i32;
    define_node = "OTF2_GlobalDefWriter_WriteSystemTreeNode"(Handle, u32, u32, u32, u32) -> i32;
    define_group = "OTF2_GlobalDefWriter_WriteLocationGroup"(Handle, u32, u32, u8, u32, u32) -> i32;
    define_location = "OTF2_GlobalDefWriter_WriteLocation"(Handle, u64, u32, u8, u64, u32) -> i32;
    define_region = "OTF2_GlobalDefWriter_WriteRegion"(Handle, u32, u32, u32, u32, u8, u8, u32, u32, u32, u32) -> i32;
}

/// The loaded OTF2 library and its functions.
pub(super) struct Library {
    functions: Functions,
    // Keeps the addresses valid.
    _library: libloading::Library,
}

impl Library {
    /// Loads the file that was named, or the first that is found.
    pub(super) fn load(named: Option<&Path>) -> Result<Library, Failure> {
        if let Some(path) = named {
            return Self::load_named(path.as_os_str());
        }
        let mut reasons: Vec<String> = Vec::new();
        let later = later_versions();
        let names = NAMES.iter().map(OsStr::new);
        for name in names.chain(later.iter().map(|path| path.as_os_str())) {
            match Self::load_named(name) {
                Err(Failure::Missing(reason)) => reasons.push(reason),
                other => return other,
            }
        }
        Err(Failure::Missing(reasons.join("; ")))
    }

    fn load_named(name: &OsStr) -> Result<Library, Failure> {
        // The loader's own text is behind libloading's.
        let missing = |error: libloading::Error| {
            let error: &dyn std::error::Error = &error;
            Failure::Missing(error.source().unwrap_or(error).to_string())
        };
        // The loader would wait for the other end of a pipe. Without a slash it is a name that the loader looks for.
        if name.as_encoded_bytes().contains(&b'/') {
            regular_file::open(Path::new(name), Links::Follow)
                .map_err(|error| Failure::Missing(format!("{}: {error}", name.display())))?;
        }
        // SAFETY: libotf2 does nothing when it is loaded.
        let library = unsafe { libloading::Library::new(name) }.map_err(missing)?;
        let functions = Functions::find(&library).map_err(missing)?;
        // SAFETY: the handler is a function of this program and uses no data.
        unsafe { (functions.error_handler)(Some(keep_quiet), std::ptr::null_mut()) };
        Ok(Library {
            functions,
            _library: library,
        })
    }

    fn check(&self, function: &'static str, code: i32) -> Result<(), Failure> {
        if code == value::SUCCESS {
            Ok(())
        } else {
            Err(self.refused(function, code))
        }
    }

    #[cold]
    fn refused(&self, function: &'static str, code: i32) -> Failure {
        // SAFETY: the function takes any number.
        let text = unsafe { (self.functions.describe)(code) };
        let text = if text.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: descriptions are constants of the library, which is loaded.
            unsafe { CStr::from_ptr(text) }
                .to_string_lossy()
                .into_owned()
        };
        Failure::Refused(function, text)
    }
}

/// A text as the library takes it; it ends where it would end for the library.
fn c_string(text: &[u8]) -> CString {
    let end = text.iter().position(|&byte| byte == 0);
    CString::new(&text[..end.unwrap_or(text.len())]).unwrap_or_default()
}

/// An archive being written. Not for several threads: it holds pointers.
pub(super) struct Archive<'l> {
    library: &'l Library,
    handle: NonNull<c_void>,
    attributes: NonNull<c_void>,
}

impl<'l> Archive<'l> {
    /// Makes an archive called `name` in `directory`, which exists. Events can be written.
    pub(super) fn create(
        library: &'l Library,
        directory: &Path,
        name: &str,
    ) -> Result<Archive<'l>, Failure> {
        let functions = &library.functions;
        let refused =
            |function| Failure::Refused(function, "the library gave no reason".to_owned());
        let directory = c_string(directory.as_os_str().as_bytes());
        let name = c_string(name.as_bytes());
        // SAFETY: both texts end in NUL and live through the call.
        let handle = unsafe {
            (functions.open)(
                directory.as_ptr(),
                name.as_ptr(),
                value::MODE_WRITE,
                EVENT_CHUNK,
                DEFINITION_CHUNK,
                value::SUBSTRATE_POSIX,
                value::COMPRESSION_NONE,
            )
        };
        let handle = NonNull::new(handle).ok_or_else(|| refused("OTF2_Archive_Open"))?;
        // SAFETY: it takes nothing.
        let attributes = unsafe { (functions.new_attributes)() };
        let Some(attributes) = NonNull::new(attributes) else {
            // SAFETY: the archive is open and not used again.
            unsafe { (functions.close)(handle.as_ptr()) };
            return Err(refused("OTF2_AttributeList_New"));
        };
        let archive = Archive {
            library,
            handle,
            attributes,
        };
        // SAFETY: the archive is open; the callbacks are static functions and use no data.
        let code = unsafe {
            (functions.set_flush_callbacks)(
                handle.as_ptr(),
                &raw const FLUSH_CALLBACKS,
                std::ptr::null_mut(),
            )
        };
        library.check("OTF2_Archive_SetFlushCallbacks", code)?;
        archive.call("OTF2_Archive_SetSerialCollectiveCallbacks", |f| {
            f.set_serial
        })?;
        archive.call("OTF2_Archive_OpenEvtFiles", |f| f.open_events)?;
        Ok(archive)
    }

    /// Calls a function that takes the archive only.
    fn call(
        &self,
        name: &'static str,
        function: impl Fn(&Functions) -> unsafe extern "C" fn(Handle) -> i32,
    ) -> Result<(), Failure> {
        // SAFETY: the archive is open; none of the functions given here closes it.
        let code = unsafe { function(&self.library.functions)(self.handle.as_ptr()) };
        self.library.check(name, code)
    }

    /// The events of a location.
    pub(super) fn events(&self, location: u64) -> Result<Events<'_>, Failure> {
        // SAFETY: the archive is open.
        let handle =
            unsafe { (self.library.functions.event_writer)(self.handle.as_ptr(), location) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Events {
                archive: self,
                handle,
            }),
            None => Err(Failure::Refused(
                "OTF2_Archive_GetEvtWriter",
                "the library gave no reason".to_owned(),
            )),
        }
    }

    /// Ends events and makes the (empty) definition files of `locations`.
    pub(super) fn end_events(&self, locations: impl Iterator<Item = u64>) -> Result<(), Failure> {
        let functions = &self.library.functions;
        self.call("OTF2_Archive_CloseEvtFiles", |f| f.close_events)?;
        self.call("OTF2_Archive_OpenDefFiles", |f| f.open_local)?;
        for location in locations {
            // SAFETY: the archive is open.
            let writer = unsafe { (functions.local_writer)(self.handle.as_ptr(), location) };
            if !writer.is_null() {
                // SAFETY: the writer belongs to this archive and is not used again.
                let code = unsafe { (functions.close_local_writer)(self.handle.as_ptr(), writer) };
                self.library.check("OTF2_Archive_CloseDefWriter", code)?;
            }
        }
        self.call("OTF2_Archive_CloseDefFiles", |f| f.close_local)
    }

    /// The definitions of the archive.
    pub(super) fn definitions(&self) -> Result<Definitions<'_>, Failure> {
        // SAFETY: the archive is open.
        let handle = unsafe { (self.library.functions.global_writer)(self.handle.as_ptr()) };
        match NonNull::new(handle) {
            Some(handle) => Ok(Definitions {
                library: self.library,
                handle,
                _archive: PhantomData,
            }),
            None => Err(Failure::Refused(
                "OTF2_Archive_GetGlobalDefWriter",
                "the library gave no reason".to_owned(),
            )),
        }
    }

    /// The markers of the archive, which are of one sort: `category` of `group`.
    pub(super) fn markers(&self, group: &str, category: &str) -> Result<Markers<'_>, Failure> {
        let functions = &self.library.functions;
        // SAFETY: the archive is open.
        let handle = unsafe { (functions.marker_writer)(self.handle.as_ptr()) };
        let Some(handle) = NonNull::new(handle) else {
            return Err(Failure::Refused(
                "OTF2_Archive_GetMarkerWriter",
                "the library gave no reason".to_owned(),
            ));
        };
        let (group, category) = (c_string(group.as_bytes()), c_string(category.as_bytes()));
        // SAFETY: the writer is open; both texts end in NUL and live through the call.
        let code = unsafe {
            (functions.define_marker)(
                handle.as_ptr(),
                MARK,
                group.as_ptr(),
                category.as_ptr(),
                value::SEVERITY_NONE,
            )
        };
        self.library
            .check("OTF2_MarkerWriter_WriteDefMarker", code)?;
        Ok(Markers {
            archive: self,
            handle,
        })
    }

    /// Closes the archive, which writes the rest of it out.
    pub(super) fn close(self) -> Result<(), Failure> {
        let this = std::mem::ManuallyDrop::new(self);
        let code = this.release();
        this.library.check("OTF2_Archive_Close", code)
    }

    /// Closes the archive and frees its handles; to be called once, last.
    fn release(&self) -> i32 {
        let functions = &self.library.functions;
        // SAFETY: both are alive, by the rule above, and nothing that borrows from the archive can be left.
        unsafe {
            (functions.delete_attributes)(self.attributes.as_ptr());
            (functions.close)(self.handle.as_ptr())
        }
    }
}

impl Drop for Archive<'_> {
    fn drop(&mut self) {
        self.release();
    }
}

/// Writes the events of one location, times ascending.
pub(super) struct Events<'a> {
    archive: &'a Archive<'a>,
    handle: NonNull<c_void>,
}

impl Events<'_> {
    /// A region begins; `category` is a string reference.
    #[inline]
    pub(super) fn enter(&mut self, time: u64, region: u32, category: u32) -> Result<(), Failure> {
        let library = self.archive.library;
        let attributes = self.archive.attributes.as_ptr();
        // SAFETY: archive, writer and list are alive. The list is empty: the library empties it with every event.
        let code = unsafe {
            (library.functions.add_string)(attributes, CATEGORY, category);
            (library.functions.enter)(self.handle.as_ptr(), attributes, time, region)
        };
        library.check("OTF2_EvtWriter_Enter", code)
    }

    /// Writes a leave event.
    #[inline]
    pub(super) fn leave(&mut self, time: u64, region: u32) -> Result<(), Failure> {
        let library = self.archive.library;
        // SAFETY: archive and writer are alive; no list is allowed.
        let code = unsafe {
            (library.functions.leave)(self.handle.as_ptr(), std::ptr::null_mut(), time, region)
        };
        library.check("OTF2_EvtWriter_Leave", code)
    }

    /// Closes the writer of events, which writes the rest of them out.
    pub(super) fn close(self) -> Result<(), Failure> {
        let library = self.archive.library;
        // SAFETY: the writer belongs to this archive and is not used again. One that is not closed is closed with
        // the archive.
        let code = unsafe {
            (library.functions.close_event_writer)(
                self.archive.handle.as_ptr(),
                self.handle.as_ptr(),
            )
        };
        library.check("OTF2_Archive_CloseEvtWriter", code)
    }
}

/// Writes the markers of an archive.
pub(super) struct Markers<'a> {
    archive: &'a Archive<'a>,
    handle: NonNull<c_void>,
}

impl Markers<'_> {
    /// A marker on a location.
    pub(super) fn mark(&mut self, time: u64, location: u64, text: &str) -> Result<(), Failure> {
        let library = self.archive.library;
        let text = c_string(text.as_bytes());
        // SAFETY: archive and writer are alive; the text ends in NUL and lives through the call.
        let code = unsafe {
            (library.functions.mark)(
                self.handle.as_ptr(),
                time,
                0,
                MARK,
                value::SCOPE_LOCATION,
                location,
                text.as_ptr(),
            )
        };
        library.check("OTF2_MarkerWriter_WriteMarker", code)
    }

    /// Closes the writer of markers, which writes the rest of them out.
    pub(super) fn close(self) -> Result<(), Failure> {
        let library = self.archive.library;
        // SAFETY: the writer belongs to this archive and is not used again. One that is not closed is closed with
        // the archive.
        let code = unsafe {
            (library.functions.close_marker_writer)(
                self.archive.handle.as_ptr(),
                self.handle.as_ptr(),
            )
        };
        library.check("OTF2_Archive_CloseMarkerWriter", code)
    }
}

/// Writes the global definitions.
pub(super) struct Definitions<'a> {
    library: &'a Library,
    handle: NonNull<c_void>,
    _archive: PhantomData<&'a Archive<'a>>,
}

// SAFETY of the calls below: the writer lives as long as its archive, which is borrowed; texts live through the call.
impl Definitions<'_> {
    /// Nanoseconds, from `offset` on for `length`; `real_time` is the Unix time in ns of the offset.
    pub(super) fn clock(&self, offset: u64, length: u64, real_time: u64) -> Result<(), Failure> {
        let define = self.library.functions.define_clock;
        // SAFETY: as above.
        let code = unsafe {
            define(
                self.handle.as_ptr(),
                1_000_000_000,
                offset,
                length,
                real_time,
            )
        };
        self.library
            .check("OTF2_GlobalDefWriter_WriteClockProperties", code)
    }

    /// Writes a string definition.
    pub(super) fn string(&self, id: u32, text: &str) -> Result<(), Failure> {
        let text = c_string(text.as_bytes());
        // SAFETY: as above.
        let code = unsafe {
            (self.library.functions.define_string)(self.handle.as_ptr(), id, text.as_ptr())
        };
        self.library.check("OTF2_GlobalDefWriter_WriteString", code)
    }

    /// The attribute of events.
    pub(super) fn category(&self, name: u32, description: u32) -> Result<(), Failure> {
        let define = self.library.functions.define_attribute;
        // SAFETY: as above.
        let code = unsafe {
            define(
                self.handle.as_ptr(),
                CATEGORY,
                name,
                description,
                value::TYPE_STRING,
            )
        };
        self.library
            .check("OTF2_GlobalDefWriter_WriteAttribute", code)
    }

    /// Writes the node of the system tree, the only one, number 0.
    pub(super) fn node(&self, name: u32, class: u32) -> Result<(), Failure> {
        let define = self.library.functions.define_node;
        // SAFETY: as above.
        let code = unsafe { define(self.handle.as_ptr(), 0, name, class, value::UNDEFINED) };
        self.library
            .check("OTF2_GlobalDefWriter_WriteSystemTreeNode", code)
    }

    /// A group of locations in node 0.
    pub(super) fn group(&self, id: u32, name: u32, kind: GroupType) -> Result<(), Failure> {
        let define = self.library.functions.define_group;
        // SAFETY: as above.
        let code = unsafe {
            define(
                self.handle.as_ptr(),
                id,
                name,
                kind as u8,
                0,
                value::UNDEFINED,
            )
        };
        self.library
            .check("OTF2_GlobalDefWriter_WriteLocationGroup", code)
    }

    /// A location with that many events.
    pub(super) fn location(
        &self,
        id: u64,
        name: u32,
        kind: LocationType,
        events: u64,
        group: u32,
    ) -> Result<(), Failure> {
        let define = self.library.functions.define_location;
        // SAFETY: as above.
        let code = unsafe { define(self.handle.as_ptr(), id, name, kind as u8, events, group) };
        self.library
            .check("OTF2_GlobalDefWriter_WriteLocation", code)
    }

    /// Writes a region definition. String 0 is empty and used for unknown values.
    pub(super) fn region(
        &self,
        id: u32,
        name: u32,
        role: Role,
        paradigm: Paradigm,
    ) -> Result<(), Failure> {
        let define = self.library.functions.define_region;
        // SAFETY: as above.
        let code = unsafe {
            define(
                self.handle.as_ptr(),
                id,
                name,
                0,
                0,
                role as u8,
                paradigm as u8,
                0,
                0,
                0,
                0,
            )
        };
        self.library.check("OTF2_GlobalDefWriter_WriteRegion", code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_a_missing_libotf2() {
        let Err(Failure::Missing(text)) = Library::load_named("libotf2.so.none".as_ref()) else {
            panic!("there is such a library");
        };
        assert!(text.contains("libotf2.so.none"), "{text}");
    }

    #[test]
    fn library_without_the_functions_is_no_libotf2() {
        let Err(Failure::Missing(text)) = Library::load_named("libc.so.6".as_ref()) else {
            panic!("the C library has them");
        };
        assert!(text.contains("OTF2_"), "{text}");
    }

    #[test]
    fn c_string_ends_at_nul() {
        assert_eq!(c_string(b"a\0b").as_bytes(), b"a");
        assert_eq!(c_string("über".as_bytes()).as_bytes(), "über".as_bytes());
    }

    #[test]
    fn library_that_the_user_named_is_the_only_one_tried() {
        let path = Path::new("/proc/nonexistent/libotf2.so");
        let Err(Failure::Missing(text)) = Library::load(Some(path)) else {
            panic!("there is no such file");
        };
        assert!(text.contains("/proc/nonexistent/libotf2.so"), "{text}");
        assert!(!text.contains(NAMES[0]), "{text}");
    }
}
