//! Structs that functions of the traced interfaces take or return by value, as the headers of HIP, HSA and RCCL declare them.

use core::ffi::c_void;

/// Three sizes or positions, of which those that are not used are 1 or 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct dim3 {
    /// Size or position along the first dimension, the fastest.
    pub x: u32,
    /// Along the second dimension.
    pub y: u32,
    /// Along the third dimension.
    pub z: u32,
}

impl dim3 {
    /// All three sizes given.
    pub const fn new(x: u32, y: u32, z: u32) -> Self {
        Self { x, y, z }
    }

    /// The product of the sizes.
    pub const fn volume(self) -> u64 {
        self.x as u64 * self.y as u64 * self.z as u64
    }
}

/// The size of an array or a copy.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct hipExtent {
    /// Bytes, or elements of an array.
    pub width: usize,
    /// Rows; 0 for an array of one dimension.
    pub height: usize,
    /// Slices; 0 for an array of one or two dimensions.
    pub depth: usize,
}

/// Memory of two dimensions whose rows may be padded.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipPitchedPtr {
    /// Address of the first row.
    pub ptr: *mut c_void,
    /// Distance between the starts of two rows, in bytes.
    pub pitch: usize,
    /// Used bytes of a row.
    pub xsize: usize,
    /// Number of rows.
    pub ysize: usize,
}

/// The channels of an element of a texture.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct hipChannelFormatDesc {
    /// Bits of the first channel.
    pub x: i32,
    /// Bits of the second.
    pub y: i32,
    /// Bits of the third.
    pub z: i32,
    /// Bits of the fourth.
    pub w: i32,
    /// A `hipChannelFormatKind`: 0 signed, 1 unsigned, 2 floating point, 3 none.
    pub f: u32,
}

/// Handle by which another process opens an allocation; `hipIpcEventHandle_t` has the same layout.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipIpcMemHandle_t {
    /// Bytes that only the runtime interprets.
    pub reserved: [u8; 64],
}

/// Options of the finalizer (`hsa_ext_program_finalize`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hsa_ext_control_directives_t {
    /// The struct as 64-bit words; nothing here reads its fields.
    pub words: [u64; 18],
}

/// Token that rank 0 makes and every rank passes to `ncclCommInitRank`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ncclUniqueId {
    /// Bytes that only the library interprets.
    pub internal: [u8; 128],
}
