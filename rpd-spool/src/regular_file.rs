//! Opens files that a user, another program or a directory of unknown origin named.
//!
//! Every such file is opened here; lints of the crates of the front end refuse the functions of the standard library. A pipe does not block the opener, a device does not fill the memory, and a file that is
//! read whole has a bounded size.

use std::fmt;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The device number of `/dev/null`.
const NULL_DEVICE: u64 = libc::makedev(1, 3);

/// The type of a file that is not a regular one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A directory.
    Directory,
    /// A pipe, named or made by a shell's `<(command)`.
    Pipe,
    /// A socket.
    Socket,
    /// A character or block device.
    Device,
    /// A symbolic link, where none is followed.
    Link,
}

impl Kind {
    fn from_kind(kind: FileType) -> Option<Kind> {
        if kind.is_file() {
            None
        } else if kind.is_dir() {
            Some(Kind::Directory)
        } else if kind.is_fifo() {
            Some(Kind::Pipe)
        } else if kind.is_socket() {
            Some(Kind::Socket)
        } else if kind.is_symlink() {
            Some(Kind::Link)
        } else {
            Some(Kind::Device)
        }
    }

    /// Advice for the user, as the end of a sentence.
    fn remedy(self) -> &'static str {
        match self {
            Kind::Pipe | Kind::Socket | Kind::Device => {
                "; write its content to a file and name that"
            }
            Kind::Directory | Kind::Link => "",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Directory => "a directory",
            Kind::Pipe => "a pipe",
            Kind::Socket => "a socket",
            Kind::Device => "a device",
            Kind::Link => "a symbolic link",
        })
    }
}

/// Reason why a file is not read. The text does not name the file, because callers know how the user named it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist.
    #[error("No such file")]
    Missing,
    /// The system does not let it be opened or read.
    #[error("{0}")]
    Io(io::Error),
    /// The file is not a regular file.
    #[error("is {}, not a regular file{}", .0, .0.remedy())]
    NotRegular(Kind),
    /// The file is larger than its reader accepts.
    #[error(
        "is too large: it has more than {limit} bytes, the most that is read; name a smaller file"
    )]
    TooLarge {
        /// The most bytes that are read.
        limit: u64,
    },
    /// The file is not UTF-8 text.
    #[error("it is not valid UTF-8")]
    NotText,
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        match error.kind() {
            io::ErrorKind::NotFound => FileError::Missing,
            _ => FileError::Io(error),
        }
    }
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> io::Error {
        match error {
            FileError::Missing => io::Error::new(io::ErrorKind::NotFound, error),
            FileError::Io(error) => error,
            FileError::NotRegular(_) | FileError::TooLarge { .. } => {
                io::Error::new(io::ErrorKind::InvalidInput, error)
            }
            FileError::NotText => io::Error::new(io::ErrorKind::InvalidData, error),
        }
    }
}

/// Whether the last component of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// Links are followed, for paths that the user wrote.
    Follow,
    /// Links are refused, for names found in a directory.
    Refuse,
}

/// Largest code object, or library with code objects, that is read whole, in bytes.
pub const LARGEST_CODE: u64 = 4 << 30;

/// Opens a regular file for reading, without blocking on a pipe. `/dev/null` is read as an empty file.
///
/// # Errors
/// When it cannot be opened or is not a regular file.
pub fn open(path: &Path, links: Links) -> Result<(File, Metadata), FileError> {
    open_for(path, links, false)
}

/// Opens a regular file for reading and writing in place, as [`open`] does for reading.
///
/// # Errors
/// When it cannot be opened or is not a regular file.
pub fn open_writable(path: &Path, links: Links) -> Result<(File, Metadata), FileError> {
    open_for(path, links, true)
}

fn open_for(path: &Path, links: Links, write: bool) -> Result<(File, Metadata), FileError> {
    let mut flags = libc::O_CLOEXEC;
    // Miri opens no devices, and refuses these.
    if cfg!(not(miri)) {
        flags |= libc::O_NONBLOCK | libc::O_NOCTTY;
    }
    if links == Links::Refuse {
        flags |= libc::O_NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ELOOP) if links == Links::Refuse => FileError::NotRegular(Kind::Link),
            // The error of open(2) for a socket.
            Some(libc::ENXIO) => FileError::NotRegular(Kind::Socket),
            _ => FileError::from(error),
        })?;
    let metadata = file.metadata()?;
    match Kind::from_kind(metadata.file_type()) {
        // The usual name of an empty file.
        Some(Kind::Device) if links == Links::Follow && metadata.rdev() == NULL_DEVICE => {
            Ok((file, metadata))
        }
        Some(kind) => Err(FileError::NotRegular(kind)),
        None => Ok((file, metadata)),
    }
}

/// The content of a regular file of at most `limit` bytes.
///
/// # Errors
/// When it cannot be read, is not a regular file or is longer.
pub fn read(path: &Path, links: Links, limit: u64) -> Result<Vec<u8>, FileError> {
    let (file, metadata) = open(path, links)?;
    if metadata.len() > limit {
        return Err(FileError::TooLarge { limit });
    }
    let mut content = Vec::new();
    // It may grow while it is read, and files of the kernel report a size of 0.
    file.take(limit + 1).read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        Err(FileError::TooLarge { limit })
    } else {
        Ok(content)
    }
}

/// The text of a regular file of at most `limit` bytes that the user named.
///
/// # Errors
/// As [`read`], and when it is not valid UTF-8.
pub fn read_text(path: &Path, limit: u64) -> Result<String, FileError> {
    String::from_utf8(read(path, Links::Follow, limit)?).map_err(|_| FileError::NotText)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn kind(path: &Path, links: Links) -> Option<Kind> {
        match open(path, links) {
            Err(FileError::NotRegular(kind)) => Some(kind),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn open_refuses_files_that_are_not_regular() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("file"), "text").expect("written");
        std::os::unix::fs::symlink("file", path("link")).expect("a link");
        let pipe = std::ffi::CString::new(path("pipe").as_os_str().as_bytes()).expect("no NUL");
        // SAFETY: the path ends with a NUL byte.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let _socket = UnixListener::bind(path("socket")).expect("a socket");
        for (name, links, expected) in [
            ("file", Links::Refuse, None),
            ("link", Links::Follow, None),
            ("link", Links::Refuse, Some(Kind::Link)),
            ("pipe", Links::Follow, Some(Kind::Pipe)),
            ("socket", Links::Follow, Some(Kind::Socket)),
            (".", Links::Follow, Some(Kind::Directory)),
        ] {
            assert_eq!(kind(&path(name), links), expected, "{name}");
        }
        assert_eq!(
            kind(Path::new("/dev/zero"), Links::Follow),
            Some(Kind::Device)
        );
        assert_eq!(
            read(Path::new("/dev/null"), Links::Follow, 1).expect("empty"),
            b""
        );
        assert_eq!(
            kind(Path::new("/dev/null"), Links::Refuse),
            Some(Kind::Device)
        );
        assert!(matches!(
            open(&path("none"), Links::Follow),
            Err(FileError::Missing)
        ));
    }

    #[test]
    fn read_refuses_a_file_beyond_the_given_size() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        std::fs::write(&path, "12345").expect("written");
        assert_eq!(read(&path, Links::Follow, 5).expect("short"), b"12345");
        let error = read(&path, Links::Follow, 4).expect_err("long").to_string();
        assert_eq!(
            error,
            "is too large: it has more than 4 bytes, the most that is read; name a smaller file"
        );
        // Files in /proc report a size of 0.
        let error = read(Path::new("/proc/self/environ"), Links::Follow, 1);
        assert!(matches!(error, Err(FileError::TooLarge { limit: 1 })));
        std::fs::write(&path, b"\xff").expect("written");
        assert!(matches!(read_text(&path, 5), Err(FileError::NotText)));
    }
}
