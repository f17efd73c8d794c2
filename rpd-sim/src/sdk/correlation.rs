//! Correlation ids: one per traced call, shared with the asynchronous work that the call starts.

use core::{
    cell::Cell,
    ptr,
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_correlation_id_retirement_record_t as Retirement,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
};

use super::{clock, context};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A fresh internal id.
#[inline]
fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Number of users of an id, kept from when asynchronous work first shares the id.
struct SharedId {
    users: AtomicU32,
    internal: u64,
}

/// The id of a traced call while the call is on its thread's stack.
pub(crate) struct Scope {
    /// Internal correlation id, from 1.
    pub(crate) internal: u64,
    /// Internal id of the enclosing traced call, 0 for none.
    pub(crate) ancestor: u64,
    shared: Cell<*const SharedId>,
    outer: *const Scope,
}

thread_local! {
    static CURRENT: Cell<*const Scope> = const { Cell::new(ptr::null()) };
}

impl Scope {
    /// A scope whose id no call has yet.
    pub(crate) const fn unused() -> Self {
        Self {
            internal: 0,
            ancestor: 0,
            shared: Cell::new(ptr::null()),
            outer: ptr::null(),
        }
    }

    /// Makes the id the calling thread's current one. The scope must not move until `leave`.
    #[inline]
    pub(crate) fn enter(&mut self) {
        CURRENT.with(|current| {
            self.outer = current.get();
            // SAFETY: scopes stay where they are while they are current.
            self.ancestor = unsafe { self.outer.as_ref() }.map_or(0, |outer| outer.internal);
            self.internal = next();
            current.set(self);
        });
    }

    /// Takes the scope off the thread's stack, so that the enclosing call's id is the current one again.
    #[inline]
    pub(crate) fn leave(&self) {
        CURRENT.with(|current| {
            // A range opened inside and left open is cut off with the call; one that is closed out of
            // order is not on top.
            if ptr::eq(current.get(), self) || self.encloses(current.get()) {
                current.set(self.outer);
            }
        });
    }

    fn encloses(&self, mut inner: *const Scope) -> bool {
        // SAFETY: everything reachable from the current scope is alive.
        while let Some(scope) = unsafe { inner.as_ref() } {
            if ptr::eq(scope, self) {
                return true;
            }
            inner = scope.outer;
        }
        false
    }

    /// Ends the call's use of the id, which is retired when no work uses it either.
    #[inline]
    pub(crate) fn release(&self) {
        let shared = self.shared.replace(ptr::null());
        if shared.is_null() {
            retire(self.internal);
        } else {
            release(shared);
        }
    }
}

fn release(shared: *const SharedId) {
    // SAFETY: the caller holds one of the uses that it releases here.
    let node = unsafe { &*shared };
    let internal = node.internal;
    if node.users.fetch_sub(1, Ordering::AcqRel) == 1 {
        // SAFETY: it came out of a box and is not used any more.
        drop(unsafe { Box::from_raw(shared.cast_mut()) });
        retire(internal);
    }
}

/// Internal id and ancestor of the thread's current call, if it is in one.
pub(crate) fn current() -> Option<(u64, u64)> {
    CURRENT.with(|current| {
        // SAFETY: the current scope is alive.
        unsafe { current.get().as_ref() }.map(|scope| (scope.internal, scope.ancestor))
    })
}

/// A use of an id by asynchronous work.
pub(crate) struct Use {
    /// Internal correlation id.
    pub(crate) internal: u64,
    /// Internal id of the enclosing traced call, 0 for none.
    pub(crate) ancestor: u64,
    shared: *const SharedId,
}

// SAFETY: the node is only reached through atomics.
unsafe impl Send for Use {}
// SAFETY: as above.
unsafe impl Sync for Use {}

impl Use {
    /// Adds a use of the current call's id, or of a new id where there is no call.
    pub(crate) fn current() -> Self {
        CURRENT.with(|current| {
            // SAFETY: the current scope is alive.
            let Some(scope) = (unsafe { current.get().as_ref() }) else {
                let internal = next();
                let shared = Box::into_raw(Box::new(SharedId {
                    users: AtomicU32::new(1),
                    internal,
                }));
                return Self {
                    internal,
                    ancestor: 0,
                    shared,
                };
            };
            let (internal, ancestor) = (scope.internal, scope.ancestor);
            let mut shared = scope.shared.get();
            if shared.is_null() {
                shared = Box::into_raw(Box::new(SharedId {
                    users: AtomicU32::new(2),
                    internal,
                }));
                scope.shared.set(shared);
            } else {
                // SAFETY: the scope holds a use.
                unsafe { &*shared }.users.fetch_add(1, Ordering::Relaxed);
            }
            Self {
                internal,
                ancestor,
                shared,
            }
        })
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        release(self.shared);
    }
}

/// Reports that no further record will have an id.
#[inline]
fn retire(internal: u64) {
    let kind = BufferKind::CORRELATION_ID_RETIREMENT.0;
    let mask = context::want_records(kind as usize, 0) & context::active();
    if mask != 0 {
        let record = Retirement {
            size: size_of::<Retirement>() as u64,
            kind: BufferKind::CORRELATION_ID_RETIREMENT,
            timestamp: clock::now(),
            internal_correlation_id: internal,
        };
        for index in context::bits(mask) {
            if let Some(buffer) = context::get(index).buffers[kind as usize].get() {
                buffer.emit(kind, &record);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_calls_have_the_enclosing_call_as_ancestor() {
        let mut outer = Scope::unused();
        outer.enter();
        let mut inner = Scope::unused();
        inner.enter();
        assert_eq!(outer.ancestor, 0);
        assert_eq!(inner.ancestor, outer.internal);
        assert_eq!(current(), Some((inner.internal, outer.internal)));
        let work = Use::current();
        assert_eq!(work.internal, inner.internal);
        inner.leave();
        inner.release();
        assert_eq!(current(), Some((outer.internal, 0)));
        outer.leave();
        outer.release();
        assert_eq!(current(), None);
        drop(work);
    }

    #[test]
    fn a_correlation_scope_left_open_ends_with_its_call() {
        let mut call = Scope::unused();
        call.enter();
        let mut range = Box::new(Scope::unused());
        range.enter();
        call.leave();
        assert_eq!(current(), None);
        range.leave();
        assert_eq!(current(), None);
    }

    #[test]
    fn work_outside_of_calls_gets_a_correlation_id_of_its_own() {
        let (a, b) = (Use::current(), Use::current());
        assert_ne!(a.internal, b.internal);
        assert_eq!(a.ancestor, 0);
    }
}
