//! A count of the code objects that the interpreter has freed. While it does not change, the address of a known code object
//! still belongs to that object, so its content need not be read and compared again.
//!
//! Interpreters from 3.12 on give each code object a number, which serves the same purpose.

use std::ffi::c_void;
use std::mem::transmute;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::layout::Layout;
use super::memory::{Checked, Memory};

type Deallocate = unsafe extern "C" fn(*mut c_void);

/// Number of code objects that the interpreter with the type [`COUNTED`] has freed. It never decreases, also when
/// another interpreter is counted later, so that a former value does not occur again.
static FREED: AtomicU64 = AtomicU64::new(0);
/// Address of the type of code objects whose `tp_dealloc` is [`count_and_free`]; 0 for none.
static COUNTED: AtomicUsize = AtomicUsize::new(0);
/// Address of the interpreter's own `tp_dealloc`, which is called after counting.
static ORIGINAL: AtomicUsize = AtomicUsize::new(0);
/// Value of [`COUNTED`] while a thread changes it.
const BUSY: usize = 1;

/// Makes the interpreter with this type of code objects count those it frees. Does nothing where the type is not as
/// `layout` has it, cannot be written to, or belongs to a second interpreter of the process.
///
/// A running deallocation that is not counted is of an object that no frame holds, so no thread has seen it.
pub(super) fn count(layout: &Layout, code_type: usize) {
    if layout.code_version != 0 {
        return;
    }
    let counted = COUNTED.load(Ordering::Acquire);
    if counted != 0 && counted != code_type
        || COUNTED
            .compare_exchange(counted, BUSY, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
    {
        return;
    }
    let is_counted = replace(layout, code_type).is_some();
    FREED.fetch_add(1, Ordering::Relaxed);
    COUNTED.store(if is_counted { code_type } else { 0 }, Ordering::Release);
}

/// The count, `None` if the interpreter with this type of code objects does not count.
#[inline(always)]
pub(super) fn freed(code_type: usize) -> Option<u64> {
    (COUNTED.load(Ordering::Acquire) == code_type).then(|| FREED.load(Ordering::Acquire))
}

fn replace(layout: &Layout, code_type: usize) -> Option<()> {
    let name = Checked.word(code_type + layout.type_name)?;
    let mut text = c"code".to_bytes_with_nul().iter().enumerate();
    if !text.all(|(index, &byte)| Checked.load::<u8>(name + index) == Some(byte)) {
        return None;
    }
    let slot = code_type + layout.type_deallocate;
    let original = Checked.word(slot)?;
    let ours = count_and_free as Deallocate as usize;
    // An interpreter that was unloaded and loaded again at its address has its own function there.
    if original != ours {
        if original == 0 || !Checked.is_writable(slot, original) {
            return None;
        }
        ORIGINAL.store(original, Ordering::Release);
        // SAFETY: an aligned word of a type, which the interpreter reads whole; both functions free the object.
        unsafe { AtomicUsize::from_ptr(slot as *mut usize) }.store(ours, Ordering::Release);
    }
    Some(())
}

/// Takes the place of `tp_dealloc`; called with the GIL.
unsafe extern "C" fn count_and_free(object: *mut c_void) {
    FREED.fetch_add(1, Ordering::Release);
    let original = ORIGINAL.load(Ordering::Acquire);
    // SAFETY: what was in the slot, which has this type, and is not 0.
    unsafe { transmute::<usize, Deallocate>(original)(object) }
}
