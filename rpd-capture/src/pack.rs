//! Packs: data in chunks, by hash, each stored once.
//!
//! A pack is a file that grows: [`MAGIC`], then for each chunk its head (hash, bytes, stored bytes, codec) and what is
//! stored. A chunk of zeros is not stored at all. A staging file that has become a pack has neither: its chunks lie
//! uncompressed where the program wrote them. Chunks are found by the table of the database alone. Hashes are BLAKE3 of
//! the chunk's own bytes and are checked when it is read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rpd_spool::regular_file::{self, Links};

use crate::{CaptureError, files};

/// First bytes of a pack.
pub const MAGIC: [u8; 8] = *b"RPDPACK1";

/// Bytes of a chunk; the last of some data has fewer.
pub const CHUNK: usize = 1 << 20;

/// Bytes after which another pack is begun.
const LARGEST: u64 = 1 << 30;

/// Bytes that are compressed to estimate whether compression of the chunk saves enough.
const PROBE: usize = 64 << 10;

/// Head of a chunk in a pack: hash, bytes, stored bytes, codec, padding.
const HEAD: usize = 48;

/// BLAKE3 hash of a chunk, or of data.
pub type Hash = [u8; 32];

/// Encoding of a stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Bytes as they are, not compressed.
    Raw = 0,
    /// Bytes compressed with zstd.
    Zstd = 1,
    /// No bytes: all of them are zero.
    Zeros = 2,
}

impl Codec {
    /// The codec with this number in files; `None` for any other number.
    pub fn from_number(number: i64) -> Option<Codec> {
        [Codec::Raw, Codec::Zstd, Codec::Zeros]
            .into_iter()
            .find(|codec| *codec as i64 == number)
    }
}

/// Location of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the pack; 0 where nothing is stored.
    pub pack: u32,
    /// Offset of the chunk's bytes in the pack.
    pub offset: u64,
    /// Size of the chunk in bytes.
    pub size: u32,
    /// Size of the chunk's bytes in the pack.
    pub stored: u32,
    /// Encoding of the bytes: raw, compressed, or all zero.
    pub codec: Codec,
}

/// Name of the pack with this number.
pub fn name(number: u32) -> String {
    format!("pack-{number:05}.rpdp")
}

/// Stores chunks in packs, each once.
pub struct PackWriter {
    directory: PathBuf,
    level: Option<i32>,
    /// The pack that is written, and its number.
    file: Option<File>,
    number: u32,
    at: u64,
    /// The number of the last pack that was begun.
    last_number: u32,
    /// The number of the staging file as a pack, when some chunks remain there.
    staging: Option<u32>,
    chunks: HashMap<Hash, Chunk>,
    /// Chunks that were stored since [`PackWriter::take_fresh`].
    fresh: Vec<Hash>,
    buffer: Vec<u8>,
    /// Buffer in which [`PackWriter::store_all`] reads parts.
    part: Vec<u8>,
    compressor: Option<zstd::bulk::Compressor<'static>>,
}

impl PackWriter {
    /// Stores in `directory`, compressed with zstd at `level`; `None`: not compressed.
    pub fn new(directory: PathBuf, level: Option<i32>) -> PackWriter {
        PackWriter {
            directory,
            level,
            file: None,
            number: 0,
            at: 0,
            last_number: 0,
            staging: None,
            chunks: HashMap::new(),
            fresh: Vec::new(),
            buffer: Vec::new(),
            part: Vec::new(),
            compressor: level.and_then(|level| zstd::bulk::Compressor::new(level).ok()),
        }
    }

    /// Chunks that were written so far, by their hash.
    pub fn chunks(&self) -> &HashMap<Hash, Chunk> {
        &self.chunks
    }

    /// Bytes of the chunks so far, and bytes that they take.
    pub fn sums(&self) -> (u64, u64) {
        let chunks = self.chunks.values();
        chunks.fold((0, 0), |(size, stored), chunk| {
            (
                size + u64::from(chunk.size),
                stored + u64::from(chunk.stored),
            )
        })
    }

    /// Stores a chunk unless it is there; its hash.
    ///
    /// # Errors
    /// When the pack cannot be written.
    pub fn store(&mut self, bytes: &[u8]) -> Result<Hash, CaptureError> {
        self.store_at(bytes, None)
    }

    /// Stores a chunk unless the pack has it, and returns its hash. New bytes that are not worth compressing remain
    /// in the staging file, if they are there at the offset `staged`.
    fn store_at(&mut self, bytes: &[u8], staged: Option<u64>) -> Result<Hash, CaptureError> {
        let hash = *blake3::hash(bytes).as_bytes();
        if self.chunks.contains_key(&hash) {
            return Ok(hash);
        }
        let size = bytes.len() as u32;
        // Zeros take no room in a pack.
        if is_zero(bytes) {
            let zeros = Chunk {
                pack: 0,
                offset: 0,
                size,
                stored: 0,
                codec: Codec::Zeros,
            };
            self.add(hash, zeros);
            return Ok(hash);
        }
        let codec = self.compress(bytes);
        // Bytes that do not get smaller stay in the staging file, so that they are not written a second time.
        if let (Codec::Raw, Some(offset)) = (codec, staged) {
            let pack = match self.staging {
                Some(known) => known,
                None => self.next_number(),
            };
            self.staging = Some(pack);
            let chunk = Chunk {
                pack,
                offset,
                size,
                stored: size,
                codec,
            };
            self.add(hash, chunk);
            return Ok(hash);
        }
        self.append(hash, bytes, codec)?;
        Ok(hash)
    }

    /// Adds a chunk to the pack that is written: `bytes`, or where they are compressed what is in the buffer.
    fn append(&mut self, hash: Hash, bytes: &[u8], codec: Codec) -> Result<(), CaptureError> {
        let size = bytes.len() as u32;
        let stored = match codec {
            Codec::Zstd => self.buffer.len(),
            Codec::Raw | Codec::Zeros => bytes.len(),
        } as u32;
        if self.file.is_none() || self.at > LARGEST {
            self.begin()?;
        }
        let mut head = [0u8; HEAD];
        head[..32].copy_from_slice(&hash);
        head[32..36].copy_from_slice(&size.to_le_bytes());
        head[36..40].copy_from_slice(&stored.to_le_bytes());
        head[40] = codec as u8;
        let path = self.directory.join(name(self.number));
        let Some(file) = &mut self.file else {
            return Err(CaptureError::damaged(&path, "no pack is open"));
        };
        let body = match codec {
            Codec::Zstd => &self.buffer[..],
            Codec::Raw | Codec::Zeros => bytes,
        };
        file.write_all(&head)
            .and_then(|()| file.write_all(body))
            .map_err(CaptureError::io(&path))?;
        let chunk = Chunk {
            pack: self.number,
            offset: self.at + HEAD as u64,
            size,
            stored,
            codec,
        };
        self.at += (HEAD + body.len()) as u64;
        self.add(hash, chunk);
        Ok(())
    }

    fn add(&mut self, hash: Hash, chunk: Chunk) {
        self.chunks.insert(hash, chunk);
        self.fresh.push(hash);
    }

    /// The chunks that were stored since the last call, and whether each remains in the staging file.
    pub(crate) fn take_fresh(&mut self) -> Vec<(Hash, Chunk, bool)> {
        let fresh = std::mem::take(&mut self.fresh);
        let known = fresh.into_iter().filter_map(|hash| {
            let chunk = *self.chunks.get(&hash)?;
            Some((hash, chunk, self.staging == Some(chunk.pack)))
        });
        known.collect()
    }

    /// Goes on where another writer has stopped, which had stored `chunks`; those for which the last part is true remain in the
    /// staging file.
    pub(crate) fn resume(&mut self, chunks: Vec<(Hash, Chunk, bool)>) {
        // The pack that was begun last may have no chunk that is known.
        let begun = (1..).take_while(|number| self.directory.join(name(*number)).exists());
        self.last_number = begun.last().unwrap_or(0);
        for (hash, chunk, is_staged) in chunks {
            self.last_number = self.last_number.max(chunk.pack);
            if is_staged {
                self.staging = Some(chunk.pack);
            }
            self.chunks.insert(hash, chunk);
        }
    }

    fn next_number(&mut self) -> u32 {
        self.last_number += 1;
        self.last_number
    }

    /// Bytes of the chunk that remains in the staging file at `offset`, if that is so.
    pub(crate) fn staged_at(&self, offset: u64, hash: &Hash) -> Option<u64> {
        let chunk = self.chunks.get(hash)?;
        let stays = self.staging == Some(chunk.pack) && chunk.offset == offset;
        stays.then_some(u64::from(chunk.size))
    }

    /// The chunks that remain in the staging file, by offset.
    pub(crate) fn staged(&self) -> Vec<(Hash, Chunk)> {
        let chunks = self.chunks.iter();
        let mut found: Vec<(Hash, Chunk)> = chunks
            .filter(|(_, chunk)| self.staging == Some(chunk.pack))
            .map(|(hash, chunk)| (*hash, *chunk))
            .collect();
        found.sort_by_key(|(_, chunk)| chunk.offset);
        found
    }

    /// Removes the entries of the chunks that are in a part of the staging file.
    pub(crate) fn forget_staged(&mut self, part: Range<u64>) {
        let staging = self.staging;
        self.chunks
            .retain(|_, chunk| staging != Some(chunk.pack) || !part.contains(&chunk.offset));
    }

    /// Stores the bytes of a chunk that remains in the staging file in a pack.
    pub(crate) fn unstage(&mut self, hash: &Hash, bytes: &[u8]) -> Result<(), CaptureError> {
        self.append(*hash, bytes, Codec::Raw)
    }

    /// Makes the staging file at `path` a pack, with the permissions of the other packs.
    pub(crate) fn adopt(&self, path: &Path) -> Result<(), CaptureError> {
        let pack = self.directory.join(name(self.staging.unwrap_or(0)));
        let new = files::create_new(&pack)?;
        let permissions = new.metadata().map(|found| found.permissions());
        permissions
            .and_then(|permissions| std::fs::set_permissions(path, permissions))
            .and_then(|()| std::fs::rename(path, &pack))
            .map_err(CaptureError::io(&pack))
    }

    /// Stores `size` bytes, which `read` yields in parts, and returns the hashes of the parts. With `keep` false they
    /// are only hashed. New parts that are not worth compressing remain in the staging file, if they are there from
    /// the offset `staged` on.
    ///
    /// # Errors
    /// The errors of `read`, and when a pack cannot be written.
    pub(crate) fn store_all<E: From<CaptureError>>(
        &mut self,
        size: u64,
        keep: bool,
        staged: Option<u64>,
        mut read: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<Vec<Hash>, E> {
        let mut parts = Vec::new();
        let mut at = 0;
        let mut part = std::mem::take(&mut self.part);
        while at < size || parts.is_empty() {
            part.resize((size - at).min(CHUNK as u64) as usize, 0);
            read(at, &mut part)?;
            parts.push(if keep {
                self.store_at(&part, staged.map(|offset| offset + at))?
            } else {
                *blake3::hash(&part).as_bytes()
            });
            at += part.len() as u64;
        }
        self.part = part;
        Ok(parts)
    }

    fn begin(&mut self) -> Result<(), CaptureError> {
        self.number = self.next_number();
        let path = self.directory.join(name(self.number));
        let mut file = files::create_new(&path)?;
        file.write_all(&MAGIC).map_err(CaptureError::io(&path))?;
        self.at = MAGIC.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    /// Compresses into the buffer, where that gains at least a twentieth.
    fn compress(&mut self, bytes: &[u8]) -> Codec {
        let (Some(_), Some(compressor)) = (self.level, &mut self.compressor) else {
            return Codec::Raw;
        };
        let gains = |stored: usize, size: usize| stored + size / 20 < size;
        let mut run = |bytes: &[u8], buffer: &mut Vec<u8>| {
            buffer.clear();
            buffer.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            compressor.compress_to_buffer(bytes, buffer).ok()
        };
        if bytes.len() > 2 * PROBE {
            let middle = bytes.len() / 2;
            let probe = &bytes[middle..middle + PROBE];
            if !run(probe, &mut self.buffer).is_some_and(|stored| gains(stored, PROBE)) {
                return Codec::Raw;
            }
        }
        match run(bytes, &mut self.buffer) {
            Some(stored) if gains(stored, bytes.len()) => Codec::Zstd,
            _ => Codec::Raw,
        }
    }
}

/// Whether all bytes are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    rest.iter().all(|byte| *byte == 0)
        && chunks
            .iter()
            .all(|chunk| chunk.iter().fold(0, |any, byte| any | byte) == 0)
}

/// The hash of data, computed from the hashes of its chunks.
pub fn hash_of(chunks: &[Hash]) -> Hash {
    match chunks {
        [one] => *one,
        several => *blake3::hash(several.as_flattened()).as_bytes(),
    }
}

/// The hash of data that lie in memory.
pub fn hash_bytes(bytes: &[u8]) -> Hash {
    if bytes.len() <= CHUNK {
        return *blake3::hash(bytes).as_bytes();
    }
    let chunks: Vec<Hash> = bytes
        .chunks(CHUNK)
        .map(|chunk| *blake3::hash(chunk).as_bytes())
        .collect();
    hash_of(&chunks)
}

/// Reads chunks from packs.
#[derive(Debug)]
pub struct PackReader {
    directory: PathBuf,
    files: HashMap<u32, File>,
}

impl PackReader {
    /// Reads from the packs in `directory`.
    pub fn new(directory: &Path) -> PackReader {
        PackReader {
            directory: directory.to_owned(),
            files: HashMap::new(),
        }
    }

    /// Appends the bytes of a chunk to `into`, and checks them against the chunk's hash.
    ///
    /// # Errors
    /// When they cannot be read, or are not those that were stored.
    pub fn read(
        &mut self,
        hash: &Hash,
        chunk: &Chunk,
        into: &mut Vec<u8>,
    ) -> Result<(), CaptureError> {
        let path = self.directory.join(name(chunk.pack));
        let wrong = |what: &str| {
            CaptureError::damaged(
                &path,
                format!("chunk {} at byte {} {what}", short(hash), chunk.offset),
            )
        };
        // The numbers are the database's, which may be damaged: memory is not reserved for whatever it says.
        if chunk.size as usize > CHUNK || chunk.stored as usize > 2 * CHUNK {
            return Err(wrong("has an impossible size"));
        }
        let start = into.len();
        if chunk.codec == Codec::Zeros {
            into.resize(start + chunk.size as usize, 0);
        } else {
            let file = match self.files.entry(chunk.pack) {
                Entry::Occupied(open) => open.into_mut(),
                Entry::Vacant(new) => {
                    let opened = regular_file::open(&path, Links::Follow);
                    new.insert(opened.map_err(CaptureError::file(&path))?.0)
                }
            };
            let mut stored = vec![0; chunk.stored as usize];
            file.read_exact_at(&mut stored, chunk.offset)
                .map_err(|_| wrong("reaches beyond the end of the pack"))?;
            // The size is checked below, after decompression: a damaged frame may yield fewer bytes.
            match chunk.codec {
                Codec::Zstd => {
                    let bytes = zstd::bulk::decompress(&stored, chunk.size as usize)
                        .map_err(|_| wrong("cannot be decompressed"))?;
                    into.extend_from_slice(&bytes);
                }
                Codec::Raw | Codec::Zeros => into.extend_from_slice(&stored),
            }
        }
        let bytes = &into[start..];
        if bytes.len() != chunk.size as usize || blake3::hash(bytes).as_bytes() != hash {
            return Err(wrong("does not have the content that was stored"));
        }
        Ok(())
    }
}

/// A hash in hexadecimal digits.
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first digits of a hash, for messages.
pub fn short(hash: &[u8]) -> String {
    hex(&hash[..hash.len().min(8)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pack_stores_chunks_once_and_reads_them_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = PackWriter::new(directory.path().to_owned(), Some(1));
        let text: Vec<u8> = (0..CHUNK).map(|at| (at / 100) as u8).collect();
        let mut state = 1u64;
        let noise: Vec<u8> = (0..CHUNK)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                (state >> 56) as u8
            })
            .collect();
        let all = [&text[..], &noise, &vec![0; CHUNK], b"short", b""];
        let hashes: Vec<Hash> = all
            .iter()
            .map(|bytes| writer.store(bytes).expect("stored"))
            .collect();
        let size = std::fs::metadata(directory.path().join(name(1)))
            .expect("a pack")
            .len();
        for (bytes, hash) in all.iter().zip(&hashes) {
            assert_eq!(writer.store(bytes).expect("stored"), *hash);
        }
        assert_eq!(
            std::fs::metadata(directory.path().join(name(1)))
                .expect("a pack")
                .len(),
            size
        );
        let codec = |index: usize| writer.chunks()[&hashes[index]].codec;
        assert_eq!(
            [0, 1, 2].map(codec),
            [Codec::Zstd, Codec::Raw, Codec::Zeros]
        );
        let mut reader = PackReader::new(directory.path());
        for (bytes, hash) in all.iter().zip(&hashes) {
            let mut read = Vec::new();
            reader
                .read(hash, &writer.chunks()[hash], &mut read)
                .expect("read");
            assert!(read == *bytes);
        }
    }

    #[test]
    fn pack_reader_names_a_changed_chunk() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = PackWriter::new(directory.path().to_owned(), None);
        let hash = writer.store(b"some bytes of data").expect("stored");
        let chunk = writer.chunks()[&hash];
        let path = directory.path().join(name(1));
        let mut bytes = std::fs::read(&path).expect("a pack");
        bytes[chunk.offset as usize + 3] ^= 1;
        std::fs::write(&path, &bytes).expect("written");
        let error = PackReader::new(directory.path())
            .read(&hash, &chunk, &mut Vec::new())
            .expect_err("changed");
        let text = error.to_string();
        assert!(
            text.contains("pack-00001.rpdp is damaged: chunk "),
            "{text}"
        );
        assert!(
            text.ends_with("at byte 56 does not have the content that was stored"),
            "{text}"
        );
        bytes.truncate(60);
        std::fs::write(&path, &bytes).expect("written");
        let error = PackReader::new(directory.path())
            .read(&hash, &chunk, &mut Vec::new())
            .expect_err("cut");
        assert!(error.to_string().contains("beyond the end"), "{error}");
    }
}
