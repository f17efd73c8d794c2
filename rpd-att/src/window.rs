//! A window over a stream, which is read in large pieces, and of which a decoder can read any few bytes at once.

use std::io::{self, Read};

/// Number of bytes that are read at a time.
const PIECE: usize = 1 << 16;
/// Number of zeros behind the last byte, so that a token's word can be read anywhere.
const PAD: usize = 24;

/// A stream, with the bytes from the decoder's position on.
pub(crate) struct Window<R> {
    reader: R,
    /// Bytes of the stream: `start..end` was read and not consumed; `PAD` zeros follow `end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of bytes of the stream before the first byte of `buffer`.
    before: u64,
    eof: bool,
    error: Option<io::Error>,
}

impl<R: Read> Window<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            buffer: vec![0; PIECE + PAD],
            start: 0,
            end: 0,
            before: 0,
            eof: false,
            error: None,
        }
    }

    /// Whether at least `bytes` bytes are available, after reading more if necessary.
    #[inline]
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        self.end - self.start >= bytes || self.fill(bytes)
    }

    #[cold]
    fn fill(&mut self, bytes: usize) -> bool {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.before += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < bytes + PAD {
            self.buffer.resize(bytes + PAD, 0);
        }
        while self.end < bytes && !self.eof {
            let room = self.buffer.len() - PAD;
            match self.reader.read(&mut self.buffer[self.end..room]) {
                Ok(0) => self.eof = true,
                // A reader that claims more than it was given room for is broken; what it claims is not used.
                Ok(read) => self.end = (self.end + read).min(room),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.eof = true;
                    self.error = Some(error);
                }
            }
        }
        let end = self.end;
        self.buffer[end..end + PAD].fill(0);
        self.end >= bytes
    }

    /// Number of bytes that are available without reading more.
    #[inline]
    pub(crate) fn available(&self) -> usize {
        self.end - self.start
    }

    /// All bytes that are available without reading more, and zeros behind them.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// The eight bytes at an offset from the current position, zeros after the end. `at` is at most `available()`.
    #[inline]
    pub(crate) fn word(&self, at: usize) -> u64 {
        let from = self.start + at;
        match self.buffer.get(from..from + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => 0,
        }
    }

    /// Moves on by `bytes`, at most `available()`.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.start = (self.start + bytes).min(self.end);
    }

    /// Position of the window's first byte in the stream, in bytes.
    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.before + self.start as u64
    }

    /// The error that ended reading, if one did.
    pub(crate) fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }
}
