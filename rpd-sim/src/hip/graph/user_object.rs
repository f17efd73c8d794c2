//! Objects of the program that graphs keep alive: counted references, and a function that is called when there are none.

use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::runtime::{self, Opaque, lock};
use crate::hip::types::{Handle, HostFn};

/// A `hipUserObject_t`: data of the program with a reference count and a function that destroys it.
#[derive(Debug)]
pub(crate) struct UserObject {
    data: Opaque,
    destroy: HostFn,
    references: AtomicU32,
}

impl UserObject {
    fn retain(&self, count: u32) {
        self.references.fetch_add(count, Ordering::AcqRel);
    }

    /// Gives references back; giving the last one back destroys the object.
    fn release(&self, count: u32) -> HipResult {
        let take = |left: u32| left.checked_sub(count);
        let before = self
            .references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .map_err(|_| code::INVALID_VALUE)?;
        if before == count
            && let Some(destroy) = self.destroy
        {
            // SAFETY: the program registered the function for this object.
            unsafe { destroy(self.data.0) };
        }
        Ok(())
    }
}

/// The objects of a program, by handle.
#[derive(Debug, Default)]
pub(crate) struct UserObjects(Mutex<HashMap<usize, Arc<UserObject>>>);

impl UserObjects {
    fn get(&self, handle: Handle) -> HipResult<Arc<UserObject>> {
        let object = lock(&self.0).get(&(handle as usize)).cloned();
        object.ok_or(code::INVALID_VALUE)
    }

    fn release(&self, handle: Handle, count: u32) -> HipResult {
        let object = self.get(handle)?;
        object.release(count)?;
        if object.references.load(Ordering::Acquire) == 0 {
            lock(&self.0).remove(&(handle as usize));
        }
        Ok(())
    }
}

/// References that a graph has.
#[derive(Debug, Default)]
pub(crate) struct References(Mutex<Vec<(Arc<UserObject>, u32)>>);

impl References {
    /// References to the same objects for a copy of the graph, which are counted again.
    pub(crate) fn retained(&self) -> Self {
        let list = lock(&self.0).clone();
        for (object, count) in &list {
            object.retain(*count);
        }
        Self(Mutex::new(list))
    }

    fn add(&self, object: Arc<UserObject>, count: u32) {
        let mut list = lock(&self.0);
        match list
            .iter_mut()
            .find(|(known, _)| Arc::ptr_eq(known, &object))
        {
            Some((_, references)) => *references += count,
            None => list.push((object, count)),
        }
    }

    fn take(&self, object: &Arc<UserObject>, count: u32) -> HipResult {
        let mut list = lock(&self.0);
        let known = list
            .iter_mut()
            .find(|(known, _)| Arc::ptr_eq(known, object));
        let (_, references) = known.ok_or(code::INVALID_VALUE)?;
        *references = references.checked_sub(count).ok_or(code::INVALID_VALUE)?;
        list.retain(|(_, references)| *references > 0);
        Ok(())
    }
}

impl Drop for References {
    fn drop(&mut self) {
        for (object, count) in lock(&self.0).drain(..) {
            // The references are ours, so that there are enough.
            let _ = object.release(count);
        }
    }
}

pub(crate) unsafe extern "C" fn hipUserObjectCreate(
    out: *mut Handle,
    data: *mut c_void,
    destroy: HostFn,
    references: u32,
    flags: u32,
) -> u32 {
    const NO_DESTRUCTOR_SYNC: u32 = 1;
    api(|| {
        if out.is_null()
            || data.is_null()
            || destroy.is_none()
            || references == 0
            || flags != NO_DESTRUCTOR_SYNC
        {
            return Err(code::INVALID_VALUE);
        }
        let object = Arc::new(UserObject {
            data: Opaque(data),
            destroy,
            references: AtomicU32::new(references),
        });
        let handle = Arc::as_ptr(&object).cast_mut().cast::<c_void>();
        lock(&runtime::get()?.graphs.objects.0).insert(handle as usize, object);
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, handle) }
    })
}

pub(crate) unsafe extern "C" fn hipUserObjectRetain(object: Handle, count: u32) -> u32 {
    api(|| {
        if count == 0 {
            return Err(code::INVALID_VALUE);
        }
        runtime::get()?.graphs.objects.get(object)?.retain(count);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipUserObjectRelease(object: Handle, count: u32) -> u32 {
    api(|| {
        if count == 0 {
            return Err(code::INVALID_VALUE);
        }
        runtime::get()?.graphs.objects.release(object, count)
    })
}

pub(crate) unsafe extern "C" fn hipGraphRetainUserObject(
    graph: Handle,
    object: Handle,
    count: u32,
    flags: u32,
) -> u32 {
    const MOVE: u32 = 1;
    api(|| {
        if count == 0 || flags & !MOVE != 0 {
            return Err(code::INVALID_VALUE);
        }
        let graphs = &runtime::get()?.graphs;
        let (graph, object) = (graphs.graph(graph)?, graphs.objects.get(object)?);
        // With MOVE the graph takes over references that the caller has.
        if flags & MOVE == 0 {
            object.retain(count);
        }
        graph.objects.add(object, count);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGraphReleaseUserObject(
    graph: Handle,
    object: Handle,
    count: u32,
) -> u32 {
    api(|| {
        if count == 0 {
            return Err(code::INVALID_VALUE);
        }
        let graphs = &runtime::get()?.graphs;
        let held = graphs.objects.get(object)?;
        graphs.graph(graph)?.objects.take(&held, count)?;
        graphs.objects.release(object, count)
    })
}
