//! Loaded objects by address, without the loader's lock where glibc offers that (2.35).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::native::PAGE;

/// A loaded object as the loader describes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// First mapped address of the object.
    pub(crate) start: u64,
    /// Address after the last mapped one.
    pub(crate) end: u64,
    /// Load bias: run-time address minus address in the file.
    pub(crate) bias: u64,
    name: *const c_char,
    headers: *const libc::Elf64_Phdr,
    header_count: usize,
}

/// The parts of an object that are needed to unwind through it and to identify it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout<'a> {
    /// Lowest and highest executable address.
    pub(crate) code: (u64, u64),
    /// Address of `.eh_frame_hdr`, 0 if there is none.
    pub(crate) frame_header: u64,
    /// End of the segment that holds `.eh_frame_hdr`.
    pub(crate) frame_segment: (u64, u64),
    /// Build id of the object; empty if it has none.
    pub(crate) build_id: &'a [u8],
}

/// `struct link_map` of <link.h>, its public part.
#[repr(C)]
struct LinkMap {
    address: u64,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const LinkMap,
    previous: *const LinkMap,
}

/// `struct dl_find_object` of <dlfcn.h> on x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    start: *const c_void,
    end: *const c_void,
    link_map: *const LinkMap,
    eh_frame: *const c_void,
    reserved: [u64; 7],
}

type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// `_dl_find_object`, if it exists in the C library.
fn find_object() -> Option<FindObject> {
    static FUNCTION: OnceLock<Option<FindObject>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: a lookup by name.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: glibc documents this signature for the symbol.
        (!symbol.is_null())
            .then(|| unsafe { std::mem::transmute::<*mut c_void, FindObject>(symbol) })
    })
}

/// Looks up symbols that are needed later, so that no symbol lookup happens during a capture.
pub(crate) fn prepare() {
    find_object();
}

impl Object {
    /// The object that covers an address.
    pub(crate) fn at(address: u64) -> Option<Object> {
        match find_object() {
            Some(function) => Object::found(function, address),
            None => Object::iterated(address),
        }
    }

    fn found(function: FindObject, address: u64) -> Option<Object> {
        let mut found = Found {
            flags: 0,
            start: std::ptr::null(),
            end: std::ptr::null(),
            link_map: std::ptr::null(),
            eh_frame: std::ptr::null(),
            reserved: [0; 7],
        };
        // SAFETY: the struct is glibc's, the address is not dereferenced.
        if unsafe { function(address as *const c_void, &mut found) } != 0
            || found.link_map.is_null()
        {
            return None;
        }
        // SAFETY: the loader keeps the link map of a loaded object, and code at `address` is on our stack.
        let map = unsafe { &*found.link_map };
        let mut object = Object {
            start: found.start as u64,
            end: found.end as u64,
            bias: map.address,
            name: map.name,
            headers: std::ptr::null(),
            header_count: 0,
        };
        object.find_headers();
        if object.headers.is_null() {
            Object::iterated(address)
        } else {
            Some(object)
        }
    }

    /// The program headers: of the program from the kernel, of all others after the ELF header at the start.
    fn find_headers(&mut self) {
        // SAFETY: reads the auxiliary vector.
        let (headers, count) = unsafe {
            (
                libc::getauxval(libc::AT_PHDR),
                libc::getauxval(libc::AT_PHNUM) as usize,
            )
        };
        if headers >= self.start && headers < self.end {
            (self.headers, self.header_count) = (headers as *const _, count);
            return;
        }
        // SAFETY: the first page of a loaded object is mapped; all of its segments but guard pages are readable.
        let header = unsafe { &*(self.start as *const libc::Elf64_Ehdr) };
        let size = size_of::<libc::Elf64_Phdr>();
        let valid = header.e_ident[..5] == [0x7f, b'E', b'L', b'F', 2]
            && usize::from(header.e_phentsize) == size
            && header.e_phoff <= 4096 - size_of::<libc::Elf64_Ehdr>() as u64
            && header.e_phnum < 128
            && header.e_phoff + u64::from(header.e_phnum) * size as u64 <= self.end - self.start;
        if valid {
            self.headers = (self.start + header.e_phoff) as *const _;
            self.header_count = header.e_phnum.into();
        }
    }

    /// The object that covers an address, found by going through all objects; takes the loader's lock.
    fn iterated(address: u64) -> Option<Object> {
        struct Search {
            address: u64,
            object: Option<Object>,
        }
        unsafe extern "C" fn visit(
            info: *mut libc::dl_phdr_info,
            _size: usize,
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: both pointers are valid during the call.
            let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
            let mut object = Object {
                start: u64::MAX,
                end: 0,
                bias: info.dlpi_addr,
                name: info.dlpi_name,
                headers: info.dlpi_phdr,
                header_count: info.dlpi_phnum.into(),
            };
            let (mut first, mut last) = (u64::MAX, 0);
            for segment in object
                .segments()
                .filter(|segment| segment.p_type == libc::PT_LOAD)
            {
                let start = object.bias.wrapping_add(segment.p_vaddr);
                first = first.min(start & !(PAGE - 1));
                last = last.max(start + segment.p_memsz);
            }
            (object.start, object.end) = (first, last);
            if (object.start..object.end).contains(&search.address) {
                search.object = Some(object);
                return 1;
            }
            0
        }
        let mut search = Search {
            address,
            object: None,
        };
        // SAFETY: `visit` gets the pointer to `search`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.object
    }

    fn segments(&self) -> impl Iterator<Item = &libc::Elf64_Phdr> {
        // SAFETY: `headers` points at that many headers of a loaded object.
        unsafe { std::slice::from_raw_parts(self.headers, self.header_count) }.iter()
    }

    /// Name of the object in the loader's list; empty for the program.
    pub(crate) fn name(&self) -> &CStr {
        if self.name.is_null() {
            return c"";
        }
        // SAFETY: the loader's string, which lives as long as the object.
        unsafe { CStr::from_ptr(self.name) }
    }

    /// Address of the dynamic section, 0 if there is none.
    pub(crate) fn dynamic(&self) -> u64 {
        self.segments()
            .find(|segment| segment.p_type == libc::PT_DYNAMIC)
            .map_or(0, |segment| self.bias.wrapping_add(segment.p_vaddr))
    }

    /// The ELF program headers as bytes.
    pub(crate) fn header_bytes(&self) -> &[u8] {
        let bytes = self.header_count * size_of::<libc::Elf64_Phdr>();
        // SAFETY: `headers` points at that many headers of a loaded object.
        unsafe { std::slice::from_raw_parts(self.headers.cast(), bytes) }
    }

    /// Finds the parts. What is not inside the object's own segments is treated as absent.
    pub(crate) fn layout(&self) -> Layout<'_> {
        let mut layout = Layout {
            code: (u64::MAX, 0),
            ..Layout::default()
        };
        for segment in self.segments() {
            let start = self.bias.wrapping_add(segment.p_vaddr);
            match segment.p_type {
                libc::PT_LOAD if segment.p_flags & libc::PF_X != 0 => {
                    layout.code = (
                        layout.code.0.min(start),
                        layout.code.1.max(start.wrapping_add(segment.p_memsz)),
                    );
                }
                libc::PT_GNU_EH_FRAME => {
                    if let Some(holder) = self.segment_around(start) {
                        layout.frame_header = start;
                        layout.frame_segment = holder;
                    }
                }
                libc::PT_NOTE => {
                    let notes = self.readable(start, segment.p_memsz);
                    if layout.build_id.is_empty() {
                        layout.build_id = build_id(notes, segment.p_align.max(4) as usize);
                    }
                }
                _ => {}
            }
        }
        layout
    }

    /// The loaded, readable segment that holds an address.
    pub(crate) fn segment_around(&self, address: u64) -> Option<(u64, u64)> {
        self.segments()
            .filter(|segment| segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_R != 0)
            .map(|segment| {
                let start = self.bias.wrapping_add(segment.p_vaddr);
                (start, start.wrapping_add(segment.p_filesz))
            })
            .find(|(start, end)| (*start..*end).contains(&address))
    }

    /// A range of the object's memory, cut at the end of its segment.
    fn readable(&self, start: u64, len: u64) -> &[u8] {
        match self.segment_around(start) {
            // SAFETY: the range lies in a readable segment of a loaded object.
            Some((_, end)) => unsafe {
                std::slice::from_raw_parts(start as *const u8, len.min(end - start) as usize)
            },
            None => &[],
        }
    }
}

/// The build id among ELF notes.
fn build_id(mut notes: &[u8], align: usize) -> &[u8] {
    const GNU_BUILD_ID: u32 = 3;
    let align = if align == 8 { 8 } else { 4 };
    let word = |bytes: &[u8], at: usize| {
        bytes
            .get(at..at + 4)
            .map(|word| u32::from_le_bytes(word.try_into().unwrap_or([0; 4])))
    };
    while let (Some(name), Some(size), Some(kind)) =
        (word(notes, 0), word(notes, 4), word(notes, 8))
    {
        let (name, size) = (name as usize, size as usize);
        let start = (12 + name).next_multiple_of(align);
        let (Some(owner), Some(content)) = (
            notes.get(12..12 + name),
            notes.get(start..start.saturating_add(size)),
        ) else {
            break;
        };
        if kind == GNU_BUILD_ID && owner == b"GNU\0" {
            return content;
        }
        let Some(rest) = notes.get((start + size).next_multiple_of(align)..) else {
            break;
        };
        notes = rest;
    }
    &[]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn object_is_the_same_with_and_without_the_loaders_lock() {
        let addresses = [
            build_id as *const () as u64,
            libc::malloc as *const () as u64,
        ];
        for address in addresses {
            let (one, other) = (
                Object::at(address).unwrap(),
                Object::iterated(address).unwrap(),
            );
            assert_eq!(
                (one.start, one.end, one.bias),
                (other.start, other.end, other.bias)
            );
            assert_eq!(one.name(), other.name());
            assert_eq!(one.layout().build_id, other.layout().build_id);
            let layout = one.layout();
            assert!((layout.code.0..layout.code.1).contains(&address));
            assert_ne!(layout.frame_header, 0);
        }
        assert!(Object::at(8).is_none());
        assert!(Object::iterated(8).is_none());
    }

    #[test]
    fn build_id_is_found_among_other_notes_and_not_behind_bad_ones() {
        let mut notes = Vec::new();
        for (kind, name, content) in [
            (1u32, &b"GNU\0"[..], &b"abcd"[..]),
            (3, b"GNU\0", b"0123456789"),
            (3, b"GNU\0", b"x"),
        ] {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((content.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name);
            notes.extend(content);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(build_id(&notes, 4), b"0123456789");
        assert_eq!(build_id(&notes[..20], 4), b"");
        notes[4] = 0xff;
        notes[5] = 0xff;
        notes[6] = 0xff;
        notes[7] = 0xff;
        assert_eq!(build_id(&notes, 4), b"");
    }
}
