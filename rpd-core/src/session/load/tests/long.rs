//! Tables that are too long for memory.

use super::*;

/// A spool whose threads interleave, with times that are equal, and whose dispatches and copies come in the order of their
/// ends.
fn interleaved(run: &Path) -> Arc<SpoolDirectory> {
    let (directory, mut meta) = spool(run);
    let message = b"region";
    put!(
        meta,
        REGION,
        0,
        Region {
            id: 5,
            correlation: 1,
            text_len: message.len() as u32
        },
        message
    );
    for tid in 1..=5_u32 {
        let mut writer = thread(&directory, tid);
        for index in 0..u64::from(40 * tid) {
            let start = 100 + index / 3 * 10;
            let correlation = index * 8 + u64::from(tid);
            call(
                &mut writer,
                7,
                3 + (index % 2) as u32,
                start,
                start + 30 - index % 3 * 10,
                correlation,
            );
            if index.is_multiple_of(3) {
                put!(
                    writer,
                    API,
                    7,
                    CallRecord {
                        operation: 3,
                        start: start,
                        end: start + 5,
                        correlation: correlation + 1_000_000,
                        flags: format::call_flag::ARGUMENTS,
                        retval: index
                    },
                    &correlation.to_ne_bytes()
                );
            }
            let end = 1000 + index * 4;
            put!(
                writer,
                DISPATCH,
                0,
                Dispatch {
                    start: end - 1 - (index * 7919 + u64::from(tid) * 31) % 500,
                    end: end,
                    dispatch: correlation,
                    kernel: index % 3,
                    region: (index % 2) as u32 * 5
                },
                &[]
            );
            put!(
                writer,
                COPY,
                0,
                Copy {
                    operation: 2,
                    start: end - 1 - index * 13 % 90,
                    end: end,
                    bytes: correlation
                },
                &[]
            );
        }
    }
    directory
}

#[test]
fn loading_yields_the_same_tables_in_files_as_in_memory() {
    let run = tempfile::tempdir().expect("a directory");
    let directory = interleaved(run.path());
    let whole = open(&directory);
    assert!(!whole.calls.start.is_mapped());
    let texts = |session: &Session| {
        let rows = Table::ALL.iter().map(|table| {
            let (starts, ends) = (
                session.columns(*table).starts(),
                session.columns(*table).ends(),
            );
            format!("{starts:?} {ends:?}")
        });
        rows.chain([
            format!("{:?}", session.calls),
            format!("{:?}", session.dispatches),
            format!("{:?}", session.copies),
            format!("{:?}", session.process),
        ])
        .collect::<Vec<_>>()
    };
    for rows in [1, 7, 64, 599] {
        let mut session = Session::open(
            directory.path(),
            LoadOptions {
                args: true,
                rows: Some(rows),
            },
        )
        .expect("a session");
        assert!(session.calls.start.is_mapped(), "{rows}");
        assert_eq!(texts(&session), texts(&whole), "{rows}");
        assert_eq!(session.span(), whole.span());
        let window = crate::session::Window {
            start: Nanoseconds(300),
            end: Nanoseconds(900),
            inside: false,
        };
        let mut cut = open(&directory);
        cut.retain(&window).expect("in memory");
        session.retain(&window).expect("written");
        assert!(cut.len() < whole.len());
        assert_eq!(texts(&session), texts(&cut), "{rows}");
    }
}
