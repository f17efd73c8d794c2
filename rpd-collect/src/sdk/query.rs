//! Queries of the SDK that answer through a callback.
//!
//! The SDK takes a function and a pointer, calls the function for each item (or once with an array), and hands the pointer
//! back. `visit*` make such a function out of a closure: the one place where the pointer is cast back. The number in
//! the name is that of the callback's parameters before the pointer.

use std::ffi::c_void;

use crate::recording::guard::Service;

static SERVICE: Service = Service::new("queries of the provider");

macro_rules! visitors {
    ($($visit:ident $trampoline:ident ($($arg:ident $type:ident),*);)*) => {$(
        /// Calls `query` with a callback that calls `visitor`, and with the pointer that belongs to it. The callback
        /// returns the default of its type, which means: continue.
        pub(super) fn $visit<$($type,)* R: Default, F: FnMut($($type),*), S>(
            mut visitor: F,
            query: impl FnOnce(Option<unsafe extern "C" fn($($type,)* *mut c_void) -> R>, *mut c_void) -> S,
        ) -> S {
            query(Some($trampoline::<$($type,)* R, F>), (&raw mut visitor).cast())
        }

        unsafe extern "C" fn $trampoline<$($type,)* R: Default, F: FnMut($($type),*)>(
            $($arg: $type,)*
            visitor: *mut c_void,
        ) -> R {
            SERVICE.run(|| {
                // SAFETY: the closure that the query was given lives until it returns, and only the query calls this.
                let visitor = unsafe { &mut *visitor.cast::<F>() };
                visitor($($arg),*);
            });
            R::default()
        }
    )*};
}

visitors! {
    visit1 trampoline1 (a A);
    visit2 trampoline2 (a A, b B);
    visit3 trampoline3 (a A, b B, c C);
    visit9 trampoline9 (a A, b B, c C, d D, e E, f G, g H, h I, i J);
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;

    use super::*;

    unsafe extern "C" fn count_to(
        last: u32,
        callback: Option<unsafe extern "C" fn(u32, *mut c_void) -> c_int>,
        data: *mut c_void,
    ) -> u32 {
        let callback = callback.expect("a callback");
        // SAFETY: the data belongs to the callback.
        (1..=last)
            .take_while(|&number| unsafe { callback(number, data) } == 0)
            .last()
            .unwrap_or(0)
    }

    #[test]
    fn query_calls_the_closure_for_each_item() {
        let mut sum = 0;
        // SAFETY: callback and data belong together.
        let last = visit1(
            |number: u32| sum += number,
            |callback, data| unsafe { count_to(4, callback, data) },
        );
        assert_eq!((last, sum), (4, 10));
    }
}
