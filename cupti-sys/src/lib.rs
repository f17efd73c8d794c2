//! The C ABI of CUPTI 11.8 to 13.5, and of libraries to which NVTX passes marks and ranges.
//!
//! Nothing is linked: [`library::open`] finds CUPTI when the program uses CUDA, and [`Functions`] has the addresses of its
//! functions. Records of activities grow from version to version by fields at their end, and no field moves: the structs of
//! [`activity`] are the part that all versions have.
//!
//! | module | subject |
//! |---|---|
//! | `library` | where CUPTI is |
//! | `functions` | its functions, and their results |
//! | `callback` | what a callback is given |
//! | `activity` | records of activities |
//! | `pc_sampling` | sampling of program counters |
//! | `nvtx` | tables that NVTX and a library exchange |

pub mod activity;
pub mod callback;
mod functions;
pub mod library;
pub mod nvtx;
pub mod pc_sampling;

pub use functions::{
    BufferCompleted, BufferRequested, Callback, Functions, MissingFunction, Subscriber,
    SubscriberParams, attribute, result,
};

/// Checks at compile time that the fields of a struct are where the ABI has them.
macro_rules! offsets {
    ($type:ty { $($field:ident = $offset:literal,)* } size $size:literal) => {
        const _: () = {
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)*
            assert!(size_of::<$type>() == $size);
        };
    };
}
pub(crate) use offsets;
