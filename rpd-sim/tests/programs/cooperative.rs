//! Cooperative launches, from a program in C.

use crate::common;
use std::path::Path;

#[test]
fn workgroups_of_a_cooperative_launch_wait_for_each_other() {
    let (directory, program) = common::build("cooperative", "cooperative.c", &[], &["-lamdhip64"]);
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpd-gfx/testdata/schedule.co");
    let module = module.to_str().expect("a path");
    for variables in [&[][..], &[("RPD_SIM_SEED", "7")]] {
        let (said, complaints) = common::run_loudly(&directory, &program, &[module], variables);
        let right: String = (0..6).map(|grid| format!("{grid}: right\n")).collect();
        assert_eq!((said, complaints), (right, String::new()));
    }
}
