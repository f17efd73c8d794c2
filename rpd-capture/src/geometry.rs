//! The sizes of a launch, from the arguments of any of the calls that launch kernels.

use rpd_spool::capture::{Items, NO_ARGUMENT, Operation, Role, item, structs};

/// Sizes of a launch with these arguments and items: grid in blocks, block, and dynamic local memory in bytes.
pub fn geometry(
    operation: &Operation,
    arguments: &[u8],
    items: &[u8],
) -> ([u32; 3], [u32; 3], u64) {
    let named = |name: &str| operation.argument(name).map(|one| one.value(arguments));
    let dim3 = |name: &str| {
        operation.argument(name).map(|one| {
            let at = usize::from(one.offset);
            let part = |index: usize| {
                let bytes = arguments.get(at + 4 * index..at + 4 * index + 4);
                bytes.map_or(0, |bytes| {
                    u32::from_le_bytes(bytes.try_into().unwrap_or_default())
                })
            };
            [part(0), part(1), part(2)]
        })
    };
    let three = |prefix: &str| {
        let part = |axis: &str| named(&format!("{prefix}{axis}")).map(|value| value as u32);
        Some([part("X")?, part("Y")?, part("Z")?])
    };
    // Functions that take their sizes in a struct have no arguments of these names.
    let lds = named("sharedMemBytes").unwrap_or(0);
    if let Some(config) = launch_config(operation, items) {
        let word = |at: usize| {
            let bytes = config.get(at..at + 4);
            bytes.map_or(0, |bytes| {
                u32::from_le_bytes(bytes.try_into().unwrap_or_default())
            })
        };
        let grid = [word(0), word(4), word(8)];
        return (grid, [word(12), word(16), word(20)], u64::from(word(24)));
    }
    // Each function that launches kernels names its sizes in its own way; a name belongs to one meaning only.
    let block = dim3("dimBlocks")
        .or_else(|| dim3("blockDimX").filter(|_| named("gridDim").is_some()))
        .or_else(|| dim3("blockDim"))
        .or_else(|| three("blockDim"))
        .or_else(|| three("localWorkSize"))
        .unwrap_or_default();
    let grid = dim3("numBlocks")
        .or_else(|| dim3("gridDim"))
        .or_else(|| three("gridDim"))
        .or_else(|| {
            // In work-items.
            let global = three("globalWorkSize")?;
            let blocks = |axis: usize| global[axis].div_ceil(block[axis].max(1));
            Some([blocks(0), blocks(1), blocks(2)])
        })
        .unwrap_or_default();
    (grid, block, lds)
}

/// The structs that a launch has read about its configuration: `hipLaunchConfig_t` first, then the list of attributes.
fn configuration<'a>(
    operation: &'a Operation,
    items: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + 'a {
    Items(items)
        .filter(|item| item.kind == item::IN)
        .filter(|item| {
            let argument = operation.arguments().get(usize::from(item.argument));
            item.argument == NO_ARGUMENT
                || argument.is_some_and(|one| one.role == Role::LaunchConfig)
        })
        .map(|item| item.payload)
}

/// `hipLaunchConfig_t`, or `HIP_LAUNCH_CONFIG`, of a launch whose sizes and stream are there; of those that are set by earlier
/// calls as well.
fn launch_config<'a>(operation: &'a Operation, items: &'a [u8]) -> Option<&'a [u8]> {
    configuration(operation, items).next()
}

/// The stream of a launch that has it in its configuration (`hipLaunchConfig_t`, `HIP_LAUNCH_CONFIG`).
pub fn stream_of_config(operation: &Operation, items: &[u8]) -> Option<u64> {
    const STREAM: usize = 4;
    let config = launch_config(operation, items)?;
    let word = config.as_chunks::<8>().0.get(STREAM)?;
    Some(u64::from_le_bytes(*word))
}

/// Whether the workgroups of a launch may wait for each other.
pub fn is_cooperative(operation: &Operation, items: &[u8]) -> bool {
    operation.name().contains("Cooperative")
        || configuration(operation, items)
            .nth(1)
            .is_some_and(structs::is_cooperative)
}
