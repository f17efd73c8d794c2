//! Job files: any text gives passes, or an error in one line. The first byte chooses the kind of file.

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "job-files",
    run,
    seeds,
    longest: 4096,
    mutations: 1500,
};

const NAMES: [&str; 3] = ["jobs.txt", "jobs.yaml", "jobs.json"];

const TEXT: &str =
    "# counters\npmc: SQ_WAVES GRBM_COUNT\n pmc:TCC_HIT_sum,TCC_MISS[0]\n\ngpu: 0 1\nrange: 1:2\n";

const YAML: &str = r#"
base: &base {output_format: [csv, "rocpd"], hip_trace: true}
job_replay_mode: application
jobs:
  - <<: *base
    pmc: ["SQ_WAVES", 'GRBM_COUNT'] # one
    kernel_include_regex: ".*_kernel"
    kernel_exclude_regex: "multiply"
    kernel_iteration_range: "[1-2], [3-4]"
  - pmc_groups: [[SQ_WAVES], [GRBM_COUNT]]
    pmc_group_interval: 2
    output_file: >
      out_%pid%
    output_directory: !!str dir
    summary: yes
    summary_groups: ["KERNEL_DISPATCH|HIP_API"]
    summary_output_file: s
    summary_units: usec
    truncate_kernels: true
    collection_period: ["1:2:3", "4:5:6"]
    collection_period_unit: msec
    profile_mpi_ranks: 0-3
    preload: [a.so, b.so]
"#;

const JSON: &str = r#"{"jobs": [
  {"pmc": ["SQ_WAVES", "TCC_HIT\u005f0"], "sys_trace": true, "output_format": ["json", "pftrace"]},
  {"kernel_trace": "true", "kernel_rename": false, "stats": true, "summary_per_domain": null,
   "pmc_groups": [["A"], ["B", "C"]], "collection_period": [{"start_delay": 1, "collection_time": 2, "repeat": 3}],
   "agent_index": "absolute", "log_level": "error", "minimum_output_data": 1.5e2, "d": "/tmp", "x": [[{}]]}
]}"#;

fn seeds() -> Vec<Vec<u8>> {
    [(0u8, TEXT), (1, YAML), (2, JSON), (1, JSON)]
        .map(|(kind, text)| [&[kind], text.as_bytes()].concat())
        .to_vec()
}

fn run(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else {
        return;
    };
    let name = NAMES[usize::from(kind) % NAMES.len()];
    // Reading the file refuses what is no UTF-8.
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match rpd_cli::untrusted::job_file(name, text) {
        Ok(passes) => assert_ne!(passes, 0),
        Err(message) => assert_one_line(&message),
    }
}
