//! Code that belongs to no loaded object.

use std::ffi::c_void;

use rpd_stacks::{LocationKind, flags};

use crate::support::{Library, Probe, Process, Taken, repeat};

/// A page of code.
struct Code(*mut u8);

impl Code {
    fn new(bytes: &[u8]) -> Code {
        // SAFETY: a new mapping, written before it is made executable.
        unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_ne!(page, libc::MAP_FAILED);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), page.cast(), bytes.len());
            libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_EXEC);
            Code(page.cast())
        }
    }

    fn function(&self) -> extern "C" fn(Probe) {
        // SAFETY: the code of these tests is such a function.
        unsafe { std::mem::transmute::<*mut u8, extern "C" fn(Probe)>(self.0) }
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, not running any more.
        unsafe { libc::munmap(self.0.cast(), 4096) };
    }
}

/// `push rbp; mov rbp, rsp; mov rax, rdi; mov edi, 7; call rax; nop; pop rbp; ret`: more than the stub of a call.
const WITH_FRAME_POINTER: &[u8] = &[
    0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf8, 0xbf, 7, 0, 0, 0, 0xff, 0xd0, 0x90, 0x5d, 0xc3,
];
/// `push rbp; mov ebp, 3; mov rax, rdi; mov edi, 7; call rax; nop; pop rbp; ret`: RBP holds a number.
const WITHOUT_FRAME_POINTER: &[u8] = &[
    0x55, 0xbd, 3, 0, 0, 0, 0x48, 0x89, 0xf8, 0xbf, 7, 0, 0, 0, 0xff, 0xd0, 0x90, 0x5d, 0xc3,
];

fn kinds(process: &Process, taken: &Taken) -> Vec<LocationKind> {
    process
        .facts
        .lock()
        .unwrap()
        .frames(taken.captured.stack)
        .iter()
        .map(|frame| frame.kind)
        .collect()
}

/// Checks stacks-25.
#[test]
fn code_with_a_frame_pointer_is_walked_through() {
    let code = Code::new(WITH_FRAME_POINTER);
    let process = Process::new(512);
    let plain = process.run(|probe| repeat(2, || probe(1)));
    let taken = process.run_with(false, |probe| repeat(3, || code.function()(probe)));
    for one in &taken {
        assert_eq!(one.captured, taken[0].captured);
        assert_eq!(one.captured.flags, flags::FRAME_POINTERS);
        let kinds = kinds(&process, one);
        let jit = kinds
            .iter()
            .position(|kind| *kind == LocationKind::Jit)
            .unwrap();
        assert_eq!(
            kinds
                .iter()
                .filter(|kind| **kind != LocationKind::Native)
                .count(),
            2
        );
        assert_eq!(kinds[jit + 1], LocationKind::Guessed);
        let facts = process.facts.lock().unwrap();
        let frame = facts.frames(one.captured.stack)[jit];
        assert_eq!((frame.module, frame.offset), (0, code.0 as u64 + 13));
    }
    // Everything outside it is there: the outermost frames are those of a stack without it.
    let (with, without) = (process.addresses(&taken[0]), process.addresses(&plain[0]));
    // So many are outside of this test, however its own functions are inlined.
    const OUTER: usize = 6;
    assert_eq!(with[with.len() - OUTER..], without[without.len() - OUTER..]);
}

/// Checks stacks-26.
#[test]
fn code_without_frame_pointer_or_information_ends_the_stack() {
    let code = Code::new(WITHOUT_FRAME_POINTER);
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| repeat(3, || code.function()(probe)));
    for one in &taken {
        assert_eq!(one.captured, taken[0].captured);
        assert_eq!(one.captured.flags, flags::TRUNCATED);
        let kinds = kinds(&process, one);
        assert_eq!(
            kinds[kinds.len() - 2..],
            [LocationKind::Jit, LocationKind::Truncated]
        );
        assert!(
            kinds[..kinds.len() - 2]
                .iter()
                .all(|kind| *kind == LocationKind::Native)
        );
    }
}

/// Checks stacks-27.
#[test]
fn registered_unwind_information_is_used() {
    unsafe extern "C" {
        fn __register_frame(begin: *const c_void);
        fn __deregister_frame(begin: *const c_void);
    }
    let code = Code::new(WITHOUT_FRAME_POINTER);
    // A common entry (CFA = RSP + 8, return address at CFA - 8; absolute addresses), the entry of the code (after the
    // first instruction CFA = RSP + 16 and RBP at CFA - 16), and the end.
    let mut entries = vec![
        20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0,
    ];
    entries.extend([28, 0, 0, 0, 28, 0, 0, 0]);
    entries.extend((code.0 as u64).to_le_bytes());
    entries.extend((WITHOUT_FRAME_POINTER.len() as u64).to_le_bytes());
    entries.extend([0x41, 0x0e, 16, 0x86, 2, 0, 0, 0]);
    entries.extend([0; 4]);
    let entries = entries.leak();
    let process = Process::new(512);
    // SAFETY: the entries are well-formed, live forever, and are withdrawn before the code goes.
    unsafe { __register_frame(entries.as_ptr().cast()) };
    let taken = process.run(|probe| repeat(3, || code.function()(probe)));
    // SAFETY: registered above.
    unsafe { __deregister_frame(entries.as_ptr().cast()) };
    process.agree_with_libgcc(&taken);
    for one in &taken {
        assert_eq!(one.captured, taken[0].captured);
        assert_eq!(
            kinds(&process, one)
                .iter()
                .filter(|kind| **kind == LocationKind::Jit)
                .count(),
            1
        );
    }
    // Without it the stack ends there.
    let taken = process.run_with(false, |probe| repeat(2, || code.function()(probe)));
    assert_eq!(taken[1].captured.flags, flags::TRUNCATED);
}

/// A library with the list of registered objects, of which it has two.
const REGISTERS: &str = r#"#include "jit.h"
static struct jit_object objects[2];
static struct jit_code_entry entries[2] = {
    {.object = (const char *)&objects[0], .size = sizeof objects[0]},
    {.object = (const char *)&objects[1], .size = sizeof objects[1]},
};
void add(int index, const char *name, const void *code, size_t size) {
    describe(&objects[index], name, code, size);
    register_entry(&entries[index]);
}
void withdraw(int index) { unregister_entry(&entries[index]); }
void spoil(int index) { entries[index].object = (const char *)8; }
"#;

/// The location of the JIT frame of a stack, and the parts of the object that is registered for it.
fn registered(process: &Process, taken: &Taken) -> (u32, Vec<u8>) {
    let facts = process.facts.lock().unwrap();
    let frames = facts.frames(taken.captured.stack);
    let frame = frames.iter().find(|frame| frame.kind == LocationKind::Jit);
    let frame = frame.expect("a JIT frame");
    let parts = facts.objects.get(&frame.object).cloned();
    (frame.id, parts.unwrap_or_default())
}

/// Checks stacks-27.
#[test]
fn code_is_distinguished_by_what_is_registered_for_it() {
    let include = rpd_tests::install::source_root().join("tests/workloads/include");
    let flags = ["-I", include.to_str().unwrap(), "-Wno-unused-function"];
    let library = Library::from_name("registers", &flags, REGISTERS);
    // SAFETY: the library defines these functions.
    let (add, withdraw, spoil) = unsafe {
        (
            std::mem::transmute::<*mut c_void, extern "C" fn(i32, *const i8, *const c_void, usize)>(
                library.symbol("add"),
            ),
            std::mem::transmute::<*mut c_void, extern "C" fn(i32)>(library.symbol("withdraw")),
            std::mem::transmute::<*mut c_void, extern "C" fn(i32)>(library.symbol("spoil")),
        )
    };
    let code = Code::new(WITH_FRAME_POINTER);
    let other = Code::new(WITH_FRAME_POINTER);
    let add = |index, name: &std::ffi::CStr, code: &Code| {
        add(
            index,
            name.as_ptr(),
            code.0.cast(),
            WITH_FRAME_POINTER.len(),
        );
    };
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| {
        let call = || repeat(2, || code.function()(probe));
        call();
        for name in [c"made_a", c"made_b", c"made_a"] {
            add(0, name, &code);
            call();
            withdraw(0);
        }
        call();
        add(0, c"made_c", &code);
        add(1, c"made_d", &other);
        call();
        withdraw(1);
        call();
        spoil(0);
        call();
    });
    let expected = ["", "made_a", "made_b", "made_a", "", "made_c", "made_c", ""];
    let mut locations = Vec::new();
    for (index, pair) in taken.chunks(2).enumerate() {
        assert_eq!(pair[0].captured, pair[1].captured, "{index}");
        let (location, parts) = registered(&process, &pair[0]);
        let name = expected[index].as_bytes();
        assert_eq!(parts.is_empty(), name.is_empty(), "{index}: {parts:x?}");
        let has_name = |parts: &[u8]| parts.windows(name.len()).any(|part| part == name);
        assert!(parts.is_empty() || has_name(&parts), "{index}: {parts:x?}");
        locations.push(location);
    }
    // What is registered again as it was is the same.
    let first = |index: usize| locations.iter().position(|own| *own == locations[index]);
    let firsts: Vec<usize> = (0..locations.len()).filter_map(first).collect();
    assert_eq!(firsts, [0, 1, 2, 1, 0, 5, 5, 0]);
}
