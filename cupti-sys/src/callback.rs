//! What callbacks are given.

use std::ffi::{c_char, c_int, c_void};

/// Domains of callbacks.
pub mod domain {
    use std::ffi::c_int;

    /// Calls of the driver's functions.
    pub const DRIVER: c_int = 1;
    /// Calls of the runtime's functions.
    pub const RUNTIME: c_int = 2;
    /// Contexts, streams, modules and graphs that are made or destroyed.
    pub const RESOURCE: c_int = 3;
    /// The state of the library. From 12.2.
    pub const STATE: c_int = 6;
}

/// Ids of callbacks of [`domain::RESOURCE`].
pub mod resource {
    /// A context was made.
    pub const CONTEXT_CREATED: u32 = 1;
    /// A context is about to be destroyed.
    pub const CONTEXT_DESTROY_STARTING: u32 = 2;
    /// The driver is initialised.
    pub const INIT_FINISHED: u32 = 5;
    /// A module was loaded.
    pub const MODULE_LOADED: u32 = 6;
    /// A node was added to a graph.
    pub const GRAPH_NODE_CREATED: u32 = 13;
    /// A graph is about to be made executable.
    pub const GRAPH_EXEC_CREATE_STARTING: u32 = 17;
    /// A graph that is made of another one has got a copy of a node.
    pub const GRAPH_NODE_CLONED: u32 = 20;
}

/// Id of the callback of [`domain::STATE`] after which the library does nothing more.
pub const STATE_FATAL_ERROR: u32 = 1;

/// Value of [`CallbackData::site`] at the begin of a call; 1 at its end.
pub const ENTER: c_int = 0;

/// Data of a callback for a call.
#[repr(C)]
#[derive(Debug)]
pub struct CallbackData {
    /// [`ENTER`], or 1 when the call returns.
    pub site: c_int,
    /// Name of the function.
    pub function: *const c_char,
    /// The arguments in a struct.
    pub parameters: *const c_void,
    /// What the call returns; valid at its end.
    pub return_value: *const u32,
    /// Mangled name of a kernel that is launched.
    pub symbol: *const c_char,
    /// The context of the call.
    pub context: *mut c_void,
    /// Number of the context.
    pub context_id: u32,
    /// Eight bytes that the subscriber may use from the begin of the call to its end.
    pub correlation_data: *mut u64,
    /// Id of the call. Calls of the driver inside one of the runtime have the same.
    pub correlation_id: u32,
}

crate::offsets!(CallbackData {
    site = 0,
    function = 8,
    parameters = 16,
    return_value = 24,
    symbol = 32,
    context = 40,
    context_id = 48,
    correlation_data = 56,
    correlation_id = 64,
} size 72);

/// Data of a callback of [`domain::RESOURCE`].
#[repr(C)]
#[derive(Debug)]
pub struct ResourceData {
    /// The context.
    pub context: *mut c_void,
    /// The stream, where it is about one.
    pub stream: *mut c_void,
    /// More about the resource: [`GraphData`] for graphs, [`ModuleData`] for modules.
    pub descriptor: *const c_void,
}

crate::offsets!(ResourceData { context = 0, stream = 8, descriptor = 16, } size 24);

/// Data of a callback about a module.
#[repr(C)]
#[derive(Debug)]
pub struct ModuleData {
    /// Number of the module.
    pub module: u32,
    /// Bytes of its image.
    pub length: usize,
    /// The image, an ELF file; valid during the callback.
    pub image: *const c_void,
}

crate::offsets!(ModuleData { module = 0, length = 8, image = 16, } size 24);

/// Data of a callback about a graph.
#[repr(C)]
#[derive(Debug)]
pub struct GraphData {
    /// The graph.
    pub graph: *mut c_void,
    /// The graph that it is a clone of.
    pub original_graph: *mut c_void,
    /// The node.
    pub node: *mut c_void,
    /// The node that it is a clone of.
    pub original_node: *mut c_void,
    /// Type of the node.
    pub node_type: c_int,
    /// The node that it depends on.
    pub dependency: *mut c_void,
    /// The executable graph.
    pub exec: *mut c_void,
}

crate::offsets!(GraphData {
    graph = 0,
    original_graph = 8,
    node = 16,
    original_node = 24,
    node_type = 32,
    dependency = 40,
    exec = 48,
} size 56);
