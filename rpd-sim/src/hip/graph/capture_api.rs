//! The functions of the API that capture streams as graphs.

use core::ffi::c_void;
use std::sync::Arc;

use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::api::nodes;
use crate::hip::graph::capture_rules::{self, UnderWay};
use crate::hip::graph::{Capture, Graph, Node, reaches};
use crate::hip::runtime;
use crate::hip::stream::{self, Stream};
use crate::hip::types::Handle;

fn begin(
    stream: &Stream,
    mode: u32,
    graph: Arc<Graph>,
    after: Vec<Arc<Node>>,
    into: bool,
) -> HipResult {
    let rules = UnderWay::begin(mode)?;
    if stream.legacy {
        return Err(code::STREAM_CAPTURE_UNSUPPORTED);
    }
    if stream.is_capturing() {
        return Err(code::ILLEGAL_STATE);
    }
    stream.set_capture(Some(Capture {
        graph,
        after,
        began_here: true,
        into,
        rules: Some(rules),
        listed: Vec::new(),
    }));
    Ok(())
}

pub(crate) unsafe extern "C" fn hipStreamBeginCapture(stream: Handle, mode: u32) -> u32 {
    api(|| {
        begin(
            &*stream::resolve(stream)?,
            mode,
            Graph::new(),
            Vec::new(),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipStreamBeginCapture_spt(stream: Handle, mode: u32) -> u32 {
    api(|| {
        begin(
            &*stream::resolve_spt(stream)?,
            mode,
            Graph::new(),
            Vec::new(),
            false,
        )
    })
}

pub(crate) unsafe extern "C" fn hipStreamBeginCaptureToGraph(
    stream: Handle,
    graph: Handle,
    dependencies: *const Handle,
    _edges: *const c_void,
    count: usize,
    mode: u32,
) -> u32 {
    api(|| {
        let stream = stream::resolve(stream)?;
        let graph = runtime::get()?.graphs.graph(graph)?;
        // SAFETY: the caller's list.
        let after = unsafe { nodes(&graph, dependencies, count)? };
        begin(&stream, mode, graph, after, true)
    })
}

fn end(stream: &Stream, out: *mut Handle) -> HipResult {
    if out.is_null() {
        return Err(code::INVALID_VALUE);
    }
    {
        let slot = stream.capture();
        match slot.as_ref() {
            None => return Err(code::ILLEGAL_STATE),
            Some(capture) if !capture.began_here => return Err(code::STREAM_CAPTURE_UNMATCHED),
            Some(_) => {}
        }
    }
    let capture = stream.set_capture(None).ok_or(code::ILLEGAL_STATE)?;
    let invalid = capture.is_invalid();
    let graph = capture.graph;
    // Streams the capture reached must have been joined again: their last nodes lie before ours.
    let mut unjoined = false;
    for device in &runtime::get()?.devices {
        for other in device.live_streams() {
            let theirs = {
                let slot = other.capture();
                slot.as_ref()
                    .filter(|theirs| Arc::ptr_eq(&theirs.graph, &graph))
                    .map(|theirs| theirs.after.clone())
            };
            if let Some(last) = theirs {
                unjoined |= !last.iter().all(|node| reaches(&capture.after, node));
                other.set_capture(None);
            }
        }
    }
    if invalid {
        // SAFETY: the caller's pointer, not null.
        unsafe { put(out, std::ptr::null_mut())? };
        return Err(code::STREAM_CAPTURE_INVALIDATED);
    }
    let handle = if capture.into {
        graph.handle()
    } else {
        runtime::get()?.graphs.enter(graph)
    };
    // SAFETY: the caller's pointer, not null.
    unsafe {
        put(
            out,
            if unjoined {
                std::ptr::null_mut()
            } else {
                handle
            },
        )?
    };
    if unjoined {
        Err(code::STREAM_CAPTURE_UNJOINED)
    } else {
        Ok(())
    }
}

pub(crate) unsafe extern "C" fn hipStreamEndCapture(stream: Handle, out: *mut Handle) -> u32 {
    api(|| end(&*stream::resolve(stream)?, out))
}

pub(crate) unsafe extern "C" fn hipStreamEndCapture_spt(stream: Handle, out: *mut Handle) -> u32 {
    api(|| end(&*stream::resolve_spt(stream)?, out))
}

/// The `hipStreamCaptureStatus` of a stream with this capture.
fn state(capture: Option<&Capture>) -> u32 {
    const NONE: u32 = 0;
    const ACTIVE: u32 = 1;
    const INVALIDATED: u32 = 2;
    match capture {
        None => NONE,
        Some(capture) if capture.is_invalid() => INVALIDATED,
        Some(_) => ACTIVE,
    }
}

/// # Safety
/// The pointers are null or valid.
unsafe fn capture_info(stream: &Stream, status: *mut u32, id: *mut u64) -> HipResult {
    let slot = stream.capture();
    // SAFETY: by contract, checked for null.
    unsafe {
        put(status, state(slot.as_ref()))?;
        match slot.as_ref() {
            Some(capture) if !id.is_null() => put(id, capture.graph.id),
            _ => Ok(()),
        }
    }
}

pub(crate) unsafe extern "C" fn hipStreamIsCapturing(stream: Handle, status: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { capture_info(&*stream::resolve(stream)?, status, std::ptr::null_mut()) })
}

pub(crate) unsafe extern "C" fn hipStreamIsCapturing_spt(stream: Handle, status: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { capture_info(&*stream::resolve_spt(stream)?, status, std::ptr::null_mut()) })
}

pub(crate) unsafe extern "C" fn hipStreamGetCaptureInfo(
    stream: Handle,
    status: *mut u32,
    id: *mut u64,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { capture_info(&*stream::resolve(stream)?, status, id) })
}

pub(crate) unsafe extern "C" fn hipStreamGetCaptureInfo_spt(
    stream: Handle,
    status: *mut u32,
    id: *mut u64,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe { capture_info(&*stream::resolve_spt(stream)?, status, id) })
}

/// Writes the facts about a stream's capture; pointers that are null are left out.
///
/// # Safety
/// The pointers are null or valid.
unsafe fn capture_details(
    stream: &Stream,
    (status, id): (*mut u32, *mut u64),
    graph: *mut Handle,
    (nodes, count): (*mut *const Handle, *mut usize),
) -> HipResult {
    // SAFETY: by contract.
    unsafe { capture_info(stream, status, id)? };
    let mut slot = stream.capture();
    let Some(capture) = slot.as_mut() else {
        return Ok(());
    };
    capture.listed = capture
        .after
        .iter()
        .map(|node| node.handle() as usize)
        .collect();
    // SAFETY: by contract, not null. The list lives until the stream's next operation.
    unsafe {
        if !graph.is_null() {
            put(
                graph,
                runtime::get()?.graphs.enter(Arc::clone(&capture.graph)),
            )?;
        }
        if !nodes.is_null() {
            put(nodes, capture.listed.as_ptr().cast())?;
        }
        if !count.is_null() {
            put(count, capture.listed.len())?;
        }
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipStreamGetCaptureInfo_v2(
    stream: Handle,
    status: *mut u32,
    id: *mut u64,
    graph: *mut Handle,
    nodes: *mut *const Handle,
    count: *mut usize,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        capture_details(
            &*stream::resolve(stream)?,
            (status, id),
            graph,
            (nodes, count),
        )
    })
}

pub(crate) unsafe extern "C" fn hipStreamGetCaptureInfo_v2_spt(
    stream: Handle,
    status: *mut u32,
    id: *mut u64,
    graph: *mut Handle,
    nodes: *mut *const Handle,
    count: *mut usize,
) -> u32 {
    // SAFETY: the caller's pointers, checked for null.
    api(|| unsafe {
        capture_details(
            &*stream::resolve_spt(stream)?,
            (status, id),
            graph,
            (nodes, count),
        )
    })
}

pub(crate) unsafe extern "C" fn hipStreamUpdateCaptureDependencies(
    stream: Handle,
    list: *mut Handle,
    count: usize,
    flags: u32,
) -> u32 {
    const ADD: u32 = 0;
    const SET: u32 = 1;
    api(|| {
        let stream = stream::resolve(stream)?;
        let mut slot = stream.capture();
        let capture = slot.as_mut().ok_or(code::ILLEGAL_STATE)?;
        // SAFETY: the caller's list.
        let wanted = unsafe { nodes(&capture.graph, list, count)? };
        match flags {
            ADD => {}
            SET => capture.after.clear(),
            _ => return Err(code::INVALID_VALUE),
        }
        for node in wanted {
            if !capture.after.iter().any(|known| Arc::ptr_eq(known, &node)) {
                capture.after.push(node);
            }
        }
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipThreadExchangeStreamCaptureMode(mode: *mut u32) -> u32 {
    api(|| {
        if mode.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's pointer, not null.
        unsafe { put(mode, capture_rules::exchange(mode.read_unaligned())?) }
    })
}
