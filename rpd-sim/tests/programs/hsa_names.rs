//! Exports of the HSA library: every function is there, and the older names mean what the newer ones do.

use crate::common;

#[test]
fn all_functions_of_the_library_are_exported() {
    let (directory, program) = common::build("hsa-names", "hsa_names.c", &[], &["-lhsa-runtime64"]);
    let names: Vec<&str> = include_str!("hsa_names.txt").lines().collect();
    assert_eq!(names.len(), 258);
    let (said, errors) = common::run_loudly(&directory, &program, &names, &[]);
    assert_eq!(said, "");
    // For what the device does not have there is an error.
    assert_eq!(
        errors,
        "rpd-sim: hsa_ven_amd_pcs_flush is not supported by the simulated device\n"
    );
}
