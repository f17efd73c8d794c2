//! Counters and counted values.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Dispatch, RecordHeader};

/// A counter on an agent. The tail holds, each as a `u32` byte count followed by the bytes: name, description, block,
/// expression; then for every dimension its id and its extent (two `u64`) and its name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Counter {
    /// Record head. aux: bit 0 a constant of the agent, bit 1 derived from other counters.
    pub header: RecordHeader,
    /// The provider's id of the counter. Agents of one architecture may share it.
    pub id: u64,
    /// Agent handle.
    pub agent: u64,
}

/// One of the values that a counter yields for a dispatch. The tail holds `count` times a dimension's id and the
/// position along it (two `u64`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CounterInstance {
    /// Record head.
    pub header: RecordHeader,
    /// The provider's id of the value, used in [`CountedValue::instance`].
    pub id: u64,
    /// [`Counter::id`].
    pub counter: u64,
    /// Pairs in the tail.
    pub count: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// Counter values of a dispatch. The tail holds `count` times [`CountedValue`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedDispatch {
    /// The dispatch; its header is the record's.
    pub dispatch: Dispatch,
    /// Values in the tail.
    pub count: u32,
    /// Not used; 0.
    pub reserved: u32,
}

/// A dispatch was selected for counting when it was submitted: [`CountedDispatch`] follows when it is complete and the provider
/// hands the values over.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Selected {
    /// Record head.
    pub header: RecordHeader,
    /// Dispatch id.
    pub dispatch: u64,
}

/// One counted value.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedValue {
    /// [`CounterInstance::id`].
    pub instance: u64,
    /// The counted value.
    pub value: f64,
}
