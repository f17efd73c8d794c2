//! Links between GPUs.

use super::types::PeerCapability;
use super::{Handle, Outcome, answer, from_smi, gpu, put};
use crate::rocm_smi as smi;

/// The number of hops to another GPU, and the kind of link.
///
/// # Safety
/// The places are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_topo_get_link_type(
    from: Handle,
    to: Handle,
    hops: *mut u64,
    kind: *mut u32,
) -> u32 {
    answer(gpu_pair(from, to).and_then(|(from, to)| {
        // SAFETY: by contract. The kinds of link have the same numbers.
        from_smi(unsafe { smi::rsmi_topo_get_link_type(from, to, hops, kind) })
    }))
}

/// The indices of two GPUs.
fn gpu_pair(one: Handle, other: Handle) -> Outcome<(u32, u32)> {
    Ok((gpu(one)?.0, gpu(other)?.0))
}

/// The weight of the link to another GPU.
///
/// # Safety
/// `weight` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_topo_get_link_weight(
    from: Handle,
    to: Handle,
    weight: *mut u64,
) -> u32 {
    answer(gpu_pair(from, to).and_then(|(from, to)| {
        // SAFETY: by contract.
        from_smi(unsafe { smi::rsmi_topo_get_link_weight(from, to, weight) })
    }))
}

/// Whether a GPU can access the memory of another: always.
///
/// # Safety
/// `accessible` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_is_P2P_accessible(
    from: Handle,
    to: Handle,
    accessible: *mut bool,
) -> u32 {
    // SAFETY: by contract.
    answer(gpu_pair(from, to).and_then(|_| unsafe { put(accessible, true) }))
}

/// The kind of link to another GPU, and what it can do.
///
/// # Safety
/// The places are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_topo_get_p2p_status(
    from: Handle,
    to: Handle,
    kind: *mut u32,
    capability: *mut PeerCapability,
) -> u32 {
    answer(gpu_pair(from, to).and_then(|(from, to)| {
        let mut hops = 0;
        let all = PeerCapability {
            coherent: 1,
            atomics_32: 1,
            atomics_64: 1,
            dma: 1,
            both_ways: 1,
        };
        // SAFETY: by contract.
        unsafe {
            from_smi(smi::rsmi_topo_get_link_type(from, to, &mut hops, kind))?;
            put(capability, all)
        }
    }))
}
