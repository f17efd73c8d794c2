//! The sizes of a launch, from the arguments of any of the calls that launch kernels.

use rpd_spool::capture::{Items, Operation, Role, item};

/// Grid in blocks, block, and dynamic local memory in bytes, of a launch with these arguments and items.
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
    let lds = named("sharedMemBytes").unwrap_or(0);
    if let Some(item) = Items(items).find(|item| item.kind == item::IN)
        && operation
            .arguments()
            .iter()
            .any(|one| one.role == Role::Struct(56))
    {
        // `hipLaunchConfig_t`.
        let word = |at: usize| {
            let bytes = item.payload.get(at..at + 4);
            bytes.map_or(0, |bytes| {
                u32::from_le_bytes(bytes.try_into().unwrap_or_default())
            })
        };
        let grid = [word(0), word(4), word(8)];
        return (grid, [word(12), word(16), word(20)], u64::from(word(24)));
    }
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
