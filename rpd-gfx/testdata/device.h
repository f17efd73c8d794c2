// What the test kernels need of HIP, without its headers.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
typedef float float2 __attribute__((ext_vector_type(2)));
typedef float float4 __attribute__((ext_vector_type(4)));
typedef u32 uint4 __attribute__((ext_vector_type(4)));
__device__ static inline u32 lane_x() { return __builtin_amdgcn_workitem_id_x(); }
__device__ static inline u32 lane_y() { return __builtin_amdgcn_workitem_id_y(); }
__device__ static inline u32 lane_z() { return __builtin_amdgcn_workitem_id_z(); }
__device__ static inline u32 group_x() { return __builtin_amdgcn_workgroup_id_x(); }
__device__ static inline u32 group_y() { return __builtin_amdgcn_workgroup_id_y(); }
__device__ static inline u32 group_z() { return __builtin_amdgcn_workgroup_id_z(); }
__device__ static inline u32 size_x() { return __builtin_amdgcn_workgroup_size_x(); }
__device__ static inline u32 size_y() { return __builtin_amdgcn_workgroup_size_y(); }
__device__ static inline u32 global_x() { return group_x() * size_x() + lane_x(); }
__device__ static inline u32 global_y() { return group_y() * size_y() + lane_y(); }
__device__ static inline void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
#define KERNEL extern "C" __global__ void
