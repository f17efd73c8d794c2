/* Element-wise arithmetic on a width x height matrix, one work-item an element. */
#include "device.h"

static __device__ inline int element(int width) {
    int x = block_size_x() * block_x() + thread_x();
    int y = block_size_y() * block_y() + thread_y();
    return y * width + x;
}

template <typename T>
__global__ void addition_kernel(T *out, const T *left, const T *right, int width, int height) {
    int i = element(width);
    if (i < width * height)
        out[i] = left[i] + right[i];
}

__global__ void subtract_kernel(float *out, const float *left, const float *right, int width, int height) {
    int i = element(width);
    if (i < width * height)
        out[i] = left[i] - right[i];
}

__global__ void multiply_kernel(float *out, const float *left, const float *right, int width, int height) {
    int i = element(width);
    if (i < width * height)
        out[i] = left[i] * right[i];
}

__global__ void divide_kernel(float *out, const float *left, const float *right, int width, int height) {
    int i = element(width);
    if (i < width * height)
        out[i] = left[i] / right[i];
}

template __global__ void addition_kernel<float>(float *, const float *, const float *, int, int);
