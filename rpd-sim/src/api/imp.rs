//! The function that implements each call, and the check that its signature agrees with the tables of facts. This is
//! the only module of `api` that names the layers above.

use super::table::Code;

macro_rules! api_impls {
    ($domain:ident, $n:literal, [$($f:path),* $(,)?]) => {
        /// Implementations by operation id.
        pub(crate) static $domain: [Code; $n] = [$(Code($f as *const ())),*];
    };
}

/// Checks an implementation: as many parameters as the call has, each of the same size.
macro_rules! api_check {
    ($f:path, $name:literal, $arity:ident, [$($size:literal),*], $ret:literal) => {
        const _: () = assert!(
            $arity($f, [$($size),*], $ret),
            concat!($name, ": a parameter or the result has another size than in the C API")
        );
    };
}

macro_rules! arity {
    ($name:ident $(: $($p:ident)*)?) => {
        #[allow(dead_code)]
        const fn $name<$($($p,)*)? R>(
            _: unsafe extern "C" fn($($($p),*)?) -> R,
            expected: [usize; 0 $($(+ { stringify!($p); 1 })*)?],
            ret: usize,
        ) -> bool {
            let actual: [usize; 0 $($(+ { stringify!($p); 1 })*)?] = [$($(size_of::<$p>()),*)?];
            let mut n = 0;
            while n < actual.len() {
                if actual[n] != expected[n] {
                    return false;
                }
                n += 1;
            }
            size_of::<R>() == ret
        }
    };
}

arity!(arity0);
arity!(arity1: P0);
arity!(arity2: P0 P1);
arity!(arity3: P0 P1 P2);
arity!(arity4: P0 P1 P2 P3);
arity!(arity5: P0 P1 P2 P3 P4);
arity!(arity6: P0 P1 P2 P3 P4 P5);
arity!(arity7: P0 P1 P2 P3 P4 P5 P6);
arity!(arity8: P0 P1 P2 P3 P4 P5 P6 P7);
arity!(arity9: P0 P1 P2 P3 P4 P5 P6 P7 P8);
arity!(arity10: P0 P1 P2 P3 P4 P5 P6 P7 P8 P9);
arity!(arity11: P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10);
arity!(arity12: P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11);
arity!(arity13: P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12);
arity!(arity14: P0 P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P11 P12 P13);

include!(concat!(env!("OUT_DIR"), "/api_impls.rs"));

/// Implementation of the last slot of the table for images, which has no operation id.
pub(super) const SAMPLER_CREATE_V2: Code =
    Code(crate::hsa::image_calls::hsa_ext_sampler_create_v2 as *const ());
