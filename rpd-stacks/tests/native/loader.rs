//! Libraries that come and go.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{
    Library, ModuleFact, Probe, Process, Taken, counts, library_file, probe, repeat, undisturbed,
};

/// A plugin; what is in it besides differs by name, so that its code has the same addresses.
fn plugin(name: &str) -> std::path::PathBuf {
    library_file(
        "plugin",
        &["-O2"],
        &format!(
            r#"
            typedef void (*probe_fn)(int);
            const char name[] = "{name}";
            volatile int sink;
            __attribute__((noinline)) void {name}_inner(probe_fn p) {{ p(1); sink++; }}
            void start(probe_fn p) {{ {name}_inner(p); sink++; }}
            "#
        ),
    )
}

fn module_of(process: &Process, taken: &Taken, path: &Path) -> (u32, ModuleFact) {
    let facts = process.facts.lock().unwrap();
    let frames = facts.frames(taken.captured.stack);
    let found = frames
        .iter()
        .find(|frame| frame.module != 0 && facts.modules[&frame.module].path == path);
    let id = found
        .unwrap_or_else(|| panic!("no frame of {path:?}"))
        .module;
    (id, facts.modules[&id].clone())
}

/// Checks stacks-21.
#[test]
fn a_plugin_is_known_by_path_and_build_id_after_it_was_unloaded() {
    let path = plugin("first");
    let process = Process::new(512);
    let taken = process.run(|probe| Library::open(&path).function("start")(probe));
    process.agree(&taken);
    let (_, module) = module_of(&process, &taken[0], &path);
    assert_eq!(module.build_id.len(), 20);
    let file = std::fs::read(&path).unwrap();
    assert!(file.windows(20).any(|bytes| bytes == module.build_id));
    assert!(module.range.0 < module.range.1 && module.bias == module.range.0);
}

/// Checks stacks-22.
#[test]
fn plugins_at_one_address_are_distinguished() {
    // The same file under two names, too: then even the code is the same.
    let (one, other) = (plugin("first"), plugin("other"));
    let copy = one.with_extension("copy");
    std::fs::copy(&one, &copy).unwrap();
    let paths = [&one, &other, &copy];
    let process = Process::new(512);
    let mut same_place = 0;
    let taken = process.run(|probe| {
        for round in 0..60 {
            let library = Library::open(paths[round % 3]);
            library.function("start")(probe);
        }
    });
    for (round, one) in taken.iter().enumerate() {
        let (_, module) = module_of(&process, one, paths[round % 3]);
        if round > 0 {
            let (_, before) = module_of(&process, &taken[round - 1], paths[(round - 1) % 3]);
            same_place += usize::from(before.range.0 == module.range.0);
        }
    }
    // The test is void unless the loader does reuse addresses.
    assert!(same_place > 10, "{same_place}");
    process.agree(&taken);
}

/// Checks stacks-23.
#[test]
fn the_build_id_is_of_the_code_that_ran_not_of_a_file_that_replaced_it() {
    let (path, newer) = (plugin("first"), plugin("other"));
    let library = Library::open(&path);
    std::fs::rename(&newer, &path).unwrap();
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    let (_, module) = module_of(&process, &taken[0], &path);
    let file = std::fs::read(&path).unwrap();
    assert!(!file.windows(20).any(|bytes| bytes == module.build_id));
}

/// Checks stacks-24.
#[test]
fn a_library_that_is_loaded_twice_is_two_modules() {
    let path = plugin("first");
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the library has no dependencies whose second copy would matter.
    let second = unsafe { libc::dlmopen(libc::LM_ID_NEWLM, name.as_ptr(), libc::RTLD_NOW) };
    assert!(!second.is_null());
    // SAFETY: the library defines this function.
    let start: extern "C" fn(Probe) =
        unsafe { std::mem::transmute(libc::dlsym(second, c"start".as_ptr())) };
    let first = Library::open(&path);
    let process = Process::new(512);
    let taken = process.run(|probe| {
        first.function("start")(probe);
        start(probe);
    });
    // framehop is given the objects of one namespace only.
    process.agree_with_libgcc(&taken);
    let (one, other) = (
        module_of(&process, &taken[0], &path),
        module_of(&process, &taken[1], &path),
    );
    assert_ne!(one.0, other.0);
    assert_ne!(one.1.range, other.1.range);
    assert_eq!(one.1.build_id, other.1.build_id);
    // SAFETY: opened above, not used afterwards.
    unsafe { libc::dlclose(second) };
}

#[test]
fn library_opened_by_a_relative_path_is_reported_with_its_full_path() {
    let path = plugin("first");
    let current = std::env::current_dir().unwrap();
    let up: std::path::PathBuf = current.components().skip(1).map(|_| "..").collect();
    let library = Library::open(&up.join(path.strip_prefix("/").unwrap()));
    let process = Process::new(512);
    let taken = process.run(|probe| library.function("start")(probe));
    module_of(&process, &taken[0], &path);
    let program = std::env::current_exe().unwrap();
    module_of(&process, &taken[0], &program);
}

#[test]
fn rules_and_stacks_stay_when_another_library_is_unloaded() {
    let (library, passing) = (Library::open(&plugin("first")), plugin("other"));
    let measure = || {
        let process = Process::new(512);
        let mut misses = Vec::new();
        let taken = process.run(|probe| {
            repeat(20, || {
                drop(Library::open(&passing));
                library.function("start")(probe);
                misses.push(counts().misses);
            });
        });
        (process, taken, misses)
    };
    // Modules are looked at again, but each only once after each change.
    let once_each = |process: &Process, misses: &[u64]| {
        let modules = process.sizes().0 as u64;
        misses.windows(2).all(|pair| pair[1] - pair[0] <= modules)
    };
    let (process, taken, misses) = undisturbed(measure, |found| once_each(&found.0, &found.2));
    assert!(once_each(&process, &misses), "{misses:?}");
    process.agree(&taken);
    assert!(taken.iter().all(|one| one.captured == taken[0].captured));
}

/// Checks stacks-40.
#[test]
fn a_constructor_under_dlopen_has_the_loader_on_its_stack() {
    // The constructor finds the probe through a variable of the environment: nothing else is there yet.
    let source = r#"
        #include <stdlib.h>
        volatile int sink;
        __attribute__((constructor)) static void construct(void) {
            void (*probe)(int) = (void (*)(int))strtoull(getenv("RPD_TEST_PROBE"), 0, 0);
            probe(1);
            sink++;
        }
    "#;
    let path = library_file("constructor", &["-O2"], source);
    // SAFETY: no other test reads the environment at this moment in a way that minds this variable.
    unsafe { std::env::set_var("RPD_TEST_PROBE", format!("{}", probe as *const () as u64)) };
    let process = Process::new(512);
    let taken = process.run(|_| drop(Library::open(&path)));
    assert_eq!(taken.len(), 1);
    process.agree(&taken);
    let facts = process.facts.lock().unwrap();
    let frames = facts.frames(taken[0].captured.stack);
    let files: Vec<String> = frames.iter().map(|frame| facts.file(frame)).collect();
    let constructor = files
        .iter()
        .position(|file| file.starts_with("constructor"))
        .unwrap();
    assert!(files[constructor + 1].starts_with("ld-linux"), "{files:?}");
}

/// Checks stacks-41.
#[test]
fn a_storm_of_dlopen_and_dlclose_in_another_thread_disturbs_nothing() {
    let mine = Library::open(&plugin("first"));
    let theirs: Vec<_> = ["second", "third"].map(plugin).into_iter().collect();
    let process = Process::new(512);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for path in &theirs {
                    drop(Library::open(path));
                }
            }
        });
        let taken = process.run_with(false, |probe| {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(2);
            while std::time::Instant::now() < until {
                repeat(50, || mine.function("start")(probe));
            }
        });
        stop.store(true, Ordering::Relaxed);
        assert!(taken.len() > 1000);
        let expected = process.names(&taken[0]);
        assert!(expected.iter().any(|name| name == "first_inner"));
        for one in &taken {
            assert_eq!(one.captured, taken[0].captured);
        }
    });
}

#[test]
fn capture_does_not_wait_for_the_loaders_lock() {
    // The other thread sits in a callback of `dl_iterate_phdr`, which holds the lock, until the captures are done.
    static HELD: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn hold(_: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> i32 {
        HELD.store(true, Ordering::Release);
        while !DONE.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        1
    }
    let library = Library::open(&plugin("first"));
    let start = library.function("start");
    let process = Process::new(512);
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::channel();
        let process = process.clone();
        scope.spawn(move || {
            // The thread and its variables come first: making them takes locks of the loader.
            process.run_with(false, |_| ());
            while !HELD.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            let taken = process.run_with(false, |probe| start(probe));
            // Names are not requested here: `dladdr` takes the lock.
            send.send(taken[0].captured).unwrap();
        });
        let holder = scope.spawn(|| {
            // SAFETY: the callback uses nothing it is given.
            unsafe { libc::dl_iterate_phdr(Some(hold), std::ptr::null_mut()) }
        });
        let captured = receive.recv_timeout(std::time::Duration::from_secs(60));
        DONE.store(true, Ordering::Release);
        holder.join().unwrap();
        assert_eq!(
            captured
                .expect("a capture waited for the loader's lock")
                .flags,
            0
        );
    });
}
