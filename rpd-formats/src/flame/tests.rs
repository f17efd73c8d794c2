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
    let mut profile = Profile::new(&[("calls", Unit::Count)]);
    for (stack, weight) in stacks {
        profile.add(stack.iter().map(|name| frame(name)), &[*weight]);
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
fn folded_profile_sums_up_and_inverts_stacks() {
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
fn folded_difference_has_both_weights() {
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
fn html_page_escapes_names() {
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
fn speedscope_profile_has_each_frame_once() {
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

#[test]
fn firefox_profile_has_a_tree_of_stacks() {
    let mut out = Vec::new();
    profile(&[
        (&["main", "a"], 3),
        (&["main"], 1),
        (&["main", "a", "b"], 2),
    ])
    .write(Format::Firefox, "title", None, &mut out)
    .expect("written");
    let file: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(file["meta"]["preprocessedProfileVersion"], 49);
    let thread = &file["threads"][0];
    assert_eq!(thread["processName"], "title");
    let texts = &thread["stringArray"];
    // Every table has the length that it states.
    for name in [
        "samples",
        "markers",
        "stackTable",
        "frameTable",
        "funcTable",
        "resourceTable",
        "nativeSymbols",
    ] {
        let table = thread[name].as_object().expect("a table");
        for (column, values) in table.iter().filter(|(_, values)| values.is_array()) {
            let length = values.as_array().map(Vec::len);
            assert_eq!(
                length,
                table["length"].as_u64().map(|length| length as usize),
                "{name}.{column}"
            );
        }
    }
    // The stacks of the samples, innermost first, with their weights.
    let samples = &thread["samples"];
    let mut found = Vec::new();
    for index in 0..3 {
        let mut names = Vec::new();
        let mut stack = samples["stack"][index].as_u64();
        while let Some(own) = stack {
            let frame = &thread["stackTable"]["frame"][own as usize];
            let function =
                &thread["frameTable"]["func"][frame.as_u64().expect("a number") as usize];
            let name = &thread["funcTable"]["name"][function.as_u64().expect("a number") as usize];
            names.push(
                texts[name.as_u64().expect("a number") as usize]
                    .as_str()
                    .expect("text")
                    .to_owned(),
            );
            stack = thread["stackTable"]["prefix"][own as usize].as_u64();
        }
        found.push((
            names.join(" "),
            samples["weight"][index].as_f64().expect("a weight"),
        ));
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        found,
        [
            ("a main".to_owned(), 3.0),
            ("b a main".to_owned(), 2.0),
            ("main".to_owned(), 1.0)
        ]
    );
    assert_eq!(thread["stackTable"]["length"], 3);
    assert_eq!(samples["weightType"], "samples");
    let refused = profile(&[]).write(Format::Firefox, "", Some(&profile(&[])), &mut Vec::new());
    assert_eq!(
        refused.map_err(|error| error.kind()),
        Err(std::io::ErrorKind::Unsupported)
    );
}

/// A profile with two kinds of weights; a stack has only the one, another only the other.
fn two_kinds() -> Profile {
    let mut profile = Profile::new(&[("calls", Unit::Count), ("GPU time", Unit::Nanoseconds)]);
    profile.add([frame("main"), frame("copy")], &[3, 0]);
    profile.add([frame("main"), frame("launch")], &[1, 7_000_000]);
    profile.add([frame("main"), frame("graph")], &[0, 5_000_000_000_000]);
    profile
}

#[test]
fn formats_with_one_weight_have_the_first() {
    let folded = text(&two_kinds(), Format::Folded, None);
    assert_eq!(folded, "main;copy 3\nmain;launch 1\n");
}

#[test]
fn formats_with_several_weights_have_all_and_show_the_first() {
    let json = |format| -> serde_json::Value {
        serde_json::from_str(&text(&two_kinds(), format, None)).expect("JSON")
    };
    let speedscope = json(Format::Speedscope);
    assert_eq!(speedscope["activeProfileIndex"], 0);
    let profiles = &speedscope["profiles"];
    assert_eq!(profiles[0]["name"], "calls");
    assert_eq!(profiles[0]["weights"], serde_json::json!([3, 1]));
    assert_eq!(profiles[1]["unit"], "nanoseconds");
    assert_eq!(
        profiles[1]["weights"],
        serde_json::json!([5_000_000_000_000_u64, 7_000_000])
    );
    let firefox = json(Format::Firefox);
    let threads = firefox["threads"].as_array().expect("threads");
    let weights: Vec<_> = threads
        .iter()
        .map(|thread| (&thread["name"], &thread["samples"]["weight"]))
        .collect();
    assert_eq!(
        weights,
        [
            (&"calls".into(), &serde_json::json!([3.0, 1.0])),
            (&"GPU time".into(), &serde_json::json!([5_000_000.0, 7.0]))
        ]
    );
    let page = text(&two_kinds(), Format::Html, None);
    assert!(
        page.contains(r#""nodes":[[null,null,4,0,5000007000000,0],[0,0,4,0,5000007000000,0],"#),
        "{page}"
    );
    let mut out = Vec::new();
    let written = two_kinds().write(Format::Pprof, "", None, &mut out);
    written.expect("written");
    let bytes = unpacked(&out);
    let all = fields(&bytes);
    let count = |wanted| all.iter().filter(|(field, _)| *field == wanted).count();
    assert_eq!((count(1), count(2), count(14)), (2, 3, 1));
    let sample = all.iter().find(|(field, _)| *field == 2);
    let sample = fields(sample.expect("a sample").1.expect_err("a message"));
    let values = sample.iter().filter(|(field, _)| *field == 2).count();
    assert_eq!(values, 2, "{sample:?}");
}

/// What was compressed.
fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut unpacked = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(bytes);
    std::io::Read::read_to_end(&mut decoder, &mut unpacked).expect("gzip");
    unpacked
}

/// Number of a field, and its value: a number, or the bytes of a text or a message.
type Field<'a> = (u64, Result<u64, &'a [u8]>);

/// The fields of a message.
fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    fn number(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let (&byte, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = number(&mut bytes);
        let value = number(&mut bytes);
        found.push(match tag & 7 {
            0 => (tag >> 3, Ok(value)),
            2 => {
                let (content, rest) = bytes.split_at(value as usize);
                bytes = rest;
                (tag >> 3, Err(content))
            }
            other => panic!("wire type {other}"),
        });
    }
    found
}

#[test]
fn pprof_profile_has_samples_locations_functions_and_texts() {
    let mut out = Vec::new();
    profile(&[(&["main", "a"], 300), (&["main"], 1)])
        .write(Format::Pprof, "", None, &mut out)
        .expect("written");
    let bytes = unpacked(&out);
    let all = fields(&bytes);
    let texts: Vec<&[u8]> = all
        .iter()
        .filter(|(field, _)| *field == 6)
        .map(|(_, text)| text.expect_err("a text"))
        .collect();
    assert_eq!(
        texts,
        [&b""[..], b"calls", b"count", b"main", b"a.cpp", b"a"]
    );
    let of = |wanted: u64| -> Vec<Vec<Field<'_>>> {
        let found = all.iter().filter(|(field, _)| *field == wanted);
        found
            .map(|(_, message)| fields(message.expect_err("a message")))
            .collect()
    };
    assert_eq!(of(1), [[(1, Ok(1)), (2, Ok(2))]]);
    // Innermost first.
    assert_eq!(
        of(2),
        [
            vec![(1, Ok(1)), (2, Ok(1))],
            vec![(1, Ok(2)), (1, Ok(1)), (2, Ok(300))]
        ]
    );
    assert_eq!(of(4).len(), 2);
    assert_eq!(of(4)[1][0], (1, Ok(2)));
    assert_eq!(
        fields(of(4)[1][1].1.expect_err("a line")),
        [(1, Ok(2)), (2, Ok(3))]
    );
    assert_eq!(of(5)[1], [(1, Ok(2)), (2, Ok(5)), (3, Ok(5)), (4, Ok(4))]);
}

#[test]
fn profile_by_function_merges_frames_of_different_lines() {
    let frame = |name: &str, line| Frame {
        kind: Kind::Native,
        name: name.to_owned(),
        file: "a.cpp".to_owned(),
        line,
    };
    let mut by_line = Profile::new(&[("calls", Unit::Count)]);
    by_line.add([frame("main", 1), frame("work", 2)], &[3]);
    by_line.add([frame("main", 1), frame("work", 5)], &[4]);
    assert_eq!(by_line.ordered().len(), 2);
    let by_function = by_line.by_function();
    let (main, work) = (frame("main", 0), frame("work", 0));
    assert_eq!(by_function.ordered(), [(vec![&main, &work], &[7][..])]);
}
