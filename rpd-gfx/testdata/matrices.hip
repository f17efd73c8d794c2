// Products of matrices by matrix instructions, as compilers make them from the builtins.
#include "device.h"
typedef float float16v __attribute__((ext_vector_type(16)));
typedef half half4 __attribute__((ext_vector_type(4)));
typedef int int4v __attribute__((ext_vector_type(4)));
typedef double double4v __attribute__((ext_vector_type(4)));

// out = left * right, 32 x 32, both of single precision.
KERNEL product_f32(float *out, const float *left, const float *right) {
  u32 lane = lane_x(), column = lane % 32;
  float16v sum = {};
  for (u32 k = 0; k < 32; k += 2)
    sum = __builtin_amdgcn_mfma_f32_32x32x2f32(left[column * 32 + k + lane / 32], right[(k + lane / 32) * 32 + column],
                                               sum, 0, 0, 0);
  for (u32 n = 0; n < 16; ++n)
    out[(8 * (n / 4) + 4 * (lane / 32) + n % 4) * 32 + column] = sum[n];
}

// out = left * right, 16 x 16, of double precision.
KERNEL product_f64(double *out, const double *left, const double *right) {
  u32 lane = lane_x(), column = lane % 16, part = lane / 16;
  double4v sum = {};
  for (u32 k = 0; k < 16; k += 4)
    sum = __builtin_amdgcn_mfma_f64_16x16x4f64(left[column * 16 + k + part], right[(k + part) * 16 + column], sum, 0, 0, 0);
  for (u32 n = 0; n < 4; ++n)
    out[(4 * n + part) * 16 + column] = sum[n];
}

// out = left * right, 16 x 16, of bytes, `right` with its columns one after the other.
KERNEL product_i8(int *out, const int *left, const int *right) {
  u32 lane = lane_x(), column = lane % 16, part = lane / 16;
  int4v sum = __builtin_amdgcn_mfma_i32_16x16x16i8(left[column * 4 + part], right[column * 4 + part], int4v{}, 0, 0, 0);
  for (u32 n = 0; n < 4; ++n)
    out[(4 * part + n) * 16 + column] = sum[n];
}
