//! Fuzz targets: each feeds any bytes to code that reads what others made, and panics where that code does not keep its
//! promises (it ends, does not panic, and its errors are one line).
//!
//! `cargo xtask fuzz` runs them under libFuzzer (`main.rs`); the tests of this crate run them on their seeds and on some
//! thousand mutations that are the same in every run ([`mutate`]).

pub mod mutate;
mod targets;

pub use targets::TARGETS;

/// A fuzz target: code that reads input, with inputs to begin with.
#[derive(Debug)]
pub struct Target {
    /// Name of the target for `cargo xtask fuzz`.
    pub name: &'static str,
    /// Feeds bytes to the code under test.
    pub run: fn(&[u8]),
    /// Inputs to begin with: files of the tests, and small ones that reach something special.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Length of the longest input in bytes.
    pub longest: usize,
    /// Number of mutations that the tests of the crate try: as many as take a second or two.
    pub mutations: usize,
}

impl Target {
    /// The target of this name.
    pub fn find(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a target on its seeds and on mutations of them.
    fn drive(name: &str) {
        let target = Target::find(name).expect("a target");
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty());
        for seed in &seeds {
            assert!(seed.len() <= target.longest, "{name}: a seed is too long");
            (target.run)(seed);
        }
        let mut mutator = mutate::Mutator::new(&seeds, target.longest);
        for _ in 0..target.mutations {
            (target.run)(&mutator.next_input());
        }
    }

    macro_rules! driven {
        ($($test:ident $name:literal;)*) => {
            $(
                #[test]
                fn $test() {
                    drive($name);
                }
            )*

            #[test]
            fn every_target_is_driven() {
                let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
                assert_eq!(names, [$($name),*]);
            }
        };
    }

    driven! {
        spool "spool";
        rocpd "rocpd";
        job_files "job-files";
        definitions "definitions";
        expressions "expressions";
        code_objects "code-objects";
        instructions "instructions";
        kernel_filter "kernel-filter";
        thread_trace "thread-trace";
        accesses "accesses";
        captures "captures";
        names "names";
    }
}
