use super::*;
use crate::ids::ProcessId;

fn process(command: &[&str]) -> Process {
    Process {
        pid: ProcessId(42),
        ppid: ProcessId(7),
        pgid: ProcessId(8),
        sid: ProcessId(9),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        cwd: "/data".to_owned(),
        environment: vec![
            ("NESTED".to_owned(), "%tag%-trace-inp-yaml".to_owned()),
            ("SLASHES".to_owned(), "/a/b c".to_owned()),
            ("LOOP".to_owned(), "x%env{LOOP}%".to_owned()),
        ],
        ..Process::default()
    }
}

fn expand(pattern: &str, command: &[&str]) -> String {
    let process = process(command);
    let options = Options::default();
    Facts {
        process: &process,
        options: &options,
        hostname: "node",
    }
    .expand(pattern)
}

/// Checks command-line-256 to command-line-265.
#[test]
fn patterns_are_filled_in_as_the_documented_cases_say() {
    let transpose = ["./transpose", "2", "500", "10"];
    for (case, pattern, command, expected) in [
        (
            "command-line-256",
            "D/%argt%-trace",
            &["./simple-transpose"][..],
            "D/simple-transpose-trace",
        ),
        (
            "command-line-257",
            "%argt%",
            &transpose[..],
            "transpose2_500_10",
        ),
        ("command-line-258", "%args%", &transpose[..], "2_500_10"),
        ("command-line-259", "%arg9%-x", &transpose[..], "x"),
        ("command-line-259", "{arg9}_/-x%arg1%", &transpose[..], "x2"),
        (
            "command-line-260",
            "D/%env{NESTED}%",
            &["bin/transpose"][..],
            "D/transpose-trace-inp-yaml",
        ),
        (
            "command-line-261",
            "%env{SLASHES}%",
            &transpose[..],
            "a_b_c",
        ),
        ("command-line-262", "<%env{UNSET}%>", &transpose[..], "<>"),
        (
            "command-line-263",
            "$ENV{SLASHES}$env{SLASHES}",
            &transpose[..],
            "a_b_ca_b_c",
        ),
        (
            "command-line-264",
            "%q{SLASHES}.%q{SLASHES}%",
            &transpose[..],
            "a_b_c.a_b_c",
        ),
        ("command-line-265", "%h.%p", &transpose[..], "node.42"),
        (
            "command-line-265",
            "%h_%p-%hostname%%pid%",
            &transpose[..],
            "node_42-node42",
        ),
        ("unnumbered", "%pidx", &transpose[..], "42idx"),
        ("unnumbered", "@pid@ 100% {", &transpose[..], "@pid@ 100% {"),
        (
            "unnumbered",
            "{rank}.%size%.%job%.%nid%",
            &transpose[..],
            "0.1.0.42",
        ),
        (
            "unnumbered",
            "%argv%",
            &["./../bin/app", "--", "-v", "../x y"][..],
            ".._bin_app_-v_x y",
        ),
    ] {
        assert_eq!(expand(pattern, command), expected, "{case}: {pattern}");
    }
}

#[test]
fn pattern_value_that_names_itself_is_expanded_a_limited_number_of_times() {
    assert_eq!(expand("%env{LOOP}%", &[]), "xxxxxxxx%env{LOOP}%");
}

fn filled(pattern: &str, environment: &[(&str, &str)]) -> (String, Vec<String>) {
    let mut process = process(&["../..", "a/b", ""]);
    process.environment = environment
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let options = Options::default();
    let facts = Facts {
        process: &process,
        options: &options,
        hostname: "node/..",
    };
    let mut remarks = BTreeSet::new();
    let text = facts.fill(pattern, &mut remarks);
    (text, remarks.into_iter().collect())
}

#[test]
fn pattern_values_that_multiply_stay_within_the_limit() {
    let many = "%env{X}%".repeat(40);
    let (text, _) = filled("%env{X}%", &[("X", &many)]);
    assert!(text.len() <= MAX_VALUE, "{}", text.len());
    assert!(text.contains("%env{X}%"));
    let long = format!("{many}{}", "y".repeat(MAX_VALUE));
    assert_eq!(filled("%env{X}%", &[("X", &long)]).0, long);
}

#[test]
fn pattern_values_do_not_leave_the_directory() {
    let environment = [
        ("UP", ".."),
        ("DOT", "."),
        ("CONTROL", "a\n\u{1b}b"),
        ("DATE", "%Y/../x"),
        ("CWD", "%cwd%"),
        ("INNER", "%env{UP}%/%env{UP}%"),
        ("ROCPROF_DATE_FORMAT", "../%%"),
        ("SLURM_JOB_ID", "../../etc"),
    ];
    for (pattern, expected) in [
        ("%env{UNSET}%/x", "_/x"),
        ("out/%env{UNSET}%", "out/_"),
        ("out/%env{UNSET}%/%env{UP}%/x", "out/_/__/x"),
        ("%env{DOT}%%env{DOT}%/x", "__/x"),
        (".%env{DOT}%/x", "__/x"),
        ("%env{DOT}%/x", "_/x"),
        ("a%env{UP}%/x", "a../x"),
        ("%tag%/%arg1%/x", "__/a_b/x"),
        ("%arg2%", "_"),
        ("%arg9%/x", "x"),
        ("a/%arg9%", "a/_"),
        ("%env{CONTROL}%", "a__b"),
        ("%hostname%", "node_.."),
        ("%job%", ".._.._etc"),
        ("%launch_date%", ".._%"),
        ("%env{INNER}%", ".._.."),
        ("%env{CWD}%", "_data"),
        ("%cwd%/x", "/data/x"),
        ("%cwd%/%env{UP}%/x", "/data/__/x"),
        ("../x", "../x"),
        ("<%env{UNSET}%>", "<>"),
    ] {
        assert_eq!(filled(pattern, &environment).0, expected, "{pattern}");
    }
    let (_, remarks) = filled("%env{UNSET}%/%env{UP}%/%job%/%tag%", &environment);
    assert_eq!(
        remarks,
        [
            "%env{UNSET}% makes a path component that is empty: it is replaced by _",
            "%env{UP}% makes a path component that is `..`: it is replaced by __",
            "%tag% makes a path component that is `..`: it is replaced by __",
            "the value of %job% contains / or control characters: each is replaced by _",
        ]
    );
}

#[test]
fn namer_reports_a_replaced_value_once() {
    let options = Options {
        output_file: "%env{UNSET}%/x".to_owned(),
        ..Options::default()
    };
    let process = process(&["a"]);
    let facts = Facts {
        process: &process,
        options: &options,
        hostname: "node",
    };
    let mut namer = Namer::default();
    namer.target(&facts, false);
    assert_eq!(namer.take_remarks().len(), 1);
    namer.target(&facts, false);
    assert_eq!(namer.take_remarks(), [""; 0]);
    let mut next = Namer::default();
    next.extend(&namer);
    next.target(&facts, false);
    assert_eq!(next.take_remarks(), [""; 0]);
}

#[test]
fn target_path_has_the_bytes_of_values_that_are_not_utf8() {
    use std::os::unix::ffi::OsStrExt as _;
    let options = Options {
        output_directory: "/out\\xff".to_owned(),
        output_file: "%arg1%".to_owned(),
        ..Options::default()
    };
    let process = process(&["a", "\\xfe"]);
    let facts = Facts {
        process: &process,
        options: &options,
        hostname: "node",
    };
    let target = Namer::default().target(&facts, false);
    let path = target.file("x41");
    assert_eq!(path.as_os_str().as_bytes(), b"/out\xff/\xfe_x41");
    let json = serde_json::to_string(&target).expect("JSON");
    let back: Target = serde_json::from_str(&json).expect("a target");
    assert_eq!(back, target);
}

#[test]
fn pattern_check_refuses_closed_words_that_are_no_placeholders() {
    for good in [
        "%pid%", "{pid}", "%h_%p", "%h%p", "50%", "a%b", "%arg12%", "%q{A}%", "{a b}", "%pidx",
    ] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    for bad in [
        "%foo%",
        "{foo}",
        "x/%pidx%/y",
        "%env{lower}%",
        "%ARGT%",
        "%arg%",
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
    let error = check("out/%hostnam%").expect_err("not a key");
    assert_eq!(
        error.to_string(),
        "`%hostnam%` is not a placeholder; did you mean `%hostname%`?"
    );
}

#[test]
fn literal_parent_ends_before_the_first_placeholder() {
    for (pattern, parent) in [
        ("/a/b", "/a/b"),
        ("/a/b%pid%", "/a"),
        ("/%pid%", "/"),
        ("a%pid%", ""),
        ("%cwd%/x", ""),
        ("/a/%tag%/c", "/a"),
    ] {
        assert_eq!(literal_parent(pattern), Path::new(parent), "{pattern}");
    }
    assert!(starts_with_placeholder("%cwd%/x") && starts_with_placeholder("$ENV{A}"));
    assert!(!starts_with_placeholder("out/%pid%"));
}

#[test]
fn namer_gives_processes_of_a_run_different_files() {
    let mut options = Options {
        output_directory: "/out".to_owned(),
        output_file: "x".to_owned(),
        ..Options::default()
    };
    let mut namer = Namer::default();
    let first = process(&["a"]);
    let mut child = first.clone();
    child.pid = ProcessId(43);
    let mut name = |options: &Options, process: &Process, descendant| {
        let target = namer.target(
            &Facts {
                process,
                options,
                hostname: "node",
            },
            descendant,
        );
        target.file("results.db").display().to_string()
    };
    assert_eq!(name(&options, &first, false), "/out/x_results.db");
    assert_eq!(name(&options, &first, false), "/out/x_2_results.db");
    assert_eq!(name(&options, &child, true), "/out/x_43_results.db");
    assert_eq!(name(&options, &child, true), "/out/x_43_2_results.db");
    options.output_file = String::new();
    assert_eq!(name(&options, &first, false), "/out/node/42_results.db");
    assert_eq!(name(&options, &first, false), "/out/node/42_2_results.db");
    assert_eq!(name(&options, &child, true), "/out/node/43_results.db");
    options.output_directory = "%cwd%/r/pass_3".to_owned();
    assert_eq!(
        name(&options, &child, true),
        "/data/r/pass_3/node/43_results.db"
    );
}

#[test]
fn distinguishes_ranks_accepts_patterns_with_rank_or_process() {
    for pattern in [DEFAULT_PREFIX, "x_%rank%", "%r", "{pid}", "x%env{RANK}%"] {
        assert!(distinguishes_ranks(pattern), "{pattern}");
    }
    for pattern in ["x", "%tag%/x", "%size%", "%job%"] {
        assert!(!distinguishes_ranks(pattern), "{pattern}");
    }
}

#[test]
fn namer_gives_passes_of_a_run_different_files() {
    let process = process(&["a"]);
    let mut earlier = Namer::default();
    let mut name = |pass: u32, prefix: &str| {
        let options = Options {
            output_directory: format!("/out/pass_{pass}"),
            output_file: prefix.to_owned(),
            ..Options::default()
        };
        let mut namer = Namer::default();
        namer.extend(&earlier);
        let facts = Facts {
            process: &process,
            options: &options,
            hostname: "node",
        };
        let target = namer.target(&facts, false);
        earlier = namer;
        target.file("results.db").display().to_string()
    };
    assert_eq!(name(1, "x"), "/out/pass_1/x_results.db");
    assert_eq!(name(2, "x"), "/out/pass_2/x_results.db");
    assert_eq!(name(1, "/all/x"), "/all/x_results.db");
    assert_eq!(name(2, "/all/x"), "/all/x_2_results.db");
    assert_eq!(name(1, "../y"), "/out/pass_1/../y_results.db");
    assert_eq!(name(2, "./../y"), "/out/pass_2/./../y_2_results.db");
}

#[test]
fn names_that_another_run_has_get_the_pid() {
    let process = process(&["app"]);
    let options = Options {
        output_directory: "/out".to_owned(),
        output_file: "x".to_owned(),
        ..Options::default()
    };
    let facts = Facts {
        process: &process,
        options: &options,
        hostname: "node1",
    };
    let named = |taken: &[&str]| {
        let mut is_free = |target: &Target| !taken.contains(&target.prefix.as_str());
        let mut namer = Namer::default();
        namer.free_target(&facts, false, &mut is_free).prefix
    };
    let pid = process.pid;
    assert_eq!(named(&[]), "x");
    assert_eq!(named(&["x"]), format!("x_{pid}"));
    let second = format!("x_{pid}");
    assert_eq!(named(&["x", &second]), format!("x_{pid}_2"));
}
