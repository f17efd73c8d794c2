// Kernels with more live values than registers, compiled without optimisation: scalar values are spilled to lanes of
// vector registers, vector registers to accumulation registers and scratch. build.sh compiles them to spills.co.
#include "device.h"

// One channel of a pixel of a Bayer image (RGGB), interpolated from its neighbours, clamped at the edges.
__device__ static inline int at(const u8 *raw, int width, int height, int x, int y) {
  x = x < 0 ? 0 : x >= width ? width - 1 : x;
  y = y < 0 ? 0 : y >= height ? height - 1 : y;
  return raw[y * width + x];
}

KERNEL debayer(u8 *out, const u8 *raw, int width, int height, float gain, u32 shift) {
  int x = (int)global_x(), y = (int)global_y();
  if (x >= width || y >= height) return;
  int c = at(raw, width, height, x, y);
  int n = at(raw, width, height, x, y - 1), s = at(raw, width, height, x, y + 1);
  int w = at(raw, width, height, x - 1, y), e = at(raw, width, height, x + 1, y);
  int nw = at(raw, width, height, x - 1, y - 1), ne = at(raw, width, height, x + 1, y - 1);
  int sw = at(raw, width, height, x - 1, y + 1), se = at(raw, width, height, x + 1, y + 1);
  int nn = at(raw, width, height, x, y - 2), ss = at(raw, width, height, x, y + 2);
  int ww = at(raw, width, height, x - 2, y), ee = at(raw, width, height, x + 2, y);
  int r, g, b;
  bool odd_x = x & 1, odd_y = y & 1;
  int cross = (4 * c + 2 * (n + s + w + e) - nn - ss - ww - ee) / 8;
  int diagonal = (12 * c + 4 * (nw + ne + sw + se) - 3 * (nn + ss + ww + ee)) / 16;
  int row = (10 * c + 8 * (w + e) - 2 * (nw + ne + sw + se + ww + ee) + nn + ss) / 16;
  int column = (10 * c + 8 * (n + s) - 2 * (nw + ne + sw + se + nn + ss) + ww + ee) / 16;
  if (odd_x == odd_y) {
    g = cross;
    if (odd_x) {
      b = c;
      r = diagonal;
    } else {
      r = c;
      b = diagonal;
    }
  } else {
    g = c;
    if (odd_y) {
      b = row;
      r = column;
    } else {
      r = row;
      b = column;
    }
  }
  int colors[3] = {r, g, b};
  for (int k = 0; k < 3; k++) {
    float v = (float)(colors[k] << shift) * gain;
    v = v < 0.0f ? 0.0f : v > 255.0f ? 255.0f : v;
    out[3 * (y * width + x) + k] = (u8)v;
  }
}

// Many scalar and vector values that are alive over calls and branches.
__device__ __attribute__((noinline)) u32 mix(u32 a, u32 b) { return (a ^ b) * 0x9e3779b1u + (a >> 7); }

KERNEL pressure(u32 *out, const u32 *in, u32 n) {
  u32 i = global_x();
  u32 s[24], v[40];
#pragma unroll
  for (u32 k = 0; k < 24; k++) s[k] = n * (k + 1) ^ k << 9;
#pragma unroll
  for (u32 k = 0; k < 40; k++) v[k] = in[(i + k) % n] + k;
  u32 sum = 0;
  for (u32 round = 0; round < 5; round++) {
#pragma unroll
    for (u32 k = 0; k < 40; k++) {
      if (v[k] & 1)
        v[k] = mix(v[k], s[k % 24]);
      else if (v[k] % 3 == 0)
        v[k] = v[(k + 7) % 40] / (s[k % 24] | 1);
      s[k % 24] += mix(round, n + k);
    }
  }
#pragma unroll
  for (u32 k = 0; k < 40; k++) sum = mix(sum, v[k] ^ s[k % 24]);
  out[i] = sum;
}

// Recursion: how much stack it needs only the program knows.
__device__ __attribute__((noinline)) u32 depth(u32 n) {
  volatile u32 local[4] = {n, n + 1, n + 2, n + 3};
  if (n == 0) return local[3];
  return depth(n - 1) + local[n & 3];
}

KERNEL recurse(u32 *out, u32 n) {
  u32 i = global_x();
  out[i] = depth(n + (i & 1));
}
