/* What device code of the workloads needs from a HIP header, so that no ROCm installation is
 * needed to build it. Work-item functions follow code object V5: sizes come from the hidden
 * arguments, which V4 does not have; kernels that must build for both use only the ids. */
#ifndef RPD_DEVICE_H
#define RPD_DEVICE_H

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

#define EXPORTED extern "C" __global__

static __device__ inline unsigned thread_x() { return __builtin_amdgcn_workitem_id_x(); }
static __device__ inline unsigned thread_y() { return __builtin_amdgcn_workitem_id_y(); }
static __device__ inline unsigned block_x() { return __builtin_amdgcn_workgroup_id_x(); }
static __device__ inline unsigned block_y() { return __builtin_amdgcn_workgroup_id_y(); }
static __device__ inline unsigned block_size_x() { return __builtin_amdgcn_workgroup_size_x(); }
static __device__ inline unsigned block_size_y() { return __builtin_amdgcn_workgroup_size_y(); }

static __device__ inline void block_barrier() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

#endif
