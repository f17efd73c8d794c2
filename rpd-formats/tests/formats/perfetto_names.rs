//! Texts of Perfetto traces, which are in the file as they are: rpd's own, and those of the original.

use std::path::Path;

use rpd_core::compat::Compat;
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::{LoadOptions, Session};
use rpd_formats::rocpd::read::Database;

use crate::support::write::write_one;

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn session() -> Session {
    let path = Path::new(TESTDATA).join("trace_results.db");
    let database = Database::open(&path).expect("the golden database");
    let load = LoadOptions {
        args: true,
        rows: None,
    };
    let (session, _) = database
        .session(&database.recordings()[0], load)
        .expect("a session");
    session
}

/// The texts that are in the trace of the golden session.
fn found<'t>(compat: Compat, texts: &[&'t str]) -> Vec<&'t str> {
    let directory = tempfile::tempdir().expect("a directory");
    let target = Target {
        directory: directory.path().to_owned(),
        prefix: "trace".to_owned(),
    };
    let options = Options {
        compat,
        ..Options::default()
    };
    let path = write_one(Format::Pftrace, &session(), None, &options, &target);
    let bytes = std::fs::read(path.expect("written").expect("a file")).expect("a file");
    let has = |text: &&&str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    texts.iter().filter(has).copied().collect()
}

#[test]
fn perfetto_trace_has_the_names_of_its_mode() {
    let (own, original) = (
        ["STREAM [1]", "hostFunction"],
        ["STREAM [\" 1 \"] ", "int) [clone .kd]"],
    );
    let texts = [own, original].concat();
    assert_eq!(found(Compat::None, &texts), own);
    assert_eq!(found(Compat::Rocprofv3, &texts), original);
}
