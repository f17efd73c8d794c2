//! Structs that functions of the traced interfaces take or return by value, as the headers of HIP, HSA and RCCL declare them.

use core::ffi::c_void;

/// Three sizes or positions, of which those that are not used are 1 or 0.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct dim3 {
    /// In the first dimension.
    pub x: u32,
    /// In the second.
    pub y: u32,
    /// In the third.
    pub z: u32,
}

impl dim3 {
    /// Three sizes.
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
    /// Rows.
    pub height: usize,
    /// Slices.
    pub depth: usize,
}

/// Memory with a distance between rows.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct hipPitchedPtr {
    /// The first byte.
    pub ptr: *mut c_void,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Bytes of a row.
    pub xsize: usize,
    /// Rows.
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
    /// `hipChannelFormatKind`: the kind of number.
    pub f: u32,
}

/// What another process opens memory with; `hipIpcEventHandle_t` is alike.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hipIpcMemHandle_t {
    /// Bytes that only the runtime interprets.
    pub reserved: [u8; 64],
}

/// What code is finalised with.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct hsa_ext_control_directives_t {
    /// All fields.
    pub words: [u64; 18],
}

/// What ranks make a communicator with.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ncclUniqueId {
    /// Bytes that only the library interprets.
    pub internal: [u8; 128],
}
