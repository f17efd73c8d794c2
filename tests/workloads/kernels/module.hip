/* Kernels that are loaded as a module. Only ids are used, so that the same source builds as code
 * object V4 and V5; the block size is an argument. */
#include "device.h"

__constant__ unsigned weights[8] = {3, 1, 4, 1, 5, 9, 2, 6};

/* Addresses in initialised data: the loader has to relocate them. */
__device__ const unsigned *halves[2] = {weights, weights + 4};

EXPORTED void scale_kernel(unsigned *out, const unsigned *in, unsigned factor, unsigned count, unsigned block) {
    unsigned i = block_x() * block + thread_x();
    if (i < count)
        out[i] = in[i] * factor;
}

EXPORTED void weigh_kernel(unsigned *data, unsigned count, unsigned block) {
    unsigned i = block_x() * block + thread_x();
    if (i < count)
        data[i] += halves[i / 4 % 2][i % 4];
}

/* Arguments of mixed sizes and alignments, one a structure by value. */
struct Mixed {
    char tag;
    double weight;
    short bias;
};

EXPORTED void mixed_kernel(char small, unsigned *out, struct Mixed mixed, short step, unsigned long long wide) {
    unsigned i = thread_x();
    out[i] = small + mixed.tag + (unsigned)(mixed.weight * 2.0) + mixed.bias + step * i + (unsigned)(wide >> 32);
}
