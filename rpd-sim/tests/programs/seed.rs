//! `RPD_SIM_SEED` determines the outcome of races.

use crate::common;
use std::{collections::BTreeSet, path::Path};

#[test]
fn the_seed_determines_the_outcome_of_races() {
    let (directory, program) = common::build("seed", "seed.c", &[], &["-lamdhip64"]);
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpd-gfx/testdata/schedule.co");
    let module = module.to_str().expect("a path");
    let said =
        |seed: &str| common::run_loudly(&directory, &program, &[module], &[("RPD_SIM_SEED", seed)]);
    let mut outcomes = BTreeSet::new();
    for seed in ["0", "1", "2", "3", "18446744073709551615"] {
        let (first, complaints) = said(seed);
        assert_eq!(complaints, "");
        assert_eq!(first, said(seed).0, "seed {seed}");
        // The dispatches of a queue are scheduled independently of each other.
        let left: BTreeSet<&str> = first.lines().take(4).collect();
        assert!(left.len() > 1, "{first}");
        outcomes.insert(first);
    }
    assert_eq!(outcomes.len(), 5);
    for wrong in ["", "-1", "18446744073709551616", "x"] {
        let expected = format!(
            "rpd-sim: RPD_SIM_SEED={wrong} is not a number from 0 to 18446744073709551615; kernels run unseeded\n"
        );
        assert_eq!(said(wrong).1, expected);
    }
}
