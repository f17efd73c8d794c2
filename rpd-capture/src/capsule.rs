//! Capsules: a capture in one file, as an uncompressed tar archive of its directory.
//!
//! Any tar program unpacks a capsule. Here only the files of a capture are taken out, under the names that these have, and
//! links, owners and modes in an archive are ignored.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rpd_spool::regular_file::{self, Links};

use crate::{BLOBS, CODE, CaptureError, DATABASE, MANIFEST, REPORT};

/// Unit of an archive, bytes.
const BLOCK: usize = 512;
/// Most files of a capsule.
const MOST: usize = 10_000;
/// Largest size that fits into the head of a file, in bytes.
const LARGEST: u64 = 0o777_7777_7777;

/// Whether a file of this name is part of a capture.
pub(crate) fn is_part(name: &str) -> bool {
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let between = |directory: &str, prefix: &str, suffix: &str| {
        let rest = name.strip_prefix(directory)?.strip_prefix('/')?;
        rest.strip_prefix(prefix)?.strip_suffix(suffix)
    };
    matches!(name, MANIFEST | DATABASE | REPORT)
        || between(BLOBS, "pack-", ".rpdp").is_some_and(|number| number.len() == 5 && hex(number))
        || between(CODE, "", ".co").is_some_and(|hash| hash.len() == 64 && hex(hash))
}

fn octal(field: &mut [u8], value: u64) {
    let text = format!("{value:0width$o}\0", width = field.len() - 1);
    field.copy_from_slice(text.as_bytes());
}

/// Sum of the bytes of a head, its own field taken as spaces.
fn checksum(head: &[u8; BLOCK]) -> u64 {
    let sum: u64 = head.iter().map(|byte| u64::from(*byte)).sum();
    let own: u64 = head[148..156].iter().map(|byte| u64::from(*byte)).sum();
    sum - own + 8 * u64::from(b' ')
}

fn head(name: &str, size: u64) -> [u8; BLOCK] {
    let mut head = [0; BLOCK];
    head[..name.len()].copy_from_slice(name.as_bytes());
    octal(&mut head[100..108], 0o644);
    octal(&mut head[108..116], 0);
    octal(&mut head[116..124], 0);
    octal(&mut head[124..136], size);
    octal(&mut head[136..148], 0);
    head[156] = b'0';
    head[257..265].copy_from_slice(b"ustar\x0000");
    let sum = checksum(&head);
    octal(&mut head[148..155], sum);
    head[155] = b' ';
    head
}

/// Writes the capture in the directory `capture` as a capsule.
///
/// # Errors
/// When it cannot be read or the capsule not be written.
pub fn pack_capsule(capture: &Path, out: &mut dyn Write) -> Result<(), CaptureError> {
    let mut names = vec![MANIFEST.to_owned(), DATABASE.to_owned(), REPORT.to_owned()];
    for directory in [BLOBS, CODE] {
        let path = capture.join(directory);
        for entry in std::fs::read_dir(&path).map_err(CaptureError::io(&path))? {
            let entry = entry.map_err(CaptureError::io(&path))?;
            names.push(format!(
                "{directory}/{}",
                entry.file_name().to_string_lossy()
            ));
        }
    }
    names[3..].sort();
    for name in names {
        let path = capture.join(&name);
        let failed = CaptureError::io(&path);
        let written = (|| -> io::Result<()> {
            let (mut file, about) = regular_file::open(&path, Links::Follow)?;
            let size = about.len();
            if size > LARGEST || !is_part(&name) {
                return Err(io::Error::other("cannot be part of a capsule"));
            }
            out.write_all(&head(&name, size))?;
            let copied = io::copy(&mut (&mut file).take(size), out)?;
            if copied != size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let rest = size.next_multiple_of(BLOCK as u64) - size;
            out.write_all(&[0; BLOCK][..rest as usize])
        })();
        written.map_err(failed)?;
    }
    out.write_all(&[0; 2 * BLOCK])
        .map_err(CaptureError::io(capture))
}

/// Unpacks a capsule into the directory `into`, which exists and is empty.
///
/// # Errors
/// When the file is not a capsule, is cut or damaged, or the directory cannot be written.
pub fn unpack_capsule(capsule: &Path, into: &Path) -> Result<(), CaptureError> {
    let opened = regular_file::open(capsule, Links::Follow);
    let (mut file, about) = opened.map_err(CaptureError::file(capsule))?;
    let total = about.len();
    // The directories exist in every capture, also where no file is in them.
    for directory in [BLOBS, CODE] {
        let path = into.join(directory);
        let mut builder = DirBuilder::new();
        let made = builder.mode(0o700).create(&path);
        made.map_err(CaptureError::io(&path))?;
    }
    let mut at = 0u64;
    let damaged =
        |reason: &str, at: u64| CaptureError::damaged(capsule, format!("{reason}, at byte {at}"));
    // Only plain files with names of a capture are unpacked: an archive from elsewhere must not write anywhere else.
    for count in 0.. {
        let mut head = [0; BLOCK];
        let read = file.read_exact(&mut head);
        let is_archive = read.is_ok()
            && &head[257..262] == b"ustar"
            && number(&head[148..156]) == Some(checksum(&head));
        // Before the first file the question is whether this is a capsule at all; behind it, whether it is damaged.
        if count == 0 && !is_archive {
            return Err(CaptureError::NoCapture {
                path: capsule.to_owned(),
                reason: "neither a directory nor a capsule".to_owned(),
            });
        }
        match read {
            Ok(()) if head == [0; BLOCK] => return Ok(()),
            Err(_) => return Err(damaged("it is cut", at)),
            Ok(()) if !is_archive => {
                return Err(damaged("the head of a file is not understood", at));
            }
            Ok(()) if count >= MOST => return Err(damaged("it has too many files", at)),
            Ok(()) => {}
        }
        let end = head[..100]
            .iter()
            .position(|byte| *byte == 0)
            .unwrap_or(100);
        let name = std::str::from_utf8(&head[..end]).unwrap_or_default();
        if !is_part(name) || !matches!(head[156], b'0' | 0) {
            return Err(damaged("it has a file that is not part of a capture", at));
        }
        at += BLOCK as u64;
        // A size beyond the end would make a file of zeros as large as it says.
        let size = number(&head[124..136]).filter(|size| *size <= total.saturating_sub(at));
        let Some(size) = size else {
            return Err(damaged(&format!("{name} reaches beyond its end"), at));
        };
        let path = into.join(name);
        // What a program had in memory is for the owner of the capsule alone.
        let mut options = File::options();
        let made = options.write(true).create_new(true).mode(0o600).open(&path);
        let mut out = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => damaged(&format!("it has {name} twice"), at),
            _ => CaptureError::io(&path)(error),
        })?;
        io::copy(&mut (&mut file).take(size), &mut out).map_err(CaptureError::io(&path))?;
        let rest = size.next_multiple_of(BLOCK as u64) - size;
        let mut padding = [0; BLOCK];
        let _ = file
            .read(&mut padding[..rest as usize])
            .map_err(CaptureError::io(capsule))?;
        at += size + rest;
    }
    Ok(())
}

/// A number in octal digits.
fn number(field: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches(['\0', ' ']), 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capture() -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        for part in [BLOBS, CODE] {
            std::fs::create_dir(directory.path().join(part)).expect("a directory");
        }
        for (name, len) in [
            (MANIFEST, 3),
            (DATABASE, 512),
            (REPORT, 0),
            ("blobs/pack-00001.rpdp", 1000),
        ] {
            std::fs::write(directory.path().join(name), vec![7; len]).expect("written");
        }
        directory
    }

    fn unpacked(bytes: &[u8]) -> Result<tempfile::TempDir, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("some.rpdk");
        std::fs::write(&file, bytes).expect("written");
        let into = tempfile::tempdir().expect("a directory");
        match unpack_capsule(&file, into.path()) {
            Ok(()) => Ok(into),
            Err(error) => {
                let text = error.to_string();
                assert!(!text.contains('\n'), "{text}");
                Err(text.replace(&file.display().to_string(), "FILE"))
            }
        }
    }

    #[test]
    fn unpack_capsule_restores_a_packed_capture() {
        let mut bytes = Vec::new();
        pack_capsule(capture().path(), &mut bytes).expect("packed");
        let into = unpacked(&bytes).expect("unpacked");
        for (name, len) in [
            (MANIFEST, 3),
            (DATABASE, 512),
            (REPORT, 0),
            ("blobs/pack-00001.rpdp", 1000),
        ] {
            assert_eq!(
                std::fs::read(into.path().join(name)).expect("a file"),
                vec![7; len]
            );
        }
    }

    #[test]
    fn capsule_is_read_by_tar() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("some.rpdk");
        let mut out = File::create(&file).expect("a file");
        pack_capsule(capture().path(), &mut out).expect("packed");
        let Ok(listed) = std::process::Command::new("tar")
            .arg("tf")
            .arg(&file)
            .output()
        else {
            return;
        };
        assert_eq!(
            String::from_utf8_lossy(&listed.stdout),
            "capture.json\ncapture.sqlite\nreport.txt\nblobs/pack-00001.rpdp\n"
        );
    }

    #[test]
    fn unpack_capsule_refuses_hostile_archives() {
        let mut good = Vec::new();
        pack_capsule(capture().path(), &mut good).expect("packed");
        let refusal = |bytes: &[u8]| unpacked(bytes).expect_err("refused");
        assert_eq!(
            refusal(b""),
            "FILE is not a capture: neither a directory nor a capsule"
        );
        assert_eq!(
            refusal(&good[1..]),
            "FILE is not a capture: neither a directory nor a capsule"
        );
        assert_eq!(
            refusal(&good[..good.len() - 1024]),
            "FILE is damaged: it is cut, at byte 4096"
        );
        let with = |at: usize, name: &str, size: u64| {
            let mut bytes = good.clone();
            bytes[at..at + BLOCK].copy_from_slice(&head(name, size));
            refusal(&bytes)
        };
        for name in [
            "../capture.json",
            "/etc/passwd",
            "blobs/../x",
            "code/a.co",
            "",
        ] {
            assert_eq!(
                with(1024, name, 512),
                "FILE is damaged: it has a file that is not part of a capture, at byte 1024"
            );
        }
        assert_eq!(
            with(1024, MANIFEST, 512),
            "FILE is damaged: it has capture.json twice, at byte 1536"
        );
        assert_eq!(
            with(1024, DATABASE, LARGEST),
            "FILE is damaged: capture.sqlite reaches beyond its end, at byte 1536"
        );
        let mut link = good.clone();
        let mut changed = head(DATABASE, 512);
        changed[156] = b'2';
        let sum = checksum(&changed);
        octal(&mut changed[148..155], sum);
        link[1024..1024 + BLOCK].copy_from_slice(&changed);
        assert!(refusal(&link).contains("not part of a capture"));
        let mut flipped = good.clone();
        flipped[1030] ^= 1;
        assert_eq!(
            refusal(&flipped),
            "FILE is damaged: the head of a file is not understood, at byte 1024"
        );
    }
}
