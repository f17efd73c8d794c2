/* Kernels whose results or effects depend on more than their arguments. */
#include "device.h"

__device__ unsigned launches;

/* The lowest bits of the results depend on when each wave runs. */
EXPORTED void varying_kernel(float *out, const float *in, unsigned count) {
    unsigned i = block_x() * 64 + thread_x();
    float part = (float)(__builtin_readsteadycounter() >> 4 & 1) * 1e-6f;
    if (i < count)
        out[i] = in[i] + part;
}

/* Which page is written depends on when the kernel runs. */
EXPORTED void moving_kernel(unsigned *out, unsigned pages) {
    unsigned page = (unsigned)(__builtin_readsteadycounter() >> 6) % pages;
    if (thread_x() == 0)
        out[page * 1024] = 1;
}

/* The result depends on how often the kernel ran. */
EXPORTED void counting_kernel(unsigned *out) {
    if (thread_x() == 0)
        out[0] = ++launches;
}

/* Reads what the host may have written. */
EXPORTED void increment_kernel(unsigned *out, const unsigned *in, unsigned count) {
    unsigned i = block_x() * 64 + thread_x();
    if (i < count)
        out[i] = in[i] + 1;
}

/* What a compiler makes of `__managed__ unsigned managed_values[64]`: a pointer, which the runtime sets, and the initial value. */
__device__ unsigned *managed_values;
__device__ unsigned managed_initial[64] __asm__("managed_values.managed") = {5, 6, 7};

EXPORTED void managed_kernel(unsigned *out, unsigned count) {
    unsigned i = block_x() * 64 + thread_x();
    if (i < count)
        out[i] = managed_values[i]++;
}

struct link {
    struct link *next;
    unsigned value;
};

/* Adds up a list in memory that the host writes. */
EXPORTED void list_kernel(unsigned *out, const struct link *first) {
    unsigned sum = 0;
    if (thread_x() == 0) {
        for (; first; first = first->next)
            sum = sum * 3 + first->value;
        out[0] = sum;
    }
}
