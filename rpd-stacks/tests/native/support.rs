//! What the tests share: libraries built from C sources, a sink that checks the facts that it gets, and framehop to compare with.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::framehop_unwinder::FramehopUnwinder;
use rpd_stacks::{
    Captured, JitObject, Location, LocationKind, Mode, Module, Node, Options, PythonCode, Sink,
    Stacks, ThreadStacks,
};

/// The directory for files that a test builds.
pub(crate) fn directory() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Compiles a source text; the language follows from the compiler (`cc` or `c++`). Returns the path of the result.
pub(crate) fn compile(compiler: &str, name: &str, flags: &[&str], source: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = format!(
        "{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    );
    let extension = if compiler == "c++" { "cc" } else { "c" };
    let (input, output) = (
        directory().join(format!("{unique}.{extension}")),
        directory().join(format!("{name}-{unique}")),
    );
    std::fs::write(&input, source).unwrap();
    let result = Command::new(compiler)
        .args(["-x", if compiler == "c++" { "c++" } else { "c" }])
        .arg(&input)
        .args(["-x", "none", "-o"])
        .arg(&output)
        .args(flags)
        .output()
        .unwrap();
    assert!(
        result.status.success(),
        "{}",
        String::from_utf8_lossy(&result.stderr)
    );
    std::fs::remove_file(input).unwrap();
    output
}

/// Compiles a shared library.
pub(crate) fn library_file(name: &str, flags: &[&str], source: &str) -> PathBuf {
    let flags: Vec<&str> = ["-shared", "-fPIC", "-Wl,--build-id"]
        .iter()
        .chain(flags)
        .copied()
        .collect();
    compile("cc", name, &flags, source)
}

/// A loaded library; unloaded when dropped.
pub(crate) struct Library {
    handle: *mut c_void,
    pub(crate) path: PathBuf,
}

// SAFETY: a handle of the loader may be used on any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    pub(crate) fn open(path: &Path) -> Library {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the libraries of these tests have harmless initialisers.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        // SAFETY: reads the loader's message.
        assert!(!handle.is_null(), "{:?}", unsafe {
            CStr::from_ptr(libc::dlerror())
        });
        Library {
            handle,
            path: path.to_owned(),
        }
    }

    /// Compiles and opens a C library.
    pub(crate) fn from_name(name: &str, flags: &[&str], source: &str) -> Library {
        Library::open(&library_file(name, flags, source))
    }

    /// A function `void name(probe)`.
    pub(crate) fn function(&self, name: &str) -> extern "C" fn(Probe) {
        // SAFETY: the libraries of these tests define such functions.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(Probe)>(self.symbol(name)) }
    }

    pub(crate) fn symbol(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: a lookup by name.
        let symbol = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!symbol.is_null(), "{name:?}");
        symbol
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: opened by `open`; the tests do not use its code afterwards.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// A module as it was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModuleFact {
    pub(crate) path: PathBuf,
    pub(crate) build_id: Vec<u8>,
    pub(crate) bias: u64,
    pub(crate) range: (u64, u64),
}

/// Facts that were reported to the sink.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) modules: HashMap<u32, ModuleFact>,
    /// The parts of objects that describe code in no module.
    pub(crate) objects: HashMap<u32, Vec<u8>>,
    pub(crate) locations: HashMap<u32, Location>,
    pub(crate) nodes: HashMap<u32, Node>,
    /// Whether the sink refuses all facts.
    pub(crate) refuse: bool,
}

impl Facts {
    /// The frames of a stack, innermost first.
    pub(crate) fn frames(&self, stack: u32) -> Vec<Location> {
        let mut frames = Vec::new();
        let mut at = stack;
        while at != 0 {
            let node = self.nodes[&at];
            frames.push(self.locations[&node.location]);
            at = node.parent;
        }
        frames
    }

    /// The run-time address of a location.
    pub(crate) fn address(&self, location: &Location) -> u64 {
        match location.kind {
            LocationKind::Native | LocationKind::Guessed => location
                .offset
                .wrapping_add(self.modules[&location.module].bias),
            _ => location.offset,
        }
    }

    /// The name of the file of a location's module.
    pub(crate) fn file(&self, location: &Location) -> String {
        self.modules[&location.module]
            .path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    /// The exported function that a location of a loaded module is in, with markers in angle brackets.
    pub(crate) fn name(&self, location: &Location) -> String {
        match location.kind {
            LocationKind::Native | LocationKind::Guessed => {
                symbol_at(self.address(location)).unwrap_or_else(|| "?".to_owned())
            }
            LocationKind::Jit => "<jit>".to_owned(),
            LocationKind::Truncated => "<truncated>".to_owned(),
            LocationKind::Gap => "<gap>".to_owned(),
            other => format!("{other:?}"),
        }
    }

    /// Names of the frames of a stack, innermost first.
    pub(crate) fn names(&self, stack: u32) -> Vec<String> {
        self.frames(stack)
            .iter()
            .map(|location| self.name(location))
            .collect()
    }
}

/// Name of the exported function around an address.
pub(crate) fn symbol_at(address: u64) -> Option<String> {
    // SAFETY: an all-zero Dl_info is valid, and the call writes it.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(address as *const c_void, &mut info) == 0 || info.dli_sname.is_null() {
            return None;
        }
        Some(
            CStr::from_ptr(info.dli_sname)
                .to_string_lossy()
                .into_owned(),
        )
    }
}

/// Checks that every fact is reported once, and after the facts that it refers to.
struct Checked<'a>(&'a Mutex<Facts>);

impl Sink for Checked<'_> {
    fn module(&mut self, module: &Module<'_>) -> bool {
        let mut facts = self.0.lock().unwrap();
        let fact = ModuleFact {
            path: std::ffi::OsStr::from_bytes(module.path).into(),
            build_id: module.build_id.to_vec(),
            bias: module.bias,
            range: (module.start, module.end),
        };
        if !facts.refuse
            && let Some(before) = facts.modules.insert(module.id, fact.clone())
        {
            // Two threads may find a module at the same moment.
            assert_eq!(before, fact);
        }
        !facts.refuse
    }

    fn code(&mut self, code: &PythonCode<'_>) -> bool {
        unreachable!("native captures have no code {}", code.id)
    }

    fn object(&mut self, object: &JitObject) -> bool {
        let mut facts = self.0.lock().unwrap();
        if facts.refuse {
            return false;
        }
        let mut parts = vec![0; object.lens().iter().sum::<u32>() as usize];
        object.copy_to(&mut parts);
        assert!(
            facts.objects.insert(object.id, parts).is_none(),
            "reported twice: {object:?}"
        );
        true
    }

    fn location(&mut self, location: &Location) -> bool {
        let mut facts = self.0.lock().unwrap();
        if facts.refuse {
            return false;
        }
        let is_in_module = matches!(location.kind, LocationKind::Native | LocationKind::Guessed);
        assert_eq!(is_in_module, location.module != 0);
        assert!(
            location.module == 0 || facts.modules.contains_key(&location.module),
            "{location:?}"
        );
        assert_eq!(location.code, 0);
        assert!(location.object == 0 || facts.objects.contains_key(&location.object));
        assert!(
            facts.locations.insert(location.id, *location).is_none(),
            "reported twice: {location:?}"
        );
        true
    }

    fn node(&mut self, node: &Node) -> bool {
        let mut facts = self.0.lock().unwrap();
        if facts.refuse {
            return false;
        }
        assert!(facts.locations.contains_key(&node.location), "{node:?}");
        let depth = if node.parent == 0 {
            0
        } else {
            facts.nodes[&node.parent].depth + 1
        };
        assert_eq!(node.depth, depth);
        assert!(
            facts.nodes.insert(node.id, *node).is_none(),
            "reported twice: {node:?}"
        );
        true
    }
}

/// A sink that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recorder {
    pub(crate) modules: u32,
    pub(crate) locations: u32,
    pub(crate) nodes: u32,
}

impl Sink for Recorder {
    fn module(&mut self, _: &Module<'_>) -> bool {
        self.modules += 1;
        true
    }

    fn code(&mut self, _: &PythonCode<'_>) -> bool {
        false
    }

    fn object(&mut self, _: &JitObject) -> bool {
        true
    }

    fn location(&mut self, _: &Location) -> bool {
        self.locations += 1;
        true
    }

    fn node(&mut self, _: &Node) -> bool {
        self.nodes += 1;
        true
    }
}

/// Shared tables with which a test captures, and the facts that were reported.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) stacks: Arc<Stacks>,
    pub(crate) facts: Arc<Mutex<Facts>>,
}

/// A capture, and the frames that framehop found at the same moment.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) tag: i32,
    pub(crate) captured: Captured,
    /// Addresses of the frames outside the probe, innermost first, from framehop. It stops at some frames whose
    /// stack was realigned.
    pub(crate) framehop: Option<Vec<u64>>,
    /// Addresses of the frames outside the probe, innermost first, from libgcc.
    pub(crate) libgcc: Vec<u64>,
}

/// A function that C code calls to have a stack captured.
pub(crate) type Probe = extern "C" fn(c_int);

struct Current {
    process: Process,
    thread: ThreadStacks,
    framehop: bool,
    taken: Vec<Taken>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
    static FRAMEHOP: RefCell<Option<FramehopUnwinder>> = const { RefCell::new(None) };
}

impl Process {
    pub(crate) fn new(depth: u32) -> Process {
        let stacks = Arc::new(Stacks::new(Options {
            mode: Mode::Native,
            depth,
        }));
        Process {
            stacks,
            facts: Arc::default(),
        }
    }

    /// Calls `run`, which calls the probe on this thread, and returns the captures.
    pub(crate) fn run(&self, run: impl FnOnce(Probe)) -> Vec<Taken> {
        self.run_with(true, run)
    }

    /// Calls `run`, which calls the probe on this thread, and returns the captures, with the frames of framehop on
    /// request.
    pub(crate) fn run_with(&self, framehop: bool, run: impl FnOnce(Probe)) -> Vec<Taken> {
        let thread = ThreadStacks::new();
        let current = Current {
            process: self.clone(),
            thread,
            framehop,
            taken: Vec::new(),
        };
        let before = CURRENT.with(|slot| slot.borrow_mut().replace(current));
        assert!(before.is_none());
        run(probe);
        CURRENT.with(|slot| slot.borrow_mut().take()).unwrap().taken
    }

    /// Captures the stack of the caller.
    #[inline(always)]
    pub(crate) fn capture(&self, thread: &mut ThreadStacks) -> Captured {
        self.stacks.capture(thread, &mut Checked(&self.facts))
    }

    /// The frames of a stack, innermost first.
    pub(crate) fn frames_of(&self, stack: u32) -> Vec<Location> {
        self.facts.lock().unwrap().frames(stack)
    }

    /// Names of the frames of a stack, innermost first.
    pub(crate) fn names_of(&self, stack: u32) -> Vec<String> {
        self.facts.lock().unwrap().names(stack)
    }

    /// The frames of a capture, innermost first.
    pub(crate) fn facts_frames(&self, taken: &Taken) -> Vec<Location> {
        self.facts.lock().unwrap().frames(taken.captured.stack)
    }

    /// Names of the frames of a capture, innermost first, from the probe's caller on.
    pub(crate) fn names(&self, taken: &Taken) -> Vec<String> {
        self.facts.lock().unwrap().names(taken.captured.stack)[1..].to_vec()
    }

    /// Addresses of the frames of a capture, innermost first, from the probe's caller on.
    pub(crate) fn addresses(&self, taken: &Taken) -> Vec<u64> {
        let facts = self.facts.lock().unwrap();
        let frames = facts.frames(taken.captured.stack);
        frames[1..]
            .iter()
            .map(|location| facts.address(location))
            .collect()
    }

    /// Asserts that captures are complete and that framehop and libgcc found the same frames.
    pub(crate) fn agree(&self, taken: &[Taken]) {
        self.agree_with_libgcc(taken);
        for one in taken {
            assert_eq!(
                self.addresses(one),
                *one.framehop.as_ref().unwrap(),
                "{:#?}",
                self.names(one)
            );
        }
    }

    /// Asserts that captures are complete and that libgcc found the same frames. framehop is wrong about frames whose
    /// stack was realigned.
    pub(crate) fn agree_with_libgcc(&self, taken: &[Taken]) {
        for one in taken {
            assert_eq!(one.captured.flags, 0, "{one:?}");
            assert_eq!(self.addresses(one), one.libgcc, "{:#?}", self.names(one));
        }
    }
}

/// Calls a function several times from one place.
#[inline(never)]
pub(crate) fn repeat(times: usize, mut run: impl FnMut()) {
    for _ in 0..std::hint::black_box(times) {
        run();
    }
}

/// Repeats `measure` until `wanted` accepts the result, at most 20 times. Tests on other threads load and unload
/// libraries, after which walks cannot reuse cached frames.
pub(crate) fn undisturbed<T>(measure: impl Fn() -> T, wanted: impl Fn(&T) -> bool) -> T {
    for _ in 1..20 {
        let found = measure();
        if wanted(&found) {
            return found;
        }
    }
    measure()
}

/// Counts of the captures so far on this thread.
pub(crate) fn counts() -> rpd_stacks::Counts {
    CURRENT.with(|slot| slot.borrow().as_ref().unwrap().thread.counts())
}

/// Captures the stack of its caller and of itself.
#[inline(never)]
pub(crate) extern "C" fn probe(tag: c_int) {
    CURRENT.with(|slot| {
        let mut slot = slot.borrow_mut();
        let Some(current) = slot.as_mut() else { return };
        let taken = take(current, tag);
        current.taken.push(taken);
    });
}

/// The frames between here and the probe's caller are dropped from both results: what is compared starts at the caller
/// of [`probe`].
#[inline(never)]
fn take(current: &mut Current, tag: c_int) -> Taken {
    let (ip, sp, bp): (u64, u64, u64);
    // SAFETY: reads registers.
    unsafe {
        std::arch::asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) bp)
    };
    let process = current.process.clone();
    let captured = process
        .stacks
        .capture(&mut current.thread, &mut Checked(&process.facts));
    let mut taken = Taken {
        tag,
        captured,
        framehop: None,
        libgcc: Vec::new(),
    };
    if current.framehop {
        taken.libgcc = backtrace();
        taken.framehop = Some(FRAMEHOP.with(|framehop| {
            let mut framehop = framehop.borrow_mut();
            let framehop = framehop.get_or_insert_with(FramehopUnwinder::new);
            framehop.update();
            let mut addresses = Vec::new();
            framehop.walk(ip, sp, bp, |address| addresses.push(address));
            addresses.remove(0);
            addresses
        }));
    }
    taken
}

/// Addresses of the frames outside the caller, from libgcc.
#[inline(never)]
fn backtrace() -> Vec<u64> {
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            data: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIPInfo(context: *mut c_void, before: *mut c_int) -> usize;
    }
    unsafe extern "C" fn visit(context: *mut c_void, data: *mut c_void) -> c_int {
        let mut before = 0;
        // SAFETY: libgcc's context, and the vector that was handed over.
        unsafe {
            let address = _Unwind_GetIPInfo(context, &mut before) as u64;
            (*data.cast::<Vec<u64>>()).push(if before == 0 {
                address.wrapping_sub(1)
            } else {
                address
            });
        }
        0
    }
    let mut addresses = Vec::new();
    // SAFETY: `visit` gets the pointer to the vector, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut addresses).cast()) };
    // This function, its caller, and the end, which libgcc reports as address 0.
    addresses.drain(..2);
    if addresses.last() == Some(&u64::MAX) {
        addresses.pop();
    }
    addresses
}

impl Deref for Process {
    type Target = Stacks;

    fn deref(&self) -> &Stacks {
        &self.stacks
    }
}
