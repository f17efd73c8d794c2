//! Answers for calls that no layer implements: a status, and one line that names the call.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, Ordering},
};

// Which of these the list needs changes as calls get implemented.
#[allow(unused_imports)]
use super::types::{
    ChannelFormatDesc, ControlDirectives, Dim3, Extent, IpcHandle, PitchedPtr, UniqueId,
    Unsupported,
};

/// `hipErrorNotSupported`, the result of HIP functions that are not simulated.
pub(crate) const HIP_NOT_SUPPORTED: u32 = 801;
/// `HSA_STATUS_ERROR`, the result of HSA functions that are not simulated.
pub(crate) const HSA_ERROR: u32 = 0x1000;
/// `HSA_STATUS_ERROR_INVALID_ARGUMENT`.
pub(super) const HSA_INVALID_ARGUMENT: u32 = 0x1001;
/// `ncclInvalidUsage`, the result of RCCL functions that are not simulated.
const RCCL_INVALID_USAGE: u32 = 5;

macro_rules! status {
    (HSA_CORE_API) => {
        HSA_ERROR
    };
    (HSA_AMD_EXT_API) => {
        HSA_ERROR
    };
    (HSA_IMAGE_EXT_API) => {
        HSA_ERROR
    };
    (HSA_FINALIZE_EXT_API) => {
        HSA_ERROR
    };
    (RCCL_API) => {
        RCCL_INVALID_USAGE
    };
    ($other:ident) => {
        HIP_NOT_SUPPORTED
    };
}

#[cold]
fn print_once(name: &str, said: &AtomicBool) {
    if !said.swap(true, Ordering::Relaxed) {
        eprintln!("rpd-sim: {name} is not supported by the simulated device");
    }
}

/// Names an HSA call that this device does not have on stderr, and returns the call's status.
#[cold]
pub(super) fn hsa(name: &str) -> u32 {
    eprintln!("rpd-sim: {name} is not supported by the simulated device");
    HSA_ERROR
}

macro_rules! api_missing {
    ($domain:ident, $name:ident, ($($a:ident: $t:ty),*) -> $r:ty) => {
        #[allow(non_snake_case, unused_variables)]
        pub(super) unsafe extern "C" fn $name($($a: $t),*) -> $r {
            static SAID: AtomicBool = AtomicBool::new(false);
            print_once(stringify!($name), &SAID);
            <$r as Unsupported>::unsupported(status!($domain))
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/api_missing.rs"));

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    const GENERATED: &str = include_str!(concat!(env!("OUT_DIR"), "/api_missing.rs"));
    const DOCUMENTS: &str = include_str!("../../../docs/simulator-functions.md");

    #[test]
    fn the_manual_lists_the_unsupported_functions() {
        let missing: BTreeSet<&str> = GENERATED
            .lines()
            .filter_map(|line| line.strip_prefix("api_missing!(")?.split(", ").nth(1))
            .collect();
        let (_, section) = DOCUMENTS
            .split_once("## What is not simulated\n")
            .expect("the section is there");
        let table = section.split("\n## ").next().unwrap_or_default();
        let listed: BTreeSet<&str> = table
            .lines()
            .filter(|line| line.starts_with("| "))
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(listed, missing);
    }
}
