//! Reading the memory of the process.

/// Integers that are read from memory.
///
/// # Safety
///
/// All bytes are a valid value.
pub(crate) unsafe trait Integer: Copy + Default {}

// SAFETY: an integer.
unsafe impl Integer for usize {}
// SAFETY: an integer.
unsafe impl Integer for u32 {}
// SAFETY: an integer.
unsafe impl Integer for u8 {}

/// Something that reads memory by address.
pub(crate) trait Memory {
    /// The integer at `address`, `None` if it cannot be read or the address is not a multiple of its size.
    fn load<T: Integer>(&self, address: usize) -> Option<T>;

    /// The word at `address`.
    #[inline(always)]
    fn word(&self, address: usize) -> Option<usize> {
        self.load(address)
    }

    /// The 32 bits at `address`.
    #[inline(always)]
    fn half(&self, address: usize) -> Option<u32> {
        self.load(address)
    }

    /// As [`Memory::load`], of an address within an object whose own address is [`plausible`].
    #[inline(always)]
    fn load_within<T: Integer>(&self, address: usize) -> Option<T> {
        self.load(address)
    }

    /// The object at `address`, `None` if none could be there.
    #[inline(always)]
    fn object(&self, address: usize) -> Option<Object<'_, Self>>
    where
        Self: Sized,
    {
        plausible(address).then_some(Object {
            memory: self,
            address,
        })
    }
}

/// An object of the interpreter, whose address is checked once for all of its fields.
pub(crate) struct Object<'a, M: Memory> {
    memory: &'a M,
    address: usize,
}

impl<M: Memory> Object<'_, M> {
    /// The word `offset` bytes into the object.
    #[inline(always)]
    pub(crate) fn word(&self, offset: usize) -> Option<usize> {
        self.memory.load_within(self.address + offset)
    }

    /// The 32 bits `offset` bytes into the object.
    #[inline(always)]
    pub(crate) fn half(&self, offset: usize) -> Option<u32> {
        self.memory.load_within(self.address + offset)
    }

    /// The byte `offset` bytes into the object.
    #[inline(always)]
    pub(crate) fn byte(&self, offset: usize) -> Option<u8> {
        self.memory.load_within(self.address + offset)
    }
}

/// Whether an object of the interpreter could be at `address`.
#[inline(always)]
pub(crate) fn plausible(address: usize) -> bool {
    address.wrapping_sub(0x1_0000) < 0x7fff_ffff_0000 - 0x1_0000 && address & 7 == 0
}

/// An integer at any address. Its field is loaded in place; `read_unaligned` is a call of its own in builds with debug
/// assertions, which took more time than the rest of a capture.
#[repr(C, packed)]
struct Unaligned<T>(T);

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
    fn load<T: Integer>(&self, address: usize) -> Option<T> {
        let may = plausible(address & !7) && address.is_multiple_of(size_of::<T>());
        // SAFETY: aligned, and the caller of `new` promises that the address is mapped.
        may.then(|| unsafe { *(address as *const T) })
    }

    #[inline(always)]
    fn load_within<T: Integer>(&self, address: usize) -> Option<T> {
        // SAFETY: the caller of `new` promises that the object is mapped. Its address is a multiple of 8, and layouts have
        // the fields where the interpreter's compiler aligned them; a table of offsets that does not is read unaligned.
        Some(unsafe { (*(address as *const Unaligned<T>)).0 })
    }
}

/// Reads with a system call that fails, instead of faulting, where nothing is mapped.
pub(crate) struct Checked;

impl Checked {
    /// Whether the word at `address` can be written to; `value` is what it has, and is written again.
    pub(crate) fn is_writable(&self, address: usize, value: usize) -> bool {
        if !plausible(address) {
            return false;
        }
        let length = size_of::<usize>();
        let local = libc::iovec {
            iov_base: (&raw const value).cast_mut().cast(),
            iov_len: length,
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: writes the value that is there; the kernel checks the address.
        let written = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
        written == length as isize
    }
}

impl Memory for Checked {
    fn load<T: Integer>(&self, address: usize) -> Option<T> {
        if !plausible(address & !7) || !address.is_multiple_of(size_of::<T>()) {
            return None;
        }
        let (mut value, length) = (T::default(), size_of::<T>());
        let local = libc::iovec {
            iov_base: (&raw mut value).cast(),
            iov_len: length,
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: the local range is the integer, and all bytes are valid; the kernel checks the remote one.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        (read == length as isize).then_some(value)
    }
}
