//! Decodes a stream of any generation.

use std::io::{self, Read};

use crate::diagnosis::Diagnosis;
use crate::gfx9::Gfx9Token;
use crate::header::{Generation, Header, HeaderError};
use crate::output::Output;
use crate::rdna::RdnaKind;
use crate::record::Sink;
use crate::stitch::{Code, Stitcher};
use crate::window::Window;
use crate::{gfx9, rdna};

/// Reason for which a stream could not be decoded to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream does not begin with the header of a thread trace.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// Reading failed; the part that was read has been decoded.
    #[error("cannot read the thread trace: {0}")]
    Read(#[source] io::Error),
}

/// Decodes a stream, with memory that does not grow with its length.
///
/// `code` returns the instructions at an address; every record goes to `sink`, the hardware's version first. Tokens that
/// make no sense are skipped, and a stream that is cut off is decoded up to there: the diagnosis reports both.
pub fn decode<R: Read>(
    mut stream: R,
    code: &mut dyn Code,
    sink: &mut dyn Sink,
) -> Result<Diagnosis, Error> {
    decode_from(&mut stream, code, sink)
}

/// Decodes a stream from any reader. It is compiled once, here, with the optimisation of this crate, not in each crate
/// that decodes. Streams are read in large pieces.
fn decode_from(
    stream: &mut dyn Read,
    code: &mut dyn Code,
    sink: &mut dyn Sink,
) -> Result<Diagnosis, Error> {
    let mut window = Window::new(stream);
    window.has(8);
    let bytes = window.word(0).to_le_bytes();
    let header = Header::parse(&bytes[..window.available().min(8)]);
    if let Some(error) = window.take_error() {
        return Err(Error::Read(error));
    }
    let header = header?;
    let stitcher = Stitcher::new(code, header.generation, header.exclude_barrier_wait);
    let output = Output::new(sink, stitcher);
    let mut diagnosis = match header.generation {
        Generation::Gfx9 => {
            window.advance(8);
            gfx9::decode(&mut window, &header, output)
        }
        // The header is a token.
        Generation::Gfx10 | Generation::Gfx11 | Generation::Gfx12 => {
            rdna::decode(&mut window, &header, output)
        }
    };
    diagnosis.bytes = window.offset();
    match window.take_error() {
        Some(error) => Err(Error::Read(error)),
        None => Ok(diagnosis),
    }
}

/// A token of either family of streams, for listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A token of a stream of GFX9.
    Gfx9(Gfx9Token),
    /// A token of a stream of a later generation.
    Rdna {
        /// Type of the token.
        kind: RdnaKind,
        /// Bits of the token; for NEW_PC of GFX12 the bits after the first eight.
        word: u64,
    },
}

/// Passes the tokens of a stream to `visit` in the order of the stream, each with its time in cycles and its offset in
/// bytes.
///
/// Tokens of later generations that only pass time are left out.
pub fn tokens<R: Read>(
    stream: R,
    visit: &mut dyn FnMut(i64, u64, Token),
) -> Result<Header, HeaderError> {
    let mut window = Window::new(stream);
    window.has(8);
    let bytes = window.word(0).to_le_bytes();
    let header = Header::parse(&bytes[..window.available().min(8)])?;
    if header.generation == Generation::Gfx9 {
        window.advance(8);
        gfx9::tokens(&mut window, &mut |time, offset, token| {
            visit(time, offset, Token::Gfx9(token));
        });
        return Ok(header);
    }
    let mut tokens = rdna::Tokens::new(&mut window, header.generation);
    let mut batch = rdna::Batch::default();
    loop {
        let more = tokens.fill(&mut batch);
        for token in batch.tokens() {
            let rdna = Token::Rdna {
                kind: token.kind,
                word: token.word,
            };
            visit(token.time, token.offset, rdna);
        }
        batch.remove(batch.tokens().len());
        if !more {
            return Ok(header);
        }
    }
}
