//! Loads a code object into memory.

use super::object::{CodeObject, RelocationSymbol};
use super::{Error, KernelDescriptor};
use std::ptr;

/// Greatest size of an image in bytes. Files that need more are malformed.
const MAX_IMAGE: u64 = 16 << 30;
const PAGE: u64 = 4096;

// The relocation types that lld generates and the runtime's loader supports.
const ABS32_LO: u32 = 1;
const ABS32_HI: u32 = 2;
const ABS64: u32 = 3;
const REL32: u32 = 4;
const REL64: u32 = 5;
const ABS32: u32 = 6;
const REL32_LO: u32 = 10;
const REL32_HI: u32 = 11;
const RELATIVE64: u32 = 13;

/// A loaded code object: its segments, relocated for one base address. The memory is unmapped on drop.
#[derive(Debug)]
pub struct Image {
    base: *mut u8,
    size: usize,
    first: u64,
    code: Vec<(u64, u64)>,
}

// SAFETY: only this value refers to the mapping, and it writes there in `load` only.
unsafe impl Send for Image {}
// SAFETY: as above. Shared references only read.
unsafe impl Sync for Image {}

impl Image {
    /// Copies the segments of `object` into new memory and applies the relocations. `resolve` returns the address of
    /// a symbol that the code object does not define (an external variable).
    pub fn load(object: &CodeObject, resolve: impl Fn(&str) -> Option<u64>) -> Result<Self, Error> {
        let first = object
            .segments()
            .iter()
            .map(|s| s.address)
            .min()
            .unwrap_or(0)
            & !(PAGE - 1);
        let last = object
            .segments()
            .iter()
            .map(|s| s.address + s.memory_size)
            .max()
            .unwrap_or(0);
        let span = last - first;
        if span == 0 || span > MAX_IMAGE {
            return Err(Error::malformed(
                "code object",
                format!("its segments span {span} bytes; 1 to {MAX_IMAGE} are possible"),
            ));
        }
        let size = span.next_multiple_of(PAGE);
        // SAFETY: a new anonymous mapping does not affect existing memory.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::Allocation {
                bytes: size,
                error: std::io::Error::last_os_error(),
            });
        }
        let mut image = Self {
            base: base.cast(),
            size: size as usize,
            first,
            code: Vec::new(),
        };
        for segment in object.segments() {
            let start = (segment.address - first) as usize;
            let from = &object.bytes()[segment.offset as usize..][..segment.file_size as usize];
            image.bytes_mut()[start..start + from.len()].copy_from_slice(from);
            if segment.executable {
                let start = image.base() + start as u64;
                image.code.push((start, segment.memory_size));
            }
        }
        image.relocate(object, resolve)?;
        Ok(image)
    }

    fn relocate(
        &mut self,
        object: &CodeObject,
        resolve: impl Fn(&str) -> Option<u64>,
    ) -> Result<(), Error> {
        let delta = self.delta();
        for relocation in &object.relocations {
            let symbol = match &relocation.symbol {
                RelocationSymbol::None => 0,
                RelocationSymbol::Defined(value) => value.wrapping_add(delta),
                RelocationSymbol::Undefined { name, weak } => match resolve(name) {
                    Some(address) => address,
                    None if *weak => 0,
                    None => return Err(Error::Undefined(name.clone())),
                },
            };
            let place = relocation.offset.wrapping_add(delta);
            let value = symbol.wrapping_add_signed(relocation.addend);
            let relative = value.wrapping_sub(place);
            let (value, bytes) = match relocation.kind {
                ABS32_LO | ABS32 => (value, 4),
                ABS32_HI => (value >> 32, 4),
                ABS64 => (value, 8),
                REL32 | REL32_LO => (relative, 4),
                REL32_HI => (relative >> 32, 4),
                REL64 => (relative, 8),
                RELATIVE64 => (delta.wrapping_add_signed(relocation.addend), 8),
                other => {
                    return Err(Error::Unsupported {
                        what: "relocation type",
                        value: other.to_string(),
                    });
                }
            };
            let at = relocation.offset.wrapping_sub(self.first) as usize;
            self.bytes_mut()
                .get_mut(at..)
                .and_then(|b| b.get_mut(..bytes))
                .ok_or_else(|| {
                    Error::malformed(
                        "relocation",
                        format!(
                            "its offset {:#x} is outside of all segments",
                            relocation.offset
                        ),
                    )
                })?
                .copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        Ok(())
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `size` bytes, is readable and writable, and belongs to this value.
        unsafe { std::slice::from_raw_parts_mut(self.base, self.size) }
    }

    /// Address of the first byte.
    pub fn base(&self) -> u64 {
        self.base as u64
    }

    /// Size in bytes, a multiple of the page size.
    pub fn size(&self) -> u64 {
        self.size as u64
    }

    /// Loaded address minus virtual address in the file.
    pub fn delta(&self) -> u64 {
        self.base().wrapping_sub(self.first)
    }

    /// Address and size in bytes of each range with instructions.
    pub fn code(&self) -> &[(u64, u64)] {
        &self.code
    }

    /// Loaded address of a symbol of `object`, from which this image was made. `None` when the symbol is unknown or
    /// outside of the image.
    pub fn address_of(&self, object: &CodeObject, symbol: &str) -> Option<u64> {
        let symbol = object.symbol(symbol)?;
        let address = symbol.value.wrapping_add(self.delta());
        let end = address.checked_add(symbol.size)?;
        (address >= self.base() && end <= self.base() + self.size()).then_some(address)
    }

    /// Loaded address and content of a kernel's descriptor. `symbol` ends in `.kd`.
    pub fn descriptor(
        &self,
        object: &CodeObject,
        symbol: &str,
    ) -> Result<(u64, KernelDescriptor), Error> {
        let address = self
            .address_of(object, symbol)
            .ok_or_else(|| Error::Undefined(symbol.to_owned()))?;
        let offset = (address - self.base()) as usize;
        // SAFETY: `address_of` returns addresses inside the mapping, which lives as long as `self`.
        let bytes =
            unsafe { std::slice::from_raw_parts(self.base.add(offset), self.size - offset) };
        Ok((address, KernelDescriptor::parse(bytes)?))
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `load` and nothing else unmaps it.
        unsafe { libc::munmap(self.base.cast(), self.size) };
    }
}
