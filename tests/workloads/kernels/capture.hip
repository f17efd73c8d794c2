/* Kernels of the programs that captures are tried on: what they read and write is reached in every way that a replay has
 * to understand. */
#include "device.h"

__device__ unsigned offset_value = 5;

EXPORTED void add_kernel(float *out, const float *a, const float *b, unsigned count) {
    unsigned i = block_x() * block_size_x() + thread_x();
    if (i < count)
        out[i] = a[i] + b[i];
}

EXPORTED void strided_kernel(float *data, unsigned stride, unsigned count) {
    unsigned i = (block_x() * block_size_x() + thread_x()) * stride;
    if (i < count)
        data[i] = data[i] * 2.0f + 1.0f;
}

/* One partial sum for each block of 64. */
EXPORTED void reduce_kernel(unsigned *out, const unsigned *in, unsigned count) {
    __shared__ unsigned part[64];
    unsigned lane = thread_x();
    unsigned i = block_x() * 64 + lane;
    part[lane] = i < count ? in[i] : 0;
    block_barrier();
    for (unsigned step = 32; step > 0; step /= 2) {
        if (lane < step)
            part[lane] += part[lane + step];
        block_barrier();
    }
    if (lane == 0)
        out[block_x()] = part[0];
}

/* Reads the sizes of grid and block from the hidden arguments. */
EXPORTED void sizes_kernel(unsigned *out, unsigned count) {
    unsigned grid = __builtin_amdgcn_grid_size_x();
    unsigned i = block_x() * block_size_x() + thread_x();
    for (; i < count; i += grid)
        out[i] = i * 3 + block_size_x() + block_size_y() + offset_value;
}

struct Arrays {
    unsigned count;
    unsigned *out;
    const unsigned *in;
};

/* Pointers in a structure that is passed by value. */
EXPORTED void struct_kernel(struct Arrays arrays) {
    unsigned i = block_x() * block_size_x() + thread_x();
    if (i < arrays.count)
        arrays.out[i] = arrays.in[i] + 7;
}

/* Pointers in device memory. */
EXPORTED void table_kernel(unsigned *const *rows, unsigned rows_count, unsigned count) {
    unsigned i = block_x() * block_size_x() + thread_x();
    if (i >= count)
        return;
    for (unsigned row = 1; row < rows_count; ++row)
        rows[0][i] += rows[row][i];
}
