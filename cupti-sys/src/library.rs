//! Where CUPTI is.
//!
//! The program may have one already, and a second one in the process would be refused; otherwise the loader's own places are
//! searched, then directories beside what the program has loaded. The version need not be that of the program's runtime.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::{Functions, MissingFunction};

/// Names of the library, the newest first.
pub const SONAMES: [&CStr; 3] = [c"libcupti.so.13", c"libcupti.so.12", c"libcupti.so.11.8"];

/// Why there is no CUPTI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// No library of these names is in the loader's places or in the directories.
    Missing {
        /// The directories that were searched.
        directories: Vec<PathBuf>,
    },
    /// The library at `path` is not usable.
    Unusable {
        /// The library's file.
        path: PathBuf,
        /// What it lacks.
        missing: MissingFunction,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Missing { directories } => {
                f.write_str("neither libcupti.so.13 nor .12 nor .11.8 was found (looked where the loader does")?;
                for directory in directories {
                    write!(f, ", in {}", directory.display())?;
                }
                f.write_str(")")
            }
            OpenError::Unusable { path, missing } => {
                write!(f, "{} is no CUPTI from 11.8 on: {missing}", path.display())
            }
        }
    }
}

impl std::error::Error for OpenError {}

/// An open CUPTI; it is never closed.
#[derive(Debug)]
pub struct Library {
    /// Functions of the library.
    pub functions: Functions,
    /// File of the library, as far as the loader knows it.
    pub path: PathBuf,
}

/// Opens the CUPTI of this process.
///
/// # Errors
/// There is none, or it lacks what every version from 11.8 on has.
pub fn open() -> Result<Library, OpenError> {
    let loaded = SONAMES
        .iter()
        .map(|name| dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD));
    let found = SONAMES.iter().map(|name| dlopen(name, libc::RTLD_LAZY));
    let mut handle = loaded
        .chain(found)
        .find(|handle| !handle.is_null())
        .unwrap_or(std::ptr::null_mut());
    let mut directories = Vec::new();
    if handle.is_null() {
        directories = candidates();
        let files = directories.iter().flat_map(|directory| {
            SONAMES.map(|name| directory.join(OsStr::from_bytes(name.to_bytes())))
        });
        handle = files
            .filter(|file| file.is_file())
            .filter_map(|file| CString::new(file.as_os_str().as_bytes()).ok())
            .map(|file| dlopen(&file, libc::RTLD_LAZY))
            .find(|handle| !handle.is_null())
            .unwrap_or(std::ptr::null_mut());
    }
    if handle.is_null() {
        return Err(OpenError::Missing { directories });
    }
    // SAFETY: the library goes by the name of CUPTI, so what it has under CUPTI's names are CUPTI's functions. The names are
    // text.
    let functions = unsafe { Functions::load(|name| libc::dlsym(handle, name.as_ptr())) };
    // SAFETY: as above.
    let path = path_of(unsafe { libc::dlsym(handle, c"cuptiGetVersion".as_ptr()) });
    match functions {
        Ok(functions) => Ok(Library { functions, path }),
        Err(missing) => Err(OpenError::Unusable { path, missing }),
    }
}

fn dlopen(name: &CStr, flags: c_int) -> *mut c_void {
    // SAFETY: the name is text. Constructors of the library run, as they do for every tool.
    unsafe { libc::dlopen(name.as_ptr(), flags) }
}

/// The file of the library that has this code; empty when it is unknown.
fn path_of(code: *const c_void) -> PathBuf {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: any address may be requested; the record is written when the answer is not zero, and its name is text.
    unsafe {
        if libc::dladdr(code, info.as_mut_ptr()) == 0 {
            return PathBuf::new();
        }
        let name = CStr::from_ptr(info.assume_init().dli_fname);
        PathBuf::from(OsStr::from_bytes(name.to_bytes()))
    }
}

/// Directories in which a CUPTI may be that the loader does not find.
fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for library in loaded_files() {
        found.extend(beside(&library));
    }
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        if let Some(root) = std::env::var_os(variable).filter(|root| !root.is_empty()) {
            found.extend(in_toolkit(Path::new(&root)));
        }
    }
    found.extend(in_toolkit(Path::new("/usr/local/cuda")));
    let mut seen = BTreeSet::new();
    found.retain(|directory| directory.is_dir() && seen.insert(directory.clone()));
    found
}

/// Directories of a toolkit.
fn in_toolkit(root: &Path) -> [PathBuf; 3] {
    ["lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib"]
        .map(|directory| root.join(directory))
}

/// Directories in which the CUPTI that belongs to a loaded library may be: that of the runtime, and those of Python packages.
fn beside(library: &Path) -> Vec<PathBuf> {
    let name = library.file_name().map(OsStr::as_bytes).unwrap_or_default();
    let mut found = Vec::new();
    if let Some(directory) = library.parent()
        && name.starts_with(b"libcudart.so")
    {
        found.push(directory.to_owned());
        found.push(directory.join("../extras/CUPTI/lib64"));
    }
    let packages = library
        .ancestors()
        .find(|path| path.file_name().is_some_and(|name| name == "site-packages"));
    if let Some(packages) = packages {
        found.push(packages.join("nvidia/cu13/lib"));
        found.push(packages.join("nvidia/cuda_cupti/lib"));
    }
    found
}

/// Files of the libraries that the process has loaded.
fn loaded_files() -> Vec<PathBuf> {
    unsafe extern "C" fn add(info: *mut libc::dl_phdr_info, _: usize, files: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record, whose name is text or null, and the pointer given below.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() {
                let bytes = CStr::from_ptr(name).to_bytes();
                (*files.cast::<Vec<PathBuf>>()).push(PathBuf::from(OsStr::from_bytes(bytes)));
            }
        }
        0
    }
    let mut files: Vec<PathBuf> = Vec::new();
    // SAFETY: the function takes the list that is passed with it.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut files).cast()) };
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_names_directories_of_the_runtime_and_of_python_packages() {
        let of = |path: &str| beside(Path::new(path));
        assert_eq!(of("/usr/lib/libm.so.6"), Vec::<PathBuf>::new());
        assert_eq!(
            of("/opt/cuda/lib64/libcudart.so.13")[0],
            Path::new("/opt/cuda/lib64")
        );
        let packages = of("/v/lib/python3.12/site-packages/nvidia/cu13/lib/libcudart.so.13");
        let expected = Path::new("/v/lib/python3.12/site-packages/nvidia/cuda_cupti/lib");
        assert!(packages.iter().any(|path| path == expected), "{packages:?}");
    }

    #[test]
    fn loaded_files_has_the_c_library() {
        let has = |file: &PathBuf| file.to_string_lossy().contains("libc.so");
        assert!(loaded_files().iter().any(has));
    }

    #[test]
    fn missing_library_is_described_with_the_places() {
        let error = OpenError::Missing {
            directories: vec![PathBuf::from("/a"), PathBuf::from("/b")],
        };
        assert_eq!(
            error.to_string(),
            "neither libcupti.so.13 nor .12 nor .11.8 was found (looked where the loader does, in /a, in /b)"
        );
    }
}
