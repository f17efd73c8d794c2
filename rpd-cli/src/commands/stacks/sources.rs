//! Inputs of the commands about stacks: databases, and files of RPD.

use std::path::PathBuf;

use anyhow::Result;
use rpd_core::session::Window;
use rpd_formats::rocpd::read::RpdStacks;

use super::super::file_of_rpd_is_whole;
use super::super::window::WindowOptions;

/// Inputs of a command, by their kind.
pub(super) struct Sources {
    /// Databases, and other files that were named, which are reported as errors when they are opened.
    pub(super) databases: Vec<PathBuf>,
    /// Files of RPD among the inputs.
    pub(super) rpd_files: Vec<RpdStacks>,
    /// Time window that is read of the databases.
    pub(super) window: Option<Window>,
}

impl Sources {
    /// Sorts the files into databases and files of RPD. Files of RPD are read whole.
    pub(super) fn open(
        name: &str,
        paths: Vec<PathBuf>,
        window: Option<&WindowOptions>,
    ) -> Result<Sources> {
        let (mut databases, mut rpd_files) = (Vec::new(), Vec::new());
        for path in paths {
            match RpdStacks::open(&path) {
                Ok(Some(file)) => rpd_files.push(file),
                // Problems are reported when it is read as a database.
                Ok(None) | Err(_) => databases.push(path),
            }
        }
        let window = window.filter(|window| window.is_given());
        if let (Some(_), Some(file)) = (window, rpd_files.first()) {
            return Err(file_of_rpd_is_whole(name, file.path()));
        }
        let window = match window {
            Some(window) => window.resolve(name, &databases)?,
            None => None,
        };
        Ok(Sources {
            databases,
            rpd_files,
            window,
        })
    }
}
