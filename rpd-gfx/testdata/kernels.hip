// Kernels of the interpreter's tests; build.sh compiles them to kernels-O*.co.
#include "device.h"

KERNEL arith(float *out, const float *a, const float *b, u32 n) {
  u32 i = global_x();
  if (i < n) {
    out[5 * i] = a[i] + b[i];
    out[5 * i + 1] = a[i] - b[i];
    out[5 * i + 2] = a[i] * b[i];
    out[5 * i + 3] = a[i] / b[i];
    out[5 * i + 4] = __builtin_sqrtf(a[i] < 0 ? -a[i] : a[i]);
  }
}

KERNEL arith64(double *out, const double *a, const double *b, u32 n) {
  u32 i = global_x();
  if (i < n) {
    out[6 * i] = a[i] + b[i];
    out[6 * i + 1] = a[i] - b[i];
    out[6 * i + 2] = a[i] * b[i];
    out[6 * i + 3] = a[i] / b[i];
    out[6 * i + 4] = __builtin_sqrt(a[i] < 0 ? -a[i] : a[i]);
    out[6 * i + 5] = __builtin_fma(a[i], b[i], 1.0);
  }
}

KERNEL arith16(half *out, const half *a, const half *b, u32 n) {
  u32 i = global_x();
  if (i < n) {
    out[5 * i] = a[i] + b[i];
    out[5 * i + 1] = a[i] - b[i];
    out[5 * i + 2] = a[i] * b[i];
    out[5 * i + 3] = a[i] / b[i];
    out[5 * i + 4] = __builtin_elementwise_max(a[i], b[i]);
  }
}

KERNEL ints(u32 *out, const u32 *a, const u32 *b, u32 n) {
  u32 i = global_x();
  if (i >= n) return;
  u32 x = a[i], y = b[i] | 1;
  int sx = (int)x, sy = (int)y;
  u32 *o = out + 20 * i;
  o[0] = x / y;
  o[1] = x % y;
  o[2] = (u32)(sx / (sy == -1 ? 3 : sy));
  o[3] = (u32)(sx % (sy == -1 ? 3 : sy));
  o[4] = x * y;
  o[5] = (u32)(((u64)x * y) >> 32);
  o[6] = x << (y & 31);
  o[7] = x >> (y & 31);
  o[8] = (u32)(sx >> (y & 31));
  o[9] = __builtin_popcount(x);
  o[10] = x ? __builtin_clz(x) : 32;
  o[11] = x ? __builtin_ctz(x) : 32;
  o[12] = (x >> 5) & 0x7f;
  o[13] = __builtin_bitreverse32(x);
  o[14] = __builtin_bswap32(x);
  o[15] = x < y ? x : y;
  o[16] = sx < sy ? sx : sy;
  o[17] = (x & 0xff) * (y & 0xffff) + 7;
  o[18] = __builtin_rotateleft32(x, y & 31);
  o[19] = (x ^ y) & ~(x & 0xf0f0);
}

KERNEL longs(u64 *out, const u64 *a, const u64 *b, u32 n) {
  u32 i = global_x();
  if (i >= n) return;
  u64 x = a[i], y = b[i] | 1;
  long sx = (long)x, sy = (long)y;
  u64 *o = out + 12 * i;
  o[0] = x / y;
  o[1] = x % y;
  o[2] = (u64)(sx / (sy == -1 ? 3 : sy));
  o[3] = (u64)(sx % (sy == -1 ? 3 : sy));
  o[4] = x * y;
  o[5] = x + y;
  o[6] = x - y;
  o[7] = x << (y & 63);
  o[8] = x >> (y & 63);
  o[9] = (u64)(sx >> (y & 63));
  o[10] = x < y ? x : y;
  o[11] = sx < sy ? sx : sy;
}

KERNEL converts(u32 *out, const float *f, const double *d, u32 n) {
  u32 i = global_x();
  if (i >= n) return;
  u32 *o = out + 10 * i;
  o[0] = (u32)(int)f[i];
  o[1] = f[i] > 0 ? (u32)f[i] : 0;
  o[2] = (u32)(int)d[i];
  o[3] = __builtin_bit_cast(u32, (float)d[i]);
  o[4] = __builtin_bit_cast(u32, (float)(int)(i * 1103515245u));
  o[5] = __builtin_bit_cast(u32, (float)(i * 2654435761u));
  o[6] = __builtin_bit_cast(u16, (half)f[i]);
  o[7] = __builtin_bit_cast(u32, (float)((u64)i * 0x9E3779B97F4A7C15ul));
  double back = (double)(long)d[i] + (double)f[i];
  u64 bits = __builtin_bit_cast(u64, back);
  o[8] = (u32)bits;
  o[9] = (u32)(bits >> 32);
}

KERNEL transpose(float *out, const float *in, u32 width, u32 height) {
  __shared__ float tile[16][17];
  u32 x = group_x() * 16 + lane_x(), y = group_y() * 16 + lane_y();
  if (x < width && y < height) tile[lane_y()][lane_x()] = in[y * width + x];
  sync();
  x = group_y() * 16 + lane_x();
  y = group_x() * 16 + lane_y();
  if (x < height && y < width) out[y * height + x] = tile[lane_x()][lane_y()];
}

KERNEL reduce(u32 *out, const u32 *in, u32 n) {
  __shared__ u32 part[256];
  u32 t = lane_x(), i = group_x() * size_x() + t;
  part[t] = i < n ? in[i] : 0;
  sync();
  for (u32 s = size_x() / 2; s > 0; s >>= 1) {
    if (t < s) part[t] += part[t + s];
    sync();
  }
  if (t == 0) __hip_atomic_fetch_add(out, part[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

extern __shared__ u32 dynamic_lds[];
KERNEL histogram(u32 *out, const u8 *in, u32 n, u32 bins) {
  for (u32 i = lane_x(); i < bins; i += size_x()) dynamic_lds[i] = 0;
  sync();
  for (u32 i = global_x(); i < n; i += size_x() * 4)
    __hip_atomic_fetch_add(&dynamic_lds[in[i] % bins], 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  sync();
  for (u32 i = lane_x(); i < bins; i += size_x())
    __hip_atomic_fetch_add(out + i, dynamic_lds[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

KERNEL atomics(u32 *o, u64 *w, float *f, double *d) {
  u32 i = global_x();
  __hip_atomic_fetch_add(o + 0, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_max(o + 1, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_min((int *)o + 2, -(int)i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_or(o + 3, 1u << (i & 31), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_xor(o + 4, i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(w, (u64)i << 30, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u32 slot = __hip_atomic_fetch_add(o + 5, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  o[16 + slot] = i;
  __hip_atomic_fetch_add(f, 1.0f, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  __hip_atomic_fetch_add(d, 0.5, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  u32 expected = o[6];
  while (!__hip_atomic_compare_exchange_strong(o + 6, &expected, expected * 3 + 1, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST, __HIP_MEMORY_SCOPE_SYSTEM)) {
  }
}

struct Vec { float x, y, z; };
struct Params { const float *in; Vec scale; short mode; double bias; u32 count; };

__device__ __attribute__((noinline)) Vec cross(Vec a, Vec b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

__device__ __attribute__((noinline)) u32 fib(u32 n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

KERNEL calls(float *out, Params p) {
  u32 i = global_x();
  if (i >= p.count) return;
  Vec v = {p.in[i], p.in[i] + 1, p.in[i] * 2};
  Vec c = cross(v, p.scale);
  float r;
  switch (i % 5 + p.mode) {
    case 0: r = c.x; break;
    case 1: r = c.y; break;
    case 2: r = c.z; break;
    case 3: r = c.x + c.y + c.z; break;
    case 4: r = (float)fib(i % 13); break;
    default: r = (float)p.bias;
  }
  out[i] = r;
}

KERNEL scratch(u32 *out, const u32 *index, u32 n) {
  u32 i = global_x();
  u32 local[32];
  for (u32 k = 0; k < 32; k++) local[k] = k * k + i;
  for (u32 k = 0; k < 16; k++) local[(index[i] + k) & 31] += k;
  u32 sum = 0;
  for (u32 k = 0; k < n; k++) sum = sum * 31 + local[(k + i) & 31];
  out[i] = sum;
}

typedef u32 (*Fn)(u32);
__device__ u32 twice(u32 x) { return 2 * x; }
__device__ u32 plus7(u32 x) { return x + 7; }
__device__ u32 square(u32 x) { return x * x; }
__device__ Fn table[3] = {twice, plus7, square};
__constant__ u32 weights[4] = {3, 5, 7, 11};
__device__ u32 counter = 100;

KERNEL pointers(u32 *out) {
  u32 i = global_x();
  out[i] = table[i % 3](i) * weights[i & 3] + counter;
}

KERNEL lanes(u32 *out, const u32 *in) {
  u32 i = lane_x();
  u32 v = in[i];
  u32 *o = out + 8 * i;
  o[0] = __builtin_amdgcn_ds_bpermute((i ^ 5) * 4, v);
  o[1] = __builtin_amdgcn_ds_permute(((i + 3) & 63) * 4, v);
  o[2] = __builtin_amdgcn_readfirstlane(v);
  o[3] = __builtin_amdgcn_readlane(v, 17);
  u64 ballot = __builtin_amdgcn_ballot_w64(v & 1);
  o[4] = __builtin_popcountl(ballot);
  o[5] = __builtin_amdgcn_mbcnt_hi((u32)(ballot >> 32), __builtin_amdgcn_mbcnt_lo((u32)ballot, 0));
  o[6] = __builtin_amdgcn_ds_swizzle(v, 0x041f);
  o[7] = __builtin_amdgcn_update_dpp(0, v, 0x111, 0xf, 0xf, true);
}

KERNEL math(float *out, const float *in) {
  u32 i = global_x();
  float x = in[i];
  float *o = out + 9 * i;
  o[0] = __builtin_exp2f(x);
  o[1] = __builtin_log2f(x);
  o[2] = __builtin_amdgcn_sinf(x);
  o[3] = __builtin_amdgcn_cosf(x);
  o[4] = __builtin_floorf(x);
  o[5] = __builtin_truncf(-x);
  o[6] = __builtin_rintf(x);
  o[7] = __builtin_amdgcn_fractf(x);
  o[8] = __builtin_ldexpf(x, (int)i - 32) + __builtin_fmaxf(x, 2.0f) + __builtin_fminf(x, 1.0f);
}

KERNEL packed(half2 *h, float2 *f, const float *a, const float *b) {
  u32 i = global_x();
  half2 x = {(half)a[i], (half)b[i]}, y = {(half)b[i], (half)a[i]};
  h[i] = x * y + (half2){(half)1.0, (half)2.0};
  float2 p = {a[i], b[i]}, q = {b[i], 3.0f};
  f[i] = p * q + (float2){a[i], a[i]};
}

KERNEL bytes(u8 *out, const signed char *in, const u16 *shorts, u32 n) {
  u32 i = global_x();
  if (i >= n) return;
  int s = in[i];
  out[4 * i] = (u8)(s + shorts[i]);
  out[4 * i + 1] = (u8)(s >> 1);
  out[4 * i + 2] = (u8)(shorts[i] >> 8);
  out[4 * i + 3] = (u8)((u16)(shorts[i] * 3) >> 4);
}

KERNEL grid3(u32 *out) {
  u32 x = group_x() * 4 + lane_x(), y = group_y() * 3 + lane_y(), z = group_z() * 2 + lane_z();
  out[(z * 7 + y) * 10 + x] = x | y << 8 | z << 16 | group_x() << 24;
}

KERNEL collatz(u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n) return;
  u32 x = i + 1, steps = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    if (++steps > 400) break;
  }
  out[i] = steps;
}

// All workgroups wait for each other, as cooperative launches do.
KERNEL meet(u32 *count, u32 *out, u32 groups) {
  if (lane_x() == 0) {
    __hip_atomic_fetch_add(count, 1u, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
    while (__hip_atomic_load(count, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < groups)
      __builtin_amdgcn_s_sleep(1);
  }
  sync();
  out[global_x()] = *count;
}

KERNEL vectors(uint4 *out, const uint4 *in, u32 pick) {
  u32 i = global_x();
  uint4 v = in[i];
  v[pick & 3] += i;
  v[i & 3] ^= 0xff;
  out[i] = v.wzyx;
}

KERNEL wild(u32 *address) { *address = 1; }
KERNEL fail() { __builtin_trap(); }
