//! Frames whose canonical frame address (CFA) is in another register than RSP and RBP.

use rpd_stacks::flags;

use crate::support::{Library, Process, repeat};

/// A function that keeps its CFA in a preserved register, and one that uses that register for its own ends.
fn source(register: &str) -> String {
    format!(
        r#"
        typedef void (*probe_fn)(int);
        volatile int sink;
        void aligned(void (*f)(probe_fn, int), probe_fn p, int n);
        __asm__(".text\n.globl aligned\n.type aligned, @function\naligned:\n .cfi_startproc\n"
                " push %{register}\n .cfi_adjust_cfa_offset 8\n .cfi_offset %{register}, -16\n"
                " mov %rsp, %{register}\n .cfi_def_cfa_register %{register}\n"
                " and $-64, %rsp\n sub $192, %rsp\n"
                " mov %rdi, %rax\n mov %rsi, %rdi\n mov %edx, %esi\n call *%rax\n"
                " mov %{register}, %rsp\n .cfi_def_cfa_register %rsp\n"
                " pop %{register}\n .cfi_adjust_cfa_offset -8\n .cfi_restore %{register}\n ret\n"
                " .cfi_endproc\n.size aligned, .-aligned\n");
        __attribute__((noinline)) void clobbers(probe_fn p, int n) {{
            long a = sink, b = a * 3, c = b ^ n, d = c * 7, e = d - a;
            p(n);
            sink += a + b * c + d * e;
            p(n + 1);
            sink += a * b + c * d + e;
        }}
        __attribute__((noinline)) void nested(probe_fn p, int n) {{
            if (n > 0) aligned(nested, p, n - 1); else clobbers(p, n);
            sink++;
        }}
        void start(probe_fn p) {{ aligned(clobbers, p, 1); sink++; aligned(nested, p, 3); sink++; }}
        "#
    )
}

#[test]
fn walk_crosses_frames_whose_cfa_is_in_a_preserved_register() {
    for register in ["rbx", "r12", "r13", "r14", "r15"] {
        for flags in [&["-O2"][..], &["-O0"], &["-O2", "-fno-omit-frame-pointer"]] {
            let library = Library::from_name("aligned", flags, &source(register));
            let process = Process::new(512);
            let taken = process.run(|probe| repeat(3, || library.function("start")(probe)));
            assert_eq!(taken.len(), 12);
            process.agree_with_libgcc(&taken);
            let names = process.names(&taken[2]);
            let count = |wanted: &str| names.iter().filter(|name| *name == wanted).count();
            assert_eq!(
                (count("aligned"), count("nested"), count("start")),
                (4, 4, 1)
            );
        }
    }
}

#[test]
fn walk_ends_at_a_frame_whose_cfa_is_in_a_register_that_calls_change() {
    let source = source("rbx").replace(
        "%rbx\\n .cfi_def_cfa_register %rbx",
        "%rbx\\n .cfi_def_cfa_register %r11",
    );
    let library = Library::from_name("changed", &["-O2"], &source);
    let process = Process::new(512);
    let taken = process.run_with(false, |probe| library.function("start")(probe));
    for one in &taken {
        assert_ne!(one.captured.flags & flags::TRUNCATED, 0);
        let names = process.names(one);
        assert_eq!(names[names.len() - 2..], ["aligned", "<truncated>"]);
    }
}
