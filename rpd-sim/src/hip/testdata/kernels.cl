// Kernels of the tests. Rebuild kernels.co with ./build.sh.

typedef unsigned int u32;

__attribute__((visibility("protected"))) __global int counter = 7;

static u32 item(void) {
  return __builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x();
}

__kernel void add(__global float *c, __global const float *a, __global const float *b, u32 n) {
  u32 i = item();
  if (i < n) c[i] = a[i] + b[i];
}

// The order of two of these on the same data can be told from the result.
__kernel void affine(__global u32 *data, u32 factor, u32 term, u32 n) {
  u32 i = item();
  if (i < n) data[i] = data[i] * factor + term;
}

__kernel void bump(__global int *out, int by) {
  if (item() == 0) { counter += by; *out = counter; }
}

// Reverses each workgroup's part through dynamic local memory.
__kernel void reverse(__global u32 *data, __local u32 *scratch) {
  u32 l = __builtin_amdgcn_workitem_id_x(), size = __builtin_amdgcn_workgroup_size_x(), i = item();
  scratch[l] = data[i];
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  data[i] = scratch[size - 1 - l];
}

// Runs until the host says so.
__kernel void await_host(__global volatile u32 *flag) {
  while (*flag == 0) __builtin_amdgcn_s_sleep(8);
}
