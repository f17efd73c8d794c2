/* Kernels that are slow for one known reason each, and the same work without it. */
#include "device.h"

#define WAVES(least, most) __attribute__((amdgpu_flat_work_group_size(64, 256), amdgpu_waves_per_eu(least, most)))

/* Independent work on every element, whose amount is an argument. */
EXPORTED void work(unsigned *data, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), value = data[at];
    for (unsigned i = 0; i < rounds; ++i)
        value = value * 1664525u + 1013904223u;
    data[at] = value;
}

/* Groups share a part of local memory, of which a launch gives more than it needs: that decides how many fit into a unit. */
EXPORTED void tiles(unsigned *data, unsigned rounds) {
    extern __shared__ unsigned tile[];
    unsigned t = thread_x(), at = block_x() * 256 + t;
    tile[t] = data[at];
    block_barrier();
    unsigned value = tile[t ^ 1];
    for (unsigned i = 0; i < rounds; ++i)
        value = value * 1664525u + 1013904223u;
    data[at] = value;
}

/* So many values that are alive at once that few waves find registers. */
template <int COUNT> static __device__ inline __attribute__((always_inline)) void registers(unsigned *data, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), value[COUNT];
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
        value[n] = data[at] + n;
        __asm__ volatile("" : "+v"(value[n]));
    }
    for (unsigned i = 0; i < rounds; ++i) {
#pragma unroll
        for (int n = 0; n < COUNT; ++n) {
            value[n] = value[n] * 5 + 1;
            __asm__ volatile("" : "+v"(value[n]));
        }
    }
    unsigned sum = 0;
#pragma unroll
    for (int n = 0; n < COUNT; ++n)
        sum += value[n];
    data[at] = sum;
}

EXPORTED WAVES(1, 2) void many_registers(unsigned *data, unsigned rounds) { registers<200>(data, rounds); }
EXPORTED WAVES(8, 8) void few_registers(unsigned *data, unsigned rounds) { registers<20>(data, rounds); }

/* An array that is indexed at run time lies in scratch memory. */
EXPORTED void scratch_array(unsigned *data, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), value = data[at], table[64];
    for (unsigned i = 0; i < 64; ++i)
        table[i] = value + i;
    for (unsigned i = 0; i < rounds; ++i) {
        unsigned place = value * 1664525u >> 26;
        value += table[place];
        table[place] = value;
    }
    data[at] = value;
}

/* Lanes read numbers that are `step` apart, all within the same 4 MiB. */
EXPORTED void rows(unsigned *data, const unsigned *in, unsigned step, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), sum = 0;
    for (unsigned i = 0; i < rounds; ++i)
        sum += in[(at * step + i * 256) & 0xfffff];
    data[at] = sum;
}

/* Lanes read local memory at distances of `stride` words: 1 has no conflicts, 32 all in one bank. */
EXPORTED void banks(unsigned *data, unsigned stride, unsigned rounds) {
    __shared__ unsigned words[2048];
    unsigned t = thread_x(), sum = 0;
    for (unsigned i = t; i < 2048; i += 256)
        words[i] = data[(block_x() * 256 + i) & 0xffff];
    block_barrier();
    unsigned at = t * stride & 2047;
    for (unsigned i = 0; i < rounds; ++i) {
        sum += words[at];
        at ^= i & 1;
        __asm__ volatile("" : "+v"(at));
    }
    data[block_x() * 256 + t] = sum;
}

/* Every `of`-th lane of a wave works, the others wait for it. */
EXPORTED void lanes(unsigned *data, unsigned of, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), value = data[at];
    if (thread_x() % of == 0)
        for (unsigned i = 0; i < rounds; ++i)
            value = value * 1664525u + 1013904223u;
    data[at] = value;
}

/* All items add to `places` places. */
EXPORTED void sums(unsigned *data, unsigned places, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x();
    for (unsigned i = 0; i < rounds; ++i)
        __hip_atomic_fetch_add(&data[(at + i) % places], 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

/* The first wave of a group does `factor` times as much as the others, which wait for it. */
EXPORTED void uneven(unsigned *data, unsigned factor, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), value = data[at];
    int is_first = __builtin_amdgcn_readfirstlane(thread_x() / 64 == 0);
    for (unsigned i = 0; i < rounds; ++i) {
        unsigned steps = is_first ? 16 * factor : 16;
        for (unsigned n = 0; n < steps; ++n)
            value = value * 1664525u + 1013904223u;
        __builtin_amdgcn_s_barrier();
    }
    data[at] = value;
}

/* Each item follows a chain of numbers in memory: it waits for one before it can ask for the next. */
EXPORTED void chase(unsigned *data, const unsigned *next, unsigned rounds) {
    unsigned at = block_x() * 256 + thread_x(), place = at & 0xfffff;
    for (unsigned i = 0; i < rounds; ++i)
        place = next[place];
    data[at] = place;
}
