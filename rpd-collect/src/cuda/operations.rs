//! Which functions of CUDA are recorded, and what they do beyond their names.

use rpd_spool::options::CollectorOptions;

use super::shared::CallKind;
use crate::recording::arguments::{self, Layout};

/// Whether the calls of a function only ask for something and change nothing. Programs make very many of them: for each operation of
/// PyTorch three of `cudaGetDevice`.
fn is_trivial(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "cudaGetDevice",
        "cudaSetDevice",
        "cudaGetLastError",
        "cudaPeekAtLastError",
        "cudaStreamIsCapturing",
        "cudaStreamGetCaptureInfo",
        "cudaThreadExchangeStreamCaptureMode",
        "cudaDeviceGetAttribute",
        "cudaGetDeviceCount",
        "cudaEventQuery",
        "cuStreamIsCapturing",
        "cuThreadExchangeStreamCaptureMode",
        "cuEventQuery",
    ];
    // CUPTI itself asks for the name of each kernel that is launched.
    const BEGINNINGS: [&str; 24] = [
        "cudaOccupancy",
        "cudaStreamGetCaptureInfo_",
        "cuCtxGet",
        "cuCtxSetCurrent",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cuDevicePrimaryCtxGetState",
        "cuDeviceGet",
        "cuDeviceTotalMem",
        "cuDriverGetVersion",
        "cuFuncGet",
        "cuFuncIsLoaded",
        "cuGetProcAddress",
        "cuGetExportTable",
        "cuGetErrorName",
        "cuGetErrorString",
        "cuKernelGet",
        "cuLibraryGet",
        "cuModuleGetLoadingMode",
        "cuOccupancy",
        "cuPointerGetAttribute",
        "cuStreamGetCaptureInfo",
        "cuStreamGetCtx",
        "cuStreamGetId",
    ];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

/// Whether the calls of a function submit kernels: one, or those of a graph.
fn launches(name: &str) -> Launch {
    match name {
        _ if !name.contains("Launch") || name.contains("HostFunc") => Launch::None,
        _ if name.contains("Graph") || name.contains("MultiDevice") => Launch::Many,
        _ => Launch::One,
    }
}

/// Whether the calls of a function submit work of a device, or allocate: records refer to such calls.
fn submits(name: &str) -> bool {
    const PARTS: [&str; 8] = [
        "Launch", "Memcpy", "Memset", "Malloc", "Alloc", "Free", "Prefetch", "Destroy",
    ];
    PARTS.iter().any(|part| name.contains(part))
}

/// The number of kernels that a call submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    /// The call is no launch.
    None,
    /// One, unless a graph is captured.
    One,
    /// Any number.
    Many,
}

/// Actions at the calls of a function.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    /// Whether calls are recorded.
    pub(super) recorded: bool,
    /// Whether there are callbacks for calls.
    pub(super) observed: bool,
    /// Layout of the arguments to record; `None` records none.
    pub(super) arguments: Option<Layout>,
    /// Kernels that a call submits.
    pub(super) launch: Launch,
}

/// The operations of a kind by number; the first one has number 1.
pub(super) fn of_kind(
    options: &CollectorOptions,
    kind: &CallKind,
    is_driver: bool,
) -> Vec<Operation> {
    let traces = &options.traces;
    let wanted = traces.cuda || is_driver && traces.cuda_driver;
    // Where only calls of the driver are recorded, work belongs to these.
    let is_around = !is_driver && !traces.cuda && traces.cuda_driver;
    // A light recording has no calls, and does without the cost of observing them.
    let works = (traces.kernel || traces.memory_copy || traces.memory_allocation)
        && !is_around
        && options.recent_bytes.is_none();
    let layouts = arguments::of_kind(&kind.names.name);
    let mut operations = vec![
        Operation {
            recorded: false,
            observed: false,
            arguments: None,
            launch: Launch::None,
        };
        1
    ];
    for (_, name) in &kind.names.operations {
        let recorded = wanted && (options.cuda_api_all || !is_trivial(name));
        let arguments = if recorded && options.hip_args {
            arguments::find(layouts, name)
                .filter(|layout| layout.size > 0)
                .map(|layout| layout.with_results(options.argument_results))
        } else {
            None
        };
        operations.push(Operation {
            recorded,
            // Inside of a call of the runtime, one of the driver is not recorded, but it may be made outside.
            observed: recorded || works && submits(name),
            arguments,
            launch: launches(name),
        });
    }
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_tells_kernels_from_graphs_and_host_functions() {
        assert_eq!(launches("cudaLaunchKernelExC"), Launch::One);
        assert_eq!(launches("cuGraphLaunch"), Launch::Many);
        assert_eq!(launches("cudaLaunchHostFunc_v2"), Launch::None);
        assert_eq!(launches("cudaMalloc"), Launch::None);
    }

    #[test]
    fn trivial_functions_are_queries_only() {
        for name in [
            "cudaGetDevice",
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
        ] {
            assert!(is_trivial(name), "{name}");
        }
        for name in [
            "cudaGetDeviceProperties",
            "cudaMemcpyAsync",
            "cuLaunchKernel",
        ] {
            assert!(!is_trivial(name), "{name}");
        }
    }
}
