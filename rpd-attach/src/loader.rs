//! Whether the loader of a process would open a library: it, all that it needs, and the versions of these.
//!
//! Where the SDK or a tool cannot be opened, the SDK and registration library 0.6.0 end the process. So this looks first,
//! through the eyes of the process: below its root directory, with the environment that it was started with.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rpd_spool::regular_file::Links;

use crate::elf::Library;
use crate::process::{Mapping, Process};
use crate::status::Error;

/// Directories in which every loader looks.
const STANDARD: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];
/// The file with the libraries that `ldconfig` found.
const CACHE: &str = "/etc/ld.so.cache";
/// Most bytes of that file that are read.
const CACHE_LIMIT: u64 = 64 << 20;
/// Versions that this many libraries need are checked at most.
const MOST_LIBRARIES: usize = 1000;

/// Functions that are looked for in the libraries of a process.
pub(crate) const FUNCTIONS: [&str; 8] = [
    "rocprofiler_register_attach",
    "rocprofiler_register_detach",
    "rocprofiler_register_runtime_tool_activation_callback",
    "rocprofiler_attach_set_api_table",
    "rocprofiler_attach_initialize",
    "rocprofiler_set_api_table",
    "rocprofiler_attach",
    "rocprofiler_configure",
];

/// A library in a process.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) path: PathBuf,
    /// Address of its first byte.
    pub(crate) start: u64,
    pub(crate) library: Library,
}

impl Loaded {
    /// Address of one of the [`FUNCTIONS`] in the process.
    pub(crate) fn function(&self, name: &str) -> Option<u64> {
        let address = self.library.export(name)?;
        // The first segment begins at a page, the mapping as well.
        Some(self.start + address - (self.library.first & !0xfff))
    }

    /// Whether the file has this name, or this name with a version behind it.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        file_name(&self.path).is_some_and(|own| own.starts_with(name))
    }
}

/// The loader of a process.
#[derive(Debug)]
pub(crate) struct Loader {
    process: Process,
    /// Libraries in the process.
    pub(crate) loaded: Vec<Loaded>,
    /// Places of libraries in `loaded`, by the names by which others need them.
    names: HashMap<String, usize>,
    /// Directories of `LD_LIBRARY_PATH`.
    directories: Vec<PathBuf>,
    cache: HashMap<String, PathBuf>,
}

impl Loader {
    /// The loader of a process that has these files in its memory.
    pub(crate) fn from_process(process: Process, mappings: &[Mapping]) -> Result<Loader, Error> {
        let mut loaded: Vec<Loaded> = Vec::new();
        let mut names = HashMap::new();
        for mapping in mappings
            .iter()
            .filter(|mapping| mapping.offset == 0 && !mapping.deleted)
        {
            if loaded.last().is_some_and(|last| last.path == mapping.path) {
                continue;
            }
            // Files that are no libraries are mapped as well.
            let library = process.seen(&mapping.path).ok();
            let library = library.and_then(|seen| Library::read(&seen, &FUNCTIONS).ok());
            let Some(library) = library else { continue };
            let own = [library.soname.clone(), file_name(&mapping.path)];
            for name in own.into_iter().flatten() {
                names.entry(name).or_insert(loaded.len());
            }
            loaded.push(Loaded {
                path: mapping.path.clone(),
                start: mapping.start,
                library,
            });
        }
        let environment = process.environment()?;
        let path = environment
            .iter()
            .find(|(name, _)| name == "LD_LIBRARY_PATH");
        let path = path.map_or(&b""[..], |(_, value)| value.as_bytes());
        let directories = path
            .split(|byte| matches!(byte, b':' | b';'))
            .filter(|directory| directory.starts_with(b"/"))
            .map(|directory| PathBuf::from(OsStr::from_bytes(directory)));
        let cache = process.seen(Path::new(CACHE)).ok();
        let cache = cache.and_then(|seen| {
            let regular = rpd_spool::regular_file::read(&seen, Links::Refuse, CACHE_LIMIT);
            regular.ok().map(|bytes| entries(&bytes))
        });
        Ok(Loader {
            process,
            loaded,
            names,
            directories: directories.collect(),
            cache: cache.unwrap_or_default(),
        })
    }

    /// Where the process finds a library of this name. `near` are directories that come first.
    pub(crate) fn find(&self, name: &str, near: &[PathBuf]) -> Option<PathBuf> {
        if name.contains('/') {
            let path = PathBuf::from(name);
            return self.process.seen(&path).ok().map(|_| path);
        }
        if let Some(&place) = self.names.get(name) {
            return Some(self.loaded[place].path.clone());
        }
        let in_directory = |directory: &PathBuf| {
            let path = directory.join(name);
            let seen = self.process.seen(&path).ok()?;
            // A library for another processor is passed over.
            Library::read(&seen, &[]).ok().map(|_| path)
        };
        let mut given = near.iter().chain(&self.directories);
        given
            .find_map(in_directory)
            .or_else(|| self.cache.get(name).cloned())
            .or_else(|| {
                STANDARD
                    .iter()
                    .find_map(|it| in_directory(&PathBuf::from(it)))
            })
    }

    /// Checks that the process can open a library.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn check(&self, path: &Path) -> Result<(), String> {
        let mut known: HashMap<PathBuf, Library> = HashMap::new();
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            if known.contains_key(&path) || known.len() >= MOST_LIBRARIES {
                continue;
            }
            let library = self.read(&path)?;
            let near = search(&library, &self.real(&path));
            // What the process has already is complete.
            let has = self.loaded.iter().any(|loaded| loaded.path == path);
            for name in library.needed.iter().filter(|_| !has) {
                open.push(self.find(name, &near).ok_or_else(|| {
                    format!("{} needs {name}, which it does not find", path.display())
                })?);
            }
            known.insert(path, library);
        }
        for (path, library) in &known {
            let near = search(library, &self.real(path));
            for (name, version) in &library.requires {
                let needed = self.find(name, &near);
                let found = needed.as_ref().and_then(|path| known.get(path));
                if found.is_some_and(|found| !found.defines.contains(version)) {
                    return Err(format!(
                        "{} needs {version} of {name}, which is older there",
                        path.display()
                    ));
                }
            }
        }
        Ok(())
    }

    /// Reads a library of the process.
    ///
    /// # Errors
    /// Why the process cannot load it.
    pub(crate) fn read(&self, path: &Path) -> Result<Library, String> {
        let read = |seen: PathBuf| Library::read(&seen, &FUNCTIONS);
        let seen = self.process.seen(path).map_err(|error| error.to_string());
        seen.and_then(read)
            .map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The name of a file of the process without links.
    fn real(&self, path: &Path) -> PathBuf {
        let seen = self.process.seen(path);
        seen.map_or_else(|_| path.to_owned(), |seen| self.process.own_name(&seen))
    }
}

fn file_name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

/// Directories that a library at this place names for what it needs.
fn search(library: &Library, path: &Path) -> Vec<PathBuf> {
    let own = path.parent().unwrap_or(Path::new("/")).to_string_lossy();
    let full = |directory: &String| {
        let replaced = directory
            .replace("${ORIGIN}", &own)
            .replace("$ORIGIN", &own);
        PathBuf::from(replaced)
    };
    library.search.iter().map(full).collect()
}

/// Libraries for this processor in the file of `ldconfig`: names and paths. Empty for a file of an older format.
fn entries(bytes: &[u8]) -> HashMap<String, PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    /// Bytes of the head, and of an entry behind it.
    const HEAD: usize = 48;
    const ENTRY: usize = 24;
    /// Flags of a library for x86-64 with the C library's second interface.
    const X86_64: u32 = 0x0303;
    let mut found = HashMap::new();
    // The new format may lie behind the old one.
    let Some(start) = bytes.windows(MAGIC.len()).position(|part| part == MAGIC) else {
        return found;
    };
    let bytes = &bytes[start..];
    let number = |at: usize| -> Option<u32> {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    };
    let text = |at: Option<u32>| -> Option<&str> {
        let rest = bytes.get(at? as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    };
    for entry in 0..number(MAGIC.len()).unwrap_or(0) as usize {
        let at = HEAD + entry * ENTRY;
        let Some(flags) = number(at) else { break };
        if flags == X86_64
            && let (Some(name), Some(path)) = (text(number(at + 4)), text(number(at + 8)))
        {
            found
                .entry(name.to_owned())
                .or_insert_with(|| PathBuf::from(path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Loader {
        let process = Process::new(std::process::id().cast_signed());
        let mappings = process.mappings().expect("files");
        Loader::from_process(process, &mappings).expect("a loader")
    }

    #[test]
    fn loader_finds_what_the_process_has_loaded() {
        let loader = own();
        let found = loader.find("libc.so.6", &[]).expect("the C library");
        assert_eq!(loader.check(&found), Ok(()));
        assert_eq!(loader.find("libno-such-library.so", &[]), None);
    }

    #[test]
    fn check_names_what_a_library_lacks() {
        let loader = own();
        let program = std::env::current_exe().expect("a path");
        assert_eq!(loader.check(&program), Ok(()));
        let missing = loader.check(Path::new("/no/such/library.so"));
        assert!(missing.is_err_and(|why| why.starts_with("/no/such/library.so: ")));
    }

    #[test]
    fn entries_reads_the_file_of_ldconfig() {
        let mut file = b"glibc-ld.so.cache1.1".to_vec();
        file.extend_from_slice(&2u32.to_le_bytes());
        file.resize(48, 0);
        let texts = 48 + 2 * 24;
        // One for this processor, one for another.
        for flags in [0x0303u32, 0x0003] {
            for word in [flags, texts, texts + 7, 0, 0, 0] {
                file.extend_from_slice(&word.to_le_bytes());
            }
        }
        file.extend_from_slice(b"liba.so\0/x/liba.so\0");
        // The second text begins behind the first one's NUL.
        let place = 48 + 8;
        file[place..place + 4].copy_from_slice(&(texts + 8).to_le_bytes());
        let found = entries(&file);
        assert_eq!(found.get("liba.so"), Some(&PathBuf::from("/x/liba.so")));
        assert_eq!(found.len(), 1);
        for cut in 0..file.len() {
            entries(&file[..cut]);
        }
    }
}
