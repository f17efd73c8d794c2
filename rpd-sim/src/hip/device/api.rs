//! Devices: choosing, describing and synchronising them, and peers.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use crate::hip::device::Device;
use crate::hip::device::props::{OldProperties, Properties};
use crate::hip::error::{HipResult, api, code, put};
use crate::hip::graph::capture_rules;
use crate::hip::hsa;
use crate::hip::runtime;
use crate::hip::types::Uuid;

/// Version of the runtime, HIP 6.3.42131, in the number format of `hipRuntimeGetVersion`.
const VERSION: c_int = 60_342_131;
/// `hipDeviceMapHost`, a device flag that is always on.
const MAP_HOST: u32 = 8;
/// Device flags that are accepted: `hipDeviceScheduleMask`, `hipDeviceMapHost` and `hipDeviceLmemResizeToMax`.
const KNOWN_FLAGS: u32 = 0x1f;

pub(crate) unsafe extern "C" fn hipInit(flags: u32) -> u32 {
    api(|| {
        if flags == 0 {
            runtime::get().map(|_| ())
        } else {
            Err(code::INVALID_VALUE)
        }
    })
}

pub(crate) unsafe extern "C" fn hipGetDeviceCount(count: *mut c_int) -> u32 {
    api(|| {
        let devices = runtime::get()?.devices.len();
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(count, devices as c_int)? };
        if devices == 0 {
            Err(code::NO_DEVICE)
        } else {
            Ok(())
        }
    })
}

pub(crate) unsafe extern "C" fn hipSetDevice(ordinal: c_int) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        runtime::set_current(device.ordinal);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipGetDevice(ordinal: *mut c_int) -> u32 {
    api(|| {
        runtime::get()?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(ordinal, runtime::current_ordinal() as c_int) }
    })
}

pub(crate) unsafe extern "C" fn hipGetDevicePropertiesR0600(
    out: *mut Properties,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let properties = (*runtime::device(ordinal)?.properties).clone();
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, properties) }
    })
}

/// # Safety
/// As documented for the C function.
pub(crate) unsafe fn old_properties(out: *mut OldProperties, ordinal: c_int) -> HipResult {
    let device = runtime::device(ordinal)?;
    // SAFETY: the caller's pointer, checked for null.
    unsafe { put(out, device.properties.old(&device.figures)) }
}

pub(crate) unsafe extern "C" fn hipGetDevicePropertiesR0000(
    out: *mut OldProperties,
    ordinal: c_int,
) -> u32 {
    // SAFETY: as documented for the C function.
    api(|| unsafe { old_properties(out, ordinal) })
}

pub(crate) unsafe extern "C" fn hipDeviceGetAttribute(
    value: *mut c_int,
    attribute: u32,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(value, device.properties.attribute(attribute)?) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    api(|| {
        runtime::device(ordinal)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(device, ordinal) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceComputeCapability(
    major: *mut c_int,
    minor: *mut c_int,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        // SAFETY: the caller's pointers, checked for null.
        unsafe {
            put(major, device.properties.major)?;
            put(minor, device.properties.minor)
        }
    })
}

/// Copies text with its NUL, cut to `length` bytes.
///
/// # Safety
/// `out` is null or has room for `length` bytes.
unsafe fn put_text(out: *mut c_void, length: c_int, text: &str) -> HipResult {
    let room = usize::try_from(length).unwrap_or(0);
    if out.is_null() || room == 0 {
        return Err(code::INVALID_VALUE);
    }
    let bytes = text.len().min(room - 1);
    // SAFETY: at most `length` bytes are written.
    unsafe {
        std::ptr::copy_nonoverlapping(text.as_ptr(), out.cast(), bytes);
        out.cast::<u8>().add(bytes).write(0);
    }
    Ok(())
}

pub(crate) unsafe extern "C" fn hipDeviceGetName(
    out: *mut c_void,
    length: c_int,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        // SAFETY: the caller's buffer of `length` bytes.
        unsafe { put_text(out, length, &device.figures.product) }
    })
}

fn pci_bus_id(device: &crate::hip::device::Device) -> String {
    let figures = &device.figures;
    let function = figures.bdf & 7;
    format!(
        "{:04x}:{:02x}:{:02x}.{function}",
        figures.domain,
        figures.bus(),
        figures.slot()
    )
}

pub(crate) unsafe extern "C" fn hipDeviceGetPCIBusId(
    out: *mut c_void,
    length: c_int,
    ordinal: c_int,
) -> u32 {
    api(|| {
        let device = runtime::device(ordinal)?;
        // SAFETY: the caller's buffer of `length` bytes.
        unsafe { put_text(out, length, &pci_bus_id(device)) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetByPCIBusId(
    ordinal: *mut c_int,
    id: *const c_char,
) -> u32 {
    api(|| {
        if id.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: the caller's text.
        let id = unsafe { CStr::from_ptr(id) }
            .to_string_lossy()
            .to_ascii_lowercase();
        let devices = &runtime::get()?.devices;
        let found = devices.iter().find(|device| pci_bus_id(device) == id);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(ordinal, found.ok_or(code::INVALID_DEVICE)?.ordinal as c_int) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetUuid(out: *mut Uuid, ordinal: c_int) -> u32 {
    api(|| {
        let bytes = runtime::device(ordinal)?.figures.uuid_bytes();
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(out, Uuid { bytes }) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceTotalMem(bytes: *mut usize, ordinal: c_int) -> u32 {
    api(|| {
        let total = runtime::device(ordinal)?.total;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(bytes, total) }
    })
}

pub(crate) unsafe extern "C" fn hipChooseDevice(
    ordinal: *mut c_int,
    wanted: *const Properties,
) -> u32 {
    api(|| {
        if wanted.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // SAFETY: not null; the caller's struct.
        let wanted = unsafe { &*wanted };
        let fits = |p: &Properties| {
            p.total_global_mem >= wanted.total_global_mem
                && (p.major, p.minor) >= (wanted.major, wanted.minor)
        };
        let devices = &runtime::get()?.devices;
        let best = devices
            .iter()
            .find(|device| fits(&device.properties))
            .map_or(0, |d| d.ordinal);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(ordinal, best as c_int) }
    })
}

pub(crate) unsafe extern "C" fn hipChooseDeviceR0000(
    ordinal: *mut c_int,
    wanted: *const OldProperties,
) -> u32 {
    api(|| {
        if wanted.is_null() {
            return Err(code::INVALID_VALUE);
        }
        // All simulated devices are alike.
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(ordinal, 0) }
    })
}

pub(crate) unsafe extern "C" fn hipRuntimeGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(version, VERSION) })
}

pub(crate) unsafe extern "C" fn hipDriverGetVersion(version: *mut c_int) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(version, VERSION) })
}

pub(crate) unsafe extern "C" fn hipDeviceSynchronize() -> u32 {
    api(|| {
        capture_rules::device_wait()?;
        runtime::current()?.synchronize()
    })
}

pub(crate) unsafe extern "C" fn hipDeviceReset() -> u32 {
    api(|| crate::hip::memory::reset(runtime::current()?))
}

pub(crate) unsafe extern "C" fn hipGetDeviceFlags(flags: *mut u32) -> u32 {
    api(|| {
        let set = runtime::current()?.flags.load(Ordering::Relaxed);
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(flags, set) }
    })
}

pub(crate) unsafe extern "C" fn hipSetDeviceFlags(flags: u32) -> u32 {
    api(|| {
        let schedule = flags & 7;
        if flags & !KNOWN_FLAGS != 0 || schedule.count_ones() > 1 {
            return Err(code::INVALID_VALUE);
        }
        runtime::current()?
            .flags
            .store(flags & !MAP_HOST, Ordering::Relaxed);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipSetValidDevices(devices: *mut c_int, length: c_int) -> u32 {
    api(|| {
        for n in 0..usize::try_from(length).map_err(|_| code::INVALID_VALUE)? {
            if devices.is_null() {
                return Err(code::INVALID_VALUE);
            }
            // SAFETY: the caller's list of `length` numbers.
            runtime::device(unsafe { devices.add(n).read() })?;
        }
        Ok(())
    })
}

fn limit(limit: u32) -> HipResult<&'static std::sync::atomic::AtomicUsize> {
    runtime::current()?
        .limits
        .get(limit as usize)
        .ok_or(code::UNSUPPORTED_LIMIT)
}

pub(crate) unsafe extern "C" fn hipDeviceGetLimit(value: *mut usize, which: u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(value, limit(which)?.load(Ordering::Relaxed)) })
}

pub(crate) unsafe extern "C" fn hipDeviceSetLimit(which: u32, value: usize) -> u32 {
    api(|| {
        limit(which)?.store(value, Ordering::Relaxed);
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetCacheConfig(config: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null.
    api(|| unsafe { put(config, 0) })
}

/// The cache is not configurable on this hardware; the setting is ignored, as by the real runtime.
pub(crate) unsafe extern "C" fn hipDeviceSetCacheConfig(_config: u32) -> u32 {
    api(|| runtime::get().map(|_| ()))
}

pub(crate) unsafe extern "C" fn hipDeviceGetSharedMemConfig(config: *mut u32) -> u32 {
    // SAFETY: the caller's pointer, checked for null. 1: banks of four bytes.
    api(|| unsafe { put(config, 1) })
}

pub(crate) unsafe extern "C" fn hipDeviceSetSharedMemConfig(_config: u32) -> u32 {
    api(|| runtime::get().map(|_| ()))
}

pub(crate) unsafe extern "C" fn hipDeviceGetStreamPriorityRange(
    least: *mut c_int,
    greatest: *mut c_int,
) -> u32 {
    api(|| {
        for (out, value) in [(least, 1), (greatest, -1)] {
            if !out.is_null() {
                // SAFETY: the caller's pointer, not null.
                unsafe { put(out, value)? };
            }
        }
        Ok(())
    })
}

fn pair(a: c_int, b: c_int) -> HipResult<(&'static Device, &'static Device)> {
    Ok((runtime::device(a)?, runtime::device(b)?))
}

pub(crate) unsafe extern "C" fn hipDeviceCanAccessPeer(
    can: *mut c_int,
    ordinal: c_int,
    peer: c_int,
) -> u32 {
    api(|| {
        let (device, peer) = pair(ordinal, peer)?;
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(can, c_int::from(device.ordinal != peer.ordinal)) }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceGetP2PAttribute(
    value: *mut c_int,
    attribute: u32,
    source: c_int,
    destination: c_int,
) -> u32 {
    api(|| {
        let (source, destination) = pair(source, destination)?;
        if source.ordinal == destination.ordinal {
            return Err(code::INVALID_DEVICE);
        }
        let answer = match attribute {
            // The rank is the kind of link.
            0 => hsa::link(source.agent, destination.vram)?.link_type as c_int,
            1..=3 => 1,
            _ => return Err(code::INVALID_VALUE),
        };
        // SAFETY: the caller's pointer, checked for null.
        unsafe { put(value, answer) }
    })
}

pub(crate) unsafe extern "C" fn hipExtGetLinkTypeAndHopCount(
    one: c_int,
    other: c_int,
    link: *mut u32,
    hops: *mut u32,
) -> u32 {
    api(|| {
        let (one, other) = pair(one, other)?;
        if one.ordinal == other.ordinal {
            return Err(code::INVALID_VALUE);
        }
        let kind = hsa::link(one.agent, other.vram)?.link_type;
        // SAFETY: the caller's pointers, checked for null.
        unsafe {
            put(link, kind)?;
            put(hops, 1)
        }
    })
}

pub(crate) unsafe extern "C" fn hipDeviceEnablePeerAccess(peer: c_int, flags: u32) -> u32 {
    api(|| {
        let peer = runtime::device(peer)?;
        let device = runtime::current()?;
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if device.ordinal == peer.ordinal {
            return Err(code::INVALID_DEVICE);
        }
        let bit = 1 << peer.ordinal;
        if device.peers.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return Err(code::PEER_ACCESS_ALREADY_ENABLED);
        }
        crate::hip::memory::share(peer)
    })
}

pub(crate) unsafe extern "C" fn hipDeviceDisablePeerAccess(peer: c_int) -> u32 {
    api(|| {
        let bit = 1 << runtime::device(peer)?.ordinal;
        match runtime::current()?.peers.fetch_and(!bit, Ordering::AcqRel) & bit {
            0 => Err(code::PEER_ACCESS_NOT_ENABLED),
            _ => Ok(()),
        }
    })
}
