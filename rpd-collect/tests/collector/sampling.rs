//! PC samples, and the bytes of the code objects that they are in.

use std::process::Command;

use rpd_spool::format::{
    CodeBytes, CodeContent, PcSample, PcSampling, ProcessTotals, sample_flag, tag,
};
use rpd_spool::{COLLECT_VARIABLE, SPOOL_VARIABLE};

use super::harness::{collector, each_record, note_text, provider};

/// Records of a run about samples.
#[derive(Default)]
struct Sampled {
    printed: String,
    sampling: Vec<PcSampling>,
    samples: Vec<PcSample>,
    contents: Vec<(u64, [u64; 2])>,
    parts: Vec<([u64; 2], u64, u64, Vec<u8>)>,
    totals: Option<ProcessTotals>,
    notes: Vec<String>,
}

fn run(options: &str, words: &[&str]) -> Sampled {
    run_with(options, words, |command| {
        command.env("ROCPROFILER_PC_SAMPLING_BETA_ENABLED", "1");
    })
}

fn run_with(options: &str, words: &[&str], change: impl Fn(&mut Command)) -> Sampled {
    let run = tempfile::tempdir().expect("temporary directory");
    let mut command = Command::new(provider());
    command
        .arg("script")
        .args(words)
        .env(SPOOL_VARIABLE, run.path())
        .env(COLLECT_VARIABLE, options)
        .env("LD_PRELOAD", collector());
    change(&mut command);
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{:?}", output);
    let mut found = Sampled {
        printed: String::from_utf8_lossy(&output.stdout).into_owned(),
        ..Sampled::default()
    };
    each_record(run.path(), |record| match record.header.tag {
        tag::PC_SAMPLE => found.samples.push(record.parse().expect("whole").0),
        tag::PC_SAMPLING => found.sampling.push(record.parse().expect("whole").0),
        tag::TOTALS => found.totals = Some(record.parse().expect("whole").0),
        tag::CODE_CONTENT => {
            let (content, _) = record.parse::<CodeContent>().expect("whole");
            found.contents.push((content.code_object, content.content));
        }
        tag::CODE_BYTES => {
            let (part, tail) = record.parse::<CodeBytes>().expect("whole");
            let bytes = tail[..part.len as usize].to_vec();
            found
                .parts
                .push((part.content, part.size, part.offset, bytes));
        }
        tag::NOTE => found.notes.extend(note_text(record)),
        _ => {}
    });
    found
}

#[test]
fn sampling_puts_every_gpu_with_the_configuration_into_one_buffer() {
    let found = run("pc_sampling=host_trap:time:100", &["samples:2:10:1"]);
    assert_eq!(
        found.printed,
        "sampled 77 method 2 unit 3 interval 100 thread 4\nsampled 78 method 2 unit 3 interval 100 thread 4\n"
    );
    let agents: Vec<u64> = found
        .sampling
        .iter()
        .map(|sampling| sampling.agent)
        .collect();
    assert_eq!(agents, [77, 78]);
    assert_eq!(found.sampling[0].interval, 100);
    assert!(found.notes.is_empty(), "{:?}", found.notes);

    let found = run("pc_sampling=stochastic:cycles:65536", &["samples:3:10:1"]);
    assert_eq!(
        found.printed,
        "sampled 77 method 1 unit 2 interval 65536 thread 4\n"
    );
    assert_eq!(found.samples.len(), 10);
}

#[test]
fn sampling_records_each_field_of_a_sample() {
    let found = run("pc_sampling=host_trap:time:100", &["samples:2:3:8"]);
    let [_, second, _] = &found.samples[..] else {
        panic!("{} samples", found.samples.len());
    };
    assert_eq!(
        (second.code_object, second.offset, second.exec),
        (8, 4, 0xff)
    );
    assert_eq!(
        (second.dispatch, second.correlation, second.region),
        (5, 6, 7)
    );
    assert_eq!(
        (second.workgroup, second.wave, second.flags),
        ([1, 2, 3], 4, 0)
    );
    assert_eq!((second.waves, second.snapshot, second.memory), (0, 0, 0));

    let found = run("pc_sampling=stochastic:cycles:256", &["samples:3:1:8"]);
    let sample = &found.samples[0];
    let flags = sample_flag::STOCHASTIC | sample_flag::ISSUED | sample_flag::MEMORY;
    assert_eq!((sample.flags, sample.class, sample.wave), (flags, 1, 4));
    assert_eq!(
        (sample.waves, sample.snapshot, sample.memory),
        (9, 0x28, 0x41)
    );
    assert_eq!(
        (sample.hardware, sample.exec, sample.workgroup),
        (0x20c2, u64::MAX, [1, 2, 3])
    );
}

/// Checks sampling-3.
#[test]
fn what_is_not_recorded_is_counted() {
    let found = run(
        "pc_sampling=host_trap:time:1",
        &["samples:1:3:0", "samples:7:2:0", "samples:2:5000:1"],
    );
    let totals = found.totals.expect("sums");
    // A flush may come in between, but those that had no room are lost.
    assert_eq!((totals.invalid_samples, totals.unknown_samples), (3, 2));
    assert_eq!(totals.lost_samples + found.samples.len() as u64, 5000);
}

#[test]
fn sampling_delivers_samples_while_the_program_runs() {
    let found = run(
        "pc_sampling=host_trap:time:1",
        &["samples:2:7:1", "flushed"],
    );
    assert!(found.printed.ends_with("left 0\n"), "{}", found.printed);
    assert_eq!(found.samples.len(), 7);
}

#[test]
fn sampling_stops_during_a_pause() {
    let words = [
        "samples:2:1:1",
        "pause",
        "samples:2:10:1",
        "resume",
        "samples:2:1:1",
    ];
    assert_eq!(run("pc_sampling=host_trap:time:1", &words).samples.len(), 2);
}

#[test]
fn sampling_notes_a_provider_that_refuses() {
    let found = run_with(
        "pc_sampling=host_trap:time:1",
        &["samples:2:1:1"],
        |command| {
            command.env_remove("ROCPROFILER_PC_SAMPLING_BETA_ENABLED");
        },
    );
    assert!(found.samples.is_empty());
    assert!(
        found.notes[0]
            .starts_with("program counters of GPU 0 are not sampled: the provider reports:"),
        "{:?}",
        found.notes
    );
    let found = run("pc_sampling=stochastic:cycles:300", &["samples:3:1:1"]);
    assert!(
        found.samples.is_empty() && found.notes.len() == 1,
        "{:?}",
        found.notes
    );
}

#[test]
fn sampling_records_the_bytes_of_code_objects_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("object");
    let long: Vec<u8> = (0..9_000_000_u32).map(|byte| (byte % 251) as u8).collect();
    std::fs::write(&path, &long).expect("written");
    let uri = format!(
        "object:3:file://{}#offset=1000&size=8000000",
        path.display()
    );
    let gone = format!("object:4:file://{}/gone", directory.path().display());
    let words = ["object:1:abcdefghi", "object:2:abcdefghi", &uri, &gone];
    let found = run("pc_sampling=host_trap:time:1", &words);
    let objects: Vec<u64> = found.contents.iter().map(|(object, _)| *object).collect();
    assert_eq!(objects, [1, 2, 3]);
    assert_eq!(found.contents[0].1, found.contents[1].1);
    let bytes = |content: [u64; 2]| -> Vec<u8> {
        let parts = found.parts.iter().filter(|part| part.0 == content);
        parts.flat_map(|part| part.3.clone()).collect()
    };
    assert_eq!(bytes(found.contents[0].1), b"abcdefghi");
    assert!(bytes(found.contents[2].1) == long[1000..8_001_000]);
    assert_eq!(found.parts.len(), 3, "one, and one in two parts");
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("code object 4")),
        "{:?}",
        found.notes
    );
    // Nobody requested them.
    let found = run("kernel=1", &words);
    assert!(found.contents.is_empty() && found.parts.is_empty());
}
