//! Finds out from a program file whether libraries can be preloaded into the program.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rpd_spool::regular_file::{self, Links};

const SET_ID: u32 = 0o6000;
const INTERPRETER: u32 = 3;
/// Longest line of a script that is searched for an interpreter, in bytes.
const MAX_LINE: u64 = 4096;

/// The reason why the loader preloads nothing into this program; `None` if the file has none. A script has the
/// reason of its interpreter.
pub(crate) fn obstacle(program: &Path) -> Option<String> {
    judge(program, true)
}

fn judge(program: &Path, scripts: bool) -> Option<String> {
    let (file, metadata) = regular_file::open(program, Links::Follow).ok()?;
    let mut magic = [0; 4];
    let read = (&file).read(&mut magic).ok()?;
    if scripts && read >= 2 && magic.starts_with(b"#!") {
        let interpreter = interpreter(program)?;
        let why = judge(&interpreter, false)?;
        return Some(format!(
            "of its interpreter {}, {why}",
            interpreter.display()
        ));
    }
    if magic != *b"\x7fELF" {
        return None;
    }
    if metadata.mode() & SET_ID != 0 {
        return Some("it is a set-user-id or set-group-id program".to_owned());
    }
    elf(&file)
}

/// The interpreter in a script's first line.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    let (file, _) = regular_file::open(script, Links::Follow).ok()?;
    BufReader::new(file.take(MAX_LINE))
        .read_line(&mut line)
        .ok()?;
    let name = line.strip_prefix("#!")?.split_whitespace().next()?;
    Some(PathBuf::from(name))
}

/// Reads the header and the program headers of a 64-bit little-endian ELF file.
fn elf(file: &File) -> Option<String> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if head[4] != 2 {
        return Some("it is a 32-bit program, and rpd's libraries are 64-bit".to_owned());
    }
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let table = u64::from_le_bytes(head[32..40].try_into().ok()?);
    let (size, count) = (half(54), half(56));
    if size < 4 {
        return None;
    }
    for number in 0..u64::from(count) {
        let mut kind = [0; 4];
        let at = table.checked_add(number * u64::from(size))?;
        file.read_exact_at(&mut kind, at).ok()?;
        if u32::from_le_bytes(kind) == INTERPRETER {
            return None;
        }
    }
    Some("it is statically linked".to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn program_image_shows_why_it_cannot_be_traced() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = std::env::current_exe().expect("this test");
        assert_eq!(obstacle(&own), None);

        let path = |name: &str| directory.path().join(name);
        let write = |name: &str, bytes: &[u8], mode: u32| {
            std::fs::write(path(name), bytes).expect("written");
            std::fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("a mode");
        };
        let mut image = vec![0; 64 + 56];
        image[..5].copy_from_slice(b"\x7fELF\x02");
        image[32] = 64;
        image[54] = 56;
        image[56] = 1;
        image[64] = 1;
        write("static", &image, 0o755);
        assert_eq!(
            obstacle(&path("static")).as_deref(),
            Some("it is statically linked")
        );
        image[64] = 3;
        write("dynamic", &image, 0o755);
        assert_eq!(obstacle(&path("dynamic")), None);
        write("set-id", &image, 0o4755);
        assert_eq!(
            obstacle(&path("set-id")).as_deref(),
            Some("it is a set-user-id or set-group-id program")
        );
        image[4] = 1;
        write("narrow", &image, 0o755);
        assert!(obstacle(&path("narrow")).is_some_and(|why| why.contains("32-bit")));
        let line = format!("#! {} -x\n", path("static").display());
        write("script", line.as_bytes(), 0o755);
        assert_eq!(
            obstacle(&path("script")),
            Some(format!(
                "of its interpreter {}, it is statically linked",
                path("static").display()
            ))
        );
        for (name, bytes) in [
            ("empty", &b""[..]),
            ("short", b"\x7fELF\x02"),
            ("text", b"hello"),
        ] {
            write(name, bytes, 0o755);
            assert_eq!(obstacle(&path(name)), None, "{name}");
        }
    }
}
