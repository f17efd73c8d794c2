//! Tables that NVTX 3 and a library exchange when a program first uses NVTX: the library is given addresses of function
//! pointers, by module and number, and sets those that it wants to be called through.

use std::ffi::{c_char, c_int, c_void};

/// Number of the table with [`Callbacks`], for the function that NVTX gives to the library.
pub const CALLBACKS: u32 = 1;
/// Number of the table with [`Version`].
pub const VERSION: u32 = 3;

/// Function that NVTX gives to the library: the table of this number, or null.
pub type GetExportTable = unsafe extern "C" fn(u32) -> *const c_void;

/// Table [`CALLBACKS`].
#[repr(C)]
#[derive(Debug)]
pub struct Callbacks {
    /// Bytes of the table.
    pub size: usize,
    /// Writes the places of the function pointers of a module, and their number; 1 when there is such a module.
    pub module:
        Option<unsafe extern "C" fn(c_int, *mut *const *mut *const c_void, *mut u32) -> c_int>,
}

/// Table [`VERSION`].
#[repr(C)]
#[derive(Debug)]
pub struct Version {
    /// Bytes of the table.
    pub size: usize,
    /// Version of NVTX.
    pub version: u32,
    reserved: u32,
    /// Takes the version that the library supports.
    pub set_injection_version: Option<unsafe extern "C" fn(u32)>,
}

crate::offsets!(Callbacks { size = 0, module = 8, } size 16);
crate::offsets!(Version { size = 0, version = 8, set_injection_version = 16, } size 24);

/// Modules, and the numbers of their functions.
pub mod module {
    use std::ffi::c_int;

    /// Functions without a domain.
    pub const CORE: c_int = 1;
    /// Functions that name what the driver has.
    pub const CUDA: c_int = 2;
    /// Functions that name what the runtime has.
    pub const CUDART: c_int = 4;
    /// Functions with a domain.
    pub const CORE2: c_int = 5;
}

/// Numbers of functions of [`module::CORE`].
pub mod core {
    /// `nvtxMarkEx`.
    pub const MARK_EX: usize = 1;
    /// `nvtxMarkA`.
    pub const MARK_A: usize = 2;
    /// `nvtxMarkW`.
    pub const MARK_W: usize = 3;
    /// `nvtxRangeStartEx`.
    pub const RANGE_START_EX: usize = 4;
    /// `nvtxRangeStartA`.
    pub const RANGE_START_A: usize = 5;
    /// `nvtxRangeStartW`.
    pub const RANGE_START_W: usize = 6;
    /// `nvtxRangeEnd`.
    pub const RANGE_END: usize = 7;
    /// `nvtxRangePushEx`.
    pub const RANGE_PUSH_EX: usize = 8;
    /// `nvtxRangePushA`.
    pub const RANGE_PUSH_A: usize = 9;
    /// `nvtxRangePushW`.
    pub const RANGE_PUSH_W: usize = 10;
    /// `nvtxRangePop`.
    pub const RANGE_POP: usize = 11;
    /// `nvtxNameCategoryA`.
    pub const NAME_CATEGORY_A: usize = 12;
    /// `nvtxNameCategoryW`.
    pub const NAME_CATEGORY_W: usize = 13;
    /// `nvtxNameOsThreadA`.
    pub const NAME_OS_THREAD_A: usize = 14;
    /// `nvtxNameOsThreadW`.
    pub const NAME_OS_THREAD_W: usize = 15;
}

/// Numbers of functions of [`module::CUDA`].
pub mod cuda {
    /// `nvtxNameCuStreamA`.
    pub const NAME_STREAM_A: usize = 5;
    /// `nvtxNameCuStreamW`.
    pub const NAME_STREAM_W: usize = 6;
}

/// Numbers of functions of [`module::CUDART`].
pub mod cudart {
    /// `nvtxNameCudaStreamA`.
    pub const NAME_STREAM_A: usize = 3;
    /// `nvtxNameCudaStreamW`.
    pub const NAME_STREAM_W: usize = 4;
}

/// Numbers of functions of [`module::CORE2`].
pub mod core2 {
    /// `nvtxDomainMarkEx`.
    pub const DOMAIN_MARK_EX: usize = 1;
    /// `nvtxDomainRangeStartEx`.
    pub const DOMAIN_RANGE_START_EX: usize = 2;
    /// `nvtxDomainRangeEnd`.
    pub const DOMAIN_RANGE_END: usize = 3;
    /// `nvtxDomainRangePushEx`.
    pub const DOMAIN_RANGE_PUSH_EX: usize = 4;
    /// `nvtxDomainRangePop`.
    pub const DOMAIN_RANGE_POP: usize = 5;
    /// `nvtxDomainNameCategoryA`.
    pub const DOMAIN_NAME_CATEGORY_A: usize = 8;
    /// `nvtxDomainNameCategoryW`.
    pub const DOMAIN_NAME_CATEGORY_W: usize = 9;
    /// `nvtxDomainRegisterStringA`.
    pub const DOMAIN_REGISTER_STRING_A: usize = 10;
    /// `nvtxDomainRegisterStringW`.
    pub const DOMAIN_REGISTER_STRING_W: usize = 11;
    /// `nvtxDomainCreateA`.
    pub const DOMAIN_CREATE_A: usize = 12;
    /// `nvtxDomainCreateW`.
    pub const DOMAIN_CREATE_W: usize = 13;
}

/// Values of [`EventAttributes::payload_type`].
pub mod payload_type {
    /// Unsigned, of 64 bits.
    pub const UNSIGNED_64: i32 = 1;
    /// Signed, of 64 bits.
    pub const SIGNED_64: i32 = 2;
    /// A number with a fraction, of 64 bits.
    pub const DOUBLE: i32 = 3;
    /// Unsigned, of 32 bits.
    pub const UNSIGNED_32: i32 = 4;
    /// Signed, of 32 bits.
    pub const SIGNED_32: i32 = 5;
    /// A number with a fraction, of 32 bits.
    pub const FLOAT: i32 = 6;
}

/// Value of [`EventAttributes::color_type`] for a color of four bytes: alpha, red, green, blue.
pub const COLOR_ARGB: i32 = 1;

/// Values of [`EventAttributes::message_type`].
pub mod message_type {
    /// Text of bytes.
    pub const ASCII: i32 = 1;
    /// Text of 32-bit characters.
    pub const UNICODE: i32 = 2;
    /// A registered text.
    pub const REGISTERED: i32 = 3;
}

/// Attributes of a mark or range.
#[repr(C)]
#[derive(Debug)]
pub struct EventAttributes {
    /// Version of the struct.
    pub version: u16,
    /// Bytes of the struct.
    pub size: u16,
    /// Number of the category; 0 for none.
    pub category: u32,
    /// Type of the color; 0 for none.
    pub color_type: i32,
    /// The color.
    pub color: u32,
    /// Type of the payload; 0 for none.
    pub payload_type: i32,
    reserved: i32,
    /// The payload.
    pub payload: u64,
    /// Type of the message: [`message_type`].
    pub message_type: i32,
    /// The message: text, or a registered text.
    pub message: *const c_char,
}

crate::offsets!(EventAttributes {
    version = 0,
    size = 2,
    category = 4,
    color_type = 8,
    color = 12,
    payload_type = 16,
    payload = 24,
    message_type = 32,
    message = 40,
} size 48);
