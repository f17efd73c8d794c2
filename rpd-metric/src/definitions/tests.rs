use proptest::prelude::*;

use super::*;

const LIST: &str = "\
rocprofiler-sdk:
  counters-schema-version: 1
  counters:
    - name: CYCLES
      description: cycles
      properties: []
      definitions:
        - architectures:
          - gfx942
          - gfx90a
          expression: reduce(GRBM_GUI_ACTIVE,max)*CU_NUM
    - name: RAW
      description: 'raw: \"one\"'
      definitions:
        - architectures: [gfx90a]
          block: SQ
          event: 4
        - architectures: [gfx908]
          block: SQ
          event: '5'
";

fn wrong(text: &str) -> String {
    Definitions::parse(text).expect_err("an error").to_string()
}

#[test]
fn parse_reads_definitions_in_a_list() {
    let all = Definitions::parse(LIST).expect("definitions");
    assert_eq!(all.form, Form::List);
    let names: Vec<_> = all.on("gfx90a").map(|(c, _)| c.name.as_str()).collect();
    assert_eq!(names, ["CYCLES", "RAW"]);
    let (counter, definition) = all.on("gfx908").next().expect("one");
    assert_eq!(counter.description, "raw: \"one\"");
    assert_eq!(
        definition.source,
        Source::Event {
            block: "SQ".into(),
            event: 5
        }
    );
    assert_eq!(all.on("gfx1100").count(), 0);
}

#[test]
fn definitions_in_a_map_are_read_and_written_as_a_list() {
    let text = "\
CYCLES:
  architectures:
    gfx90a/gfx942:
      expression: reduce(GRBM_GUI_ACTIVE,max)*CU_NUM
    gfx908:
      block: GRBM
      event: 2
      description: another
  description: cycles
";
    let all = Definitions::parse(text).expect("definitions");
    assert_eq!(all.form, Form::Map);
    assert_eq!(
        all.counters[0].definitions[0].architectures,
        ["gfx90a", "gfx942"]
    );
    let again = Definitions::parse(&all.to_yaml()).expect("definitions");
    assert_eq!(again.form, Form::List);
    assert_eq!(again.counters, all.counters);
    let list = Definitions::parse(LIST).expect("definitions");
    assert_eq!(Definitions::parse(&list.to_yaml()), Ok(list));
}

#[test]
fn counters_without_definitions_are_refused_in_either_form() {
    for text in [
        "rocprofiler-sdk:\n  counters-schema-version: 1\n  counters:\n    - {name: X, description: x, definitions: []}\n",
        "X: {description: x, architectures: {}}\n",
    ] {
        let message = wrong(text);
        assert!(message.contains("`X` has no definitions"), "{message}");
    }
}

#[test]
fn definition_errors_take_one_line() {
    let text = "X: {description: x, architectures: {gfx90a: {expression: \"A\\nB: C\"}}}\n";
    let message = wrong(text);
    assert!(message.contains("in `A B: C`"), "{message}");
}

#[test]
fn empty_files_define_no_counters() {
    for text in [
        "",
        "# only a comment\n",
        "rocprofiler-sdk:\n  counters: []\n",
    ] {
        assert_eq!(
            Definitions::parse(text),
            Ok(Definitions::default()),
            "{text:?}"
        );
    }
}

#[test]
fn definition_errors_name_line_and_column() {
    let replaced = |from: &str, to: &str| wrong(&LIST.replacen(from, to, 1));
    assert_eq!(
        replaced("max)*", "mex)*"),
        "line 11, column 23: rocprofiler-sdk.counters[0].definitions[0].expression: in \
         `reduce(GRBM_GUI_ACTIVE,mex)*CU_NUM`: column 24: no operation `mex`: there are min, max, sum and avr"
    );
    assert!(replaced("event: 4", "events: 4").starts_with("line 15, column 11: "));
    assert!(replaced("event: 4", "event: four").contains("line 17, column 18: "));
    assert!(
        replaced("RAW", "CYCLES").starts_with("line 12, column 7: "),
        "{}",
        replaced("RAW", "CYCLES")
    );
    assert!(replaced("RAW", "A-B").starts_with("line 12, column 13: "));
    assert!(replaced("RAW", "reduce").contains("name of a function"));
    assert!(replaced("version: 1", "version: 2").contains("is 2, 1 is known"));
    assert!(replaced("      description: cycles\n", "").contains("missing field `description`"));
    assert!(replaced("block: SQ", "block: [").starts_with("line 1"));
    assert!(wrong("just text").contains("expected counter definitions"));
}

#[test]
fn deep_nesting_and_many_aliases_are_refused() {
    // Building the tree of this takes more than a minute.
    let deep = format!("{}\n{}", LIST, "[".repeat(100_000));
    for text in [
        deep,
        "[".repeat(100_000),
        "{a: ".repeat(30_000),
        "- ".repeat(50_000),
    ] {
        let message = wrong(&text);
        assert!(message.len() < 200, "{message}");
    }
    assert!(wrong(&"[".repeat(100_000)).ends_with("lists and mappings are nested too deeply"));
    let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases += &format!("a{level}: &a{level} [{items}]\n");
    }
    assert!(wrong(&aliases).contains("too many keys"));
}

proptest! {
    #[test]
    fn parsing_definitions_never_panics(text in "\\PC{0,80}", cut in 0..LIST.len()) {
        let _ = Definitions::parse(&text);
        let _ = Definitions::parse(&LIST[..cut]);
    }
}

#[test]
fn definition_errors_show_a_part_of_a_long_expression() {
    let message = |expression: &str| {
        let file = format!(
            "A:\n  architectures:\n    gfx90a:\n      expression: {expression}\n  description: x\n"
        );
        Definitions::parse(&file)
            .expect_err("no expression")
            .message
    };
    let short = format!("{}%", "1+".repeat(20));
    let text = message(&short);
    assert!(
        text.contains(&format!("in `{short}`: column 41: ")),
        "{text}"
    );
    let many = "1+".repeat(100);
    let text = message(&format!("{many}B%{many}1"));
    assert!(text.contains("`...") && text.contains("+B%1+"), "{text}");
    assert!(
        text.contains("...`: column 202: ") && text.len() < 250,
        "{text}"
    );
}
