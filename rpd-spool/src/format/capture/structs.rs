//! Layouts of HIP structs that a capture and a replay read and change. Offsets and sizes are in bytes.

/// Size of `hipLaunchAttribute`: its id, padding, and a value of 64 bytes.
pub const LAUNCH_ATTRIBUTE: usize = 72;

/// Whether an array of `hipLaunchAttribute` makes a launch cooperative.
pub fn is_cooperative(attributes: &[u8]) -> bool {
    /// `hipLaunchAttributeCooperative`.
    const COOPERATIVE: u32 = 2;
    let mut attributes = attributes.chunks_exact(LAUNCH_ATTRIBUTE);
    attributes.any(|one| number(one, 0) == COOPERATIVE && number(one, 8) != 0)
}

/// Size of `hipStreamBatchMemOpParams`.
pub const MEMORY_OPERATION: usize = 48;

/// Offset of the address in a `hipStreamBatchMemOpParams`; `None` for operations without an address.
pub fn address_of_operation(operation: &[u8]) -> Option<usize> {
    /// Operations that wait for a value or write one, of 32 and of 64 bits.
    const WITH_ADDRESS: [u32; 4] = [1, 2, 4, 5];
    WITH_ADDRESS.contains(&number(operation, 0)).then_some(8)
}

/// Whether a `hipStreamBatchMemOpParams` waits for a value.
pub fn waits_for_value(operation: &[u8]) -> bool {
    /// Operations that wait for a value of 32 bits, and of 64 bits.
    const WAITS: [u32; 2] = [1, 4];
    WAITS.contains(&number(operation, 0))
}

/// Size in bytes of the value in a `hipStreamBatchMemOpParams` that has an address.
pub fn bytes_of_value(operation: &[u8]) -> u64 {
    /// A wait and a write of 64 bits.
    const LONG: [u32; 2] = [4, 5];
    if LONG.contains(&number(operation, 0)) {
        8
    } else {
        4
    }
}

/// `hipKernelNodeParams`.
pub mod kernel_node {
    /// Offset of the block's sizes, three of 4 bytes.
    pub const BLOCK: usize = 0;
    /// Offset of the grid's sizes in blocks, three of 4 bytes.
    pub const GRID: usize = 32;
    /// Offset of the bytes of dynamic local memory (4 bytes).
    pub const SHARED: usize = 56;
}

/// `hipGraphNodeParams`: one of the values of [`node_type`], padding, then the parameters.
pub mod any_node {
    /// Offset of the parameters. For event and child graph nodes they are the handle.
    pub const PARAMETERS: usize = 16;
    /// Offset of the `hipMemcpy3DParms` of a copy node.
    pub const COPY: usize = PARAMETERS + 16;
}

/// Values of `hipGraphNodeType`.
#[allow(missing_docs)]
pub mod node_type {
    pub const KERNEL: u32 = 0;
    pub const COPY: u32 = 1;
    pub const FILL: u32 = 2;
    pub const HOST: u32 = 3;
    pub const GRAPH: u32 = 4;
    pub const EMPTY: u32 = 5;
    pub const WAIT_EVENT: u32 = 6;
    pub const RECORD_EVENT: u32 = 7;
    pub const ALLOCATE: u32 = 10;
    pub const FREE: u32 = 11;
}

/// Type of the node that a `hipGraphNodeParams` describes: one of the values of [`node_type`].
pub fn type_of_node(parameters: &[u8]) -> u32 {
    number(parameters, 0)
}

/// `textureReference`, which the runtime changes when a texture is bound.
pub mod texture_reference {
    /// Offset of the handle of the bound texture object (8 bytes), which the runtime sets.
    pub const OBJECT: usize = 72;
    /// Offset of the number of channels (4 bytes). The `hipArray_Format` (4 bytes) follows it.
    pub const CHANNELS: usize = 80;
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4);
    found.map_or(0, |found| {
        u32::from_le_bytes(found.try_into().unwrap_or_default())
    })
}
