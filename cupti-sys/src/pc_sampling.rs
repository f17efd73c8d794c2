//! Sampling of program counters: structs of the interface that starts and stops it, from 11.8 on. Their first field is
//! their size, by which the library knows which fields there are.

use std::ffi::{c_char, c_int, c_void};

/// Versions of the interface, as `cuptiGetVersion` has them, from which on [`PcData`] has its last field (12.4).
pub const WITH_CORRELATION: u32 = 22;

/// Samples at an instruction that had one reason.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct StallReason {
    /// Number of the reason, as [`GetStallReasons`] has it.
    pub index: u32,
    /// Number of samples.
    pub samples: u32,
}

/// Samples at an instruction.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PcData {
    /// Bytes of this struct: [`PcData::size_in`].
    pub size: usize,
    /// Checksum of the module's image.
    pub cubin_crc: u64,
    /// Offset from the begin of the function.
    pub pc_offset: u64,
    /// Number of the function's symbol in the image.
    pub function_index: u32,
    reserved: u32,
    /// Mangled name of the function; it stays where it is.
    pub function_name: *const c_char,
    /// Number of reasons.
    pub reason_count: usize,
    /// The reasons, with room for all that are collected.
    pub reasons: *mut StallReason,
    /// Id of the call that launched the kernel; 0 where kernels run concurrently. From 12.4.
    pub correlation: u32,
    reserved_end: u32,
}

crate::offsets!(PcData {
    size = 0,
    cubin_crc = 8,
    pc_offset = 16,
    function_index = 24,
    function_name = 32,
    reason_count = 40,
    reasons = 48,
    correlation = 56,
} size 64);

impl PcData {
    /// Bytes of the struct in a version of the interface: the distance of two in an array.
    pub const fn size_in(version: u32) -> usize {
        match version {
            WITH_CORRELATION.. => size_of::<PcData>(),
            _ => std::mem::offset_of!(PcData, correlation),
        }
    }
}

/// Samples that were collected.
#[repr(C)]
#[derive(Debug)]
pub struct Data {
    /// Bytes of this struct.
    pub size: usize,
    /// Instructions that there is room for.
    pub room: usize,
    /// Samples in all: of the instructions, of code that is not the program's, and dropped ones.
    pub total_samples: u64,
    /// Samples that the hardware has dropped.
    pub dropped_samples: u64,
    /// Instructions that are here.
    pub count: usize,
    /// Instructions that can be collected yet.
    pub remaining: usize,
    /// Number of the period between start and stop.
    pub range: u64,
    /// The instructions.
    pub pcs: *mut PcData,
    /// Samples of code that is not the program's, for which there are no instructions.
    pub other_samples: u64,
    /// 1 when the hardware's buffer was full.
    pub is_full: u8,
    reserved: [u8; 7],
}

crate::offsets!(Data {
    size = 0,
    room = 8,
    total_samples = 16,
    dropped_samples = 24,
    count = 32,
    remaining = 40,
    range = 48,
    pcs = 56,
    other_samples = 64,
    is_full = 72,
} size 80);

impl Data {
    /// Data with room for so many instructions.
    pub fn new(pcs: *mut PcData, room: usize) -> Data {
        Data {
            size: size_of::<Data>(),
            room,
            total_samples: 0,
            dropped_samples: 0,
            count: 0,
            remaining: 0,
            range: 0,
            pcs,
            other_samples: 0,
            is_full: 0,
            reserved: [0; 7],
        }
    }
}

/// What [`Attribute::kind`] sets.
pub mod attribute {
    use std::ffi::c_int;

    /// Distance of two samples: 5 to 31 for 2^5 to 2^31 cycles; [`super::Attribute::number`].
    pub const PERIOD: c_int = 1;
    /// Reasons to collect; [`super::Attribute::list`].
    pub const STALL_REASONS: c_int = 2;
    /// [`CONTINUOUS`]; [`super::Attribute::number`].
    pub const COLLECTION_MODE: c_int = 5;
    /// Where samples go that are collected when sampling ends: the address of a [`super::Data`]; [`super::Attribute::number`].
    pub const DATA_BUFFER: c_int = 8;

    /// Kernels run concurrently, as without sampling.
    pub const CONTINUOUS: u64 = 1;
}

/// An attribute of sampling, with its value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// What is set: [`attribute`].
    pub kind: c_int,
    /// What the library thinks of the value.
    pub status: c_int,
    /// The value in its lowest bytes, or the length of a list and its address.
    pub value: [u64; 3],
}

crate::offsets!(Attribute { kind = 0, status = 4, value = 8, } size 32);

impl Attribute {
    /// An attribute that is a number or an address.
    pub fn number(kind: c_int, value: u64) -> Attribute {
        Attribute {
            kind,
            status: 0,
            value: [value, 0, 0],
        }
    }

    /// An attribute that is a list, which must live as long as the attribute is used.
    pub fn list(kind: c_int, list: &[u32]) -> Attribute {
        Attribute {
            kind,
            status: 0,
            value: [list.len() as u64, list.as_ptr() as u64, 0],
        }
    }
}

/// Arguments of `cuptiPCSamplingEnable` and `cuptiPCSamplingDisable`.
#[repr(C)]
#[derive(Debug)]
pub struct OfContext {
    /// Bytes of this struct.
    pub size: usize,
    reserved: *mut c_void,
    /// The context.
    pub context: *mut c_void,
}

crate::offsets!(OfContext { size = 0, context = 16, } size 24);

impl OfContext {
    /// The arguments for a context.
    pub fn new(context: *mut c_void) -> OfContext {
        OfContext {
            size: size_of::<OfContext>(),
            reserved: std::ptr::null_mut(),
            context,
        }
    }
}

/// Arguments of `cuptiPCSamplingSetConfigurationAttribute`.
#[repr(C)]
#[derive(Debug)]
pub struct Configuration {
    /// Bytes of this struct.
    pub size: usize,
    reserved: *mut c_void,
    /// The context.
    pub context: *mut c_void,
    /// Number of attributes.
    pub count: usize,
    /// The attributes.
    pub attributes: *mut Attribute,
}

crate::offsets!(Configuration { size = 0, context = 16, count = 24, attributes = 32, } size 40);

impl Configuration {
    /// The arguments for a context.
    pub fn new(context: *mut c_void, attributes: &mut [Attribute]) -> Configuration {
        Configuration {
            size: size_of::<Configuration>(),
            reserved: std::ptr::null_mut(),
            context,
            count: attributes.len(),
            attributes: attributes.as_mut_ptr(),
        }
    }
}

/// Arguments of `cuptiPCSamplingGetData`.
#[repr(C)]
#[derive(Debug)]
pub struct GetData {
    /// Bytes of this struct.
    pub size: usize,
    reserved: *mut c_void,
    /// The context.
    pub context: *mut c_void,
    /// Where samples go.
    pub data: *mut Data,
}

crate::offsets!(GetData { size = 0, context = 16, data = 24, } size 32);

impl GetData {
    /// The arguments for a context.
    pub fn new(context: *mut c_void, data: *mut Data) -> GetData {
        GetData {
            size: size_of::<GetData>(),
            reserved: std::ptr::null_mut(),
            context,
            data,
        }
    }
}

/// Arguments of `cuptiPCSamplingGetNumStallReasons`.
#[repr(C)]
#[derive(Debug)]
pub struct GetReasonCount {
    /// Bytes of this struct.
    pub size: usize,
    reserved: *mut c_void,
    /// The context.
    pub context: *mut c_void,
    /// Where the number goes.
    pub count: *mut usize,
}

crate::offsets!(GetReasonCount { size = 0, context = 16, count = 24, } size 32);

impl GetReasonCount {
    /// The arguments for a context.
    pub fn new(context: *mut c_void, count: *mut usize) -> GetReasonCount {
        GetReasonCount {
            size: size_of::<GetReasonCount>(),
            reserved: std::ptr::null_mut(),
            context,
            count,
        }
    }
}

/// Bytes of the name of a reason, the zero at its end included.
pub const REASON_NAME: usize = 128;

/// Arguments of `cuptiPCSamplingGetStallReasons`.
#[repr(C)]
#[derive(Debug)]
pub struct GetStallReasons {
    /// Bytes of this struct.
    pub size: usize,
    reserved: *mut c_void,
    /// The context.
    pub context: *mut c_void,
    /// Number of reasons.
    pub count: usize,
    /// Where the numbers of the reasons go.
    pub indices: *mut u32,
    /// Where their names go: as many places of [`REASON_NAME`] bytes.
    pub names: *mut *mut c_char,
}

crate::offsets!(GetStallReasons { size = 0, context = 16, count = 24, indices = 32, names = 40, } size 48);

impl GetStallReasons {
    /// The arguments for a context: there is room for as many names as indices.
    pub fn new(
        context: *mut c_void,
        indices: &mut [u32],
        names: &mut [*mut c_char],
    ) -> GetStallReasons {
        GetStallReasons {
            size: size_of::<GetStallReasons>(),
            reserved: std::ptr::null_mut(),
            context,
            count: indices.len().min(names.len()),
            indices: indices.as_mut_ptr(),
            names: names.as_mut_ptr(),
        }
    }
}

/// Arguments of `cuptiGetCubinCrc`.
#[repr(C)]
#[derive(Debug)]
pub struct GetCubinCrc {
    /// Bytes of this struct.
    pub size: usize,
    /// Bytes of the image.
    pub length: usize,
    /// The image.
    pub image: *const c_void,
    /// Checksum of the image.
    pub crc: u64,
}

crate::offsets!(GetCubinCrc { size = 0, length = 8, image = 16, crc = 24, } size 32);

impl GetCubinCrc {
    /// The arguments for an image.
    pub fn new(image: *const c_void, length: usize) -> GetCubinCrc {
        GetCubinCrc {
            size: size_of::<GetCubinCrc>(),
            length,
            image,
            crc: 0,
        }
    }
}
