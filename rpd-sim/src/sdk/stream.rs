//! Streams: their ids, and the stream that a call concerns.

use core::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};
use std::{collections::HashMap, sync::RwLock};

use rocprofiler_sdk_sys::{
    rocprofiler_address_t as Address, rocprofiler_callback_phase_t as Phase,
    rocprofiler_callback_tracing_hip_stream_data_t as Payload,
    rocprofiler_callback_tracing_kind_t as CallbackKind,
    rocprofiler_callback_tracing_record_t as CallbackRecord,
    rocprofiler_hip_stream_operation_t as Operation, rocprofiler_stream_id_t as StreamId,
    rocprofiler_user_data_t as UserData,
};

use super::{context, state, thread};

/// Id of the next stream; the null stream has 0.
static NEXT: AtomicU64 = AtomicU64::new(1);
static IDS: RwLock<Option<HashMap<u64, u64>>> = RwLock::new(None);

/// Id of a stream, which gets the next id when it is first seen.
fn id(stream: u64) -> u64 {
    if stream == 0 {
        return 0;
    }
    let known = IDS.read().unwrap_or_else(|e| e.into_inner());
    if let Some(&id) = known.as_ref().and_then(|ids| ids.get(&stream)) {
        return id;
    }
    drop(known);
    let mut ids = IDS.write().unwrap_or_else(|e| e.into_inner());
    *ids.get_or_insert_default()
        .entry(stream)
        .or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed))
}

fn deliver(
    mask: u64,
    operation: Operation,
    phase: Phase,
    payload: &mut Payload,
    user: &mut [UserData],
) {
    for (n, index) in context::bits(mask).enumerate() {
        let record = CallbackRecord {
            thread_id: thread::current(),
            kind: CallbackKind::HIP_STREAM,
            operation: operation.0 as i32,
            phase,
            payload: ptr::from_mut(payload).cast(),
            ..CallbackRecord::default()
        };
        let mut none = UserData::from(0);
        context::get(index).call(record, user.get_mut(n).unwrap_or(&mut none));
    }
}

fn wanting(operation: Operation) -> u64 {
    if state::finalized() != 0 {
        return 0;
    }
    let kind = CallbackKind::HIP_STREAM.0 as usize;
    context::active() & context::want_callbacks(kind, operation.0 as usize)
}

fn payload(stream: u64, id: u64) -> Payload {
    Payload {
        size: size_of::<Payload>() as u64,
        stream_id: StreamId { handle: id },
        stream_value: Address::from(stream),
    }
}

/// A call that concerns a stream, from its start to its end.
pub(crate) struct Set {
    mask: u64,
    payload: Payload,
    user: [UserData; Self::USERS],
}

impl Set {
    /// Most contexts whose user data lasts from the start of a call to its end.
    const USERS: usize = 8;

    /// Reports the start of a call that concerns a stream.
    #[inline]
    pub(crate) fn enter(stream: u64) -> Self {
        let mask = wanting(Operation::SET);
        let id = if mask == 0 { 0 } else { id(stream) };
        let mut set = Self {
            mask,
            payload: payload(stream, id),
            user: Default::default(),
        };
        if mask != 0 {
            deliver(
                mask,
                Operation::SET,
                Phase::ENTER,
                &mut set.payload,
                &mut set.user,
            );
        }
        set
    }

    /// Reports the end of the call.
    #[inline]
    pub(crate) fn exit(mut self) {
        if self.mask != 0 {
            deliver(
                self.mask,
                Operation::SET,
                Phase::EXIT,
                &mut self.payload,
                &mut self.user,
            );
        }
    }
}

/// Reports that a stream was created.
pub(crate) fn created(stream: u64) {
    let id = id(stream);
    let mask = wanting(Operation::CREATE);
    deliver(
        mask,
        Operation::CREATE,
        Phase::NONE,
        &mut payload(stream, id),
        &mut [],
    );
}

/// Reports that a stream was destroyed.
pub(crate) fn destroyed(stream: u64) {
    let id = id(stream);
    if stream != 0 {
        let mut ids = IDS.write().unwrap_or_else(|e| e.into_inner());
        ids.as_mut().and_then(|ids| ids.remove(&stream));
    }
    let mask = wanting(Operation::DESTROY);
    deliver(
        mask,
        Operation::DESTROY,
        Phase::NONE,
        &mut payload(stream, id),
        &mut [],
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_are_sequential_and_the_null_stream_has_zero() {
        assert_eq!(id(0), 0);
        let first = id(0x1000);
        assert_eq!(id(0x1000), first);
        assert_eq!(id(0x2000), first + 1);
        destroyed(0x1000);
        assert_eq!(id(0x1000), first + 2);
    }
}
