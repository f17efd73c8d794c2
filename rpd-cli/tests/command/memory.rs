//! Peak memory of steps that work on a recording, which does not grow with its texts.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rpd_core::options::Format;
use rpd_core::session::LoadOptions;
use rpd_core::spool::writer::SpoolDirectory;

#[path = "../../examples/large-recordings/recording.rs"]
mod recording;
#[path = "../../examples/large-recordings/step.rs"]
mod step;

/// Rows of a table in memory, and with them the memory for texts (512 KiB): few, so that a small recording is a long one.
const ROWS: usize = 1 << 12;

/// Bytes of the message of each sixteenth record.
const TEXT: usize = 16 << 10;

/// Records of the smaller recording, with 16 MiB of texts.
const RECORDS: u64 = 1 << 14;

/// The longer recording has so many times as many: 112 MiB more of texts.
const TIMES: u64 = 8;

/// Greatest difference of two peaks in KiB: less than half of the texts that the longer recording has more. Rows of up
/// to a million records are grouped in memory.
const MARGIN: u64 = 48 << 10;

/// The step that a process of this test carries out, its source and the directory of its files, one in a line.
const STEP: &str = "RPD_TEST_MEMORY_STEP";

/// Text before the figures in the output of such a process.
const PEAK: &str = "peak memory in KiB, processor time in ms: ";

#[test]
#[ignore = "a process of `peak_memory_does_not_grow_with_texts`"]
fn step_in_its_own_process() {
    let words = std::env::var(STEP).expect("set by the test");
    let [step, source, directory] = words.lines().collect::<Vec<_>>()[..] else {
        panic!("{words}");
    };
    let options = LoadOptions {
        rows: Some(ROWS),
        ..LoadOptions::default()
    };
    let records = step::carry_out(step, Path::new(source), Path::new(directory), options)
        .unwrap_or_else(|error| panic!("{step}: {error}"));
    assert!(records >= RECORDS);
    let taken = step::Taken::by_this_process();
    println!("{PEAK}{} {}", taken.peak, taken.milliseconds);
}

/// Peak memory of a step in KiB, and its processor time in milliseconds.
fn taken(step: &str, source: &Path, directory: &Path) -> [u64; 2] {
    let words = [source, directory].map(|path| path.to_str().expect("a text"));
    let test = "memory::step_in_its_own_process";
    let output = Command::new(std::env::current_exe().expect("a path"))
        .arg0("rpd")
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(STEP, format!("{step}\n{}\n{}", words[0], words[1]))
        .output()
        .expect("the test starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let found = text.lines().find_map(|line| line.split_once(PEAK));
    let (_, figures) = found.unwrap_or_else(|| panic!("{step}: {text}{errors}"));
    let (peak, time) = figures.split_once(' ').expect("two figures");
    [peak, time].map(|figure| figure.parse().expect("a number"))
}

#[test]
fn peak_memory_does_not_grow_with_texts() {
    let directory = tempfile::tempdir().expect("a directory");
    let peaks = [RECORDS, RECORDS * TIMES].map(|records| {
        let directory = directory.path().join(records.to_string());
        let outputs = directory.join("outputs");
        std::fs::create_dir_all(&outputs).expect("made");
        let spool = SpoolDirectory::create(&directory).expect("made");
        recording::record(&spool, records, Some(TEXT));
        let mut peaks = Vec::new();
        let database = directory.join("recording.db");
        let clear = || {
            std::fs::remove_dir_all(&outputs).expect("removed");
            std::fs::create_dir(&outputs).expect("made");
        };
        // libotf2 collects 128 MiB of definitions before it writes them, more than these recordings have.
        for step in step::all().filter(|step| *step != Format::Otf2.word()) {
            peaks.push((step.to_owned(), taken(step, spool.path(), &outputs)));
            if step == Format::Rocpd.word() {
                let file = format!("{}_results.db", step::PREFIX);
                std::fs::rename(outputs.join(file), &database).expect("moved");
            }
            clear();
        }
        for step in [step::OPEN, Format::Csv.word()] {
            let name = format!("{step} from the database");
            peaks.push((name, taken(step, &database, &outputs)));
            clear();
        }
        peaks
    });
    let [short, long] = peaks;
    for ((step, short), (_, long)) in short.into_iter().zip(long) {
        let ([less, _], [more, time]) = (short, long);
        println!("{step}: {} and {} MiB, {time} ms", less >> 10, more >> 10);
        assert!(more < less + MARGIN, "{step}: {less} and {more} KiB");
    }
}
