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

/* Sums four tiles of the input, one after the other through local memory. */
template <bool CORRECT> static __device__ void tiles(unsigned *out, const unsigned *in) {
    __shared__ unsigned tile[BLOCK];
    unsigned id = thread_x(), total = 0;
    for (unsigned n = 0; n < 4; ++n) {
        tile[id] = in[n * BLOCK + id];
        block_barrier();
        total += tile[(id + BLOCK / 2) % BLOCK];
        if (CORRECT)
            block_barrier();
    }
    out[block_x() * BLOCK + id] = total;
}
EXPORTED void tiles_clean(unsigned *out, const unsigned *in) { tiles<true>(out, in); }
EXPORTED void tiles_without_barrier(unsigned *out, const unsigned *in) { tiles<false>(out, in); }

/* Four rows, and one that is not there. */
EXPORTED void rows_with_one_more(unsigned *out, const unsigned *in) {
    unsigned id = thread_x(), total = 0;
    for (unsigned row = 0; row <= 4; ++row)
        total += in[row * BLOCK + id];
    out[block_x() * BLOCK + id] = total;
}

/* Block 0 passes a number on to the others. */
template <int RELEASE, int ACQUIRE> static __device__ void message(unsigned *out, const unsigned *in) {
    if (thread_x() != 0)
        return;
    if (block_x() == 0) {
        out[1] = in[5];
        __hip_atomic_store(out, 1, RELEASE, __HIP_MEMORY_SCOPE_AGENT);
    } else if (__hip_atomic_load(out, ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) == 1) {
        out[8 + block_x()] = out[1];
    }
}
EXPORTED void message_clean(unsigned *out, const unsigned *in) { message<__ATOMIC_RELEASE, __ATOMIC_ACQUIRE>(out, in); }
EXPORTED void message_relaxed(unsigned *out, const unsigned *in) { message<__ATOMIC_RELAXED, __ATOMIC_ACQUIRE>(out, in); }
EXPORTED void message_without_acquire(unsigned *out, const unsigned *in) { message<__ATOMIC_RELEASE, __ATOMIC_RELAXED>(out, in); }

/* Blocks take turns with a lock. */
template <bool CORRECT> static __device__ void locked(unsigned *out) {
    if (thread_x() != 0)
        return;
    while (__hip_atomic_exchange(out, 1, CORRECT ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT))
        ;
    out[1] += 1;
    __hip_atomic_exchange(out, 0, CORRECT ? __ATOMIC_RELEASE : __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
EXPORTED void lock_clean(unsigned *out, const unsigned *) { locked<true>(out); }
EXPORTED void lock_relaxed(unsigned *out, const unsigned *) { locked<false>(out); }

/* The first block waits for the last one. */
EXPORTED void wait_clean(unsigned *out, const unsigned *in) {
    if (thread_x() != 0)
        return;
    if (block_x() == 3) {
        out[1] = in[5];
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
        *(volatile unsigned *)out = 1;
    } else if (block_x() == 0) {
        while (*(volatile unsigned *)out == 0)
            ;
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
        out[2] = out[1];
    }
}

/* The last part of a sum that is shorter than a block: nobody writes what is behind it. */
EXPORTED void reduction_tail(unsigned *out, const unsigned *in) {
    __shared__ unsigned part[BLOCK];
    unsigned id = thread_x();
    if (id < 100)
        part[id] = in[id];
    block_barrier();
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        if (id < half)
            part[id] += part[id + half];
        block_barrier();
    }
    if (id == 0)
        out[block_x()] = part[0];
}

/* All blocks store the same number. */
EXPORTED void same_value(unsigned *out, const unsigned *in) {
    if (in[block_x() * BLOCK + thread_x()] == block_x() * BLOCK)
        out[0] = 1;
}

/* A block and a neighbour on each side, in a tile with room for one. */
template <unsigned ROOM> static __device__ void halo(unsigned *out, const unsigned *in) {
    __shared__ unsigned tile[BLOCK + ROOM];
    unsigned id = thread_x(), first = block_x() * BLOCK;
    tile[id + 1] = in[first + id];
    if (id == 0)
        tile[0] = in[(first + 4 * BLOCK - 1) % (4 * BLOCK)];
    if (id == BLOCK - 1)
        tile[id + 2] = in[(first + BLOCK) % (4 * BLOCK)];
    block_barrier();
    out[first + id] = tile[id] + tile[id + 2];
}
EXPORTED void halo_clean(unsigned *out, const unsigned *in) { halo<2>(out, in); }
EXPORTED void halo_too_small(unsigned *out, const unsigned *in) { halo<1>(out, in); }

/* An atomic of 64 bits where one of 32 could be. */
EXPORTED void odd_atomic_64(unsigned *out, const unsigned *in) {
    if (thread_x() == 0)
        __hip_atomic_fetch_add((unsigned long *)(out + 1), (unsigned long)in[0], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

/* Half of a wave goes through a loop with a barrier once more. */
EXPORTED void barrier_in_loop(unsigned *out, const unsigned *in) {
    unsigned id = thread_x(), value = in[id];
    for (unsigned n = 0; n < 1 + id % 64 / 32; ++n) {
        __builtin_amdgcn_s_barrier();
        value += n;
    }
    out[block_x() * BLOCK + id] = value;
}

/* Two steps over all blocks in one launch. */
EXPORTED void steps_without_grid_barrier(unsigned *out, const unsigned *in) {
    unsigned id = block_x() * BLOCK + thread_x();
    out[id] = in[id];
    block_barrier();
    if (out[(id + BLOCK) % (4 * BLOCK)] > 4 * BLOCK)
        out[id] = 0;
}

/* Counts in local memory, which is read before all have counted. */
template <bool CORRECT> static __device__ void histogram(unsigned *out, const unsigned *in) {
    __shared__ unsigned bins[BLOCK];
    unsigned id = thread_x();
    bins[id] = 0;
    block_barrier();
    __hip_atomic_fetch_add(&bins[in[id] % 8], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    if (CORRECT)
        block_barrier();
    out[block_x() * BLOCK + id] = bins[id / 16];
}
EXPORTED void histogram_clean(unsigned *out, const unsigned *in) { histogram<true>(out, in); }
EXPORTED void histogram_without_barrier(unsigned *out, const unsigned *in) { histogram<false>(out, in); }
