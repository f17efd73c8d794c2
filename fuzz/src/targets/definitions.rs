//! Counter definition files: any text is accepted, and can then be written and read again, or gives an error in one
//! line.

use rpd_metric::Definitions;

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "definitions",
    run,
    seeds,
    longest: 4096,
    mutations: 1500,
};

const LIST: &str = "\
rocprofiler-sdk:
  counters-schema-version: 1
  counters:
    - name: BUSY
      description: 'cycles: \"busy\"'
      properties: []
      definitions:
        - architectures:
          - gfx942
          - gfx90a
          expression: 100*reduce(GRBM_GUI_ACTIVE,max)/reduce(select(GRBM_COUNT,[DIMENSION_XCC=[0:1]]),max)
        - architectures: [gfx908]
          block: SQ
          event: '5'
          description: another
    - name: WAVES
      description: >
        folded text
      definitions:
        - {architectures: [gfx90a], block: SQ, event: 4}
    - name: HALF
      description: \"\\u00f6\"
      definitions: [{architectures: [gfx90a], expression: BUSY*0.5+accumulate(SQ_LEVEL_WAVES,HIGH_RES)}]
";

const MAP: &str = "\
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

fn seeds() -> Vec<Vec<u8>> {
    [
        LIST,
        MAP,
        "rocprofiler-sdk: {counters-schema-version: 1, counters: []}\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match Definitions::parse(text) {
        Ok(definitions) => {
            for counter in &definitions.counters {
                for definition in &counter.definitions {
                    for architecture in &definition.architectures {
                        let mut on = definitions.on(architecture);
                        assert!(on.any(|(found, _)| found.name == counter.name));
                    }
                }
            }
            let written = definitions.to_yaml();
            let again = Definitions::parse(&written).expect("what was written can be read");
            assert_eq!(again.counters, definitions.counters, "{written}");
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
    match rpd_cli::untrusted::counter_definitions(text) {
        Ok(text) => {
            Definitions::parse(&text).expect("what the provider is given can be read");
        }
        Err(message) => assert_one_line(&message),
    }
}
