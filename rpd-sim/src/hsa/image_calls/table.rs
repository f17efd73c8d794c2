//! The function table of the image extension.

use core::ffi::c_void;

use crate::api::{call, old_names};

/// Bytes of the extension's table of version 1.0: the first ten functions.
pub(in crate::hsa) const TABLE_BYTES: usize = 10 * 8;

/// The functions of the extension, in the order of its table.
pub(in crate::hsa) fn functions() -> [*const c_void; 14] {
    [
        call::hsa_ext_image_get_capability as *const c_void,
        call::hsa_ext_image_data_get_info as *const c_void,
        call::hsa_ext_image_create as *const c_void,
        call::hsa_ext_image_destroy as *const c_void,
        call::hsa_ext_image_copy as *const c_void,
        call::hsa_ext_image_import as *const c_void,
        call::hsa_ext_image_export as *const c_void,
        call::hsa_ext_image_clear as *const c_void,
        call::hsa_ext_sampler_create as *const c_void,
        call::hsa_ext_sampler_destroy as *const c_void,
        call::hsa_ext_image_get_capability_with_layout as *const c_void,
        call::hsa_ext_image_data_get_info_with_layout as *const c_void,
        call::hsa_ext_image_create_with_layout as *const c_void,
        old_names::hsa_ext_sampler_create_v2 as *const c_void,
    ]
}
