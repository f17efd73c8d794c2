//! Finding the files that describe a module: the module itself, and its debug information. A file counts only when it is
//! the one that was loaded: its build id, or the checksum in the module, proves it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::debuginfod::Debuginfod;
use crate::object_file::{ObjectFile, checksum};
use crate::{Module, NoFile};

/// Directory in which distributions install debug files.
pub const SYSTEM_DEBUG_DIR: &str = "/usr/lib/debug";

/// Places that are searched for files.
#[derive(Debug, Clone)]
pub struct Search {
    /// Directories with debug information or copies of modules, in the order in which they are looked through.
    pub debug_dirs: Vec<PathBuf>,
    /// Whether servers in `DEBUGINFOD_URLS` are queried, through `debuginfod-find`.
    pub debuginfod: bool,
}

impl Search {
    /// Looks through `debug_dirs` and then the system's directory, and queries debuginfod servers when `DEBUGINFOD_URLS` names
    /// some.
    pub fn with_dirs(debug_dirs: &[PathBuf]) -> Search {
        let mut dirs = debug_dirs.to_vec();
        dirs.push(PathBuf::from(SYSTEM_DEBUG_DIR));
        Search {
            debug_dirs: dirs,
            debuginfod: std::env::var_os("DEBUGINFOD_URLS").is_some_and(|urls| !urls.is_empty()),
        }
    }
}

/// Searches this machine's files only: a lookup that nobody asked for must not wait for a network.
impl Default for Search {
    fn default() -> Search {
        Search {
            debuginfod: false,
            ..Search::with_dirs(&[])
        }
    }
}

/// The files of a module.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    /// The module's own file, or the reason why it has none.
    pub(crate) module: Result<(PathBuf, ObjectFile), NoFile>,
    /// A file with the module's debug information, when that is not its own file.
    pub(crate) debug: Option<(PathBuf, ObjectFile)>,
}

/// Searches for the files of modules.
#[derive(Debug)]
pub(crate) struct Finder {
    search: Search,
    debuginfod: Debuginfod,
    pub(crate) notes: Vec<String>,
}

impl Finder {
    pub(crate) fn new(search: Search) -> Finder {
        Finder {
            search,
            debuginfod: Debuginfod::default(),
            notes: Vec::new(),
        }
    }

    /// The files of a module.
    pub(crate) fn files(&mut self, module: &Module) -> Files {
        let found = self.module(module);
        let debug = match &found {
            Ok((_, object)) if object.has_dwarf => None,
            _ => self.debug(module, found.as_ref().ok()),
        };
        Files {
            module: found,
            debug,
        }
    }

    /// The module's own file: where it was loaded from, or a copy of it in one of the directories.
    fn module(&mut self, module: &Module) -> Result<(PathBuf, ObjectFile), NoFile> {
        let problem = match accept(Path::new(&module.path), module) {
            Ok(found) => return Ok(found),
            Err(problem) => problem,
        };
        // Without a build id a copy cannot be distinguished from another file of the same name.
        let Some(build_id) = &module.build_id else {
            return Err(problem);
        };
        let path = Path::new(&module.path);
        for dir in &self.search.debug_dirs {
            let by_id = build_id_path(dir, build_id, "");
            let below = path.strip_prefix("/").ok().map(|path| dir.join(path));
            let flat = path.file_name().map(|name| dir.join(name));
            for candidate in [by_id, below, flat].into_iter().flatten() {
                if let Ok(found) = accept(&candidate, module) {
                    return Ok(found);
                }
            }
        }
        if let Some(candidate) = self.request("executable", build_id)
            && let Ok(found) = accept(&candidate, module)
        {
            return Ok(found);
        }
        Err(problem)
    }

    /// A file with the module's debug information.
    fn debug(
        &mut self,
        module: &Module,
        own: Option<&(PathBuf, ObjectFile)>,
    ) -> Option<(PathBuf, ObjectFile)> {
        // By build id first: it identifies the file, whatever its path is.
        if let Some(build_id) = &module.build_id {
            for dir in &self.search.debug_dirs {
                let path = Path::new(&module.path);
                let with_ending = |path: &Path| {
                    let mut name = path.as_os_str().to_owned();
                    name.push(".debug");
                    PathBuf::from(name)
                };
                let by_id = build_id_path(dir, build_id, ".debug");
                let below = path
                    .strip_prefix("/")
                    .ok()
                    .map(|path| with_ending(&dir.join(path)));
                let flat = path.file_name().map(|name| with_ending(&dir.join(name)));
                for candidate in [by_id, below, flat].into_iter().flatten() {
                    if let Ok(found) = accept(&candidate, module) {
                        return Some(found);
                    }
                }
            }
        }
        if let Some((path, object)) = own
            && let Some((name, expected)) = &object.debug_link
            && let Some(found) = self.linked(path, name, *expected, object)
        {
            return Some(found);
        }
        // Servers come last: they take seconds, and may not be there.
        let candidate = self.request("debuginfo", module.build_id.as_deref()?)?;
        accept(&candidate, module).ok()
    }

    /// The file that `.gnu_debuglink` names.
    fn linked(
        &self,
        path: &Path,
        name: &[u8],
        expected: u32,
        object: &ObjectFile,
    ) -> Option<(PathBuf, ObjectFile)> {
        let name = Path::new(OsStr::from_bytes(name));
        // A name with directories in it is not one that tools write.
        if name.file_name() != Some(name.as_os_str()) {
            return None;
        }
        let real = path.canonicalize().ok()?;
        let directory = real.parent()?;
        let below_root = directory.strip_prefix("/").ok()?;
        let in_dirs = self.search.debug_dirs.iter().flat_map(|dir| {
            // A directory that the user named may hold the files without any structure.
            [dir.join(below_root).join(name), dir.join(name)]
        });
        let near = [directory.join(name), directory.join(".debug").join(name)];
        near.into_iter().chain(in_dirs).find_map(|candidate| {
            if candidate.canonicalize().ok()? == real {
                return None;
            }
            let found = ObjectFile::read(&candidate).ok()?;
            let is_same = match (&found.build_id, &object.build_id) {
                (Some(found), Some(expected)) => found == expected,
                // Checksums are for files without build ids.
                _ => checksum(&candidate).ok()? == expected,
            };
            is_same.then_some((candidate, found))
        })
    }

    /// Requests a file from the servers.
    fn request(&mut self, what: &'static str, build_id: &str) -> Option<PathBuf> {
        if !self.search.debuginfod {
            return None;
        }
        self.debuginfod.request(what, build_id, &mut self.notes)
    }
}

/// The file at a path, if it is the one that was loaded.
fn accept(path: &Path, module: &Module) -> Result<(PathBuf, ObjectFile), NoFile> {
    let object = ObjectFile::read(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => NoFile::Missing,
        std::io::ErrorKind::InvalidData => NoFile::NotElf,
        _ => NoFile::Unreadable,
    })?;
    if object.build_id == module.build_id {
        Ok((path.to_owned(), object))
    } else {
        Err(NoFile::OtherBuild)
    }
}

/// `.build-id/ab/cdef…` in a directory.
fn build_id_path(dir: &Path, build_id: &str, ending: &str) -> Option<PathBuf> {
    // It comes from a database: it must be no path.
    if build_id.len() < 4 || !build_id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let (directory, name) = build_id.split_at(2);
    Some(
        dir.join(".build-id")
            .join(directory)
            .join(format!("{name}{ending}")),
    )
}
