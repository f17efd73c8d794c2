/* Kernels whose accesses have a known pattern each. in and out have 64 numbers for each work-item. */
#include "device.h"

/* Lanes side by side. */
EXPORTED void coalesced(unsigned *out, const unsigned *in, unsigned) {
    unsigned id = block_x() * 64 + thread_x();
    out[id] = in[id];
}

/* Lanes `step` numbers apart. */
EXPORTED void strided(unsigned *out, const unsigned *in, unsigned step) {
    unsigned id = block_x() * 64 + thread_x();
    unsigned value = in[id * step];
    out[id] = value;
}

/* The same number for all lanes; the mask is 0, which the compiler does not know. */
EXPORTED void broadcast(unsigned *out, const unsigned *in, unsigned mask) {
    unsigned id = block_x() * 64 + thread_x();
    unsigned value = in[id & mask];
    out[id] = value;
}

/* Lanes of a wave in so many banks of local memory: 1 for 32, all for 33. */
EXPORTED void banks(unsigned *out, const unsigned *, unsigned step) {
    __shared__ unsigned part[64 * 33];
    unsigned id = thread_x();
    part[id * step] = id;
    block_barrier();
    out[block_x() * 64 + id] = part[id];
}

/* Half of the lanes count, in 16 places. */
EXPORTED void counted(unsigned *out, const unsigned *, unsigned) {
    if (thread_x() % 2 == 0)
        __hip_atomic_fetch_add(&out[thread_x() % 32], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
