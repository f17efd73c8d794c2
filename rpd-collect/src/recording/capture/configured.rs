//! Launches in parts: the sizes, then argument after argument, then the kernel.

use std::cell::RefCell;

use rpd_spool::capture::{Items, NO_ARGUMENT, item, number};
use zerocopy::IntoBytes as _;

use super::{Begun, launch, order};

/// Bytes of arguments that a kernel can have.
const MOST: usize = 64 << 10;

/// Words of `hipLaunchConfig_t`: grid and block, dynamic local memory, the stream, and what is not used here.
const WORDS: usize = 7;
const SHARED: usize = 3;
const STREAM: usize = 4;

/// Configuration of a launch so far.
struct Configured {
    /// Sizes of the launch, as in `hipLaunchConfig_t`, without attributes.
    config: [u64; WORDS],
    arguments: Vec<u8>,
}

thread_local! {
    static CONFIGURED: RefCell<Vec<Configured>> = const { RefCell::new(Vec::new()) };
}

/// The call has set the sizes of a launch, or one of its arguments.
///
/// # Safety
/// The call succeeded.
pub(super) unsafe fn end(begun: &Begun, arguments: &[u8]) {
    let named = |name: &str| begun.argument(arguments, name);
    match begun.number {
        number::hipConfigureCall => {
            let mut config = [0u64; WORDS];
            let sizes = config.as_mut_bytes();
            for (name, at) in [("gridDim", 0), ("blockDim", 12)] {
                let Some(argument) = begun.operation.argument(name) else {
                    return;
                };
                let from = usize::from(argument.offset);
                let Some(bytes) = arguments.get(from..from + 12) else {
                    return;
                };
                sizes[at..at + 12].copy_from_slice(bytes);
            }
            config[SHARED] = named("sharedMem");
            config[STREAM] = named("stream");
            let made = Configured {
                config,
                arguments: Vec::new(),
            };
            let _ = CONFIGURED.try_with(|all| all.borrow_mut().push(made));
        }
        _ => {
            let (at, size) = (named("offset") as usize, named("size") as usize);
            let Some(end) = at.checked_add(size).filter(|end| *end <= MOST) else {
                return;
            };
            // SAFETY: the call has read the argument there.
            let bytes = unsafe { std::slice::from_raw_parts(named("arg") as *const u8, size) };
            // Configurations nest: the argument belongs to the one that was begun last.
            let _ = CONFIGURED.try_with(|all| {
                if let Some(last) = all.borrow_mut().last_mut() {
                    let len = last.arguments.len().max(end);
                    last.arguments.resize(len, 0);
                    last.arguments[at..end].copy_from_slice(bytes);
                }
            });
        }
    }
}

/// Adds the sizes of the launch that the call makes, its kernel and its arguments.
pub(super) fn add(begun: &mut Begun, function: u64) {
    let last = CONFIGURED.try_with(|all| all.borrow_mut().pop());
    let Ok(Some(last)) = last else {
        begun.missing("the sizes of the launch were set before anything was captured");
        return;
    };
    let config = last.config.as_bytes();
    begun.items.add(item::IN, NO_ARGUMENT, config);
    let mut packed = last.arguments;
    launch::add_kernel(begun, function, |kernel| {
        packed.resize(kernel.explicit_bytes(), 0);
        Some(packed)
    });
}

/// The stream of the launch that the call makes.
pub(super) fn stream(begun: &Begun) -> u64 {
    let mut taken = Items(begun.items.bytes());
    let taken = taken.find(|item| item.kind == item::IN && item.argument == NO_ARGUMENT);
    let taken = taken.and_then(|item| item.payload.as_chunks::<8>().0.get(STREAM).copied());
    let raw = match taken {
        Some(word) => u64::from_le_bytes(word),
        // The item with the stream is added later.
        None => CONFIGURED
            .try_with(|all| all.borrow().last().map_or(0, |last| last.config[STREAM]))
            .unwrap_or(0),
    };
    order::stream(raw, false)
}
