//! The processes that use GPUs.

use super::types::{ComputeProcess, ProcessInfo, text};
use super::{Handle, Outcome, answer, from_smi, gpu, initialized, put, put_list, status};
use crate::gpu::machine::machine;
use crate::rocm_smi as smi;

/// Lists the processes that use a GPU: only the calling one is known, and listed if it uses the GPU.
///
/// # Safety
/// As of [`put_list`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_process_list(
    handle: Handle,
    count: *mut u32,
    list: *mut ProcessInfo,
) -> u32 {
    answer(gpu(handle).and_then(|(_, gpu)| {
        let memory = machine().memory.used(gpu.index);
        let name = std::env::current_exe().ok();
        let name = name.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let this = ProcessInfo {
            name: text(&name.unwrap_or_default()),
            id: std::process::id(),
            memory,
            engines: [0; 2],
            reserved_engines: [0; 12],
            memories: [0, 0, memory],
            reserved_memories: [0; 10],
            container: text(""),
            occupancy: 0,
            evicted_time: 0,
            reserved: [0; 10],
        };
        let all = if memory == 0 { vec![] } else { vec![this] };
        // SAFETY: by contract.
        unsafe { put_list(list, count, all) }
    }))
}

/// ROCm SMI's entry for the calling process; fails if the process uses no GPU.
fn this_process() -> Outcome<ComputeProcess> {
    let process = smi::this_process().or_else(|status| from_smi(status).and(Err(status)))?;
    Ok(ComputeProcess {
        id: process.id(),
        memory: process.memory(),
        copy_time: 0,
        occupancy: 0,
        evicted_time: 0,
    })
}

/// Lists the processes that use GPUs: only the calling one can be known.
///
/// # Safety
/// As of [`put_list`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_compute_process_info(
    list: *mut ComputeProcess,
    count: *mut u32,
) -> u32 {
    answer(initialized().and_then(|()| {
        let all = this_process().into_iter().collect();
        // SAFETY: by contract.
        unsafe { put_list(list, count, all) }
    }))
}

/// Describes a process by its id: memory and compute units that it uses.
///
/// # Safety
/// `place` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_compute_process_info_by_pid(
    id: u32,
    place: *mut ComputeProcess,
) -> u32 {
    answer(initialized().and_then(|()| {
        let process = this_process().ok().filter(|process| process.id == id);
        // SAFETY: by contract.
        unsafe { put(place, process.ok_or(status::NOT_FOUND)?) }
    }))
}

/// The indices of the GPUs that a process uses.
///
/// # Safety
/// The requirements of the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn amdsmi_get_gpu_compute_process_gpus(
    id: u32,
    list: *mut u32,
    count: *mut u32,
) -> u32 {
    // SAFETY: by contract.
    answer(from_smi(unsafe {
        smi::rsmi_compute_process_gpus_get(id, list, count)
    }))
}
