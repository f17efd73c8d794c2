//! Files of thread traces, by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_spool::regular_file::{self, FileError, Links};

use crate::failure::Failure;

/// Directories below the given ones that are searched.
const DEEPEST: usize = 4;

/// Largest trace that is read whole, in bytes, for a decoder library: streams of a buffer of --att-buffer-size.
const LARGEST_TRACE: u64 = 8 << 30;

/// The bytes of a trace.
///
/// # Errors
/// When it cannot be read, is no regular file, or too large.
pub(crate) fn read_trace(path: &Path) -> Result<Vec<u8>, FileError> {
    regular_file::read(path, Links::Follow, LARGEST_TRACE)
}

/// A trace of one shader engine: `<prefix>_<agent>_shader_engine_<engine>_<dispatch>.att`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TraceFile {
    /// Number of the shader engine.
    pub(crate) engine: u32,
    /// Path of the file.
    pub(crate) path: PathBuf,
}

/// A code object: `<prefix>_<processor>_code_object_id_<id>.out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeFile {
    /// Number of the code object.
    pub(crate) id: u64,
    /// Path of the file.
    pub(crate) path: PathBuf,
}

/// Key of one directory of results.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TraceKey {
    /// The directory that the files are in.
    pub(crate) directory: PathBuf,
    /// Prefix of their names.
    pub(crate) prefix: String,
    /// Handle of the agent.
    pub(crate) agent: String,
    /// Number of the dispatch.
    pub(crate) dispatch: u64,
}

/// Traces that belong together, with the code objects of their process.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    /// Files of shader engines by agent and dispatch.
    pub(crate) traces: BTreeMap<TraceKey, Vec<TraceFile>>,
    /// Code objects by directory and prefix.
    code: BTreeMap<(PathBuf, String), Vec<CodeFile>>,
}

impl Traces {
    /// Finds traces and code objects in directories and among files. A trace that is named brings the code objects beside
    /// it, unless some are named.
    ///
    /// # Errors
    /// When a path does not exist, cannot be read, or is a file of another kind; when there is no trace.
    pub(crate) fn find(paths: &[PathBuf]) -> Result<Self> {
        let mut found = Self::default();
        let mut beside = BTreeSet::new();
        for path in paths {
            let what = std::fs::metadata(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            if what.is_dir() {
                found.search(path, DEEPEST)?;
            } else if !found.take(path) {
                return Err(Failure::usage(format!(
                    "att: {}: neither a trace (<prefix>_<agent>_shader_engine_<number>_<dispatch>.att) nor a code object \
                     (<prefix>_<processor>_code_object_id_<number>.out)",
                    path.display()
                ))
                .into());
            } else {
                beside.insert(directory_of(path));
            }
        }
        if found.code.is_empty() {
            for directory in beside {
                found.take_code(&directory)?;
            }
        }
        if found.traces.is_empty() {
            let names: Vec<_> = paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            return Err(Failure::failed(format!(
                "att: no thread trace (*.att) in {}",
                names.join(", ")
            ))
            .into());
        }
        // A file may be given twice, by itself and with its directory.
        for files in found.traces.values_mut() {
            files.sort();
            files.dedup();
        }
        Ok(found)
    }

    /// Takes the code objects in a directory.
    fn take_code(&mut self, directory: &Path) -> Result<()> {
        // The directory of a name alone is empty.
        let readable = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        let entries = std::fs::read_dir(readable)
            .with_context(|| format!("cannot read {}", readable.display()))?;
        let mut names: Vec<OsString> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort();
        for name in names {
            if name.to_str().and_then(code_name).is_some() {
                self.take(&directory.join(name));
            }
        }
        Ok(())
    }

    fn search(&mut self, directory: &Path, depth: usize) -> Result<()> {
        let entries = std::fs::read_dir(directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                let hidden = path
                    .file_name()
                    .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
                if depth > 0 && !hidden {
                    self.search(&path, depth - 1)?;
                }
            } else {
                self.take(&path);
            }
        }
        Ok(())
    }

    /// Takes a file; false when its name is neither a trace's nor a code object's.
    fn take(&mut self, path: &Path) -> bool {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            return false;
        };
        let directory = directory_of(path);
        if let Some((prefix, agent, engine, dispatch)) = trace_name(name) {
            let key = TraceKey {
                directory,
                prefix: prefix.to_owned(),
                agent: agent.to_owned(),
                dispatch,
            };
            self.traces.entry(key).or_default().push(TraceFile {
                engine,
                path: path.to_owned(),
            });
            return true;
        }
        if let Some((prefix, id)) = code_name(name) {
            let files = self.code.entry((directory, prefix.to_owned())).or_default();
            // The first one counts, as in the viewer.
            if files.iter().all(|file| file.id != id) {
                files.push(CodeFile {
                    id,
                    path: path.to_owned(),
                });
            }
            return true;
        }
        false
    }

    /// The code objects of a trace: those with its prefix, or, when there are none, all.
    pub(crate) fn code(&self, key: &TraceKey) -> Vec<&CodeFile> {
        let own = self.code.get(&(key.directory.clone(), key.prefix.clone()));
        match own {
            Some(files) => files.iter().collect(),
            None => self.code.values().flatten().collect(),
        }
    }
}

/// The directory of a file; empty for a name alone.
fn directory_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

/// Prefix, agent, shader engine and dispatch.
fn trace_name(name: &str) -> Option<(&str, &str, u32, u64)> {
    let stem = name.strip_suffix(".att")?;
    let (head, dispatch) = stem.rsplit_once('_')?;
    let (head, engine) = head.rsplit_once('_')?;
    let head = head.strip_suffix("_shader_engine")?;
    let (prefix, agent) = head.rsplit_once('_').unwrap_or(("", head));
    Some((prefix, agent, engine.parse().ok()?, dispatch.parse().ok()?))
}

/// Prefix and number of a code object.
fn code_name(name: &str) -> Option<(&str, u64)> {
    let stem = name.strip_suffix(".out").or(name.strip_suffix(".hsaco"))?;
    let (head, id) = stem.rsplit_once('_')?;
    let head = head.strip_suffix("_code_object_id")?;
    let prefix = head.rsplit_once('_').map_or("", |(prefix, _)| prefix);
    Some((prefix, id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_name_reads_the_parts_of_file_names() {
        assert_eq!(
            trace_name("host_17_8118_shader_engine_3_12.att"),
            Some(("host_17", "8118", 3, 12))
        );
        assert_eq!(
            trace_name("8118_shader_engine_0_1.att"),
            Some(("", "8118", 0, 1))
        );
        assert_eq!(trace_name("a_shader_engine_x_1.att"), None);
        assert_eq!(trace_name("a.att"), None);
        assert_eq!(code_name("17_gfx90a_code_object_id_5.out"), Some(("17", 5)));
        assert_eq!(code_name("gfx90a_code_object_id_5.hsaco"), Some(("", 5)));
        assert_eq!(code_name("5.out"), None);
    }

    #[test]
    fn traces_find_the_code_objects_of_their_process() {
        let directory = tempfile::tempdir().expect("a directory");
        for name in [
            "1_7_shader_engine_0_1.att",
            "1_7_shader_engine_4_1.att",
            "1_7_shader_engine_0_2.att",
            "2_7_shader_engine_0_1.att",
            "1_gfx90a_code_object_id_1.out",
            "2_gfx90a_code_object_id_1.out",
            "notes.txt",
        ] {
            std::fs::write(directory.path().join(name), "").expect("written");
        }
        let found = Traces::find(&[directory.path().to_owned()]).expect("traces");
        let of: Vec<_> = (found.traces.iter())
            .map(|(key, files)| (key.prefix.as_str(), key.dispatch, files.len()))
            .collect();
        assert_eq!(of, [("1", 1, 2), ("1", 2, 1), ("2", 1, 1)]);
        for key in found.traces.keys() {
            let code = found.code(key);
            assert_eq!(code.len(), 1);
            assert!(
                code[0]
                    .path
                    .to_str()
                    .is_some_and(|path| path.contains(&key.prefix))
            );
        }
        // A trace that is named has the code objects beside it, unless some are named.
        let file = |name: &str| directory.path().join(name);
        let trace = file("2_7_shader_engine_0_1.att");
        let codes = |paths: &[PathBuf]| {
            let found = Traces::find(paths).expect("a trace");
            let (key, _) = found.traces.first_key_value().expect("one");
            let codes = found.code(key).into_iter();
            codes.map(|code| code.path.clone()).collect::<Vec<_>>()
        };
        let own = file("2_gfx90a_code_object_id_1.out");
        let other = file("1_gfx90a_code_object_id_1.out");
        assert_eq!(codes(std::slice::from_ref(&trace)), [own]);
        assert_eq!(codes(&[trace, other.clone()]), [other]);
        let error = Traces::find(&[directory.path().join("notes.txt")]).expect_err("not a trace");
        assert!(error.to_string().contains("neither a trace"), "{error}");
    }
}
