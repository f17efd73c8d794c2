/* What the real library has built in, from the headers of an installed ROCm: their parts include each other only outside of
 * runtime compilation, so that the order matters. Versions differ in which files there are. */
#pragma once

#pragma push_macro("CHAR_BIT")
#pragma push_macro("INT_MAX")
#define CHAR_BIT __CHAR_BIT__
#define INT_MAX __INT_MAX__

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

#include <hip/hip_common.h>
#include <hip/amd_detail/host_defines.h>
#if __has_include(<hip/amd_detail/device_library_decls.h>)
#include <hip/amd_detail/device_library_decls.h>
#endif
#if __has_include(<hip/amd_detail/hip_assert.h>)
#include <hip/amd_detail/hip_assert.h>
#endif
#include <hip/hip_runtime.h>
#if __has_include(<hip/amd_detail/math_fwd.h>)
#include <hip/amd_detail/math_fwd.h>
#endif
#if __has_include(<hip/amd_detail/hip_fp16_math_fwd.h>)
#include <hip/amd_detail/hip_fp16_math_fwd.h>
#endif
#include <hip/hip_vector_types.h>
#if __has_include(<hip/amd_detail/amd_warp_functions.h>)
#include <hip/amd_detail/amd_warp_functions.h>
#endif
#if __has_include(<hip/amd_detail/amd_device_functions.h>)
#include <hip/amd_detail/amd_device_functions.h>
#endif
#if __has_include(<hip/amd_detail/amd_warp_sync_functions.h>)
#include <hip/amd_detail/amd_warp_sync_functions.h>
#endif
#if __has_include(<hip/amd_detail/amd_hip_unsafe_atomics.h>)
#include <hip/amd_detail/amd_hip_unsafe_atomics.h>
#endif
#if __has_include(<hip/amd_detail/amd_hip_atomic.h>)
#include <hip/amd_detail/amd_hip_atomic.h>
#endif
#include <hip/hip_fp16.h>
#if __has_include(<hip/amd_detail/amd_math_functions.h>)
#include <hip/amd_detail/amd_math_functions.h>
#endif
#include <hip/hip_bfloat16.h>
#if __has_include(<hip/amd_detail/hip_cooperative_groups_helper.h>)
#include <hip/amd_detail/hip_cooperative_groups_helper.h>
#endif

#pragma pop_macro("CHAR_BIT")
#pragma pop_macro("INT_MAX")
