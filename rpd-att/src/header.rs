//! The header, the first eight bytes of a stream: generation of the hardware, and configuration of the trace.

use std::fmt;

/// A family of hardware with one stream format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Generation {
    /// CDNA and older: byte-aligned tokens, time in steps of four cycles.
    Gfx9,
    /// RDNA 1 and 2.
    Gfx10,
    /// RDNA 3.
    Gfx11,
    /// RDNA 4.
    Gfx12,
}

impl Generation {
    /// The major version that outputs show.
    pub fn major(self) -> u32 {
        match self {
            Generation::Gfx9 => 9,
            Generation::Gfx10 => 10,
            Generation::Gfx11 => 11,
            Generation::Gfx12 => 12,
        }
    }
}

/// The first eight bytes of a stream, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Format of the tokens.
    pub generation: Generation,
    /// Version of the format. GFX9: 4 (MI200 and older), 5 (MI300) or 6 (MI350). Later: the stream's version.
    pub version: u8,
    /// GFX9: traced SIMDs, one bit for each. Later: number of the traced SIMD.
    pub simds: u8,
    /// GFX9: compute unit of which instructions are traced. Later: shader array (bit 7) and WGP.
    pub target: u8,
    /// Number of the shader engine; `None` for streams other than GFX9.
    pub shader_engine: Option<u8>,
    /// Whether buffers were written in turns.
    pub double_buffer: bool,
    /// Cycles of a double-precision operation, as a factor.
    pub(crate) double_rate: u32,
    /// Factor of derated operations.
    pub(crate) derate: u32,
    /// Whether waits for barriers write no token; only in GFX12.
    pub(crate) exclude_barrier_wait: bool,
}

/// Reason for which a stream is not decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderError {
    /// The stream has fewer than eight bytes: this many.
    Short(usize),
    /// The bytes are none of the known headers.
    Unknown([u8; 8]),
    /// The header is of the MI400 class, whose format is not established.
    Unsupported([u8; 8]),
}

impl fmt::Display for HeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderError::Short(bytes) => {
                write!(f, "a thread trace has at least 8 bytes, this one {bytes}")
            }
            HeaderError::Unknown(bytes) => write!(
                f,
                "the first 8 bytes, {}, are not the header of a GFX9 to GFX12 thread trace",
                Hex(bytes)
            ),
            HeaderError::Unsupported(bytes) => write!(
                f,
                "the first 8 bytes, {}, are the header of the MI400 class, which is not decoded",
                Hex(bytes)
            ),
        }
    }
}

impl std::error::Error for HeaderError {}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{byte:02x}")?;
        }
        Ok(())
    }
}

impl Header {
    /// Reads the header from the beginning of a stream.
    pub fn parse(stream: &[u8]) -> Result<Self, HeaderError> {
        let bytes: [u8; 8] = stream
            .get(..8)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(HeaderError::Short(stream.len()))?;
        let word = u64::from_le_bytes(bytes);
        let field = |low: u32, bits: u32| ((word >> low) & ((1 << bits) - 1)) as u32;
        let legacy = field(0, 13);
        let sub = field(13, 3);
        if (legacy == 0 || legacy == 0x11) && (4..=6).contains(&sub) {
            return Ok(Self {
                generation: Generation::Gfx9,
                version: sub as u8,
                simds: field(16, 4) as u8,
                target: field(20, 5) as u8,
                shader_engine: Some(field(26, 6) as u8),
                double_buffer: field(32, 1) == 1,
                double_rate: 1,
                derate: 1,
                exclude_barrier_wait: false,
            });
        }
        if legacy == 0 {
            return Err(HeaderError::Unknown(bytes));
        }
        let version = field(7, 6);
        let generation = match version {
            1 | 2 => Generation::Gfx10,
            3 => Generation::Gfx11,
            4 => Generation::Gfx12,
            5 => return Err(HeaderError::Unsupported(bytes)),
            _ => return Err(HeaderError::Unknown(bytes)),
        };
        let rate = field(28, 4) & if version < 3 { 0xF } else { 7 };
        Ok(Self {
            generation,
            version: version as u8,
            simds: field(13, 2) as u8,
            target: (field(15, 3) | field(19, 1) << 7) as u8,
            shader_engine: None,
            double_buffer: version >= 4 && field(43, 1) == 1,
            double_rate: 1 << rate.saturating_sub(1),
            derate: 1 << field(33, 3),
            exclude_barrier_wait: version == 4 && field(59, 1) == 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: [u8; 8]) -> Result<Header, HeaderError> {
        Header::parse(&bytes)
    }

    /// Checks thread-trace-22.
    #[test]
    fn the_software_header_of_gfx9_is_read() {
        let header = parse([0x11, 0xa0, 0x1f, 0, 0, 0, 0, 0]).expect("a header");
        assert_eq!(header.generation, Generation::Gfx9);
        assert_eq!((header.version, header.simds), (5, 0xF));
        assert_eq!((header.target, header.shader_engine), (1, Some(0)));
    }

    /// Checks thread-trace-23.
    #[test]
    fn data_without_a_header_is_refused() {
        assert_eq!(parse([0; 8]), Err(HeaderError::Unknown([0; 8])));
        // The low 13 bits are 0, and the three above them too.
        let random = [0, 0, 0xAB, 0x17, 0x99, 4, 5, 6];
        assert_eq!(parse(random), Err(HeaderError::Unknown(random)));
        assert_eq!(
            parse(random).expect_err("no header").to_string(),
            "the first 8 bytes, 00 00 ab 17 99 04 05 06, are not the header of a GFX9 to GFX12 thread trace"
        );
        assert_eq!(Header::parse(&[1, 2]), Err(HeaderError::Short(2)));
    }

    /// Checks thread-trace-24.
    #[test]
    fn versions_of_hardware_headers_name_the_generation() {
        let with = |version: u64| parse((0x11u64 | version << 7).to_le_bytes());
        assert_eq!(with(1).expect("a header").generation, Generation::Gfx10);
        assert_eq!(with(2).expect("a header").generation, Generation::Gfx10);
        assert_eq!(with(3).expect("a header").generation, Generation::Gfx11);
        assert_eq!(with(4).expect("a header").generation, Generation::Gfx12);
        assert!(matches!(with(5), Err(HeaderError::Unsupported(_))));
        assert!(matches!(with(6), Err(HeaderError::Unknown(_))));
    }
}
