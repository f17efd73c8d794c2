//! Records of counters and counted values.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::{Dispatch, RecordHeader};

/// A counter on an agent (`rocprofiler_counter_info_v1_t`). Tail: name, description, block, expression, each as a
/// `u32` length and the bytes; then for each dimension its id and its number of positions (two `u64`, also with a
/// length), and its name.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Counter {
    /// Head of the record. `aux`: bit 0 for a constant of the agent, bit 1 for a counter that is derived from others.
    pub header: RecordHeader,
    /// Id of the counter. Agents of one architecture may share it.
    pub id: u64,
    /// Handle of the agent that counts.
    pub agent: u64,
}

/// One of the values that a counter yields for a dispatch. Tail: `count` pairs of a dimension's id and the position
/// along it (two `u64`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CounterInstance {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the instance. [`CountedValue::instance`] refers to it.
    pub id: u64,
    /// Id of the counter: [`Counter::id`].
    pub counter: u64,
    /// Number of pairs in the tail.
    pub count: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// A dispatch that was counted, with its counter values. Tail: `count` times [`CountedValue`].
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedDispatch {
    /// The dispatch. Its head is that of this record.
    pub dispatch: Dispatch,
    /// Number of values in the tail.
    pub count: u32,
    /// Not used: 0.
    pub reserved: u32,
}

/// A dispatch was selected for counting when it was submitted. A [`CountedDispatch`] follows when the provider
/// delivers its values.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Selected {
    /// Head of the record. `aux` is not used: 0.
    pub header: RecordHeader,
    /// Id of the dispatch.
    pub dispatch: u64,
}

/// A value of one instance of a counter (`rocprofiler_counter_record_t`).
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct CountedValue {
    /// Id of the instance: [`CounterInstance::id`].
    pub instance: u64,
    /// The counted or computed value; the unit is the counter's.
    pub value: f64,
}
