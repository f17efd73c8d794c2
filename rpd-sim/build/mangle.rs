//! C++ type names as the argument iterators report them, and how values of those types are shown.

use rpd_data::abi::Abi;

/// C names of another type, with the Itanium symbol of that type.
const TYPEDEFS: [(&str, &str); 68] = [
    ("void", "v"),
    ("char", "c"),
    ("bool", "b"),
    ("float", "f"),
    ("unsigned char", "h"),
    ("uint8_t", "h"),
    ("short unsigned int", "t"),
    ("uint16_t", "t"),
    ("int", "i"),
    ("int32_t", "i"),
    ("hipDevice_t", "i"),
    ("hsa_file_t", "i"),
    ("unsigned int", "j"),
    ("uint32_t", "j"),
    ("GLuint", "j"),
    ("GLenum", "j"),
    ("size_t", "m"),
    ("uint64_t", "m"),
    ("roctx_range_id_t", "m"),
    ("roctx_thread_id_t", "m"),
    ("long long unsigned int", "y"),
    ("hsa_signal_value_t", "l"),
    ("uint3", "15HIP_vector_typeIjLj3EE"),
    ("hipStream_t", "P12ihipStream_t"),
    ("hipEvent_t", "P11ihipEvent_t"),
    ("hipModule_t", "P12ihipModule_t"),
    ("hipFunction_t", "P18ihipModuleSymbol_t"),
    ("hipCtx_t", "P9ihipCtx_t"),
    ("hipDeviceptr_t", "Pv"),
    ("hipExternalMemory_t", "Pv"),
    ("hipExternalSemaphore_t", "Pv"),
    ("hipGraph_t", "P9ihipGraph"),
    ("hipGraphNode_t", "P12hipGraphNode"),
    ("hipGraphExec_t", "P12hipGraphExec"),
    ("hipMemPool_t", "P17ihipMemPoolHandle_t"),
    ("hipArray_t", "P8hipArray"),
    ("hipArray_const_t", "PK8hipArray"),
    ("hipMipmappedArray_t", "P17hipMipmappedArray"),
    ("hipMipmappedArray_const_t", "PK17hipMipmappedArray"),
    ("hipTextureObject_t", "P13__hip_texture"),
    ("hipSurfaceObject_t", "P13__hip_surface"),
    ("hipUserObject_t", "P13hipUserObject"),
    ("hipGraphicsResource", "20_hipGraphicsResource"),
    ("hipGraphicsResource_t", "P20_hipGraphicsResource"),
    (
        "hipMemGenericAllocationHandle_t",
        "P30ihipMemGenericAllocationHandle",
    ),
    ("hipLinkState_t", "P15ihipLinkState_t"),
    ("hipHostFn_t", "PFvPvE"),
    ("hipStreamCallback_t", "PFvP12ihipStream_t10hipError_tPvE"),
    ("hipIpcMemHandle_t", "18hipIpcMemHandle_st"),
    ("hipIpcEventHandle_t", "20hipIpcEventHandle_st"),
    ("hipDeviceProp_t", "20hipDeviceProp_tR0600"),
    ("hipUUID", "9hipUUID_t"),
    ("HIP_RESOURCE_DESC", "20HIP_RESOURCE_DESC_st"),
    ("HIP_TEXTURE_DESC", "19HIP_TEXTURE_DESC_st"),
    ("HIP_RESOURCE_VIEW_DESC", "25HIP_RESOURCE_VIEW_DESC_st"),
    ("HIP_LAUNCH_CONFIG", "20HIP_LAUNCH_CONFIG_st"),
    ("hipLaunchConfig_t", "18hipLaunchConfig_st"),
    ("hipLaunchParams", "17hipLaunchParams_t"),
    ("hipFunctionLaunchParams", "25hipFunctionLaunchParams_t"),
    ("hsa_ext_module_t", "P14BrigModuleHeader"),
    (
        "hsa_amd_vmem_alloc_handle_t",
        "27hsa_amd_vmem_alloc_handle_s",
    ),
    ("hsa_amd_signal_handler", "PFblPvE"),
    ("hsa_amd_deallocation_callback_t", "PFvPvS_E"),
    (
        "hsa_amd_system_event_callback_t",
        "PF12hsa_status_tPK15hsa_amd_event_sPvE",
    ),
    (
        "hsa_amd_runtime_queue_notifier",
        "PFvPK11hsa_queue_s11hsa_agent_sPvE",
    ),
    ("hsa_amd_queue_intercept_handler", "PFvPKvmmPvPFvS0_mEE"),
    (
        "hsa_ext_program_iterate_modules_cb_t",
        "PF12hsa_status_t17hsa_ext_program_sP14BrigModuleHeaderPvE",
    ),
    (
        "hsa_ext_control_directives_t",
        "28hsa_ext_control_directives_s",
    ),
];

/// Structs of the HSA headers whose tag ends in `_s` while the type name ends in `_t`; enums keep theirs.
const HSA_STRUCTS: [&str; 31] = [
    "hsa_agent_t",
    "hsa_amd_image_descriptor_t",
    "hsa_amd_ipc_memory_t",
    "hsa_amd_memory_access_desc_t",
    "hsa_amd_memory_pool_t",
    "hsa_amd_pointer_info_t",
    "hsa_amd_profiling_async_copy_time_t",
    "hsa_amd_profiling_dispatch_time_t",
    "hsa_amd_svm_attribute_pair_t",
    "hsa_cache_t",
    "hsa_callback_data_t",
    "hsa_code_object_reader_t",
    "hsa_code_object_t",
    "hsa_code_symbol_t",
    "hsa_dim3_t",
    "hsa_executable_symbol_t",
    "hsa_executable_t",
    "hsa_ext_image_data_info_t",
    "hsa_ext_image_descriptor_t",
    "hsa_ext_image_format_t",
    "hsa_ext_image_region_t",
    "hsa_ext_image_t",
    "hsa_ext_program_t",
    "hsa_ext_sampler_descriptor_t",
    "hsa_ext_sampler_t",
    "hsa_isa_t",
    "hsa_loaded_code_object_t",
    "hsa_pitched_ptr_t",
    "hsa_queue_t",
    "hsa_region_t",
    "hsa_signal_t",
];

/// Types whose definition the SDK's headers lack, so that it never follows a pointer to them.
const INCOMPLETE: [&str; 17] = [
    "P12ihipStream_t",
    "P11ihipEvent_t",
    "P12ihipModule_t",
    "P18ihipModuleSymbol_t",
    "P9ihipCtx_t",
    "P9ihipGraph",
    "P12hipGraphNode",
    "P12hipGraphExec",
    "P17ihipMemPoolHandle_t",
    "P8hipArray",
    "PK8hipArray",
    "P13__hip_texture",
    "P13__hip_surface",
    "P13hipUserObject",
    "P20_hipGraphicsResource",
    "P30ihipMemGenericAllocationHandle",
    "P15ihipLinkState_t",
];

/// The Itanium symbol of a C type.
fn symbol(c: &str) -> String {
    let c = c.trim();
    if let Some((ret, params)) = c.split_once("(*)") {
        let params: String = params
            .trim_matches(['(', ')'])
            .split(',')
            .map(symbol)
            .collect();
        return format!("PF{}{params}E", symbol(ret));
    }
    if let Some(inner) = c.strip_suffix('*') {
        let inner = inner.trim();
        return match inner.strip_prefix("const ").filter(|i| !i.ends_with('*')) {
            Some(constant) => format!("PK{}", symbol(constant)),
            None => match inner
                .strip_prefix("volatile ")
                .filter(|i| !i.ends_with('*'))
            {
                Some(volatile) => format!("PV{}", symbol(volatile)),
                None => format!("P{}", symbol(inner)),
            },
        };
    }
    // A qualifier left of several stars belongs to the innermost type.
    if let Some(inner) = c.strip_prefix("const ") {
        return format!("K{}", symbol(inner));
    }
    if let Some(inner) = c.strip_prefix("volatile ") {
        return format!("V{}", symbol(inner));
    }
    if let Some((_, known)) = TYPEDEFS.iter().find(|(name, _)| *name == c) {
        return (*known).to_owned();
    }
    if HSA_STRUCTS.contains(&c) || c == "hsa_signal_group_t" || c == "hsa_wavefront_t" {
        let tag = format!("{}_s", c.trim_end_matches("_t"));
        return format!("{}{tag}", tag.len());
    }
    format!("{}{c}", c.len())
}

/// Levels of indirection the iterators report.
pub(crate) fn pointers(c: &str) -> usize {
    let symbol = symbol(c);
    let mut rest = symbol.as_str();
    let mut n = 0;
    loop {
        rest = rest.trim_start_matches(['K', 'V']);
        match rest.strip_prefix('P') {
            Some(inner) => {
                n += 1;
                rest = inner;
            }
            None => return n,
        }
    }
}

/// Symbol of a C type and the `Kind` of what is left when all pointers are followed.
pub(crate) fn describe(c: &str, abi: Abi) -> (String, String) {
    let symbol = symbol(c);
    let mut base = symbol.as_str();
    let mut opaque = false;
    while let Some(inner) = base.strip_prefix('P') {
        opaque |= INCOMPLETE.contains(&base);
        base = inner.trim_start_matches(['K', 'V']);
    }
    let kind = match base {
        _ if opaque || base.starts_with('F') => "Opaque",
        "v" => "Void",
        "c" => "Text",
        "b" => "Bool",
        "f" => "F32",
        "h" => "U8",
        "t" => "U16",
        "i" => "I32",
        "j" => "U32",
        "m" | "y" => "U64",
        "l" => "I64",
        "4dim3" | "18rocprofiler_dim3_t" => "Dim3",
        "9hipExtent" => "Extent",
        "13hipPitchedPtr" => "PitchedPtr",
        _ => {
            let name = base.trim_start_matches(|c: char| c.is_ascii_digit());
            let handle = name.ends_with("_s")
                && [
                    "hsa_amd_memory_pool_s",
                    "hsa_agent_s",
                    "hsa_amd_vmem_alloc_handle_s",
                ]
                .into_iter()
                .chain(HSA_HANDLES)
                .any(|h| h == name);
            let by_value_enum = symbol == base && abi == Abi::U32;
            return (
                symbol.clone(),
                match (handle, by_value_enum) {
                    (true, _) => "Kind::Handle".to_owned(),
                    (_, true) => format!("Kind::Enum(c\"{name}\")"),
                    _ => "Kind::Struct".to_owned(),
                },
            );
        }
    };
    (symbol.clone(), format!("Kind::{kind}"))
}

/// Tags of structs that hold one 64-bit handle.
const HSA_HANDLES: [&str; 15] = [
    "hsa_cache_s",
    "hsa_callback_data_s",
    "hsa_code_object_reader_s",
    "hsa_code_object_s",
    "hsa_code_symbol_s",
    "hsa_executable_symbol_s",
    "hsa_executable_s",
    "hsa_ext_image_s",
    "hsa_ext_program_s",
    "hsa_ext_sampler_s",
    "hsa_isa_s",
    "hsa_loaded_code_object_s",
    "hsa_region_s",
    "hsa_signal_s",
    "hsa_signal_group_s",
];
