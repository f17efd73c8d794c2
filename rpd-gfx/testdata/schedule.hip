// Kernels whose results depend on the order in which waves are executed, and kernels to measure the interpreter with.
#include "device.h"

// Every wave adds 1 to the same place `rounds` times without an atomic, so that additions get lost.
KERNEL lost_updates(volatile u32 *place, u32 rounds) {
  if (lane_x() % 64 == 0)
    for (u32 n = 0; n < rounds; ++n)
      *place = *place + 1;
}

// Waves and workgroups write down in which order they came.
KERNEL arrivals(u32 *order, u32 *next) {
  if (lane_x() % 64 == 0) {
    u32 at = __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
    order[at] = group_x() * (size_x() / 64) + lane_x() / 64;
  }
}

// A rotation of a workgroup's values without the barrier that it needs: each lane reads what another wave may not
// have written yet.
KERNEL missing_barrier(u32 *out) {
  __shared__ volatile u32 values[1024];
  u32 lane = lane_x(), size = size_x();
  values[lane] = 0;
  sync();
  values[lane] = global_x() + 1;
  out[global_x()] = values[(lane + 64) % size];
}

// The clock at which every wave began and ended.
KERNEL clocks(u64 *out) {
  u64 begin = __builtin_readcyclecounter(), wall = __builtin_amdgcn_s_memrealtime();
  for (u32 n = 0; n < 100; ++n)
    __builtin_amdgcn_s_sleep(1);
  out[3 * global_x()] = begin;
  out[3 * global_x() + 1] = __builtin_readcyclecounter();
  out[3 * global_x() + 2] = wall;
}

// Multiplications and additions that depend on nothing in memory.
KERNEL fma_bound(float *out, u32 rounds) {
  float a = lane_x(), b = 0.5f, c = group_x(), d = 1;
  for (u32 n = 0; n < rounds; ++n) {
    a = __builtin_fmaf(a, b, c);
    b = __builtin_fmaf(b, c, d);
    c = __builtin_fmaf(c, d, a);
    d = __builtin_fmaf(d, a, b);
  }
  out[global_x()] = a + b + c + d;
}

// One pass over memory.
KERNEL memory_bound(float *out, const float *left, const float *right, u32 n) {
  for (u32 i = global_x(); i < n; i += 64 * 1024)
    out[i] = left[i] * 2 + right[i];
}

// A product of square matrices by tiles of 32 x 32 in LDS, 16 waves for each.
KERNEL tiled(float *out, const float *left, const float *right, u32 n) {
  __shared__ float l[32][32], r[32][32];
  u32 x = lane_x() % 32, y = lane_x() / 32, column = group_x() * 32 + x, row = group_y() * 32 + y;
  float sum = 0;
  for (u32 k = 0; k < n; k += 32) {
    l[y][x] = left[row * n + k + x];
    r[y][x] = right[(k + y) * n + column];
    sync();
    for (u32 j = 0; j < 32; ++j)
      sum += l[y][j] * r[j][x];
    sync();
  }
  out[row * n + column] = sum;
}

// Workgroups exchange values over the whole grid, with global wave sync between the rounds: what the runtime's
// libraries make of grid.sync(). The counter holds the number of workgroups less one when the kernel begins.
KERNEL grid_rounds(u32 *values, u32 *next, u32 groups, u32 rounds) {
  u32 own = group_x();
  for (u32 n = 0; n < rounds; ++n) {
    u32 *from = n % 2 ? next : values, *to = n % 2 ? values : next;
    if (lane_x() == 0)
      to[own] = from[(own + 1) % groups] + from[own];
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
    __builtin_amdgcn_s_barrier();
    if (lane_x() == 0)
      __builtin_amdgcn_ds_gws_barrier(groups - 1, 0);
    __builtin_amdgcn_s_barrier();
  }
}

// Sets the counter that grid_rounds uses.
KERNEL grid_init(u32 value) { __builtin_amdgcn_ds_gws_init(value, 0); }

// A semaphore: the first workgroup lets one of the others go on at a time, who count.
KERNEL semaphore(u32 *count, u32 *order, u32 groups) {
  if (group_x() == 0) {
    for (u32 n = 1; n < groups; ++n) {
      __builtin_amdgcn_ds_gws_sema_v(1);
      while (__atomic_load_n(count, __ATOMIC_RELAXED) != n)
        __builtin_amdgcn_s_sleep(1);
    }
  } else {
    __builtin_amdgcn_ds_gws_sema_p(1);
    if (lane_x() == 0)
      order[group_x()] = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED) + 1;
  }
}
