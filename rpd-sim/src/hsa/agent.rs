//! Agents, their instruction set, caches and wavefronts.

use core::ffi::{c_char, c_void};
use std::sync::OnceLock;

use super::support::{agent, api, each, ensure, put, put_text, text};
use super::types::{Dim3, HandleCallback, Status, status};
use crate::gpu::agents::{self, Agent, Cache};
use crate::gpu::clock;
use crate::gpu::machine::machine;
use rpd_gfx::codeobj::{Target, Toggle};

const NAME_BYTES: usize = 64;
const PRODUCT_BYTES: usize = 64;
const UUID_BYTES: usize = 21;
const PREFIX: &str = "amdgcn-amd-amdhsa--";

/// Most packets for which a ring has room.
pub(super) const QUEUE_MAX_SIZE: u32 = 0x2_0000;
/// Fewest packets for which a ring has room.
pub(super) const QUEUE_MIN_SIZE: u32 = 64;

/// Calls back for every agent, the CPU first.
pub(crate) unsafe extern "C" fn hsa_iterate_agents(
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's callback takes its own data.
        each(agents::visible(), |agent| unsafe {
            callback(agent.handle(), data)
        })
    })
}

/// Writes the value of an `hsa_agent_info_t` or `hsa_amd_agent_info_t`.
pub(crate) unsafe extern "C" fn hsa_agent_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            if attribute >= 0xA000 {
                amd_info(agent, attribute, value)
            } else {
                core_info(agent, attribute, value)
            }
        }
    })
}

unsafe fn core_info(
    agent: &'static Agent,
    attribute: u32,
    value: *mut c_void,
) -> Result<(), Status> {
    let gpu = agent.is_gpu();
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match attribute {
            0 => put_text(value, &agent.name, NAME_BYTES),
            1 => put_text(value, agent.vendor, NAME_BYTES),
            2 => put(value, if gpu { 1u32 } else { 2 }),
            3 => put(value, 1u32),
            4 => put(value, u32::from(!gpu)),
            5 | 23 => put(value, 2u32),
            24 => put(value, gpu),
            6 => put(value, agent.wave_size),
            7 => put(value, agent.workgroup_max_dim.map(|n| n as u16)),
            8 => put(value, agent.workgroup_max_size),
            9 => {
                let [x, y, z] = agent.grid_max_dim;
                put(value, Dim3 { x, y, z })
            }
            10 => put(value, agent.grid_max_size),
            11 => put(value, if gpu { 32u32 } else { 0 }),
            12 => put(value, if gpu { 128u32 } else { 0 }),
            13 => put(value, if gpu { QUEUE_MIN_SIZE } else { 0 }),
            14 => put(value, if gpu { QUEUE_MAX_SIZE } else { 0 }),
            15 => put(value, 0u32),
            16 => put(value, agent.index as u32),
            17 => put(value, u32::from(gpu)),
            18 => {
                let mut sizes = [0u32; 4];
                for cache in &agent.caches {
                    sizes[cache.level as usize - 1] = cache.bytes;
                }
                put(value, sizes)
            }
            19 => put(value, isa_of(agent)),
            20 => put(value, super::system::agent_extensions(agent)),
            21 | 22 => put(value, 1u16),
            0x3000..0x4000 => super::image_calls::agent_info(agent, attribute, value),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}

unsafe fn amd_info(
    agent: &'static Agent,
    attribute: u32,
    value: *mut c_void,
) -> Result<(), Status> {
    let gpu = agent.is_gpu();
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match attribute {
            0xA000 => put(value, agent.device_id),
            0xA001 => put(value, if gpu { 128u32 } else { 64 }),
            0xA002 => put(value, agent.cus),
            0xA003 => put(
                value,
                if gpu {
                    agent.gpu_clock_mhz
                } else {
                    agent.cpu_clock_mhz
                },
            ),
            0xA004 => put(value, agent.index as u32),
            0xA005 => put(value, if gpu { 4u32 } else { 0 }),
            0xA006 => put(value, agent.location_id & 0xffff),
            0xA007 => put(value, agent.memory_width),
            0xA008 => put(value, agent.memory_clock_mhz),
            0xA009 => put_text(value, &agent.product, PRODUCT_BYTES),
            0xA00A => put(value, agent.max_waves_per_cu),
            0xA00B => put(value, agent.simds_per_cu),
            0xA00C => put(value, agent.shader_banks),
            0xA00D => put(value, agent.arrays_per_engine),
            0xA00E => put(value, [0u64; 2]),
            0xA00F => put(value, agent.domain),
            0xA010 => put(value, gpu),
            0xA011 => put_text(value, &agent.uuid, UUID_BYTES),
            0xA012 => put(value, u32::from(gpu)),
            0xA013 => put(value, false),
            0xA014 => put(value, agent.cus),
            0xA015 => put(value, machine().memory.available(agent.index)),
            0xA016 => put(value, clock::TICKS_PER_SECOND),
            0xA107 => put(value, agent.family_id),
            0xA108 => put(value, agent.cp_fw),
            0xA109 => put(value, agent.sdma_fw),
            0xA10A => put(value, agent.sdma_engines),
            0xA10B => put(value, agent.sdma_xgmi_engines),
            0xA110 => put(value, 0u32),
            0xA111 => put(value, agent.xccs),
            0xA112 => put(value, agent.gpu_id as u32),
            0xA113 => put(value, agents::cpu_agent().handle()),
            0xA114 | 0xA115 => put(value, [0u8; 8]),
            0xA116 | 0xA117 => put(value, 0u64),
            _ => Err(status::ERROR_INVALID_ARGUMENT),
        }
    }
}

/// Writes an empty mask: no policies for exceptions are supported.
pub(crate) unsafe extern "C" fn hsa_agent_get_exception_policies(
    handle: u64,
    profile: u32,
    mask: *mut u16,
) -> Status {
    api(|| {
        agent(handle)?;
        ensure(profile <= 1, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(mask, 0u16) }
    })
}

/// Calls back for every cache of an agent.
pub(crate) unsafe extern "C" fn hsa_agent_iterate_caches(
    handle: u64,
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        each(&agent.caches, |cache| {
            // SAFETY: the program's callback takes its own data.
            unsafe { callback(std::ptr::from_ref(cache) as u64, data) }
        })
    })
}

/// Writes the value of an `hsa_cache_info_t`.
pub(crate) unsafe extern "C" fn hsa_cache_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let cache: &Cache = agents::agents()
            .iter()
            .flat_map(|agent| &agent.caches)
            .find(|cache| std::ptr::from_ref(*cache) as u64 == handle)
            .ok_or(status::ERROR_INVALID_CACHE)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                0 => put(value, cache.name.len() as u32),
                1 => put_text(value, cache.name, cache.name.len() + 1),
                2 => put(value, cache.level as u8),
                3 => put(value, cache.bytes),
                _ => Err(status::ERROR_INVALID_ARGUMENT),
            }
        }
    })
}

/// An instruction set: the device's with its features chosen or left open. The address of this struct is its handle.
struct Isa {
    name: String,
    target: Target,
}

/// The device's own instruction set first, then the other choices of its features.
fn isas() -> &'static [Isa] {
    static ISAS: OnceLock<Vec<Isa>> = OnceLock::new();
    ISAS.get_or_init(|| {
        let own = agents::device().target();
        let states = [Toggle::Any, Toggle::On, Toggle::Off];
        let others = states.map(|sramecc| {
            states.map(|xnack| Target {
                sramecc,
                xnack,
                ..own.clone()
            })
        });
        let others = others.into_iter().flatten().filter(|other| *other != own);
        [own.clone()]
            .into_iter()
            .chain(others)
            .map(|target| Isa {
                name: format!("{PREFIX}{target}"),
                target,
            })
            .collect()
    })
}

/// Lanes of the wavefront of all instruction sets; the address of this number is the wavefront's handle.
static WAVEFRONT: u32 = 64;

fn isa_of(agent: &Agent) -> u64 {
    match isas().first() {
        Some(isa) if agent.is_gpu() => std::ptr::from_ref(isa) as u64,
        _ => 0,
    }
}

fn isa(handle: u64) -> Result<&'static Isa, Status> {
    isas()
        .iter()
        .find(|isa| std::ptr::from_ref(*isa) as u64 == handle)
        .ok_or(status::ERROR_INVALID_ISA)
}

/// The instruction set of a name.
pub(crate) unsafe extern "C" fn hsa_isa_from_name(name: *const c_char, result: *mut u64) -> Status {
    api(|| {
        ensure(
            !name.is_null() && !result.is_null(),
            status::ERROR_INVALID_ARGUMENT,
        )?;
        // SAFETY: the program's string is ended by a zero.
        let wanted = unsafe { text(name) }.ok_or(status::ERROR_INVALID_ISA_NAME)?;
        let wanted = wanted
            .strip_prefix(PREFIX)
            .and_then(|_| Target::parse(wanted).ok())
            .ok_or(status::ERROR_INVALID_ISA_NAME)?;
        let isa = isas()
            .iter()
            .find(|isa| isa.target == wanted)
            .ok_or(status::ERROR_INVALID_ISA_NAME)?;
        // SAFETY: the program's pointer is writable.
        unsafe { put(result, std::ptr::from_ref(isa) as u64) }
    })
}

/// Calls back for the instruction sets of an agent.
pub(crate) unsafe extern "C" fn hsa_agent_iterate_isas(
    handle: u64,
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        let agent = agent(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        let isa = isa_of(agent);
        ensure(isa != 0, status::ERROR_INVALID_AGENT)?;
        // SAFETY: the program's callback takes its own data.
        each([isa], |isa| unsafe { callback(isa, data) })
    })
}

/// Writes an attribute of an instruction set, as the old function does; the index is ignored.
pub(crate) unsafe extern "C" fn hsa_isa_get_info(
    handle: u64,
    attribute: u32,
    index: u32,
    value: *mut c_void,
) -> Status {
    if index != 0 && matches!(attribute, 3 | 4) {
        return api(|| Err(status::ERROR_INVALID_INDEX));
    }
    // SAFETY: the same promises.
    unsafe { hsa_isa_get_info_alt(handle, attribute, value) }
}

/// Writes an attribute of an instruction set.
pub(crate) unsafe extern "C" fn hsa_isa_get_info_alt(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        let isa = isa(handle)?;
        ensure(!value.is_null(), status::ERROR_INVALID_ARGUMENT)?;
        let gpu = &agents::gpus()[0];
        // SAFETY: the program's pointer has room for the attribute's type.
        unsafe {
            match attribute {
                0 => put(value, isa.name.len() as u32 + 1),
                1 => put_text(value, &isa.name, isa.name.len() + 1),
                2 => put(value, 1u32),
                3 => put(value, gpu.wave_size),
                4 => put(value, gpu.max_waves_per_cu),
                5 => put(value, [false, true]),
                6 => put(value, [true, false]),
                7 => put(value, [false, false, true]),
                8 => put(value, [false, false, true]),
                9 => put(value, true),
                12 => put(value, gpu.workgroup_max_dim.map(|n| n as u16)),
                13 => put(value, gpu.workgroup_max_size),
                14 => {
                    let [x, y, z] = gpu.grid_max_dim;
                    put(value, Dim3 { x, y, z })
                }
                16 => put(value, u64::from(gpu.grid_max_size)),
                17 => put(value, 32u32),
                _ => Err(status::ERROR_INVALID_ARGUMENT),
            }
        }
    })
}

/// Writes an empty mask: no policies for exceptions are supported.
pub(crate) unsafe extern "C" fn hsa_isa_get_exception_policies(
    handle: u64,
    profile: u32,
    mask: *mut u16,
) -> Status {
    api(|| {
        isa(handle)?;
        ensure(profile <= 1, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(mask, 0u16) }
    })
}

/// Writes the rounding of fused multiply-adds: once, at the end.
pub(crate) unsafe extern "C" fn hsa_isa_get_round_method(
    handle: u64,
    fp_type: u32,
    flush_mode: u32,
    round_method: *mut u32,
) -> Status {
    api(|| {
        isa(handle)?;
        let valid = matches!(fp_type, 1 | 2 | 4) && matches!(flush_mode, 1 | 2);
        ensure(valid, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(round_method, 1u32) }
    })
}

/// Calls back for the wavefronts of an instruction set: the only one.
pub(crate) unsafe extern "C" fn hsa_isa_iterate_wavefronts(
    handle: u64,
    callback: HandleCallback,
    data: *mut c_void,
) -> Status {
    api(|| {
        isa(handle)?;
        let callback = callback.ok_or(status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's callback takes its own data.
        each([&raw const WAVEFRONT as u64], |wave| unsafe {
            callback(wave, data)
        })
    })
}

/// Writes the value of an `hsa_wavefront_info_t`: the number of lanes.
pub(crate) unsafe extern "C" fn hsa_wavefront_get_info(
    handle: u64,
    attribute: u32,
    value: *mut c_void,
) -> Status {
    api(|| {
        ensure(
            handle == &raw const WAVEFRONT as u64,
            status::ERROR_INVALID_WAVEFRONT,
        )?;
        ensure(attribute == 0, status::ERROR_INVALID_ARGUMENT)?;
        // SAFETY: the program's pointer is null or has room.
        unsafe { put(value, WAVEFRONT) }
    })
}

/// Writes whether code for one instruction set runs on another.
pub(crate) unsafe extern "C" fn hsa_isa_compatible(
    code_object_isa: u64,
    agent_isa: u64,
    result: *mut bool,
) -> Status {
    api(|| {
        let (code, device) = (&isa(code_object_isa)?.target, &isa(agent_isa)?.target);
        let open = |toggle| toggle == Toggle::Any;
        // Code that insists on a feature needs a device that has it settled.
        let settled = (open(code.sramecc) || !open(device.sramecc))
            && (open(code.xnack) || !open(device.xnack));
        // SAFETY: the program's pointer is null or writable.
        unsafe { put(result, settled && code.runs_on(device)) }
    })
}
