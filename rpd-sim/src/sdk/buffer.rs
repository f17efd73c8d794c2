//! Buffers: records collected for a tool, and delivered to it on a provider thread.

use core::{
    ffi::c_void,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, RwLock},
};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_category_t as Category, rocprofiler_buffer_id_t as BufferId,
    rocprofiler_buffer_policy_t as Policy, rocprofiler_buffer_tracing_cb_t as BufferFn,
    rocprofiler_context_id_t as ContextId, rocprofiler_record_header_t as Header,
    rocprofiler_status_t as Status,
};

use super::{context, state, status::store, worker};

/// Records of one storage area, back to back, each with the numbers of its header.
#[derive(Default)]
struct Area {
    /// Bytes of records, in words so that records are aligned.
    words: Vec<u64>,
    /// Category, kind and first word of each record.
    index: Vec<(u32, u32, usize)>,
}

/// A buffer that a tool created: records of its context until they are delivered.
pub(crate) struct Buffer {
    /// Handle, from 1.
    pub(crate) id: u64,
    /// Context that the tool named at creation.
    pub(crate) context: ContextId,
    capacity: usize,
    watermark: usize,
    lossless: bool,
    callback: context::Callback<<BufferFn as IntoIterator>::Item>,
    /// Number of the callback thread that delivers the buffer.
    pub(crate) worker: AtomicUsize,
    area: Mutex<Area>,
    /// Notified when the area was emptied.
    emptied: Condvar,
    /// Lock that is held while the callback runs, with the spare area.
    delivery: Mutex<Area>,
    /// Records dropped since the last delivery.
    dropped: AtomicU64,
    /// Whether a flush was requested and has not begun.
    requested: AtomicBool,
    destroyed: AtomicBool,
}

static BUFFERS: RwLock<Vec<&'static Buffer>> = RwLock::new(Vec::new());

/// The buffer of a handle, unless it was destroyed.
pub(crate) fn find(id: BufferId) -> Option<&'static Buffer> {
    let buffers = BUFFERS.read().unwrap_or_else(|e| e.into_inner());
    let buffer = *buffers.get(usize::try_from(id.handle).ok()?.checked_sub(1)?)?;
    (!buffer.destroyed.load(Ordering::Acquire)).then_some(buffer)
}

impl Buffer {
    /// Appends a tracing record.
    pub(crate) fn emit<T: Copy>(&self, kind: u32, record: &T) {
        self.emit_as(Category::TRACING, kind, record);
    }

    /// Appends a record. `record` is a struct of the ABI without interior pointers to the stack.
    pub(crate) fn emit_as<T: Copy>(&self, category: Category, kind: u32, record: &T) {
        // Records are copied as words, whatever their type.
        const { assert!(align_of::<T>() <= 8 && size_of::<T>().is_multiple_of(8)) };
        let words = size_of::<T>() / 8;
        let mut area = self.area.lock().unwrap_or_else(|e| e.into_inner());
        // A record that is larger than the buffer is stored in an empty one all the same.
        while (area.words.len() + words) * 8 > self.capacity && !area.index.is_empty() {
            // The only thread that could make room does not wait for itself.
            if self.lossless && worker::on_worker() {
                break;
            }
            // Without a callback thread nobody would ever make room.
            if !self.lossless || !worker::running() {
                drop(area);
                self.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.request();
            area = self.emptied.wait(area).unwrap_or_else(|e| e.into_inner());
        }
        let first = area.words.len();
        area.words.reserve(words);
        // SAFETY: room for `words` words was reserved; a record is that many plain words.
        unsafe {
            let to = area.words.as_mut_ptr().add(first);
            core::ptr::copy_nonoverlapping(core::ptr::from_ref(record).cast::<u64>(), to, words);
            area.words.set_len(first + words);
        }
        area.index.push((category.0, kind, first));
        // Requested outside of the lock, which the delivery takes.
        let full = area.words.len() * 8 >= self.watermark;
        drop(area);
        if full {
            self.request();
        }
    }

    /// Requests a flush from the callback thread, unless one is requested already.
    fn request(&self) {
        if !self.requested.swap(true, Ordering::AcqRel) {
            worker::post(self.worker.load(Ordering::Relaxed), self.id);
        }
    }

    /// Delivers the stored records to the tool; called on the callback thread.
    pub(crate) fn deliver(&self) {
        let mut spare = self.delivery.lock().unwrap_or_else(|e| e.into_inner());
        // Cleared before the areas are swapped: a record that comes later requests another delivery.
        self.requested.store(false, Ordering::Release);
        {
            let mut area = self.area.lock().unwrap_or_else(|e| e.into_inner());
            // Writers go on with the spare area while the tool reads this one.
            core::mem::swap(&mut *area, &mut *spare);
        }
        self.emptied.notify_all();
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        // A flush of an empty buffer calls nobody, unless records were lost.
        if spare.index.is_empty() && dropped == 0 {
            return;
        }
        let base = spare.words.as_mut_ptr();
        let mut headers: Vec<Header> = spare
            .index
            .iter()
            .map(|&(category, kind, first)| {
                // SAFETY: `first` is a word of the area.
                let payload = unsafe { base.add(first) }.cast::<c_void>();
                Header {
                    category,
                    kind,
                    payload,
                }
            })
            .collect();
        let mut pointers: Vec<*mut Header> = headers.iter_mut().map(core::ptr::from_mut).collect();
        // SAFETY: the tool gave the function for this; all pointers stay valid until it returns.
        unsafe {
            (self.callback.function)(
                self.context,
                BufferId { handle: self.id },
                pointers.as_mut_ptr(),
                pointers.len(),
                self.callback.data,
                dropped,
            );
        }
        spare.words.clear();
        spare.index.clear();
    }
}

/// All locks that writers take, for a fork: the child finds them free.
pub(crate) fn lock_all() -> VecDeque<MutexGuard<'static, impl Sized>> {
    let buffers = BUFFERS.read().unwrap_or_else(|e| e.into_inner());
    buffers
        .iter()
        .map(|b| b.area.lock().unwrap_or_else(|e| e.into_inner()))
        .collect()
}

/// `rocprofiler_create_buffer`.
///
/// # Safety
/// The out pointer is null or readable and writable; the callback stays callable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rocprofiler_create_buffer(
    context: ContextId,
    size: usize,
    watermark: usize,
    policy: Policy,
    callback: BufferFn,
    callback_data: *mut c_void,
    buffer_id: *mut BufferId,
) -> Status {
    if state::initialized() != -1 {
        return Status::ERROR_CONFIGURATION_LOCKED;
    }
    let Some(function) = callback else {
        return Status::ERROR_INVALID_ARGUMENT;
    };
    if buffer_id.is_null() {
        return Status::ERROR_INVALID_ARGUMENT;
    }
    // SAFETY: not null, readable by the contract.
    let before = unsafe { *buffer_id };
    if find(before).is_some() {
        return Status::ERROR_SERVICE_ALREADY_CONFIGURED;
    }
    let mut buffers = BUFFERS.write().unwrap_or_else(|e| e.into_inner());
    // Handles are indices from 1, so that 0 stands for no buffer.
    let id = buffers.len() as u64 + 1;
    // Never freed, because records of work under way refer to it without a lock.
    buffers.push(Box::leak(Box::new(Buffer {
        id,
        context,
        capacity: size,
        watermark,
        lossless: policy == Policy::LOSSLESS,
        callback: context::Callback {
            function,
            data: callback_data,
        },
        worker: AtomicUsize::new(0),
        area: Mutex::default(),
        emptied: Condvar::new(),
        delivery: Mutex::default(),
        dropped: AtomicU64::new(0),
        requested: AtomicBool::new(false),
        destroyed: AtomicBool::new(false),
    })));
    store(buffer_id, BufferId { handle: id });
    Status::SUCCESS
}

/// Delivers the records in a buffer and waits for that. Fails with `BUFFER_BUSY` when the callback thread of the buffer
/// calls it.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_flush_buffer(buffer_id: BufferId) -> Status {
    if state::finalized() == 1 {
        return Status::ERROR_FINALIZED;
    }
    let Some(buffer) = find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    if worker::post_and_wait(buffer.worker.load(Ordering::Relaxed), buffer.id) {
        Status::SUCCESS
    } else {
        // Its own callback thread would wait for itself.
        Status::ERROR_BUFFER_BUSY
    }
}

/// Makes the handle of a buffer invalid. Fails with `BUFFER_BUSY` while a delivery is under way.
#[unsafe(no_mangle)]
pub extern "C" fn rocprofiler_destroy_buffer(buffer_id: BufferId) -> Status {
    let Some(buffer) = find(buffer_id) else {
        return Status::ERROR_BUFFER_NOT_FOUND;
    };
    // The callback runs: memory that it reads must not go.
    if buffer.delivery.try_lock().is_err() {
        return Status::ERROR_BUFFER_BUSY;
    }
    buffer.destroyed.store(true, Ordering::Release);
    Status::SUCCESS
}
