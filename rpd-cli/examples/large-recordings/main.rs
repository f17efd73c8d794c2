//! Measures opening and writing of large recordings: `large-recordings [--texts] [RECORDS [DIRECTORY [STEP...]]]` makes a
//! recording in a temporary directory of the directory and carries out every step (or those named) in its own process, from
//! the recording and from the database that is made of it; commands from the database only. `recording:STEP` and
//! `database:STEP` are steps from one of the two. One line per step: records per second, peak memory and processor time. With
//! `--texts` each marker has a message of its own, of 1 KiB.

mod recording;
mod step;

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use rpd_core::options::Format;
use rpd_core::session::LoadOptions;
use rpd_core::spool::writer::SpoolDirectory;
use step::{Outcome, Taken};

/// The name by which a process of this program is the command.
const COMMAND: &str = "rpd";

/// Commands that read a database, and their words; `DB` stands for it and `OUT` for the directory of outputs.
const COMMANDS: [(&str, &[&str]); 11] = [
    (
        "query",
        &[
            "query",
            "DB",
            "SELECT name, COUNT(*), SUM(duration) FROM regions GROUP BY name",
        ],
    ),
    (
        "query all rows",
        &[
            "query",
            "DB",
            "SELECT * FROM regions",
            "-f",
            "csv",
            "-d",
            "OUT",
            "-o",
            "regions",
        ],
    ),
    ("summary", &["summary", "DB"]),
    ("gaps", &["gaps", "DB"]),
    ("breakdown", &["breakdown", "DB"]),
    ("regions", &["regions", "DB"]),
    ("stats", &["stats", "DB"]),
    ("advise", &["advise", "DB"]),
    ("view", &["view", "DB", "--build-only"]),
    ("diff", &["diff", "DB", "DB"]),
    ("merge", &["merge", "-o", "OUT/merged.db", "DB"]),
];

fn main() -> ExitCode {
    if std::env::args().next().as_deref() == Some(COMMAND) {
        let status = rpd_cli::main();
        let Taken { peak, milliseconds } = Taken::by_this_process();
        eprintln!("{TAKEN}{peak} {milliseconds}");
        return status;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("large-recordings: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Text before the peak memory of a command in KiB and its processor time in milliseconds.
const TAKEN: &str = "peak memory in KiB, processor time in ms: ";

/// Runs a command in its own process.
fn run_command(words: &[&str], database: &Path, outputs: &Path) -> Outcome<Taken> {
    let place = |text: &str| -> Outcome<String> {
        let outputs = outputs.to_str().ok_or("the path of outputs is not text")?;
        let database = database
            .to_str()
            .ok_or("the path of the database is not text")?;
        Ok(match text {
            "DB" => database.to_owned(),
            other => other.replacen("OUT", outputs, usize::from(other.starts_with("OUT"))),
        })
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| place(word))
        .collect::<Outcome<_>>()?;
    let output = Command::new(std::env::current_exe()?)
        .arg0(COMMAND)
        .args(words)
        .stdout(Stdio::null())
        .output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let taken = errors.lines().find_map(|line| {
        let (peak, milliseconds) = line.strip_prefix(TAKEN)?.split_once(' ')?;
        Some(Taken {
            peak: peak.parse().ok()?,
            milliseconds: milliseconds.parse().ok()?,
        })
    });
    match taken {
        Some(taken) if output.status.success() => Ok(taken),
        _ => Err(one_line(&errors).into()),
    }
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}

/// Steps that were named on the command line.
struct Wanted(Vec<String>);

impl Wanted {
    fn has(&self, source: &str, step: &str) -> bool {
        let named = |word: &String| {
            word == step
                || word
                    .strip_prefix(source)
                    .and_then(|rest| rest.strip_prefix(':'))
                    == Some(step)
        };
        self.0.is_empty() || self.0.iter().any(named)
    }
}

const RECORDING: &str = "recording";
const DATABASE: &str = "database";

fn measure() -> Outcome {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, step, source, directory] = arguments.as_slice()
        && flag == "--step"
    {
        let begin = Instant::now();
        let (source, directory) = (Path::new(source), Path::new(directory));
        let records = step::carry_out(step, source, directory, LoadOptions::default())?;
        print_figures("", records, begin, Taken::by_this_process());
        return Ok(());
    }
    let has_texts = arguments.first().is_some_and(|word| word == "--texts");
    if has_texts {
        arguments.remove(0);
    }
    let mut arguments = arguments.into_iter();
    let records: u64 = arguments
        .next()
        .map_or(Ok(2_000_000), |text| text.parse())?;
    let parent = arguments.next().map_or(".".into(), PathBuf::from);
    let wanted = Wanted(arguments.collect());
    let directory = tempfile::tempdir_in(parent)?;
    let outputs = directory.path().join("outputs");
    std::fs::create_dir(&outputs)?;
    let spool = SpoolDirectory::create(directory.path())?;
    recording::record(&spool, records, has_texts.then_some(1024));

    let database = directory.path().join("recording.db");
    let commands = COMMANDS.iter().map(|(name, _)| *name);
    let needs_database = step::all()
        .chain(commands)
        .any(|step| wanted.has(DATABASE, step));
    for (name, source) in [(RECORDING, spool.path()), (DATABASE, &database)] {
        for step in step::all() {
            // The database is made of the recording.
            let is_needed = needs_database && name == RECORDING && step == Format::Rocpd.word();
            if !is_needed && !wanted.has(name, step) {
                continue;
            }
            let output = Command::new(std::env::current_exe()?)
                .args(["--step", step])
                .args([source, &outputs])
                .output()?;
            print!(
                "{name}, {step}: {}",
                String::from_utf8_lossy(&output.stdout)
            );
            if !output.status.success() {
                println!(
                    "failed: {}",
                    one_line(&String::from_utf8_lossy(&output.stderr))
                );
            }
            if is_needed {
                let file = format!("{}_results.db", step::PREFIX);
                std::fs::rename(outputs.join(file), &database)?;
            }
            std::fs::remove_dir_all(&outputs)?;
            std::fs::create_dir(&outputs)?;
        }
    }
    for (name, words) in COMMANDS {
        if !wanted.has(DATABASE, name) {
            continue;
        }
        let begin = Instant::now();
        match run_command(words, &database, &outputs) {
            Ok(taken) => print_figures(&format!("{DATABASE}, {name}: "), records, begin, taken),
            Err(error) => println!("{DATABASE}, {name}: failed: {error}"),
        }
        std::fs::remove_dir_all(&outputs)?;
        std::fs::create_dir(&outputs)?;
    }
    Ok(())
}

/// Prints a line of the output: records per second since `begin`, and what was taken.
fn print_figures(name: &str, records: u64, begin: Instant, taken: Taken) {
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{name}{:.2} M records/s, peak {} MiB, {:.1} s of processor time",
        records as f64 / seconds / 1e6,
        taken.peak / 1024,
        taken.milliseconds as f64 / 1000.0,
    );
}
