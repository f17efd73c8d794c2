//! A page with the time line of several recordings.

use std::collections::HashMap;
use std::path::PathBuf;

use super::timeline::{Extent, Timeline, cut, detail, is_exact};
use super::{Data, begin, end, quoted};
use crate::WriteError;
use crate::file::TextFile;
use crate::json::Object;
use crate::output::{Placed, Together};

/// Number of tracks of threads of all recordings together, of which each recording gets as many as the others.
const THREADS: usize = 256;

/// Greatest number of bytes of a name on the page.
const NAME: usize = 512;

/// A page in the making.
pub(crate) struct JointPage {
    file: TextFile,
    path: PathBuf,
    rest: &'static str,
    first: u64,
    last: u64,
    exact: bool,
    threads: usize,
    /// Numbers of the names that tracks refer to.
    names: HashMap<String, u32>,
    left_out: usize,
    separator: &'static str,
}

impl JointPage {
    /// Begins the page.
    pub(crate) fn create(path: PathBuf, together: &Together) -> Result<JointPage, WriteError> {
        let mut file = TextFile::create(path.clone())?;
        let rest = begin(&mut file, &format!("rpd: {}", together.title));
        let head = Object::new()
            .text("program", &together.title)
            .text("about", "the time line of all recordings")
            .array("notes", together.notes.iter().map(|note| quoted(note)))
            .number("length", together.last.saturating_sub(together.first))
            .array("frames", [])
            .json("stacks", "{}");
        // The page has these keys, and shows nothing for them.
        let head = ["cards", "tables", "code", "traces", "units"]
            .into_iter()
            .fold(head, |head, key| head.array(key, []));
        let mut data = Data(&mut file);
        data.append(&head.open())?;
        data.append(",\"tracks\":[")?;
        Ok(JointPage {
            file,
            path,
            rest,
            first: together.first,
            last: together.last,
            exact: is_exact(together.records),
            threads: THREADS / together.recordings.max(1),
            names: HashMap::new(),
            left_out: 0,
            separator: "",
        })
    }

    /// Adds the tracks of a recording.
    pub(crate) fn add(&mut self, placed: &Placed<'_>) -> Result<(), WriteError> {
        let own = |time: u64| time.saturating_add_signed(placed.shift.saturating_neg());
        let extent = Extent {
            origin: own(self.first),
            end: own(self.last),
            exact: self.exact,
            threads: self.threads,
        };
        let timeline = Timeline::within(placed.session, placed.options, extent);
        let mut timeline = timeline.map_err(|source| WriteError::Io {
            path: self.path.clone(),
            source,
        })?;
        timeline.join(placed.label, &mut self.names);
        self.left_out += timeline.left_out();
        let mut data = Data(&mut self.file);
        for track in timeline.tracks() {
            data.append(self.separator)?;
            data.append(&track)?;
            self.separator = ",";
        }
        Ok(())
    }

    /// Ends the page.
    pub(crate) fn finish(mut self) -> Result<PathBuf, WriteError> {
        let mut names: Vec<(&str, u32)> =
            self.names.iter().map(|(name, n)| (&**name, *n)).collect();
        names.sort_unstable_by_key(|(_, number)| *number);
        let mut data = Data(&mut self.file);
        data.append("]")?;
        data.array(
            "names",
            names.iter().map(|(name, _)| quoted(&cut(name, NAME))),
        )?;
        let detail = detail(self.exact, self.left_out);
        data.append(&format!(",\"detail\":{}}}", quoted(&detail)))?;
        end(&mut self.file, self.rest);
        self.file.finish()
    }
}
