//! The destination of the one file that a command makes: the one place that decides how it is written.
//!
//! A new or regular file is written under a temporary name beside it, and renamed when it is complete. Of a link the file that
//! it leads to is made. A device, a pipe or a terminal is written as a stream, and `-` is standard output. What the command
//! reads is refused.

use std::ffi::OsString;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::fstat;
use rpd_core::text::foreign;

use crate::WriteError;
use crate::file::PendingFile;

/// Symbolic links that are followed, as the kernel does.
const MOST_LINKS: usize = 40;
/// Longest wait for a program that reads a pipe.
const PATIENCE: Duration = Duration::from_secs(30);
/// Ends of the names of the files beside a database that belong to it.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Destination of the one file that a command makes.
#[derive(Debug)]
pub struct Destination {
    /// The path that the user gave.
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    StandardOutput,
    StandardError,
    /// A device or a pipe, which is opened when there is something to write.
    Stream,
    /// A new or regular file by its path without links.
    File(PathBuf),
}

/// Reason why a destination is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The command reads the file.
    #[error("{} is an input too; give the output another name", .0.display())]
    IsInput(PathBuf),
    /// The command reads the directory that the file is or would be in.
    #[error("{} is in {}, which is an input; give the output another place", output.display(), input.display())]
    IsInInput {
        /// Path of the destination.
        output: PathBuf,
        /// Path of the directory that is an input.
        input: PathBuf,
    },
    /// The path names a directory.
    #[error("cannot write {}: it is a directory; name a file in it", .0.display())]
    IsDirectory(PathBuf),
    /// The path names a socket.
    #[error("cannot write {}: it is a socket; name a file or a pipe", .0.display())]
    IsSocket(PathBuf),
    /// The path cannot be followed.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// Path of the destination.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Number of the device and of the file on it.
fn identity(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Whether an open file is the file with the metadata `found`.
fn is_open_as(descriptor: impl AsFd, found: &Metadata) -> bool {
    fstat(descriptor).is_ok_and(|open| (open.st_dev, open.st_ino) == identity(found))
}

impl Destination {
    /// Standard output as the destination.
    pub fn standard_output() -> Destination {
        Destination {
            path: PathBuf::from("-"),
            kind: Kind::StandardOutput,
        }
    }

    /// The destination that the user names with `path`. `inputs` are the files that the command reads, and the directories all of
    /// which it reads (a capture, the recording of a run).
    ///
    /// # Errors
    /// When it is an input or lies in one, or when nothing can be written there.
    pub fn named<P: AsRef<Path>>(
        path: &Path,
        inputs: impl IntoIterator<Item = P>,
    ) -> Result<Destination, Refusal> {
        if path == Path::new("-") {
            return Ok(Destination::standard_output());
        }
        let failed = |source| Refusal::Io {
            path: path.to_owned(),
            source,
        };
        let found = match std::fs::metadata(path) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let target = match &found {
            Some(found) if is_stream(found.file_type()) => None,
            _ => Some(followed(path).map_err(failed)?),
        };
        for input in inputs {
            check(path, found.as_ref(), target.as_deref(), input.as_ref())?;
        }
        let kind = match (found, target) {
            (Some(found), _) if found.is_dir() => {
                return Err(Refusal::IsDirectory(path.to_owned()));
            }
            (Some(found), _) if found.file_type().is_socket() => {
                return Err(Refusal::IsSocket(path.to_owned()));
            }
            // `/dev/stdout`, and a file that the shell has opened: it may hold what others have written.
            (Some(found), _) if is_open_as(io::stdout(), &found) => Kind::StandardOutput,
            (Some(found), _) if is_open_as(io::stderr(), &found) => Kind::StandardError,
            (_, Some(target)) => Kind::File(target),
            (_, None) => Kind::Stream,
        };
        Ok(Destination {
            path: path.to_owned(),
            kind,
        })
    }

    /// The path, as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the user gave no other destination than standard output, so that there is no file to report.
    pub fn is_standard_output(&self) -> bool {
        self.kind == Kind::StandardOutput
    }

    /// The file by its path without links; `None` for a stream.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.kind {
            Kind::File(target) => Some(target),
            Kind::StandardOutput | Kind::StandardError | Kind::Stream => None,
        }
    }

    /// Writes the output with `write`. On a terminal, control characters in it are shown as escapes. That the reader of a stream
    /// has closed it is no error.
    ///
    /// # Errors
    /// The error of `write`; when the output itself cannot be written, the error that names it, whatever `write` made of it.
    pub fn write<E: From<WriteError>>(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.file().is_none() {
            return self.write_stream(write);
        }
        let mut file = PendingFile::to(self)?;
        let path = file.path().to_owned();
        let mut out = Output::new(BufWriter::new(file.file()));
        let written = write(&mut out);
        let failed = out.end();
        if let Some(source) = failed {
            return Err(E::from(WriteError::Io { path, source }));
        }
        drop(out);
        written?;
        file.finish()?;
        Ok(())
    }

    fn write_stream<E: From<WriteError>>(
        self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut stream = self.open_stream()?;
        let mut out = Output::new(BufWriter::new(&mut *stream));
        let written = write(&mut out);
        match out.end() {
            None => written,
            Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Some(source) => Err(E::from(self.error(source))),
        }
    }

    /// Opens a device or pipe for writing.
    pub(crate) fn open_stream(&self) -> Result<Box<dyn Write>, WriteError> {
        Ok(match self.kind {
            Kind::StandardOutput => {
                let out = io::stdout().lock();
                for_terminal(out.is_terminal(), out)
            }
            Kind::StandardError => {
                let out = io::stderr().lock();
                for_terminal(out.is_terminal(), out)
            }
            Kind::Stream | Kind::File(_) => {
                let file = open(&self.path).map_err(|source| self.error(source))?;
                for_terminal(file.is_terminal(), file)
            }
        })
    }

    fn error(&self, source: io::Error) -> WriteError {
        let path = match self.kind {
            Kind::StandardOutput => PathBuf::from("standard output"),
            Kind::StandardError => PathBuf::from("standard error"),
            Kind::Stream | Kind::File(_) => self.path.clone(),
        };
        WriteError::Io { path, source }
    }
}

/// Whether a path names standard output, standard error, a device or a pipe, to whose name no ending is added.
pub fn is_stream_path(path: &Path) -> bool {
    let is_written_to = |found: Metadata| {
        is_stream(found.file_type())
            || is_open_as(io::stdout(), &found)
            || is_open_as(io::stderr(), &found)
    };
    path == Path::new("-") || std::fs::metadata(path).is_ok_and(is_written_to)
}

/// Whether files of this type are written as a stream.
fn is_stream(kind: FileType) -> bool {
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}

/// The path without links, of a file that need not exist.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..MOST_LINKS {
        let Some(name) = path.file_name().map(OsString::from) else {
            return path.canonicalize();
        };
        let parent = resolved(path.parent().unwrap_or(Path::new("/")))?;
        match std::fs::read_link(parent.join(&name)) {
            Ok(target) => path = parent.join(target),
            Err(_) => return Ok(parent.join(name)),
        }
    }
    Err(io::Error::from_raw_os_error(nix::libc::ELOOP))
}

/// A directory without links, whose last components need not exist.
fn resolved(directory: &Path) -> io::Result<PathBuf> {
    match directory.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(parent), Some(name)) = (directory.parent(), directory.file_name()) else {
                return Err(error);
            };
            // A link to nothing can become anything.
            if directory.is_symlink() {
                return Err(error);
            }
            Ok(resolved(parent)?.join(name))
        }
        other => other,
    }
}

/// Refuses a destination that is an input or in one.
fn check(
    path: &Path,
    found: Option<&Metadata>,
    target: Option<&Path>,
    input: &Path,
) -> Result<(), Refusal> {
    // An input that cannot be read is reported by its reader.
    let Ok(read) = std::fs::metadata(input) else {
        return Ok(());
    };
    if found.is_some_and(|found| identity(found) == identity(&read)) && !read.is_dir() {
        return Err(Refusal::IsInput(path.to_owned()));
    }
    let (Some(target), Ok(input_path)) = (target, input.canonicalize()) else {
        return Ok(());
    };
    if read.is_dir() {
        return if target.starts_with(&input_path) {
            Err(Refusal::IsInInput {
                output: path.to_owned(),
                input: input.to_owned(),
            })
        } else {
            Ok(())
        };
    }
    let belongs = |ending: &&str| {
        let mut companion = input_path.clone().into_os_string();
        companion.push(ending);
        target == Path::new(&companion)
    };
    if COMPANIONS.iter().any(belongs) {
        Err(Refusal::IsInput(path.to_owned()))
    } else {
        Ok(())
    }
}

/// Opens a device or a pipe. A program that reads a pipe may come later.
fn open(path: &Path) -> io::Result<File> {
    let begin = Instant::now();
    let file = loop {
        let opened = OpenOptions::new()
            .write(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits())
            .open(path);
        match opened {
            Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => {
                if begin.elapsed() > PATIENCE {
                    let seconds = PATIENCE.as_secs();
                    return Err(io::Error::other(format!(
                        "no program has opened the pipe for reading in {seconds} seconds"
                    )));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            other => break other?,
        }
    };
    if !is_stream(file.metadata()?.file_type()) {
        return Err(io::Error::other("it became another file meanwhile"));
    }
    // What is written waits for the reader.
    let flags = OFlag::from_bits_retain(fcntl(&file, FcntlArg::F_GETFL)?);
    fcntl(&file, FcntlArg::F_SETFL(flags - OFlag::O_NONBLOCK))?;
    Ok(file)
}

fn for_terminal(is_terminal: bool, out: impl Write + 'static) -> Box<dyn Write> {
    if is_terminal {
        Box::new(Terminal {
            out,
            rest: Vec::new(),
        })
    } else {
        Box::new(out)
    }
}

/// A writer that remembers why writing failed, because code above it makes errors of its own of that.
struct Output<W: Write> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Output<W> {
    fn new(out: W) -> Output<W> {
        Output { out, failed: None }
    }

    /// Writes buffered bytes out. Returns the first error of all.
    fn end(&mut self) -> Option<io::Error> {
        if self.failed.is_none() {
            let _ = self.flush();
        }
        self.failed.take()
    }

    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
            && self.failed.is_none()
        {
            self.failed = Some(copy_of(error));
        }
        result
    }
}

fn copy_of(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.out.write(bytes);
        self.keep(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.out.flush();
        self.keep(result)
    }
}

/// Writes text to a terminal, whose cursor it does not move but by line breaks and tabulators.
struct Terminal<W: Write> {
    out: W,
    /// The bytes of a character that is not complete.
    rest: Vec<u8>,
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let mut text = String::new();
        let mut used = 0;
        for chunk in self.rest.utf8_chunks() {
            text.push_str(chunk.valid());
            used += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_last = used + invalid.len() == self.rest.len();
            // A character has at most four bytes; the others may come.
            if is_last && std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none()) {
                break;
            }
            if !invalid.is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                used += invalid.len();
            }
        }
        self.rest.drain(..used);
        self.out.write_all(foreign::shown_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "files that are there before")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const NOTHING: [&Path; 0] = [];

    fn write(path: &Path, text: &str) -> Result<(), WriteError> {
        let destination = Destination::named(path, NOTHING).expect("accepted");
        destination.write(|out| {
            out.write_all(text.as_bytes()).expect("written");
            Ok(())
        })
    }

    #[test]
    fn write_through_a_link_makes_the_file_that_it_leads_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "old").expect("written");
        std::fs::create_dir(path("sub")).expect("made");
        symlink("file", path("link")).expect("a link");
        symlink("../link", path("sub/far")).expect("a link");
        symlink("sub/new", path("dangling")).expect("a link");
        symlink("loop", path("loop")).expect("a link");
        write(&path("sub/far"), "new").expect("written");
        write(&path("dangling"), "made").expect("written");
        for (name, text) in [("file", "new"), ("sub/new", "made")] {
            assert_eq!(std::fs::read_to_string(path(name)).expect("there"), text);
        }
        for link in ["link", "sub/far", "dangling"] {
            assert!(path(link).is_symlink(), "{link}");
        }
        let error = Destination::named(&path("loop"), NOTHING).expect_err("endless");
        assert!(matches!(error, Refusal::Io { .. }), "{error}");
    }

    #[test]
    fn destination_refuses_inputs_and_files_within_them() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path("capture")).expect("made");
        std::fs::write(path("capture/capture.json"), "").expect("written");
        std::fs::write(path("a.db"), "").expect("written");
        std::fs::hard_link(path("a.db"), path("b.db")).expect("a link");
        symlink("capture/capture.json", path("into")).expect("a link");
        symlink("capture/new", path("into-new")).expect("a link");
        symlink("capture", path("other-name")).expect("a link");
        let inputs = [path("a.db"), path("capture"), path("missing")];
        for (name, is_accepted) in [
            ("a.db", false),
            ("b.db", false),
            ("capture/../a.db", false),
            ("a.db-wal", false),
            ("a.db-journal", false),
            ("a.db.txt", true),
            ("capture/capture.json", false),
            ("capture/new", false),
            ("capture/sub/new", false),
            ("other-name/new", false),
            ("into", false),
            ("into-new", false),
            ("capture2", true),
            ("sub/new", true),
        ] {
            let found = Destination::named(&path(name), &inputs);
            assert_eq!(found.is_ok(), is_accepted, "{name}: {found:?}");
        }
    }

    #[test]
    fn pipe_stays_a_pipe_and_gets_the_bytes() {
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || std::fs::read_to_string(pipe).expect("read"))
        };
        write(&pipe, "streamed").expect("written");
        assert_eq!(reader.join().expect("joined"), "streamed");
        let found = std::fs::symlink_metadata(&pipe).expect("there");
        assert!(found.file_type().is_fifo());
    }

    #[test]
    fn device_stays_a_device_and_error_names_a_full_one() {
        // A link, so that a mistake does not replace the machine's device.
        let directory = tempfile::tempdir().expect("a directory");
        for device in ["null", "full"] {
            symlink(
                Path::new("/dev").join(device),
                directory.path().join(device),
            )
            .expect("a link");
        }
        write(&directory.path().join("null"), "lost").expect("written");
        let full = directory.path().join("full");
        let destination = Destination::named(&full, NOTHING).expect("accepted");
        let error = destination
            .write(|out| match write!(out, "{}", "x".repeat(1 << 20)) {
                Ok(()) => Ok(()),
                // Another name than that of the output.
                Err(source) => Err(WriteError::Io {
                    path: "input".into(),
                    source,
                }),
            })
            .expect_err("no space");
        assert!(error.to_string().contains("full"), "{error}");
        assert!(!error.to_string().contains("input"), "{error}");
        assert!(full.is_symlink());
    }

    #[test]
    fn terminal_gets_no_escape_sequences() {
        let mut terminal = Terminal {
            out: Vec::new(),
            rest: Vec::new(),
        };
        for byte in "a\x1b[2J\tb\u{e4}\n\u{9b}".as_bytes() {
            terminal.write_all(&[*byte]).expect("memory");
        }
        terminal.write_all(b"\xff.\xe2\x82").expect("memory");
        terminal.write_all(b"\xac").expect("memory");
        let text = String::from_utf8(terminal.out).expect("text");
        assert_eq!(text, "a\\u{1b}[2J\tb\u{e4}\n\\u{9b}\u{fffd}.\u{20ac}");
    }
}
