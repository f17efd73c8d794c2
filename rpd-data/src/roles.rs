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
    /// A value that a replay passes unchanged.
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
    /// A struct of this size that the call reads.
    Struct(u32),
    /// `hipResourceDesc` or `HIP_RESOURCE_DESC`, of this size.
    Resource(u32),
    /// A struct of this size that the call writes, with an address as its first field.
    StructOut(u32),
    /// An array that the call reads: position of the argument that counts its elements, and size of an element.
    Array(u32, u32),
    /// `hip_Memcpy2D`.
    Copy2d,
    /// `hipMemcpy3DParms`.
    Copy3d,
    /// `HIP_MEMCPY3D`.
    DriverCopy3d,
    /// `hipLaunchConfig_t` or `HIP_LAUNCH_CONFIG`, with the list of attributes.
    LaunchConfig,
    /// `hipKernelNodeParams`.
    KernelNode,
    /// `hipMemsetParams`.
    MemsetNode,
    /// `hipGraphNodeParams`, which has the parameters of a node of any type.
    AnyNode,
    /// An array of `hipStreamBatchMemOpParams`: position of the argument that counts them.
    MemoryOperations(u32),
    /// `hipBatchMemOpNodeParams`, with the array that it points to.
    MemoryOperationsNode,
    /// `textureReference`, a variable of the program or the runtime.
    TextureReference,
    /// A `hipCtx_t`; the current one in a replay.
    Context,
    /// `hipPitchedPtr` by value.
    Pitched,
    /// An array of graph nodes that the call writes; the next argument with the role `Count` has their number.
    NodesOut,
    /// Pointer to which the call stores the address of the runtime's array of graph nodes; the next argument with the
    /// role `Count` has their number.
    NodeListOut,
    /// Pointer to the number of elements of the preceding arrays. The call reads and writes it.
    Count,
    /// An argument that a replay passes as null.
    Ignored,
    /// Memory that the call writes, whose content a replay does not need.
    Scratch,
}
