//! Code that the program registered with debuggers, through GDB's interface for code that is made at run time.
//!
//! The library that makes the code has a variable [`DESCRIPTOR`], which leads to a list of ELF objects that describe code.
//! There is no notice when the list changes, and other threads change it at any time. So all of it is read through the kernel,
//! which checks addresses, and a thread keeps the bytes from which it found the objects of its frames: what it found holds
//! while these bytes are the same.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::copy::{self, Copied};
use crate::facts::{JitObject, Sink};
use crate::interner::{Interner, NoNumber};
use crate::native::changes::Changes;
use crate::native::exports::Exports;
use crate::native::modules::mixed;
use crate::region::Region;

/// The variable that leads to the list.
const DESCRIPTOR: &str = "__jit_debug_descriptor";
/// Libraries with such a variable that are taken into account.
const MOST_DESCRIPTORS: usize = 8;
/// Loaded objects in which it is looked for.
const MOST_LOADED: usize = 1 << 14;
/// Entries of a list that are looked at.
const MOST_ENTRIES: usize = 1 << 12;
/// Objects of a process that are reported.
const MOST_OBJECTS: usize = 1 << 14;
/// Sections of an object that are looked at.
const MOST_SECTIONS: usize = 1000;
/// Bytes of symbols, and of their names, that are reported of an object.
const MOST_BYTES: u64 = 1 << 20;
/// Number of bytes at the end of an object's names, by which it is distinguished from another at the same address.
const COMPARED: u64 = 2048;
/// Bytes that a thread compares.
const ROOM: usize = 1 << 15;
/// Program counters whose object is in a thread's cache.
const KNOWN: usize = 64;

/// `struct jit_descriptor` of GDB's manual.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: u64,
    first: u64,
}

/// `struct jit_code_entry` of GDB's manual.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Entry {
    next: u64,
    previous: u64,
    object: u64,
    size: u64,
}

/// `struct link_map` of <link.h>, its public part.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Loaded {
    bias: u64,
    name: u64,
    dynamic: u64,
    next: u64,
    previous: u64,
}

// SAFETY: integers without padding.
unsafe impl Copied for Descriptor {}
// SAFETY: as above.
unsafe impl Copied for Entry {}
// SAFETY: as above.
unsafe impl Copied for Loaded {}

/// State shared by all threads.
pub(crate) struct Registry {
    /// Addresses of [`DESCRIPTOR`] in loaded objects, 0 behind the last.
    descriptors: [AtomicU64; MOST_DESCRIPTORS],
    /// State of the loader ([`Changes::state`]) at which the descriptors were found.
    state: AtomicU64,
    objects: Interner,
}

impl Registry {
    /// Reserves the table of objects.
    pub(crate) fn reserve() -> Registry {
        Registry {
            descriptors: Default::default(),
            state: AtomicU64::new(0),
            objects: Interner::sparse(MOST_OBJECTS),
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.objects.usable()
    }

    /// Objects are reported again. No other thread may use the table meanwhile.
    pub(crate) fn clear(&self) {
        self.objects.clear();
    }

    /// Addresses of the descriptors of objects that are loaded now.
    fn descriptors(&self, changes: &Changes) -> impl Iterator<Item = u64> + '_ {
        let state = changes.state();
        if self.state.load(Ordering::Acquire) != state {
            let mut places = self.descriptors.iter();
            for address in search(changes.first_object()).take(MOST_DESCRIPTORS) {
                if let Some(place) = places.next() {
                    place.store(address, Ordering::Relaxed);
                }
            }
            places.for_each(|place| place.store(0, Ordering::Relaxed));
            self.state.store(state, Ordering::Release);
        }
        let addresses = self.descriptors.iter();
        addresses
            .map(|place| place.load(Ordering::Relaxed))
            .take_while(|address| *address != 0)
    }
}

/// The descriptors of the objects in the loader's list from `first` on. The list is read without the loader's lock.
fn search(first: u64) -> impl Iterator<Item = u64> {
    let loaded = |address: u64| copy::value::<Loaded>(address, copy::checked);
    let objects = std::iter::successors(loaded(first), move |object| loaded(object.next));
    objects.take(MOST_LOADED).filter_map(|object| {
        let exports = Exports::checked(object.bias, object.dynamic)?;
        Some(exports.find(DESCRIPTOR)?.address as u64)
    })
}

/// The registered objects of a thread's frames, and the bytes from which they were found.
pub(super) struct RegisteredCode {
    /// State of the loader ([`Changes::state`]) when the objects were found.
    state: u64,
    /// Address and length of the ranges that were read.
    ranges: [(u64, u64); copy::MOST_RANGES],
    range_count: usize,
    /// Bytes of the ranges when the objects were found.
    bytes: Region<u8>,
    byte_count: usize,
    /// Bytes of the ranges now.
    now: Region<u8>,
    /// Whether all ranges that were read are kept.
    complete: bool,
    /// Whether the ranges were compared in this walk.
    compared: bool,
    /// Program counters and objects, 0 for none.
    known: [(u64, u32); KNOWN],
    next_known: usize,
}

impl RegisteredCode {
    /// Reserves the buffers of a thread.
    pub(super) fn reserve() -> RegisteredCode {
        RegisteredCode {
            state: 0,
            ranges: [(0, 0); copy::MOST_RANGES],
            range_count: 0,
            bytes: Region::reserve(ROOM),
            byte_count: 0,
            now: Region::reserve(ROOM),
            complete: false,
            compared: false,
            known: [(0, 0); KNOWN],
            next_known: 0,
        }
    }

    /// Whether its memory could be reserved.
    pub(super) fn usable(&self) -> bool {
        !self.bytes.is_empty() && !self.now.is_empty()
    }

    /// Begins a walk, in which the ranges have not been compared.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.compared = false;
    }

    /// Removes all entries.
    pub(super) fn clear(&mut self) {
        self.state = 0;
        self.range_count = 0;
        self.byte_count = 0;
        self.complete = true;
        self.known = [(0, 0); KNOWN];
    }

    /// Whether the objects that were found before this walk are still registered. They are forgotten otherwise.
    #[cold]
    pub(super) fn holds(&mut self, changes: &Changes) -> bool {
        if self.compared {
            return true;
        }
        self.compared = true;
        let holds = self.complete && self.state == changes.state() && self.is_unchanged();
        if !holds {
            self.clear();
            self.state = changes.state();
        }
        holds
    }

    fn is_unchanged(&mut self) -> bool {
        let len = self.byte_count;
        let ranges = self.ranges[..self.range_count].iter().copied();
        len == 0
            || copy::all_checked(ranges, &mut self.now[..len])
                && self.now[..len] == self.bytes[..len]
    }

    /// The id of the registered object that describes the code at `pc`, 0 if none does. `buffer` is for what is read.
    pub(super) fn object_at(
        &mut self,
        registry: &Registry,
        changes: &Changes,
        pc: u64,
        buffer: &mut [u8],
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        self.holds(changes);
        if let Some((_, id)) = self.known.iter().find(|(known, _)| *known == pc) {
            return Ok(*id);
        }
        let mut id = 0;
        for descriptor in registry.descriptors(changes) {
            if let Some(object) = self.find(descriptor, pc, buffer) {
                let key = object.key(buffer, self.bytes_of(object.end_of_names()));
                id = registry.objects.number(key, |id| {
                    sink.object(&JitObject {
                        id,
                        kind: object.kind,
                        parts: [object.sections, object.symbols, object.names],
                    })
                })?;
                break;
            }
        }
        self.known[self.next_known % KNOWN] = (pc, id);
        self.next_known += 1;
        Ok(id)
    }

    /// The object in a descriptor's list that describes the code at `pc`. Its section headers are in `buffer`.
    fn find(&mut self, descriptor: u64, pc: u64, buffer: &mut [u8]) -> Option<Object> {
        self.keep((descriptor, size_of::<Descriptor>() as u64));
        let head: Descriptor = copy::value(descriptor, copy::checked)?;
        let entry = |address: u64| {
            let entry: Entry = copy::value(address, copy::checked)?;
            Some((address, entry))
        };
        let entries = std::iter::successors(entry(head.first), |(_, last)| entry(last.next));
        for (index, (address, entry)) in entries.take(MOST_ENTRIES).enumerate() {
            let object = Object::read(&entry, buffer);
            let found = object.filter(|object| object.describes(pc, buffer));
            // An entry that is freed and made again leaves the descriptor as it was.
            if index == 0 || found.is_some() {
                self.keep((address, size_of::<Entry>() as u64));
                if let Some(object) = object {
                    self.keep(object.end_of_names());
                }
            }
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Keeps the bytes of a range to be compared later.
    fn keep(&mut self, range: (u64, u64)) {
        let kept = &self.ranges[..self.range_count];
        if range.1 == 0 || kept.contains(&range) {
            return;
        }
        let end = self.byte_count + range.1 as usize;
        let room = self.bytes.get_mut(self.byte_count..end);
        let place = self.ranges.get_mut(self.range_count);
        let (Some(place), Some(room)) = (place, room) else {
            self.complete = false;
            return;
        };
        if !copy::checked(range.0, room) {
            self.complete = false;
            return;
        }
        *place = range;
        self.range_count += 1;
        self.byte_count = end;
    }

    /// The bytes of a kept range.
    fn bytes_of(&self, range: (u64, u64)) -> &[u8] {
        let mut start = 0;
        for kept in &self.ranges[..self.range_count] {
            let end = start + kept.1 as usize;
            if *kept == range {
                return &self.bytes[start..end];
            }
            start = end;
        }
        &[]
    }
}

/// An ELF object in memory: addresses and lengths of its parts.
#[derive(Clone, Copy, Debug)]
struct Object {
    /// Type of the object: `e_type` of its header.
    kind: u16,
    /// Address and length of the section headers.
    sections: (u64, u64),
    /// Address and length of the table of symbols; empty if there is none.
    symbols: (u64, u64),
    /// Address and length of the names of the symbols; empty if there are none.
    names: (u64, u64),
}

/// Bytes of the ELF header, and of a section header.
const HEADER: usize = 64;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
/// Flags of sections with code.
const CODE: u64 = 2 | 4;

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from(half(bytes, at)) | u32::from(half(bytes, at + 2)) << 16
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

impl Object {
    /// Reads the headers; those of sections are in `buffer` afterwards. `None` if it is no such object.
    fn read(entry: &Entry, buffer: &mut [u8]) -> Option<Object> {
        // The header is the program's: offsets and lengths may lie, and nothing outside the registered range is read.
        let part = |offset: u64, len: u64| {
            let end = offset.checked_add(len)?;
            (end <= entry.size).then_some((entry.object.checked_add(offset)?, len))
        };
        let mut head = [0; HEADER];
        let at = part(0, HEADER as u64)?.0;
        // Read with checks, because the program may have freed the object since it was listed.
        if !copy::checked(at, &mut head) || head[..6] != *b"\x7fELF\x02\x01" {
            return None;
        }
        let count = usize::from(half(&head, 60));
        if usize::from(half(&head, 58)) != HEADER || count > MOST_SECTIONS {
            return None;
        }
        let sections = part(long(&head, 40), (count * HEADER) as u64)?;
        let headers = buffer.get_mut(..count * HEADER)?;
        if !copy::checked(sections.0, headers) {
            return None;
        }
        let mut object = Object {
            kind: half(&head, 16),
            sections,
            symbols: (0, 0),
            names: (0, 0),
        };
        let of_kind = |kind| {
            let mut headers = headers.chunks_exact(HEADER);
            headers.find(|header| word(header, 4) == kind)
        };
        // The full table where there is one: it names local functions, too.
        if let Some(table) = of_kind(SHT_SYMTAB).or_else(|| of_kind(SHT_DYNSYM)) {
            let names = headers.chunks_exact(HEADER).nth(word(table, 40) as usize)?;
            object.symbols = part(long(table, 24), long(table, 32).min(MOST_BYTES))?;
            object.names = part(long(names, 24), long(names, 32).min(MOST_BYTES))?;
        }
        Some(object)
    }

    /// Whether a section with code has this address.
    fn describes(&self, pc: u64, headers: &[u8]) -> bool {
        let mut headers = headers[..self.sections.1 as usize].chunks_exact(HEADER);
        headers.any(|header| {
            let (address, size) = (long(header, 16), long(header, 32));
            long(header, 8) & CODE == CODE && address != 0 && pc.wrapping_sub(address) < size
        })
    }

    /// Address and length of the end of the names, by which the object is distinguished from another at the same
    /// address.
    fn end_of_names(&self) -> (u64, u64) {
        let (start, len) = self.names;
        let compared = len.min(COMPARED);
        (start + len - compared, compared)
    }

    /// Key of the object among the objects of the process.
    fn key(&self, headers: &[u8], names: &[u8]) -> [u64; 2] {
        let headers = &headers[..self.sections.1 as usize];
        [mixed(self.sections.0, headers), mixed(self.names.0, names)]
    }
}
