//! Rules on small programs that are made to deserve them, and on their clean twins.

mod counted;
mod waits;

use super::*;
use crate::examples::{Example, g1, us};
use crate::records::Memory;

fn judged(memory: &Memory) -> Answer {
    answer(memory, &Rules::built_in(), &Options::default())
}

/// Ids of the rules that fired, the most serious first, without notes.
fn fired(memory: &Memory) -> Vec<String> {
    let answer = judged(memory);
    let section = answer.section("findings").expect("findings");
    let rows = 0..section.rows.len();
    let serious = rows.filter(|row| {
        let severity = section.get(*row, "severity").and_then(Value::text);
        matches!(severity, Some("high" | "medium"))
    });
    serious
        .map(|row| {
            section
                .get(row, "rule")
                .and_then(Value::text)
                .expect("an id")
                .to_owned()
        })
        .collect()
}

/// A program that feeds its GPU: kernels of 100 us behind one another, launched ahead.
fn clean(iterations: u64) -> Example {
    let mut example = Example::new();
    for number in 0..iterations {
        let begin = number * 100;
        let call = begin.saturating_sub(200);
        example.launched(
            "hipLaunchKernel",
            (call, call + 5),
            "K",
            begin + 10,
            begin + 109,
        );
        example.last_fills_gpu();
    }
    example
}

// answers-48
#[test]
fn program_that_feeds_its_gpu_has_no_finding() {
    assert_eq!(fired(&clean(400).done()), Vec::<String>::new());
}

#[test]
fn program_that_prepares_work_between_kernels_starves_the_gpu() {
    let mut example = clean(0);
    for number in 0..40 {
        let begin = number * 10_000;
        example.launched(
            "hipLaunchKernel",
            (begin, begin + 5),
            "K",
            begin + 10,
            begin + 2_000,
        );
        example.last_fills_gpu();
    }
    let memory = example.done();
    assert_eq!(fired(&memory)[0], "gpu-starved");
    let answer = judged(&memory);
    let evidence = answer.section("evidence").expect("evidence");
    let rows = 0..evidence.rows.len();
    let keys = rows.filter_map(|row| evidence.get(row, "record").and_then(Value::text));
    assert!(
        keys.into_iter()
            .any(|key| key.starts_with("gap|0000002a|gpu:0|"))
    );
}

#[test]
fn program_of_short_kernels_is_launch_bound() {
    // A thousand launches of one kernel are told from those of many.
    let found = fired(&crate::examples::g2().done());
    assert_eq!(found, ["tiny-kernels"]);
    let mut example = Example::new();
    for number in 0..400 {
        let begin = number * 8;
        let name = format!("K{}", number * number % 23);
        let call = (begin, begin + 8);
        example.launched("hipLaunchKernel", call, &name, begin + 10, begin + 13);
    }
    assert_eq!(fired(&example.done())[0], "launch-bound");
}

#[test]
fn program_that_waits_in_every_iteration_is_told_so() {
    let mut example = Example::new();
    for number in 0..60 {
        let begin = number * 200;
        example.launched(
            "hipLaunchKernel",
            (begin, begin + 5),
            "A",
            begin + 10,
            begin + 90,
        );
        example.last_fills_gpu();
        example.call("hipDeviceSynchronize", begin + 6, begin + 190);
    }
    let found = fired(&example.done());
    assert!(found.contains(&"sync-in-loop".to_owned()), "{found:?}");
}

#[test]
fn copies_between_kernels_are_exposed() {
    let mut example = Example::new();
    for number in 0..50_u64 {
        let begin = number * 200;
        example.launched(
            "hipLaunchKernel",
            (begin.saturating_sub(150), begin),
            "A",
            begin + 10,
            begin + 100,
        );
        example.last_fills_gpu();
        let call = begin.saturating_sub(140);
        example.launched(
            "hipMemcpyAsync",
            (call, call + 2),
            "MEMORY_COPY_HOST_TO_DEVICE",
            begin + 101,
            begin + 205,
        );
        example.memory().ops.last_mut().expect("a copy").bytes = 4 << 20;
    }
    assert_eq!(fired(&example.done())[0], "copy-exposed");
}

// answers-49
#[test]
fn rules_without_data_are_not_judged() {
    let mut example = g1();
    example.forget_calls();
    example.memory().facts.recorded.calls = false;
    let answer = judged(&example.done());
    let section = answer.section("not_judged").expect("a section");
    let record = |rule: &str| {
        let is_it = |row: &usize| section.get(*row, "rule") == Some(&rule.into());
        let row = (0..section.rows.len()).find(is_it)?;
        section.get(row, "record").cloned()
    };
    assert_eq!(record("gpu-starved"), Some("--hip-trace".into()));
    assert_eq!(
        record("lds-conflicts"),
        Some("--pmc auto:GRBM_GUI_ACTIVE,SQ_LDS_BANK_CONFLICT,SQ_LDS_IDX_ACTIVE".into())
    );
    assert_eq!(
        record("wait-memory"),
        Some("--pc-sampling-beta-enabled".into())
    );
    assert_eq!(record("probe-effect"), Some(Value::Null));
    assert_eq!(record("copy-exposed"), None);
}

// answers-50
#[test]
fn thresholds_are_set_by_rule_and_name() {
    let mut rules = Rules::built_in();
    rules.set("tail.tail_loss=0.5").expect("a threshold");
    let tail = rules
        .all()
        .iter()
        .find(|rule| rule.id() == "tail")
        .expect("a rule");
    assert_eq!(tail.thresholds_text().as_deref(), Some("tail_loss=0.5"));
    for wrong in [
        "tail.tail_loss",
        "tail.other=1",
        "nothing.share=1",
        "tail.tail_loss=x",
    ] {
        assert!(rules.set(wrong).is_err(), "{wrong}");
    }
    assert!(rules.choose(&["nothing".to_owned()], &[]).is_err());
    rules
        .choose(
            &["tail".to_owned(), "spills".to_owned()],
            &["spills".to_owned()],
        )
        .expect("rules");
    assert_eq!(rules.all().len(), 1);
}

// answers-51
#[test]
fn mistake_in_a_file_of_rules_has_a_line_and_a_column() {
    let file = |when: &str| {
        format!(
            "[[rule]]\nid = \"a\"\ntitle = \"t\"\nover = \"gpu\"\nwhen = \"{when}\"\ngain = \"0\"\nfinding = \"f\"\nadvice = \"a\"\n\
             sure = \"measured\"\n"
        )
    };
    let mut rules = Rules::built_in();
    let error = rules
        .add(&file("1 < unknown_figure"))
        .expect_err("unknown")
        .to_string();
    assert_eq!(error, "line 5, column 13: gpu has no figure unknown_figure");
    let error = rules.add(&file("1 <")).expect_err("cut").to_string();
    assert_eq!(error, "line 5, column 12: expected a value");
    assert!(rules.add("[[rule]]\nid = 3\n").is_err());
    let count = rules.all().len();
    rules.add(&file("ops > 1")).expect("a rule");
    assert_eq!(rules.all().len(), count + 1);
}

// answers-53
#[test]
fn gain_is_never_above_the_window() {
    let mut rules = Rules::built_in();
    rules.choose(&["spills".to_owned()], &[]).expect("a rule");
    let text = "[[rule]]\nid = \"huge\"\ntitle = \"t\"\nover = \"gpu\"\nwhen = \"1\"\ngain = \"1000 * window_ns\"\nfinding = \"f\"\n\
                advice = \"a\"\nsure = \"measured\"\n";
    rules.add(text).expect("a rule");
    let found = answer(&g1().done(), &rules, &Options::default());
    assert_eq!(found.sections[0].get(0, "gain_ns"), Some(&us(540).into()));
}

// answers-54
#[test]
fn asynchronous_copies_of_pageable_memory_are_told_from_pinned_ones() {
    use crate::records::Allocation;
    for is_pinned in [false, true] {
        let mut example = clean(60);
        example.memory().facts.recorded.allocations = true;
        example.memory().allocations.push(Allocation {
            start: 0,
            end: 1,
            process: 0,
            address: 0x1000,
            bytes: 0x1000,
            is_free: false,
            is_host: true,
            is_of_runtime: false,
        });
        for number in 0..20 {
            let begin = 50 + number * 200;
            example.launched(
                "hipMemcpyAsync",
                (begin, begin + 100),
                "MEMORY_COPY_HOST_TO_DEVICE",
                begin + 2,
                begin + 98,
            );
            let op = example.memory().ops.last_mut().expect("a copy");
            op.bytes = 1 << 20;
            op.host_address = if is_pinned { 0x1800 } else { 0x9000 };
        }
        let found = fired(&example.done());
        assert_eq!(
            found.contains(&"pageable-async".to_owned()),
            !is_pinned,
            "{found:?}"
        );
    }
}

#[test]
fn every_rule_has_a_place_in_the_catalogue() {
    let rules = Rules::built_in();
    assert_eq!(rules.all().len(), 57);
    for rule in rules.all() {
        for needs in rule.needs() {
            let is_known = RECORDING.iter().any(|known| known.0 == needs)
                || ["cost", "link_peaks"].contains(&needs.as_str());
            assert!(is_known, "{}: {needs}", rule.id());
        }
        for other in rule.unless() {
            let is_known = rules.all().iter().any(|known| known.id() == other);
            assert!(is_known && other != rule.id(), "{}: {other}", rule.id());
        }
    }
}

#[test]
fn finding_is_left_out_where_a_more_specific_one_has_half_of_its_gain() {
    let rule = |id: &str, gain: u32, unless: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\ntitle = \"t\"\nover = \"gpu\"\nwhen = \"1\"\ngain = \"{gain}\"\nfinding = \"f\"\n\
             advice = \"a\"\nsure = \"measured\"\nunless = [{unless}]\n"
        )
    };
    let findings = |specific: u32| {
        let mut rules = Rules::built_in();
        let file = rule("general", 1_000, "\"specific\"") + &rule("specific", specific, "");
        rules.add(&file).expect("rules");
        let ids = ["general", "specific"].map(str::to_owned);
        rules.choose(&ids, &[]).expect("rules");
        let answer = answer(&g1().done(), &rules, &Options::default());
        let counts = answer.section("judged").expect("counts");
        let of = |column: &str| counts.get(0, column).and_then(Value::number);
        (of("findings"), of("explained"), of("silent"))
    };
    assert_eq!(findings(500), (Some(1.0), Some(1.0), Some(0.0)));
    assert_eq!(findings(499), (Some(2.0), Some(0.0), Some(0.0)));
}
