//! Variables of the calling thread that are found without a search.
//!
//! The address of a `thread_local!` in a shared library comes from a function of the loader that looks the library up, and each
//! recorded call needs several of them. These are found through TLS descriptors: where the library was loaded with the program,
//! the loader has put a function there that only returns an offset.

/// Defines a function that returns the calling thread's variable of a type for which zeros are a value, and which has no
/// destructor: it can be used at any time of a thread's life. The name of the symbol must be unique in the library.
macro_rules! zeroed_thread_local {
    ($(#[$doc:meta])* $visibility:vis fn $name:ident() -> &$type:ty, $symbol:literal) => {
        ::std::arch::global_asm!(
            concat!(".pushsection .tbss.", $symbol, ",\"awT\",@nobits"),
            ".balign {align}",
            concat!(".globl ", $symbol),
            concat!(".hidden ", $symbol),
            concat!(".type ", $symbol, ",@object"),
            concat!(".size ", $symbol, ", {size}"),
            concat!($symbol, ":"),
            ".zero {size}",
            ".popsection",
            align = const ::std::mem::align_of::<$type>(),
            size = const ::std::mem::size_of::<$type>(),
        );

        $(#[$doc])*
        #[inline(always)]
        $visibility fn $name() -> &'static $type {
            const { $crate::recording::thread_local::may_be_zeros::<$type>() };
            let place: *const $type;
            // SAFETY: the sequence that the ABI has for an address in thread-local storage. The function that it calls keeps all
            // registers but the first; those of older loaders may change others where they look the library up.
            unsafe {
                ::std::arch::asm!(
                    concat!("leaq ", $symbol, "@TLSDESC(%rip), %rax"),
                    concat!("call *", $symbol, "@TLSCALL(%rax)"),
                    "addq %fs:0, %rax",
                    lateout("rax") place,
                    clobber_abi("sysv64"),
                    options(att_syntax, pure, nomem),
                );
            }
            // SAFETY: this thread's variable, which began as zeros and lives as long as the thread; a type that can be shared
            // between threads is not accepted.
            unsafe { &*place }
        }
    };
}
pub(crate) use zeroed_thread_local;

/// Compiles only for types of which zeros are a value, and which need no destructor.
pub(crate) const fn may_be_zeros<T: zerocopy::FromZeros>() {
    assert!(!std::mem::needs_drop::<T>());
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    zeroed_thread_local! {
        fn first() -> &Cell<u64>, "rpd_collect_test_first"
    }
    zeroed_thread_local! {
        fn second() -> &Cell<[u8; 100]>, "rpd_collect_test_second"
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test")]
    fn thread_local_variables_are_separate_and_begin_as_zeros() {
        let use_them = || {
            assert_eq!(first().get(), 0);
            assert_eq!(second().get(), [0; 100]);
            first().set(7);
            second().set([1; 100]);
            assert_eq!(first().get(), 7);
            std::ptr::from_ref(first()) as usize
        };
        let mine = use_them();
        let other = std::thread::spawn(use_them).join().expect("it returns");
        assert_ne!(mine, other);
        assert_eq!((first().get(), second().get()), (7, [1; 100]));
    }
}
