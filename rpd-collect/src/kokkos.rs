//! The Kokkos tools interface: events of Kokkos are passed to ROCTx as marks and ranges, which are recorded as markers.
//!
//! Only with the Kokkos option, and only if a ROCTx library is loaded.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char, c_int, c_void};

use crate::recording::fork::ForkHook;
use crate::recording::guard::Service;
use crate::recording::process;
use crate::recording::text::text;
use crate::roctx::Roctx;

static SERVICE: Service = Service::new("Kokkos");

/// ROCTx, if it is loaded and Kokkos events are requested.
fn roctx() -> Option<&'static Roctx> {
    process::current()?.options.kokkos.then(Roctx::loaded)?
}

fn with(act: impl FnOnce(&'static Roctx)) {
    SERVICE.run(|| {
        if let Some(roctx) = roctx() {
            act(roctx);
        }
    });
}

fn push(name: *const c_char) {
    // SAFETY: ROCTx takes any text of the caller, and null.
    with(|roctx| unsafe {
        (roctx.push)(name);
    });
}

fn pop() {
    // SAFETY: no arguments.
    with(|roctx| unsafe {
        (roctx.pop)();
    });
}

fn mark(text: *const c_char) {
    // SAFETY: ROCTx takes any text of the caller, and null.
    with(|roctx| unsafe { (roctx.mark)(text) });
}

fn mark_text(text: String) {
    if let Ok(text) = CString::new(text) {
        mark(text.as_ptr());
    }
}

/// A memory space as Kokkos passes it: by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct SpaceHandle {
    name: [u8; 64],
}

impl SpaceHandle {
    fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0);
        String::from_utf8_lossy(&self.name[..end.unwrap_or(self.name.len())]).into_owned()
    }
}

/// # Safety
///
/// `label` is null or a NUL-terminated text.
unsafe fn owned(label: *const c_char) -> String {
    // SAFETY: as this function demands.
    String::from_utf8_lossy(unsafe { text(label) }).into_owned()
}

/// A profile section: its name, and its range while it is started.
struct Section {
    label: CString,
    range: Option<u64>,
}

struct Sections(UnsafeCell<Vec<Section>>);

// SAFETY: the content is only touched with the lock of [`FORK`] held.
unsafe impl Sync for Sections {}

static SECTIONS: Sections = Sections(UnsafeCell::new(Vec::new()));
static FORK: ForkHook = ForkHook::new();

/// Lets `act` work on the sections. `None` when this thread does that already: a signal handler interrupted it.
fn with_sections<T>(act: impl FnOnce(&mut Vec<Section>) -> T) -> Option<T> {
    let _guard = FORK.lock()?;
    // SAFETY: the lock is held.
    Some(act(unsafe { &mut *SECTIONS.0.get() }))
}

/// Sets that Kokkos need not fence around every event.
///
/// # Safety
///
/// Called by Kokkos with a valid settings struct, of which only the first byte is touched.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_request_tool_settings(_interface: u32, settings: *mut u8) {
    if !settings.is_null() {
        // SAFETY: the first member is a bool.
        unsafe { settings.write(0) };
    }
}

/// Receives from Kokkos that it has initialised.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_init_library(
    _sequence: c_int,
    _interface: u64,
    _device_count: u32,
    _devices: *mut c_void,
) {
    mark(c"Kokkos::Initialization Complete".as_ptr());
}

/// Receives from Kokkos that it has ended.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_finalize_library() {
    mark(c"Kokkos::Finalization Complete".as_ptr());
}

macro_rules! ranges {
    ($($begin:ident $end:ident $what:literal;)*) => {
        $(
            #[doc = concat!("A ", $what, " begins.")]
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $begin(name: *const c_char, _device: u32, _id: *mut u64) {
                push(name);
            }

            #[doc = concat!("A ", $what, " ends.")]
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $end(_id: u64) {
                pop();
            }
        )*
    };
}

ranges! {
    kokkosp_begin_parallel_for kokkosp_end_parallel_for "parallel for";
    kokkosp_begin_parallel_reduce kokkosp_end_parallel_reduce "parallel reduction";
    kokkosp_begin_parallel_scan kokkosp_end_parallel_scan "parallel scan";
}

/// Receives from Kokkos that a region of the thread begins.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_push_profile_region(name: *const c_char) {
    push(name);
}

/// Receives from Kokkos that the innermost region of the thread ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_pop_profile_region() {
    pop();
}

/// Receives from Kokkos an event of the program.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_profile_event(name: *const c_char) {
    mark(name);
}

/// A fence begins. Its range may end on another thread, so it is not a pushed one.
///
/// # Safety
///
/// Called by Kokkos: `id` is valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_begin_fence(
    name: *const c_char,
    _device: u32,
    id: *mut u64,
) {
    with(|roctx| {
        // SAFETY: ROCTx takes any text of the caller; Kokkos reads the id there.
        unsafe {
            let range = (roctx.start)(name);
            if !id.is_null() {
                id.write(range);
            }
        }
    });
}

/// Receives from Kokkos that a fence ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_end_fence(id: u64) {
    // SAFETY: ROCTx ignores ids that it has not given.
    with(|roctx| unsafe { (roctx.stop)(id) });
}

/// A section is declared; it is started and stopped by number.
///
/// # Safety
///
/// Called by Kokkos: `name` is null or a text, `id` is valid.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_create_profile_section(name: *const c_char, id: *mut u32) {
    with(|_| {
        // SAFETY: as this function demands.
        let label = CString::new(unsafe { text(name) }).unwrap_or_default();
        let number = with_sections(|sections| {
            sections.push(Section { label, range: None });
            sections.len() - 1
        });
        if let Some(number) = number
            && !id.is_null()
        {
            // SAFETY: Kokkos reads the number there.
            unsafe { id.write(number as u32) };
        }
    });
}

/// Receives from Kokkos that a profile section begins.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_start_profile_section(id: u32) {
    with(|roctx| {
        // The lock is not held while ROCTx runs, which calls us back through the provider.
        let label = with_sections(|sections| Some(sections.get(id as usize)?.label.clone()));
        let Some(label) = label.flatten() else {
            return;
        };
        // SAFETY: a NUL-terminated text.
        let range = unsafe { (roctx.start)(label.as_ptr()) };
        with_sections(|sections| {
            if let Some(section) = sections.get_mut(id as usize) {
                section.range = Some(range);
            }
        });
    });
}

/// Receives from Kokkos that a profile section ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_stop_profile_section(id: u32) {
    with(|roctx| {
        let range = with_sections(|sections| sections.get_mut(id as usize)?.range.take());
        if let Some(range) = range.flatten() {
            // SAFETY: a range that was started.
            unsafe { (roctx.stop)(range) };
        }
    });
}

/// A section is not needed any more. Its number is not given out again, so nothing is done here.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_destroy_profile_section(_id: u32) {}

/// Memory was allocated.
///
/// # Safety
///
/// Called by Kokkos: `label` is null or a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_allocate_data(
    space: SpaceHandle,
    label: *const c_char,
    _address: *const c_void,
    size: u64,
) {
    with(|_| {
        // SAFETY: as this function demands.
        let label = unsafe { owned(label) };
        mark_text(format!("Kokkos::allocate {} {label} {size}", space.name()));
    });
}

/// Memory is freed.
///
/// # Safety
///
/// Called by Kokkos: `label` is null or a text.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_deallocate_data(
    space: SpaceHandle,
    label: *const c_char,
    _address: *const c_void,
    size: u64,
) {
    with(|_| {
        // SAFETY: as this function demands.
        let label = unsafe { owned(label) };
        mark_text(format!(
            "Kokkos::deallocate {} {label} {size}",
            space.name()
        ));
    });
}

/// A deep copy begins.
///
/// # Safety
///
/// Called by Kokkos: both labels are null or texts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn kokkosp_begin_deep_copy(
    to: SpaceHandle,
    to_label: *const c_char,
    _to_address: *const c_void,
    from: SpaceHandle,
    from_label: *const c_char,
    _from_address: *const c_void,
    size: u64,
) {
    with(|_| {
        // SAFETY: as this function demands.
        let (to_label, from_label) = unsafe { (owned(to_label), owned(from_label)) };
        let text = format!(
            "Kokkos::deep_copy {} {to_label} <- {} {from_label} {size}",
            to.name(),
            from.name()
        );
        if let Ok(text) = CString::new(text) {
            push(text.as_ptr());
        }
    });
}

/// Receives from Kokkos that a deep copy ends.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn kokkosp_end_deep_copy() {
    pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kokkos_space_name_ends_at_its_nul() {
        let mut name = [0; 64];
        name[..4].copy_from_slice(b"Host");
        assert_eq!(SpaceHandle { name }.name(), "Host");
        assert_eq!(SpaceHandle { name: [b'x'; 64] }.name(), "x".repeat(64));
    }
}
