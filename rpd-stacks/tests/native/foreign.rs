//! Signals, and stacks that are not the thread's own.

use rpd_stacks::flags;

use crate::support::{Library, Process};

/// Raises a signal in `interrupted`; the handler calls the probe, on the alternate stack if there is one.
const SIGNALS: &str = r#"
    #define _GNU_SOURCE
    #include <signal.h>
    #include <stdlib.h>
    #include <string.h>
    #include <sys/mman.h>
    typedef void (*probe_fn)(int);
    static __thread probe_fn probe;
    volatile int sink;
    __attribute__((noinline)) static void deeper(int n) { if (n == 0) probe(1); else deeper(n - 1); sink++; }
    void handler(int number) { deeper(3); sink++; }
    __attribute__((noinline)) void interrupted(void) { __asm__ volatile("ud2" ::: "memory"); sink++; }
    static void skip(int number, siginfo_t *info, void *context) {
        handler(number);
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
    }
    static void run(probe_fn p, int flags) {
        struct sigaction action = {0}, before;
        probe = p;
        action.sa_sigaction = skip;
        action.sa_flags = SA_SIGINFO | flags;
        sigaction(SIGILL, &action, &before);
        interrupted();
        sigaction(SIGILL, &before, 0);
    }
    void start(probe_fn p) { run(p, 0); sink++; }
    void start_alternate(probe_fn p) {
        stack_t stack = {0}, before;
        stack.ss_size = 65536;
        stack.ss_sp = mmap(0, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaltstack(&stack, &before);
        run(p, SA_ONSTACK);
        sigaltstack(&before, 0);
        munmap(stack.ss_sp, stack.ss_size);
        sink++;
    }
"#;

/// Checks stacks-36.
#[test]
fn a_stack_crosses_a_signal_frame_into_the_interrupted_function() {
    let library = Library::from_name("signals", &["-O2"], SIGNALS);
    let process = Process::new(512);
    let taken = process.run(|probe| {
        library.function("start")(probe);
        library.function("start")(probe);
    });
    process.agree_with_libgcc(&taken);
    for one in &taken {
        let names = process.names(one);
        let at = names.iter().position(|name| name == "interrupted").unwrap();
        assert_eq!(names[at + 2], "start", "{names:?}");
        // The interrupted instruction itself, not the byte before it.
        let interrupted = library.symbol("interrupted") as u64;
        assert_eq!(process.addresses(one)[at], interrupted);
    }
}

/// Checks stacks-37.
#[test]
fn a_signal_stack_is_walked_to_its_end_and_into_the_interrupted_stack() {
    let library = Library::from_name("signals", &["-O2"], SIGNALS);
    let process = Process::new(512);
    let taken = process.run(|probe| {
        library.function("start_alternate")(probe);
        library.function("start")(probe);
    });
    assert_eq!(taken[0].captured.flags, flags::FOREIGN_STACK);
    assert_eq!(process.addresses(&taken[0]), taken[0].libgcc);
    assert!(
        process
            .names(&taken[0])
            .iter()
            .any(|name| name == "start_alternate")
    );
    process.agree_with_libgcc(&taken[1..]);
}

/// Coroutines on stacks with a guard page at both ends.
const COROUTINES: &str = r#"
    #define _GNU_SOURCE
    #include <sys/mman.h>
    #include <ucontext.h>
    typedef void (*probe_fn)(int);
    static __thread probe_fn probe;
    static __thread ucontext_t outside, inside[3];
    volatile int sink;
    __attribute__((noinline)) static void deeper(int n) { if (n == 0) probe(1); else deeper(n - 1); sink++; }
    void body(int n) {
        for (int i = 0; i < 3; i++) { deeper(n); swapcontext(&inside[n], &outside); }
    }
    void start(probe_fn p) {
        char *stacks[3];
        probe = p;
        for (int n = 0; n < 3; n++) {
            char *base = mmap(0, 65536 + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            mprotect(base + 4096, 65536, PROT_READ | PROT_WRITE);
            stacks[n] = base;
            getcontext(&inside[n]);
            inside[n].uc_stack.ss_sp = base + 4096;
            inside[n].uc_stack.ss_size = 65536;
            inside[n].uc_link = &outside;
            makecontext(&inside[n], (void (*)(void))body, 1, n);
        }
        for (int round = 0; round < 3; round++) {
            for (int n = 0; n < 3; n++) swapcontext(&outside, &inside[n]);
            p(2);
        }
        for (int n = 0; n < 3; n++) munmap(stacks[n], 65536 + 8192);
        p(3);
        sink++;
    }
"#;

/// Checks stacks-37.
#[test]
fn coroutine_stacks_are_walked_and_marked() {
    let library = Library::from_name("coroutines", &["-O2"], COROUTINES);
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| library.function("start")(probe));
    assert_eq!(taken.len(), 9 + 3 + 1);
    for (index, one) in taken.iter().enumerate() {
        let names = process.names(one);
        if one.tag == 1 {
            assert_eq!(
                one.captured.flags & !flags::TRUNCATED,
                flags::FOREIGN_STACK,
                "{names:?}"
            );
            assert!(names.iter().any(|name| name == "body"), "{names:?}");
            assert!(!names.iter().any(|name| name == "start"), "{names:?}");
            assert!(
                names.iter().rposition(|name| name == "body").unwrap() + 3 >= names.len(),
                "{names:?}"
            );
            // Each coroutine has one stack, in every round.
            if index >= 4 {
                assert_eq!(one.captured, taken[index - 4].captured);
            }
        } else {
            assert_eq!(one.captured.flags, 0);
            assert!(names.iter().any(|name| name == "start"));
        }
    }
}

#[test]
fn walk_does_not_read_beyond_a_stack_that_ends_at_an_unmapped_page() {
    // By the coroutine's first frame, its caller's frame is at an address where nothing is mapped.
    let source = COROUTINES.replace("void body(int n) {", "void real(int n) {").replace(
        "void start(",
        r#"
        void body(int n);
        __asm__(".text\n.globl body\n.type body, @function\nbody:\n .cfi_startproc\n .cfi_def_cfa_offset 0x800\n"
                " sub $8, %rsp\n call real\n add $8, %rsp\n ret\n .cfi_endproc\n.size body, .-body\n");
        void start("#,
    );
    let library = Library::from_name("edge", &["-O2"], &source);
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| library.function("start")(probe));
    for one in taken.iter().filter(|one| one.tag == 1) {
        assert_eq!(one.captured.flags, flags::FOREIGN_STACK | flags::TRUNCATED);
        assert_eq!(process.names(one).last().unwrap(), "<truncated>");
    }
}
