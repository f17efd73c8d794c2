//! The file of tiles: for each track its records, and bins of them for each zoom.
//!
//! A file begins with a word and the place of its directory. Tiles, each deflated, follow in no particular order, and the
//! directory has the place of each by its [`Key`]. The layout of what is in a tile is in `tile`, that of bins in `bins`.

mod bins;
mod build;
mod tile;

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

pub(crate) use build::deflate;
pub use build::{Built, build};
pub use tile::RECORDS;
pub(crate) use tile::{keep, lengths};

/// First bytes of a file; the number changes with the layout.
const MAGIC: &[u8; 8] = b"RPDVIEW1";
/// Bytes before the first tile: the magic, then offset and number of entries of the directory, and its checksum.
const HEAD: usize = 32;
/// Bytes of an entry of the directory.
const ENTRY: usize = 32;
/// Most entries that are read; more are a damaged file.
const MOST_ENTRIES: u64 = 1 << 26;
/// Bytes of a tile as it is stored: a longer one is a damaged file.
pub const MOST_BYTES: u32 = 4 << 20;

/// What cannot be done with a file of tiles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refuses.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file is not one of tiles, or was damaged.
    #[error("{}: {what}; remove it, and it is made anew", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// Times are too far apart for the page, whose numbers have 53 bits.
    #[error(
        "the records span {0} ns, more than the 104 days that a timeline shows; cut a window out with --window"
    )]
    TooLong(u64),
    /// There is nothing to show.
    #[error("there are no records to show")]
    Empty,
    /// A worker ended early.
    #[error("tiles could not be made: {0}")]
    Worker(String),
}

/// Kinds of tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// What there is: tracks, processes, GPUs. One.
    Meta = 0,
    /// Names, some thousand in each.
    Names = 1,
    /// What the tiles of a track hold: times, counts and sums by name.
    Index = 2,
    /// Bins of a track.
    Bins = 3,
    /// Records of a track.
    Records = 4,
    /// The rest of what is known of the records of the same number.
    Details = 5,
}

impl Part {
    /// All, by number.
    pub const ALL: [Part; 6] = [
        Part::Meta,
        Part::Names,
        Part::Index,
        Part::Bins,
        Part::Records,
        Part::Details,
    ];
}

/// What a tile is found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Kind.
    pub part: Part,
    /// Number of the track; 0 where it is of none.
    pub track: u32,
    /// Level of bins; 0 for others.
    pub level: u8,
    /// Number.
    pub number: u64,
}

/// A tile of the directory.
#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    offset: u64,
    length: u32,
}

impl Entry {
    fn bytes(&self) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[0] = self.key.part as u8;
        bytes[1] = self.key.level;
        bytes[4..8].copy_from_slice(&self.key.track.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.key.number.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; ENTRY]) -> Option<Entry> {
        let eight = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let four = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        Some(Entry {
            key: Key {
                part: *Part::ALL.get(usize::from(bytes[0]))?,
                track: four(4),
                level: bytes[1],
                number: eight(8),
            },
            offset: eight(16),
            length: four(24),
        })
    }
}

/// A file of tiles that is read. What is in it may come from anybody.
#[derive(Debug)]
pub struct Pyramid {
    file: File,
    path: PathBuf,
    entries: Vec<Entry>,
    identity: String,
}

impl Pyramid {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a complete file of tiles of this version.
    pub fn open(path: &Path) -> Result<Pyramid, Error> {
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(io)?;
        let size = file.metadata().map_err(io)?.len();
        Pyramid::read(file, path, size)
    }

    fn read(file: File, path: &Path, size: u64) -> Result<Pyramid, Error> {
        let damaged = |what| Error::Damaged {
            path: path.to_owned(),
            what,
        };
        let io = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut head = [0; HEAD];
        if size < HEAD as u64 {
            return Err(damaged("it is no file of tiles"));
        }
        file.read_exact_at(&mut head, 0).map_err(io)?;
        if &head[..8] != MAGIC {
            return Err(damaged("it is no file of tiles of this version"));
        }
        let eight = |at: usize| head[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
        let (offset, count, identity) = (eight(8), eight(16), eight(24));
        let ends = |length: u64| offset.checked_add(length).filter(|end| *end == size);
        let length = count * ENTRY as u64 + identity;
        if count > MOST_ENTRIES || identity > 1 << 20 || ends(length).is_none() {
            return Err(damaged("it is incomplete"));
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, offset).map_err(io)?;
        let text = bytes.split_off(count as usize * ENTRY);
        let identity = String::from_utf8(text).map_err(|_| damaged("its head is no text"))?;
        let entries = bytes.as_chunks().0.iter().map(Entry::from_bytes);
        let entries = entries.collect::<Option<Vec<_>>>();
        let entries = entries.ok_or_else(|| damaged("its directory is unknown"))?;
        let is_inside = |entry: &Entry| {
            let end = entry.offset.checked_add(entry.length.into());
            entry.length <= MOST_BYTES && end.is_some_and(|end| end <= offset)
        };
        if !entries.iter().all(is_inside) || !entries.is_sorted_by_key(|entry| entry.key) {
            return Err(damaged("its directory is damaged"));
        }
        Ok(Pyramid {
            file,
            path: path.to_owned(),
            entries,
            identity,
        })
    }

    /// What the file was made from, as it was given to [`build`].
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// A tile as it is stored, deflated; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn stored(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let Ok(place) = self.entries.binary_search_by_key(&key, |entry| entry.key) else {
            return Ok(None);
        };
        let entry = self.entries[place];
        let mut bytes = vec![0; entry.length as usize];
        self.file
            .read_exact_at(&mut bytes, entry.offset)
            .map_err(|source| Error::Io {
                path: self.path.clone(),
                source,
            })?;
        Ok(Some(bytes))
    }

    /// The content of a tile; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn tile(&self, key: Key) -> Result<Option<Vec<u8>>, Error> {
        let Some(stored) = self.stored(key)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        // Deflate makes at most about a thousand bytes of one.
        let most = u64::from(MOST_BYTES) * 16;
        let mut reader = flate2::read::ZlibDecoder::new(&stored[..]).take(most);
        match reader.read_to_end(&mut bytes) {
            Ok(_) => Ok(Some(bytes)),
            Err(_) => Err(Error::Damaged {
                path: self.path.clone(),
                what: "a tile is damaged",
            }),
        }
    }

    /// Keys of all tiles, in order.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.entries.iter().map(|entry| entry.key)
    }

    /// What there is: the object that the page reads.
    ///
    /// # Errors
    /// When it cannot be read or is damaged.
    pub fn meta(&self) -> Result<serde_json::Value, Error> {
        let key = Key {
            part: Part::Meta,
            track: 0,
            level: 0,
            number: 0,
        };
        let damaged = || Error::Damaged {
            path: self.path.clone(),
            what: "it does not say what it holds",
        };
        let bytes = self.tile(key)?.ok_or_else(damaged)?;
        serde_json::from_slice(&bytes).map_err(|_| damaged())
    }
}
