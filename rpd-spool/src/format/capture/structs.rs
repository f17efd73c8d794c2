//! Layouts of structs of HIP that a capture and a replay look into. Places and sizes are in bytes.

/// Size of `hipLaunchAttribute`: its id, padding, and a value of 64 bytes.
pub const LAUNCH_ATTRIBUTE: usize = 72;

/// Whether a list of `hipLaunchAttribute` makes a launch cooperative.
pub fn is_cooperative(attributes: &[u8]) -> bool {
    /// `hipLaunchAttributeCooperative`.
    const COOPERATIVE: u32 = 2;
    let mut attributes = attributes.chunks_exact(LAUNCH_ATTRIBUTE);
    attributes.any(|one| number(one, 0) == COOPERATIVE && number(one, 8) != 0)
}

/// Size of `hipStreamBatchMemOpParams`.
pub const MEMORY_OPERATION: usize = 48;

/// Place of the address in `hipStreamBatchMemOpParams`; nothing where the operation has none.
pub fn address_of_operation(operation: &[u8]) -> Option<usize> {
    /// Waits for a value and writes of one, of four and of eight bytes.
    const WITH_ADDRESS: [u32; 4] = [1, 2, 4, 5];
    WITH_ADDRESS.contains(&number(operation, 0)).then_some(8)
}

/// Whether an operation, `hipStreamBatchMemOpParams`, waits for a value.
pub fn waits_for_value(operation: &[u8]) -> bool {
    /// Of four and of eight bytes.
    const WAITS: [u32; 2] = [1, 4];
    WAITS.contains(&number(operation, 0))
}

/// Bytes of the value of an operation, `hipStreamBatchMemOpParams`, that has an address.
pub fn bytes_of_value(operation: &[u8]) -> u64 {
    /// A wait and a write of eight bytes.
    const LONG: [u32; 2] = [4, 5];
    if LONG.contains(&number(operation, 0)) {
        8
    } else {
        4
    }
}

/// `hipGraphNodeParams`: its type, one of [`node_type`], padding, then the parameters.
pub mod any_node {
    /// Place of the parameters; of event and graph nodes that is their handle.
    pub const PARAMETERS: usize = 16;
    /// Place of `hipMemcpy3DParms` in the parameters of a copy.
    pub const COPY: usize = PARAMETERS + 16;
}

/// Types of graph nodes, `hipGraphNodeType`.
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

/// The type of a node in `hipGraphNodeParams`, one of [`node_type`].
pub fn type_of_node(parameters: &[u8]) -> u32 {
    number(parameters, 0)
}

/// `textureReference`.
pub mod texture_reference {
    /// Place of the texture object that is bound, eight bytes, which is the runtime's.
    pub const OBJECT: usize = 72;
    /// Place of the number of channels, four bytes, and of the `hipArray_Format` behind it.
    pub const CHANNELS: usize = 80;
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..at + 4);
    found.map_or(0, |found| {
        u32::from_le_bytes(found.try_into().unwrap_or_default())
    })
}
