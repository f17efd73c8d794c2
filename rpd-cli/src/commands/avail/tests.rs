//! Tests of the arguments, and of the listings of a provider made of tables.

use super::*;
use crate::counters::protocol::Dimension;
use crate::counters::tests::{Tables, counter, derived, provider_counters};

fn parsed(words: &[&str]) -> Result<Arguments, u8> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    match parse::<Arguments>(NAME, &words) {
        Ok(Some(given)) => Ok(given),
        Ok(None) => Err(0),
        Err(error) => Err(crate::failure::status(&error)),
    }
}

/// Checks command-line-286, command-line-289 and command-line-D16: options stand before or after the command.
#[test]
fn avail_parses_its_words_and_refuses_others() {
    assert_eq!(parsed(&["bogus"]).err(), Some(2));
    assert_eq!(parsed(&["list", "--pmc=maybe"]).err(), Some(2));
    for words in [
        &["-d", "3", "pmc-check", "A", "B"][..],
        &["pmc-check", "-d", "3", "A", "B"],
        &["pmc-check", "A", "B", "--device=3"],
    ] {
        let given = parsed(words).expect("understood");
        assert_eq!(given.common.device, Some(3), "{words:?}");
        assert!(matches!(given.command, Some(Action::PmcCheck { names }) if names == ["A", "B"]));
    }
    for flag in ["--spm", "--spm-config"] {
        let given = parsed(&["info", flag]).expect("understood");
        assert!(ListingContent::from_action(&given.command.expect("info")).spm);
    }
    let wanted = |words: &[&str]| {
        ListingContent::from_action(&parsed(words).expect("understood").command.expect("one"))
    };
    assert!(wanted(&["list"]).names);
    let nothing = wanted(&["list", "--pmc=no"]);
    assert!(!nothing.names && !nothing.agents && nothing.sampling.is_none());
    assert_eq!(wanted(&["info", "--pmc", "A", "B"]).only, ["A", "B"]);
    assert_eq!(wanted(&["info", "A"]).only, ["A"]);
    assert!(wanted(&["info"]).agents);
    let agents = wanted(&["list", "--agent", "--pc-sampling"]);
    assert!(agents.agents && !agents.names && agents.sampling == Some(Detail::Gpus));
}

/// Checks command-line-292 and command-line-293.
#[test]
fn avail_check_refuses_malformed_requests_before_a_query() {
    for (words, fragment) in [
        (&[][..], "Provide counter"),
        (&["A:b:c"], "Invalid format"),
        (&["A:foo=1"], "Incorrect input format"),
        (&["A:device=x"], "Incorrect input format"),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let failure = check::requests(&words).expect_err("refused");
        assert_eq!(failure.status, 1);
        assert!(failure.message.contains(fragment), "{}", failure.message);
    }
    let words = ["A:device=0,device=2".to_owned()];
    assert_eq!(
        check::requests(&words).expect("two GPUs"),
        [check::Request {
            name: "A".to_owned(),
            devices: vec![0, 2]
        }]
    );
    let listed = check::requests(&["A,B".to_owned(), "C".to_owned()]).expect("three names");
    let names: Vec<&str> = listed.iter().map(|request| &*request.name).collect();
    assert_eq!(names, ["A", "B", "C"]);
}

fn provider() -> ProviderCounters {
    let mut waves = counter("SQ_WAVES", &[("DIMENSION_INSTANCE", 1)]);
    waves.dimensions.push(Dimension {
        name: "DIMENSION_SHADER_ENGINE".to_owned(),
        size: 8,
    });
    provider_counters(Tables::new(vec![
        (
            "gfx90a",
            vec![
                counter("cu_count", &[]),
                waves,
                counter("SQ_SECRET", &[("DIMENSION_INSTANCE", 1)]),
                derived("TOTAL", "reduce(SQ_WAVES,sum)"),
            ],
            &["SQ_SECRET"],
        ),
        ("gfx1100", Vec::new(), &[]),
    ]))
}

fn shown(words: &[&str]) -> String {
    let given = parsed(words).expect("understood");
    let wanted = ListingContent::from_action(&given.command.expect("a command"));
    text(&mut provider(), &wanted, &given.common).unwrap_or_else(|error| format!("{error:#}"))
}

#[test]
fn avail_prints_listings_of_a_provider() {
    insta::assert_snapshot!(shown(&["list"]));
    insta::assert_snapshot!(shown(&["info", "-d", "0", "--pmc"]));
    insta::assert_snapshot!(shown(&["info", "-d", "0"]));
    insta::assert_snapshot!(shown(&["list", "--pc-sampling"]));
    insta::assert_snapshot!(shown(&["info", "--pc-sampling"]));
    insta::assert_snapshot!(shown(&["list", "--filter", "waves", "--json", "-d", "0"]));
}

#[test]
fn avail_names_counters_and_devices_that_do_not_exist() {
    assert_eq!(
        shown(&["info", "SQ_WAVE"]),
        "avail: Invalid counter name: SQ_WAVE is not a counter of GPU 0 (gfx90a), GPU 1 (gfx1100) (did you mean SQ_WAVES?)"
    );
    assert_eq!(
        shown(&["list", "-d", "7"]),
        "avail: Invalid device id: 7: there is GPU 0 (gfx90a), GPU 1 (gfx1100)"
    );
    assert_eq!(shown(&["list", "--pmc=no"]), "");
}
