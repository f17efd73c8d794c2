//! PC sampling and thread trace of the simulated provider, driven through the ABI as a tool does.
//!
//! `inside.c` is tool and program in one. Its output and the traces that it writes are read here.

use crate::common;

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

fn kernels() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let bundle = root.join("../tests/workloads/kernels/prebuilt/inside.hipfb");
    bundle.to_str().expect("a path").to_owned()
}

/// Output of the program in a mode, with kernel, rounds and workgroups, and the directory in which it ran.
fn output_of(name: &str, kernel: &[&str], variables: &[(&str, &str)]) -> (String, String, PathBuf) {
    let libraries = ["-lrocprofiler-sdk", "-lamdhip64"];
    let (directory, program) = common::build(name, "inside.c", &["-rdynamic"], &libraries);
    let bundle = kernels();
    let mut arguments = vec![bundle.as_str()];
    arguments.extend(kernel);
    let output = Command::new(program)
        .args(arguments)
        .current_dir(&directory)
        .env_remove("ROCP_TOOL_LIBRARIES")
        .env_remove("RPD_SIM_GPUS")
        .env_remove("RPD_SIM_SEED")
        .env("LD_LIBRARY_PATH", &directory)
        .envs(variables.iter().copied())
        .output()
        .expect("the program runs");
    let errors = String::from_utf8(output.stderr).expect("text");
    assert!(output.status.success(), "{}: {errors}", output.status);
    (
        String::from_utf8(output.stdout).expect("text"),
        errors,
        directory,
    )
}

/// The numbers after each call of a function in the output.
fn statuses(said: &str, function: &str) -> Vec<u32> {
    said.lines()
        .filter(|line| line.starts_with(function))
        .filter_map(|line| line.rsplit(' ').next()?.parse().ok())
        .collect()
}

/// Values of a line `what a 1 b 2 ...` by name; some of them are hexadecimal.
fn fields(line: &str) -> HashMap<&str, u64> {
    let words: Vec<&str> = line.split_whitespace().collect();
    words
        .windows(2)
        .filter_map(|pair| {
            let hex = ["hw", "offset", "exec", "at", "bytes"].contains(&pair[0])
                && !line.starts_with("trace");
            let value = u64::from_str_radix(pair[1], if hex { 16 } else { 10 });
            Some((pair[0], value.ok()?))
        })
        .collect()
}

#[test]
fn pc_sampling_is_configured_as_the_reference_says() {
    let variables = [("MODE", "sample")];
    let (said, ..) = output_of("inside-statuses", &["two_phases", "1", "1"], &variables);
    assert_eq!(statuses(&said, "query"), [17, 17, 7, 0, 0]);
    let expected = [17, 7, 2, 3, 12, 19, 37, 19, 1, 37, 0, 15, 1, 16];
    assert_eq!(statuses(&said, "configure"), expected);
    // Counting agents in the context that samples is refused as well.
    let counting = statuses(&said, "rocprofiler_configure_device_counting_service");
    assert_eq!(counting, [0, 12]);
    let configuration = "configuration 40: method 2 unit 3 from 1 to 18446744073709551615 flags 0";
    assert_eq!(
        said.lines().filter(|&line| line == configuration).count(),
        2
    );
}

/// Checks sampling-4 and sampling-17.
#[test]
fn pc_samples_are_of_executed_instructions() {
    let run = |name, seed| {
        let variables = [("MODE", "sample"), ("RPD_SIM_SEED", seed)];
        output_of(name, &["barrier_imbalance", "300", "8"], &variables).0
    };
    let said = run("inside-samples", "1");
    let dispatches: HashMap<u64, HashMap<&str, u64>> = said
        .lines()
        .filter(|line| line.starts_with("dispatch "))
        .map(|line| (fields(line)["dispatch"], fields(line)))
        .collect();
    let objects: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("object "))
        .map(fields)
        .collect();
    assert_eq!((dispatches.len(), objects.len()), (3, 2));
    let mut places: BTreeMap<u64, u64> = BTreeMap::new();
    let mut count = 0;
    for line in said.lines().filter(|line| line.starts_with("sample ")) {
        let sample = fields(line);
        assert_eq!(sample["sample"], 88);
        let dispatch = &dispatches[&sample["dispatch"]];
        assert!(
            (dispatch["from"]..dispatch["to"]).contains(&sample["time"]),
            "{line}"
        );
        assert_eq!(sample["correlation"], dispatch["correlation"]);
        assert_eq!(sample["exec"], u64::MAX);
        assert!(sample["wave"] < 4 && sample["group"] < 8, "{line}");
        // Engines take turns: workgroup n runs on engine n, on its first compute unit.
        assert_eq!(
            (sample["hw"] >> 24 & 31, sample["hw"] >> 19 & 15),
            (sample["group"], 0)
        );
        assert_eq!(sample["hw"] >> 13 & 3, sample["wave"]);
        let object = objects.iter().find(|o| o["object"] == sample["object"]);
        assert!(sample["offset"] < object.expect("a code object")["bytes"]);
        *places.entry(sample["offset"]).or_default() += 1;
        count += 1;
    }
    // 3.5 ms at 10 us, 8 units with 4 of 32 slots; three dispatches.
    assert!(count > 300, "{count} samples");
    // Three of four waves wait three quarters of the time.
    let most = places.values().max().expect("samples");
    assert!(
        (0.48..0.64).contains(&(*most as f64 / f64::from(count))),
        "{places:?}"
    );
    let relative = |text: &str| -> Vec<String> {
        let mut starts: HashMap<u64, u64> = HashMap::new();
        for line in text.lines().filter(|line| line.starts_with("dispatch ")) {
            starts.insert(fields(line)["dispatch"], fields(line)["from"]);
        }
        text.lines()
            .filter(|line| line.starts_with("sample "))
            .map(|line| {
                let sample = fields(line);
                let time = sample["time"].to_string();
                let since = sample["time"] - starts[&sample["dispatch"]];
                line.replace(&time, &since.to_string())
            })
            .collect()
    };
    assert_eq!(relative(&said), relative(&run("inside-same", "1")));
    assert_ne!(relative(&said), relative(&run("inside-other", "2")));
}

/// Tokens of a trace by type, as the format's description has their lengths.
fn tokens(directory: &Path, number: u32) -> (u64, BTreeMap<u8, Vec<u64>>) {
    const LENGTHS: [usize; 16] = [2, 8, 8, 4, 2, 6, 2, 2, 2, 2, 2, 8, 6, 4, 8, 6];
    let bytes = fs::read(directory.join(format!("trace-{number}.att"))).expect("a trace");
    let header = u64::from_le_bytes(*bytes.first_chunk().expect("a header"));
    let (mut at, mut tokens) = (8, BTreeMap::<u8, Vec<u64>>::new());
    while at < bytes.len() {
        let length = LENGTHS[usize::from(bytes[at] & 15)];
        let mut word = [0; 8];
        word[..length].copy_from_slice(&bytes[at..at + length]);
        let list = tokens.entry(bytes[at] & 15).or_default();
        list.push(u64::from_le_bytes(word));
        at += length;
    }
    (header, tokens)
}

/// Checks thread-trace-20 and thread-trace-21.
#[test]
fn thread_trace_has_the_chosen_dispatches() {
    let variables = [("MODE", "dispatch"), ("RPD_SIM_SEED", "1")];
    let (said, _, directory) = output_of(
        "inside-traces",
        &["barrier_imbalance", "3", "208"],
        &variables,
    );
    let trace = statuses(&said, "trace(");
    // The last ones come after the initialisation.
    assert_eq!(trace, [2, 19, 19, 19, 19, 19, 19, 19, 19, 0, 16]);
    assert_eq!(statuses(&said, "trace_device("), [19, 10, 16]);
    let traces: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("trace ") && line.contains(" of agent 1 "))
        .map(fields)
        .collect();
    let places: Vec<_> = traces
        .iter()
        .map(|t| (t["dispatch"], t["engine"]))
        .collect();
    assert_eq!(places, [(1, 0), (1, 1), (3, 0), (3, 1)]);
    let object = said
        .lines()
        .find(|line| line.starts_with("object 1 "))
        .map(fields);
    let object = object.expect("a code object");
    for (number, trace) in traces.iter().enumerate() {
        let (header, tokens) = tokens(&directory, number as u32);
        assert_eq!(header & 0x1fff, 0x11);
        assert_eq!(
            (header >> 13 & 7, header >> 16 & 15, header >> 20 & 31),
            (4, 15, 1)
        );
        assert_eq!(header >> 26 & 63, trace["engine"]);
        // 208 workgroups of four waves on eight engines.
        assert_eq!((tokens[&3].len(), tokens[&6].len()), (104, 104));
        let words: Vec<u64> = tokens[&2].iter().map(|token| token >> 32).collect();
        assert_eq!(words[..2], [0x434f_5200, 524_801]);
        let low = object["at"] & 0xffff_ffff;
        let expected = [
            0x204,
            low,
            0x304,
            object["at"] >> 32,
            0x104,
            object["bytes"],
            0x404,
            0,
        ];
        assert_eq!(words[2..10], expected);
        // Loaded before the trace began.
        assert_eq!(words[10..12], [4, 1 << 2 | 2]);
        let register = |address: u64| {
            let found = tokens[&15]
                .iter()
                .find(|token| *token >> 9 & 127 == address);
            found.expect("a register") >> 16
        };
        let entry = register(0xd) << 40 | register(0xc) << 8;
        assert!((object["at"]..object["at"] + object["bytes"]).contains(&entry));
        assert_eq!((register(7), register(8)), (256, 1));
        // Two workgroups run on the target unit: eight waves with instructions.
        let slots: std::collections::BTreeSet<u64> =
            tokens[&10].iter().map(|token| token >> 5 & 63).collect();
        assert_eq!(slots.len(), 8);
    }
}

/// Checks thread-trace-20.
#[test]
fn device_thread_trace_runs_from_start_to_stop() {
    let variables = [("MODE", "device"), ("RPD_SIM_SEED", "1")];
    let (said, _, directory) = output_of(
        "inside-device",
        &["barrier_imbalance", "3", "208"],
        &variables,
    );
    assert_eq!(statuses(&said, "trace_device("), [19, 0, 0, 16]);
    // An agent writes one trace at a time: the second context conflicts with the first.
    let started = statuses(&said, "rocprofiler_start_context(");
    assert_eq!(started, [0, 12]);
    assert!(statuses(&said, "trace(").ends_with(&[10, 16]));
    let traces: Vec<_> = said
        .lines()
        .filter(|line| line.starts_with("trace ") && line.contains(" of agent 1 "))
        .map(fields)
        .collect();
    let places: Vec<_> = traces
        .iter()
        .map(|t| (t["dispatch"], t["engine"]))
        .collect();
    assert_eq!(places, [(77, 0), (77, 1)]);
    let (_, tokens) = tokens(&directory, 0);
    assert_eq!(tokens[&3].len(), 3 * 104);
    // Code objects that were loaded meanwhile are reported.
    let words: Vec<u64> = tokens[&2].iter().map(|token| token >> 32).collect();
    assert_eq!(words[10..12], [4, 1 << 2]);
}

/// Checks thread-trace-61.
#[test]
fn thread_trace_has_the_chosen_counters() {
    let variables = [("MODE", "counters"), ("RPD_SIM_SEED", "1")];
    let (said, _, directory) =
        output_of("inside-counters", &["two_phases", "3", "208"], &variables);
    assert!(statuses(&said, "trace(").ends_with(&[0, 16]));
    let (_, tokens) = tokens(&directory, 0);
    let of_target: u64 = tokens[&14]
        .iter()
        .filter(|token| *token >> 6 & 15 == 1)
        .map(|token| token >> 12 & 0x1fff)
        .sum();
    let instructions = &tokens[&10];
    let valu = instructions
        .iter()
        .filter(|token| [5, 18, 28].contains(&(*token >> 11 & 31)));
    assert_eq!(of_target, valu.count() as u64);
}

/// Checks thread-trace-56.
#[test]
fn thread_trace_reports_a_full_buffer() {
    let variables = [
        ("MODE", "dispatch"),
        ("SIZE", "0x100000"),
        ("RPD_SIM_SEED", "1"),
    ];
    let (said, errors, _) = output_of(
        "inside-full",
        &["barrier_imbalance", "200", "208"],
        &variables,
    );
    let capacity = ((1 << 20) - 62 * 4096) / 2 / 4096 * 4096;
    let sizes = said
        .lines()
        .filter(|line| line.starts_with("trace ") && line.contains(" of agent 1 "));
    for trace in sizes.map(fields) {
        assert!(trace["bytes"] <= capacity && trace["bytes"] + 8 > capacity);
    }
    let line = format!(
        "rpd-sim: thread trace buffer of shader engine 1 is full ({capacity} bytes): the rest of the trace is lost"
    );
    assert!(errors.lines().any(|said| said == line), "{errors}");
}

/// Checks thread-trace-5.
#[test]
fn thread_traces_are_decoded_by_the_library_that_the_tool_names() {
    let libraries = ["-lrocprofiler-sdk", "-lamdhip64"];
    let (directory, program) =
        common::build("inside-decoder", "inside.c", &["-rdynamic"], &libraries);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/decoder.c");
    for (place, option) in [("right", "-DRIGHT"), ("wrong", "-DWRONG")] {
        fs::create_dir_all(directory.join(place)).expect("a directory");
        let status = Command::new("cc")
            .args([
                "-std=gnu11",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-shared",
                "-fPIC",
                option,
                "-o",
            ])
            .arg(directory.join(place).join("librocprof-trace-decoder.so"))
            .arg(&source)
            .status()
            .expect("a C compiler");
        assert!(status.success(), "the library compiles");
    }
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpd-gfx/testdata/kernels-O3.co");
    let bytes = fs::read(&object).expect("a code object");
    let parsed = rpd_gfx::codeobj::CodeObject::parse(&bytes).expect("a code object");
    let kernel = &parsed.kernels()[0].symbol;
    let code = parsed
        .symbol(kernel.trim_end_matches(".kd"))
        .expect("the kernel's code");
    let (right, wrong) = (directory.join("right"), directory.join("wrong"));
    let arguments = [
        object.to_str().expect("a path"),
        right.to_str().expect("a path"),
    ];
    let address = format!("{:x}", code.value);
    let variables = [
        ("MODE", "decode"),
        ("WRONG", wrong.to_str().expect("a path")),
        ("ADDRESS", address.as_str()),
    ];
    let (said, _) = common::run_loudly(&directory, &program, &arguments, &variables);
    assert_eq!(
        statuses(&said, "rocprofiler_thread_trace_decoder_create"),
        [37, 18, 0]
    );
    assert_eq!(
        statuses(&said, "rocprofiler_thread_trace_decoder_codeobj_load"),
        [19, 1, 0]
    );
    assert_eq!(statuses(&said, "rocprofiler_trace_decode"), [19, 0, 39, 19]);
    assert_eq!(
        statuses(&said, "rocprofiler_thread_trace_decoder_codeobj_unload"),
        [0, 1]
    );
    let decoded: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("decoded "))
        .collect();
    assert_eq!(decoded[0], "decoded type 0 count 0 user me: ");
    assert!(
        decoded[1].starts_with("decoded type 5 count 1 user me: s_"),
        "{decoded:?}"
    );
    assert!(said.lines().any(|line| line == "lost"));
}
