//! Symbols in databases, and the views with RPD's names over them.

use rpd_core::session::stacks::ShownFrames;
use rpd_symbols::{Module, NoFile, Symbolizer, symbolize};
use rpd_tests::run::lacks;

use crate::native::{Built, search};
use crate::recording::{Code, Recording};

/// The view of RPD's guide to stack frames, as it stands there.
const GUIDE: &str = "create temporary view if not exists rocpd_stackstrings as select sf.id, s2.string as hip_api, \
    s3.string as args, sf.depth, s1.string as frame from rocpd_stackframe sf join rocpd_string s1 on sf.name_id=s1.id \
    join rocpd_api ap on sf.api_ptr_id=ap.id join rocpd_string s2 on ap.apiName_id=s2.id join rocpd_string s3 on \
    ap.args_id=s3.id;";

/// Address at which the program is loaded.
const BASE: u64 = 0x5555_0000_0000;

fn runtime() -> Module {
    Module {
        path: "/opt/rocm/lib/libamdhip64.so.6".to_owned(),
        build_id: Some("abcdef0123456789".to_owned()),
    }
}

/// A recording with calls of hipMalloc and hipMemcpy from two places in a program, and the frames between.
struct Example {
    built: Built,
    recording: Recording,
    address: u64,
}

impl Example {
    fn new() -> Example {
        let built = Built::new(&["-O2", "-g"]);
        let address = built.calls("program", "exported")[0];
        let outer = built
            .calls("program", "main")
            .first()
            .copied()
            .unwrap_or(address);
        let mut recording = Recording::new();
        let program = recording.module(&built.module("program"), BASE);
        let hip = recording.module(&runtime(), 0x7f35_a200_0000);
        let collector = recording.module(
            &Module {
                path: "/x/librpd_collect.so".to_owned(),
                build_id: None,
            },
            0x7f00_0000_0000,
        );
        let mut stack = |entry| {
            recording.stack(&[
                Code::Native(program, outer),
                Code::Native(program, address),
                Code::Native(hip, entry),
                Code::Native(hip, entry + 0x1000),
                Code::Native(collector, 0x10),
            ])
        };
        let (malloc, copy) = (stack(0x49_d54b), stack(0x4b_4447));
        let first = recording.call("hipMalloc", malloc, 100);
        recording.argument(first, 0, "void**", "ptr", "0x7f3491000000");
        recording.argument(first, 1, "unsigned long", "size", "131072");
        let second = recording.call("hipMemcpy", copy, 500);
        recording.argument(second, 0, "void*", "dst", "0x1");
        recording.call("hipMemcpy", copy, 700);
        Example {
            built,
            recording,
            address,
        }
    }

    fn symbolize(&self, shown: Option<ShownFrames>) -> rpd_symbols::Report {
        symbolize(
            &self.recording.path(),
            &mut Symbolizer::new(search(&[])),
            shown,
        )
        .expect("symbolized")
    }
}

/// Checks stacks-3.
#[test]
fn the_sql_of_the_guide_runs_unchanged() {
    if lacks("c++") {
        return;
    }
    let example = Example::new();
    let report = example.symbolize(None);
    assert_eq!(report.problems.len(), 2);
    assert!(report.problems.contains(&(runtime().path, NoFile::Missing)));
    let recording = &example.recording;
    recording.run(GUIDE);
    let rows = recording.rows("select hip_api, args, depth, frame from rocpd_stackstrings");
    let source = example.built.text("program.cpp");
    let address = BASE + example.address;
    let column = |line: &str| {
        let row = rows.iter().find(|row| row.contains(line)).expect("a row");
        row.rsplit(':').next().expect("a column").to_owned()
    };
    let (a, b, c, d) = (
        column(".cpp:5:"),
        column(".cpp:8:"),
        column(".cpp:9:"),
        column(".cpp:12:"),
    );
    let hidden = example.built.calls("program", "main");
    let expected = [
        "hipMalloc|ptr=0x7f3491000000 | size=0x20000|0|#0 0x00007f35a249d54b in hipMalloc() at /opt/rocm/lib/libamdhip64.so.6".to_owned(),
        format!("hipMalloc|ptr=0x7f3491000000 | size=0x20000|1|#1 (inlined)          in int place::innermost<int>(int) at {source}:5:{a}"),
        format!("hipMalloc|ptr=0x7f3491000000 | size=0x20000|2|#2 (inlined)          in place::middle(int) at {source}:8:{b}"),
        format!("hipMalloc|ptr=0x7f3491000000 | size=0x20000|3|#3 (inlined)          in place::outer(int) at {source}:9:{c}"),
        format!("hipMalloc|ptr=0x7f3491000000 | size=0x20000|4|#4 0x{address:016x} in exported at {source}:12:{d}"),
    ];
    assert_eq!(rows[..5], expected, "{hidden:?}");
    let copies = recording
        .rows("select hip_api, args, frame from rocpd_stackstrings where hip_api like 'hipMemcpy%' and depth = 0");
    let copy = "hipMemcpy||#0 0x00007f35a24b4447 in hipMemcpy() at /opt/rocm/lib/libamdhip64.so.6";
    assert_eq!(copies, [copy, copy]);

    // Equal frames of different stacks share their text; ids ascend.
    assert_eq!(
        recording.rows(
            "select count(*) from rocpd_stackframe a join rocpd_stackframe b using (depth)
                where a.api_ptr_id = 1 and b.api_ptr_id = 2 and (a.name_id = b.name_id) <> (depth > 0)"
        ),
        ["0"]
    );
    let ids = recording.rows("select id from rocpd_stackframe order by api_ptr_id, depth");
    let ids: Vec<i64> = ids.iter().map(|id| id.parse().expect("a number")).collect();
    assert!(ids.is_sorted());
    // The database's view has the same result.
    let own = recording
        .rows("select hip_api, args, depth, frame from main.rocpd_stackstrings order by id");
    assert_eq!(
        own,
        recording
            .rows("select hip_api, args, depth, frame from temp.rocpd_stackstrings order by id")
    );
    assert_eq!(
        recording.rows("select count(*) from stackframe"),
        [own.len().to_string()]
    );
}

/// Checks stacks-7.
#[test]
fn frames_of_the_runtime_are_shown_on_request() {
    if lacks("c++") {
        return;
    }
    let example = Example::new();
    let shown = ShownFrames {
        runtime: true,
        interpreter: false,
    };
    example.symbolize(Some(shown));
    let frames = |recording: &Recording| {
        recording
            .rows("select frame from rocpd_stackstrings where id >> 20 = 1 order by depth limit 3")
    };
    let found = frames(&example.recording);
    assert_eq!(
        found[0],
        "#0 0x00007f35a249e54b in hipMalloc() at /opt/rocm/lib/libamdhip64.so.6"
    );
    assert_eq!(
        found[1],
        "#1 0x00007f35a249d54b at /opt/rocm/lib/libamdhip64.so.6"
    );
    // The choice stays.
    example.symbolize(None);
    assert_eq!(frames(&example.recording), found);
    example.symbolize(Some(ShownFrames::default()));
    assert!(frames(&example.recording)[1].starts_with("#1 (inlined)"));
}

/// Checks stacks-91.
#[test]
fn looking_up_again_uses_what_was_installed() {
    if lacks("c++") {
        return;
    }
    let example = Example::new();
    let (program, aside) = (example.built.text("program"), example.built.text("aside"));
    std::fs::rename(&program, &aside).expect("moved");
    example.symbolize(None);
    let recording = &example.recording;
    let places = "select distinct stack_id from rpd_api_stack order by 1";
    let (stacks, address) = (recording.rows(places), BASE + example.address);
    assert_eq!(
        recording.rows("select frame from rocpd_stackstrings where id >> 20 = 1 and depth = 1"),
        [format!("#1 0x{address:016x} at {program}")]
    );
    assert_eq!(
        recording.rows(
            "select distinct evidence from rpd_frame where evidence not in ('api') order by 1"
        ),
        ["none: file is gone"]
    );
    std::fs::rename(&aside, &program).expect("moved");
    example.symbolize(None);
    let frames = recording.rows("select * from rpd_frame");
    let strings = recording.rows("select count(*) from rocpd_string_0000");
    assert_eq!(recording.rows(places), stacks);
    assert_eq!(
        recording.rows("select count(*) from rpd_frame where evidence = 'dwarf' and line = 5"),
        ["1"]
    );
    example.symbolize(None);
    assert_eq!(recording.rows("select * from rpd_frame"), frames);
    assert_eq!(
        recording.rows("select count(*) from rocpd_string_0000"),
        strings
    );
}

#[test]
fn symbolize_gives_python_frames_lines_and_hides_the_interpreter() {
    let mut recording = Recording::new();
    let module = |path: &str| Module {
        path: path.to_owned(),
        build_id: None,
    };
    let python = recording.module(&module("/usr/bin/python3.10"), 0x5555_0000_0000);
    let extension = recording.module(&module("/usr/lib/python3/ext.so"), 0x7f11_0000_0000);
    let hip = recording.module(&runtime(), 0x7f35_a200_0000);
    // Ten bytes on line 3, ten on line 7.
    let outer = recording.python("/home/u/main.py", "<module>", 1, &[10, 2, 10, 4]);
    let inner = recording.python("/home/u/main.py", "work", 20, &[4, 1]);
    let stack = recording.stack(&[
        Code::Native(python, 0x100),
        Code::Python(outer, 12),
        Code::Native(python, 0x200),
        Code::Python(inner, 0),
        Code::Native(python, 0x300),
        Code::Native(extension, 0x40),
        Code::Native(hip, 0x10),
    ]);
    recording.call("hipMalloc", stack, 5);
    let frames = |shown| {
        symbolize(&recording.path(), &mut Symbolizer::new(search(&[])), shown).expect("symbolized");
        recording.rows("select frame from rocpd_stackstrings order by depth")
    };
    assert_eq!(
        frames(None),
        [
            "#0 0x00007f35a2000010 in hipMalloc() at /opt/rocm/lib/libamdhip64.so.6",
            "#1 0x00007f1100000040 at /usr/lib/python3/ext.so",
            "#2 (python)           in work at /home/u/main.py:21",
            "#3 (python)           in <module> at /home/u/main.py:7",
        ]
    );
    let all = frames(Some(ShownFrames {
        runtime: false,
        interpreter: true,
    }));
    assert_eq!(all.len(), 7);
    assert_eq!(all[2], "#2 0x0000555500000300 at /usr/bin/python3.10");
}

/// Checks stacks-11.
#[test]
fn stacks_without_an_address_of_the_call_and_long_ones() {
    let mut recording = Recording::new();
    let code = recording.python("/home/u/main.py", "deep", 1, &[4, 1]);
    let mut frames = vec![Code::Marker("truncated-marker")];
    frames.extend((0..99).map(|_| Code::Python(code, 0)));
    frames.push(Code::Marker("gap-marker"));
    frames.push(Code::Python(code, 0));
    let stack = recording.stack(&frames);
    recording.call("hipFree", stack, 5);
    symbolize(&recording.path(), &mut Symbolizer::new(search(&[])), None).expect("symbolized");
    let found = recording.rows("select frame from rocpd_stackstrings order by depth");
    assert_eq!(found.len(), 103);
    assert_eq!(found[0], "#0   (api)              in hipFree()");
    assert_eq!(
        found[1],
        "#1   (python)           in deep at /home/u/main.py:2"
    );
    assert_eq!(found[2], "#2   (gap)              frames left out");
    assert_eq!(
        found[102],
        "#102 (truncated)        the stack could not be followed further"
    );
}

#[test]
fn symbolize_reports_a_database_that_cannot_be_written_and_leaves_it_alone() {
    if lacks("c++") {
        return;
    }
    let example = Example::new();
    let path = example.recording.path();
    let fails = || {
        let mut symbolizer = Symbolizer::new(search(&[]));
        let error = symbolize(&path, &mut symbolizer, None).expect_err("refused");
        error.problem.to_string()
    };
    // Another program is writing.
    let other = rusqlite::Connection::open(&path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    assert!(
        fails().starts_with("is locked by another program"),
        "{}",
        fails()
    );
    drop(other);
    // A trigger that a file brings along does not run.
    example.recording.run(
        "CREATE TABLE harm (a); CREATE TRIGGER t AFTER INSERT ON rpd_frame_0000 BEGIN INSERT INTO harm VALUES (1); END",
    );
    example.symbolize(None);
    assert_eq!(example.recording.rows("select count(*) from harm"), ["0"]);
    assert_ne!(
        example.recording.rows("select count(*) from rpd_frame"),
        ["0"]
    );

    let without = Recording::new();
    let error =
        symbolize(&without.path(), &mut Symbolizer::new(search(&[])), None).expect_err("nothing");
    assert_eq!(
        error.problem.to_string(),
        "holds no call stacks; record with --stacks native, python or merged"
    );
    assert!(
        std::fs::read_dir(without.directory())
            .expect("read")
            .count()
            == 1
    );
}
