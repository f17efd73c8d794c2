//! framehop over all loaded objects.

#![allow(clippy::unwrap_used)]

use std::ffi::{c_int, c_void};

use framehop::{ExplicitModuleSectionInfo, Unwinder};

/// framehop with the objects that are loaded, for the thread that made it.
pub(crate) struct FramehopUnwinder {
    loaded: (u64, u64),
    stack_top: u64,
    unwinder: framehop::x86_64::UnwinderX86_64<&'static [u8]>,
    cache: framehop::x86_64::CacheX86_64,
}

impl FramehopUnwinder {
    pub(crate) fn new() -> FramehopUnwinder {
        FramehopUnwinder {
            loaded: (0, 0),
            stack_top: stack_top(),
            unwinder: framehop::x86_64::UnwinderX86_64::new(),
            cache: framehop::x86_64::CacheX86_64::new(),
        }
    }

    /// Lists the loaded objects again if they have changed.
    pub(crate) fn update(&mut self) {
        struct Listing<'a> {
            framehop: &'a mut FramehopUnwinder,
            started: bool,
        }
        unsafe extern "C" fn each(
            info: *mut libc::dl_phdr_info,
            _size: usize,
            data: *mut c_void,
        ) -> c_int {
            // SAFETY: both pointers are valid during the call.
            let (info, listing) = unsafe { (&*info, &mut *data.cast::<Listing<'_>>()) };
            let loaded = (info.dlpi_adds, info.dlpi_subs);
            if !listing.started {
                if listing.framehop.loaded == loaded {
                    return 1;
                }
                listing.started = true;
                *listing.framehop = FramehopUnwinder {
                    loaded,
                    ..FramehopUnwinder::new()
                };
            }
            listing.framehop.add(info);
            0
        }
        let mut listing = Listing {
            framehop: self,
            started: false,
        };
        // SAFETY: `each` gets the pointer to `listing`, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut listing).cast()) };
    }

    fn add(&mut self, info: &libc::dl_phdr_info) {
        // SAFETY: the loader's description of a loaded object.
        let segments =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let address = |segment: &libc::Elf64_Phdr| info.dlpi_addr + segment.p_vaddr;
        let load = || {
            segments
                .iter()
                .filter(|segment| segment.p_type == libc::PT_LOAD)
        };
        let Some(header) = segments
            .iter()
            .find(|segment| segment.p_type == libc::PT_GNU_EH_FRAME)
        else {
            return;
        };
        let start = load().map(address).min().unwrap() & !4095;
        let end = load()
            .map(|segment| address(segment) + segment.p_memsz)
            .max()
            .unwrap();
        let holder = load().find(|segment| {
            (address(segment)..address(segment) + segment.p_memsz).contains(&address(header))
        });
        let holder_end = holder
            .map(|segment| address(segment) + segment.p_memsz)
            .unwrap();
        // SAFETY: inside a loaded segment.
        let bytes = |from: u64, to: u64| unsafe {
            std::slice::from_raw_parts(from as *const u8, (to - from) as usize)
        };
        let table = bytes(address(header), address(header) + header.p_memsz);
        // The second word is the distance to `.eh_frame` (this is how all current linkers encode it).
        assert_eq!(table[1], 0x1b);
        let distance = i64::from(i32::from_le_bytes(table[4..8].try_into().unwrap()));
        let frames = (address(header) + 4).wrapping_add_signed(distance);
        let relative = |from: u64, to: u64| from - info.dlpi_addr..to - info.dlpi_addr;
        let text = load()
            .find(|segment| segment.p_flags & libc::PF_X != 0)
            .unwrap();
        let text_end = address(text) + text.p_memsz;
        let sections = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: Some(relative(address(text), text_end)),
            text: Some(bytes(address(text), text_end)),
            eh_frame_svma: Some(relative(frames, holder_end)),
            eh_frame: Some(bytes(frames, holder_end)),
            eh_frame_hdr_svma: Some(relative(address(header), address(header) + header.p_memsz)),
            eh_frame_hdr: Some(table),
            ..Default::default()
        };
        self.unwinder.add_module(framehop::Module::new(
            String::new(),
            start..end,
            info.dlpi_addr,
            sections,
        ));
    }

    /// Calls `visit` with the addresses of all frames, innermost first.
    pub(crate) fn walk(&mut self, ip: u64, sp: u64, bp: u64, mut visit: impl FnMut(u64)) {
        let top = self.stack_top;
        let mut read = |address: u64| {
            if address.is_multiple_of(8) && (sp..top).contains(&address) {
                // SAFETY: on this thread's stack, above the stack pointer.
                Ok(unsafe { *(address as *const u64) })
            } else {
                Err(())
            }
        };
        let registers = framehop::x86_64::UnwindRegsX86_64::new(ip, sp, bp);
        let mut frames = self
            .unwinder
            .iter_frames(ip, registers, &mut self.cache, &mut read);
        while let Ok(Some(frame)) = frames.next() {
            visit(frame.address_for_lookup());
        }
    }
}

/// Address after the calling thread's stack.
fn stack_top() -> u64 {
    // SAFETY: the attributes are initialised by the first call and released by the last.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        assert_eq!(
            libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
            0
        );
        let (mut base, mut size) = (std::ptr::null_mut(), 0);
        libc::pthread_attr_getstack(&attributes, &mut base, &mut size);
        libc::pthread_attr_destroy(&mut attributes);
        base as u64 + size as u64
    }
}
