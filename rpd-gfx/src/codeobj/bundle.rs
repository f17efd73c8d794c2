//! Offload bundles: finds the code object for a device in a bundle.

use super::Error;
use std::borrow::Cow;
use std::fmt;
use std::io::Read;

/// First bytes of a bundle that is not compressed.
const PLAIN_MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";
/// First bytes of a compressed bundle.
const COMPRESSED_MAGIC: &[u8; 4] = b"CCOB";
/// First word of the wrapper that `__hipRegisterFatBinary` gets ("HIPF" read as big-endian).
const WRAPPER_MAGIC: u32 = 0x4849_5046;
/// Greatest uncompressed size of a bundle in bytes. It is larger than any real one, and limits what damaged data can
/// make the reader allocate.
const MAX_UNCOMPRESSED: u64 = 4 << 30;
/// Greatest number of entries of a bundle.
const MAX_ENTRIES: u64 = 4096;
/// Greatest length of an entry's triple in bytes.
const MAX_TRIPLE: u64 = 4096;

/// Setting of a target feature (`xnack`, `sramecc`): of a device, or required by code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toggle {
    /// No setting. Code without one runs with the feature on or off.
    Any,
    /// The feature is on.
    On,
    /// The feature is off.
    Off,
}

impl Toggle {
    /// Whether code that requires `self` runs on a device with the setting `device`.
    fn runs_on(self, device: Toggle) -> bool {
        self == Toggle::Any || device == Toggle::Any || self == device
    }
}

/// A processor with its target features, written like `gfx90a:sramecc+:xnack-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Processor name such as `gfx90a`.
    pub processor: String,
    /// Setting of `sramecc`, error correction of on-chip memory.
    pub sramecc: Toggle,
    /// Setting of `xnack`, retry of memory accesses after a page fault.
    pub xnack: Toggle,
}

impl Target {
    /// Parses `processor[:feature+|-]...`, with or without a triple in front
    /// (`hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-`).
    pub fn parse(text: &str) -> Result<Self, Error> {
        let id = text.rsplit_once("--").map_or(text, |(_, id)| id);
        let mut parts = id.split(':');
        let mut target = Target {
            processor: parts.next().unwrap_or_default().to_owned(),
            sramecc: Toggle::Any,
            xnack: Toggle::Any,
        };
        for part in parts {
            let (name, state) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name), _) => (name, Toggle::On),
                (_, Some(name)) => (name, Toggle::Off),
                _ => {
                    return Err(Error::malformed(
                        "target id",
                        format!("feature `{part}` of `{text}` does not end in + or -"),
                    ));
                }
            };
            match name {
                "sramecc" => target.sramecc = state,
                "xnack" => target.xnack = state,
                _ => {
                    return Err(Error::Unsupported {
                        what: "target feature",
                        value: name.to_owned(),
                    });
                }
            }
        }
        Ok(target)
    }

    /// Whether code built for `self` runs on `device`.
    pub fn runs_on(&self, device: &Target) -> bool {
        self.processor == device.processor
            && self.sramecc.runs_on(device.sramecc)
            && self.xnack.runs_on(device.xnack)
    }

    /// Number of features that the code requires. Of several entries that run on a device, the one that requires the
    /// most is chosen.
    fn specificity(&self) -> u32 {
        u32::from(self.sramecc != Toggle::Any) + u32::from(self.xnack != Toggle::Any)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        for (name, state) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match state {
                Toggle::Any => {}
                Toggle::On => write!(f, ":{name}+")?,
                Toggle::Off => write!(f, ":{name}-")?,
            }
        }
        Ok(())
    }
}

/// Bytes `start..start+len` of `data`, or an error that names `what`.
pub(super) fn slice<'a>(
    data: &'a [u8],
    start: u64,
    len: u64,
    what: &'static str,
) -> Result<&'a [u8], Error> {
    let truncated = || Error::Truncated {
        what,
        needed: start.saturating_add(len),
        available: data.len() as u64,
    };
    let end = start.checked_add(len).ok_or_else(truncated)?;
    usize::try_from(start)
        .ok()
        .zip(usize::try_from(end).ok())
        .and_then(|(start, end)| data.get(start..end))
        .ok_or_else(truncated)
}

/// Little-endian number of `N` bytes at offset `at`, or an error that names `what`.
fn number<const N: usize>(data: &[u8], at: u64, what: &'static str) -> Result<u64, Error> {
    let mut bytes = [0; 8];
    bytes[..N].copy_from_slice(slice(data, at, N as u64, what)?);
    Ok(u64::from_le_bytes(bytes))
}

/// The code object for `device` in `data`, which is a bundle (plain or compressed) or an ELF file.
///
/// `data` may hold several bundles, one after the other. They are searched in order.
pub fn pick<'a>(data: &'a [u8], device: &Target) -> Result<Cow<'a, [u8]>, Error> {
    // Programs also pass a code object without a bundle.
    if data.starts_with(b"\x7fELF") {
        return Ok(Cow::Borrowed(data));
    }
    let mut rest = data;
    let mut present = Vec::new();
    let mut first = true;
    loop {
        // The linker concatenates bundles with padding up to their alignment.
        if !first {
            let skip = rest.iter().position(|&b| b != 0).unwrap_or(rest.len());
            rest = &rest[skip..];
            if !rest.starts_with(PLAIN_MAGIC) && !rest.starts_with(COMPRESSED_MAGIC) {
                break;
            }
        }
        first = false;
        if rest.starts_with(COMPRESSED_MAGIC) {
            let header = Compressed::read(rest)?;
            let mut contents = header.contents(rest)?;
            let table = contents.table()?;
            if let Some(range) = find(&table, header.uncompressed, device, &mut present)? {
                return Ok(Cow::Owned(contents.range(range)?));
            }
            // A compressed bundle says how long it is, even if the device's code is not in it.
            rest = &rest[(header.total as usize).min(rest.len())..];
        } else if rest.starts_with(PLAIN_MAGIC) {
            if let Some(range) = find(rest, rest.len() as u64, device, &mut present)? {
                return Ok(Cow::Borrowed(&rest[range]));
            }
            let end = entries(rest, rest.len() as u64)?
                .iter()
                .map(|e| e.range.end)
                .max()
                .unwrap_or(0);
            // In a damaged bundle all entries may end before the header does.
            rest = &rest[end.max(PLAIN_MAGIC.len())..];
        } else {
            return Err(Error::Magic {
                what: "an offload bundle or ELF file",
                found: rest.iter().take(8).copied().collect(),
            });
        }
    }
    Err(Error::NoMatch {
        wanted: device.to_string(),
        present: present.join(", "),
    })
}

/// One entry of a plain bundle.
struct Entry<'a> {
    triple: &'a str,
    range: std::ops::Range<usize>,
}

/// The entries of a bundle of `size` bytes. `bundle` is its beginning, at least up to the end of the table of
/// entries.
fn entries(bundle: &[u8], size: u64) -> Result<Vec<Entry<'_>>, Error> {
    let count = number::<8>(bundle, 24, "bundle header")?;
    // The count comes from the file; without a bound a damaged one would allocate without end.
    if count > MAX_ENTRIES {
        return Err(Error::malformed(
            "bundle header",
            format!("{count} entries, more than {MAX_ENTRIES}"),
        ));
    }
    let mut at = 32u64;
    let mut out = Vec::new();
    for _ in 0..count {
        let offset = number::<8>(bundle, at, "bundle entry")?;
        let bytes = number::<8>(bundle, at + 8, "bundle entry")?;
        let length = number::<8>(bundle, at + 16, "bundle entry")?;
        let triple = slice(bundle, at + 24, length, "bundle entry's triple")?;
        let triple = std::str::from_utf8(triple)
            .map_err(|_| Error::malformed("bundle entry", "triple is not UTF-8"))?;
        let end = offset.saturating_add(bytes);
        if end > size {
            return Err(Error::Truncated {
                what: "bundle entry's contents",
                needed: end,
                available: size,
            });
        }
        out.push(Entry {
            triple,
            range: offset as usize..end as usize,
        });
        at += 24 + length;
    }
    Ok(out)
}

/// Range of the code object for `device` in a bundle of `size` bytes. `bundle` is its beginning, at least up to the
/// end of the table of entries.
fn find(
    bundle: &[u8],
    size: u64,
    device: &Target,
    present: &mut Vec<String>,
) -> Result<Option<std::ops::Range<usize>>, Error> {
    if !bundle.starts_with(PLAIN_MAGIC) {
        return Err(Error::Magic {
            what: "an offload bundle",
            found: bundle.iter().take(8).copied().collect(),
        });
    }
    let mut best: Option<(u32, std::ops::Range<usize>)> = None;
    for entry in entries(bundle, size)? {
        // Bundles have an entry for the host, which is empty.
        if entry.range.is_empty() || !entry.triple.contains("amdgcn") {
            continue;
        }
        present.push(entry.triple.to_owned());
        // Entries with unknown features are for other processors.
        let Ok(target) = Target::parse(entry.triple) else {
            continue;
        };
        // Code for a feature setting is faster than code that runs with any, so that the most specific entry is taken.
        if target.runs_on(device) && best.as_ref().is_none_or(|(s, _)| *s < target.specificity()) {
            best = Some((target.specificity(), entry.range));
        }
    }
    Ok(best.map(|(_, range)| range))
}

/// Header of a compressed bundle.
struct Compressed {
    method: u16,
    header: u64,
    /// Size of header and payload together, in bytes.
    total: u64,
    uncompressed: u64,
}

impl Compressed {
    fn read(data: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "compressed bundle header";
        let version = number::<2>(data, 4, WHAT)?;
        let method = number::<2>(data, 6, WHAT)? as u16;
        let (header, total, uncompressed) = match version {
            // The header of version 1 has no size: the bundle extends to the end of the data.
            1 => (20, data.len() as u64, number::<4>(data, 8, WHAT)?),
            2 => (
                24,
                number::<4>(data, 8, WHAT)?,
                number::<4>(data, 12, WHAT)?,
            ),
            3 => (
                32,
                number::<8>(data, 8, WHAT)?,
                number::<8>(data, 16, WHAT)?,
            ),
            _ => {
                return Err(Error::Unsupported {
                    what: "compressed bundle version",
                    value: version.to_string(),
                });
            }
        };
        // The payload begins behind the header.
        if total < header {
            return Err(Error::malformed(
                WHAT,
                format!("its size of {total} bytes is less than its header"),
            ));
        }
        slice(data, 0, total, "compressed bundle")?;
        Ok(Self {
            method,
            header,
            total,
            uncompressed,
        })
    }

    /// A reader of the uncompressed bundle, at its start.
    fn contents<'a>(&self, data: &'a [u8]) -> Result<Contents<'a>, Error> {
        let payload = slice(
            data,
            self.header,
            self.total - self.header,
            "compressed bundle",
        )?;
        let stream: Box<dyn Read + 'a> = match self.method {
            0 => Box::new(flate2::read::ZlibDecoder::new(payload)),
            1 => Box::new(
                ruzstd::decoding::StreamingDecoder::new(payload)
                    .map_err(|error| Error::Decompress(error.to_string()))?,
            ),
            method => {
                return Err(Error::Unsupported {
                    what: "compression method",
                    value: method.to_string(),
                });
            }
        };
        Ok(Contents { stream, at: 0 })
    }
}

/// A compressed bundle that is being decompressed. Bundles for many processors have gigabytes, of which one entry is
/// needed: data before that entry are dropped, and data after it are not decompressed.
struct Contents<'a> {
    stream: Box<dyn Read + 'a>,
    /// Number of uncompressed bytes that were read.
    at: u64,
}

impl Contents<'_> {
    /// Appends the next `bytes` uncompressed bytes to `out`.
    fn next(&mut self, bytes: u64, out: &mut Vec<u8>) -> Result<(), Error> {
        let read = (&mut self.stream).take(bytes).read_to_end(out);
        self.count(bytes, read.map(|read| read as u64))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        let read = std::io::copy(&mut (&mut self.stream).take(bytes), &mut std::io::sink());
        self.count(bytes, read)
    }

    fn count(&mut self, wanted: u64, read: std::io::Result<u64>) -> Result<(), Error> {
        let read = read.map_err(|error| Error::Decompress(error.to_string()))?;
        let needed = self.at.saturating_add(wanted);
        self.at += read;
        if read == wanted {
            return Ok(());
        }
        Err(Error::Truncated {
            what: "decompressed bundle",
            needed,
            available: self.at,
        })
    }

    /// Reads the beginning of the bundle, up to the end of the table of entries.
    fn table(&mut self) -> Result<Vec<u8>, Error> {
        let mut table = Vec::new();
        self.next(32, &mut table)?;
        if !table.starts_with(PLAIN_MAGIC) {
            return Ok(table);
        }
        let count = number::<8>(&table, 24, "bundle header")?;
        // `entries` refuses bundles with more.
        for _ in 0..count.min(MAX_ENTRIES) {
            let at = self.at;
            self.next(24, &mut table)?;
            let length = number::<8>(&table, at + 16, "bundle entry")?;
            if length > MAX_TRIPLE {
                return Err(Error::malformed("bundle entry", "its triple is too long"));
            }
            self.next(length, &mut table)?;
        }
        Ok(table)
    }

    /// Reads the bytes of an entry.
    fn range(&mut self, range: std::ops::Range<usize>) -> Result<Vec<u8>, Error> {
        let Some(before) = (range.start as u64).checked_sub(self.at) else {
            let text = "the contents begin before the end of the table";
            return Err(Error::malformed("bundle entry", text));
        };
        if range.len() as u64 > MAX_UNCOMPRESSED {
            let text = format!("{} bytes, more than {MAX_UNCOMPRESSED}", range.len());
            return Err(Error::malformed("bundle entry", text));
        }
        self.skip(before)?;
        let mut out = Vec::new();
        self.next(range.len() as u64, &mut out)?;
        Ok(out)
    }
}

/// The bundle that a wrapper refers to, as programs pass it to `__hipRegisterFatBinary`. Its size is computed from
/// its headers.
///
/// # Safety
/// `wrapper` points to a fat binary wrapper. Its bundle stays in place for `'static`, as that of a loaded program
/// does.
pub unsafe fn from_wrapper(wrapper: *const u8) -> Result<&'static [u8], Error> {
    // SAFETY: the caller's promise covers the 24 bytes of the wrapper.
    let head = unsafe { std::slice::from_raw_parts(wrapper, 24) };
    let magic = number::<4>(head, 0, "fat binary wrapper")? as u32;
    if magic != WRAPPER_MAGIC {
        return Err(Error::Magic {
            what: "a fat binary wrapper",
            found: head[..8].to_vec(),
        });
    }
    let version = number::<4>(head, 4, "fat binary wrapper")?;
    if version != 1 {
        return Err(Error::Unsupported {
            what: "fat binary wrapper version",
            value: version.to_string(),
        });
    }
    let bundle = number::<8>(head, 8, "fat binary wrapper")? as *const u8;
    // SAFETY: the wrapper's pointer is to a bundle, by the caller's promise.
    unsafe { from_pointer(bundle) }
}

/// The bundle or ELF file at `start`, as programs pass it to `hipModuleLoadData`. Its size is computed from its
/// headers.
///
/// # Safety
/// `start` is null or points to a complete bundle or code object that lives for `'a`.
pub unsafe fn from_pointer<'a>(start: *const u8) -> Result<&'a [u8], Error> {
    if start.is_null() {
        return Err(Error::malformed("code object", "null pointer"));
    }
    // SAFETY: callers promise that what the headers announce is there.
    let bytes = |len: usize| unsafe { std::slice::from_raw_parts(start, len) };
    let magic = bytes(4);
    if magic == b"\x7fELF" {
        return Ok(bytes(super::object::extent(bytes(64))?));
    }
    if magic == COMPRESSED_MAGIC {
        let head = bytes(32);
        let total = match number::<2>(head, 4, "compressed bundle header")? {
            // The size of a version 1 bundle is in the zstd frame only.
            1 => 20 + zstd_frame_length(|at, len| &bytes(20 + at + len)[20 + at..])?,
            2 => number::<4>(head, 8, "compressed bundle header")? as usize,
            _ => number::<8>(head, 8, "compressed bundle header")? as usize,
        };
        return Ok(bytes(total));
    }
    if magic == &PLAIN_MAGIC[..4] && bytes(24) == PLAIN_MAGIC {
        let count = number::<8>(bytes(32), 24, "bundle header")?;
        if count > MAX_ENTRIES {
            return Err(Error::malformed(
                "bundle header",
                format!("{count} entries, more than {MAX_ENTRIES}"),
            ));
        }
        let mut end = 32usize;
        let mut at = 32usize;
        for _ in 0..count {
            let head = bytes(at + 24);
            let offset = number::<8>(head, at as u64, "bundle entry")?;
            let size = number::<8>(head, at as u64 + 8, "bundle entry")?;
            let length = number::<8>(head, at as u64 + 16, "bundle entry")?;
            at = usize::try_from(length)
                .ok()
                .filter(|l| *l as u64 <= MAX_TRIPLE)
                .map(|l| at + 24 + l)
                .ok_or_else(|| Error::malformed("bundle entry", "its triple is too long"))?;
            let stop = offset
                .checked_add(size)
                .and_then(|e| usize::try_from(e).ok())
                .filter(|e| *e <= isize::MAX as usize)
                .ok_or_else(|| Error::malformed("bundle entry", "offset plus size is too large"))?;
            end = end.max(stop).max(at);
        }
        return Ok(bytes(end));
    }
    Err(Error::Magic {
        what: "an offload bundle or ELF file",
        found: magic.to_vec(),
    })
}

/// Length of a zstd frame in bytes. `read(offset, length)` returns bytes of the frame.
fn zstd_frame_length<'a>(read: impl Fn(usize, usize) -> &'a [u8]) -> Result<usize, Error> {
    let magic = read(0, 5);
    if magic[..4] != [0x28, 0xb5, 0x2f, 0xfd] {
        return Err(Error::Magic {
            what: "a zstd frame",
            found: magic[..4].to_vec(),
        });
    }
    let descriptor = magic[4];
    let single_segment = descriptor & 0x20 != 0;
    let content_size = match (descriptor >> 6, single_segment) {
        (0, false) => 0,
        (0, true) => 1,
        (n, _) => 1usize << n,
    };
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let mut at = 5 + usize::from(!single_segment) + dictionary + content_size;
    loop {
        let head = read(at, 3);
        let head = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let size = match (head >> 1) & 3 {
            1 => 1, // run of one byte
            3 => return Err(Error::malformed("zstd frame", "reserved block type")),
            _ => (head >> 3) as usize,
        };
        at += 3 + size;
        if head & 1 != 0 {
            return Ok(at + if descriptor & 4 != 0 { 4 } else { 0 });
        }
    }
}
