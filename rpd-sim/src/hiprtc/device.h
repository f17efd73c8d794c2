/* What runtime-compiled programs have of HIP's device headers without a ROCm installation: qualifiers, indices, barriers,
 * atomics, exchanges between lanes, vector types, and those mathematical functions that the compiler itself knows. */
#pragma once

#define __HIP__ 1
#define __HIPCC_RTC__ 1
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((amdgpu_flat_work_group_size(1, (__VA_ARGS__))))

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;

#define RPD_INDEX(name, axis, value) \
    struct name##_##axis { __device__ __forceinline__ operator unsigned() const { return value; } }
#define RPD_INDICES(name, x_value, y_value, z_value) \
    RPD_INDEX(name, x, x_value); \
    RPD_INDEX(name, y, y_value); \
    RPD_INDEX(name, z, z_value); \
    struct name##_type { name##_x x; name##_y y; name##_z z; }; \
    static const __device__ name##_type name

RPD_INDICES(threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z());
RPD_INDICES(blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z());
RPD_INDICES(blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(), __builtin_amdgcn_workgroup_size_z());
RPD_INDICES(gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
            __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
            __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z());
static const __device__ int warpSize = 64;

static __device__ __forceinline__ void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
static __device__ __forceinline__ void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
static __device__ __forceinline__ void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
static __device__ __forceinline__ void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

template <class T, class V> static __device__ __forceinline__ T atomicAdd(T *place, V value) { return __hip_atomic_fetch_add(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicSub(T *place, V value) { return __hip_atomic_fetch_sub(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicMin(T *place, V value) { return __hip_atomic_fetch_min(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicMax(T *place, V value) { return __hip_atomic_fetch_max(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicAnd(T *place, V value) { return __hip_atomic_fetch_and(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicOr(T *place, V value) { return __hip_atomic_fetch_or(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicXor(T *place, V value) { return __hip_atomic_fetch_xor(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class V> static __device__ __forceinline__ T atomicExch(T *place, V value) { return __hip_atomic_exchange(place, (T)value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
template <class T, class C, class V> static __device__ __forceinline__ T atomicCAS(T *place, C expected, V value) {
    T before = (T)expected;
    __hip_atomic_compare_exchange_strong(place, &before, (T)value, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    return before;
}

static __device__ __forceinline__ unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
static __device__ __forceinline__ unsigned long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
template <class T> static __device__ __forceinline__ T rpd_from_lane(T value, unsigned lane) {
    union { T value; int words[(sizeof(T) + 3) / 4]; } parts = {value};
    for (unsigned n = 0; n < sizeof(T) / 4 + (sizeof(T) % 4 != 0); ++n)
        parts.words[n] = __builtin_amdgcn_ds_bpermute((int)(lane * 4), parts.words[n]);
    return parts.value;
}
template <class T> static __device__ __forceinline__ T __shfl(T value, int lane, int width = 64) {
    return rpd_from_lane(value, (__lane_id() & ~(unsigned)(width - 1)) | ((unsigned)lane & (unsigned)(width - 1)));
}
template <class T> static __device__ __forceinline__ T __shfl_xor(T value, int mask, int width = 64) {
    unsigned self = __lane_id(), other = self ^ (unsigned)mask;
    return rpd_from_lane(value, other < ((self + width) & ~(unsigned)(width - 1)) ? other : self);
}
template <class T> static __device__ __forceinline__ T __shfl_down(T value, unsigned delta, int width = 64) {
    unsigned self = __lane_id();
    return rpd_from_lane(value, (self & (width - 1)) + delta < (unsigned)width ? self + delta : self);
}
template <class T> static __device__ __forceinline__ T __shfl_up(T value, unsigned delta, int width = 64) {
    unsigned self = __lane_id();
    return rpd_from_lane(value, (self & (width - 1)) >= delta ? self - delta : self);
}

static __device__ __forceinline__ int __popc(unsigned x) { return __builtin_popcount(x); }
static __device__ __forceinline__ int __popcll(unsigned long x) { return __builtin_popcountl(x); }
static __device__ __forceinline__ int __clz(unsigned x) { return x ? __builtin_clz(x) : 32; }
static __device__ __forceinline__ int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static __device__ __forceinline__ unsigned __brev(unsigned x) { return __builtin_bitreverse32(x); }
template <class T> static __device__ __forceinline__ T min(T a, T b) { return b < a ? b : a; }
template <class T> static __device__ __forceinline__ T max(T a, T b) { return a < b ? b : a; }

#define RPD_ONE(name) \
    static __device__ __forceinline__ float name##f(float x) { return __builtin_##name##f(x); } \
    static __device__ __forceinline__ float name(float x) { return __builtin_##name##f(x); }
#define RPD_ONE_DOUBLE(name) static __device__ __forceinline__ double name(double x) { return __builtin_##name(x); }
#define RPD_BOTH(name) RPD_ONE(name) RPD_ONE_DOUBLE(name)
RPD_BOTH(sqrt) RPD_BOTH(fabs) RPD_BOTH(floor) RPD_BOTH(ceil) RPD_BOTH(trunc) RPD_BOTH(rint) RPD_BOTH(round)
RPD_ONE(exp) RPD_ONE(exp2) RPD_ONE(log) RPD_ONE(log2) RPD_ONE(log10)
static __device__ __forceinline__ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static __device__ __forceinline__ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
static __device__ __forceinline__ float fminf(float x, float y) { return __builtin_fminf(x, y); }
static __device__ __forceinline__ float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
static __device__ __forceinline__ double fmin(double x, double y) { return __builtin_fmin(x, y); }
static __device__ __forceinline__ double fmax(double x, double y) { return __builtin_fmax(x, y); }
static __device__ __forceinline__ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
static __device__ __forceinline__ float __fdividef(float x, float y) { return x / y; }
static __device__ __forceinline__ float __expf(float x) { return __builtin_expf(x); }
static __device__ __forceinline__ float __logf(float x) { return __builtin_logf(x); }
static __device__ __forceinline__ float __sinf(float x) { return __builtin_sinf(x); }
static __device__ __forceinline__ float __cosf(float x) { return __builtin_cosf(x); }

#define RPD_VECTOR(type, name, size2, size4) \
    struct __attribute__((aligned(size2))) name##2 { type x, y; }; \
    struct name##3 { type x, y, z; }; \
    struct __attribute__((aligned(size4))) name##4 { type x, y, z, w; }; \
    static __host__ __device__ inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
    static __host__ __device__ inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    static __host__ __device__ inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
RPD_VECTOR(float, float, 8, 16)
RPD_VECTOR(double, double, 16, 32)
RPD_VECTOR(int, int, 8, 16)
RPD_VECTOR(unsigned, uint, 8, 16)
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

#undef RPD_INDEX
#undef RPD_INDICES
#undef RPD_ONE
#undef RPD_ONE_DOUBLE
#undef RPD_BOTH
#undef RPD_VECTOR
