//! Reading the memory of the process.

/// Something that reads memory by address.
pub(crate) trait Memory {
    /// Reads `buffer.len()` bytes at `address`; `false` if they cannot be read.
    fn read(&self, address: usize, buffer: &mut [u8]) -> bool;

    /// The word at `address`.
    #[inline(always)]
    fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)
            .then(|| usize::from_ne_bytes(bytes))
    }

    /// The 32 bits at `address`.
    #[inline(always)]
    fn half(&self, address: usize) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)
            .then(|| u32::from_ne_bytes(bytes))
    }

    /// The byte at `address`.
    #[inline(always)]
    fn byte(&self, address: usize) -> Option<u8> {
        let mut bytes = [0; 1];
        self.read(address, &mut bytes).then_some(bytes[0])
    }
}

/// Whether an object of the interpreter could be at `address`.
#[inline(always)]
pub(crate) fn plausible(address: usize) -> bool {
    address.wrapping_sub(0x1_0000) < 0x7fff_ffff_0000 - 0x1_0000 && address & 7 == 0
}

/// Loads from memory. An address that no object could have is refused; one that is merely not mapped faults.
pub(crate) struct Direct(());

impl Direct {
    /// # Safety
    ///
    /// Addresses that are [`plausible`] and that are read through it must be mapped.
    pub(crate) unsafe fn new() -> Direct {
        Direct(())
    }
}

impl Memory for Direct {
    #[inline(always)]
    fn read(&self, address: usize, buffer: &mut [u8]) -> bool {
        if !plausible(address & !7) {
            return false;
        }
        // SAFETY: the caller of `new` promises that the address is mapped.
        unsafe {
            std::ptr::copy_nonoverlapping(address as *const u8, buffer.as_mut_ptr(), buffer.len())
        };
        true
    }
}

/// Reads with a system call that fails, instead of faulting, where nothing is mapped.
pub(crate) struct Checked;

impl Memory for Checked {
    fn read(&self, address: usize, buffer: &mut [u8]) -> bool {
        if !plausible(address & !7) {
            return false;
        }
        let local = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: buffer.len(),
        };
        // SAFETY: the local range is the buffer; the kernel checks the remote one.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        read == buffer.len() as isize
    }
}
