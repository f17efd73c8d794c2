//! Identifiers and units. Each is a transparent integer, so a column of them costs what the integer costs.

use serde::{Deserialize, Serialize};
use zerocopy::{Immutable, IntoBytes};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
        #[derive(Immutable, IntoBytes)]
        #[serde(transparent)]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A point on, or a distance along, `CLOCK_BOOTTIME`, in nanoseconds.
    Nanoseconds(u64)
);
id!(
    /// Handle the provider gave an agent (CPU or GPU); 0 names none. Not a small integer.
    AgentHandle(u64)
);
id!(
    /// Handle the provider gave a hardware queue; 0 names none.
    QueueId(u64)
);
id!(
    /// HIP stream: 0 is the null stream or none known, created streams count from 1.
    StreamId(u32)
);
id!(
    /// Number of a kernel dispatch in its process, counting from 1.
    DispatchId(u64)
);
id!(
    /// Number of a registered kernel symbol in its process; 0 is unknown.
    KernelId(u64)
);
id!(
    /// Number of a loaded code object in its process, counting from 1.
    CodeObjectId(u64)
);
id!(
    /// Number the provider gave a counter; agents of one architecture may share it.
    CounterId(u64)
);
id!(
    /// The provider's internal correlation id: one per traced call; 0 is none.
    CorrelationId(u64)
);
id!(
    /// Linux thread id.
    ThreadId(u32)
);
id!(
    /// Linux process id.
    ProcessId(u32)
);
id!(
    /// Index into [`crate::session::Strings`]; 0 is the empty string.
    StringId(u32)
);
id!(
    /// Index into [`crate::session::Session::operations`].
    OperationId(u32)
);
