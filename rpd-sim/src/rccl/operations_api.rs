//! The functions of the API that communicate, and groups of them.

use super::communicator::{self, Communicator};
use super::error::{Failure, Outcome, api, put, result};
use super::group;
use super::hip::Handle;
use super::work::{DataType, Factor, REDUCTIONS, Work, flag};

/// Buffers and size of an operation as a program passes them.
#[derive(Clone, Copy)]
struct Call {
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    root: i32,
}

impl Call {
    fn new(send: usize, receive: usize, count: usize, kind: u32, root: i32) -> Self {
        Self {
            send,
            receive,
            count,
            kind,
            root,
        }
    }
}

/// Operator of a reduction; `None` for operations that only move elements.
type Reduction = Option<u32>;

/// Converts `rank` to an index; fails if the communicator lacks this rank.
fn check_rank(communicator: &Communicator, name: &str, rank: i32) -> Outcome<u32> {
    let ranks = communicator.segment.ranks;
    u32::try_from(rank)
        .ok()
        .filter(|&rank| rank < ranks)
        .ok_or_else(|| Failure::argument(format!("{name} is {rank}, there are {ranks} ranks")))
}

/// The operation of a call. `flags` describe the part of this rank in it.
fn work(
    communicator: &Communicator,
    call: &Call,
    flags: u32,
    reduction: Reduction,
) -> Outcome<Option<Work>> {
    let segment = &communicator.segment;
    let kind = DataType::new(call.kind)?;
    let name = match flags & (flag::SEND | flag::RECEIVE) {
        0 => "root",
        _ => "peer",
    };
    let root = check_rank(communicator, name, call.root)?;
    let all = (call.count.checked_mul(kind.size().into()))
        .and_then(|bytes| bytes.checked_mul(segment.ranks as usize));
    if all.is_none() {
        let text = format!("{} elements are more than there is memory", call.count);
        return Err(Failure::argument(text));
    }
    let mut work = Work {
        flags,
        root,
        send: call.send as u64,
        receive: call.receive as u64,
        ..Work::from_kind(kind, call.count)
    };
    if let Some(number) = reduction {
        let state = communicator.state();
        work = work.reduces(kind, number, segment.ranks, &state.factors)?;
    }
    if call.count == 0 {
        return Ok(None);
    }
    let concerned = |flag| flags & flag == 0 || segment.rank == root;
    let sends = flags & flag::RECEIVE == 0 && concerned(flag::FROM_ROOT);
    let receives = flags & flag::SEND == 0 && concerned(flag::TO_ROOT);
    for (needed, name, buffer) in [
        (sends, "sendbuff", call.send),
        (receives, "recvbuff", call.receive),
    ] {
        if needed && buffer == 0 {
            return Err(Failure::argument(format!("{name} is null")));
        }
    }
    Ok(Some(work))
}

/// Carries out a call of one operation.
fn operate(
    name: &str,
    comm: usize,
    stream: Handle,
    call: Call,
    flags: u32,
    reduction: Reduction,
) -> u32 {
    api(name, || {
        let communicator = communicator::find(comm)?;
        group::operate(&communicator, stream, || {
            let work = work(&communicator, &call, flags, reduction)?;
            Ok(work.into_iter().collect())
        })
    })
}

pub(crate) unsafe extern "C" fn ncclAllGather(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, 0);
    operate("ncclAllGather", comm, stream, call, 0, None)
}

pub(crate) unsafe extern "C" fn ncclAllReduce(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    reduction: u32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, 0);
    operate("ncclAllReduce", comm, stream, call, 0, Some(reduction))
}

pub(crate) unsafe extern "C" fn ncclAllToAll(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, 0);
    operate("ncclAllToAll", comm, stream, call, flag::PARTS, None)
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn ncclAllToAllv(
    send: usize,
    send_counts: *const usize,
    send_places: *const usize,
    receive: usize,
    receive_counts: *const usize,
    receive_places: *const usize,
    kind: u32,
    comm: usize,
    stream: Handle,
) -> u32 {
    api("ncclAllToAllv", || {
        let communicator = communicator::find(comm)?;
        group::operate(&communicator, stream, || {
            let lists = [send_counts, send_places, receive_counts, receive_places];
            if lists.iter().any(|list| list.is_null()) {
                return Err(Failure::argument(
                    "a list of counts or displacements is null",
                ));
            }
            let size = usize::from(DataType::new(kind)?.size());
            let mut works = Vec::new();
            for peer in 0..communicator.segment.ranks {
                // SAFETY: the caller's lists have a number for each rank.
                let [sent, from, received, to] =
                    lists.map(|list| unsafe { list.add(peer as usize).read() });
                let message = |count, send, receive, flags| {
                    let call = Call::new(send, receive, count, kind, peer as i32);
                    work(&communicator, &call, flags, None)
                };
                let at = |buffer: usize, place: usize| match buffer {
                    0 => 0,
                    _ => buffer.wrapping_add(place.wrapping_mul(size)),
                };
                works.extend(message(sent, at(send, from), 0, flag::SEND)?);
                works.extend(message(received, 0, at(receive, to), flag::RECEIVE)?);
            }
            Ok(works)
        })
    })
}

pub(crate) unsafe extern "C" fn ncclBroadcast(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    root: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, root);
    operate("ncclBroadcast", comm, stream, call, flag::FROM_ROOT, None)
}

/// `ncclBcast` of the C API: a broadcast in place.
///
/// # Safety
/// As documented for the C function.
#[unsafe(no_mangle)]
#[allow(unreachable_pub)]
pub unsafe extern "C" fn ncclBcast(
    buffer: *mut core::ffi::c_void,
    count: usize,
    kind: u32,
    root: i32,
    comm: *mut core::ffi::c_void,
    stream: *mut core::ffi::c_void,
) -> u32 {
    // SAFETY: the caller's arguments.
    unsafe { crate::api::call::ncclBroadcast(buffer, buffer, count, kind, root, comm, stream) }
}

pub(crate) unsafe extern "C" fn ncclGather(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    root: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, root);
    operate("ncclGather", comm, stream, call, flag::TO_ROOT, None)
}

#[allow(clippy::too_many_arguments)]
pub(crate) unsafe extern "C" fn ncclReduce(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    reduction: u32,
    root: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, root);
    let (flags, reduction) = (flag::TO_ROOT, Some(reduction));
    operate("ncclReduce", comm, stream, call, flags, reduction)
}

pub(crate) unsafe extern "C" fn ncclReduceScatter(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    reduction: u32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, 0);
    let (flags, reduction) = (flag::PARTS, Some(reduction));
    operate("ncclReduceScatter", comm, stream, call, flags, reduction)
}

pub(crate) unsafe extern "C" fn ncclScatter(
    send: usize,
    receive: usize,
    count: usize,
    kind: u32,
    root: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, receive, count, kind, root);
    let flags = flag::FROM_ROOT | flag::PARTS;
    operate("ncclScatter", comm, stream, call, flags, None)
}

pub(crate) unsafe extern "C" fn ncclSend(
    send: usize,
    count: usize,
    kind: u32,
    peer: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(send, 0, count, kind, peer);
    operate("ncclSend", comm, stream, call, flag::SEND, None)
}

pub(crate) unsafe extern "C" fn ncclRecv(
    receive: usize,
    count: usize,
    kind: u32,
    peer: i32,
    comm: usize,
    stream: Handle,
) -> u32 {
    let call = Call::new(0, receive, count, kind, peer);
    operate("ncclRecv", comm, stream, call, flag::RECEIVE, None)
}

pub(crate) unsafe extern "C" fn ncclGroupStart() -> u32 {
    group::start();
    result::SUCCESS
}

pub(crate) unsafe extern "C" fn ncclGroupEnd() -> u32 {
    api("ncclGroupEnd", group::end)
}

pub(crate) unsafe extern "C" fn ncclRedOpCreatePreMulSum(
    reduction: *mut u32,
    scalar: *const u8,
    kind: u32,
    residence: u32,
    comm: usize,
) -> u32 {
    const ON_DEVICE: u32 = 0;
    const ON_HOST: u32 = 1;
    api("ncclRedOpCreatePreMulSum", || {
        let communicator = communicator::find(comm)?;
        let kind = DataType::new(kind)?;
        if scalar.is_null() || residence > ON_HOST {
            let text = format!("there is no scalar of residence {residence}");
            return Err(Failure::argument(text));
        }
        let is_address = residence == ON_DEVICE;
        let scalar = if is_address {
            scalar as u64
        } else {
            let mut bytes = [0; 8];
            // SAFETY: the caller's scalar has as many bytes as its type.
            let given = unsafe { core::slice::from_raw_parts(scalar, kind.size().into()) };
            bytes[..given.len()].copy_from_slice(given);
            u64::from_le_bytes(bytes)
        };
        let mut state = communicator.state();
        let number = REDUCTIONS + state.factors.len() as u32;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put("op", reduction, number)? };
        state.factors.push(Some(Factor {
            kind,
            scalar,
            is_address,
        }));
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn ncclRedOpDestroy(reduction: u32, comm: usize) -> u32 {
    api("ncclRedOpDestroy", || {
        let communicator = communicator::find(comm)?;
        let mut state = communicator.state();
        let made = reduction.checked_sub(REDUCTIONS);
        let made = made.and_then(|n| state.factors.get_mut(n as usize)?.take());
        let none = || Failure::argument(format!("no reduction {reduction} was made"));
        made.map(|_| ()).ok_or_else(none)
    })
}
