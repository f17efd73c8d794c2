//! Reads recordings of memory accesses. Files are not trusted: all lengths are checked, and a malformed block is an
//! error with its offset.

use std::io::{self, Read};

use super::encoding::{self, EncodingState, Step, decode};
use super::{BlockKind, DispatchEnd, HEAD, LARGEST, Level, MAGIC};

/// A recorded dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Number that steps of the dispatch have in the file.
    pub number: u32,
    /// Name of the kernel, as compiled.
    pub kernel: String,
    /// Number among the dispatches of this kernel, in the order in which they began, from 1.
    pub nth: u64,
    /// Name, as compiled, of the code object's file in the directory of the recording.
    pub object: String,
    /// Address, in that file, of the instruction with offset 0.
    pub first: u64,
    /// Work-items of the grid: x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup: x, y, z.
    pub workgroup: [u32; 3],
    /// Set of instructions that were recorded.
    pub level: Level,
    /// Name of the device's processor, such as `gfx90a`.
    pub device: String,
}

/// A part of a recording, in the order of the file.
#[derive(Debug)]
pub enum Item<'r> {
    /// A dispatch began.
    Dispatch(Dispatch),
    /// Steps that a dispatch executed.
    Steps(Steps<'r>),
    /// A dispatch ended.
    End {
        /// Number of the dispatch in the file.
        dispatch: u32,
        /// Reason for which the recording of the dispatch ended.
        ending: DispatchEnd,
    },
}

/// Consecutive steps of a dispatch that one thread of the simulator executed.
#[derive(Debug)]
pub struct Steps<'r> {
    /// Number of the dispatch in the file.
    pub dispatch: u32,
    rest: &'r [u8],
    state: EncodingState,
    at: u64,
}

/// Reason for which a recording cannot be read further.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The content is not a valid recording.
    #[error("not a recording of memory accesses, or damaged at byte {at}: {what}")]
    Damaged {
        /// Offset of the damaged block in the file, in bytes.
        at: u64,
        /// Description of the damage.
        what: &'static str,
    },
}

/// Reads a recording from its start to its end.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// Number of bytes that were read so far.
    at: u64,
    content: Vec<u8>,
    cut: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the magic at the start of a recording.
    ///
    /// # Errors
    /// When the file cannot be read or is not a recording.
    pub fn new(mut input: R) -> Result<Reader<R>, Problem> {
        let mut magic = [0; MAGIC.len()];
        let there = fill(&mut input, &mut magic)?;
        if magic != MAGIC {
            return Err(Problem::Damaged {
                at: 0,
                what: "it does not begin with RPDACC1",
            });
        }
        Ok(Reader {
            input,
            at: there as u64,
            content: Vec::new(),
            cut: false,
        })
    }

    /// Whether the last block is incomplete, because the program that wrote the file was killed.
    pub fn is_cut_off(&self) -> bool {
        self.cut
    }

    /// The next part; `None` at the end of the file.
    ///
    /// # Errors
    /// When the file cannot be read or is damaged.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Problem> {
        let at = self.at;
        let damaged = |what| Problem::Damaged { at, what };
        let mut head = [0; HEAD];
        match fill(&mut self.input, &mut head)? {
            HEAD => {}
            there => {
                self.cut = there > 0;
                return Ok(None);
            }
        }
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let kind = BlockKind::from_number(word(0)).ok_or(damaged("a block of unknown kind"))?;
        let dispatch = word(4);
        let length = u64::from(word(8)) | u64::from(word(12)) << 32;
        if length > LARGEST as u64 {
            return Err(damaged("a block that is too long"));
        }
        self.content.resize(length as usize, 0);
        if fill(&mut self.input, &mut self.content)? < self.content.len() {
            self.cut = true;
            return Ok(None);
        }
        self.at += HEAD as u64 + length;
        let mut rest = self.content.as_slice();
        Ok(Some(match kind {
            BlockKind::Dispatch => {
                let described = describe(dispatch, &mut rest);
                Item::Dispatch(described.ok_or(damaged("the description of a dispatch"))?)
            }
            BlockKind::Steps => Item::Steps(Steps {
                dispatch,
                rest,
                state: EncodingState::default(),
                at: at + HEAD as u64,
            }),
            BlockKind::End => {
                let ending = encoding::decode_number(&mut rest).and_then(DispatchEnd::from_number);
                let ending = ending.ok_or(damaged("the end of a dispatch"))?;
                Item::End { dispatch, ending }
            }
        }))
    }
}

impl Steps<'_> {
    /// Decodes the next step into `step`. False at the end of the block.
    ///
    /// # Errors
    /// When the block is damaged.
    pub fn next_step(&mut self, step: &mut Step) -> Result<bool, Problem> {
        if self.rest.is_empty() {
            return Ok(false);
        }
        let before = self.rest.len();
        let damaged = Problem::Damaged {
            at: self.at,
            what: "a step",
        };
        decode(&mut self.rest, &mut self.state, step).ok_or(damaged)?;
        self.at += (before - self.rest.len()) as u64;
        Ok(true)
    }
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut there = 0;
    while there < buffer.len() {
        match input.read(&mut buffer[there..]) {
            Ok(0) => break,
            Ok(more) => there += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(there)
}

fn describe(number: u32, rest: &mut &[u8]) -> Option<Dispatch> {
    let mut text = || {
        let length = usize::try_from(encoding::decode_number(rest)?).ok()?;
        let (text, behind) = rest.split_at_checked(length)?;
        *rest = behind;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    let (kernel, object, device) = (text()?, text()?, text()?);
    let nth = encoding::decode_number(rest)?;
    let first = encoding::decode_number(rest)?;
    let mut sizes = [0; 6];
    for size in &mut sizes {
        *size = u32::try_from(encoding::decode_number(rest)?).ok()?;
    }
    let level = u32::try_from(encoding::decode_number(rest)?).ok()?;
    Some(Dispatch {
        number,
        kernel,
        nth,
        object,
        first,
        grid: [sizes[0], sizes[1], sizes[2]],
        workgroup: [sizes[3], sizes[4], sizes[5]],
        level: Level::from_number(level)?,
        device,
    })
}
