//! Debug information that lies in other files than the code (`-gsplit-dwarf`): `.dwo` files, where their compiler wrote
//! them, or a `.dwp` file beside the module. The skeleton in the module names them by an id, which is compared.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;

use crate::native::shorten;
use crate::{Evidence, Frame};

/// Loaded files with split debug information, by path; `None`: the file cannot be loaded.
#[derive(Default)]
pub(crate) struct SplitFiles(HashMap<PathBuf, Option<Loader>>);

impl SplitFiles {
    /// The frames at an address of a file, innermost first; empty where the file says nothing. Where the `.dwo` file is
    /// missing there is one frame, with a line and without a function. `shown` makes the names that are shown of those in
    /// the file.
    pub(crate) fn frames(
        &mut self,
        path: &Path,
        address: u64,
        mut shown: impl FnMut(&str) -> String,
    ) -> Vec<Frame> {
        let loader = (self.0.entry(path.to_owned())).or_insert_with(|| Loader::new(path).ok());
        let Some(found) = loader
            .as_ref()
            .and_then(|loader| loader.find_frames(address).ok())
        else {
            return Vec::new();
        };
        let mut found = found;
        let mut frames = Vec::new();
        // An error ends the frames: those further in are right.
        while let Ok(Some(frame)) = found.next() {
            let name = frame
                .function
                .as_ref()
                .and_then(|name| name.raw_name().ok());
            let place = frame.location;
            frames.push(Frame {
                function: name.map(|name| shown(&name)),
                file: place.as_ref().and_then(|place| place.file.map(shorten)),
                line: place
                    .as_ref()
                    .and_then(|place| place.line)
                    .filter(|line| *line > 0),
                column: place
                    .and_then(|place| place.column)
                    .filter(|column| *column > 0),
                evidence: Evidence::Dwarf,
            });
        }
        frames
    }
}
