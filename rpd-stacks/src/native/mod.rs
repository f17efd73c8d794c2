//! Native frames: tables shared by all threads, and the walk.
//!
//! Layers, each uses only those above it:
//!
//! - `registers`, `memory`: where a walk starts and what it may read;
//! - `objects`, `exports`, `maps`: data of the loader, of an object and of the kernel;
//! - `changes`: whether that may have changed;
//! - `rules`, `cfi`: how to get from a frame to its caller;
//! - `modules`: which module a rule is of, and whether it still is;
//! - `registered`: objects that describe code in no module;
//! - `counts`, `lookup`: rules and locations of a thread's walk, and how they are found the first time;
//! - `frames`, `step`, `recover`: the frames of a walk, and the way from one to its caller;
//! - `walk`: a thread's walk and what it keeps of the last one.

pub(crate) mod cfi;
pub(crate) mod changes;
pub(crate) mod counts;
pub(crate) mod exports;
pub(crate) mod frames;
mod lookup;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod modules;
pub(crate) mod objects;
mod recover;
mod registered;
pub(crate) mod registers;
pub(crate) mod rules;
mod step;
pub(crate) mod walk;

use std::ffi::c_void;

use crate::tree::Tree;
use changes::Changes;
use modules::Modules;
use objects::Object;
use registered::Registry;
use rules::Rules;

/// Size of a page.
pub(crate) const PAGE: u64 = 4096;

/// `_Unwind_Find_FDE` of libgcc: the frame description entry for an address, also of code that was registered at run
/// time. The second argument receives three base addresses.
type FindEntry = unsafe extern "C" fn(*const c_void, *mut [*const c_void; 3]) -> *const c_void;

/// Receives the modules whose code is on a stack.
pub(crate) trait ModuleObserver {
    /// A module was seen. Called again for modules that were seen before.
    ///
    /// # Safety
    ///
    /// The module is loaded, and `object` is the loader's entry for it.
    unsafe fn module_met(&self, module: u32, object: &Object);

    /// The code that code made at run time is a copy of: index of the module that has it, and the address there that
    /// corresponds to `pc`. `None` if it is not known to be a copy.
    fn original_of(&self, pc: u64) -> Option<(u32, u64)>;
}

/// State of a walk that threads share.
pub(crate) struct SharedWalk<'a> {
    pub(crate) native: &'a Native,
    pub(crate) tree: &'a Tree,
    /// Modules are reported once in each session.
    pub(crate) session: u32,
    pub(crate) observer: Option<&'a dyn ModuleObserver>,
}

/// Tables for native frames, shared by all threads.
pub(crate) struct Native {
    pub(crate) rules: Rules,
    pub(crate) modules: Modules,
    pub(crate) changes: Changes,
    pub(crate) registry: Registry,
    find_entry: Option<FindEntry>,
}

impl Native {
    /// Reserves the tables, and looks up symbols that captures need.
    pub(crate) fn reserve() -> Native {
        objects::prepare();
        memory::prepare();
        // SAFETY: a lookup by name.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Unwind_Find_FDE".as_ptr()) };
        // SAFETY: libgcc defines the symbol with this signature.
        let find_entry = (!symbol.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut c_void, FindEntry>(symbol) });
        Native {
            rules: Rules::reserve(),
            modules: Modules::reserve(),
            changes: Changes::watch(),
            registry: Registry::reserve(),
            find_entry,
        }
    }

    /// Whether the tables could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.rules.usable() && self.modules.usable() && self.registry.usable()
    }

    /// Address of the unwind information that was registered at run time for code at `pc`.
    fn registered_entry(&self, pc: u64) -> Option<u64> {
        let mut bases = [std::ptr::null(); 3];
        // SAFETY: the function takes any address.
        let entry = unsafe { self.find_entry?(pc as *const c_void, &mut bases) } as u64;
        (entry != 0).then_some(entry)
    }
}
