//! The operations that occur in a session: functions, directions of copies, and operations on memory. Each is stored
//! once, and records refer to it by id.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashMap;

use super::Strings;
use crate::domain::{Domain, Kind};
use crate::ids::{OperationId, StringId};

/// Effect of an operation on memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryAction {
    /// Allocates memory or addresses.
    Allocate,
    /// Frees memory or addresses.
    Free,
    /// The runtime takes scratch memory away from a queue.
    Reclaim,
}

impl MemoryAction {
    /// Value in the column `type` of databases.
    pub const fn label(self) -> &'static str {
        match self {
            MemoryAction::Allocate => "ALLOC",
            MemoryAction::Free => "FREE",
            MemoryAction::Reclaim => "RECLAIM",
        }
    }
}

/// Kind of memory that an operation acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MemoryLevel {
    /// Memory with an address.
    Real,
    /// Addresses without memory behind them.
    Virtual,
    /// Scratch memory of a queue, into which waves spill registers.
    Scratch,
}

impl MemoryLevel {
    /// Value in the column `level` of databases.
    pub const fn label(self) -> &'static str {
        match self {
            MemoryLevel::Real => "REAL",
            MemoryLevel::Virtual => "VIRTUAL",
            MemoryLevel::Scratch => "SCRATCH",
        }
    }
}

/// Class of an operation, as far as writers and reports treat operations differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperationClass {
    /// A call that none of the other classes describes.
    Call,
    /// A HIP or CUDA call that launches kernels.
    Launch,
    /// The HIP call that destroys a stream. A stream that is created later may have the same address.
    StreamDestroy,
    /// The ROCTx call that marks a point in time. It has a message.
    Mark,
    /// A ROCTx range. It has a message.
    Range,
    /// A memory copy.
    Copy,
    /// A kernel dispatch.
    Dispatch,
    /// An event of the kernel driver.
    Driver,
    /// An operation on memory. The action is `None` for operations that do nothing to memory or that rpd does not
    /// know.
    Memory(MemoryLevel, Option<MemoryAction>),
}

/// Names of the SDK's operations on memory, with their classes.
const MEMORY: [(&str, MemoryLevel, Option<MemoryAction>); 9] = {
    use MemoryAction::{Allocate, Free, Reclaim};
    use MemoryLevel::{Real, Scratch, Virtual};
    [
        ("MEMORY_ALLOCATION_NONE", Real, None),
        ("MEMORY_ALLOCATION_ALLOCATE", Real, Some(Allocate)),
        ("MEMORY_ALLOCATION_FREE", Real, Some(Free)),
        ("MEMORY_ALLOCATION_VMEM_ALLOCATE", Virtual, Some(Allocate)),
        ("MEMORY_ALLOCATION_VMEM_FREE", Virtual, Some(Free)),
        ("SCRATCH_MEMORY_NONE", Scratch, None),
        ("SCRATCH_MEMORY_ALLOC", Scratch, Some(Allocate)),
        ("SCRATCH_MEMORY_FREE", Scratch, Some(Free)),
        ("SCRATCH_MEMORY_ASYNC_RECLAIM", Scratch, Some(Reclaim)),
    ]
};

/// Whether a CUDA function launches kernels, one or those of a graph.
fn is_cuda_launch(name: &str) -> bool {
    name.contains("Launch") && !name.contains("HostFunc")
}

impl OperationClass {
    /// The class of an operation, by the provider's name of it.
    fn from_kind(kind: Kind, name: &str) -> OperationClass {
        let memory = |level| {
            let known = MEMORY.iter().find(|known| known.0 == name);
            known.map_or(OperationClass::Memory(level, None), |known| {
                OperationClass::Memory(known.1, known.2)
            })
        };
        match kind {
            // The runtime reuses the address of a destroyed stream, so stream numbers in files change here.
            Kind::HipRuntime if name == "hipStreamDestroy" => OperationClass::StreamDestroy,
            // By the pattern of their names: new releases of HIP add functions that launch kernels.
            Kind::HipRuntime
                if name.starts_with("hip")
                    && name.contains("Launch")
                    && name.contains("Kernel") =>
            {
                OperationClass::Launch
            }
            Kind::CudaRuntime | Kind::CudaDriver if is_cuda_launch(name) => OperationClass::Launch,
            Kind::MarkerCoreRange => match name {
                "roctxMarkA" => OperationClass::Mark,
                // All other calls of this kind have a message.
                "roctxGetThreadId" => OperationClass::Call,
                _ => OperationClass::Range,
            },
            Kind::MemoryCopy => OperationClass::Copy,
            Kind::KernelDispatch => OperationClass::Dispatch,
            Kind::MemoryAllocation => memory(MemoryLevel::Real),
            Kind::ScratchMemory => memory(MemoryLevel::Scratch),
            Kind::HsaCore
            | Kind::HsaAmdExt
            | Kind::HsaImageExt
            | Kind::HsaFinalizeExt
            | Kind::HipRuntime
            | Kind::HipCompiler
            | Kind::MarkerControl
            | Kind::MarkerName
            | Kind::Rccl
            | Kind::Rocdecode
            | Kind::Rocjpeg
            | Kind::CudaRuntime
            | Kind::CudaDriver
            | Kind::Rocshmem
            | Kind::Hipfile
            | Kind::Ompt => OperationClass::Call,
            Kind::KfdEventPageMigrate
            | Kind::KfdEventPageFault
            | Kind::KfdEventQueue
            | Kind::KfdEventUnmapFromGpu
            | Kind::KfdEventDroppedEvents
            | Kind::KfdPageMigrate
            | Kind::KfdPageFault
            | Kind::KfdQueue => OperationClass::Driver,
        }
    }

    /// Whether files and statistics label the records with their message, even when the message is empty.
    pub const fn has_message(self) -> bool {
        matches!(self, OperationClass::Mark | OperationClass::Range)
    }

    /// Level and action of an operation on memory; `None` for other operations.
    pub const fn memory(self) -> Option<(MemoryLevel, Option<MemoryAction>)> {
        match self {
            OperationClass::Memory(level, action) => Some((level, action)),
            OperationClass::Call
            | OperationClass::Launch
            | OperationClass::StreamDestroy
            | OperationClass::Mark
            | OperationClass::Range
            | OperationClass::Copy
            | OperationClass::Dispatch
            | OperationClass::Driver => None,
        }
    }

    /// Action of an operation on memory; `None` for other operations and for unknown actions.
    pub fn memory_action(self) -> Option<MemoryAction> {
        self.memory()?.1
    }
}

/// Kind and name of the operation on memory for which databases have `action` in the column `type` and `level` in the
/// column `level`.
pub fn memory_operation(action: &str, level: &str) -> (Kind, &'static str) {
    let (kind, level) = match level {
        "SCRATCH" => (Kind::ScratchMemory, MemoryLevel::Scratch),
        "VIRTUAL" => (Kind::MemoryAllocation, MemoryLevel::Virtual),
        _ => (Kind::MemoryAllocation, MemoryLevel::Real),
    };
    let find = |action: &str| {
        let label = |known: Option<MemoryAction>| known.map_or("", MemoryAction::label);
        MEMORY
            .iter()
            .find(|known| known.1 == level && label(known.2) == action)
    };
    let known = find(action).or_else(|| find("")).unwrap_or(&MEMORY[0]);
    (kind, known.0)
}

/// A kind of event that records are of, by the provider's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Kind of the SDK's tracing services that the operation belongs to.
    pub kind: Kind,
    /// The provider's number of the operation within the kind; `None` when the recording lacks it, as databases do.
    pub number: Option<u32>,
    /// The provider's name: of a call the name of the function, of others a name like `MEMORY_COPY_HOST_TO_DEVICE`.
    pub name: StringId,
    /// Class of the operation, as far as writers treat operations differently.
    pub class: OperationClass,
}

impl Operation {
    /// Domain that its kind belongs to.
    pub fn domain(&self) -> Domain {
        self.kind.domain()
    }
}

/// The operations of a session by id. Each pair of kind and name has one id.
#[derive(Debug, Default)]
pub struct Operations {
    list: Vec<Operation>,
    ids: HashMap<(Kind, StringId), OperationId>,
}

impl Operations {
    /// The id of the operation with this kind and name. It is added if it is new, then with the provider's number, if
    /// that is known.
    pub(super) fn add(
        &mut self,
        strings: &Strings,
        kind: Kind,
        name: StringId,
        number: Option<u32>,
    ) -> OperationId {
        *self.ids.entry((kind, name)).or_insert_with(|| {
            let id = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
            self.list.push(Operation {
                kind,
                number,
                name,
                class: OperationClass::from_kind(kind, strings.get(name)),
            });
            OperationId(id)
        })
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the session has no operation.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All operations in the order of their ids.
    pub fn iter(&self) -> std::slice::Iter<'_, Operation> {
        self.list.iter()
    }

    /// For each operation, by id, whether `wanted` accepts it. Code that goes through a table uses this instead of
    /// asking for each record.
    pub fn select(&self, wanted: impl Fn(&Operation) -> bool) -> Vec<bool> {
        self.iter().map(wanted).collect()
    }
}

impl std::ops::Index<OperationId> for Operations {
    type Output = Operation;

    /// The operation with this id.
    #[inline]
    fn index(&self, id: OperationId) -> &Operation {
        &self.list[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_operation_is_found_by_its_names_in_databases() {
        for (name, level, action) in MEMORY {
            let kind = match level {
                MemoryLevel::Scratch => Kind::ScratchMemory,
                MemoryLevel::Real | MemoryLevel::Virtual => Kind::MemoryAllocation,
            };
            assert_eq!(
                OperationClass::from_kind(kind, name),
                OperationClass::Memory(level, action)
            );
            let label = action.map_or("", MemoryAction::label);
            assert_eq!(memory_operation(label, level.label()), (kind, name));
        }
        for (action, level, name) in [
            ("WHATEVER", "SCRATCH", "SCRATCH_MEMORY_NONE"),
            ("RECLAIM", "REAL", "MEMORY_ALLOCATION_NONE"),
            ("FREE", "", "MEMORY_ALLOCATION_FREE"),
        ] {
            assert_eq!(memory_operation(action, level).1, name);
        }
    }

    #[test]
    fn operations_are_classed_by_kind_and_name() {
        for (kind, name, class) in [
            (Kind::HipRuntime, "hipLaunchKernel", OperationClass::Launch),
            (
                Kind::HipRuntime,
                "hipModuleLaunchCooperativeKernel",
                OperationClass::Launch,
            ),
            (
                Kind::HipRuntime,
                "hipStreamDestroy",
                OperationClass::StreamDestroy,
            ),
            (Kind::HipCompiler, "hipLaunchKernel", OperationClass::Call),
            (Kind::MarkerCoreRange, "roctxMarkA", OperationClass::Mark),
            (
                Kind::MarkerCoreRange,
                "roctxGetThreadId",
                OperationClass::Call,
            ),
            (
                Kind::MarkerCoreRange,
                "roctxThreadRangeA",
                OperationClass::Range,
            ),
            (Kind::MarkerControl, "roctxMarkA", OperationClass::Call),
            (
                Kind::MemoryAllocation,
                "MEMORY_ALLOCATION_7",
                OperationClass::Memory(MemoryLevel::Real, None),
            ),
        ] {
            assert_eq!(OperationClass::from_kind(kind, name), class, "{name}");
        }
    }

    #[test]
    fn operations_give_each_kind_and_name_one_id() {
        let mut strings = Strings::new();
        let mut operations = Operations::default();
        let name = strings.intern("hipFree");
        let first = operations.add(&strings, Kind::HipRuntime, name, Some(3));
        let other = operations.add(&strings, Kind::HipCompiler, name, None);
        assert_eq!(
            operations.add(&strings, Kind::HipRuntime, name, None),
            first
        );
        assert_ne!(first, other);
        assert_eq!(operations[first].number, Some(3));
        assert_eq!(operations[other].kind, Kind::HipCompiler);
    }
}
