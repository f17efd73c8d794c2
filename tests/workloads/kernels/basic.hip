/* Small kernels for programs whose subject is not the kernel. */
#include "device.h"

EXPORTED void empty_kernel() {}

/* data[i] = value + i */
EXPORTED void fill_kernel(unsigned *data, unsigned value, unsigned count) {
    unsigned i = block_size_x() * block_x() + thread_x();
    if (i < count)
        data[i] = value + i;
}

/* Rounds of a linear congruential generator on every element: work whose amount is an argument. */
EXPORTED void churn_kernel(unsigned *data, unsigned rounds, unsigned count) {
    unsigned i = block_size_x() * block_x() + thread_x();
    if (i >= count)
        return;
    unsigned value = data[i];
    for (unsigned r = 0; r < rounds; ++r)
        value = value * 1664525u + 1013904223u;
    data[i] = value;
}
