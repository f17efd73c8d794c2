//! Requests of files from debuginfod servers, through their client program, within limits of time and size.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The client of debuginfod servers.
const CLIENT: &str = "debuginfod-find";
/// Variable with the most seconds that a download may take, and the number without it.
const TIME: (&str, u64) = ("DEBUGINFOD_MAXTIME", 120);
/// Variable with the largest file to download, in bytes, and the number without it.
const SIZE: (&str, u64) = ("DEBUGINFOD_MAXSIZE", 4 << 30);
/// Longest path that is read, in bytes.
const LONGEST_PATH: u64 = 1 << 16;

/// The client and its answers.
#[derive(Debug, Default)]
pub(crate) struct Debuginfod {
    /// Whether the servers are not asked any more.
    given_up: bool,
    /// Answers by build id and kind of file.
    answers: HashMap<(String, &'static str), Option<PathBuf>>,
}

/// Reason why the client has no answer.
enum Problem {
    /// The client cannot be run.
    NotRun(io::Error),
    /// The client was ended after so many seconds.
    Late(u64),
    /// The file is larger than so many bytes.
    Large(u64),
}

impl Debuginfod {
    /// Requests a file from the servers. `notes` gets what the user should know.
    pub(crate) fn request(
        &mut self,
        what: &'static str,
        build_id: &str,
        notes: &mut Vec<String>,
    ) -> Option<PathBuf> {
        let key = (build_id.to_owned(), what);
        if let Some(known) = self.answers.get(&key) {
            return known.clone();
        }
        // A server that did not answer once would take its time again for each module.
        if self.given_up {
            return None;
        }
        let found = match find(what, build_id) {
            Ok(found) => found,
            Err(problem) => {
                // A file that is too large says nothing of the next one.
                self.given_up = !matches!(problem, Problem::Large(_));
                notes.push(match problem {
                    Problem::NotRun(error) => format!(
                        "DEBUGINFOD_URLS is set, but {CLIENT} cannot be run ({error}): its servers are not asked; \
                         install the debuginfod client (package debuginfod)"
                    ),
                    Problem::Late(seconds) => format!(
                        "{CLIENT} had no answer within {seconds} s: its servers are not asked any more; {} sets another \
                         number of seconds",
                        TIME.0
                    ),
                    Problem::Large(bytes) => format!(
                        "{CLIENT} {what} {build_id}: the file has more than {bytes} bytes and is not used; {} sets another limit",
                        SIZE.0
                    ),
                });
                None
            }
        };
        self.answers.insert(key, found.clone());
        found
    }
}

/// The number that the user has set, or else the usual one. As for the client itself, 0 sets no limit.
fn limit((variable, usual): (&str, u64)) -> u64 {
    let set = std::env::var(variable).ok();
    match set.and_then(|text| text.trim().parse().ok()) {
        Some(0) => u64::MAX,
        Some(limit) => limit,
        None => usual,
    }
}

fn find(what: &str, build_id: &str) -> Result<Option<PathBuf>, Problem> {
    let (seconds, bytes) = (limit(TIME), limit(SIZE));
    let mut command = Command::new(CLIENT);
    command.args([what, build_id]);
    // The client prints progress, which is not for the user of this program.
    command.stdin(Stdio::null()).stderr(Stdio::null());
    for ((variable, _), limit) in [(TIME, seconds), (SIZE, bytes)] {
        if limit != u64::MAX {
            command.env(variable, limit.to_string());
        }
    }
    let mut client = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(Problem::NotRun)?;
    let output = client.stdout.take();
    let (sender, receiver) = mpsc::channel();
    // What the client has started may keep the pipe open for longer: then the thread is left behind.
    std::thread::spawn(move || {
        let mut path = Vec::new();
        let read = output.map(|output| output.take(LONGEST_PATH).read_to_end(&mut path));
        let _ = sender.send(read.map(|_| path));
    });
    let begin = Instant::now();
    // Later than its own limit.
    let patience = Duration::from_secs(seconds.saturating_add(1));
    let path = receiver.recv_timeout(patience).ok().flatten();
    let status = loop {
        match client.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if begin.elapsed() < patience && path.is_some() => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) | Err(_) => {
                let _ = client.kill();
                let _ = client.wait();
                break None;
            }
        }
    };
    let (Some(path), Some(status)) = (path, status) else {
        return Err(Problem::Late(seconds));
    };
    // The client prints the path of the file in its cache, and a line end.
    let path = path.trim_ascii_end();
    if !status.success() || path.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(OsStr::from_bytes(path));
    match std::fs::metadata(&path) {
        Ok(found) if found.len() > bytes => Err(Problem::Large(bytes)),
        _ => Ok(Some(path)),
    }
}
