//! A program that was started without rpd, with this library in `LD_PRELOAD` and a variable of HIPTracer or RPD that names the
//! output, as their guides have it: rpd takes the place of this process and starts the program again.
//!
//! This happens in the library's constructor, before anything of the program has run.

use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_void};
use std::fs::Metadata;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A variable that names the output of another profiler, and the call of rpd that makes this output.
struct Guide {
    variable: &'static str,
    /// Name under which rpd is called, and its first argument.
    call: [&'static str; 2],
}

const GUIDES: [Guide; 2] = [
    Guide {
        variable: "HIPTRACER_EVENTDB",
        call: ["hiptracer", "--"],
    },
    Guide {
        variable: "RPDT_FILENAME",
        call: ["rpd", "record-rpd-file"],
    },
];

/// Makes rpd start the program again, if one of the guides was followed. Returns where that is not so, or not possible.
pub(super) fn start_again() {
    // SAFETY: the entry may be read at any time.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return;
    }
    let is_set =
        |guide: &&Guide| std::env::var_os(guide.variable).is_some_and(|value| !value.is_empty());
    let Some(guide) = GUIDES.iter().find(is_set) else {
        return;
    };
    let Some(own) = own_path() else { return };
    let preloaded = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let Some(others) = without(&preloaded, &own) else {
        return;
    };
    let failure = match program_file(&own) {
        Some(rpd) => execute(&rpd, guide, &others).to_string(),
        None => "there is no rpd beside the library".to_owned(),
    };
    let line = format!(
        "rpd: {} is set and {} preloaded, but rpd cannot be started: {failure}; nothing is recorded\n",
        guide.variable,
        own.display()
    );
    // SAFETY: the bytes are those of the line. Standard error may be closed; the message is lost then.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}

/// Path of this library.
fn own_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero.
    let name = unsafe {
        if libc::dladdr(own_path as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        CStr::from_ptr(info.assume_init().dli_fname)
    };
    std::fs::canonicalize(OsStr::from_bytes(name.to_bytes())).ok()
}

/// The list of preloaded libraries without this library; `None` where it is not listed.
fn without(list: &OsStr, own: &Path) -> Option<OsString> {
    let words = || list.as_bytes().split(|byte| matches!(byte, b':' | b' '));
    let is_own = |word: &[u8]| {
        let path = Path::new(OsStr::from_bytes(word));
        // A name without a path was found by the loader.
        path.file_name() == own.file_name()
    };
    words().any(is_own).then(|| {
        let others: Vec<&[u8]> = words()
            .filter(|word| !word.is_empty() && !is_own(word))
            .collect();
        OsString::from_vec(others.join(&b':'))
    })
}

/// The program rpd: beside the library, where cargo puts it, or in `bin` for a library in `lib/rpd`.
fn program_file(own: &Path) -> Option<PathBuf> {
    let directory = own.parent()?;
    ["rpd", "../rpd", "../../bin/rpd"]
        .iter()
        .map(|place| directory.join(place))
        .find(|path| path.is_file())
}

/// The arguments behind the program's name in its command line, and the name by which rpd finds the program.
fn command() -> std::io::Result<Vec<OsString>> {
    let line = std::fs::read("/proc/self/cmdline")?;
    let mut words: Vec<OsString> = line
        .strip_suffix(b"\0")
        .unwrap_or(&line)
        .split(|byte| *byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    // The name in the command line is the program's choice. It is kept only where it leads to this very file.
    let executable = std::fs::read_link("/proc/self/exe")?;
    let name = words.first().cloned().unwrap_or_default();
    let is_it = |path: &Path| {
        let same = |other: Metadata| {
            let this = std::fs::metadata("/proc/self/exe")?;
            std::io::Result::Ok((this.dev(), this.ino()) == (other.dev(), other.ino()))
        };
        std::fs::metadata(path).and_then(same).unwrap_or(false)
    };
    let is_found = if name.as_bytes().contains(&b'/') {
        is_it(Path::new(&name))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&path).map(|directory| directory.join(&name));
        found
            .find(|path| path.is_file())
            .is_some_and(|path| is_it(&path))
    };
    if !is_found {
        match words.first_mut() {
            Some(first) => *first = executable.into_os_string(),
            None => words.push(executable.into_os_string()),
        }
    }
    Ok(words)
}

/// Replaces the process by rpd. Returns the reason where that failed.
fn execute(rpd: &Path, guide: &Guide, preload: &OsStr) -> std::io::Error {
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(std::io::Error::from);
    let prepared = || {
        let call = guide.call.map(OsString::from);
        let words: Vec<CString> = call
            .into_iter()
            .chain(command()?)
            .map(|word| text(&word))
            .collect::<Result<_, _>>()?;
        // The variable is set anew below, or left out: this library must not be loaded into rpd.
        let variables = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
        let preload = (!preload.is_empty()).then(|| ("LD_PRELOAD".into(), preload.to_owned()));
        let variables: Vec<CString> = variables
            .chain(preload)
            .map(|(mut entry, value)| {
                entry.push("=");
                entry.push(value);
                text(&entry)
            })
            .collect::<Result<_, _>>()?;
        std::io::Result::Ok((text(rpd.as_os_str())?, words, variables))
    };
    let (path, words, variables) = match prepared() {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let pointers = |list: &[CString]| -> Vec<*const c_char> {
        let ends = [std::ptr::null()];
        list.iter().map(|text| text.as_ptr()).chain(ends).collect()
    };
    let (words, variables) = (pointers(&words), pointers(&variables));
    // SAFETY: text, and lists of text that end with a null pointer.
    unsafe { libc::execve(path.as_ptr(), words.as_ptr(), variables.as_ptr()) };
    std::io::Error::last_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_removes_the_library_from_the_preload_list() {
        let own = Path::new("/lib/librpd_collect.so");
        let without = |list: &str| {
            without(OsStr::new(list), own).map(|rest| rest.to_string_lossy().into_owned())
        };
        assert_eq!(without("/lib/librpd_collect.so").as_deref(), Some(""));
        assert_eq!(
            without("a.so librpd_collect.so:b.so").as_deref(),
            Some("a.so:b.so")
        );
        assert_eq!(without("/lib/other.so"), None);
        assert_eq!(without(""), None);
    }

    #[test]
    fn command_names_the_program_so_that_it_is_found_again() {
        let command = command().expect("procfs");
        let file = std::fs::metadata(&command[0]).expect("the program of this test");
        let own = std::fs::metadata("/proc/self/exe").expect("procfs");
        assert_eq!(file.ino(), own.ino());
    }
}
