//! The allocator of processes that read recordings.

/// Size in bytes from which freed buffers go back to the system at once.
const LARGE: libc::c_int = 256 << 10;

/// Makes the allocator give large buffers back when they are freed. By default glibc raises the size from which it does that
/// to the size of buffers that were freed, up to 32 MiB, and so keeps the memory of batches of records. To be called before
/// large buffers are used.
pub fn return_large_buffers() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number in the allocator, which takes a lock for that. No pointers are involved.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use super::*;

    /// Bytes of the heap in use and free, without buffers that have mappings of their own.
    fn heap() -> usize {
        // SAFETY: reads sums of the allocator.
        unsafe { libc::mallinfo2() }.arena
    }

    #[test]
    fn return_large_buffers_keeps_the_heap_small_after_large_buffers_were_freed() {
        return_large_buffers();
        drop(std::hint::black_box(vec![1_u8; 16 << 20]));
        let before = heap();
        let buffer = std::hint::black_box(vec![1_u8; 8 << 20]);
        let grown = heap().saturating_sub(before);
        drop(buffer);
        // Other tests allocate at the same time, less than this.
        assert!(grown < 8 << 20, "the heap grew by {grown} bytes");
    }
}
