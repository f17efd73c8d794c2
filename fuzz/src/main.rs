//! Runs the fuzz targets under libFuzzer. `RPD_FUZZ_TARGET` names the target; its seeds are written to the directory
//! `RPD_FUZZ_SEEDS`, which has to be among the corpus directories on the command line. Without a target, all targets
//! are listed, each with the length of its longest input.

#![no_main]

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use rpd_fuzz::Target;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

fn choose() -> &'static Target {
    let Ok(name) = std::env::var("RPD_FUZZ_TARGET") else {
        for target in rpd_fuzz::TARGETS {
            println!("{} {}", target.name, target.longest);
        }
        std::process::exit(0)
    };
    Target::find(&name).unwrap_or_else(|| {
        eprintln!("RPD_FUZZ_TARGET='{name}' names no target");
        std::process::exit(2)
    })
}

fn write_seeds(target: &Target) {
    let Some(directory) = std::env::var_os("RPD_FUZZ_SEEDS") else {
        return;
    };
    for (number, seed) in (target.seeds)().iter().enumerate() {
        let path = Path::new(&directory).join(format!("seed-{number}"));
        if let Err(error) = std::fs::write(&path, seed) {
            eprintln!("cannot write {}: {error}", path.display());
            std::process::exit(2);
        }
    }
}

fuzz_target!(
    init: write_seeds(TARGET.get_or_init(choose)),
    |data: &[u8]| {
        (TARGET.get_or_init(choose).run)(data);
    }
);
