/* Kernels with an error each, and the same without it. Blocks have 128 work-items, two waves. */
#include "device.h"

enum { BLOCK = 128 };

/* Sums a block in local memory. */
template <bool CORRECT> static __device__ void sum(unsigned *out, const unsigned *in) {
    __shared__ unsigned part[BLOCK];
    unsigned id = thread_x();
    part[id] = in[block_x() * BLOCK + id];
    if (CORRECT)
        block_barrier();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (id < half)
            part[id] += part[id + half];
        block_barrier();
    }
    if (id == 0)
        out[block_x()] = part[0];
}
EXPORTED void sum_clean(unsigned *out, const unsigned *in) { sum<true>(out, in); }
EXPORTED void sum_without_barrier(unsigned *out, const unsigned *in) { sum<false>(out, in); }

/* Counts even numbers in one place. */
EXPORTED void count_clean(unsigned *out, const unsigned *in) {
    if (in[block_x() * BLOCK + thread_x()] % 2 == 0)
        __atomic_fetch_add(out, 1, __ATOMIC_RELAXED);
}
EXPORTED void count_race(unsigned *out, const unsigned *in) {
    if (in[block_x() * BLOCK + thread_x()] % 2 == 0)
        *out += 1;
}

/* Neighbours of neighbours, through global memory. */
EXPORTED void neighbours_race(unsigned *out, const unsigned *in) {
    unsigned id = block_x() * BLOCK + thread_x();
    out[id] = in[id];
    block_barrier();
    unsigned next = (id + BLOCK) % (4 * BLOCK);
    out[id] = *(volatile unsigned *)&out[next];
}

/* The last block adds up what the others have stored, as reductions with one launch do. */
EXPORTED void last_block_clean(unsigned *out, const unsigned *in) {
    __shared__ unsigned last;
    unsigned id = thread_x();
    if (id == 0) {
        out[1 + block_x()] = in[block_x() * BLOCK];
        __atomic_thread_fence(__ATOMIC_RELEASE);
        last = __atomic_fetch_add(out, 1, __ATOMIC_ACQ_REL) == 3;
    }
    block_barrier();
    if (last && id == 0) {
        unsigned total = 0;
        for (unsigned n = 0; n < 4; ++n)
            total += *(volatile unsigned *)&out[1 + n];
        out[5] = total;
    }
}

/* One row too many: in holds 4 * BLOCK numbers. */
EXPORTED void row_too_many(unsigned *out, const unsigned *in) {
    unsigned id = block_x() * BLOCK + thread_x();
    out[id] = in[id + BLOCK];
}

/* Element -1. */
EXPORTED void before_the_first(unsigned *out, const unsigned *in) {
    unsigned id = block_x() * BLOCK + thread_x();
    out[id] = in[(int)id - 1];
}

/* out is written by the caller only in part. */
EXPORTED void reads_out(unsigned *out, const unsigned *in) {
    unsigned id = block_x() * BLOCK + thread_x();
    out[id] += in[id];
}

/* Local memory that nobody has written. */
EXPORTED void reads_local(unsigned *out, const unsigned *in) {
    __shared__ unsigned table[2 * BLOCK];
    unsigned id = thread_x();
    table[id] = in[id];
    block_barrier();
    out[block_x() * BLOCK + id] = ((volatile unsigned *)table)[id + 1];
}

/* A barrier that half of a wave passes by. */
EXPORTED void half_barrier(unsigned *out, const unsigned *in) {
    unsigned id = thread_x();
    unsigned value = in[id];
    if (id % 64 < 32) {
        __builtin_amdgcn_s_barrier();
        value += 1;
    }
    out[block_x() * BLOCK + id] = value;
}

/* Early returns are no error. */
EXPORTED void early_return_clean(unsigned *out, const unsigned *in) {
    unsigned id = thread_x();
    if (id >= 100)
        return;
    block_barrier();
    out[block_x() * BLOCK + id] = in[id];
}

/* An atomic at an odd address. */
EXPORTED void odd_atomic(unsigned *out, const unsigned *in) {
    if (thread_x() == 0)
        __atomic_fetch_add((unsigned *)((char *)out + 2), in[0], __ATOMIC_RELAXED);
}
