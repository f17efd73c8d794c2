//! rpd's side: a child that is asked, with a time limit. A crash, a hang or garbage becomes one line.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::wire::{Answer, Question};
use crate::failure::Failure;

/// First word of the command line that makes rpd the child.
pub(crate) const CHILD: &str = "__ask-provider";

/// How long one answer may take. Loading a cold ROCm installation takes seconds.
const LIMIT: Duration = Duration::from_secs(60);
/// The last words of the child that are kept.
const LAST_WORDS: usize = 4096;

/// A child that answers.
#[derive(Debug)]
pub(crate) struct Inquiry {
    child: Child,
    questions: Option<ChildStdin>,
    answers: Receiver<String>,
    last_words: Arc<Mutex<Vec<u8>>>,
    library: String,
    limit: Duration,
}

impl Inquiry {
    /// Starts the child for a library, which a first question must open.
    pub(super) fn start(
        library: &Path,
        environment: &[(&str, OsString)],
    ) -> Result<Inquiry, Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("rpd").arg(CHILD);
        for variable in ["ROCP_TOOL_LIBRARIES", "ROCPROFILER_LIBRARY_CTOR"] {
            command.env_remove(variable);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        Inquiry::with(command, library, LIMIT)
    }

    fn with(mut command: Command, library: &Path, limit: Duration) -> Result<Inquiry, Failure> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::failed(format!("cannot start a child to ask the provider: {error}"))
            })?;
        let (sender, answers) = sync_channel(1);
        if let Some(output) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(output).split(b'\n') {
                    let Ok(line) = line else { break };
                    if sender
                        .send(String::from_utf8_lossy(&line).into_owned())
                        .is_err()
                    {
                        break;
                    }
                }
            });
        }
        let last_words = Arc::new(Mutex::new(Vec::new()));
        if let Some(errors) = child.stderr.take() {
            let kept = Arc::clone(&last_words);
            std::thread::spawn(move || keep_last(errors, &kept));
        }
        Ok(Inquiry {
            questions: child.stdin.take(),
            child,
            answers,
            last_words,
            library: library.display().to_string(),
            limit,
        })
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// One line that says what happened to the child, or what it could not do.
    pub(super) fn ask(&mut self, question: &Question) -> Result<Answer, Failure> {
        let mut text = serde_json::to_vec(question)
            .map_err(|error| self.fail(question, &format!("it cannot be asked: {error}")))?;
        text.push(b'\n');
        // If it is gone, there will be no answer, which is looked into below.
        let _ = self
            .questions
            .as_mut()
            .map(|questions| questions.write_all(&text));
        match self.answers.recv_timeout(self.limit) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Answer::Failed(text)) => Err(self.fail(question, &text)),
                Ok(answer) => Ok(answer),
                Err(_) => {
                    let shown: String = line.chars().take(80).collect();
                    Err(self.fail(
                        question,
                        &format!("the answer is not understood: {shown:?}"),
                    ))
                }
            },
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.limit.as_secs_f32();
                Err(self.fail(question, &format!("no answer within {seconds} s")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let ending = self.ending();
                Err(self.fail(question, &ending))
            }
        }
    }

    /// An answer of another kind than the question's.
    pub(super) fn unexpected(&self, question: &Question) -> Failure {
        self.fail(question, "the answer is to another question")
    }

    fn fail(&self, question: &Question, what: &str) -> Failure {
        Failure::failed(format!(
            "asking the GPU provider ({}) failed while {}: {}{}",
            self.library,
            question.doing(),
            what.replace('\n', " "),
            self.said()
        ))
    }

    /// How the child ended, once its output is closed.
    fn ending(&mut self) -> String {
        let end = Instant::now() + Duration::from_secs(2);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return described(status),
                Ok(None) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return "it stopped answering".to_owned(),
            }
        }
    }

    /// The last line that the child wrote to standard error.
    fn said(&self) -> String {
        let words = self
            .last_words
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&words);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!(" (it said: {})", line.trim()),
            None => String::new(),
        }
    }
}

impl Drop for Inquiry {
    fn drop(&mut self) {
        drop(self.questions.take());
        // It ends by itself when nothing more is asked; one that hangs is ended.
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn described(status: ExitStatus) -> String {
    match status.signal() {
        Some(signal) => {
            let name = Signal::try_from(signal)
                .map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
            format!("it crashed ({name})")
        }
        None => format!(
            "it ended with status {} and no answer",
            status.code().unwrap_or_default()
        ),
    }
}

fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 1024];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&buffer[..count]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str) -> Result<Answer, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let limit = Duration::from_millis(400);
        let mut inquiry =
            Inquiry::with(command, Path::new("/rocm/sdk.so"), limit).expect("a shell starts");
        inquiry
            .ask(&Question::Counters { agent: 1 })
            .map_err(|failure| failure.message)
    }

    #[test]
    fn an_answer_is_an_answer() {
        assert_eq!(
            asked("read question; echo '{\"counters\":[]}'"),
            Ok(Answer::Counters(Vec::new()))
        );
    }

    #[test]
    fn what_goes_wrong_is_one_line_that_says_what() {
        let prefix = "asking the GPU provider (/rocm/sdk.so) failed while listing its counters: ";
        for (script, expected) in [
            ("read q; kill -SEGV $$", "it crashed (SIGSEGV)"),
            (
                "read q; echo 'no such file' >&2; sleep 0.1; exit 3",
                "it ended with status 3 and no answer (it said: no such file)",
            ),
            (
                "read q; echo Segmentation fault",
                "the answer is not understood: \"Segmentation fault\"",
            ),
            ("read q; exec sleep 30", "no answer within 0.4 s"),
            ("read q; echo '{\"failed\":\"no way\"}'", "no way"),
        ] {
            let message = asked(script).expect_err(script);
            assert_eq!(message, format!("{prefix}{expected}"));
        }
    }

    #[test]
    fn only_the_last_words_are_kept() {
        let kept = Mutex::new(Vec::new());
        let text = "x".repeat(3 * LAST_WORDS) + "end";
        keep_last(text.as_bytes(), &kept);
        let kept = kept.into_inner().expect("not poisoned");
        assert_eq!(kept.len(), LAST_WORDS);
        assert!(kept.ends_with(b"end"));
    }
}
