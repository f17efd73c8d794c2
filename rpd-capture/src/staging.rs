//! The staging file of a process: data that its calls read and wrote, which the packs take while it runs.
//!
//! New data that are not worth compressing stay where the program wrote them: when the process has ended, the file becomes a
//! pack, and they are never copied. The rest of the file is given back while the program runs.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{FallocateFlags, FcntlArg, fallocate, fcntl};
use rpd_spool::capture::{DataHeader, STAGE_FILE};

use crate::CaptureError;
use crate::journal::{Journal, Taken};
use crate::pack::{CHUNK, Chunk, Hash, PackWriter};

/// Data begin at multiples of this in the staging file.
const ALIGN: u64 = 64;

/// Bytes that are taken before it is decided by their kinds whether more are left in the file.
const TRIAL: u64 = 16 << 20;

/// The smallest block of a file system; less than one cannot be given back.
const BLOCK: u64 = 4096;

/// Whether a file of `size` bytes of which `kept` are data of the capture is worth keeping as it is.
fn is_dense(kept: u64, size: u64) -> bool {
    kept >= size - size / 4
}

fn whole_file() -> nix::libc::flock {
    nix::libc::flock {
        l_type: nix::libc::F_WRLCK as nix::libc::c_short,
        l_whence: nix::libc::SEEK_SET as nix::libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    }
}

/// Whether an rpd takes data from the staging file in the directory `spool` of a process.
pub fn is_taken(spool: &Path) -> bool {
    let mut lock = whole_file();
    let asked = File::options()
        .read(true)
        .write(true)
        .open(spool.join(STAGE_FILE))
        .is_ok_and(|file| fcntl(&file, FcntlArg::F_OFD_GETLK(&mut lock)).is_ok());
    asked && lock.l_type != nix::libc::F_UNLCK as nix::libc::c_short
}

/// The staging file of one process.
#[derive(Debug)]
pub(crate) struct StagingFile {
    path: PathBuf,
    file: File,
    /// Bytes of data that stay.
    kept: u64,
    /// Bytes of all data that were taken.
    taken: u64,
}

impl StagingFile {
    /// Opens the file in the directory `spool` of a process; `None` while there is none.
    pub(crate) fn open(spool: &Path) -> Option<StagingFile> {
        let path = spool.join(STAGE_FILE);
        let file = File::options().read(true).write(true).open(&path).ok()?;
        // The process waits for room as long as somebody has this lock. File systems without locks are rare; there it waits as long
        // as data are taken.
        let _ = fcntl(&file, FcntlArg::F_OFD_SETLK(&whole_file()));
        Some(StagingFile {
            path,
            file,
            kept: 0,
            taken: 0,
        })
    }

    /// Opens the file of a process that has ended, of which another recorder has taken `taken` bytes and left `kept`.
    pub(crate) fn resume(spool: &Path, kept: u64, taken: u64) -> Option<StagingFile> {
        let mut file = StagingFile::open(spool)?;
        (file.kept, file.taken) = (kept, taken);
        Some(file)
    }

    /// Stores data of the file, or with `keep` false only hashes them. Returns the hashes of their chunks. Then notes
    /// them in the journal, and gives back the blocks of bytes that do not stay in the file.
    ///
    /// # Errors
    /// When the file cannot be read, or a pack or the journal cannot be written.
    pub(crate) fn take(
        &mut self,
        packs: &mut PackWriter,
        journal: &mut Journal,
        data: &DataHeader,
        keep: bool,
    ) -> Result<Vec<Hash>, CaptureError> {
        // A file of which little stays would keep its size for ever; the first megabytes are too few to tell.
        let may_stay = keep && (self.taken < TRIAL || is_dense(self.kept, self.taken));
        let staged = may_stay.then_some(data.offset);
        let stored = packs.store_all(data.size, keep, staged, |at, bytes| {
            let read = self
                .file
                .read_exact_at(bytes, data.offset.saturating_add(at));
            read.map_err(CaptureError::io(&self.path))
        });
        let noted = stored.and_then(|parts| {
            let taken = Taken {
                offset: data.offset,
                size: data.size,
                kept: keep,
                parts,
            };
            journal.add(&packs.take_fresh(), Some(&taken))?;
            Ok(taken.parts)
        });
        // The data count as lost, so that the program does not wait for their room.
        let parts = noted.inspect_err(|_| {
            packs.forget_staged(data.offset..end_of(data));
            self.discard(data);
        })?;
        self.taken += data.size;
        // Blocks between the parts that stay are given back, as the file system counts them as used.
        let mut unused = data.offset;
        for (index, part) in parts.iter().enumerate() {
            let offset = data.offset + (index * CHUNK) as u64;
            if let Some(size) = packs.staged_at(offset, part) {
                self.give_back(unused, offset);
                self.kept += size;
                unused = offset + size;
            }
        }
        self.give_back(unused, end_of(data));
        Ok(parts)
    }

    /// Gives data back that are not stored.
    pub(crate) fn discard(&self, data: &DataHeader) {
        self.give_back(data.offset, end_of(data));
    }

    /// Gives the blocks between two offsets back. Blocks that are only partly there keep their content.
    fn give_back(&self, from: u64, to: u64) {
        let len = to.saturating_sub(from);
        let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        if len >= BLOCK {
            let _ = fallocate(&self.file, flags, from as libc::off_t, len as libc::off_t);
        }
    }

    /// Makes the file a pack if most of it are data that stay, otherwise copies these to the other packs. A process that
    /// still runs may write to the file: its data are always copied.
    ///
    /// # Errors
    /// When the pack cannot be made.
    pub(crate) fn finish(
        self,
        packs: &mut PackWriter,
        journal: &mut Journal,
        has_ended: bool,
    ) -> Result<(), CaptureError> {
        let chunks = packs.staged();
        let Some((_, last)) = chunks.last() else {
            return Ok(());
        };
        let end = last.offset + u64::from(last.stored);
        let becomes_pack = has_ended && is_dense(self.kept, end);
        // Where there is no space for the copies, the file is kept as it is.
        if !becomes_pack && self.copy(packs, journal, &chunks).is_ok() {
            return Ok(());
        }
        self.file
            .set_len(end)
            .map_err(CaptureError::io(&self.path))?;
        packs.adopt(&self.path)
    }

    fn copy(
        &self,
        packs: &mut PackWriter,
        journal: &mut Journal,
        chunks: &[(Hash, Chunk)],
    ) -> Result<(), CaptureError> {
        let mut bytes = Vec::new();
        for (hash, chunk) in chunks {
            bytes.resize(chunk.stored as usize, 0);
            self.file
                .read_exact_at(&mut bytes, chunk.offset)
                .map_err(CaptureError::io(&self.path))?;
            packs.unstage(hash, &bytes)?;
            journal.add(&packs.take_fresh(), None)?;
            self.give_back(chunk.offset, chunk.offset + u64::from(chunk.stored));
        }
        Ok(())
    }
}

/// The end of the room that data have in the file.
fn end_of(data: &DataHeader) -> u64 {
    data.offset.saturating_add(room_of(data))
}

/// Bytes that data take in the file.
pub(crate) fn room_of(data: &DataHeader) -> u64 {
    // Recordings may be damaged.
    data.size
        .checked_next_multiple_of(ALIGN)
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use rpd_spool::capture::data_use;
    use zerocopy::FromZeros as _;

    use super::*;
    use crate::pack::{PackReader, name};

    const MIB: usize = 1 << 20;

    /// Bytes that cannot be compressed.
    fn noise(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    struct Staged {
        directory: tempfile::TempDir,
        packs: PackWriter,
        journal: Journal,
        file: StagingFile,
        taken: Vec<(Vec<u8>, Vec<Hash>)>,
        end: u64,
    }

    impl Staged {
        fn new() -> Staged {
            let directory = tempfile::tempdir().expect("a directory");
            File::create(directory.path().join(STAGE_FILE)).expect("a file");
            Staged {
                packs: PackWriter::new(directory.path().to_owned(), Some(1)),
                journal: Journal::open(directory.path()).expect("a journal"),
                file: StagingFile::open(directory.path()).expect("the file"),
                directory,
                taken: Vec::new(),
                end: 0,
            }
        }

        fn add(&mut self, bytes: Vec<u8>, keep: bool) {
            let mut data = DataHeader::new_zeroed();
            data.purpose = data_use::SOURCE;
            data.size = bytes.len() as u64;
            data.offset = self.end;
            self.file
                .file
                .write_all_at(&bytes, self.end)
                .expect("written");
            self.end = end_of(&data);
            let parts = self
                .file
                .take(&mut self.packs, &mut self.journal, &data, keep)
                .expect("taken");
            if keep {
                self.taken.push((bytes, parts));
            }
        }

        /// Ends the capture, checks that all data are there, and yields the packs: number and bytes.
        fn finish(mut self, has_ended: bool) -> Vec<(u32, u64)> {
            let finished = self
                .file
                .finish(&mut self.packs, &mut self.journal, has_ended);
            finished.expect("finished");
            let mut reader = PackReader::new(self.directory.path());
            for (bytes, parts) in &self.taken {
                let mut found = Vec::new();
                for part in parts {
                    let chunk = self.packs.chunks()[part];
                    reader.read(part, &chunk, &mut found).expect("read");
                }
                assert!(found == *bytes);
            }
            (1..=3)
                .filter_map(|number| {
                    let pack = self.directory.path().join(name(number));
                    Some((number, pack.metadata().ok()?.len()))
                })
                .collect()
        }
    }

    #[test]
    fn staging_file_becomes_a_pack_when_its_data_stay() {
        let mut staged = Staged::new();
        staged.add(noise(1, 3 * MIB + 100), true);
        staged.add(noise(2, 2 * MIB), true);
        // Known already, compressed, and zeros: none of them stays.
        staged.add(noise(2, MIB), true);
        staged.add(vec![7; 5000], true);
        staged.add(vec![0; 5000], true);
        let size = (3 * MIB + 128 + 2 * MIB) as u64;
        let [(1, staging), (2, compressed)] = staged.finish(true)[..] else {
            panic!("two packs");
        };
        assert_eq!(staging, size);
        assert!(compressed < 200, "{compressed}");
    }

    #[test]
    fn staging_forgets_data_that_cannot_be_stored_as_a_whole() {
        let mut staged = Staged::new();
        staged.add(noise(1, MIB), true);
        // The second chunk is compressed, and there is no directory for a pack.
        std::fs::remove_dir_all(staged.directory.path()).expect("removed");
        let mut data = DataHeader::new_zeroed();
        data.offset = staged.end;
        let bytes = [noise(2, MIB), vec![7; MIB]].concat();
        data.size = bytes.len() as u64;
        let written = staged.file.file.write_all_at(&bytes, data.offset);
        written.expect("written");
        let taken = staged
            .file
            .take(&mut staged.packs, &mut staged.journal, &data, true);
        assert!(taken.is_err());
        let offsets: Vec<u64> = staged
            .packs
            .staged()
            .iter()
            .map(|one| one.1.offset)
            .collect();
        assert_eq!(offsets, [0]);
    }

    #[test]
    fn staging_copies_data_when_little_of_the_file_stays() {
        let mut staged = Staged::new();
        staged.add(noise(1, MIB), true);
        // Results of which the hash alone is kept.
        staged.add(noise(2, 4 * MIB), false);
        staged.add(noise(3, MIB), true);
        assert_eq!(staged.finish(true), [(2, 2 * (MIB as u64 + 48) + 8)]);
    }

    #[test]
    fn staging_copies_data_while_the_process_runs() {
        let mut staged = Staged::new();
        staged.add(noise(1, MIB), true);
        assert_eq!(staged.finish(false), [(2, MIB as u64 + 48 + 8)]);
    }
}
