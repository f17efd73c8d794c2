//! Mangled names: any text has a demangled text of bounded length after a bounded time, or stays as it is.

use rpd_spool::demangle::{Dialect, demangle_as, demangle_type};

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "names",
    run,
    seeds,
    longest: 4096,
    mutations: 20_000,
};

/// Length of the longest demangled text in bytes.
const LONGEST_TEXT: usize = 1 << 20;

const SEEDS: &[&str] = &[
    "_Z1kIZNK1a1gIiEEjvEUlvE_JfdEEvT_DpT0_.part.0.kd",
    "_ZNK3foo3barIiE4typeIXsZT_EEcvT_IdEEv",
    "_Z1fIJLi1ELln2EEE1AIXfLplLi0ET_EEDTcl1gspfp_EE",
    "_Z1fPFPA3_KM1aDOLb1EKFvT_RA_iREOS0_EDv4_fU3fooIiEj",
    "_ZZN1AIiE1fIRKdEEvOT_ENKUlT_E_clIiEEDaS1_",
    "_ZTCN1a1bE8_SsB3abi",
    "_Z1fIXtl1ALi1Edi1xLf3f800000EEXadL_ZN1S1mEOiEEXquL_Z1gvEcvT_Lb1EnwLi1E_iEEEvv",
    "_Z1fIXsr1A1xEXsr1AE1xEXsrNT_1UE1xEEvDF16_Du3foo",
    "_Z1fI1aI1bS_E1cIS0_S0_E1cIS1_S1_E1cIS2_S2_E1cIS3_S3_EEvv",
    "_Z6gr\u{f6}\u{df}ev",
    "_GLOBAL__I_a",
];

fn seeds() -> Vec<Vec<u8>> {
    SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

fn run(data: &[u8]) {
    let Ok(name) = std::str::from_utf8(data) else {
        return;
    };
    let [library, original, any] =
        [Dialect::Library, Dialect::Rocprofv3, Dialect::Any].map(|dialect| {
            let text = demangle_as(name, dialect);
            assert!(text.len() <= LONGEST_TEXT.max(name.len()));
            assert_eq!(text.is_empty(), name.is_empty());
            text
        });
    // `DF16b` is `std::bfloat16_t` to one, and a type of fixed point to the other.
    assert!(library == name || library == any || name.contains("DF"));
    assert!(original == name || original == library);
    assert!(demangle_type(name).len() <= LONGEST_TEXT.max(name.len()));
}
