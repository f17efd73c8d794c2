//! Reading structs of the ABI that begin with their size.

use std::ffi::c_void;

/// A struct of the ABI whose first eight bytes are the number of its bytes that are meaningful. Fields beyond them are zero.
///
/// # Safety
///
/// `from` is null or points to such a struct, `T` is a plain struct of the ABI for which all-zero bytes are valid and
/// which begins like it.
#[inline]
pub(crate) unsafe fn sized<T: Default + Copy>(from: *const c_void) -> Option<T> {
    if from.is_null() {
        return None;
    }
    let mut value = T::default();
    // SAFETY: the struct begins with its size; no more than that and no more than `T` holds is copied.
    unsafe {
        let size = from.cast::<u64>().read_unaligned() as usize;
        std::ptr::copy_nonoverlapping(
            from.cast::<u8>(),
            (&raw mut value).cast::<u8>(),
            size.min(size_of::<T>()),
        );
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sized_struct_is_read_as_far_as_its_size_says() {
        let short: [u64; 3] = [16, 7, 9];
        // SAFETY: an array of numbers that starts with a size within it.
        let read: [u64; 3] = unsafe { sized(short.as_ptr().cast()) }.expect("not null");
        assert_eq!(read, [16, 7, 0]);
        let long: [u64; 3] = [4096, 7, 9];
        // SAFETY: as above; the result's own size bounds the copy.
        let read: [u64; 2] = unsafe { sized(long.as_ptr().cast()) }.expect("not null");
        assert_eq!(read, [4096, 7]);
    }
}
