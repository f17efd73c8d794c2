use super::*;

fn frame(name: &str) -> Frame {
    Frame {
        kind: Kind::Native,
        name: name.to_owned(),
        file: "a.cpp".to_owned(),
        line: 3,
    }
}

fn profile(stacks: &[(&[&str], u64)]) -> Profile {
    let mut profile = Profile::new("calls", Unit::Count);
    for (stack, weight) in stacks {
        profile.add(stack.iter().map(|name| frame(name)), *weight);
    }
    profile
}

fn text(profile: &Profile, format: Format, before: Option<&Profile>) -> String {
    let mut out = Vec::new();
    profile
        .write(format, "a title", before, &mut out)
        .expect("written");
    String::from_utf8(out).expect("text")
}

#[test]
fn folded_stacks_sum_up_and_turn_round() {
    let profile = profile(&[
        (&["main", "a"], 2),
        (&["main", "a;\nb"], 3),
        (&["main", "a"], 5),
        (&["main"], 0),
        (&[], 9),
    ]);
    assert_eq!(profile.total(), 10);
    assert_eq!(
        text(&profile, Format::Folded, None),
        "main;a 7\nmain;a: b 3\n"
    );
    let inverted = profile.inverted();
    assert_eq!(inverted.total(), 10);
    assert_eq!(
        text(&inverted, Format::Folded, None),
        "a: b;main 3\na;main 7\n"
    );
}

#[test]
fn differences_have_both_weights() {
    let before = profile(&[(&["main", "old"], 4), (&["main", "a"], 1)]);
    let now = profile(&[(&["main", "a"], 2)]);
    assert_eq!(
        text(&now, Format::Folded, Some(&before)),
        "main;a 1 2\nmain;old 4 0\n"
    );
    let page = text(&now, Format::Html, Some(&before));
    assert!(page.contains(r#""difference":true"#));
    assert!(
        page.contains(r#"[[null,null,2,5],[0,0,2,5],[1,1,2,1],[2,1,0,4]]"#),
        "{page}"
    );
    for format in [Format::Speedscope, Format::Pprof] {
        let refused = now.write(format, "", Some(&before), &mut Vec::new());
        assert_eq!(
            refused.expect_err("refused").kind(),
            io::ErrorKind::Unsupported
        );
    }
}

#[test]
fn names_cannot_leave_the_page() {
    let profile = profile(&[(&["</script><script>alert(1)"], 1)]);
    let mut out = Vec::new();
    profile
        .write(Format::Html, "<b>&", None, &mut out)
        .expect("written");
    let page = String::from_utf8(out).expect("text");
    assert!(page.contains("<title>&lt;b&gt;&amp;</title>"));
    assert!(!page.contains("<script>alert"));
}

#[test]
fn speedscope_has_frames_once() {
    let file = text(
        &profile(&[(&["main", "a"], 2), (&["main"], 1)]),
        Format::Speedscope,
        None,
    );
    let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
    assert_eq!(file["shared"]["frames"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        file["shared"]["frames"][0],
        serde_json::json!({ "name": "main", "file": "a.cpp", "line": 3 })
    );
    let found = &file["profiles"][0];
    assert_eq!(found["samples"], serde_json::json!([[0], [0, 1]]));
    assert_eq!(found["weights"], serde_json::json!([1, 2]));
    assert_eq!(found["endValue"], 3);
}
