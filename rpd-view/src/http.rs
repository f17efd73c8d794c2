//! Requests of HTTP/1.1 without content, each within a time, and answers to them. One request a connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Bytes of a request's head.
pub const LONGEST_HEAD: usize = 8 << 10;
/// Lines of a request's head.
const MOST_LINES: usize = 64;
/// Time for an answer, at least: one to a request that came too late has to be written as well.
const LEAST: Duration = Duration::from_secs(1);

/// A connection whose reads and writes can be given a time.
pub trait Connection: Read + Write {
    /// Sets the time after which reads and writes fail.
    ///
    /// # Errors
    /// When the operating system refuses.
    fn patience(&self, time: Duration) -> io::Result<()>;
}

impl Connection for TcpStream {
    fn patience(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Connection for UnixStream {
    fn patience(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// A line of a request's head is there several times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of the head is repeated")]
pub struct Repeated;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Method, such as `GET`.
    pub method: String,
    /// Path, as it was sent.
    pub path: String,
    /// Names, in lower case, and values of the head's lines.
    pub lines: Vec<(String, String)>,
}

impl Request {
    /// The value of a line; `None` when the head does not have it.
    ///
    /// # Errors
    /// When there are several of this name, of which no one counts more than another.
    pub fn line(&self, name: &str) -> Result<Option<&str>, Repeated> {
        let mut found = self.lines.iter().filter(|(of, _)| of == name);
        let first = found.next().map(|(_, value)| value.as_str());
        match found.next() {
            Some(_) => Err(Repeated),
            None => Ok(first),
        }
    }
}

/// Reads a request until `end`. The inner error is the status of the answer to one that is none; `None` stands for a connection that
/// was closed.
///
/// # Errors
/// When the connection fails.
pub fn read(
    connection: &mut impl Connection,
    end: Instant,
) -> io::Result<Option<Result<Request, &'static str>>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Some(Err("408 Request Timeout")));
        }
        connection.patience(left)?;
        let read = match connection.read(&mut part) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if is_late(&error) => return Ok(Some(Err("408 Request Timeout"))),
            Err(error) => return Err(error),
        };
        head.extend_from_slice(&part[..read]);
        let mut lines = [httparse::EMPTY_HEADER; MOST_LINES];
        let mut parsed = httparse::Request::new(&mut lines);
        let state = parsed.parse(&head);
        if head.len() > LONGEST_HEAD || state == Err(httparse::Error::TooManyHeaders) {
            return Ok(Some(Err("431 Request Header Fields Too Large")));
        }
        match state {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) => {
                return Ok(Some(taken(&parsed).ok_or("400 Bad Request")));
            }
            Err(_) => return Ok(Some(Err("400 Bad Request"))),
        }
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn taken(parsed: &httparse::Request<'_, '_>) -> Option<Request> {
    let lines = parsed.headers.iter().map(|line| {
        let value = std::str::from_utf8(line.value).ok()?;
        Some((line.name.to_ascii_lowercase(), value.to_owned()))
    });
    Some(Request {
        method: parsed.method?.to_owned(),
        path: parsed.path?.to_owned(),
        lines: lines.collect::<Option<_>>()?,
    })
}

/// Writes an answer until `end`, for which there is a second at least; one that is not read in time is cut off. `lines` are further lines of the head, each with its end.
///
/// # Errors
/// When the connection fails, or the time is over.
pub fn respond(
    connection: &mut impl Connection,
    status: &str,
    lines: &str,
    content: &[u8],
    end: Instant,
) -> io::Result<()> {
    let end = end.max(Instant::now() + LEAST);
    let head = format!(
        "HTTP/1.1 {status}\r\n{lines}Content-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    for part in [head.as_bytes(), content] {
        let mut rest = part;
        while !rest.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            connection.patience(left)?;
            match connection.write(rest) {
                Ok(0) => return Ok(()),
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}
