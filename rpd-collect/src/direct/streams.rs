//! The HIP stream that a call concerns.

use crate::recording::streams::{self, number};

/// Effect of a call on its HIP stream, with the offset in the argument struct of the handle, or of
/// the pointer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    /// The call makes the stream that the pointer at this offset points to.
    Create(u16),
    /// The call destroys the stream at this offset.
    Destroy(u16),
    /// The call works on the stream at this offset.
    Set(u16),
    /// The call works on the stream at this offset; the null stream there stands for the thread's own default stream.
    SetOwn(u16),
    /// The call works on the thread's own default stream.
    Own,
}

include!(concat!(env!("OUT_DIR"), "/streams.rs"));

/// Effect of a function of the HIP runtime's table on a stream.
pub(super) fn of_operation(slot: usize) -> Option<Stream> {
    STREAMS
        .binary_search_by_key(&slot, |(slot, _)| usize::from(*slot))
        .ok()
        .map(|index| STREAMS[index].1)
}

/// The number of the stream on which the call that `stream` describes works; `None` for a call that does no work.
///
/// # Safety
///
/// `arguments` is the argument struct of the call.
#[inline]
pub(super) unsafe fn of_work(stream: Stream, arguments: *const u8) -> Option<u32> {
    // SAFETY: a stream handle is at this offset of the operation's arguments.
    let handle = |offset: u16| unsafe { arguments.add(offset.into()).cast::<u64>().read() };
    match stream {
        Stream::Set(offset) => Some(number(handle(offset))),
        Stream::SetOwn(offset) => Some(match handle(offset) {
            0 => streams::number_of_thread(),
            handle => number(handle),
        }),
        Stream::Own => Some(streams::number_of_thread()),
        Stream::Create(_) | Stream::Destroy(_) => None,
    }
}

/// The call that `stream` describes has returned `status`.
///
/// # Safety
///
/// `arguments` is the argument struct of the call.
pub(super) unsafe fn after_call(stream: Stream, arguments: *const u8, status: u64) {
    // SAFETY: at the offset is a pointer-sized argument.
    let argument = |offset: u16| unsafe { arguments.add(offset.into()).cast::<u64>().read() };
    match stream {
        Stream::Create(offset) if status as u32 == 0 => {
            let handle = argument(offset) as *const u64;
            if !handle.is_null() {
                // SAFETY: a call that succeeded has written the new stream there.
                number(unsafe { handle.read() });
            }
        }
        Stream::Destroy(offset) => streams::destroyed(argument(offset)),
        Stream::Create(_) | Stream::Set(_) | Stream::SetOwn(_) | Stream::Own => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_number_lasts_from_creation_to_destruction() {
        let first = number(0x4000);
        let handle = 0x4000_u64;
        // SAFETY: an argument struct with a stream in it.
        unsafe { after_call(Stream::Destroy(0), (&raw const handle).cast(), 0) };
        assert_ne!(number(0x4000), first);
        let made = 0x5000_u64;
        let place = &raw const made;
        // SAFETY: an argument struct with a pointer to a stream in it.
        unsafe { after_call(Stream::Create(0), (&raw const place).cast(), 0) };
        let later = number(0x6000);
        assert!(number(0x5000) < later);
    }

    #[test]
    fn null_stream_of_spt_functions_is_the_threads_own_stream() {
        let null = 0_u64;
        let arguments = (&raw const null).cast();
        // SAFETY: an argument struct with a stream in it.
        let of = |stream| unsafe { of_work(stream, arguments) };
        assert_eq!(of(Stream::Set(0)), Some(0));
        let own = of(Stream::Own);
        assert!(own.is_some_and(|own| own != 0));
        assert_eq!(of(Stream::SetOwn(0)), own);
    }

    #[test]
    fn stream_effect_of_a_function_is_found_by_its_slot() {
        assert!(STREAMS.is_sorted_by_key(|(slot, _)| *slot));
        assert!(STREAMS.len() > 60);
        assert_eq!(of_operation(0), None);
        let functions = rpd_data::functions().expect("the tables");
        let runtime = functions.iter().find(|one| one.name == "HIP_RUNTIME_API");
        let slot = |name: &str| {
            let mut functions = runtime.expect("the kind").functions.iter();
            functions.position(|function| function.name == name)
        };
        let of = |name| of_operation(slot(name).expect("in the table"));
        assert_eq!(of("hipMemcpy_spt"), Some(Stream::Own));
        assert!(matches!(of("hipMemcpyAsync_spt"), Some(Stream::SetOwn(_))));
        assert!(matches!(of("hipMemcpyAsync"), Some(Stream::Set(_))));
    }
}
