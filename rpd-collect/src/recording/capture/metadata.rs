//! The layout of kernel arguments, from the note of a code object. Only what a capture needs: names of kernels, and
//! places of their explicit arguments.

/// A kernel of a code object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Mangled name of the kernel.
    pub(super) name: Vec<u8>,
    /// Offset and size of its explicit arguments, in order.
    pub(super) arguments: Vec<(u32, u32)>,
    /// Offsets of those that are pointers to memory.
    pub(super) pointers: Vec<u32>,
    /// Whether it requests services of the host, or memory, while it runs.
    pub(super) has_services: bool,
}

/// An argument of a kernel.
enum Argument {
    /// One of the program: offset, size, and whether it is a pointer to memory.
    Explicit(u32, u32, bool),
    /// One that the runtime passes: whether it gives the kernel services.
    Hidden(bool),
}

/// Hidden arguments that are there only of kernels that use what they give: services of the host such as `printf`, and memory.
const SERVICES: [&[u8]; 3] = [
    b"hidden_hostcall_buffer",
    b"hidden_printf_buffer",
    b"hidden_heap_v1",
];

impl Kernel {
    /// Bytes of the explicit arguments.
    pub(super) fn explicit_bytes(&self) -> usize {
        let ends = self.arguments.iter().map(|(offset, size)| offset + size);
        ends.max().unwrap_or(0) as usize
    }
}

/// Longest argument area that is accepted.
const LONGEST: u64 = 64 << 10;

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(N)?)?;
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(found);
    Some(u64::from_le_bytes(wide))
}

/// The kernels that a code object describes; none where it is not understood.
pub(super) fn kernels(elf: &[u8]) -> Vec<Kernel> {
    find(elf).unwrap_or_default()
}

fn find(elf: &[u8]) -> Option<Vec<Kernel>> {
    if !elf.starts_with(b"\x7fELF\x02") {
        return None;
    }
    const NOTE: u64 = 4;
    let headers = usize::try_from(number::<8>(elf, 32)?).ok()?;
    let (size, count) = (
        number::<2>(elf, 54)? as usize,
        number::<2>(elf, 56)? as usize,
    );
    for index in 0..count {
        let at = headers.checked_add(size.checked_mul(index)?)?;
        if number::<4>(elf, at)? != NOTE {
            continue;
        }
        let start = usize::try_from(number::<8>(elf, at + 8)?).ok()?;
        let len = usize::try_from(number::<8>(elf, at + 32)?).ok()?;
        let notes = elf.get(start..start.checked_add(len)?)?;
        if let Some(found) = in_notes(notes) {
            return Some(found);
        }
    }
    None
}

fn in_notes(mut notes: &[u8]) -> Option<Vec<Kernel>> {
    const METADATA: u64 = 32;
    while notes.len() >= 12 {
        let name_len = number::<4>(notes, 0)? as usize;
        let text_len = number::<4>(notes, 4)? as usize;
        let kind = number::<4>(notes, 8)?;
        let name = notes.get(12..12usize.checked_add(name_len)?)?;
        let start = 12 + name_len.next_multiple_of(4);
        let text = notes.get(start..start.checked_add(text_len)?)?;
        if kind == METADATA && name.starts_with(b"AMDGPU") {
            return Cursor { bytes: text }.kernels();
        }
        notes = notes.get(start + text_len.next_multiple_of(4)..)?;
    }
    None
}

/// A value of the note.
enum Value<'a> {
    Number(u64),
    Text(&'a [u8]),
    Array(usize),
    Map(usize),
    Other,
}

/// A reader of MessagePack, at a position in its bytes.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    /// A number of `len` bytes, most significant first.
    fn big(&mut self, len: usize) -> Option<u64> {
        let bytes = self.take(len)?;
        Some(
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        )
    }

    fn value(&mut self) -> Option<Value<'a>> {
        let first = self.take(1)?[0];
        Some(match first {
            // The first byte tells the type and, for small values, the length: see the MessagePack specification.
            0x00..=0x7f => Value::Number(u64::from(first)),
            0x80..=0x8f => Value::Map(usize::from(first & 15)),
            0x90..=0x9f => Value::Array(usize::from(first & 15)),
            0xa0..=0xbf => Value::Text(self.take(usize::from(first & 31))?),
            0xc4 | 0xd9 => {
                let len = self.big(1)? as usize;
                Value::Text(self.take(len)?)
            }
            0xc5 | 0xda => {
                let len = self.big(2)? as usize;
                Value::Text(self.take(len)?)
            }
            0xc6 | 0xdb => {
                let len = self.big(4)? as usize;
                Value::Text(self.take(len)?)
            }
            0xcc..=0xcf => Value::Number(self.big(1 << (first & 3))?),
            0xd0..=0xd3 => Value::Number(self.big(1 << (first & 3))?),
            0xca => {
                self.take(4)?;
                Value::Other
            }
            0xcb => {
                self.take(8)?;
                Value::Other
            }
            0xdc => Value::Array(self.big(2)? as usize),
            0xdd => Value::Array(self.big(4)? as usize),
            0xde => Value::Map(self.big(2)? as usize),
            0xdf => Value::Map(self.big(4)? as usize),
            0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Value::Other,
            _ => return None,
        })
    }

    fn skip(&mut self, depth: u32) -> Option<()> {
        if depth > 16 {
            return None;
        }
        match self.value()? {
            Value::Array(count) => (0..count).try_for_each(|_| self.skip(depth + 1)),
            Value::Map(count) => (0..count * 2).try_for_each(|_| self.skip(depth + 1)),
            Value::Number(_) | Value::Text(_) | Value::Other => Some(()),
        }
    }

    /// Reads the map that comes next: calls `take` with each key. `take` must read or skip the value that follows.
    fn map(&mut self, mut take: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        let Value::Map(count) = self.value()? else {
            return None;
        };
        for _ in 0..count {
            let Value::Text(key) = self.value()? else {
                return None;
            };
            take(self, key)?;
        }
        Some(())
    }

    fn array(&mut self, mut take: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        let Value::Array(count) = self.value()? else {
            return None;
        };
        (0..count).try_for_each(|_| take(self))
    }

    fn kernels(mut self) -> Option<Vec<Kernel>> {
        let mut kernels = Vec::new();
        self.map(|cursor, key| {
            if key != b"amdhsa.kernels" {
                return cursor.skip(0);
            }
            cursor.array(|cursor| {
                let mut kernel = Kernel {
                    name: Vec::new(),
                    arguments: Vec::new(),
                    pointers: Vec::new(),
                    has_services: false,
                };
                cursor.map(|cursor, key| match key {
                    b".name" => {
                        if let Value::Text(name) = cursor.value()? {
                            kernel.name = name.to_vec();
                        }
                        Some(())
                    }
                    b".args" => cursor.array(|cursor| {
                        match cursor.argument()? {
                            Some(Argument::Explicit(offset, size, is_pointer)) => {
                                kernel.arguments.push((offset, size));
                                kernel.pointers.extend(is_pointer.then_some(offset));
                            }
                            Some(Argument::Hidden(gives_services)) => {
                                kernel.has_services |= gives_services;
                            }
                            None => {}
                        }
                        Some(())
                    }),
                    _ => cursor.skip(0),
                })?;
                kernels.push(kernel);
                Some(())
            })
        })?;
        Some(kernels)
    }

    /// An argument; `Some(None)` for one at a place that no kernel has.
    fn argument(&mut self) -> Option<Option<Argument>> {
        let (mut offset, mut size, mut value_kind) = (0, 0, &b""[..]);
        self.map(|cursor, key| {
            match key {
                b".offset" | b".size" => {
                    let Value::Number(number) = cursor.value()? else {
                        return None;
                    };
                    *(if key == b".offset" {
                        &mut offset
                    } else {
                        &mut size
                    }) = number;
                }
                b".value_kind" => {
                    if let Value::Text(kind) = cursor.value()? {
                        value_kind = kind;
                    }
                }
                _ => cursor.skip(0)?,
            }
            Some(())
        })?;
        if value_kind.starts_with(b"hidden_") {
            return Some(Some(Argument::Hidden(SERVICES.contains(&value_kind))));
        }
        let is_pointer = value_kind == b"global_buffer";
        let believable = offset <= LONGEST && size <= LONGEST;
        Some(believable.then_some(Argument::Explicit(offset as u32, size as u32, is_pointer)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLE: &[u8] =
        include_bytes!("../../../../tests/workloads/kernels/prebuilt/vector_ops.hipfb");

    /// The code objects in an uncompressed bundle.
    fn objects(bundle: &[u8]) -> Vec<&[u8]> {
        let count = number::<8>(bundle, 24).expect("a count");
        let mut at = 32;
        let mut found = Vec::new();
        for _ in 0..count {
            let offset = number::<8>(bundle, at).expect("an offset") as usize;
            let size = number::<8>(bundle, at + 8).expect("a size") as usize;
            let name = number::<8>(bundle, at + 16).expect("a length") as usize;
            found.push(&bundle[offset..offset + size]);
            at += 24 + name;
        }
        found
    }

    #[test]
    fn kernel_metadata_gives_the_places_of_explicit_arguments() {
        let mut seen = 0;
        for object in objects(BUNDLE)
            .into_iter()
            .filter(|object| !object.is_empty())
        {
            let kernels = kernels(object);
            let name = b"_Z15subtract_kernelPfPKfS1_ii";
            let found = kernels.iter().find(|kernel| kernel.name == name);
            let found = found.expect("the kernel");
            assert_eq!(found.arguments, [(0, 8), (8, 8), (16, 8), (24, 4), (28, 4)]);
            assert_eq!(found.explicit_bytes(), 32);
            assert_eq!(found.pointers, [0, 8, 16]);
            assert!(!found.has_services);
            seen += 1;
        }
        assert!(seen > 1);
    }

    #[test]
    fn kernel_metadata_of_a_damaged_object_is_empty() {
        let object = objects(BUNDLE)
            .into_iter()
            .find(|object| !object.is_empty())
            .expect("an object");
        for len in (0..object.len()).step_by(97) {
            kernels(&object[..len]);
        }
        let mut changed = object.to_vec();
        for at in (0..changed.len().min(4096)).step_by(3) {
            let before = changed[at];
            changed[at] ^= 0xff;
            kernels(&changed);
            changed[at] = before;
        }
        assert!(kernels(b"").is_empty());
    }
}
