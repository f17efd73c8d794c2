//! The parent's side of provider queries: starts the child process and limits the time of each reply. A crash, a hang or
//! an unreadable reply becomes an error of one line.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::protocol::{Query, Reply};
use crate::failure::Failure;

/// First command-line argument of the child process.
pub(crate) const CHILD: &str = "__ask-provider";

/// Longest time for one reply. Loading a ROCm installation that is not in the page cache takes seconds.
const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of the end of the child's standard error that are kept for messages.
const KEPT_STDERR: usize = 4096;

/// The child process that answers queries about a provider.
#[derive(Debug)]
pub(crate) struct QueryProcess {
    child: Child,
    queries: Option<ChildStdin>,
    replies: Receiver<String>,
    stderr_end: Arc<Mutex<Vec<u8>>>,
    library: String,
    limit: Duration,
}

impl QueryProcess {
    /// Starts the child for a library. The first query must be [`Query::Open`].
    pub(super) fn start(
        library: &Path,
        environment: &[(&str, OsString)],
    ) -> Result<QueryProcess, Failure> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("rpd").arg(CHILD);
        // The provider would load the user's tools into this process, too.
        for variable in ["ROCP_TOOL_LIBRARIES", "ROCPROFILER_LIBRARY_CTOR"] {
            command.env_remove(variable);
        }
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        QueryProcess::with(command, library, LIMIT)
    }

    fn with(
        mut command: Command,
        library: &Path,
        limit: Duration,
    ) -> Result<QueryProcess, Failure> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Failure::failed(format!(
                    "cannot start a child process to query the provider: {error}"
                ))
            })?;
        let refused = |error: std::io::Error| {
            Failure::failed(format!(
                "cannot start a thread to query the provider: {error} (ulimit -a shows the limits)"
            ))
        };
        let thread = std::thread::Builder::new;
        // Read on a thread of its own, so that waiting for a reply can have a time limit.
        let (sender, replies) = sync_channel(1);
        if let Some(output) = child.stdout.take() {
            let read = move || {
                for line in BufReader::new(output).split(b'\n') {
                    let Ok(line) = line else { break };
                    if sender
                        .send(String::from_utf8_lossy(&line).into_owned())
                        .is_err()
                    {
                        break;
                    }
                }
            };
            thread().spawn(read).map_err(refused)?;
        }
        // Messages are read all the time: a full pipe would stop the child.
        let stderr_end = Arc::new(Mutex::new(Vec::new()));
        if let Some(errors) = child.stderr.take() {
            let kept = Arc::clone(&stderr_end);
            let read = move || keep_last(errors, &kept);
            thread().spawn(read).map_err(refused)?;
        }
        Ok(QueryProcess {
            queries: child.stdin.take(),
            child,
            replies,
            stderr_end,
            library: library.display().to_string(),
            limit,
        })
    }

    /// Sends a query and waits for the reply.
    ///
    /// # Errors
    /// The child failed, or the provider did; one line.
    pub(super) fn send(&mut self, query: &Query) -> Result<Reply, Failure> {
        let mut text = serde_json::to_vec(query)
            .map_err(|error| self.fail(query, &format!("the query cannot be written: {error}")))?;
        text.push(b'\n');
        // If the child has ended, the write fails and the reply is missing, which is handled below.
        let _ = self
            .queries
            .as_mut()
            .map(|queries| queries.write_all(&text));
        match self.replies.recv_timeout(self.limit) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(Reply::Failed(text)) => Err(self.fail(query, &text)),
                Ok(answer) => Ok(answer),
                Err(_) => {
                    let shown: String = line.chars().take(80).collect();
                    Err(self.fail(query, &format!("the answer is not understood: {shown:?}")))
                }
            },
            Err(RecvTimeoutError::Timeout) => {
                let seconds = self.limit.as_secs_f32();
                Err(self.fail(query, &format!("no answer within {seconds} s")))
            }
            Err(RecvTimeoutError::Disconnected) => {
                let exit = self.describe_exit();
                Err(self.fail(query, &exit))
            }
        }
    }

    /// The error for a reply of another kind than the query's.
    pub(super) fn unexpected(&self, query: &Query) -> Failure {
        self.fail(query, "the answer is to another query")
    }

    fn fail(&self, query: &Query, what: &str) -> Failure {
        Failure::failed(format!(
            "asking the GPU provider ({}) failed while {}: {}{}",
            self.library,
            query.activity(),
            what.replace('\n', " "),
            self.last_stderr_line()
        ))
    }

    /// End of the child in words, for messages. Called after its standard output was closed.
    fn describe_exit(&mut self) -> String {
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

    /// The last line that the child wrote to standard error, as an addition to a message; empty without one.
    fn last_stderr_line(&self) -> String {
        let end = self
            .stderr_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&end);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!(" (standard error: {})", line.trim()),
            None => String::new(),
        }
    }
}

impl Drop for QueryProcess {
    fn drop(&mut self) {
        drop(self.queries.take());
        // The child exits at the end of its input; one that hangs is killed.
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
        let excess = kept.len().saturating_sub(KEPT_STDERR);
        kept.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query_script(script: &str) -> Result<Reply, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let limit = Duration::from_millis(400);
        let mut process =
            QueryProcess::with(command, Path::new("/rocm/sdk.so"), limit).expect("a shell starts");
        process
            .send(&Query::Counters { agent: 1 })
            .map_err(|failure| failure.message)
    }

    #[test]
    fn query_process_parses_a_reply() {
        assert_eq!(
            query_script("read query; echo '{\"counters\":[]}'"),
            Ok(Reply::Counters(Vec::new()))
        );
    }

    #[test]
    fn query_process_reports_failures_of_the_child_in_one_line() {
        let prefix = "asking the GPU provider (/rocm/sdk.so) failed while listing its counters: ";
        for (script, expected) in [
            ("read q; kill -SEGV $$", "it crashed (SIGSEGV)"),
            (
                "read q; echo 'no such file' >&2; sleep 0.1; exit 3",
                "it ended with status 3 and no answer (standard error: no such file)",
            ),
            (
                "read q; echo Segmentation fault",
                "the answer is not understood: \"Segmentation fault\"",
            ),
            ("read q; exec sleep 30", "no answer within 0.4 s"),
            ("read q; echo '{\"failed\":\"no way\"}'", "no way"),
        ] {
            let message = query_script(script).expect_err(script);
            assert_eq!(message, format!("{prefix}{expected}"));
        }
    }

    #[test]
    fn query_process_keeps_the_end_of_standard_error() {
        let kept = Mutex::new(Vec::new());
        let text = "x".repeat(3 * KEPT_STDERR) + "end";
        keep_last(text.as_bytes(), &kept);
        let kept = kept.into_inner().expect("not poisoned");
        assert_eq!(kept.len(), KEPT_STDERR);
        assert!(kept.ends_with(b"end"));
    }
}
