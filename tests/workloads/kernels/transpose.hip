/* Matrix transpose through local memory. A block is TILE x TILE work-items, four waves of 64,
 * so the barrier really waits for other waves; the odd row length avoids bank conflicts. */
#include "device.h"

#define TILE 16

__global__ void transpose_kernel(const float *in, float *out, unsigned width, unsigned height) {
    __shared__ float tile[TILE][TILE + 1];
    unsigned x = block_x() * TILE + thread_x();
    unsigned y = block_y() * TILE + thread_y();
    if (x < width && y < height)
        tile[thread_y()][thread_x()] = in[y * width + x];
    block_barrier();
    x = block_y() * TILE + thread_x();
    y = block_x() * TILE + thread_y();
    if (x < height && y < width)
        out[y * height + x] = tile[thread_x()][thread_y()];
}

/* Sum of each block's elements; the local memory's size is given at the launch. */
extern __shared__ unsigned partial[];

__global__ void block_sum_kernel(const unsigned *in, unsigned *sums) {
    unsigned t = thread_x();
    partial[t] = in[block_x() * block_size_x() + t];
    block_barrier();
    for (unsigned half = block_size_x() / 2; half > 0; half /= 2) {
        if (t < half)
            partial[t] += partial[t + half];
        block_barrier();
    }
    if (t == 0)
        sums[block_x()] = partial[0];
}
