//! Records of activities in the layouts of several versions of CUPTI: later ones have more fields at the end.

use std::ffi::c_int;

use cupti_sys::activity::kind;

use crate::switches;

/// A version of CUPTI: its text in the switch, the number of its interface, and the sizes of its records.
#[derive(Debug)]
pub(crate) struct Layouts {
    name: &'static str,
    /// Result of `cuptiGetVersion`.
    pub(crate) version: u32,
    kernel: usize,
    memcpy: usize,
    memset: usize,
    device: usize,
    context: usize,
    overhead: usize,
    memory: usize,
    graph: usize,
    synchronization: usize,
}

macro_rules! versions {
    ($($name:literal = $version:literal: $kernel:literal $memcpy:literal $memset:literal $device:literal $context:literal $overhead:literal $memory:literal $graph:literal $synchronization:literal;)*) => {
        const VERSIONS: &[Layouts] = &[$(Layouts {
            name: $name,
            version: $version,
            kernel: $kernel,
            memcpy: $memcpy,
            memset: $memset,
            device: $device,
            context: $context,
            overhead: $overhead,
            memory: $memory,
            graph: $graph,
            synchronization: $synchronization,
        },)*];
    };
}

// Name = version: kernel, memcpy, memset, device, context, overhead, memory, graph, synchronization.
versions! {
    "11.8" = 18: 200 88 88 176 16 40 120 48 40;
    "12.0" = 18: 208 88 88 176 16 40 120 48 40;
    "12.3" = 21: 208 88 88 184 16 48 120 56 40;
    "12.4" = 22: 208 88 88 184 24 56 120 56 40;
    "12.6" = 24: 208 88 88 184 32 56 128 56 40;
    "12.8" = 26: 208 96 88 184 32 56 128 56 56;
    "13.0" = 130001: 216 96 88 184 32 56 128 56 56;
    "13.1" = 130101: 224 96 88 184 40 56 128 56 56;
    "13.2" = 130202: 224 96 88 192 40 56 128 56 56;
    "13.3" = 130301: 232 96 88 192 40 56 128 56 56;
    "13.5" = 130500: 248 112 104 192 40 56 128 56 56;
}

/// The layouts of the version that the switch names, or of 13.0.
pub(crate) fn layouts() -> &'static Layouts {
    let wanted = switches::get().version.as_deref().unwrap_or("13.0");
    let known = VERSIONS.iter().find(|version| version.name == wanted);
    known.unwrap_or(&VERSIONS[6])
}

impl Layouts {
    /// Bytes of a record; 0 for a kind that is never delivered.
    pub(crate) fn size(&self, record: c_int) -> usize {
        match record {
            kind::CONCURRENT_KERNEL | kind::KERNEL => self.kernel,
            kind::MEMCPY => self.memcpy,
            kind::MEMSET => self.memset,
            kind::DEVICE => self.device,
            kind::CONTEXT => self.context,
            kind::OVERHEAD => self.overhead,
            kind::MEMORY2 => self.memory,
            kind::GRAPH_TRACE => self.graph,
            kind::SYNCHRONIZATION => self.synchronization,
            _ => 0,
        }
    }
}

/// A record that is being written: fields by their offsets.
#[derive(Debug, Clone)]
pub(crate) struct Record(pub(crate) Vec<u8>);

impl Record {
    /// A record of a kind. What the prefix of 11.8 does not have is filled with ones, which no reader may take for something else.
    pub(crate) fn new(record: c_int) -> Record {
        let layouts = layouts();
        let oldest = VERSIONS[0].size(record);
        let mut bytes = vec![0; layouts.size(record)];
        if let Some(newer) = bytes.get_mut(oldest..) {
            newer.fill(0xff);
        }
        Record(bytes).with(0, record.cast_unsigned())
    }

    /// Sets a field.
    pub(crate) fn with<T: Field>(mut self, offset: usize, value: T) -> Record {
        value.put(&mut self.0[offset..]);
        self
    }
}

/// A type of fields.
pub(crate) trait Field {
    fn put(self, at: &mut [u8]);
}

macro_rules! fields {
    ($($type:ty),*) => {
        $(impl Field for $type {
            fn put(self, at: &mut [u8]) {
                at[..size_of::<$type>()].copy_from_slice(&self.to_ne_bytes());
            }
        })*
    };
}
fields!(u8, u16, u32, u64);
