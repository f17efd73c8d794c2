//! Roles of arguments in a capture of GPU calls.

/// Kinds of handles that calls make and take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandleKind {
    /// `hipStream_t`.
    Stream,
    /// `hipEvent_t`.
    Event,
    /// `hipModule_t`.
    Module,
    /// `hipFunction_t`.
    Function,
    /// `hipGraph_t`.
    Graph,
    /// `hipGraphNode_t`.
    Node,
    /// `hipGraphExec_t`.
    GraphExec,
    /// `hipMemPool_t`.
    Pool,
    /// `hipArray_t`.
    Array,
    /// `hipTextureObject_t`.
    Texture,
    /// `hipSurfaceObject_t`.
    Surface,
    /// `hipMemGenericAllocationHandle_t`.
    Physical,
}

/// Role of an argument in a capture. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Passed as it is.
    Value,
    /// A handle of the runtime.
    Handle(HandleKind),
    /// Pointer to which the call stores a new handle.
    HandleOut(HandleKind),
    /// Text that the call reads.
    Text,
    /// An address of device or host memory.
    Address,
    /// Pointer to which the call stores an address of memory.
    AddressOut,
    /// The host address of a device variable.
    Symbol,
    /// A host function or function handle of a kernel.
    Kernel,
    /// The array of pointers to the arguments of a kernel.
    Arguments,
    /// The list with the packed arguments of a kernel.
    Extra,
    /// A struct of that size that the call reads.
    Struct(u32),
    /// `hipResourceDesc` or `HIP_RESOURCE_DESC`, of that size.
    Resource(u32),
    /// A struct of that size that the call writes, with an address first.
    StructOut(u32),
    /// An array that the call reads: position of the argument that counts its elements, size of an element.
    Array(u32, u32),
    /// `hip_Memcpy2D`.
    Copy2d,
    /// `hipMemcpy3DParms`.
    Copy3d,
    /// `HIP_MEMCPY3D`.
    DriverCopy3d,
    /// `hipKernelNodeParams`.
    KernelNode,
    /// `hipMemsetParams`.
    MemsetNode,
    /// `hipPitchedPtr` by value.
    Pitched,
    /// An array of graph nodes that the call writes; the argument after it counts them.
    NodesOut,
    /// Pointer to the number of elements of the array in the argument before. The call reads and writes it.
    Count,
    /// Passed as null.
    Ignored,
    /// Memory that the call writes, whose content a replay does not need.
    Scratch,
}
